"""Cut a stretch of text into passages of about equal length that end where sentences end."""

from __future__ import annotations

import re
from collections.abc import Sequence

MIN_WORDS = 80
MAX_WORDS = 150

_WORD = re.compile(r"\S+")
_BREAK = re.compile(r"[,;:)\]]$")


def chunk_spans(
    text: str, start: int, end: int, *, min_words: int = MIN_WORDS, max_words: int = MAX_WORDS
) -> list[tuple[int, int]]:
    """Return the passages of ``text[start:end]`` as spans into ``text``, in order and without overlap.

    No passage exceeds ``max_words`` words (runs without white space), and only a sentence that does so alone is cut,
    after punctuation if possible. A last passage of fewer than ``min_words`` takes sentences from the one before, if
    that leaves both at ``min_words``; text that is shorter as a whole makes one short passage.
    """
    from factcheck.text.sentences import split_sentences

    sentences = [piece for span in split_sentences(text, start, end) for piece in _cut(text, *span, max_words)]
    # A bullet belongs to no sentence and still stands in the passage: it counts with the sentence that it opens.
    begins = [start, *(end for _, end in sentences[:-1])]
    sizes = [_count(text, begin, end) for begin, (_, end) in zip(begins, sentences, strict=False)]
    groups = _pack(sizes, min_words, max_words)
    return [(sentences[first][0], sentences[last - 1][1]) for first, last in groups]


def _count(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _WORD.finditer(text, start, end))


def _cut(text: str, start: int, end: int, limit: int) -> list[tuple[int, int]]:
    """Cut one sentence into pieces of at most ``limit`` words, where possible after punctuation in the second half."""
    words = [word.span() for word in _WORD.finditer(text, start, end)]
    pieces = []
    while len(words) > limit:
        stops = [n for n in range(limit, limit // 2, -1) if _BREAK.search(text[slice(*words[n - 1])])]
        size = stops[0] if stops else limit
        pieces.append((words[0][0], words[size - 1][1]))
        words = words[size:]
    if words:
        pieces.append((words[0][0], words[-1][1]))
    return pieces


def _pack(sizes: Sequence[int], min_words: int, max_words: int) -> list[tuple[int, int]]:
    """Group neighbours as full as ``max_words`` allows, then even out the last two; returns index ranges."""
    groups: list[tuple[int, int]] = []
    first = total = 0
    for i, size in enumerate(sizes):
        if i > first and total + size > max_words:
            groups.append((first, i))
            first, total = i, 0
        total += size
    if first < len(sizes):
        groups.append((first, len(sizes)))
    if len(groups) > 1:
        (first, middle), (_, last) = groups[-2:]
        left, right = sum(sizes[first:middle]), sum(sizes[middle:last])
        while right < min_words and left - sizes[middle - 1] >= min_words and right + sizes[middle - 1] <= max_words:
            middle -= 1
            left, right = left - sizes[middle], right + sizes[middle]
        groups[-2:] = [(first, middle), (middle, last)]
    return groups
