"""The command ``factcheck corpus``: exit statuses, text for people, JSON for machines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from factcheck.cli.main import main
from factcheck.corpus import list_corpora

ROWS = [
    {
        "_id": "met",
        "title": "Metformin",
        "text": "Metformin is stopped below 30 mL/min.",
        "metadata": {"source": "Label, 2020", "year": 2020, "kind": "drug"},
    },
    {
        "_id": "gout",
        "title": "Gout",
        "text": "Colchicine treats gout.\x1b[31m",
        "metadata": {"source": "Book", "kind": "condition"},
    },
]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return folder


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("# Gout\n\nColchicine treats gout.", encoding="utf-8")
    (folder / "b.pdf").write_text("x", encoding="utf-8")
    (folder / "c.txt").write_text("", encoding="utf-8")
    return folder


def call(capsys, *arguments):
    status = main(["corpus", *map(str, arguments)])
    return status, *capsys.readouterr()


def as_json(capsys, *arguments):
    status, out, err = call(capsys, *arguments, "--format", "json")
    assert err == ""
    content = json.loads(out)
    assert content["schema"] == f"factcheck.corpus.{arguments[0]}/1"
    return status, content


def test_build_then_info_then_verify(capsys, documents, tmp_path):
    out = tmp_path / "out"
    status, text, err = call(
        capsys, "build", documents, "--out", out, "--name", "mine", "--licence", "CC0", "--date", "2024"
    )
    assert (status, err) == (0, "")
    assert "1 passages from 1 documents" in text
    assert "1 without text: c.txt" in text
    assert "1 of other kinds, left out: b.pdf" in text
    assert "No licence" not in text
    status, text, _ = call(capsys, "info", out)
    assert status == 0
    for expected in ("name: mine", "licence: CC0", "date: 2024", "reviewed_by_clinician: False", "1 documents"):
        assert expected in text
    assert "title:" not in text
    status, text, _ = call(capsys, "verify", out)
    assert (status, "as in the manifest" in text) == (0, True)


def test_build_refuses_and_forces(capsys, documents, tmp_path):
    out = tmp_path / "out"
    status, content = as_json(capsys, "build", documents, "--out", out)
    assert (status, content["documents"], content["left_out"], content["empty"]) == (0, 1, ["b.pdf"], ["c.txt"])
    assert content["manifest"]["schema"] == "factcheck.corpus/1"
    status, text, err = call(capsys, "build", documents, "--out", out)
    assert (status, text) == (2, "")
    assert err.startswith("factcheck: [F140]")
    assert err.count("\n") == 1
    assert call(capsys, "build", documents, "--out", out, "--force")[0] == 0


def test_verify_exits_1_and_lists(capsys, corpus):
    assert call(capsys, "verify", corpus)[0] == 0
    with (corpus / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write("oops\n" * 30)
    status, text, err = call(capsys, "verify", corpus)
    assert (status, err) == (1, "")
    assert "tiny: 30 problems" in text
    assert "line 3: not JSON" in text
    assert "and 10 more" in text
    status, content = as_json(capsys, "verify", corpus)
    assert (status, content["ok"], len(content["problems"]), content["expected"]) == (1, False, 30, None)


def test_info_counts_and_notes(capsys, corpus):
    status, content = as_json(capsys, "info", corpus)
    assert status == 0
    assert content["counts"] == {
        "passages": 2,
        "documents": 2,
        "words": 9,
        "sources": 2,
        "kinds": {"condition": 1, "drug": 1},
    }
    assert "no manifest.json" in content["note"]
    _, text, _ = call(capsys, "info", corpus)
    assert "kinds: condition 1, drug 1" in text
    assert "note: no manifest.json" in text


def test_list(capsys):
    status, content = as_json(capsys, "list")
    assert status == 0
    assert [row["name"] for row in content["corpora"]] == list_corpora()
    status, text, _ = call(capsys, "list")
    assert status == 0
    for name in list_corpora():
        assert name in text


def test_search_text_and_json(capsys, corpus):
    pytest.importorskip("rank_bm25")
    pytest.importorskip("Stemmer")
    status, text, err = call(capsys, "search", corpus, "metformin < 30", "-k", "1")
    assert (status, err) == (0, "")
    assert text.startswith("1. Metformin [met] score ")
    assert "Metformin is stopped below 30 mL/min." in text
    assert text.rstrip().endswith("Label, 2020")
    status, content = as_json(capsys, "search", corpus, "gout or metformin")
    assert status == 0
    assert [p["rank"] for p in content["passages"]] == [1, 2]
    assert {p["id"] for p in content["passages"]} == {"met", "gout"}
    assert content["passages"][0]["corpus"] == "tiny"
    for query in ("qwxzv", "  "):
        assert call(capsys, "search", corpus, query)[:2] == (0, "No passage shares a term with the query.\n")


def test_search_prints_no_control_characters(capsys, corpus):
    pytest.importorskip("rank_bm25")
    pytest.importorskip("Stemmer")
    _, text, _ = call(capsys, "search", corpus, "gout")
    assert "Colchicine treats gout." in text
    assert "\x1b" not in text


def test_a_query_that_is_no_text_is_a_users_mistake(capsys, corpus):
    status, _, err = call(capsys, "search", corpus, "caf\udce9")
    assert (status, "UTF-8" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("info", "clinical-strater"), "F111"),
        (("verify", "./absent"), "F130"),
        (("search", "./absent", "x"), "F130"),
        (("build", "./absent", "--out", "out"), "F130"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(capsys, tmp_path, monkeypatch, arguments, code):
    if arguments[0] == "search":
        pytest.importorskip("rank_bm25")
        pytest.importorskip("Stemmer")
    monkeypatch.chdir(tmp_path)
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, "")
    assert f"[{code}]" in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments", [(), ("search", "x"), ("search", "x", "y", "-k", "0"), ("build", "x"), ("nonsense",)]
)
def test_usage_errors_exit_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(["corpus", *arguments])
    assert caught.value.code == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from factcheck.cli.main import main\n"
        "try: main(['corpus', 'build', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pydantic', 'rank_bm25', 'Stemmer', 'selectolax', 'factcheck.corpus'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--licence" in done.stdout
