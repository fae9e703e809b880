"""Draw an estimate as text for people; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from factcheck.render import printable

if TYPE_CHECKING:
    from factcheck.estimate.report import Estimate, Figures, PriceUsed, Within

_WITHIN: Mapping[Within, str] = {
    "yes": "the estimate and the upper figure are within it",
    "estimate_only": "the estimate is within it, the upper figure is not",
    "no": "the estimate is beyond it",
    "not_known": "not known",
}


def as_text(estimate: Estimate) -> str:
    """Return the estimate for a terminal."""
    return "\n".join([*_head(estimate), "", *_table(estimate), "", *_notes(estimate)]) + "\n"


def _head(estimate: Estimate) -> Iterable[str]:
    sample = estimate.sample
    yield "Dry run: nothing was asked of a model or of the network, and nothing was written."
    if sample.unit == "answer":
        yield f"Estimate for the {sample.claims} claims of one answer."
    else:
        yield (
            f"Estimate for {sample.total} pairs, from {sample.taken} drawn with seed {sample.seed}, whose two texts have "
            f"{sample.claims} claims."
        )


def _table(estimate: Estimate) -> list[str]:
    if not estimate.stages:
        return ["No model would be called."]
    head = ("stage", "model", "calls", "tokens in", "tokens out", "dollars")
    rows = [(stage.stage.replace("_", " "), stage.model, *_cells(stage.expected)) for stage in estimate.stages]
    rows += [("in all", "", *_cells(estimate.expected)), ("upper figure", "", *_cells(estimate.upper))]
    table = [head, *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return ["  ".join(_aligned(row, widths)).rstrip() for row in table]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield cell.ljust(width) if column < 2 else cell.rjust(width)


def _cells(figures: Figures) -> tuple[str, str, str, str]:
    usd = "not known" if figures.usd is None else f"{figures.usd:.4f}"
    return f"{figures.calls:,}", f"{figures.tokens_in:,}", f"{figures.tokens_out:,}", usd


def _notes(estimate: Estimate) -> Iterable[str]:
    if estimate.searches:
        yield f"Searches: {', '.join(f'{printable(name)} {count:,}' for name, count in estimate.searches.items())}."
    for price in estimate.prices:
        yield _price_line(price)
    for bound in estimate.budget:
        words = "times are not estimated" if bound.name == "deadline" else _WITHIN[bound.within]
        if bound.name == "max_usd" and bound.within == "not_known":
            words = "a run would be refused, because a price is not known"
        yield f"Budget: --{bound.name.replace('_', '-')} {bound.bound:g}: {words}."
    if held := estimate.ledger:
        there = f"holds {held.claims} of the {held.distinct_claims} distinct claims looked at, which cost nothing"
        new = "does not exist yet, so that nothing is found in it"
        yield f"Ledger: {printable(held.path)} {there if held.exists else new}."
    if estimate.sample.open:
        count = len(estimate.sample.open)
        yield f"Warning: {count} claims are left out of the estimate; the first: {printable(estimate.sample.open[0])}"
    yield "Assumed:"
    yield from (f"- {line}" for line in estimate.assumed)


def _price_line(price: PriceUsed) -> str:
    name = printable(price.model)
    if price.tokens_in is None or price.tokens_out is None:
        return (
            f"Price: that of {name} is not known. Give it in the settings of the model as price = [1.0, 2.0] (dollars per "
            "million tokens in and out), or in a file with --prices."
        )
    origin = printable(", ".join(part for part in (price.date, price.source) if part))
    return f"Price: {name} {price.tokens_in:g} in, {price.tokens_out:g} out, dollars per million tokens ({origin})."
