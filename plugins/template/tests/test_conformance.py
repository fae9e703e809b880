"""The plugin is listed, and its retriever keeps the contract."""

import pytest
from factcheck_template.retriever import NotesRetriever

from factcheck import Plugins
from factcheck.testing import RetrieverSuite, make_query


def test_the_plugin_is_listed():
    (record,) = [record for record in Plugins().records if record.name == "template"]
    assert (record.status, record.provides) == ("loaded", {"retrievers": ("template",)}), record.error


class TestNotes(RetrieverSuite):
    capabilities = ("deterministic", "indexable", "lexical")
    factory = NotesRetriever
    faults = ("error", "malformed")

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path / "notes"
        own = tmp_path / "own"
        own.mkdir()
        (own / "note.md").write_text("Warfarin thins the blood.", encoding="utf-8")
        self.settings = {"folder": str(own)}

    def make(self, documents):
        """Write each document to a file named after its id, which is then the id of the passage's document."""
        self.folder.mkdir(exist_ok=True)
        for document in documents:
            (self.folder / document.id).write_text(document.text, encoding="utf-8")
        return NotesRetriever(NotesRetriever.Settings(folder=self.folder, suffixes=("",)))

    def make_faulty(self, fault):
        if fault == "malformed":
            self.folder.mkdir()
            (self.folder / "note.txt").write_bytes(b"half a character: \xc3")
        return NotesRetriever(NotesRetriever.Settings(folder=self.folder))


def test_passages_are_paragraphs_under_their_headings(tmp_path):
    note = "# Warfarin\n\nThins the blood.\nMeasure clotting.\n\n## Diet ##\n\n  Keep greens steady.  \n"
    (tmp_path / "drugs").mkdir()
    (tmp_path / "drugs" / "warfarin.md").write_text(note, encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("greens", encoding="utf-8")
    (tmp_path / "other.pdf").write_text("greens", encoding="utf-8")
    retriever = NotesRetriever(NotesRetriever.Settings(folder=tmp_path))
    found = retriever.retrieve(make_query("warfarin: greens, steady"), 5)
    assert [(p.id, p.title, p.text) for p in found] == [
        ("drugs/warfarin.md#4", "Diet", "Keep greens steady."),
        ("drugs/warfarin.md#2", "Warfarin", "Thins the blood.\nMeasure clotting."),
    ]
    assert all(passage.text in note for passage in found)


def test_a_changed_note_changes_the_hash(tmp_path):
    (tmp_path / "a.txt").write_text("one", encoding="utf-8")
    first = NotesRetriever(NotesRetriever.Settings(folder=tmp_path)).corpus_sha256
    (tmp_path / "a.txt").write_text("two", encoding="utf-8")
    assert NotesRetriever(NotesRetriever.Settings(folder=tmp_path)).corpus_sha256 != first
