"""Whom a sentence speaks of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers.population import comparability, populations

NAMED = {
    "child": [
        "children",
        "a child",
        "my daughter",
        "my son",
        "infants",
        "a 3-year-old",
        "a 6-month-old",
        "newborns",
        "paediatric",
        "pediatric dose",
        "toddlers",
        "teenagers",
        "adolescents",
        "her baby",
        "babies under 3 months",
        "my 4-year-old son",
        "boys and girls",
        "aged 12",
        "kids",
        "the boy",
        "under 12s",
        "neonates",
        "he is 7 years old",
        "schoolchildren",
        "a 17-year-old",
        "my toddler",
        "aged 6 to 11 years",
        "children's syrup",
        "under 16 years of age",
        "a 3 year old",
        "my 2yo",
    ],
    "adult": [
        "adults",
        "a 65-year-old man",
        "elderly people",
        "older people",
        "I'm 34",
        "a 40-year-old",
        "older adults",
        "adult dose",
        "my grandmother",
        "a 78-year-old",
        "women over 50",
        "men aged 60",
        "he is 72 years old",
        "I am 34 years old",
        "the elderly",
        "geriatric patients",
    ],
    "pregnant": [
        "in pregnancy",
        "a pregnant woman",
        "gestational diabetes",
        "second trimester",
        "antenatal care",
        "prenatal",
        "pregnancies",
    ],
    "renal": [
        "renal impairment",
        "chronic kidney disease",
        "eGFR below 30",
        "CrCl",
        "on dialysis",
        "CKD stage 4",
        "kidney failure",
        "impaired renal function",
        "reduced kidney function",
        "poor kidney function",
        "renal insufficiency",
        "end-stage renal disease",
    ],
    "hepatic": [
        "hepatic impairment",
        "liver disease",
        "cirrhosis",
        "Child-Pugh C",
        "liver failure",
        "hepatic insufficiency",
        "impaired liver function",
        "decompensated liver cirrhosis",
    ],
}
NONE = [
    "Take one tablet",
    "The kidney filters blood",
    "5 mg daily",
    "liver",
    "3 years later",
    "for 2 years",
    "a 10-year risk",
    "a 5-year survival",
    "childproof cap",
    "childbirth",
    "baby aspirin",
    "seniority",
    "aged 12 years and over",
    "aged 12 to 65",
    "over 50 mg",
]
# claim, its context and question, sentence, title, comparability
PAIRS = [
    ("Children may take it.", "", "Adults take 400 mg.", "", 0.25),
    ("Adults may take it.", "", "Children take 5 mg/kg.", "", 0.25),
    ("Take 5 mg/kg.", "My son is 3 years old", "Adults take 400 mg.", "", 0.25),
    ("Take 400 mg.", "I am 34 years old", "Give children 5 mg/kg.", "", 0.25),
    ("Take 400 mg.", "I'm 34", "Give 5 mg/kg.", "Fever in children", 0.25),
    ("Take 400 mg.", "", "Adults take 400 mg.", "", 1.0),
    ("Children may take it.", "", "Children take 5 mg/kg.", "", 1.0),
    ("Children may take it.", "", "Take 5 mg/kg.", "", 1.0),
    ("Children and adults may take it.", "", "Adults take 400 mg.", "", 1.0),
    ("Children may take it.", "", "Adults and children over 12 years take 400 mg.", "", 1.0),
    ("Take 400 mg.", "", "In pregnancy it is avoided.", "", 0.6),
    ("Take 400 mg.", "", "With an eGFR below 30 the dose is halved.", "", 0.6),
    ("Take 400 mg.", "", "In cirrhosis the dose is halved.", "", 0.6),
    ("Take 400 mg.", "I am pregnant", "In pregnancy it is avoided.", "", 1.0),
    ("In chronic kidney disease take 200 mg.", "", "With an eGFR below 30 the dose is halved.", "", 1.0),
    ("Take 400 mg.", "", "Take 400 mg.", "", 1.0),
    ("Take 400 mg.", "", "Take 400 mg.", "Dosing in renal impairment", 0.6),
]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in NAMED.items() for text in texts])
def test_populations_named(name, text):
    assert name in populations(text)
    assert name in populations(f"This is for {text}, mostly.")


@pytest.mark.parametrize("text", NONE)
def test_no_population(text):
    assert populations(text) == frozenset()


@pytest.mark.parametrize(("claim", "side", "sentence", "title", "expected"), PAIRS)
def test_comparability(claim, side, sentence, title, expected):
    assert comparability(claim, side, sentence, title) == expected


@given(*[st.text(max_size=40)] * 4)
def test_any_text(claim, side, sentence, title):
    assert comparability(claim, side, sentence, title) in (0.25, 0.6, 1.0)
