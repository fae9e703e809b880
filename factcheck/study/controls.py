"""Controls: the claims at the edit judged again, without evidence and with the evidence of another question.

A method that recovers errors as often without the right evidence as with it reads something else than the evidence.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from factcheck.errors import StageError
from factcheck.schema import Claim, Evidence, Judgement, Model, Verdict
from factcheck.study.measure import Exhibit, PairRecord, Side, any_flagged, highest_risk
from factcheck.verdicts import Policy

ControlName = Literal["no_evidence", "shuffled_evidence"]


class Judging(Protocol):
    """Judge claims on evidence that is given."""

    async def ajudge(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[list[Judgement], list[Verdict]]:
        """Return judgements and verdicts in the order of the claims."""


class ControlRecord(Model):
    """Hold the outcome of a control for a pair; ``donor`` is the pair that lent the evidence, empty for none."""

    control: ControlName
    pair: str
    donor: str = ""
    recovered: bool = False
    matched_flagged: bool = False
    risk_injected: float = 0.0
    risk_original: float = 0.0
    error: str = ""


def donors(clusters: Mapping[str, str], seed: int) -> dict[str, str]:
    """Return for each pair (pair id: question) another pair, of another question, that lends its evidence.

    Each pair lends once, unless one question has more than half of the pairs. Empty with fewer than two questions. The
    order of the pairs does not matter.
    """
    groups: dict[str, list[str]] = {}
    for pair in sorted(clusters):
        groups.setdefault(clusters[pair], []).append(pair)
    if len(groups) < 2:
        return {}
    generator = random.Random(seed)
    names = sorted(groups)
    generator.shuffle(names)
    for name in names:
        generator.shuffle(groups[name])
    ring = [pair for name in names for pair in groups[name]]
    # A step as long as the largest group leaves every group, as long as it does not come round to the same group again.
    step = max(len(group) for group in groups.values())
    if 2 * step <= len(ring):
        return {pair: ring[(index + step) % len(ring)] for index, pair in enumerate(ring)}
    return {pair: generator.choice([other for other in ring if clusters[other] != clusters[pair]]) for pair in ring}


async def run_control(
    checker: Judging, record: PairRecord, control: ControlName, policy: Policy, *, donor: PairRecord | None = None
) -> ControlRecord:
    """Judge the claims at the edit of both texts again and return what comes of it."""
    verdicts: dict[Side, list[Verdict]] = {"original": [], "injected": []}
    error = ""
    for side, found in verdicts.items():
        exhibits = [exhibit for exhibit in record.exhibits if exhibit.side == side]
        if not exhibits:
            continue
        evidence = _evidence(exhibits, side, donor)
        try:
            _, judged = await checker.ajudge([exhibit.claim for exhibit in exhibits], evidence)
        except StageError as caught:
            error = str(caught)
            continue
        found.extend(judged)
        error = next((verdict.reason for verdict in judged if verdict.label == "error"), error)
    return ControlRecord(
        control=control,
        pair=record.pair,
        donor=donor.pair if donor else "",
        recovered=any_flagged(verdicts["injected"], policy),
        matched_flagged=any_flagged(verdicts["original"], policy),
        risk_injected=highest_risk(verdicts["injected"]),
        risk_original=highest_risk(verdicts["original"]),
        error=error,
    )


def _evidence(exhibits: Sequence[Exhibit], side: Side, donor: PairRecord | None) -> list[Evidence]:
    if donor is None:
        return [Evidence(claim_id=exhibit.claim.id) for exhibit in exhibits]
    pool = [exhibit for exhibit in donor.exhibits if exhibit.side == side] or list(donor.exhibits)
    return [
        pool[index % len(pool)].evidence.model_copy(update={"claim_id": exhibit.claim.id})
        for index, exhibit in enumerate(exhibits)
    ]
