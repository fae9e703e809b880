"""Units as clinicians write them, normalised through pint.

A unit is a numerator, denominators that pint understands (volumes) and denominators that change what is being said rather
than its scale (per kg of body weight, per day, per dose), which are kept apart: 5 mg/kg is no number, and 7.5 mg per day is
not 7.5 mg per week in another unit.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from factcheck.errors import MissingExtraError

# surface form -> pint expression; matched without case except where case carries meaning
_NUMERATORS: dict[str, str] = {
    "kg|kilogram(?:me)?s?|kilos?": "kg",
    "g|gram(?:me)?s?|gms?": "g",
    "mgs?|milligram(?:me)?s?": "mg",
    "mcgs?|µg|μg|ug|microgram(?:me)?s?": "microgram",
    "ng|nanogram(?:me)?s?": "ng",
    "lbs?|pounds?": "lb",
    # A unit of insulin or heparin is an international unit; labels drop the word.
    "iu|i\\.u\\.?|international units?|units?|(?-i:U)(?!\\.\\w)": "iu",
    "(?-i:miu|mIU|mU)|milli-?(?:international )?units?": "milli_iu",
    "(?-i:µIU|μIU|uIU|µU|μU)|micro-?(?:international )?units?": "micro_iu",
    "(?-i:MU|MIU)|mega-?units?": "mega_iu",
    "mls?|millilit(?:re|er)s?|cc": "mL",
    "teaspoon(?:ful)?s?|tsp": "medicine_spoon",
    "l|lit(?:re|er)s?": "L",
    "dl|decilit(?:re|er)s?": "dL",
    "mmol|millimoles?": "mmol",
    "µmol|μmol|umol|micromol(?:e|es)?": "micromol",
    "nmol|nanomoles?": "nmol",
    "pmol|picomoles?": "pmol",
    "meq": "milliequivalent",
    "mm ?hg|millimet(?:re|er)s? of mercury": "mmHg",
    "kpa": "kPa",
    "° ?c|degrees? c(?:elsius)?|degrees? centigrade|celsius|℃": "degC",
    "° ?f|degrees? f(?:ahrenheit)?|fahrenheit|℉": "degF",
    # Bare letters are temperatures only where the number can be one: see ``parse_quantities``.
    "(?-i:C)": "bareC",
    "(?-i:F)": "bareF",
    "%|per ?cent": "percent",
    "seconds?|secs?": "second",
    "minutes?|mins?": "minute",
    "hours?|hrs?|h": "hour",
    "days?|nights?": "day",
    "weeks?|wks?": "week",
    "months?": "month",
    "years?|yrs?|y/?o": "year",
    "cm|centimet(?:re|er)s?": "cm",
    "mm|millimet(?:re|er)s?": "mm",
    "m|met(?:re|er)s?": "m",
    "beats?": "beat",
    "breaths?": "breath",
    "cells?": "cell",
    "(?:[x×*] ?)?10(?:\\^?9|⁹)(?: cells)?": "giga_cell",
    "(?:[x×*] ?)?10(?:\\^?6|⁶)(?: cells)?": "mega_cell",
    "(?:[x×*] ?)?10(?:\\^?3|³)(?: cells)?": "kilo_cell",
    "tablets?|pills?|caplets?|tabs?": "tablet",
    "capsules?|caps?": "capsule",
    "puffs?|inhalations?|actuations?|sprays?": "puff",
    "drops?": "drop",
    "sachets?": "sachet",
    "doses?": "dose_count",
    "drinks?": "drink",
    "points?": "score_point",
    "mosm|mosmol": "milliosmole",
    "kcal|calories": "kcal",
}
_MICROLITRE = "µl|μl|ul|microlit(?:re|er)s?|mm3|mm³|cubic millimet(?:re|er)s?"
_VOLUMES = {
    "mls?|millilit(?:re|er)s?": "mL",
    "l|lit(?:re|er)s?": "L",
    "dl|decilit(?:re|er)s?": "dL",
    _MICROLITRE: "microliter",
}
_PERS = {
    "(?:kg|kilogram(?:me)?s?)(?: (?:of )?body[ -]?weight)?": "kg",
    "24[ -]?(?:hours?|hrs?|h)(?: period)?|days?|d": "day",
    "hours?|hrs?|h": "hour",
    "min(?:utes?)?": "minute",
    "weeks?|wk": "week",
    "months?": "month",
    "years?": "year",
    "doses?": "dose",
    "1\\.73 ?m(?:2|²|\\^2)": "bsa",
    "m(?:2|²|\\^2)|square met(?:re|er)": "m2",
    "mol|mole": "mol",
    "mmol|millimole": "mmol",
    "g": "g",
    "puffs?|actuations?|inhalations?": "puff",
    "tablets?|capsules?": "tablet",
}
_PERIODS = {
    "hour": 24.0, "minute": 1440.0, "day": 1.0, "week": 1 / 7, "fortnight": 1 / 14, "month": 1 / 30, "year": 1 / 365,
}  # fmt: skip


_COUNTED = (
    "iu", "cell", "tablet", "capsule", "puff", "drop", "sachet", "dose_count", "drink", "score_point", "beat", "breath",
    "milliequivalent", "milliosmole",
)  # fmt: skip
_DEFINED = (
    "milli_iu = 1e-3 * iu",
    "micro_iu = 1e-6 * iu",
    "mega_iu = 1e6 * iu",
    "kilo_cell = 1e3 * cell",
    "mega_cell = 1e6 * cell",
    "giga_cell = 1e9 * cell",
    "medicine_spoon = 5 * milliliter",
)


def _alternation(table: dict[str, str]) -> str:
    return "|".join(sorted((f"(?:{key})" for key in table), key=len, reverse=True))


_NUMERATOR = _alternation(_NUMERATORS)
_DENOMINATOR = f"(?:(?:{_alternation(_PERS)})|(?:\\d+(?:\\.\\d+)? ?)?(?:{_alternation(_VOLUMES)}))"
_S = "[\\s\\u00a0]"
_IN = f"{_S}in{_S}(?:any{_S}|each{_S}|a{_S}|one{_S})?(?=24|day\\b)"
UNIT_PATTERN = (
    f"(?:bpm|(?:{_NUMERATOR})(?:(?:{_S}?/|{_S}?per{_S}|{_IN}){_S}?{_DENOMINATOR}"
    f"|{_S}an?{_S}(?:day|week|hour|month|year|minute)\\b){{0,3}}"
    # "50,000/µL": blood cells are counted without being named.
    f"|(?:/|per{_S})(?:{_MICROLITRE}))"
)
_SPLIT = re.compile(rf"{_S}?/{_S}?|{_S}?\bper{_S}|{_S}(?:an?|in(?:{_S}(?:any|each|a|one))?){_S}", re.IGNORECASE)


class Unit(NamedTuple):
    """Hold a unit: ``factor`` and ``offset`` take a value to the base unit of ``dimension``; ``per`` is sorted."""

    dimension: str
    factor: float
    offset: float
    per: tuple[str, ...]


def _find(table: dict[str, str], surface: str) -> str | None:
    for pattern, name in table.items():
        if re.fullmatch(pattern, surface, re.IGNORECASE):
            return name
    return None


@functools.lru_cache(maxsize=1)
def _registry() -> Any:
    try:
        import pint
    except ImportError as error:
        raise MissingExtraError("comparing quantities", "pint", "local") from error
    registry = pint.UnitRegistry(cache_folder=None, autoconvert_offset_to_baseunit=True)
    for name in _COUNTED:
        registry.define(f"{name} = [{name}]")
    for definition in _DEFINED:
        registry.define(definition)
    return registry


_NAMES = {
    "[mass]": "mass",
    "[length] ** 3": "volume",
    "[time]": "time",
    "[temperature]": "temperature",
    "[mass] / [length] / [time] ** 2": "pressure",
    "[mass] / [length] ** 3": "mass concentration",
    "[substance] / [length] ** 3": "molar concentration",
    "[substance]": "substance",
    "[length]": "length",
    "dimensionless": "fraction",
}


@functools.lru_cache(maxsize=4096)
def parse_unit(surface: str) -> Unit | None:
    """Normalise a unit as written, or return None if it is none.

    >>> parse_unit("micrograms").dimension, parse_unit("mg/kg/day").per
    ('mass', ('day', 'kg'))
    """
    text = re.sub(r"\bper cent\b", "percent", surface.strip().replace("\u00a0", " "), flags=re.IGNORECASE)
    text = re.sub(r"^bpm\b", "beats/min", text, flags=re.IGNORECASE)
    text = re.sub(r"^y/o$", "yo", text, flags=re.IGNORECASE)
    head, *rest = _SPLIT.split(text)
    if not head.strip():
        counted = len(rest) == 1 and re.fullmatch(_MICROLITRE, rest[0].strip(), re.IGNORECASE)
        numerator = "cell" if counted else None
    else:
        numerator = _find(_NUMERATORS, head.strip())
    if numerator is None:
        return None
    registry = _registry()
    if numerator in ("degC", "degF", "bareC", "bareF"):
        if rest:
            return None
        scale, zero = (1.0, 0.0) if numerator.endswith("C") else (5 / 9, -160 / 9)
        return Unit("temperature", scale, zero, ())
    expression = registry.Quantity(1.0, numerator)
    per: list[str] = []
    for part in rest:
        part = part.strip()
        amount = re.match(r"(\d+(?:\.\d+)?)\s?(?=[a-zµμ])", part, re.IGNORECASE)
        volume = _find(_VOLUMES, part[amount.end() :] if amount else part)
        name = _find(_PERS, part)
        if volume is not None:
            size = float(amount.group(1)) if amount else 1.0
            if size == 0.0:
                return None
            expression = expression / registry.Quantity(size, volume)
        elif name is not None:
            per.append(name)
        else:
            return None
    base = expression.to_base_units()
    if numerator in ("kg", "lb") and not per and len(rest) == 0:
        # Nothing is dosed by the kilogram: these weigh patients.
        return Unit("body weight", float(base.magnitude), 0.0, ())
    dimension = str(expression.dimensionality)
    return Unit(_NAMES.get(dimension, dimension), float(base.magnitude), 0.0, tuple(sorted(per)))


def per_day(period: str) -> float:
    """Return how many of a period make a day (24 for an hour, 1/7 for a week); raises KeyError if it is no period."""
    return _PERIODS[period]
