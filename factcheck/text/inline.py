"""Read inline Markdown and simple HTML as the text that a reader sees, with a map back to the source.

Emphasis, code spans, links, images, known tags, comments, escapes and invisible characters are taken out, entities
are decoded, and each character that is left knows where it came from. Unbalanced markup never fails: letters and
digits outside link targets, tags and comments are always kept.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from factcheck.text.lexicon import words

Side = Literal["open", "close", "none"]

_BREAK_TAGS = words(
    "p div li ul ol dl dt dd tr table thead tbody h1 h2 h3 h4 h5 h6 blockquote hr details summary pre center"
)
_INLINE_TAGS = words(
    "a abbr b big br cite code del em font i img ins kbd mark q s samp small span strike strong sub sup td th tt u var"
)
_NAMES = "|".join(sorted(_BREAK_TAGS | _INLINE_TAGS, key=lambda name: (-len(name), name)))
_TOKEN = re.compile(
    rf"""
    (?P<escape>\\[!-/:-@\[-`{{-~])
    |(?P<ticks>`+)
    |(?P<open>!?\[)
    |(?P<close>\])
    |(?P<run>\*+|_+|~~+)
    |(?P<auto><(?:https?://|mailto:)[^<>\s]{{1,2000}}>)
    |(?P<tag></?(?P<name>{_NAMES})(?:[\s/][^<>]{{0,300}})?>)
    |(?P<comment><!--)
    |(?P<entity>&(?:[A-Za-z][A-Za-z0-9]{{1,31}}|\#[0-9]{{1,7}}|\#[xX][0-9A-Fa-f]{{1,6}});)
    |(?P<hidden>[\u200b\u2060\ufeff\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]+)
    |(?P<control>[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LITERAL_TOKEN = re.compile(
    r"(?P<hidden>[\u200b\u2060\ufeff\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]+)|(?P<control>[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+)"
)
_TICKS = re.compile(r"`+")
# Repeats are bounded so that unclosed targets cost no more than their length; one level of parentheses covers DOIs.
_TARGET = re.compile(
    r"\(\s{0,9}(?:<[^<>\n]{0,2000}>|[^\s()<>]{0,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500}){0,8})"
    r"(?:\s{1,9}(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'|\([^()\n]{0,300}\)))?\s{0,9}\)"
)
_REFERENCE = re.compile(r"\[([^\[\]]{0,200})\]")
# Line separator for a break that the author asked for, paragraph separator for the edge of an HTML block.
_HARD_BREAK, _BLOCK_BREAK = "\u2028", "\u2029"


class Line(NamedTuple):
    """Hold the content of one line as a span of the source; ``hard`` if it ends in a Markdown hard break."""

    start: int
    end: int
    hard: bool = False


class _Edit(NamedTuple):
    start: int
    end: int
    text: str
    side: Side


class _Run(NamedTuple):
    start: int
    end: int
    opens: bool
    closes: bool


class Visible:
    """Hold visible text and its origin in the source.

    ``text`` has "\\n" between lines, U+2028 for a hard break and U+2029 at the edges of HTML blocks. ``strong`` is
    the length of the bold text with which it begins, 0 if none.
    """

    def __init__(self, source: str, lines: Sequence[Line], edits: Iterable[_Edit], strong_end: int) -> None:
        self._source = source
        self._at: list[int] = []
        self._from: list[tuple[int, int, bool]] = []
        self._opens: dict[int, int] = {}
        self._closes: dict[int, int] = {}
        parts: list[str] = []
        length = 0
        position = lines[0].start if lines else 0
        self.strong = 0
        for start, end, replacement, side in (*sorted(edits), _Edit(lines[-1].end if lines else 0, -1, "", "none")):
            if start > position:
                self._at.append(length)
                self._from.append((position, start, True))
                parts.append(source[position:start])
                length += start - position
            if strong_end and not self.strong and start >= strong_end:
                self.strong = length - max(0, start - strong_end)
            if replacement:
                self._at.append(length)
                self._from.append((start, end, False))
                parts.append(replacement)
                length += len(replacement)
            elif side == "open":
                self._opens[end] = start
            elif side == "close":
                self._closes[start] = end
            position = max(position, end)
        self.text = "".join(parts)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the source span of ``text[start:end]``, which is not empty, with the markup that belongs to it."""
        first, last = self._origin(start)[0], self._origin(end - 1)[1]
        while first in self._opens:
            first = self._opens[first]
        while last in self._closes:
            last = self._closes[last]
        return first, last

    def _origin(self, index: int) -> tuple[int, int]:
        at = bisect_right(self._at, index) - 1
        start, end, literal = self._from[at]
        if not literal:
            return start, end
        position = start + index - self._at[at]
        return position, position + 1


def render(
    source: str, lines: Sequence[Line], *, references: frozenset[str] = frozenset(), literal: bool = False
) -> Visible:
    """Return what a reader sees of the given lines of ``source``.

    ``references`` are the lower-case names that link definitions give; ``literal`` leaves all but invisible
    characters in place, as in a code block.
    """
    return _Renderer(source, lines, references, literal).run()


class _Renderer:
    """One pass over the tokens of a block; emphasis is paired at its end."""

    def __init__(self, source: str, lines: Sequence[Line], references: frozenset[str], literal: bool) -> None:
        self.source, self.lines, self.references = source, lines, references
        self.pattern = _LITERAL_TOKEN if literal else _TOKEN
        self.edits: list[_Edit] = []
        self.brackets: list[tuple[int, int]] = []
        self.runs: dict[str, list[_Run]] = {}
        self.partners = {} if literal else self._pair_ticks()
        self.comments_end_before = -1
        self.strong_end = 0

    def run(self) -> Visible:
        position = 0
        for line, following in zip(self.lines, (*self.lines[1:], None), strict=True):
            position = max(position, line.start)
            while position < line.end and (match := self.pattern.search(self.source, position, line.end)):
                position = self._take(match, line)
            if following is not None:
                self._edit(line.end, following.start, _HARD_BREAK if line.hard else "\n")
        for char, runs in self.runs.items():
            self._pair_runs(char, runs)
        return Visible(self.source, self.lines, self.edits, self.strong_end)

    def _edit(self, start: int, end: int, text: str = "", side: Side = "none") -> None:
        self.edits.append(_Edit(start, end, text, side))

    def _take(self, match: re.Match[str], line: Line) -> int:
        start, end = match.span()
        kind = match.lastgroup
        if kind == "escape":
            self._edit(start, start + 1, side="open")
        elif kind == "ticks":
            return self._code(start, end)
        elif kind == "open":
            self.brackets.append((start, end))
        elif kind == "close":
            return self._link(start, end, line.end)
        elif kind == "run":
            self._delimiter(match, line)
        elif kind == "auto":
            self._edit(start, start + 1, side="open")
            self._edit(end - 1, end, side="close")
        elif kind in ("tag", "name"):
            self._tag(match)
        elif kind == "comment":
            return self._comment(start, end, line.end)
        elif kind == "entity":
            decoded = html.unescape(match.group())
            if decoded != match.group():
                self._edit(start, end, decoded.replace("\x00", " "))
        elif kind == "hidden":
            self._edit(start, end)
        else:
            self._edit(start, end, " ")
        return end

    def _pair_ticks(self) -> dict[int, tuple[int, int]]:
        """Map the start of each run of backticks to the span of the next run of the same length."""
        partners: dict[int, tuple[int, int]] = {}
        following: dict[int, tuple[int, int]] = {}
        runs = [match.span() for line in self.lines for match in _TICKS.finditer(self.source, line.start, line.end)]
        for start, end in reversed(runs):
            if end - start in following:
                partners[start] = following[end - start]
            following[end - start] = (start, end)
        return partners

    def _code(self, start: int, end: int) -> int:
        partner = self.partners.get(start)
        if partner is None:
            self._edit(start, end)
            return end
        self._edit(start, end, side="open")
        self._edit(*partner, side="close")
        return partner[1]

    def _link(self, start: int, end: int, limit: int) -> int:
        if not self.brackets:
            return end
        opening = self.brackets.pop()
        target = _TARGET.match(self.source, end, limit)
        after = target.end() if target else end
        if target is None and self.references:
            named = _REFERENCE.match(self.source, end, limit)
            label = (named and named.group(1)) or self.source[opening[1] : min(start, opening[1] + 200)]
            if label.strip().lower() not in self.references:
                return end
            after = named.end() if named else end
        elif target is None:
            return end
        self._edit(*opening, side="open")
        self._edit(start, after, side="close")
        return after

    def _delimiter(self, match: re.Match[str], line: Line) -> None:
        start, end = match.span()
        before = self.source[start - 1] if start > line.start else " "
        after = self.source[end] if end < line.end else " "
        if before.isdigit() and after.isdigit():
            return  # "10*9/L" is a power
        opens, closes = not after.isspace(), not before.isspace()
        if start == line.start and end - start >= 2 and not opens:
            self._edit(start, end)
            return
        if match.group()[0] == "_":
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        self.runs.setdefault(match.group()[0], []).append(_Run(start, end, opens, closes))

    def _pair_runs(self, char: str, runs: Sequence[_Run]) -> None:
        stack: list[tuple[int, int]] = []
        for run in runs:
            start, end = run.start, run.end
            while run.closes and start < end and stack:
                opening, edge = stack.pop()
                width = min(edge - opening, end - start)
                self._edit(edge - width, edge, side="open")
                self._edit(start, start + width, side="close")
                if width >= 2 and not self.strong_end and opening == self.lines[0].start and char != "~":
                    self.strong_end = start
                start += width
                if edge - width > opening:
                    stack.append((opening, edge - width))
            if start < end and run.opens:
                stack.append((start, end))
            elif end - start >= 2 and char == "*" and run.closes != run.opens:
                self._edit(start, end, side="close")
        for start, end in stack:
            if end - start >= 2 and char == "*" and not (start and self.source[start - 1].isalnum()):
                self._edit(start, end, side="open")

    def _tag(self, match: re.Match[str]) -> None:
        start, end = match.span()
        name = match.group("name").lower()
        if name == "br":
            self._edit(start, end, _HARD_BREAK)
        elif name in _BREAK_TAGS:
            self._edit(start, end, _BLOCK_BREAK)
        elif name in ("td", "th"):
            self._edit(start, end, " ")
        else:
            self._edit(start, end, side="close" if match.group().startswith("</") else "open")

    def _comment(self, start: int, end: int, limit: int) -> int:
        # One failed search answers for the rest of the line, or a line of openers would cost its square.
        close = -1 if self.comments_end_before == limit else self.source.find("-->", end, limit)
        if close < 0:
            self.comments_end_before = limit
            return end
        self._edit(start, close + 3)
        return close + 3
