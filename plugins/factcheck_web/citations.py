"""The retriever ``web/citations``: whether a cited work exists, what it is called, and whether it was retracted.

A look-up that finds nothing is evidence too, and it never repeats the claim: neither an identifier that does not exist
nor a title that is not the work's own appears in the text of a passage, where it could pass for a confirmation.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field, SecretStr

from factcheck.net import Net
from factcheck.schema import Model, Passage, Query
from factcheck.text.spelling import fold
from factcheck.together import together
from factcheck_web import clinicaltrials, crossref, eutils
from factcheck_web.base import (
    Hit,
    Rate,
    ServiceSettings,
    find_key,
    make_net,
    passages,
    read_reply,
    restate,
    text_id,
)
from factcheck_web.clinicaltrials import NCT, Study
from factcheck_web.crossref import Crossref, Work
from factcheck_web.eutils import Article, Eutils
from factcheck_web.texts import content_words, iso_date, one_line

Kind = Literal["doi", "pmid", "nct", "title"]

_DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"“”<>|]+")
_PMID = re.compile(r"\bPMID:?\s{0,2}(\d{1,8})\b|\bpubmed\.ncbi\.nlm\.nih\.gov/(\d{1,8})\b", re.IGNORECASE)
_TITLE = re.compile(r"[\"“«]([^\"“”«»\n]{15,300})[\"”»]")
TITLE_WORDS = 4
SAME_TITLE = 0.9
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NOTICES = {
    "ErratumIn": "erratum", "ExpressionOfConcernIn": "expression of concern", "RetractionIn": "retraction",
    "PartialRetractionIn": "partial retraction", "UpdateIn": "update", "CorrectedandRepublishedIn": "corrected version",
    "CorrectedRepublishedIn": "corrected version", "RepublishedIn": "republication",
}  # fmt: skip


class Cited(NamedTuple):
    """Hold an identifier or a quoted title as a text gives it."""

    kind: Kind
    value: str


class CitationRecord(Model):
    """Hold what a look-up found.

    ``found`` is None if the work exists and no service says what it is. ``title_agrees`` tells whether a title that the
    query quotes is the title of the work, None if it quotes none; ``likeness`` in [0, 1] says how alike the two are.
    """

    kind: Kind
    value: str
    found: bool | None
    title: str = ""
    published: str = ""
    journal: str = ""
    source: str = ""
    url: str = ""
    identifiers: tuple[str, ...] = ()
    retracted: bool = False
    updates: tuple[str, ...] = ()
    title_agrees: bool | None = None
    likeness: float | None = Field(default=None, ge=0.0, le=1.0)


def find_cited(text: str) -> list[Cited]:
    """Return the identifiers that a text gives, in order and once each, or else the titles that it quotes.

    >>> find_cited("See doi:10.1016/S0140-6736(20)30183-5, and PMID 31986264.")
    [Cited(kind='doi', value='10.1016/s0140-6736(20)30183-5'), Cited(kind='pmid', value='31986264')]
    """
    found = [(match.start(), Cited("doi", _trimmed(match[0]).lower())) for match in _DOI.finditer(text)]
    found += [(match.start(), Cited("pmid", match[1] or match[2])) for match in _PMID.finditer(text)]
    found += [(match.start(), Cited("nct", match[0].upper())) for match in NCT.finditer(text)]
    if not found:
        found = [(0, Cited("title", title)) for title in quoted_titles(text)]
    return list(dict.fromkeys(cited for _, cited in sorted(found, key=lambda pair: pair[0])))


def quoted_titles(text: str) -> list[str]:
    """Return what a text has in quotation marks and is long enough for a title."""
    titles = (one_line(match[1]).strip(" .,;") for match in _TITLE.finditer(text))
    return list(dict.fromkeys(title for title in titles if len(title.split()) >= TITLE_WORDS))


def likeness(given: str, title: str) -> float:
    """Return in [0, 1] how alike two titles are; one that continues with a subtitle is the same title."""
    ours, theirs = (re.findall(r"[^\W_]+", fold(text)) for text in (given, title))
    if not ours or not theirs:
        return 0.0
    short, long = sorted((ours, theirs), key=len)
    if len(short) >= TITLE_WORDS and long[: len(short)] == short:
        return 1.0
    first, second = sorted((" ".join(ours), " ".join(theirs)))  # the measure depends on the order
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


class CitationRetriever:
    """Look up each DOI, PMID and NCT number of a query, or its quoted titles; one passage for each, in their order.

    Crossref answers for DOIs and titles, doi.org for DOIs of other agencies, PubMed for PMIDs and titles that Crossref
    does not have, ClinicalTrials.gov for NCT numbers. A query that cites nothing finds nothing.
    """

    name = "web/citations"
    version = "1"
    network = True
    concurrency = 4

    class Settings(ServiceSettings):
        """Set whom Crossref and NCBI may write to (``email``) and a key of NCBI; neither is needed.

        ``base_url`` and ``per_second`` are those of Crossref.
        """

        base_url: str = Field(default=crossref.BASE_URL, pattern=r"^https?://[^\s?#]+$")
        agency_url: str = Field(default=crossref.AGENCY_URL, pattern=r"^https?://[^\s?#]+$")
        pubmed_url: str = Field(default=eutils.BASE_URL, pattern=r"^https?://[^\s?#]+$")
        trials_url: str = Field(default="https://clinicaltrials.gov/api/v2", pattern=r"^https?://[^\s?#]+$")
        email: SecretStr | None = None
        key: SecretStr | None = None
        key_env: str = "NCBI_API_KEY"

    def __init__(self, settings: Settings | None = None, *, net: Net | None = None) -> None:
        self.settings = chosen = settings if settings is not None else self.Settings()
        key = find_key(chosen, self.name, needed=False)

        def client(field: str, rate: Rate, per_second: float | None = None) -> Net:
            own = getattr(chosen, field) != self.Settings.model_fields[field].default
            return net or make_net(chosen.net, rate, per_second=per_second, private=own)

        polite = chosen.email is not None
        works = client("base_url", Rate(3.0, 1, 3) if polite else Rate(1.0, 1, 1), chosen.per_second)
        agencies = client("agency_url", Rate(2.0, 2))
        self._trials = client("trials_url", Rate(20 / 60, 2))
        self._crossref = Crossref(
            works, agencies, base_url=chosen.base_url, agency_url=chosen.agency_url, email=chosen.email
        )
        pubmed = client("pubmed_url", Rate(2.0) if key is not None else Rate(1.0))
        self._eutils = Eutils(pubmed, chosen.pubmed_url, email=chosen.email, key=key)
        self._nets = {id(one): one for one in (works, agencies, self._trials, pubmed)}.values()

    @property
    def requests(self) -> int:
        """Return how many HTTP requests were made, retries included."""
        return sum(one.usage.requests for one in self._nets)

    async def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return one passage for each work that the query cites, at most ``k``; raises RetrievalError if a look-up fails."""
        cited = find_cited(query.text)[: max(0, min(k, self.settings.k))]
        records = await self.look_up(cited, titles=quoted_titles(query.text))
        return passages(_hits(records), len(records), corpus=self.name)

    async def look_up(self, cited: Sequence[Cited], *, titles: Sequence[str] = ()) -> list[CitationRecord]:
        """Return a record for each citation, in order; ``titles`` are those that the text quotes beside identifiers."""
        return await together(cited, lambda item: self._one(item, tuple(titles)))

    async def _one(self, cited: Cited, titles: tuple[str, ...]) -> CitationRecord:
        looked_up = {"doi": self._doi, "pmid": self._pmid, "nct": self._nct, "title": self._by_title}
        record = await looked_up[cited.kind](cited.value)
        if cited.kind == "title" or not titles or not record.title:
            return record
        closest = max(likeness(title, record.title) for title in titles)
        return record.model_copy(update={"title_agrees": closest >= SAME_TITLE, "likeness": closest})

    async def _doi(self, doi: str) -> CitationRecord:
        if (work := await self._crossref.work(doi)) is not None:
            return _of_work("doi", doi, work)
        agency = await self._crossref.agency(doi)
        if not agency:
            return CitationRecord(kind="doi", value=doi, found=False, source=crossref.AGENCY_PROVIDER)
        return CitationRecord(
            kind="doi", value=doi, found=None, source=agency, url=_doi_url(doi), identifiers=(f"DOI {doi}",)
        )

    async def _pmid(self, pmid: str) -> CitationRecord:
        pmid = pmid.lstrip("0") or "0"
        articles = await self._eutils.articles([pmid])
        if not articles:
            return CitationRecord(kind="pmid", value=pmid, found=False, source=eutils.PROVIDER)
        return _of_article("pmid", pmid, articles[0])

    async def _nct(self, number: str) -> CitationRecord:
        url = f"{self.settings.trials_url}/studies/{number}"
        params = {"format": "json", "fields": clinicaltrials.FIELDS}
        unknown = False

        def missing(status: int, body: str) -> int:
            nonlocal unknown
            # Only a reply that names the number is about the number, and not about a wrong address.
            unknown = status == 404 and number in body.upper()
            return 200 if unknown else restate(status, body)

        accept = ("application/json", "text/*")
        reply = await self._trials.request("GET", url, params=params, accept=accept, restate=missing)
        provider = clinicaltrials.ClinicalTrialsRetriever.provider
        if unknown:
            return CitationRecord(kind="nct", value=number, found=False, source=provider)
        study = read_reply(Study, reply.json(), provider=provider)
        return _of_study(number, study, provider)

    async def _by_title(self, title: str) -> CitationRecord:
        works = await self._crossref.find(title, 5)
        best = max(works, key=lambda work: likeness(title, work.title), default=None)
        if best is not None and likeness(title, best.title) >= SAME_TITLE:
            return _of_work("title", title, best, likeness(title, best.title))
        words = content_words(title, limit=12)
        pmids = await self._eutils.search(" AND ".join(f"{word}[ti]" for word in words), 5) if words else []
        articles = await self._eutils.articles(pmids)
        closest = max(articles, key=lambda article: likeness(title, article.title), default=None)
        if closest is not None and likeness(title, closest.title) >= SAME_TITLE:
            return _of_article("title", title, closest, likeness(title, closest.title))
        return CitationRecord(kind="title", value=title, found=False, source="Crossref and PubMed")


def _of_work(kind: Kind, value: str, work: Work, alike: float | None = None) -> CitationRecord:
    doi = work.doi.lower()
    return CitationRecord(
        kind=kind,
        value=value,
        found=True,
        title=work.title,
        published=work.published,
        journal=work.container,
        source=crossref.PROVIDER,
        url=_doi_url(doi),
        identifiers=(f"DOI {doi}",),
        retracted=work.retracted,
        updates=work.updates,
        title_agrees=True if alike is not None else None,
        likeness=alike,
    )


def _of_article(kind: Kind, value: str, article: Article, alike: float | None = None) -> CitationRecord:
    notices = (
        f"{_NOTICES[note.kind]} (PMID {note.pmid})" if note.pmid else _NOTICES[note.kind]
        for note in article.notices
        if note.kind in _NOTICES
    )
    return CitationRecord(
        kind=kind,
        value=value,
        found=True,
        title=article.title,
        published=article.published,
        journal=article.journal,
        source=eutils.PROVIDER,
        url=f"{eutils.ARTICLE_URL}{article.pmid}/",
        identifiers=(f"PMID {article.pmid}", *((f"DOI {article.doi.lower()}",) if article.doi else ())),
        retracted=article.retracted,
        updates=tuple(dict.fromkeys(notices)),
        title_agrees=True if alike is not None else None,
        likeness=alike,
    )


def _of_study(number: str, study: Study, provider: str) -> CitationRecord:
    protocol = study.protocol
    status = protocol.status.overall.lower().replace("_", " ")
    canonical = protocol.identification.nct
    return CitationRecord(
        kind="nct",
        value=number,
        found=True,
        title=one_line(protocol.identification.official_title or protocol.identification.brief_title),
        published=iso_date(protocol.status.start.date),
        journal=one_line(protocol.sponsors.lead.name),
        source=provider,
        url=f"https://clinicaltrials.gov/study/{canonical}",
        identifiers=tuple(dict.fromkeys((number, canonical))),
        updates=(f"the study is {status}",) if status in ("withdrawn", "terminated", "suspended") else (),
    )


def _hits(records: Sequence[CitationRecord]) -> list[Hit]:
    missing = Counter(record.kind for record in records if not record.found)
    seen: Counter[str] = Counter()
    hits = []
    for record in records:
        seen[record.kind] += 1
        several = missing[record.kind] > 1 or sum(other.kind == record.kind for other in records) > 1
        ordinal = _ORDINALS[min(seen[record.kind], len(_ORDINALS)) - 1] if several else ""
        hits.append(
            Hit(
                id=f"citation:{record.kind}:{text_id(record.value)}",
                doc_id=f"citation:{record.kind}:{text_id(record.value)}",
                text=_described(record) if record.found else _missing(record, ordinal),
                title=record.title or "Citation look-up",
                url=record.url,
                source=record.source,
                published=record.published,
            )
        )
    return hits


def _described(record: CitationRecord) -> str:
    dated = "Started" if record.kind == "nct" else "Published"
    place = "Sponsor" if record.kind == "nct" else "In"
    status = "retracted" if record.retracted else "no retraction is recorded"
    facts = [
        ("Title", record.title),
        (dated, record.published),
        (place, record.journal),
        ("Identifiers", ", ".join(record.identifiers)),
        ("Status", status if record.kind != "nct" else ""),
        ("Notices", "; ".join(record.updates)),
        ("Title check", "the query quotes another title for this work." if record.title_agrees is False else ""),
    ]
    return "\n".join(f"{name}: {value}" for name, value in facts if value)


def _missing(record: CitationRecord, ordinal: str) -> str:
    named = {"doi": "DOI", "pmid": "PMID", "nct": "NCT number", "title": "quoted title"}[record.kind]
    which = f"{ordinal} {named}".strip()
    if record.found is None:
        return f"The {which} in the query is registered with {record.source}; what it stands for was not looked up."
    if record.kind == "title":
        return f"Neither Crossref nor PubMed has a work under the {which} in the query."
    return f"{record.source} has no record of the {which} in the query: it does not exist there."


def _doi_url(doi: str) -> str:
    return f"https://doi.org/{doi}"


def _trimmed(doi: str) -> str:
    """Return a DOI without the punctuation of the sentence around it; a bracket that closes none goes too."""
    while doi:
        last = doi[-1]
        opening = {")": "(", "]": "[", "}": "{"}.get(last, "")
        if last in ".,;:!?'’*_" or (opening and doi.count(last) > doi.count(opening)):
            doi = doi[:-1]
        else:
            break
    return doi
