"""Stage 5: the decision, its fail-closed rules, and the policies that flag a claim."""

import itertools
import runpy
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.calibrate import Calibration
from factcheck.errors import ConfigError, UnknownNameError
from factcheck.schema import STATES, ClaimKind, Finding, Judgement, Label, Relation, Stance, StanceKind, Verdict
from factcheck.verdicts import Policy, coverage, decide, merge, objection, parse_policy, quoted, split_quotes, veto

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
claim, evidence, quote = FAKES["claim"], FAKES["evidence"], FAKES["quote"]
SHOWN = evidence("Give 5 mg daily.", "Give 50 mg weekly.")
LABELS, KINDS, RELATIONS = get_args(Label), get_args(StanceKind), get_args(Relation)
CALIBRATION = Calibration(
    name="test",
    intercept=0.0,
    weights={"value": 4.0},
    labels={"supported": 0.1, "contradicted": 0.9, "conflicting": 0.6, "not_enough_evidence": 0.5},
    threshold=0.55,
    fitted_on="nothing",
)


def finding(relation="differs", *, hard=True, field="dose", claim_span=(0, 4), checker="k", **fields):
    return Finding(
        checker=checker, field=field, claim_value="x", relation=relation, hard=hard, claim_span=claim_span, **fields
    )


def judged(label, *kinds, **fields):
    """Return a judgement with one stance a passage, in their order, and quotes of both passages."""
    stances = tuple(Stance(passage_id=f"p{i}", stance=kind) for i, kind in enumerate(kinds, start=1))
    quotes = tuple(quote(passage) for passage, _ in zip(SHOWN.passages, kinds, strict=False))
    fields = {"stances": stances, "quotes": quotes, "judge": "mine", **fields}
    if label is None:
        return Judgement(claim_id="a.c1", label=None, status="error", reason="refused", **fields)
    return Judgement(claim_id="a.c1", label=label, **fields)


def verdict(judgement, *, shown=SHOWN, kind="statement"):
    return decide(claim(kind=kind), shown, judgement, CALIBRATION)


def failed(*texts):
    return evidence(*texts, complete=False)


class TestDecision:
    @pytest.mark.parametrize("label", LABELS)
    def test_a_label_stays_without_reasons_against_it(self, label):
        found = verdict(judged(label))
        assert (found.label, found.risk) == (label, CALIBRATION.labels[label])

    def test_silence_after_a_failed_retrieval_is_an_error(self):
        found = verdict(judged("not_enough_evidence"), shown=failed())
        assert (found.label, found.risk) == ("error", None)
        assert "a retrieval failed" in found.reason
        assert verdict(judged("not_enough_evidence"), shown=failed("x")).label == "error"
        assert verdict(judged("not_enough_evidence"), shown=evidence()).label == "not_enough_evidence"

    @pytest.mark.parametrize("label", ["supported", "contradicted", "conflicting"])
    def test_what_was_found_counts_though_another_retrieval_failed(self, label):
        assert verdict(judged(label), shown=failed("Give 5 mg daily.")).label == label

    @pytest.mark.parametrize("complete", [True, False])
    def test_a_failed_judgement_is_an_error_with_its_reason(self, complete):
        found = verdict(judged(None, "supports"), shown=evidence("x", complete=complete))
        assert (found.label, found.risk, found.reason, found.supporting) == ("error", None, "refused", ())

    @pytest.mark.parametrize("kind", [k for k in get_args(ClaimKind) if k not in ("statement", "care_advice")])
    @pytest.mark.parametrize("label", [None, *LABELS])
    def test_what_cannot_be_checked_is_no_finding_whatever_the_judge_says(self, kind, label):
        found = verdict(judged(label, "contradicts"), kind=kind, shown=failed())
        assert (found.label, found.risk) == ("not_checkable", None)
        assert kind in found.reason

    def test_advice_to_seek_care_is_checked(self):
        assert verdict(judged("contradicted"), kind="care_advice").label == "contradicted"

    @pytest.mark.parametrize("label", ["supported", "contradicted"])
    def test_support_and_contradiction_together_conflict(self, label):
        found = verdict(judged(label, "supports", "contradicts"))
        assert found.label == "conflicting"
        assert [q.passage_id for q in found.supporting] == ["p1"]
        assert [q.passage_id for q in found.contradicting] == ["p2"]
        assert found.risk == CALIBRATION.labels["conflicting"]

    def test_support_in_any_passage_suffices(self):
        found = verdict(judged("supported", "silent", "supports"))
        assert found.label == "supported"
        assert [q.passage_id for q in found.supporting] == ["p2"]
        assert found.contradicting == ()

    def test_figures_are_rounded_for_equal_bytes(self):
        found = verdict(judged("supported", signals={"value": 1 / 3, "coverage": 2 / 3}))
        assert (found.risk, found.coverage) == (0.7914, 0.6667)

    @given(
        st.sampled_from([None, *LABELS]),
        st.lists(st.sampled_from(KINDS), max_size=2),
        st.lists(
            st.tuples(
                st.sampled_from(RELATIONS), st.booleans(), st.sampled_from(["dose", "unit"]), st.sampled_from("km")
            ),
            max_size=3,
        ),
        st.booleans(),
        st.sampled_from(get_args(ClaimKind)),
        st.dictionaries(st.sampled_from(["value", "coverage", "other"]), st.floats(0, 1)),
    )
    def test_every_combination_gives_one_sound_state(self, label, kinds, found, complete, kind, signals):
        findings = tuple(
            finding(relation, hard=hard, field=field, checker="mine" if by == "m" else "k")
            for relation, hard, field, by in found
        )
        result = verdict(
            judged(label, *kinds, findings=findings, signals=signals),
            shown=SHOWN.model_copy(update={"complete": complete}),
            kind=kind,
        )
        assert result.label in STATES
        assert (result.risk is None) is (result.label in ("not_checkable", "error"))
        assert Verdict.model_validate_json(result.model_dump_json()) == result
        assert result.reason
        # Fail closed: nothing turns into supported, and supported survives only without anything against it.
        if result.label == "supported":
            assert label == "supported"
            assert kind in ("statement", "care_advice")
            assert "contradicts" not in kinds or "supports" not in kinds
            hard = {f.field for f in findings if f.hard and f.disagrees}
            assert hard <= {f.field for f in findings if f.relation == "agrees" and f.checker == "k"}
        if label is None and kind in ("statement", "care_advice"):
            assert result.label == "error"
        if not complete:
            assert result.label != "not_enough_evidence"


class TestMerge:
    @pytest.mark.parametrize("label", LABELS)
    @pytest.mark.parametrize("kinds", [k for n in range(3) for k in itertools.product(KINDS, repeat=n)])
    def test_stances_make_a_conflict_and_nothing_else(self, label, kinds):
        stances = [Stance(passage_id=f"p{i}", stance=kind) for i, kind in enumerate(kinds)]
        both = {"supports", "contradicts"} <= set(kinds)
        expected = "conflicting" if both and label in ("supported", "contradicted") else label
        assert merge(label, stances) == expected


class TestVeto:
    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("hard", [True, False])
    def test_a_hard_finding_against_the_claim_vetoes_support(self, relation, hard):
        found = verdict(judged("supported", "supports", findings=(finding(relation, hard=hard),)))
        vetoed = hard and relation in ("differs", "outside_range", "negated")
        assert found.label == ("contradicted" if vetoed else "supported")

    @pytest.mark.parametrize("label", [label for label in LABELS if label != "supported"])
    def test_it_changes_no_other_label(self, label):
        assert veto(label, [finding()]) == label

    def test_a_checker_that_finds_the_value_elsewhere_takes_it_back(self):
        against, agrees = finding(), finding("agrees", hard=False)
        assert verdict(judged("supported", findings=(against, agrees))).label == "supported"
        assert verdict(judged("supported", findings=(agrees, against))).label == "supported"

    @pytest.mark.parametrize("other", [{"field": "unit"}, {"claim_span": (5, 9)}, {"claim_span": None}])
    def test_agreement_on_something_else_does_not(self, other):
        findings = (finding(), finding("agrees", hard=False, **other))
        assert verdict(judged("supported", findings=findings)).label == "contradicted"

    def test_the_agreement_of_the_judge_itself_does_not(self):
        findings = (finding(), finding("agrees", hard=False, checker="mine"))
        assert verdict(judged("supported", findings=findings)).label == "contradicted"
        # Against its own label a judge may speak.
        assert verdict(judged("supported", findings=(finding(checker="mine"),))).label == "contradicted"

    def test_each_hard_finding_counts(self):
        findings = (finding(), finding("agrees"), finding(field="unit"))
        assert objection(findings) is findings[2]
        assert verdict(judged("supported", findings=findings)).label == "contradicted"

    def test_the_verdict_shows_what_vetoed_it(self):
        soft = finding(hard=False, reason="soft")
        hard = finding(field="unit", reason="mg is not g", passage_id="p2", quote_span=(5, 10))
        found = verdict(judged("supported", "supports", findings=(soft, hard)))
        assert found.reason == "mg is not g"
        assert [(q.passage_id, q.start, q.end, q.text) for q in found.contradicting] == [("p2", 5, 10, "50 mg")]
        assert [q.passage_id for q in found.supporting] == ["p1"]

    def test_a_vetoed_claim_is_as_risky_as_a_contradicted_one(self):
        assert verdict(judged("supported", findings=(finding(),), signals={"value": 0.0})).risk == 0.9
        assert verdict(judged("supported", findings=(finding(),), signals={"value": 1.0})).risk == 0.982

    def test_a_finding_that_points_to_nothing_quotes_nothing(self):
        assert quoted(finding(), SHOWN) == ()
        assert quoted(finding(passage_id="p1"), SHOWN) == ()
        assert quoted(finding(passage_id="p9", quote_span=(0, 1)), SHOWN) == ()


class TestReasonsAndCoverage:
    def test_a_contradiction_is_explained_by_the_first_finding_that_disagrees(self):
        findings = (finding("agrees", reason="fits"), finding("differs"), finding("negated", reason="says not to"))
        found = verdict(judged("contradicted", "contradicts", findings=findings, rationale="because"))
        assert found.reason == "says not to"

    def test_other_labels_are_explained_by_the_judge(self):
        findings = (finding(hard=False, reason="soft"),)
        assert verdict(judged("supported", findings=findings, rationale="as it says")).reason == "as it says"
        assert verdict(judged("not_enough_evidence")).reason == "not enough evidence"

    def test_coverage_is_the_judges_figure_or_its_firmest_stance(self):
        stances = (
            Stance(passage_id="p1", stance="silent", score=1.0),
            Stance(passage_id="p2", stance="supports", score=0.4),
        )
        assert coverage(judged("supported", stances=stances)) == 0.4
        assert coverage(judged("supported", stances=stances, signals={"coverage": 0.2})) == 0.2
        assert coverage(judged("not_enough_evidence", stances=stances[:1])) == 0.0

    def test_quotes_of_silent_passages_belong_to_neither_side(self):
        assert split_quotes(judged("supported", "silent", "supports"))[0][0].passage_id == "p2"
        assert split_quotes(judged("supported", "silent", "silent")) == ((), ())


def of(label, risk=0.5):
    return Verdict(claim_id="c", label=label, risk=None if label in ("not_checkable", "error") else risk)


class TestPolicies:
    @pytest.mark.parametrize(
        ("text", "flagged"),
        [
            ("contradicted", {"contradicted"}),
            ("unsupported", {"contradicted", "not_enough_evidence"}),
            ("risk>=0.5", {"supported", "contradicted", "conflicting", "not_enough_evidence"}),
            ("risk>=0.51", set()),
        ],
    )
    def test_what_each_flags(self, text, flagged):
        policy = parse_policy(text, default_threshold=0.9)
        assert {state for state in STATES if policy.flags(of(state))} == flagged

    @pytest.mark.parametrize("state", ["not_checkable", "error"])
    @pytest.mark.parametrize("text", ["contradicted", "unsupported", "risk", "risk>=0"])
    def test_what_is_no_finding_is_never_flagged(self, state, text):
        assert not parse_policy(text, default_threshold=0.0).flags(of(state))

    @pytest.mark.parametrize(
        ("text", "policy", "shown"),
        [
            ("contradicted", Policy("contradicted"), "contradicted"),
            (" unsupported\n", Policy("unsupported"), "unsupported"),
            ("risk", Policy("risk", 0.625), "risk>=0.625"),
            ("risk>=0.25", Policy("risk", 0.25), "risk>=0.25"),
            ("risk >= .5", Policy("risk", 0.5), "risk>=0.5"),
            ("risk>=0", Policy("risk", 0.0), "risk>=0"),
            ("risk>=1", Policy("risk", 1.0), "risk>=1"),
        ],
    )
    def test_forms(self, text, policy, shown):
        assert parse_policy(text, default_threshold=0.625) == policy
        assert str(policy) == shown
        assert parse_policy(shown, default_threshold=0.0) == policy

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "risk>0.5",
            "risk>=1.01",
            "risk>=-1",
            "risk>=nan",
            "risk>=٠",
            "risk>=1e-1",
            "con tradicted",
            "RISK",
            "error",
        ],
    )
    def test_anything_else_is_refused_with_what_is_known(self, text):
        with pytest.raises(
            ConfigError, match=r"Known: contradicted, risk, risk>=T, unsupported\. T is a number"
        ) as caught:
            parse_policy(text, default_threshold=0.5)
        assert f"no policy named '{text}'" in str(caught.value)

    def test_the_nearest_is_named(self):
        with pytest.raises(UnknownNameError, match="Did you mean 'contradicted'"):
            parse_policy("contradict", default_threshold=0.5)
