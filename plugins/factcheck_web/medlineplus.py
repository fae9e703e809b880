"""The retriever ``web/medlineplus``: health topics of MedlinePlus, for the public."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from factcheck_web.base import Hit, Rate, ReplyModel, WebRetriever, WebSettings, reject, text_id
from factcheck_web.excerpts import best_excerpts
from factcheck_web.safe_xml import parse_xml
from factcheck_web.texts import content_words, plain_text

DATABASES = {"en": "healthTopics", "es": "healthTopicsSpanish"}


class Topic(ReplyModel):
    """Hold a health topic; ``summary`` is its full summary without markup."""

    url: str = Field(pattern=r"^https?://")
    title: str = Field(min_length=1)
    summary: str = ""
    organization: str = ""


class MedlinePlusRetriever(WebRetriever):
    """Find the part of each topic's summary that is closest to the query, topics in the order of the service."""

    name = "web/medlineplus"
    provider = "MedlinePlus"
    rate = Rate(per_second=85 / 60, burst=4)
    host = "medlineplus.gov"
    query_chars = 500
    query_words = 60

    class Settings(WebSettings):
        """Set the language, and whom NLM may write to (``email``)."""

        base_url: str = Field(default="https://wsearch.nlm.nih.gov", pattern=r"^https?://[^\s?#]+$")
        language: Literal["en", "es"] = "en"
        email: SecretStr | None = None

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits: topics on all words of the query, or on any of them if none is on all."""

        async def ask(words: list[str], some: bool) -> list[Hit]:
            topics = await self._topics((" OR " if some else " ").join(words), k)
            return [_hit(topic, text) for topic in topics]

        return await self.relaxed(content_words(text, limit=24), ask)

    async def _topics(self, term: str, k: int) -> list[Topic]:
        params = {
            "db": DATABASES[self.settings.language],
            "term": term,
            "retmax": k,
            "rettype": "brief",
            "tool": "factcheck",
            "email": self.settings.email,
        }
        reply = await self.get("/ws/query", params, accept=("text/xml", "application/xml"))
        root = parse_xml(reply.text, provider=self.provider, root="nlmSearchResult")
        if message := (root.findtext("error") or root.findtext("errorMessage") or "").strip():
            reject(self.provider, message)
        if root.find("list") is None and root.find("count") is None:
            self.read(_Whole, {})
        topics = []
        for document in root.iterfind("list/document"):
            contents: dict[str, str] = {}
            for content in document.iterfind("content"):
                # The service escapes the HTML inside, so one level of markup is text here.
                contents.setdefault(content.get("name", ""), plain_text("".join(content.itertext())))
            raw = {
                "url": document.get("url") or "",
                "title": contents.get("title", ""),
                "summary": contents.get("FullSummary") or contents.get("snippet", ""),
                "organization": contents.get("organizationName", ""),
            }
            topics.append(self.read(Topic, raw))
        return topics


class _Whole(ReplyModel):
    count: int


def _hit(topic: Topic, query: str) -> Hit:
    best = best_excerpts(topic.summary, query, count=1) or best_excerpts(topic.summary, topic.title, count=1)
    text = topic.summary[best[0].start : best[0].end] if best else topic.summary
    return Hit(
        id=f"medlineplus:{text_id(topic.url)[:12]}-{text_id(text)[:8]}",
        doc_id=topic.url,
        text=text,
        title=topic.title,
        url=topic.url,
        source=topic.organization or "MedlinePlus.gov",
    )
