"""Primitives over a report: golden values, and what they say when there is nothing to score or something failed."""

import pytest
from factcheck_offline import report as plugin
from factcheck_offline.primitives import ContradictedCount, EvidenceCoverage, MaxRisk, UnsupportedShare

from factcheck.plugins import Plugins
from factcheck.schema import Accounting, AnswerReport, Score, Verdict
from factcheck.testing import check_primitive, failures, sample_report

PRIMITIVES = {
    "report/contradicted_count.v1": ContradictedCount,
    "report/unsupported_share.v1": UnsupportedShare,
    "report/max_risk.v1": MaxRisk,
    "report/evidence_coverage.v1": EvidenceCoverage,
}


def report(*rows):
    """Return a report with one claim a row of state, risk and coverage."""
    base = sample_report(*(state for state, _, _ in rows))
    verdicts = tuple(
        Verdict(claim_id=claim.id, label=state, risk=risk, coverage=coverage)
        for claim, (state, risk, coverage) in zip(base.claims, rows, strict=True)
    )
    return AnswerReport(
        answer=base.answer,
        claims=base.claims,
        verdicts=verdicts,
        accounting=Accounting.of(verdicts),
        manifest=base.manifest,
    )


MIXED = report(
    ("supported", 0.125, 1.0),
    ("contradicted", 0.75, 0.5),
    ("contradicted", 0.5, 0.5),
    ("conflicting", 0.875, 0.75),
    ("not_enough_evidence", 0.25, 0.0),
    ("not_checkable", None, 0.9),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("report/contradicted_count.v1", 2.0),
        ("report/unsupported_share.v1", 0.6),
        ("report/max_risk.v1", 0.875),
        ("report/evidence_coverage.v1", 0.55),
    ],
)
def test_values_by_hand(name, value):
    assert PRIMITIVES[name]()(MIXED) == Score(name=name, value=value, n=5)


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ((), "no checkable claims"),
        (("not_checkable", "not_checkable"), "no checkable claims"),
        (("error", "not_checkable", "error"), "2 could not be checked"),
    ],
)
def test_without_a_decided_claim_there_is_no_value_and_never_a_good_one(name, states, reason):
    assert PRIMITIVES[name]()(sample_report(*states)) == Score(name=name, value=None, n=0, reason=reason)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_claims_that_failed_are_left_out_and_said(name):
    score = PRIMITIVES[name]()(report(("supported", 0.0, 1.0), ("error", None, 0.0), ("error", None, 0.0)))
    assert (score.n, score.reason) == (1, "2 could not be checked")
    assert score.value == (1.0 if name == "report/evidence_coverage.v1" else 0.0)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_each_is_registered_under_the_name_in_its_score_and_conforms(name):
    plugins = Plugins(autoload=False)
    plugins.register(plugin, "report")
    assert plugins.names("primitive") == sorted(PRIMITIVES)
    made = plugins.create("primitive", name)
    assert made(MIXED).name == name
    assert type(made) is PRIMITIVES[name]
    assert failures(check_primitive(PRIMITIVES[name], factory=PRIMITIVES[name])) == []
