"""Stage 4: nothing that a judge or a checker returns counts before it was verified, and whatever fails is an error."""

import asyncio
import runpy
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import RateLimitedError
from factcheck.judge import failed_judgement, judge_claim
from factcheck.schema import Claim, Finding, Judgement, Quote, Stance

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
claim, evidence, quote, judgement = (FAKES[name] for name in ("claim", "evidence", "quote", "judgement"))
SUBJECT = claim()
SHOWN = evidence("Aspirin thins the blood, says the label.", "Warfarin does too.")
FIRST, SECOND = SHOWN.passages
FOUND = Finding(checker="", field="dose", claim_value="thins", relation="agrees", passage_id="p1", quote_span=(8, 13))


def run(judge, *, checkers=None, shown=SHOWN, subject=SUBJECT):
    return anyio.run(
        lambda: judge_claim(
            subject,
            shown,
            judge=SimpleNamespace(judge=judge),
            judge_name="mine",
            checkers={name: SimpleNamespace(check=check) for name, check in (checkers or {}).items()},
        )
    )


def saying(result):
    return lambda subject, shown, findings: result


def fine(label="supported", **fields):
    return judgement(label, SUBJECT, SHOWN, **fields)


def built(**fields):
    """Return a judgement that nothing has validated."""
    return fine().model_copy(update=fields)


def raising(error):
    def fail(*arguments):
        raise error

    return fail


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("label", ["supported", "contradicted", "conflicting", "not_enough_evidence"])
def test_an_acceptable_judgement_passes_with_the_name_of_its_judge(label):
    assert run(saying(fine(label))) == fine(label).model_copy(update={"judge": "mine"})


def test_coroutines_and_plain_functions_may_judge_and_check():
    async def judge(subject, shown, findings):
        await anyio.sleep(0)
        return fine(rationale=f"{len(findings)} findings")

    async def check(subject, shown):
        return [FOUND]

    found = run(judge, checkers={"a": check, "b": lambda subject, shown: (FOUND,)})
    assert found.rationale == "2 findings"
    assert [finding.checker for finding in found.findings] == ["a", "b"]


def stance(kind, passage_id="p1"):
    return (Stance(passage_id=passage_id, stance=kind),)


def slice_of(start, end, text, passage_id="p1"):
    return (Quote(passage_id=passage_id, start=start, end=end, text=text),)


WRONG = {
    "nothing": (None, "a NoneType, not a Judgement"),
    "an empty text": ("", "a str, not a Judgement"),
    "a label": ("supported", "a str, not a Judgement"),
    "an empty dict": ({}, "a dict, not a Judgement"),
    "a judgement as a dict": (fine().model_dump(), "a dict, not a Judgement"),
    "a number": (1, "a int, not a Judgement"),
    "the judgement of another claim": (fine().model_copy(update={"claim_id": "a.c9"}), "it judged claim a.c9"),
    "a label of its own": (built(label="true"), "label of a Judgement is not valid"),
    "no label and no error": (built(label=None), "exactly when its status is ok"),
    "an error with a label": (built(status="error"), "exactly when its status is ok"),
    "an error without a reason": (built(status="error", label=None), "needs a reason"),
    "an empty shell": (Judgement.model_construct(), "of a Judgement is not valid"),
    "a signal above one": (built(signals={"s": 1.5}), "signals.s of a Judgement is not valid"),
    "a stance that is no Stance": (built(stances=({"passage_id": "p1"},)), "of a Judgement is not valid"),
    "a stance score of NaN": (
        built(stances=(Stance.model_construct(passage_id="p1", stance="supports", score=float("nan")),)),
        "of a Judgement is not valid",
    ),
    "a stance on a passage that was not shown": (fine(stances=stance("supports", "p9")), "passage p9 was not shown"),
    "two stances on one passage": (fine(stances=stance("supports") * 2), "two stances on one passage"),
    "a quote of a passage that was not shown": (fine(quotes=slice_of(0, 7, "Aspirin", "p9")), "passage p9 was not"),
    "a quote of the other passage": (fine(quotes=slice_of(0, 7, "Aspirin", "p2")), "no literal slice of passage p2"),
    "a quote shifted by one": (fine(quotes=slice_of(1, 8, "Aspirin")), "no literal slice of passage p1"),
    "a quote in other letters": (fine(quotes=slice_of(0, 7, "aspirin")), "no literal slice"),
    "a quote that was made up": (fine(quotes=slice_of(0, 8, "Warfarin")), "no literal slice"),
    "a quote that reaches beyond the passage": (fine(quotes=slice_of(13, 99, FIRST.text[13:])), "no literal slice"),
    "a quote that ends before it begins": (fine(quotes=slice_of(9, 3, "")), "no literal slice"),
    "an empty quote": (fine(quotes=slice_of(0, 0, "")), "no literal slice"),
    "a blank quote": (fine(quotes=slice_of(7, 8, " ")), "no literal slice"),
    "support that no passage gives": (fine(stances=(), quotes=()), "supported, and no passage supports it"),
    "support from a silent passage": (fine(stances=stance("silent")), "supported, and no passage supports it"),
    "support from a passage that contradicts": (fine(stances=stance("contradicts")), "no passage supports it"),
    "a contradiction that nothing bears out": (fine("contradicted", stances=()), "no passage or finding contradicts"),
    "a conflict of one side": (fine("conflicting", stances=stance("supports")), "a supporting and a contradicting"),
    "a finding on a passage that was not shown": (
        fine(findings=(FOUND.model_copy(update={"passage_id": "p9"}),)),
        "passage p9 was not shown",
    ),
    "a finding beyond the claim": (
        fine(findings=(FOUND.model_copy(update={"claim_span": (20, 25)}),)),
        "span (20, 25) lies outside the claim",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_judge_that_breaks_its_contract_is_an_error(name):
    result, said = WRONG[name]
    found = run(saying(result))
    assert (found.status, found.label, found.stances, found.quotes) == ("error", None, (), ())
    assert said in found.reason
    assert found.reason.startswith("[F213] judge 'mine' broke its contract: ")
    assert found.claim_id == SUBJECT.id


@pytest.mark.parametrize("label", ["supported", "contradicted"])
@pytest.mark.parametrize("texts", [(), (" ", "\n\t")], ids=["no passage", "blank passages"])
def test_a_label_without_evidence_is_an_error(label, texts):
    shown = evidence(*texts)
    kind = {"supported": "supports", "contradicted": "contradicts"}[label]
    stances = tuple(Stance(passage_id=p.id, stance=kind) for p in shown.passages)
    found = run(saying(Judgement(claim_id=SUBJECT.id, label=label, stances=stances)), shown=shown)
    assert (found.status, found.label) == ("error", None)
    assert f"called a claim {label} without any evidence" in found.reason


def test_a_finding_may_bear_out_a_contradiction_that_no_passage_is_named_for():
    against = Finding(checker="", field="dose", claim_value="x", relation="differs")
    found = run(saying(fine("contradicted", stances=(), quotes=())), checkers={"k": lambda *_: [against]})
    assert found.label == "contradicted"


FAULTS = {
    "an exception": (ValueError("a\nb"), "[F330] judge 'mine' failed on claim a.c1: ValueError: a b"),
    "an exception without words": (ValueError(), "[F330] judge 'mine' failed on claim a.c1: ValueError"),
    "an exception that cannot be printed": (Unspeakable(), "[F330] judge 'mine' failed on claim a.c1: "),
    "an error of ours": (RateLimitedError("too many.", hint="Wait."), "[F322] too many. Wait."),
    "an exit": (SystemExit(0), "[F330] judge 'mine' failed on claim a.c1: RuntimeError: it called sys.exit(0)"),
    "a cancellation": (asyncio.CancelledError(), "cancelled from inside"),
    "a group": (ExceptionGroup("two", [ValueError("x"), KeyError("y")]), "ExceptionGroup: two (2 sub-exceptions)"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_judge_that_raises_is_an_error(name, is_async):
    error, said = FAULTS[name]

    async def fail(*arguments):
        raise error

    found = run(fail if is_async else raising(error))
    assert (found.status, found.label) == ("error", None)
    assert said in found.reason
    assert found.reason.splitlines() == [found.reason]
    assert len(found.reason) <= 500


def test_an_error_that_the_judge_reports_keeps_its_reason():
    found = run(saying(Judgement(claim_id=SUBJECT.id, label=None, status="error", reason="refused")))
    assert (found.status, found.reason, found.judge) == ("error", "refused", "mine")


def test_a_failed_judgement_keeps_what_the_checkers_found():
    found = run(raising(ValueError("x")), checkers={"k": lambda *_: [FOUND]})
    assert [f.field for f in found.findings] == ["dose"]


class TestCheckers:
    @pytest.mark.parametrize(
        ("result", "said"),
        [
            (None, "a NoneType, not a list of Finding"),
            ("dose", "a str, not a list of Finding"),
            (iter([FOUND]), "a list_iterator, not a list of Finding"),
            (FOUND, "a Finding, not a list of Finding"),
            ([FOUND, None], "a NoneType, not a Finding"),
            ([FOUND.model_dump()], "a dict, not a Finding"),
            ([FOUND.model_copy(update={"relation": "lies"})], "relation of a Finding is not valid"),
            ([FOUND.model_copy(update={"confidence": 2})], "confidence of a Finding is not valid"),
            ([FOUND.model_copy(update={"claim_span": (5, 2)})], "claim_span of a Finding is not valid"),
            ([FOUND.model_copy(update={"quote_span": (-3, 2)})], "quote_span of a Finding is not valid"),
            ([FOUND.model_copy(update={"claim_span": (0, 25)})], "span (0, 25) lies outside the claim"),
            ([FOUND.model_copy(update={"quote_span": (0, 41)})], "span (0, 41) lies outside its passage"),
            ([FOUND.model_copy(update={"passage_id": None})], "span (8, 13) lies outside its passage"),
            ([FOUND.model_copy(update={"passage_id": "p9"})], "passage p9 was not shown"),
        ],
    )
    def test_a_checker_that_breaks_its_contract_is_an_error_in_its_name(self, result, said):
        judged = []
        found = run(lambda *_: judged.append(1), checkers={"good": lambda *_: [FOUND], "bad": lambda *_: result})
        assert (found.status, found.label) == ("error", None)
        assert found.reason.startswith("[F213] checker 'bad' broke its contract: ")
        assert said in found.reason
        assert [f.checker for f in found.findings] == ["good"]
        assert not judged

    @pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(0)], ids=["raises", "exits"])
    def test_a_checker_that_raises_is_an_error_and_not_silence(self, error):
        found = run(saying(fine()), checkers={"bad": raising(error)})
        assert (found.status, found.label) == ("error", None)
        assert found.reason.startswith("[F340] checker 'bad' failed on claim a.c1: ")

    def test_spans_may_reach_to_the_very_end(self):
        whole = FOUND.model_copy(update={"claim_span": (0, 24), "quote_span": (0, 40)})
        assert run(saying(fine()), checkers={"k": lambda *_: [whole]}).label == "supported"

    def test_the_judge_is_given_the_findings_in_the_order_of_the_checkers(self):
        seen = []

        def judge(subject, shown, findings):
            seen.extend((f.checker, f.field) for f in findings)
            return fine()

        other = FOUND.model_copy(update={"field": "unit", "checker": "someone else"})
        run(judge, checkers={"z": lambda *_: [FOUND], "a": lambda *_: [other, FOUND]})
        assert seen == [("z", "dose"), ("a", "unit"), ("a", "dose")]

    def test_findings_of_the_judge_come_after_those_of_the_checkers_in_its_own_name(self):
        own = FOUND.model_copy(update={"field": "unit", "checker": "k"})

        def judge(subject, shown, findings):
            return fine(findings=(*findings, own))

        found = run(judge, checkers={"k": lambda *_: [FOUND]})
        assert [(f.checker, f.field) for f in found.findings] == [("k", "dose"), ("mine", "unit")]

    def test_a_judge_cannot_drop_the_findings_of_a_checker(self):
        found = run(saying(fine(findings=())), checkers={"k": lambda *_: [FOUND]})
        assert [f.checker for f in found.findings] == ["k"]


@given(st.integers(0, 45), st.integers(0, 45), st.integers(0, 40), st.integers(0, 40))
def test_a_quote_counts_exactly_if_it_is_a_slice(start, end, left, right):
    text = FIRST.text[left:right]
    found = run(saying(fine(quotes=slice_of(start, end, text))))
    literal = start <= end <= len(FIRST.text) and FIRST.text[start:end] == text and text.strip()
    assert (found.label == "supported") is bool(literal)
    assert (found.status == "error") is not bool(literal)


def test_offsets_of_quotes_count_code_points():
    text = "🙂🙂 Me\u0301nie\u0300re needs 5 µg."
    subject = Claim(id="c", answer_id="a", text="x", span=(0, 1), sentence_span=(0, 1))
    shown = evidence(text, claim_id="c")
    start = text.index("5 µg")
    for shift, label in ((0, "supported"), (1, None), (-1, None)):
        quotes = slice_of(start + shift, start + shift + 4, "5 µg")
        assert run(
            saying(judgement("supported", subject, shown, quotes=quotes)), shown=shown, subject=subject
        ).label == (label)


def test_failed_judgement():
    found = failed_judgement(SUBJECT, "why", "mine", (FOUND,))
    assert (found.claim_id, found.label, found.status, found.reason) == ("a.c1", None, "error", "why")
