"""Draw an answer's report as text for people or as Markdown; pure, and safe against what the texts contain."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from factcheck.schema import STATES, AnswerReport, Claim, Passage, Quote, Verdict
from factcheck.verdicts import Policy

if TYPE_CHECKING:
    from factcheck.llm.budget import StageUsage

NOTICE = "This is an evaluation aid, not medical advice."
_MARKS = {
    "supported": "+",
    "contradicted": "x",
    "conflicting": "~",
    "not_enough_evidence": "?",
    "not_checkable": "-",
    "error": "!",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~$])")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn")


def printable(text: str) -> str:
    """Return text on one line with control and bidirectional characters made visible, so that it cannot command a terminal.

    White space of every kind, line ends included, becomes a single space.
    """
    folded = " ".join(text.split())
    return "".join(f"\\u{ord(char):04x}" if unicodedata.category(char) in _HIDDEN else char for char in folded)


def escape_markdown(text: str) -> str:
    """Return printable text without markup in Markdown, HTML or a table cell; a bare address may still become a link."""
    return _MARKDOWN.sub(r"\\\1", printable(text)).replace("&", "&amp;").replace("\\<", "&lt;").replace("\\>", "&gt;")


def summary(report: AnswerReport, policy: Policy) -> str:
    """Return one line: how many claims are in which state, and how many are flagged."""
    counts = report.accounting
    if counts.extracted == 0:
        return "0 claims: the answer holds nothing that could be checked."
    states = [f"{getattr(counts, s)} {s.replace('_', ' ')}" for s in STATES if getattr(counts, s)]
    flagged = sum(policy.flags(verdict) for verdict in report.verdicts)
    plural = "claim" if counts.extracted == 1 else "claims"
    return f"{counts.extracted} {plural}: {', '.join(states)}; {flagged} flagged ({policy})."


def cost_line(stages: Mapping[str, StageUsage], requests: int | None) -> str:
    """Return one line on what model calls and retrievers cost, "" if there were none."""
    parts = []
    for stage, usage in sorted(stages.items()):
        failed = f" ({usage.failed} failed)" if usage.failed else ""
        about = "about " if usage.estimated else ""
        price = "price not known" if usage.usd is None else f"{usage.usd:.4f} dollars"
        parts.append(
            f"{stage.replace('_', ' ')} {usage.calls} calls{failed}, {about}{usage.tokens_in} tokens in, "
            f"{usage.tokens_out} out, {price}"
        )
    if requests:
        parts.append(f"{requests} HTTP requests in all")
    return f"Cost: {'; '.join(parts)}." if parts else ""


def as_text(report: AnswerReport, policy: Policy, cost: str = "") -> str:
    """Return the report for a terminal: a line a claim with state, risk and span, then reason, quotes and sources.

    ``cost`` is a line on what it cost.
    """
    lines = [summary(report, policy), ""]
    for claim, verdict, passages in _rows(report):
        risk = "" if verdict.risk is None else f"  risk {verdict.risk:.2f}"
        flag = "  FLAGGED" if policy.flags(verdict) else ""
        start, end = claim.span
        lines.append(f"{_MARKS[verdict.label]} {verdict.label.replace('_', ' ')}{risk}{flag}  [{start}:{end}]")
        lines.append(f"    {printable(claim.text)}")
        if verdict.reason and verdict.label not in ("supported", "not_checkable"):
            lines.append(f"    because {printable(verdict.reason)}")
        for sign, quote in _quotes(verdict):
            passage = passages[quote.passage_id]
            lines.append(f"    {sign} “{printable(quote.text)}”")
            lines.append(f"      {_origin(passage)}")
    lines += [f"warning: {printable(warning)}" for warning in report.warnings]
    lines += ["", *([cost] if cost else []), NOTICE]
    return "\n".join(lines) + "\n"


def as_markdown(report: AnswerReport, policy: Policy, cost: str = "") -> str:
    """Return the report as Markdown with everything from outside escaped; ``cost`` is a line on what it cost."""
    lines = ["# Fact check", "", escape_markdown(summary(report, policy)), ""]
    lines += ["| verdict | risk | claim | reason | source |", "|---|---|---|---|---|"]
    for claim, verdict, passages in _rows(report):
        risk = "" if verdict.risk is None else f"{verdict.risk:.2f}"
        label = verdict.label.replace("_", " ")
        label = f"**{label}**" if policy.flags(verdict) else label
        sources = "<br>".join(
            f"{sign} “{escape_markdown(quote.text)}”, {escape_markdown(_origin(passages[quote.passage_id]))}"
            for sign, quote in _quotes(verdict)
        )
        cells = (label, risk, escape_markdown(claim.text), escape_markdown(verdict.reason), sources)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"\n- warning: {escape_markdown(warning)}" for warning in report.warnings]
    lines += ["", *([cost, ""] if cost else []), NOTICE]
    return "\n".join(lines) + "\n"


def _rows(report: AnswerReport) -> Iterable[tuple[Claim, Verdict, dict[str, Passage]]]:
    shown = {item.claim_id: {passage.id: passage for passage in item.passages} for item in report.evidence}
    for claim, verdict in zip(report.claims, report.verdicts, strict=True):
        yield claim, verdict, shown.get(claim.id, {})


def _quotes(verdict: Verdict) -> list[tuple[str, Quote]]:
    return [("against", q) for q in verdict.contradicting] + [("for", q) for q in verdict.supporting]


def _origin(passage: Passage) -> str:
    parts = [passage.title, passage.source, passage.published, passage.url]
    return printable(" · ".join(part for part in parts if part)) or printable(passage.id)
