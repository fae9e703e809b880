"""Fetching pages: robots.txt, addresses, redirects, sizes, types, extraction, exact slices, and pages behind results."""

from __future__ import annotations

import runpy
import sys
import threading
import time
import urllib.robotparser
from pathlib import Path

import anyio
import httpx
import pytest
from factcheck_web.authorities import host_of
from factcheck_web.fetch import TEXT_LIMIT, FetchSettings, Page, PageFetcher
from factcheck_web.remembered import Remembered
from factcheck_web.robots import Robots
from factcheck_web.serper import SerperRetriever
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import MissingExtraError, PermanentError, RetrievalError, TransientError
from factcheck.net import AddressRefusedError, Net, NetSettings
from factcheck.testing import make_query

REPLIES = runpy.run_path(str(Path(__file__).with_name("web_replies.py")))
Site, Answer = REPLIES["SERVER"]["Site"], REPLIES["Answer"]
FIRST = (
    "Warfarin is an anticoagulant that lowers the risk of stroke in atrial fibrillation. People who take it have regular "
    "blood tests, because the dose that suits one person is too much for another. "
)
SECOND = (
    "Paracetamol is taken for pain. Adults take no more than 4 g in 24 hours, which is eight tablets of 500 mg. A count "
    "below 10<sup>9</sup>/L is a reason to ask a doctor first. "
)
HTML = f"""<!DOCTYPE html><html><head><title>Two medicines - Example Health</title>
<meta property="og:site_name" content="Example Health"><meta property="article:published_time" content="2023-04-05T08:00:00Z">
<script>var warfarin = "script text";</script></head><body><nav><a href="/">Home</a> <a href="/a">All topics</a></nav>
<main><article><h1>Two medicines</h1><p>{FIRST * 4}</p><h2>Pain</h2><p>{SECOND * 4}</p></article></main>
<footer>Cookie notice and legal footer</footer></body></html>"""
ROBOTS = "User-agent: *\nDisallow: /private/\n"


def page(body=HTML, kind="text/html; charset=utf-8", **more):
    return Answer(body, kind=kind, **more)


def answers(routes, robots=ROBOTS):
    def answer(request):
        if request.path == "/robots.txt":
            return robots if isinstance(robots, Answer) else Answer(robots, kind="text/plain")
        return routes[request.path] if request.path in routes else Answer("", status=404, kind="text/plain")

    return answer


def fetcher(domains=(), **settings):
    net = Net(NetSettings(allow_private=True, attempts=1, timeout=1.0, deadline=2.0, **settings))
    return PageFetcher(FetchSettings(delay=0.0), domains=domains, net=net)


def fetched(path, routes, robots=ROBOTS, **more):
    pytest.importorskip("trafilatura")
    with Site(answers(routes, robots)) as site:
        return anyio.run(fetcher(**more).fetch, f"{site.url}{path}"), site.requests


def test_the_readable_text_of_a_page():
    found, requests = fetched("/a?x=1", {"/a": page()})
    assert "anticoagulant" in found.text
    assert not {"Cookie notice", "script text", "All topics"} & set(found.text.split("\n"))
    assert "script text" not in found.text
    assert "10^9/L" in found.text
    assert (found.title, found.published, found.source) == ("Two medicines", "2023-04-05", "Example Health")
    assert found.url.endswith("/a?x=1")
    assert [r.path for r in requests] == ["/robots.txt", "/a"]
    assert {r.headers["user-agent"].partition("/")[0] for r in requests} == {"factcheck"}


def test_an_excerpt_is_an_exact_slice_and_says_which():
    found, _ = fetched("/a", {"/a": page()})
    parts = fetcher().excerpts(found, "How much paracetamol in 24 hours?", 3)
    assert "no more than 4 g in 24 hours" in parts[0].text
    for rank, part in enumerate(parts, start=1):
        start, end = map(int, part.id.rpartition(":")[2].split("-"))
        assert found.text[start:end] == part.text
        assert (part.rank, part.corpus, part.url) == (rank, "web/page", found.url)
    assert fetcher().excerpts(found, "zebra", 3) == []
    again = fetcher().excerpts(found, "How much paracetamol in 24 hours?", 3)
    assert again == parts


def test_plain_text_is_taken_as_it_is():
    found, _ = fetched("/a.txt", {"/a.txt": page("Warfarin <b>5</b> mg\n", "text/plain")})
    assert found.text == "Warfarin <b>5</b> mg\n"


def test_a_page_of_another_encoding_is_read():
    found, _ = fetched(
        "/a", {"/a": page(HTML.replace("stroke", "Schlägen").encode("latin-1"), "text/html; charset=latin-1")}
    )
    assert "Schlägen" in found.text


@pytest.mark.parametrize(
    "answer",
    [
        page("%PDF-1.7", "application/pdf"),
        page("x" * 200_000),
        page("", "text/html"),
        page("<html><body></body></html>"),
        page("{}", "application/json"),
        page("gone", "text/html", status=410),
    ],
)
def test_what_is_no_readable_page_is_a_lasting_error(answer):
    with pytest.raises(PermanentError):
        fetched("/a", {"/a": answer}, max_bytes=100_000)


def test_a_page_that_hangs_is_a_passing_error():
    with pytest.raises(TransientError):
        fetched("/a", {"/a": page(delay=5.0)})


def test_robots_txt_is_asked_first_and_obeyed():
    with pytest.raises(PermanentError, match=r"robots\.txt"):
        fetched("/private/a", {"/private/a": page()})
    with Site(answers({"/private/a": page()})) as site:
        with pytest.raises(PermanentError):
            anyio.run(fetcher().fetch, f"{site.url}/private/a")
        assert [r.path for r in site.requests] == ["/robots.txt"]


@pytest.mark.parametrize(
    ("robots", "outcome"),
    [
        (Answer("", status=404, kind="text/plain"), None),
        (Answer("", status=410, kind="text/plain"), None),
        (Answer("<html>no robots here</html>", kind="text/html"), None),
        (Answer("", status=401, kind="text/plain"), PermanentError),
        (Answer("", status=403, kind="text/plain"), PermanentError),
        (Answer("", status=503, kind="text/plain"), TransientError),
        (Answer("", status=501, kind="text/plain"), PermanentError),
        (Answer("", status=507, kind="text/plain"), PermanentError),
        (Answer("", status=304, kind="text/plain"), PermanentError),
        (Answer("#\n" * 9000 + "User-agent: *\nDisallow: /\n", kind="text/plain"), PermanentError),
        (Answer("", status=429, kind="text/plain"), RetrievalError),
        (Answer("User-agent: factcheck\nDisallow: /\nUser-agent: *\nDisallow:\n", kind="text/plain"), PermanentError),
        (Answer("User-agent: other\nDisallow: /\n", kind="text/plain"), None),
        (Answer("User-agent: *\nDisallow: /*?x=\n", kind="text/plain"), PermanentError),
        (Answer("User-agent: *\nCrawl-delay: 3600\n", kind="text/plain"), PermanentError),
    ],
)
def test_what_a_robots_txt_means(robots, outcome):
    if outcome is None:
        assert fetched("/a?x=1", {"/a": page()}, robots)[0].text
    else:
        with pytest.raises(outcome):
            fetched("/a?x=1", {"/a": page()}, robots)


def test_robots_txt_is_read_once_for_a_site():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page(), "/b": page()})) as site:
        one = fetcher()
        for path in ("/a", "/b", "/a#part"):
            anyio.run(one.fetch, f"{site.url}{path}")
        assert [r.path for r in site.requests] == ["/robots.txt", "/a", "/b"]


def test_pages_that_are_wanted_at_once_are_read_once():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page(delay=0.1), "/b": page()}, Answer(ROBOTS, kind="text/plain", delay=0.1))) as site:
        one = fetcher()

        async def all_at_once():
            async with anyio.create_task_group() as group:
                for path in ("/a", "/b", "/a", "/a", "/b"):
                    group.start_soon(one.fetch, f"{site.url}{path}")

        anyio.run(all_at_once)
        assert sorted(r.path for r in site.requests) == ["/a", "/b", "/robots.txt"]


def test_what_failed_is_not_remembered():
    pytest.importorskip("trafilatura")
    robots = [Answer("", status=503), Answer(ROBOTS, kind="text/plain")]
    pages = [page("", status=500), page()]

    def answer(request):
        return (robots if request.path == "/robots.txt" else pages).pop(0)

    with Site(answer) as site:
        one = fetcher()
        for _ in range(2):
            with pytest.raises(TransientError):
                anyio.run(one.fetch, f"{site.url}/a")
        assert anyio.run(one.fetch, f"{site.url}/a").text
        assert [r.path for r in site.requests] == ["/robots.txt", "/robots.txt", "/a", "/a"]


def test_what_is_remembered_is_bounded_in_number_and_time():
    held = Remembered(0.1, 2)
    made = []

    async def ask(key):
        async def make():
            made.append(key)
            return key

        return await held.get(key, make)

    for key in "abcab":
        assert anyio.run(ask, key) == key
    assert made == ["a", "b", "c", "a", "b"]
    time.sleep(0.11)
    assert anyio.run(ask, "b") == "b"
    assert made == ["a", "b", "c", "a", "b", "b"]
    assert len(held._held) == 2


def test_pages_of_one_site_come_with_a_pause():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page()}, f"{ROBOTS}Crawl-delay: 0.3\n")) as site:
        one = fetcher()
        started = time.monotonic()

        async def both():
            async with anyio.create_task_group() as group:
                for number in range(3):
                    group.start_soon(one.fetch, f"{site.url}/a?{number}")

        anyio.run(both)
        assert time.monotonic() - started >= 0.6


def test_a_redirect_must_end_where_the_allow_list_and_robots_allow_it():
    to_private = {"/a": page("", status=302, headers=(("location", "/private/b"),)), "/private/b": page()}
    with pytest.raises(PermanentError, match=r"robots\.txt"):
        fetched("/a", to_private)
    moved = {"/a": page("", status=301, headers=(("location", "/b?secret=1"),)), "/b": page()}
    assert fetched("/a", moved)[0].url.endswith("/b?secret=1")
    with pytest.raises(PermanentError, match=r"robots\.txt"):
        fetched("/a", moved, f"{ROBOTS}Disallow: /*?secret\n")
    far = "/" + "x" * 300
    assert fetched("/a", {"/a": page("", status=301, headers=(("location", far),)), far: page()})[0].url.endswith(far)


def test_what_the_allow_list_or_robots_forbid_is_not_asked_for_after_a_redirect_either():
    pytest.importorskip("trafilatura")
    routes = {
        "/a": page("", status=302, headers=(("location", "/private/b"),)),
        "/private/b": page("", status=302, headers=(("location", "/c"),)),
        "/c": page(),
    }
    with Site(answers(routes)) as site:
        with pytest.raises(PermanentError, match=r"robots\.txt"):
            anyio.run(fetcher().fetch, f"{site.url}/a")
        assert [r.path for r in site.requests] == ["/robots.txt", "/a"]
    with Site(answers({"/b": page()})) as other:
        port = other.url.rpartition(":")[2]
        away = answers({"/a": page("", status=302, headers=(("location", f"http://localhost:{port}/b"),))})
        with Site(away) as site, pytest.raises(PermanentError, match="localhost is on no site of the allow-list"):
            anyio.run(fetcher(domains=("127.0.0.1",)).fetch, f"{site.url}/a")
        assert other.requests == []


def test_a_page_that_redirects_in_a_circle_ends():
    with pytest.raises(PermanentError, match="more than 5 times"):
        fetched("/a", {"/a": page("", status=302, headers=(("location", "/a"),))})


def test_a_fetch_ends_at_its_deadline_with_all_that_belongs_to_it():
    pytest.importorskip("trafilatura")
    slow = Answer(ROBOTS, kind="text/plain", delay=0.6)
    routes = {"/a": page("", status=302, headers=(("location", "/b"),), delay=0.6), "/b": page(delay=0.6)}
    with Site(answers(routes, slow)) as site:
        net = Net(NetSettings(allow_private=True, attempts=3, timeout=1.0, deadline=1.0))
        started = time.monotonic()
        with pytest.raises(TransientError, match="within 1 s"):
            anyio.run(PageFetcher(FetchSettings(delay=0.0), net=net).fetch, f"{site.url}/a")
        assert time.monotonic() - started < 1.5


def test_a_turn_that_comes_after_the_deadline_is_not_waited_for():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page()})) as site:
        net = Net(NetSettings(allow_private=True, attempts=1, timeout=1.0, deadline=1.0))
        one = PageFetcher(FetchSettings(delay=5.0), net=net)
        anyio.run(one.fetch, f"{site.url}/a?1")
        started = time.monotonic()
        with pytest.raises(TransientError, match="too many pages"):
            anyio.run(one.fetch, f"{site.url}/a?2")
        assert time.monotonic() - started < 0.5


def test_a_page_that_breaks_the_extraction_is_a_lasting_error(monkeypatch):
    def broken(markup, url):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("factcheck_web.fetch.extractor", lambda: broken)
    with pytest.raises(PermanentError, match="cannot be read: RecursionError"):
        fetched("/a", {"/a": page()})


def test_an_extraction_without_end_is_left_at_the_deadline(monkeypatch):
    pytest.importorskip("trafilatura")
    ended = threading.Event()

    def endless(markup, url):
        ended.wait(5.0)
        return Page(url, "text")

    monkeypatch.setattr("factcheck_web.fetch.extractor", lambda: endless)
    with Site(answers({"/a": page()})) as site:

        async def timed():
            started = time.monotonic()
            with pytest.raises(TransientError, match="within 2 s"):
                await fetcher().fetch(f"{site.url}/a")
            ended.set()
            return time.monotonic() - started

        assert anyio.run(timed) < 2.5


def test_a_text_without_end_is_cut():
    long = "Warfarin is an anticoagulant. " * 20_000
    assert len(fetched("/a", {"/a": page(long, "text/plain")})[0].text) == TEXT_LIMIT
    parts = "".join(f"<p>Part {number}. {long[:4000]}</p>" for number in range(80))
    assert (
        len(fetched("/a", {"/a": page(f"<html><body><article>{parts}</article></body></html>")})[0].text) == TEXT_LIMIT
    )


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://[", "", "javascript:alert(1)", "http://a b/", "http://1.1.1.1:99999/", "http://1.1.1.1:0/",
     "http://1.1.1.1:abc/", "http://xn--/", "http://user:pw@1.1.1.1/", "http://evil.example\\.nice.org.uk/", "http://☃.\xad/"],
)  # fmt: skip
@pytest.mark.parametrize("domains", [(), ("nice.org.uk",)])
def test_an_address_that_is_none_is_a_typed_error(url, domains):
    pytest.importorskip("trafilatura")
    with pytest.raises(PermanentError) as caught:
        anyio.run(PageFetcher(domains=domains).fetch, url)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/a", "http://localhost:8000/a", "http://[::1]/a", "http://169.254.169.254/latest/meta-data",
     "http://10.0.0.1/", "http://0x7f000001/", "ftp://example.org/a", "file:///etc/passwd"],
)  # fmt: skip
def test_private_addresses_and_other_schemes_are_refused(url):
    pytest.importorskip("trafilatura")
    settings = FetchSettings(net=NetSettings(allow_private=True, attempts=1, timeout=1.0, deadline=1.0))
    with pytest.raises((AddressRefusedError, PermanentError)):
        anyio.run(PageFetcher(settings).fetch, url)


def test_a_public_page_that_redirects_to_this_machine_is_refused():
    pytest.importorskip("trafilatura")
    with Site(answers({"/secret": page()})) as inner:
        # The outer site is let through by its address and port alone, as a public one would be by its address.
        outside = answers({"/a": page("", status=302, headers=(("location", f"{inner.url}/secret"),))})
        with Site(outside) as outer:
            net = Net(NetSettings(attempts=1, timeout=1.0, deadline=2.0))
            net._connections.trust(httpx.URL(outer.url))
            with pytest.raises(AddressRefusedError):
                anyio.run(PageFetcher(FetchSettings(delay=0.0), net=net).fetch, f"{outer.url}/a")
            assert inner.requests == []
            assert [r.path for r in outer.requests] == ["/robots.txt", "/a"]


def test_a_robots_txt_that_redirects_to_this_machine_is_refused():
    pytest.importorskip("trafilatura")
    with Site(answers({})) as inner:
        away = Answer("", status=302, headers=(("location", f"{inner.url}/robots.txt"),))
        with Site(answers({"/a": page()}, away)) as outer:
            net = Net(NetSettings(attempts=1, timeout=1.0, deadline=2.0))
            net._connections.trust(httpx.URL(outer.url))
            with pytest.raises(AddressRefusedError):
                anyio.run(PageFetcher(FetchSettings(delay=0.0), net=net).fetch, f"{outer.url}/a")
            assert inner.requests == []
            assert [r.path for r in outer.requests] == ["/robots.txt"]


def test_the_allow_list_comes_before_any_request():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page()})) as site:
        with pytest.raises(PermanentError, match="allow-list"):
            anyio.run(fetcher(domains=("nice.org.uk",)).fetch, f"{site.url}/a")
        assert site.requests == []


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(MissingExtraError, match="trafilatura") as caught:
        anyio.run(fetcher().fetch, "http://127.0.0.1:9/a")
    assert "factcheck[web]" in str(caught.value)


def searching(site, pages, **more):
    settings = SerperRetriever.Settings(
        base_url=site.url, key="k", per_second=1000.0, pages=pages, net=NetSettings(attempts=1), **more
    )
    return SerperRetriever(settings, fetcher=fetcher())


def results(site):
    links = [f"{site.url}/a", f"{site.url}/private/b", f"{site.url}/missing", f"{site.url}/a?again=1", f"{site.url}/a"]
    return [{"title": f"t{n}", "link": link, "snippet": f"snippet {n}"} for n, link in enumerate(links)]


def test_pages_replace_the_snippets_of_the_first_results():
    pytest.importorskip("trafilatura")
    with (
        Site(answers({"/a": page(), "/private/b": page()})) as site,
        Site(lambda r: {"organic": results(site)}) as search,
    ):
        found = anyio.run(searching(search, 3).retrieve, make_query("paracetamol in 24 hours"), 10)
    assert "no more than 4 g in 24 hours" in found[0].text
    assert (found[0].title, found[0].published, found[0].corpus) == ("Two medicines", "2023-04-05", "web/serper")
    assert [p.text for p in found[1:]] == ["snippet 1", "snippet 2", "snippet 3", "snippet 4"]
    assert [p.rank for p in found] == [1, 2, 3, 4, 5]


def test_a_page_found_twice_counts_once():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page()})) as site, Site(lambda r: {"organic": results(site)}) as search:
        found = anyio.run(searching(search, 5).retrieve, make_query("paracetamol in 24 hours"), 10)
    assert len(found) == 4
    assert [p.rank for p in found] == [1, 2, 3, 4]
    assert len({p.id for p in found}) == 4


def test_pages_without_the_package_are_an_error_and_not_a_snippet(monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with Site(lambda r: {"organic": results(site)}) as site, pytest.raises(MissingExtraError):
        anyio.run(searching(site, 1).retrieve, make_query("x"), 3)


def test_pages_without_the_package_are_refused_before_a_search_is_paid_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with Site(lambda r: {"organic": results(site)}) as site:
        with pytest.raises(MissingExtraError, match=r"pip install 'factcheck\[web\]'"):
            searching(site, 1)
        found = anyio.run(searching(site, 0).retrieve, make_query("x"), 3)
    assert [p.text for p in found] == ["snippet 0", "snippet 1", "snippet 2"]


def test_a_passage_from_a_page_names_the_page():
    pytest.importorskip("trafilatura")
    routes = {"/a": page("", status=301, headers=(("location", "/b"),)), "/b": page()}
    with Site(answers(routes)) as site, Site(lambda r: {"organic": results(site)[:1]}) as search:
        found = anyio.run(searching(search, 1).retrieve, make_query("paracetamol in 24 hours"), 1)
    assert (found[0].doc_id, found[0].url, found[0].source) == (f"{site.url}/b", f"{site.url}/b", "Example Health")


@pytest.mark.parametrize("link", ["http://[", "javascript:alert(1)", "", "http://1.1.1.1:99999/", "http://xn--/"])
def test_a_result_without_a_real_address_keeps_its_snippet(link):
    pytest.importorskip("trafilatura")
    organic = [{"title": "t", "link": link, "snippet": "snippet"}]
    with Site(lambda r: {"organic": organic}) as search:
        found = anyio.run(searching(search, 1).retrieve, make_query("paracetamol"), 1)
    assert [p.text for p in found] == ["snippet"]
    assert not found[0].url.startswith("javascript")


def test_a_fetcher_serves_several_event_loops():
    pytest.importorskip("trafilatura")
    with Site(answers({"/a": page()})) as site:
        one = fetcher()
        texts = {anyio.run(one.fetch, f"{site.url}/a").text for _ in range(2)}
    assert len(texts) == 1


RULES = """User-agent: Other
Disallow: /

User-agent: factcheck
User-agent: second
Allow: /a/open
Disallow: /a
Disallow: /*.pdf$
Disallow: /q?*secret
Crawl-delay: 2.5 # a comment

User-agent: *
Disallow: /b
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/", True), ("/a", False), ("/a/b", False), ("/a/open/x", True), ("/x.pdf", False), ("/x.pdf?y", True),
     ("/q?a=1&secret=2", False), ("/q?a=1", True), ("/b", True), ("/%61/b", False), ("/A", True)],
)  # fmt: skip
def test_rules_of_the_named_group_and_the_longest_match(path, allowed):
    robots = Robots(RULES, "factcheck/1.0")
    assert robots.allows(f"https://example.org{path}") is allowed
    assert robots.delay == 2.5


def test_the_rules_for_all_hold_where_no_group_is_named():
    robots = Robots(RULES, "unknown")
    assert robots.allows("https://example.org/a")
    assert not robots.allows("https://example.org/b/c")
    assert robots.delay == 0.0


def test_a_rule_with_many_wildcards_takes_no_time():
    robots = Robots("User-agent: *\nDisallow: /" + "*a" * 200 + "$\n", "factcheck")
    started = time.perf_counter()
    assert robots.allows("https://example.org/" + "a" * 5000 + "b")
    assert time.perf_counter() - started < 0.5


@given(
    st.lists(st.sampled_from(["/", "/a", "/a/b", "/c", "/a/b/c", "/é", "/x y"]), max_size=4),
    st.sampled_from(["/", "/a", "/a/", "/a/b", "/ab", "/c?x=1", "/d", "/a/b/c/d", "/%C3%A9"]),
)
def test_plain_prefixes_are_read_as_the_standard_library_reads_them(rules, path):
    lines = ["User-agent: *", *(f"Disallow: {rule}" for rule in rules)]
    reference = urllib.robotparser.RobotFileParser()
    reference.parse(lines)
    url = f"https://example.org{path}"
    assert Robots("\n".join(lines), "factcheck").allows(url) is reference.can_fetch("factcheck", url)


@given(st.text(max_size=200), st.text(max_size=60))
def test_no_robots_txt_breaks_the_reader(text, path):
    url = f"https://example.org/{path}"
    if host_of(url):
        assert Robots(text, "factcheck").allows(url) in (True, False)


def test_a_page_is_made_of_plain_values():
    assert Page("u", "t") == ("u", "t", "", "", "")
