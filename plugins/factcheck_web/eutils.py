"""The E-utilities of NCBI: search PubMed and read its records."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

from pydantic import Field, SecretStr

from factcheck.errors import PermanentError
from factcheck.net import Net
from factcheck_web.base import ReplyModel, Text, read_reply, reject, restate
from factcheck_web.safe_xml import markup_of, parse_xml
from factcheck_web.texts import iso_date, one_line, plain_text

PROVIDER = "PubMed"
BASE_URL = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
ARTICLE_URL = "https://pubmed.ncbi.nlm.nih.gov/"


# What efetch says with status 400 if none of the numbers can be that of an article, as 0.
_NO_IDS = "ID list is empty! Possibly it has no correct IDs"
# Errors that come with status 200 or 400 and pass.
_PASSING = re.compile(
    r'"ERROR"\s*:\s*"Search Backend failed|<ERROR>.{0,1000}(?:Search Backend failed|proxy_stream\(\))', re.S
)


class _Search(ReplyModel):
    idlist: tuple[str, ...] | None = None
    error: Text = Field(default="", alias="ERROR")


class EsearchReply(ReplyModel):
    """Hold a reply of esearch; an error stands beside or in place of the list of ids."""

    esearchresult: _Search | None = None
    error: Text = ""


class Notice(ReplyModel):
    """Hold a notice that names an article: its kind (``RetractionIn``, ``ErratumIn``, …) and the PMID of the notice."""

    kind: str
    pmid: str = ""


class Article(ReplyModel):
    """Hold a record of PubMed; ``abstract`` has one line for each labelled section, ``year`` is "" if it is unknown."""

    pmid: str = Field(pattern=r"^\d{1,9}$")
    title: str = ""
    abstract: str = ""
    journal: str = ""
    published: str = ""
    doi: str = ""
    kinds: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def year(self) -> str:
        """Return the year of publication."""
        return self.published[:4]

    @property
    def retracted(self) -> bool:
        """Tell whether the article was retracted."""
        return "Retracted Publication" in self.kinds or any(note.kind == "RetractionIn" for note in self.notices)


class Eutils:
    """Ask the E-utilities; ``email`` and ``key`` are sent if there are any."""

    def __init__(
        self, net: Net, base_url: str, *, email: SecretStr | None = None, key: SecretStr | None = None
    ) -> None:
        self._net = net
        self._base_url = base_url
        self._common: dict[str, Any] = {"db": "pubmed", "tool": "factcheck", "email": email, "api_key": key}

    async def search(self, term: str, k: int) -> list[str]:
        """Return at most ``k`` PMIDs, best match first."""
        params = {**self._common, "term": term, "retmode": "json", "retmax": k, "sort": "relevance"}
        url = f"{self._base_url}/esearch.fcgi"
        reply = await self._net.request("GET", url, params=params, restate=_restate)
        found = read_reply(EsearchReply, reply.json(), provider=PROVIDER)
        result = found.esearchresult
        if message := found.error or (result.error if result is not None else ""):
            reject(PROVIDER, message)
        if result is None or result.idlist is None:
            read_reply(_Whole, {"esearchresult": {} if result is not None else None}, provider=PROVIDER)
            return []
        return list(result.idlist[:k])

    async def articles(self, pmids: Sequence[str]) -> list[Article]:
        """Return the records in the order of ``pmids``; one that does not exist is left out."""
        if not pmids:
            return []
        params = {**self._common, "id": ",".join(pmids), "retmode": "xml"}
        url = f"{self._base_url}/efetch.fcgi"
        accept = ("text/xml", "application/xml")
        reply = await self._net.request("GET", url, params=params, accept=accept, restate=_restate)
        if _NO_IDS in reply.text[:1000]:
            return []
        if "<eFetchResult>" in reply.text[:1000]:
            failed = parse_xml(reply.text, provider=PROVIDER, root="eFetchResult")
            reject(PROVIDER, failed.findtext("ERROR") or "")
        root = parse_xml(reply.text, provider=PROVIDER, root="PubmedArticleSet")
        found = {article.pmid: article for article in map(_article, root) if article is not None}
        return [found[pmid] for pmid in dict.fromkeys(pmids) if pmid in found]


def _restate(status: int, body: str) -> int:
    if status == 400 and _NO_IDS in body[:1000]:
        return 200
    return 503 if status in (200, 400) and _PASSING.search(body[:2000]) else restate(status, body)


class _Ids(ReplyModel):
    idlist: tuple[str, ...]


class _Whole(ReplyModel):
    esearchresult: _Ids


def _article(element: ET.Element) -> Article | None:
    if element.tag == "PubmedArticle":
        record, body, holder = element.find("MedlineCitation"), element.find("MedlineCitation/Article"), "PubmedData"
    elif element.tag == "PubmedBookArticle":
        record = body = element.find("BookDocument")
        holder = "BookDocument"
    else:
        return None
    if record is None or body is None:
        raise PermanentError(
            f"the reply of {PROVIDER} is not as documented: '{element.tag}' is empty.", hint="Try again later."
        )
    raw = {
        "pmid": (record.findtext("PMID") or "").strip(),
        "title": one_line(plain_text(markup_of(_first(body, "ArticleTitle", "Book/BookTitle")))),
        "abstract": _abstract(body),
        "journal": one_line(body.findtext("Journal/Title") or body.findtext("Book/BookTitle") or ""),
        "published": _published(body),
        "doi": next(
            (
                item.text or ""
                for item in element.findall(f"{holder}/ArticleIdList/ArticleId")
                if item.get("IdType") == "doi"
            ),
            "",
        ),
        "kinds": tuple(
            (kind.text or "").strip()
            for kind in (*body.findall("PublicationTypeList/PublicationType"), *body.findall("PublicationType"))
        ),
        "notices": tuple(
            {"kind": note.get("RefType", ""), "pmid": (note.findtext("PMID") or "").strip()}
            for note in record.findall("CommentsCorrectionsList/CommentsCorrections")
        ),
    }
    return read_reply(Article, raw, provider=PROVIDER)


def _first(element: ET.Element, *paths: str) -> ET.Element | None:
    return next((found for path in paths if (found := element.find(path)) is not None), None)


def _abstract(body: ET.Element) -> str:
    lines = []
    for part in body.findall("Abstract/AbstractText"):
        text = one_line(plain_text(markup_of(part)))
        label = one_line(part.get("Label") or "")
        if text:
            lines.append(f"{label}: {text}" if label and label != "UNLABELLED" else text)
    return "\n".join(lines)


def _published(body: ET.Element) -> str:
    """Return the earliest date that is given: electronic publication, then the issue, then the update of a chapter."""
    for path in ("ArticleDate", "Journal/JournalIssue/PubDate", "ContributionDate", "DateRevised", "Book/PubDate"):
        if (date := body.find(path)) is not None:
            year, month, day = (date.findtext(name) or "" for name in ("Year", "Month", "Day"))
            if year:
                text = "-".join([year, *(part.zfill(2) for part in (month, day) if part)])
                named = " ".join(part for part in (day, month, year) if part) if day else f"{year} {month}".strip()
                return iso_date(text if not month or month.isdigit() else named)
            return iso_date(date.findtext("MedlineDate") or "")
    return ""
