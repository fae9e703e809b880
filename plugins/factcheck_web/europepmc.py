"""The retriever ``web/europepmc``: abstracts of Europe PMC."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from factcheck_web.base import Hit, Rate, ReplyModel, Text, WebRetriever, WebSettings, reject
from factcheck_web.texts import content_words, iso_date, plain_text

WORDS = 24


class _Journal(ReplyModel):
    title: Text = ""


class _JournalInfo(ReplyModel):
    journal: _Journal | None = None


class _Kinds(ReplyModel):
    kinds: tuple[str, ...] = Field(default=(), alias="pubType")


class _Result(ReplyModel):
    id: str
    source: str
    title: Text = ""
    abstract: Text = Field(default="", alias="abstractText")
    published: Text = Field(default="", alias="firstPublicationDate")
    year: Text = Field(default="", alias="pubYear")
    journal_info: _JournalInfo | None = Field(default=None, alias="journalInfo")
    kinds: _Kinds | None = Field(default=None, alias="pubTypeList")


class _Results(ReplyModel):
    result: tuple[_Result, ...]


class EuropePmcReply(ReplyModel):
    """Hold a reply; an error has ``errMsg`` in place of the results, and status 200."""

    results: _Results | None = Field(default=None, alias="resultList")
    message: Text = Field(default="", alias="errMsg")


class _Whole(ReplyModel):
    results: _Results = Field(alias="resultList")


class EuropePmcRetriever(WebRetriever):
    """Find abstracts, most relevant first; retracted articles and, unless asked for, preprints are left out."""

    name = "web/europepmc"
    provider = "Europe PMC"
    rate = Rate(per_second=8.0, burst=4)
    host = "europepmc.org"
    query_chars = 1000
    query_words = 200

    class Settings(WebSettings):
        """Set whether preprints count, and a query that every article must meet (``restrict``) in Europe PMC's syntax."""

        base_url: str = Field(
            default="https://www.ebi.ac.uk/europepmc/webservices/rest", pattern=r"^https?://[^\s?#]+$"
        )
        preprints: bool = False
        restrict: str = Field(default="", max_length=500)

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits: articles that hold all words of the query, or any of them if none holds all."""

        async def ask(words: list[str], some: bool) -> list[Hit]:
            params: dict[str, Any] = {
                "query": self._query(words, some=some),
                "format": "json",
                "resultType": "core",
                "pageSize": k,
            }
            found = self.read(EuropePmcReply, (await self.get("/search", params)).json())
            if found.results is None and found.message:
                reject(self.provider, found.message)
            if found.results is None:
                self.read(_Whole, {})
                return []
            return [_hit(result) for result in found.results.result if not _retracted(result)]

        return await self.relaxed(content_words(text, limit=WORDS), ask)

    def _query(self, words: list[str], *, some: bool) -> str:
        quoted = [word if re.fullmatch(r"\w+", word) else f'"{word}"' for word in words]
        parts = [f"({(' OR ' if some else ' AND ').join(quoted)})", "AND (HAS_ABSTRACT:y)"]
        if self.settings.restrict:
            parts.append(f"AND ({self.settings.restrict})")
        parts.append('NOT (PUB_TYPE:"retracted publication")')
        if not self.settings.preprints:
            parts.append("NOT (SRC:PPR)")
        return " ".join(parts)


def _retracted(result: _Result) -> bool:
    kinds = result.kinds.kinds if result.kinds is not None else ()
    return any(kind.casefold() == "retracted publication" for kind in kinds)


def _hit(result: _Result) -> Hit:
    journal = result.journal_info.journal if result.journal_info is not None else None
    name = f"{result.source}:{result.id}".lower()
    return Hit(
        id=f"europepmc:{name}",
        doc_id=f"europepmc:{name}",
        text=plain_text(result.abstract),
        title=plain_text(result.title),
        url=f"https://europepmc.org/article/{result.source}/{result.id}",
        source=journal.title if journal is not None and journal.title else "Europe PMC",
        published=iso_date(result.published) or iso_date(result.year),
    )
