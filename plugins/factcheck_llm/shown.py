"""Show passages to a model: short ids of our own, titles apart from texts, long texts cut to where they speak of the claim."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from factcheck.schema import Claim, Passage
from factcheck.text.lexicon import words
from factcheck_llm.delimit import enclose, encodable

_WORD = re.compile(r"[^\W\d_]{3,}")
_FORM = 6
_STOP = words(
    "the and for are was were with that this from have has had not but you your can may should must will would could "
    "than then them they their there these those when what which who whom whose how why all any each every some more "
    "most less least other such only also into over under about after before between during within without per its his "
    "her our out off one two been being does did done take takes taken use used using give given"
)


class Shown(NamedTuple):
    """Hold one passage as it is shown: ``text`` is ``passage.text[offset:offset + len(text)]``, ``alias`` its id."""

    alias: str
    passage: Passage
    text: str
    offset: int

    def drawn(self, mark: str) -> str:
        """Return the passage between tags."""
        title = encodable(self.passage.title)
        head = f"{enclose('title', title, mark)}\n" if title.strip() else ""
        body = enclose("text", encodable(self.text), mark)
        return enclose("passage", f"\n{head}{body}\n", mark, id=self.alias)


def content_words(text: str) -> frozenset[str]:
    """Return the words of ``text`` that carry meaning, without their endings: at most six letters of each.

    Scripts without an alphabet of capitals (Chinese, Arabic, …) give none: their words cannot be told apart like this.
    """
    found = (match.group().casefold() for match in _WORD.finditer(text))
    return frozenset(word[:_FORM] for word in found if word not in _STOP and unicodedata.category(word[0]) != "Lo")


def show(claim: Claim, passages: Sequence[Passage], limit: int, *, first: int = 1) -> list[Shown]:
    """Return the passages that hold a word, as they are shown with at most ``limit`` code points each, in order."""
    wanted = content_words(f"{claim.text} {claim.context}")
    shown: list[Shown] = []
    for passage in passages:
        if any(char.isalnum() for char in passage.text):
            start, end = _window(passage.text, wanted, limit)
            shown.append(Shown(f"p{first + len(shown)}", passage, passage.text[start:end], start))
    return shown


def _window(text: str, wanted: frozenset[str], limit: int) -> tuple[int, int]:
    """Return the stretch of at most ``limit`` code points with the most distinct words of the claim, the first of equals.

    It begins and ends at white space where there is any near.
    """
    if len(text) <= limit:
        return 0, len(text)
    hits = [
        (match.start(), match.group().casefold()[:_FORM])
        for match in _WORD.finditer(text)
        if match.group().casefold()[:_FORM] in wanted
    ]
    best, best_start = 0, 0
    counts: dict[str, int] = {}
    left = 0
    reach = limit - limit // 4
    for place, word in hits:
        counts[word] = counts.get(word, 0) + 1
        while hits[left][0] < place - reach:
            old = hits[left][1]
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
            left += 1
        if len(counts) > best:
            best, best_start = len(counts), max(0, hits[left][0] - limit // 8)
    start = min(best_start, len(text) - limit)
    end = start + limit
    if start:
        gap = re.compile(r"\s").search(text, start, start + 80)
        start = gap.end() if gap else start
    if end < len(text):
        gaps = list(re.compile(r"\s").finditer(text, end - 80, end))
        end = gaps[-1].start() if gaps else end
    return start, end
