"""Replies of the services in their documented forms, over a small set of records, for the tests of the web retrievers."""

from __future__ import annotations

import html
import json
import re
import runpy
from pathlib import Path
from typing import NamedTuple

SERVER = runpy.run_path(str(Path(__file__).with_name("web_server.py")))
Answer = SERVER["Answer"]
KEY = "sk-test-0123456789abcdef"


class Record(NamedTuple):
    word: str
    pmid: str
    nct: str
    title: str
    text: str


RECORDS = (
    Record(
        "warfarin",
        "1000001",
        "NCT00000001",
        "Warfarin and bleeding in adults",
        "Warfarin prevents stroke in adults with atrial fibrillation, and one in fifty bleeds in a year.",
    ),
    Record(
        "warfarin",
        "1000002",
        "NCT00000002",
        "Warfarin with antibiotics",
        "Metronidazole raises the effect of warfarin, so clotting is measured within a week.",
    ),
    Record(
        "metformin",
        "1000003",
        "NCT00000003",
        "Metformin and the kidney",
        "Metformin is stopped when the filtration rate falls below 30 mL/min.",
    ),
)


def matching(query):
    """Return the records whose word the query has."""
    words = set(re.findall(r"\w+", query.lower()))
    return [record for record in RECORDS if record.word in words]


def page(record):
    return f"https://www.nice.org.uk/{record.pmid}"


def serper(request):
    found = matching(request.json["q"])
    organic = [
        {"title": r.title, "link": page(r), "snippet": r.text, "date": "Jan 5, 2024", "position": n}
        for n, r in enumerate(found, 1)
    ]
    return {"searchParameters": {"q": request.json["q"], "type": "search"}, "organic": organic, "credits": 1}


def brave(request):
    found = matching(request.query["q"])
    reply = {"type": "search", "query": {"original": request.query["q"], "more_results_available": False}}
    if found:
        results = [
            {
                "title": r.title,
                "url": page(r),
                "description": html.escape(r.text),
                "page_age": "2024-01-05T10:00:00",
                "age": "January 5, 2024",
                "profile": {"name": "NICE"},
            }
            for r in found
        ]
        reply["web"] = {"type": "search", "results": results}
    return reply


def tavily(request):
    found = matching(request.json["query"])
    results = [
        {"title": r.title, "url": page(r), "content": r.text, "score": 0.9 - n / 10, "raw_content": None}
        for n, r in enumerate(found)
    ]
    return {"query": request.json["query"], "answer": None, "images": [], "results": results, "response_time": 0.4}


def searxng(request):
    found = matching(request.query["q"])
    results = [
        {
            "url": page(r),
            "title": r.title,
            "content": r.text,
            "engine": "duckduckgo",
            "engines": ["duckduckgo"],
            "score": 1.0 / n,
            "category": "general",
            "publishedDate": None,
        }
        for n, r in enumerate(found, 1)
    ]
    return {"query": request.query["q"], "number_of_results": 0, "results": results, "unresponsive_engines": []}


def article(record, *, body="", kinds=("Journal Article",), notices=""):
    text = body or f"<AbstractText>{html.escape(record.text)}</AbstractText>"
    listed = "".join(f'<PublicationType UI="D016428">{kind}</PublicationType>' for kind in kinds)
    return f"""<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{record.pmid}</PMID>
<Article PubModel="Print-Electronic"><Journal><ISSN IssnType="Electronic">1234-5678</ISSN><JournalIssue CitedMedium="Internet">
<PubDate><Year>2020</Year><Month>Mar</Month></PubDate></JournalIssue><Title>Journal of Tests</Title></Journal>
<ArticleTitle>{html.escape(record.title)}.</ArticleTitle><Abstract>{text}</Abstract>
<PublicationTypeList>{listed}</PublicationTypeList>
<ArticleDate DateType="Electronic"><Year>2020</Year><Month>01</Month><Day>09</Day></ArticleDate></Article>
{notices}</MedlineCitation><PubmedData><ArticleIdList><ArticleId IdType="pubmed">{record.pmid}</ArticleId>
<ArticleId IdType="doi">10.1000/t{record.pmid}</ArticleId></ArticleIdList>
<ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.9999/other</ArticleId></ArticleIdList></Reference>
</ReferenceList></PubmedData></PubmedArticle>"""


HEAD = (
    '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
)


def articles(*parts):
    return Answer(f"{HEAD}<PubmedArticleSet>{''.join(parts)}</PubmedArticleSet>", kind="text/xml; charset=UTF-8")


def esearch(*pmids, **more):
    return {
        "header": {"type": "esearch", "version": "0.3"},
        "esearchresult": {"count": str(len(pmids)), "retmax": "10", "retstart": "0", "idlist": list(pmids), **more},
    }


def pubmed(request):
    if request.path.endswith("/esearch.fcgi"):
        return esearch(*[r.pmid for r in matching(request.query["term"])][: int(request.query["retmax"])])
    wanted = request.query["id"].split(",")
    # Not in the order asked for, as the service does.
    return articles(*(article(r) for r in reversed(RECORDS) if r.pmid in wanted))


def europepmc(request):
    results = [
        {
            "id": r.pmid,
            "source": "MED",
            "pmid": r.pmid,
            "title": f"{r.title}.",
            "journalInfo": {"yearOfPublication": 2020, "journal": {"title": "Journal of Tests"}},
            "pubYear": "2020",
            "abstractText": f"<h4>Findings</h4>{html.escape(r.text)}",
            "firstPublicationDate": "2020-01-09",
            "pubTypeList": {"pubType": ["Journal Article"]},
        }
        for r in matching(request.query["query"])
    ]
    return {"version": "6.9", "hitCount": len(results), "resultList": {"result": results}}


NOT_FOUND = Answer(json.dumps({"error": {"code": "NOT_FOUND", "message": "No matches found!"}}), status=404)


def label(record, **more):
    name = record.word
    return {
        "set_id": f"set-{record.pmid}",
        "id": f"id-{record.pmid}",
        "version": "3",
        "effective_time": "20231101",
        "indications_and_usage": [f"1 INDICATIONS AND USAGE {name.capitalize()} tablets are indicated in adults."],
        "dosage_and_administration": [f"2 DOSAGE AND ADMINISTRATION {record.text}"],
        "openfda": {
            "generic_name": [f"{name.upper()} SODIUM"],
            "brand_name": [name.capitalize()],
            "substance_name": [name.upper()],
            "manufacturer_name": ["Test Laboratories"],
        },
        **more,
    }


def openfda(request):
    found = matching(" ".join(re.findall(r'"([^"]*)"', request.query["search"])))
    if not found:
        return NOT_FOUND
    return {"meta": {"results": {"skip": 0, "limit": 5, "total": len(found)}}, "results": [label(r) for r in found]}


def topics(*documents, count=None):
    total = len(documents) if count is None else count
    return Answer(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<nlmSearchResult><term>x</term><file>viv_x</file><server>pvlbsrch</server>'
        f'<count>{total}</count><retstart>0</retstart><retmax>10</retmax><list num="{total}" start="0" per="10">'
        f"{''.join(documents)}</list></nlmSearchResult>",
        kind="text/xml;charset=UTF-8",
    )


def topic(record, rank=0, summary=""):
    shown = html.escape(summary or f'<p>About <span class="qt0">{record.word}</span>. {record.text}</p>')
    return (
        f'<document rank="{rank}" url="https://medlineplus.gov/{record.pmid}.html">'
        f'<content name="title">{html.escape(html.escape(record.title))}</content>'
        f'<content name="organizationName">National Library of Medicine</content>'
        f'<content name="FullSummary">{shown}</content>'
        f'<content name="snippet">... {record.word} ...</content></document>'
    )


def medlineplus(request):
    return topics(*(topic(r, n) for n, r in enumerate(matching(request.query["term"]))))


def study(record, **more):
    protocol = {
        "identificationModule": {"nctId": record.nct, "briefTitle": record.title},
        "statusModule": {
            "overallStatus": "COMPLETED",
            "startDateStruct": {"date": "2015-03", "type": "ACTUAL"},
            "lastUpdatePostDateStruct": {"date": "2021-06-02", "type": "ACTUAL"},
        },
        "sponsorCollaboratorsModule": {"leadSponsor": {"name": "Test University"}},
        "descriptionModule": {"briefSummary": record.text},
        "conditionsModule": {"conditions": ["Atrial Fibrillation", "Stroke"]},
        "designModule": {
            "studyType": "INTERVENTIONAL",
            "phases": ["PHASE3"],
            "enrollmentInfo": {"count": 512, "type": "ACTUAL"},
        },
        "armsInterventionsModule": {"interventions": [{"type": "DRUG", "name": record.word.capitalize()}]},
        "outcomesModule": {"primaryOutcomes": [{"measure": "Major bleeding", "timeFrame": "1 year"}]},
    }
    return {"protocolSection": {**protocol, **more}, "hasResults": True}


def clinicaltrials(request):
    if "filter.ids" in request.query:
        wanted = request.query["filter.ids"].split(",")
        return {"studies": [study(r) for r in RECORDS if r.nct in wanted]}
    return {"studies": [study(r) for r in matching(request.query["query.term"])]}


def work(doi, title, **more):
    return {
        "DOI": doi,
        "title": [title],
        "container-title": ["The Journal"],
        "issued": {"date-parts": [[2019, 3, 7]]},
        "type": "journal-article",
        **more,
    }


RETRACTED = "10.1000/retracted"
WORKS = {
    "10.1000/sound": work("10.1000/sound", "A sound trial of <i>warfarin</i> in adults"),
    RETRACTED: work(
        RETRACTED,
        "An invented cohort of metformin users",
        **{
            "updated-by": [
                {"DOI": "10.1000/notice", "type": "retraction", "label": "Retraction", "source": "retraction-watch"},
                {"DOI": "10.1000/notice", "type": "retraction", "label": "Retraction", "source": "publisher"},
            ]
        },
    ),
}
UNKNOWN_DOI = Answer("Resource not found.", status=404, kind="text/plain")


def citations(request):
    """Play Crossref at /cr, doi.org at /ra, PubMed at /eu and ClinicalTrials.gov at /ct."""
    if request.path.startswith("/cr/works/"):
        found = WORKS.get(request.path.removeprefix("/cr/works/"))
        return {"status": "ok", "message-type": "work", "message": found} if found else UNKNOWN_DOI
    if request.path == "/cr/works":
        items = list(WORKS.values())
        return {"status": "ok", "message-type": "work-list", "message": {"total-results": len(items), "items": items}}
    if request.path.startswith("/ra/"):
        doi = request.path.removeprefix("/ra/")
        if doi == "10.5281/data":
            return [{"DOI": doi, "RA": "DataCite"}]
        return [{"DOI": doi, "status": "DOI does not exist"}]
    if request.path.startswith("/ct/studies/"):
        number = request.path.removeprefix("/ct/studies/")
        found = [study(r) for r in RECORDS if r.nct == number]
        return found[0] if found else Answer(f"NCT number {number} not found", status=404, kind="text/plain")
    return pubmed(request)


def empty(name):
    """Return the answer of a service that found nothing."""
    return {
        "serper": {"searchParameters": {"q": "x"}, "organic": []},
        "brave": {"type": "search", "query": {"original": "x"}},
        "tavily": {"query": "x", "results": []},
        "searxng": {"query": "x", "results": [], "unresponsive_engines": []},
        "pubmed": esearch(),
        "europepmc": {"version": "6.9", "hitCount": 0, "resultList": {"result": []}},
        "openfda": NOT_FOUND,
        "medlineplus": topics(),
        "clinicaltrials": {"studies": []},
    }[name]


# Bodies that come with status 200 and mean failure, with a word of the message that must be passed on.
FAILURES = {
    "serper": ({"message": "Not enough credits", "statusCode": 400}, "credits"),
    "brave": ({"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "bad"}}, "INVALID"),
    "tavily": ({"detail": {"error": "Unauthorized: missing or invalid API key."}}, "Unauthorized"),
    "searxng": ({"query": "x", "results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}, "CAPTCHA"),
    "pubmed": ({"esearchresult": {"ERROR": "Invalid db name specified: x"}}, "Invalid db"),
    "europepmc": ({"version": "6.9", "errCode": "404", "errMsg": "Invalid value of parameter"}, "Invalid value"),
    "openfda": ({"error": {"code": "API_KEY_INVALID", "message": "An invalid api_key was supplied."}}, "invalid"),
    "medlineplus": (
        Answer("<nlmSearchResult><error>Invalid database</error></nlmSearchResult>", kind="text/xml"),
        "Invalid database",
    ),
}

# A wrong shape for each service, and the field that the error must name.
WRONG = {
    "serper": ({"organic": [{"title": "x"}]}, "organic.0.link"),
    "brave": ({"type": "search", "web": {"results": "none"}}, "web.results"),
    "tavily": ({"query": "x"}, "results"),
    "searxng": ({"results": [{"url": 5}]}, "results.0.url"),
    "pubmed": ({"esearchresult": {"idlist": "1"}}, "esearchresult.idlist"),
    "europepmc": ({"resultList": {"result": [{"id": "1"}]}}, "resultList.result.0.source"),
    "openfda": ({"results": [{"effective_time": "20200101"}]}, "set_id"),
    "medlineplus": (topics('<document url="ftp://x"><content name="title">t</content></document>'), "url"),
    "clinicaltrials": ({"studies": [{"protocolSection": {}}]}, "studies.0.protocolSection.identificationModule"),
}
