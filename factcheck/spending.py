"""Add up what a run has spent, over all its invocations where there is a ledger: what a killed one paid counts too.

The ledger gets a row of kind ``spending`` every second in which something was spent, and one at the end. A replay reads
them, so that its report says what the recorded run cost.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import anyio

from factcheck.errors import FactcheckError
from factcheck.ledger import Ledger
from factcheck.llm.budget import StageUsage
from factcheck.schema import Model

KIND = "spending"
INTERVAL = 1.0


class Spent(Model):
    """Hold what was spent: model calls by stage, HTTP requests (None if a component does not count them), wall time.

    ``uncounted`` names the components that call models and do not tell how often.
    """

    stages: Mapping[str, StageUsage] = {}
    requests: int | None = 0
    seconds: float = 0.0
    uncounted: tuple[str, ...] = ()

    @property
    def total(self) -> StageUsage:
        """Return the usage of all stages together; dollars are None if the price of a model is not known."""
        found = StageUsage()
        for usage in self.stages.values():
            found = found.plus(usage)
        return found

    def plus(self, other: Spent) -> Spent:
        """Return both together."""
        names = sorted({*self.stages, *other.stages})
        none = StageUsage()
        return Spent(
            stages={name: self.stages.get(name, none).plus(other.stages.get(name, none)) for name in names},
            requests=None if self.requests is None or other.requests is None else self.requests + other.requests,
            seconds=round(self.seconds + other.seconds, 6),
            uncounted=tuple(sorted({*self.uncounted, *other.uncounted})),
        )

    def minus(self, earlier: Spent) -> Spent:
        """Return what came after ``earlier``."""
        none = StageUsage()
        stages = {name: usage.minus(earlier.stages.get(name, none)) for name, usage in self.stages.items()}
        return Spent(
            stages={name: usage for name, usage in stages.items() if usage.calls},
            requests=None if self.requests is None or earlier.requests is None else self.requests - earlier.requests,
            seconds=round(self.seconds - earlier.seconds, 6),
            uncounted=self.uncounted,
        )


class Account:
    """Count what one run spends; ``counted`` returns what its components have used so far."""

    def __init__(self, ledger: Ledger | None, run: str, counted: Callable[[], Spent]) -> None:
        self._ledger = ledger
        self._run = run
        self._counted = counted
        self._began = time.monotonic()
        self._start = self._now()
        self._written = self._start
        self._session = uuid.uuid4().hex
        self._rows = 0
        self._writing = anyio.Lock()

    def _now(self) -> Spent:
        return self._counted().model_copy(update={"seconds": round(time.monotonic() - self._began, 6)})

    async def spent(self) -> Spent:
        """Return what the run has spent so far, earlier invocations included where there is a ledger."""
        if self._ledger is None:
            return self._now().minus(self._start)
        await self.write(final=True)
        found = Spent()
        for value in await self._ledger.values(KIND, f"{self._run}:"):
            found = found.plus(Spent.model_validate_json(value))
        return found

    async def write(self, *, final: bool = False) -> None:
        """Write down what was spent since the last time, mere time at the end alone; nothing in a replay."""
        if self._ledger is None or self._ledger.mode != "record":
            return
        async with self._writing:
            now = self._now()
            since = now.minus(self._written)
            if not (final or since.stages or since.requests):
                return
            key = f"{self._run}:{self._session}:{self._rows:06d}"
            await self._ledger.store(KIND, key, {"run": self._run}, json.dumps(since.model_dump(mode="json")))
            self._written = now
            self._rows += 1


@asynccontextmanager
async def account(ledger: Ledger | None, run: str, counted: Callable[[], Spent]) -> AsyncIterator[Account]:
    """Keep the account of a run while it lasts."""
    kept = Account(ledger, run, counted)
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_write_at_times, kept)
        try:
            yield kept
        except Exception as error:
            failure = error  # raised below as it is: a task group would wrap it
        finally:
            group.cancel_scope.cancel()
            # Also after an error or an interrupt: what was paid is told to those who go on.
            with anyio.CancelScope(shield=True), contextlib.suppress(FactcheckError):
                await kept.write()
    if failure is not None:
        raise failure


async def _write_at_times(kept: Account) -> None:
    while True:
        await anyio.sleep(INTERVAL)
        with contextlib.suppress(FactcheckError):  # the last write meets lasting trouble too, and is waited for
            await kept.write()
