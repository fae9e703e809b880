"""Compare limits, cut-offs, targets, ages and times of a claim with the evidence."""

from __future__ import annotations

from factcheck.checkers.align import AlignmentChecker
from factcheck.checkers.dosing import dosing_field
from factcheck.checkers.quantities import Quantity
from factcheck.checkers.reading import read
from factcheck.checkers.values import check_values
from factcheck.schema import Claim, Evidence, Finding

_NAMES = {"age": "age", "gestation": "gestation", "time": "time"}


def threshold_field(quantity: Quantity) -> str | None:
    """Name the field of a value that is no dosing value: threshold, age, gestation or time."""
    if dosing_field(quantity) is not None:
        return None
    return _NAMES.get(quantity.kind, "threshold")


class ThresholdChecker(AlignmentChecker):
    """Compare measured values and their limits."""

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return at most one finding a value, on the fields threshold, age, gestation and time."""
        return check_values(claim, read(claim, evidence), threshold_field, self.weights) if evidence.passages else []
