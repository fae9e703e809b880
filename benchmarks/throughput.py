"""Measure the pipeline against a model server of fixed latency on this machine.

usage: python benchmarks/throughput.py [wall] [serial] [resume] [memory] [--pairs N] [--claims N] [--at-once N] [--latency S]

wall     a study of matched pairs with the model judge, ``--at-once`` calls at a time: wall time over calls/at-once x latency
serial   a part of the same work one call at a time, as SAFE's published code does it: how many times faster the study is
resume   a study that is killed (kill -9) at a random point and run again: calls that were made twice, 20 times
memory   resident memory over 10,000 answers, measured at every tenth of them

Without a choice all four run. Every claim is judged by the model on passages of the packaged corpus; decomposer and queries are
the offline ones. With ``--checkers none`` the rule-based checkers stay out, whose work is the processor's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio

from factcheck.config import Settings
from factcheck.pipeline import FactChecker
from factcheck.schema import Answer
from factcheck.study.pairs import PairFile, read_pairs
from factcheck.study.run import StudyOptions, run_study

LEDGERS = {"without": (False,), "with": (True,), "both": (False, True)}
HERE = Path(__file__).resolve().parent
DRUGS = (
    *("metformin", "lisinopril", "warfarin", "apixaban", "amoxicillin"),
    *("prednisolone", "allopurinol", "levothyroxine", "salbutamol", "ramipril"),
)
TOPICS = (
    *("heart failure", "gout", "asthma", "type 2 diabetes"),
    *("atrial fibrillation", "pneumonia", "migraine", "hypertension"),
)
VERBS = ("is started at", "is increased to", "should not exceed", "is usually kept at", "may be reduced to")


class Server:
    """Run the server of fixed latency as a process of its own."""

    def __init__(self, latency: float) -> None:
        command = [sys.executable, str(HERE / "latency_server.py"), "--latency", str(latency)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._read().strip()

    def counts(self) -> dict[str, int]:
        """Return the counts since the last time."""
        return self._ask("counts")

    def _look(self) -> dict[str, int]:
        return self._ask("look")

    def _ask(self, word: str) -> dict[str, int]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        found: dict[str, int] = json.loads(self._read())
        return found

    def wait_for(self, number: int, seconds: float = 30.0) -> None:
        """Wait until so many calls have been answered since the counts were read."""
        until = time.monotonic() + seconds
        while self._look()["answered"] < number and time.monotonic() < until:
            time.sleep(0.01)

    def close(self) -> None:
        """Stop it."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def serving(latency: float) -> Iterator[Server]:
    """Run a server while it is needed."""
    server = Server(latency)
    try:
        yield server
    finally:
        server.close()


def sentence(number: int) -> str:
    """Return a sentence that no other number gives."""
    drug, topic, verb = DRUGS[number % 10], TOPICS[number // 10 % 8], VERBS[number // 80 % 5]
    return f"In {topic}, {drug} {verb} {5 + number} mg a day for adults."


def answer(number: int, claims: int) -> str:
    """Return an answer of ``claims`` sentences."""
    return " ".join(sentence(number * claims + place) for place in range(claims))


def write_pairs(path: Path, pairs: int, claims: int) -> PairFile:
    """Write pairs whose texts differ in one sentence."""
    rows = []
    for number in range(pairs):
        original = answer(number, claims)
        kept = sentence(number * claims)
        injected = original.replace(kept, kept.replace(" mg a day", " mg every 4 hours"), 1)
        rows.append({"id": f"p{number}", "question": f"Question {number}?", "original": original, "injected": injected})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_pairs(path)


def settings(options: argparse.Namespace, url: str, *, at_once: int | None = None, **more: Any) -> Settings:
    """Return the settings of a run."""
    model = {"base_url": url, "model": "fixed-latency", "concurrency": at_once or options.at_once, "price": [0.0, 0.0]}
    checkers = {"checkers": ()} if options.checkers == "none" else {}
    given = {"judge": "llm", "models": {"default": model}, "concurrency": at_once or options.at_once}
    return Settings.model_validate({**given, **checkers, **more})


def study(options: argparse.Namespace, url: str, file: PairFile, out: Path, **more: Any) -> float:
    """Run a study and return its seconds."""
    with FactChecker.from_settings(settings(options, url, **more)) as checker:
        warm(checker)
        started = time.perf_counter()
        run_study(checker, file, out, StudyOptions(assume_tied=True, jobs=64, resamples=100))
        return time.perf_counter() - started


def warm(checker: FactChecker) -> None:
    """Open corpus and tables, which a run of any size does once."""
    checker.check("In gout, colchicine is given for 3 days.")


def wall(options: argparse.Namespace) -> None:
    """Print the wall time of a study over the least that its calls could take."""
    for ledger in LEDGERS[options.ledger]:
        with tempfile.TemporaryDirectory() as folder, serving(options.latency) as server:
            file = write_pairs(Path(folder) / "pairs.jsonl", options.pairs, options.claims)
            more = {"ledger": Path(folder) / "ledger.sqlite"} if ledger else {}
            cpu = time.process_time()
            seconds = study(options, server.url, file, Path(folder) / "out", **more)
            cpu = time.process_time() - cpu
            counts = server.counts()
            least = counts["answered"] / options.at_once * options.latency
            claims = options.pairs * (options.claims + 1)
            print(
                f"wall: {options.pairs} pairs x {options.claims} claims, {'with' if ledger else 'no'} ledger, checkers "
                f"{options.checkers}: {counts['answered']} calls ({claims} distinct claims), {counts['distinct']} distinct, "
                f"at most {counts['most']} at once; {seconds:.1f} s, {seconds / least:.2f} of the least ({least:.1f} s); "
                f"processor {1000 * cpu / counts['answered']:.2f} ms a call",
                flush=True,
            )


def serial(options: argparse.Namespace) -> None:
    """Print how much longer one call at a time takes, measured on a part."""
    rates = []
    for at_once, pairs in ((1, 2), (options.at_once, options.pairs)):
        with tempfile.TemporaryDirectory() as folder, serving(options.latency) as server:
            file = write_pairs(Path(folder) / "pairs.jsonl", pairs, options.claims)
            seconds = study(options, server.url, file, Path(folder) / "out", at_once=at_once)
            rates.append(server.counts()["answered"] / seconds)
    print(
        f"serial: {rates[0]:.2f} calls a second one at a time (measured on 2 pairs), {rates[1]:.1f} with "
        f"{options.at_once} at once: {rates[1] / rates[0]:.1f} times faster",
        flush=True,
    )


def resume(options: argparse.Namespace) -> None:
    """Kill studies at random points, run them again, and print how many finished calls were made a second time."""
    generator = random.Random(0)
    repeated: list[int] = []
    running = 0
    for _ in range(options.kills):
        with tempfile.TemporaryDirectory() as folder, serving(0.05) as server:
            pairs, ledger = Path(folder) / "pairs.jsonl", Path(folder) / "out" / "ledger.sqlite"
            write_pairs(pairs, 12, options.claims)
            command = [
                sys.executable,
                "-m",
                "factcheck",
                "study",
                str(pairs),
                "--assume-tied",
                "--out",
                f"{folder}/out",
            ]
            command += ["--judge", "llm", "--model", "fixed-latency", "--base-url", server.url, "--resamples", "100"]
            command += ["--concurrency", "16"]
            first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            server.wait_for(generator.randint(1, 12 * options.claims))
            running += first.poll() is None
            first.send_signal(signal.SIGKILL)
            first.wait()
            before = finished(ledger)
            time.sleep(0.2)  # what was under way when it died comes to an end for nobody
            server.counts()
            subprocess.run([*command, "--resume"], check=True, stdout=subprocess.DEVNULL)
            made = server.counts()["answered"]
            new = finished(ledger) - before
            repeated.append(made - new)
            print(f"  killed with {before} calls finished; {made} made afterwards, {new} of them new", flush=True)
    print(
        f"resume: killed while running {running} times of {options.kills}; finished calls that were repeated: {sum(repeated)}, "
        f"in {sum(count != 0 for count in repeated)} runs",
        flush=True,
    )


def finished(ledger: Path) -> int:
    """Return how many model replies a ledger holds."""
    if not ledger.exists():
        return 0
    with closing(sqlite3.connect(ledger)) as connection:
        found: tuple[int] = connection.execute("SELECT count(*) FROM entry WHERE kind = 'structured'").fetchone()
    return found[0]


def memory(options: argparse.Namespace) -> None:
    """Print the resident memory at every tenth of many answers, each of them new."""
    with serving(0.0) as server, FactChecker.from_settings(settings(options, server.url)) as checker:
        warm(checker)
        sizes: list[float] = []

        async def work() -> None:
            tenth = max(1, options.answers // 10)
            limiter = anyio.CapacityLimiter(16)

            async def one(number: int) -> None:
                async with limiter:
                    await checker.acheck(Answer(id=f"a{number}", text=answer(number, 4)))

            for start in range(0, options.answers, tenth):
                async with anyio.create_task_group() as group:
                    for number in range(start, start + tenth):
                        group.start_soon(one, number)
                sizes.append(resident())

        anyio.run(work)
        listed = " ".join(f"{size:.0f}" for size in sizes)
        print(f"memory: MB resident after each tenth of {options.answers} answers of 4 claims: {listed}", flush=True)


def resident() -> float:
    """Return the resident memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Run what was chosen."""
    parts = {"wall": wall, "serial": serial, "resume": resume, "memory": memory}
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; default all")
    parser.add_argument("--pairs", type=int, default=380)
    parser.add_argument("--claims", type=int, default=32)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--ledger", choices=tuple(LEDGERS), default="both", help="of wall (default: both)")
    parser.add_argument("--checkers", choices=("all", "none"), default="all")
    options = parser.parse_args()
    print(f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in options.parts or parts:
        parts[name](options)


if __name__ == "__main__":
    main()
