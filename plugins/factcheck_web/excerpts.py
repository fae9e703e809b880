"""Find the parts of a long text that a query is about, as exact slices."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from factcheck.corpus.chunking import MAX_WORDS, MIN_WORDS, chunk_spans
from factcheck.text.spelling import fold, respell
from factcheck_web.texts import content_words

_WORD = re.compile(r"[^\W_]+(?:[.,][0-9]+)*")


class Excerpt(NamedTuple):
    """Hold a part of a text at ``text[start:end]``; a higher ``score`` is closer to the query, 0 shares no word."""

    start: int
    end: int
    score: float


def best_excerpts(
    text: str, query: str, *, count: int, min_words: int = MIN_WORDS, max_words: int = MAX_WORDS
) -> list[Excerpt]:
    """Return at most ``count`` parts of ``text`` that share a word with ``query``, best first, ties as they stand.

    Parts end where sentences end and do not overlap.
    """
    spans = chunk_spans(text, 0, len(text), min_words=min_words, max_words=max_words)
    weights = closeness([text[start:end] for start, end in spans], query)
    found = [Excerpt(*span, score) for span, score in zip(spans, weights, strict=True) if score > 0]
    return sorted(found, key=lambda excerpt: (-excerpt.score, excerpt.start))[: max(0, count)]


def closeness(parts: Sequence[str], query: str) -> list[float]:
    """Return for each part how close it is to the query: 0 if they share no word.

    A shared word counts more the fewer parts hold it, and less each time it is repeated.
    """
    counts = [Counter(_norms(part)) for part in parts]
    wanted = dict.fromkeys(_norms(" ".join(content_words(query, limit=200))) + _numbers(query))
    held = {word: sum(word in part for part in counts) for word in wanted}
    weights = {word: math.log(1 + len(parts) / n) for word, n in held.items() if n}
    return [sum(weight * part[word] / (part[word] + 1) for word, weight in weights.items()) for part in counts]


def _norms(text: str) -> list[str]:
    return [_norm(word) for word in _WORD.findall(fold(text))]


def _norm(word: str) -> str:
    word = respell(word)
    # A plural and its singular are one word here; a stemmer would need a package.
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _numbers(text: str) -> list[str]:
    return [word for word in _WORD.findall(fold(text)) if word[0].isdigit()]
