"""Comparators before and after a value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers.bounds import comparator_after, comparator_before, is_limit

# Each text ends where the value starts.
BEFORE = {
    "at least ": "min", "at the very least ": "min", "not less than ": "min", "no less than ": "min",
    "no fewer than ": "min", "minimum ": "min", "a minimum of ": "min", "≥": "min", ">= ": "min", "from ": "min",
    "more than ": "min", "greater than ": "min", "over ": "min", "above ": "min", "exceeds ": "min",
    "older than ": "min", "longer than ": "min", "beyond ": "min", ">": "min", "> ": "min", "in excess of ": "min",
    "upwards of ": "min", "at least about ": "min", "above around ": "min", "over ~": "min", "at most ": "max",
    "no more than ": "max", "not more than ": "max", "no longer than ": "max", "no higher than ": "max",
    "up to ": "max", "up to about ": "max", "maximum ": "max", "a maximum of ": "max", "to a maximum of ": "max",
    "max ": "max", "max. ": "max", "maximum: ": "max", "≤": "max", "<= ": "max", "less than ": "max",
    "fewer than ": "max", "under ": "max", "below ": "max", "younger than ": "max", "<": "max", "within ": "max",
    "before ": "max", "not exceeding ": "max", "should not exceed ": "max", "must not go above ": "max",
    "not be more than ": "max", "never exceed ": "max", "without exceeding ": "max", "do not take more than ": "max",
    "never take more than ": "max", "don't give more than ": "max", "avoid taking more than ": "max",
    "do not use it for more than ": "max", "should not be used for longer than ": "max",
    "cannot be more than ": "max", "you mustn't have over ": "max", "not below ": "min",
    "should not fall below ": "min", "never less than ": "min", "must not be under ": "min",
    "do not use in people over ": "min", "avoid if it is above ": "min", "not recommended over ": "min",
    "do not use in children under ": "max", "avoid below ": "max", "not if it is below ": "max",
}  # fmt: skip
NOT_BEFORE = [
    "", "take ", "about ", "discover ", "moreover ", "turnover ", "thunder ", "cover-", "the past ",
    "more than usual, ", "up to date: take ", "or more ",
]  # fmt: skip
# Each text begins where the value ends.
AFTER = {
    " or more": "min", " or above": "min", " or higher.": "min", " and over": "min", " and older": "min", "+": "min",
    " or longer": "min", " and above": "min", " (7.0 mmol/L) or above": "min", ", or more": "min", " or less": "max",
    " or below": "max", " or lower": "max", " or fewer": "max", " and under": "max", " at most": "max",
    " maximum": "max", " (38 °C) or less": "max",
}  # fmt: skip
NOT_AFTER = ["", " or moreover", " or two", " and overall", " or up to 10 mg", " a day", " more", " or maximally"]
LIMITS = [
    "the maximum is ", "the maximum daily dose is ", "maximum dose: ", "the limit is ", "the upper limit of ",
    "a ceiling of ", "the maximum recommended amount in adults is ", "limit alcohol to ",
]  # fmt: skip
NO_LIMITS = [
    "the usual dose is ",
    "the maximum effect comes after ",
    "the minimum is ",
    "the limit is known. Take ",
    "",
]


@pytest.mark.parametrize(("text", "bound"), BEFORE.items())
def test_before(text, bound):
    found = comparator_before(text + "4 g", len(text))
    assert found is not None
    assert found.bound == bound
    assert not text[: found.start].strip().endswith(("at", "no", "up"))


@pytest.mark.parametrize("text", NOT_BEFORE)
def test_no_comparator_before(text):
    assert comparator_before(text + "4 g", len(text)) is None


def test_from_is_no_bound_where_to_follows():
    text = "raise it from 5 mg to 10 mg"
    assert comparator_before(text, text.index("5")) is None
    assert comparator_before("from 5 mg. Then go to bed", 5) is not None


@pytest.mark.parametrize(("text", "bound"), AFTER.items())
def test_after(text, bound):
    assert comparator_after("4 g" + text, 3) == bound


@pytest.mark.parametrize("text", NOT_AFTER)
def test_no_comparator_after(text):
    assert comparator_after("4 g" + text, 3) is None


@pytest.mark.parametrize("text", LIMITS)
def test_limits_named(text):
    assert is_limit(text + "4 g", len(text))


@pytest.mark.parametrize("text", NO_LIMITS)
def test_no_limit_named(text):
    assert not is_limit(text + "4 g", len(text))


@given(st.text(max_size=120), st.integers(min_value=0, max_value=120))
def test_any_place_in_any_text(text, place):
    place = min(place, len(text))
    before = comparator_before(text, place)
    assert before is None or 0 <= before.start <= place
    assert comparator_after(text, place) in ("min", "max", None)
    assert is_limit(text, place) in (True, False)
