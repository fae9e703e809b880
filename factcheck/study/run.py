"""Run a study: check both texts of every pair, judge the controls, write the report; resumable pair by pair."""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio

from factcheck.calibrate import Calibration
from factcheck.errors import InputError, OutputError, PluginError, RunError, StageError
from factcheck.schema import Answer, AnswerReport, Claim, Evidence, Judgement, Manifest, Verdict
from factcheck.spending import Account
from factcheck.study import statistics
from factcheck.study.controls import ControlName, ControlRecord, donors, run_control
from factcheck.study.figures import build_report
from factcheck.study.measure import record_pair
from factcheck.study.pairs import Pair, PairFile
from factcheck.study.progress import Header, Progress, open_progress
from factcheck.study.report import PairError, StudyReport
from factcheck.study.tables import render_markdown
from factcheck.together import together
from factcheck.verdicts import Policy

Tick = Callable[[int, int], None]


class Checker(Protocol):
    """Check answers; ``factcheck.FactChecker`` does."""

    @property
    def manifest(self) -> Manifest:
        """Return what the checker is made of, with its policy and seed."""

    @property
    def policy(self) -> Policy:
        """Return the policy that flags claims."""

    @property
    def calibration(self) -> Calibration:
        """Return the calibration, whose threshold is that of the policy ``risk``."""

    @property
    def exhausted(self) -> str:
        """Return why the budget refuses further work, "" as long as it does not."""

    def account(self, inputs: object) -> AbstractAsyncContextManager[Account]:
        """Keep the account of a run on ``inputs``."""

    async def acheck(self, answer: Answer, /) -> AnswerReport:
        """Return the report on an answer."""

    async def ajudge(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[list[Judgement], list[Verdict]]:
        """Judge claims on evidence that is given."""


@dataclass(frozen=True)
class StudyOptions:
    """Hold how a study is run; ``jobs`` is the number of pairs checked at a time."""

    assume_tied: bool = False
    resume: bool = False
    force: bool = False
    resamples: int = statistics.RESAMPLES
    jobs: int = 4


def run_study(
    checker: Checker, file: PairFile, out: Path, options: StudyOptions | None = None, *, on_pair: Tick | None = None
) -> StudyReport:
    """Run a study and wait for it; see ``arun_study``."""
    thresholds = gc.get_threshold()
    # Reports hold no cycles and many objects: at the usual thresholds the collector takes a quarter of the time.
    gc.set_threshold(100_000, 50, 1000)
    try:
        return anyio.run(lambda: arun_study(checker, file, out, options, on_pair=on_pair))
    finally:
        gc.set_threshold(*thresholds)


async def arun_study(
    checker: Checker, file: PairFile, out: Path, options: StudyOptions | None = None, *, on_pair: Tick | None = None
) -> StudyReport:
    """Run a study and write report.json, report.md and claims.jsonl into the folder ``out``, each in one step.

    Finished pairs are kept in progress.jsonl in the same folder. Pairs whose answers could not be checked are counted
    as errors and not kept, so that a resumed run tries them again. ``on_pair`` is called with the number of pairs done
    and of all pairs. Raises InputError for pairs that cannot be taken for tied, OutputError for a folder that cannot
    be used.
    """
    options = options or StudyOptions()
    tied = select_tied(file.pairs, assume_tied=options.assume_tied)
    statistics.numpy()
    prepare_folder(out)
    manifest = checker.manifest
    header = Header(pairs_sha256=file.sha256, manifest=manifest)
    with open_progress(out, header, resume=options.resume, force=options.force) as progress:
        async with checker.account(file.sha256) as kept:
            errors = await _check_pairs(checker, file.pairs, progress, options.jobs, on_pair)
            controls = await _run_controls(checker, tied, progress, options.jobs)
            spent = await kept.spent()
        report = build_report(
            file,
            progress.pairs,
            tied=tied,
            errors=errors,
            controls=controls,
            manifest=manifest,
            policy=checker.policy,
            risk_threshold=checker.calibration.threshold,
            fitted_on_these=checker.calibration.data_sha256 == file.sha256,
            resamples=options.resamples,
            assume_tied=options.assume_tied,
            spent=spent,
        )
        rows = [row for pair in file.pairs if pair.id in progress.pairs for row in progress.pairs[pair.id].claims]
        write_atomically(out / "claims.jsonl", "".join(row.model_dump_json() + "\n" for row in rows))
        write_atomically(out / "report.md", render_markdown(report))
        write_atomically(out / "report.json", report.to_json())
        progress.finish()
    return report


def select_tied(pairs: Sequence[Pair], *, assume_tied: bool) -> list[Pair]:
    """Return the pairs whose rubric scores are equal; pairs without scores only if they are assumed to be tied."""
    unknown = [pair.id for pair in pairs if pair.tied is None]
    if unknown and not assume_tied:
        raise InputError(
            f"{len(unknown)} of {len(pairs)} pairs have no rubric scores (the first is '{unknown[0]}'), "
            "so it is not known whether rubrics tell their two texts apart.",
            hint="Give 'rubric_scores', or add --assume-tied to count pairs without scores as tied.",
        )
    return [pair for pair in pairs if pair.tied is not False]


def prepare_folder(out: Path) -> None:
    """Make the folder and prove that files can be written there; raises OutputError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise OutputError(
            f"cannot write into the folder '{out}': {error.strerror or error}.", hint="Choose another --out."
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old or the new content, whole; raises OutputError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OutputError(f"cannot write '{path}': {error.strerror or error}.") from error


async def _check_pairs(
    checker: Checker, pairs: Sequence[Pair], progress: Progress, jobs: int, on_pair: Tick | None
) -> list[PairError]:
    """Check the pairs that are not in ``progress`` and return those that failed, in the order of the pairs."""
    failed: dict[str, str] = {}

    def tick() -> None:
        if on_pair:
            on_pair(len(progress.pairs) + len(failed), len(pairs))

    async def check(pair: Pair) -> None:
        try:
            reports = [
                await checker.acheck(Answer(id=f"{pair.id}/{side}", question=pair.question, text=text))
                for side, text in (("original", pair.original), ("injected", pair.injected))
            ]
        except (StageError, PluginError, RunError) as error:
            failed[pair.id] = str(error)
        else:
            if checker.exhausted and any(report.accounting.error for report in reports):
                # Its claims were not tried, which says nothing about the pair: it is left for a resumed run.
                failed[pair.id] = f"not finished: {checker.exhausted}."
                return tick()
            progress.add_pair(record_pair(pair, reports[0], reports[1], checker.policy))
        tick()

    tick()
    waiting = [pair for pair in pairs if pair.id not in progress.pairs]
    await together(waiting, check, limiter=anyio.CapacityLimiter(jobs))
    return [PairError(pair=pair.id, error=failed[pair.id]) for pair in pairs if pair.id in failed]


async def _run_controls(
    checker: Checker, tied: Sequence[Pair], progress: Progress, jobs: int
) -> dict[ControlName, list[ControlRecord]]:
    """Judge the controls of the tied pairs with claims at the edit; shuffled_evidence is absent with one question."""
    usable = {pair.id: pair.cluster for pair in tied if pair.id in progress.pairs and progress.pairs[pair.id].exhibits}
    lenders = donors(usable, checker.manifest.seed)
    wanted: list[tuple[ControlName, str, str]] = [("no_evidence", pair, "") for pair in usable]
    wanted += [("shuffled_evidence", pair, lenders[pair]) for pair in usable if lenders]

    async def judge(task: tuple[ControlName, str, str]) -> None:
        control, pair, donor = task
        lender = progress.pairs[donor] if donor else None
        record = await run_control(checker, progress.pairs[pair], control, checker.policy, donor=lender)
        progress.add_control(record)

    def is_done(control: ControlName, pair: str, donor: str) -> bool:
        done = progress.controls.get((control, pair))
        return done is not None and done.donor == donor and not done.error

    waiting = [task for task in wanted if not is_done(*task)]
    await together(waiting, judge, limiter=anyio.CapacityLimiter(jobs))
    found: dict[ControlName, list[ControlRecord]] = {"no_evidence": []}
    if lenders:
        found["shuffled_evidence"] = []
    for control, pair, _ in wanted:
        found[control].append(progress.controls[control, pair])
    return found
