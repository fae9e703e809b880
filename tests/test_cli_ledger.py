"""The command ``factcheck ledger``: exit statuses, text for people, JSON for machines."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time

import anyio
import pytest

from factcheck.cli import main as cli
from factcheck.ledger import Ledger
from factcheck.ledger_file import Entry, LedgerFile

DAY = 86_400
SECRET = "sk-live-0123456789abcdef0123456789"


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "ledger", cli.COMMANDS.get("ledger", "inspect, prune and export ledgers"))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "l.db"
    file = LedgerFile(path, writable=True)
    now = int(time.time())
    rows = [("model", "a", "0.1", 40), ("model", "b", "0.2", 20), ("retrieval", "c", "0.2", 1)]
    for kind, key, version, days in rows:
        file.write(Entry(kind, key, '{"model": "m"}', version, now - days * DAY, "{}", f'{{"key is": "{key}"}}'))
    file.close()
    return path


def call(capsys, *arguments):
    status = cli.main(["ledger", *map(str, arguments)])
    return status, *capsys.readouterr()


def as_json(capsys, *arguments):
    status, out, err = call(capsys, *arguments, "--format", "json")
    assert err == ""
    content = json.loads(out)
    assert content["schema"] == f"factcheck.ledger.{arguments[0]}/1"
    return status, content


def damage(path):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entry SET value = X'00', kind = 'mo' || char(27) || '[2Jdel' WHERE key = 'b'")
    connection.commit()
    connection.close()


def test_info(capsys, path):
    before = path.read_bytes()
    status, content = as_json(capsys, "info", path)
    assert (status, content["entries"], content["schema_version"], content["problems"]) == (0, 3, 1, None)
    assert content["bytes"] == path.stat().st_size
    assert [(kind["kind"], kind["entries"]) for kind in content["kinds"]] == [("model", 2), ("retrieval", 1)]
    assert [(item["version"], item["entries"]) for item in content["versions"]] == [("0.2", 2), ("0.1", 1)]
    assert content["kinds"][0]["oldest"] < content["kinds"][0]["newest"] < content["kinds"][1]["newest"]
    status, text, err = call(capsys, "info", path)
    assert (status, err) == (0, "")
    assert "l.db: 3 entries, " in text
    assert "model      2 entries" in text
    assert "retrieval    1 entry" in text
    assert "written by factcheck 0.2: 2 entries, last 20" in text
    assert "problem" not in text
    assert path.read_bytes() == before


def test_info_of_an_empty_ledger(capsys, tmp_path):
    Ledger.open(tmp_path / "l.db").close()
    status, text, _ = call(capsys, "info", tmp_path / "l.db")
    assert status == 0
    assert "0 entries" in text


def test_verify_exits_1_and_lists(capsys, path):
    status, text, _ = call(capsys, "info", path, "--verify")
    assert (status, "no problems" in text) == (0, True)
    assert as_json(capsys, "info", path, "--verify")[1]["problems"] == []
    damage(path)
    status, text, err = call(capsys, "info", path, "--verify")
    assert (status, err) == (1, "")
    assert "1 problems" in text
    assert "differs from its SHA-256" in text
    assert "\x1b" not in text
    status, content = as_json(capsys, "info", path, "--verify")
    assert (status, len(content["problems"])) == (1, 1)
    assert call(capsys, "info", path)[0] == 0


@pytest.mark.parametrize(
    ("options", "removed"),
    [
        (["--older-than", "30"], 1),
        (["--older-than", "0.5"], 3),
        (["--kind", "model"], 2),
        (["--kind", "model", "--kind", "retrieval", "--older-than", "10"], 2),
        (["--keep-versions", "1"], 1),
        (["--keep-versions", "1", "--kind", "retrieval"], 0),
        (["--damaged"], 0),
    ],
)
def test_prune(capsys, path, options, removed):
    status, content = as_json(capsys, "prune", path, *options, "--dry-run")
    assert (status, content["removed"], content["kept"], content["dry_run"]) == (0, removed, 3 - removed, True)
    status, text, _ = call(capsys, "prune", path, *options, "--dry-run")
    assert (status, "to remove" in text) == (0, True)
    assert as_json(capsys, "info", path)[1]["entries"] == 3
    status, text, err = call(capsys, "prune", *options, path)
    assert (status, err) == (0, "")
    assert f" {removed} entr{'y' if removed == 1 else 'ies'} removed, {3 - removed} kept; " in text
    assert as_json(capsys, "info", path)[1]["entries"] == 3 - removed


def test_prune_damaged_mends(capsys, path):
    damage(path)
    assert call(capsys, "prune", path, "--damaged")[0] == 0
    status, content = as_json(capsys, "info", path, "--verify")
    assert (status, content["entries"], content["problems"]) == (0, 2, [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["prune", "FILE"],
        ["prune", "missing.db", "--damaged"],
        ["info", "missing.db"],
        ["export", "missing.db"],
        ["info", "TEXT"],
        ["info", "NEWER"],
        ["prune", "NEWER", "--damaged"],
        ["export", "FILE", "--out", "FILE"],
        ["export", "FILE", "--out", "/nowhere/at/all.jsonl"],
    ],
)
def test_mistakes_are_one_line_and_exit_2(capsys, path, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "TEXT").write_text("not a database" * 50)
    (tmp_path / "FILE").write_bytes(path.read_bytes())
    (tmp_path / "NEWER").write_bytes(path.read_bytes())
    connection = sqlite3.connect(tmp_path / "NEWER")
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    before = {name: (tmp_path / name).read_bytes() for name in ("TEXT", "NEWER", "l.db")}
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("factcheck: [F1")
    assert err.count("\n") == 1
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert {item.name for item in tmp_path.iterdir()} == {*before, "FILE"}


@pytest.mark.parametrize(
    "options", [["--older-than", "-1"], ["--older-than", "nan"], ["--keep-versions", "0"], ["--what"]]
)
def test_options_that_cannot_be(capsys, path, options):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["ledger", "prune", str(path), *options])
    assert stopped.value.code == 2


def test_export(capsys, path, tmp_path):
    status, out, err = call(capsys, "export", path)
    assert (status, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["kind"], line["key"], line["value"]) for line in lines] == [
        ("model", "a", {"key is": "a"}),
        ("model", "b", {"key is": "b"}),
        ("retrieval", "c", {"key is": "c"}),
    ]
    assert {line["schema"] for line in lines} == {"factcheck.ledger.entry/1"}
    written = tmp_path / "out.jsonl"
    status, text, err = call(capsys, "export", path, "--kind", "retrieval", "--out", written)
    assert (status, text, err) == (0, "", "")
    assert [json.loads(line)["key"] for line in written.read_text().splitlines()] == ["c"]


def test_export_overwrites_nothing(capsys, path):
    before = path.read_bytes()
    status, _, err = call(capsys, "export", path, "--out", path)
    assert (status, err.startswith("factcheck: [F140] ")) == (2, True)
    assert path.read_bytes() == before


def test_export_leaves_damaged_entries_out_and_exits_1(capsys, path):
    damage(path)
    status, out, err = call(capsys, "export", path)
    assert status == 1
    assert [json.loads(line)["key"] for line in out.splitlines()] == ["a", "c"]
    assert err == "factcheck: 1 damaged entry left out.\n"


def test_export_shows_no_secrets(capsys, tmp_path):
    path = tmp_path / "l.db"

    async def record():
        with Ledger.open(path) as ledger:
            value = json.dumps({"echo": f"Bearer {SECRET}", "link": f"https://h/?api_key={SECRET}"})
            await ledger.store("fetch", "k", {"api_key": SECRET}, value, cost={"token": SECRET})

    anyio.run(record)
    status, out, _ = call(capsys, "export", path)
    assert status == 0
    assert SECRET not in out
    assert json.loads(out)["redacted"] is True


def test_the_command_starts_without_heavy_imports(path):
    code = (
        "import sys; from factcheck.cli import main as m; m.COMMANDS['ledger'] = 'x'; "
        f"s = m.main(['ledger', 'info', {str(path)!r}]); "
        "print(sorted({'pydantic', 'httpx', 'anyio', 'numpy'} & set(sys.modules)), s)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "'numpy'" not in done.stdout
    assert "'httpx'" not in done.stdout
    assert done.stdout.rstrip().endswith(" 0")


@pytest.mark.parametrize("action", ["prune", "export"])
def test_a_kind_that_the_ledger_does_not_hold_is_a_mistake(capsys, path, action):
    status, out, err = call(capsys, action, "--kind", "modle", path)
    assert (status, out) == (2, "")
    assert "no kind of entry in the ledger named 'modle'. Did you mean 'model'? Known: model, retrieval." in err
