"""The command with a model behind it, as a process: exit statuses, replay without a network, budgets, and kills."""

from __future__ import annotations

import json
import os
import random
import runpy
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("rank_bm25")

from factcheck.cli import main as cli
from factcheck.ledger import Ledger
from factcheck.llm import ModelSettings
from factcheck.prompting import load_prompt

BAD = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
Server, status, chat = BAD["Server"], BAD["status"], BAD["chat"]
ROOT = Path(__file__).resolve().parents[1]
KEY = "sk-hidden-0123456789abcdefghijkl"
CHAT = "/v1/chat/completions"
WORD = "paracetamol"
CHECK = ("check", "answer.md", "--format", "json", "--ledger", "ledger.sqlite")
TEXTS = (
    "Adults should take no more than 4 g of paracetamol in 24 hours.",
    "Ibuprofen is best taken with food.",
    "Metformin is stopped before iodinated contrast is given.",
    "Aspirin is not given to children under 16 years.",
    "Warfarin needs regular checks of the blood.",
)
SETTINGS = """
corpora = ["corpus"]
checkers = []
judge = "llm"
[models.default]
base_url = "{url}/v1"
model = "scripted-1"
key_env = "KEY_OF_THE_TEST"
timeout = {timeout}
deadline = {timeout}
attempts = 2
price = [1.0, 2.0]
"""


class Model:
    """Judge by literal repetition at ``CHAT``, with a reason of its own each time; ``fails(claim)`` may misbehave.

    ``asked`` holds the claims, ``keys`` the keys under which a ledger holds the replies.
    """

    def __init__(self, server):
        self.asked, self.keys = [], []
        self.delay, self.usage, self.reason = 0.0, (10, 5), "reason {}"
        self.fails = lambda claim: None
        table = tomllib.loads(SETTINGS.format(url=server.url, timeout=1.0))["models"]["default"]
        self._fingerprint = ModelSettings.model_validate(table).fingerprint
        server.script(CHAT, self._answer)

    async def _answer(self, seen, writer):
        body = seen.json()
        prompt = body["messages"][0]["content"]
        parts = FAKES["parts_of"](prompt)
        claim = parts["claim" if "claim" in parts else "sentence"].text
        schema = body["response_format"]["json_schema"]["schema"]
        given = {"messages": body["messages"], "schema": schema, "sample": 0}
        self.asked.append(claim)
        asked_with = "judge.evidence.v2" if "claim" in parts else "decompose.atomic.v2"
        maker = {**self._fingerprint, "prompt_sha256": load_prompt(asked_with).sha256}
        self.keys.append(Ledger.key("structured", maker, given))
        if behave := self.fails(claim):
            return await behave(seen, writer)
        judged = FAKES["literal_judge"](prompt, 1) | {"rationale": self.reason.format(len(self.asked))}
        return await chat(json.dumps(judged), delay=self.delay, usage=self.usage)(seen, writer)


@pytest.fixture(scope="module")
def running():
    with Server() as server:
        yield server


@pytest.fixture
def model(running):
    running.reset()
    return Model(running)


@pytest.fixture
def folder(tmp_path, running, monkeypatch):
    rows = [{"_id": f"d{index}", "title": text.split()[0], "text": text} for index, text in enumerate(TEXTS)]
    (tmp_path / "corpus").mkdir()
    write_lines(tmp_path / "corpus/corpus.jsonl", rows)
    (tmp_path / "answer.md").write_text(" ".join(TEXTS), encoding="utf-8")
    use(tmp_path, running.url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY_OF_THE_TEST", KEY)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "plugins")]))
    return tmp_path


@pytest.fixture
def command(folder, capfd):
    """Run the command in this process and return exit status, stdout and stderr."""

    def run(*arguments):
        code = cli.main(arguments)
        out, err = capfd.readouterr()
        return sound(code, out, err)

    return run


@pytest.fixture
def check(command):
    return lambda *options: command(*CHECK, *options)


def use(folder, url, timeout=1.0):
    (folder / "factcheck.toml").write_text(SETTINGS.format(url=url, timeout=timeout), encoding="utf-8")


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def start(*arguments, seed="0", **more):
    line = [sys.executable, "-m", "factcheck", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, env={**os.environ, "PYTHONHASHSEED": seed}, **pipes, **more)


def ended(process):
    out, err = process.communicate(timeout=30)
    return sound(process.returncode, out, err)


def sound(code, out, err):
    assert KEY not in out + err
    assert "Traceback" not in err
    return code, out, err


def one_line(err, code):
    return err.startswith(f"factcheck: [{code}] ") and err.count("\n") == 1


def accounting(out):
    counts = json.loads(out)["report"]["accounting"]
    return {name: count for name, count in counts.items() if count}


def keys(path):
    """Return the keys of the replies that a ledger holds."""
    connection = sqlite3.connect(path)
    try:
        return {key for (key,) in connection.execute("SELECT key FROM entry WHERE kind = 'structured'")}
    finally:
        connection.close()


def test_where_no_claim_could_be_checked_the_status_is_3(model, folder, check):
    model.fails = lambda claim: status(401, f"bad key {KEY}")
    code, out, err = check()
    assert (code, accounting(out)) == (3, {"extracted": 5, "error": 5})
    assert one_line(err, "F400")
    assert "none of the 5 claims could be checked: " in err
    assert "[F323] " in err
    assert json.loads(out)["usage"]["stages"]["judge"]["failed"] == 5
    assert not keys("ledger.sqlite")


def test_where_some_claims_could_be_checked_the_status_is_0(model, check):
    model.fails = lambda claim: status(401) if WORD in claim else None
    code, out, err = check()
    assert (code, err, accounting(out)) == (0, "", {"extracted": 5, "supported": 4, "error": 1})
    code, _, err = check("--fail-on", "contradicted")
    assert (code, one_line(err, "F400")) == (3, True)
    assert "1 of 5 claims could not be checked" in err
    assert check("--fail-on", "error")[0] == 1
    # Each run asks for what is missing alone.
    assert model.asked[5:] == [TEXTS[0], TEXTS[0]]


def test_a_replay_gives_the_same_bytes_and_asks_nobody(folder, check):
    with Server() as server:
        model = Model(server)
        use(folder, server.url)
        model.fails = lambda claim: status(500) if WORD in claim else None
        assert check()[0] == 0
        failed = len(model.asked)
        code, _, err = check("--replay")
        assert (code, one_line(err, "F161")) == (2, True)
        model.fails = lambda claim: None
        recorded = ended(start(*CHECK, seed="1"))
        assert len(model.asked) == failed + 1
    assert recorded[0] == 0
    assert ended(start(*CHECK, "--replay", seed="2")) == recorded == check("--replay") == check()
    usage = json.loads(recorded[1])["usage"]
    assert (usage["stages"]["judge"]["calls"], usage["stages"]["judge"]["failed"]) == (6, 1)
    assert usage["requests"] == len(model.asked)


def test_a_replay_of_what_was_never_recorded_is_the_mistake_of_the_user(model, folder, command, check):
    assert check()[0] == 0
    asked = len(model.asked)
    (folder / "answer.md").write_text(f"{TEXTS[0]} Tea is hot.", encoding="utf-8")
    code, out, err = check("--replay")
    assert (code, out, one_line(err, "F161")) == (2, "", True)
    assert "ledger.sqlite" in err
    code, out, err = command("check", "answer.md", "--ledger", "none.sqlite", "--replay")
    assert (code, out, one_line(err, "F160")) == (2, "", True)
    assert len(model.asked) == asked
    assert not (folder / "none.sqlite").exists()


@pytest.mark.parametrize("kind", ["claim", "decompose", "structured", "spending"])
def test_a_damaged_ledger_is_named(model, check, kind):
    assert check()[0] == 0
    connection = sqlite3.connect("ledger.sqlite")
    row, value = connection.execute("SELECT id, value FROM entry WHERE kind = ?", (kind,)).fetchone()
    damaged = bytes([*value[:20], value[20] ^ 1, *value[21:]])
    connection.execute("UPDATE entry SET value = ? WHERE id = ?", (damaged, row))
    if kind == "structured":  # which is read only where the claim is not there
        connection.execute("DELETE FROM entry WHERE kind = 'claim'")
    connection.commit()
    connection.close()
    asked = len(model.asked)
    for option in ((), ("--replay",)):
        code, out, err = check(*option)
        assert (code, out, one_line(err, "F160" if option == () or kind != "structured" else "F161")) == (2, "", True)
        assert "'ledger.sqlite'" in err
    assert len(model.asked) == asked


def test_a_bound_on_calls_stops_cleanly_and_a_further_run_makes_the_missing_calls(model, check):
    code, out, err = check("--max-calls", "3")
    assert (code, one_line(err, "F401")) == (3, True)
    assert accounting(out) == {"extracted": 5, "supported": 3, "error": 2}
    assert len(model.asked) == 3
    assert {v["reason"][:6] for v in json.loads(out)["report"]["verdicts"] if v["label"] == "error"} == {"[F401]"}
    code, out, err = check("--max-calls", "0")
    assert (code, accounting(out)) == (3, {"extracted": 5, "supported": 3, "error": 2})
    code, out, err = check()
    assert (code, err, accounting(out)) == (0, "", {"extracted": 5, "supported": 5})
    assert sorted(model.asked) == sorted(TEXTS)


@pytest.mark.parametrize("bound", [("--max-tokens", "5000"), ("--max-usd", "0.01")])
def test_bounds_on_tokens_and_dollars_stop_cleanly(model, check, bound):
    model.usage = (1000, 400)
    code, out, err = check(*bound)
    assert (code, one_line(err, "F401")) == (3, True)
    done = len(model.asked)
    assert 0 < done < 5
    assert accounting(out) == {"extracted": 5, "supported": done, "error": 5 - done}
    assert check()[0] == 0
    assert sorted(model.asked) == sorted(TEXTS)


def test_a_deadline_ends_a_run_on_a_slow_server(model, running, folder, check):
    model.fails = lambda claim: BAD["hang"]() if WORD in claim else None
    use(folder, running.url, timeout=20.0)
    started = time.monotonic()
    code, out, err = check("--deadline", "1")
    assert time.monotonic() - started < 1 + 3
    assert (code, one_line(err, "F401")) == (3, True)
    assert accounting(out) == {"extracted": 5, "supported": 4, "error": 1}


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are POSIX")
def test_an_interrupt_keeps_what_was_paid_for(model, running, folder, check):
    model.fails = lambda claim: BAD["hang"]() if WORD in claim else None
    use(folder, running.url, timeout=20.0)
    # A shell has processes in the background ignore interrupts.
    process = start(*CHECK, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    until(lambda: len(model.asked) == 5 and len(keys("ledger.sqlite")) == 4, process)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (3, "", "factcheck: interrupted.\n")
    model.fails = lambda claim: None
    assert check()[0] == 0
    assert model.asked[5:] == [TEXTS[0]]


def until(reached, process):
    limit = time.monotonic() + 20
    while not reached():
        if time.monotonic() > limit or process.poll() is not None:
            process.kill()
            pytest.fail(f"it did not get so far: {process.communicate()}")
        time.sleep(0.005)


def test_two_processes_on_one_ledger_agree(model, check):
    model.delay = 0.3
    both = [start(*CHECK, seed=seed) for seed in "12"]
    results = [ended(process) for process in both]
    assert [code for code, _, _ in results] == [0, 0]
    asked = len(model.asked)
    replayed = check("--replay")
    # The model gives another reason each time: both went on with what was stored first.
    reports = [json.loads(out)["report"] for _, out, _ in (*results, replayed)]
    assert reports[0] == reports[1] == reports[2]
    assert json.loads(replayed[1])["usage"]["stages"]["judge"]["calls"] == asked == len(model.asked)


FILES = ("report.json", "report.md", "claims.jsonl")


@pytest.fixture
def pairs(folder):
    pytest.importorskip("numpy")
    rows = []
    for index in range(12):
        shared, text = TEXTS[index % 5], "Dose {} of aspirin is {}."
        texts = [f"{shared} {text.format(index, dose)}" for dose in (f"{index} g", "5 mg")]
        rows.append({"id": f"p{index}", "question": f"question {index}", "original": texts[0], "injected": texts[1]})
    write_lines(folder / "pairs.jsonl", rows)


def study(*options, out="out"):
    return ("study", "pairs.jsonl", "--assume-tied", "--resamples", "20", "--out", out, *options)


def files(folder):
    return [(folder / name).read_bytes() for name in FILES]


def test_a_replay_of_a_study_gives_the_same_bytes(folder, pairs, command):
    with Server() as server:
        model = Model(server)
        use(folder, server.url)
        first = ended(start(*study("--format", "json"), seed="1"))
    assert first[0] == 0, first[2]
    assert len(model.keys) == len(set(model.keys)) > 12
    replay = ("--format", "json", "--replay", "--ledger", "out/ledger.sqlite")
    assert ended(start(*study(*replay, "--jobs", "3", out="again"), seed="2")) == first
    assert files(folder / "again") == files(folder / "out")
    assert all(KEY.encode() not in path.read_bytes() for path in (folder / "out").iterdir())
    code, _, err = command(*study("--replay", "-k", "2", "--ledger", "out/ledger.sqlite", out="other"))
    assert (code, one_line(err, "F161")) == (2, True)


def test_a_study_of_which_no_pair_could_be_checked_is_none(model, folder, pairs, command):
    model.fails = lambda claim: status(401)
    for options, what in ((("--decomposer", "llm/atomic"), "12 pairs"), ((), "48 claims")):
        code, _, err = command(*study("--force", *options))
        assert (code, one_line(err, "F400")) == (3, True)
        assert f"none of the {what} could be checked" in err


def test_a_study_stopped_by_its_budget_goes_on(model, folder, pairs, command):
    code, _, err = command(*study("--max-calls", "9"))
    assert (code, one_line(err, "F401")) == (3, True)
    assert len(model.asked) == 9
    assert (folder / "out/report.json").exists()
    code, _, err = command(*study("--resume"))
    assert (code, err) == (0, "")
    assert len(model.keys) == len(set(model.keys)) == len(keys("out/ledger.sqlite"))
    report = json.loads((folder / "out/report.json").read_bytes())
    assert (report["errors"], report["n_pairs"]) == ([], 12)


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are POSIX")
def test_a_killed_study_repeats_no_finished_call(model, folder, pairs, command):
    ledger = folder / "out/ledger.sqlite"
    generator = random.Random(7)
    model.delay, model.reason = 0.05, "because"
    held = set()
    for _ in range(4):
        seen = len(model.keys)
        goal = seen + generator.randint(1, 7)
        process = start(*study("--resume", "--jobs", "2"))
        until(lambda goal=goal: len(model.keys) >= goal, process)
        time.sleep(generator.random() * 0.1)
        process.kill()
        assert ended(process)[0] == -signal.SIGKILL
        assert held.isdisjoint(model.keys[seen:])
        held = keys(ledger)
    seen = len(model.keys)
    code, _, err = command(*study("--resume"))
    assert (code, err) == (0, "")
    assert held.isdisjoint(model.keys[seen:])
    assert held | set(model.keys[seen:]) == keys(ledger)
    assert command(*study(out="whole"))[0] == 0
    assert files(folder / "whole")[2] == files(folder / "out")[2]
    reports = [json.loads((folder / name / "report.json").read_bytes()) for name in ("out", "whole")]
    assert [report.pop("cost")["failed_calls"] for report in reports] == [0, 0]
    assert reports[0] == reports[1]
