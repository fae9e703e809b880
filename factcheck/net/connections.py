"""Keep the connections of each event loop, direct ones to examined addresses, or those to a proxy."""

from __future__ import annotations

import ssl
import threading
import urllib.request
import uuid
from collections.abc import AsyncGenerator

import httpx
from anyio.lowlevel import RunVar

from factcheck.errors import PermanentError
from factcheck.net.guard import GuardedTransport, Resolver, guard_url, place_of


class Connections:
    """Give the transport for a URL in the running event loop.

    Only hosts that were trusted may be private. Connections close with ``aclose``, or as their event loop ends.
    """

    def __init__(self, *, resolver: Resolver, keepalive: int, trust_env: bool) -> None:
        self._resolver = resolver
        self._keepalive = keepalive
        self._trust_env = trust_env
        self._trusted: set[tuple[str, int]] = set()
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        # Some versions of anyio tell such variables apart by name alone.
        self._here: RunVar[_LoopTransports] = RunVar(f"factcheck.net.{uuid.uuid4()}")

    def trust(self, url: httpx.URL) -> None:
        """Let the host and port of a URL be private."""
        self._trusted.add(place_of(url))

    async def transport(self, url: httpx.URL) -> httpx.AsyncBaseTransport:
        """Return the transport for a URL; raise AddressRefusedError if a proxy would have to fetch a private one."""
        here = await self._of_this_loop()
        proxy = _proxy(url) if self._trust_env else ""
        if proxy and place_of(url) not in self._trusted:
            await guard_url(str(url))  # the proxy makes the connection, and cannot be told which addresses will do
        name = proxy or url.scheme
        if name not in here.transports:
            here.transports[name] = self._made(proxy, url.scheme)
        return here.transports[name]

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        try:
            await self._here.get().aclose()
        except LookupError:
            return

    async def _of_this_loop(self) -> _LoopTransports:
        try:
            here = self._here.get()
        except LookupError:
            pass
        else:
            if not here.closed:
                return here
        here = _LoopTransports()
        self._here.set(here)
        await here.open()
        return here

    def _made(self, proxy: str, scheme: str) -> httpx.AsyncBaseTransport:
        with self._lock:
            if self._context is None and (proxy or scheme == "https"):  # 20 ms, which a local server need not cost
                self._context = httpx.create_ssl_context(trust_env=self._trust_env)
        if proxy:
            try:
                return httpx.AsyncHTTPTransport(verify=self._context or True, proxy=proxy, trust_env=False)
            except (
                ImportError,
                ValueError,
                httpx.InvalidURL,
            ):  # its address, which may hold a password, is not repeated
                hint = "It must be http:// or https://; a SOCKS proxy needs the package socksio."
                raise PermanentError("the proxy that the environment names cannot be used.", hint=hint) from None
        return GuardedTransport(
            context=self._context, trusted=self._trusted, resolver=self._resolver, keepalive=self._keepalive
        )


class _LoopTransports:
    """Hold the transports of one event loop, which closes them as it ends: it finishes each generator that is left."""

    def __init__(self) -> None:
        self.transports: dict[str, httpx.AsyncBaseTransport] = {}
        self.closed = False
        self._keeper = self._keep()

    async def open(self) -> None:
        await anext(self._keeper)

    async def aclose(self) -> None:
        await self._keeper.aclose()

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self.closed = True
            for transport in self.transports.values():
                await transport.aclose()


def _proxy(url: httpx.URL) -> str:
    """Return the proxy that the environment names for a URL, "" if none."""
    if urllib.request.proxy_bypass(url.host):
        return ""
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all") or ""
