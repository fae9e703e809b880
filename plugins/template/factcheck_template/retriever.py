"""A retriever over a folder of notes: plain text and Markdown, one passage a paragraph, ranked by shared rare terms."""

from __future__ import annotations

import hashlib
import math
import re
import threading
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from factcheck.errors import CorpusError
from factcheck.schema import Passage, Query

PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:[^\S\n]*\n[^\S\n]*\S(?:.*\S)?)*")
HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")


class Paragraph(NamedTuple):
    """Hold one paragraph: where it stands, under which heading, and how often it holds each term."""

    note: str
    number: int
    heading: str
    text: str
    counts: Counter[str]


class Index(NamedTuple):
    """Hold the paragraphs of a folder, the weight of each term, and the hash of what was read."""

    paragraphs: tuple[Paragraph, ...]
    weights: dict[str, float]
    sha256: str


class NotesRetriever:
    """Find the paragraphs of a folder of notes that share terms with the query.

    A paragraph scores, for each term it shares, the term's weight times tf / (tf + 1). The weight is log(1 + N / n)
    for a term in n of N paragraphs: positive however common the term, so that small folders work. Ties go to the note
    that comes first by name. The folder is read once, at the first query.
    """

    version = "1"

    class Settings(BaseModel):
        """Say where the notes are; files with another suffix and hidden ones are passed over."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        folder: Path = Path("notes")
        suffixes: tuple[str, ...] = Field(default=(".md", ".txt"), min_length=1)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._index: Index | None = None

    @property
    def corpus_sha256(self) -> tuple[str, ...]:
        """Return the hash of the notes, by which factcheck knows whether a result can be used again."""
        return (self._read().sha256,)

    def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return the best ``k`` paragraphs; raises CorpusError if the folder cannot be used."""
        index = self._read()
        wanted = set(terms(query.text))
        scored = []
        for place, paragraph in enumerate(index.paragraphs):
            shared = wanted & paragraph.counts.keys()
            score = sum(index.weights[t] * paragraph.counts[t] / (paragraph.counts[t] + 1) for t in sorted(shared))
            if shared:
                scored.append((-score, place, paragraph))
        return [
            Passage(
                id=f"{paragraph.note}#{paragraph.number}",
                doc_id=paragraph.note,
                corpus=self.settings.folder.name,
                title=paragraph.heading,
                text=paragraph.text,
                source=paragraph.note,
                score=-negative,
                rank=rank,
            )
            for rank, (negative, _, paragraph) in enumerate(sorted(scored)[:k], start=1)
        ]

    def _read(self) -> Index:
        with self._lock:
            if self._index is None:
                self._index = read_folder(self.settings.folder, self.settings.suffixes)
            return self._index


def read_folder(folder: Path, suffixes: tuple[str, ...]) -> Index:
    """Read the notes below a folder; raises CorpusError if there are none or one is not UTF-8."""
    if not folder.is_dir():
        raise CorpusError(f"there is no folder of notes at '{folder}'.", hint="Set folder in [plugins.template].")
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    chosen = [n for n in sorted(names) if names[n].suffix in suffixes and not re.search(r"(^|/)\.", n)]
    if not chosen:
        raise CorpusError(f"the folder '{folder}' holds no notes ({', '.join(suffixes)}).", hint="Add notes to it.")
    paragraphs: list[Paragraph] = []
    sha256 = hashlib.sha256()
    for name in chosen:
        try:
            content = names[name].read_bytes()
            paragraphs += split_note(name, content.decode("utf-8"))
        except OSError as exc:
            raise CorpusError(f"the note '{name}' cannot be read: {exc.strerror}.", hint="Check the file.") from exc
        except UnicodeDecodeError as exc:
            raise CorpusError(f"the note '{name}' is not UTF-8.", hint="Save it as UTF-8.") from exc
        sha256.update(f"{name}\0{len(content)}\0".encode())
        sha256.update(content)
    found = Counter(term for paragraph in paragraphs for term in paragraph.counts)
    weights = {term: math.log(1 + len(paragraphs) / n) for term, n in found.items()}
    return Index(tuple(paragraphs), weights, sha256.hexdigest())


def split_note(name: str, text: str) -> list[Paragraph]:
    """Split a note at blank lines; a heading counts for the paragraphs below it and is none itself."""
    heading = ""
    paragraphs = []
    for number, match in enumerate(PARAGRAPH.finditer(text), start=1):
        if title := HEADING.fullmatch(match[0]):
            heading = title[1]
            continue
        paragraphs.append(Paragraph(name, number, heading, match[0], Counter(terms(f"{heading} {match[0]}"))))
    return paragraphs


def terms(text: str) -> list[str]:
    """Return the words and numbers of a text, folded so that both code points of the micro sign are one."""
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())
