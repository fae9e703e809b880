"""How often something is done, as an interval of times a day."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("pint")
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers.frequencies import find_frequencies
from factcheck.checkers.parse_quantities import find_quantities

ONE = {
    "daily": 1, "once daily": 1, "once a day": 1, "once-daily": 1, "one a day": 1, "every day": 1, "each day": 1,
    "every 24 hours": 1, "nightly": 1, "every night": 1, "each morning": 1, "nocte": 1, "at bedtime": 1, "qhs": 1,
    "a single daily dose": 1, "on a daily basis": 1, "twice daily": 2, "twice-daily": 2, "twice a day": 2,
    "twice per day": 2, "two times a day": 2, "2 times daily": 2, "2x daily": 2, "2x/day": 2, "2×/day": 2, "3/day": 3,
    "b.i.d.": 2, "BID": 2, "every 12 hours": 2, "12-hourly": 2, "q12h": 2, "q12 hours": 2, "q.12.h.": 2,
    "in the morning and evening": 2, "morning and night": 2, "three times daily": 3, "3 times a day": 3,
    "thrice daily": 3, "t.i.d.": 3, "TDS": 3, "8 hourly": 3, "8-hourly": 3, "every 8 hours": 3,
    "every eight hours": 3, "every 8h": 3, "q8h": 3, "q 8 h": 3, "q8hr": 3, "four times a day": 4, "QID": 4,
    "q.i.d.": 4, "qds": 4, "every 6 hours": 4, "q6h": 4, "four times in 24 hours": 4, "four doses a day": 4,
    "four doses in 24 hours": 4, "every 4 hours": 6, "5 daily": 5, "two daily": 2, "every hour": 24,
    "every half hour": 48, "every 30 minutes": 48, "in three divided doses": 3, "in 2 equal doses": 2,
    "divided into 3 doses": 3, "divided in four doses": 4, "every other day": 1 / 2, "every second day": 1 / 2,
    "on alternate days": 1 / 2, "alternate-day": 1 / 2, "every 48 hours": 1 / 2, "q.o.d.": 1 / 2, "qod": 1 / 2,
    "weekly": 1 / 7, "once weekly": 1 / 7, "once a week": 1 / 7, "every week": 1 / 7, "every 7 days": 1 / 7,
    "once every week": 1 / 7, "qweek": 1 / 7, "twice weekly": 2 / 7, "twice a week": 2 / 7, "3 times per week": 3 / 7,
    "thrice weekly": 3 / 7, "three times weekly": 3 / 7, "fortnightly": 1 / 14, "once a fortnight": 1 / 14,
    "every 2 weeks": 1 / 14, "every other week": 1 / 14, "two-weekly": 1 / 14, "q2w": 1 / 14,
    "every three weeks": 1 / 21, "3-weekly": 1 / 21, "every 4 weeks": 1 / 28, "monthly": 1 / 30,
    "once a month": 1 / 30, "every 3 months": 1 / 90, "3-monthly": 1 / 90, "yearly": 1 / 365, "annually": 1 / 365,
    "once a year": 1 / 365, "every five years": 1 / 1825, "one dose a day": 1, "one time a day": 1, "1 dose/day": 1,
    "one dose every week": 1 / 7, "one dose weekly": 1 / 7, "five days a week": 5 / 7, "5 days per week": 5 / 7,
    "5 days/week": 5 / 7, "on two days of the week": 2 / 7, "two days each week": 2 / 7, "one day a week": 1 / 7,
    "seven days a week": 1,
}  # fmt: skip
RANGES = {
    "every 4 to 6 hours": (4, 6), "every 4-6 hours": (4, 6), "every 4–6 hours": (4, 6),
    "every four to six hours": (4, 6), "every 6 or 8 hours": (3, 4), "every 8-6 hours": (3, 4),
    "6 to 8 hourly": (3, 4), "4-6 hourly": (4, 6), "q4-6h": (4, 6), "q4–6h": (4, 6), "q4 - 6 h": (4, 6),
    "q4-6 hours": (4, 6), "once or twice a day": (1, 2), "two to three times a day": (2, 3),
    "2-3 times daily": (2, 3), "three or four times a day": (3, 4), "in two to four divided doses": (2, 4),
    "divided into 2 or 3 doses": (2, 3), "two to three days a week": (2 / 7, 3 / 7), "a few days a week": (2 / 7, 1),
}  # fmt: skip
BOUNDED = {
    "up to four times a day": (-math.inf, 4), "no more than three times daily": (-math.inf, 3),
    "at most twice a day": (-math.inf, 2), "no more than four doses in 24 hours": (-math.inf, 4),
    "no more often than every 4 hours": (-math.inf, 6), "every 4 hours or longer": (-math.inf, 6),
    "at least twice a day": (2, math.inf), "at least every 8 hours": (3, math.inf),
    "at least once a year": (1 / 365, math.inf), "more than once a day": (1, math.inf),
    "at least five days a week": (5 / 7, math.inf),
    "twice a day or more": (2, math.inf), "less than once a week": (-math.inf, 1 / 7),
}  # fmt: skip
BEHIND_A_DOSE = {
    "5 mg BD": 2, "5 mg bd": 2, "5mg BD": 2, "2 tablets bd": 2, "5 mg OD": 1, "5 mg od": 1, "5 mg po od": 1,
    "5 mg qd": 1, "10 units bd": 2, "2 puffs BD": 2, "500 mg/8h": 3, "1 g/6 h": 4,
}  # fmt: skip
NONE = [
    "a BD syringe", "BD needles", "an OD of paracetamol", "OD", "the OD eye", "bid farewell: they forbid it",
    "biweekly", "bi-weekly", "semi-weekly", "bimonthly", "a few times", "as needed", "once", "twice", "three times",
    "again", "the daily dose", "a maximum daily dose of", "daily life", "activities of daily living",
    "the weekly total", "three weekly doses", "a day", "an hour", "one day", "in 24 hours", "24/7", "24 hours",
    "every time", "every child", "each eye", "0 times a day and every 0 hours", "every patient", "quietly", "Q fever",
    "q", "coenzyme Q10", "ten days a week", "two days a month", "two days of the weekend", "a dose a day",
]  # fmt: skip


def _only(text):
    found = [q for q in find_quantities(text) if q.kind == "frequency"]
    assert len(found) == 1, found
    quantity = found[0]
    assert text[quantity.start : quantity.end] == quantity.text
    assert (quantity.dimension, quantity.per) == ("per day", ())
    return quantity


@pytest.mark.parametrize(("text", "rate"), ONE.items())
def test_one_rate(text, rate):
    quantity = _only(f"Take it {text}.")
    assert (quantity.low, quantity.high) == pytest.approx((rate, rate))
    assert quantity.bound == "exact"


@pytest.mark.parametrize(("text", "ends"), RANGES.items())
def test_ranges(text, ends):
    quantity = _only(f"Repeat {text} if needed.")
    assert (quantity.low, quantity.high) == pytest.approx(ends)
    assert quantity.bound == "range"


@pytest.mark.parametrize(("text", "ends"), BOUNDED.items())
def test_bounds(text, ends):
    quantity = _only(f"Use it {text}.")
    assert (quantity.low, quantity.high) == pytest.approx(ends)


@pytest.mark.parametrize(("text", "rate"), BEHIND_A_DOSE.items())
def test_abbreviations_that_need_a_dose_before_them(text, rate):
    assert _only(f"Give {text} for pain").low == pytest.approx(rate)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_frequency(text):
    found = [q.text for q in find_quantities(f"Use {text}.") if q.kind == "frequency" and q.high > 0]
    assert found == []


def test_daily_before_divided_doses_is_the_total():
    assert [q.low for q in find_frequencies("2 g daily in two divided doses")] == [2.0]
    assert find_frequencies("2 g daily in divided doses") == []
    apart = "Take 2 g daily. Others are given in two divided doses."
    assert sorted(q.low for q in find_frequencies(apart)) == [1.0, 2.0]


@given(st.integers(min_value=1, max_value=48))
def test_intervals_and_counts_meet(hours):
    every = _only(f"every {hours} hours")
    assert every.low * hours == pytest.approx(24)
    if 24 % hours == 0:
        assert _only(f"{24 // hours} times a day").low == pytest.approx(every.low)
    assert _only(f"q{hours}h").low == pytest.approx(every.low)
    assert _only(f"{hours}-hourly").low == pytest.approx(every.low)


@pytest.mark.parametrize(
    "text", ["da\u0131ly", "every 2 dayſ", "thrice wee\u212aly", "ON\u0130CE da\u0130ly", "once weeKly"]
)
def test_letters_that_only_look_usual(text):
    assert all(q.text == text[q.start : q.end] for q in find_quantities(text))
    assert all(q.text == text[q.start : q.end] for q in find_frequencies(text))


@given(st.text(max_size=80))
def test_any_text(text):
    for quantity in find_frequencies(text):
        assert text[quantity.start : quantity.end] == quantity.text
        assert quantity.low <= quantity.high
