import json
import random
import re
import runpy
import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numpy")

from factcheck.schema import Answer
from factcheck.spending import Spent
from factcheck.study import statistics as stats
from factcheck.study.controls import ControlRecord, donors, run_control
from factcheck.study.edits import Edit
from factcheck.study.figures import (
    build_report,
    control_of,
    natural_order,
    operating_point,
    rubric_effect,
    stratum_of,
)
from factcheck.study.measure import Outcome, outcome_of, record_pair
from factcheck.study.pairs import Pair, PairFile, Scores
from factcheck.study.statistics import Sampling
from factcheck.study.tables import percent, render_markdown, render_text, stratum_row
from factcheck.verdicts import parse_policy

FakeChecker = runpy.run_path(str(Path(__file__).with_name("study_fakes.py")))["FakeChecker"]
SHARED = Path(__file__).resolve().parents[2] / "shared"
FEW = Sampling(200, 0)


def outcome(i=0, **changes):
    plain = Outcome(
        pair=f"p{i}",
        cluster=f"q{i}",
        error_type="F1",
        identified=False,
        recovered=False,
        matched_flagged=False,
        risk_injected=0.0,
        risk_original=0.0,
        claims_original=0,
        claims_injected=0,
        checkable_original=0,
        flagged_original=0,
        flagged_injected=0,
        longer=0.5,
    )
    return plain._replace(**changes)


def of_counts(n, identified, error_flagged, original_flagged):
    return [
        outcome(i, identified=i < identified, recovered=i < error_flagged, matched_flagged=i < original_flagged)
        for i in range(n)
    ]


def make_pair(name="p", original="Fine. Take 5 mg. End.", injected="Fine. Take WRONG 50 mg. End.", **changes):
    fields = {
        "id": name,
        "question": f"question of {name}",
        "original": original,
        "injected": injected,
        "cluster": name,
        "edits": (Edit(original=(6, 16), injected=(6, 23)),),
        "spans_from": "given",
        **changes,
    }
    return Pair(**fields)


def record(pair, checker=None, policy="contradicted"):
    checker = checker or FakeChecker(policy=policy)
    reports = [
        anyio.run(checker.acheck, Answer(id=f"{pair.id}/{side}", question=pair.question, text=text))
        for side, text in (("original", pair.original), ("injected", pair.injected))
    ]
    return record_pair(pair, *reports, checker.policy)


class TestTable:
    """The published table of 380 pairs, from its counts."""

    def test_overall(self):
        row = stratum_row("Overall", stratum_of(of_counts(380, 337, 295, 210), FEW))
        assert row[1] == "380"
        assert row[3:7] == ("88.7 (85.1–91.5)", "87.5 (83.6–90.6)", "77.6 (73.2–81.5)", "55.3 (50.2–60.2)")

    def test_criterion_auroc_is_half_of_one_and_the_difference_of_the_rates(self):
        stratum = stratum_of(of_counts(380, 337, 295, 210), FEW)
        assert stratum.criterion_auroc.value == pytest.approx(0.5 + (295 - 210) / 380 / 2)
        assert round(stratum.criterion_auroc.value, 3) == 0.612
        low, high = stratum.criterion_auroc.ci
        assert 0.55 < low < 0.612 < high < 0.66

    @pytest.mark.shared
    def test_counts_by_error_type(self):
        path = SHARED / "data/rubrics/seed_table6_counts.json"
        if not path.exists():
            pytest.skip("the counts do not lie beside the project")
        data = json.loads(path.read_text(encoding="utf-8"))
        everything = []
        for row in data["rows"]:
            outcomes = of_counts(row["n"], row["identified"], row["error_flagged"], row["original_flagged"])
            everything += outcomes
            stratum = stratum_of(outcomes, FEW)
            assert stratum.recovered.rate == pytest.approx(row["tpr"], abs=5e-5)
            assert stratum.false_positive_matched.rate == pytest.approx(row["fpr"], abs=5e-5)
            assert stratum.criterion_auroc.value == pytest.approx(row["auroc_on_tied"], abs=5e-5)
        total = stratum_of(everything, FEW)
        assert (total.n_pairs, total.identified.k, total.recovered.k, total.false_positive_matched.k) == tuple(
            data["total"].values()
        )

    @pytest.mark.shared
    def test_every_printed_figure(self):
        counts = SHARED / "data/rubrics/seed_table6_counts.json"
        found = list((SHARED / "seeds").glob("001_*.txt")) if counts.exists() else []
        if not found:
            pytest.skip("the published table does not lie beside the project")
        text = found[0].read_text(encoding="utf-8")
        cell = r"(\d+\.\d \(\d+\.\d–\d+\.\d\))"
        printed = {
            match[1].lower().replace(" ", "_").replace("-", "_"): match.groups()[1:]
            for match in re.finditer(rf"^([A-Z][\w\- ]+?)\t(\d+)\t[\d.]+\t{cell}\t{cell}\t{cell}$", text, re.M)
        }
        rows = json.loads(counts.read_text(encoding="utf-8"))["rows"]
        assert len(printed) == len(rows) + 1
        for row in rows:
            outcomes = of_counts(row["n"], row["identified"], row["error_flagged"], row["original_flagged"])
            ours = stratum_row("", stratum_of(outcomes, FEW))
            assert (ours[1], ours[3], ours[4], ours[6]) == printed[row["error_type"]]


def test_an_empty_stratum_is_undefined_and_not_zero():
    stratum = stratum_of([], FEW).model_dump()
    for name, value in stratum.items():
        if name == "n_pairs":
            assert value == 0
        elif "n" in value:
            assert value == {"k": 0, "n": 0, "rate": None, "ci": None}, name
        else:
            assert set(value.values()) == {None}, name


def test_false_positive_rates_have_their_own_denominators():
    outcomes = [
        outcome(0, flagged_original=3, checkable_original=10, claims_original=12, claims_injected=14),
        outcome(1, flagged_original=0, checkable_original=5, claims_original=6, claims_injected=4),
        outcome(2),
    ]
    stratum = stratum_of(outcomes, FEW)
    assert (stratum.false_positive_answer.k, stratum.false_positive_answer.n) == (1, 3)
    assert (stratum.false_positive_claim.k, stratum.false_positive_claim.n) == (3, 15)
    assert (stratum.false_positive_matched.k, stratum.false_positive_matched.n) == (0, 3)
    assert stratum.claims_per_answer.mean == 6.0
    assert (stratum.flagged_given_identified.n, stratum.flagged_given_identified.rate) == (0, None)


risk = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9])
sides = st.lists(st.tuples(risk, risk, st.sampled_from("abc")), min_size=1, max_size=20)


@given(sides)
@settings(max_examples=40, deadline=None)
def test_risk_auroc_is_the_naive_loop(rows):
    outcomes = [outcome(i, risk_injected=r, risk_original=o, cluster=q) for i, (r, o, q) in enumerate(rows)]
    stratum = stratum_of(outcomes, Sampling(20, 0))
    wins = sum(1.0 for r, o, _ in rows if r > o) + sum(0.5 for r, o, _ in rows if r == o)
    assert stratum.risk_auroc.value == pytest.approx(wins / len(rows))
    pooled = sum(1.0 if r > o else 0.5 if r == o else 0.0 for r, _, _ in rows for _, o, _ in rows) / len(rows) ** 2
    assert stratum.risk_auroc_pooled.value == pytest.approx(pooled)


@given(sides, st.sampled_from([0.05, 0.1, 0.2, 0.5]))
@settings(deadline=None)
def test_operating_point_recovers_as_many_as_any_threshold_may(rows, limit):
    outcomes = [outcome(i, risk_injected=r, risk_original=o) for i, (r, o, _) in enumerate(rows)]
    point = operating_point(outcomes, limit)
    best = 0
    for threshold in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0):
        if sum(o >= threshold for _, o, _ in rows) <= limit * len(rows):
            best = max(best, sum(r >= threshold for r, _, _ in rows))
    assert point.recovered.k == best
    assert point.false_positive_matched.k <= limit * len(rows)
    assert (point.threshold is None) == (best == 0)
    if point.threshold is not None:
        policy = parse_policy(f"risk>={point.threshold}", default_threshold=0.5)
        assert best == sum(policy.threshold <= r for r, _, _ in rows)


@given(sides, st.randoms())
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_pairs_makes_no_difference(rows, generator):
    outcomes = [
        outcome(
            i, risk_injected=r, risk_original=o, cluster=q, identified=r > 0, recovered=r > 0.4, matched_flagged=o > 0.4
        )
        for i, (r, o, q) in enumerate(rows)
    ]
    shuffled = list(outcomes)
    generator.shuffle(shuffled)
    assert stratum_of(shuffled, Sampling(50, 1)) == stratum_of(outcomes, Sampling(50, 1))


def test_rubric_effect():
    scores = [(5, 4), (3, 3), (3, 3), (3, 3), (0, 0), (2, 6)]
    flags = [(9, 0), (0, 1), (2, 1), (1, 1), (0, 2), (0, 5)]
    pairs = [make_pair(f"p{i}", scores=Scores(*pair)) for i, pair in enumerate(scores)]
    outcomes = [outcome(i, flagged_original=o, flagged_injected=n) for i, (o, n) in enumerate(flags)]
    effect = rubric_effect(pairs, outcomes, FEW)
    assert (effect.before.win, effect.before.tie, effect.before.loss) == (1, 4, 1)
    assert (effect.after.win, effect.after.tie, effect.after.loss) == (3, 1, 2)
    assert effect.before.auroc == 0.5
    assert effect.after.auroc == pytest.approx(3.5 / 6)
    assert effect.delta.value == pytest.approx(0.5 / 6)
    assert (effect.recovered.k, effect.recovered.n) == (2, 4)
    assert (effect.broken.k, effect.broken.n) == (1, 6)
    assert effect.ties_at_zero == 1


def test_rubric_delta_uses_the_same_resamples():
    pairs = [make_pair(f"p{i}", scores=Scores(3, 3 + i % 2)) for i in range(20)]
    outcomes = [outcome(i, flagged_injected=i % 2 == 0) for i in range(20)]
    effect = rubric_effect(pairs, outcomes, Sampling(2000, 0))
    # Ten ties become wins and ten losses stay: the change is exactly half of the resampled share of ties, which is
    # twice the score before it. Independent resamples would widen the interval of the change.
    assert effect.delta.ci == pytest.approx(effect.before.ci)


def test_without_scores_there_is_no_rubric_effect():
    assert rubric_effect([], [], FEW) is None


class TestMeasure:
    """Claims of a pair and what becomes of them."""

    def test_rows_and_outcome(self):
        pair = make_pair(original="Fine. Take 5 mg. End.", injected="Fine. Take WRONG 50 mg. End.")
        found = record(pair)
        assert [(row.side, row.text, row.in_edit, row.flagged) for row in found.claims] == [
            ("original", "Fine.", False, False),
            ("original", "Take 5 mg.", True, False),
            ("original", "End.", False, False),
            ("injected", "Fine.", False, False),
            ("injected", "Take WRONG 50 mg.", True, True),
            ("injected", "End.", False, False),
        ]
        wrong = found.claims[4]
        assert (wrong.label, wrong.risk, wrong.span) == ("contradicted", 0.9, (6, 23))
        assert [(quote.stance, quote.title, quote.source, quote.text) for quote in wrong.quotes] == [
            ("contradicts", "T|itle", "S", "What")
        ]
        assert found.claims[0].key == found.claims[3].key
        result = outcome_of(pair, found, FakeChecker().policy)
        assert (result.identified, result.recovered, result.matched_flagged) == (True, True, False)
        assert (result.risk_injected, result.risk_original) == (0.9, 0.1)
        assert (result.claims_original, result.checkable_original, result.flagged_original) == (3, 3, 0)

    def test_unchanged_text_inside_the_span_is_not_the_error(self):
        pair = make_pair(
            original="It is SHAKY.",
            injected="It is SHAKY. It is new.",
            edits=(Edit(original=(0, 12), injected=(0, 23)),),
        )
        found = record(pair, policy="unsupported")
        assert [row.in_edit for row in found.claims] == [True, False, True]
        result = outcome_of(pair, found, parse_policy("unsupported", default_threshold=0.5))
        assert (result.identified, result.recovered, result.matched_flagged) == (True, False, True)

    @pytest.mark.parametrize(
        ("policy", "recovered"), [("contradicted", False), ("unsupported", True), ("risk>=0.4", True), ("risk", False)]
    )
    def test_policies(self, policy, recovered):
        pair = make_pair(injected="Fine. Take SHAKY 5 mg. End.", edits=(Edit(original=(6, 16), injected=(6, 22)),))
        flagging = parse_policy(policy, default_threshold=0.5)
        assert outcome_of(pair, record(pair), flagging).recovered is recovered

    def test_a_missing_risk_counts_as_none(self):
        pair = make_pair(injected="Fine. Take BROKEN 5 mg. End.", edits=(Edit(original=(6, 16), injected=(6, 23)),))
        result = outcome_of(pair, record(pair), FakeChecker().policy)
        assert (result.identified, result.recovered, result.risk_injected, result.risk_original) == (
            True,
            False,
            0.0,
            0.1,
        )

    def test_a_pair_without_a_record_has_found_nothing(self):
        result = outcome_of(make_pair(), None, FakeChecker().policy)
        assert (result.identified, result.recovered, result.matched_flagged) == (False, False, False)
        assert result.risk_injected == result.risk_original == 0.0

    def test_questions_are_no_exhibits_and_not_checkable(self):
        pair = make_pair(
            original="Ok. Is it 5?", injected="Ok. Is it 6?", edits=(Edit(original=(4, 12), injected=(4, 12)),)
        )
        found = record(pair)
        assert found.exhibits == ()
        result = outcome_of(pair, found, FakeChecker().policy)
        assert (result.identified, result.recovered, result.checkable_original) == (True, False, 1)

    @pytest.mark.parametrize(("original", "injected", "longer"), [("ab", "a", 1.0), ("a", "b", 0.5), ("a", "bc", 0.0)])
    def test_length(self, original, injected, longer):
        pair = make_pair(original=original, injected=injected, edits=(Edit(original=(0, 1), injected=(0, 1)),))
        assert outcome_of(pair, None, FakeChecker().policy).longer == longer


class TestControls:
    """Evidence taken away, or taken from elsewhere."""

    @given(st.lists(st.integers(0, 6), max_size=30), st.integers(0, 5))
    def test_donors_are_of_another_question(self, questions, seed):
        clusters = {f"p{i}": f"q{question}" for i, question in enumerate(questions)}
        lent = donors(clusters, seed)
        if len(set(questions)) < 2:
            assert lent == {}
            return
        assert lent.keys() == clusters.keys()
        assert all(clusters[pair] != clusters[donor] for pair, donor in lent.items())
        if 2 * max(map(questions.count, questions)) <= len(questions):
            assert len(set(lent.values())) == len(lent)
        assert donors(dict(reversed(clusters.items())), seed) == lent

    def test_the_seed_changes_the_donors(self):
        clusters = {f"p{i}": f"q{i}" for i in range(20)}
        assert donors(clusters, 0) != donors(clusters, 1)

    def test_no_evidence_and_shuffled_evidence(self):
        checker = FakeChecker(policy="unsupported")
        pair, other = make_pair("one"), make_pair("two")
        mine, theirs = record(pair, checker), record(other, checker)
        policy = checker.policy
        alone = anyio.run(lambda: run_control(checker, mine, "no_evidence", policy))
        assert (alone.recovered, alone.matched_flagged, alone.donor) == (True, True, "")
        assert (alone.risk_injected, alone.risk_original) == (0.4, 0.4)
        lent = anyio.run(lambda: run_control(checker, mine, "shuffled_evidence", policy, donor=theirs))
        assert (lent.recovered, lent.matched_flagged, lent.donor) == (True, True, "two")
        own = anyio.run(lambda: run_control(checker, mine, "shuffled_evidence", policy, donor=mine))
        assert (own.recovered, own.matched_flagged) == (True, False)

    def test_a_judge_that_fails_is_counted(self):
        checker = FakeChecker()
        pair = make_pair(injected="Fine. Take REFUSE 5 mg. End.", edits=(Edit(original=(6, 16), injected=(6, 23)),))
        mine = record(pair, checker)
        found = anyio.run(lambda: run_control(checker, mine, "no_evidence", checker.policy))
        assert "refused" in found.error
        assert control_of([outcome_of(pair, None, checker.policy)], [found], FEW).errors == 1

    def test_pairs_without_claims_at_the_edit_stay_in_the_denominator(self):
        outcomes = [outcome(i) for i in range(4)]
        control = control_of(
            outcomes, [ControlRecord(control="no_evidence", pair="p1", recovered=True, risk_injected=0.5)], FEW
        )
        assert (control.recovered.k, control.recovered.n) == (1, 4)
        assert control.risk_auroc.value == pytest.approx((1 + 3 * 0.5) / 4)

    def test_a_control_that_could_not_be_run_is_undefined(self):
        assert control_of([outcome()], None, FEW).recovered is None


def study_of(pairs, checker=None, **changes):
    checker = checker or FakeChecker()
    records = {pair.id: record(pair, checker) for pair in pairs}
    fields = {
        "tied": pairs,
        "errors": (),
        "controls": {"no_evidence": []},
        "manifest": checker.manifest,
        "policy": checker.policy,
        "risk_threshold": 0.5,
        "fitted_on_these": False,
        "resamples": 200,
        "assume_tied": True,
        "spent": Spent(seconds=1.0),
        **changes,
    }
    file = PairFile(name="pairs.jsonl", sha256="0" * 64, pairs=tuple(pairs))
    return build_report(file, records, **fields)


def test_report_has_the_documented_keys():
    report = json.loads(study_of([make_pair("a"), make_pair("b")]).to_json())
    assert report["schema"] == "factcheck.study/1"
    assert {"policy", "n_pairs", "n_questions", "overall", "by_error_type", "policies", "rubric", "controls"} <= set(
        report
    )
    assert {"accounting", "cost", "manifest"} <= set(report)
    assert set(report["policies"]) == {"contradicted", "unsupported", "risk"}
    for stratum in (report["overall"], *report["by_error_type"].values(), *report["policies"].values()):
        for name in (
            "identified",
            "flagged_given_identified",
            "recovered",
            "false_positive_matched",
            "false_positive_answer",
            "false_positive_claim",
        ):
            assert set(stratum[name]) == {"k", "n", "rate", "ci"}
        assert set(stratum["claims_per_answer"]) == {"mean", "sd"}
        assert set(stratum["risk_auroc"]) == {"value", "ci"}
    assert report["rubric"] is None
    assert set(report["controls"]) == {"length_only_auroc", "shuffled_evidence", "no_evidence"}
    assert {"recovered", "false_positive_matched"} <= set(report["controls"]["no_evidence"])
    assert set(report["accounting"]) == {
        "extracted",
        "supported",
        "contradicted",
        "conflicting",
        "not_enough_evidence",
        "not_checkable",
        "error",
    }
    assert set(report["cost"]) == {
        "model_calls",
        "failed_calls",
        "tokens_in",
        "tokens_out",
        "usd",
        "http_requests",
        "seconds",
        "stages",
    }
    assert report["accounting"]["extracted"] == 12
    assert report["accounting"]["contradicted"] == 2


def test_warnings_name_what_limits_the_figures():
    pairs = [make_pair("a", exact=False), make_pair("b", injected="Fine. Take WRONG 50 mg. seven")]
    report = study_of(pairs)
    assert any("Only 2 tied pairs" in warning for warning in report.warnings)
    assert any("1 pairs differ outside their spans" in warning for warning in report.warnings)
    assert any("checks of 1 pairs gave warnings" in warning for warning in report.warnings)
    many = study_of([make_pair(f"p{i}") for i in range(30)])
    assert not many.warnings


def test_natural_order():
    names = ["F10", "F2", "C1", "unspecified", "F1", "", "9" * 5000]
    assert sorted(names, key=natural_order) == ["", "9" * 5000, "C1", "F1", "F2", "F10", "unspecified"]


def test_error_types_are_listed_in_their_natural_order():
    report = study_of([make_pair(name, error_type=name) for name in ("F10", "F2", "C3")])
    assert list(json.loads(report.to_json())["by_error_type"]) == ["C3", "F2", "F10"]


def test_names_from_the_input_cannot_draw_the_report():
    evil = make_pair("e", error_type="a|b\n# <script>*x*\x1b[31m\u202e`")
    report = study_of([evil, make_pair("f")])
    text, markdown = render_text(report), render_markdown(report)
    assert not any(ord(char) < 32 and char != "\n" for char in text + markdown)
    assert "\u202e" not in text + markdown
    row = next(line for line in markdown.splitlines() if "script" in line)
    assert r"a\|b \# \<script\>\*x\* \[31m \`" in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 9


def test_text_report():
    report = study_of([make_pair("a"), make_pair("b")])
    text = render_text(report)
    assert "An evaluation aid, not medical advice." in text
    assert "Warning: Only 2 tied pairs" in text
    overall = next(line for line in text.splitlines() if line.startswith("overall"))
    assert percent(report.overall.recovered) in overall
    for policy in ("contradicted", "unsupported", "risk"):
        assert any(line.startswith(policy) for line in text.splitlines())
    assert "the longer text is correct" in text
    assert "12 claims in 4 answers: 10 supported, 2 contradicted" in text


def test_a_report_on_no_pairs_can_be_drawn():
    text = render_text(study_of([make_pair("a", scores=Scores(1, 2))], tied=[], assume_tied=False))
    assert "0 tied pairs" in text
    assert "broken" in text


def test_forty_four_pairs_take_well_under_three_seconds():
    generator = random.Random(0)
    pairs = [make_pair(f"p{i}", error_type=f"F{i % 13}", scores=Scores(1, 1)) for i in range(44)]
    records = {pair.id: record(pair) for pair in pairs}
    checker = FakeChecker()
    controls = [ControlRecord(control="no_evidence", pair=pair.id, risk_injected=generator.random()) for pair in pairs]
    start = time.perf_counter()
    build_report(
        PairFile(name="x", sha256="", pairs=tuple(pairs)),
        records,
        tied=pairs,
        errors=(),
        controls={"no_evidence": controls, "shuffled_evidence": controls},
        manifest=checker.manifest,
        policy=checker.policy,
        risk_threshold=0.5,
        fitted_on_these=False,
        resamples=stats.RESAMPLES,
        assume_tied=False,
        spent=Spent(),
    )
    assert time.perf_counter() - start < 3


def test_a_report_on_the_pairs_that_the_judge_was_fitted_on_says_so():
    assert any("fitted on these" in warning for warning in study_of([make_pair("a")], fitted_on_these=True).warnings)
    assert not any("fitted on these" in warning for warning in study_of([make_pair("a")]).warnings)
