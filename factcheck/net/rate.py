"""Keep calls within a server's limits: token buckets and a bound on concurrency, both cut when the server objects."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.lowlevel import RunVar

Sleep = Callable[[float], Awaitable[None]]
LEAST = 1 / 64
STEP = 0.05
HOSTS = 1000
PAUSE_LIMIT = 3600.0


class TokenBucket:
    """Give out ``per_second`` tokens each second, at most ``burst`` of them at once, in the order of asking.

    Asking for more than there are takes them on credit and waits until the credit is worked off, so that a call larger
    than ``burst`` is delayed and not refused. Safe for use from several threads and event loops.
    """

    def __init__(
        self, per_second: float, burst: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_second = per_second
        self.burst = max(1.0, per_second) if burst is None else float(burst)
        self._clock = clock
        self._tokens = self.burst
        self._at = clock()
        self._lock = threading.Lock()

    def reserve(self, tokens: float = 1.0) -> float:
        """Take tokens and return the seconds to wait before using them; a negative number gives tokens back."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.per_second)
            self._at = now
            self._tokens = min(self.burst, self._tokens - tokens)
            return max(0.0, -self._tokens / self.per_second)

    def slow(self, per_second: float) -> None:
        """Change the rate from now on."""
        self.reserve(0.0)
        with self._lock:
            self.per_second = per_second


class RateLimit:
    """Let at most ``concurrency`` calls to a host run at once and ``per_second`` attempts start each second.

    ``per_second`` None is no bound; ``burst`` attempts may start at once. What one host refuses holds for that host alone.
    One object may serve several clients, which then share what it allows.
    """

    def __init__(
        self,
        per_second: float | None = None,
        burst: int | None = None,
        concurrency: int = 64,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if concurrency < 1 or (per_second is not None and not per_second > 0) or (burst is not None and burst < 1):
            raise ValueError("concurrency, per_second and burst must be positive")
        self.concurrency = concurrency
        self.per_second = per_second
        self.burst = burst
        self.clock = clock
        self._hosts: dict[str, HostLimit] = {}
        self._lock = threading.Lock()
        # Some versions of anyio tell such variables apart by name alone.
        self._gates: RunVar[dict[str, _Gate]] = RunVar(f"factcheck.rate.{uuid.uuid4()}")

    def of(self, host: str) -> HostLimit:
        """Return the limit for a host."""
        with self._lock:
            if host not in self._hosts:
                if len(self._hosts) >= HOSTS:
                    self._hosts = {name: limit for name, limit in self._hosts.items() if not limit.idle}
                self._hosts[host] = HostLimit(self, host)
            return self._hosts[host]

    def gates(self) -> dict[str, _Gate]:
        """Return the gates of the running event loop, by host."""
        gates = self._gates.get(None)
        if gates is None:
            self._gates.set(gates := {})
        return gates


class HostLimit:
    """Hold what a host allows now.

    A refusal for a rate limit halves concurrency and rate, once for all the calls that were under way; each success brings
    them nearer to what was set: a full round of calls adds one to the concurrency, and no success more than a twentieth.
    After a refusal that names a time nothing starts until then, ``free_at``. The bound on concurrency is kept in each event
    loop.
    """

    def __init__(self, limit: RateLimit, host: str) -> None:
        self._limit = limit
        self._host = host
        self._bucket = None
        if limit.per_second is not None:
            self._bucket = TokenBucket(limit.per_second, limit.burst, clock=limit.clock)
        self._share = 1.0
        self._cut_at = limit.clock()
        self.free_at = self._cut_at
        self._inside = 0

    @property
    def allowed(self) -> int:
        """Return how many calls may run at once now."""
        return max(1, int(self._limit.concurrency * self._share))

    @property
    def rate(self) -> float | None:
        """Return how many attempts may start each second now, None if there is no bound."""
        return self._bucket.per_second if self._bucket is not None else None

    @property
    def idle(self) -> bool:
        """Tell whether nothing would be lost if this object were forgotten."""
        return not self._inside and self._share == 1.0 and not self.pause_left() and not self._owing()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places for calls at once, in the order of asking."""
        gates = self._limit.gates()
        gate = gates.setdefault(self._host, _Gate(self))
        self._inside += 1
        try:
            await gate.enter()
            try:
                yield
            finally:
                gate.leave()
        finally:
            self._inside -= 1
            if gate.empty:
                gates.pop(self._host, None)

    def wait_for_start(self) -> float:
        """Count an attempt and return the seconds to wait before it may start."""
        queued = self._bucket.reserve() if self._bucket is not None else 0.0
        return max(queued, self.pause_left())

    def pause_left(self) -> float:
        """Return the seconds for which the server wants no request."""
        return max(0.0, self.free_at - self._limit.clock())

    def refused(self, started: float, retry_after: float | None) -> None:
        """Note that the server refused an attempt that began at ``started``, by ``now``."""
        now = self.now()
        if retry_after is not None:
            self.free_at = max(self.free_at, now + min(retry_after, PAUSE_LIMIT))
        if started >= self._cut_at:  # a refusal of the same round as the last one says nothing new
            self._cut_at = now
            self._set_share(max(LEAST, self._share / 2))

    def succeeded(self) -> None:
        """Note that the server answered an attempt."""
        if self._share < 1.0:
            self._set_share(min(1.0, self._share + min(STEP, 1 / (self._limit.concurrency * self.allowed))))

    def now(self) -> float:
        """Return the time, in seconds, by which attempts are told apart."""
        return self._limit.clock()

    def _owing(self) -> bool:
        return self._bucket is not None and self._bucket.reserve(0.0) > 0

    def _set_share(self, share: float) -> None:
        self._share = share
        if self._bucket is not None and self._limit.per_second is not None:
            self._bucket.slow(self._limit.per_second * share)


class _Gate:
    """Bound the concurrency in one event loop; a bound that changes while calls run is met as they leave."""

    def __init__(self, limit: HostLimit) -> None:
        self._limit = limit
        self._inside = 0
        self._queue: deque[anyio.Event] = deque()

    @property
    def empty(self) -> bool:
        return not self._inside and not self._queue

    async def enter(self) -> None:
        if self._inside < self._limit.allowed and not self._queue:
            self._inside += 1
            return
        turn = anyio.Event()
        self._queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.leave()  # its turn came as it was cancelled
            else:
                self._queue.remove(turn)
            raise

    def leave(self) -> None:
        self._inside -= 1
        while self._queue and self._inside < self._limit.allowed:
            self._inside += 1
            self._queue.popleft().set()
