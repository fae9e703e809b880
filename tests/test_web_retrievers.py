"""Every web retriever against a local server: contract, what is sent, empty results, errors, wrong shapes, secrets."""

from __future__ import annotations

import importlib
import json
import runpy
from pathlib import Path

import anyio
import pytest

from factcheck.config import validate_table
from factcheck.errors import ConfigError, PermanentError, RateLimitedError, RetrievalError, TransientError
from factcheck.plugins import Plugins
from factcheck.testing import check_retriever, failures, make_query

REPLIES = runpy.run_path(str(Path(__file__).with_name("web_replies.py")))
Site, Answer, KEY = REPLIES["SERVER"]["Site"], REPLIES["Answer"], REPLIES["KEY"]

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
KEYED = ("serper", "brave", "tavily")
ONCE = {"attempts": 1, "timeout": 10.0, "deadline": 10.0}
IMPATIENT = {"attempts": 1, "timeout": 0.3, "deadline": 0.5}
QUERIES = ("Warfarin dose for adults", "contraindications of metformin")
ALL = pytest.mark.parametrize("name", CLASSES)


def factory(name):
    return getattr(importlib.import_module(f"factcheck_web.{name}"), CLASSES[name])


def table(name, url, **more):
    key = {"key": KEY} if name in (*KEYED, "pubmed", "openfda") else {}
    return {"base_url": url, "per_second": 1000.0, "net": ONCE, **key, **more}


def make(name, url, **more):
    kind = factory(name)
    return kind(validate_table(kind.Settings, table(name, url, **more), where="the test"))


def ask(retriever, text=QUERIES[0], k=10):
    return anyio.run(retriever.retrieve, make_query(text), k)


def asked(name, answer, text=QUERIES[0], k=10, settings=None):
    """Return what a retriever makes of an answer, and the requests that it sent."""
    with Site(answer if callable(answer) else lambda request: answer) as site:
        return ask(make(name, site.url, **(settings or {})), text, k), site.requests


def error_on(name, answer):
    with pytest.raises(RetrievalError) as caught:
        asked(name, answer)
    assert KEY not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    assert "\n" not in str(caught.value)
    return caught.value


@ALL
def test_it_conforms(name):
    faulty = {
        "error": Answer('{"message": "no"}', status=403),
        "timeout": Answer("{}", delay=3.0),
        "rate_limited": Answer("slow down", status=429, kind="text/plain"),
        "empty": REPLIES["empty"](name),
        "malformed": Answer('{"an": ["unexpected"', kind="application/json"),
    }
    sites = {fault: Site(lambda request, answer=answer: answer) for fault, answer in faulty.items()}
    try:
        with Site(REPLIES[name]) as site:
            results = check_retriever(
                lambda: make(name, site.url),
                queries=QUERIES,
                make_faulty=lambda fault: make(name, sites[fault].url, net=IMPATIENT if fault == "timeout" else ONCE),
                factory=factory(name),
                settings=table(name, site.url),
                secrets=(KEY,),
                time_limit=10.0,
                minimum=22,
            )
    finally:
        for each in sites.values():
            each.close()
    assert failures(results) == [], [(r.check, r.error) for r in failures(results)]


@ALL
def test_it_is_registered_under_its_name(name):
    plugins = Plugins(autoload=False)
    plugins.register(importlib.import_module("factcheck_web"), "web")
    with Site(REPLIES[name]) as site:
        retriever = plugins.create("retriever", f"web/{name}", table(name, site.url))
        assert retriever.name == f"web/{name}"
        shown = plugins.fingerprint("retriever", f"web/{name}", retriever).model_dump_json()
        assert KEY not in shown
        found = ask(retriever)
    assert found
    assert {passage.corpus for passage in found} == {f"web/{name}"}


@pytest.mark.parametrize("name", REPLIES["FAILURES"])
def test_an_error_in_a_body_with_status_200_is_an_error(name):
    answer, word = REPLIES["FAILURES"][name]
    error = error_on(name, answer)
    assert word in error.message
    assert isinstance(error, TransientError if name == "searxng" else PermanentError)


@ALL
def test_a_wrong_shape_names_the_service_and_the_field(name):
    answer, field = REPLIES["WRONG"][name]
    error = error_on(name, answer)
    assert isinstance(error, PermanentError)
    assert f"'{field}'" in error.message
    assert factory(name).provider in error.message


@ALL
@pytest.mark.parametrize("body", ["[]", "null", '"text"', "{}", "5", "<html><body>hello</body></html>", ""])
def test_no_other_body_passes_for_an_empty_result(name, body):
    for kind in ("application/json", "text/xml"):
        assert isinstance(error_on(name, Answer(body, kind=kind)), PermanentError)


@ALL
@pytest.mark.parametrize(("status", "error"), [(401, PermanentError), (403, PermanentError), (404, PermanentError)])
def test_a_lasting_refusal_is_permanent(name, status, error):
    found = error_on(name, Answer('{"message": "no"}', status=status))
    assert type(found).__mro__[0] is not RateLimitedError
    assert isinstance(found, error)


@ALL
def test_a_rate_limit_is_told_apart_and_says_when(name):
    error = error_on(name, Answer("{}", status=429, headers=(("retry-after", "30"),)))
    assert isinstance(error, RateLimitedError)
    assert error.retry_after == 30.0


@ALL
def test_a_page_in_place_of_data_is_an_error(name):
    assert isinstance(error_on(name, Answer("<html></html>", kind="text/html")), PermanentError)


@ALL
def test_only_the_query_and_the_documented_parameters_are_sent(name):
    secret_context = "zebra"
    found, requests = asked(name, REPLIES[name])
    assert found
    for request in requests:
        sent = f"{request.path} {request.query} {request.body}"
        assert secret_context not in sent
        assert "claim" not in sent
        assert "cookie" not in request.headers
        assert request.headers["user-agent"].startswith("factcheck")
    known = {
        "serper": {"q", "num"},
        "brave": {"q", "count", "result_filter", "text_decorations", "extra_snippets"},
        "tavily": {"query", "search_depth", "max_results", "include_answer", "include_raw_content"},
        "searxng": {"q", "format", "categories", "safesearch"},
        "pubmed": {"db", "term", "retmode", "retmax", "sort", "tool", "api_key", "id"},
        "europepmc": {"query", "format", "resultType", "pageSize"},
        "openfda": {"search", "limit", "api_key"},
        "medlineplus": {"db", "term", "retmax", "rettype", "tool"},
        "clinicaltrials": {"query.term", "pageSize", "format", "fields"},
    }[name]
    for request in requests:
        assert set(request.query) | set(json.loads(request.body or "{}")) <= known


@pytest.mark.parametrize(
    ("name", "header", "value"),
    [
        ("serper", "x-api-key", KEY),
        ("brave", "x-subscription-token", KEY),
        ("tavily", "authorization", f"Bearer {KEY}"),
    ],
)
def test_the_key_goes_into_its_header_and_nowhere_else(name, header, value):
    _, requests = asked(name, REPLIES[name])
    for request in requests:
        assert request.headers[header] == value
        assert KEY not in f"{request.path} {request.query} {request.body}"


@pytest.mark.parametrize("name", KEYED)
def test_a_missing_key_is_said_before_the_first_query(name, monkeypatch):
    kind = factory(name)
    variable = kind.Settings.model_fields["key_env"].default
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=variable):
        kind()
    monkeypatch.setenv(variable, KEY)
    retriever = kind()
    assert retriever.key.get_secret_value() == KEY
    assert KEY not in repr(retriever.settings) + str(vars(retriever))


@pytest.mark.parametrize("name", ["pubmed", "openfda"])
def test_a_key_that_is_optional_raises_the_limit(name, monkeypatch):
    kind = factory(name)
    monkeypatch.delenv(kind.Settings.model_fields["key_env"].default, raising=False)
    without = kind()
    assert without.key is None
    monkeypatch.setenv(kind.Settings.model_fields["key_env"].default, KEY)
    assert kind().key is not None
    if name == "pubmed":
        assert (without.net.rate.per_second, kind().net.rate.per_second) == (2.0, 8.0)


@ALL
def test_the_documented_rate_limit_is_kept_unless_it_is_set(name, monkeypatch):
    for variable in ("SERPER_API_KEY", "BRAVE_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    kind = factory(name)
    plain = kind(kind.Settings(base_url="https://search.example.org") if name == "searxng" else kind.Settings())
    limits = {"brave": 1.0, "tavily": 100 / 60, "medlineplus": 85 / 60, "clinicaltrials": 50 / 60, "openfda": 4.0}
    assert plain.net.rate.per_second == limits.get(name, plain.rate_limit().per_second)
    assert plain.net.rate.per_second <= 20.0
    assert make(name, "https://proxy.example.org").net.rate.per_second == 1000.0


def test_requests_wait_for_their_turn():
    with Site(REPLIES["brave"]) as site:
        retriever = make("brave", site.url, per_second=20.0)
        times = []

        async def one():
            await retriever.retrieve(make_query(QUERIES[0]), 3)
            times.append(anyio.current_time())

        async def several():
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(one)

        anyio.run(several)
    assert max(times) - min(times) >= 0.15


@ALL
def test_a_private_address_is_refused_unless_it_was_configured(name, monkeypatch):
    for variable in ("SERPER_API_KEY", "BRAVE_API_KEY", "TAVILY_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    kind = factory(name)
    if name != "searxng":
        assert kind().net.settings.allow_private is False
    assert make(name, "http://127.0.0.1:9").net.settings.allow_private is True


@ALL
def test_k_bounds_what_is_asked_for_and_returned(name):
    found, requests = asked(name, REPLIES[name], k=50, settings={"k": 1})
    assert len(found) == 1
    numbers = [
        int(value)
        for request in requests
        for key, value in {**request.query, **json.loads(request.body or "{}")}.items()
        if key in ("count", "max_results", "retmax", "pageSize")
    ]
    assert all(number == 1 for number in numbers)
    assert asked(name, REPLIES[name], k=0) == ([], [])


@ALL
def test_a_query_of_signs_alone_is_not_sent(name):
    assert asked(name, REPLIES[name], text="?! -- ()") == ([], [])


@ALL
def test_it_says_that_it_reaches_the_network_and_how_many_queries_it_takes_at_once(name):
    one = make(name, "https://proxy.example.org")
    assert one.network is True
    assert one.concurrency == one.rate_limit().concurrency <= 16


def test_a_base_url_that_names_a_user_is_refused_without_repeating_it():
    with pytest.raises(ConfigError, match="names a user") as caught:
        make("searxng", f"https://me:{KEY}@search.example.org")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "google.com", "ftp://example.org", "https://example.org/?q=1", "javascript:alert(1)"]
)
def test_a_base_url_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="base_url"):
        make("brave", url)


def test_searxng_needs_a_server():
    kind = factory("searxng")
    with pytest.raises(ConfigError, match="'base_url' is required"):
        validate_table(kind.Settings, {}, where="the test")
