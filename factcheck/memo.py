"""Remember results by key, the latest used of them, and let equal work that overlaps run once."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import RunVar

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.results: list[T] = []
        self.error: Exception | None = None


class Memo(Generic[T]):
    """Hold at most ``size`` results. What one event loop is computing is shared within that loop alone."""

    def __init__(self, size: int, *, keeps: Callable[[T], bool] = lambda result: True) -> None:
        self._size = size
        self._keeps = keeps
        self._kept: OrderedDict[str, T] = OrderedDict()
        # Some releases of anyio tell such variables apart by their name alone.
        self._flights: RunVar[dict[str, _Flight[T]]] = RunVar(f"memo {uuid.uuid4()}")

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, key: str) -> T | None:
        """Return the result that is held under ``key``, None if there is none."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    async def obtain(self, key: str, compute: Callable[[], Awaitable[T]]) -> T:
        """Return the result under ``key``, computing it if there is none.

        Calls with one key that overlap share what the first one makes or raises, also a result that is not kept. If the first
        is cancelled, another takes its place.
        """
        flights = self._flights.get(None)
        if flights is None:
            self._flights.set(flights := {})
        while True:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            flight = flights.get(key)
            if flight is None:
                return await self._fly(key, compute, flights)
            await flight.landed.wait()
            if flight.error is not None:
                raise flight.error
            if flight.results:
                return flight.results[0]

    async def _fly(self, key: str, compute: Callable[[], Awaitable[T]], flights: dict[str, _Flight[T]]) -> T:
        flight: _Flight[T] = _Flight()
        flights[key] = flight
        try:
            result = await compute()
            flight.results.append(result)
            if self._keeps(result):
                self._kept[key] = result
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
            return result
        except Exception as error:
            flight.error = error
            raise
        finally:
            del flights[key]
            flight.landed.set()
