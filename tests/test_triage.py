"""Levels of urgency, found in text and compared with the evidence."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.triage import TriageChecker, find_urgency, main_urgency

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = TriageChecker()

# claim, passages, field that differs ("" for any), context and question
AGAINST = [
    (
        "Crushing chest pain can be managed at home with an antacid.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {},
    ),
    (
        "For crushing chest pain book a routine appointment.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {},
    ),
    (
        "Crushing chest pain is not an emergency.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {},
    ),
    (
        "With crushing chest pain see your doctor in a few days.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {},
    ),
    (
        "A common cold with green mucus needs emergency care tonight.",
        ["A common cold with green mucus gets better by itself within ten days and can be looked after at home."],
        "urgency",
        {},
    ),
    (
        "Go to the emergency department with a common cold and green mucus.",
        ["A common cold with green mucus gets better by itself within ten days and can be looked after at home."],
        "urgency",
        {},
    ),
    (
        "A common cold with green mucus needs urgent assessment.",
        ["A common cold with green mucus gets better by itself within ten days and can be looked after at home."],
        "urgency",
        {},
    ),
    (
        "A fever in a baby under three months can be managed at home.",
        ["A fever of 38 °C in a baby under three months needs emergency assessment in hospital."],
        "urgency",
        {},
    ),
    (
        "A baby under three months with a fever can wait for a routine appointment.",
        ["A fever of 38 °C in a baby under three months needs emergency assessment in hospital."],
        "urgency",
        {},
    ),
    (
        "A sprained ankle that bears weight is a medical emergency.",
        ["A sprained ankle that bears weight needs no emergency care. Rest at home; see a doctor if it does not heal."],
        "urgency",
        {},
    ),
    (
        "A transient ischaemic attack can be looked after at home.",
        ["A transient ischaemic attack needs same-day specialist assessment."],
        "urgency",
        {},
    ),
    (
        "A transient ischaemic attack needs only a routine appointment.",
        ["A transient ischaemic attack needs same-day specialist assessment."],
        "urgency",
        {},
    ),
    (
        "It can be managed at home.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {"question": "I have crushing chest pain that spreads to my arm. What should I do?"},
    ),
    (
        "Emergency care is not needed for crushing chest pain.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "urgency",
        {},
    ),
]
# claim, passages, field that agrees ("" for any), context and question
AGREES = [
    (
        "With crushing chest pain call an ambulance now.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {},
    ),
    (
        "With crushing chest pain go to the emergency department.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {},
    ),
    (
        "A common cold with green mucus can be managed at home.",
        ["A common cold with green mucus gets better by itself within ten days and can be looked after at home."],
        "",
        {},
    ),
    (
        "A common cold with green mucus settles by itself.",
        ["A common cold with green mucus gets better by itself within ten days and can be looked after at home."],
        "",
        {},
    ),
    (
        "A fever in a baby under three months needs to go to the emergency department.",
        ["A fever of 38 °C in a baby under three months needs emergency assessment in hospital."],
        "",
        {},
    ),
    (
        "A sprained ankle that bears weight can be treated at home.",
        ["A sprained ankle that bears weight needs no emergency care. Rest at home; see a doctor if it does not heal."],
        "",
        {},
    ),
    (
        "A transient ischaemic attack needs a same-day assessment.",
        ["A transient ischaemic attack needs same-day specialist assessment."],
        "",
        {},
    ),
    (
        "After a transient ischaemic attack go to hospital.",
        ["A transient ischaemic attack needs same-day specialist assessment."],
        "",
        {},
    ),
    (
        "Crushing chest pain: do not hesitate to call 999.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {},
    ),
    (
        "Call an ambulance.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {"question": "I have crushing chest pain that spreads to my arm. What should I do?"},
    ),
    (
        "Managing a heart attack at home is unsafe.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {},
    ),
    (
        "Crushing chest pain is life-threatening.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        "",
        {},
    ),
]
# claim, passages, context and question: nothing is said
SILENT = [
    (
        "Take paracetamol for the pain.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        {},
    ),
    (
        "The heart pumps blood.",
        ["Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."],
        {},
    ),
    ("Call an ambulance.", [], {}),
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


LEVELS = {
    4: [
        "Call an ambulance.", "Call 911 now.", "Call 999.", "Go to the emergency department.",
        "Go to the ER immediately.", "This is a medical emergency.", "Take him to hospital now.", "Get to A&E.",
        "It needs emergency surgery.", "She needs immediate medical attention.", "Ring 112.", "Dial 999",
        "This is life-threatening.", "Send the patient to hospital at once.", "He must be admitted.",
        "Emergency services should be called.", "Urgent hospital admission is needed.", "seek emergency care",
        "Seek immediate medical care", "Go straight to the emergency room.", "call emergency services",
        "needs emergency treatment", "rush her to hospital", "Attend the emergency department tonight",
        "She should be seen in A&E", "Admit at once", "Managing it at home is unsafe.",
        "Waiting for a routine appointment is not safe",
    ],
    3: [
        "See a doctor today.", "Get a same-day appointment.", "You should be seen within 24 hours.",
        "Urgent review is needed.", "Call your GP urgently.", "Seek prompt medical assessment.",
        "needs urgent referral", "Contact the out-of-hours service.", "be assessed within a few hours",
        "It cannot be treated at home.", "seek urgent care", "see someone today", "get urgent medical advice",
        "be reviewed the same day",
    ],
    2: [
        "See your GP within a few days.", "Book an appointment with your doctor in two or three days.",
        "Ask your pharmacist.", "You should be reviewed within 3 working days.", "Make an appointment with your GP.",
        "Talk to your doctor.", "Contact your doctor if it persists", "Arrange to see a doctor this week",
        "see your doctor soon", "be seen in the next couple of days",
    ],
    1: [
        "It rarely needs urgent review.", "It does not need an ambulance.", "Book a routine appointment.",
        "Mention it at your next visit.", "Have it checked in the next few weeks.", "A non-urgent review is enough.",
        "Follow up within 4 weeks.", "It can wait until your next check-up", "routine follow-up",
    ],
    0: [
        "This is not an emergency.", "You can manage it at home.", "It settles by itself.",
        "It usually clears on its own in a week.", "Self-care is enough.", "No treatment is needed.",
        "It is self-limiting.", "You do not need urgent care.", "There is nothing to worry about.", "Rest at home.",
        "It can be looked after at home without seeing a doctor.", "Watch and wait.", "needs no emergency care",
        "You don't need to see a doctor.", "does not need medical attention", "no need to see a doctor",
        "can be treated at home", "will go away on its own", "There's no need for hospital",
        "Urgent care is not needed.",
    ],
}  # fmt: skip
NO_URGENCY = [
    "Asthma is common.", "The dose is 5 mg.", "Emergency contraception works for five days.",
    "The hospital pharmacy stocks it.", "Urgency of urination", "urgent need to urinate",
    "Routine vaccination is recommended.", "He works at home.", "999 patients were studied", "112 mg",
    "The emergency of new strains",
]  # fmt: skip


@pytest.mark.parametrize(("text", "level"), [(text, level) for level, texts in LEVELS.items() for text in texts])
def test_levels(text, level):
    found = find_urgency(text)
    assert level in [u.level for u in found]
    for urgency in found:
        assert 0 <= urgency.start < urgency.end <= len(text)


@pytest.mark.parametrize("text", NO_URGENCY)
def test_what_is_no_urgency(text):
    assert find_urgency(text) == []


def test_levels_come_in_the_order_of_the_text():
    assert [u.level for u in find_urgency("This is not an emergency; book a routine appointment.")] == [0, 1]


def test_a_claim_stands_for_what_it_says_without_a_condition():
    text = "You can manage it at home. Call an ambulance if your lips turn blue."
    assert [(u.level, u.conditional) for u in find_urgency(text)] == [(0, False), (4, True)]
    assert [u.level for u in main_urgency(text)] == [0]
    assert [u.level for u in main_urgency("If your lips turn blue, call an ambulance.")] == [4]


def test_one_level_apart_is_no_disagreement():
    passage = "A transient ischaemic attack needs same-day specialist assessment."
    for claim in (
        "A transient ischaemic attack needs emergency care.",
        "After a transient ischaemic attack see your doctor.",
    ):
        assert KIT["firm"](KIT["run"](CHECKER, claim, passage)) == []


@given(st.text(max_size=80), st.sampled_from(["call 999", "at home", "see a doctor", "not", "urgent", "n't need to"]))
def test_any_text(text, cue):
    for sample in (text, text + cue, cue + text, f"{text} {cue} {text}"):
        spans = [(u.start, u.end) for u in find_urgency(sample)]
        assert spans == sorted(spans)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
