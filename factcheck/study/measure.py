"""From the reports on a pair's two texts to its claims, and from these to the outcome of the pair under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from factcheck.schema import Accounting, AnswerReport, Claim, ClaimKind, Evidence, Model, Quote, Span, State, Verdict
from factcheck.study.edits import matched_claims, meets_error
from factcheck.study.pairs import Pair
from factcheck.verdicts import Policy

Side = Literal["original", "injected"]


class QuoteRow(Model):
    """Hold a quote with where it is from."""

    stance: Literal["supports", "contradicts"]
    passage_id: str
    title: str
    source: str
    text: str


class ClaimRow(Model):
    """Hold one claim of one text of a pair, as a line of claims.jsonl.

    ``in_edit`` tells, on the injected side, that the claim overlaps the injected error and, on the original side, that
    it is a matched claim. ``flagged`` is under the run's policy. ``risk`` is None for not_checkable and error.
    """

    pair: str
    side: Side
    claim: str
    key: str
    text: str
    span: Span
    kind: ClaimKind
    in_edit: bool
    label: State
    risk: float | None
    coverage: float
    flagged: bool
    reason: str
    quotes: tuple[QuoteRow, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return what a policy needs of the verdict."""
        return Verdict(claim_id=self.claim, label=self.label, risk=self.risk, coverage=self.coverage)


class Exhibit(Model):
    """Hold a claim at the edit with its evidence, which the controls judge again."""

    side: Side
    claim: Claim
    evidence: Evidence


class PairRecord(Model):
    """Hold all that the study keeps of a pair: the claims of both texts, in the order original, injected."""

    pair: str
    claims: tuple[ClaimRow, ...]
    exhibits: tuple[Exhibit, ...]
    accounting: Accounting
    warnings: int = 0


class Outcome(NamedTuple):
    """Hold the outcome of a pair under a policy; a risk is the highest at the edit, 0 where there is none."""

    pair: str
    cluster: str
    error_type: str
    identified: bool
    recovered: bool
    matched_flagged: bool
    risk_injected: float
    risk_original: float
    claims_original: int
    claims_injected: int
    checkable_original: int
    flagged_original: int
    flagged_injected: int
    longer: float


def record_pair(pair: Pair, original: AnswerReport, injected: AnswerReport, policy: Policy) -> PairRecord:
    """Return the record of a pair from the reports on its two texts."""
    error = pair.error_spans
    at_edit: dict[Side, set[str]] = {
        "original": matched_claims(pair.original, original.claims, [edit.original for edit in pair.edits]),
        "injected": {claim.id for claim in injected.claims if any(meets_error(claim, span) for span in error)},
    }
    reports: dict[Side, AnswerReport] = {"original": original, "injected": injected}
    rows: list[ClaimRow] = []
    exhibits: list[Exhibit] = []
    for side, report in reports.items():
        evidence = {item.claim_id: item for item in report.evidence}
        for claim, verdict in zip(report.claims, report.verdicts, strict=True):
            shown = evidence.get(claim.id, Evidence(claim_id=claim.id))
            in_edit = claim.id in at_edit[side]
            rows.append(_row(pair.id, side, claim, verdict, shown, in_edit=in_edit, policy=policy))
            if in_edit and claim.checkable:
                exhibits.append(Exhibit(side=side, claim=claim, evidence=shown))
    return PairRecord(
        pair=pair.id,
        claims=tuple(rows),
        exhibits=tuple(exhibits),
        accounting=original.accounting + injected.accounting,
        warnings=len(original.warnings) + len(injected.warnings),
    )


def outcome_of(pair: Pair, record: PairRecord | None, policy: Policy) -> Outcome:
    """Return the outcome of a pair; without a record (it could not be checked) nothing was found on either side."""
    rows = record.claims if record else ()
    verdicts: dict[Side, list[tuple[bool, Verdict]]] = {"original": [], "injected": []}
    for row in rows:
        verdicts[row.side].append((row.in_edit, row.verdict))
    edit = [verdict for in_edit, verdict in verdicts["injected"] if in_edit]
    matched = [verdict for in_edit, verdict in verdicts["original"] if in_edit]
    originals = [verdict for _, verdict in verdicts["original"]]
    return Outcome(
        pair=pair.id,
        cluster=pair.cluster,
        error_type=pair.error_type,
        identified=bool(edit),
        recovered=any_flagged(edit, policy),
        matched_flagged=any_flagged(matched, policy),
        risk_injected=highest_risk(edit),
        risk_original=highest_risk(matched),
        claims_original=len(originals),
        claims_injected=len(verdicts["injected"]),
        checkable_original=sum(verdict.label != "not_checkable" for verdict in originals),
        flagged_original=_count_flagged(originals, policy),
        flagged_injected=_count_flagged([verdict for _, verdict in verdicts["injected"]], policy),
        longer=_longer(pair),
    )


def any_flagged(verdicts: Iterable[Verdict], policy: Policy) -> bool:
    """Tell whether the policy flags any of the verdicts."""
    return any(policy.flags(verdict) for verdict in verdicts)


def highest_risk(verdicts: Iterable[Verdict]) -> float:
    """Return the highest risk, 0 where no verdict has one."""
    return max((verdict.risk for verdict in verdicts if verdict.risk is not None), default=0.0)


def _count_flagged(verdicts: Sequence[Verdict], policy: Policy) -> int:
    return sum(policy.flags(verdict) for verdict in verdicts)


def _longer(pair: Pair) -> float:
    """Return the outcome of taking the longer text for the correct one."""
    difference = len(pair.original) - len(pair.injected)
    return 1.0 if difference > 0 else 0.5 if difference == 0 else 0.0


def _row(
    pair_id: str, side: Side, claim: Claim, verdict: Verdict, evidence: Evidence, *, in_edit: bool, policy: Policy
) -> ClaimRow:
    passages = {passage.id: passage for passage in evidence.passages}

    def quotes(stance: Literal["supports", "contradicts"], found: Sequence[Quote]) -> list[QuoteRow]:
        return [
            QuoteRow(
                stance=stance,
                passage_id=quote.passage_id,
                title=passages[quote.passage_id].title,
                source=passages[quote.passage_id].source,
                text=quote.text,
            )
            for quote in found
        ]

    return ClaimRow(
        pair=pair_id,
        side=side,
        claim=claim.id,
        key=claim.key,
        text=claim.text,
        span=claim.span,
        kind=claim.kind,
        in_edit=in_edit,
        label=verdict.label,
        risk=verdict.risk,
        coverage=verdict.coverage,
        flagged=policy.flags(verdict),
        reason=verdict.reason,
        quotes=(*quotes("contradicts", verdict.contradicting), *quotes("supports", verdict.supporting)),
    )
