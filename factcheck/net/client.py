"""The client: take a turn under the rate limit, try, wait as the server asks, try again, and stop at the deadline."""

from __future__ import annotations

import json as jsonlib
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import httpx
import tenacity
from pydantic import Field, SecretStr

from factcheck.errors import PermanentError, RateLimitedError, RetrievalError, TransientError
from factcheck.net.connections import Connections
from factcheck.net.exchange import Call, Outcome, Reply, follow
from factcheck.net.guard import Resolver, parse_url, resolve
from factcheck.net.rate import HostLimit, RateLimit
from factcheck.schema import Model
from factcheck.source_tree import version

Param = str | int | float | bool | SecretStr
_BACKOFF = tenacity.wait_exponential(multiplier=0.5, max=8.0) + tenacity.wait_random(0.0, 0.5)


class NetSettings(Model):
    """Hold the bounds of all calls.

    ``timeout`` is for one attempt, ``deadline`` for one call with all its attempts, both in seconds; waiting for a turn
    under the rate limit comes before. ``max_bytes`` bounds a body after decompression. With ``allow_private`` the URLs
    that are asked for may lead to private addresses; other hosts that they redirect to still may not. With
    ``trust_env`` the proxies of the environment are used.
    """

    timeout: float = Field(default=20.0, gt=0, le=3600)
    deadline: float = Field(default=60.0, gt=0, le=7200)
    attempts: int = Field(default=5, ge=1, le=20)
    max_bytes: int = Field(default=5_000_000, ge=1)
    user_agent: str = ""
    allow_private: bool = False
    trust_env: bool = False


class NetUsage(Model):
    """Count what went over the network; ``requests`` includes retries and redirects, ``bytes`` are those received."""

    requests: int = 0
    retries: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Net:
    """Send requests, from any event loop; also an async context manager, which closes its connections.

    ``rate`` defaults to 64 calls at once to a host. Without the context manager connections close as the event loop ends.
    """

    def __init__(
        self,
        settings: NetSettings | None = None,
        *,
        rate: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        resolver: Resolver = resolve,
    ) -> None:
        self.settings = settings or NetSettings()
        self.rate = rate or RateLimit()
        self._sleep = sleep
        self._agent = self.settings.user_agent or f"factcheck/{version()}"
        self._connections = Connections(
            resolver=resolver, keepalive=self.rate.concurrency, trust_env=self.settings.trust_env
        )
        self._requests = self._retries = self._bytes = 0
        self._seconds = 0.0
        self._lock = threading.Lock()

    @property
    def usage(self) -> NetUsage:
        """Return the counts so far."""
        with self._lock:
            return NetUsage(requests=self._requests, retries=self._retries, bytes=self._bytes, seconds=self._seconds)

    async def request(
        self,
        method: str,
        url: str | httpx.URL,
        *,
        params: Mapping[str, Param | None] | None = None,
        json: Any = None,
        headers: Mapping[str, str | SecretStr] | None = None,
        accept: tuple[str, ...] = ("application/json",),
        timeout: float | None = None,
        deadline: float | None = None,
        attempts: int | None = None,
        restate: Callable[[int, str], int] | None = None,
        redirects: bool = True,
    ) -> Reply:
        """Return the reply to a request; ``params`` with None are left out.

        ``accept`` lists the content types that will do, ``*`` matches any part; text is decoded by its declared charset.
        ``restate`` is given status and body and returns the status they stand for, for servers that report errors with
        status 200, or a lasting error with a status that looks passing. Secrets (``SecretStr``, also in ``params`` and
        ``json``) are sent to the origin of ``url`` alone, and removed from all that is raised and from the reply.

        Raise HttpStatusError or another PermanentError for what no retry will mend, RateLimitedError or TransientError
        when the retries are used up or the next one would come after the deadline, and RedirectedError for a redirect if
        ``redirects`` is False.
        """
        for name, value in (headers or {}).items():
            if not _printable(value):
                hint = "Look for a line break or a typographic character in it."
                raise PermanentError(f"the header {name} holds a character that none may hold.", hint=hint)
        call = self._prepare(method, url, params, json, headers, accept, restate, redirects)
        limit = deadline if deadline is not None else self.settings.deadline
        rate = self.rate.of(call.url.host)
        async with rate.slot():
            await self._turn(rate, call, limit)
            started = time.monotonic()
            outcome, number = await self._tried(call, started + limit, timeout, attempts)
        seconds = time.monotonic() - started
        self._count(retries=number - 1, seconds=seconds)
        if outcome.reply is not None:
            return outcome.reply.model_copy(update={"attempts": number, "seconds": seconds})
        raise _final(outcome, number, seconds)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _prepare(
        self,
        method: str,
        url: str | httpx.URL,
        params: Mapping[str, Param | None] | None,
        json: Any,
        headers: Mapping[str, str | SecretStr] | None,
        accept: tuple[str, ...],
        restate: Callable[[int, str], int] | None,
        redirects: bool,
    ) -> Call:
        parsed = parse_url(url)
        secrets: set[str] = set()

        def revealed(value: Any) -> Any:
            if isinstance(value, SecretStr):
                secrets.add(value.get_secret_value())
                return value.get_secret_value()
            return value

        def as_json(value: Any) -> Any:
            if isinstance(value, SecretStr):
                return revealed(value)
            raise TypeError(f"a {type(value).__name__} cannot be sent as JSON")

        if self.settings.allow_private:
            self._connections.trust(parsed)
        if given := {name: revealed(value) for name, value in (params or {}).items() if value is not None}:
            parsed = parsed.copy_merge_params(given)
        plain = [("accept", ", ".join(accept)), ("accept-encoding", "gzip"), ("user-agent", self._agent)]
        secret: list[tuple[str, str]] = []
        for name, value in (headers or {}).items():
            (secret if isinstance(value, SecretStr) else plain).append((name, revealed(value)))
        content = None
        if json is not None:
            body = jsonlib.dumps(json, ensure_ascii=False, allow_nan=False, default=as_json)
            content = body.encode("utf-8", "replace")
            plain.append(("content-type", "application/json"))
        return Call(
            method=method.upper(),
            url=parsed,
            headers=tuple(plain),
            secret_headers=tuple(secret),
            content=content,
            secrets=frozenset(secrets - {""}),
            accept=accept,
            restate=restate,
            max_bytes=self.settings.max_bytes,
            redirects=redirects,
        )

    async def _turn(self, rate: HostLimit, call: Call, limit: float) -> None:
        """Wait for the turn of a call; raise RateLimitedError if the server wants no request for longer than ``limit``."""
        wait = 0.0 if rate.pause_left() > limit else rate.wait_for_start()
        while True:
            if (left := rate.pause_left()) > limit:
                message = f"{call.where()} was not sent: the server wants no request for {left:.0f} s."
                raise RateLimitedError(message, retry_after=left, hint="Try again later.")
            if wait <= 0:
                return
            free_at = rate.free_at
            await self._sleep(wait)
            wait = rate.pause_left() if rate.free_at > free_at else 0.0  # another call may have been refused meanwhile

    async def _tried(self, call: Call, ends: float, timeout: float | None, attempts: int | None) -> tuple[Outcome, int]:
        """Return what came of the last attempt, and its number."""
        most = attempts or self.settings.attempts
        number = 1
        latest = await self._attempt(call, ends, timeout or self.settings.timeout, first=True)

        async def attempt() -> Outcome:
            nonlocal number, latest
            if number > 1:
                latest = await self._attempt(call, ends, timeout or self.settings.timeout, first=False)
            number += 1
            return latest

        if not latest.passing:  # as nearly always, and the machinery of retries costs a tenth of a call
            return latest, number
        retrying = tenacity.AsyncRetrying(
            sleep=self._sleep,
            retry=tenacity.retry_if_result(lambda found: found.passing),
            wait=lambda state: max(_BACKOFF(state), _last(state).retry_after or 0.0),
            stop=lambda state: state.attempt_number >= most or time.monotonic() + state.upcoming_sleep >= ends,
            retry_error_callback=_last,
        )
        outcome: Outcome = await retrying(attempt)
        return outcome, number - 1

    async def _attempt(self, call: Call, ends: float, timeout: float, *, first: bool) -> Outcome:
        rate = self.rate.of(call.url.host)
        if not first and (wait := rate.wait_for_start()) > 0:
            if time.monotonic() + wait >= ends:
                message = f"{call.where()} failed before, and its next turn comes after the deadline"
                return Outcome(error=RateLimitedError(message, retry_after=wait), retry_after=wait)
            await self._sleep(wait)
        began = rate.now()
        allowed = min(timeout, max(0.0, ends - time.monotonic()))
        outcome = Outcome(error=TransientError(f"{call.where()} gave no complete reply within {allowed:.3g} s"))
        with anyio.move_on_after(allowed):
            outcome = await follow(call, self._connections, lambda requests, size: self._count(requests, size=size))
        if outcome.reply is not None:
            rate.succeeded()
        elif outcome.passing and (isinstance(outcome.error, RateLimitedError) or outcome.retry_after is not None):
            rate.refused(began, outcome.retry_after)
        return outcome

    def _count(self, requests: int = 0, *, retries: int = 0, size: int = 0, seconds: float = 0.0) -> None:
        with self._lock:
            self._requests += requests
            self._retries += retries
            self._bytes += size
            self._seconds += seconds


def _printable(value: str | SecretStr) -> bool:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    return text.isascii() and text.isprintable()


def _last(state: tenacity.RetryCallState) -> Outcome:
    outcome: Outcome = state.outcome.result() if state.outcome is not None else Outcome()
    return outcome


def _final(outcome: Outcome, attempts: int, seconds: float) -> RetrievalError:
    """Return the error to raise, which says how often and how long it was tried where that matters."""
    error = outcome.error or TransientError("nothing was sent")
    if not outcome.passing:
        return error
    message = f"{error.message.rstrip('.')} (attempt {attempts}, after {seconds:.1f} s)."
    if isinstance(error, RateLimitedError):
        wait = outcome.retry_after
        hint = f"It asks to wait {wait:.0f} s." if wait is not None else "Lower the rate, or try again later."
        return RateLimitedError(message, retry_after=wait, hint=hint)
    return TransientError(message)
