"""Fetch web pages and cut out what a query is about.

A page is fetched only if its site's robots.txt allows it, from a public address, also after redirects, and only as
HTML or plain text of bounded size. Its readable text comes from trafilatura; a passage is an exact slice of it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import anyio
import anyio.to_thread
from pydantic import Field

from factcheck.errors import MissingExtraError, PermanentError, TransientError
from factcheck.net import HttpStatusError, Net, NetSettings, RateLimit, RedirectedError, Reply
from factcheck.net.exchange import REDIRECT_LIMIT
from factcheck.net.guard import parse_url, place_of
from factcheck.schema import Model, Passage
from factcheck_web.authorities import Domains, allowed, host_of
from factcheck_web.base import Hit, passages, text_id
from factcheck_web.excerpts import best_excerpts
from factcheck_web.remembered import Remembered
from factcheck_web.robots import Robots
from factcheck_web.texts import iso_date, one_line

CORPUS = "web/page"
ACCEPT = ("text/html", "application/xhtml+xml", "text/plain")
ROBOTS_SECONDS = 24 * 3600.0
SITES_REMEMBERED = 1000
PAGE_SECONDS = 600.0
PAGES_REMEMBERED = 200
LONGEST_DELAY = 10.0
# To cut a text into parts takes a second for a million characters.
TEXT_LIMIT = 300_000
# Statuses that say that a site has no robots.txt: all of the client's but those that deny it.
MISSING = frozenset(range(400, 500)) - {401, 403}

_POWER = re.compile(r"(?<=\d)(<sup\b[^<>]*>)(?=\s*[-−–+]?\d)", re.IGNORECASE)


class FetchSettings(Model):
    """Hold the bounds of fetching; ``delay`` is the least pause in seconds between two pages of one site.

    ``min_words`` and ``max_words`` bound an excerpt. ``net.allow_private`` has no effect: pages are public or refused.
    """

    delay: float = Field(default=1.0, ge=0, le=60)
    min_words: int = Field(default=60, ge=1, le=1000)
    max_words: int = Field(default=150, ge=10, le=2000)
    net: NetSettings = NetSettings(timeout=8.0, deadline=12.0, attempts=2, max_bytes=3_000_000)


class Page(NamedTuple):
    """Hold the readable text of a page; ``url`` is where it was found after redirects."""

    url: str
    text: str
    title: str = ""
    published: str = ""
    source: str = ""


class PageFetcher:
    """Fetch pages from the sites of ``domains``, () for any; safe for concurrent use and several event loops.

    A page and a robots.txt that were read are remembered for a while, since the claims of one answer find the same pages.
    """

    def __init__(self, settings: FetchSettings | None = None, *, domains: Domains = (), net: Net | None = None) -> None:
        self.settings = settings or FetchSettings()
        self.domains = domains
        chosen = self.settings.net.model_copy(update={"allow_private": False})
        self.agent = chosen.user_agent or "factcheck"
        self.net = net if net is not None else Net(chosen, rate=RateLimit(per_second=10.0, burst=10, concurrency=8))
        self._lock = threading.Lock()
        self._pages: Remembered[Page] = Remembered(PAGE_SECONDS, PAGES_REMEMBERED)
        self._robots: Remembered[Robots | None] = Remembered(ROBOTS_SECONDS, SITES_REMEMBERED)
        self._next: dict[str, float] = {}

    async def fetch(self, url: str) -> Page:
        """Return the readable text of a page, at most ``TEXT_LIMIT`` characters.

        Raises MissingExtraError without the extra ``web``, PermanentError for a page that must not or cannot be read,
        TransientError if a later attempt may succeed. All of it takes at most the deadline of ``net``.
        """
        extract = await anyio.to_thread.run_sync(extractor)  # the first import takes a second
        parse_url(url)
        url = url.partition("#")[0]
        allowance = self.net.settings.deadline
        ends = time.monotonic() + allowance
        with anyio.move_on_after(allowance):
            return await self._pages.get(url, lambda: self._page(url, extract, ends))
        raise TransientError(
            f"the page at {_site(url)} could not be read within {allowance:g} s.", hint="Try again later."
        )

    def excerpts(self, page: Page, query: str, k: int) -> list[Passage]:
        """Return at most ``k`` parts of a page that share words with the query, best first, as exact slices of its text.

        The id names the page's text and the slice: ``<page>-<text>:<start>-<end>``.
        """
        key = f"{text_id(page.url)}-{text_id(page.text)[:8]}"
        found = best_excerpts(
            page.text, query, count=k, min_words=self.settings.min_words, max_words=self.settings.max_words
        )
        hits = [
            Hit(
                id=f"{key}:{start}-{end}",
                doc_id=page.url,
                text=page.text[start:end],
                title=page.title,
                url=page.url,
                source=page.source or _site(page.url),
                published=page.published,
                score=score,
            )
            for start, end, score in found
        ]
        return passages(hits, k, corpus=CORPUS)

    async def _page(self, url: str, extract: Extractor, ends: float) -> Page:
        final, reply = await self._reply(url, ends)
        if reply.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/plain":
            return Page(final, reply.text[:TEXT_LIMIT], source=_site(final))
        try:
            page = await anyio.to_thread.run_sync(extract, reply.text, final, abandon_on_cancel=True)
        except Exception as error:  # the markup of a stranger, read by a library that promises nothing about it
            raise PermanentError(
                f"the page at {_site(final)} cannot be read: {type(error).__name__}.", hint="Use another source."
            ) from None
        if not page.text.strip():
            raise PermanentError(
                f"the page at {_site(final)} has no readable text.", hint="It may need a browser to be shown."
            )
        return page

    async def _reply(self, url: str, ends: float) -> tuple[str, Reply]:
        """Return the reply and its address; each redirect must be permitted as the page itself, before it is followed."""
        for _ in range(REDIRECT_LIMIT + 1):
            delay = await self._permit(url)
            await self._take_turn(url, delay, ends)
            try:
                return url, await self.net.request("GET", url, accept=ACCEPT, redirects=False)
            except RedirectedError as error:
                url = error.to.partition("#")[0]
        raise PermanentError(f"the page redirects more than {REDIRECT_LIMIT} times, last to {_site(url)}.")

    async def _permit(self, url: str) -> float:
        """Return the pause that the site wants; raise PermanentError unless allow-list and robots.txt permit the page."""
        if not allowed(url, self.domains):
            raise PermanentError(
                f"the page at {_site(url)} is on no site of the allow-list.", hint="Add its domain to 'domains'."
            )
        robots = await self._robots.get(_origin(url), lambda: self._rules(url))
        if robots is None or not robots.allows(url):
            raise PermanentError(
                f"the robots.txt of {_site(url)} does not allow the page.", hint="Use another source, or ask the site."
            )
        if robots.delay > LONGEST_DELAY:
            raise PermanentError(
                f"the robots.txt of {_site(url)} asks for {robots.delay:g} s between pages.", hint="Use another source."
            )
        return max(self.settings.delay, robots.delay)

    async def _rules(self, url: str) -> Robots | None:
        """Return the rules of a site, None if it allows nothing; RFC 9309 says what a missing file means."""
        try:
            reply = await self.net.request("GET", f"{_origin(url)}/robots.txt", accept=("*/*",))
        except HttpStatusError as error:
            return Robots("", self.agent) if error.status in MISSING else None
        except TransientError as error:
            raise TransientError(
                f"the robots.txt of {_site(url)} cannot be read now: {error.message}", hint="Try again later."
            ) from error
        return Robots(reply.text, self.agent)

    async def _take_turn(self, url: str, delay: float, ends: float) -> None:
        origin = _origin(url)
        with self._lock:
            now = time.monotonic()
            if len(self._next) >= SITES_REMEMBERED:
                self._next = {site: turn for site, turn in self._next.items() if turn > now}
            turn = max(now, self._next.get(origin, 0.0))
            if turn < ends:
                self._next[origin] = turn + delay
        if turn >= ends:
            raise TransientError(f"{_site(url)} has too many pages to give before this one.", hint="Try again later.")
        await anyio.sleep(turn - now)


Extractor = Callable[[str, str], Page]


def extractor() -> Extractor:
    """Return what makes a Page of markup and its address; raises MissingExtraError without the extra ``web``."""
    try:
        from trafilatura import bare_extraction
    except ImportError as error:
        raise MissingExtraError("fetching pages", "trafilatura", "web") from error

    def extract(markup: str, url: str) -> Page:
        # A power would otherwise lose its sign: 10<sup>9</sup> is not 109.
        found = bare_extraction(
            _POWER.sub(r"^\1", markup),
            url=url,
            include_comments=False,
            include_tables=True,
            with_metadata=True,
            date_extraction_params={"original_date": False, "extensive_search": False},
        )
        if found is None or isinstance(found, dict):
            return Page(url, "")
        return Page(
            url=url,
            text=(found.text or "")[:TEXT_LIMIT],
            title=one_line(found.title or ""),
            published=iso_date(found.date or ""),
            source=one_line(found.sitename or "") or _site(url),
        )

    return extract


def _origin(url: str) -> str:
    parsed = parse_url(url)
    host, port = place_of(parsed)
    return f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _site(url: str) -> str:
    return host_of(url).removeprefix("www.") or "an unknown site"
