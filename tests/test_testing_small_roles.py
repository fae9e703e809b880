"""The checks of query writers, checkers and primitives reject deliberately wrong ones and accept right ones."""

from __future__ import annotations

import itertools
import re

import pytest
from pydantic import BaseModel, ConfigDict

from factcheck.schema import Finding, Score
from factcheck.testing import check_checker, check_primitive, check_query_writer, failures
from factcheck.testing.small_roles import CHECKER_CHECKS, PRIMITIVE_CHECKS, QUERY_WRITER_CHECKS


class Configured:
    version = "1"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        size: int = 1

    def __init__(self, settings=None):
        self.settings = settings or self.Settings()


class Writer(Configured):
    def write_queries(self, claim):
        return list(dict.fromkeys([claim.text, f"{claim.context} {claim.text}".strip()]))


class AsyncWriter(Configured):
    async def write_queries(self, claim):
        return [claim.text]


class WritesOneText(Writer):
    def write_queries(self, claim):
        return claim.text


class WritesNothing(Writer):
    def write_queries(self, claim):
        return re.findall(r"[a-z]{3,}", claim.text)


class WritesBlanks(Writer):
    def write_queries(self, claim):
        return [claim.text, " "]


class WritesTwice(Writer):
    def write_queries(self, claim):
        return [claim.text, claim.text]


class WritesTheSame(Writer):
    def write_queries(self, claim):
        return ["paracetamol"]


class Numbered(Writer):
    calls = itertools.count()

    def write_queries(self, claim):
        return [f"{claim.text} {next(self.calls)}"]


class Checker(Configured):
    """Compare the first number of the claim with the first of each passage."""

    number = re.compile(r"\d+")

    def relation(self, one, other):
        return "agrees" if one == other else "differs"

    def finding(self, passage, claimed, stated):
        return Finding(
            checker="numbers",
            field="number",
            claim_value=claimed[0],
            evidence_value=stated[0],
            relation=self.relation(claimed[0], stated[0]),
            hard=True,
            passage_id=passage.id,
            claim_span=claimed.span(),
            quote_span=stated.span(),
        )

    def check(self, claim, evidence):
        claimed = self.number.search(claim.text)
        found = [(passage, self.number.search(passage.text)) for passage in evidence.passages]
        return [self.finding(passage, claimed, stated) for passage, stated in found if claimed and stated]


class AsyncChecker(Checker):
    async def check(self, claim, evidence):
        return super().check(claim, evidence)


class ReturnsNothing(Checker):
    def check(self, claim, evidence):
        return super().check(claim, evidence) or None


class SpanOutside(Checker):
    def finding(self, passage, claimed, stated):
        found = super().finding(passage, claimed, stated)
        return found.model_copy(update={"claim_span": (0, 100_000)})


class UnknownPassage(Checker):
    def finding(self, passage, claimed, stated):
        return super().finding(passage, claimed, stated).model_copy(update={"passage_id": passage.doc_id})


class NamelessPassage(Checker):
    def finding(self, passage, claimed, stated):
        found = super().finding(passage, claimed, stated)
        return found.model_copy(update={"passage_id": None, "quote_span": None, "relation": "differs"})


class BlankSpan(Checker):
    def finding(self, passage, claimed, stated):
        start = claimed.span()[0]
        return super().finding(passage, claimed, stated).model_copy(update={"claim_span": (start, start)})


class AgreesWithNothing(Checker):
    def check(self, claim, evidence):
        if evidence.passages:
            return super().check(claim, evidence)
        return [Finding(checker="numbers", field="number", claim_value="1", relation="agrees")]


class AlwaysDiffers(Checker):
    def relation(self, one, other):
        return "differs"


class CountsCalls(Checker):
    calls = itertools.count()

    def finding(self, passage, claimed, stated):
        return super().finding(passage, claimed, stated).model_copy(update={"reason": str(next(self.calls))})


class Primitive(Configured):
    name = "share.v1"

    def weight(self, position):
        return 1.0

    def __call__(self, report):
        counted = [v for v in report.verdicts if v.label not in ("error", "not_checkable")]
        if not counted:
            return self.nothing()
        weights = [self.weight(i) for i in range(len(report.verdicts))]
        bad = sum(w for w, v in zip(weights, report.verdicts, strict=True) if v.label == "contradicted")
        return Score(name=self.name, value=bad / len(counted), n=len(counted))

    def nothing(self):
        return Score(name=self.name, value=None, reason="no claim to count")


class AsyncPrimitive(Primitive):
    async def __call__(self, report):
        return super().__call__(report)


class ZeroForNothing(Primitive):
    def nothing(self):
        return Score(name=self.name, value=0.0)


class SilentOnNothing(Primitive):
    def nothing(self):
        return Score(name=self.name, value=None)


class ReturnsNumber(Primitive):
    def __call__(self, report):
        return super().__call__(report).value


class Positional(Primitive):
    def weight(self, position):
        return 1.0 / (position + 1)


class Accumulates(Primitive):
    seen = 0

    def __call__(self, report):
        self.seen += 1
        return super().__call__(report).model_copy(update={"n": self.seen})


@pytest.mark.parametrize(
    ("check", "kinds", "checks"),
    [
        (check_query_writer, (Writer, AsyncWriter), QUERY_WRITER_CHECKS),
        (check_checker, (Checker, AsyncChecker), CHECKER_CHECKS),
        (check_primitive, (Primitive, AsyncPrimitive), PRIMITIVE_CHECKS),
    ],
    ids=["query writer", "checker", "primitive"],
)
def test_right_ones_pass_every_check(check, kinds, checks):
    for kind in kinds:
        results = check(kind, factory=kind)
        assert failures(results) == [], [r.error for r in failures(results)]
        assert {r.status for r in results} == {"passed"}
        assert len(results) == len(checks) + 1


WRONG = [
    (check_query_writer, WritesOneText, "writes_usable_queries"),
    (check_query_writer, WritesNothing, "writes_usable_queries"),
    (check_query_writer, WritesBlanks, "writes_usable_queries"),
    (check_query_writer, WritesTwice, "queries_do_not_repeat"),
    (check_query_writer, WritesTheSame, "different_claims_get_different_queries"),
    (check_query_writer, Numbered, "repeats_its_queries"),
    (check_checker, ReturnsNothing, "returns_acceptable_findings"),
    (check_checker, SpanOutside, "returns_acceptable_findings"),
    (check_checker, UnknownPassage, "returns_acceptable_findings"),
    (check_checker, NamelessPassage, "returns_acceptable_findings"),
    (check_checker, BlankSpan, "returns_acceptable_findings"),
    (check_checker, AgreesWithNothing, "without_evidence_nothing_disagrees"),
    (check_checker, AlwaysDiffers, "a_passage_that_repeats_the_claim_does_not_disagree"),
    (check_checker, CountsCalls, "repeats_its_findings"),
    (check_primitive, ReturnsNumber, "returns_a_score"),
    (check_primitive, SilentOnNothing, "an_empty_report_has_no_value"),
    (check_primitive, ZeroForNothing, "an_empty_report_has_no_value"),
    (check_primitive, Positional, "the_order_of_claims_does_not_matter"),
    (check_primitive, Accumulates, "is_pure"),
]


@pytest.mark.parametrize(("run", "kind", "check"), WRONG, ids=[kind.__name__ for _, kind, _ in WRONG])
def test_wrong_ones_are_rejected_by_the_check_for_them(run, kind, check):
    found = {result.check: result.error for result in failures(run(kind, factory=kind))}
    assert found.get(check), found
