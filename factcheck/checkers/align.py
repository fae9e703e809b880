"""Decide which mention in the evidence a mention in the claim is to be compared with.

A claim says "every 3 to 4 hours"; the evidence holds several intervals, one of them about this drug and this population. Each
comparable mention gets a score from how alike the surroundings are, and a soft maximum over all of them and "none" turns the
scores into probabilities: that the mention the claim is about agrees, that it differs, that the evidence has none. The weights
are fitted on answers that are correct, where the mention that agrees is the one that the claim is about.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import resources
from typing import Literal, NamedTuple

from factcheck.checkers.drugs import classes_of
from factcheck.checkers.population import comparability
from factcheck.checkers.reading import Reading, Sentence
from factcheck.schema import Claim, Finding, Model, Relation, digest

SENTENCES_COMPARED = 30
HARD_CONFIDENCE = 0.3
DIVIDED_SHARE = 0.3
_TABLE = "alignment.v1.json"
_AGAINST: frozenset[Relation] = frozenset({"differs", "outside_range", "negated"})
_OTHER_DRUG = 0.3
_SENTENCE_DRUG = 0.9
_NO_DRUG = 0.7
_COSTLY = frozenset({"asked", "fit", "case", "nearq"})

Slot = Literal["value", "assertion", "urgency"]


class Candidate(NamedTuple):
    """Hold a mention in the evidence that can be compared with one in the claim.

    ``start`` and ``end`` index the sentence's text; ``features`` are in [0, 1].
    """

    relation: Relation
    sentence: Sentence
    start: int
    end: int
    features: Mapping[str, float]


class Alignment(NamedTuple):
    """Hold the probabilities that the mention meant agrees, differs or is absent, and the likeliest of either kind.

    ``divided`` tells that both kinds are about equally comparable with the claim's mention, whatever agreement is worth.
    """

    agrees: float
    differs: float
    agreeing: Candidate | None
    differing: Candidate | None
    divided: bool = False


Weights = Mapping[Slot, Mapping[str, float]]
# Terms with how near they are, and the size of them all.
_Neighbours = tuple[Mapping[str, float], float]


@functools.cache
def default_weights() -> Weights:
    """Return the weights that ship with the package."""
    raw = json.loads((resources.files("factcheck.data") / _TABLE).read_text(encoding="utf-8"))
    slots: dict[Slot, dict[str, float]] = raw["slots"]
    return slots


class AlignmentChecker:
    """Hold the weights for the checkers that align mentions."""

    portable = True

    class Settings(Model):
        """Take no settings."""

    def __init__(self, settings: Settings | None = None, *, weights: Weights | None = None) -> None:
        self.settings = settings or self.Settings()
        self._given = weights

    @property
    def version(self) -> str:
        """Name the rules and the weights, so that a fingerprint tells other weights apart."""
        return f"1 {digest(self.weights)[:12]}"

    @property
    def weights(self) -> Weights:
        """Return the weights given, or those that ship with the package."""
        return self._given or default_weights()


class Surroundings:
    """Compute how alike the surroundings of a claim's mention and an evidence mention are.

    With ``of_case`` the question's terms count as the claim's own: "you can manage it at home" is about what was asked.
    Of the features that cost most only those among ``wanted`` are computed. What depends on a side alone is kept.
    """

    def __init__(
        self, claim: Claim, reading: Reading, *, of_case: bool = False, wanted: Collection[str] = _COSTLY
    ) -> None:
        self.claim = claim
        self.reading = reading
        self.wanted = _COSTLY.intersection(wanted)
        self._own = reading.claim.terms | reading.question if of_case else reading.claim.terms
        self._matter = self._own | reading.context if of_case else reading.matter
        self._side = f"{claim.context} {claim.question}"
        self._of_places: dict[tuple[str, int], dict[str, float]] = {}
        self._ours: dict[tuple[int, int], tuple[_Neighbours, _Neighbours]] = {}

    def sentences(self) -> Sequence[tuple[float, Sentence]]:
        """Return the sentences that are close enough to be compared, closest first."""
        return self.reading.ranked[:SENTENCES_COMPARED]

    @functools.cached_property
    def _case(self) -> frozenset[str]:
        return self.reading.matter | self.reading.question

    @functools.cached_property
    def _at(self) -> Mapping[tuple[str, int], Sentence]:
        """Return the sentence at each place; of two at the same, as two corpora may give, the less close one."""
        return {sentence.place: sentence for _, sentence in self.sentences()}

    @functools.cached_property
    def _asked(self) -> Mapping[tuple[str, int], float]:
        reading = self.reading
        asked = {place: reading.affinity(reading.question, s.whole) for place, s in self._at.items()}
        top = max(asked.values(), default=0.0)
        return {place: value / top if top else 0.0 for place, value in asked.items()}

    def _of_place(self, place: tuple[str, int]) -> dict[str, float]:
        known = self._of_places.get(place)
        if known is not None:
            return known
        reading, sentence = self.reading, self._at[place]
        found = {
            "own": reading.affinity(self._own, sentence.terms),
            "ownctx": reading.affinity(self._matter, sentence.whole),
            "topic": reading.topicality[sentence.passage_id],
            "pop": comparability(self.claim.text, self._side, sentence.text, _joined(sentence.topic)),
        }
        if "asked" in self.wanted:
            found["asked"] = self._asked[place]
        if "fit" in self.wanted:
            found["fit"] = reading.share(sentence.terms, self._case)
        self._of_places[place] = found
        return found

    def _around(self, ours: tuple[int, int]) -> tuple[_Neighbours, _Neighbours]:
        """Return what is near a mention of the claim, without and with the question's terms."""
        known = self._ours.get(ours)
        if known is None:
            reading, near = self.reading, self.reading.claim.around(*ours)
            asked = {**dict.fromkeys(reading.question, 0.5), **near}
            known = self._ours[ours] = (near, reading.size(near)), (asked, reading.size(asked))
        return known

    def drug(self, drugs: frozenset[str], sentence: Sentence, start: int) -> float:
        """Return how well drugs of the claim match what a sentence says at an offset; no other feature costs so little."""
        return drug_match(drugs, sentence.clause_at(start).drugs, sentence)

    def features(
        self, ours: tuple[int, int], drugs: frozenset[str], sentence: Sentence, theirs: tuple[int, int]
    ) -> dict[str, float]:
        """Return the features of a pair of mentions; ``drugs`` are those that the claim's mention is about."""
        reading = self.reading
        around = sentence.around(*theirs)
        size = reading.size(around)
        near, asked = self._around(ours)
        found = {
            **self._of_place(sentence.place),
            "near": reading.cosine(*near, around, size),
            "drug": self.drug(drugs, sentence, theirs[0]),
        }
        if "case" in self.wanted:
            found["case"] = reading.share(sentence.clause_at(theirs[0]).terms, self._case)
        if "nearq" in self.wanted:
            found["nearq"] = reading.cosine(*asked, around, size) if reading.question else found["near"]
        return found


@functools.lru_cache(maxsize=5_000)
def _joined(topic: frozenset[str]) -> str:
    return " ".join(sorted(topic))


@functools.lru_cache(maxsize=5_000)
def _drugs_of(topic: frozenset[str]) -> frozenset[str]:
    return frozenset(name[1:] for name in topic if name.startswith("="))


def drug_match(ours: frozenset[str], here: frozenset[str], sentence: Sentence) -> float:
    """Return 1 for the same drug or class in the clause, 0.9 in the sentence or title, 0.7 if a side names none, else 0.3."""
    if not ours:
        return _NO_DRUG
    if here:
        return 1.0 if related(ours, here) else _OTHER_DRUG
    around = sentence.drugs or _drugs_of(sentence.topic)
    if not around:
        return _NO_DRUG
    return _SENTENCE_DRUG if related(ours, around) else _OTHER_DRUG


def related(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Tell whether a drug of one side is, holds or belongs to a drug or class of the other."""
    return _related(frozenset(ours), frozenset(theirs))


@functools.lru_cache(maxsize=20_000)
def _related(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    wide = {group for name in theirs for group in classes_of(name)}
    return any(name in theirs or name in wide or classes_of(name) & theirs for name in ours)


def align(slot: Slot, candidates: Sequence[Candidate], weights: Weights) -> Alignment:
    """Weigh the candidates; with none, everything is absent."""
    if not candidates:
        return Alignment(0.0, 0.0, None, None)
    table = weights[slot]
    scores = [math.fsum([table.get(name, 0.0) * value for name, value in c.features.items()]) for c in candidates]
    plain = _shares(scores, table["none"])
    # A value that the evidence holds is rarely the wrong one of several: agreement gets a head start.
    started = [score + table["agrees"] * (c.relation == "agrees") for score, c in zip(scores, candidates, strict=True)]
    shares = _shares(started, table["none"])
    sides: dict[bool, list[int]] = {True: [], False: []}
    for i, candidate in enumerate(candidates):
        if candidate.relation in _AGAINST or candidate.relation == "agrees":
            sides[candidate.relation in _AGAINST].append(i)
    best = {side: max(chosen, key=lambda i: scores[i], default=None) for side, chosen in sides.items()}
    divided = all(math.fsum(plain[i] for i in chosen) >= DIVIDED_SHARE for chosen in sides.values())
    agreeing, differing = (candidates[i] if i is not None else None for i in (best[False], best[True]))
    return Alignment(
        math.fsum(shares[i] for i in sides[False]),
        math.fsum(shares[i] for i in sides[True]),
        agreeing,
        differing,
        divided,
    )


def _shares(scores: Sequence[float], nothing: float) -> list[float]:
    top = max(*scores, nothing)
    powers = [math.exp(score - top) for score in scores]
    total = math.fsum(powers) + math.exp(nothing - top)
    return [power / total for power in powers]


def findings_of(alignment: Alignment, *, field: str, said: str, span: tuple[int, int], explain: str) -> list[Finding]:
    """Turn an alignment into findings, the likelier side first.

    The other side is reported too where the alignment is divided between passages, because then the evidence disagrees with
    itself. ``explain`` is a template over ``{theirs}`` and ``{ours}``; ``span`` indexes the claim's text.
    """
    sides = [(alignment.differs, alignment.differing), (alignment.agrees, alignment.agreeing)]
    sides.sort(key=lambda side: -side[0])
    first, second = sides[0][1], sides[1][1]
    if first is None:
        return []
    found = [_finding(first, sides[0][0], field, said, span, explain)]
    if second and alignment.divided and second.sentence.passage_id != first.sentence.passage_id:
        found.append(_finding(second, sides[1][0], field, said, span, explain))
    return found


def _finding(
    chosen: Candidate, confidence: float, field: str, said: str, span: tuple[int, int], explain: str
) -> Finding:
    against = chosen.relation in _AGAINST
    quote = chosen.sentence.text[chosen.start : chosen.end]
    return Finding(
        checker="",
        field=field,
        claim_value=said,
        evidence_value=quote,
        relation=chosen.relation,
        hard=against and confidence >= HARD_CONFIDENCE,
        confidence=round(min(1.0, confidence), 4),
        passage_id=chosen.sentence.passage_id,
        claim_span=span,
        quote_span=(chosen.sentence.start + chosen.start, chosen.sentence.start + chosen.end),
        reason=explain.format(theirs=quote, ours=said) if against else "",
    )
