"""Compare the values of a claim with the values of the evidence that are about the same matter."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from factcheck.checkers.align import SENTENCES_COMPARED, Candidate, Surroundings, Weights, align, findings_of
from factcheck.checkers.quantities import Quantity, comparable_dimensions, compare
from factcheck.checkers.reading import Reading, content_terms, drug_names, values_in
from factcheck.schema import Claim, Finding, Relation

_DOSE_DIMENSIONS = frozenset({"mass", "[iu]", "volume", "substance"})
_MULTIPLIERS = frozenset(
    {"body weight", "fraction", "[tablet]", "[capsule]", "[puff]", "[drop]", "[sachet]", "[dose_count]"}
)
_SMALL_NUMBER = 4
# Another drug's dose says nothing about this one's.
_UNRELATED = 0.5
# Nor does an adult's dose speak against a child's.
_OTHER_PEOPLE = 0.3
# Among more values than these, some product of two comes out right by chance.
_COMPUTED_AMONG = 24
_REACH = 30
_DENIED_BEFORE = re.compile(
    r"\b(?:never|not|nor|rather than|instead of|mistaken|accidental|inadvertent|wrongly|erroneous)"
    r"(?: (?:be|to be|as|at|a|the))?(?: (?:taken|given|used|dosed))?\s$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(r"^\s(?:use |dosing |doses? |taking )?(?:in error|by mistake|by accident)\b", re.IGNORECASE)
_EXPLANATION = "the passage gives “{theirs}”, the answer “{ours}”"


def check_values(
    claim: Claim, reading: Reading, field_of: Callable[[Quantity], str | None], weights: Weights
) -> list[Finding]:
    """Compare the values that ``field_of`` names a field for; at most one finding a value.

    What the question states of this patient is no statement about medicine and is not compared, nor is a value that follows
    from others by one multiplication or division.
    """
    if all(field_of(quantity) is None for quantity in reading.claim.quantities):
        return []
    findings = []
    surroundings = Surroundings(claim, reading, wanted=weights["value"])
    for quantity in comparable_values(claim, reading):
        field = field_of(quantity)
        if field is None:
            continue
        candidates = list(value_candidates(surroundings, quantity))
        span = (quantity.start, quantity.end)
        alignment = align("value", candidates, weights)
        for finding in findings_of(alignment, field=field, said=quantity.text, span=span, explain=_EXPLANATION):
            clash = finding.disagrees and any(unit_clash(quantity, q) for q in values_in(finding.evidence_value))
            findings.append(finding.model_copy(update={"field": "unit"}) if clash else finding)
    return findings


def comparable_values(claim: Claim, reading: Reading) -> list[Quantity]:
    """Return the values of a claim that are neither facts of the question nor computed from others.

    A dose may be computed from one per kilogram in the evidence and the weight that the claim or the question gives.
    """
    given = values_in(claim.question)
    derived = set(_derived(reading, given)) | set(_by_weight(reading, given))
    return [
        quantity
        for quantity in reading.claim.quantities
        if quantity not in derived and not any(compare(quantity, fact) == "agrees" for fact in given)
    ]


def _by_weight(reading: Reading, given: Sequence[Quantity]) -> Iterator[Quantity]:
    weights = [
        q.point for q in (*reading.claim.quantities, *given) if q.dimension == "body weight" and q.kind == "amount"
    ]
    if not weights:
        return
    per_kilogram = [
        q for _, sentence in reading.ranked[:SENTENCES_COMPARED] for q in sentence.quantities if "kg" in q.per
    ]
    doses = [_for_weight(q, weight) for q in per_kilogram for weight in weights]
    for quantity in reading.claim.quantities:
        if quantity.dimension in _DOSE_DIMENSIONS and any(compare(quantity, dose) == "agrees" for dose in doses):
            yield quantity


def _for_weight(quantity: Quantity, weight: float) -> Quantity:
    per = tuple(part for part in quantity.per if part != "kg")
    return replace(quantity, low=quantity.low * weight, high=quantity.high * weight, per=per)


def value_candidates(surroundings: Surroundings, quantity: Quantity) -> Iterator[Candidate]:
    """Yield every value of the evidence that can be compared with one of the claim."""
    reading = surroundings.reading
    drugs = (
        reading.claim.clause_at(quantity.start).drugs or reading.claim.drugs or drug_names(surroundings.claim.context)
    )
    ours = (reading.claim.terms | reading.context | reading.question) - _measure_words()
    dimensions = _dimensions(quantity)
    denied = is_denied(reading.claim.text, quantity)
    span, last_word = (quantity.start, quantity.end), _last_word(quantity)
    for _, sentence in surroundings.sentences():
        values = [other for other in sentence.quantities if other.dimension in dimensions]
        if not values or ours.isdisjoint(sentence.whole):
            # Equal digits in a sentence that shares no word, as one in another language, say nothing.
            continue
        for other in values:
            relation = _relation(quantity, other)
            if relation is None or surroundings.drug(drugs, sentence, other.start) < _UNRELATED:
                continue
            if is_denied(sentence.text, other) != denied:
                # "once a week, never daily": what the passage denies speaks against a claim of the same, and for no other.
                relation = "negated" if relation == "agrees" else "unseen"
            features = surroundings.features(span, drugs, sentence, (other.start, other.end))
            if features["pop"] < _OTHER_PEOPLE and relation != "agrees":
                relation = "unseen"
            features["bound"] = float(quantity.bound == other.bound)
            features["unit"] = float(last_word == _last_word(other))
            yield Candidate(relation, sentence, other.start, other.end, features)


def _dimensions(quantity: Quantity) -> frozenset[str]:
    found = comparable_dimensions(quantity)
    return found | _DOSE_DIMENSIONS if quantity.dimension in _DOSE_DIMENSIONS else found


@functools.cache
def _measure_words() -> frozenset[str]:
    """Return the content terms that every dose shares."""
    return content_terms(
        "mg g kg mcg ng ml l dl mmol iu unit % mmhg °C °F second minute hour day week month year dose tablet capsule "
        "puff drop daily weekly monthly once twice two three four five six eight ten time every each per maximum more less"
    )


def _relation(ours: Quantity, theirs: Quantity) -> Relation | None:
    compared = compare(ours, theirs)
    if compared is None and unit_clash(ours, theirs):
        return "differs"
    return "unseen" if compared == "near" else compared


def is_denied(text: str, quantity: Quantity) -> bool:
    """Tell whether a text names a value only to rule it out: "never daily", "not 10 mg", "daily use in error"."""
    start, end = quantity.start, quantity.end
    return _is_denied(text[max(0, start - _REACH) : start], text[end : end + _REACH])


@functools.lru_cache(maxsize=20_000)
def _is_denied(before: str, after: str) -> bool:
    return bool(_DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after))


def unit_clash(ours: Quantity, theirs: Quantity) -> bool:
    """Tell whether the same number carries dose units that cannot be converted into each other (1000 mg and 1000 IU)."""
    doses = ours.dimension in _DOSE_DIMENSIONS and theirs.dimension in _DOSE_DIMENSIONS
    return doses and ours.dimension != theirs.dimension and ours.number == theirs.number and ours.number > _SMALL_NUMBER


def _last_word(quantity: Quantity) -> str:
    return quantity.text.split()[-1].lower()


def _derived(reading: Reading, given: Sequence[Quantity]) -> Iterator[Quantity]:
    pool = [q for q in (*reading.claim.quantities, *given) if q.kind == "amount" and q.point > 0]
    if len(pool) > _COMPUTED_AMONG:
        return
    for target in reading.claim.quantities:
        others = [q for q in pool if q != target]
        if target in pool and any(_computes(target, left, right) for left, right in itertools.permutations(others, 2)):
            yield target


def _computes(target: Quantity, left: Quantity, right: Quantity) -> bool:
    """Tell whether ``left`` times or divided by ``right`` gives the target, and is a sum that an answer would do.

    Doses are multiplied by weights and counts and divided by strengths. What they are computed from stays to be compared:
    a dose per kilogram that is wrong makes a wrong dose that fits it.
    """
    one, two = _ends(left), _ends(right)
    multiplied = right.dimension in _MULTIPLIERS or (right.dimension, target.dimension) == ("volume", "mass")
    if multiplied and "kg" not in target.per and left.dimension not in _MULTIPLIERS:
        return _close(_ends(target), _spans(one[0] * two[0], one[1] * two[1]))
    if target.dimension in _MULTIPLIERS or (target.dimension == "volume" and right.dimension.endswith("concentration")):
        return _close(_ends(target), _spans(one[0] / two[1], one[1] / two[0]))
    return False


def _ends(quantity: Quantity) -> tuple[float, float]:
    finite = [value for value in (quantity.low, quantity.high) if math.isfinite(value)]
    return min(finite), max(finite)


def _spans(low: float, high: float) -> tuple[float, float]:
    return (low, high) if low <= high else (high, low)


def _close(target: tuple[float, float], found: tuple[float, float]) -> bool:
    return all(math.isclose(left, right, rel_tol=0.03) for left, right in zip(target, found, strict=True))
