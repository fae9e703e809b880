"""Look-ups of citations: identifiers found in text, what exists, retractions, titles, and what a miss may say."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import anyio
import pytest
from factcheck_web.citations import CitationRetriever, Cited, find_cited, likeness, quoted_titles
from factcheck_web.crossref import Work
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import PermanentError, RateLimitedError, RetrievalError
from factcheck.net import Net, NetSettings
from factcheck.plugins import Plugins
from factcheck.testing import check_retriever, failures, make_query

REPLIES = runpy.run_path(str(Path(__file__).with_name("web_replies.py")))
Site, Answer, RECORDS, KEY = REPLIES["SERVER"]["Site"], REPLIES["Answer"], REPLIES["RECORDS"], REPLIES["KEY"]


def table(url, **more):
    ways = {"base_url": "cr", "agency_url": "ra", "pubmed_url": "eu", "trials_url": "ct"}
    return {**{field: f"{url}/{way}" for field, way in ways.items()}, **more}


def make(url, **more):
    net = Net(NetSettings(allow_private=True, attempts=1, timeout=10.0, deadline=10.0))
    return CitationRetriever(CitationRetriever.Settings(**table(url, **more)), net=net)


def asked(text, answer=REPLIES["citations"], k=10, **more):
    """Return what a query finds, and the requests that it took."""
    with Site(answer) as site:
        return anyio.run(make(site.url, **more).retrieve, make_query(text), k), site.requests


def test_it_conforms():
    broken = Site(lambda request: Answer("{}", status=500))
    with Site(REPLIES["citations"]) as site:
        results = check_retriever(
            lambda: make(site.url),
            queries=["doi:10.1000/sound and PMID 1000002", "NCT00000003", "10.1000/gone"],
            make_faulty=lambda fault: make(broken.url),
            faults=("empty",),
            factory=CitationRetriever,
            settings=table(site.url, key=KEY),
            secrets=(KEY,),
            time_limit=10.0,
            minimum=18,
        )
    broken.close()
    assert failures(results) == [], [(r.check, r.error) for r in failures(results)]


def test_it_is_registered():
    plugins = Plugins(autoload=False)
    plugins.register(importlib.import_module("factcheck_web"), "web")
    assert plugins.create("retriever", "web/citations").name == "web/citations"


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("doi:10.1016/S0140-6736(20)30183-5.", [("doi", "10.1016/s0140-6736(20)30183-5")]),
        ("(https://doi.org/10.1056/NEJMoa1200303)", [("doi", "10.1056/nejmoa1200303")]),
        ("(10.1000/x(90))", [("doi", "10.1000/x(90)")]),
        ("[10.1000/a_b], 10.1000/c;", [("doi", "10.1000/a_b"), ("doi", "10.1000/c")]),
        ("PMID: 31986264 and pmid31986264, PMID 0012", [("pmid", "31986264"), ("pmid", "0012")]),
        ("https://pubmed.ncbi.nlm.nih.gov/123/", [("pmid", "123")]),
        ("nct01234567; NCT012345678 is no number", [("nct", "NCT01234567")]),
        ('the study "A sound trial of warfarin" found', [("title", "A sound trial of warfarin")]),
        ("“Effects of statins in the elderly.” and PMID 5", [("pmid", "5")]),
        ('he said "too short" twice', []),
        ("version 10.15 of 2020/21, dose 10.5 mg/kg", []),
        ("", []),
    ],
)
def test_citations_in_text(text, cited):
    assert find_cited(text) == [Cited(*each) for each in cited]


@given(st.text(max_size=200))
def test_no_text_breaks_the_search_for_citations(text):
    for cited in find_cited(text):
        assert cited.value
    quoted_titles(text)


@pytest.mark.parametrize(
    ("given_title", "title", "same"),
    [
        ("A sound trial of warfarin in adults", "A Sound Trial of Warfarin in Adults.", True),
        ("A sound trial of warfarin", "A sound trial of warfarin: a randomised study in 500 adults", True),
        ("Effects of oestrogen on the oesophagus", "Effects of Oestrogen on the Œsophagus", True),
        ("A sound trial of metformin in adults", "A sound trial of warfarin in adults", False),
        ("Sound trial", "Sound trial and everything else that was found", False),
        ("", "x", False),
    ],
)
def test_titles_are_compared_as_words(given_title, title, same):
    assert (likeness(given_title, title) >= 0.9) is same
    assert likeness(given_title, title) == likeness(title, given_title)


def test_a_work_that_exists_is_described():
    found, requests = asked("see doi:10.1000/SOUND, which shows it", email="me@example.org")
    assert found[0].text.splitlines() == [
        "Title: A sound trial of warfarin in adults",
        "Published: 2019-03-07",
        "In: The Journal",
        "Identifiers: DOI 10.1000/sound",
        "Status: no retraction is recorded",
    ]
    assert (found[0].url, found[0].published) == ("https://doi.org/10.1000/sound", "2019-03-07")
    assert [(r.path, r.query) for r in requests] == [("/cr/works/10.1000/sound", {"mailto": "me@example.org"})]


def test_a_retraction_is_said():
    found, _ = asked("doi 10.1000/retracted")
    assert "Status: retracted" in found[0].text
    assert "Notices: Retraction (10.1000/notice)" in found[0].text
    titled = Work.model_validate({"DOI": "10.1/x", "title": ["RETRACTED: A study of things"]})
    assert titled.retracted
    corrected = Work.model_validate(
        {"DOI": "10.1/x", "title": ["A"], "updated-by": [{"type": "correction", "DOI": "10.1/y"}]}
    )
    assert not corrected.retracted
    assert corrected.updates == ("correction (10.1/y)",)


def test_a_doi_that_does_not_exist_is_said_without_repeating_it():
    found, requests = asked("Smith 2021 (doi:10.1234/fabricated.99) proves that aspirin cures gout")
    assert found[0].text == "doi.org has no record of the DOI in the query: it does not exist there."
    shown = f"{found[0].title} {found[0].source} {found[0].text}".lower()
    assert not {"10.1234", "fabricated", "aspirin", "smith"} & set(shown.replace("/", " ").split())
    assert found[0].url == ""
    assert [r.path for r in requests] == ["/cr/works/10.1234/fabricated.99", "/ra/10.1234/fabricated.99"]


def test_a_doi_of_another_agency_exists():
    found, _ = asked("data at 10.5281/data")
    assert found[0].text == ("The DOI in the query is registered with DataCite; what it stands for was not looked up.")
    assert found[0].url == "https://doi.org/10.5281/data"


def test_pmids_and_numbers_of_trials():
    found, requests = asked("PMID 01000001, PMID 42, NCT00000003 and NCT99999999", email="me@example.org")
    assert "Identifiers: PMID 1000001, DOI 10.1000/t1000001" in found[0].text
    assert found[0].published == "2020-01-09"
    assert found[1].text == "PubMed has no record of the second PMID in the query: it does not exist there."
    assert found[2].text.splitlines()[:3] == [
        "Title: Metformin and the kidney",
        "Started: 2015-03",
        "Sponsor: Test University",
    ]
    assert (
        found[3].text
        == "ClinicalTrials.gov has no record of the second NCT number in the query: it does not exist there."
    )
    assert [p.rank for p in found] == [1, 2, 3, 4]
    assert {r.query.get("email") for r in requests if r.path.startswith("/eu")} == {"me@example.org"}


def test_a_number_that_can_be_no_pmid_does_not_exist():
    body = "<?xml version='1.0'?><eFetchResult><ERROR>ID list is empty! Possibly it has no correct IDs.</ERROR></eFetchResult>"
    found, _ = asked("PMID 0000", lambda request: Answer(body, status=400, kind="text/xml"))
    assert found[0].text == "PubMed has no record of the PMID in the query: it does not exist there."


def test_the_doi_of_an_article_is_not_that_of_a_reference():
    own = '<ArticleId IdType="doi">10.1000/t1000001</ArticleId>'
    record = REPLIES["article"](RECORDS[0])
    assert own in record
    found, _ = asked("PMID 1000001", lambda request: REPLIES["articles"](record.replace(own, "")))
    assert "Identifiers: PMID 1000001\n" in found[0].text


def test_notices_in_pubmed():
    notices = "".join(
        f'<CommentsCorrections RefType="{kind}"><RefSource>x</RefSource><PMID Version="1">{n}</PMID></CommentsCorrections>'
        for n, kind in enumerate(("RetractionIn", "ErratumIn", "Cites", "ExpressionOfConcernIn"), 7)
    )
    notices = f"<CommentsCorrectionsList>{notices}</CommentsCorrectionsList>"
    found, _ = asked("PMID 1000001", lambda r: REPLIES["articles"](REPLIES["article"](RECORDS[0], notices=notices)))
    assert "Status: retracted" in found[0].text
    assert "Notices: retraction (PMID 7); erratum (PMID 8); expression of concern (PMID 10)" in found[0].text


def test_a_stopped_trial_is_said():
    stopped = REPLIES["study"](RECORDS[0], statusModule={"overallStatus": "WITHDRAWN"})
    found, _ = asked("NCT00000001", lambda request: stopped)
    assert "Notices: the study is withdrawn" in found[0].text


def test_a_title_that_is_not_the_works_own_is_reported_and_not_repeated():
    found, _ = asked('As "Aspirin cures gout in a large trial" (doi:10.1000/sound) shows')
    assert "Title check: the query quotes another title for this work." in found[0].text
    assert "gout" not in found[0].text
    found, _ = asked('As "A sound trial of warfarin in adults" (doi:10.1000/sound) shows')
    assert "Title check" not in found[0].text

    async def records():
        with Site(REPLIES["citations"]) as site:
            return await make(site.url).look_up([Cited("doi", "10.1000/sound")], titles=["Aspirin cures gout"])

    record = anyio.run(records)[0]
    assert (record.found, record.title_agrees) == (True, False)
    assert 0 < record.likeness < 0.9


def test_a_quoted_title_is_looked_up_in_crossref_and_then_in_pubmed():
    found, requests = asked('"An invented cohort of metformin users" says so')
    assert "Status: retracted" in found[0].text
    assert requests[0].query["query.bibliographic"] == "An invented cohort of metformin users"
    found, requests = asked('"Warfarin and bleeding in adults" says so')
    assert found[0].source == "PubMed"
    assert requests[1].query["term"] == "warfarin[ti] AND bleeding[ti] AND adults[ti]"
    found, requests = asked('"Metformin grows hair on every billiard ball" says so')
    assert found[0].text == "Neither Crossref nor PubMed has a work under the quoted title in the query."


def test_k_bounds_the_look_ups():
    found, requests = asked("10.1000/sound 10.1000/a 10.1000/b 10.1000/c", k=1)
    assert (len(found), len(requests)) == (1, 1)
    assert asked("nothing cited here") == ([], [])
    assert asked("10.1000/sound", k=0) == ([], [])


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer("Not Found", status=404, kind="text/plain"), PermanentError),
        (Answer("<h1>404</h1>", status=404, kind="text/html"), PermanentError),
        (Answer("{}", status=429), RateLimitedError),
        (Answer("{}", status=503), RetrievalError),
        (Answer("{}"), PermanentError),
        (Answer("[]"), PermanentError),
        (Answer('{"status": "ok", "message": {"title": ["x"]}}'), PermanentError),
        (Answer('{"status": "failed", "message": [{"type": "x", "message": "bad"}]}'), PermanentError),
    ],
)
@pytest.mark.parametrize("text", ["10.1000/sound", "PMID 1000001", "NCT00000001", '"A title of five words"'])
def test_a_look_up_that_fails_never_says_that_the_work_does_not_exist(text, answer, error):
    with pytest.raises(error):
        asked(text, lambda request: answer)


def test_a_failure_at_doi_org_is_no_miss():
    def answer(request):
        if request.path.startswith("/ra/"):
            return [{"DOI": "10.1/x", "status": "Service is being maintained"}]
        return REPLIES["citations"](request)

    with pytest.raises(PermanentError, match="maintained"):
        asked("10.1234/x", answer)


def test_dates_of_crossref_may_be_missing():
    for parts, date in (([[2020, 3]], "2020-03"), ([[2020]], "2020"), ([[None]], ""), ([], "")):
        assert Work.model_validate({"DOI": "10.1/x", "issued": {"date-parts": parts}}).published == date


def test_polite_requests_may_come_faster(monkeypatch):
    monkeypatch.delenv("NCBI_API_KEY", raising=False)
    plain, polite = CitationRetriever(), CitationRetriever(CitationRetriever.Settings(email="me@example.org", key=KEY))
    assert plain._crossref._net.rate.per_second == 1.0
    assert polite._crossref._net.rate.per_second == 3.0
    assert plain._crossref._net.settings.allow_private is False
    assert "me@example.org" not in polite.settings.model_dump_json() + repr(polite.settings)
