"""Run checkers in processes of their own, because a run that waits for a model has processors to spare.

Only checkers that declare ``portable = True`` go there: each process makes them anew from their names and settings. The
processes run ``python -m factcheck.checking`` and speak JSON lines, so that no script of a user is imported a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from factcheck.schema import Claim, Evidence, Finding, Model

BATCH = 8


class CheckerProcesses:
    """Hold ``count`` processes with the checkers of ``tables`` (settings by name), which ``plugins`` bring.

    They start at the first use and serve any event loop. What ``check`` does not return the caller runs itself: where a
    process cannot start or has died, where a checker failed.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, Any]], plugins: Sequence[str], count: int) -> None:
        self.names = tuple(tables)
        self._first = json.dumps({"tables": tables, "plugins": sorted(plugins)})
        self._desk = _Desk(count)
        weakref.finalize(self, self._desk.close)

    async def check(self, claim: Claim, evidence: Evidence) -> dict[str, list[Finding]]:
        """Return the findings of each checker that did not fail; nothing if no process can be used."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # another library's event loop
            return {}
        self._desk.open(self._first)
        job = _Job(f'{{"claim":{_as_json(claim)},"evidence":{_as_json(evidence)}}}', Future())
        self._desk.take(job)
        reply = await asyncio.wrap_future(job.reply)
        return {name: [Finding.model_validate(item) for item in result] for name, result in reply.items()}

    def close(self) -> None:
        """End the processes."""
        self._desk.close()


class _Job(NamedTuple):
    line: str
    reply: Future[dict[str, Any]]


class _Desk:
    """Hand jobs to the threads that each drive a process; a job that no process can do gets nothing."""

    def __init__(self, count: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._count = self._alive = count
        self._opened = False
        self._processes: list[subprocess.Popen[str]] = []

    def open(self, first: str) -> None:
        with self._lock:
            if not self._opened:
                self._opened = True
                for _ in range(self._count):
                    threading.Thread(target=self._drive, args=(first,), name="factcheck checkers", daemon=True).start()

    def take(self, job: _Job) -> None:
        with self._lock:
            if self._alive > 0:
                self._jobs.put(job)
                return
        _settle([job], ())

    def close(self) -> None:
        with self._lock:
            self._opened, self._alive = True, 0
            for process in self._processes:
                process.kill()
            for _ in range(self._count):
                self._jobs.put(None)
        self._empty()

    def _drive(self, first: str) -> None:
        batch: list[_Job] = []
        process = None
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "factcheck.checking"],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
            with self._lock:
                self._processes.append(process)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(first + "\n")
            number = 0
            while batch := self._batch():
                number += 1
                process.stdin.write(f'{{"number":{number},"jobs":[{",".join(job.line for job in batch)}]}}\n')
                process.stdin.flush()
                reply = json.loads(process.stdout.readline())
                if reply["number"] != number:
                    break
                _settle(batch, reply["results"])
        except Exception:  # it could not start, died, or wrote something else: the callers do the work themselves
            pass
        finally:
            _settle(batch, ())
            if process is not None:
                process.kill()
                with contextlib.suppress(OSError, ValueError):
                    process.communicate()
            with self._lock:
                self._alive -= 1
            if self._alive <= 0:
                self._empty()

    def _batch(self) -> list[_Job]:
        """Return the next jobs, none at the end."""
        batch = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH or self._jobs.empty():
                break
            job = self._jobs.get()
        return batch

    def _empty(self) -> None:
        """Settle what no process will do any more, and leave the ends for the threads that wait for them."""
        ends = 0
        with contextlib.suppress(Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is None:
                    ends += 1
                else:
                    _settle([job], ())
        for _ in range(ends):
            self._jobs.put(None)


def _as_json(model: Model) -> str:
    try:
        return model.model_dump_json()
    except ValueError:  # half of a surrogate pair, which json writes as an escape
        return json.dumps(model.model_dump(mode="json"))


def _settle(batch: Sequence[_Job], results: Sequence[dict[str, Any]]) -> None:
    for job, result in itertools.zip_longest(batch, results[: len(batch)], fillvalue=None):
        if job is not None and not job.reply.done() and job.reply.set_running_or_notify_cancel():
            job.reply.set_result(result or {})


def serve(lines: Iterable[str]) -> Iterable[str]:
    """Yield a line of results for each line of jobs; the first line names the checkers."""
    from factcheck.plugins import Plugins

    source = iter(lines)
    first = json.loads(next(source))
    plugins = Plugins(only=first["plugins"])
    checkers = {name: plugins.create("checker", name, table) for name, table in first["tables"].items()}
    for line in source:
        asked, results = json.loads(line), []
        for job in asked["jobs"]:
            claim, evidence = Claim.model_validate(job["claim"]), Evidence.model_validate(job["evidence"])
            found = {}
            for name, checker in checkers.items():
                with contextlib.suppress(Exception):  # the caller runs it again, and meets the error itself
                    found[name] = [finding.model_dump(mode="json") for finding in checker.check(claim, evidence)]
            results.append(found)
        yield json.dumps({"number": asked["number"], "results": results})


def main() -> None:
    """Serve standard input until it ends."""
    with open(0, encoding="utf-8") as lines, os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # what a checker prints is no reply
        for line in serve(lines):
            replies.write(line + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
