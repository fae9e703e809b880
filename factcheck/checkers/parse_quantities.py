"""Find amounts, thresholds, ranges, frequencies, durations and ages in clinical text.

Every value becomes a closed interval in the base unit of its dimension, so that 0.05 mg and 50 micrograms, "every 6 to 8
hours" and "three or four times a day", or "under a minute" and "less than 60 seconds" can be compared as numbers. Numbers
without a unit (scores, dates, telephone numbers, codes) are no values, except blood pressures and ages.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from factcheck.checkers.bounds import comparator_after, comparator_before, is_limit
from factcheck.checkers.cues import usual_letters
from factcheck.checkers.frequencies import TO, find_frequencies
from factcheck.checkers.parse_numbers import NUMBER, is_word, parse_number
from factcheck.checkers.quantities import PERIODS, Quantity
from factcheck.checkers.units import UNIT_PATTERN, Unit, parse_unit

_GAP = r"(?:[\s\u00a0]{0,2}|-)"
# "mg/mmol" must not be read as mg, nor the first half of "875 mg/125 mg" as the whole; "mg/8h" holds a frequency.
_UNIT_ENDS = r"(?!\w)(?![\s\u00a0]?/[\s\u00a0]?(?!\d{1,2}\s?(?:h|hrs?|hours)\b)[\wµμ])"
_AMOUNT = re.compile(
    rf"(?<![\w.,/+-])(?:(?P<count>{NUMBER})[\s\u00a0]?[x×][\s\u00a0]?(?=\d))?(?P<low>{NUMBER})(?P<plus>\+)?"
    rf"(?:(?:{_GAP}(?P<lowunit>{UNIT_PATTERN})(?!\w))?{TO}(?P<high>{NUMBER}))?"
    rf"{_GAP}(?P<unit>{UNIT_PATTERN}){_UNIT_ENDS}",
    re.IGNORECASE,
)
_PRESSURE = re.compile(
    r"(?<![\w/.,-])(?P<sys>\d{2,3})(?:\s?/\s?|\sover\s)(?P<dia>\d{2,3})(?![\w/]|[.,]\d|\s?(?:mg|mcg|g|ml)\b)(?:\s?mm\s?hg\b)?",
    re.IGNORECASE,
)
_WHICH_PRESSURE = re.compile(r"\b(systolic|diastolic)\b", re.IGNORECASE)
_AGED = re.compile(
    rf"\b(?:(?P<aged>aged?|ages)|children|child|adults?|people|women|men|patients|those|anyone|girls|boys|infants|babies)\s"
    rf"(?:(?:aged|who are|between|from)\s)*(?:[a-z]+ (?:than )?)?(?P<low>\d{{1,3}})(?:{TO}(?P<high>\d{{1,3}}))?"
    rf"(?![\w%/]|[.,]\d|{_GAP}{UNIT_PATTERN}(?!\w))",
    re.IGNORECASE,
)
_AGE_AFTER = re.compile(
    r"[\s-]?(?:old\b|of age\b|(?:and|or) (?:older|over|younger|under)\b|and above\b)", re.IGNORECASE
)
_AGE_BEFORE = re.compile(
    r"\b(?:aged|ages?|adults?|children|child|infants?|bab(?:y|ies)|newborns?|women|men|people|patients|anyone|someone|"
    r"girls?|boys?|toddlers?|those)"
    r"(?:\s(?:aged|who (?:is|are)|between|from))?\s?$",
    re.IGNORECASE,
)
_GESTATION_AFTER = re.compile(
    r"['’]?\s?(?:of (?:pregnancy|gestation)|pregnant|gestation|onwards? (?:in|of) pregnancy)", re.IGNORECASE
)
_PREGNANT = re.compile(
    r"\bpregnan\w+|\bgestation\w*|\bf(?:o)?etal\b|\bf(?:o)?etus\b|\bamniotic\b|\btrimester\b|\bthe baby(?:'s)?\b",
    re.IGNORECASE,
)
_DURATION_BEFORE = re.compile(
    r"\b(?:for|lasts?|lasting|lasted|over|the first|course of|total of|continued?|another|least|take|"
    r"took)\s?(?:about|around|up to|at least|only|a total of|roughly)?\s?$",
    re.IGNORECASE,
)
_DURATION_AFTER = re.compile(
    r"[\s-](?:course|courses|regimen|trial of|supply|or longer|in total|of (?:treatment|therapy))", re.IGNORECASE
)
# A fall by 5 mmHg is no pressure of 5 mmHg; a rise to 130 mmHg is one of 130 mmHg, and "a lower dose of" is a dose.
_CHANGE_BEFORE = re.compile(
    r"\b(?!(?:(?<=\ba )|(?<=\ban )|(?<=\bthe ))(?:lower|reduced|increased|raised|decreased)\b)"
    r"(?:fall|falls|fell|drop|reduc|lower|rais|ris(?!k)|increas|decreas|gain|loss|lose|cut|chang|benefit|shorten)\w*\b[^\d.;]{0,60}?"
    r"(?:\b(?:by|of|about|around|roughly|approximately|some)|:)\s?(?:about|around|roughly|approximately|up to)?\s?$"
    r"|\b(?:lost|los(?:e|es|ing)|gain(?:s|ed|ing)?)\s(?:about |around |some )?$",
    re.IGNORECASE,
)
# "the maximum daily dose is 4 g" states 4 g a day.
_DAILY_BEFORE = re.compile(
    r"(?<!single )(?<!one )(?<!once )(?<!single-)\b(?:daily|24[ -]hour(?:ly)?)\s"
    r"(?:dos(?:e|es|age)|total|maximum|max|limit|intake|allowance|amount|requirement)\b[^.;\d]{0,40}$"
    r"|\b(?:maximum|total|limit) (?:per|in) (?:a |one |any )?(?:day|24 hours)\b[^.;\d]{0,30}$",
    re.IGNORECASE,
)
# "4 g of paracetamol in 24 hours", "4 g or less per day": the denominator stands further behind.
_OF_WHAT = r"(?:\sof\s(?:(?!(?:times|doses|once|twice|thrice)\b)[\w-]+\s){1,3}?)?"
_PER_AFTER = re.compile(
    rf"(?:{_OF_WHAT}(?<=\s)|\s?(?:or (?:less|more|fewer|under|below|above)|maximum|at most)\s)"
    r"(?P<per>(?:per|a|in|in any|in a|in one|in each)\s(?:day|week|24[ -]hours?|24[ -]hour period))\b"
    r"(?!\s(?:later|before|after|ago))",
    re.IGNORECASE,
)
_DIVIDED = re.compile(r"\b(?:divided|equal|separate|split)\b", re.IGNORECASE)
_DAILY_DIVIDED = re.compile(
    r"(?P<daily>,?\s(?:once )?(?:daily|each day|every day)\b)[\s,]{0,2}(?:(?:given|taken) )?"
    r"(?:divided\b|(?:in|into|as) [\w ]{0,20}\b(?:divided|equal|separate|split)\b)",
    re.IGNORECASE,
)
_CONFIDENCE_INTERVAL = re.compile(r"\s?(?:CI\b|confidence|credible|prediction)", re.IGNORECASE)
_TABLETS = re.compile(r"[\s-](?:tablets?|capsules?|caplets?|pills?|tabs?|caps)\b", re.IGNORECASE)
_COUNT_BEFORE = re.compile(rf"(?<![\w.,/-])(?P<count>{NUMBER})\s$", re.IGNORECASE)
_DOSED = frozenset({"mass", "[iu]", "volume", "substance"})
_COUNTED_WHOLE = frozenset({"[iu]", "[cell] / [length] ** 3", "[tablet]", "[length] ** 2 * [mass] / [time] ** 2"})
# What may stand between a dose and its frequency.
_UP_TO_RATE = re.compile(rf"{_OF_WHAT}(?:[^.;]|[.;](?!\s)){{0,14}}")
_RATE_REACH = 60
_PLAUSIBLE = {"C": (30.0, 45.0), "F": (86.0, 113.0)}
_YEAR = 365.25 * 86_400


class _Context(NamedTuple):
    text: str
    pregnant: bool


class _Mention(NamedTuple):
    """Hold the parts of one value: ``text[start:end]`` from its first number to its unit."""

    low: str
    high: str | None
    surface: str
    unit: Unit
    low_unit: Unit
    start: int
    end: int
    plus: bool = False
    times: float = 1.0


def find_quantities(text: str) -> list[Quantity]:
    """Return the values of a text in order; a span belongs to one reading, the longest, with frequencies before amounts.

    A dose behind which its frequency stands is read twice, as the dose and as what it comes to in a day.

    >>> [(q.kind, q.low, q.high) for q in find_quantities("Repeat every 6 to 8 hours.")]
    [('frequency', 3.0, 4.0)]
    """
    plain = usual_letters(text)
    found = _find(plain)
    return found if plain is text else [replace(q, text=text[q.start : q.end]) for q in found]


def _find(text: str) -> list[Quantity]:
    rates = _without_overlaps(find_frequencies(text), [])
    context = _Context(text, _PREGNANT.search(text) is not None)
    others = _without_overlaps([*_pressures(text), *_amounts(context), *_ages(text)], rates)
    spoken_for = _period_ends(others, text)
    found = [_shared_out(_without_bsa(q), rates, text) for q in others if q.kind != "time" or q.end not in spoken_for]
    return sorted([*rates, *found, *_daily_totals(found, rates, text)], key=lambda q: (q.start, q.end, q.dimension))


def _amounts(context: _Context) -> Iterator[Quantity]:
    last: Quantity | None = None
    for match in _AMOUNT.finditer(context.text):
        for mention in _mentions(context.text, match):
            quantity = _read(context, mention, last)
            if quantity is not None:
                last = quantity
                yield quantity


def _mentions(text: str, match: re.Match[str]) -> Iterator[_Mention]:
    unit = parse_unit(match["unit"])
    if unit is None or not _sensible(text, match, unit):
        return
    low_unit = (parse_unit(match["lowunit"]) if match["lowunit"] else None) or unit
    start, end = match.start("low"), match.end()
    whole = _Mention(match["low"], match["high"], match["unit"], unit, low_unit, start, end, bool(match["plus"]))
    if not match["high"] or _one_range(text[match.end("lowunit") : match.start("high")], low_unit, unit):
        yield _counted(text, match, whole)
        return
    # "400 mg or two tablets" names two values.
    yield whole._replace(high=None, surface=match["lowunit"], unit=low_unit, end=match.end("lowunit"))
    yield whole._replace(low=match["high"], high=None, low_unit=unit, start=match.start("high"))


def _one_range(connector: str, low: Unit, high: Unit) -> bool:
    if low.dimension != high.dimension:
        return False
    # "5 mg to 10 mg per kg" says the denominator once; "500 mg or 15 mg/kg" means it once.
    return low.per == high.per or (not low.per and connector.strip().lower() not in ("or", "and"))


def _counted(text: str, match: re.Match[str], mention: _Mention) -> _Mention:
    """Read "2 x 500 mg" and "two 500 mg tablets" as 1 g."""
    if mention.high or mention.unit.dimension not in _DOSED:
        return mention
    start, surface = match.start("count"), match["count"]
    if surface is None and _TABLETS.match(text, mention.end):
        before = _COUNT_BEFORE.search(text, max(0, mention.start - 24), mention.start)
        start, surface = (before.start("count"), before["count"]) if before else (0, None)
    value = parse_number(surface) if surface else None
    if value is None or value[0] != value[1] or surface.lower() in ("a", "an"):
        return mention
    return mention._replace(start=start, times=value[0])


def _read(context: _Context, mention: _Mention, last: Quantity | None) -> Quantity | None:
    text, unit, end = context.text, mention.unit, mention.end
    whole = unit.dimension in _COUNTED_WHOLE
    low = parse_number(mention.low, whole=whole)
    high = parse_number(mention.high, whole=whole) if mention.high else low
    before, after = comparator_before(text, mention.start), "min" if mention.plus else comparator_after(text, end)
    begin = before.start if before else mention.start
    if low is None or high is None:
        return None
    # "a day" and "an hour" are mostly "per".
    counts = before or _DURATION_BEFORE.search(text[max(0, begin - 40) : begin])
    if mention.low.lower() in ("a", "an") and not counts:
        return None
    ends = [_scaled(value * mention.times, mention.low_unit) for value in low]
    if mention.high:
        ends += [_scaled(value * mention.times, unit) for value in high]
    bound: str = "range" if mention.high else "exact" if low[0] == low[1] else "loose"
    if not mention.high:
        bound = before.bound if before else after or ("max" if bound == "exact" and is_limit(text, begin) else bound)
    if bound == "exact" and last and last.bound in ("min", "max") and text[last.end : begin].strip() == "(":
        # "at least 38 °C (100.4 °F)": the conversion shares the comparator.
        bound = last.bound
    kind = "change" if _CHANGE_BEFORE.search(text[max(0, begin - 70) : begin]) else "amount"
    if unit.dimension == "time" and not unit.per:
        kind = _time_kind(context, mention, begin)
    dimension = _pressure_dimension(text, begin, end) if unit.dimension == "pressure" else unit.dimension
    per = _with_period(text, begin, end, unit.per) if kind == "amount" and dimension in _DOSED else unit.per
    least = -math.inf if bound == "max" else min(ends)
    most = math.inf if bound == "min" else max(ends)
    return Quantity(text[begin:end], begin, end, least, most, dimension, kind, per, bound, low[0])


def _sensible(text: str, match: re.Match[str], unit: Unit) -> bool:
    surface = match["unit"]
    if is_word(match["low"]) and len(surface) == 1:
        return False
    if surface in _PLAUSIBLE:
        value = parse_number(match["high"] or match["low"])
        low, high = _PLAUSIBLE[surface]
        return value is not None and low <= value[0] <= high
    return not (unit.dimension == "fraction" and _CONFIDENCE_INTERVAL.match(text, match.end()))


def _time_kind(context: _Context, mention: _Mention, begin: int) -> str:
    text, end, surface = context.text, mention.end, mention.surface.lower()
    before = text[max(0, begin - 40) : begin]
    if surface in ("yo", "y/o"):
        return "age"
    if _AGE_AFTER.match(text, end) or (re.match(r"month|year|week", surface) and _AGE_BEFORE.search(before)):
        return "age"
    if _GESTATION_AFTER.match(text, end) or (surface.startswith("week") and context.pregnant):
        return "gestation"
    if _DURATION_BEFORE.search(before) or _DURATION_AFTER.match(text, end):
        return "duration"
    return "time"


def _pressure_dimension(text: str, begin: int, end: int) -> str:
    behind = re.match(r"\s(systolic|diastolic)\b", text[end : end + 12], re.IGNORECASE)
    ahead = _WHICH_PRESSURE.findall(re.split(r"[.;]", text[max(0, begin - 40) : begin])[-1])
    if behind:
        return behind[1].lower()
    return ahead[-1].lower() if ahead else "pressure"


def _with_period(text: str, begin: int, end: int, per: tuple[str, ...]) -> tuple[str, ...]:
    if PERIODS & set(per):
        return per
    found: tuple[str, ...] = ("day",) if _DAILY_BEFORE.search(text[max(0, begin - 64) : begin]) else ()
    if after := _PER_AFTER.match(text, end):
        parsed = parse_unit(f"g {after['per']}")
        found = found or (parsed.per if parsed else ())
    return tuple(sorted({*per, *found} - {"dose"})) if found else per


def _period_ends(amounts: Sequence[Quantity], text: str) -> set[int]:
    """Return where periods end that belong to an amount further ahead."""
    found = (_PER_AFTER.match(text, q.end) for q in amounts if PERIODS & set(q.per))
    return {match.end("per") for match in found if match}


def _scaled(value: float, unit: Unit) -> float:
    return value * unit.factor + unit.offset


def _pressures(text: str) -> Iterator[Quantity]:
    for match in _PRESSURE.finditer(text):
        systolic, diastolic = int(match["sys"]), int(match["dia"])
        if not (70 <= systolic <= 260 and 30 <= diastolic <= 160 and systolic > diastolic):
            continue
        before, after = comparator_before(text, match.start()), comparator_after(text, match.end())
        begin = before.start if before else match.start()
        bound = before.bound if before else after or "exact"
        for name, number in (("systolic", systolic), ("diastolic", diastolic)):
            value = number * _mmhg()
            low, high = -math.inf if bound == "max" else value, math.inf if bound == "min" else value
            whole = text[begin : match.end()]
            yield Quantity(whole, begin, match.end(), low, high, name, "amount", (), bound, float(number))


def _mmhg() -> float:
    unit = parse_unit("mmHg")
    return unit.factor if unit else math.nan


def _ages(text: str) -> Iterator[Quantity]:
    """Read ages without a unit: "aged 18 to 65", "adults over 65", "children under 12"."""
    for match in _AGED.finditer(text):
        start, end = match.start("low"), match.end()
        before, after = comparator_before(text, start), comparator_after(text, end)
        if not (before or after or match["aged"] or " aged " in match.group()):
            continue
        low = float(match["low"])
        high = float(match["high"]) if match["high"] else low
        bound = "range" if match["high"] else before.bound if before else after or "exact"
        begin = before.start if before else start
        least = -math.inf if bound == "max" else min(low, high) * _YEAR
        most = math.inf if bound == "min" else max(low, high) * _YEAR
        yield Quantity(text[begin:end], begin, end, least, most, "time", "age", (), bound, low)


def _without_overlaps(quantities: Sequence[Quantity], taken: Sequence[Quantity]) -> list[Quantity]:
    """Return the quantities that overlap neither those taken nor a longer one; equal spans stay together."""
    spans = sorted((q.start, q.end) for q in taken)
    kept = []
    for quantity in sorted(quantities, key=lambda q: (-(q.end - q.start), q.start)):
        own = (quantity.start, quantity.end)
        place = bisect.bisect_left(spans, own)
        equal = place < len(spans) and spans[place] == own and not any((q.start, q.end) == own for q in taken)
        clash = (place > 0 and spans[place - 1][1] > own[0]) or (place < len(spans) and spans[place][0] < own[1])
        if equal or not clash:
            kept.append(quantity)
            if not equal:
                spans.insert(place, own)
    return sorted(kept, key=lambda q: (q.start, q.dimension))


def _behind(amount: Quantity, rates: Sequence[Quantity], text: str) -> Quantity | None:
    """Return the frequency that stands right behind an amount."""
    place = bisect.bisect_left(rates, amount.end, key=lambda rate: rate.start)
    rate = rates[place] if place < len(rates) else None
    if rate is None or rate.start - amount.end > _RATE_REACH:
        return None
    return rate if _UP_TO_RATE.fullmatch(text, amount.end, rate.start) else None


def _shared_out(amount: Quantity, rates: Sequence[Quantity], text: str) -> Quantity:
    """Read "2 g daily in two divided doses" as 2 g per day."""
    if amount.kind != "amount" or amount.dimension not in _DOSED or PERIODS & set(amount.per):
        return amount
    daily = _DAILY_DIVIDED.match(text, amount.end)
    if daily is None:
        return amount
    end = daily.end("daily")
    return replace(amount, text=text[amount.start : end], end=end, per=tuple(sorted({*amount.per, "day"} - {"dose"})))


def _daily_totals(amounts: Sequence[Quantity], rates: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Read "5 mg twice daily" also as 10 mg per day, which is how limits are stated."""
    for amount in amounts:
        if amount.kind != "amount" or amount.dimension not in _DOSED or PERIODS & set(amount.per):
            continue
        rate = _behind(amount, rates, text)
        if rate is None or max(rate.low, rate.point) < 1 or amount.point <= 0 or _DIVIDED.search(rate.text):
            continue
        bounds = {q.bound for q in (amount, rate)}
        if {"min", "max"} <= bounds:
            continue
        one_sided = bounds & {"min", "max"}
        bound = one_sided.pop() if one_sided else "exact" if bounds == {"exact"} else "range"
        low = -math.inf if bound == "max" else amount.low * rate.low
        high = math.inf if bound == "min" else amount.high * rate.high
        per = tuple(sorted({*amount.per, "day"} - {"dose"}))
        whole = text[amount.start : rate.end]
        yield Quantity(whole, amount.start, rate.end, low, high, amount.dimension, "amount", per, bound)


def _without_bsa(quantity: Quantity) -> Quantity:
    """Read mL/min and mL/min/1.73 m² as the same scale, as prescribing texts do."""
    if "bsa" in quantity.per:
        return replace(quantity, per=tuple(part for part in quantity.per if part != "bsa"))
    return quantity
