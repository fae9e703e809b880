"""The estimate of what a run would use: what ``--dry-run`` prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from factcheck.config import Settings
from factcheck.estimate.rehearsal import CLAIMS_A_SENTENCE, PASSAGE_LENGTH, Line, Load, Rehearsal, Work
from factcheck.schema import AnswerReport, Model

ORDER = ("decomposer", "query_writer", "search", "judge")
Within = Literal["yes", "estimate_only", "no", "not_known"]


class Figures(Model):
    """Hold calls, tokens and US dollars; dollars are None where the price of a model is not known."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0

    @property
    def tokens(self) -> int:
        """Return the tokens in and out together."""
        return self.tokens_in + self.tokens_out

    def plus(self, other: Figures) -> Figures:
        """Return both together."""
        return Figures(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            usd=None if self.usd is None or other.usd is None else round(self.usd + other.usd, 9),
        )


class StageFigures(Model):
    """Hold the figures of the calls that a stage makes to a model."""

    stage: str
    model: str
    expected: Figures
    upper: Figures


class PriceUsed(Model):
    """Hold a price in US dollars per million tokens, None if it is not known, with its date and source."""

    model: str
    tokens_in: float | None
    tokens_out: float | None
    date: str = ""
    source: str = ""


class Sample(Model):
    """Hold what was looked at: ``scale`` is what the work for it was multiplied by."""

    unit: Literal["answer", "pair"]
    taken: int
    total: int
    scale: float
    seed: int
    claims: int
    open: tuple[str, ...] = ()


class Held(Model):
    """Hold what of the sample the ledger holds already, ``claims`` of ``distinct_claims``; it costs nothing."""

    path: str
    exists: bool
    answers: int
    claims: int
    distinct_claims: int
    replies: int
    searches: int


class Bound(Model):
    """Hold a bound of the run's budget and whether the run is expected to stay within it."""

    name: str
    bound: float
    within: Within


class Estimate(Model):
    """Hold what a run is expected to use; ``upper`` is for the case that every reply has to be asked for twice."""

    sample: Sample
    stages: tuple[StageFigures, ...]
    expected: Figures
    upper: Figures
    searches: Mapping[str, int]
    prices: tuple[PriceUsed, ...]
    ledger: Held | None
    budget: tuple[Bound, ...]
    assumed: tuple[str, ...]


class Seen(NamedTuple):
    """Hold the work for a whole run, and how it was found."""

    work: Work
    reports: Sequence[AnswerReport]
    unit: Literal["answer", "pair"]
    taken: int
    total: int
    scale: float


def make_estimate(rehearsal: Rehearsal, seen: Seen) -> Estimate:
    """Return the estimate for what was seen."""
    lines = sorted(seen.work.loads.items(), key=lambda item: (_place(item[0].stage), item[0][:2]))
    stages = [
        StageFigures(
            stage=line.stage, model=line.model, expected=_figures(line, load), upper=_figures(line, load.twice)
        )
        for line, load in lines
    ]
    expected, upper = Figures(), Figures()
    for stage in stages:
        expected, upper = expected.plus(stage.expected), upper.plus(stage.upper)
    verdicts = [verdict for report in seen.reports for verdict in report.verdicts]
    claims = [claim for report in seen.reports for claim in report.claims]
    return Estimate(
        sample=Sample(
            unit=seen.unit,
            taken=seen.taken,
            total=seen.total,
            scale=round(seen.scale, 4),
            seed=rehearsal.wanted.seed,
            claims=len(claims),
            open=tuple(f"{item.claim_id}: {item.reason}" for item in verdicts if item.label == "error"),
        ),
        stages=tuple(stages),
        expected=expected,
        upper=upper,
        searches={name: _up(count) for name, count in sorted(seen.work.searches.items())},
        prices=tuple({line.model: _price(line) for line, _ in lines}.values()),
        ledger=_held(rehearsal, len({claim.key for claim in claims if claim.checkable})),
        budget=tuple(_bounds(rehearsal.wanted, expected, upper)),
        assumed=tuple(_assumptions(rehearsal, seen)),
    )


def _held(rehearsal: Rehearsal, distinct_claims: int) -> Held | None:
    held = rehearsal.held
    if held is None:
        return None
    return Held(
        path=str(held.path),
        exists=held.there,
        answers=held.found["decompose"],
        claims=held.found["claim"],
        distinct_claims=distinct_claims,
        replies=held.found["structured"],
        searches=held.found["retrieval"],
    )


def _bounds(settings: Settings, expected: Figures, upper: Figures) -> Iterable[Bound]:
    reckoned: dict[str, tuple[float | None, float | None, float | None]] = {
        "max_usd": (settings.max_usd, expected.usd, upper.usd),
        "max_calls": (settings.max_calls, expected.calls, upper.calls),
        "max_tokens": (settings.max_tokens, expected.tokens, upper.tokens),
        "deadline": (settings.deadline, None, None),
    }
    for name, (bound, low, high) in reckoned.items():
        if bound is not None:
            yield Bound(name=name, bound=bound, within=_within(bound, low, high))


def _figures(line: Line, load: Load) -> Figures:
    calls, tokens_in, tokens_out = _up(load.calls), _up(load.tokens_in), _up(load.tokens_out)
    usd = None if line.price is None else round(line.price.cost(tokens_in, tokens_out), 9)
    return Figures(calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, usd=usd)


def _place(stage: str) -> int:
    return ORDER.index(stage) if stage in ORDER else len(ORDER)


def _up(value: float) -> int:
    # Products of factors may lie a hair above a whole number.
    return math.ceil(round(value, 6))


def _price(line: Line) -> PriceUsed:
    known = line.price or (None, None)
    return PriceUsed(model=line.model, tokens_in=known[0], tokens_out=known[1], date=line.date, source=line.source)


def _within(bound: float, expected: float | None, upper: float | None) -> Within:
    if expected is None or upper is None:
        return "not_known"
    return "yes" if upper <= bound else "estimate_only" if expected <= bound else "no"


def _assumptions(rehearsal: Rehearsal, seen: Seen) -> Iterable[str]:
    stages = {line.stage for line in seen.work.loads}
    yield "A token is four letters, outside ASCII one and a half; a tokenizer may count a quarter more or less."
    if stages:
        yield (
            "Replies have a usual length: the judge quotes one passage and gives its reason in a sentence. What a model "
            "thinks before it replies is not counted."
        )
        yield "The upper figure asks for every reply twice. Requests that fail are not charged and not counted."
    if seen.work.splits:
        yield (
            f"A model makes {CLAIMS_A_SENTENCE} claims of a sentence: 31.9 an answer of HealthBench by GPT-4.1 (When Rubrics "
            "Fail, Table 6) over 19.0 by rules (384 other answers of HealthBench)."
        )
    if seen.work.searches:
        yield (
            f"A search over the network brings as many passages as it may, up to {rehearsal.wanted.k}, of {PASSAGE_LENGTH} "
            "code points; its own price is not counted."
        )
    if "search" in stages:
        yield "A judge that searches takes all of its steps, and each brings something new."
    if seen.taken < seen.total:
        yield (
            f"The sample stands for all pairs by the code points of their distinct sentences (times {seen.scale:.4g}), and for "
            "the controls by the number of tied pairs."
        )
