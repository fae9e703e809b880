"""``factcheck check``: the claims of one answer with verdict, risk, quote and source."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from factcheck.cli.options import add_pipeline_options, checker_from

if TYPE_CHECKING:
    from factcheck.schema import Answer, AnswerReport, Verdict
    from factcheck.spending import Spent
    from factcheck.verdicts import Policy

SCHEMA = "factcheck.check/1"
CONDITIONS = ("conflicting", "error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE|-", help="the answer, UTF-8 text or Markdown; - reads standard input")
    parser.add_argument("--question", default="", metavar="TEXT", help="the question that was answered")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text", help="form of the output")
    parser.add_argument("--dry-run", action="store_true", help="estimate calls, tokens and cost, and ask nothing")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="POLICY",
        help="exit 1 if a claim is flagged by this policy, or is 'conflicting' or 'error' (repeatable); exit 3 if that is "
        "open because a claim could not be checked",
    )
    add_pipeline_options(parser)


def run(args: argparse.Namespace) -> int:
    """Check one answer, print the report, and return 1 if a ``--fail-on`` condition was met.

    Raises RunError if none was met and a claim could not be checked: it might have met one.
    """
    from factcheck.errors import RunError
    from factcheck.llm.budget import exceeded
    from factcheck.pipeline import run_async
    from factcheck.render import as_markdown, as_text, cost_line

    if args.dry_run:
        from factcheck.calibrate import default_calibration
        from factcheck.cli.estimate import dry_check

        for word in args.fail_on:  # a mistake in the command is one in a dry run too
            read_condition(word, default_calibration().threshold)
        return dry_check(args, read_answer(args))
    with checker_from(args) as checker:
        conditions = [read_condition(word, checker.calibration.threshold) for word in args.fail_on]
        answer = read_answer(args)

        async def work() -> tuple[AnswerReport, Spent]:
            async with checker.account(answer.model_dump(mode="json")) as kept:
                report = await checker.acheck(answer)
                return report, await kept.spent()

        report, spent = run_async(work)
    if args.format == "json":
        sys.stdout.write(as_json(report, checker.policy, spent))
    else:
        draw = as_markdown if args.format == "markdown" else as_text
        sys.stdout.write(draw(report, checker.policy, cost_line(spent.stages, spent.requests)))
    if checker.exhausted:
        raise exceeded(
            f"{checker.exhausted}; {report.accounting.error} of {report.accounting.extracted} claims are open"
        )
    for condition in conditions:
        if any(meets(verdict, condition) for verdict in report.verdicts):
            return 1
    if conditions and report.accounting.error:
        failed = f"{report.accounting.error} of {report.accounting.extracted} claims"
        raise RunError(f"{failed} could not be checked, so it is open whether --fail-on is met.", hint="Try again.")
    checked = report.accounting.extracted - report.accounting.not_checkable
    if checked and report.accounting.error == checked:
        trouble = next((r.error for r in report.retrievals if r.error), "") or report.verdicts[-1].reason
        raise RunError(f"none of the {checked} claims could be checked: {trouble}", hint="Mend that and run it again.")
    return 0


def read_answer(args: argparse.Namespace) -> Answer:
    """Read the answer, named after its file."""
    from factcheck.schema import Answer

    text = read_text(args.file)
    name = "stdin" if args.file == "-" else encodable(Path(args.file).stem) or "answer"
    return Answer(id=name, question=encodable(args.question), text=text)


def read_condition(word: str, threshold: float) -> Policy | str:
    """Read a ``--fail-on`` condition: a policy or a state; raise UnknownNameError for anything else."""
    from factcheck.errors import UnknownNameError
    from factcheck.verdicts import POLICY_FORMS, parse_policy

    if word in CONDITIONS:
        return word
    try:
        return parse_policy(word, default_threshold=threshold)
    except UnknownNameError as error:
        known = (*POLICY_FORMS, *CONDITIONS)
        raise UnknownNameError("--fail-on condition", word, known, hint="T is a number from 0 to 1.") from error


def meets(verdict: Verdict, condition: Policy | str) -> bool:
    """Tell whether a claim meets a ``--fail-on`` condition."""
    return verdict.label == condition if isinstance(condition, str) else condition.flags(verdict)


def as_json(report: AnswerReport, policy: Policy, spent: Spent) -> str:
    """Return the documented JSON form: schema, policy, ids of flagged claims, what was used, and the whole report."""
    body = {
        "schema": SCHEMA,
        "policy": str(policy),
        "flagged": [verdict.claim_id for verdict in report.verdicts if policy.flags(verdict)],
        "usage": spent.model_dump(mode="json", include={"stages", "requests", "uncounted"}),
        "report": report.model_dump(mode="json"),
    }
    return json.dumps(body, ensure_ascii=True, indent=1) + "\n"


def encodable(text: str) -> str:
    """Return an argument with "?" for bytes that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def read_text(source: str) -> str:
    """Read UTF-8 from a file or from standard input; raise InputError naming the file and, for bad bytes, the place."""
    from factcheck.errors import InputError

    name = "standard input" if source == "-" else source
    hint = "Give a file with the answer, or - for standard input."
    if source == "-" and sys.stdin is None:
        raise InputError("cannot read standard input: it is closed.", hint=hint)
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{name}': {error.strerror or error}.", hint=hint) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "Save it as UTF-8 and try again."
        raise InputError(f"'{name}' is not UTF-8: bad byte at offset {error.start}.", hint=hint) from error
