"""Cut a text into pieces, each with the context it depends on: the walk over blocks that decomposition rests on.

Labels (headings, introductions of lists, lead-ins) open a scope; the pieces in it carry the label in their context. A
label that no piece carried becomes a piece itself, unless it is made of stock words and a piece lay in its scope.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from factcheck.schema import CONTEXT_LIMIT, ClaimKind
from factcheck.text import labels, subjects
from factcheck.text.blocks import Block, Document, parse_blocks
from factcheck.text.inline import Visible, render
from factcheck.text.kinds import classify
from factcheck.text.labels import has_words
from factcheck.text.scopes import Label, Subjects, in_scope, introduces
from factcheck.text.sentences import split_sentences

_LABEL_LIMIT = 160
_FRAGMENT_LIMIT = 60
_HEADER_LIMIT = 400
_ROW_LIMIT = 600
_SEPARATOR = "; "
# Of deeper nesting only the innermost introductions travel.
_DEPTH_LIMIT = 12

_INTRODUCES = re.compile(r"[:：][\"'”’)\]*_]*$")
_POINTS_AHEAD = re.compile(r"\s(?:following|below|these)\b[^.]{0,80}\.?$", re.IGNORECASE)
_MARKER = re.compile(r"\(?\d{1,3}[.)]\s+(?=\S)")
_EDGES = " \t\n\r\u2028\u2029\u00a0*_#:：.–—-"


class Piece(NamedTuple):
    """Hold one piece; ``own`` is its text without the header of its table."""

    span: tuple[int, int]
    text: str
    own: str
    context: str
    kind: ClaimKind


@dataclass(slots=True)
class _Table:
    """The header of the table that is open, and which of its cells some row has carried."""

    cells: list[str] = field(default_factory=list)
    visible: list[Visible] = field(default_factory=list)
    carried: set[int] = field(default_factory=set)


def cut(text: str, limit: int) -> tuple[list[Piece], list[str]]:
    """Return the pieces of ``text`` in order, none longer than ``limit`` code points, and the labels that travel."""
    document = parse_blocks(text)
    walk = _Walk(text, document, limit)
    walk.run()
    return sorted(walk.pieces), [label.text for label in walk.tracked_labels if label.carried]


class _Walk:
    def __init__(self, source: str, document: Document, limit: int) -> None:
        self.source, self.blocks, self.references = source, document.blocks, document.references
        self.limit = limit
        self.pieces: list[Piece] = []
        self.tracked_labels: list[Label] = []
        self.headings: list[Label] = []
        self.introductions: list[Label] = []
        self.table = _Table()
        self.subjects = Subjects()
        self.item_subjects: list[Subjects] = []

    def run(self) -> None:
        for index, block in enumerate(self.blocks):
            if block.kind != "row":
                self._end_table()
            self._leave(block, index)
            if block.kind == "heading":
                visible = self._render(block)
                self._heading(visible, block.level)
            elif block.kind == "header":
                self._header(block)
            elif block.kind == "row":
                self._row(block)
            else:
                following = self.blocks[index + 1] if index + 1 < len(self.blocks) else None
                self._prose(block, following, index)
        self._end_table()
        for label in self.tracked_labels:
            if not label.carried and not (label.stock and label.seen):
                self._emit(label.visible, label.start, label.end, "", classify(label.text))

    def _render(self, block: Block) -> Visible:
        return render(self.source, block.lines, references=self.references, literal=block.kind == "code")

    # Scopes

    def _leave(self, block: Block, index: int) -> None:
        """Close the scopes that do not hold ``block``."""
        level = 0 if block.kind == "heading" else block.level
        if block.kind == "paragraph" and not block.level and index and self.blocks[index - 1].level:
            # A list closes the section of a bold or bare line: what follows the list is rarely part of it.
            while self.headings and self.headings[-1].rank >= labels.STRONG_RANK:
                self.headings.pop()
        self.introductions = [
            label for label in self.introductions if block.kind != "heading" and in_scope(label, block, index)
        ]
        del self.item_subjects[max(0, level - (block.kind == "item")) :]
        if block.kind == "item":
            while len(self.item_subjects) < level:
                self.item_subjects.append(self._subject())

    def _subject(self) -> Subjects:
        return self.item_subjects[-1] if self.item_subjects else self.subjects

    def _set_subject(self, subject: Subjects) -> None:
        if self.item_subjects:
            self.item_subjects[-1] = subject
        else:
            self.subjects = subject

    def _label(self, visible: Visible, start: int, end: int) -> Label:
        text = _fold(_MARKER.sub("", visible.text[start:end].strip(_EDGES), count=1)).strip(_EDGES)
        label = Label(_shorten(text), visible, start, end)
        label.stock = labels.is_stock(text)
        label.needs = subjects.needs(label.text)
        label.kind = classify(label.text)
        return label

    def _heading(self, visible: Visible, rank: int) -> None:
        if not has_words(visible.text):
            return
        label = self._label(visible, 0, len(visible.text))
        label.rank = rank
        while self.headings and self.headings[-1].rank >= rank:
            self.headings.pop()
        self.introductions.clear()
        self.item_subjects.clear()
        if labels.states_something(label.text) or subjects.DOSE.search(label.text):
            self._emit(visible, 0, len(visible.text), self._context(label.text, "", label.kind), label.kind)
            label.tracked = False
        if labels.renames(label.text):
            self.subjects = Subjects()
        self.headings.append(label)
        self._track(label)

    def _introduce(self, label: Label, depth: int, index: int, *, in_item: bool) -> None:
        label.depth, label.index, label.in_item = depth, index, in_item
        self.introductions.append(label)
        del self.introductions[:-_DEPTH_LIMIT]
        self._track(label)

    def _track(self, label: Label) -> None:
        if label.tracked:
            self.tracked_labels.append(label)

    # Prose

    def _prose(self, block: Block, following: Block | None, index: int) -> None:
        visible = self._render(block)
        if not has_words(visible.text):
            return
        in_item = block.kind == "item"
        followed = following is not None and introduces(block, following)
        rank = labels.heading_rank(block, visible, following)
        if rank and followed and labels.is_incomplete(visible.text.strip(_EDGES)):
            self._introduce(self._label(visible, 0, len(visible.text)), block.level, index, in_item=in_item)
            return
        if rank:
            self._heading(visible, rank)
            return
        body = 0 if block.kind == "code" else labels.lead_in(visible)
        cited = any(labels.CITES.fullmatch(label.text) for label in (*self.headings, *self.introductions))
        sentences = [(0, len(visible.text))] if cited else _sentences(visible, body)
        tail: Label | None = None
        if followed and following is not None:
            tail = self._tail(visible, sentences, following, in_item=in_item)
            if tail is not None and not tail.for_fragments and tail.tracked:
                sentences = sentences[:-1]
        lead = self._label(visible, 0, body) if body else None
        self._sentences(visible, sentences, body, lead)
        if lead is not None and followed and not lead.stock:
            lead.tracked, lead.for_lists = False, True
            self._introduce(lead, block.level, index, in_item=in_item)
        if tail is not None:
            self._introduce(tail, block.level, index, in_item=in_item)

    def _tail(
        self, visible: Visible, sentences: Sequence[tuple[int, int]], following: Block, *, in_item: bool
    ) -> Label | None:
        """Return the last sentence as the introduction of what follows; untracked if it stays a claim as well."""
        start, end = sentences[-1]
        text = visible.text[start:end]
        label = self._label(visible, start, end)
        listed = following.kind != "paragraph"
        colon = _INTRODUCES.search(text)
        bare = in_item and len(sentences) == 1 and len(text) <= 60 and not any(char.isdigit() for char in text)
        if colon or (listed and _POINTS_AHEAD.search(text)):
            label.tracked = not labels.states_something(label.text)
            return label
        if bare and not labels.states_something(label.text) and text[-1] not in ".!?。！？":
            # Under an introduction even a bare item says something: "Avoid if: kidney disease".
            label.tracked = not self.introductions
            return label
        if in_item and following.kind == "item":
            label.tracked, label.for_fragments = False, True
            return label
        return None

    def _sentences(self, visible: Visible, sentences: Sequence[tuple[int, int]], body: int, lead: Label | None) -> None:
        before = self._subject()
        scoped = lead is not None
        if lead is not None and subjects.names(lead.text):
            self._set_subject(Subjects())
        for number, (start, end) in enumerate(sentences):
            own = visible.text[max(start, body) if number == 0 else start : end]
            if not has_words(visible.text[start:end]):
                continue
            kind = self._kind(own)
            relabel = self._line_label(visible, sentences[number - 1][1], start) if number else None
            lead = relabel or lead
            said = "" if lead is None or lead.stock or relabel or number == 0 else lead.text
            self._emit(visible, start, end, self._context(_fold(own), said, kind), kind)
            if kind in ("statement", "care_advice") and (subject := subjects.subject_of(_fold(own))):
                self._set_subject(self._subject().after(subject))
        self._set_subject((before if scoped else self._subject())._replace(nearest=""))

    def _line_label(self, visible: Visible, previous: int, start: int) -> Label | None:
        """Return the label with which a sentence on a new line of the same paragraph begins, as in "Dose: 5 mg"."""
        match = labels.COLON_LABEL.match(visible.text, start)
        broken = any(char in "\n\u2028\u2029" for char in visible.text[previous:start])
        return self._label(visible, start, match.end()) if match and broken else None

    def _kind(self, text: str) -> ClaimKind:
        kind = classify(text)
        advised = kind == "statement" and any(label.kind == "care_advice" for label in self.introductions)
        return "care_advice" if advised else kind

    # Tables

    def _header(self, block: Block) -> None:
        visible = [render(self.source, [cell], references=self.references) for cell in block.lines]
        cells = [_fold(cell.text).strip(_EDGES) for cell in visible]
        if sum(map(len, cells)) > _HEADER_LIMIT:
            cells = []
        self.table = _Table(cells, visible)

    def _row(self, block: Block) -> None:
        visible = [render(self.source, [cell], references=self.references) for cell in block.lines]
        cells = [(at, _fold(cell.text), cell) for at, cell in enumerate(visible) if has_words(cell.text)]
        if not cells:
            return
        header = self.table.cells
        joined = _SEPARATOR.join(
            f"{header[at]}: {text}" if at < len(header) and header[at] else text for at, text, _ in cells
        )
        own = _SEPARATOR.join(text for _, text, _ in cells)
        if len(joined) > min(self.limit, _ROW_LIMIT):
            self._long_row(cells)
            return
        self.table.carried.update(at for at, _, _ in cells)
        span = (cells[0][2].span(0, 1)[0], cells[-1][2].span(0, len(cells[-1][2].text))[1])
        self.pieces.append(Piece(span, joined, own, self._context(joined, "", "statement"), "statement"))

    def _long_row(self, cells: Sequence[tuple[int, str, Visible]]) -> None:
        """Cut a row into the sentences of its cells, each with the header of its cell and the first cell as lead-in."""
        header = [*self.table.cells, *[""] * (cells[-1][0] + 1)]
        first_at, first, _ = cells[0]
        for at, _, cell in cells:
            named = [f"{header[first_at]}: {first}" if header[first_at] else first] if at != first_at else []
            lead = _SEPARATOR.join([_shorten(name) for name in named] + [text for text in (header[at],) if text])
            for start, end in split_sentences(cell.text):
                context = self._context(_fold(cell.text[start:end]), lead, "statement")
                self._emit(cell, start, end, context, "statement")
                if header[at] in context:
                    self.table.carried.add(at)

    def _end_table(self) -> None:
        """Make the header a piece if a cell of it reached no row."""
        lost = [
            cell
            for at, cell in enumerate(self.table.visible)
            if has_words(cell.text) and (not self.table.cells or at not in self.table.carried)
        ]
        for cell in lost:
            self._emit(cell, 0, len(cell.text), "", "statement")
        self.table = _Table()

    # Pieces

    def _context(self, text: str, lead: str, kind: ClaimKind) -> str:
        """Join what ``text`` depends on, within the limit; outer headings are left out first."""
        fragment = len(text) <= _FRAGMENT_LIMIT and not subjects.has_verb(text)
        introductions = [label for label in self.introductions if fragment or not label.for_fragments]
        for label in (*self.headings, *introductions):
            label.seen = True
        heads = [label for label in self.headings if not label.stock]
        tails = [label for label in introductions if not label.stock]
        said = [label.text for label in (*heads, *tails)] + ([lead] if lead else [])
        need: subjects.Need = ""
        if kind == "statement" or subjects.is_pointer(text):
            need = subjects.needs(text) or next((label.needs for label in tails if label.needs), "")
        subject = self._subject().get(need)
        if subject and any(subject.casefold() in part.casefold() for part in (text, *said)):
            subject = ""
        parts: list[tuple[str, Label | None]] = [(label.text, label) for label in heads]
        parts += [(subject, None)] if subject else []
        parts += [(label.text, label) for label in tails]
        parts += [(lead, None)] if lead else []
        while sum(len(part) for part, _ in parts) + len(_SEPARATOR) * max(0, len(parts) - 1) > CONTEXT_LIMIT:
            parts.pop(0)
        for part, held in parts:
            if held is not None and not part.endswith("…"):
                held.carried = True
        return _SEPARATOR.join(part for part, _ in parts)

    def _emit(self, visible: Visible, start: int, end: int, context: str, kind: ClaimKind) -> None:
        text = visible.text
        while start < end:
            stop = end
            if end - start > self.limit:
                gap = max(text.rfind(space, start + 1, start + self.limit) for space in " \n\t\u00a0")
                stop = gap if gap > 0 else start + self.limit
            piece = _fold(text[start:stop])
            if has_words(piece):
                first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
                last = start + len(text[start:stop].rstrip())
                self.pieces.append(Piece(visible.span(first, last), piece, piece, context, kind))
            start = stop


def _sentences(visible: Visible, body: int) -> list[tuple[int, int]]:
    """Return the sentences of a block; a lead-in belongs to the first."""
    sentences = split_sentences(visible.text, body)
    if body and sentences:
        sentences[0] = (len(visible.text) - len(visible.text.lstrip()), sentences[0][1])
    return sentences


def _fold(text: str) -> str:
    return " ".join(text.split())


def _shorten(text: str) -> str:
    if len(text) <= _LABEL_LIMIT:
        return text
    return text[: _LABEL_LIMIT - 1].rsplit(None, 1)[0] + "…"
