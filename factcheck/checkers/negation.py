"""Tell which mentions a sentence negates: "no indication for antibiotics", "denies fever", "treat without aspirin".

Three backends answer the same question. ``medspacy`` applies the rules of ConText and ``negspacy`` those of NegEx, each on a
blank English pipeline, with nothing to download; ``plain`` is a small NegEx of its own (Chapman et al., "A simple algorithm for
identifying negated findings and diseases in discharge summaries", J Biomed Inform 2001): cue words negate what follows or
precedes them until a word or a mark ends their reach.
"""

from __future__ import annotations

import bisect
import functools
import importlib.metadata
import importlib.util
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from factcheck.checkers.cues import any_of
from factcheck.errors import MissingExtraError

Backend = Literal["plain", "negspacy", "medspacy"]
Choice = Literal["auto", "plain", "negspacy", "medspacy"]
Target = tuple[int, int]

_EXTRA = "clinical"
_BEFORE = any_of(
    r"\b(?:no|not|never|without|neither|nor|none of)\b",
    r"\b\w+n['’]t\b",
    r"\bcannot\b",
    r"\b(?:den(?:y|ies|ied|ying)|declin(?:e[sd]?|ing)|refus(?:e[sd]?|ing))\b",
    r"\b(?:absence|lack) of\b",
    r"\black(?:s|ed|ing)\b",
    r"\bfree (?:of|from)\b",
    r"\bnegative for\b",
    r"\b(?:rules?|ruled|ruling) out\b",
    r"\b(?:rather than|instead of)\b",
    r"\bunable to\b",
    r"\bfail(?:s|ed)? to\b",
)
_AFTER = any_of(
    r"\b(?:is|are|was|were|be|been|being) (?:ruled out|excluded|absent|unlikely|declined|refused|denied|negative)\b",
    r"\b(?:ruled out|unlikely|declined)\b",
)
# These hold a cue and negate nothing.
_PSEUDO = any_of(
    r"\bno (?:longer|more|less|fewer|later|earlier) than\b",
    r"\bnot (?:more|less|fewer|longer|later|earlier) than\b",
    r"\bnot (?:only|just|necessarily|always|simply|merely|certain)\b",
    r"\bno (?:doubt|matter|wonder|sooner|exception)\b",
    r"\bno (?:significant |clear |further )?(?:change|increase|decrease|difference)\b",
    r"\bwithout (?:delay|difficulty|exception|doubt)\b",
)
_ENDS = any_of(
    r"[.;:!?()]",
    r"\b(?:but|however|although|though|except|apart from|aside from|because|since|unless|which|who|whereas|while|yet)\b",
    r"\b(?:still|then)\b",
    # A new order ends it too: "instead of codeine give morphine", but not "cannot take".
    r"(?<!not )(?<!n['’]t )(?<!never )(?<!to )(?<!or )\b(?:give|offer|take|use|start|try)\b",
    # A comma ends it, except in a list.
    r",(?!\s[\w-]+(?:\s[\w-]+)?(?:,|\s(?:or|nor|and)\b))(?!\s(?:or|nor|and)\b)",
)
_REACH = 8
_FAR = 200
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# No clause is longer than this; what is, is no prose, and would hold up a pipeline.
_LONGEST = 10_000


def choose(choice: Choice) -> Backend:
    """Return the backend to use: the one asked for, or for ``auto`` the first installed of medspacy, negspacy, plain.

    Imports nothing. Raises MissingExtraError for a backend that is not installed.
    """
    if choice == "plain":
        return "plain"
    if choice == "auto":
        return next((name for name in _FACTORIES if _installed(name)), "plain")
    if _installed(choice):
        return choice
    error = MissingExtraError(f"negation by {choice}", choice, _EXTRA)
    if sys.version_info >= (3, 13):
        error.hint = (
            f"{choice} needs Python below 3.13. Set negation = 'plain' or run: pip install 'factcheck[{_EXTRA}]'"
        )
    raise error


def described(backend: Backend) -> str:
    """Name a backend with its version, for a fingerprint."""
    return "plain 1" if backend == "plain" else f"{backend} {importlib.metadata.version(backend)}"


def negated(text: str, targets: Iterable[Target], *, backend: Backend = "plain") -> set[Target]:
    """Return those of the target spans ``text[start:end]`` that the text negates.

    >>> negated("There is no indication for antibiotics.", [(27, 38)])
    {(27, 38)}
    """
    wanted = tuple(sorted({(start, end) for start, end in targets if 0 <= start < end <= len(text)}))
    return set(_negated(text, wanted, backend)) if wanted else set()


@functools.lru_cache(maxsize=20_000)
def _negated(text: str, targets: tuple[Target, ...], backend: Backend) -> frozenset[Target]:
    if backend == "plain" or len(text) > _LONGEST:
        return frozenset(_plain(text, targets))
    # Half of a surrogate pair is no text to the backends.
    return frozenset(_pipeline(backend)(_SURROGATE.sub("\ufffd", text), targets))


def _plain(text: str, targets: Sequence[Target]) -> set[Target]:
    pseudo = [match.span() for match in _PSEUDO.finditer(text)]
    ends = [match.start() for match in _ENDS.finditer(text)]
    before = [match.end() for match in _BEFORE.finditer(text) if not _within(match.span(), pseudo)]
    after = [match.start() for match in _AFTER.finditer(text) if not _within(match.span(), pseudo)]
    found = set()
    for start, end in targets:
        nearest = bisect.bisect_right(before, start) - 1
        following = bisect.bisect_left(after, end)
        # The nearest cue reaches a target if any does.
        if (nearest >= 0 and _reaches(text, before[nearest], start, ends)) or (
            following < len(after) and _reaches(text, end, after[following], ends)
        ):
            found.add((start, end))
    return found


def _within(span: Target, others: Sequence[Target]) -> bool:
    place = bisect.bisect_right(others, span[0], key=lambda other: other[0]) - 1
    return place >= 0 and span[1] <= others[place][1]


def _reaches(text: str, left: int, right: int, ends: Sequence[int]) -> bool:
    place = bisect.bisect_left(ends, left)
    ended = place < len(ends) and ends[place] < right
    return not ended and right - left <= _FAR and len(text[left:right].split()) <= _REACH


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


Finder = Callable[[str, Sequence[Target]], set[Target]]


@functools.cache
def _pipeline(backend: Backend) -> Finder:
    """Load a backend once per process."""
    try:
        make_component = _FACTORIES[backend]
        import spacy

        language = spacy.blank("en")
        sentencizer = language.add_pipe("sentencizer")
        component, attribute = make_component(language)
    except ImportError as error:
        raise MissingExtraError(f"negation by {backend}", backend, _EXTRA) from error
    lock = threading.Lock()

    def find(text: str, targets: Sequence[Target]) -> set[Target]:
        found: set[Target] = set()
        waiting = list(targets)
        # A pipeline shares its vocabulary between calls, and entities of one document may not overlap.
        with lock:
            while waiting:
                document = sentencizer(language.make_doc(text))
                chosen, waiting = _disjoint(document, waiting)
                document.set_ents(list(chosen))
                component(document)
                for span, owners in chosen.items():
                    entity = next(e for e in document.ents if e.start == span.start and e.end == span.end)
                    if getattr(entity._, attribute):
                        found.update(owners)
        return found

    return find


def _disjoint(document: Any, targets: Sequence[Target]) -> tuple[dict[Any, list[Target]], list[Target]]:
    """Part the targets into those whose tokens do not overlap, by span, and the rest."""
    chosen: dict[Any, list[Target]] = {}
    rest: list[Target] = []
    end = -1
    for target in targets:
        span = document.char_span(*target, label="TARGET", alignment_mode="expand")
        if span is None or len(span) == 0:
            continue
        same = next((known for known in chosen if (known.start, known.end) == (span.start, span.end)), None)
        if same is not None:
            chosen[same].append(target)
        elif span.start >= end:
            chosen[span] = [target]
            end = span.end
        else:
            rest.append(target)
    return chosen, rest


def _medspacy(language: Any) -> tuple[Any, str]:
    import medspacy.context

    return medspacy.context.ConText(language), "is_negated"


def _negspacy(language: Any) -> tuple[Any, str]:
    from negspacy.negation import Negex
    from negspacy.termsets import termset

    terms = termset("en_clinical").get_patterns()
    return Negex(language, "negex", terms, ent_types=[], extension_name="negex", chunk_prefix=[]), "negex"


_FACTORIES: dict[Backend, Callable[[Any], tuple[Any, str]]] = {"medspacy": _medspacy, "negspacy": _negspacy}
