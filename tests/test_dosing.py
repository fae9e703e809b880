"""Amounts, units, frequencies and durations, each case through the checker."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.dosing import DosingChecker
from factcheck.checkers.parse_quantities import find_quantities
from factcheck.checkers.reading import read
from factcheck.checkers.values import comparable_values, is_denied

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = DosingChecker()

# claim, passages, field that differs ("" for any), context and question
AGAINST = [
    (
        "Ibuprofen can be repeated every 3 to 4 hours in a child with fever.",
        ["Ibuprofen for children with fever: 5 to 10 mg/kg a dose. It may be repeated every 6 to 8 hours."],
        "frequency",
        {},
    ),
    (
        "For rheumatoid arthritis methotrexate 7.5 mg is taken every day.",
        ["In rheumatoid arthritis methotrexate is started at 7.5 mg once weekly."],
        "frequency",
        {},
    ),
    (
        "Methotrexate 7.5 mg daily is the usual start in rheumatoid arthritis.",
        ["In rheumatoid arthritis the usual starting dose of methotrexate is 7.5 mg per week."],
        "",
        {},
    ),
    ("Start levothyroxine 0.5 mg daily.", ["Levothyroxine is started at 50 micrograms once daily."], "amount", {}),
    ("Take vitamin D 1000 mg daily.", ["Vitamin D 1000 IU daily is enough for most adults."], "unit", {}),
    (
        "Adults must not take more than 8 g of paracetamol in 24 hours.",
        ["Paracetamol for adults: 0.5 to 1 g every 4 to 6 hours, at most 4 g in 24 hours."],
        "amount",
        {},
    ),
    (
        "Take amoxicillin 500 mg three times daily for 21 days for pneumonia.",
        ["Low-severity pneumonia: amoxicillin 500 mg three times daily for 5 days."],
        "duration",
        {},
    ),
    (
        "Nitrofurantoin 100 mg twice daily for 5 days treats cystitis.",
        ["Cystitis in women: nitrofurantoin 100 mg modified release twice daily for 3 days."],
        "duration",
        {},
    ),
    (
        "Apixaban is 50 mg twice daily in atrial fibrillation.",
        ["Atrial fibrillation: apixaban 5 mg twice daily."],
        "amount",
        {},
    ),
    (
        "Apixaban is 5 mg once daily in atrial fibrillation.",
        ["Atrial fibrillation: apixaban 5 mg twice daily."],
        "frequency",
        {},
    ),
    (
        "Give adrenaline 5 mg intramuscularly for anaphylaxis.",
        ["Anaphylaxis in adults: adrenaline 0.5 mg into the thigh muscle."],
        "amount",
        {},
    ),
    (
        "Inhale ten puffs of salbutamol every 4 hours.",
        ["Salbutamol: 2 puffs every 4 to 6 hours when needed."],
        "amount",
        {},
    ),
    (
        "Insulin glargine is started at 100 units once a day.",
        ["Insulin glargine: start with 10 units at the same time once a day."],
        "amount",
        {},
    ),
    ("Gentamicin 50 mg/kg once daily.", ["Gentamicin is given as 5 to 7 mg/kg once daily."], "amount", {}),
    ("Alendronate 70 mg is taken once a day.", ["Alendronate 70 mg is taken once a week, fasting."], "frequency", {}),
    (
        "Vitamin B12 injections are given every 3 days.",
        ["Hydroxocobalamin injections for vitamin B12 deficiency are given every three months for life."],
        "frequency",
        {},
    ),
    (
        "Metformin: start with 5 g once daily and increase slowly.",
        ["Metformin is started at 500 mg once a day with food."],
        "amount",
        {},
    ),
    ("Digoxin 1.25 mg daily.", ["Digoxin 125 micrograms once daily is usual in the elderly."], "amount", {}),
]
# claim, passages, field that agrees ("" for any), context and question
AGREES = [
    (
        "Ibuprofen can be repeated every 6 to 8 hours in a child with fever.",
        ["Ibuprofen for children with fever: 5 to 10 mg/kg a dose. It may be repeated every 6 to 8 hours."],
        "frequency",
        {},
    ),
    (
        "For rheumatoid arthritis methotrexate 7.5 mg is taken once a week.",
        ["In rheumatoid arthritis methotrexate is started at 7.5 mg once weekly."],
        "frequency",
        {},
    ),
    ("Start levothyroxine 0.05 mg daily.", ["Levothyroxine is started at 50 micrograms once daily."], "amount", {}),
    ("Take vitamin D 1000 IU daily.", ["Vitamin D 1000 IU daily is enough for most adults."], "amount", {}),
    ("Take vitamin D 1000 units daily.", ["Vitamin D 1000 IU daily is enough for most adults."], "amount", {}),
    (
        "Adults may take paracetamol 500 mg to 1 g every 4 to 6 hours.",
        ["Paracetamol for adults: 0.5 to 1 g every 4 to 6 hours, at most 4 g in 24 hours."],
        "amount",
        {},
    ),
    (
        "Adults must not take more than 4 g of paracetamol in 24 hours.",
        ["Paracetamol for adults: 0.5 to 1 g every 4 to 6 hours, at most 4 g in 24 hours."],
        "amount",
        {},
    ),
    (
        "Take amoxicillin 500 mg three times daily for 5 days for pneumonia.",
        ["Low-severity pneumonia: amoxicillin 500 mg three times daily for 5 days."],
        "duration",
        {},
    ),
    (
        "Apixaban is 5 mg twice daily in atrial fibrillation.",
        ["Atrial fibrillation: apixaban 5 mg twice daily; 2.5 mg twice daily in frail people."],
        "amount",
        {},
    ),
    (
        "Give adrenaline 500 micrograms intramuscularly for anaphylaxis.",
        ["Anaphylaxis in adults: adrenaline 0.5 mg into the thigh muscle."],
        "amount",
        {},
    ),
    ("Take two 500 mg tablets of paracetamol.", ["Paracetamol: the adult dose is 1 g."], "amount", {}),
    ("Inhale two puffs of salbutamol every 4 hours.", ["Salbutamol: 2 puffs every 4 to 6 hours when needed."], "", {}),
    (
        "Insulin glargine is started at 10 units once a day.",
        ["Insulin glargine: start with 10 units at the same time once a day."],
        "amount",
        {},
    ),
    (
        "Prednisolone 40 mg daily for 5 days.",
        ["Prednisolone 40 mg is given once daily for five days in an asthma attack."],
        "duration",
        {},
    ),
    ("Gentamicin 5 mg/kg once daily.", ["Gentamicin is given as 5 to 7 mg/kg once daily."], "amount", {}),
    ("Alendronate 70 mg is taken once a week.", ["Alendronate 70 mg is taken once a week, fasting."], "frequency", {}),
    (
        "Vitamin B12 injections are given every 3 months.",
        ["Hydroxocobalamin injections for vitamin B12 deficiency are given every three months."],
        "frequency",
        {},
    ),
    (
        "Metformin: start with 500 mg once daily and increase slowly.",
        ["Metformin is started at 500 mg once a day with food."],
        "amount",
        {},
    ),
    ("Ciprofloxacin every 12 hours is fine.", ["Ciprofloxacin is taken twice a day."], "frequency", {}),
    ("Digoxin 0.125 mg daily.", ["Digoxin 125 micrograms once daily is usual in the elderly."], "amount", {}),
    (
        "At 10 mg/kg that is 150 mg for him.",
        ["Ibuprofen 5 to 10 mg/kg per dose in children; the tablets for adults hold 200 mg."],
        "amount",
        {"question": "My son weighs 15 kg. How much ibuprofen may he have?", "context": "ibuprofen"},
    ),
]
# claim, passages, context and question: nothing is said
SILENT = [
    ("The child may have 10 mg/kg of ibuprofen.", ["Ibuprofen for adults is 400 mg three times a day."], {}),
    (
        "A child may take paracetamol 15 mg/kg every 4 hours.",
        ["In adults paracetamol is taken as 1 g every 6 hours."],
        {},
    ),
    (
        "Amoxicillin 500 mg three times a day is usual for adults.",
        ["Doxycycline 200 mg is taken once a day by adults."],
        {},
    ),
    ("Amoxicillin 500 mg three times a day is usual.", ["Clarithromycin 250 mg twice a day is usual."], {}),
    ("Drink plenty and rest.", ["Paracetamol 1 g every 6 hours."], {}),
    ("The dose is 5 mg.", [], {}),
    (
        "He weighs 15 kg, so 150 mg is one dose.",
        ["Ibuprofen 5 to 10 mg/kg per dose in children."],
        {"question": "My son weighs 15 kg. How much ibuprofen may he have?", "context": "ibuprofen"},
    ),
    (
        "You take 20 mg of lisinopril now.",
        ["Lisinopril is started at 10 mg once daily."],
        {"question": "I take lisinopril 20 mg. Is it too much?"},
    ),
    ("With 5 mL of the 100 mg/5 mL syrup he gets 100 mg.", ["Ibuprofen 200 mg tablets."], {"context": "ibuprofen"}),
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


def test_a_finding_carries_spans_quote_and_reason():
    claim = "Methotrexate 7.5 mg is taken every day."
    passage = "Rheumatoid arthritis. Methotrexate 7.5 mg is taken once a week. Folic acid is added."
    finding = next(f for f in KIT["run"](CHECKER, claim, passage) if f.field == "frequency")
    assert (finding.relation, finding.hard, finding.passage_id) == ("differs", True, "p1")
    assert claim[slice(*finding.claim_span)] == "every day"
    assert passage[slice(*finding.quote_span)] == "once a week"
    assert finding.reason == "the passage gives “once a week”, the answer “every day”"


def test_the_same_number_with_another_unit_is_a_clash_of_units():
    (finding,) = KIT["firm"](KIT["run"](CHECKER, "Take vitamin D 1000 mg.", "Vitamin D: take 1000 IU."))
    assert (finding.field, finding.claim_value, finding.evidence_value) == ("unit", "1000 mg", "1000 IU")


def test_the_passage_on_the_drug_decides_among_several():
    passages = [
        ("Apixaban", "Atrial fibrillation: 5 mg twice daily."),
        ("Rivaroxaban", "Atrial fibrillation: 20 mg once daily with food."),
        ("Warfarin", "Atrial fibrillation: started at 5 mg once daily."),
    ]
    right = KIT["run"](CHECKER, "Rivaroxaban is taken as 20 mg once daily.", *passages)
    assert KIT["firm"](right) == []
    wrong = KIT["firm"](KIT["run"](CHECKER, "Rivaroxaban is taken as 200 mg once daily.", *passages))
    assert wrong
    assert {finding.passage_id for finding in wrong} == {"p2"}


def test_passages_that_disagree_are_both_reported():
    passages = [
        "Cystitis: trimethoprim 200 mg twice daily for 3 days.",
        "Cystitis: trimethoprim 200 mg twice daily for 7 days.",
    ]
    found = [
        f
        for f in KIT["run"](CHECKER, "For cystitis take trimethoprim 200 mg twice daily for 3 days.", *passages)
        if f.field == "duration"
    ]
    assert {(f.relation, f.passage_id) for f in found} == {("agrees", "p1"), ("differs", "p2")}


def test_the_drug_may_stand_in_the_context_or_the_title():
    passage = ("Ibuprofen", "Children: 5 to 10 mg/kg, at most every 6 hours.")
    found = KIT["run"](CHECKER, "The dose is 50 mg/kg.", passage, context="Ibuprofen for children")
    assert KIT["fields"](KIT["firm"](found)) == ["amount"]


def test_weights_given_replace_those_that_ship():
    none = {"value": {"none": 50.0, "agrees": 0.0}}
    found = KIT["run"](DosingChecker(weights=none), "Take 5 mg daily.", "Take 50 mg daily.")
    assert all(f.confidence < 0.01 and not f.hard for f in found)


@pytest.mark.parametrize(
    ("claim", "question", "compared"),
    [
        ("For him that is 75 to 150 mg.", "My son weighs 15 kg.", []),
        ("At 15 kg the dose is 150 mg.", "", []),
        ("For him that is 1,500 mg.", "My son weighs 15 kg.", ["1,500 mg"]),
        ("For him that is 150 mg.", "My son is small.", ["150 mg"]),
        ("He has lost 5 kg and takes 50 mg.", "", ["50 mg"]),
        ("With 500 mg/kg and 20 kg that is 10 g.", "", ["500 mg/kg"]),
        ("With 100 mg/5 mL syrup 150 mg are 7.5 mL.", "", ["100 mg/5 mL"]),
        ("With 5 mg tablets 40 mg are eight tablets.", "", ["5 mg"]),
        ("The dose is 100 mg.", "He takes 100 mg.", []),
        ("The dose is 200 mg.", "He takes 100 mg.", ["200 mg"]),
        ("With 50 mg/kg and 20 kg that is 1 g.", "", ["50 mg/kg"]),
        ("Two tablets of 250 mg make 500 mg.", "", ["250 mg"]),
    ],
)
def test_values_given_or_computed_are_not_compared(claim, question, compared):
    subject = KIT["claim"](claim, question=question)
    reading = read(
        subject, KIT["evidence"]("Ibuprofen for children: 5 to 10 mg/kg a dose.", "Ibuprofen tablets hold 200 mg.")
    )
    found = [q.text for q in comparable_values(subject, reading) if q.kind == "amount" and q.dimension != "body weight"]
    assert found == compared


def test_a_value_that_the_passage_rules_out_speaks_against_it():
    passage = "Methotrexate is taken on a fixed day, never daily."
    (finding,) = KIT["firm"](KIT["run"](CHECKER, "Methotrexate is taken daily.", passage))
    assert (finding.field, finding.relation, finding.evidence_value) == ("frequency", "negated", "daily")
    assert KIT["run"](CHECKER, "Methotrexate is taken weekly.", passage) == []


def test_both_sides_may_rule_out_the_same_value():
    found = KIT["run"](
        CHECKER, "Methotrexate is never taken daily.", "Methotrexate is dangerous if taken daily by mistake."
    )
    assert [(f.relation, f.evidence_value) for f in found] == [("agrees", "daily")]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("never daily", True),
        ("weekly, not daily", True),
        ("rather than daily", True),
        ("taken daily in error", True),
        ("daily", False),
        ("not before breakfast but daily", False),
    ],
)
def test_denied_values(text, denied):
    (quantity,) = [q for q in find_quantities(text) if q.text == "daily"]
    assert is_denied(text, quantity) is denied
