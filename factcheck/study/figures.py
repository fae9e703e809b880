"""How the figures of a report are computed from the outcomes of the pairs, whose order does not matter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from factcheck.schema import Accounting, Manifest
from factcheck.spending import Spent
from factcheck.study import statistics as stats
from factcheck.study.controls import ControlName, ControlRecord
from factcheck.study.measure import Outcome, PairRecord, outcome_of
from factcheck.study.pairs import Pair, PairFile
from factcheck.study.report import (
    Comparison,
    Control,
    Controls,
    Cost,
    Estimate,
    Input,
    MeanSd,
    OperatingPoint,
    OperatingPoints,
    PairError,
    Rate,
    RubricEffect,
    Stratum,
    StudyReport,
)
from factcheck.study.statistics import Sampling
from factcheck.verdicts import POLICIES, Policy, parse_policy

FALSE_POSITIVE_LIMITS = (0.05, 0.10, 0.20)
FEW_PAIRS = 30


def build_report(
    file: PairFile,
    records: Mapping[str, PairRecord],
    *,
    tied: Sequence[Pair],
    errors: Sequence[PairError],
    controls: Mapping[ControlName, Sequence[ControlRecord]],
    manifest: Manifest,
    policy: Policy,
    risk_threshold: float,
    fitted_on_these: bool,
    resamples: int,
    assume_tied: bool,
    spent: Spent,
) -> StudyReport:
    """Return the report on the ``tied`` pairs of ``file``; pairs without a record count as nothing found."""
    sampling = Sampling(resamples, manifest.seed)

    def outcomes(pairs: Sequence[Pair], flagging: Policy) -> list[Outcome]:
        return [outcome_of(pair, records.get(pair.id), flagging) for pair in pairs]

    chosen = outcomes(tied, policy)
    each = {name: parse_policy(name, default_threshold=risk_threshold) for name in POLICIES}
    types = sorted({outcome.error_type for outcome in chosen}, key=natural_order)
    scored = [pair for pair in file.pairs if pair.scores is not None]
    kept = [records[pair.id] for pair in file.pairs if pair.id in records]
    return StudyReport(
        policy=str(policy),
        n_pairs=len(tied),
        n_questions=len({pair.cluster for pair in tied}),
        overall=stratum_of(chosen, sampling),
        by_error_type={
            name: stratum_of([outcome for outcome in chosen if outcome.error_type == name], sampling) for name in types
        },
        policies={name: stratum_of(outcomes(tied, flagging), sampling) for name, flagging in each.items()},
        risk_threshold=risk_threshold,
        operating_points=OperatingPoints(
            points=tuple(operating_point(chosen, limit) for limit in FALSE_POSITIVE_LIMITS)
        ),
        rubric=rubric_effect(scored, outcomes(scored, policy), sampling),
        controls=Controls(
            length_only_auroc=stats.mean([outcome.longer for outcome in chosen]),
            shuffled_evidence=control_of(chosen, controls.get("shuffled_evidence"), sampling),
            no_evidence=control_of(chosen, controls.get("no_evidence"), sampling),
        ),
        accounting=sum((record.accounting for record in kept), Accounting()),
        cost=Cost.of(spent),
        input=Input(
            name=file.name,
            sha256=file.sha256,
            n_read=len(file.pairs),
            n_tied=len(tied),
            assume_tied=assume_tied,
            skipped=file.skipped,
            spans=dict(sorted(Counter(pair.spans_from for pair in file.pairs).items())),
            differ_outside_spans=tuple(pair.id for pair in file.pairs if not pair.exact),
            resamples=resamples,
        ),
        errors=tuple(errors),
        warnings=tuple(_warnings(file, tied, errors, controls, kept, fitted_on_these)),
        manifest=manifest,
    )


def stratum_of(outcomes: Sequence[Outcome], sampling: Sampling) -> Stratum:
    """Return the figures of the outcomes, all under the policy that they were made with."""
    clusters = [outcome.cluster for outcome in outcomes]
    injected = [outcome.risk_injected for outcome in outcomes]
    original = [outcome.risk_original for outcome in outcomes]
    paired = [stats.compare(risk, other) for risk, other in zip(injected, original, strict=True)]
    criterion = [stats.compare(outcome.recovered, outcome.matched_flagged) for outcome in outcomes]
    n = len(outcomes)
    identified = sum(outcome.identified for outcome in outcomes)
    recovered = sum(outcome.recovered for outcome in outcomes)
    sizes = [float(size) for outcome in outcomes for size in (outcome.claims_original, outcome.claims_injected)]
    return Stratum(
        n_pairs=n,
        identified=Rate.of(identified, n),
        flagged_given_identified=Rate.of(recovered, identified),
        recovered=Rate.of(recovered, n),
        false_positive_matched=Rate.of(sum(outcome.matched_flagged for outcome in outcomes), n),
        false_positive_answer=Rate.of(sum(outcome.flagged_original > 0 for outcome in outcomes), n),
        false_positive_claim=Rate.of(
            sum(outcome.flagged_original for outcome in outcomes),
            sum(outcome.checkable_original for outcome in outcomes),
        ),
        claims_per_answer=MeanSd(mean=stats.mean(sizes), sd=stats.deviation(sizes)),
        risk_auroc=Estimate(value=stats.mean(paired), ci=stats.bootstrap_mean_interval(paired, clusters, sampling)),
        risk_auroc_pooled=Estimate(
            value=stats.mann_whitney(injected, original),
            ci=stats.bootstrap_mann_whitney_interval(injected, original, clusters, sampling),
        ),
        risk_auroc_per_question=Estimate(
            value=stats.mean_of_clusters(paired, clusters),
            ci=stats.bootstrap_mean_interval(paired, clusters, sampling, by_cluster=True),
        ),
        criterion_auroc=Estimate(
            value=stats.mean(criterion), ci=stats.bootstrap_mean_interval(criterion, clusters, sampling)
        ),
    )


def operating_point(outcomes: Sequence[Outcome], limit: float) -> OperatingPoint:
    """Return the lowest threshold on risk at which at most ``limit`` of the matched originals are flagged.

    The candidates are the risks of the injected side, so that the threshold is one that recovers a pair.
    """
    n = len(outcomes)
    for threshold in sorted({outcome.risk_injected for outcome in outcomes if outcome.risk_injected > 0}):
        wrong = sum(outcome.risk_original >= threshold for outcome in outcomes)
        if wrong <= limit * n:
            found = sum(outcome.risk_injected >= threshold for outcome in outcomes)
            return OperatingPoint(
                max_false_positive_rate=limit,
                threshold=threshold,
                recovered=Rate.of(found, n),
                false_positive_matched=Rate.of(wrong, n),
            )
    nothing = Rate.of(0, n)
    return OperatingPoint(
        max_false_positive_rate=limit, threshold=None, recovered=nothing, false_positive_matched=nothing
    )


def rubric_effect(pairs: Sequence[Pair], outcomes: Sequence[Outcome], sampling: Sampling) -> RubricEffect | None:
    """Return what a criterion does that prefers, where the rubric ties, the text with fewer flagged claims.

    None without pairs that have scores.
    """
    if not pairs:
        return None
    clusters = [pair.cluster for pair in pairs]
    before = [stats.compare(pair.scores.original, pair.scores.injected) for pair in pairs if pair.scores]
    fewer = [stats.compare(outcome.flagged_injected, outcome.flagged_original) for outcome in outcomes]
    after = [better if old == 0.5 else old for old, better in zip(before, fewer, strict=True)]
    change = [new - old for old, new in zip(before, after, strict=True)]
    drawn = stats.bootstrap_means([before, after, change], clusters, sampling)
    intervals = [stats.percentiles(column) for column in drawn] if drawn else [None, None, None]

    def comparison(values: list[float], interval: stats.Interval | None) -> Comparison:
        counts = Counter(values)
        return Comparison(
            win=counts[1.0],
            tie=counts[0.5],
            loss=counts[0.0],
            auroc=stats.mean(values),
            ci=interval,
            auroc_per_question=stats.mean_of_clusters(values, clusters),
        )

    return RubricEffect(
        before=comparison(before, intervals[0]),
        after=comparison(after, intervals[1]),
        delta=Estimate(value=stats.mean(change), ci=intervals[2]),
        recovered=Rate.of(sum(step > 0 for step in change), before.count(0.5)),
        broken=Rate.of(sum(step < 0 for step in change), len(pairs)),
        ties_at_zero=sum(pair.scores == (0, 0) for pair in pairs),
    )


def control_of(outcomes: Sequence[Outcome], records: Sequence[ControlRecord] | None, sampling: Sampling) -> Control:
    """Return the figures of a control over all pairs; a pair without claims at the edit counts as nothing found."""
    if records is None or not outcomes:
        return Control(recovered=None, false_positive_matched=None, risk_auroc=None)
    n = len(outcomes)
    found = {record.pair: record for record in records}
    paired = [
        stats.compare(found[outcome.pair].risk_injected, found[outcome.pair].risk_original)
        if outcome.pair in found
        else 0.5
        for outcome in outcomes
    ]
    clusters = [outcome.cluster for outcome in outcomes]
    return Control(
        recovered=Rate.of(sum(record.recovered for record in records), n),
        false_positive_matched=Rate.of(sum(record.matched_flagged for record in records), n),
        risk_auroc=Estimate(
            value=stats.mean(paired),
            ci=stats.bootstrap_mean_interval(paired, clusters, sampling),
        ),
        errors=sum(bool(record.error) for record in records),
    )


def natural_order(name: str) -> list[tuple[int, str]]:
    """Sort names with numbers in them by the numbers: F2 before F10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def _warnings(
    file: PairFile,
    tied: Sequence[Pair],
    errors: Sequence[PairError],
    controls: Mapping[ControlName, Sequence[ControlRecord]],
    records: Sequence[PairRecord],
    fitted_on_these: bool,
) -> list[str]:
    found = []
    if fitted_on_these:
        found.append("The judge's parameters were fitted on these very pairs: development figures, flattering to it.")
    if len(tied) < FEW_PAIRS:
        found.append(
            f"Only {len(tied)} tied pairs, fewer than {FEW_PAIRS}: every figure is uncertain; read the intervals."
        )
    if file.skipped:
        found.append(f"{len(file.skipped)} lines of the pairs could not be used and were skipped.")
    if errors:
        found.append(f"{len(errors)} pairs could not be checked; they count as nothing found on either side.")
    undecided = sum(record.accounting.error for record in records)
    if undecided:
        found.append(f"{undecided} claims ended in an error and count as not flagged; run again with --resume.")
    inexact = sum(not pair.exact for pair in file.pairs)
    if inexact:
        found.append(f"{inexact} pairs differ outside their spans too; spans count Unicode code points.")
    failed = sum(bool(record.error) for group in controls.values() for record in group)
    if failed:
        found.append(f"{failed} judgements of the controls failed and count as nothing flagged.")
    warned = sum(record.warnings > 0 for record in records)
    if warned:
        found.append(f"The checks of {warned} pairs gave warnings; `factcheck check` on an answer shows them.")
    return found
