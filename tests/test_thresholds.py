"""Limits, cut-offs, targets, ages and times, each case through the checker."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.thresholds import ThresholdChecker

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = ThresholdChecker()

# claim, passages, field that differs ("" for any), context and question
AGAINST = [
    (
        "Diabetes is diagnosed at an HbA1c of 5.5% or higher.",
        ["Diabetes is diagnosed when HbA1c is 6.5% or higher."],
        "threshold",
        {},
    ),
    (
        "Fasting glucose of 110 mg/dL or more means diabetes.",
        ["Diabetes: fasting plasma glucose of 126 mg/dL (7.0 mmol/L) or above."],
        "threshold",
        {},
    ),
    (
        "A fever is a temperature of 39.5 °C or above.",
        ["Fever means a temperature of 38 °C or higher."],
        "threshold",
        {},
    ),
    (
        "A fever is a temperature of 104 °F or above.",
        ["Fever means a temperature of 38 °C or higher."],
        "threshold",
        {},
    ),
    (
        "Home readings of 160/100 mmHg or more mean hypertension.",
        ["Hypertension is diagnosed when the home average is 135/85 mmHg or higher."],
        "threshold",
        {},
    ),
    (
        "The target is a systolic pressure below 160 mmHg.",
        ["Blood pressure target: systolic below 130 mmHg."],
        "threshold",
        {},
    ),
    (
        "Stop metformin when the eGFR is below 60 mL/min/1.73 m².",
        ["Metformin is stopped once eGFR falls below 30 mL/min."],
        "threshold",
        {},
    ),
    (
        "Treat a low glucose only under 40 mg/dL.",
        ["Hypoglycaemia is a glucose under 70 mg/dL (3.9 mmol/L) and should be treated."],
        "threshold",
        {},
    ),
    (
        "Transfuse platelets when the count is below 100 x 10^9/L.",
        ["Platelets are transfused when the count is below 10 x 10^9/L."],
        "threshold",
        {},
    ),
    (
        "In COPD keep the oxygen saturation at 94 to 98%.",
        ["In COPD the oxygen saturation is kept at 88 to 92%."],
        "threshold",
        {},
    ),
    (
        "Exercise lowers systolic pressure by about 50 mmHg.",
        ["Regular exercise lowers systolic pressure by 5 to 8 mmHg."],
        "threshold",
        {},
    ),
    (
        "Aspirin must not be given to children under 6 years.",
        ["Aspirin is not given to children under 16 years because of Reye syndrome."],
        "age",
        {},
    ),
    (
        "Honey is unsafe for babies under 2 months.",
        ["Honey is not given to babies under 12 months old because of botulism."],
        "age",
        {},
    ),
    (
        "The vaccine is offered to adults over 40.",
        ["The pneumococcal vaccine is offered to adults aged 65 and over."],
        "age",
        {},
    ),
    ("Avoid NSAIDs from 36 weeks of pregnancy.", ["NSAIDs are avoided from 20 weeks of pregnancy."], "gestation", {}),
    (
        "The glucose tolerance test is done at 34 to 36 weeks of pregnancy.",
        ["Gestational diabetes: glucose tolerance test at 24 to 28 weeks of pregnancy."],
        "gestation",
        {},
    ),
    (
        "Thrombolysis is given within 24 hours of stroke onset.",
        ["Stroke: thrombolysis within 4.5 hours of onset."],
        "time",
        {},
    ),
    (
        "Emergency contraception works up to 10 days after sex.",
        ["Ulipristal emergency contraception works up to 5 days after sex."],
        "time",
        {},
    ),
    (
        "TSH above 2 mIU/L is treated.",
        ["Subclinical hypothyroidism is treated when TSH is above 10 mIU/L."],
        "threshold",
        {},
    ),
]
# claim, passages, field that agrees ("" for any), context and question
AGREES = [
    (
        "Diabetes is diagnosed at an HbA1c of 6.5% or higher.",
        ["Diabetes: HbA1c at or above 6.5% (48 mmol/mol) confirms the diagnosis."],
        "threshold",
        {},
    ),
    (
        "Fasting glucose of 126 mg/dL or more means diabetes.",
        ["Diabetes: fasting plasma glucose of 7.0 mmol/L (126 mg/dL) or above."],
        "threshold",
        {},
    ),
    (
        "A fever is a temperature of 38 °C or above.",
        ["Fever means a temperature of 100.4 °F (38 °C) or higher."],
        "threshold",
        {},
    ),
    (
        "A fever is a temperature of 100.4 °F or above.",
        ["Fever means a temperature of 38 °C or higher."],
        "threshold",
        {},
    ),
    (
        "Home readings of 135/85 mmHg or more mean hypertension.",
        ["Hypertension is diagnosed when the home average is 135/85 mmHg or higher."],
        "threshold",
        {},
    ),
    (
        "The target is a systolic pressure below 130 mmHg.",
        ["Blood pressure target: systolic below 130 mmHg."],
        "threshold",
        {},
    ),
    (
        "Stop metformin when the eGFR is below 30 mL/min/1.73 m².",
        ["Metformin is stopped once eGFR falls below 30 mL/min."],
        "threshold",
        {},
    ),
    (
        "Treat a low glucose under 70 mg/dL (3.9 mmol/L).",
        ["Hypoglycaemia is a glucose under 70 mg/dL (3.9 mmol/L) and should be treated."],
        "threshold",
        {},
    ),
    (
        "Transfuse platelets when the count is below 10 x 10^9/L.",
        ["Platelets are transfused when the count is below 10,000/µL."],
        "threshold",
        {},
    ),
    (
        "Oxygen saturation should be kept at 94 to 98%.",
        ["Most patients: aim for an oxygen saturation of 94 to 98%."],
        "threshold",
        {},
    ),
    (
        "Exercise lowers systolic pressure by about 5 mmHg.",
        ["Regular exercise lowers systolic pressure by 5 to 8 mmHg."],
        "threshold",
        {},
    ),
    (
        "Aspirin must not be given to children under 16 years.",
        ["Aspirin is not given to children under 16 years because of Reye syndrome."],
        "age",
        {},
    ),
    (
        "Honey is unsafe for babies under 12 months.",
        ["Honey is not given to babies under 12 months old because of botulism."],
        "age",
        {},
    ),
    (
        "The vaccine is offered to adults over 65.",
        ["Pneumococcal vaccine is offered to adults aged 65 and over."],
        "age",
        {},
    ),
    ("Avoid NSAIDs from 20 weeks of pregnancy.", ["NSAIDs are avoided from 20 weeks of pregnancy."], "gestation", {}),
    (
        "The glucose tolerance test is done at 24 to 28 weeks of pregnancy.",
        ["Gestational diabetes: glucose tolerance test at 24 to 28 weeks of pregnancy."],
        "gestation",
        {},
    ),
    (
        "Thrombolysis is given within 4.5 hours of stroke onset.",
        ["Stroke: thrombolysis within 4.5 hours of onset."],
        "time",
        {},
    ),
    (
        "Take it 30 minutes before breakfast.",
        ["Levothyroxine is taken 30 to 60 minutes before breakfast."],
        "time",
        {"context": "levothyroxine"},
    ),
    (
        "A febrile seizure under 5 minutes needs no drug.",
        ["Febrile seizure: drugs only when it lasts 5 minutes or more."],
        "",
        {},
    ),
    (
        "Emergency contraception works up to 120 hours after sex.",
        ["Ulipristal emergency contraception works up to 5 days after sex."],
        "time",
        {},
    ),
    (
        "A CHA2DS2-VASc score of 2 points or more in men calls for anticoagulation.",
        ["Atrial fibrillation: anticoagulation for men with a CHA2DS2-VASc score of 2 points or more."],
        "threshold",
        {},
    ),
    (
        "TSH above 10 mIU/L is treated.",
        ["Subclinical hypothyroidism is treated when TSH is above 10 mIU/L."],
        "threshold",
        {},
    ),
]
# claim, passages, context and question: nothing is said
SILENT = [
    (
        "Exercise lowers systolic pressure by about 5 mmHg.",
        ["In hypertension the systolic pressure should stay below 130 mmHg."],
        {},
    ),
    ("A fall of 5 mmHg can be expected.", ["Treat a systolic pressure of 140 mmHg or more."], {}),
    (
        "His creatinine of 1.1 mg/dL is fine.",
        ["A creatinine above 1.5 mg/dL is a criterion for the lower dose."],
        {"question": "Creatinine 1.1 mg/dL. Which dose?"},
    ),
    (
        "A 71-year-old needs care.",
        ["Adults over 80 get the lower dose."],
        {"question": "My mum is a 71-year-old. What dose?"},
    ),
    ("Call 911 at once.", ["Call 999 or 112."], {}),
    ("Rest well.", ["TSH above 10 mIU/L is treated."], {}),
    ("TSH above 10 mIU/L is treated.", [], {}),
    ("Paracetamol 1 g is fine.", ["Paracetamol 500 mg."], {}),
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


def test_dosing_values_are_left_to_the_other_checker():
    from factcheck.checkers.dosing import dosing_field
    from factcheck.checkers.parse_quantities import find_quantities
    from factcheck.checkers.thresholds import threshold_field

    text = "Take 5 mg twice daily for 7 days if eGFR is above 30 mL/min, aged over 12 years, below 140/90, at 38 °C."
    fields = {q.text: (dosing_field(q), threshold_field(q)) for q in find_quantities(text)}
    assert all((one is None) != (other is None) for one, other in fields.values())
    assert fields["5 mg"] == ("amount", None)
    assert fields["above 30 mL/min"] == (None, "threshold")


def test_a_change_is_no_level():
    change, level = "It lowers systolic pressure by 5 mmHg.", "Systolic pressure is 5 mmHg."
    assert KIT["run"](CHECKER, change, level) == []
