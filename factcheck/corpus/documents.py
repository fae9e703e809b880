"""Documents as a corpus is built from: their text, and the sections with headings into which it falls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_TITLE_LIMIT = 120
_HEADING = re.compile(r"[ ]{0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"[ ]{0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_`]+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|$)")


class Heading(NamedTuple):
    """Hold a heading that stands at ``text[start:end]``; level 1 is the outermost."""

    start: int
    level: int
    name: str
    end: int


@dataclass(frozen=True)
class Section:
    """Hold a stretch ``text[start:end]`` of a document and the headings above it, outermost first.

    The last of these headings begins at ``head``; without a heading of its own, ``head`` is ``start``.
    """

    headings: tuple[str, ...]
    start: int
    end: int
    head: int


@dataclass(frozen=True)
class Document:
    """Hold a document, of which passages are slices; ``row_id`` is the id of one that was a row and not a file."""

    doc_id: str
    title: str
    text: str
    sections: tuple[Section, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    row_id: str | None = None


def plain_document(doc_id: str, text: str, name: str) -> Document:
    """Read plain text; a short first line without a full stop, with text below it, is the title."""
    first = next((line for line in _LINE.finditer(text) if line[0].strip()), None)
    if first is None:
        return Document(doc_id, name, text, ())
    title = first[0].strip()
    if len(title) <= _TITLE_LIMIT and title[-1] not in ".!?;,:" and text[first.end() :].strip():
        return Document(doc_id, title, text, (Section((), first.end(), len(text), first.end()),))
    return Document(doc_id, name, text, (Section((), 0, len(text), 0),))


def markdown_document(doc_id: str, text: str, name: str) -> Document:
    """Read Markdown; headings of both forms make sections, except in code fences; front matter is passed over.

    The title is the front matter's, or the first heading if it is of level one, or else ``name``.
    """
    start, title = 0, ""
    if front := _FRONT_MATTER.match(text):
        start = front.end()
        if named := _FRONT_TITLE.search(front[1] or ""):
            title = named[1].strip("\"'")
    headings = _markdown_headings(text, start)
    if not title and headings and headings[0].level == 1:
        title = headings[0].name
    return Document(doc_id, title or name, text, sections_between(text, start, headings))


def sections_between(text: str, start: int, headings: Sequence[Heading]) -> tuple[Section, ...]:
    """Return the sections of ``text[start:]`` that headings divide; those without text are left out."""
    sections = []
    path: list[Heading] = []
    ends = [*(heading.start for heading in headings), len(text)]
    if text[start : ends[0]].strip():
        sections.append(Section((), start, ends[0], start))
    for heading, end in zip(headings, ends[1:], strict=True):
        path = [above for above in path if above.level < heading.level] + [heading]
        if text[heading.end : end].strip():
            sections.append(Section(tuple(above.name for above in path), heading.end, end, heading.start))
    return tuple(sections)


def passage_title(document: Document, section: Section) -> str:
    """Return the document's title and the headings of the section, without repetition."""
    return ": ".join(dict.fromkeys(name for name in (document.title, *section.headings) if name))


def merge_short(text: str, sections: Sequence[Section], min_words: int, max_words: int) -> list[Section]:
    """Join neighbours of which one is short, as far as they fit together; their own headings then stand in the text."""
    merged: list[Section] = []
    for section in sections:
        if merged:
            before = merged[-1]
            shared = _shared(before.headings, section.headings)
            start = before.start if shared == before.headings else before.head
            both = Section(shared, start, section.end, before.head)
            sizes = [len(text[part.start : part.end].split()) for part in (before, section, both)]
            if min(sizes[:2]) < min_words and sizes[2] <= max_words:
                merged[-1] = both
                continue
        merged.append(section)
    return merged


def _shared(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(name for name, _ in pairs)


def _markdown_headings(text: str, start: int) -> list[Heading]:
    found: list[Heading] = []
    fence = ""
    # The line before, if it is a paragraph of one line so far: only that can be underlined to make a heading.
    above: re.Match[str] | None = None
    after_blank = True
    for line in _LINE.finditer(text, start):
        body = line[0].rstrip("\r\n")
        mark = _FENCE.match(body)
        paragraph = None
        if fence:
            if mark and mark[1].startswith(fence) and not body.strip(" \t`~"):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _HEADING.match(body):
            found.append(Heading(line.start(), len(heading[1]), _plain(heading[2]), line.end()))
        elif above is not None and (underline := _UNDERLINE.match(body)):
            level = 1 if underline[1][0] == "=" else 2
            found.append(Heading(above.start(), level, _plain(above[0]), line.end()))
        elif body.strip() and after_blank and not body.lstrip().startswith(("|", "-", "*", "+", ">")):
            paragraph = line
        above = paragraph
        after_blank = not body.strip() or (bool(found) and found[-1].end == line.end())
        if line.end() == len(text):
            break
    return found


def _plain(heading: str) -> str:
    return _MARKUP.sub(r"\1", heading).strip()
