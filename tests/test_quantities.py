"""Comparing values: what agrees, what is near, what differs, and what cannot be compared."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("pint")

from factcheck.checkers.parse_quantities import find_quantities
from factcheck.checkers.quantities import Quantity, compare

# Symmetric: neither side is the limit or the range of the other.
AGREE = [
    ("0.05 mg", "50 micrograms"), ("0.05 mg", "50 µg"), ("1 g", "1,000 mg"), ("1.5 g", "1500 mg"),
    ("10.000 IU", "10,000 IU"), ("1000 IU", "1000 units"), ("5 mg/kg", "5 mg per kg per dose"),
    ("4 g per day", "4 g in 24 hours"), ("4 g", "4 g per day"), ("15 mg", "15 mg a week"),
    ("5-10 mg/kg", "5 to 10 mg per kg"), ("0.5–1 g", "500 mg to 1 g"), ("10-5 mg", "5-10 mg"),
    ("two 500 mg tablets", "1 g"), ("half a tablet", "½ tablet"), ("at least 5 mg", "5 mg or more"),
    ("up to 4 g", "4 g maximum"), ("up to 4 g", "4 g"), ("at least 38 °C", "38 °C or above"), ("38 °C", "100.4 °F"),
    ("104 °F", "40 °C"), ("140/90", "140/90 mmHg"), ("systolic above 140 mmHg", "above 140 mmHg"),
    ("7 mmol/L", "7.0 mmol/l"), ("6.5%", "6.5 per cent"), ("every 6 hours", "four times a day"),
    ("q8h", "three times daily"), ("every 4 to 6 hours", "4 to 6 times a day"), ("twice daily", "every 12 hours"),
    ("weekly", "once a week"), ("every other day", "every 48 hours"), ("BID", "twice a day"),
    ("for 7 days", "for one week"), ("for 2 weeks", "a 14-day course"), ("under a minute", "less than 60 seconds"),
    ("12 years and older", "over 12 years old"), ("children under 12", "children under 12 years"),
    ("for a few days", "for 3 days"), ("50 x 10^9/L", "50,000/µL"), ("4 mIU/L", "4 µIU/mL"),
    ("below 30 mL/min/1.73 m²", "less than 30 mL/min"), ("a fall of 5 mmHg", "reduced by 5 mmHg"),
    ("100 bpm", "100 beats per minute"), ("2.4 MU", "2.4 million units"),
]  # fmt: skip
DIFFER = [
    ("0.5 mg", "50 micrograms"), ("0.05 mg", "500 mcg"), ("5 mg", "50 mg"), ("5 mg", "10 mg"),
    ("1,000 IU", "10.000 IU"), ("5-10 mg/kg", "15-20 mg/kg"), ("5 mg/kg", "15 mg/kg"), ("up to 4 g", "up to 3 g"),
    ("at least 5 mg", "at least 10 mg"), ("4 g per day", "2 g per day"), ("7.5 mg per day", "7.5 mg per week"),
    ("every 3 to 4 hours", "every 6 to 8 hours"), ("daily", "weekly"), ("once daily", "twice daily"),
    ("every 8 hours", "every 4 hours"), ("weekly", "monthly"), ("for 7 days", "for 10 days"),
    ("for 3 days", "for 3 weeks"), ("for a few days", "for 6 weeks"), ("38 °C", "39 °C"), ("38 °C", "38.5 °C"),
    ("100.4 °F", "101 °F"), ("140/90", "160/90"), ("7 mmol/L", "11 mmol/L"), ("6.5%", "5.7%"),
    ("under 12 years old", "under 2 years old"), ("aged 18 to 40", "aged 50 to 65"),
    ("at 20 weeks of pregnancy", "at 30 weeks of pregnancy"), ("below 30 mL/min", "below 45 mL/min"),
    ("a fall of 5 mmHg", "a fall of 15 mmHg"), ("two tablets", "four tablets"),
]  # fmt: skip
# claim, evidence, relation one way, relation the other way
ONE_WAY = [
    ("5 mg", "5 to 10 mg", "agrees", "near"), ("6 mg/kg", "5-10 mg/kg", "agrees", "near"),
    ("5-20 mg", "5-10 mg", "near", "agrees"), ("5-10 mg", "8-15 mg", "near", "near"),
    ("5 g per day", "up to 4 g per day", "outside_range", "outside_range"),
    ("3 g per day", "up to 4 g per day", "near", "near"), ("4 g per day", "at least 2 g per day", "near", "near"),
    ("1 g per day", "at least 2 g per day", "outside_range", "outside_range"),
    ("10-30 mg", "up to 20 mg", "near", "near"), ("10-30 mg", "up to 30 mg", "near", "near"),
    ("30-40 mg", "up to 20 mg", "outside_range", "outside_range"), ("at least 2 L", "up to 3 L", "near", "near"),
    ("at least 5 L", "up to 3 L", "outside_range", "outside_range"),
    ("every 6 hours", "every 4 to 6 hours", "agrees", "near"),
    ("three times daily", "up to four times daily", "near", "near"),
    ("six times daily", "up to four times daily", "outside_range", "outside_range"),
    ("39 °C", "38 °C or above", "near", "near"), ("37 °C", "38 °C or above", "outside_range", "outside_range"),
    ("every 4 weeks", "monthly", "near", "near"), ("for 3 months", "for 12 weeks", "near", "near"),
    ("for a few days", "for 10 days", "near", "near"), ("120/80", "below 130/80", "near", "near"),
    ("every 3 to 4 hours", "the effect lasts 6 to 8 hours", "differs", None),
    ("every 6 to 8 hours", "the effect lasts 6 to 8 hours", "agrees", None),
    ("every 5 to 7 hours", "6 to 8 hours", "near", None), ("twice a day", "6 to 8 hours", None, None),
    ("every 3 to 4 hours", "10 to 14 days", None, None),
]  # fmt: skip
INCOMPARABLE = [
    ("5 mg", "5 mL"), ("1000 mg", "1000 IU"), ("5 mg", "5 mg/kg"), ("5 mg/kg", "5 mg/m²"), ("2 g", "4 g per day"),
    ("10 mg per day", "70 mg per week"), ("7 days", "7 mg"), ("at 20 weeks of pregnancy", "for 20 weeks"),
    ("3-year-old", "for 3 years"), ("a fall of 5 mmHg", "5 mmHg"), ("a fall of 5 mmHg", "140/90"),
    ("systolic above 140 mmHg", "diastolic above 140 mmHg"), ("140 mg/dL", "7.8 mmol/L"),
    ("once daily", "every five years"), ("two tablets", "two capsules"), ("6.5%", "48 mmol/mol"), ("15 kg", "15 mg"),
    ("20 breaths/min", "20 beats/min"), ("twice daily", "2 points"),
]  # fmt: skip


def value(text):
    """Return the value of a phrase; where it is read twice, the first reading (systolic for a blood pressure)."""
    found = [q for q in find_quantities(text) if q.dimension != "diastolic" or "diastolic" in text]
    return found[0]


@pytest.mark.parametrize(("left", "right"), AGREE)
def test_agreement_is_symmetric(left, right):
    assert compare(value(left), value(right)) == "agrees"
    assert compare(value(right), value(left)) == "agrees"


@pytest.mark.parametrize(("left", "right"), DIFFER)
def test_difference_is_symmetric(left, right):
    assert compare(value(left), value(right)) == "differs"
    assert compare(value(right), value(left)) == "differs"


@pytest.mark.parametrize(("claim", "evidence", "relation", "turned"), ONE_WAY)
def test_ranges_and_limits(claim, evidence, relation, turned):
    assert compare(value(claim), value(evidence)) == relation
    assert compare(value(evidence), value(claim)) == turned


@pytest.mark.parametrize(("left", "right"), INCOMPARABLE)
def test_what_cannot_be_compared(left, right):
    assert compare(value(left), value(right)) is None
    assert compare(value(right), value(left)) is None


@pytest.mark.parametrize("text", sorted({text for pair in (*AGREE, *DIFFER, *INCOMPARABLE) for text in pair}))
def test_every_value_agrees_with_itself(text):
    for quantity in find_quantities(text):
        assert compare(quantity, quantity) == "agrees"


_MASSES = {"micrograms": 1, "mg": 1000, "g": 1_000_000}


def _mass(micrograms, unit):
    figure = f"{micrograms / _MASSES[unit]:.6f}".rstrip("0").rstrip(".")
    return value(f"{figure} {unit}")


@given(st.integers(1, 10**6), st.sampled_from(sorted(_MASSES)), st.sampled_from(sorted(_MASSES)))
def test_a_value_agrees_with_itself_in_any_unit(n, one, other):
    assert compare(_mass(n, one), _mass(n, other)) == "agrees"


@given(st.integers(1, 10**5), st.sampled_from([2, 3, 5, 10, 100, 1000]), st.sampled_from(sorted(_MASSES)))
def test_a_scaled_value_differs(n, factor, unit):
    assert compare(_mass(n, unit), _mass(n * factor, "micrograms")) == "differs"
    assert compare(_mass(n * factor, "mg"), _mass(n, unit)) == "differs"


@given(st.integers(1, 48), st.integers(1, 48))
def test_frequencies_agree_only_if_equal(one, other):
    left, right = value(f"every {one} hours"), value(f"every {other} hours")
    relation = compare(left, right)
    assert (relation == "agrees") == (one == other or max(one, other) <= 1.025 * min(one, other))


_BOUNDS = st.sampled_from(["exact", "range", "min", "max", "loose"])


@st.composite
def _quantities(draw):
    low = draw(st.floats(1e-9, 1e9))
    bound = draw(_BOUNDS)
    high = low * draw(st.floats(1, 3)) if bound in ("range", "loose") else low
    ends = {"min": (low, float("inf")), "max": (float("-inf"), low)}.get(bound, (low, high))
    dimension = draw(st.sampled_from(["mass", "time", "temperature", "systolic", "pressure"]))
    kind = draw(st.sampled_from(["amount", "change"])) if dimension != "time" else "duration"
    per = draw(st.sampled_from([(), ("day",), ("kg",), ("day", "kg")]))
    return Quantity("x", 0, 1, *ends, dimension, kind, per, bound)


@given(_quantities(), _quantities())
def test_relations_are_consistent_either_way(left, right):
    one, other = compare(left, right), compare(right, left)
    assert (one is None) == (other is None)
    against = {"differs", "outside_range"}
    assert (one in against) == (other in against)
    assert compare(left, left) == "agrees"


@given(_quantities(), st.sampled_from(["volume", "[iu]", "length"]))
def test_other_dimensions_are_never_compared(quantity, dimension):
    assume(quantity.dimension != dimension)
    other = Quantity("x", 0, 1, quantity.low, quantity.high, dimension, quantity.kind, quantity.per, quantity.bound)
    assert compare(quantity, other) is None
