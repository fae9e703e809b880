"""Where two texts of a pair differ: spans from edits or from a token diff, and which claims an edit meets.

Spans are half-open and count Unicode code points. A token is a number, a word, a single ideograph or kana, or one other
character that is not white space.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from factcheck.schema import Claim, Model, Span

_TOKEN = re.compile(
    r"\d+(?:[.,:/]\d+)*"
    r"|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
    r"|(?:(?![\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])[^\W\d][\u0300-\u036f]*)+"
    r"|\S"
)
_SENTENCE_END = frozenset(".!?。！？؟۔…:;")
# A diff costs the product of how often each token occurs on the two sides; beyond this the middle counts as one edit.
_DIFF_COST = 2_000_000
_MAX_OCCURRENCES = 50
_MAX_PLACINGS = 200


class Edit(Model):
    """Hold one difference: a slice of the original text and the slice of the injected text that stands in its place."""

    original: Span
    injected: Span


class Token(NamedTuple):
    """Hold one token and where it stands in the text."""

    text: str
    start: int
    end: int


def tokens(text: str, span: tuple[int, int] | None = None) -> list[Token]:
    """Return the tokens of ``text`` that lie in ``span``, with offsets into ``text``."""
    start, end = span or (0, len(text))
    return [Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text, start, end)]


def trim(original: str, injected: str, edit: Edit) -> tuple[int, int]:
    """Return the span of what the injected slice does not share with the original one, to whole tokens.

    The tokens that both slices begin with and those that both end with are cut off. An insertion leaves what was
    inserted; where that could be read at several places (the same words stand before and after it) a whole sentence is
    preferred. A deletion leaves an empty span at the place of the deletion.
    """
    old, new = tokens(original, edit.original), tokens(injected, edit.injected)
    head, tail = _common_ends([token.text for token in old], [token.text for token in new])
    low, high = head, len(new) - tail
    if low < high:
        if head + tail == len(old):
            low, high = _slide(injected, new, low, high, floor=0)
        return new[low].start, new[high - 1].end
    point = new[low - 1].end if low else edit.injected[0]
    return point, point


def edits_from_replacements(original: str, injected: str, replacements: Sequence[tuple[str, str]]) -> list[Edit] | None:
    """Return where ``replacements`` (find, replace) stand, in order of the text.

    None if they cannot be placed: a string that is empty, missing or found more than 50 times, or no choice of
    occurrences that turns ``original`` into ``injected``.
    """
    places = [_occurrences(original, find) for find, _ in replacements]
    if not places or not all(places):
        return None
    for chosen in itertools.islice(itertools.product(*places), _MAX_PLACINGS):
        edits = _apply(original, injected, sorted(zip(chosen, replacements, strict=True)))
        if edits is not None:
            return edits
    return None


def edits_from_diff(original: str, injected: str) -> list[Edit]:
    """Return the differences of two texts, token by token, in order of the text.

    Texts that differ in white space alone give none. Long texts that differ in too many places to be compared token by
    token give one edit, from the first difference to the last.
    """
    old, new = tokens(original), tokens(injected)
    head, tail = _common_ends([token.text for token in old], [token.text for token in new])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old_middle and not new_middle:
        return []
    old_words, new_words = [token.text for token in old_middle], [token.text for token in new_middle]
    counts = Counter(new_words)
    if sum(n * counts[word] for word, n in Counter(old_words).items()) > _DIFF_COST:
        blocks = [(0, len(old_words), 0, len(new_words))]
    else:
        matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
        blocks = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    edits = []
    old_floor = new_floor = 0
    for a, b, c, d in ((a + head, b + head, c + head, d + head) for a, b, c, d in blocks):
        shift = 0
        if a == b:
            shift = _slide(injected, new, c, d, floor=new_floor)[0] - c
        elif c == d:
            shift = _slide(original, old, a, b, floor=old_floor)[0] - a
        edit = Edit(original=_span_of(old, a + shift, b + shift), injected=_span_of(new, c + shift, d + shift))
        edits.append(edit)
        old_floor, new_floor = b, d
    return edits


def differ_outside(original: str, injected: str, edits: Sequence[Edit]) -> bool:
    """Tell whether the texts differ anywhere but in the edits."""
    kept = _between(original, [edit.original for edit in edits])
    return kept != _between(injected, [edit.injected for edit in edits])


def meets_error(claim: Claim, span: tuple[int, int]) -> bool:
    """Tell whether a claim of the injected text overlaps a trimmed edit; a deletion counts only inside a claim."""
    start, end = span
    if start == end:
        return claim.span[0] < start < claim.span[1]
    return max(claim.span[0], start) < min(claim.span[1], end)


def matched_claims(text: str, claims: Sequence[Claim], spans: Sequence[tuple[int, int]]) -> set[str]:
    """Return the ids of the claims of the original text at the place of the error.

    For a slice these are the claims that overlap it. For an insertion (an empty or blank slice) they are the claims of
    the sentence in which, or else after which, it was made; at the very beginning, those of the first sentence.
    """
    found: set[str] = set()
    for start, end in spans:
        if text[start:end].strip():
            found.update(claim.id for claim in claims if max(claim.span[0], start) < min(claim.span[1], end))
        else:
            found.update(claim.id for claim in _at_insertion(claims, start))
    return found


def _at_insertion(claims: Sequence[Claim], point: int) -> list[Claim]:
    around = [claim for claim in claims if claim.sentence_span[0] < point < claim.sentence_span[1]]
    if around:
        return around
    before = [claim for claim in claims if claim.sentence_span[1] <= point]
    if before:
        last = max(claim.sentence_span[1] for claim in before)
        return [claim for claim in before if claim.sentence_span[1] == last]
    first = min((claim.sentence_span[0] for claim in claims), default=0)
    return [claim for claim in claims if claim.sentence_span[0] == first]


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many tokens are equal at the beginning, and of the rest how many at the end."""
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    limit -= head
    tail = next((i for i in range(limit) if old[-1 - i] != new[-1 - i]), limit)
    return head, tail


def _slide(text: str, items: Sequence[Token], low: int, high: int, *, floor: int) -> tuple[int, int]:
    """Move an insertion back over tokens that it can equally well begin with, if it then is made of whole sentences."""
    first, last = low, high
    while True:
        if _is_boundary(text, items, first) and _is_boundary(text, items, last):
            return first, last
        if first == floor or items[first - 1].text != items[last - 1].text:
            return low, high
        first, last = first - 1, last - 1


def _is_boundary(text: str, items: Sequence[Token], index: int) -> bool:
    if index in (0, len(items)) or items[index - 1].text in _SENTENCE_END:
        return True
    return "\n" in text[items[index - 1].end : items[index].start]


def _span_of(items: Sequence[Token], low: int, high: int) -> tuple[int, int]:
    if low < high:
        return items[low].start, items[high - 1].end
    point = items[low - 1].end if low else 0
    return point, point


def _occurrences(text: str, find: str) -> list[int]:
    places: list[int] = []
    start = text.find(find) if find else -1
    while start >= 0:
        places.append(start)
        if len(places) > _MAX_OCCURRENCES:
            return []
        start = text.find(find, start + 1)
    return places


def _apply(original: str, injected: str, placed: Sequence[tuple[int, tuple[str, str]]]) -> list[Edit] | None:
    """Return the edits if making them at the places gives ``injected`` exactly, else None."""
    edits: list[Edit] = []
    read = written = 0
    for start, (find, replace) in placed:
        kept = start - read
        if kept < 0 or original[read:start] != injected[written : written + kept]:
            return None
        written += kept
        if not injected.startswith(replace, written):
            return None
        edits.append(Edit(original=(start, start + len(find)), injected=(written, written + len(replace))))
        read, written = start + len(find), written + len(replace)
    return edits if original[read:] == injected[written:] else None


def _between(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    pieces, read = [], 0
    for start, end in sorted(spans):
        pieces.append(text[read:start])
        read = max(read, end)
    return [*pieces, text[read:]]
