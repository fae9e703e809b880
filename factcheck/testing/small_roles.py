"""Checks of a query writer, a checker and a primitive.

Capability of all three: ``deterministic`` (equal calls give equal results).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factcheck.errors import PluginContractError
from factcheck.judge import check_findings
from factcheck.queries import make_queries
from factcheck.schema import (
    Accounting,
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Finding,
    Manifest,
    Score,
    State,
    Verdict,
)
from factcheck.testing.harness import Bench, Check, CheckFailed, CheckResult, require, run_checks
from factcheck.testing.samples import (
    CLAIM,
    INFLATED_CLAIM,
    INJECTIONS,
    NEGATED_CLAIM,
    NEGATING_TEXT,
    UNRELATED,
    WIDE,
    make_claim,
    make_evidence,
)
from factcheck.testing.shared import settings_checks, works_in_a_second_event_loop

QUERY_WRITER_FLOOR = 4
CHECKER_FLOOR = 5
PRIMITIVE_FLOOR = 5
CLAIMS = (CLAIM, INFLATED_CLAIM, NEGATED_CLAIM, "x", WIDE, "5\u00a0mg/kg", *INJECTIONS)


@dataclass(kw_only=True)
class QueryWriterBench(Bench):
    """Hold the query writer under test."""

    async def write(self, component: Any, claim: Claim) -> list[str]:
        """Return the queries, after the examination that the host makes in every run."""
        found = await self.call(component.write_queries, claim)
        require(
            isinstance(found, Sequence) and not isinstance(found, str),
            f"it returned {type(found).__name__}, not a list of texts",
        )
        stray = [item for item in found if not isinstance(item, str) or not item.strip()]
        require(not stray, f"it returned {stray[:1]!r} among the queries of {claim.text[:40]!r}")
        try:
            make_queries(claim, found, writer="candidate")
        except PluginContractError as exc:
            raise CheckFailed(str(exc)) from exc
        return list(found)


@dataclass(kw_only=True)
class CheckerBench(Bench):
    """Hold the checker under test."""

    async def check(self, component: Any, claim: str, *texts: str) -> list[Finding]:
        """Return the findings, after the examination that the host makes in every run."""
        subject, evidence = make_claim(claim), make_evidence(*texts)
        found = await self.call(component.check, subject, evidence)
        require(
            isinstance(found, Sequence) and not isinstance(found, str),
            f"it returned {type(found).__name__}, not a list of findings",
        )
        try:
            findings = check_findings(found, subject, evidence, "candidate")
        except PluginContractError as exc:
            raise CheckFailed(str(exc)) from exc
        slices = {passage.id: passage.text for passage in evidence.passages}
        for finding in findings:
            require(
                finding.checker.strip() and finding.field.strip(), "a finding does not name its checker or its field"
            )
            require(finding.claim_span is None or claim[slice(*finding.claim_span)].strip(), "a claim span is blank")
            if finding.disagrees:
                require(finding.passage_id is not None, f"a finding says {finding.relation} and names no passage")
            if finding.quote_span is not None:
                require(slices[finding.passage_id or ""][slice(*finding.quote_span)].strip(), "a quote span is blank")
        return findings


@dataclass(kw_only=True)
class PrimitiveBench(Bench):
    """Hold the primitive under test."""

    async def score(self, component: Any, report: AnswerReport) -> Score:
        """Return the score of a report."""
        found = await self.call(component, report)
        require(isinstance(found, Score), f"it returned {type(found).__name__}, not a Score")
        score: Score = found
        require(score.name.strip(), "the score has no name")
        require(score.value is not None or score.reason.strip(), "the score has no value and no reason for that")
        return score


def check_query_writer(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = ("deterministic",),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    time_limit: float = 30.0,
    minimum: int = QUERY_WRITER_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a query writer and return the results."""
    bench = QueryWriterBench(
        make=make, capabilities=capabilities, factory=factory, settings=settings or {}, time_limit=time_limit
    )
    return run_checks(QUERY_WRITER_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


def check_checker(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = ("deterministic",),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    time_limit: float = 30.0,
    minimum: int = CHECKER_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a checker and return the results."""
    bench = CheckerBench(
        make=make, capabilities=capabilities, factory=factory, settings=settings or {}, time_limit=time_limit
    )
    return run_checks(CHECKER_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


def check_primitive(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = ("deterministic",),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    time_limit: float = 30.0,
    minimum: int = PRIMITIVE_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a primitive and return the results."""
    bench = PrimitiveBench(
        make=make, capabilities=capabilities, factory=factory, settings=settings or {}, time_limit=time_limit
    )
    return run_checks(PRIMITIVE_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


async def writes_usable_queries(bench: QueryWriterBench) -> None:
    """It writes at least one query for every claim, each a text that is not blank."""
    component = bench.new()
    for text in CLAIMS:
        await bench.write(component, make_claim(text, context="Paracetamol"))


async def queries_do_not_repeat(bench: QueryWriterBench) -> None:
    """No query comes twice for one claim: each costs a search."""
    component = bench.new()
    for text in (CLAIM, "Rest."):
        queries = await bench.write(component, make_claim(text))
        require(len(set(queries)) == len(queries), f"a query repeats: {queries}")


async def different_claims_get_different_queries(bench: QueryWriterBench) -> None:
    """The claim matters."""
    component = bench.new()
    one, other = [await bench.write(component, make_claim(text)) for text in (CLAIM, NEGATED_CLAIM)]
    require(one != other, f"two claims get the same queries: {one}")


async def repeats_its_queries(bench: QueryWriterBench) -> None:
    """The same claim gives the same queries, again and in a fresh instance."""
    component = bench.new()
    first = await bench.write(component, make_claim(CLAIM))
    await bench.write(component, make_claim(NEGATED_CLAIM))
    for again in (component, bench.new()):
        require(await bench.write(again, make_claim(CLAIM)) == first, "the queries of one claim differ")


async def returns_acceptable_findings(bench: CheckerBench) -> None:
    """Findings name passages that were shown, and their spans slice the claim and the passage."""
    component = bench.new()
    for claim in CLAIMS:
        for texts in ((CLAIM, *UNRELATED), (WIDE, NEGATING_TEXT), (" ",), INJECTIONS):
            await bench.check(component, claim, *texts)


async def without_evidence_nothing_disagrees(bench: CheckerBench) -> None:
    """Without passages no finding agrees or disagrees."""
    component = bench.new()
    for claim in CLAIMS:
        for finding in await bench.check(component, claim):
            require(finding.relation in ("missing", "unseen"), f"without evidence it finds {finding.relation!r}")


async def a_passage_that_repeats_the_claim_does_not_disagree(bench: CheckerBench) -> None:
    """The claim itself as the evidence gives no hard finding against it."""
    component = bench.new()
    for claim in (CLAIM, INFLATED_CLAIM, NEGATED_CLAIM, NEGATING_TEXT):
        against = [f for f in await bench.check(component, claim, claim) if f.disagrees and f.hard]
        require(not against, f"evidence that repeats {claim!r} is found to disagree: {against[:1]}")


async def repeats_its_findings(bench: CheckerBench) -> None:
    """The same claim and evidence give the same findings, again and in a fresh instance."""
    component = bench.new()
    first = await bench.check(component, INFLATED_CLAIM, CLAIM)
    await bench.check(component, NEGATED_CLAIM, NEGATING_TEXT)
    for again in (component, bench.new()):
        require(await bench.check(again, INFLATED_CLAIM, CLAIM) == first, "the findings differ")


async def returns_a_score(bench: PrimitiveBench) -> None:
    """It returns a Score for reports of every sort, with a reason where there is no value."""
    component = bench.new()
    for states in (("supported",), ("contradicted", "error", "not_checkable"), ("not_enough_evidence",) * 30):
        await bench.score(component, sample_report(*states))


async def an_empty_report_has_no_value(bench: PrimitiveBench) -> None:
    """A report without claims, or without one that could be checked, has no value."""
    component = bench.new()
    for states in ((), ("not_checkable",), ("error", "error")):
        score = await bench.score(component, sample_report(*states))
        require(score.value is None, f"a report of the states {states} scores {score.value}")


async def is_pure(bench: PrimitiveBench) -> None:
    """The same report gives the same score, again and in a fresh instance, and is not changed."""
    component = bench.new()
    report = sample_report("supported", "contradicted", "supported")
    before = report.model_dump_json()
    first = await bench.score(component, report)
    await bench.score(component, sample_report("contradicted"))
    for again in (component, bench.new()):
        require(await bench.score(again, report) == first, "the score of one report differs")
    require(report.model_dump_json() == before, "it changes the report")


async def the_order_of_claims_does_not_matter(bench: PrimitiveBench) -> None:
    """Reports with the same verdicts in another order have the same value."""
    component = bench.new()
    states: tuple[State, ...] = ("supported", "contradicted", "error", "conflicting")
    values = {(await bench.score(component, sample_report(*states[i:], *states[:i]))).value for i in range(4)}
    require(len(values) == 1, f"the order of the claims changes the value: {values}")


def sample_report(*states: State) -> AnswerReport:
    """Return a report of one claim for each state."""
    sentences = [f"Statement number {i} says so. " for i in range(len(states))]
    text = "".join(sentences)
    claims, start = [], 0
    for i, sentence in enumerate(sentences):
        span = (start, start + len(sentence) - 1)
        claims.append(Claim(id=f"c{i}", answer_id="a", text=sentence.strip(), span=span, sentence_span=span))
        start += len(sentence)
    verdicts = tuple(
        Verdict(
            claim_id=claim.id,
            label=state,
            risk=None if state in ("error", "not_checkable") else (0.9 if state == "contradicted" else 0.1),
        )
        for claim, state in zip(claims, states, strict=True)
    )
    return AnswerReport(
        answer=Answer(id="a", text=text),
        claims=tuple(claims),
        evidence=tuple(Evidence(claim_id=claim.id) for claim in claims),
        verdicts=verdicts,
        accounting=Accounting.of(verdicts),
        manifest=Manifest(version="0"),
    )


QUERY_WRITER_CHECKS = (
    Check(writes_usable_queries),
    Check(queries_do_not_repeat),
    Check(different_claims_get_different_queries),
    Check(works_in_a_second_event_loop("write_queries", make_claim(CLAIM))),
    Check(repeats_its_queries, ("deterministic",)),
    *settings_checks("query_writer"),
)
CHECKER_CHECKS = (
    Check(returns_acceptable_findings),
    Check(without_evidence_nothing_disagrees),
    Check(a_passage_that_repeats_the_claim_does_not_disagree),
    Check(works_in_a_second_event_loop("check", make_claim(CLAIM), make_evidence(CLAIM))),
    Check(repeats_its_findings, ("deterministic",)),
    *settings_checks("checker"),
)
PRIMITIVE_CHECKS = (
    Check(returns_a_score),
    Check(an_empty_report_has_no_value),
    Check(the_order_of_claims_does_not_matter),
    Check(works_in_a_second_event_loop("__call__", sample_report("supported"))),
    Check(is_pure, ("deterministic",)),
    *settings_checks("primitive"),
)
