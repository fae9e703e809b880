"""The visible text of an HTML page."""

from __future__ import annotations

import re
from typing import Any

from factcheck.corpus.documents import Document, Heading, sections_between
from factcheck.errors import MissingExtraError

_HIDDEN = (
    "script, style, noscript, template, head, svg, math, iframe, object, canvas, nav, dialog, select, button, "
    "textarea, [hidden], [aria-hidden=true], [style*='display:none' i], [style*='display: none' i], "
    "[style*='visibility:hidden' i], [style*='visibility: hidden' i]"
)
_BLOCK_TAGS = (
    "address article aside blockquote body caption center dd details dir div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr html legend li main menu ol p pre section summary table tbody tfoot thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_CELLS = frozenset({"td", "th"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SPACE = " \t\r\n\f"
_SPACES = re.compile(f"[{_SPACE}]+")
_STRENGTH = {"": 0, " ": 1, "\t": 2, "\n": 3, "\n\n": 4}


def html_document(doc_id: str, html: str, name: str) -> Document:
    """Read the visible text of an HTML page: blocks apart by blank lines, cells by tabs, headings as sections.

    Scripts, styles, navigation, form controls and what is hidden by attribute or inline style are left out. The title
    is that of the page, or else its first ``h1``, or else ``name``. Offsets count in the visible text. Raises
    ValueError for a page that cannot be parsed, MissingExtraError without selectolax.
    """
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise MissingExtraError("reading HTML", "selectolax", "local") from error
    try:
        page = LexborHTMLParser(html)
    except Exception as error:  # the parser has exceptions of several kinds, which differ between its releases
        raise ValueError(f"cannot be parsed as HTML: {error}") from error
    titled = page.css_first("head > title")
    title = _squeeze(titled.text()) if titled is not None else ""
    for node in page.css(_HIDDEN):
        node.decompose()
    text, headings = _visible(page.body)
    first = next((heading.name for heading in headings if heading.level == 1), "")
    return Document(doc_id, title or first or name, text, sections_between(text, 0, headings))


class _Text:
    """Gather text; between two pieces stands the strongest separator that was asked for since."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self._pending = ""

    def separate(self, separator: str) -> None:
        if _STRENGTH[separator] > _STRENGTH[self._pending]:
            self._pending = separator

    def add(self, text: str) -> None:
        separator = self._pending if self.pieces else ""
        self.pieces.append(separator + text)
        self.length += len(separator) + len(text)
        self._pending = ""

    def add_running(self, text: str) -> None:
        """Add text in which white space counts once, wherever it stands."""
        if text[:1] in _SPACE and text:
            self.separate(" ")
        if squeezed := _squeeze(text):
            self.add(squeezed)
            if text[-1] in _SPACE:
                self.separate(" ")


def _visible(body: Any) -> tuple[str, list[Heading]]:
    """Walk the tree without recursion, because pages nest deeper than the interpreter's stack."""
    out = _Text()
    headings: list[Heading] = []
    start = first = preformatted = 0
    stack = [(body, False)] if body is not None else []
    while stack:
        node, leaving = stack.pop()
        tag = node.tag
        if tag == "-text":
            (out.add if preformatted else out.add_running)(node.text() or "")
            continue
        if tag in _BLOCKS:
            out.separate("\n\n")
        elif tag in _CELLS:
            out.separate("\t")
        elif tag == "br":
            out.separate("\n")
        if tag == "pre":
            preformatted += -1 if leaving else 1
        if tag in _HEADINGS and not leaving:
            start, first = out.length, len(out.pieces)
        elif tag in _HEADINGS and (name := _squeeze("".join(out.pieces[first:]))):
            headings.append(Heading(start, int(tag[1]), name, out.length))
        if not leaving:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(_children(node))]
    return "".join(out.pieces), headings


def _children(node: Any) -> list[Any]:
    found = []
    child = node.child
    while child is not None:
        found.append(child)
        child = child.next
    return found


def _squeeze(text: str) -> str:
    return _SPACES.sub(" ", text).strip(_SPACE)
