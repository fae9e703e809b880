"""Compare amounts, units, frequencies and durations of a claim with the evidence."""

from __future__ import annotations

from factcheck.checkers.align import AlignmentChecker
from factcheck.checkers.quantities import Quantity
from factcheck.checkers.reading import read
from factcheck.checkers.values import check_values
from factcheck.schema import Claim, Evidence, Finding

_DOSED = frozenset(
    {
        "mass",
        "[iu]",
        "volume",
        "substance",
        "[puff]",
        "[tablet]",
        "[capsule]",
        "[drop]",
        "[sachet]",
        "[dose_count]",
    }
)


def dosing_field(quantity: Quantity) -> str | None:
    """Name the field of a value that tells how much, how often or how long; None for any other."""
    if quantity.kind in ("frequency", "duration"):
        return quantity.kind
    if quantity.kind == "amount" and quantity.dimension in _DOSED and "minute" not in quantity.per:
        return "amount"
    return None


class DosingChecker(AlignmentChecker):
    """Compare how much, how often and how long."""

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return at most one finding a value, on the fields amount, unit, frequency and duration."""
        return check_values(claim, read(claim, evidence), dosing_field, self.weights) if evidence.passages else []
