"""Looking after a ledger: survey, check, prune, export."""

from __future__ import annotations

import json
import sqlite3

import pytest

from factcheck.errors import ConfigError
from factcheck.ledger_errors import LedgerCorruptError
from factcheck.ledger_file import Damaged, Entry, LedgerFile
from factcheck.ledger_upkeep import Kind, Version, exported, problems, prune, survey

SECRET = "sk-live-0123456789abcdef0123456789"
# kind, key, version, created
ROWS = [
    ("model", "a", "1", 100),
    ("model", "b", "2", 200),
    ("model", "c", "2", 300),
    ("retrieval", "a", "1", 150),
    ("retrieval", "d", "3", 250),
]


def entry(kind, key, version, created, value='{"text": "value"}'):
    return Entry(kind, key, f'{{"of": "{kind}"}}', version, created, '{"usd": 0.5}', value)


@pytest.fixture
def file(tmp_path):
    file = LedgerFile(tmp_path / "l.db", writable=True)
    for row in ROWS:
        file.write(entry(*row))
    yield file
    file.close()


def left(file):
    return {(row.kind, row.key) for _, row in file.rows()}


def test_survey(file):
    found = survey(file)
    assert found.kinds == (Kind("model", 3, 51, 100, 300), Kind("retrieval", 2, 34, 150, 250))
    assert found.versions == (Version("2", 2, 300), Version("3", 1, 250), Version("1", 2, 150))
    assert found.entries == 5
    assert found.schema == 1
    assert found.bytes > 20_000


@pytest.mark.parametrize(
    ("conditions", "gone"),
    [
        ({"before": 200}, {("model", "a"), ("retrieval", "a")}),
        ({"before": 200.5}, {("model", "a"), ("model", "b"), ("retrieval", "a")}),
        ({"kinds": ["retrieval"]}, {("retrieval", "a"), ("retrieval", "d")}),
        ({"kinds": ["retrieval", "model"], "before": 1000}, {row[:2] for row in ROWS}),
        ({"kinds": ["none"]}, set()),
        ({"keep_versions": 1}, {("model", "a"), ("retrieval", "a"), ("retrieval", "d")}),
        ({"keep_versions": 2}, {("model", "a"), ("retrieval", "a")}),
        ({"keep_versions": 9}, set()),
        ({"keep_versions": 1, "kinds": ["model"]}, {("model", "a")}),
        ({"damaged": True}, set()),
    ],
)
def test_prune_removes_what_meets_every_condition(file, conditions, gone):
    planned = prune(file, dry_run=True, **conditions)
    assert (planned.removed, planned.kept) == (len(gone), len(ROWS) - len(gone))
    assert left(file) == {row[:2] for row in ROWS}
    done = prune(file, **conditions)
    assert (done.removed, done.kept) == (len(gone), len(ROWS) - len(gone))
    assert left(file) == {row[:2] for row in ROWS} - gone
    assert problems(file) == []
    for kind, key, *_ in ROWS:
        assert (file.read(kind, key) is None) == ((kind, key) in gone)
    file.write(entry("model", "a", "4", 400))
    assert file.read("model", "a") == '{"text": "value"}'


def test_prune_gives_the_space_back_and_forgets_unused_origins(file):
    large = json.dumps("".join(str(number) for number in range(200_000)))
    for number in range(5):
        file.write(Entry("large", f"{number}", f'{{"number": {number}}}', "1", 50, "{}", large))
    assert file.fetch("SELECT COUNT(*) FROM origin") == [(9,)]
    done = prune(file, kinds=["large"])
    assert done.bytes_before > 1_000_000
    assert done.bytes_after < 50_000
    assert survey(file).bytes == done.bytes_after
    assert file.fetch("SELECT COUNT(*) FROM origin") == [(4,)]


def test_prune_without_a_condition_is_refused(file):
    with pytest.raises(ConfigError, match="nothing says which"):
        prune(file)
    assert len(left(file)) == 5


def test_damaged_entries_are_found_left_out_and_removed(file):
    other = sqlite3.connect(file.path)
    other.execute("UPDATE entry SET value = X'00' WHERE key = 'b'")
    other.execute("UPDATE entry SET kind = CAST(X'FF' AS TEXT), created = 'x' WHERE key = 'd'")
    other.commit()
    other.close()
    assert len(problems(file)) == 2
    assert "differs from its SHA-256" in problems(file)[0]
    lines = list(exported(file))
    assert [type(line) for line in lines] == [dict, Damaged, dict, dict, Damaged]
    assert prune(file, damaged=True, dry_run=True).removed == 2
    done = prune(file, damaged=True)
    assert (done.removed, done.kept) == (2, 3)
    assert problems(file) == []
    assert left(file) == {("model", "a"), ("model", "c"), ("retrieval", "a")}
    file.write(entry("model", "b", "1", 1))
    assert file.read("model", "b") == '{"text": "value"}'


def test_a_damaged_index_is_found_and_built_anew(tmp_path):
    path = tmp_path / "l.db"
    file = LedgerFile(path, writable=True)
    for number in range(30):
        file.write(entry("model", f"key{number:04}", "1", 1))
    ((page,),) = file.fetch("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_entry_1'")
    ((size,),) = file.fetch("PRAGMA page_size")
    file.close()
    data = bytearray(path.read_bytes())
    place = data.index(b"key0017", (page - 1) * size, page * size)
    data[place] ^= 1
    path.write_bytes(data)
    file = LedgerFile(path, writable=True)
    assert file.read("model", "key0017") is None  # missed, not wrong
    assert problems(file)
    assert prune(file, damaged=True).removed == 0
    assert problems(file) == []
    assert file.read("model", "key0017") == '{"text": "value"}'
    file.close()


def test_the_list_of_problems_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.ledger_upkeep._PROBLEMS_SHOWN", 10)
    file = LedgerFile(tmp_path / "l.db", writable=True)
    for number in range(15):
        file.write(entry("model", f"{number}", "1", 1))
    other = sqlite3.connect(file.path)
    other.execute("UPDATE entry SET seal = X'00'")
    other.commit()
    other.close()
    assert len(problems(file)) == 10
    with pytest.raises(LedgerCorruptError):
        file.read("model", "14")
    file.close()


@pytest.mark.parametrize("batch", [1, 4, 5, 22, 23, 100])
def test_rows_are_read_whole_however_they_are_cut(tmp_path, monkeypatch, batch):
    monkeypatch.setattr("factcheck.ledger_file._BATCH", batch)
    file = LedgerFile(tmp_path / "l.db", writable=True)
    for number in range(23):
        file.write(entry("model" if number % 2 else "other", f"{number}", "1", 1))
    assert [row.key for _, row in file.rows()] == [str(number) for number in range(23)]
    assert [row.key for _, row in file.rows(["model"])] == [str(number) for number in range(1, 23, 2)]
    file.close()


def test_export_says_everything_but_secrets(file):
    value = {"text": f"see https://host/x?api_key={SECRET}", "n": [1, 2.5, None, True]}
    file.write(Entry("model", "z", json.dumps({"api_key": SECRET}), "4", 1_700_000_000, "{}", json.dumps(value)))
    lines = list(exported(file))
    assert [(line["kind"], line["key"]) for line in lines] == [*(row[:2] for row in ROWS), ("model", "z")]
    assert lines[0] == {
        "schema": "factcheck.ledger.entry/1",
        "kind": "model",
        "key": "a",
        "created": "1970-01-01T00:01:40+00:00",
        "version": "1",
        "fingerprint": {"of": "model"},
        "cost": {"usd": 0.5},
        "value": {"text": "value"},
        "redacted": False,
    }
    assert lines[-1]["value"] == {"text": "see https://host/x?api_key=**********", "n": [1, 2.5, None, True]}
    assert lines[-1]["redacted"] is True
    assert lines[-1]["created"] == "2023-11-14T22:13:20+00:00"
    assert SECRET not in json.dumps(lines)
    assert [line["key"] for line in exported(file, ["retrieval"])] == ["a", "d"]
