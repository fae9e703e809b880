"""The panel: its rules, what it keeps of its judges, and what becomes of one that fails."""

from __future__ import annotations

import itertools
from typing import get_args

import anyio
import pytest
from factcheck_llm.gathering import Gathered
from factcheck_llm.panel import PanelJudge, Rule, combine
from pydantic import ValidationError

from factcheck.calibrate import default_calibration
from factcheck.errors import ConfigError, RunError
from factcheck.judge import check_judgement
from factcheck.schema import Finding, Judgement, Label, Query, Quote, Retrieval, Stance
from factcheck.testing import FakeJudge, FakeRetriever, make_claim, make_evidence
from factcheck.verdicts import decide

CLAIM = make_claim("Rest helps adults.")
EVIDENCE = make_evidence("Rest helps adults with a cold.", "Rest harms nobody.")
LABELS = get_args(Label)
S, C, X, N = "supported", "contradicted", "conflicting", "not_enough_evidence"


def panel(rule, *labels):
    """Return a panel of scripted judges; a label None fails, an exception is raised."""
    judges = {f"judge{i}": FakeJudge(default=label) for i, label in enumerate(labels)}
    return PanelJudge(PanelJudge.Settings(judges=tuple(judges), rule=rule), judges=judges)


def judged(rule, *labels):
    found = anyio.run(panel(rule, *labels).judge, CLAIM, EVIDENCE, ())
    check_judgement(found, CLAIM, EVIDENCE, "panel", ())
    return found


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "labels", "decided"),
        [
            ("majority", [S, S, C], S),
            ("majority", [S, C, N], N),
            ("majority", [S, C], N),
            ("majority", [C, C], C),
            ("majority", [X, X, S], X),
            ("majority", [S, S, None], S),
            ("majority", [S, C, None], None),
            ("majority", [S, None, None], None),
            ("majority", [None, None], None),
            ("unanimous", [S, S], S),
            ("unanimous", [S, S, N], N),
            ("unanimous", [C, C, C], C),
            ("unanimous", [S, C], N),
            ("unanimous", [S, S, None], None),
            ("any-contradiction", [S, S, C], C),
            ("any-contradiction", [S, S, N], S),
            ("any-contradiction", [S, S, None], None),
            ("any-contradiction", [C, None, None], C),
            ("any-contradiction", [S, N], N),
            ("any-contradiction", [X, X, C], C),
        ],
    )
    def test_the_label(self, rule, labels, decided):
        found = judged(rule, *labels)
        assert found.label == decided
        assert (found.status == "error") == (decided is None)

    def test_no_rule_calls_a_claim_supported_against_half_of_the_judges(self):
        for rule in get_args(Rule):
            for labels in itertools.product((*LABELS, None), repeat=3):
                found = judged(rule, *labels)
                if found.label == S:
                    assert labels.count(S) >= 2, (rule, labels)
                    assert rule != "any-contradiction" or C not in labels
                    assert rule != "unanimous" or set(labels) == {S}
                if None in labels and labels.count(S) < 2:
                    assert found.label != S

    def test_every_combination_makes_a_verdict(self):
        for rule in get_args(Rule):
            for labels in itertools.product((*LABELS, None), repeat=2):
                verdict = decide(CLAIM, EVIDENCE, judged(rule, *labels), default_calibration())
                assert (verdict.label == "error") == (verdict.risk is None)


class TestRecord:
    def test_disagreement_is_recorded(self):
        found = judged("majority", S, S, C)
        assert found.signals["agreement"] == pytest.approx(2 / 3, abs=1e-4)
        assert found.rationale.startswith(
            "3 judges disagree (majority): supported: judge0, judge1; contradicted: judge2."
        )
        assert judged("majority", S, S).rationale.startswith("2 judges agree")
        assert judged("majority", S, S).signals["agreement"] == 1.0

    def test_a_failure_is_recorded_in_either_case(self):
        assert "judge2: scripted failure" in judged("unanimous", S, S, None).reason
        assert "failed (scripted failure): judge2" in judged("majority", S, S, None).rationale

    def test_a_judge_that_raises_loses_its_vote_alone(self):
        found = judged("majority", S, S, ValueError("broken"))
        assert found.label == S
        assert "broken" in found.rationale

    def test_a_judge_that_breaks_its_contract_has_no_vote(self):
        class Liar:
            def judge(self, claim, evidence, findings):
                quote = Quote(passage_id="p1", start=0, end=4, text="made")
                stance = Stance(passage_id="p1", stance="supports")
                return Judgement(claim_id=claim.id, label="supported", stances=(stance,), quotes=(quote,))

        judges = {"one": FakeJudge(default=S), "two": Liar(), "three": Liar()}
        made = PanelJudge(PanelJudge.Settings(judges=("one", "two", "three")), judges=judges)
        found = anyio.run(made.judge, CLAIM, EVIDENCE, ())
        assert found.label is None
        assert "no literal slice" in found.reason

    def test_the_end_of_the_budget_ends_the_panel(self):
        class Spent(RunError):
            code = "F401"

        with pytest.raises(BaseException) as caught:  # noqa: PT011
            anyio.run(panel("majority", S, Spent("spent")).judge, CLAIM, EVIDENCE, ())
        found = caught.value
        assert isinstance(found, Spent), found

    def test_stances_and_quotes_are_those_of_the_winners(self):
        def said(label, *stances):
            quotes = [Quote(passage_id=p, start=0, end=4, text="Rest") for p, kind in stances if kind != "silent"]
            listed = tuple(Stance(passage_id=p, stance=kind) for p, kind in stances)
            return Judgement(claim_id="c", label=label, stances=listed, quotes=tuple(quotes))

        found = combine(
            CLAIM,
            {
                "one": said(S, ("p1", "supports"), ("p2", "silent")),
                "two": said(S, ("p2", "supports"), ("p1", "silent")),
                "three": said(C, ("p1", "contradicts")),
            },
            "majority",
        )
        assert [(s.passage_id, s.stance) for s in found.stances] == [("p1", "supports"), ("p2", "supports")]
        assert [q.passage_id for q in found.quotes] == ["p1", "p2"]
        check_judgement(found, CLAIM, EVIDENCE, "panel", ())

    def test_findings_are_kept_once(self):
        finding = Finding(checker="x", field="f", claim_value="v", relation="unseen")
        given = {
            name: Judgement(claim_id="c", label=N, findings=(finding, finding.model_copy(update={"field": name})))
            for name in ("one", "two")
        }
        found = combine(CLAIM, given, "majority", (finding,))
        assert [f.field for f in found.findings] == ["f", "one", "two"]

    def test_a_hard_finding_vetoes_each_supporting_vote(self):
        hard = Finding(
            checker="x", field="f", claim_value="v", relation="differs", hard=True, passage_id="p1", quote_span=(0, 4)
        )
        for labels in ((S, C), (S, S), (S, S, N)):
            found = anyio.run(panel("majority", *labels).judge, CLAIM, EVIDENCE, (hard,))
            assert found.label == C
            verdict = decide(CLAIM, EVIDENCE, found, default_calibration())
            assert verdict.label == C
            assert "Rest" in [quote.text for quote in verdict.contradicting]
            assert not verdict.supporting

    def searchers(self, judges):
        made = PanelJudge(PanelJudge.Settings(judges=tuple(judges)), judges=judges)
        return anyio.run(made.gather, CLAIM, make_evidence("start", claim_id=CLAIM.id))

    def test_judges_that_search_add_to_the_evidence_with_searches_of_their_own(self):
        judges = {"one": Searcher("first"), "two": FakeJudge(), "three": Searcher("second")}
        found = self.searchers(judges)
        assert [p.text for p in found.evidence.passages] == ["start", "first", "second"]
        assert judges["three"].seen == ["start", "first"]
        assert [query.id for query in found.queries] == [f"{CLAIM.id}.g1", f"{CLAIM.id}.g2"]
        assert [item.query_id for item in found.retrievals] == [f"{CLAIM.id}.g1", f"{CLAIM.id}.g2"]
        assert found.evidence.complete

    @pytest.mark.parametrize("spoil", ["raises", "invents"])
    def test_one_whose_search_fails_leaves_the_evidence_incomplete(self, spoil):
        found = self.searchers({"one": Searcher("first", spoil), "two": Searcher("second")})
        assert [p.text for p in found.evidence.passages] == ["start", "second"]
        assert not found.evidence.complete

    def test_what_stops_the_run_passes(self):
        with pytest.raises(ConfigError, match="no retriever"):
            self.searchers({"one": Searcher("first", ConfigError("no retriever.")), "two": FakeJudge()})


class Searcher(FakeJudge):
    def __init__(self, text, spoil=None):
        super().__init__()
        self.text, self.spoil = text, spoil

    async def gather(self, claim, evidence, queries):
        if self.spoil == "raises":
            raise ValueError("down")
        if self.spoil not in (None, "invents"):
            raise self.spoil
        self.seen = [p.text for p in evidence.passages]
        query = Query(id=f"{claim.id}.s1", claim_id=claim.id, text=self.text)
        rank = len(evidence.passages) + 1
        passage = EVIDENCE.passages[0].model_copy(
            update={"id": self.text, "text": self.text, "rank": rank, "score": 0.001}
        )
        alone = passage.model_copy(update={"rank": 1})
        found = () if self.spoil else (Retrieval(query_id=query.id, retriever="r", status="ok", passages=(alone,)),)
        more = evidence.model_copy(update={"passages": (*evidence.passages, passage)})
        return Gathered((query,), found, more)


class TestSettings:
    @pytest.mark.parametrize(
        "table",
        [
            {},
            {"judges": ["one"]},
            {"judges": ["one", "one"]},
            {"judges": ["panel", "one"]},
            {"judges": ["one", "two"], "rule": "most"},
            {"judges": ["one", "two"], "judgs": 1},
        ],
    )
    def test_what_makes_no_panel_is_refused(self, table):
        with pytest.raises(ValidationError):
            PanelJudge.Settings.model_validate(table)

    def test_its_model_is_those_of_its_judges(self):
        one, two = FakeJudge(), FakeJudge()
        one.model, two.model = "big", "small"
        made = PanelJudge(
            PanelJudge.Settings(judges=("a", "b", "c")), judges={"a": one, "b": two, "c": FakeRetriever()}
        )
        assert made.model == "big, small"
