"""The pipeline: six states that add up, nothing that fails open, and components that are functions or coroutines."""

import asyncio
import runpy
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.errors import (
    DecomposeError,
    PermanentError,
    PluginContractError,
)
from factcheck.schema import STATES, Answer, Claim, Finding, Judgement

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
fact_checker, claim, judgement, passages = (FAKES[n] for n in ("fact_checker", "claim", "judgement", "passages"))
by_line, plainly, labels, raising, eventually = (
    FAKES[n] for n in ("by_line", "plainly", "labels", "raising", "eventually")
)


def adds_up(report):
    counts = report.accounting
    return counts.extracted == len(report.claims) == sum(getattr(counts, state) for state in STATES)


def on(word, act, otherwise):
    """Return a function that acts on what speaks of a word and does the plain thing with the rest."""

    def function(first, *rest):
        return act(first, *rest) if word in first.text else otherwise(first, *rest)

    return function


class TestStates:
    def test_an_empty_answer_has_no_claims(self):
        for text in ("", " \n "):
            report = fact_checker().check(text)
            assert report.accounting.extracted == 0
            assert (report.claims, report.verdicts, report.answer.text) == ((), (), text)
            assert report.warnings == ()

    def test_words_of_which_no_claim_was_made_are_a_warning(self):
        report = fact_checker(decomposer=lambda answer: []).check("Take five of them.")
        assert report.warnings == ("no claim was made of the 4 words of the answer",)

    def test_a_claim_of_each_state(self):
        kinds = {"hello": "greeting"}

        def decompose(answer):
            return [c.model_copy(update={"kind": kinds.get(c.text, "statement")}) for c in by_line(answer)]

        def judge(subject, shown, findings):
            if subject.text == "error":
                raise ValueError("x")
            return judgement(subject.text, subject, shown)

        def retrieve(asked, k):
            return passages("one", "two")

        text = "supported\ncontradicted\nconflicting\nnot_enough_evidence\nhello\nerror"
        report = fact_checker(decomposer=decompose, judge=judge, retriever=retrieve).check(text)
        assert labels(report) == [
            "supported",
            "contradicted",
            "conflicting",
            "not_enough_evidence",
            "not_checkable",
            "error",
        ]
        assert adds_up(report)
        assert set(STATES) == set(labels(report))
        assert report.queries[-1].claim_id == "answer.c6"
        assert not [q for q in report.queries if q.claim_id == "answer.c5"]

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(*[st.sampled_from(["fine", "raises", "garbage", "empty"])] * 4), max_size=6))
    def test_whatever_fails_the_states_add_up_and_nothing_is_supported_by_a_failure(self, plans):
        def plan(index):
            def act(first, *rest):
                return plans[int((first.text if hasattr(first, "text") else first).split()[-1])][index]

            return act

        def faulty(index, fine, empty):
            def function(*arguments):
                do = plan(index)(*arguments)
                if do == "raises":
                    raise ValueError("x")
                return {"garbage": 5, "empty": empty(*arguments)}.get(do) if do != "fine" else fine(*arguments)

            return function

        checker = fact_checker(
            query_writer=faulty(0, lambda c: [c.text], lambda c: [""]),
            retriever=faulty(1, lambda q, k: passages(q.text), lambda q, k: []),
            checker={"k": faulty(2, lambda c, e: [], lambda c, e: [])},
            judge=faulty(3, plainly, lambda *_: None),
        )
        report = checker.check("\n".join(f"line {i}" for i in range(len(plans))))
        assert adds_up(report)
        for (writes, finds, checks, judges), label in zip(plans, labels(report), strict=True):
            failed = "garbage" in (writes, finds, checks, judges) or "raises" in (writes, finds, checks, judges)
            failed = failed or writes == "empty" or judges == "empty"
            silent = finds == "empty" and not failed
            assert label == ("error" if failed else "not_enough_evidence" if silent else "supported")


class TestNothingFailsOpen:
    @pytest.mark.parametrize("result", [None, "", "supported", {}, [], True, Judgement.model_construct()])
    def test_garbage_from_the_judge_is_an_error(self, result):
        report = fact_checker(judge=on("bad", lambda *_: result, plainly)).check("good\nbad\nfine")
        assert labels(report) == ["supported", "error", "supported"]
        assert "broke its contract" in report.verdicts[1].reason

    def test_support_without_evidence_is_an_error(self):
        def judge(subject, shown, findings):
            return Judgement(claim_id=subject.id, label="supported")

        assert labels(fact_checker(judge=judge, retriever=lambda q, k: []).check("x")) == ["error"]
        assert labels(fact_checker(judge=judge).check("x")) == ["error"]

    def test_silence_after_a_failed_retrieval_is_an_error(self):
        checker = fact_checker(retriever=on("bad", raising(PermanentError("gone.")), lambda q, k: []))
        report = checker.check("good\nbad")
        assert labels(report) == ["not_enough_evidence", "error"]
        assert [r.status for r in report.retrievals] == ["ok", "failed"]
        assert report.retrievals[1].error == "[F323] gone."
        assert [e.complete for e in report.evidence] == [True, False]

    @pytest.mark.parametrize(
        "found",
        [
            lambda q, k: passages(*"abcdefghi"),
            lambda q, k: passages("a", "b")[::-1],
            lambda q, k: [passages("a")[0].model_copy(update={"score": float("nan")})],
            lambda q, k: passages("a")[:1] * 2,
            lambda q, k: ["a"],
            lambda q, k: None,
            lambda q, k: time.sleep(1),
            raising(ValueError("x")),
            raising(SystemExit(0)),
        ],
        ids=["too many", "unsorted", "NaN", "twice", "wrong type", "nothing", "hanging", "raising", "exiting"],
    )
    def test_a_broken_retriever_costs_nothing_of_the_others(self, found):
        checker = fact_checker(
            retriever={"bad": found, "good": lambda q, k: passages("b")}, settings={"query_deadline": 0.2, "k": 8}
        )
        report = checker.check("x")
        assert [(r.retriever, r.status) for r in report.retrievals] == [("t/bad", "failed"), ("t/good", "ok")]
        assert labels(report) == ["supported"]
        assert [p.text for p in report.evidence[0].passages] == ["b"]

    def test_a_dead_retriever_is_not_asked_for_every_claim(self):
        asked = []

        def dead(question, k):
            asked.append(question.text)
            raise PermanentError("gone.")

        report = fact_checker(retriever=dead).check("\n".join(f"line {i}" for i in range(60)))
        assert labels(report) == ["error"] * 60
        assert len(asked) < 20
        assert "circuit open" in report.retrievals[-1].error

    @pytest.mark.parametrize(
        ("written", "said"),
        [
            (lambda c: [], "no usable query"),
            (lambda c: ["", " "], "no usable query"),
            (lambda c: c.text, "a str, not a list"),
            (lambda c: None, "a NoneType, not a list"),
            (raising(KeyError("k")), "query writer 't' failed on claim answer.c2: KeyError: 'k'"),
            (raising(SystemExit(0)), "it called sys.exit(0)"),
        ],
    )
    def test_a_broken_query_writer_is_an_error_of_its_claim(self, written, said):
        report = fact_checker(query_writer=on("bad", written, lambda c: [c.text])).check("good\nbad\nfine")
        assert labels(report) == ["supported", "error", "supported"]
        assert said in report.verdicts[1].reason
        assert not report.evidence[1].complete

    def test_a_checker_that_raises_is_an_error_and_not_silence(self):
        checker = fact_checker(
            checker={"a": lambda c, e: [], "b": on("bad", raising(ValueError("x")), lambda c, e: [])}
        )
        report = checker.check("good\nbad")
        assert labels(report) == ["supported", "error"]
        assert report.verdicts[1].reason.startswith("[F340] checker 't/b' failed")

    def test_a_hard_finding_vetoes_any_judge(self):
        def check(subject, shown):
            return [
                Finding(
                    checker="",
                    field="dose",
                    claim_value="5",
                    relation="differs",
                    hard=True,
                    passage_id="p1",
                    quote_span=(0, 1),
                    reason="5 is not 50",
                )
            ]

        report = fact_checker(checker={"k": on("bad", check, lambda c, e: [])}).check("good\nbad")
        assert labels(report) == ["supported", "contradicted"]
        assert report.verdicts[1].reason == "5 is not 50"
        assert [q.text for q in report.verdicts[1].contradicting] == ["b"]

    def test_quotes_that_are_no_slices_are_an_error(self):
        def judge(subject, shown, findings):
            found = plainly(subject, shown, findings)
            return found.model_copy(update={"quotes": (found.quotes[0].model_copy(update={"start": 1}),)})

        assert labels(fact_checker(judge=judge).check("x")) == ["error"]


class TestDecomposers:
    @pytest.mark.parametrize("error", [ValueError("a\nb"), SystemExit(0), asyncio.CancelledError()])
    def test_one_that_raises_is_named_with_the_answer(self, error):
        with pytest.raises(DecomposeError, match="decomposer 't' failed on answer a1: ") as caught:
            fact_checker(decomposer=raising(error)).check(Answer(id="a1", text="x"))
        assert str(caught.value).splitlines() == [str(caught.value)]

    def test_an_error_of_ours_passes(self):
        with pytest.raises(DecomposeError, match="too hard"):
            fact_checker(decomposer=raising(DecomposeError("too hard."))).check("x")

    @pytest.mark.parametrize(
        ("claims", "said"),
        [
            (None, "a NoneType, not a list of Claim"),
            ("x", "a str, not a list of Claim"),
            (["x"], "a str, not a Claim"),
            ([claim("x", answer_id="answer").model_copy(update={"text": ""})], "text of a Claim is not valid"),
            ([claim("x", answer_id="answer").model_copy(update={"span": (3, 1)})], "span of a Claim is not valid"),
            ([Claim.model_construct(id="c", answer_id="answer")], "of a Claim is not valid"),
            ([claim("x", answer_id="other")], "does not belong to answer answer"),
            ([claim("xyzw", answer_id="answer")], "lies outside it"),
            (
                [claim("x", answer_id="answer").model_copy(update={"sentence_span": (0, 9)})],
                "lies outside it",
            ),
            ([claim("x", answer_id="answer")] * 2, "claim ids repeat"),
        ],
    )
    def test_one_that_breaks_its_contract_is_refused_by_name(self, claims, said):
        with pytest.raises(PluginContractError, match=f"decomposer 't' broke its contract: .*{said}"):
            fact_checker(decomposer=lambda answer: claims).check("xyz")

    def test_claims_may_reach_to_the_very_end(self):
        assert labels(fact_checker(decomposer=lambda a: [claim("xyz", answer_id="answer")]).check("xyz")) == [
            "supported"
        ]

    def test_numbers_that_no_claim_carries_are_a_warning(self):
        report = fact_checker(decomposer=lambda a: [claim("Take", answer_id="answer")]).check("Take 500 mg of it.")
        assert report.warnings == ("no claim carries the number 500",)
        assert fact_checker().check("Take 500 mg of it.").warnings == ()


def awaitable(function):
    """Return a plain function that returns an awaitable."""
    coroutine = eventually(function)
    return lambda *arguments: coroutine(*arguments)


@pytest.mark.parametrize("wrap", [eventually, awaitable])
@pytest.mark.parametrize("role", ["decomposer", "query_writer", "retriever", "judge", "checker"])
def test_each_role_may_be_a_coroutine(role, wrap):
    plain = {**FAKES["PLAIN"], "checker": {"k": lambda c, e: []}}
    function = {key: wrap(f) for key, f in plain[role].items()} if role == "checker" else wrap(plain[role])
    roles = {"checker": plain["checker"], role: function}
    report = fact_checker(**roles).check("one\ntwo")
    expected = fact_checker(checker=plain["checker"]).check("one\ntwo")
    assert report.verdicts == expected.verdicts
    assert report.evidence == expected.evidence
