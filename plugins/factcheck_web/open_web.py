"""What the general search services share: snippets as passages, and pages read in full where that is asked for."""

from __future__ import annotations

import importlib.util
from typing import Any

import anyio.to_thread
from pydantic import Field

from factcheck.errors import MissingExtraError, RetrievalError
from factcheck.net import Net
from factcheck.schema import Passage, Query
from factcheck.together import together
from factcheck_web.base import KeySettings, WebRetriever, WebSettings
from factcheck_web.fetch import FetchSettings, PageFetcher
from factcheck_web.texts import search_query

SITE_TERMS = 8


class OpenWebSettings(WebSettings):
    """Add ``pages``, how many of the first results are fetched and quoted instead of their snippets."""

    pages: int = Field(default=0, ge=0, le=20)
    fetch: FetchSettings = FetchSettings()


class OpenWebKeySettings(OpenWebSettings, KeySettings):
    """Hold the settings of a search service of the open web that needs a key."""


class OpenWebRetriever(WebRetriever):
    """Return the results of a search service; the text of a passage is its snippet, or the best part of the page."""

    def __init__(self, settings: Any = None, *, net: Net | None = None, fetcher: PageFetcher | None = None) -> None:
        super().__init__(settings, net=net)
        # Said here, because later the first searches would have been paid for.
        if self.settings.pages and importlib.util.find_spec("trafilatura") is None:
            raise MissingExtraError(f"the setting 'pages' of retriever '{self.name}'", "trafilatura", "web")
        self.fetcher = fetcher or PageFetcher(self.settings.fetch, domains=self.settings.domains)

    async def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return at most ``k`` passages, in the order of the service; ``[]`` if it found nothing.

        A page that cannot be fetched, or of which no part shares a word with the query, leaves its snippet.
        """
        found = await super().retrieve(query, k)
        first, rest = found[: self.settings.pages], found[self.settings.pages :]
        read = await together(first, lambda passage: self._read(passage, query.text))
        distinct: dict[str, Passage] = {}
        for passage in (*read, *rest):
            distinct.setdefault(passage.id, passage)
        return [passage.model_copy(update={"rank": rank}) for rank, passage in enumerate(distinct.values(), start=1)]

    async def _read(self, passage: Passage, query: str) -> Passage:
        """Return the passage with the best part of its page as its text, or as it is if there is none to be had."""
        try:
            page = await self.fetcher.fetch(passage.url)
        except RetrievalError:
            return passage
        found = await anyio.to_thread.run_sync(self.fetcher.excerpts, page, query, 1)
        if not found:
            return passage
        part = found[0]
        taken = {"id": part.id, "doc_id": part.doc_id, "text": part.text, "url": part.url, "source": part.source}
        taken |= {"title": part.title or passage.title, "published": part.published or passage.published}
        return passage.model_copy(update=taken)

    def sites(self) -> str:
        """Return the allow-list as ``site:`` terms for services that know them, "" if it is empty or too long.

        A longer list is applied to the results; ``passages`` of other sites are left out in either case.
        """
        domains = self.settings.domains
        if not domains or len(domains) > SITE_TERMS:
            return ""
        terms = " OR ".join(f"site:{domain}" for domain in domains)
        return f"({terms})" if len(domains) > 1 else terms

    def narrowed(self, text: str) -> str:
        """Return a query with its ``site:`` terms, cut so that no engine leaves them out for its length."""
        sites = self.sites()
        room, words = self.query_chars - len(sites) - 1, self.query_words - len(sites.split())
        return f"{search_query(text, chars=room, words=words)} {sites}".strip()

    def wanted(self, k: int, most: int) -> int:
        """Return how many results to ask for: all that one request brings if some will be left out."""
        return most if self.settings.domains and not self.sites() else min(k, most)
