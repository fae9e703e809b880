"""Hold the values of clinical text as intervals, and compare them.

Every value is a closed interval in the base unit of its dimension, so that 0.05 mg and 50 micrograms, "every 6 to 8 hours" and
"three or four times a day", or "under a minute" and "less than 60 seconds" can be compared as numbers.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import Literal

Comparison = Literal["agrees", "near", "differs", "outside_range"]

PERIODS = frozenset({"day", "week", "month", "year", "hour", "minute"})
_ONE_SIDED = frozenset({"min", "max"})
_INEXACT = frozenset({"range", "loose"})
_SYSTOLIC = frozenset({"pressure", "systolic"})
_OTHER_MATTER = 100.0
_LOOSE_FACTOR = 3.0
# A month is 30.4 days or four weeks; twelve weeks are about three months.
_CALENDAR = 1.095
_LONG = 27 * 86_400
_SELDOM = 1 / 27
_SPELLED = re.compile(r"(?:every|each)\b.*\bhours?$|.*hourly$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Hold one value as a closed interval ``[low, high]``, infinite where the text sets one bound only.

    ``kind`` is amount, change, frequency (per day), duration, age (in seconds), gestation or time; ``dimension`` and
    ``per`` say what may be compared with what. ``bound`` is exact, range, min, max, or loose for "a few". ``number`` is
    the first number as written, NaN for a frequency. ``text[start:end]`` is the source.
    """

    text: str
    start: int
    end: int
    low: float
    high: float
    dimension: str
    kind: str
    per: tuple[str, ...] = ()
    bound: str = "exact"
    number: float = math.nan

    @property
    def point(self) -> float:
        """Return the finite end that the text names (the middle of a range)."""
        ends = [value for value in (self.low, self.high) if math.isfinite(value)]
        return sum(ends) / len(ends)


def compare(claim: Quantity, evidence: Quantity) -> Comparison | None:
    """Compare two values of the same kind: agrees, near, differs or outside_range; None if they cannot be compared.

    Ranges agree when equal or when the claim's lies within the evidence's; a partial overlap is near. A bare value inside a
    one-sided limit is near, outside it outside_range. Two limits on the same side agree only if their ends do; on opposite
    sides they differ only if no value meets both. Equal numbers agree though one side leaves out the period ("4 g" against
    "4 g per day"); unequal ones cannot be compared then.
    """
    if claim.kind == "frequency" and evidence.dimension == "time":
        return _compare_interval(claim, evidence)
    if not _commensurable(claim, evidence):
        return None
    claim_period, evidence_period = _parts(claim.per)[0], _parts(evidence.per)[0]
    if claim_period != evidence_period:
        if claim_period and evidence_period:
            return "differs" if _same(claim, claim.point, evidence.point) else None
        return "agrees" if _equal(claim, evidence) else None
    if _equal(claim, evidence):
        return "agrees"
    if claim.kind == "frequency" and not _within_factor(claim.point, evidence.point, _OTHER_MATTER):
        # A tablet every day and a check-up every five years answer different questions.
        return None
    return _compare_unequal(claim, evidence)


def _compare_unequal(claim: Quantity, evidence: Quantity) -> Comparison:
    apart = claim.low > evidence.high or claim.high < evidence.low
    if "loose" in (claim.bound, evidence.bound):
        if not apart:
            return "agrees"
        return "near" if _within_factor(claim.point, evidence.point, _LOOSE_FACTOR) else "differs"
    if claim.bound in _ONE_SIDED and claim.bound == evidence.bound:
        return _unless_alike(claim, evidence, "differs")
    if claim.bound in _ONE_SIDED or evidence.bound in _ONE_SIDED:
        return _unless_alike(claim, evidence, "outside_range") if apart else "near"
    slack = 0.0 if claim.dimension == "temperature" else 0.02 * max(abs(evidence.low), abs(evidence.high))
    if claim.low >= evidence.low - slack and claim.high <= evidence.high + slack:
        return "agrees"
    return _unless_alike(claim, evidence, "differs") if apart else "near"


def _unless_alike(claim: Quantity, evidence: Quantity, relation: Comparison) -> Comparison:
    """Return near for long stretches that differ by what a month differs from four weeks, else ``relation``."""
    long = claim.dimension == "time" and min(claim.point, evidence.point) >= _LONG
    seldom = claim.kind == "frequency" and max(claim.point, evidence.point) <= _SELDOM
    return "near" if (long or seldom) and _within_factor(claim.point, evidence.point, _CALENDAR) else relation


def comparable_dimensions(claim: Quantity) -> frozenset[str]:
    """Return the dimensions outside of which no value can be compared with a claim's."""
    if claim.kind == "frequency":
        return frozenset({claim.dimension, "time"})
    # A blood pressure that is not said to be diastolic is read as systolic.
    return _SYSTOLIC if claim.dimension in _SYSTOLIC else frozenset({claim.dimension})


def _commensurable(claim: Quantity, evidence: Quantity) -> bool:
    if claim.dimension != evidence.dimension and not {claim.dimension, evidence.dimension} <= _SYSTOLIC:
        return False
    return _family(claim) == _family(evidence) and _parts(claim.per)[1] == _parts(evidence.per)[1]


@functools.lru_cache(maxsize=1_000)
def _parts(per: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the periods of a denominator and what else it holds, but for the dose."""
    return PERIODS.intersection(per), frozenset(per) - PERIODS - {"dose"}


def _equal(claim: Quantity, evidence: Quantity) -> bool:
    if claim.bound in _ONE_SIDED or evidence.bound in _ONE_SIDED:
        inexact = claim.bound in _INEXACT or evidence.bound in _INEXACT
        return not inexact and _same(claim, claim.point, evidence.point)
    return _same(claim, claim.low, evidence.low) and _same(claim, claim.high, evidence.high)


def _compare_interval(claim: Quantity, evidence: Quantity) -> Comparison | None:
    """Compare "every 3 to 4 hours" with an effect or a gap of six to eight hours; other times are no dosing interval."""
    if evidence.bound != "range" or claim.bound in ("min", "max"):
        return None
    hours = evidence.low / 3600, evidence.high / 3600
    if not all(1 <= hour <= 48 for hour in hours) or not _SPELLED.match(claim.text):
        return None
    low, high = 24 / claim.high, 24 / claim.low
    if _same(evidence, low, hours[0]) and _same(evidence, high, hours[1]):
        return "agrees"
    return "differs" if high < hours[0] or low > hours[1] else "near"


def _family(quantity: Quantity) -> str:
    return "time" if quantity.kind in ("time", "duration") else quantity.kind


def _same(quantity: Quantity, left: float, right: float) -> bool:
    if quantity.dimension == "temperature":
        # Degrees are no ratio scale: a fortieth of 38 °C is the better part of a fever.
        return math.isclose(left, right, abs_tol=0.12)
    return left == right or math.isclose(left, right, rel_tol=0.025)


def _within_factor(left: float, right: float, factor: float) -> bool:
    return min(left, right) * factor >= max(left, right) if min(left, right) > 0 else left == right
