"""Values of clinical text, written out in the unit that a reader would use."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pint")

from factcheck.checkers.parse_quantities import find_quantities
from factcheck.text.lexicon import words

_SCALES = {
    "mass": (1e-6, "mg"), "volume": (1e-6, "mL"), "[iu]": (1, "IU"), "temperature": (1, "°C"),
    "fraction": (0.01, "%"), "pressure": (133.322387415, "mmHg"), "systolic": (133.322387415, "mmHg systolic"),
    "diastolic": (133.322387415, "mmHg diastolic"), "molar concentration": (1, "mmol/L"),
    "mass concentration": (0.01, "mg/dL"), "substance": (1e-3, "mmol"), "body weight": (1, "kg"),
    "per day": (1, "a day"), "[cell] / [length] ** 3": (1e9, "cells/µL"), "[beat]": (1, "beats"),
    "[breath]": (1, "breaths"), "[iu] / [length] ** 3": (1, "mIU/L"), "[score_point]": (1, "points"),
    "[tablet]": (1, "tablets"), "[puff]": (1, "puffs"), "[drop]": (1, "drops"), "length": (0.01, "cm"),
}  # fmt: skip
_TIMES = {"age": (365.25 * 86400, "years"), "gestation": (7 * 86400, "weeks")}
_PLAIN_KINDS = {"amount", "time", "frequency"}


def written(quantity):
    """Write a value as ``[kind ]interval unit[/per]``; times in hours, ages in years, gestation in weeks."""
    scale, unit = _SCALES.get(quantity.dimension) or _TIMES.get(quantity.kind) or (3600, "h")
    low, high = (
        f"{round(end / scale, 4):,.12g}" if math.isfinite(end) else "" for end in (quantity.low, quantity.high)
    )
    interval = f"≤{high}" if not low else f"≥{low}" if not high else low if low == high else f"{low}–{high}"
    kind = "" if quantity.kind in _PLAIN_KINDS else f"{quantity.kind} "
    loose = "~" if quantity.bound == "loose" else ""
    per = "".join(f"/{part}" for part in quantity.per)
    return f"{kind}{loose}{interval} {unit}{per}"


# Doses with a frequency behind them are read twice, as the dose and as what it comes to in a day.
DOSES = {
    "5 mg": ["5 mg"], "5mg": ["5 mg"], "5-mg tablets": ["5 mg"], "5\u00a0mg": ["5 mg"], "0.05 mg": ["0.05 mg"],
    "50 micrograms": ["0.05 mg"], "50 mcg": ["0.05 mg"], "50 µg": ["0.05 mg"], "50 μg": ["0.05 mg"],
    "1 g": ["1,000 mg"], ".5 mg": ["0.5 mg"], "1,000 mg": ["1,000 mg"], "0,5 mg": ["0.5 mg"], "1,5 g": ["1,500 mg"],
    "0,125 mg": ["0.125 mg"], "3.125 mg": ["3.125 mg"], "1.000 IU": ["1,000 IU"], "10.000 IU": ["10,000 IU"],
    "1.000.000 IU": ["1,000,000 IU"], "10 000 IU": ["10,000 IU"], "1,000,000 units": ["1,000,000 IU"],
    "2.4 million units": ["2,400,000 IU"], "2.4 MU": ["2,400,000 IU"], "1.000 mg": [], "2.500 mg": [], "2 500 mg": [],
    "12 345 mg": [], "5 - 10 mg/kg": ["5–10 mg/kg"], "5-10 mg/kg": ["5–10 mg/kg"], "5–10 mg/kg": ["5–10 mg/kg"],
    "5 to 10 mg per kg": ["5–10 mg/kg"], "5 mg/kg to 10 mg/kg": ["5–10 mg/kg"], "between 5 and 10 mg": ["5–10 mg"],
    "10-5 mg": ["5–10 mg"], "5 or 10 mg": ["5–10 mg"], "500 mg to 1 g": ["500–1,000 mg"],
    "0.5 g–1 g": ["500–1,000 mg"], "5 mg to 10 mg per kg": ["5–10 mg/kg"], "from 5 mg to 10 mg": ["5–10 mg"],
    "1-1.5 g": ["1,000–1,500 mg"], "400 mg or two tablets": ["400 mg", "2 tablets"],
    "15 mg/kg or 1 g": ["15 mg/kg", "1,000 mg"], "500 mg or 15 mg/kg": ["500 mg", "15 mg/kg"],
    "10 mg/kg per dose": ["10 mg/dose/kg"], "40 mg/kg/day": ["40 mg/day/kg"], "0.1 units/kg/h": ["0.1 IU/hour/kg"],
    "5 mL/kg/h": ["5 mL/hour/kg"], "2 L/day": ["2,000 mL/day"], "250 mg/5 mL": ["5,000 mg/dL"],
    "50 mg/m²": ["50 mg/m2"], "30 kg/m²": ["30,000,000 mg/m2"],
    "15 mg per kilogram of body weight per day": ["15 mg/day/kg"], "two hundred mg": ["200 mg"],
    "one hundred and fifty mg": ["150 mg"], "twenty-five mg": ["25 mg"], "half a tablet": ["0.5 tablets"],
    "half a 5 mg tablet": ["2.5 mg"], "½ tablet": ["0.5 tablets"], "1/2 tablet": ["0.5 tablets"],
    "1½ tablets": ["1.5 tablets"], "one and a half tablets": ["1.5 tablets"], "two 500 mg tablets": ["1,000 mg"],
    "2 x 500 mg": ["1,000 mg"], "2 × 200 mg capsules": ["400 mg"], "a 500 mg tablet": ["500 mg"],
    "one or two tablets": ["1–2 tablets"], "1 to 2 puffs": ["1–2 puffs"], "2 drops": ["2 drops"],
    "1 teaspoon (5 mL)": ["5 mL", "5 mL"], "400 IU (10 micrograms)": ["400 IU", "0.01 mg"], "4 grammes": ["4,000 mg"],
    "5 U": ["5 IU"], "10 U.S. hospitals": [], "up to 4 g per day": ["≤4,000 mg/day"],
    "at most 4 g in 24 hours": ["≤4,000 mg/day"], "max 4 g/day": ["≤4,000 mg/day"],
    "4 g/day maximum": ["≤4,000 mg/day"], "4 g or less per day": ["≤4,000 mg/day"], "4 g a day": ["4,000 mg/day"],
    "4 g in any 24-hour period": ["4,000 mg/day"], "never exceed 4 g": ["≤4,000 mg"],
    "without exceeding 4 g": ["≤4,000 mg"], "do not take more than 4 g": ["≤4,000 mg"],
    "more than 4 g": ["≥4,000 mg"], "at least 5 mg": ["≥5 mg"], "over 5 mg": ["≥5 mg"], "discover 5 mg": ["5 mg"],
    "a maximum daily dose of 4 g": ["≤4,000 mg/day"], "the maximum daily dose is 4 g": ["≤4,000 mg/day"],
    "a daily dose of 4 g": ["4,000 mg/day"], "a daily limit of 4 g": ["≤4,000 mg/day"],
    "a maximum of 4 g": ["≤4,000 mg"], "5 mg twice daily": ["5 mg", "10 mg/day", "2 a day"],
    "5 mg BD": ["5 mg", "10 mg/day", "2 a day"], "5 mg/kg every 8 hours": ["5 mg/kg", "15 mg/day/kg", "3 a day"],
    "10 mg every day": ["10 mg", "10 mg/day", "1 a day"],
    "500 mg-1 g every 4–6 hours": ["500–1,000 mg", "2,000–6,000 mg/day", "4–6 a day"],
    "1 g up to four times a day": ["1,000 mg", "≤4,000 mg/day", "≤4 a day"],
    "7.5 mg weekly": ["7.5 mg", "0.1429 a day"], "15 mg once a week": ["15 mg", "0.1429 a day"],
    "500 mg/8h": ["500 mg", "1,500 mg/day", "3 a day"], "2 g daily in two divided doses": ["2,000 mg/day", "2 a day"],
    "40 mg/kg/day in three divided doses": ["40 mg/day/kg", "3 a day"], "one tablet daily": ["1 tablets", "1 a day"],
    "one tablet a day": ["1 tablets/day"], "8 g of paracetamol in 24 hours": ["8,000 mg/day"],
    "8 g of paracetamol daily": ["8,000 mg", "8,000 mg/day", "1 a day"],
    "500 mg of amoxicillin three times a day": ["500 mg", "1,500 mg/day", "3 a day"],
    "4 g of it per day": ["4,000 mg/day"], "10 mg of morphine a week later": ["10 mg"],
    "500 mg. Three times a day": ["500 mg", "3 a day"], "875 mg/125 mg": [], "500/125 mg": [], "5 mg/foo": [],
    "3 mg/mmol": ["3 mg/mmol"], "30 mg/g": ["30 mg/g"],
}  # fmt: skip
MEASURES = {
    "140/90": ["140 mmHg systolic", "90 mmHg diastolic"], "140/90 mmHg": ["140 mmHg systolic", "90 mmHg diastolic"],
    "below 130/80 mm Hg": ["≤130 mmHg systolic", "≤80 mmHg diastolic"],
    "120 over 80": ["120 mmHg systolic", "80 mmHg diastolic"],
    "180/120 or higher": ["≥180 mmHg systolic", "≥120 mmHg diastolic"],
    "systolic above 140 mmHg": ["≥140 mmHg systolic"], "180 mmHg systolic": ["180 mmHg systolic"],
    "a diastolic pressure under 90 mmHg": ["≤90 mmHg diastolic"], "130 mmHg": ["130 mmHg"], "16/2 of them": [],
    "a 20/20 vision": [], "500/125": [], "90/140": [], "120/80 mg": [], "38 °C": ["38 °C"],
    "38°C (100.4°F)": ["38 °C", "38 °C"], "100.4 F": ["38 °C"], "38 C": ["38 °C"], "5 C": [], "12 F": [],
    "at least 38 °C (100.4 °F)": ["≥38 °C", "≥38 °C"], "36.5–37.5 °C": ["36.5–37.5 °C"],
    "38.0 degrees Celsius": ["38 °C"], "38 °C or 100.4 °F": ["38 °C"], "39 degrees": [], "-20 °C": [],
    "6.5%": ["6.5 %"], "6.5 percent": ["6.5 %"], "20 per cent": ["20 %"], "6.5% or higher": ["≥6.5 %"],
    "88 to 92%": ["88–92 %"], "95% CI 0.5 to 0.8": [], "95% confidence interval": [], "10% to 20%": ["10–20 %"],
    "7 mmol/L": ["7 mmol/L"], "126 mg/dL (7.0 mmol/L) or above": ["≥126 mg/dL", "≥7 mmol/L"],
    "> 7 mmol/L": ["≥7 mmol/L"], "48 mmol/mol": ["48 mmol/mol"],
    "HbA1c below 7% (53 mmol/mol)": ["≤7 %", "≤53 mmol/mol"], "4 mIU/L": ["4 mIU/L"],
    "eGFR below 30 mL/min/1.73 m²": ["≤30 mL/minute"], "eGFR 30-44 ml/min": ["30–44 mL/minute"],
    "200 cells/µL": ["200 cells/µL"], "50 x 10^9/L": ["50,000 cells/µL"], "0.5 × 10⁹/L": ["500 cells/µL"],
    "50,000/µL": ["50,000 cells/µL"], "100 bpm": ["100 beats/minute"],
    "over 100 beats per minute": ["≥100 beats/minute"], "20 breaths/min": ["20 breaths/minute"], "15 kg": ["15 kg"],
    "33 lb": ["14.9685 kg"], "2 points": ["2 points"], "a 2 x 3 cm lump": ["3 cm"],
}  # fmt: skip
TIMES = {
    "30 minutes": ["0.5 h"], "thirty minutes": ["0.5 h"], "half an hour": ["0.5 h"], "24 hours": ["24 h"],
    "72h": ["72 h"], "2½ hours": ["2.5 h"], "forty-five minutes": ["0.75 h"], "within 4 hours": ["≤4 h"],
    "within an hour": ["≤1 h"], "an hour": [], "a day": [], "a few days": ["~48–168 h"],
    "a couple of weeks": ["~336–504 h"], "several days": [], "for 7 days": ["duration 168 h"],
    "for a week": ["duration 168 h"], "a 7-day course": ["duration 168 h"],
    "for five to seven days": ["duration 120–168 h"], "for up to two weeks": ["duration ≤336 h"],
    "10 days of treatment": ["duration 240 h"], "do not use for more than 3 days": ["duration ≤72 h"],
    "4 to 6 weeks": ["672–1,008 h"], "150 minutes per week": ["2.5 h/week"], "150 minutes a week": ["2.5 h/week"],
    "a 3-year-old": ["age 3 years"], "3 y/o": ["age 3 years"], "3yo": ["age 3 years"],
    "a 6-month-old": ["age 0.5 years"], "12 years and older": ["age ≥12 years"],
    "aged 12 years and over": ["age ≥12 years"], "children under 12 years": ["age ≤12 years"],
    "children aged 6 months to 5 years": ["age 0.5–5 years"], "adults over 65": ["age ≥65 years"],
    "aged 18 to 65": ["age 18–65 years"], "people aged 65 and over": ["age ≥65 years"],
    "65 years or older": ["age ≥65 years"], "children under 12": ["age ≤12 years"], "adults 500 mg": ["500 mg"],
    "people 25 times": [], "under 18": [], "at 20 weeks of pregnancy": ["gestation 20 weeks"],
    "before 12 weeks' gestation": ["gestation ≤12 weeks"], "in pregnancy after 28 weeks": ["gestation 28 weeks"],
    "24+0 to 34+6 weeks": [],
}  # fmt: skip
CHANGES = {
    "a fall of 5 mmHg": ["change 5 mmHg"], "reduces it by 20%": ["change 20 %"],
    "lowers LDL by about 50%": ["change 50 %"], "increase the dose by 5 mg": ["change 5 mg"],
    "reduce the dose to 20 mg": ["20 mg"], "a lower dose of 5 mg": ["5 mg"], "a risk of 5%": ["5 %"],
    "a weight loss of 5 kg": ["change 5 kg"], "cut to 130 mmHg": ["130 mmHg"], "He has lost 5 kg": ["change 5 kg"],
}  # fmt: skip
NOTHING = [
    "911", "call 911 now", "call 111 or 999", "555-123-4567", "0800 123 4567", "1-800-222-1222", "2023-05-01",
    "12/05/2023", "5 May 2023", "in 2019", "the 1990s", "24/7", "COVID-19", "T4", "B12", "vitamin B12", "vitamin D3",
    "HbA1c", "CYP3A4", "CHA2DS2-VASc 2", "a score of 2", "type 2 diabetes", "omega-3", "5-FU", "5-HT3", "H1N1",
    "ICD-10", "PMID 12345678", "10.1016/S0140-6736(97)11096-0", "1:1000", "1 in 100", "50:50", "phase 3", "stage IV",
    "the 3rd day", "No. 5", "p < 0.05", "one of them", "someone", "a patient", "an answer", "first", "每日4克", "4 克",
    "每次500毫克", "٥٠٠ ملغ", "", " ", "mg", "mg/kg",
]  # fmt: skip


@pytest.mark.parametrize(("text", "values"), [*DOSES.items(), *MEASURES.items(), *TIMES.items(), *CHANGES.items()])
def test_golden(text, values):
    found = find_quantities(text)
    assert sorted(written(q) for q in found) == sorted(values)
    for quantity in found:
        assert text[quantity.start : quantity.end] == quantity.text


@pytest.mark.parametrize("text", NOTHING)
def test_numbers_that_are_no_quantities(text):
    assert find_quantities(text) == []


@pytest.mark.parametrize("text", ["5 mg, 10 mg", "Take 5 mg or, if needed, 20 mg. Never over 40 mg (2 tablets) a day."])
def test_values_come_in_the_order_of_the_text(text):
    starts = [q.start for q in find_quantities(text)]
    assert starts == sorted(starts)
    assert len(starts) > 1


def test_values_in_other_languages_are_unseen_but_units_are_international():
    assert find_quantities("成人对乙酰氨基酚每日最大剂量为4克。") == []
    assert [written(q) for q in find_quantities("Paracetamol 500 mg cada 6 horas")] == ["500 mg"]


_PIECES = words(
    "5 10 0.5 1,000 1.000 mg mg/kg g IU °C mmHg % to - – or and ( ) / per day hours every twice daily up at least more than "
    "under a an half 120/80 x 2 weeks old aged children doses divided in two . ; + ½ q8h BD for"
)
_WORDS = st.sampled_from(sorted(_PIECES))


@given(
    st.one_of(
        st.text(max_size=200), st.lists(_WORDS, max_size=30).map(" ".join), st.lists(_WORDS, max_size=30).map("".join)
    )
)
@settings(max_examples=400)
def test_any_text_gives_intervals_with_exact_spans(text):
    for quantity in find_quantities(text):
        assert text[quantity.start : quantity.end] == quantity.text
        assert quantity.text.strip()
        assert quantity.low <= quantity.high
        assert math.isfinite(quantity.point)


@given(st.integers(min_value=1, max_value=10**7))
def test_a_mass_is_the_same_in_every_unit(n):
    masses = {
        f"{n} micrograms",
        f"{n} mcg",
        f"{n / 1000:.3f}".rstrip("0").rstrip(".") + " mg",
        f"{n / 1_000_000:.6f}".rstrip("0").rstrip(".") + " g",
    }
    for mass in masses:
        (quantity,) = find_quantities(mass)
        assert quantity.low == quantity.high == pytest.approx(n * 1e-9)


@pytest.mark.parametrize(
    "piece",
    ["Take 5 to 10 mg/kg every 6 hours for 7 days. ", "weeks 3 weeks ", "BD ", "1 ", "at least not more than ", "(((("],
)
def test_time_is_linear_in_the_length(piece):
    def seconds(copies):
        text = piece * copies
        started = time.perf_counter()
        find_quantities(text)
        return time.perf_counter() - started

    size = 25_000 // len(piece)
    seconds(100)
    short, long = min(seconds(size) for _ in range(2)), min(seconds(4 * size) for _ in range(2))
    assert long < 8 * short + 0.1
