"""Drugs by generic name, brand and class."""

from __future__ import annotations

import json
import time
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers.drugs import classes_of, find_drugs, widen

TABLE = json.loads((resources.files("factcheck.data") / "drugs.v1.json").read_text(encoding="utf-8"))
MEMBERS = {member for members in TABLE["classes"].values() for member in members}
GROUPS = set(TABLE["classes"]) | set(TABLE["parents"])
NAMES = {
    "paracetamol": "paracetamol", "Acetaminophen": "paracetamol", "TYLENOL": "paracetamol", "Panadol": "paracetamol",
    "Advil": "ibuprofen", "Nurofen": "ibuprofen", "naproxen": "naproxen", "Aleve": "naproxen",
    "Voltaren": "diclofenac", "acetylsalicylic acid": "aspirin", "albuterol": "salbutamol", "Ventolin": "salbutamol",
    "epinephrine": "adrenaline", "EpiPen": "adrenaline", "norepinephrine": "noradrenaline",
    "nitroglycerin": "glyceryl-trinitrate", "GTN": "glyceryl-trinitrate", "frusemide": "furosemide",
    "Lasix": "furosemide", "HCTZ": "hydrochlorothiazide", "Augmentin": "co-amoxiclav",
    "amoxicillin-clavulanate": "co-amoxiclav", "amoxicillin/clavulanate": "co-amoxiclav", "Bactrim": "co-trimoxazole",
    "trimethoprim-sulfamethoxazole": "co-trimoxazole", "cephalexin": "cefalexin", "glyburide": "glibenclamide",
    "acyclovir": "aciclovir", "rifampin": "rifampicin", "cyclosporine": "ciclosporin", "mesalamine": "mesalazine",
    "meperidine": "pethidine", "Eliquis": "apixaban", "Xarelto": "rivaroxaban", "Plavix": "clopidogrel",
    "Lipitor": "atorvastatin", "Norvasc": "amlodipine", "Viagra": "sildenafil", "Zoloft": "sertraline",
    "Ozempic": "semaglutide", "Synthroid": "levothyroxine", "Lantus": "insulin", "insulin glargine": "insulin",
    "vitamin D": "vitamin-d", "folic acid": "folic-acid", "Coumadin": "warfarin", "Depakote": "valproate",
    "valproic acid": "valproate", "tPA": "alteplase", "Benadryl": "diphenhydramine", "Zantac": "ranitidine",
}  # fmt: skip
CLASSES = {
    "NSAIDs": "nsaid", "non-steroidal anti-inflammatory drugs": "nsaid", "beta blockers": "beta-blocker",
    "ACE inhibitor": "ace inhibitor", "ARBs": "angiotensin receptor blocker", "SGLT-2 inhibitors": "sglt2 inhibitor",
    "PPIs": "proton pump inhibitor", "DOACs": "direct oral anticoagulant", "SSRIs": "ssri", "statins": "statin",
    "opioids": "opioid", "macrolides": "macrolide", "quinolones": "fluoroquinolone",
    "blood thinners": "anticoagulant", "inhaled steroid": "inhaled corticosteroid",
    "calcium channel blockers": "calcium-channel blocker",
}  # fmt: skip
BELONGS = [
    ("ibuprofen", "nsaid"), ("ramipril", "ace inhibitor"), ("apixaban", "direct oral anticoagulant"),
    ("apixaban", "anticoagulant"), ("warfarin", "anticoagulant"), ("amoxicillin", "penicillin"),
    ("amoxicillin", "antibiotic"), ("sertraline", "antidepressant"), ("furosemide", "diuretic"),
    ("metformin", "glucose-lowering drug"), ("penicillin", "antibiotic"), ("salbutamol", "bronchodilator"),
]  # fmt: skip
NONE = [
    "",
    "water",
    "aspirinate",
    "non-aspirin",
    "paracetamols",
    "bistatin",
    "ironing",
    "insulinoma",
    "pottassium",
    "ibuprofenlike",
    "阿司匹林",
]


@pytest.mark.parametrize(("text", "name"), [*NAMES.items(), *CLASSES.items()])
def test_names(text, name):
    for sample in (text, f"Take {text} daily.", f"({text})", f"{text}, or {text}"):
        found = find_drugs(sample)
        assert {mention.name for mention in found} == {name}
        assert all(sample[m.start : m.end].lower() in sample.lower() for m in found)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_drug(text):
    assert find_drugs(text) == []


@pytest.mark.parametrize(("name", "group"), BELONGS)
def test_classes(name, group):
    assert group in classes_of(name)
    assert name not in classes_of(group)


def test_mentions_come_in_order_with_exact_spans():
    text = "Tylenol or an NSAID such as Advil; not warfarin."
    found = find_drugs(text)
    assert [(m.name, text[m.start : m.end]) for m in found] == [
        ("paracetamol", "Tylenol"),
        ("nsaid", "NSAID"),
        ("ibuprofen", "Advil"),
        ("warfarin", "warfarin"),
    ]


def test_the_longest_name_wins():
    assert [m.name for m in find_drugs("amoxicillin-clavulanate and inhaled corticosteroid")] == [
        "co-amoxiclav",
        "inhaled corticosteroid",
    ]


def test_widening_adds_every_class():
    assert widen(find_drugs("Advil")) == {"ibuprofen", "nsaid"}
    assert {"amoxicillin", "penicillin", "antibiotic"} == widen(find_drugs("amoxicillin"))
    assert classes_of("nothing known") == frozenset()


@pytest.mark.parametrize("name", sorted(MEMBERS | GROUPS))
def test_every_name_of_the_table_is_found(name):
    forms = {name, name.replace("-", " ")} if name in MEMBERS else {name}
    assert any([m.name for m in find_drugs(form)] == [name] for form in forms)
    assert name not in classes_of(name)


@pytest.mark.parametrize(("name", "forms"), TABLE["synonyms"].items())
def test_every_synonym_leads_to_a_drug_of_the_table(name, forms):
    assert name in MEMBERS
    for form in forms:
        assert [m.name for m in find_drugs(form)] == [name]


def test_the_table_is_consistent():
    forms = [form for others in TABLE["synonyms"].values() for form in others]
    assert len(set(forms)) == len(forms)
    assert not set(forms) & (MEMBERS | GROUPS)
    assert all(text == text.lower() for text in [*forms, *MEMBERS, *GROUPS])
    assert set(TABLE["class_words"]) <= GROUPS
    assert {member for members in TABLE["parents"].values() for member in members} <= MEMBERS | GROUPS


@given(
    st.text(max_size=60),
    st.sampled_from(["\u017ftatin", "a\u017fpirin", "war\u212afarin", "\u0130buprofen", "INSUL\u0130N"]),
)
def test_any_text(text, odd):
    for sample in (text, odd, f"{text} {odd}"):
        assert all(0 <= m.start < m.end <= len(sample) for m in find_drugs(sample))


def test_speed():
    text = "The patient was advised to take one tablet of ibuprofen with food and to drink water. " * 1000
    find_drugs("x")
    started = time.perf_counter()
    assert len(find_drugs(text)) == 1000
    assert time.perf_counter() - started < 0.5
