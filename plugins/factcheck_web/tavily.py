"""The retriever ``web/tavily``: the search API of Tavily."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SecretStr

from factcheck_web.base import Hit, Rate, ReplyModel, Text, page_hit, reject
from factcheck_web.open_web import OpenWebKeySettings, OpenWebRetriever
from factcheck_web.texts import iso_date

MOST = 20
MOST_DOMAINS = 300


class _Result(ReplyModel):
    title: Text = ""
    url: str
    content: Text = ""
    score: float | None = None
    published_date: Text = ""


class TavilyReply(ReplyModel):
    """Hold a reply; an error has ``detail`` or ``error`` in place of the results."""

    results: tuple[_Result, ...] | None = None
    detail: Any = None
    error: Any = None


class TavilyRetriever(OpenWebRetriever):
    """Search with Tavily, which scores its results itself and takes an allow-list of up to 300 domains."""

    name = "web/tavily"
    provider = "Tavily"
    rate = Rate(per_second=100 / 60, burst=4)
    query_chars = 400

    class Settings(OpenWebKeySettings):
        """Set how deep to search; ``advanced`` costs two credits and brings longer excerpts."""

        base_url: str = Field(default="https://api.tavily.com", pattern=r"^https?://[^\s?#]+$")
        key_env: str = "TAVILY_API_KEY"
        search_depth: Literal["basic", "advanced"] = "basic"

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits; no answer of a model is asked for."""
        domains = list(self.settings.domains)
        listed = domains if len(domains) <= MOST_DOMAINS else []
        body: dict[str, Any] = {
            "query": text,
            "search_depth": self.settings.search_depth,
            "max_results": min(k, MOST) if listed == domains else MOST,
            "include_answer": False,
            "include_raw_content": False,
        }
        if listed:
            body["include_domains"] = listed
        key = SecretStr(f"Bearer {self.secret.get_secret_value()}")
        url = f"{self.settings.base_url}/search"
        reply = await self.net.request("POST", url, json=body, headers={"Authorization": key})
        found = self.read(TavilyReply, reply.json())
        if found.results is None:
            self._refused(found)
        return [
            page_hit(
                result.url,
                result.content,
                title=result.title,
                published=iso_date(result.published_date),
                score=result.score,
            )
            for result in found.results or ()
        ]

    def _refused(self, found: TavilyReply) -> None:
        detail = found.detail if found.detail is not None else found.error
        if isinstance(detail, dict):
            detail = detail.get("error") or detail.get("message")
        if isinstance(detail, str):
            reject(self.provider, detail)
        self.read(_WithResults, {})


class _WithResults(ReplyModel):
    results: tuple[_Result, ...]
