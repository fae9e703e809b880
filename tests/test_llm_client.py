import functools
import json
import logging
import runpy
import time
import traceback
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from factcheck.breaker import Breaker
from factcheck.config import validate_table
from factcheck.errors import ConfigError, FactcheckError
from factcheck.ledger import Ledger
from factcheck.ledger_errors import ReplayMissError
from factcheck.llm import (
    Budget,
    BudgetExceededError,
    ModelClient,
    ModelReplyError,
    ModelSettings,
    roles_differ,
)
from factcheck.llm.dialects import restated, shape
from factcheck.llm.settings import family
from factcheck.net import (
    AddressRefusedError,
    HttpStatusError,
    Net,
    NetSettings,
    PermanentError,
    RateLimitedError,
    TransientError,
)

BAD = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
Server, reply, status, chat = BAD["Server"], BAD["reply"], BAD["status"], BAD["chat"]
KEY = "sk-test-0123456789abcdefghijklmnop"
CHAT = "/v1/chat/completions"
SCHEMA = {
    "type": "object",
    "required": ["label"],
    "additionalProperties": False,
    "properties": {"label": {"type": "string", "minLength": 2}},
}
SHAPE = {**SCHEMA, "properties": {"label": {"type": "string"}}}
ASKED = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Is it so?"}]
PATHS = {"openai-chat": CHAT, "openai-responses": "/v1/responses", "anthropic": "/v1/messages"}


class Label(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: str = Field(min_length=2)


@pytest.fixture(scope="module")
def running():
    with Server() as server:
        yield server


@pytest.fixture
def server(running):
    running.reset()
    return running


async def no_sleep(seconds):
    pass


def made(server, *, budget=None, ledger=None, sleep=no_sleep, **settings):
    given = {
        "model": "m-1",
        "base_url": f"{server.url}/v1",
        "key": KEY,
        "timeout": 5.0,
        "deadline": 10.0,
        "attempts": 3,
    }
    chosen = ModelSettings(**(given | settings))
    net = Net(NetSettings(allow_private=True), sleep=sleep)
    return ModelClient(chosen, net=net, budget=budget, ledger=ledger, sleep=sleep)


def complete(client, messages=ASKED, **kwargs):
    return anyio.run(functools.partial(client.complete, messages, stage="judge", **kwargs))


def structured(client, messages=ASKED, schema=SCHEMA, model=Label, **kwargs):
    return anyio.run(
        functools.partial(client.structured, messages, schema=schema, stage="judge", model=model, **kwargs)
    )


def failure(client):
    with pytest.raises(FactcheckError) as caught:
        structured(client)
    return caught.value


GOOD = '{"label": "supported"}'
# What each misbehaviour of a model server ends in: the error, its words or fault, the requests made, and calls counted.
ENDS = {
    "401": ([status(401, f"bad {KEY}")], HttpStatusError, "Check the key", 1, 1),
    "403": ([status(403)], HttpStatusError, "Check the key", 1, 1),
    "no such model": ([status(404, "no model m-1")], HttpStatusError, "no model m-1.*base_url", 1, 1),
    "429": ([status(429)], RateLimitedError, "attempt 3", 3, 1),
    "429 late": ([status(429, headers={"retry-after": "99"})], RateLimitedError, "wait 99 s", 1, 1),
    "no credit": ([status(429, "you exceeded", code="insufficient_quota")], HttpStatusError, "402.*balance", 1, 1),
    "500": ([status(500)], TransientError, "attempt 3", 3, 1),
    "overloaded": ([status(529, "overloaded", type="overloaded_error")], TransientError, "attempt 3", 3, 1),
    "hang": ([BAD["hang"]()], TransientError, r"within 0\.3 s", 3, 1),
    "drip": ([BAD["drip"]()], TransientError, r"within 0\.3 s", 3, 1),
    "cut": ([BAD["cut"]()], TransientError, "broke off", 3, 1),
    "huge": ([BAD["huge"]()], PermanentError, "larger than", 1, 1),
    "page": ([reply("<html>", kind="text/html")], PermanentError, "text/html in place of", 1, 1),
    "no json": ([reply("{oops")], ModelReplyError, "empty", 1, 1),
    "another json": ([reply({"hello": "world"})], ModelReplyError, "empty", 1, 1),
    "json of a list": ([reply([1])], ModelReplyError, "empty", 1, 1),
    "no choices": ([reply({"choices": []})], ModelReplyError, "empty", 1, 1),
    "null choices": ([reply({"choices": None})], ModelReplyError, "empty", 1, 1),
    "no text": ([chat("")], ModelReplyError, "empty", 1, 1),
    "null text": ([chat(None)], ModelReplyError, "empty", 1, 1),
    "blank text": ([chat(" \n ")], ModelReplyError, "empty", 1, 1),
    "truncated": ([chat('{"label": "supported"', "length")], ModelReplyError, "truncated", 1, 1),
    "truncated, it seems complete": ([chat(GOOD, "length")], ModelReplyError, "truncated", 1, 1),
    "refusal": ([chat(None, refusal="I cannot")], ModelReplyError, "refused", 1, 1),
    "refusal with text": ([chat(GOOD, refusal="I cannot")], ModelReplyError, "refused", 1, 1),
    "filtered": ([chat(GOOD, "content_filter")], ModelReplyError, "filtered", 1, 1),
    "tool call": ([chat(GOOD, "tool_calls")], ModelReplyError, "unfinished", 1, 1),
    "no reason": ([chat(GOOD, None)], ModelReplyError, "unfinished", 1, 1),
    "error with 200": (
        [reply({"error": {"message": "no such model", "code": 404}})],
        HttpStatusError,
        "stands for 404",
        1,
        1,
    ),
    "passing error with 200": ([reply({"error": {"message": "busy", "code": 502}})], TransientError, "busy", 3, 1),
    "unknown error with 200": ([reply({"error": "odd"})], HttpStatusError, "stands for 400", 3, 3),
    "prose twice": ([chat("It is supported.")], ModelReplyError, "unparseable", 2, 2),
    "wrong field twice": ([chat('{"verdict": "supported"}')], ModelReplyError, "unparseable", 2, 2),
    "another kind twice": ([chat('["supported"]')], ModelReplyError, "unparseable", 2, 2),
    "cut without saying so, twice": ([chat('{"label": "suppor')], ModelReplyError, "unparseable", 2, 2),
    "prose, then truncated": ([chat("Hm."), chat('{"la', "length")], ModelReplyError, "truncated", 2, 2),
    "prose, then refused": ([chat("Hm."), chat(None, refusal="no")], ModelReplyError, "refused", 2, 2),
    "to loopback": ([BAD["redirect"]("http://127.0.0.1:1/", 307)], PermanentError, "redirects to", 1, 1),
}


@pytest.mark.parametrize("case", ENDS)
def test_each_misbehaviour_ends_in_its_state_and_is_never_stored(server, case, tmp_path):
    behave, kind, words, requests, calls = ENDS[case]
    server.script(CHAT, *behave)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        settings = {"timeout": 0.3 if case in ("hang", "drip") else 5.0}
        client = made(
            server, ledger=ledger, json_schema="auto" if case == "unknown error with 200" else "off", **settings
        )
        if case == "unknown error with 200":
            requests = calls = 4  # each way of asking for JSON is tried once
        started = time.monotonic()
        error = failure(client)
        assert time.monotonic() - started < 8.0
        assert type(error) is kind
        if isinstance(error, ModelReplyError):
            assert error.fault == words
            assert "m-1" in str(error)
        else:
            with pytest.raises(kind, match=words):
                raise error
        assert len(server.seen) == requests
        usage = client.budget.usage["judge"]
        assert usage.calls == calls
        assert usage.failed >= 1 or (isinstance(error, ModelReplyError) and error.fault in ("unparseable", "empty"))
        assert ledger.stats.stores == 0
        # Nothing was kept of it: the next time the server is asked again, and its good reply counts.
        server.script(CHAT, chat(GOOD))
        if case != "429 late":
            assert structured(client).label == "supported"
            assert ledger.stats.stores == 1


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        '\ufeff{"label": "supported",}',
        f'<think>{{"label": "contradicted"}}</think>\n{GOOD}',
        f"The answer is\n\n{GOOD}\n\nas [1] shows.",
    ],
)
def test_a_good_reply_is_read_in_one_call(server, text):
    server.script(CHAT, chat(text))
    assert structured(made(server)) == Label(label="supported")
    assert len(server.seen) == 1


def test_a_reply_that_does_not_fit_is_asked_for_once_more(server):
    server.script(CHAT, chat('{"label": "x"}'), chat(GOOD))
    client = made(server)
    assert structured(client).label == "supported"
    again = server.seen[1].json()["messages"]
    assert again[:2] == ASKED
    assert again[2] == {"role": "assistant", "content": '{"label": "x"}'}
    assert "label: String should have at least 2 characters" in again[3]["content"]
    assert client.budget.usage["judge"].calls == 2


def test_what_chat_completions_are_sent(server):
    server.script(CHAT, chat(GOOD))
    structured(made(server, seed=7, max_tokens=99, extra={"top_p": 0.5}))
    seen = server.seen[0]
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json() == {
        "model": "m-1",
        "messages": ASKED,
        "max_tokens": 99,
        "temperature": 0.0,
        "seed": 7,
        "top_p": 0.5,
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}},
    }


def test_what_responses_are_sent_and_how_they_are_read(server):
    server.script("/v1/responses", BAD["responses"](GOOD))
    client = made(server, api="openai-responses")
    assert structured(client).label == "supported"
    assert server.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.seen[0].json() == {
        "model": "m-1",
        "input": ASKED,
        "max_output_tokens": 2048,
        "temperature": 0.0,
        "store": False,
        "text": {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA}},
    }
    assert (client.budget.usage["judge"].tokens_in, client.budget.usage["judge"].tokens_out) == (10, 5)


def test_what_anthropic_is_sent_and_how_it_is_read(server):
    server.script("/v1/messages", BAD["anthropic"](GOOD))
    client = made(server, api="anthropic")
    assert structured(client).label == "supported"
    headers = server.seen[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers
    assert server.seen[0].json() == {
        "model": "m-1",
        "system": "Judge.",
        "messages": ASKED[1:],
        "max_tokens": 2048,
        "temperature": 0.0,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert (client.budget.usage["judge"].tokens_in, client.budget.usage["judge"].tokens_out) == (10, 5)


@pytest.mark.parametrize(
    ("api", "behave", "fault"),
    [
        ("openai-responses", BAD["responses"]('{"la', "incomplete", "max_output_tokens"), "truncated"),
        ("openai-responses", BAD["responses"](GOOD, "incomplete", "content_filter"), "filtered"),
        ("openai-responses", BAD["responses"](refusal="no"), "refused"),
        ("openai-responses", BAD["responses"](GOOD, "in_progress"), "unfinished"),
        ("openai-responses", reply({"output": [], "status": "completed"}), "empty"),
        ("anthropic", BAD["anthropic"](GOOD, "max_tokens"), "truncated"),
        ("anthropic", BAD["anthropic"](GOOD, "model_context_window_exceeded"), "truncated"),
        ("anthropic", BAD["anthropic"](GOOD, "refusal"), "refused"),
        ("anthropic", BAD["anthropic"](GOOD, "tool_use"), "unfinished"),
        ("anthropic", BAD["anthropic"](GOOD, None), "unfinished"),
        ("anthropic", reply({"content": [], "stop_reason": "end_turn"}), "empty"),
        ("anthropic", chat(GOOD), "empty"),
        ("openai-chat", BAD["anthropic"](GOOD), "empty"),
    ],
)
def test_no_api_lets_half_a_reply_pass(server, api, behave, fault):
    server.script(PATHS[api], behave)
    assert failure(made(server, api=api)).fault == fault


def test_azure_is_asked_in_its_own_way(server):
    path = "/openai/deployments/judge/chat/completions"
    server.script(path, chat(GOOD))
    base = f"{server.url}/openai/deployments/judge"
    structured(made(server, base_url=base, api_version="2024-10-21"))
    structured(made(server, base_url=f"{base}/chat/completions?api-version=2024-10-21", api_version="2024-10-21"))
    for seen in server.seen:
        assert (seen.path, seen.query) == (path, {"api-version": ["2024-10-21"]})
        assert seen.headers["api-key"] == KEY
        assert "authorization" not in seen.headers
        assert seen.json()["max_completion_tokens"] == 2048


@pytest.mark.parametrize(
    ("refused", "forms"),
    [
        ([], ["json_schema"]),
        ([SCHEMA], ["json_schema", "json_schema"]),
        ([SCHEMA, SHAPE], ["json_schema", "json_schema", "json_object"]),
        ([SCHEMA, SHAPE, "json_object"], ["json_schema", "json_schema", "json_object", None]),
    ],
)
@pytest.mark.parametrize("number", [400, 422, 500])
def test_json_is_asked_for_in_plainer_ways_where_a_server_refuses_it_and_that_is_remembered(
    server, refused, forms, number
):
    def answer(seen):
        wanted = seen.json().get("response_format")
        if wanted and (wanted.get("json_schema", {}).get("schema") or wanted["type"]) in refused:
            return status(number, "response_format is not supported")
        return chat(GOOD)

    server.script(CHAT, BAD["answering"](answer))
    client = made(server)
    assert structured(client).label == "supported"
    asked = [seen.json().get("response_format", {}).get("type") for seen in server.seen]
    assert asked == forms
    last = server.seen[-1].json()["messages"][-1]["content"]
    assert (json.dumps(SCHEMA) in last) == (forms[-1] != "json_schema")
    assert structured(client).label == "supported"
    assert len(server.seen) == len(forms) + 1


def test_a_refusal_of_something_else_is_not_taken_for_one_of_the_schema(server):
    server.script(CHAT, status(400, "this model's maximum context length is 4096 tokens"))
    error = failure(made(server))
    assert error.status == 400
    assert len(server.seen) == 1


def test_json_schema_on_is_kept_to_and_off_is_plain(server):
    server.script(CHAT, status(400, "response_format is not supported"))
    assert failure(made(server, json_schema="on")).status == 400
    assert len(server.seen) == 1
    server.script(CHAT, chat(GOOD))
    structured(made(server, json_schema="off"))
    assert "response_format" not in server.seen[1].json()


def test_parameters_that_a_model_does_not_take_are_left_out_or_renamed_and_that_is_remembered(server):
    def answer(seen):
        body = seen.json()
        if "max_tokens" in body:
            return status(
                400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            )
        if "temperature" in body:
            return status(400, "Unsupported value: 'temperature' does not support 0.0 with this model.")
        return chat(GOOD)

    server.script(CHAT, BAD["answering"](answer))
    client = made(server)
    structured(client)
    structured(client)
    assert len(server.seen) == 4
    assert server.seen[-1].json()["response_format"]["type"] == "json_schema"
    error = failure(made(server, temperature=0.7))
    assert 'Set temperature = "default"' in str(error)
    structured(made(server, temperature="default"))
    assert "temperature" not in server.seen[-1].json()


def test_a_server_that_refuses_everything_is_asked_a_few_times_only(server):
    for said in ("max_tokens", "temperature", "max_completion_tokens and temperature", "schema", ""):
        server.reset()
        server.script(CHAT, status(400, said))
        assert failure(made(server)).status == 400
        assert len(server.seen) <= 6


def test_a_completion_says_how_it_ended(server):
    server.script(CHAT, chat("Half a rep", "length", usage=(100, 2048), model="m-1-0613"))
    client = made(server, price=(1.0, 2.0))
    found = complete(client)
    assert (found.text, found.finish, found.model) == ("Half a rep", "length", "m-1-0613")
    assert (found.tokens_in, found.tokens_out, found.attempts, found.cached) == (100, 2048, 1, False)
    usage = client.budget.usage["judge"]
    assert (usage.calls, usage.failed, usage.usd) == (1, 1, pytest.approx((100 + 2 * 2048) / 1e6))


def test_tokens_are_estimated_where_a_server_tells_none(server):
    server.script(CHAT, chat("x" * 400, usage=None))
    client = made(server)
    complete(client, [{"role": "user", "content": "y" * 4000}])
    usage = client.budget.usage["judge"]
    assert (usage.estimated, usage.tokens_in, usage.tokens_out) == (1, 1004, 100)


@pytest.mark.parametrize("usage", [(-1_000_000, 5), (10, -5), (-1, -1)])
def test_a_server_cannot_pay_back_into_the_budget(server, usage):
    server.script(CHAT, chat("fine", usage=usage))
    client = made(server, price=(1.0, 1.0))
    complete(client)
    used = client.budget.usage["judge"]
    assert used.tokens_in > 0
    assert used.tokens_out > 0
    assert used.usd > 0
    assert used.estimated == 1


def test_no_wait_for_tokens_outlasts_the_run(server):
    server.script(CHAT, chat("fine", usage=(0, 100)))
    settings = ModelSettings(model="m", base_url=f"{server.url}/v1", tokens_per_minute=60, max_tokens=100)
    client = ModelClient(settings, budget=Budget(deadline=0.5))
    started = time.monotonic()
    with pytest.raises(BudgetExceededError, match="time given to the run"):
        complete(client)
    assert time.monotonic() - started < 2.0


def test_content_in_parts_and_broken_characters_are_read(server):
    parts = [{"type": "text", "text": '{"label": '}, {"type": "image"}, {"type": "text", "text": '"supported"}'}]
    server.script(CHAT, chat(parts), chat("a\ud800b"))
    client = made(server)
    assert structured(client).label == "supported"
    assert complete(client).text == "a?b"


def test_a_paid_call_is_never_paid_for_again(server, tmp_path):
    server.script(CHAT, chat("nope"), chat(GOOD), chat("fine"))
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        client = made(server, ledger=ledger)
        assert structured(client).label == "supported"
        assert complete(client).cached is False
        assert len(server.seen) == 3
        assert structured(client).label == "supported"
        assert complete(client).cached is True
        assert len(server.seen) == 3
    with Ledger.open(path, mode="replay") as ledger:
        client = made(server, ledger=ledger, key=None, base_url=f"{server.url}/v1")
        assert structured(client).label == "supported"
        assert complete(client).text == "fine"
        assert client.budget.usage == {}
        with pytest.raises(ReplayMissError, match="stage 'judge'"):
            complete(client, sample=1)
    assert len(server.seen) == 3
    assert KEY.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "behave", [chat("half", "length"), chat(""), chat(None, refusal="no"), chat("x", "content_filter")]
)
def test_a_completion_that_is_not_whole_is_returned_and_not_stored(server, tmp_path, behave):
    server.script(CHAT, behave, chat("whole"))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        client = made(server, ledger=ledger)
        first = complete(client)
        assert first.finish != "stop" or not first.text
        assert ledger.stats.stores == 0
        assert (complete(client).text, complete(client).cached) == ("whole", True)


def test_equal_calls_at_once_are_made_once_and_samples_apart(server, tmp_path):
    server.script(CHAT, chat(GOOD, delay=0.05))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        client = made(server, ledger=ledger)

        async def work():
            async with anyio.create_task_group() as group:
                for sample in (0, 0, 0, 1):
                    group.start_soon(functools.partial(client.complete, ASKED, stage="judge", sample=sample))

        anyio.run(work)
    assert len(server.seen) == 2


def test_what_a_reply_depends_on_enters_the_key_and_no_secret(server):
    one = made(server).fingerprint
    assert one == made(server, key="another").fingerprint
    assert KEY not in json.dumps(one)
    for change in (
        {"model": "m-2"},
        {"temperature": 0.5},
        {"max_tokens": 7},
        {"seed": 1},
        {"extra": {"top_p": 1}},
        {"base_url": "http://h/v1"},
    ):
        assert made(server, **change).fingerprint != one


def test_a_run_stops_at_its_budget_and_keeps_what_it_has(server):
    server.script(CHAT, chat(GOOD, usage=(100, 100)))
    budget = Budget(max_usd=1.0)
    client = made(server, budget=budget, price=(1000.0, 1000.0), max_tokens=200)
    done = []

    async def work():
        for _ in range(20):
            await client.complete(ASKED, stage="judge")
            done.append(1)

    with pytest.raises(BudgetExceededError, match=r"may cost 1\.00 dollars"):
        anyio.run(work)
    assert len(done) == len(server.seen) == 4  # each costs 0.20; a fifth might cost more than what is left
    assert budget.usage["judge"].usd == pytest.approx(0.8)


def test_the_deadline_of_a_run_ends_calls_in_progress(server):
    server.script(CHAT, BAD["hang"]())
    client = made(server, budget=Budget(deadline=0.4), timeout=20.0, deadline=60.0)
    started = time.monotonic()
    with pytest.raises(BudgetExceededError, match="time given to the run is over"):
        complete(client)
    assert time.monotonic() - started < 1.5
    assert client.budget.usage["judge"].failed == 1


def test_a_cancelled_call_is_counted_and_gives_back_what_was_set_aside(server):
    server.script(CHAT, BAD["hang"](), chat(GOOD))
    client = made(server, budget=Budget(max_tokens=2200), timeout=20.0, deadline=60.0)

    async def work():
        with anyio.move_on_after(0.1):
            await client.complete(ASKED, stage="judge")
        return await client.complete(ASKED, stage="judge")

    assert anyio.run(work).text == GOOD
    assert (client.budget.usage["judge"].calls, client.budget.usage["judge"].failed) == (2, 1)


def test_a_rate_of_tokens_is_kept(server):
    server.script(CHAT, chat("fine", usage=(0, 80)))
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    settings = ModelSettings(model="m", base_url=f"{server.url}/v1", tokens_per_minute=6000, max_tokens=100)
    client = ModelClient(settings, sleep=sleep)

    async def work():
        for _ in range(30):
            await client.complete([{"role": "user", "content": ""}], stage="judge")

    anyio.run(work)
    # Of 1000 tokens the first twelve calls leave too few for another 104; each then waits for the 80 that a call used.
    assert len(waits) == 18
    assert [later - sooner for sooner, later in pairwise(waits)] == pytest.approx([0.8] * 17, abs=0.1)


def test_calls_at_once_are_bounded_by_the_settings():
    with Server() as server:
        server.script(CHAT, chat(GOOD, delay=0.02))
        settings = ModelSettings(model="m", base_url=f"{server.url}/v1", concurrency=4)
        client = ModelClient(settings)
        held = []

        async def watch():
            while True:
                held.append(len(client.budget._held))
                await anyio.sleep(0.005)

        async def work():
            async with anyio.create_task_group() as outer:
                outer.start_soon(watch)
                await calls()
                outer.cancel_scope.cancel()

        async def calls():
            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(functools.partial(client.complete, ASKED, stage="judge", sample=number))

        anyio.run(work)
        assert 3 <= server.most_at_once <= 4
        assert max(held) == 4  # nothing is set aside for calls that queue
        assert client.budget.usage["judge"].seconds < 20 * 0.1


@pytest.mark.parametrize(
    "behave", [chat(GOOD), chat("nope"), status(401, KEY), status(400, f"key {KEY}"), status(500, KEY)]
)
@pytest.mark.parametrize("api", PATHS)
def test_the_key_is_nowhere_but_at_the_server(server, api, behave, caplog, capsys, tmp_path):
    caplog.set_level(logging.DEBUG)
    server.script(PATHS[api], behave)
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        client = made(server, ledger=ledger, api=api, attempts=1, headers={"x-team": SecretStr(KEY[::-1])})
        told = [
            repr(client),
            repr(client.settings),
            client.settings.model_dump_json(),
            repr(vars(client)),
            repr(client.fingerprint),
        ]
        try:
            told.append(repr(structured(client)))
        except FactcheckError as error:
            told += [*traceback.format_exception(error), repr(error), repr(vars(error)), repr(error.__cause__)]
            trace = traceback.TracebackException.from_exception(error, capture_locals=True)
            told += [v for frame in trace.stack if "factcheck" in frame.filename for v in (frame.locals or {}).values()]
    assert server.seen[0].headers["x-team"] == KEY[::-1]
    output = capsys.readouterr()
    told += [caplog.text, output.out, output.err, path.read_bytes().decode("latin-1")]
    for text in told:
        for secret in (KEY, KEY[::-1], KEY[:12]):
            assert secret not in text


def test_a_key_comes_from_the_place_that_is_named_for_it(server, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "openai-key")
    monkeypatch.setenv("MY_KEY", " mine\n")
    assert ModelSettings(model="m").secret().get_secret_value() == "openai-key"
    assert ModelSettings(model="m", base_url="http://h/v1").secret() is None  # OpenAI's key is OpenAI's
    assert ModelSettings(model="m", base_url="http://h/v1", key_env="MY_KEY").secret().get_secret_value() == "mine"
    assert ModelSettings(model="m", key=SecretStr("direct"), key_env="MY_KEY").secret().get_secret_value() == "direct"
    file = tmp_path / "key"
    file.write_text("from-file\n")
    table = {"model": "m", "key": {"file": str(file)}}
    assert validate_table(ModelSettings, table, where="t").secret().get_secret_value() == "from-file"
    table = {"model": "m", "headers": {"x-team": {"env": "MY_KEY"}}}
    assert validate_table(ModelSettings, table, where="t").headers["x-team"].get_secret_value().strip() == "mine"
    monkeypatch.delenv("MY_KEY")
    for settings in (ModelSettings(model="m", key_env="MY_KEY"), ModelSettings(model="m", api="anthropic")):
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        with pytest.raises(ConfigError, match=r"MY_KEY|ANTHROPIC_API_KEY"):
            settings.secret()


def test_a_key_from_the_keyring(monkeypatch):
    import sys
    import types

    settings = ModelSettings(model="m", key_keyring="llm/judge")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match="pip install keyring"):
        settings.secret()
    fake = types.SimpleNamespace(get_password=lambda service, user: f"{service}:{user}")
    monkeypatch.setitem(sys.modules, "keyring", fake)
    assert settings.secret().get_secret_value() == "llm:judge"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "ftp://h/v1"),
        ("base_url", "example.org/v1"),
        ("base_url", f"https://user:{KEY}@h/v1"),
        ("base_url", f"https://h/v1?api_key={KEY}"),
        ("extra", {"messages": []}),
        ("extra", {"stream": True}),
        ("extra", {"api_key": KEY}),
        ("price", (-1.0, 1.0)),
        ("model", ""),
        ("max_tokens", 0),
        ("temperature", "hot"),
    ],
)
def test_settings_that_cannot_be_are_refused_without_showing_a_key(field, value):
    with pytest.raises(ConfigError) as caught:
        validate_table(ModelSettings, {"model": "m", field: value}, where="[plugins.x]")
    assert KEY not in str(caught.value)
    assert field in str(caught.value)


def test_a_seed_goes_only_where_it_is_taken():
    for api in ("anthropic", "openai-responses"):
        with pytest.raises(ValidationError, match="takes no seed"):
            ModelSettings(model="m", api=api, seed=1)


@pytest.mark.parametrize(
    ("judge", "graded", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o-2024-08-06", "GPT-4o", True),
        ("openai/gpt-4o", "gpt-4o-2024-11-20", True),
        ("claude-haiku-4-5-20251001", "anthropic/claude-haiku-4-5", True),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", True),
        ("llama3:latest", "llama3", True),
        ("gpt-4o-mini", "gpt-4o", False),
        ("claude-opus-5", "claude-opus-5-5", False),
        ("gpt-4.1", "gpt-4", False),
        ("gpt-4o", "", False),
    ],
)
def test_a_judge_is_not_the_model_that_it_judges(judge, graded, same):
    settings = ModelSettings(model=judge)
    if same:
        with pytest.raises(ConfigError, match="judge itself"):
            roles_differ(settings, graded)
    else:
        roles_differ(settings, graded)
    assert family(judge) == family(family(judge))


def test_statuses_are_read_from_bodies():
    assert restated(200, json.dumps({"error": None, "output": []})) == 200
    assert restated(200, json.dumps({"text": 'he said "error"'})) == 200
    assert restated(200, json.dumps({"error": {"code": "rate_limit_exceeded"}})) == 429
    assert restated(200, json.dumps({"error": {"type": "overloaded_error"}})) == 529
    assert restated(200, json.dumps({"error": {"code": True}})) == 400
    assert restated(429, json.dumps({"error": {"code": "rate_limit_exceeded"}})) == 429
    assert restated(500, json.dumps({"error": {"message": "failed to parse grammar"}})) == 400
    assert restated(500, json.dumps({"error": {"message": "out of memory"}})) == 500
    assert restated(200, '{"error": ' + "[" * 100_000) == 200


def test_the_shape_of_a_schema_keeps_what_the_reply_must_look_like():
    schema = {
        "type": "object",
        "title": "T",
        "required": ["pattern"],
        "additionalProperties": False,
        "properties": {
            "pattern": {"type": "array", "minItems": 1, "items": {"enum": ["a", "b"], "maxLength": 3}},
            "n": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        },
    }
    assert shape(schema) == {
        "type": "object",
        "required": ["pattern"],
        "additionalProperties": False,
        "properties": {
            "pattern": {"type": "array", "items": {"enum": ["a", "b"]}},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
    }


def test_a_model_that_leads_to_a_private_address_by_a_redirect_is_refused(server):
    with Server() as inner:
        server.script(CHAT, BAD["redirect"](f"{inner.url}/x"))
        client = made(server)
        with pytest.raises((AddressRefusedError, PermanentError)):
            complete(client)
        assert not inner.seen


class TestCircuit:
    """A server that fails again and again is not asked for every claim."""

    def together(self, client, number):
        outcomes = []

        async def one():
            try:
                await client.structured(ASKED, schema=SCHEMA, stage="judge", model=Label)
                outcomes.append("ok")
            except FactcheckError as error:
                outcomes.append(str(error))

        async def main():
            async with anyio.create_task_group() as group:
                for _ in range(number):
                    group.start_soon(one)

        anyio.run(main)
        return outcomes

    def test_a_refused_key_is_sent_a_few_times_and_no_more(self, server):
        server.script(CHAT, status(401))
        outcomes = self.together(made(server, concurrency=2), 200)
        assert len(server.seen) <= 6
        assert all("Check the key" in outcome or "circuit open" in outcome for outcome in outcomes)
        assert KEY not in str(outcomes)

    def test_after_an_outage_nothing_is_lost(self, server):
        slept = []

        async def sleep(seconds):
            slept.append(seconds)
            await anyio.sleep(0.001)
            if len(slept) == 30:
                server.script(CHAT, chat(GOOD))

        server.script(CHAT, status(500))
        client = made(server, concurrency=2, attempts=1, deadline=60.0, sleep=sleep)
        client._breaker = Breaker(0.01)
        outcomes = self.together(client, 100)
        assert outcomes.count("ok") > 60
        assert all("500" in outcome for outcome in outcomes if outcome != "ok")

    def test_an_outage_longer_than_a_call_may_take_is_waited_out_once(self, server):
        server.script(CHAT, status(500))
        client = made(server, concurrency=4, attempts=1, deadline=0.3, sleep=anyio.sleep)
        started = time.monotonic()
        outcomes = self.together(client, 100)
        assert time.monotonic() - started < 3
        assert "ok" not in outcomes
        assert len(server.seen) < 12

    def test_requests_that_are_refused_for_what_they_are_do_not_open_it(self, server):
        server.script(CHAT, status(400, "maximum context length is 10 tokens"))
        self.together(made(server, concurrency=2), 20)
        assert len(server.seen) == 20


class TestKeep:
    def test_a_reply_that_is_not_kept_is_returned_and_asked_for_anew(self, server, tmp_path):
        server.script(CHAT, chat(GOOD))
        with Ledger.open(tmp_path / "l.sqlite") as ledger:
            client = made(server, ledger=ledger)
            for keep, requests in ((lambda reply: False, 1), (lambda reply: False, 2), (None, 3), (None, 3)):
                assert structured(client, keep=keep).label == "supported"
                assert len(server.seen) == requests

    def test_another_prompt_is_another_record(self, server, tmp_path):
        server.script(CHAT, chat(GOOD))
        with Ledger.open(tmp_path / "l.sqlite") as ledger:
            client = made(server, ledger=ledger)
            for prompt, requests in (("a", 1), ("b", 2), ("a", 2)):
                structured(client, prompt=prompt)
                assert len(server.seen) == requests


def test_a_missing_key_says_where_it_is_looked_for(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY holds no key\. Set OPENAI_API_KEY, or .* --key-env"):
        ModelSettings(model="gpt-4.1-mini").secret()
    with pytest.raises(ConfigError, match=r"add --api anthropic"):
        ModelSettings(model="claude-sonnet-4-5").secret()
