"""What a claim says to do or not to do, against what the evidence says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.assertion import AssertionChecker, polarity_of

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = AssertionChecker(AssertionChecker.Settings(negation="plain"))

# claim, passages, field that differs ("" for any), context and question
AGAINST = [
    (
        "Give aspirin to a child with chickenpox.",
        ["Aspirin is avoided in children with chickenpox because of Reye syndrome."],
        "assertion",
        {},
    ),
    (
        "Aspirin can be given to a child with chickenpox.",
        ["Aspirin must not be given to a child with chickenpox."],
        "assertion",
        {},
    ),
    (
        "Sildenafil is safe with nitrates.",
        ["Sildenafil is contraindicated with nitrates: the pressure may fall."],
        "assertion",
        {},
    ),
    (
        "Ibuprofen can be used in the third trimester of pregnancy.",
        ["Ibuprofen should be avoided in the third trimester of pregnancy."],
        "assertion",
        {},
    ),
    (
        "Use metformin when the eGFR is below 30.",
        ["Metformin is contraindicated when the eGFR is below 30."],
        "assertion",
        {},
    ),
    (
        "Antibiotics are recommended for acute bronchitis.",
        ["Acute bronchitis: antibiotics are not recommended for otherwise healthy adults."],
        "assertion",
        {},
    ),
    ("Antibiotics are needed for a viral cold.", ["A viral cold: antibiotics are ineffective."], "assertion", {}),
    (
        "Codeine is suitable for children under 12.",
        ["Codeine is contraindicated in children under 12."],
        "assertion",
        {},
    ),
    (
        "Warfarin is safe in pregnancy.",
        ["Warfarin is contraindicated in pregnancy because it harms the fetus."],
        "assertion",
        {},
    ),
    (
        "Labetalol is contraindicated in pregnancy.",
        ["Labetalol is first-line for high blood pressure in pregnancy."],
        "assertion",
        {},
    ),
    (
        "NSAIDs are safe in severe heart failure.",
        ["Ibuprofen should be avoided in severe heart failure."],
        "assertion",
        {},
    ),
    (
        "Ibuprofen is safe in severe heart failure.",
        ["NSAIDs should be avoided in severe heart failure."],
        "assertion",
        {},
    ),
    ("A beta-blocker is safe in asthma.", ["Propranolol must be avoided in asthma."], "assertion", {}),
    ("Stop the statin before surgery.", ["Statins should not be stopped before surgery."], "assertion", {}),
    (
        "Statins are contraindicated in stable liver disease.",
        ["There is no contraindication to statins in stable liver disease."],
        "assertion",
        {},
    ),
    (
        "Honey is safe for babies under 12 months.",
        ["Honey must not be given to babies under 12 months because of botulism."],
        "assertion",
        {},
    ),
    (
        "Compression is recommended in severe arterial disease.",
        ["Compression is contraindicated in severe arterial disease of the leg."],
        "assertion",
        {},
    ),
    (
        "Oxygen is recommended for a suspected heart attack with normal saturation.",
        ["Suspected heart attack: oxygen is not recommended when the saturation is normal."],
        "assertion",
        {},
    ),
    (
        "Grapefruit juice can be taken with simvastatin.",
        ["Simvastatin: grapefruit juice should be avoided."],
        "assertion",
        {},
    ),
    ("Zinc is effective for a cold.", ["Zinc is not recommended for a cold: no evidence of benefit."], "assertion", {}),
    (
        "Methotrexate can be taken during pregnancy.",
        ["Methotrexate is a folate antagonist.", "Methotrexate must not be used during pregnancy."],
        "assertion",
        {},
    ),
    (
        "It can be used in pregnancy.",
        ["Isotretinoin is contraindicated in pregnancy."],
        "assertion",
        {"context": "Isotretinoin"},
    ),
]
# claim, passages, field that agrees ("" for any), context and question
AGREES = [
    (
        "Do not give aspirin to a child with chickenpox.",
        ["Aspirin is avoided in children with chickenpox because of Reye syndrome."],
        "",
        {},
    ),
    (
        "Sildenafil is contraindicated with nitrates.",
        ["Sildenafil must not be combined with nitrates: the pressure may fall."],
        "",
        {},
    ),
    (
        "Ibuprofen should be avoided in the third trimester of pregnancy.",
        ["Ibuprofen should be avoided in the third trimester of pregnancy."],
        "",
        {},
    ),
    (
        "Metformin is contraindicated when the eGFR is below 30.",
        ["Metformin should not be used when the eGFR is below 30."],
        "",
        {},
    ),
    (
        "Antibiotics are not recommended for acute bronchitis.",
        ["Acute bronchitis: antibiotics are not recommended for otherwise healthy adults."],
        "",
        {},
    ),
    ("Codeine should not be given to children under 12.", ["Codeine is contraindicated in children under 12."], "", {}),
    (
        "Warfarin must not be used in pregnancy.",
        ["Warfarin is contraindicated in pregnancy because it harms the fetus."],
        "",
        {},
    ),
    (
        "Labetalol is recommended in pregnancy.",
        ["Labetalol is first-line for high blood pressure in pregnancy."],
        "",
        {},
    ),
    ("A beta-blocker is contraindicated in asthma.", ["Propranolol must be avoided in asthma."], "", {}),
    ("Statins should be continued before surgery.", ["Statins should not be stopped before surgery."], "", {}),
    (
        "Statins are not contraindicated in stable liver disease.",
        ["There is no contraindication to statins in stable liver disease."],
        "",
        {},
    ),
    (
        "Never give honey to babies under 12 months.",
        ["Honey must not be given to babies under 12 months because of botulism."],
        "",
        {},
    ),
    (
        "Grapefruit juice should be avoided with simvastatin.",
        ["Simvastatin: do not drink grapefruit juice; it should be avoided."],
        "",
        {},
    ),
    (
        "There is no evidence that zinc helps a cold.",
        ["Zinc is not recommended for a cold: no evidence of benefit."],
        "",
        {},
    ),
]
# claim, passages, context and question: nothing is said
SILENT = [
    (
        "Ibuprofen should be avoided in severe heart failure.",
        ["Paracetamol is recommended in severe heart failure."],
        {},
    ),
    ("Amoxicillin is recommended for pneumonia.", ["Ciprofloxacin is not recommended for pneumonia."], {}),
    ("Induce vomiting after swallowing bleach.", ["After swallowing bleach vomiting must not be induced."], {}),
    ("Levothyroxine doses rise in pregnancy.", ["Levothyroxine is safe in pregnancy."], {}),
    ("Levothyroxine is safe in pregnancy.", ["Levothyroxine needs rise in pregnancy."], {}),
    ("Levothyroxine is safe in pregnancy.", [], {}),
    ("It can be used in pregnancy.", ["Isotretinoin is contraindicated in pregnancy."], {"context": "Paracetamol"}),
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


POLARITIES = {
    "against": [
        "Aspirin should be avoided", "Avoid aspirin", "Aspirin is contraindicated in children", "is contra-indicated",
        "You should not take ibuprofen", "You shouldn't take ibuprofen", "Do not give aspirin to a child",
        "Don't use it", "must not be used", "must never be given", "can't be combined", "cannot be used",
        "cannot be safely combined", "never give it", "should never be used in pregnancy", "is not recommended",
        "is not routinely recommended", "not advised in pregnancy", "is not safe", "is not suitable for children",
        "unsafe in pregnancy", "is unsuitable", "is inappropriate", "no longer recommended", "is recommended against",
        "experts advise against it", "has no place in treatment", "has no role", "is ineffective",
        "is of little benefit", "showed no benefit", "has not been shown to help", "failed to improve survival",
        "is unnecessary", "is harmful", "is dangerous in renal failure", "is withheld before surgery",
        "should be stopped before surgery", "Stop taking it", "Discontinue the drug", "need not be given",
        "is not needed", "are not indicated", "should be discontinued", "is to be avoided", "to be avoided in asthma",
        "is not an option", "is not first-line", "antibiotics should not be prescribed",
        "it is not necessary to treat", "there is no evidence of benefit", "there is no evidence that it helps",
        "offers no advantage", "is best avoided", "refrain from using it", "is discouraged", "is banned",
        "is not appropriate", "is not licensed in pregnancy", "not to be used", "must be avoided",
        "should not be routinely offered", "do not combine it with nitrates", "should be omitted",
        "is not to be taken", "If it bleeds stop taking it", "Tell us if you bleed and do not take it",
        "Ask whether it helps and avoid aspirin", "Whether it is safe is unclear so it should not be used",
    ],
    "for": [
        "Aspirin is recommended", "is safe in pregnancy", "is suitable for children", "is the first-line treatment",
        "is first choice", "is the drug of choice", "is the treatment of choice", "can be taken with food",
        "may be used", "should be given early", "must be started at once", "Give adrenaline", "Use a spacer",
        "Start apixaban", "Please take it with food", "Then continue", "Carry on as usual", "needs no adjustment",
        "has no clinically relevant interaction", "is preferred", "the preferred option", "is fine to take",
        "it is okay to use", "is recommended for adults", "is not contraindicated", "there is no contraindication",
        "need not be avoided", "is not unsafe", "does not interact", "do not stop", "is effective", "is indicated",
        "is an option", "is a suitable alternative", "is appropriate", "is advised", "is needed", "is required",
        "is strongly recommended", "can safely be combined", "should be offered", "should be considered",
        "are beneficial", "is well tolerated", "You can take both together", "it is not harmful",
        "is considered safe", "is widely used", "is not dangerous", "there is no need to avoid it", "Offer a statin",
        "in favour of adding", "Antibiotics are needed", "should be encouraged", "may safely be given",
        "you can drive", "never stop it suddenly", "is generally safe", "is acceptable", "should not be stopped",
        "must not be stopped abruptly", "Do not stop insulin", "should not be withheld", "do not withhold treatment",
        "should not be delayed", "If it persists antibiotics should be given", "Take it if it is needed",
        "Whether it is harmful is unknown but it should be given",
    ],
}  # fmt: skip
NO_POLARITY = [
    "Review whether a statin is still indicated", "ask whether sex is safe", "It is unknown whether it is harmful",
    "if they are contraindicated", "Ask your pharmacist if ibuprofen is safe", "if it does not stop", "The dose is 5 mg",
    "It is excreted by the kidney", "Asthma causes wheeze", "Blood pressure rises with age", "The child has a fever",
    "Symptoms last three days", "It works within an hour", "Half-life is long", "This is a common question",
    "People with asthma", "A safe distance", "the usefulness of exercise is unknown", "If it is not contraindicated",
    "unless contraindicated",
]  # fmt: skip


@pytest.mark.parametrize(("text", "polarity"), [(text, side) for side, texts in POLARITIES.items() for text in texts])
def test_polarity_of_a_clause(text, polarity):
    stand = polarity_of(text)
    assert stand is not None
    assert stand.polarity == polarity
    assert text[stand.start : stand.end].strip()


@pytest.mark.parametrize("text", NO_POLARITY)
def test_no_polarity(text):
    assert polarity_of(text) is None


def test_a_finding_quotes_both_cues():
    claim, passage = (
        "Sildenafil is safe with nitrates.",
        "Never combine them: sildenafil is contraindicated with nitrates.",
    )
    (finding,) = KIT["firm"](KIT["run"](CHECKER, claim, passage))
    assert (finding.field, finding.relation, finding.claim_value) == ("assertion", "negated", "is safe")
    assert finding.evidence_value == "contraindicated"
    assert "contraindicated" in finding.reason


def test_each_clause_is_compared_by_itself():
    passage = "Paracetamol is safe in pregnancy. Ibuprofen should be avoided in pregnancy."
    found = KIT["run"](CHECKER, "Paracetamol is safe in pregnancy, but ibuprofen is recommended in pregnancy.", passage)
    assert {(f.claim_value, f.relation) for f in found} == {("is safe", "agrees"), ("is recommended", "negated")}


def test_guidelines_that_changed_their_mind_are_both_reported():
    passages = ["In 2013 beta-blockers were contraindicated in COPD.", "In 2023 beta-blockers are recommended in COPD."]
    found = KIT["run"](CHECKER, "Beta-blockers can be given in COPD.", *passages)
    assert {(f.relation, f.passage_id) for f in found} == {("agrees", "p2"), ("negated", "p1")}
