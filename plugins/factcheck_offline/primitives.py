"""Primitives: pure measures of a report for use as rubric criteria."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from factcheck.schema import AnswerReport, Score, Verdict

Measure = Callable[[Sequence[Verdict]], float]


class _ReportPrimitive:
    """Apply a measure to the verdicts that were decided; the score says how many failed, and without any has no value."""

    version = "1"
    name: str
    measure: Measure

    def __call__(self, report: AnswerReport) -> Score:
        """Score one report."""
        decided = [verdict for verdict in report.verdicts if verdict.risk is not None]
        failed = f"{report.accounting.error} could not be checked" if report.accounting.error else ""
        if not decided:
            return Score(name=self.name, value=None, reason=failed or "no checkable claims")
        return Score(name=self.name, value=type(self).measure(decided), n=len(decided), reason=failed)


def count_contradicted(verdicts: Sequence[Verdict]) -> float:
    """Return how many verdicts are contradicted."""
    return float(sum(verdict.label == "contradicted" for verdict in verdicts))


def share_unsupported(verdicts: Sequence[Verdict]) -> float:
    """Return the share in [0, 1] of verdicts that are contradicted or lack evidence."""
    return sum(verdict.label in ("contradicted", "not_enough_evidence") for verdict in verdicts) / len(verdicts)


def highest_risk(verdicts: Sequence[Verdict]) -> float:
    """Return the highest risk in [0, 1]."""
    return max(verdict.risk or 0.0 for verdict in verdicts)


def mean_coverage(verdicts: Sequence[Verdict]) -> float:
    """Return the mean coverage in [0, 1]."""
    return math.fsum(verdict.coverage for verdict in verdicts) / len(verdicts)


class ContradictedCount(_ReportPrimitive):
    """Count the contradicted claims; 0 or more."""

    name = "report/contradicted_count.v1"
    measure = staticmethod(count_contradicted)


class UnsupportedShare(_ReportPrimitive):
    """Return the share in [0, 1] of decided claims that are contradicted or lack evidence."""

    name = "report/unsupported_share.v1"
    measure = staticmethod(share_unsupported)


class MaxRisk(_ReportPrimitive):
    """Return the highest risk in [0, 1] of any claim."""

    name = "report/max_risk.v1"
    measure = staticmethod(highest_risk)


class EvidenceCoverage(_ReportPrimitive):
    """Return the mean coverage in [0, 1]: how far the evidence speaks of the claims at all."""

    name = "report/evidence_coverage.v1"
    measure = staticmethod(mean_coverage)
