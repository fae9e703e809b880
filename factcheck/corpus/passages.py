"""The rows of ``corpus.jsonl``: one passage a line, in BEIR form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import Field, ValidationError, field_validator

from factcheck.schema import Model


class CorpusPassage(Model):
    """Hold one passage of a corpus; ``text`` is verbatim from document ``doc_id``.

    ``source``, ``url`` and ``published`` are taken from the metadata, which keeps them too; ``published`` is the
    metadata's ``published`` or else its ``year``, and ``doc_id`` its ``doc_id`` or else the passage's own id.
    """

    id: str = Field(min_length=1)
    doc_id: str = Field(min_length=1)
    title: str = ""
    text: str
    source: str = ""
    url: str = ""
    published: str = ""
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @field_validator("text")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("the text is blank")
        return text


class Problem(NamedTuple):
    """Hold what is wrong with one row; ``line`` counts from 1."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def passage_from_row(row: Mapping[str, Any]) -> CorpusPassage:
    """Read a row ``{"_id", "title", "text", "metadata"}``; other keys join the metadata.

    Raises ValueError with a reason on one line.
    """
    known = {"_id", "title", "text", "metadata"}
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ValueError(f"'metadata' is {_kind(metadata)}, not an object")
    metadata = {**{key: row[key] for key in row if key not in known}, **(metadata or {})}
    for key, required in (("_id", True), ("text", True), ("title", False)):
        value = row.get(key)
        if value is None and required:
            raise ValueError(f"'{key}' is missing")
        if value is not None and not isinstance(value, str):
            raise ValueError(f"'{key}' is {_kind(value)}, not a string")
    try:
        return CorpusPassage(
            id=row["_id"],
            doc_id=_text(metadata.get("doc_id")) or row["_id"],
            title=row.get("title") or "",
            text=row["text"],
            source=_text(metadata.get("source")),
            url=_text(metadata.get("url")),
            published=_text(metadata.get("published")) or _text(metadata.get("year")),
            metadata=metadata,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"'{where}': {first['msg']}") from None


def row_from_passage(passage: CorpusPassage) -> dict[str, Any]:
    """Return the row that ``passage_from_row`` reads as ``passage``."""
    metadata = dict(passage.metadata)
    for key, value in (("source", passage.source), ("url", passage.url), ("published", passage.published)):
        if value and not metadata.get(key) and not (key == "published" and metadata.get("year")):
            metadata[key] = value
    if passage.doc_id != passage.id:
        metadata["doc_id"] = passage.doc_id
    return {"_id": passage.id, "title": passage.title, "text": passage.text, "metadata": metadata}


def dump_rows(passages: Iterable[CorpusPassage]) -> bytes:
    """Return the bytes of ``corpus.jsonl``: equal passages give equal bytes."""
    rows = (json.dumps(row_from_passage(p), ensure_ascii=False) for p in passages)
    return "".join(f"{row}\n" for row in rows).encode("utf-8")


def read_rows(data: bytes) -> Iterator[CorpusPassage | Problem]:
    """Yield a passage or a problem for each line of ``corpus.jsonl``; blank lines are passed over."""
    seen: dict[str, int] = {}
    # Split at line feeds only: a JSON string may hold the other characters at which text is commonly split.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            passage = passage_from_row(parse_object(line))
        except ValueError as error:
            yield Problem(number, str(error))
            continue
        if first := seen.get(passage.id):
            yield Problem(number, f"id '{passage.id}' repeats line {first}")
            continue
        seen[passage.id] = number
        yield passage


def parse_object(line: bytes) -> dict[str, Any]:
    """Parse one line of JSONL; raises ValueError with a reason on one line."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"invalid UTF-8 at byte {error.start + 1} of the line") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not usable: nested too deeply") from None
    if b"\\u" in line:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair stands alone, which is no character") from None
    if not isinstance(value, dict):
        raise ValueError(f"{_kind(value)}, not an object")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"not JSON: {name} is no number")


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _kind(value: Any) -> str:
    names = {list: "an array", dict: "an object", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
