"""Opening and verifying corpora: names, hashes, and everything that can be wrong with a file."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.corpus import CorpusPassage, corpus_of, list_corpora, open_corpus, opening, read_manifest, verify
from factcheck.corpus.passages import dump_rows, passage_from_row, read_rows, row_from_passage
from factcheck.errors import CorpusError, HashMismatchError, UnknownNameError

ROOT = Path(__file__).resolve().parents[1]
ROW = {
    "_id": "drug-a",
    "title": "Drug A",
    "text": "Drug A is given as 5 mg daily.",
    "metadata": {
        "source": "Label, 2020",
        "organisation": "Agency",
        "year": 2020,
        "url": "https://example.org/a",
        "kind": "drug",
    },
}


def line(**changes):
    return json.dumps({**ROW, **changes}, ensure_ascii=False).encode()


def write(folder, data, **manifest):
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_bytes(data)
    if manifest:
        rows = sum(1 for row in data.split(b"\n") if row.strip())
        whole = {
            "schema": "factcheck.corpus/1",
            "name": "tiny",
            "passages": rows,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        (folder / "manifest.json").write_text(json.dumps({**whole, **manifest}), encoding="utf-8")
    return folder


def test_a_folder_with_manifest(tmp_path):
    data = line() + b"\n" + line(_id="drug-b", metadata={"doc_id": "b.md", "published": "2019-05"}) + b"\n"
    corpus = open_corpus(
        write(tmp_path / "c", data, title="Tiny", sources=["Label", {"organisation": "Agency"}], extra=1)
    )
    assert (corpus.name, len(corpus), corpus.note) == ("tiny", 2, "")
    assert corpus.sha256 == hashlib.sha256(data).hexdigest()
    assert corpus.manifest.model_extra == {"extra": 1}
    first, second = corpus.passages()
    assert (first.id, first.doc_id, first.title) == ("drug-a", "drug-a", "Drug A")
    assert (first.source, first.url, first.published) == ("Label, 2020", "https://example.org/a", "2020")
    assert first.metadata["organisation"] == "Agency"
    assert (second.doc_id, second.published) == ("b.md", "2019-05")


def test_a_folder_without_manifest_is_noted(tmp_path):
    data = line()
    corpus = open_corpus(str(write(tmp_path / "my-corpus", data)))
    assert corpus.name == "my-corpus"
    assert corpus.sha256 == hashlib.sha256(data).hexdigest()
    assert "no manifest.json" in corpus.note
    assert read_manifest(tmp_path / "my-corpus") is None
    assert verify(tmp_path / "my-corpus").ok


def test_a_changed_file_is_refused_with_both_hashes(tmp_path):
    folder = write(tmp_path / "c", line(), title="Tiny")
    (folder / "corpus.jsonl").write_bytes(line(text="Drug A is given as 50 mg daily."))
    new = hashlib.sha256((folder / "corpus.jsonl").read_bytes()).hexdigest()
    old = read_manifest(folder).sha256
    with pytest.raises(HashMismatchError) as caught:
        open_corpus(folder)
    message = str(caught.value)
    assert message.startswith("[F131]")
    assert str(folder / "corpus.jsonl") in message
    assert new in message
    assert old in message
    assert "build the corpus again" in message
    found = verify(folder)
    assert not found.ok
    assert (found.sha256, found.expected) == (new, old)
    assert len(found.problems) == 1


BAD = {
    "an empty file": (b"", "holds no passages"),
    "blank lines only": (b"\n \n\r\n", "holds no passages"),
    "not JSON": (line() + b"\n{oops\n", "line 2: not JSON"),
    "an array": (b"[1]", "line 1: an array, not an object"),
    "a number for an id": (line(_id=3), "'_id' is a number, not a string"),
    "no id": (b'{"text": "x"}', "'_id' is missing"),
    "an empty id": (line(_id=""), "'id'"),
    "no text": (b'{"_id": "x"}', "'text' is missing"),
    "null text": (line(text=None), "'text' is missing"),
    "blank text": (line(text=" \u00a0\n"), "the text is blank"),
    "a list for a title": (line(title=["x"]), "'title' is an array"),
    "a list for metadata": (line(metadata=[]), "'metadata' is an array"),
    "a repeated id": (line() + b"\n\n" + line(text="other"), "line 3: id 'drug-a' repeats line 1"),
    "invalid UTF-8": (line() + b'\n{"_id": "caf\xe9", "text": "x"}', "line 2: invalid UTF-8 at byte 13"),
    "half a surrogate pair": (rb'{"_id": "x", "text": "a \ud800 b"}', "line 1: half of a surrogate pair"),
    "half a pair in metadata": (rb'{"_id": "x", "text": "a", "metadata": {"k": "\udfff"}}', "half of a surrogate pair"),
    "NaN": (b'{"_id": "x", "text": "a", "metadata": {"n": NaN}}', "NaN is no number"),
    "deep nesting": (b'{"_id": ' + b"[" * 100_000, "line 1: not"),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_the_line(tmp_path, data, reason):
    folder = write(tmp_path / "bad", data)
    with pytest.raises(CorpusError) as caught:
        open_corpus(folder)
    message = str(caught.value)
    assert reason in message
    assert "corpus.jsonl" in message
    assert caught.value.hint
    assert "\n" not in message
    found = verify(folder)
    assert not found.ok
    assert any(reason in problem for problem in found.problems)


def test_verify_lists_every_problem_and_counts_the_good_rows(tmp_path):
    data = b"\n".join([line(), b"{", line(_id="b"), line(_id="b"), line(_id="c", text="")])
    found = verify(write(tmp_path / "c", data, name="tiny"))
    assert [problem.split(":")[0] for problem in found.problems] == [
        "corpus.jsonl, line 2",
        "corpus.jsonl, line 4",
        "corpus.jsonl, line 5",
        f"{tmp_path / 'c' / 'manifest.json'} counts 5 passages, but corpus.jsonl holds 2",
    ]
    assert found.passages == 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": "factcheck.corpus/9"}, "schema"),
        ({"sha256": "abc"}, "sha256"),
        ({"name": ""}, "name"),
        ({"passages": -1}, "passages"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(tmp_path, changes, reason):
    folder = write(tmp_path / "c", line(), **changes)
    with pytest.raises(CorpusError, match=f"manifest.json.*{reason}"):
        open_corpus(folder)
    assert not verify(folder).ok


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[]", b"null"])
def test_a_broken_manifest_is_refused(tmp_path, text):
    folder = write(tmp_path / "c", line())
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(CorpusError, match=r"manifest\.json"):
        open_corpus(folder)


def test_a_wrong_count_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"counts 7 passages, but corpus\.jsonl holds 1"):
        open_corpus(write(tmp_path / "c", line(), passages=7))


def test_what_is_no_corpus_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"holds no corpus\.jsonl.*corpus build"):
        open_corpus(tmp_path / "empty")
    with pytest.raises(CorpusError, match="there is no folder"):
        open_corpus(tmp_path / "absent")
    file = write(tmp_path / "c", line()) / "corpus.jsonl"
    with pytest.raises(CorpusError, match="is a file"):
        open_corpus(file)
    (tmp_path / "odd" / "corpus.jsonl").mkdir(parents=True)
    with pytest.raises(CorpusError, match="cannot be read"):
        open_corpus(tmp_path / "odd")


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    root = tmp_path / "packaged"
    root.mkdir()
    write(root / "clinical-starter", line(), name="clinical-starter")
    (root / "__pycache__").mkdir()
    monkeypatch.setattr(opening, "data_folder", lambda name: root)
    return root


def test_packaged_names_and_the_nearest_one(packaged, tmp_path, monkeypatch):
    assert list_corpora() == ["clinical-starter"]
    assert open_corpus("clinical-starter").name == "clinical-starter"
    with pytest.raises(UnknownNameError, match="Did you mean 'clinical-starter'"):
        open_corpus("clinical-strater")
    monkeypatch.chdir(write(tmp_path / "here", line(_id="x")).parent)
    write(tmp_path / "clinical-starter", line(_id="mine"))
    assert next(open_corpus("clinical-starter").passages()).id == "drug-a"
    assert next(open_corpus("./clinical-starter").passages()).id == "mine"
    assert next(open_corpus("here").passages()).id == "x"


def test_corpora_are_found_from_a_checkout_that_is_only_on_the_path(tmp_path):
    code = (
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()];"
        "from factcheck.source_tree import data_folder; root = data_folder('corpora');"
        "assert root is not None and (root / '__init__.py').is_file(), root; print(root)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", list_corpora())
def test_shipped_corpora_are_sound(name):
    found = verify(name)
    assert found.problems == ()
    manifest = read_manifest(name)
    assert manifest is not None
    assert manifest.name == name
    assert manifest.licence
    assert manifest.reviewed_by_clinician is False


def test_separators_inside_strings_do_not_end_lines(tmp_path):
    text = "one\u2028two\u0085three\x0bfour"
    corpus = open_corpus(write(tmp_path / "c", line(text=text) + b"\r\n" + line(_id="b")))
    assert [p.text for p in corpus.passages()] == [text, ROW["text"]]


def test_a_byte_order_mark_is_passed_over_and_still_hashed(tmp_path):
    data = b"\xef\xbb\xbf" + line()
    assert open_corpus(write(tmp_path / "c", data)).sha256 == hashlib.sha256(data).hexdigest()


def test_other_keys_of_a_row_join_the_metadata():
    passage = passage_from_row(
        {"_id": "a", "text": "x", "url": "https://e.org", "lang": "en", "metadata": {"lang": "de"}}
    )
    assert passage.url == "https://e.org"
    assert passage.metadata["lang"] == "de"


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
PASSAGES = st.builds(
    CorpusPassage,
    id=TEXT.filter(bool),
    doc_id=TEXT.filter(bool),
    title=TEXT,
    text=TEXT.filter(str.strip),
    source=TEXT,
    url=TEXT,
    published=TEXT,
    metadata=st.dictionaries(st.sampled_from(["kind", "organisation", "note"]), JSON, max_size=3),
)


@given(st.lists(PASSAGES, max_size=4, unique_by=lambda p: p.id))
def test_rows_round_trip(passages):
    data = dump_rows(passages)
    read = list(read_rows(data))
    assert [p.model_copy(update={"metadata": {}}) for p in read] == [
        p.model_copy(update={"metadata": {}}) for p in passages
    ]
    assert dump_rows(read) == data
    for passage in read:
        assert passage_from_row(row_from_passage(passage)) == passage


@given(st.binary(max_size=80))
def test_reading_any_bytes_gives_passages_or_problems(data):
    for item in read_rows(data):
        assert str(item)


def test_a_corpus_in_memory():
    passage = CorpusPassage(id="a", doc_id="a", text="x")
    corpus = corpus_of([passage], name="mem")
    assert (corpus.name, len(corpus)) == ("mem", 1)
    assert corpus.sha256 == hashlib.sha256(dump_rows([passage])).hexdigest()
    assert len(corpus_of([], name="none")) == 0
    with pytest.raises(CorpusError, match="used 2 times"):
        corpus_of([passage, passage], name="mem")
    assert "mem" in repr(corpus)
