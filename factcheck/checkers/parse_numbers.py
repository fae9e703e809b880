"""Read numbers as clinical prose writes them: digits in several national styles, fractions and words.

Where a notation means two things, as "1.500 mg" does, the number is refused and not guessed: a value that nobody reads
raises no finding, and a value read a thousandfold wrong raises a false one.
"""

from __future__ import annotations

import math
import re

_ONES = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_GLYPHS = {"½": 1 / 2, "¼": 1 / 4, "¾": 3 / 4, "⅓": 1 / 3, "⅔": 2 / 3, "⅛": 1 / 8}
# Loose words name a stretch, so that "a few days" is neither two days nor a week.
_LOOSE = {"a couple of": (2.0, 3.0), "a few": (2.0, 7.0)}
_PARTS = {"half": 0.5, "half a": 0.5, "half an": 0.5, "half of a": 0.5, "a quarter of a": 0.25}
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}

_SPACE = "[ \u00a0]"
_ONE = "|".join(_ONES)
_TEN = "|".join(_TENS)
_SMALL = rf"(?:(?:{_TEN})(?:[ -](?:{_ONE})\b)?|(?:{_ONE}))\b"
_WORDED = (
    rf"(?:(?:an?|{_ONE}) hundred\b(?: (?:and )?{_SMALL})?|{_SMALL})"
    rf"(?: (?:thousand|million)\b)?(?: and a half\b)?|(?:an? )?(?:hundred|thousand|million)\b"
)
_FRACTION = r"(?:[1-9]\d?[ -])?[1-3]/[2348](?![\d/])"
_DIGITS = (
    r"\d{1,3}(?:[,\u2009\u202f]\d{3}){1,5}(?!\d)(?:[.·]\d+)?"  # 1,000 and 1 000 with a thin space
    rf"|\d{{1,3}}(?:{_SPACE}\d{{3}}){{1,5}}(?![\d.,]\d|\d)"  # 10 000
    r"|\d{1,3}(?:\.\d{3}){1,5}(?!\d)(?:,\d+)?"  # 1.000, or 0.125
    r"|\d+,\d{1,2}(?![\d,])"  # 0,5
    rf"|{_FRACTION}"
    rf"|\d+[½¼¾⅓⅔⅛]|[½¼¾⅓⅔⅛]"
    r"|\d+[.·]\d+|\.\d+|\d+"
)
_LONG = "|".join(re.escape(word) for word in sorted([*_LOOSE, *_PARTS], key=len, reverse=True))
NUMBER = rf"(?:(?:{_DIGITS})(?:{_SPACE}(?:thousand|million)\b)?|\b(?:{_LONG}|{_WORDED}|an?)\b)"

_GROUPED = re.compile(r"\d{1,3}(?:[,\u2009\u202f]\d{3})+(?:[.·]\d+)?")
_DOTTED = re.compile(r"(\d{1,3})((?:\.\d{3})+)(,\d+)?")
_SPACED = re.compile(rf"\d{{1,3}}(?:{_SPACE}\d{{3}})+")
_COMMA = re.compile(r"\d+,\d+")
_MIXED = re.compile(r"(\d*)([½¼¾⅓⅔⅛])|(?:(\d+)[ -])?([1-3])/([2348])")
# A decimal fraction is not written with a nought at its end, so "3.125 mg" is one and "1.500 mg" is in doubt.
_ROUND = 10


def parse_number(text: str, *, whole: bool = False) -> tuple[float, float] | None:
    """Return the least and the greatest value that a number stands for, None if it is none or may mean two things.

    ``whole`` says that the unit is counted in whole numbers, as international units are, so that "10.000" is ten thousand.

    >>> parse_number("one and a half"), parse_number("a few"), parse_number("1.500"), parse_number("1.500", whole=True)
    ((1.5, 1.5), (2.0, 7.0), None, (1500.0, 1500.0))
    """
    plain = " ".join(text.lower().split())
    if plain in _LOOSE:
        return _LOOSE[plain]
    value = _PARTS.get(plain, _TIMES.get(plain))
    if value is None:
        value = _words(plain) if plain[:1].isalpha() else _figure(text.strip(), whole=whole)
    return None if value is None or not math.isfinite(value) else (value, value)


def is_word(text: str) -> bool:
    """Tell whether a number is written in words."""
    return text[:1].isalpha()


def _figure(text: str, *, whole: bool) -> float | None:
    scaled = re.fullmatch(rf"(.+?){_SPACE}(thousand|million)", text, re.IGNORECASE)
    if scaled:
        value = _figure(scaled[1], whole=whole)
        return None if value is None else value * _SCALES[scaled[2].lower()]
    if _GROUPED.fullmatch(text):
        # "0,125" is a decimal with a comma: no thousands begin with a nought.
        plain = text.replace(",", ".") if text[0] == "0" else re.sub(r"[,\u2009\u202f]", "", text)
        return float(plain.replace("·", "."))
    if match := _DOTTED.fullmatch(text):
        return _dotted(match[1], match[2], match[3] or "", whole=whole)
    if _SPACED.fullmatch(text):
        # "10 000" is one number, "2 500 mg tablets" are two.
        groups = re.split(_SPACE, text)
        return float("".join(groups)) if all(group == "000" for group in groups[1:]) and groups[0] != "0" else None
    if _COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    if match := _MIXED.fullmatch(text):
        if match[2]:
            return float(match[1] or 0) + _GLYPHS[match[2]]
        if float(match[5]) == 0:
            return None
        return float(match[3] or 0) + float(match[4]) / float(match[5])
    try:
        return float(text.replace("·", "."))
    except ValueError:
        return None


def _dotted(first: str, groups: str, rest: str, *, whole: bool) -> float | None:
    decimal = float(f"{first}{groups}") if groups.count(".") == 1 and not rest else None
    if decimal is not None and (first == "0" or (not whole and int(groups[1:]) % _ROUND)):
        return decimal
    if decimal is not None and not whole:
        return None
    return float(first + groups.replace(".", "") + rest.replace(",", "."))


def _words(text: str) -> float | None:
    if text in ("a", "an"):
        return 1.0
    total, current, known = 0.0, 0.0, False
    body, half = (text.removesuffix(" and a half"), 0.5) if text.endswith(" and a half") else (text, 0.0)
    for word in re.split(r"[ -]", body):
        if word in ("a", "an", "and"):
            continue
        known = True
        if word in _SCALES:
            current = max(current, 1.0) * _SCALES[word]
            if _SCALES[word] > 100:
                total, current = total + current, 0.0
        elif word in _ONES or word in _TENS:
            current += _ONES.get(word, 0) + _TENS.get(word, 0)
        else:
            return None
    return total + current + half if known else None
