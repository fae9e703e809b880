"""Stage 5: a pure decision from a judgement and its evidence, and the policies that flag a claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from factcheck.calibrate import Calibration
from factcheck.errors import UnknownNameError
from factcheck.schema import Claim, Evidence, Finding, Judgement, Label, Quote, Stance, Verdict

POLICIES = ("contradicted", "unsupported", "risk")
POLICY_FORMS = (*POLICIES, "risk>=T")
_RISK = re.compile(r"risk\s*>=\s*(\d*\.?\d+)", re.ASCII)


class Policy(NamedTuple):
    """Say which verdicts flag a claim; ``threshold`` is set for the risk policy alone."""

    name: str
    threshold: float = 1.0

    def flags(self, verdict: Verdict) -> bool:
        """Tell whether the verdict flags its claim; the states not_checkable and error never do."""
        if verdict.risk is None:
            return False
        if self.name == "contradicted":
            return verdict.label == "contradicted"
        if self.name == "unsupported":
            return verdict.label in ("contradicted", "not_enough_evidence")
        return verdict.risk >= self.threshold

    def __str__(self) -> str:
        return f"risk>={self.threshold:g}" if self.name == "risk" else self.name


def parse_policy(text: str, *, default_threshold: float) -> Policy:
    """Read ``contradicted``, ``unsupported``, ``risk`` (at the default threshold) or ``risk>=T`` with T in [0, 1].

    Raises UnknownNameError for anything else.
    """
    plain = text.strip()
    if plain == "risk":
        return Policy("risk", default_threshold)
    if plain in POLICIES:
        return Policy(plain)
    match = _RISK.fullmatch(plain)
    if match and float(match[1]) <= 1.0:
        return Policy("risk", float(match[1]))
    raise UnknownNameError("policy", text, POLICY_FORMS, hint="T is a number from 0 to 1.")


def decide(claim: Claim, evidence: Evidence, judgement: Judgement, calibration: Calibration) -> Verdict:
    """Decide one claim.

    A failed judgement is ``error``, and so is not_enough_evidence when a retrieval failed, because a dead service is no
    missing evidence. A hard finding against the claim that no checker takes back vetoes supported, whatever the judge.
    """
    if not claim.checkable:
        return Verdict(
            claim_id=claim.id, label="not_checkable", risk=None, reason=f"{claim.kind}, not a statement to check"
        )
    if judgement.label is None:
        return Verdict(claim_id=claim.id, label="error", risk=None, reason=judgement.reason)
    merged = merge(judgement.label, judgement.stances)
    # What a judge finds for its own label does not outweigh a checker.
    findings = [f for f in judgement.findings if f.checker != judgement.judge or f.disagrees]
    label = veto(merged, findings)
    vetoed_by = objection(findings) if label != merged else None
    if label == "not_enough_evidence" and not evidence.complete:
        reason = "a retrieval failed, so silence of the evidence means nothing"
        return Verdict(claim_id=claim.id, label="error", risk=None, reason=reason)
    for_claim, against = split_quotes(judgement)
    if vetoed_by is not None:
        against = (*against, *quoted(vetoed_by, evidence))
    return Verdict(
        claim_id=claim.id,
        label=label,
        risk=round(calibration.risk_of(label, judgement), 4),
        coverage=round(coverage(judgement), 4),
        supporting=for_claim,
        contradicting=against,
        reason=vetoed_by.reason if vetoed_by is not None and vetoed_by.reason else explain(label, judgement),
    )


def merge(label: Label, stances: Sequence[Stance]) -> Label:
    """Merge the stances of the passages: support in any suffices, support and contradiction together conflict."""
    kinds = {stance.stance for stance in stances}
    if label in ("supported", "contradicted") and {"supports", "contradicts"} <= kinds:
        return "conflicting"
    return label


def veto(label: Label, findings: Sequence[Finding]) -> Label:
    """Turn supported into contradicted where a hard finding disagrees and no passage agrees on the same value."""
    return "contradicted" if label == "supported" and objection(findings) is not None else label


def objection(findings: Sequence[Finding]) -> Finding | None:
    """Return the first hard finding that disagrees and that no agreeing one on the same value takes back."""
    agreed = {(finding.field, finding.claim_span) for finding in findings if finding.relation == "agrees"}
    for finding in findings:
        if finding.hard and finding.disagrees and (finding.field, finding.claim_span) not in agreed:
            return finding
    return None


def quoted(finding: Finding, evidence: Evidence) -> tuple[Quote, ...]:
    """Return the words of the evidence that a finding points to; none if it points to nothing."""
    passage = next((p for p in evidence.passages if p.id == finding.passage_id), None)
    if passage is None or finding.quote_span is None:
        return ()
    start, end = finding.quote_span
    return (Quote(passage_id=passage.id, start=start, end=end, text=passage.text[start:end]),)


def coverage(judgement: Judgement) -> float:
    """Return how far the evidence speaks of the claim, in [0, 1]: the judge's own figure, or its firmest stance."""
    if "coverage" in judgement.signals:
        return judgement.signals["coverage"]
    return max((stance.score for stance in judgement.stances if stance.stance != "silent"), default=0.0)


def split_quotes(judgement: Judgement) -> tuple[tuple[Quote, ...], tuple[Quote, ...]]:
    """Part the quotes by the stance of their passage; quotes of silent passages belong to neither side."""
    stances = {stance.passage_id: stance.stance for stance in judgement.stances}
    supporting = tuple(quote for quote in judgement.quotes if stances.get(quote.passage_id) == "supports")
    contradicting = tuple(quote for quote in judgement.quotes if stances.get(quote.passage_id) == "contradicts")
    return supporting, contradicting


def explain(label: Label, judgement: Judgement) -> str:
    """Say in one sentence why: the first disagreeing finding, else the judge's rationale."""
    if label in ("contradicted", "conflicting"):
        for finding in judgement.findings:
            if finding.disagrees and finding.reason:
                return finding.reason
    return judgement.rationale or label.replace("_", " ")
