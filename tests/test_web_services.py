"""What each web service needs of its own: filters, sections, order, retractions, drug names, studies by number."""

from __future__ import annotations

import importlib
import json
import runpy
from pathlib import Path

import anyio
import pytest

from factcheck.config import validate_table
from factcheck.errors import ConfigError, PermanentError, RateLimitedError, TransientError
from factcheck.testing import make_query

REPLIES = runpy.run_path(str(Path(__file__).with_name("web_replies.py")))
Site, Answer, KEY, RECORDS = REPLIES["SERVER"]["Site"], REPLIES["Answer"], REPLIES["KEY"], REPLIES["RECORDS"]
FAST = {"attempts": 2, "timeout": 10.0, "deadline": 10.0}
QUERY = "Warfarin dose for adults"
CLASSES = {
    "serper": "SerperRetriever",
    "brave": "BraveRetriever",
    "tavily": "TavilyRetriever",
    "searxng": "SearxngRetriever",
    "pubmed": "PubmedRetriever",
    "europepmc": "EuropePmcRetriever",
    "openfda": "OpenFdaRetriever",
    "medlineplus": "MedlinePlusRetriever",
    "clinicaltrials": "ClinicalTrialsRetriever",
}


def make(name, url, **more):
    kind = getattr(importlib.import_module(f"factcheck_web.{name}"), CLASSES[name])
    key = {"key": KEY} if name in ("serper", "brave", "tavily") else {}
    table = {"base_url": url, "per_second": 1000.0, "net": FAST, **key, **more}
    return kind(validate_table(kind.Settings, table, where="the test"))


def asked(name, answer, text=QUERY, k=10, **settings):
    """Return what a retriever makes of the answer, and the requests that it sent."""
    with Site(answer if callable(answer) else lambda request: answer) as site:
        return anyio.run(make(name, site.url, **settings).retrieve, make_query(text), k), site.requests


def result(url, n=1):
    return {"title": f"t{n}", "link": url, "url": url, "snippet": f"warfarin {n}", "description": f"warfarin {n}"}


MIXED = [
    result("https://blog.example/1"),
    result("https://www.nice.org.uk/2", 2),
    result("https://nice.org.uk.evil.example/3", 3),
    result("https://apps.who.int/4", 4),
]


def test_serper_asks_google_for_the_sites_and_checks_what_came():
    reply = {"searchParameters": {}, "organic": MIXED}
    found, requests = asked("serper", reply, domains=["nice.org.uk", "who.int"])
    assert requests[0].json["q"] == f"{QUERY} (site:nice.org.uk OR site:who.int)"
    assert [passage.url for passage in found] == ["https://www.nice.org.uk/2", "https://apps.who.int/4"]
    assert [passage.rank for passage in found] == [1, 2]
    _, requests = asked("serper", reply, domains=["nice.org.uk"])
    assert requests[0].json["q"] == f"{QUERY} site:nice.org.uk"


def test_a_long_allow_list_is_applied_to_the_results_of_a_full_page():
    found, requests = asked("serper", {"searchParameters": {}, "organic": MIXED}, k=3, domains="authorities")
    assert requests[0].json == {"q": QUERY, "num": 20}
    assert len(found) == 2
    _, requests = asked("brave", {"type": "search", "web": {"results": MIXED}}, k=3, domains="authorities")
    assert (requests[0].query["q"], requests[0].query["count"]) == (QUERY, "20")


def test_a_claim_cannot_choose_its_own_sources():
    _, requests = asked("serper", REPLIES["serper"], text='Warfarin is harmless site:evil.example "quoted" -nice')
    assert requests[0].json["q"] == "Warfarin is harmless site evil.example quoted nice"


def test_serper_puts_a_featured_answer_with_a_source_first():
    box = {
        "title": "Box",
        "link": "https://www.nhs.uk/x",
        "snippet": "Warfarin is taken at night.",
        "date": "2 Feb 2023",
    }
    found, _ = asked("serper", {"answerBox": box, "organic": [result("https://a.example/")]})
    assert (found[0].text, found[0].published, found[0].source) == (
        "Warfarin is taken at night.",
        "2023-02-02",
        "nhs.uk",
    )
    found, _ = asked("serper", {"answerBox": {"answer": "42"}, "organic": [result("https://a.example/")]})
    assert [passage.url for passage in found] == ["https://a.example/"]


def test_serper_sends_country_and_language_only_if_set():
    _, requests = asked("serper", REPLIES["serper"], gl="gb", hl="en")
    assert requests[0].json == {"q": QUERY, "num": 10, "gl": "gb", "hl": "en"}


def test_a_snippet_of_google_is_no_markup():
    organic = [{**result("https://a.example/"), "snippet": "eGFR <30 & >15 <b>not a tag</b>"}]
    found, _ = asked("serper", {"organic": organic})
    assert found[0].text == "eGFR <30 & >15 <b>not a tag</b>"


def test_brave_snippets_lose_tags_and_entities_and_further_ones_follow():
    raw = {
        **result("https://a.example/"),
        "title": "A &amp; B",
        "description": "<strong>Warfarin</strong>: INR &lt;3 &#x27;ok&#x27;",
        "extra_snippets": ["Second <strong>part</strong>.", "Second part.", "Third."],
        "page_age": "2024-02-29T00:00:00",
    }
    found, _ = asked("brave", {"type": "search", "web": {"results": [raw]}})
    assert found[0].text == "Warfarin: INR <3 'ok'\nSecond part.\nThird."
    assert (found[0].title, found[0].published) == ("A & B", "2024-02-29")


def test_brave_is_never_sent_more_than_it_takes():
    for text in ("warfarin " * 80, "w" * 900, "antithromboembolic " * 40):
        _, requests = asked("brave", REPLIES["brave"], text=text, domains=["nice.org.uk", "who.int"])
        query = requests[0].query["q"]
        assert len(query) <= 400
        assert len(query.split()) <= 50
        assert query.endswith("(site:nice.org.uk OR site:who.int)")


@pytest.mark.parametrize("name", ["serper", "searxng"])
def test_a_long_query_leaves_room_for_its_sites(name):
    domains = [f"site{n}.example.org" for n in range(8)]
    _, requests = asked(name, REPLIES[name], text="warfarin dose " * 60, domains=domains)
    query = requests[0].json["q"] if name == "serper" else requests[0].query["q"]
    assert len(query.split()) <= 32
    assert query.endswith("OR site:site7.example.org)")


def test_brave_tells_a_quota_that_is_used_up_from_a_rate_limit():
    def limited(current):
        meta = {"plan": "Base", "rate_limit": 1, "rate_current": 1, "quota_limit": 2000, "quota_current": current}
        error = {"status": 429, "code": "RATE_LIMITED", "detail": "Request rate limit exceeded for plan", "meta": meta}
        return Answer(json.dumps({"type": "ErrorResponse", "error": error}), status=429)

    tries = []
    with pytest.raises(RateLimitedError):
        asked("brave", lambda request: tries.append(request) or limited(15))
    assert len(tries) == 2
    tries.clear()
    with pytest.raises(PermanentError, match="balance"):
        asked("brave", lambda request: tries.append(request) or limited(2000))
    assert len(tries) == 1


def test_brave_says_which_option_the_plan_leaves_out():
    error = {"status": 400, "code": "OPTION_NOT_IN_PLAN", "detail": "The option is not subscribed in the plan."}
    with pytest.raises(PermanentError, match="extra_snippets = false"):
        asked("brave", Answer(json.dumps({"type": "ErrorResponse", "error": error}), status=400))


def test_a_snippet_about_too_many_requests_is_no_rate_limit():
    text = "Too many requests for antibiotics; API rate limit exceeded."
    found, requests = asked("searxng", {"results": [{"url": "https://a.example/", "content": text}]})
    assert [p.text for p in found] == [text]
    assert len(requests) == 1


def test_searxng_results_without_a_source_are_left_out():
    reply = {
        "results": [{"url": None, "content": "2 + 2 = 4"}, {**result("https://a.example/"), "content": "warfarin"}]
    }
    assert [p.url for p in asked("searxng", reply)[0]] == ["https://a.example/"]


def test_tavily_takes_the_allow_list_and_its_scores_decide():
    results = [
        {"url": "https://www.who.int/1", "content": "warfarin one", "score": 0.3},
        {"url": "https://www.who.int/2", "content": "warfarin two", "score": 0.8, "published_date": "2024-01-05"},
        {"url": "https://blog.example/3", "content": "warfarin three", "score": 0.99},
    ]
    found, requests = asked("tavily", {"results": results}, domains=["who.int"], search_depth="advanced")
    assert requests[0].json["include_domains"] == ["who.int"]
    assert requests[0].json["search_depth"] == "advanced"
    assert [(p.url[-1], p.score, p.published) for p in found] == [("2", 0.8, "2024-01-05"), ("1", 0.3, "")]
    without = [{k: v for k, v in each.items() if k != "score"} for each in results]
    assert [p.score for p in asked("tavily", {"results": without})[0]] == [1, 1 / 2, 1 / 3]


def test_searxng_that_knows_no_json_says_how_to_mend_it():
    with pytest.raises(PermanentError, match=r"settings\.yml"):
        asked("searxng", Answer("<html>403</html>", status=403, kind="text/html"))


def test_searxng_engines_that_fail_do_not_spoil_what_others_found():
    reply = {"results": [{**result("https://a.example/"), "content": "warfarin"}], "unresponsive_engines": [["x", "y"]]}
    assert len(asked("searxng", reply)[0]) == 1
    with pytest.raises(TransientError, match=r"google \(CAPTCHA\); bing"):
        asked("searxng", {"results": [], "unresponsive_engines": [["google", "CAPTCHA"], "bing"]})


def test_pubmed_keeps_the_order_of_relevance_and_labels_sections():
    body = (
        '<AbstractText Label="BACKGROUND" NlmCategory="BACKGROUND">Warfarin &lt; 10<sup>9</sup>/L in <i>H. pylori</i>.'
        '</AbstractText><AbstractText Label="RESULTS">One in\n fifty bled.</AbstractText>'
        "<CopyrightInformation>Copyright</CopyrightInformation>"
    )

    def answer(request):
        if request.path.endswith("esearch.fcgi"):
            return REPLIES["esearch"]("1000002", "1000001")
        return REPLIES["articles"](REPLIES["article"](RECORDS[0], body=body), REPLIES["article"](RECORDS[1]))

    found, requests = asked("pubmed", answer, email="me@example.org", restrict="humans[mh]")
    assert [p.id for p in found] == ["pmid:1000002", "pmid:1000001"]
    assert found[1].text == "BACKGROUND: Warfarin < 10^9/L in H. pylori.\nRESULTS: One in fifty bled."
    assert found[1].title == "Warfarin and bleeding in adults."
    assert (found[1].published, found[1].source) == ("2020-01-09", "Journal of Tests")
    assert found[1].url == "https://pubmed.ncbi.nlm.nih.gov/1000001/"
    term = "(warfarin dose adults) AND hasabstract AND (humans[mh]) NOT retracted publication[pt]"
    assert requests[0].query["term"] == term
    assert requests[0].query["sort"] == "relevance"
    assert (requests[0].query["tool"], requests[0].query["email"]) == ("factcheck", "me@example.org")


def test_pubmed_asks_for_any_word_if_no_article_has_them_all():
    def answer(request):
        if request.path.endswith("esearch.fcgi"):
            return REPLIES["esearch"](*(["1000001"] if " OR " in request.query["term"] else []))
        return REPLIES["articles"](REPLIES["article"](RECORDS[0]))

    found, requests = asked("pubmed", answer)
    assert [r.query.get("term", "")[:27] for r in requests] == [
        "(warfarin dose adults) AND ",
        "(warfarin OR dose OR adults",
        "",
    ]
    assert [p.id for p in found] == ["pmid:1000001"]
    _, requests = asked("pubmed", REPLIES["esearch"](), text="warfarin")
    assert len(requests) == 1


@pytest.mark.parametrize(
    "marks",
    [
        {"kinds": ("Journal Article", "Retracted Publication")},
        {
            "notices": '<CommentsCorrectionsList><CommentsCorrections RefType="RetractionIn"><PMID Version="1">9</PMID>'
            "</CommentsCorrections></CommentsCorrectionsList>"
        },
    ],
)
def test_a_retracted_article_is_no_evidence_unless_asked_for(marks):
    def answer(request):
        if request.path.endswith("esearch.fcgi"):
            return REPLIES["esearch"]("1000001", "1000002")
        return REPLIES["articles"](REPLIES["article"](RECORDS[0], **marks), REPLIES["article"](RECORDS[1]))

    found, requests = asked("pubmed", answer)
    assert [p.id for p in found] == ["pmid:1000002"]
    found, requests = asked("pubmed", answer, retracted=True)
    assert found[0].title.startswith("Retracted: ")
    assert "retracted publication" not in requests[0].query["term"]


def test_pubmed_reads_chapters_of_books():
    chapter = """<PubmedBookArticle><BookDocument><PMID Version="1">28613464</PMID>
<Book><BookTitle book="x">StatPearls</BookTitle>
<PubDate><Year>2024</Year><Month>01</Month></PubDate></Book><ArticleTitle book="x" part="y">Warfarin</ArticleTitle>
<PublicationType UI="D000072643">Study Guide</PublicationType><Abstract><AbstractText>Warfarin is an anticoagulant.
</AbstractText></Abstract><ContributionDate><Year>2023</Year><Month>7</Month><Day>10</Day></ContributionDate></BookDocument>
<PubmedBookData/></PubmedBookArticle>"""

    def answer(request):
        return REPLIES["esearch"]("28613464") if "esearch" in request.path else REPLIES["articles"](chapter)

    found, _ = asked("pubmed", answer)
    assert (found[0].title, found[0].text, found[0].source) == (
        "Warfarin",
        "Warfarin is an anticoagulant.",
        "StatPearls",
    )
    assert found[0].published == "2023-07-10"


@pytest.mark.parametrize(
    ("date", "published"),
    [
        ("<Year>2020</Year><Month>Mar</Month><Day>4</Day>", "2020-03-04"),
        ("<Year>2020</Year><Month>Mar</Month>", "2020-03"),
        ("<Year>2020</Year><Season>Spring</Season>", "2020"),
        ("<MedlineDate>1998 Dec-1999 Jan</MedlineDate>", "1998-12"),
        ("<MedlineDate>2000-2001</MedlineDate>", ""),
        ("", ""),
    ],
)
def test_pubmed_dates(date, published):
    whole = REPLIES["article"](RECORDS[0])
    start, end = whole.index("<ArticleDate"), whole.index("</ArticleDate>") + len("</ArticleDate>")
    whole = whole[:start] + whole[end:]
    whole = whole.replace("<Year>2020</Year><Month>Mar</Month>", date)

    def answer(request):
        return REPLIES["esearch"]("1000001") if "esearch" in request.path else REPLIES["articles"](whole)

    assert asked("pubmed", answer)[0][0].published == published


def test_a_rate_limit_that_ncbi_reports_with_status_200_is_waited_for():
    tries = []

    def answer(request):
        tries.append(request)
        return {"error": "API rate limit exceeded", "count": "4"} if len(tries) == 1 else REPLIES["pubmed"](request)

    assert len(asked("pubmed", answer)[0]) == 2
    with pytest.raises(RateLimitedError):
        asked("pubmed", {"error": "API rate limit exceeded", "count": "4"})


@pytest.mark.parametrize(
    "failure",
    [
        {"esearchresult": {"ERROR": "Search Backend failed: Database is not supported: pubmed"}},
        Answer(
            "<eFetchResult><ERROR>cannot call proxy_stream(): <html>502</html></ERROR></eFetchResult>", 400, "text/xml"
        ),
    ],
)
def test_a_backend_of_ncbi_that_fails_is_asked_again(failure):
    path = "esearch" if isinstance(failure, dict) else "efetch"
    tries = []

    def answer(request):
        tries.append(request.path)
        return (
            failure if path in request.path and sum(path in each for each in tries) == 1 else REPLIES["pubmed"](request)
        )

    assert len(asked("pubmed", answer)[0]) == 2
    with pytest.raises(TransientError):
        asked("pubmed", lambda request: failure if path in request.path else REPLIES["pubmed"](request))


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("<?xml version='1.0'?><eFetchResult><ERROR>Cannot retrieve</ERROR></eFetchResult>", "Cannot retrieve"),
        ("<html><body>Error</body></html>", "'html', not 'PubmedArticleSet'"),
        ("<PubmedArticleSet><PubmedArticle/></PubmedArticleSet>", "'PubmedArticle' is empty"),
        (
            "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>x</PMID><Article/></MedlineCitation></PubmedArticle>"
            "</PubmedArticleSet>",
            "'pmid'",
        ),
    ],
)
def test_records_of_pubmed_that_cannot_be_read_are_errors(body, error):
    def answer(request):
        return REPLIES["esearch"]("1") if "esearch" in request.path else Answer(body, kind="text/xml")

    with pytest.raises(PermanentError, match=error):
        asked("pubmed", answer)


def test_europe_pmc_query_text_and_source():
    found, requests = asked(
        "europepmc", REPLIES["europepmc"], text="Warfarin in covid-19 AND (adults)", restrict="LANG:eng"
    )
    assert requests[0].query["query"] == (
        '(warfarin AND "covid-19" AND adults) AND (HAS_ABSTRACT:y) AND (LANG:eng) '
        'NOT (PUB_TYPE:"retracted publication") NOT (SRC:PPR)'
    )
    assert found[0].text.startswith("Findings\nWarfarin prevents stroke")
    assert (found[0].id, found[0].url) == ("europepmc:med:1000001", "https://europepmc.org/article/MED/1000001")
    assert (found[0].published, found[0].source) == ("2020-01-09", "Journal of Tests")
    _, requests = asked("europepmc", REPLIES["europepmc"], preprints=True)
    assert "SRC:PPR" not in requests[0].query["query"]


def test_europe_pmc_leaves_retracted_articles_out():
    reply = REPLIES["europepmc"](type("R", (), {"query": {"query": "warfarin"}}))
    reply["resultList"]["result"][0]["pubTypeList"] = {"pubType": ["Retracted Publication"]}
    assert [p.id for p in asked("europepmc", reply)[0]] == ["europepmc:med:1000002"]


LABEL = REPLIES["label"](
    RECORDS[2],
    contraindications=["4 CONTRAINDICATIONS Metformin is contraindicated in severe renal impairment."],
    pregnancy=["8.1 Pregnancy Metformin has been used in pregnant women."],
    drug_interactions=["7 DRUG INTERACTIONS Topiramate with metformin may raise the risk of acidosis."],
    boxed_warning=["WARNING: LACTIC ACIDOSIS. " + "Metformin can cause lactic acidosis in patients. " * 60],
)


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("Who must not take metformin, is it contraindicated?", "Contraindications"),
        ("Metformin in pregnancy", "Pregnancy"),
        ("What interacts with metformin?", "Drug interactions"),
        ("What is metformin indicated for in adults?", "Indications and usage"),
        ("boxed warning of metformin on lactic acidosis", "Boxed warning"),
    ],
)
def test_openfda_puts_the_section_first_that_the_query_asks_for(text, heading):
    found, _ = asked("openfda", {"results": [LABEL]}, text=text)
    assert found[0].title == f"Metformin (METFORMIN SODIUM): {heading}"
    assert found[0].doc_id == "spl:set-1000003"
    assert found[0].url == "https://dailymed.nlm.nih.gov/dailymed/lookup.cfm?setid=set-1000003"
    assert (found[0].published, found[0].source) == ("2023-11-01", "FDA label, Test Laboratories")


def test_openfda_passages_are_slices_of_the_sections_and_of_bounded_length():
    found, _ = asked("openfda", {"results": [LABEL]}, text="metformin", k=50, sections=["boxed_warning"])
    whole = LABEL["boxed_warning"][0]
    assert len(found) >= 1
    for passage in found:
        span = passage.id.split(":")[3]
        start, end = map(int, span.split("-"))
        assert whole[start:end] == passage.text
        assert len(passage.text.split()) <= 150
    assert {p.title.rpartition(": ")[2] for p in found} == {"Boxed warning"}


def test_openfda_searches_under_american_names():
    _, requests = asked("openfda", REPLIES["NOT_FOUND"], text="At most 4 g of paracetamol a day")
    names = requests[0].query["search"].split()
    assert 'openfda.generic_name:"acetaminophen"' in names
    assert 'openfda.brand_name:"paracetamol"' in names
    assert " OR " not in requests[0].query["search"]


def test_openfda_finds_nothing_without_a_name_and_drops_labels_of_other_drugs():
    assert asked("openfda", {"results": [LABEL]}, text="Take 5 mg of it") == ([], [])
    assert asked("openfda", {"results": [LABEL]}, text="Drink water in the cold")[0] == []
    found, requests = asked("openfda", {"results": [LABEL]}, text="Zyxoprilate in pregnant adults")
    assert found == []
    assert 'openfda.generic_name:"zyxoprilate"' in requests[0].query["search"]
    renamed = {**LABEL, "openfda": {"brand_name": ["Zyxoprilate"]}}
    assert asked("openfda", {"results": [renamed]}, text="Zyxoprilate in pregnant women")[0]


def test_openfda_asks_for_each_drug_and_prefers_labels_of_it_alone():
    combined = {
        **LABEL,
        "set_id": "both",
        "openfda": {"generic_name": ["METFORMIN AND SITAGLIPTIN"], "substance_name": ["METFORMIN", "SITAGLIPTIN"]},
        "pregnancy": ["8.1 Pregnancy: metformin with sitagliptin, not studied in pregnancy."],
    }
    found, requests = asked(
        "openfda", {"results": [combined, LABEL]}, text="metformin, warfarin and Tylenol in pregnancy", k=50, labels=1
    )
    assert len(requests) == 3
    assert sorted(r.query["search"].split()[0] for r in requests) == [
        f'openfda.generic_name:"{name}"' for name in ("acetaminophen", "metformin", "warfarin")
    ]
    assert {r.query["limit"] for r in requests} == {"3"}
    assert {p.doc_id for p in found} == {"spl:set-1000003"}


def test_openfda_names_equal_texts_once():
    twin = {**LABEL, "set_id": "other"}
    found, _ = asked("openfda", {"results": [LABEL, twin]}, text="metformin pregnancy", k=50)
    assert len({p.text for p in found}) == len(found)


def test_openfda_tells_nothing_found_from_a_wrong_address():
    assert asked("openfda", REPLIES["NOT_FOUND"])[0] == []
    with pytest.raises(PermanentError, match="404"):
        asked("openfda", Answer("<h1>Not Found</h1>", status=404, kind="text/html"))


def test_medlineplus_cuts_the_summary_to_what_the_query_is_about():
    summary = "".join(f"<p>{'Filler sentences about rest and sleep. ' * 12}</p>" for _ in range(3))
    summary += f"<h3>Tests</h3><p>{'Warfarin needs blood tests called INR. ' * 12}</p>"
    document = REPLIES["topic"](RECORDS[0], summary=summary)
    found, requests = asked(
        "medlineplus", REPLIES["topics"](document), text="blood tests with warfarin", email="me@example.org"
    )
    assert "Warfarin needs blood tests called INR." in found[0].text
    assert len(found[0].text.split()) <= 150
    assert (found[0].title, found[0].source) == ("Warfarin and bleeding in adults", "National Library of Medicine")
    assert found[0].url == found[0].doc_id == "https://medlineplus.gov/1000001.html"
    sent = {name: requests[0].query[name] for name in ("db", "term", "rettype", "tool", "email")}
    assert sent == {
        "db": "healthTopics",
        "term": "blood tests warfarin",
        "rettype": "brief",
        "tool": "factcheck",
        "email": "me@example.org",
    }
    _, requests = asked("medlineplus", REPLIES["medlineplus"], language="es")
    assert requests[0].query["db"] == "healthTopicsSpanish"


def test_medlineplus_without_a_list_has_not_answered():
    with pytest.raises(PermanentError, match="count"):
        asked("medlineplus", Answer("<nlmSearchResult><term>x</term></nlmSearchResult>", kind="text/xml"))


def test_medlineplus_asks_for_any_word_if_no_topic_is_on_all():
    _, requests = asked("medlineplus", REPLIES["topics"]())
    assert [r.query["term"] for r in requests] == ["warfarin dose adults", "warfarin OR dose OR adults"]


def test_clinicaltrials_shows_the_facts_of_a_study():
    found, _ = asked("clinicaltrials", REPLIES["clinicaltrials"])
    assert found[0].text.splitlines() == [
        "Study: NCT00000001",
        "Title: Warfarin and bleeding in adults",
        "Status: COMPLETED",
        "Study type: INTERVENTIONAL",
        "Phase: PHASE3",
        "Enrollment: 512 ACTUAL",
        "Start: 2015-03",
        "Sponsor: Test University",
        "Conditions: Atrial Fibrillation; Stroke",
        "Interventions: DRUG: Warfarin",
        "Primary outcomes: Major bleeding (1 year)",
        "Results: posted",
        RECORDS[0].text,
    ]
    assert (found[0].id, found[0].published) == ("nct:NCT00000001", "2021-06-02")
    assert found[0].url == "https://clinicaltrials.gov/study/NCT00000001"


def test_clinicaltrials_looks_studies_up_by_their_numbers():
    found, requests = asked(
        "clinicaltrials", REPLIES["clinicaltrials"], text="The trials nct00000003 and NCT00000001 met"
    )
    assert requests[0].query["filter.ids"] == "NCT00000003,NCT00000001"
    assert "query.term" not in requests[0].query
    assert {p.id for p in found} == {"nct:NCT00000001", "nct:NCT00000003"}


def test_clinicaltrials_reads_a_study_that_says_almost_nothing():
    bare = {"studies": [{"protocolSection": {"identificationModule": {"nctId": "NCT00000009"}}}]}
    found, _ = asked("clinicaltrials", bare)
    assert found[0].text == "Study: NCT00000009"


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("pubmed", "pubmed.ncbi.nlm.nih.gov"),
        ("europepmc", "europepmc.org"),
        ("openfda", "dailymed.nlm.nih.gov"),
        ("medlineplus", "medlineplus.gov"),
        ("clinicaltrials", "clinicaltrials.gov"),
    ],
)
def test_an_allow_list_that_leaves_nothing_of_a_service_is_refused(name, host):
    with pytest.raises(ConfigError, match=host):
        make(name, "https://example.org", domains=["nice.org.uk"])
    assert make(name, "https://example.org", domains=["nice.org.uk", host])
    if name != "europepmc":
        assert make(name, "https://example.org", domains="authorities")
