"""Read a claim and its evidence once for all checkers: sentences, clauses, content terms, drugs, values.

The affinity of two readings says how surely they speak of the same matter. It is a cosine over content terms weighted by
their rarity among the evidence sentences at hand, so a term that every passage holds decides nothing.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from factcheck.checkers.drugs import classes_of, find_drugs
from factcheck.checkers.parse_quantities import find_quantities
from factcheck.checkers.quantities import Quantity
from factcheck.schema import Claim, Evidence
from factcheck.text.sentences import split_sentences
from factcheck.text.tokens import terms

_CLAUSE = re.compile(r"[;:()]|,(?!\d)|\b(?:but|although|though|while|whereas|because|since|unless|and then)\b|\s[–—]\s")
_NUMERIC = re.compile(r"^[<>≤≥~]?\d")
_WORD = re.compile(r"[^\W_][\w'’-]*")
_REACH = 9
_WINDOW = 400
_QUESTION_SHARE = 0.5
_TOPIC_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Clause:
    """Hold a stretch ``[start, end)`` of a text with the content terms in it."""

    start: int
    end: int
    text: str
    terms: frozenset[str]
    drugs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """Hold one sentence of a passage (or a whole claim); offsets index the passage (or the claim's text).

    ``topic`` are the terms of the passage's title, ``whole`` both the sentence's own and those.
    """

    passage_id: str
    start: int
    end: int
    text: str
    terms: frozenset[str]
    topic: frozenset[str]
    whole: frozenset[str]
    drugs: frozenset[str]
    clauses: tuple[Clause, ...]
    quantities: tuple[Quantity, ...]

    @property
    def place(self) -> tuple[str, int]:
        """Return where the sentence stands, which identifies it among those of one reading."""
        return self.passage_id, self.start

    def around(self, start: int, end: int) -> dict[str, float]:
        """Return the content terms near ``text[start:end]`` with weights that fall with the distance in words, 1 to 0.1."""
        return _around(self.text, start, end)

    def clause_at(self, position: int) -> Clause:
        """Return the clause that holds an offset of ``text``."""
        place = bisect.bisect_right(self.clauses, position, key=lambda clause: clause.start)
        return self.clauses[max(0, place - 1)]


@dataclass(frozen=True, eq=False)
class Reading:
    """Hold a claim, the sentences of its evidence in rank order, and the terms of each passage with its title."""

    claim: Sentence
    context: frozenset[str]
    question: frozenset[str]
    sentences: tuple[Sentence, ...]
    passages: Mapping[str, frozenset[str]]

    @functools.cached_property
    def matter(self) -> frozenset[str]:
        """Return what the claim is about: its own terms and those of its context."""
        return self.claim.terms | self.context

    @functools.cached_property
    def weights(self) -> Mapping[str, float]:
        """Return the weight of each term; one that no evidence sentence holds has the highest."""
        frequency = Counter(itertools.chain.from_iterable([sentence.terms for sentence in self.sentences]))
        total = len(self.sentences)
        often = range(max(frequency.values(), default=0) + 1)
        levels = [math.log(1 + (total + 1) / (count + 0.5)) for count in often]
        return defaultdict(lambda: levels[0], {name: levels[count] for name, count in frequency.items()})

    def weight(self, names: Iterable[str]) -> float:
        """Return the summed weight of terms; a term that no evidence sentence holds has the highest weight."""
        # fsum: the order of a set must not show in the last bits.
        return math.fsum(map(self._weigh, names))

    @functools.cached_property
    def _weigh(self) -> Callable[[str], float]:
        return self.weights.__getitem__

    def affinity(self, left: frozenset[str], right: frozenset[str]) -> float:
        """Return the weighted cosine of two sets of terms, in [0, 1]."""
        shared = left & right
        if not shared:
            return 0.0
        known = self._known_weights
        return math.fsum(map(self._weigh, shared)) / math.sqrt(known[left] * known[right])

    @functools.cached_property
    def _known_weights(self) -> Mapping[frozenset[str], float]:
        """Return the weights of sets that come back often, as those of the sentences do."""
        return _KnownWeights(self._weigh)

    def share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        """Return how much of the weight of ``part`` is in ``whole``, in [0, 1]."""
        shared = part & whole
        return self.weight(shared) / self._known_weights[part] if shared else 0.0

    def nearness(self, left: Mapping[str, float], right: Mapping[str, float]) -> float:
        """Return the weighted cosine of two neighbourhoods, in [0, 1]."""
        return self.cosine(left, self.size(left), right, self.size(right))

    def cosine(self, left: Mapping[str, float], ours: float, right: Mapping[str, float], theirs: float) -> float:
        """Return the nearness of two neighbourhoods whose sizes are known, which spares those that come back."""
        weights = self.weights
        shared = math.fsum([left[name] * value * weights[name] for name, value in right.items() if name in left])
        return min(1.0, shared / math.sqrt(ours * theirs)) if shared else 0.0

    def size(self, around: Mapping[str, float]) -> float:
        """Return the squared length of a neighbourhood."""
        weights = self.weights
        return math.fsum([value * value * weights[name] for name, value in around.items()])

    @functools.cached_property
    def topicality(self) -> Mapping[str, float]:
        """Return for each passage how far it is about the question and the claim, 1 for the one that is most so."""
        said = self._affinities(self.matter)
        if not self.question:
            return _relative(said)
        asked = self._affinities(self.question)
        return _relative({name: (1 - _QUESTION_SHARE) * said[name] + _QUESTION_SHARE * asked[name] for name in said})

    def _affinities(self, names: frozenset[str]) -> dict[str, float]:
        """Return how alike terms and each passage are, in parts of the one that is most so."""
        return _relative({passage: self.affinity(names, held) for passage, held in self.passages.items()})

    def closeness(self, sentence: Sentence) -> float:
        """Return how far a sentence speaks of the claim, in [0, 1]: its own words first, then its passage's topic."""
        own = self.affinity(self.matter, sentence.whole)
        return min(1.0, own * (1 - _TOPIC_SHARE + _TOPIC_SHARE * self.topicality[sentence.passage_id])) if own else 0.0

    @functools.cached_property
    def ranked(self) -> tuple[tuple[float, Sentence], ...]:
        """Return the sentences with their closeness, closest first; ties in rank order."""
        scored = [(self.closeness(sentence), sentence) for sentence in self.sentences]
        return tuple(sorted(scored, key=lambda pair: -pair[0]))


class _KnownWeights(dict[frozenset[str], float]):
    """Hold the weights of sets of terms, each computed when it is first asked for."""

    def __init__(self, weigh: Callable[[str], float]) -> None:
        super().__init__()
        self._weigh = weigh

    def __missing__(self, names: frozenset[str]) -> float:
        weight = self[names] = math.fsum(map(self._weigh, names))
        return weight


def _relative(values: Mapping[str, float]) -> dict[str, float]:
    top = max(values.values(), default=0.0)
    return {name: value / top if top else 0.0 for name, value in values.items()}


@functools.lru_cache(maxsize=20_000)
def content_terms(text: str) -> frozenset[str]:
    """Return the content terms of a text without bare numbers, with its drugs and their classes as terms of their own."""
    words = {term for term in terms(text) if not _NUMERIC.match(term)}
    drugs = drug_names(text)
    return frozenset(words.union([f"={name}" for name in drugs.union(*map(classes_of, drugs))]))


@functools.lru_cache(maxsize=20_000)
def drug_names(text: str) -> frozenset[str]:
    """Return the drugs and drug classes that a text names."""
    return frozenset(mention.name for mention in find_drugs(text))


@functools.lru_cache(maxsize=20_000)
def values_in(text: str) -> tuple[Quantity, ...]:
    """Return the values of a text in order."""
    return tuple(find_quantities(text))


@functools.lru_cache(maxsize=50_000)
def _around(text: str, start: int, end: int) -> dict[str, float]:
    # Nine words fit the window; a search of the whole sentence for each mention would be quadratic.
    first, last = max(0, start - _WINDOW), min(len(text), end + _WINDOW)
    before = [m.span() for m in _WORD.finditer(text, first, start) if m.start() > first or not first][-_REACH:]
    after = [m.span() for m in itertools.islice(_WORD.finditer(text, end, last), _REACH)]
    weights: dict[str, float] = {}
    for side in (list(reversed(before)), after):
        for distance, (left, right) in enumerate(side):
            for name in content_terms(text[left:right]):
                weights[name] = max(weights.get(name, 0.0), 1.0 - distance / (_REACH + 1))
    return weights


@functools.lru_cache(maxsize=20_000)
def _read_sentence(text: str) -> tuple[frozenset[str], frozenset[str], tuple[Clause, ...], tuple[Quantity, ...]]:
    cuts = [0, *(match.start() for match in _CLAUSE.finditer(text)), len(text)]
    clauses = tuple(
        Clause(start, end, text[start:end], content_terms(text[start:end]), drug_names(text[start:end]))
        for start, end in itertools.pairwise(cuts)
        if end > start
    )
    empty = Clause(0, 0, "", frozenset(), frozenset())
    return content_terms(text), drug_names(text), clauses or (empty,), values_in(text)


class _Passage(NamedTuple):
    """Hold the sentences of a passage, their terms together, and those with the terms of the title."""

    sentences: tuple[Sentence, ...]
    terms: frozenset[str]
    whole: frozenset[str]


@functools.lru_cache(maxsize=5_000)
def _read_passage(passage_id: str, title: str, text: str) -> _Passage:
    topic = content_terms(title)
    result = []
    for start, end in split_sentences(text):
        sentence = text[start:end]
        names, drugs, clauses, quantities = _read_sentence(sentence)
        whole = names | topic
        result.append(Sentence(passage_id, start, end, sentence, names, topic, whole, drugs, clauses, quantities))
    held = frozenset().union(*(sentence.terms for sentence in result))
    return _Passage(tuple(result), held, held | topic)


def read(claim: Claim, evidence: Evidence) -> Reading:
    """Read a claim with its evidence; equal texts are read once."""
    return _read(
        claim.text,
        claim.context,
        claim.question,
        tuple([(passage.id, passage.title, passage.text) for passage in evidence.passages]),
    )


@functools.lru_cache(maxsize=256)
def _read(text: str, context: str, question: str, passages: tuple[tuple[str, str, str], ...]) -> Reading:
    sentences: list[Sentence] = []
    gathered: dict[str, frozenset[str]] = {}
    for key in passages:
        passage = _read_passage(*key)
        sentences += passage.sentences
        if passage.sentences:
            # Two corpora may use the same name.
            known = gathered.get(key[0])
            gathered[key[0]] = passage.whole if known is None else known | passage.terms
    names, drugs, clauses, quantities = _read_sentence(text)
    claim = Sentence("", 0, len(text), text, names, frozenset(), names, drugs, clauses, quantities)
    return Reading(claim, content_terms(context), content_terms(question), tuple(sentences), gathered)
