"""One attempt at a call: send it, follow redirects, read the reply within its bounds, and say what came of it.

What goes wrong is a value here and is raised by the client, so that no traceback holds a request with its key.
"""

from __future__ import annotations

import datetime
import http
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple

import httpcore
import httpx
from pydantic import Field

from factcheck.errors import PermanentError, RateLimitedError, RetrievalError, TransientError
from factcheck.net.connections import Connections
from factcheck.net.guard import AddressRefusedError, parse_url, place_of
from factcheck.net.messages import (
    KEY_LENGTH,
    Body,
    BodyError,
    accepts,
    decoded,
    error_detail,
    seconds_to_wait,
    without_secrets,
)
from factcheck.schema import Model

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REDIRECT_LIMIT = 5
# Besides the usual ones those of content networks for an origin that is down, and 529 for one that is overloaded.
PASSING = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
ERROR_BODY_LIMIT = 65_536
# What name servers say of a host that does not exist, in the words of Linux, macOS and Windows.
UNKNOWN_HOST = (
    "Name or service not known",
    "nodename nor servname",
    "No address associated",
    "getaddrinfo failed",
    "no valid host name",
)


class HttpStatusError(PermanentError):
    """A reply with a status that no retry will change; ``detail`` is what the server says, without secrets."""

    def __init__(self, message: str, *, status: int, detail: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.detail = detail


class RedirectedError(PermanentError):
    """A redirect that was not to be followed; ``to`` is where it leads, in full."""

    def __init__(self, message: str, *, to: str) -> None:
        super().__init__(message)
        self.to = to


class Reply(Model):
    """Hold a successful reply: ``url`` after redirects without its query, ``headers`` with lower-case names, no cookies.

    A key of the request that the server repeats is masked in all of them.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    text: str = Field(repr=False)
    attempts: int = 1
    seconds: float = 0.0

    def json(self, **_: Any) -> Any:
        """Return the text read as JSON; raise PermanentError if it is none."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            pass
        raise PermanentError(f"{self.url} answered with a body that is no valid JSON.")


class Call(NamedTuple):
    """Hold a request to make; ``secret_headers`` go to the origin of ``url`` alone, ``secrets`` into no message."""

    method: str
    url: httpx.URL
    headers: tuple[tuple[str, str], ...]
    secret_headers: tuple[tuple[str, str], ...]
    content: bytes | None
    secrets: frozenset[str]
    accept: tuple[str, ...]
    restate: Callable[[int, str], int] | None
    max_bytes: int
    redirects: bool

    def __repr__(self) -> str:
        # Tools that show the variables of a traceback show this, and not the key.
        return f"Call({self.where()})"

    def where(self, url: httpx.URL | None = None) -> str:
        """Name the call in a message."""
        return f"{self.method} {shown(url or self.url, self.secrets)}"


class Outcome(NamedTuple):
    """Hold a reply or an error, and the seconds that the server asks to wait."""

    reply: Reply | None = None
    error: RetrievalError | None = None
    retry_after: float | None = None

    @property
    def passing(self) -> bool:
        """Tell whether another attempt may succeed."""
        return isinstance(self.error, (TransientError, RateLimitedError))


async def follow(call: Call, connections: Connections, count: Callable[[int, int], None]) -> Outcome:
    """Send a request, follow the redirects that it meets, and return what came of it; ``count`` gets requests and bytes."""
    url = call.url
    for _ in range(REDIRECT_LIMIT + 1):
        secret = call.secret_headers if _origin(url) == _origin(call.url) else ()
        request = httpx.Request(call.method, url, headers=[*call.headers, *secret], content=call.content)
        found = await _exchange(call, request, connections, count)
        if isinstance(found, Outcome):
            return found
        try:
            url = parse_url(str(found))
        except AddressRefusedError as error:
            return Outcome(error=AddressRefusedError(f"{call.where()} redirects: {error.message}"))
        if not call.redirects:
            return Outcome(
                error=RedirectedError(f"{call.where()} redirects to {shown(url, call.secrets)}.", to=str(url))
            )
        if call.method not in ("GET", "HEAD"):
            message = f"{call.where()} redirects to {shown(url, call.secrets)}, where what was sent is not sent on to."
            return Outcome(error=PermanentError(message, hint="Give that address if it is right."))
    return Outcome(error=PermanentError(f"{call.where()} redirects more than {REDIRECT_LIMIT} times."))


async def _exchange(
    call: Call, request: httpx.Request, connections: Connections, count: Callable[[int, int], None]
) -> Outcome | httpx.URL:
    """Send one request; return what came of it, or where it redirects to."""
    where = call.where(request.url)
    try:
        transport = await connections.transport(request.url)
        count(1, 0)
        response = await transport.handle_async_request(request)
        try:
            return await _read(call, where, request, response, count)
        finally:
            await response.aclose()
    except (httpcore.TimeoutException, httpx.TimeoutException):
        problem = "it timed out"
    except (httpcore.NetworkError, httpx.NetworkError, OSError) as error:
        problem = without_secrets(str(error) or type(error).__name__, call.secrets)
    except (httpcore.RemoteProtocolError, httpx.RemoteProtocolError):
        problem = "the server broke off its reply or sent none that is valid"
    except RetrievalError as error:  # from the guard or for the proxy
        kind = type(error) if isinstance(error, PermanentError) else TransientError
        return Outcome(error=kind(f"{where} is not fetched: {error.message}", hint=error.hint))
    except BodyError as error:
        return Outcome(error=PermanentError(f"{where} cannot be used: {error}."))
    except (httpcore.UnsupportedProtocol, httpcore.ProxyError, httpcore.ProtocolError, httpx.TransportError) as error:
        return Outcome(error=PermanentError(f"{where} cannot be sent: {type(error).__name__}."))
    if "CERTIFICATE_VERIFY_FAILED" in problem:
        hint = "Check the address, and the certificates of this machine."
        return Outcome(error=PermanentError(f"{where} cannot be reached: its certificate is not valid.", hint=hint))
    if any(words in problem for words in UNKNOWN_HOST):
        return Outcome(error=PermanentError(f"{where} cannot be reached: no such host.", hint="Check the address."))
    return Outcome(error=TransientError(f"{where} failed: {problem.rstrip('.')}"))


async def _read(
    call: Call, where: str, request: httpx.Request, response: httpx.Response, count: Callable[[int, int], None]
) -> Outcome | httpx.URL:
    status, kind = response.status_code, response.headers.get("content-type", "")
    if status in REDIRECTS and "location" in response.headers:
        try:
            return request.url.join(response.headers["location"])
        except (httpx.InvalidURL, ValueError):
            return Outcome(error=PermanentError(f"{where} redirects to what is no address."))
    good = 200 <= status < 300
    try:
        body = Body(call.max_bytes if good else ERROR_BODY_LIMIT, response.headers.get("content-encoding", ""))
        if not body.packed and _length(response) > body.limit:
            raise BodyError(f"its body is larger than {body.limit} bytes")
        async with aclosing(_chunks(response)) as chunks:
            async for chunk in chunks:
                count(0, len(chunk))
                body.add(chunk)
        if not body.complete:
            return Outcome(error=TransientError(f"{where} failed: its packed body breaks off"))
        text = decoded(body.bytes(), kind)
    except BodyError:
        if good:
            raise
        text = ""  # what an error says is of use only where it can be read
    stands_for = call.restate(status, text) if call.restate is not None else status
    if not 200 <= stands_for < 300:
        wait = seconds_to_wait(dict(response.headers), datetime.datetime.now(datetime.UTC))
        return _refusal(where, status, stands_for, without_secrets(error_detail(text, kind), call.secrets), wait)
    if text and not accepts(call.accept, kind):
        named = without_secrets(kind[:80], call.secrets) or "no content type"
        return Outcome(error=PermanentError(f"{where} answered with {named} in place of {' or '.join(call.accept)}."))

    # One like "none" or "ollama" is a word besides.
    keys = [secret for secret in call.secrets if len(secret) >= KEY_LENGTH]

    def clean(kept: str) -> str:
        return without_secrets(kept, keys, shortened=False)

    headers = {name.lower(): clean(value) for name, value in response.headers.items() if name.lower() != "set-cookie"}
    address = shown(request.url, call.secrets, limit=None)
    return Outcome(Reply(status=status, url=address, headers=headers, text=clean(text)))


def _refusal(where: str, status: int, stands_for: int, detail: str, wait: float | None) -> Outcome:
    """Return the outcome for a status that is no success, by the status that it stands for."""
    phrase = f"{status} {_phrase(status)}".strip()
    if stands_for != status:
        phrase += f", which stands for {stands_for} {_phrase(stands_for)}".rstrip()
    said = f": {detail.rstrip('.')}" if detail else ""
    message = f"{where} answered {phrase}{said}"
    if stands_for == 429:
        return Outcome(error=RateLimitedError(message, retry_after=wait), retry_after=wait)
    if stands_for in PASSING:
        return Outcome(error=TransientError(message), retry_after=wait)
    hint = "Check the balance of the account." if stands_for == 402 else ""
    if stands_for in (401, 403, 407):
        # What the server says here may repeat the key, in part or scrambled.
        message, detail = f"{where} answered {phrase}", ""
        hint = "Check the key and what it gives access to."
    return Outcome(error=HttpStatusError(f"{message}.", status=stands_for, detail=detail, hint=hint))


def shown(url: httpx.URL, secrets: frozenset[str] = frozenset(), *, limit: int | None = 200) -> str:
    """Return a URL as it may be shown: without user, query and fragment, at most ``limit`` characters."""
    port = f":{url.port}" if url.port else ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return without_secrets(f"{url.scheme}://{host}{port}{url.path}", secrets)[:limit]


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return (url.scheme, *place_of(url))


def _length(response: httpx.Response) -> int:
    value = response.headers.get("content-length", "")
    return int(value) if value.isdecimal() and len(value) < 20 else 0


async def _chunks(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    if isinstance(response.stream, httpx.AsyncByteStream):
        async for chunk in response.stream:
            yield chunk


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""
