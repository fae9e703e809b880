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
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from factcheck.checkers.drugs import find_drugs, widen
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
    """Hold one sentence of a passage (or a whole claim); offsets index the passage (or the claim's text)."""

    passage_id: str
    start: int
    end: int
    text: str
    terms: frozenset[str]
    topic: frozenset[str]
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


@dataclass(frozen=True)
class Reading:
    """Hold a claim, the sentences of its evidence in rank order, and the weights of the terms."""

    claim: Sentence
    context: frozenset[str]
    question: frozenset[str]
    sentences: tuple[Sentence, ...]
    weights: Mapping[str, float]

    def weight(self, names: Iterable[str]) -> float:
        """Return the summed weight of terms; a term that no evidence sentence holds has the highest weight."""
        top = self.weights["\0"]
        # fsum: the order of a set must not show in the last bits.
        return math.fsum(self.weights.get(name, top) for name in names)

    def affinity(self, left: frozenset[str], right: frozenset[str]) -> float:
        """Return the weighted cosine of two sets of terms, in [0, 1]."""
        if not left or not right:
            return 0.0
        return self.weight(left & right) / math.sqrt(self._known_weight(left) * self._known_weight(right))

    def _known_weight(self, names: frozenset[str]) -> float:
        """Return the weight of a set that comes back often, as those of the sentences do."""
        known = self._weights_of_sets.get(names)
        if known is None:
            known = self._weights_of_sets[names] = self.weight(names)
        return known

    @functools.cached_property
    def _weights_of_sets(self) -> dict[frozenset[str], float]:
        return {}

    def share(self, part: frozenset[str], whole: frozenset[str]) -> float:
        """Return how much of the weight of ``part`` is in ``whole``, in [0, 1]."""
        return self.weight(part & whole) / self._known_weight(part) if part else 0.0

    def nearness(self, left: Mapping[str, float], right: Mapping[str, float]) -> float:
        """Return the weighted cosine of two neighbourhoods, in [0, 1]."""
        shared = math.fsum(left[name] * right[name] * self.weight((name,)) for name in left.keys() & right.keys())
        if not shared:
            return 0.0
        sizes = [
            math.fsum(value * value * self.weight((name,)) for name, value in side.items()) for side in (left, right)
        ]
        return min(1.0, shared / math.sqrt(sizes[0] * sizes[1]))

    @functools.cached_property
    def topicality(self) -> Mapping[str, float]:
        """Return for each passage how far it is about the question and the claim, 1 for the one that is most so."""
        gathered: dict[str, set[str]] = {}
        for sentence in self.sentences:
            gathered.setdefault(sentence.passage_id, set(sentence.topic)).update(sentence.terms)
        whole = {name: frozenset(names) for name, names in gathered.items()}
        ours = self.claim.terms | self.context
        said = _relative({name: self.affinity(ours, names) for name, names in whole.items()})
        asked = _relative({name: self.affinity(self.question, names) for name, names in whole.items()})
        share = _QUESTION_SHARE if self.question else 0.0
        return _relative({name: (1 - share) * said[name] + share * asked[name] for name in whole})

    def closeness(self, sentence: Sentence) -> float:
        """Return how far a sentence speaks of the claim, in [0, 1]: its own words first, then its passage's topic."""
        own = self.affinity(self.claim.terms | self.context, sentence.terms | sentence.topic)
        return min(1.0, own * (1 - _TOPIC_SHARE + _TOPIC_SHARE * self.topicality[sentence.passage_id]))

    @functools.cached_property
    def ranked(self) -> tuple[tuple[float, Sentence], ...]:
        """Return the sentences with their closeness, closest first; ties in rank order."""
        scored = [(self.closeness(sentence), sentence) for sentence in self.sentences]
        return tuple(sorted(scored, key=lambda pair: -pair[0]))


def _relative(values: Mapping[str, float]) -> dict[str, float]:
    top = max(values.values(), default=0.0)
    return {name: value / top if top else 0.0 for name, value in values.items()}


@functools.lru_cache(maxsize=20_000)
def content_terms(text: str) -> frozenset[str]:
    """Return the content terms of a text without bare numbers, with its drugs and their classes as terms of their own."""
    words = {term for term in terms(text) if not _NUMERIC.match(term)}
    return frozenset(words | {f"={name}" for name in widen(find_drugs(text))})


@functools.lru_cache(maxsize=20_000)
def drug_names(text: str) -> frozenset[str]:
    """Return the drugs and drug classes that a text names."""
    return frozenset(mention.name for mention in find_drugs(text))


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
    return content_terms(text), drug_names(text), clauses or (empty,), tuple(find_quantities(text))


@functools.lru_cache(maxsize=5_000)
def _passage_sentences(passage_id: str, title: str, text: str) -> tuple[Sentence, ...]:
    topic = content_terms(title)
    result = []
    for start, end in split_sentences(text):
        sentence = text[start:end]
        names, drugs, clauses, quantities = _read_sentence(sentence)
        result.append(Sentence(passage_id, start, end, sentence, names, topic, drugs, clauses, quantities))
    return tuple(result)


def read(claim: Claim, evidence: Evidence) -> Reading:
    """Read a claim with its evidence; equal texts are read once."""
    return _read(
        claim.text,
        claim.context,
        claim.question,
        tuple((passage.id, passage.title, passage.text) for passage in evidence.passages),
    )


@functools.lru_cache(maxsize=256)
def _read(text: str, context: str, question: str, passages: tuple[tuple[str, str, str], ...]) -> Reading:
    sentences = tuple(s for passage in passages for s in _passage_sentences(*passage))
    frequency = Counter(name for sentence in sentences for name in sentence.terms)
    total = len(sentences)
    weights = {name: math.log(1 + (total + 1) / (count + 0.5)) for name, count in frequency.items()}
    weights["\0"] = math.log(1 + (total + 1) / 0.5)
    names, drugs, clauses, quantities = _read_sentence(text)
    claim = Sentence("", 0, len(text), text, names, frozenset(), drugs, clauses, quantities)
    return Reading(claim, content_terms(context), content_terms(question), sentences, weights)
