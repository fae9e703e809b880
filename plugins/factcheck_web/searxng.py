"""The retriever ``web/searxng``: a SearXNG server of your own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from factcheck.errors import PermanentError, TransientError
from factcheck.net import HttpStatusError
from factcheck_web.base import Hit, Rate, ReplyModel, Text, page_hit
from factcheck_web.open_web import OpenWebRetriever, OpenWebSettings
from factcheck_web.texts import iso_date, one_line


class _Result(ReplyModel):
    title: Text = ""
    url: Text
    content: Text = ""
    published_date: Text = Field(default="", alias="publishedDate")
    score: float | None = None


class SearxngReply(ReplyModel):
    """Hold a reply; ``unresponsive_engines`` are pairs of a name and a reason."""

    results: tuple[_Result, ...]
    unresponsive_engines: tuple[Any, ...] = ()


class SearxngRetriever(OpenWebRetriever):
    """Search through SearXNG; its settings must allow the format ``json``."""

    name = "web/searxng"
    provider = "SearXNG"
    rate = Rate(per_second=5.0, burst=5)
    query_chars = 500
    query_words = 32

    class Settings(OpenWebSettings):
        """Name the server, and its categories and engines as comma-separated lists."""

        base_url: str = Field(pattern=r"^https?://[^\s?#]+$")
        categories: str = "general"
        engines: str = ""
        language: str = ""
        safesearch: Literal[0, 1, 2] = 0

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits; raises TransientError if there are none because engines failed."""
        params = {
            "q": self.narrowed(text),
            "format": "json",
            "categories": self.settings.categories or None,
            "engines": self.settings.engines or None,
            "language": self.settings.language or None,
            "safesearch": self.settings.safesearch,
        }
        try:
            reply = await self.get("/search", params)
        except HttpStatusError as error:
            if error.status != 403:
                raise
            raise PermanentError(
                "SearXNG refuses the format json.",
                hint="Add json to search.formats in its settings.yml; if it is there, its limiter or a proxy refuses.",
            ) from error
        found = self.read(SearxngReply, reply.json())
        if not found.results and found.unresponsive_engines:
            silent = "; ".join(_engine(item) for item in found.unresponsive_engines[:5])
            raise TransientError(
                f"SearXNG found nothing, and engines of it failed: {silent}.",
                hint="Try again later, or set other engines.",
            )
        return [
            page_hit(
                result.url,
                result.content,
                title=result.title,
                published=iso_date(result.published_date),
                score=result.score,
            )
            for result in found.results
            if result.url  # a calculator and its like give an answer and no source
        ]


def _engine(item: Any) -> str:
    parts = item if isinstance(item, list | tuple) else [item]
    return one_line(" ".join(f"({part})" if index else str(part) for index, part in enumerate(parts[:2])))[:80]
