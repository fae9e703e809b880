"""The report of a study: what report.json holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from factcheck.llm.budget import StageUsage
from factcheck.schema import Accounting, Manifest, Model
from factcheck.spending import Spent
from factcheck.study import statistics
from factcheck.study.pairs import Skipped


class Rate(Model):
    """Hold a proportion with Wilson's 95 % interval; ``rate`` and ``ci`` are None for ``n`` = 0."""

    k: int
    n: int
    rate: float | None
    ci: tuple[float, float] | None

    @classmethod
    def of(cls, k: int, n: int) -> Rate:
        """Make the rate ``k`` of ``n``."""
        return cls(k=k, n=n, rate=k / n if n else None, ci=statistics.wilson(k, n))


class Estimate(Model):
    """Hold an estimate with its cluster-bootstrap 95 % interval, which is None with fewer than two questions."""

    value: float | None
    ci: tuple[float, float] | None


class MeanSd(Model):
    """Hold a mean and a sample standard deviation."""

    mean: float | None
    sd: float | None


class Stratum(Model):
    """Hold the figures of a set of pairs under one policy; docs/study.md says what each means."""

    n_pairs: int
    identified: Rate
    flagged_given_identified: Rate
    recovered: Rate
    false_positive_matched: Rate
    false_positive_answer: Rate
    false_positive_claim: Rate
    claims_per_answer: MeanSd
    risk_auroc: Estimate
    risk_auroc_pooled: Estimate
    risk_auroc_per_question: Estimate
    criterion_auroc: Estimate


class Comparison(Model):
    """Hold how often the correct text is scored above, equal to and below the other, and the paired AUROC."""

    win: int
    tie: int
    loss: int
    auroc: float | None
    ci: tuple[float, float] | None
    auroc_per_question: float | None


class RubricEffect(Model):
    """Hold the comparison before and after a fact-check criterion is added that decides ties of the rubric.

    ``recovered``: ties turned into wins, of all ties; ``broken``: pairs that fare worse, of all pairs with scores.
    """

    before: Comparison
    after: Comparison
    delta: Estimate
    recovered: Rate
    broken: Rate
    ties_at_zero: int


class OperatingPoint(Model):
    """Hold what a threshold on risk gives at a limit on matched-claim false positives; None if none recovers a pair."""

    max_false_positive_rate: float
    threshold: float | None
    recovered: Rate
    false_positive_matched: Rate


class OperatingPoints(Model):
    """Hold operating points whose thresholds were chosen on the very pairs that they are measured on."""

    thresholds_chosen_on: Literal["these pairs"] = "these pairs"
    points: tuple[OperatingPoint, ...]


class Control(Model):
    """Hold the figures of a control; all None where it could not be run."""

    recovered: Rate | None
    false_positive_matched: Rate | None
    risk_auroc: Estimate | None
    errors: int = 0


class Controls(Model):
    """Hold the controls: what is reached without reading the right evidence."""

    length_only_auroc: float | None
    shuffled_evidence: Control
    no_evidence: Control


class Cost(Model):
    """Hold what the run cost; None where a component does not tell it, or a model's price is not known.

    ``failed_calls`` are among ``model_calls``. ``stages`` splits the model calls up. ``seconds`` is wall time.
    """

    model_calls: int | None
    failed_calls: int | None
    tokens_in: int | None
    tokens_out: int | None
    usd: float | None
    http_requests: int | None
    seconds: float
    stages: Mapping[str, StageUsage] = {}

    @classmethod
    def of(cls, spent: Spent) -> Cost:
        """Return the cost of what was spent."""
        total, told = spent.total, not spent.uncounted
        return cls(
            model_calls=total.calls if told else None,
            failed_calls=total.failed if told else None,
            tokens_in=total.tokens_in if told else None,
            tokens_out=total.tokens_out if told else None,
            usd=total.usd if told else None,
            http_requests=spent.requests,
            seconds=spent.seconds,
            stages=spent.stages,
        )


class PairError(Model):
    """Hold a pair that could not be checked, which counts as nothing found on either side."""

    pair: str
    error: str


class Input(Model):
    """Hold what was read and how the study was set."""

    name: str
    sha256: str
    n_read: int
    n_tied: int
    assume_tied: bool
    skipped: tuple[Skipped, ...]
    spans: Mapping[str, int]
    differ_outside_spans: tuple[str, ...]
    resamples: int


class StudyReport(Model):
    """Hold a study, as written to report.json."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["factcheck.study/1"] = Field(default="factcheck.study/1", alias="schema")
    policy: str
    n_pairs: int
    n_questions: int
    overall: Stratum
    by_error_type: Mapping[str, Stratum]
    policies: Mapping[str, Stratum]
    risk_threshold: float
    operating_points: OperatingPoints
    rubric: RubricEffect | None
    controls: Controls
    accounting: Accounting
    cost: Cost
    input: Input
    errors: tuple[PairError, ...] = ()
    warnings: tuple[str, ...] = ()
    manifest: Manifest

    def to_json(self) -> str:
        """Return the report as indented JSON."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"
