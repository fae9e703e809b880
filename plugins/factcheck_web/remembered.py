"""Remember what was fetched for a while, and let one call at a time fetch it."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import RunVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """Hold at most ``most`` values, the oldest giving way, each for ``seconds``; failures are not held.

    Calls of one event loop that want the same value at the same time wait for the first of them. Safe for concurrent use
    from several event loops.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._held: dict[str, tuple[float, V]] = {}
        self._lock = threading.Lock()
        # Some versions of anyio tell such variables apart by name alone.
        self._turns: RunVar[dict[str, _Turn]] = RunVar(f"factcheck.web.{uuid.uuid4()}")

    async def get(self, key: str, make: Callable[[], Awaitable[V]]) -> V:
        """Return the value of ``key``, made by ``make`` if none is held; whatever that raises is raised."""
        turns = self._turns.get(None)
        if turns is None:
            self._turns.set(turns := {})
        turn = turns.setdefault(key, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                with self._lock:
                    at, *value = self._held.get(key, (0.0,))
                if value and time.monotonic() - at < self._seconds:
                    return value[0]
                made = await make()
                with self._lock:
                    self._held.pop(key, None)
                    while len(self._held) >= self._most:
                        self._held.pop(next(iter(self._held)))
                    self._held[key] = (time.monotonic(), made)
                return made
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                turns.pop(key, None)


class _Turn:
    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.wanted = 0
