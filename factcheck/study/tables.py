"""Draw a study report as plain text and as Markdown.

Names come from the input file, so control characters are taken out, and in Markdown what could be read as markup is
escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from factcheck.render import cost_line
from factcheck.study.report import (
    Comparison,
    Control,
    Estimate,
    MeanSd,
    Rate,
    RubricEffect,
    Stratum,
    StudyReport,
)

Row = Sequence[str]
NOTHING = "-"
_HEAD = ("", "n", "claims", "identified", "flagged if identified", "recovered", "false positives", "risk AUROC")
_POLICY_HEAD = ("policy", "recovered", "false positives", "answers flagged", "claims flagged", "AUROC of the criterion")
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&])")


def render_text(report: StudyReport) -> str:
    """Return the report for a terminal."""
    return _render(report, _text_table, str, heading="{}\n")


def render_markdown(report: StudyReport) -> str:
    """Return the report as Markdown."""
    return _render(report, _markdown_table, _escape, heading="## {}\n", title="# Study of matched pairs\n\n")


def percent(rate: Rate | None) -> str:
    """Format a proportion as per cent with its interval, "77.6 (73.2–81.5)"; "-" where there is none."""
    if rate is None or rate.rate is None or rate.ci is None:
        return NOTHING
    return f"{100 * rate.rate:.1f} ({100 * rate.ci[0]:.1f}–{100 * rate.ci[1]:.1f})"


def estimate(found: Estimate | None) -> str:
    """Format an estimate with its interval, "0.612 [0.581, 0.642]"; "-" where there is none."""
    if found is None or found.value is None:
        return NOTHING
    return _with_interval(found.value, found.ci)


def stratum_row(name: str, stratum: Stratum) -> Row:
    """Return a row of the main table."""
    return (
        name,
        str(stratum.n_pairs),
        _mean(stratum.claims_per_answer),
        percent(stratum.identified),
        percent(stratum.flagged_given_identified),
        percent(stratum.recovered),
        percent(stratum.false_positive_matched),
        estimate(stratum.risk_auroc),
    )


def _render(
    report: StudyReport,
    table: Callable[[Sequence[Row]], str],
    escape: Callable[[str], str],
    *,
    heading: str,
    title: str = "",
) -> str:
    def name(text: str) -> str:
        return escape(_printable(text))

    source = report.input
    parts = [
        f"{title}{report.n_pairs} tied pairs on {report.n_questions} questions from {name(source.name)}, "
        f"policy {name(report.policy)}. Per cent with Wilson's 95 % interval; "
        "AUROC with a bootstrap interval over questions."
    ]

    def section(text: str, rows: Sequence[Row], note: str = "") -> None:
        parts.append(heading.format(text) + ("\n" if title else "") + table(rows) + (f"\n\n{note}" if note else ""))

    section(
        "By error type",
        [
            ("error type", *_HEAD[1:]),
            *(stratum_row(name(kind), stratum) for kind, stratum in report.by_error_type.items()),
            stratum_row("overall", report.overall),
        ],
        "identified: a claim overlaps the injected error. recovered: such a claim is flagged, of all pairs. "
        "false positives: the matched claim of the correct answer is flagged, of all pairs.",
    )
    section(
        "Policies",
        [_POLICY_HEAD, *(_policy_row(policy, stratum) for policy, stratum in report.policies.items())],
        f"risk: the claim's risk is at least {report.risk_threshold:g}, the default threshold.",
    )
    section(
        "Thresholds on risk, chosen on these pairs",
        [
            ("false positives at most", "threshold", "recovered", "false positives"),
            *(
                (
                    f"{100 * point.max_false_positive_rate:.0f} %",
                    NOTHING if point.threshold is None else f"{point.threshold:.3f}",
                    percent(point.recovered),
                    percent(point.false_positive_matched),
                )
                for point in report.operating_points.points
            ),
        ],
    )
    if report.rubric:
        title_of_rubric = "Rubric before and after the fact-check criterion"
        section(title_of_rubric, _rubric_rows(report.rubric), _rubric_note(report.rubric))
    controls = report.controls
    length = controls.length_only_auroc
    section(
        "Controls",
        [
            ("control", "recovered", "false positives", "AUROC"),
            _control_row("no evidence", controls.no_evidence),
            _control_row("evidence of another question", controls.shuffled_evidence),
            ("the longer text is correct", NOTHING, NOTHING, NOTHING if length is None else f"{length:.3f}"),
        ],
    )
    parts.append(_account(report))
    if cost := cost_line(report.cost.stages, report.cost.http_requests):
        parts.append(name(cost))
    parts += [f"Warning: {name(warning)}" for warning in report.warnings]
    parts += [f"Skipped line {skipped.line}: {name(skipped.reason)}." for skipped in source.skipped]
    parts += [f"Not checked: {name(failed.pair)}: {name(failed.error)}" for failed in report.errors]
    parts.append(report.manifest.notice)
    return "\n\n".join(parts) + "\n"


def _account(report: StudyReport) -> str:
    states = report.accounting.model_dump()
    total = states.pop("extracted")
    counted = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in states.items())
    return f"{total} claims in {2 * (report.input.n_read - len(report.errors))} answers: {counted}."


def _policy_row(policy: str, stratum: Stratum) -> Row:
    return (
        policy,
        percent(stratum.recovered),
        percent(stratum.false_positive_matched),
        percent(stratum.false_positive_answer),
        percent(stratum.false_positive_claim),
        estimate(stratum.criterion_auroc),
    )


def _control_row(title: str, control: Control) -> Row:
    return (title, percent(control.recovered), percent(control.false_positive_matched), estimate(control.risk_auroc))


def _rubric_rows(effect: RubricEffect) -> list[Row]:
    def row(title: str, found: Comparison) -> Row:
        auroc = Estimate(value=found.auroc, ci=found.ci)
        return (
            title,
            str(found.win),
            str(found.tie),
            str(found.loss),
            estimate(auroc),
            _number(found.auroc_per_question),
        )

    return [
        ("", "win", "tie", "loss", "AUROC", "AUROC per question"),
        row("before", effect.before),
        row("after", effect.after),
    ]


def _rubric_note(effect: RubricEffect) -> str:
    return (
        f"Change of the AUROC {estimate(effect.delta)}. Recovered (ties that became wins) {percent(effect.recovered)}; "
        f"broken (pairs that fare worse) {percent(effect.broken)}; ties at zero points {effect.ties_at_zero}."
    )


def _mean(found: MeanSd) -> str:
    return NOTHING if found.mean is None else f"{found.mean:.1f}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def _text_table(rows: Sequence[Row]) -> str:
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            _pad(row[0], widths[0], left=True),
            *(_pad(cell, width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "-" * max(map(_width, lines)))
    return "\n".join(lines)


def _markdown_table(rows: Sequence[Row]) -> str:
    rule = ["---", *["---:"] * (len(rows[0]) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (rows[0], rule, *rows[1:]))


def _pad(cell: str, width: int, *, left: bool = False) -> str:
    gap = " " * (width - _width(cell))
    return cell + gap if left else gap + cell


def _width(text: str) -> int:
    """Count terminal columns: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _printable(text: str) -> str:
    """Replace what could move the cursor, change colours or reorder the line."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") else char for char in text)


def _escape(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
