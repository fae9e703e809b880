"""Parse Markdown or plain text into blocks: headings, paragraphs, list items, table rows and code.

It reads what answers contain and not all of CommonMark: nested and numbered lists, block quotes, fences, pipe tables,
ATX and underlined headings, link definitions. One pass over the lines, linear in the length of the text. Everything
that is not a marker lies in some block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from factcheck.text.inline import Line

BlockKind = Literal["heading", "paragraph", "item", "header", "row", "code"]


class Block(NamedTuple):
    """Hold one block.

    ``lines`` are its contents without markers, indentation and quotation marks, in order; for ``header`` and ``row``
    one entry a cell. ``level`` is 1 to 6 for headings; otherwise the depth of the list item that holds the block, 0
    outside lists, an item counting itself.
    """

    kind: BlockKind
    lines: tuple[Line, ...]
    level: int = 0

    @property
    def span(self) -> tuple[int, int]:
        """Return the span from the first to the last content."""
        return self.lines[0].start, self.lines[-1].end


class Document(NamedTuple):
    """Hold the blocks of a text in order, and the lower-case names of its link definitions."""

    blocks: list[Block]
    references: frozenset[str]


class _Row(NamedTuple):
    """One line of the source without its quotation marks, indentation and trailing white space."""

    quote: int
    indent: int
    start: int
    end: int
    hard: bool

    @property
    def blank(self) -> bool:
        return self.start >= self.end


_NEWLINE = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_QUOTE = re.compile(r"[ \t]{0,3}(?:>[ \t]?)+")
_COMPARED = re.compile(r"[ \t]{0,3}>[ \t]?\d")
_HEADING = re.compile(r"(#{1,6})[ \t]+")
_CLOSING_HASHES = re.compile(r"[ \t]+#+$")
# Anything else behind a fence is content.
_LANGUAGE = re.compile(r"\s*(?:te?xt|plain\w*|markdown|md|json|ya?ml|html|xml|csv|python|bash|sh|console|mermaid)?\s*$")
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*)$")
_BULLET = re.compile(r"(?:[-*+–—·▪◦●○‣⁃][ \t\u00a0]+|•[ \t\u00a0]*|-(?=[A-Z]))(?:\[[ xX]\][ \t]+)?(?=\S)")
_NUMBER = re.compile(r"(?:\(?(\d{1,3})[.)](?:[ \t\u00a0]+(?=\S)|(?=[^\W\d_]))|\(?([a-zA-Z])\)[ \t\u00a0]+(?=\S))")
_DEFINITION = re.compile(r"\[([^\[\]]{1,200})\]:[ \t]*<?(?:https?://|www\.|mailto:|/|#)\S+(?:[ \t]+[\"'(].*)?$")
# A line that is bold as a whole, or begins with a bold lead-in, starts a paragraph of its own.
_STRONG_LINE = re.compile(r"(\*\*|__)(?=\S)[^*_\n]{1,118}\1[ \t]*[:：]?$")
_STRONG_LEAD = re.compile(r"(\*\*|__)(?=\S)[^*_\n]{1,80}(?:[:：.]\1|\1[ \t]?[:：–—-])[ \t]*\S")
_PIPE = re.compile(r"(?<!\\)\|")
_LABEL_END = (":", "：")


def parse_blocks(text: str) -> Document:
    """Return the blocks of ``text``; line ends may be of any kind, and malformed markup is read as text."""
    parser = _Parser(text)
    parser.run()
    return Document(parser.blocks, frozenset(parser.references))


def _rows(text: str) -> Iterator[_Row]:
    start = 0
    quoted_before = False
    for match in (*_NEWLINE.finditer(text), None):
        end = match.start() if match else len(text)
        quote = _QUOTE.match(text, start, end)
        if quote and not quoted_before and _COMPARED.match(text, start, end):
            following = match is not None and _QUOTE.match(text, match.end()) and not _COMPARED.match(text, match.end())
            quote = quote if following else None  # "> 65 years: 2.5 mg" compares
        quoted_before = quote is not None
        yield _row(text, quote.end() if quote else start, end, text.count(">", start, quote.end()) if quote else 0)
        if match:
            start = match.end()


def _row(text: str, start: int, end: int, quote: int) -> _Row:
    stop = end
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    hard = text.startswith("  ", stop) and stop + 2 <= end
    if stop > start and text[stop - 1] == "\\" and not text.endswith("\\\\", start, stop):
        stop, hard = stop - 1, True
    indent = 0
    while start < stop and (text[start].isspace() or text[start] in "\ufeff\u200b"):
        indent += 4 - indent % 4 if text[start] == "\t" else 1
        start += 1
    return _Row(quote, indent, start, stop, hard)


class _Parser:
    """Keep the open paragraph, the stack of list indentations, and the open fence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[Block] = []
        self.references: set[str] = set()
        self.open: list[Line] = []
        self.open_kind: BlockKind = "paragraph"
        self.lists: list[int] = []
        self.fence = ""
        self.table = False
        self.after_blank = True
        self.after_strong = False
        self.quote = 0

    def run(self) -> None:
        rows = list(_rows(self.text))
        for row, following in zip(rows, (*rows[1:], None), strict=True):
            self._take(row, following)
        self._flush()

    def _take(self, row: _Row, following: _Row | None) -> None:
        if self.fence:
            self._fenced(row)
        elif row.blank:
            self._flush()
            self.table, self.after_blank = False, True
        else:
            if row.quote != self.quote:
                self._flush()
                self.table = False
            self.quote = row.quote
            self._content(row, following)
            self.after_blank = False

    def _content(self, row: _Row, following: _Row | None) -> None:
        content = self.text[row.start : row.end] if row.end - row.start <= 4000 else ""
        if self.after_blank:
            while self.lists and row.indent < self.lists[-1] + 2:
                self.lists.pop()
        if fence := _FENCE.match(self.text, row.start, row.end):
            self._flush()
            self.fence = fence.group(1)
            start, end = fence.span(2)
            if not _LANGUAGE.match(self.text, start, end):
                self._add("code", self._trim(start, end))
        elif self.table and "|" in content:
            if not _is_delimiter(self.text, row):
                self._cells("row", row)
        elif "|" in content and following is not None and _is_delimiter(self.text, following):
            self._flush()
            self._cells("header", row)
            self.table = True
        elif _is_rule(content):
            self._rule(content)
        elif heading := _HEADING.match(self.text, row.start, row.end):
            self._heading(row, heading)
        elif definition := _DEFINITION.match(content):
            self._flush()
            self.references.add(definition.group(1).strip().lower())
        elif content.startswith("|") and content.endswith("|") and len(content) > 2:
            self._flush()
            self._cells("row", row)
        else:
            self.table = False
            self._text(row)

    def _fenced(self, row: _Row) -> None:
        content = self.text[row.start : row.end] if row.end - row.start <= 100 else ""
        if content.startswith(self.fence) and not content.strip(self.fence[0]):
            self.fence = ""
            self.after_blank = True
        elif not row.blank:
            self._add("code", Line(row.start, row.end))

    def _rule(self, content: str) -> None:
        """Take a line of rule characters: the underline of a heading, or nothing."""
        if content[0] in "=-" and " " not in content and self.open_kind == "paragraph" and len(self.open) == 1:
            line = self.open[0]
            if line.end - line.start <= 100 and self.text[line.end - 1] not in ".!?:;,":
                self.open = []
                self.lists.clear()
                self.blocks.append(Block("heading", (line,), 1 if content[0] == "=" else 2))
        self._flush()

    def _heading(self, row: _Row, match: re.Match[str]) -> None:
        self._flush()
        self.lists.clear()
        # The search is anchored near the end: hashes that close a heading are few.
        closing = _CLOSING_HASHES.search(self.text, max(match.end(), row.end - 20), row.end)
        end = closing.start() if closing else row.end
        if end > match.end():
            self.blocks.append(Block("heading", (Line(match.end(), end),), len(match.group(1))))

    def _cells(self, kind: BlockKind, row: _Row) -> None:
        start, end = row.start, row.end
        start += self.text.startswith("|", start)
        end -= self.text[end - 1] == "|" and end - 1 > start and self.text[end - 2] != "\\"
        edges = [match.start() for match in _PIPE.finditer(self.text, start, end)]
        cells = tuple(
            self._trim(left, right)
            for left, right in zip((start, *(edge + 1 for edge in edges)), (*edges, end), strict=True)
        )
        self._add(kind, *cells)

    def _trim(self, start: int, end: int) -> Line:
        while start < end and self.text[end - 1].isspace():
            end -= 1
        while start < end and self.text[start].isspace():
            start += 1
        return Line(start, end)

    def _text(self, row: _Row) -> None:
        marker = self._marker(row)
        if marker is not None:
            self._flush()
            self.after_strong = False
            # Siblings may be off by one column; two more columns nest.
            while self.lists and self.lists[-1] > row.indent - 2:
                self.lists.pop()
            self.lists.append(row.indent)
            self.open_kind = "item"
            self.open = [Line(marker, row.end, row.hard)]
            return
        strong = _STRONG_LINE.match(self.text, row.start, row.end)
        if self.open and (strong or self.after_strong or _STRONG_LEAD.match(self.text, row.start, row.end)):
            self._flush()
        self.after_strong = strong is not None
        if self.open:
            self.open.append(Line(row.start, row.end, row.hard))
            return
        self.open_kind = "paragraph"
        self.open = [Line(row.start, row.end, row.hard)]

    def _marker(self, row: _Row) -> int | None:
        """Return where the content starts if the line begins with a list marker."""
        bullet = _BULLET.match(self.text, row.start, row.end)
        number = None if bullet else _NUMBER.match(self.text, row.start, row.end)
        last = self.text[self.open[-1].end - 1] if self.open else ""
        inside = bool(self.open) and not self.lists and last not in _LABEL_END
        if bullet:
            # "5\n- 10 mg" is a range that was wrapped at its hyphen.
            wrapped = inside and last.isdigit() and self.text[bullet.end()].isdigit()
            return None if wrapped else bullet.end()
        if number is None:
            return None
        # Inside a paragraph "65. Reduce" is the end of a wrapped sentence; only a first number opens a list there.
        first = number.group(1) == "1" or (number.group(2) or "").lower() == "a"
        return None if inside and not first else number.end()

    def _flush(self) -> None:
        if self.open:
            self._add(self.open_kind, *self.open)
        self.open = []

    def _add(self, kind: BlockKind, *lines: Line) -> None:
        self.blocks.append(Block(kind, lines, len(self.lists)))


def _is_rule(content: str) -> bool:
    return len(content) >= 3 and content[0] in "-*_=" and not content.strip(content[0] + " \t")


def _is_delimiter(text: str, row: _Row) -> bool:
    """Tell whether a line is the row of dashes below the header of a table."""
    if row.blank or row.end - row.start > 4000:
        return False
    content = text[row.start : row.end]
    return "|" in content and "---" in content.replace(":", "") + "--" and not content.strip("|:- \t")
