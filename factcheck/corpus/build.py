"""Build a corpus from a folder of documents."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from factcheck.corpus.chunking import MAX_WORDS, MIN_WORDS, chunk_spans
from factcheck.corpus.documents import Document, Section, markdown_document, merge_short, passage_title, plain_document
from factcheck.corpus.html import html_document
from factcheck.corpus.manifest import CARD_FILE, CORPUS_FILE, MANIFEST_FILE, CorpusManifest, sha256_of
from factcheck.corpus.passages import CorpusPassage, dump_rows, parse_object, passage_from_row
from factcheck.errors import ConfigError, CorpusError, OutputError

_READERS = {
    ".md": markdown_document,
    ".markdown": markdown_document,
    ".txt": plain_document,
    ".text": plain_document,
    ".html": html_document,
    ".htm": html_document,
}
_ROWS = ".jsonl"
_LISTED = 5
_DATE = re.compile(r"\d{4}(?:-\d\d){0,2}")


@dataclass(frozen=True)
class BuildResult:
    """Hold what ``build_corpus`` did; paths are relative to the folder of documents, with forward slashes."""

    out: Path
    manifest: CorpusManifest
    documents: int
    empty: tuple[str, ...]
    left_out: tuple[str, ...]


def build_corpus(
    documents: Path,
    out: Path,
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    licence: str = "",
    source: str = "",
    date: str = "",
    min_words: int = MIN_WORDS,
    max_words: int = MAX_WORDS,
    force: bool = False,
) -> BuildResult:
    """Build the corpus ``out`` from the JSONL, Markdown, text and HTML files below the folder ``documents``.

    Equal documents and arguments give equal bytes. ``name`` is by default that of the folder ``out``; ``source`` is
    written into passages that name none, by default the path of the document; ``date`` is that of the contents and left
    empty if not given. ``out`` appears only when it is complete; a corpus in its place is replaced only with ``force``.
    Raises CorpusError for documents that cannot be used, each named, OutputError for ``out``, ConfigError for the rest.
    """
    if not 1 <= min_words <= max_words:
        raise ConfigError(
            f"passages of {min_words} to {max_words} words cannot be made.", hint="Give 1 <= minimum <= maximum."
        )
    if date and not _DATE.fullmatch(date):
        raise ConfigError(f"the date '{date}' is not understood.", hint="Write it as 2024, 2024-05 or 2024-05-31.")
    documents, out = Path(documents), Path(out)
    _check_out(documents, out, force)
    found, left_out = _find(documents, out)
    read = _read(documents, found)
    passages = [p for document in read for p in _passages(document, source, min_words, max_words)]
    _check_ids(passages)
    if not passages:
        raise CorpusError(
            f"no text was found below '{documents}'.", hint=f"Files that are read: {', '.join([*_READERS, _ROWS])}"
        )
    rows = dump_rows(passages)
    used = {passage.doc_id for passage in passages}
    manifest = CorpusManifest.model_validate(
        {
            "name": name or out.resolve().name,
            "title": title,
            "description": description,
            "licence": licence,
            "sources": [source] if source else [],
            "date": date,
            "passages": len(passages),
            "sha256": sha256_of(rows),
            "documents": len(used),
            "passage_words": [min_words, max_words],
        }
    )
    files = {CORPUS_FILE: rows, MANIFEST_FILE: manifest.to_json().encode(), CARD_FILE: _card(manifest).encode()}
    _write(out, files)
    empty = tuple(document.doc_id for document in read if document.doc_id not in used)
    return BuildResult(out, manifest, len(used), empty, tuple(left_out))


def _check_out(documents: Path, out: Path, force: bool) -> None:
    if not documents.is_dir():
        what = "is a file" if documents.is_file() else "does not exist"
        raise CorpusError(
            f"the folder of documents '{documents}' {what}.", hint="Name a folder with JSONL, Markdown, text or HTML."
        )
    if documents.resolve() == out.resolve() or out.resolve() in documents.resolve().parents:
        raise OutputError(
            f"'{out}' would take the place of the documents in '{documents}'.", hint="Choose another output folder."
        )
    if out.is_dir():
        present = sorted(entry.name for entry in out.iterdir())
        strange = [entry for entry in present if entry not in (CORPUS_FILE, MANIFEST_FILE, CARD_FILE)]
        if strange:
            raise OutputError(
                f"'{out}' holds files that are no corpus: {_some(strange)}.", hint="Choose another output folder."
            )
        if present and not force:
            raise OutputError(
                f"the corpus '{out}' exists.", hint="Give --force to replace it, or choose another output folder."
            )
    elif out.exists():
        raise OutputError(f"'{out}' exists and is no folder.", hint="Choose another output folder.")


def _find(documents: Path, out: Path) -> tuple[list[str], list[str]]:
    """Return the files to read and those left out, as sorted relative paths, without hidden ones and ``out`` itself."""

    def fail(error: OSError) -> None:
        raise CorpusError(
            f"'{error.filename}' cannot be read: {error.strerror}.", hint="Check its permissions."
        ) from error

    found: list[str] = []
    left_out: list[str] = []
    for folder, folders, files in os.walk(documents, onerror=fail):
        here = Path(folder)
        folders[:] = [n for n in folders if not n.startswith(".") and (here / n).resolve() != out.resolve()]
        for name in files:
            if name.startswith("."):
                continue
            # A folder that already is a corpus also holds queries and a card, which are no documents.
            beside = CORPUS_FILE in files and name != CORPUS_FILE and (name.endswith(_ROWS) or name == CARD_FILE)
            known = Path(name).suffix.lower() in (*_READERS, _ROWS)
            (found if known and not beside else left_out).append((here / name).relative_to(documents).as_posix())
    return sorted(found), sorted(left_out)


def _read(documents: Path, paths: Sequence[str]) -> list[Document]:
    """Read every file; raises CorpusError that names each one that cannot be used."""
    read: list[Document] = []
    problems: list[str] = []
    for path in paths:
        try:
            data = (documents / path).read_bytes()
            if path.lower().endswith(_ROWS):
                rows = list(_row_documents(path, data))
                read += [row for row in rows if isinstance(row, Document)]
                problems += [row for row in rows if isinstance(row, str)]
            else:
                text = data.decode("utf-8-sig")
                reader = _READERS[Path(path).suffix.lower()]
                read.append(reader(path, text, Path(path).stem))
        except UnicodeDecodeError as error:
            problems.append(f"{path}: invalid UTF-8 at byte {error.start + 1}")
        except OSError as error:
            problems.append(f"{path}: {error.strerror or type(error).__name__}")
        except ValueError as error:
            problems.append(f"{path}: {error}")
    if problems:
        raise CorpusError(
            f"{len(problems)} of the documents in '{documents}' cannot be used: {_some(problems, '; ')}.",
            hint="Mend or remove them; nothing was written.",
        )
    return read


def _row_documents(path: str, data: bytes) -> Iterator[Document | str]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_object(line)
            own = row.pop("id", None)
            row.setdefault("_id", f"{path}:{number}" if own is None else own)
            if isinstance(row["_id"], int) and not isinstance(row["_id"], bool):
                row["_id"] = str(row["_id"])
            passage = passage_from_row(row)
        except ValueError as error:
            yield f"{path}, line {number}: {error}"
            continue
        section = Section((), 0, len(passage.text), 0)
        yield Document(passage.doc_id, passage.title, passage.text, (section,), passage.metadata, row_id=passage.id)


def _passages(document: Document, source: str, min_words: int, max_words: int) -> Iterator[CorpusPassage]:
    metadata = {"source": source or document.doc_id, **document.metadata, "doc_id": document.doc_id}
    if document.row_id is not None and len(document.text.split()) <= max_words:
        row = {"_id": document.row_id, "title": document.title, "text": document.text, "metadata": metadata}
        yield passage_from_row(row)
        return
    base = document.doc_id if document.row_id is None else document.row_id
    number = 0
    for section in merge_short(document.text, document.sections, min_words, max_words):
        spans = chunk_spans(document.text, section.start, section.end, min_words=min_words, max_words=max_words)
        for start, end in spans:
            number += 1
            yield passage_from_row(
                {
                    "_id": f"{base}#{number}",
                    "title": passage_title(document, section),
                    "text": document.text[start:end],
                    "metadata": {**metadata, "start": start, "end": end},
                }
            )


def _check_ids(passages: Sequence[CorpusPassage]) -> None:
    seen: dict[str, str] = {}
    for passage in passages:
        if passage.id in seen:
            raise CorpusError(
                f"the id '{passage.id}' is used twice, in document '{seen[passage.id]}' and in '{passage.doc_id}'.",
                hint="Give every row an id of its own; nothing was written.",
            )
        seen[passage.id] = passage.doc_id


def _card(manifest: CorpusManifest) -> str:
    lines = [f"# {manifest.title or manifest.name}", ""]
    if manifest.description:
        lines += [manifest.description, ""]
    documents = (manifest.model_extra or {}).get("documents")
    facts = {
        "passages": f"{manifest.passages}, from {documents} documents",
        "licence": manifest.licence or "not stated",
        "source": "; ".join(map(str, manifest.sources)) or "stated with each passage",
        "date": manifest.date or "not stated",
        "SHA-256 of corpus.jsonl": manifest.sha256,
    }
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    lines += ["", "No clinician has reviewed this corpus. It serves evaluation and is no medical advice.", ""]
    return "\n".join(lines)


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    """Write beside the place of ``out``, then move there, so that a reader sees the old corpus or the new one."""
    target = out.resolve()
    mark = uuid.uuid4().hex
    new, old = (target.with_name(f".{target.name}.{mark}.{kind}") for kind in ("new", "old"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir()
        for name, data in files.items():
            (new / name).write_bytes(data)
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except BaseException:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(
            f"the corpus '{out}' cannot be written: {reason}.", hint="Check the path and its permissions."
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)


def _some(items: Sequence[str], separator: str = ", ") -> str:
    more = f"{separator}and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return separator.join(items[:_LISTED]) + more
