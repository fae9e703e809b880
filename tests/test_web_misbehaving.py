"""Retrievers against a server that misbehaves: each case ends in its typed error, within the deadline, and leaves no trace."""

from __future__ import annotations

import importlib
import json
import runpy
import time
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from factcheck.errors import FactcheckError, PermanentError, RateLimitedError, TransientError
from factcheck.net import AddressRefusedError, HttpStatusError, Net, NetSettings
from factcheck.testing import make_query

BAD = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
REPLIES = runpy.run_path(str(Path(__file__).with_name("web_replies.py")))
Server, reply, status, redirect = BAD["Server"], BAD["reply"], BAD["status"], BAD["redirect"]
KEY = REPLIES["KEY"]
RECORD = REPLIES["RECORDS"][0]
ATTEMPTS, DEADLINE = 3, 3.0
FENCED = '```json\n{"results": []}\n```'


class Service(NamedTuple):
    """Hold a retriever, the query, the path that misbehaves, and the good replies by path."""

    module: str
    factory: str
    text: str
    path: str
    good: dict
    settings: dict


def article():
    return reply(REPLIES["articles"](REPLIES["article"](RECORD)).body, kind="text/xml")


PUBMED = {"/esearch.fcgi": reply(REPLIES["esearch"](RECORD.pmid)), "/efetch.fcgi": article()}
RESULT = {"title": "t", "url": "https://www.who.int/x", "content": "warfarin", "link": "https://www.who.int/x"}
SERVICES = {
    "searxng": Service("searxng", "SearxngRetriever", "warfarin", "/search", {"/search": reply({"results": [RESULT]})}, {}),
    "serper": Service(
        "serper", "SerperRetriever", "warfarin", "/search",
        {"/search": reply({"organic": [{**RESULT, "snippet": "warfarin"}]})}, {"key": KEY},
    ),
    "brave": Service(
        "brave", "BraveRetriever", "warfarin", "/res/v1/web/search",
        {"/res/v1/web/search": reply({"type": "search", "web": {"results": [{**RESULT, "description": "warfarin"}]}})},
        {"key": KEY},
    ),
    "tavily": Service(
        "tavily", "TavilyRetriever", "warfarin", "/search", {"/search": reply({"results": [RESULT]})}, {"key": KEY}
    ),
    "pubmed, search": Service("pubmed", "PubmedRetriever", "warfarin", "/esearch.fcgi", PUBMED, {"key": KEY}),
    "pubmed, fetch": Service("pubmed", "PubmedRetriever", "warfarin", "/efetch.fcgi", PUBMED, {"key": KEY}),
    "openfda": Service(
        "openfda", "OpenFdaRetriever", "warfarin in adults", "/drug/label.json",
        {"/drug/label.json": reply({"results": [REPLIES["label"](RECORD)]})}, {"key": KEY},
    ),
    "citations": Service(
        "citations", "CitationRetriever", "doi:10.1000/sound", "/works/10.1000%2Fsound",
        {"/works/10.1000%2Fsound": reply({"status": "ok", "message": REPLIES["WORKS"]["10.1000/sound"]})}, {"key": KEY},
    ),
}  # fmt: skip

KEYED = ("serper", "brave", "tavily", "pubmed, search", "pubmed, fetch", "openfda")
# What each misbehaviour ends in: the error, and the number of requests for the path.
ENDS = {
    "401": (status(401, f"bad key {KEY}"), HttpStatusError, 1),
    "403": (status(403, "no access"), PermanentError, 1),
    "404": (status(404, "no such page"), HttpStatusError, 1),
    "429": (status(429), RateLimitedError, ATTEMPTS),
    "429 soon": (status(429, headers={"retry-after": "0"}), RateLimitedError, ATTEMPTS),
    "429 late": (status(429, headers={"retry-after": "60"}), RateLimitedError, 1),
    "500": (status(500, f"at {KEY}"), TransientError, ATTEMPTS),
    "503 late": (status(503, headers={"retry-after": "3600"}), TransientError, 1),
    "hang": (BAD["hang"](), TransientError, ATTEMPTS),
    "drip": (BAD["drip"](), TransientError, ATTEMPTS),
    "cut": (BAD["cut"](), TransientError, ATTEMPTS),
    "cut at once": (BAD["cut_at_once"](), TransientError, ATTEMPTS),
    "garbage": (BAD["garbage"](), TransientError, ATTEMPTS),
    "wrong type": (reply("<html><p>hi", kind="text/html"), PermanentError, 1),
    "no type": (reply("{}", kind=""), PermanentError, 1),
    "an error with status 200": (reply({"error": {"message": f"no, {KEY}"}}), PermanentError, 1),
    "a text with status 200": (reply('"error"'), PermanentError, 1),
    "invalid json": (reply('{"results": ['), PermanentError, 1),
    "fenced json": (reply(FENCED), PermanentError, 1),
    "empty": (reply(""), PermanentError, 1),
    "deep json": (reply("[" * 100_000), PermanentError, 1),
    "huge": (BAD["huge"](), PermanentError, 1),
    "endless": (BAD["huge"](announced=False), PermanentError, 1),
    "bomb": (BAD["bomb"](), PermanentError, 1),
    "no gzip": (reply(b"plain", headers={"content-encoding": "gzip"}), PermanentError, 1),
    "slow charset": (reply("{}", kind="application/json; charset=punycode"), PermanentError, 1),
    "to loopback": (redirect("http://127.0.0.1:1/"), AddressRefusedError, 1),
    "to metadata": (redirect("http://169.254.169.254/latest/"), AddressRefusedError, 1),
    "to a file": (redirect("file:///etc/passwd"), AddressRefusedError, 1),
    "to nowhere": (redirect("http://[::1"), PermanentError, 1),
    "to no port": (redirect("http://1.1.1.1:99999/"), AddressRefusedError, 1),
}  # fmt: skip


@pytest.fixture(scope="module")
def running():
    with Server() as server:
        yield server


@pytest.fixture
def server(running):
    running.reset()
    return running


async def at_once(_):
    return None


def retriever(service, server, *, sleep=at_once, timeout=5.0, deadline=20.0):
    kind = getattr(importlib.import_module(f"factcheck_web.{service.module}"), service.factory)
    bounds = NetSettings(allow_private=True, attempts=ATTEMPTS, timeout=timeout, deadline=deadline)
    return kind(kind.Settings(base_url=server.url, **service.settings), net=Net(bounds, sleep=sleep))


def ask(one, service):
    return anyio.run(one.retrieve, make_query(service.text), 5)


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize("case", ENDS)
def test_each_misbehaviour_ends_in_its_error_and_the_next_query_is_answered(server, name, case):
    service = SERVICES[name]
    behave, kind, requests = ENDS[case]
    for path, good in service.good.items():
        server.script(path, good)
    server.script(service.path, behave)
    one = retriever(service, server, timeout=0.1 if case in ("hang", "drip") else 5.0)
    started = time.monotonic()
    with pytest.raises(FactcheckError) as caught:
        ask(one, service)
    assert time.monotonic() - started < DEADLINE
    posted = kind is AddressRefusedError and server.seen[-1].method == "POST"  # which no redirect is followed with
    assert isinstance(caught.value, PermanentError if posted else kind)
    assert server.count(service.path) == requests
    told = (
        f"{caught.value} {caught.value!r} {vars(caught.value)} {caught.value.__cause__!r} {caught.value.__context__!r}"
    )
    assert KEY not in told or name not in KEYED
    assert "\n" not in str(caught.value)
    server.script(service.path, service.good[service.path])
    if case in ("429 late", "503 late"):  # the server has asked for peace
        with pytest.raises(RateLimitedError):
            ask(one, service)
        assert server.count(service.path) == requests
    else:
        assert ask(one, service)


@pytest.mark.parametrize("name", ["searxng", "pubmed, fetch"])
@pytest.mark.parametrize("case", ["429", "500", "hang", "drip", "cut"])
def test_waits_and_attempts_end_at_the_deadline(server, name, case):
    service = SERVICES[name]
    for path, good in service.good.items():
        server.script(path, good)
    server.script(service.path, ENDS[case][0])
    one = retriever(service, server, sleep=anyio.sleep, timeout=10.0, deadline=1.0)
    started = time.monotonic()
    with pytest.raises((TransientError, RateLimitedError)):
        ask(one, service)
    assert time.monotonic() - started < 1.5
    assert server.count(service.path) <= 2


@pytest.mark.parametrize("name", ["serper", "brave", "tavily", "pubmed, fetch"])
def test_a_key_that_a_good_reply_repeats_is_not_kept(server, name):
    service = SERVICES[name]
    for path, good in service.good.items():
        server.script(path, good)

    class Echo:
        def __init__(self, writer):
            self.writer, self.drain = writer, writer.drain

        def write(self, data):
            head, _, body = data.partition(b"\r\n\r\n")
            body = body.replace(b"warfarin", KEY.encode()).replace(b"Warfarin", KEY.encode())
            lines = [line for line in head.split(b"\r\n") if not line.startswith(b"content-length")]
            self.writer.write(b"\r\n".join([*lines, b"content-length: %d" % len(body)]) + b"\r\n\r\n" + body)

    async def repeating(seen, writer):
        return await service.good[service.path](seen, Echo(writer))

    server.script(service.path, repeating)
    told = json.dumps([passage.model_dump() for passage in ask(retriever(service, server), service)])
    assert "*****" in told
    assert KEY not in told
