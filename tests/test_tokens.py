"""Clinical tokens: what must be alike, what must be apart, and offsets."""

from __future__ import annotations

import sys
import threading
import time

import pytest

pytest.importorskip("Stemmer")

from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import MissingExtraError
from factcheck.text import tokens
from factcheck.text.spelling import fold, respell
from factcheck.text.tokens import terms, tokenize


def norms(text: str) -> list[str]:
    return [token.norm for token in tokenize(text)]


ALIKE = [
    # micrograms, however they are typed: micro sign, Greek mu, mcg, ug, words
    ("5 µg", "5 μg", "5 mcg", "5mcg", "5 ug", "5 micrograms", "5 microgram", "5 microgrammes", "5\u00a0µg"),
    ("250mg", "250 mg", "250-mg", "250 MG", "250 milligrams", "250\u202fmg"),
    ("5 mg/kg", "5 mg per kg", "5mg/kg", "5 mg / kg", "5 milligrams per kilogram"),
    ("5 mg/kg/day", "5 mg per kg per day", "5 mg/kg per day", "5 mg/kg/24 h", "5 mg/kg/d"),
    ("60 mL/min/1.73 m²", "60 ml/min/1.73m2", "60 mL/min per 1.73 m^2", "60 mL/minute/1.73 m2"),
    ("mL/min/1.73 m²", "ml/min/1.73m2"),
    ("<30", "< 30", "<\u00a030", "<30.0"),
    ("≥30", "≥ 30", ">=30", ">= 30", "⩾30"),
    ("≤30", "<= 30", "=<30"),
    ("1,000", "1000", "1\u202f000", "1000.0"),
    ("0.5", ".5", "0.50", "½", "0·5"),
    ("7.0", "7", "07"),
    ("1.5", "1½"),
    ("5-10 mg", "5 - 10 mg", "5–10 mg", "5 – 10 mg", "5 to 10 mg", "5‑10mg", "5—10 mg", "5~10 mg"),
    ("1:1000", "1:1,000"),
    ("120/80 mmHg", "120/80 mm Hg", "120/80mmHg"),
    ("5%", "5 %", "5 percent", "5 per cent"),
    ("38.9 °C", "38.9°C", "38.9 ºC", "38.9 ℃", "38.9 degrees Celsius", "38.9 degrees C"),
    ("4.5 × 10⁹/L", "4.5 x 10^9/L", "4.5×10⁹/l", "4.5 x10^9 per litre"),
    ("every 8 hours", "every 8 h", "every 8 hrs", "every 8-hour", "every eight hours"),
    ("30 minutes", "30 min", "30 mins", "30-minute"),
    ("60/min", "60 per minute", "60 / min"),
    ("100 mg/5 mL", "100mg/5mL", "100 mg per 5 mL"),
    ("10 IU", "10 international units", "10iu"),
    ("HbA1c", "HBA1C", "hba1c"),
    ("SpO2", "SpO₂", "spo2"),
    ("CHA2DS2-VASc", "CHA₂DS₂-VASc", "CHA2DS2VASc"),
    ("COVID-19", "covid-19", "COVID‑19", "COVID19"),
    ("IL-6", "IL6"),
    ("5-HT3", "5‑HT3"),
    ("b.i.d.", "BID", "b.i.d"),
    ("type-2", "type 2"),
    ("three", "3"),
    ("Ménière", "Meniere", "Me\u0301nie\u0300re", "Ménière's", "Ménière’s"),
    ("Sjögren", "Sjogren", "SJÖGREN"),
    ("TNF-α", "TNF-alpha"),
    ("haemoglobin", "hemoglobin"),
    ("hypoglycaemia", "hypoglycemia"),
    ("anaemia", "anemia", "anæmia"),
    ("oedema", "edema", "œdema", "oedemas"),
    ("oesophageal", "esophageal"),
    ("diarrhoea", "diarrhea"),
    ("oestrogen", "estrogen"),
    ("paediatric", "pediatric"),
    ("orthopaedic", "orthopedic"),
    ("anaesthetised", "anesthetized"),
    ("paraesthesia", "paresthesia"),
    ("gynaecology", "gynecology"),
    ("foetal", "fetal"),
    ("dyspnoea", "dyspnea"),
    ("leucocyte", "leukocyte"),
    ("sulphonamides", "sulfonamides"),
    ("tumours", "tumors"),
    ("unfavourable", "unfavorable"),
    ("litre", "liter", "litres", "liters"),
    ("centre", "center"),
    ("goitre", "goiter"),
    ("fibres", "fibers"),
    ("randomised", "randomized", "randomise", "randomizing"),
    ("hospitalisation", "hospitalization"),
    ("ionised", "ionized"),
    ("analyse", "analyze", "analysis", "analyses", "analysed"),
    ("diagnosis", "diagnoses", "diagnose"),
    ("labelled", "labeled"),
    ("counselling", "counseling"),
    ("programme", "program"),
    ("licence", "license"),
    ("practised", "practiced"),
    ("don't", "don’t", "not"),
    ("cannot", "can't", "not"),
    ("w/o", "without"),
    ("2019-05-01", "2019-05-01"),
]


@pytest.mark.parametrize("forms", ALIKE, ids=lambda forms: forms[0])
def test_forms_of_one_thing_are_alike(forms):
    first = norms(forms[0])
    assert first
    for form in forms[1:]:
        assert [norm for norm in norms(form) if norm != "do"] == first, form


APART = [
    ("5 µg", "5 mg", "5 g", "5 kg", "5 ng", "5 mL", "5 units", "5 IU", "5 mmol", "5 mEq", "5 %"),
    ("mg", "mg/kg", "mg/kg/day", "mg/dL", "mg/mL", "mcg/kg"),
    ("<30", ">30", "30", "<=30", ">=30", "-30", "30-40", "30/40", "30:40", "300", "3.0", "0.30"),
    ("T3", "T4", "T 4", "TSH"),
    ("7.5", "75", "7-5", "7"),
    ("hyper", "hypo"),
    ("hour", "day", "week", "month", "year", "min"),
    ("no", "not", "without", "avoid", "never", "nor"),
    ("precise", "precis", "prize"),
    ("four", "for", "hour", "our"),
    ("5 °C", "5 °F", "5 C", "5 °"),
    ("alpha", "beta"),
    ("Gram stain", "5 g"),
]


@pytest.mark.parametrize("forms", APART, ids=lambda forms: forms[0])
def test_different_things_are_apart(forms):
    seen: dict[tuple[str, ...], str] = {}
    for form in forms:
        key = tuple(norms(form))
        assert key not in seen, (form, seen.get(key))
        seen[key] = form


GOLDEN = [
    ("Give 7.5 mg/kg (max 1 g) every 6 to 8 hours.", "give 7.5 mg/kg max 1 g everi 6-8 hour"),
    ("eGFR <30 mL/min/1.73 m²: avoid.", "egfr <30 ml/min/1.73m2 avoid"),
    ("HbA1c ≥ 6.5% (48 mmol/mol)", "hba1c >=6.5 % 48 mmol/mol"),
    ("T-score ≤ -2.5, change of -1.5 to -0.5", "t score <=-2.5 chang of -1.5--0.5"),
    ("a 3-year-old, 12-lead ECG, 24-hour period", "a 3 year old 12 lead ecg 24 hour period"),
    ("HER2-positive, SARS-CoV-2-infected", "her2 posit sarscov2 infect"),
    ("5%-10% or 5 % – 10 %", "5 % 10 % or 5 % 10 %"),
    ("the dose is 5\n- 10 mg at night", "the dose is 5 10 mg at night"),
    ("e.g. 50 U.S. patients, vitamin B12 and D3", "eg 50 us patient vitamin b12 and d3"),
    ("page 12/05/2019, 1.2.3, grades 1,2", "page 12/05/2019 1.2.3 grade 1 2"),
    ("and/or, mg/dose, his/her", "and or mg/dose his her"),
    ("**bold** _it_ `code`", "bold it code"),
    ("", ""),
    ("?! … — ()", ""),
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN, ids=[text[:20] for text, _ in GOLDEN])
def test_golden_norms(text, expected):
    assert norms(text) == expected.split()


def test_a_token_is_the_slice_of_its_span():
    text = "Ménière: < 30 µg\u00a0/ day, CHA₂DS₂-VASc 5 to 10%"
    assert [(token.text, token.norm) for token in tokenize(text)] == [
        ("Ménière", "menier"),
        ("< 30", "<30"),
        ("µg\u00a0/ day", "mcg/day"),
        ("CHA₂DS₂-VASc", "cha2ds2vasc"),
        ("5 to 10", "5-10"),
        ("%", "%"),
    ]


PIECES = (
    "5|10|.5|1,000|mg|/|kg| | |<|≥ |-|–| to |µg|per|%|m²|1.73|½|x10^9|COVID|19|don't|α|e\u0301|β-|i.v.|\n|\u00a0|°C|成人|٣|🙂|_"
    "|'s|HbA1c|:|2019-01-02"
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES.split("|")), max_size=14).map("".join))


@given(TEXTS)
def test_spans_slice_the_text_in_order(text):
    found = tokenize(text)
    end = 0
    for token in found:
        assert token.text == text[token.start : token.end]
        assert token.norm
        assert end <= token.start < token.end
        end = token.end
    covered = set().union(*(range(token.start, token.end) for token in found)) if found else set()
    missed = [char for i, char in enumerate(text) if i not in covered and char.isalnum()]
    assert not missed


@given(TEXTS)
def test_terms_come_from_tokens(text):
    alone = terms(text)
    assert set(norms(text)) - set(alone) <= {norm for norm in norms(text) if norm in STOPS}
    assert alone == terms(text)


STOPS = {token.norm for word in tokens._STOP for token in tokenize(word)}


def test_negations_and_order_are_terms_and_articles_are_not():
    kept = "no not never without avoid nor neither before after above below under over more less only all most any if unless"
    for word in kept.split():
        assert terms(word), word
    assert terms("the of and is a which have been") == []
    assert terms("Do not use it without the WHO or your doctor") == ["not", "use", "without", "who", "doctor"]


def test_terms_find_parts_and_wholes():
    assert set(terms("beta-blocker")) == {"beta", "blocker", terms("betablocker")[0]}
    assert set(terms("COVID-19")) == {"covid19", "covid"}
    assert terms("5 to 10") == ["5-10", "5", "10"]
    assert terms("< 30") == ["<30", "30"]
    assert terms("140/90") == ["140/90", "140", "90"]
    assert terms("mg/kg/day") == ["mg/kg/day", "mg/kg"]
    assert terms("mg/kg") == ["mg/kg"]
    assert "hasbl" in terms("HAS-BLED")


def test_a_stop_word_in_capitals_may_be_a_name():
    assert terms("who") == []
    assert terms("WHO") == ["who"]


@pytest.mark.parametrize(
    "text",
    [
        "1" * 50_000 + "x",
        "1" + ",111" * 12_000 + "x",
        "1" + " " * 50_000 + "x",
        "a-" * 25_000,
        "mg/" * 16_000,
        "1 mg" + " per mg" * 7_000,
        "1 to " * 10_000,
        "a." * 25_000,
        "e" + "\u0301" * 50_000,
        "x" * 50_000 + ".",
        "is" * 25_000 + "e",
    ],
    ids=lambda text: text[:6],
)
def test_time_is_linear_in_odd_text(text):
    started = time.perf_counter()
    tokenize(text)
    assert time.perf_counter() - started < 5


def test_threads_get_what_one_gets():
    words = [
        f"{word}{suffix}"
        for word in ("treat", "bleed", "infect", "haem")
        for suffix in ("ing", "ed", "ment", "s", "or")
    ]
    text = " ".join(words * 50)
    expected = terms(text)
    tokens._pieces.cache_clear()
    tokens._chunk_terms.cache_clear()
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(terms(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8


def test_without_the_stemmer_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    for cache in (tokens._stemmer, tokens._pieces, tokens._chunk_terms):
        cache.cache_clear()
    with pytest.raises(MissingExtraError, match=r"PyStemmer.*pip install 'factcheck\[local\]'"):
        tokenize("bleeding")
    monkeypatch.undo()
    assert norms("bleeding") == ["bleed"]


def test_folding_keeps_micro_apart_from_letters():
    assert fold("µ") == fold("μ") == "μ"
    assert fold("Straße ﬁne ÅNGSTRÖM") == "strasse fine angstrom"
    assert fold("가") == "가"


LOOK_BRITISH = ("exercise", "precise", "advised", "four", "hour", "aerosol", "isolation", "disease", "rises", "thesis")


@pytest.mark.parametrize("word", LOOK_BRITISH)
def test_words_that_only_look_british_stay(word):
    assert respell(word) == word
