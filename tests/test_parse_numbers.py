"""Numbers in figures of several national styles, in fractions and in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers.parse_numbers import NUMBER, is_word, parse_number

_WHOLE = re.compile(NUMBER, re.IGNORECASE)

VALUES = {
    "0": 0, "7": 7, "500": 500, "2400": 2400, "1.5": 1.5, "0.05": 0.05, "3.125": 3.125, "0.125": 0.125, "0.250": 0.25,
    ".5": 0.5, "0·5": 0.5, "1,000": 1000, "1,000,000": 1e6, "12,500.5": 12500.5, "10 000": 1e4, "100 000": 1e5,
    "1 000 000": 1e6, "10\u00a0000": 1e4, "10\u2009000": 1e4, "12\u202f500": 12500, "0,5": 0.5, "1,5": 1.5,
    "12,25": 12.25, "0,125": 0.125, "1.000.000": 1e6, "1.234,5": 1234.5, "2.4 million": 2.4e6, "5 thousand": 5000,
    "½": 0.5, "1½": 1.5, "2¼": 2.25, "⅔": 2 / 3, "1/2": 0.5, "3/4": 0.75, "1 1/2": 1.5, "one": 1, "Two": 2,
    "seventeen": 17, "twenty": 20, "twenty-four": 24, "twenty four": 24, "forty-five": 45, "ninety nine": 99,
    "one hundred": 100, "a hundred": 100, "hundred": 100, "two hundred": 200, "one hundred and fifty": 150,
    "three hundred twenty-five": 325, "one thousand": 1000, "ten thousand": 10_000, "two million": 2e6,
    "one and a half": 1.5, "two and a half": 2.5, "half": 0.5, "half a": 0.5, "half an": 0.5, "half of a": 0.5,
    "a quarter of a": 0.25, "a": 1, "an": 1, "٥٠٠": 500,
}  # fmt: skip
# Read as thousands in a unit that is counted whole, refused in any other: "1.000 mg" may be one or a thousand.
DOUBTFUL = {"1.000": 1000, "10.000": 10_000, "1.500": 1500, "250.000": 250_000, "2.250": 2250}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_one_value(text, value):
    match = _WHOLE.match(text)
    assert match is not None
    assert match.group() == text
    assert parse_number(text) == pytest.approx((value, value))


_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety"


def test_every_number_word():
    for value, word in enumerate(_WORDS.split(), start=1):
        assert parse_number(word) == (value, value)
        assert _WHOLE.match(f"{word} days").group() == word
    for tens, word in enumerate(_TENS.split(), start=1):
        assert parse_number(word) == (10 * tens, 10 * tens)
        if tens > 1:
            for ones, other in enumerate(_WORDS.split()[:9], start=1):
                assert parse_number(f"{word}-{other}") == parse_number(f"{word} {other}") == (10 * tens + ones,) * 2


@pytest.mark.parametrize(("text", "value"), DOUBTFUL.items())
def test_dotted_thousands_are_refused_unless_the_unit_is_counted_whole(text, value):
    assert parse_number(text) is None
    assert parse_number(text, whole=True) == (value, value)


def test_a_number_that_may_be_two_is_refused():
    # "2 500 mg tablets" are two tablets, or one amount in French.
    assert _WHOLE.match("2 500").group() == "2 500"
    assert parse_number("2 500") is None
    assert parse_number("12 345", whole=True) is None


@pytest.mark.parametrize(("text", "ends"), [("a few", (2, 7)), ("a couple of", (2, 3))])
def test_loose_words_name_a_stretch(text, ends):
    assert parse_number(text) == ends


@pytest.mark.parametrize(("text", "value"), [("once", 1), ("twice", 2), ("thrice", 3)])
def test_adverbs(text, value):
    assert parse_number(text) == (value, value)


@pytest.mark.parametrize("text", ["", "someone", "tension", "weekend", "²", "ⅻ", "x", "9" * 400, "1.2.3", "--"])
def test_what_is_no_number(text):
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["someone", "tenths", "oneself", "anon", "halfway", "fewer"])
def test_words_are_not_found_inside_words(text):
    assert _WHOLE.match(text) is None


def test_the_longest_reading_wins():
    for text, longest in (
        ("one hundred and fifty mg", "one hundred and fifty"),
        ("forty-five minutes", "forty-five"),
        ("10 000 IU", "10 000"),
        ("1 1/2 tablets", "1 1/2"),
        ("half a tablet", "half a"),
        ("1.5 to 2", "1.5"),
    ):
        assert _WHOLE.match(text).group() == longest


@given(st.integers(min_value=0, max_value=10**9))
def test_figures_mean_the_same_in_every_style(n):
    plain, grouped = str(n), f"{n:,}"
    assert parse_number(plain) == parse_number(grouped) == (n, n)
    if n >= 10**6:
        assert parse_number(grouped.replace(",", ".")) == (n, n)
    assert parse_number(grouped.replace(",", "\u2009")) == (n, n)


@given(st.integers(min_value=1, max_value=10**6))
def test_decimals_without_a_final_nought_are_never_thousands(n):
    text = f"{n / 1000:.3f}".rstrip("0").rstrip(".")
    assert parse_number(text) == pytest.approx((n / 1000, n / 1000))


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_none(text):
    found = parse_number(text)
    assert found is None or (0 <= found[0] <= found[1] < float("inf"))
    assert isinstance(is_word(text), bool)
