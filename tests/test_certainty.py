"""Certainty, scope and diagnosis that the evidence does not share."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.certainty import CertaintyChecker, find_certainty, find_diagnosis, find_universal

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = CertaintyChecker()

# claim, passages, field that differs ("" for any), context and question
AGAINST = [
    (
        "Your thyroid nodule is definitely benign.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {},
    ),
    (
        "You can be certain that the thyroid nodule is benign.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {},
    ),
    (
        "The influenza vaccine is 100% effective against influenza.",
        ["The influenza vaccine lowers the risk of influenza by about 40 to 60%."],
        "certainty",
        {},
    ),
    (
        "The influenza vaccine completely prevents influenza.",
        ["The influenza vaccine lowers the risk of influenza by about 40 to 60%."],
        "certainty",
        {},
    ),
    (
        "The influenza vaccine guarantees that you stay free of influenza.",
        ["The influenza vaccine lowers the risk of influenza by about 40 to 60%."],
        "certainty",
        {},
    ),
    (
        "Antibiotics always work in sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        "certainty",
        {},
    ),
    (
        "Antibiotics help everyone with sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        "scope",
        {},
    ),
    (
        "Antibiotics help all patients with sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        "scope",
        {},
    ),
    (
        "Statins reduce heart attacks in all adults.",
        ["Statins reduce heart attacks in people with a high risk of cardiovascular disease."],
        "scope",
        {},
    ),
    (
        "Statins reduce heart attacks regardless of cardiovascular risk.",
        ["Statins reduce heart attacks in people with a high risk of cardiovascular disease."],
        "scope",
        {},
    ),
    (
        "Everybody should take statins against heart attacks.",
        ["Statins reduce heart attacks in people with a high risk of cardiovascular disease."],
        "scope",
        {},
    ),
    (
        "These raised readings mean you have hypertension.",
        ["Hypertension is diagnosed only when raised readings persist on repeated measurement."],
        "diagnosis",
        {},
    ),
    (
        "These raised readings prove that you have hypertension.",
        ["Hypertension is diagnosed only when raised readings persist on repeated measurement."],
        "diagnosis",
        {},
    ),
    (
        "You also have hypertension.",
        ["Hypertension is diagnosed only when raised readings persist on repeated measurement."],
        "diagnosis",
        {},
    ),
    (
        "A normal thyroid scan rules out cancer of the nodule.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {},
    ),
    (
        "There is no risk of cancer in a thyroid nodule.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {},
    ),
    (
        "Cancer of a thyroid nodule is impossible.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {},
    ),
    (
        "It is definitely benign.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        "certainty",
        {"context": "thyroid nodule"},
    ),
    (
        "Antibiotics are definitely needed by everyone with sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        "certainty",
        {},
    ),
    (
        "Antibiotics are definitely needed by everyone with sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        "scope",
        {},
    ),
    (
        "The vaccine is completely safe.",
        ["The vaccine can cause a sore arm and, rarely, an allergic reaction."],
        "certainty",
        {},
    ),
]
# claim, passages, field that agrees ("" for any), context and question
AGREES = [
    (
        "Adrenaline is always given in anaphylaxis.",
        ["Adrenaline is always given first in anaphylaxis."],
        "certainty",
        {},
    ),
    (
        "Everyone with anaphylaxis is given adrenaline.",
        ["Everyone with anaphylaxis is given adrenaline at once."],
        "scope",
        {},
    ),
    (
        "Folic acid is recommended for all women who plan a pregnancy.",
        ["All women who plan a pregnancy should take folic acid."],
        "scope",
        {},
    ),
]
# claim, passages, context and question: nothing is said
SILENT = [
    (
        "Your thyroid nodule is most likely benign.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        {},
    ),
    (
        "The thyroid nodule is not certain to be benign.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        {},
    ),
    (
        "The influenza vaccine lowers the risk of influenza.",
        ["The influenza vaccine lowers the risk of influenza by about 40 to 60%."],
        {},
    ),
    (
        "Antibiotics may work in sinusitis.",
        ["Antibiotics may help some people with sinusitis that lasts more than ten days."],
        {},
    ),
    (
        "Statins reduce heart attacks in people at high risk.",
        ["Statins reduce heart attacks in people with a high risk of cardiovascular disease."],
        {},
    ),
    (
        "Not everyone needs statins against heart attacks.",
        ["Statins reduce heart attacks in people with a high risk of cardiovascular disease."],
        {},
    ),
    (
        "These raised readings do not prove that you have hypertension.",
        ["Hypertension is diagnosed only when raised readings persist on repeated measurement."],
        {},
    ),
    (
        "Hypertension needs repeated measurement.",
        ["Hypertension is diagnosed only when raised readings persist on repeated measurement."],
        {},
    ),
    (
        "A thyroid scan is done to rule out cancer of the nodule.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        {},
    ),
    ("The nodule is definitely benign.", ["Ferns grow in shade and may like water."], {}),
    ("The nodule is definitely benign.", [], {}),
    (
        "Rest and drink water.",
        ["Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."],
        {},
    ),
    ("The nodule is definitely benign.", ["The nodule was measured."], {}),
    ("Take one tablet every day.", ["Some people take one tablet every day."], {}),
    (
        "Be sure to drink water with the influenza vaccine.",
        ["The influenza vaccine lowers the risk of influenza by about 40 to 60%."],
        {},
    ),
]


@pytest.mark.parametrize(("claim", "passages", "field", "side"), AGAINST)
def test_disagreement_is_firm(claim, passages, field, side):
    found = KIT["firm"](KIT["run"](CHECKER, claim, *passages, **side))
    assert found
    assert not field or field in {finding.field for finding in found}


@pytest.mark.parametrize(("claim", "passages", "field", "side"), AGREES)
def test_agreement(claim, passages, field, side):
    found = KIT["run"](CHECKER, claim, *passages, **side)
    assert KIT["firm"](found) == []
    assert any(f.relation == "agrees" and (not field or f.field == field) for f in found)


@pytest.mark.parametrize(("claim", "passages", "side"), SILENT)
def test_no_finding(claim, passages, side):
    assert KIT["run"](CHECKER, claim, *passages, **side) == []


CUES = {
    "certainty": [
        "This is definitely benign.", "It is certainly viral.", "You can be certain that it is benign.",
        "It is certain that it works.", "It guarantees a cure.", "A cure is guaranteed.", "We promise relief.",
        "There is no doubt that it works.", "beyond any doubt", "It proves that you have cancer.",
        "A raised PSA proves cancer.", "It is 100% effective.", "It is 100 per cent safe.", "It is completely safe.",
        "It completely prevents infection.", "It is absolutely safe.", "The biopsy is only a formality.",
        "There is no risk.", "There is no chance of infection.", "You can be sure that it is harmless.",
        "A normal ECG rules out a heart attack.", "It cannot possibly be cancer.", "It will always work.",
        "It is never dangerous.", "It is always viral.", "It is impossible.", "It is inevitable.", "unquestionably",
        "It works every time.", "It is certain to help.", "It is sure to work.", "The test is conclusive.",
        "without exception", "Antibiotics always work.", "undoubtedly benign", "It has no side effects whatsoever",
        "It never fails", "This cannot be anything serious", "There is zero risk", "It is entirely safe",
        "totally harmless", "It is risk-free", "is foolproof", "cannot fail",
    ],
    "universal": [
        "Everyone should take it.", "It helps everybody.", "All patients need it.", "All children should have it.",
        "Every patient needs it.", "in every case", "Any adult can take it.", "whatever the severity",
        "regardless of age", "irrespective of severity", "no matter how old", "in all patients",
        "across all age groups", "universally recommended", "even those without symptoms", "for all women",
        "all diabetic patients", "each person", "all types of stroke", "in any stage",
    ],
    "diagnosis": [
        "This means you have diabetes.", "It shows that your son has asthma.", "This proves that she has cancer.",
        "It confirms that you have hypertension.", "You must have pneumonia.", "You also have heart failure.",
        "He therefore has diabetes.", "It also means that you are diabetic.", "She has diabetes as well.",
        "He clearly has depression.", "This indicates that the patient has sepsis.",
    ],
}  # fmt: skip
NO_CUES = {
    "certainty": [
        "It is not certain.", "90 percent prove benign.", "It may prove to be fatal.", "A single reading proves nothing.",
        "It is not definitely benign.", "A cure is not guaranteed.",
        "A normal ECG does not rule out a heart attack.", "It cannot rule out cancer.", "It is not always viral.",
        "It does not prove that you have it.", "It is likely benign.", "It may help.", "It usually works.",
        "There is no guarantee.", "It isn't certain.", "certain drugs interact", "in certain people",
        "It is almost always viral", "It is not proven to be the cause", "rule out other causes first",
        "It is used to rule out cancer", "an ECG is done to rule out a heart attack", "to make sure",
        "be sure to drink water", "make sure that you rest", "It is not without risk",
    ],
    "universal": [
        "Not everyone should take it.", "Nearly everyone has it.", "Almost all patients recover.", "not all patients",
        "Some patients need it.", "Most people recover.", "all of the tablets", "every day", "every 6 hours",
        "any questions", "all day", "each dose", "every other day", "at all",
    ],
    "diagnosis": [
        "This does not mean you have diabetes.", "It does not prove that you have hypertension.",
        "You may have diabetes.", "You have described a cold.", "If you have diabetes, test.",
        "Have you had a fever?", "You have to rest.", "You should also have a blood test.",
        "you must have a blood test", "You must have your eyes checked.", "You also have to rest",
        "He also has to take it", "you have as well",
    ],
}  # fmt: skip
FINDERS = {"certainty": find_certainty, "universal": find_universal, "diagnosis": find_diagnosis}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in CUES.items() for text in texts])
def test_cues(kind, text):
    spans = FINDERS[kind](text)
    assert spans
    assert all(text[start:end].strip() for start, end in spans)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in NO_CUES.items() for text in texts])
def test_no_cues(kind, text):
    assert FINDERS[kind](text) == []


def test_a_finding_quotes_both_sides():
    claim, passage = (
        "The nodule is definitely benign.",
        "Most nodules are benign. A nodule cannot be ruled out as cancer.",
    )
    finding = next(f for f in KIT["run"](CHECKER, claim, passage) if f.field == "certainty")
    assert (finding.relation, finding.hard, finding.claim_value) == ("differs", False, "definitely")
    assert finding.evidence_value in finding.reason


@given(st.text(max_size=80), st.sampled_from(["definitely", "everyone", "you must have", "not", "rules out"]))
def test_any_text(text, cue):
    for sample in (text, f"{text} {cue}", f"{cue} {text}"):
        for find in FINDERS.values():
            assert all(0 <= start < end <= len(sample) for start, end in find(sample))
