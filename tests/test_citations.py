"""Cited sources, and whether the evidence knows them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.citations import CitationChecker, find_citations, whole_doi

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
CHECKER = CitationChecker()

DOIS = {
    "10.1016/S0140-6736(97)11096-0": "10.1016/S0140-6736(97)11096-0",
    "10.1016/S0140-6736(97)11096-0)": "10.1016/S0140-6736(97)11096-0",
    "10.1016/S0140-6736(97)11096-0).": "10.1016/S0140-6736(97)11096-0",
    "10.1056/NEJMoa1504720,": "10.1056/NEJMoa1504720",
    "10.1001/jama.2016.1234.": "10.1001/jama.2016.1234",
    "10.1001/jama.2016.1234);": "10.1001/jama.2016.1234",
    "10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2": (
        "10.1002/(SICI)1097-0258(19980815)17:15<1661::AID-SIM968>3.0.CO;2-2"
    ),
    "10.1000/abc[1]]": "10.1000/abc[1]",
    "10.1000/x**": "10.1000/x",
}
IDENTIFIERS = {
    "(Smith 2021, PMID 99999999; doi:10.1016/S0140-6736(97)11096-0)": [
        "PMID 99999999",
        "10.1016/S0140-6736(97)11096-0",
    ],
    "See https://doi.org/10.1056/NEJMoa1504720, which showed it.": ["10.1056/NEJMoa1504720"],
    "(10.1001/jama.2016.1234)": ["10.1001/jama.2016.1234"],
    "DOI 10.1016/j.jacc.2020.01.001; it": ["10.1016/j.jacc.2020.01.001"],
    "PMID: 12345678.": ["PMID: 12345678"],
    "PMC1234567": ["PMC1234567"],
    "NCT01234567 was stopped": ["NCT01234567"],
    "PMID 123": [],
    "NCT0123": [],
    "10 mg/kg": [],
    "version 10.1": [],
}
NAMED = {
    "The SPRINT trial showed benefit.": ("sprint",),
    "the ASCOT-LLA study": ("ascot", "lla"),
    "HOPE-3 trial": ("hope", "3"),
    "the PARADIGM-HF trial": ("paradigm", "hf"),
    "In SPRINT (2015) it fell": ("sprint",),
    "the HIVE-Kids trial": ("hive", "kids"),
    "A 2019 Cochrane review found": ("cochrane",),
    "the 2023 GINA guideline": ("gina",),
    "NICE guideline NG136": ("nice",),
    "WHO guidelines": ("who",),
    "According to the American Diabetes Association": ("american", "diabetes", "association"),
    "by the American Heart Association": ("american", "heart", "association"),
    "The European Society of Cardiology recommends": ("european", "society", "cardiology"),
    "by the National Institute for Health": ("national", "institute", "health"),
    "the UK Biobank study": ("uk", "biobank"),
    "The Nordic Migraine Registry reported": ("nordic", "migraine", "registry"),
    "Smith et al. 2019": ("smith", "2019"),
    "Smith et al. (2019)": ("smith", "2019"),
    "(Jones and colleagues, 2020)": ("jones", "2020"),
    "Müller et al., 2018": ("muller", "2018"),
    "Smith and Jones (2017)": ("smith", "jones", "2017"),
    "(Smith, 2021)": ("smith", "2021"),
}
DATED = [
    "a 2021 study in Thorax",
    "a trial published in 2018",
    "a randomised trial of 4,321 patients published in 2018",
    "a study in The Lancet (2018)",
]
UNNAMED = [
    "A study found that it helps.", "Studies show benefit.", "Guidelines recommend it.", "In 2019 he fell ill.",
    "since 2019", "In 2020 the trial ended.", "by the doctor", "by the GP", "by the Monday after", "COVID-19 (SARS)",
    "type-2 diabetes trial", "CHA2DS2-VASc (score)", "HbA1c study", "a CT-scan (urgent)", "FEV1 (forced)",
    "ACE-I (ramipril)", "US labels say", "BP (130/80)", "DNA analysis", "MRI-guided study", "PCR-test report",
    "HFrEF guideline", "", "2019", "May 2019",
]  # fmt: skip
STATIN = (
    "Statins",
    "The West of Scotland study of pravastatin (WOSCOPS, 1995) found fewer heart attacks. PMID 7566020.",
)
HONEY = (
    "Honey and cough",
    "Honey shortens cough in children a little, according to a review by the Cochrane Collaboration in 2018.",
)
ADA = ("Diabetes", "The American Diabetes Association recommends metformin first. See doi:10.2337/dc24-S009.")
KNOWN = [
    ("WOSCOPS study: pravastatin prevented heart attacks.", STATIN),
    ("In WOSCOPS (1995) pravastatin prevented heart attacks.", STATIN),
    ("Pravastatin prevented heart attacks (PMID 7566020).", STATIN),
    ("A study published in 1995 found that pravastatin prevents heart attacks.", STATIN),
    ("A 2018 Cochrane review found that honey shortens cough.", HONEY),
    ("The ADA guideline recommends metformin first in diabetes.", ADA),
    ("According to the American Diabetes Association metformin comes first in diabetes.", ADA),
    ("Metformin comes first in diabetes (doi:10.2337/dc24-S009).", ADA),
]
UNKNOWN = [
    ("The HEARTSAVE-2 trial found that pravastatin halves heart attacks.", STATIN),
    ("Pravastatin prevented heart attacks (PMID 99999999).", STATIN),
    ("Pravastatin prevented heart attacks (PMID 756602).", STATIN),
    ("A study published in 2019 found that pravastatin prevents heart attacks.", STATIN),
    ("Pravastatin prevents heart attacks (Smith, 2021).", STATIN),
    ("The Heidelberg Statin Registry found 34% fewer heart attacks on pravastatin in 2,114 adults.", STATIN),
    ("The HIVE-Kids trial, published in 2021, found that honey shortens cough in 2,300 children.", HONEY),
    ("The Nordic Cough Registry found that honey shortens cough in children.", HONEY),
    ("According to the British Beekeeping Association honey shortens cough in children.", HONEY),
    ("Metformin comes first in diabetes (doi:10.2337/dc24-S010).", ADA),
    ("Metformin comes first in diabetes (doi:10.1016/S0140-6736(97)11096-0).", ADA),
    ("Metformin comes first in diabetes (NCT01234567).", ADA),
]
SILENT = [
    ("Studies show that pravastatin prevents heart attacks.", STATIN),
    ("Honey shortens cough.", HONEY),
    ("The HEARTSAVE-2 trial found fewer fractures in ski jumpers.", HONEY),
    ("FEV1 (forced) fell with cough.", HONEY),
]  # fmt: skip


@pytest.mark.parametrize(("text", "whole"), DOIS.items())
def test_a_doi_keeps_its_own_brackets(text, whole):
    assert whole_doi(text) == whole


@pytest.mark.parametrize(("text", "identifiers"), IDENTIFIERS.items())
def test_identifiers(text, identifiers):
    found = [c for c in find_citations(text) if c.identifier]
    assert [c.text for c in found] == identifiers
    assert all(text[c.start : c.end] == c.text for c in found)


@pytest.mark.parametrize(("text", "names"), NAMED.items())
def test_named_sources(text, names):
    found = find_citations(text)
    assert names in [c.names for c in found]
    assert all(text[c.start : c.end] == c.text for c in found)


@pytest.mark.parametrize("text", DATED)
def test_sources_known_by_year_alone(text):
    assert [(c.names, bool(c.year)) for c in find_citations(text)] == [((), True)]


@pytest.mark.parametrize("text", UNNAMED)
def test_what_is_no_citation(text):
    assert find_citations(text) == []


@pytest.mark.parametrize(("claim", "passage"), KNOWN)
def test_known_source(claim, passage):
    found = KIT["run"](CHECKER, claim, "Rest helps.", passage)
    assert found
    assert all((f.relation, f.passage_id, f.field) == ("agrees", "p2", "citation") for f in found)


@pytest.mark.parametrize(("claim", "passage"), UNKNOWN)
def test_unknown_source_on_a_known_matter(claim, passage):
    found = KIT["run"](CHECKER, claim, passage)
    assert "missing" in {f.relation for f in found}
    missing = next(f for f in found if f.relation == "missing")
    assert missing.passage_id is None
    assert not missing.hard
    assert missing.claim_value in missing.reason


@pytest.mark.parametrize(("claim", "passage"), SILENT)
def test_no_finding(claim, passage):
    assert KIT["run"](CHECKER, claim, passage) == []


def test_no_evidence_no_finding():
    assert KIT["run"](CHECKER, "The HEARTSAVE-2 trial found it.") == []


@pytest.mark.parametrize(
    ("claim", "confidence"),
    [
        ("The HIVE-Kids trial found that honey shortens cough.", 0.6),
        ("The HIVE-Kids trial found that honey shortens cough by 40%.", 0.75),
        ("The HIVE-Kids trial of 2,300 children found that honey shortens cough by 40%.", 0.9),
        ("The 2021 HIVE-Kids trial found that honey shortens cough.", 0.75),
        ("The 2021 HIVE-Kids trial of 2,300 children found that honey shortens cough by 40%.", 1.0),
        ("A 2021 study found that honey shortens cough.", 0.65),
        ("Honey shortens cough (PMID 99999999).", 0.6),
    ],
)
def test_figures_and_a_year_make_an_unknown_source_more_suspicious(claim, confidence):
    missing = [f for f in KIT["run"](CHECKER, claim, HONEY) if f.relation == "missing"]
    assert [f.confidence for f in missing] == [pytest.approx(confidence)]


def test_the_words_of_the_matter_do_not_make_a_registry_known():
    passage = ("Migraine", "Migraine is treated with triptans. A registry of migraine exists.")
    found = KIT["run"](CHECKER, "The Nordic Migraine Registry found that triptans help in migraine.", passage)
    assert [f.relation for f in found] == ["missing"]


@given(
    st.text(max_size=100), st.sampled_from(["PMID 12345678", "doi:10.1000/x(1)", "the ABC-DEF trial", "(Smith 2020)"])
)
def test_any_text(text, cue):
    for sample in (text, f"{text} {cue}", cue + text):
        for citation in find_citations(sample):
            assert sample[citation.start : citation.end] == citation.text
            assert citation.names or citation.year or citation.identifier
