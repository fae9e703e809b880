"""Locate the quotes of a model in the passages that were shown to it, as literal slices or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# A quote says something from so many letters and digits on; "the" is in every passage.
SHORTEST = 8


def occurrences(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of ``text`` that are the quote, the exact ones first, then those whose white space differs.

    A span that begins or ends inside a word or a number is none: "4 g" is not in "14 g".
    """
    exact = quote.strip()
    if not exact:
        return
    start = text.find(exact)
    while start >= 0:
        if _whole(text, start, start + len(exact)):
            yield start, start + len(exact)
        start = text.find(exact, start + 1)
    words = exact.split()
    if len(words) < 2:
        return
    for match in re.finditer(r"\s+".join(map(re.escape, words)), text):
        if match.group() != exact and _whole(text, *match.span()):
            yield match.span()


def says_something(quote: str, text: str) -> bool:
    """Tell whether a quote is more than a stray word: eight letters or digits, two ideographs, or all that there are."""
    held = _weight(quote)
    return held >= SHORTEST or (held > 0 and held == _weight(text))


def _weight(text: str) -> int:
    return sum(4 if _ideograph(char) else 1 for char in text if char.isalnum())


def _ideograph(char: str) -> bool:
    return unicodedata.category(char) == "Lo"


def _whole(text: str, start: int, end: int) -> bool:
    return not (_joined(text, start) or _joined(text, end))


def _joined(text: str, place: int) -> bool:
    """Tell whether a word or a number runs across ``place``."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    if left.isalnum() and right.isalnum():
        return not (_ideograph(left) or _ideograph(right))
    if left.isdigit() and right in ".,·/" and place + 1 < len(text):
        return text[place + 1].isdigit()
    return left in ".,·/" and right.isdigit() and place > 1 and text[place - 2].isdigit()
