"""Refuse URLs that lead to private machines, when a URL is named and again when a connection is made.

Only the second check is safe from a name server that answers differently each time, so the transport here resolves a host
itself and connects to the very address that it has examined.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, cast

import anyio
import httpcore
import httpx

from factcheck.errors import PermanentError, TransientError

PATIENCE = 4.0
IDLE = 30.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
# Not for hosts (RFC 6890, RFC 7526), which some versions of Python do not know.
_SPECIAL = (ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("192.88.99.0/24"))
_HOST = re.compile(rb"[a-z0-9._-]+|[0-9a-f:.]+")

Resolver = Callable[[str, int], Awaitable[list[str]]]
_Place = tuple[str, str, int]


class AddressRefusedError(PermanentError):
    """A URL that is not http or https, names a user, or leads to an address that is not public."""


async def guard_url(url: str, *, allow_private: bool = False) -> None:
    """Raise AddressRefusedError unless ``url`` may be fetched; with ``allow_private`` only its form is checked.

    Raise TransientError if the host cannot be resolved.
    """
    parsed = parse_url(url)
    if not allow_private:
        try:
            await public_addresses(*place_of(parsed))
        except OSError as error:
            raise TransientError(f"the host {parsed.host} cannot be resolved: {type(error).__name__}.") from None


def parse_url(url: str | httpx.URL) -> httpx.URL:
    """Return ``url`` parsed; raise AddressRefusedError for another scheme, no valid host or port, or a user part."""
    try:
        parsed = httpx.URL(url)
        parsed.host.encode()  # which decodes an international name, and not each can be
    except (httpx.InvalidURL, UnicodeError, ValueError):
        parsed = httpx.URL("")
    # None of the messages repeats the URL: its user part and its query may hold a key.
    if parsed.scheme not in ("http", "https"):
        raise AddressRefusedError("a URL that is not http:// or https:// is not fetched.", hint="Check the address.")
    if not _HOST.fullmatch(parsed.raw_host):
        raise AddressRefusedError("a URL without a valid host cannot be fetched.", hint="Check the address.")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise AddressRefusedError("a URL without a valid port cannot be fetched.", hint="Check the address.")
    if parsed.userinfo:
        hint = "Give the key as a setting."
        raise AddressRefusedError(f"the URL of {parsed.host} names a user, which is not sent.", hint=hint)
    return parsed


def place_of(url: httpx.URL) -> tuple[str, int]:
    """Return the host of a URL in ASCII and its port, that of the scheme if it names none."""
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, each once, in the order of the system; raise OSError if there are none."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # an empty or overlong label
        raise OSError("no valid host name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def public_addresses(host: str, port: int, resolver: Resolver = resolve) -> list[str]:
    """Return the addresses of ``host``; raise AddressRefusedError if one of them is not public, OSError if there are none."""
    addresses = await resolver(host, port)
    if not addresses:
        raise OSError("no address")
    for address in addresses:
        if not is_public(address):
            hint = "Only public addresses are fetched; a server of one's own is given as a base URL."
            raise AddressRefusedError(f"{host} leads to the address {address}, which is not public.", hint=hint)
    return addresses


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public internet; forms of IPv6 that carry an IPv4 address do not.

    The exception is the prefix by which networks without IPv4 reach it (RFC 6052), where the inner address decides.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # also with a zone, which only link-local addresses have
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip in _NAT64:
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if isinstance(ip, ipaddress.IPv4Address) and any(ip in network for network in _SPECIAL):
        return False
    if isinstance(ip, ipaddress.IPv6Address) and (ip not in _UNICAST or ip.sixtofour or ip.teredo):
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Send requests over connections to addresses that were examined, and keep at most ``keepalive`` of them for later.

    ``trusted`` holds the hosts and ports that may be private; the owner adds to it. It is a transport and not a client,
    because the client of httpx writes each URL with its query to the log. It keeps connections itself, because the pool of
    httpcore looks at all of them for each request, which at 64 costs more than the request.
    """

    def __init__(
        self, *, context: ssl.SSLContext | None, trusted: set[tuple[str, int]], resolver: Resolver, keepalive: int
    ) -> None:
        self._context = context
        self._backend = _Backend(trusted, resolver)
        self._keepalive = keepalive
        self._idle: dict[_Place, list[httpcore.AsyncHTTPConnection]] = {}
        self._kept = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request; raise the errors of httpcore, OSError if the host has no address, and AddressRefusedError."""
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        place = (url.scheme, *place_of(url))
        connection = await self._kept_connection(place)
        if connection is None:
            connection = httpcore.AsyncHTTPConnection(
                target.origin, ssl_context=self._context, keepalive_expiry=IDLE, network_backend=self._backend
            )
        response = await connection.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        stream = _Stream(cast("AsyncIterable[bytes]", response.stream), lambda: self._keep(place, connection))
        return httpx.Response(response.status, headers=response.headers, stream=stream, extensions=response.extensions)

    async def aclose(self) -> None:
        """Close all connections that are not in use."""
        idle = [connection for connections in self._idle.values() for connection in connections]
        self._idle, self._kept, self._keepalive = {}, 0, 0
        for connection in idle:
            await connection.aclose()

    async def _kept_connection(self, place: _Place) -> httpcore.AsyncHTTPConnection | None:
        while kept := self._idle.get(place):
            connection = kept.pop()
            self._kept -= 1
            if not kept:
                del self._idle[place]
            if connection.is_available() and not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _keep(self, place: _Place, connection: httpcore.AsyncHTTPConnection) -> None:
        if not connection.is_idle():
            await connection.aclose()
            return
        # Last in, first out, and the host that was asked least recently gives way.
        self._idle[place] = [*self._idle.pop(place, ()), connection]
        self._kept += 1
        while self._kept > self._keepalive:
            oldest = next(iter(self._idle))
            surplus = self._idle[oldest].pop(0)
            if not self._idle[oldest]:
                del self._idle[oldest]
            self._kept -= 1
            await surplus.aclose()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterable[bytes], done: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._done = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):  # a call that ran out of time must not leave its connection open
            close = getattr(self._stream, "aclose", None)
            if close is not None:
                await close()
            await self._done()


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, trusted: set[tuple[str, int]], resolver: Resolver) -> None:
        self._trusted = trusted
        self._resolver = resolver
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        if (host, port) in self._trusted:
            addresses = await self._resolver(host, port)
        else:
            addresses = await public_addresses(host, port, self._resolver)
        failure: Exception = httpcore.ConnectError("no address")
        for tries_left, address in zip(range(len(addresses) - 1, -1, -1), addresses, strict=True):
            # An address that swallows packets must not use up the time of the others.
            patience = timeout if not tries_left else min(timeout or PATIENCE, PATIENCE)
            try:
                stream = await self._inner.connect_tcp(address, port, patience, local_address, socket_options)
                return _Together(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class _Together(httpcore.AsyncNetworkStream):
    """Send what is written before the next read at once: httpcore writes the head and the body of a request by themselves."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._waiting = bytearray()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        await self._flush(timeout)
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._waiting += buffer
        if len(self._waiting) > 65_536:
            await self._flush(timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Together(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    async def _flush(self, timeout: float | None) -> None:
        if self._waiting:
            waiting, self._waiting = bytes(self._waiting), bytearray()
            await self._stream.write(waiting, timeout)
