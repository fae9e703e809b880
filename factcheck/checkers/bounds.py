"""Read the comparators that stand before and after a value: at least, up to, no more than, or above."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Bound = Literal["exact", "range", "min", "max"]

_MIN_BEFORE = (
    r"(?:not|no) (?:less|fewer|lower|younger|shorter|earlier)(?: often)? than|at (?:the )?(?:very )?least|"
    r"(?:a |the )?minimum(?: of)?|≥|>=|⩾|≧|from|starting at|upwards of"
)
_OVER_BEFORE = (
    r"(?:more|greater|higher|older|longer|later|larger)(?: often)? than|in excess of|over|above|exceed(?:s|ed|ing)?|beyond|>|"
    r"(?<!the )past"
)
_MAX_BEFORE = (
    r"(?:not|no) (?:be |go |rise )?(?:above|over|beyond|exceed(?:ing)?)|"
    r"(?:not|no) (?:be )?(?:more|higher|greater|longer|later|older)(?: often)? than|"
    r"at (?:the )?(?:very )?most|up to|(?:(?:up )?to )?(?:a |the )?max(?:imum(?: of)?|\.)?|≤|<=|⩽|≦|"
    r"(?:go|goes|going) above"
)
_UNDER_BEFORE = r"(?:less|fewer|lower|younger|shorter|smaller)(?: often)? than|under|below|<|within|before"
_ABOUT = r"(?:(?:about|around|approximately|approx\.?|roughly|nearly|almost|some)[\s\u00a0]|[~≈])?"
_BEFORE = re.compile(
    rf"(?<![\w-])(?:(?P<max>{_MAX_BEFORE})|(?P<min>{_MIN_BEFORE})|(?P<over>{_OVER_BEFORE})|(?P<under>{_UNDER_BEFORE}))"
    rf"[\s\u00a0:]{{0,2}}{_ABOUT}$",
    re.IGNORECASE,
)
_MIN_AFTER = (
    r"or (?:more|above|higher|over|greater|older|longer|beyond|later|up(?! to))|"
    r"and (?:above|over|older|more|up(?! to)|upwards)|\+"
)
_MAX_AFTER = (
    r"or (?:less|below|lower|under|fewer|younger|shorter|earlier)|and (?:below|under)|at (?:the )?most|max(?:imum)?\b"
)
# "126 mg/dL (7.0 mmol/L) or above": the comparator reaches over the conversion, and into it.
_AFTER = re.compile(
    rf"(?:[\s\u00a0]?\([^()]{{1,40}}\)|\))?,?[\s\u00a0]?(?:(?P<min>{_MIN_AFTER})|(?P<max>{_MAX_AFTER}))(?!\w)",
    re.IGNORECASE,
)
# "do not take more than 4 g" sets a maximum; "do not use in people over 65" sets none.
_DENIED = re.compile(
    r"(?:\b(?:not|never|without|avoid(?:ing)?|cannot)|n['’]t)"
    r"(?:\s(?!(?:in|if|when|with|people|patients|adults|children|those|women|men|anyone|recommended|suitable|safe)\b)\w+){0,4}\s?$",
    re.IGNORECASE,
)
_DENIED_UNDER = re.compile(r"(?:\b(?:not|never)|n['’]t)(?: be| fall| drop| go| come)?\s?$", re.IGNORECASE)
# "the maximum daily dose is 4 g": the limit is named, not compared with.
_LIMIT = re.compile(
    r"\b(?:max(?:imum|\.)?|upper limit|limit|ceiling)\b"
    r"(?![^.;,]*\b(?:minimum|effect|benefit|response|relief)\b)[^.;,\d]{0,45}$",
    re.IGNORECASE,
)
_FROM_TO = re.compile(r"[^.;]*\bto\b")
_WINDOW = 64


class Comparator(NamedTuple):
    """Hold the bound that a comparator sets and where it starts."""

    bound: Bound
    start: int


def comparator_before(text: str, start: int) -> Comparator | None:
    """Return the comparator that ends where a value starts, None if there is none.

    >>> comparator_before("do not take more than 4 g", 22), comparator_before("more than 4 g", 10)
    (Comparator(bound='max', start=12), Comparator(bound='min', start=0))
    """
    offset = max(0, start - _WINDOW)
    window = text[offset:start]
    match = _BEFORE.search(window)
    if match is None:
        return None
    if (match["min"] or "").lower() == "from" and _FROM_TO.match(text, start, start + _WINDOW):
        # "raise it from 5 mg to 10 mg" names two values and no bound.
        return None
    begin = match.start()
    if match["over"]:
        return Comparator("max" if _DENIED.search(window[:begin]) else "min", offset + begin)
    if match["under"]:
        return Comparator("min" if _DENIED_UNDER.search(window[:begin]) else "max", offset + begin)
    return Comparator("min" if match["min"] else "max", offset + begin)


def comparator_after(text: str, end: int) -> Bound | None:
    """Return the bound that the words behind a value set, None if they set none."""
    match = _AFTER.match(text, end)
    if match is None:
        return None
    return "min" if match["min"] else "max"


def is_limit(text: str, start: int) -> bool:
    """Tell whether the words before a value name it as a limit."""
    return _LIMIT.search(text[max(0, start - _WINDOW) : start]) is not None
