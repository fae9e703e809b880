"""The whole pipeline against a server that misbehaves at one claim: it ends in its state, in time, and leaves no trace.

Each case is met by the judge, the decomposer, the query writer, the search step of a judge, and a retriever. What else the
server is asked it answers well, so that a failure is seen to cost its own claim alone.
"""

from __future__ import annotations

import json
import runpy
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("rank_bm25")

from factcheck.config import load_settings
from factcheck.errors import FactcheckError
from factcheck.ledger_file import Entry, LedgerFile
from factcheck.pipeline import FactChecker, run_async
from factcheck.schema import STATES, AnswerReport

BAD = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
Server, reply, status, redirect, chat = (BAD[name] for name in ("Server", "reply", "status", "redirect", "chat"))
KEY = "sk-hidden-0123456789abcdefghijkl"
CHAT = "/v1/chat/completions"
WORD = "paracetamol"
TEXTS = (
    "Adults should take no more than 4 g of paracetamol in 24 hours.",
    "Ibuprofen is best taken with food.",
    "Metformin is stopped before iodinated contrast is given.",
)
TIMEOUT, DEADLINE, ATTEMPTS = 0.3, 1.0, 2
MARGIN = 2.0  # for threads that compete for the machine; what hangs, hangs for 30 s
# What the server is asked, by a part that only the prompt of that stage has.
STAGES = {"passages": "judge", "known": "search", "sentence": "decomposer"}


class Place(NamedTuple):
    """Hold where a case is met.

    ``stage`` is the name of the stage in the account, ``stored`` the entries of a run that fails there by kind, ``again``
    what the next run asks the server for, in turn.
    """

    settings: str
    stage: str
    stored: dict
    again: tuple


WEB = """
[plugins."web/{name}"]
base_url = "{url}"
per_second = 1000.0
net = {{ timeout = {timeout}, deadline = {deadline}, attempts = {attempts} }}
"""
DONE = {"decompose": 1, "claim": 2}
SEARCHED = ("retriever", DONE | {"retrieval": 2}, ("retriever", "retriever"))
PLACES = {
    "judge": Place('judge = "llm"', "judge", DONE | {"structured": 2}, ("judge",)),
    "decomposer": Place('decomposer = "llm/atomic"', "decomposer", {"structured": 2}, ("decomposer",)),
    "query writer": Place('query_writer = "llm/neutral"', "query_writer", DONE | {"structured": 2}, ("query_writer",)),
    "search step": Place('judge = "safe"', "search", DONE | {"structured": 4}, ("search", "judge")),
    "retriever": Place('retrievers = ["web/searxng"]', *SEARCHED),
    "retriever with a key": Place('retrievers = ["web/serper"]', *SEARCHED),
}


class Case(NamedTuple):
    """Hold a misbehaviour, the code of the error that it ends in, the most requests for a query or a prompt, and its calls.

    ``behave`` may be a function of the good reply, or "trap" for a redirect to another server of this machine.
    """

    behave: object
    code: str
    requests: int = 1
    calls: int = 1


ANYWHERE = {
    "401": Case(status(401, f"bad key {KEY}"), "F323"),
    "403": Case(status(403, f"no access with {KEY}"), "F323"),
    "429": Case(status(429, f"slow down, {KEY}"), "F322", ATTEMPTS),
    "429 late": Case(status(429, KEY, headers={"retry-after": "60"}), "F322"),
    "500": Case(status(500, f"at {KEY}"), "F321", ATTEMPTS),
    "hang": Case(BAD["hang"](), "F321", ATTEMPTS),
    "drip": Case(BAD["drip"](KEY.encode() * 50), "F321", ATTEMPTS),
    "cut": Case(BAD["cut"](KEY.encode()), "F321", ATTEMPTS),
    "wrong type": Case(reply(f"<html>{KEY}", kind=f"text/html; {KEY}"), "F323"),
    "huge": Case(BAD["huge"](), "F323"),
    "endless": Case(BAD["huge"](announced=False), "F323"),
    "to loopback": Case("trap", "F323"),
    "elsewhere": Case(redirect("http://203.0.113.5/v1/chat/completions", 307), "F323"),
}
OF_MODELS = {
    # A server that refuses may refuse the form in which JSON was asked for, and is asked in plainer ones.
    "200 with an error": Case(reply({"error": {"message": f"no, {KEY}"}}), "F323", 3, 3),
    "invalid json": Case(reply('{"choices": ['), "F360"),
    "a circle": Case(redirect(CHAT), "F323"),
    "no choices": Case(reply({"choices": []}), "F360"),
    "prose": Case(chat(f"I would say that this is so, {KEY}."), "F360", 2, 2),
    "half an object": Case(chat('{"label": "supported", "stances": ['), "F360", 2, 2),
    "empty": Case(chat(""), "F360"),
    "refusal": Case(chat("", refusal=f"I cannot help with that, {KEY}."), "F360"),
    "truncated": Case(lambda good: chat(good, finish="length"), "F360"),
    "fenced": Case(lambda good: chat(f"Here it is:\n```json\n{good}\n```"), "", 1, 0),
}
OF_SEARCHES = {
    "200 with an error": Case(reply({"error": "no"}), "F323"),
    "invalid json": Case(reply('{"results": ['), "F323"),
    "a circle": Case(redirect("/search?q=paracetamol"), "F323", 6),
    "fenced": Case(reply('```json\n{"results": []}\n```'), "F323"),
    "engines that failed": Case(reply({"results": [], "unresponsive_engines": [["x", "timeout"]]}), "F321"),
}


class Scene:
    """Script a server that behaves as ``behave`` says where ``place`` asks it about the claim with ``WORD``."""

    def __init__(self, server, trap):
        self.server, self.trap = server, trap
        self.place = self.behave = None
        self.asked = []
        server.script(CHAT, self._model)
        server.script("/search", self._search)
        trap.script(CHAT, reply({}))
        trap.script("/search", reply({}))

    def fails(self, place, behave):
        self.place, self.behave = place, behave
        self.asked.clear()

    def recovers(self):
        self.fails(None, None)

    async def _model(self, seen, writer):
        turns = [message["content"] for message in seen.json()["messages"] if message["role"] == "user"]
        parts = FAKES["parts_of"](turns[0])
        stage = next((stage for part, stage in STAGES.items() if part in parts), "query_writer")
        text = parts["sentence" if stage == "decomposer" else "claim"].text
        good = json.dumps(self._thought(stage, turns[0], text))
        return await self._answer(stage, text, chat(good), good, seen, writer)

    def _thought(self, stage, prompt, text):
        if stage == "judge":
            return FAKES["literal_judge"](prompt, 1)
        return {
            "search": {"missing": "", "enough": True, "query": ""},
            "decomposer": {"claims": [{"text": text, "kind": "statement"}]},
            "query_writer": {"queries": [text]},
        }[stage]

    async def _search(self, seen, writer):
        query = seen.query["q"][0] if seen.method == "GET" else seen.json()["q"]
        found = [(text, f"https://www.who.int/{text[:5]}") for text in TEXTS if query.split()[0] in text]
        results = [{"title": "t", "url": url, "content": text} for text, url in found]
        organic = [{"title": "t", "link": url, "snippet": text} for text, url in found]
        good = reply({"results": results, "organic": organic})
        return await self._answer("retriever", query, good, "", seen, writer)

    async def _answer(self, stage, text, good, thought, seen, writer):
        self.asked.append((stage, text))
        behave = good
        if self.place == stage and WORD in text:
            behave = self.behave
            if behave == "trap":
                behave = redirect(self.trap.url + seen.path, 307)
            elif behave.__name__ == "<lambda>":
                behave = behave(thought)
        return await behave(seen, writer)


@pytest.fixture(scope="module")
def servers():
    with Server() as server, Server() as trap:
        yield server, trap


@pytest.fixture
def scene(servers):
    for server in servers:
        server.reset()
    return Scene(*servers)


def write_settings(folder, url, place, *, texts=TEXTS, more=""):
    """Write a settings file, with a corpus of the texts and a ledger beside it; ``more`` is for the end."""
    rows = [{"_id": f"d{index}", "title": text.split()[0], "text": text} for index, text in enumerate(texts)]
    (folder / "corpus").mkdir()
    (folder / "corpus/corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    bounds = {"timeout": TIMEOUT, "deadline": DEADLINE, "attempts": ATTEMPTS}
    top = {"corpora": [str(folder / "corpus")], "checkers": [], "ledger": str(folder / "ledger.sqlite")}
    model = {"base_url": f"{url}/v1", "model": "scripted-1", "key": KEY, **bounds}
    lines = [place, *(f"{name} = {json.dumps(value)}" for name, value in top.items()), "[models.default]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in model.items()]
    web = [WEB.format(name=name, url=url, **bounds) for name in ("searxng", "serper") if name in place]
    web += [f'key = "{KEY}"'] if "serper" in place else []
    path = folder / "factcheck.toml"
    path.write_text("\n".join([*lines, more, *web]), encoding="utf-8")
    return path


class Run(NamedTuple):
    """Hold what a run came to: a report or an error, what was spent with earlier runs, and what is shown of both."""

    report: AnswerReport | None
    error: FactcheckError | None
    spent: object
    usage: dict
    shown: str
    seconds: float


def run(path, texts=TEXTS):
    """Check the sentences with the settings of a file."""

    async def work(checker):
        async with checker.account("sentences") as kept:
            report = error = None
            try:
                report = await checker.acheck(" ".join(texts))
            except FactcheckError as caught:
                error = caught
            return report, error, await kept.spent()

    started = time.monotonic()
    with FactChecker.from_settings(load_settings(path)) as checker:
        report, error, spent = run_async(lambda: work(checker))
        seconds = time.monotonic() - started
        shown = f"{checker.settings!r} {spent.model_dump_json()} {checker.manifest.model_dump_json()}"
        shown += report.model_dump_json() if report else "".join(traceback.format_exception(error))
        shown += f" {error!r} {vars(error) if error else ''}"
        return Run(report, error, spent, dict(checker.usage), shown, seconds)


def entries(path):
    """Return the entries of a ledger; not one may be damaged."""
    file = LedgerFile(path, writable=False)
    try:
        found = [entry for _, entry in file.rows()]
    finally:
        file.close()
    assert all(isinstance(entry, Entry) for entry in found)
    return found


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if "sqlite" in path.name)


def states(report):
    counts = report.accounting
    assert counts.extracted == len(report.claims) == sum(getattr(counts, state) for state in STATES)
    return [verdict.label for verdict in report.verdicts]


def cases_of(name):
    if name == "retriever with a key":
        return {title: ANYWHERE[title] for title in ("401", "403", "500", "cut", "wrong type")}
    return ANYWHERE | (OF_SEARCHES if name == "retriever" else OF_MODELS)


@pytest.mark.parametrize(("name", "title"), [(name, title) for name in PLACES for title in cases_of(name)])
def test_a_failure_costs_its_claim_and_no_more(scene, tmp_path, caplog, name, title):
    place, case = PLACES[name], cases_of(name)[title]
    caplog.set_level("INFO")
    path = write_settings(tmp_path, scene.server.url, place.settings)
    scene.fails(place.stage, case.behave)
    first = run(path)
    asked = Counter((stage, WORD in text) for stage, text in scene.asked)
    pauses = "late" in title  # the server wants no request for a while, from whomever
    assert first.seconds < DEADLINE + MARGIN
    assert asked[place.stage, True] <= case.requests * place.again.count(place.stage)
    assert not scene.trap.seen
    if not case.calls:
        assert states(first.report) == ["supported"] * 3
        assert not first.usage[place.stage].failed
        return
    # A sentence whose split cannot be used is a claim of its own; until it can, the split of the answer is not kept.
    stays = name == "decomposer" and case.code == "F360"
    stored = {"structured": 2, "claim": 3} if stays else place.stored
    check_end(first, name, case, stays, pauses)
    check_account(first, scene, place, case, pauses)
    found = [entry for entry in entries(tmp_path / "ledger.sqlite") if entry.kind != "spending"]
    kinds = Counter(entry.kind for entry in found)
    assert kinds == stored or (pauses and kinds <= Counter(stored))
    assert stays or not [entry for entry in found if WORD in entry.value and entry.kind != "decompose"]
    scene.recovers()
    second = run(path)
    assert states(second.report) == ["supported"] * 3
    assert not second.report.warnings
    if not pauses:
        assert [stage for stage, text in scene.asked] == list(place.again)
        assert all(WORD in text for _, text in scene.asked)
    assert second.spent.requests == first.spent.requests + len(scene.asked)
    scene.recovers()
    third = run(path)
    assert scene.asked == []
    assert third.report == second.report
    if name != "retriever":  # which has no key, and cannot know one
        assert KEY not in f"{first.shown} {second.shown} {caplog.text}"
        assert KEY.encode() not in bytes_of(tmp_path)


def check_end(done, name, case, stays, pauses):
    """Check the states of the claims, or the error where there are none."""
    if stays:
        assert states(done.report) == ["supported"] * 3
        assert [warning[:46] for warning in done.report.warnings] == ["the sentence at 0:63 was kept whole: the reply"]
    elif name == "decomposer":
        assert done.report is None
        assert str(done.error).startswith(f"[{case.code}] ")
    else:
        labels = states(done.report)
        assert labels[0] == "error"
        assert set(labels[1:]) <= ({"supported", "error"} if pauses else {"supported"})
        reasons = done.report.verdicts[0].reason
        reasons += "".join(item.error for item in done.report.retrievals if item.query_id.startswith("answer.c01"))
        assert f"[{case.code}] " in reasons


def check_account(done, scene, place, case, pauses):
    """Check that the account holds each call, failed ones included, and each request."""
    # The step of a redirect that is refused is counted as a request.
    assert len(scene.asked) <= done.spent.requests <= len(scene.asked) + 2 * (place.stage == "retriever")
    assert done.usage == dict(done.spent.stages)
    if place.stage == "retriever":
        assert not done.usage
    elif pauses:
        assert 1 <= done.usage[place.stage].failed <= 3
    else:
        usage = done.usage[place.stage]
        assert (usage.calls, usage.failed) == (2 + case.calls, case.calls)


def many(count):
    return tuple(f"Substance {chr(97 + n // 26)}{chr(97 + n % 26)} is taken with food." for n in range(count))


@pytest.mark.parametrize("behave", [status(500), BAD["hang"]()], ids=["500", "hang"])
def test_a_dead_retriever_costs_a_few_requests_and_every_claim_says_so(scene, tmp_path, behave):
    texts = many(30)
    scene.server.script("/search", behave)
    done = run(write_settings(tmp_path, scene.server.url, 'retrievers = ["web/searxng"]', texts=texts), texts)
    assert states(done.report) == ["error"] * 30
    assert scene.server.count("/search") <= 10 * ATTEMPTS
    assert done.seconds < 3 * DEADLINE + MARGIN
    assert {entry.kind for entry in entries(tmp_path / "ledger.sqlite")} == {"decompose", "spending"}


def test_silence_beside_a_dead_retriever_is_an_error_and_support_is_not_kept(scene, tmp_path):
    scene.server.script("/search", status(500))
    path = write_settings(tmp_path, scene.server.url, 'retrievers = ["bm25", "web/searxng"]')
    texts = (*TEXTS, "Nothing is known of zebras.")
    assert states(run(path, texts).report) == ["supported"] * 3 + ["error"]
    assert {entry.kind for entry in entries(tmp_path / "ledger.sqlite")} == {"decompose", "spending"}


@pytest.mark.parametrize("name", ["judge", "decomposer", "retriever"])
def test_the_time_of_the_run_waits_for_nothing(scene, tmp_path, name):
    # A model that refuses for its rate is asked by fewer and fewer at once, while the others wait for their turn.
    scene.server.script(CHAT, reply({}, 429, delay=0.25))
    scene.server.script("/search", BAD["hang"]())
    texts, place = many(64), f"deadline = 2.0\n{PLACES[name].settings}"
    path = write_settings(tmp_path, scene.server.url, place, texts=texts, more="concurrency = 16")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("net = { timeout = 0.3, deadline = 1.0,", "net = { timeout = 20.0, deadline = 20.0,"))
    done = run(path, texts)
    assert done.seconds < 2.0 + MARGIN
    if name == "decomposer":
        codes = {str(done.error)[:6]}
    else:
        assert states(done.report) == ["error"] * 64
        codes = {verdict.reason[:6] for verdict in done.report.verdicts}
    assert codes <= {"[F401]"} if name == "retriever" else codes & {"[F401]", "[F322]", "[F321]"}


def test_a_failure_that_passes_costs_one_more_request(scene, tmp_path):
    path = write_settings(tmp_path, scene.server.url, 'judge = "llm"')
    path.write_text(path.read_text(encoding="utf-8").replace("deadline = 1.0", "deadline = 9.0"), encoding="utf-8")
    turns = iter([status(500), status(503, headers={"retry-after": "0"})])
    good = scene._model

    async def behave(seen, writer):
        return await next(turns, good)(seen, writer)

    scene.server.script(CHAT, behave)
    done = run(path)
    assert states(done.report) == ["supported"] * 3
    assert (done.usage["judge"].calls, done.usage["judge"].failed, done.spent.requests) == (3, 0, 5)
