"""Stop asking a service that keeps failing, so that a dead one costs a few deadlines and not one for every claim."""

from __future__ import annotations

import time
from collections.abc import Callable

BREAKER_LIMIT = 5
BREAKER_REST = 30.0


class Breaker:
    """Open after ``BREAKER_LIMIT`` failures in a row; then one call every ``rest`` seconds tries it again."""

    def __init__(self, rest: float = BREAKER_REST, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.failures = 0
        self._rest = rest
        self._clock = clock
        self._opened = 0.0
        self._open_until = 0.0
        self._trouble = ""

    @property
    def open_for(self) -> float:
        """Return the seconds since the failures began, 0 after a success."""
        return self._clock() - self._opened if self.failures else 0.0

    def refusal(self) -> str:
        """Return why a call is not to be made, "" if it may be; after a rest the first to ask is let through."""
        if self.failures < BREAKER_LIMIT:
            return ""
        if self._clock() < self._open_until:
            return f"circuit open after {self.failures} failures in a row, the last: {self._trouble}"
        self._open_until = self._clock() + self._rest  # the others wait for what becomes of this one
        return ""

    def failed(self, reason: str) -> None:
        """Note that a call failed."""
        if not self.failures:
            self._opened = self._clock()
        self.failures += 1
        self._open_until = self._clock() + self._rest
        self._trouble = reason

    def succeeded(self) -> None:
        """Note that a call was answered."""
        self.failures = 0
