"""Units as clinicians write them."""

from __future__ import annotations

import math
import sys

import pytest

pytest.importorskip("pint")

from factcheck.checkers import units
from factcheck.checkers.units import parse_unit, per_day
from factcheck.errors import MissingExtraError

SAME = [
    ["mg", "MG", "mgs", "milligram", "milligrams", "milligramme", "milligrammes"],
    ["g", "gm", "gms", "gram", "grams", "gramme", "grammes"],
    ["mcg", "µg", "μg", "ug", "microgram", "micrograms", "micrograms", "mcgs"],
    ["ng", "nanogram", "nanograms"],
    ["IU", "iu", "I.U.", "i.u.", "international unit", "international units", "units", "unit", "U"],
    ["mIU", "mU", "milliunits", "milli-international units"],
    ["mL", "ml", "ML", "mls", "millilitre", "milliliters", "cc"],
    ["L", "l", "litre", "liters"],
    ["mmol/L", "mmol/l", "mmol per litre", "mmol per liter", "millimoles per litre"],
    ["mg/dL", "mg/dl", "mg per dL", "mg per decilitre"],
    ["mmHg", "mm Hg", "mmhg", "millimetres of mercury"],
    ["°C", "° C", "degrees Celsius", "degrees C", "degrees centigrade", "℃", "C"],
    ["°F", "degrees Fahrenheit", "degrees F", "℉", "F"],
    ["%", "percent", "per cent"],
    ["hour", "hours", "hr", "hrs", "h"],
    ["day", "days", "nights"],
    ["tablet", "tablets", "pill", "caplets", "tabs"],
    ["puff", "puffs", "inhalations", "actuations", "sprays"],
    ["bpm", "beats per minute", "beats/min", "beats/minute"],
    ["breaths/min", "breaths per minute", "breaths a minute"],
    ["mg/kg", "mg per kg", "mg / kg", "mg/kilogram", "mg/kg body weight", "mg per kg of body weight"],
    [
        "mg/kg/day",
        "mg per kg per day",
        "mg/kg per day",
        "mg/kg/24 h",
        "mg/kg/d",
        "mg per kilogram of body weight per day",
    ],
    [
        "g/day",
        "g per day",
        "g a day",
        "g in 24 hours",
        "g per 24 hours",
        "g in any 24-hour period",
        "g/24h",
        "g in a day",
    ],
    ["mL/min/1.73 m²", "ml/min/1.73m2", "mL/min/1.73 m2", "mL per minute per 1.73 m^2", "mL/minute/1.73 m²"],
    ["mg/5 mL", "mg/5ml", "mg per 5 mL", "mg per 5 millilitres"],
    ["cells/µL", "cells/mm3", "cells per microlitre", "/µL", "per mm3", "per cubic millimetre"],
    ["x 10^9/L", "×10⁹/L", "x10^9/L", "10^9/L", "* 10^9 /L"],
    ["mg/m²", "mg/m2", "mg per m2", "mg per square metre"],
    ["mcg/kg/min", "µg/kg/min", "micrograms/kg/minute", "micrograms per kg per minute"],
    ["units/kg/h", "IU/kg/hour", "U/kg/hr", "units per kg per hour"],
    ["teaspoon", "teaspoons", "teaspoonfuls", "tsp"],
]
SCALED = [
    ("g", "mg", 1000.0),
    ("mg", "micrograms", 1000.0),
    ("mcg", "ng", 1000.0),
    ("L", "mL", 1000.0),
    ("teaspoon", "mL", 5.0),
    ("mmol", "micromol", 1000.0),
    ("mg/dL", "mg/L", 10.0),
    ("g/L", "mg/dL", 100.0),
    ("mg/mL", "mg/5 mL", 5.0),
    ("mmol/L", "µmol/L", 1000.0),
    ("ng/mL", "ng/L", 1000.0),
    ("IU/mL", "mIU/mL", 1000.0),
    ("mIU/L", "µIU/mL", 1.0),
    ("MU", "IU", 1e6),
    ("x 10^9/L", "cells/µL", 1000.0),
    ("kPa", "mmHg", 7.50062),
    ("lb", "kg", 0.453592),
    ("weeks", "days", 7.0),
    ("years", "months", 12.0),
    ("hours", "minutes", 60.0),
    ("minutes", "seconds", 60.0),
    ("cm", "mm", 10.0),
]
DIFFERENT = [
    ("mg", "mL"),
    ("mg", "IU"),
    ("mg/dL", "mmol/L"),
    ("mg", "mg/kg"),
    ("mg/kg", "mg/kg/day"),
    ("mg/day", "mg/week"),
    ("tablet", "capsule"),
    ("mg/mmol", "mg"),
    ("mg/g", "mg/mmol"),
    ("kg", "mg"),
    ("mmol/mol", "%"),
    ("beats/min", "breaths/min"),
    ("mg/m²", "mg/kg"),
]
NONE = [
    "",
    " ",
    "foo",
    "mgx",
    "x",
    "/",
    "/mL",
    "mg/foo",
    "mg//kg",
    "mg/0 mL",
    "°C/h",
    "per",
    "a day",
    "µ",
    "\ud800",
    "毫克",
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_spellings_of_one_unit_are_one_unit(forms):
    found = {form: parse_unit(form) for form in forms}
    first = found[forms[0]]
    assert first is not None
    for form, unit in found.items():
        assert unit is not None, form
        assert (unit.dimension, unit.per) == (first.dimension, first.per), form
        assert math.isclose(unit.factor, first.factor), form
        assert unit.offset == first.offset, form


@pytest.mark.parametrize(("large", "small", "factor"), SCALED)
def test_factors_within_a_dimension(large, small, factor):
    one, other = parse_unit(large), parse_unit(small)
    assert (one.dimension, one.per) == (other.dimension, other.per)
    assert one.factor / other.factor == pytest.approx(factor, rel=1e-5)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_units_that_must_not_be_mixed(left, right):
    one, other = parse_unit(left), parse_unit(right)
    assert (one.dimension, one.per) != (other.dimension, other.per)


@pytest.mark.parametrize("surface", NONE)
def test_what_is_no_unit(surface):
    assert parse_unit(surface) is None


def test_case_is_kept_where_it_carries_meaning():
    assert parse_unit("MU").factor == pytest.approx(1e6)
    assert parse_unit("mU").factor == pytest.approx(1e-3)
    assert parse_unit("u") is None
    assert parse_unit("f") is None


def test_both_temperature_scales_meet():
    celsius, fahrenheit = parse_unit("°C"), parse_unit("°F")
    for degrees, same in ((37.0, 98.6), (38.0, 100.4), (40.0, 104.0), (0.0, 32.0)):
        assert degrees * celsius.factor + celsius.offset == pytest.approx(same * fahrenheit.factor + fahrenheit.offset)


def test_denominators_are_sorted_so_that_their_order_does_not_count():
    assert parse_unit("mg/day/kg") == parse_unit("mg/kg/day")


def test_kilograms_alone_weigh_patients():
    assert parse_unit("kg").dimension == "body weight"
    assert parse_unit("kg/m²").dimension == "mass"
    assert parse_unit("lb").factor == pytest.approx(0.453592, rel=1e-5)


@pytest.mark.parametrize(
    ("period", "rate"),
    [("hour", 24.0), ("day", 1.0), ("week", 1 / 7), ("fortnight", 1 / 14), ("minute", 1440.0), ("month", 1 / 30)],
)
def test_periods(period, rate):
    assert per_day(period) == pytest.approx(rate)


def test_what_is_no_period_is_not_taken_for_a_day():
    with pytest.raises(KeyError):
        per_day("aeon")


def test_without_pint_the_error_names_the_extra(monkeypatch):
    parse_unit.cache_clear()
    units._registry.cache_clear()
    monkeypatch.setitem(sys.modules, "pint", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'factcheck\[local\]'"):
        parse_unit("mg")
    monkeypatch.undo()
    parse_unit.cache_clear()
    units._registry.cache_clear()
    assert parse_unit("mg") is not None
