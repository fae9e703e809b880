"""Find how often something is done: times a day, every so many hours, Latin abbreviations, divided doses.

Every frequency is an interval of times a day, so that "every 6 to 8 hours", "q6-8h" and "three or four times a day" meet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from factcheck.checkers.bounds import Bound, comparator_after, comparator_before
from factcheck.checkers.cues import usual_letters
from factcheck.checkers.parse_numbers import NUMBER, parse_number
from factcheck.checkers.quantities import Quantity
from factcheck.checkers.units import per_day

TO = r"(?:[\s\u00a0]?(?:-|‐|‑|–|—|−|~)[\s\u00a0]?|[\s\u00a0](?:to|or|and|through)[\s\u00a0])"

_LY_PER_DAY = {
    "daily": 1.0, "nightly": 1.0, "weekly": 1 / 7, "fortnightly": 1 / 14, "monthly": 1 / 30, "yearly": 1 / 365,
    "annually": 1 / 365,
}  # fmt: skip
_PERIOD = r"hours?|hrs?|h|days?|weeks?|fortnights?|months?|minutes?|mins?|years?"
_EVERY = re.compile(
    rf"\b(?:every|each)\s(?:(?P<other>other|second|alternate)\s|(?P<low>{NUMBER})(?:{TO}(?P<high>{NUMBER}))?[\s-]?)?"
    rf"(?P<period>{_PERIOD}|night|morning|evening|mornings|bedtime)\b",
    re.IGNORECASE,
)
_HOURLY = re.compile(
    rf"(?<![\w.,-])(?P<low>{NUMBER})(?:{TO}(?P<high>{NUMBER}))?[\s-](?P<period>hour|week|month)ly\b"
    r"(?!\s(?:doses|injections|infusions|sessions|visits|courses))",
    re.IGNORECASE,
)
_Q = re.compile(
    r"\bq\.?\s?(?P<low>\d{1,2})?(?:\s?[-–]\s?(?P<high>\d{1,2}))?\.?\s?"
    r"(?P<period>hours?|hrs?|h|days?|d|weeks?|wks?|w|months?|mo|minutes?|mins?)\b",
    re.IGNORECASE,
)
_SLASH = re.compile(r"(?<=[a-z])\s?/\s?(?P<low>\d{1,2})\s?(?P<period>h|hr|hrs|hours)\b", re.IGNORECASE)
_TIMES = re.compile(
    rf"(?<![\w.,/-])(?P<low>once|twice|thrice|{NUMBER})(?:{TO}(?P<high>twice|{NUMBER}))?"
    r"(?P<times>\stimes?|\sdoses?|\s?[x×])?(?:"
    r"(?:[\s-](?:a|per|each|every|in|in a|in any|in each|within|within a|in one)\s(?:single\s)?|\s?/\s?)"
    r"(?P<period>day|week|month|year|night|fortnight|24[\s-]hours?|24[\s-]?h)"
    r"|[\s-]?(?P<ly>daily|weekly|monthly|nightly|yearly))\b",
    re.IGNORECASE,
)
_DAYS_A_WEEK = re.compile(
    rf"(?<![\w.,/-])(?P<low>{NUMBER})(?:{TO}(?P<high>{NUMBER}))?[\s-]days?"
    r"(?:[\s-](?:a|per|each|every|in a|in each|of each|of every|of the|out of the)[\s-]week|\s?/\s?(?:week|wk))\b",
    re.IGNORECASE,
)
_LY = re.compile(
    r"(?<!\bbi-)(?<!\btri-)(?<!semi-)\b(?P<ly>daily|weekly|monthly|nightly|yearly|annually|fortnightly)\b"
    r"(?!\s?(?:dos(?:e|es|age)|total|max|limit|intake|allowance|amount|life|living|activit|routine))",
    re.IGNORECASE,
)
_DIVIDED = re.compile(
    rf"\b(?:divided\s)?(?:in|into|as|over)\s(?:(?P<low>{NUMBER})(?:{TO}(?P<high>{NUMBER}))?\s)?"
    r"(?P<how>divided|equal|separate|equally divided|split)\sdoses\b"
    rf"|\bdivided\s(?:in|into|over|between)\s(?P<low2>{NUMBER})(?:{TO}(?P<high2>{NUMBER}))?\sdoses\b",
    re.IGNORECASE,
)
_LATIN = {
    r"o\.d\.?|od|q\.d\.?|qd": 1.0, r"b\.i\.d\.?|bid|b\.d\.?|bd": 2.0, r"t\.i\.d\.?|tid|t\.d\.s\.?|tds": 3.0,
    r"q\.i\.d\.?|qid|q\.d\.s\.?|qds": 4.0, r"q\.o\.d\.?|qod": 0.5, r"qhs|nocte|at bedtime": 1.0,
    r"(?:one|a single|single)[ -]daily[ -]dose": 1.0, r"alternate[ -]days?|alternate nights?": 0.5,
}  # fmt: skip
_LATIN_FORMS = [(re.compile(rf"(?<![\w.])(?:{form})(?!\w)", re.IGNORECASE), value) for form, value in _LATIN.items()]
# OD is also an overdose and an eye, BD a syringe maker, and "bid" a word: a frequency only behind a dose.
_BEHIND_DOSE = frozenset({"od", "OD", "Od", "qd", "QD", "bd", "BD", "bid"})
_DOSE_BEFORE = re.compile(
    r"\d\s?(?:mg|mcg|µg|μg|micrograms?|g|ml|iu|units?|u|tablets?|tabs?|capsules?|puffs?|drops?|mg/kg|po|oral(?:ly)?)"
    r"(?:/dose)?,?\s(?:(?:po|p\.o\.|by mouth|orally|iv|sc|im|tablets?|capsules?)\s)?$",
    re.IGNORECASE,
)
_MORNING_AND_EVENING = re.compile(
    r"\b(?:in the |each |every )?mornings?\b[\w ,-]{0,30}?\band\b[\w ,-]{0,20}?\b(?:evenings?|(?:at )?night|bedtime)\b",
    re.IGNORECASE,
)
_DOSE_WINDOW = 40
_DIVIDED_REACH = 40


def find_frequencies(text: str) -> list[Quantity]:
    """Return the frequencies of a text in no particular order; readings may overlap.

    >>> [(q.low, q.high, q.text) for q in find_frequencies("Repeat q6-8h.")]
    [(3.0, 4.0, 'q6-8h')]
    """
    plain = usual_letters(text)
    found = [*_divided(plain), *_times(plain), *_days_a_week(plain), *_intervals(plain), *_latin(plain)]
    found += [q for q in _bare(plain) if not _is_total(q, plain)]
    return found if plain is text else [replace(q, text=text[q.start : q.end]) for q in found]


def _times(text: str) -> Iterator[Quantity]:
    for match in _TIMES.finditer(text):
        word = match["low"].lower()
        counted = match["times"] or word in ("once", "twice", "thrice")
        # "a day" is no frequency, and "4-weekly" is every four weeks.
        if word in ("a", "an") or (match["ly"] and match["ly"].lower() != "daily" and not counted):
            continue
        rate = _LY_PER_DAY[match["ly"].lower()] if match["ly"] else _rate(match["period"])
        ends = _ends(match["low"], match["high"])
        if ends:
            yield _frequency(text, match, ends[0] * rate, ends[1] * rate)


def _days_a_week(text: str) -> Iterator[Quantity]:
    for match in _DAYS_A_WEEK.finditer(text):
        ends = _ends(match["low"], match["high"])
        if ends and ends[1] <= 7:
            yield _frequency(text, match, ends[0] / 7, ends[1] / 7)


def _intervals(text: str) -> Iterator[Quantity]:
    for pattern in (_EVERY, _HOURLY, _Q, _SLASH):
        for match in pattern.finditer(text):
            rate = _rate(match["period"])
            groups = match.groupdict()
            if groups.get("other"):
                yield _frequency(text, match, rate / 2, rate / 2)
                continue
            low = (match["low"] or "1").lower()
            # "a weekly dose" is none every one week, "/24 h" is a day, and "qd" is Latin.
            if low in ("a", "an") or (pattern is _SLASH and low == "24"):
                continue
            if pattern is _Q and not match["low"] and (match["high"] or len(match["period"]) < len("week")):
                continue
            ends = _ends(low, groups.get("high"))
            if ends and ends[0] > 0:
                yield _frequency(text, match, rate / ends[1], rate / ends[0], interval=True)


def _latin(text: str) -> Iterator[Quantity]:
    for form, value in _LATIN_FORMS:
        for match in form.finditer(text):
            window = text[max(0, match.start() - _DOSE_WINDOW) : match.start()]
            if match.group() in _BEHIND_DOSE and not _DOSE_BEFORE.search(window):
                continue
            yield _frequency(text, match, value, value)


def _bare(text: str) -> Iterator[Quantity]:
    for match in _MORNING_AND_EVENING.finditer(text):
        yield _frequency(text, match, 2.0, 2.0)
    for match in _LY.finditer(text):
        value = _LY_PER_DAY[match["ly"].lower()]
        yield _frequency(text, match, value, value)


def _divided(text: str) -> Iterator[Quantity]:
    for match in _DIVIDED.finditer(text):
        ends = _ends(match["low"] or match["low2"] or "", match["high"] or match["high2"])
        if ends:
            yield _frequency(text, match, *ends)


def _is_total(quantity: Quantity, text: str) -> bool:
    """Tell whether "daily" names the total that divided doses make up: "2 g daily in two divided doses"."""
    after = _DIVIDED.search(text, quantity.end, quantity.end + _DIVIDED_REACH)
    return after is not None and not re.search(r"[.;]\s", text[quantity.end : after.start()])


def _ends(low: str, high: str | None) -> tuple[float, float] | None:
    first = parse_number(low)
    last = parse_number(high) if high else first
    if first is None or last is None:
        return None
    return min(first[0], last[0]), max(first[1], last[1])


def _frequency(text: str, match: re.Match[str], low: float, high: float, *, interval: bool = False) -> Quantity:
    start, end = match.span()
    before, after = comparator_before(text, start), comparator_after(text, end)
    if interval and after and text[end : end + 4].lstrip().lower().startswith("or"):
        # "every 4 hours or longer" is at most six times a day.
        after = "max" if after == "min" else "min"
    bound: Bound = "exact" if math.isclose(low, high) else "range"
    if before or after:
        start = before.start if before else start
        bound = before.bound if before else after or "exact"
        low, high = (low, math.inf) if bound == "min" else (-math.inf, high)
    return Quantity(text[start:end], start, end, low, high, "per day", "frequency", (), bound)


def _rate(surface: str) -> float:
    """Return how many of a period, as written, make a day."""
    plain = surface.lower()
    plain = plain if len(plain) == 1 else plain.rstrip("s")
    names = {
        "hr": "hour", "h": "hour", "min": "minute", "d": "day", "w": "week", "wk": "week", "mo": "month", "night": "day",
        "morning": "day", "evening": "day", "bedtime": "day",
    }  # fmt: skip
    return per_day("day" if plain.startswith("24") else names.get(plain, plain))
