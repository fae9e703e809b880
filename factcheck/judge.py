"""Stage 4: checkers and a judge look at a claim and its evidence; what they return is verified before it counts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from factcheck.calling import broken, call, examined, examined_list, reason_of
from factcheck.checking import CheckerProcesses
from factcheck.errors import CheckerError, FactcheckError, JudgeError, StageError, UserError
from factcheck.registry import first_line
from factcheck.schema import Claim, Evidence, Finding, Judgement


def failed_judgement(claim: Claim, reason: str, judge: str, findings: tuple[Finding, ...] = ()) -> Judgement:
    """Return a judgement that says that we failed, which no stage may read as a finding about the claim."""
    return Judgement(claim_id=claim.id, label=None, status="error", reason=reason, judge=judge, findings=findings)


async def judge_claim(
    claim: Claim,
    evidence: Evidence,
    *,
    judge: Any,
    judge_name: str,
    checkers: Mapping[str, Any],
    processes: CheckerProcesses | None = None,
) -> Judgement:
    """Run the checkers, then the judge, and verify the judgement; any failure gives a judgement with status error.

    ``processes`` run those checkers that they hold. A UserError is raised as it is: it is the same for every claim, and the run
    cannot go on.
    """
    findings: list[Finding] = []
    try:
        done: Mapping[str, object] = await processes.check(claim, evidence) if processes is not None else {}
        done = {**done, **await _together({n: c for n, c in checkers.items() if n not in done}, claim, evidence)}
        for name, checker in checkers.items():
            reply = _settled(done[name]) if name in done else call(checker.check, claim, evidence)
            found = await _blaming(CheckerError, f"checker '{name}'", claim, reply)
            findings += check_findings(found, claim, evidence, name)
        arguments = (claim, evidence, tuple(findings))
        result = await _blaming(JudgeError, f"judge '{judge_name}'", claim, call(judge.judge, *arguments))
        return check_judgement(result, claim, evidence, judge_name, tuple(findings))
    except UserError:
        raise
    except Exception as error:  # a component may raise anything; one claim must not cost the others
        return failed_judgement(claim, reason_of(error), judge_name, tuple(findings))


async def _together(checkers: Mapping[str, Any], claim: Claim, evidence: Evidence) -> Mapping[str, object]:
    """Run the checkers that are plain functions in one thread; return what each returned, or the exception that it raised."""
    plain = {name: c.check for name, c in checkers.items() if not inspect.iscoroutinefunction(c.check)}

    def work() -> dict[str, object]:
        done: dict[str, object] = {}
        for name, check in plain.items():
            try:
                done[name] = check(claim, evidence)
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                done[name] = error
        return done

    found: Mapping[str, object] = await call(work) if plain else {}
    return found


async def _settled(outcome: object) -> object:
    """Return or raise what became of a call, in the way in which ``call`` does."""

    async def again() -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return await outcome if inspect.isawaitable(outcome) else outcome

    return await call(again)


async def _blaming(kind: type[StageError], who: str, claim: Claim, reply: Awaitable[Any]) -> Any:
    """Await the reply of a component; what it raises is raised as ``kind``, in its name."""
    try:
        return await reply
    except FactcheckError:
        raise
    except Exception as error:
        raise kind(f"{who} failed on claim {claim.id}: {first_line(error)}") from error


def check_findings(found: object, claim: Claim, evidence: Evidence, checker: str) -> list[Finding]:
    """Return a checker's findings, or raise PluginContractError if a span or a passage id does not resolve."""
    return _resolved(examined_list(found, Finding, "checker", checker), claim, evidence, "checker", checker)


def _resolved(findings: list[Finding], claim: Claim, evidence: Evidence, role: str, name: str) -> list[Finding]:
    texts = {passage.id: passage.text for passage in evidence.passages}
    for finding in findings:
        if finding.passage_id is not None and finding.passage_id not in texts:
            raise broken(role, name, f"passage {finding.passage_id} was not shown to it")
        if finding.claim_span and finding.claim_span[1] > len(claim.text):
            raise broken(role, name, f"span {finding.claim_span} lies outside the claim")
        if finding.quote_span and (
            finding.passage_id is None or finding.quote_span[1] > len(texts[finding.passage_id])
        ):
            raise broken(role, name, f"span {finding.quote_span} lies outside its passage")
    return [finding.model_copy(update={"checker": name}) for finding in findings]


def check_judgement(
    result: object, claim: Claim, evidence: Evidence, judge: str, findings: tuple[Finding, ...]
) -> Judgement:
    """Return the judgement with the checkers' findings, or raise PluginContractError naming the rule it broke."""
    judgement = examined(result, Judgement, "judge", judge)
    if judgement.claim_id != claim.id:
        raise broken("judge", judge, f"it judged claim {judgement.claim_id} when asked for {claim.id}")
    texts = {passage.id: passage.text for passage in evidence.passages}
    named = [stance.passage_id for stance in judgement.stances]
    for passage_id in (*named, *(quote.passage_id for quote in judgement.quotes)):
        if passage_id not in texts:
            raise broken("judge", judge, f"passage {passage_id} was not shown to it")
    if len(set(named)) != len(named):
        raise broken("judge", judge, "it took two stances on one passage")
    for quote in judgement.quotes:
        if not quote.text.strip() or not quote.slices(texts[quote.passage_id]):
            raise broken("judge", judge, f"a quote is no literal slice of passage {quote.passage_id}")
    own = _resolved([f for f in judgement.findings if f not in findings], claim, evidence, "judge", judge)
    everything = (*findings, *own)
    _check_label(judgement, any(text.strip() for text in texts.values()), everything, judge)
    return judgement.model_copy(update={"judge": judge, "findings": everything})


def _check_label(judgement: Judgement, has_evidence: bool, findings: Sequence[Finding], judge: str) -> None:
    """Refuse a label that nothing bears out, so that an empty reply cannot pass for a finding."""
    kinds = {stance.stance for stance in judgement.stances}
    against = "contradicts" in kinds or any(finding.disagrees for finding in findings)
    if judgement.label in ("supported", "contradicted") and not has_evidence:
        raise broken("judge", judge, f"it called a claim {judgement.label} without any evidence")
    if judgement.label == "supported" and "supports" not in kinds:
        raise broken("judge", judge, "it called a claim supported, and no passage supports it")
    if judgement.label == "contradicted" and not against:
        raise broken("judge", judge, "it called a claim contradicted, and no passage or finding contradicts it")
    if judgement.label == "conflicting" and not {"supports", "contradicts"} <= kinds:
        raise broken("judge", judge, "conflicting needs a supporting and a contradicting passage")
