"""The ledger: keys, record, resume and replay, single flight, and what is never stored."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from factcheck.errors import ConfigError, JudgeError, UserError
from factcheck.ledger import Ledger, LedgerStats, canonical, failure_in
from factcheck.ledger_errors import LedgerError, NotStoredError, ReplayMissError
from factcheck.ledger_file import LedgerFile
from factcheck.schema import Fingerprint

FINGERPRINT = {"role": "judge", "name": "llm/judge", "model": "m-1", "settings": {"temperature": 0.0}}
SECRET = "sk-live-0123456789abcdef0123456789"

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def run(function, *arguments):
    return anyio.run(function, *arguments)


def reordered(value, rng):
    """Return equal content with the keys of every mapping in another order, and tuples for lists."""
    if isinstance(value, dict):
        names = list(value)
        rng.shuffle(names)
        return {name: reordered(value[name], rng) for name in names}
    return tuple(reordered(item, rng) for item in value) if isinstance(value, list) else value


def same(one, other):
    """Tell strictly whether two JSON values are equal: unlike ``==``, 1, 1.0 and true differ."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


class Counting:
    """A computation that says how often it ran."""

    def __init__(self, value, *, seconds=0.0, error=None):
        self.value, self.seconds, self.error, self.calls = value, seconds, error, 0

    async def __call__(self):
        self.calls += 1
        await anyio.sleep(self.seconds)
        if self.error:
            raise self.error
        return self.value


# Keys


@settings(deadline=None)
@given(trees, trees, st.randoms(use_true_random=False))
def test_keys_are_equal_exactly_for_equal_content(one, other, rng):
    key = Ledger.key("model", FINGERPRINT, one)
    assert key == Ledger.key("model", reordered(FINGERPRINT, rng), reordered(one, rng))
    assert (key == Ledger.key("model", FINGERPRINT, other)) == same(one, other)
    assert (Ledger.key("model", one, 0) == Ledger.key("model", other, 0)) == same(one, other)


PARTS = st.fixed_dictionaries(
    {
        "model": st.text(max_size=5),
        "parameters": st.dictionaries(st.sampled_from(["temperature", "seed", "max_tokens"]), st.integers(0, 3)),
        "prompt_sha256": st.text("0123456789abcdef", max_size=4),
        "schema": trees,
        "evidence": st.lists(st.text(max_size=5), max_size=3),
        "corpus_sha256": st.lists(st.text("0123456789abcdef", max_size=4), max_size=2),
    }
)
EACH = ("model", "parameters", "prompt_sha256", "schema", "evidence", "corpus_sha256")


def key_of(parts):
    fingerprint = {name: parts[name] for name in parts if name != "evidence"}
    return Ledger.key("judgement", fingerprint, {"claim": "x", "evidence": parts["evidence"]})


@pytest.mark.parametrize("part", EACH)
@settings(deadline=None)
@given(data=st.data())
def test_key_depends_on_each_part(part, data):
    parts, others = data.draw(PARTS), data.draw(PARTS)
    changed = {**parts, part: others[part]}
    assert (key_of(changed) == key_of(parts)) == same(changed[part], parts[part])


def test_key_of_kind_fingerprint_and_input_are_kept_apart():
    keys = [
        Ledger.key("a", "b", "c"),
        Ledger.key("b", "a", "c"),
        Ledger.key("a", "bc", ""),
        Ledger.key("a", ["b", "c"], ""),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 and set(key) <= set("0123456789abcdef") for key in keys)


def test_key_is_the_same_in_every_process():
    # A changed value makes every recorded ledger useless: raise the schema version of the file with it.
    assert Ledger.key("model", {"b": [1, 2.5, None], "a": "é\ud800"}, ("x", True)) == (
        "95dc2d1fea131f53928320a99b563f58ec909c8f7ffe2912edc4f9c673df6119"
    )


class Table(BaseModel):
    model: str
    key: SecretStr
    tags: tuple[str, ...] = ()


def test_key_takes_models_and_ignores_secrets():
    one = Table(model="m", key=SecretStr("first"), tags=("a",))
    other = Table(model="m", key=SecretStr("second"), tags=("a",))
    assert Ledger.key("model", one, "x") == Ledger.key("model", other, "x")
    assert Ledger.key("model", one, "x") != Ledger.key("model", one.model_copy(update={"model": "n"}), "x")
    assert canonical({"key": SecretStr("first")}) == '{"key":"**********"}'
    fingerprint = Fingerprint(role="judge", name="j", version="1", corpus_sha256=("a",))
    assert Ledger.key("model", fingerprint, "x") == Ledger.key("model", fingerprint.model_dump(mode="json"), "x")


@pytest.mark.parametrize("bad", [{1: "a"}, {"a": b"x"}, {"a": {1, 2}}, float("nan"), [float("inf")], object()])
def test_key_refuses_what_has_no_canonical_form(bad):
    with pytest.raises((TypeError, ValueError)):
        Ledger.key("model", FINGERPRINT, bad)


# Record, resume, replay


@settings(max_examples=30, deadline=None)
@given(value=trees.filter(lambda value: not failure_in(value)))
def test_store_then_lookup_gives_the_same_text(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("ledger") / "l.db"
    text = json.dumps(value, ensure_ascii=False, indent=1)

    async def scenario():
        with Ledger.open(path) as ledger:
            assert await ledger.lookup("model", "k") is None
            assert await ledger.store("model", "k", FINGERPRINT, text) == text
            assert await ledger.lookup("model", "k") == text
            assert await ledger.lookup("other", "k") is None
            assert ledger.stats == LedgerStats(hits=1, misses=2, stores=1)
        with Ledger.open(path, mode="replay") as ledger:
            assert await ledger.lookup("model", "k") == text

    run(scenario)


@pytest.mark.parametrize("text", ['"\ud800 lone surrogate"', '"' + "long " * 50_000 + '"', '"\\u0000 \x7f é 漢 😀"'])
def test_any_text_survives(tmp_path, text):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            await ledger.store("model", "k", FINGERPRINT, text)
            assert await ledger.lookup("model", "k") == text

    run(scenario)


def test_remember_computes_once_and_replays_the_same(tmp_path):
    path = tmp_path / "deep" / "er" / "l.db"
    compute = Counting(
        {"tuple": (1, 2), "text": "é", "float": 0.1, "model": Fingerprint(role="judge", name="j", version="1")}
    )

    async def scenario(mode):
        with Ledger.open(path, mode=mode) as ledger:
            value = await ledger.remember("model", FINGERPRINT, "input", compute, cost=lambda value: {"usd": 1})
            return value, ledger.stats

    first, stats = run(scenario, "record")
    assert stats == LedgerStats(misses=1, stores=1)
    assert first["tuple"] == [1, 2]
    assert first["model"]["name"] == "j"
    again, stats = run(scenario, "record")
    assert stats == LedgerStats(hits=1)
    before = path.read_bytes()
    replayed, stats = run(scenario, "replay")
    assert stats == LedgerStats(hits=1)
    assert canonical(first) == canonical(again) == canonical(replayed)
    assert compute.calls == 1
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["l.db"]


def test_replay_miss_names_kind_and_stage_and_calls_nothing(tmp_path):
    path = tmp_path / "l.db"
    Ledger.open(path).close()
    compute = Counting(1)

    async def scenario():
        with Ledger.open(path, mode="replay") as ledger:
            with pytest.raises(ReplayMissError) as raised:
                await ledger.remember("model", FINGERPRINT, "x", compute, stage="judge")
            assert ledger.stats.misses == 1
            with pytest.raises(ReplayMissError, match="'retrieval' entry k"):
                await ledger.lookup("retrieval", "k")
            with pytest.raises(LedgerError, match="being replayed"):
                await ledger.store("model", "k", FINGERPRINT, "1")
        return raised.value

    error = run(scenario)
    assert isinstance(error, UserError)
    assert str(error).startswith("[F161] ")
    assert "'model' entry" in str(error)
    assert "of stage 'judge'" in str(error)
    assert "record" in error.hint
    assert (error.kind, error.stage) == ("model", "judge")
    assert compute.calls == 0


def test_off_keeps_nothing(tmp_path):
    compute = Counting([1])

    async def scenario():
        with Ledger.open(tmp_path / "l.db", mode="off") as ledger:
            assert await ledger.remember("model", FINGERPRINT, "x", compute) == [1]
            assert await ledger.remember("model", FINGERPRINT, "x", compute) == [1]
            assert await ledger.store("model", "k", FINGERPRINT, "1") == "1"
            assert await ledger.lookup("model", "k") is None

    run(scenario)
    assert compute.calls == 2
    assert os.listdir(tmp_path) == []


def test_open_refuses_a_mode_it_does_not_know_and_a_missing_path(tmp_path):
    with pytest.raises(ConfigError, match="no mode 'rerun'"):
        Ledger.open(tmp_path / "l.db", mode="rerun")
    with pytest.raises(ConfigError, match="needs a file"):
        Ledger.open(None)
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(tmp_path / "l.db", mode="replay")
    assert os.listdir(tmp_path) == []


def test_a_closed_ledger_says_so(tmp_path):
    ledger = Ledger.open(tmp_path / "l.db")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="is closed"):
        run(ledger.lookup, "model", "k")
    with pytest.raises(LedgerError, match="is closed"):
        run(ledger.store, "model", "k", {}, "1")


# What is never stored

FAILURES = [
    "null",
    '{"status": "error", "reason": "refused"}',
    '{"status": "Failed"}',
    '{"status": "skipped", "passages": []}',
    '{"label": "error"}',
    '{"error": {"message": "invalid key"}}',
    '{"error": "timeout", "passages": []}',
    '[{"status": "ok"}, {"status": "error"}]',
]
NO_JSON = ["", "{", "NaN", '{"a": Infinity}', "not json", '{"a": 1} {"b": 2}']


@pytest.mark.parametrize("text", [*FAILURES, *NO_JSON])
def test_store_refuses_failures_and_what_is_no_json(tmp_path, text):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            with pytest.raises(NotStoredError) as raised:
                await ledger.store("model", "k", FINGERPRINT, text)
            assert await ledger.lookup("model", "k") is None
            assert ledger.stats.stores == 0
            return raised.value

    assert ("a failure" if text in FAILURES else "no JSON") in str(run(scenario))


@pytest.mark.parametrize("kind", ["", "a\nb", "\ud800"])
def test_store_refuses_an_odd_kind_or_key(tmp_path, kind):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            with pytest.raises(NotStoredError):
                await ledger.store(kind, "k", FINGERPRINT, "1")
            with pytest.raises(NotStoredError):
                await ledger.store("model", kind, FINGERPRINT, "1")

    run(scenario)


@pytest.mark.parametrize(
    "value", ['{"status": "ok", "error": ""}', '{"label": "supported"}', "[]", "{}", '"error"', "0"]
)
def test_what_is_no_failure(value):
    assert failure_in(json.loads(value)) == ""


def test_an_exception_is_raised_and_not_stored(tmp_path):
    failing = Counting(None, error=JudgeError("refused"))

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            for _ in range(2):
                with pytest.raises(JudgeError, match="refused"):
                    await ledger.remember("model", FINGERPRINT, "x", failing)
            good = Counting("fine")
            assert await ledger.remember("model", FINGERPRINT, "x", good) == "fine"
            assert ledger.stats == LedgerStats(misses=3, stores=1)

    run(scenario)
    assert failing.calls == 2


def test_a_flagged_value_is_returned_and_not_stored(tmp_path):
    failing = Counting({"status": "error", "reason": "refused"})

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            for _ in range(2):
                assert (await ledger.remember("model", FINGERPRINT, "x", failing))["reason"] == "refused"
            assert ledger.stats == LedgerStats(misses=2)

    run(scenario)
    assert failing.calls == 2


@pytest.mark.parametrize("value", [{1, 2}, {"a": float("nan")}, object(), {1: "x"}])
def test_a_value_that_is_no_json_fails(tmp_path, value):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger, pytest.raises(NotStoredError, match="is no JSON"):
            await ledger.remember("model", FINGERPRINT, "x", Counting(value))

    run(scenario)


def test_secrets_are_nowhere_in_the_file(tmp_path):
    table = {
        "model": "m",
        "api_key": SECRET,
        "headers": {"Authorization": f"Bearer {SECRET}"},
        "base_url": f"https://user:{SECRET}@host/v1?api_key={SECRET}",
        "note": f"key {SECRET}",
        "typed": SecretStr("plain words"),
    }

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            await ledger.store("model", "k", table, "1", cost={"token": SECRET})
            await ledger.remember("model", table, "x", Counting(2))
            assert SECRET not in repr(ledger)

    run(scenario)
    data = (tmp_path / "l.db").read_bytes()
    assert SECRET.encode() not in data
    assert b"plain words" not in data
    assert b"https://**********@host" in data


# Single flight, threads and loops


def test_equal_calls_that_overlap_compute_once(tmp_path):
    compute = Counting({"n": 1}, seconds=0.05)
    values = []

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:

            async def ask():
                values.append(await ledger.remember("model", FINGERPRINT, "x", compute))

            async with anyio.create_task_group() as group:
                for _ in range(50):
                    group.start_soon(ask)
            assert ledger.stats == LedgerStats(misses=1, stores=1, shared=49)

    run(scenario)
    assert compute.calls == 1
    assert values == [{"n": 1}] * 50
    values[0]["n"] = 2
    assert values[1] == {"n": 1}


def test_equal_calls_that_overlap_share_the_exception(tmp_path):
    failing = Counting(None, seconds=0.05, error=JudgeError("refused"))
    caught = []

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:

            async def ask():
                try:
                    await ledger.remember("model", FINGERPRINT, "x", failing)
                except JudgeError as error:
                    caught.append(str(error))

            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(ask)

    run(scenario)
    assert failing.calls == 1
    assert caught == ["[F330] refused"] * 20


def test_a_waiter_takes_over_when_the_one_who_computes_is_cancelled(tmp_path):
    compute = Counting("value", seconds=0.2)
    values = []

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:

            async def ask():
                values.append(await ledger.remember("model", FINGERPRINT, "x", compute))

            async def give_up():
                with anyio.move_on_after(0.05):
                    await ask()

            async with anyio.create_task_group() as group:
                group.start_soon(give_up)
                await anyio.sleep(0.02)
                for _ in range(5):
                    group.start_soon(ask)

    run(scenario)
    assert compute.calls == 2
    assert values == ["value"] * 5


def test_a_result_that_is_paid_for_is_stored_though_the_task_is_cancelled(tmp_path):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:

            async def compute():
                scope.cancel()
                return "paid"

            with anyio.CancelScope() as scope:
                await ledger.remember("model", FINGERPRINT, "x", compute)
                await anyio.sleep(5)
            return scope.cancelled_caught, await ledger.lookup("model", Ledger.key("model", FINGERPRINT, "x"))

    assert run(scenario) == (True, '"paid"')


def test_a_result_that_is_paid_for_is_stored_though_the_run_is_interrupted(tmp_path):
    ledger = Ledger.open(tmp_path / "l.db")

    async def scenario():
        host = asyncio.current_task()

        async def compute():
            host.cancel()  # what asyncio does on Ctrl-C
            await anyio.lowlevel.cancel_shielded_checkpoint()
            return "paid"

        async with anyio.create_task_group() as group:
            group.start_soon(ledger.remember, "model", FINGERPRINT, "x", compute)
            await anyio.sleep(5)

    with pytest.raises(asyncio.CancelledError):
        run(scenario)
    assert run(ledger.lookup, "model", Ledger.key("model", FINGERPRINT, "x")) == '"paid"'
    ledger.close()


def test_several_loops_and_threads_share_one_ledger(tmp_path):
    calls = []
    values = {}
    ledger = Ledger.open(tmp_path / "l.db")

    def work(thread):
        async def ask(number):
            async def compute():
                calls.append(number)
                await anyio.sleep(0.01)
                return [number]

            values[thread, number] = await ledger.remember("model", FINGERPRINT, number, compute)

        async def scenario():
            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(ask, number)

        anyio.run(scenario)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    ledger.close()
    assert sorted(calls) == list(range(40))
    assert values == {(thread, number): [number] for thread in range(4) for number in range(40)}
    assert sum(ledger.stats) == 40 + 160  # every call hit, missed or shared; what was missed was stored


def test_a_loop_that_is_not_asyncio_waits_too(tmp_path, monkeypatch):
    compute = Counting("value", seconds=0.05)

    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(ledger.remember, "model", FINGERPRINT, "x", compute)
                await anyio.sleep(0.01)
                monkeypatch.setattr("factcheck.ledger.asyncio", SimpleNamespace(get_running_loop=_no_loop))
                group.start_soon(ledger.remember, "model", FINGERPRINT, "x", compute)
                await anyio.sleep(0.01)
                monkeypatch.undo()
            assert ledger.stats.shared == 3

    run(scenario)
    assert compute.calls == 1


def _no_loop():
    raise RuntimeError("no running event loop")


def test_nothing_blocks_the_loop_while_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.ledger_file.BUSY_SECONDS", 3.0)
    path = tmp_path / "l.db"
    gaps = []

    async def scenario():
        with Ledger.open(path) as ledger:
            await ledger.store("model", "before", FINGERPRINT, "1")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            async with anyio.create_task_group() as group:
                for number in range(40):  # more than there are threads to write with
                    group.start_soon(ledger.store, "model", f"k{number}", FINGERPRINT, "1")
                while time.monotonic() < started + 0.8:
                    last = time.monotonic()
                    assert await ledger.lookup("model", "before") == "1"
                    await anyio.sleep(0.005)
                    gaps.append(time.monotonic() - last)
                assert ledger.stats.stores == 1
                other.execute("ROLLBACK")
                other.close()
            assert ledger.stats.stores == 41

    run(scenario)
    assert max(gaps) < 0.5


def test_a_lock_that_nobody_releases_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.ledger_file.BUSY_SECONDS", 0.1)
    path = tmp_path / "l.db"

    async def scenario():
        with Ledger.open(path) as ledger:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match="locked by another process"):
                await ledger.store("model", "k", FINGERPRINT, "1")
            other.close()
            await ledger.store("model", "k", FINGERPRINT, "1")

    run(scenario)


FORKED = """
import os, sys, anyio
from factcheck.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
anyio.run(ledger.store, "model", "parent", {}, '"before"')
child = os.fork()
if child == 0:
    anyio.run(ledger.store, "model", "child", {}, '"inside"')
    ledger.close()
    os._exit(0 if ledger.stats.stores == 1 else 1)  # its own count, as it has its own handles and locks
assert os.waitpid(child, 0)[1] == 0
assert anyio.run(ledger.lookup, "model", "child") == '"inside"'
anyio.run(ledger.store, "model", "parent2", {}, '"after"')
assert ledger.stats.stores == 2, ledger.stats
ledger.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_opens_the_file_anew(tmp_path):
    path = tmp_path / "l.db"
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED, str(path)], check=True, timeout=60)
    file = LedgerFile(path, writable=False)
    assert {entry.key for _, entry in file.rows()} == {"parent", "child", "parent2"}
    file.close()


def test_first_writer_wins(tmp_path):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as one, Ledger.open(tmp_path / "l.db") as other:

            async def compute():
                await other.store("model", Ledger.key("model", FINGERPRINT, "x"), FINGERPRINT, '"theirs"')
                return "ours"

            assert await one.remember("model", FINGERPRINT, "x", compute) == "theirs"
            assert await one.remember("model", FINGERPRINT, "x", compute) == "theirs"

    run(scenario)


def test_memory_holds_only_what_is_under_way(tmp_path):
    async def scenario():
        with Ledger.open(tmp_path / "l.db") as ledger:
            for number in random.sample(range(200), 200):
                await ledger.remember("model", FINGERPRINT, number, Counting(number))
            return len(ledger._flights), len(ledger._file._pending)

    assert run(scenario) == (0, 0)
