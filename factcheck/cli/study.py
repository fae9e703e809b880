"""``factcheck study``: run the study of matched pairs and print its tables."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from factcheck.cli.options import add_pipeline_options, checker_from

LEDGER = "ledger.sqlite"
# Offline pairs share the processor; over the network most of them wait.
JOBS, JOBS_OUTSIDE = 4, 64
OUTPUTS = ("report.json", "report.md", "claims.jsonl", "progress.jsonl", LEDGER)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("pairs", type=Path, metavar="PAIRS.jsonl", help="matched pairs, one JSON object a line")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the report")
    parser.add_argument("--assume-tied", action="store_true", help="count pairs without rubric scores as tied")
    parser.add_argument("--skip-invalid", action="store_true", help="go on without lines that cannot be used")
    before = parser.add_mutually_exclusive_group()
    before.add_argument("--resume", action="store_true", help="go on with the run that DIR holds")
    before.add_argument("--force", action="store_true", help="replace whatever run DIR holds")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="what to print (default: text)")
    parser.add_argument("--resamples", type=_positive, metavar="N", help="bootstrap resamples (default: 10000)")
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="pairs checked at a time (default: 4, and 64 if a model is asked)"
    )
    parser.add_argument("--dry-run", action="store_true", help="estimate calls, tokens and cost, and ask nothing")
    parser.add_argument(
        "--sample", type=_positive, default=5, metavar="N", help="pairs that a dry run looks at (default: 5)"
    )
    add_pipeline_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    from factcheck.errors import InputError, RunError
    from factcheck.llm.budget import exceeded
    from factcheck.study.pairs import read_pairs
    from factcheck.study.run import StudyOptions, prepare_folder, run_study, select_tied
    from factcheck.study.statistics import RESAMPLES
    from factcheck.study.tables import render_text

    # What can be refused is refused before the pipeline is built, which may load models and indexes.
    file = read_pairs(args.pairs, skip_invalid=args.skip_invalid)
    tied = select_tied(file.pairs, assume_tied=args.assume_tied)
    if args.dry_run:
        from factcheck.cli.estimate import dry_study

        return dry_study(args, file, tied, args.out / LEDGER)
    prepare_folder(args.out)
    if any((args.out / name).exists() and (args.out / name).samefile(args.pairs) for name in OUTPUTS):
        raise InputError(f"'{args.pairs}' would be overwritten by the output.", hint="Choose another --out.")
    with _Bar() as bar, checker_from(args, usual_ledger=args.out / LEDGER) as checker:
        options = StudyOptions(
            assume_tied=args.assume_tied,
            resume=args.resume,
            force=args.force,
            resamples=args.resamples or RESAMPLES,
            jobs=args.jobs or (JOBS_OUTSIDE if checker.reaches_out else JOBS),
        )
        try:
            report = run_study(checker, file, args.out, options, on_pair=bar)
        except KeyboardInterrupt as error:
            raise RunError(
                f"interrupted after {bar.done} of {len(file.pairs)} pairs; what was finished is kept in '{args.out}'.",
                hint="Run the same command with --resume (and without --force) to go on.",
            ) from error
    sys.stdout.write(report.to_json() if args.format == "json" else render_text(report))
    if checker.exhausted:
        reason = f"{checker.exhausted}; {len(report.errors)} of {len(file.pairs)} pairs are open"
        raise exceeded(reason)
    if file.pairs and len(report.errors) == len(file.pairs):
        raise RunError(
            f"none of the {len(file.pairs)} pairs could be checked: {report.errors[0].error}",
            hint="Mend that and run it again with --resume.",
        )
    checked = report.accounting.extracted - report.accounting.not_checkable
    if checked and report.accounting.error == checked:
        raise RunError(
            f"none of the {checked} claims could be checked, so the figures say nothing.",
            hint="See the reasons in claims.jsonl, mend them and run it again with --resume.",
        )
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


class _Bar:
    """Show a progress bar on stderr if that is a terminal and tqdm is installed; count in any case."""

    def __init__(self) -> None:
        self.done = 0
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None and self.done == 0 and sys.stderr.isatty():
            self._bar = _make_bar(done, total)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        self.done = done


def _make_bar(done: int, total: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=done, unit="pair", leave=False)
