"""Measure the offline pipeline on matched pairs: the three policies, risk, time; and how fast the command line starts.

usage: python benchmarks/development_pairs.py PAIRS.jsonl CORPUS [CORPUS …]

Each corpus is measured apart. Prints the figures as Markdown rows with the machine, so that they can stand in a document.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from factcheck.pipeline import FactChecker
from factcheck.study.pairs import read_pairs
from factcheck.study.report import Rate, StudyReport
from factcheck.study.run import StudyOptions, run_study

STARTS = 15


def percent(figure: Rate) -> str:
    """Return a proportion with its interval in per cent."""
    if figure.rate is None or figure.ci is None:
        return "-"
    return f"{figure.rate:.1%} ({figure.ci[0]:.1%} to {figure.ci[1]:.1%})"


def measure(pairs: Path, corpus: str) -> tuple[StudyReport, float]:
    """Run the study in a folder that is thrown away; return its report and the seconds it took."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        checker = FactChecker(corpora=(corpus,))
        report = run_study(checker, read_pairs(pairs), Path(folder) / "out", StudyOptions(assume_tied=True))
    return report, time.perf_counter() - started


def fastest(*command: str) -> float:
    """Return the fastest of several starts, in seconds: what the machine does beside can only slow one down."""
    times = []
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Print the tables."""
    pairs = Path(sys.argv[1])
    print(
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n"
    )
    print("| corpus | policy | recovered | matched false positives | correct answers flagged |\n|---|---|---|---|---|")
    notes = []
    for corpus in sys.argv[2:]:
        report, seconds = measure(pairs, corpus)
        name = Path(corpus).name
        for policy, figures in report.policies.items():
            cells = [
                percent(figures.recovered),
                percent(figures.false_positive_matched),
                percent(figures.false_positive_answer),
            ]
            print(f"| {name} | {policy} | {' | '.join(cells)} |")
        auroc = report.overall.risk_auroc
        points = [f"{p.max_false_positive_rate:.0%}: {percent(p.recovered)}" for p in report.operating_points.points]
        notes.append(
            f"{name}: risk AUROC {auroc.value:.3f} {auroc.ci}; recovered at {'; '.join(points)}; {seconds:.1f} s"
        )
    print("\n" + "\n".join(notes) + "\n")
    bare = fastest(sys.executable, "-c", "pass")
    for title, command in (
        ("factcheck --help", (sys.executable, "-m", "factcheck", "--help")),
        ("factcheck plugins list", (sys.executable, "-m", "factcheck", "plugins", "list")),
        ("import factcheck", (sys.executable, "-c", "import factcheck")),
    ):
        taken = fastest(*command)
        print(f"{title}: {taken * 1000:.0f} ms, {(taken - bare) * 1000:.0f} ms more than the interpreter alone")


if __name__ == "__main__":
    main()
