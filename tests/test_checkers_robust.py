"""All offline checkers and the judge on input of odd size, script and shape."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.judge import check_findings
from factcheck.plugins import Plugins

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
PLUGINS = Plugins()
CHECKERS = {
    name: PLUGINS.create("checker", name, {"negation": "plain"} if name == "clinical/assertion" else None)
    for name in PLUGINS.names("checker")
    if name.startswith("clinical/")
}
JUDGE = PLUGINS.create("judge", "evidence")
SENTENCE = (
    "The patient takes 5 mg of warfarin once daily and should avoid ibuprofen unless a doctor agrees within 2 days. "
)
WARFARIN = "Warfarin 50 mg is taken once daily and ibuprofen is safe."


def check_all(text, *passages, **side):
    """Run every checker and the judge; verify the contract of each; return the findings and the judgement."""
    claim, evidence = KIT["claim"](text, **side), KIT["evidence"](*passages)
    findings = []
    for name, checker in CHECKERS.items():
        findings += check_findings(checker.check(claim, evidence), claim, evidence, name)
    return findings, JUDGE.judge(claim, evidence, findings)


def seconds(text, *passages):
    started = time.perf_counter()
    check_all(text, *passages)
    return time.perf_counter() - started


def words(count):
    return SENTENCE * (count // len(SENTENCE.split()) + 1)


@pytest.mark.parametrize("stops", [True, False], ids=["sentences", "one sentence"])
def test_a_passage_of_100_000_words(stops):
    seconds(WARFARIN, "warm")
    passage = words(100_000) if stops else words(20_000).replace(".", "")
    started = time.perf_counter()
    findings, judgement = check_all(WARFARIN, passage)
    assert time.perf_counter() - started < 15
    assert judgement.label == "contradicted"
    assert any(f.disagrees and f.field == "amount" for f in findings)


@pytest.mark.parametrize("stops", [True, False], ids=["sentences", "one sentence"])
def test_a_claim_of_500_words(stops):
    text = words(500).strip()
    text = text if stops else text.replace(".", "")
    started = time.perf_counter()
    findings, judgement = check_all(text, SENTENCE)
    assert time.perf_counter() - started < 3
    assert judgement.label == "supported"
    assert not any(f.hard for f in findings)


def test_a_thousand_numbers_in_one_claim():
    numbers = " ".join(f"{i} mg of warfarin," for i in range(1, 1001))
    started = time.perf_counter()
    findings, _ = check_all(numbers, " ".join(f"Warfarin {i} mg is given." for i in range(1, 60)))
    assert time.perf_counter() - started < 10
    assert len(findings) >= 1000
    started = time.perf_counter()
    findings, _ = check_all(" ".join(str(i) for i in range(1, 1001)), SENTENCE)
    assert time.perf_counter() - started < 3
    assert findings == []


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("A" * 50_000 + " 5 mg", "B" * 50_000 + " 5 mg"),
        ("9" * 50_000 + " mg", "9" * 50_000 + " mg"),
        ("(" * 20_000, "(" * 20_000 + ")" * 20_000),
        ("not " * 5_000 + "aspirin", "no " * 20_000 + "aspirin"),
        ("aspirin " * 3_000, "aspirin not " * 10_000),
        ("The ABC-DEF trial " * 500, "The ABC-DEF trial " * 5_000),
        (" " * 50_000 + "x", " " * 50_000 + "x"),
        ("a\n" * 20_000, "b\n" * 20_000),
        ("definitely everyone " * 2_000, "may some " * 10_000),
        ("1." * 20_000, "5.5.5.5 " * 10_000),
        ("-" * 20_000 + "5 mg", "5-" * 20_000),
        ("1," * 20_000, "1,000," * 10_000),
        ("one hundred and " * 5_000, "twenty-" * 10_000),
        ("100 200 300 " * 5_000, "100 200 300 " * 5_000),
        ("urgent " * 500, "urgent " * 2_000),
    ],
    ids=lambda text: repr(text[:14]),
)
def test_repetition_does_not_blow_up(claim, passage):
    assert seconds(claim, passage) < 8


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        # Other scripts share no word with the passage, so equal digits do not make it agree.
        ("成人对乙酰氨基酚每日最大剂量为4克。", "Adults take at most 4 g of paracetamol in 24 hours."),
        ("Взрослым 500 mg каждые 6 часов.", "Adults take paracetamol 500 mg every 6 hours."),
        ("يأخذ البالغون 500 mg كل 6 ساعات", "Adults take paracetamol 500 mg every 6 hours."),
        ("成人は 500 mg を 1 日 4 回服用します。", "Adults take paracetamol 500 mg every 6 hours."),
        ("Adults take paracetamol 500 mg every 6 hours.", "Взрослым 500 mg каждые 6 часов."),
        ("Adults take paracetamol 500 mg every 6 hours.", "成人は 500 mg を 1 日 4 回服用します。"),
        ("Adults take at most 4 g of paracetamol in 24 hours.", "成人对乙酰氨基酚每日最大剂量为4克。"),
        ("Dorośli przyjmują 500 mg co 6 godzin.", "Ferns need 500 mg of iron."),
        ("Erwachsene nehmen 500 mg alle 6 Stunden.", "Take ibuprofen 400 mg every 8 hours."),
    ],
)
def test_other_languages_give_no_finding(claim, passage):
    findings, judgement = check_all(claim, passage)
    assert findings == []
    assert judgement.label == "not_enough_evidence"


def test_a_drug_name_and_a_unit_are_read_in_any_language():
    # "Ibuprofen 400 mg" is the same in German, and is compared.
    findings, _ = check_all("Erwachsene nehmen Ibuprofen 400 mg.", "Adults take ibuprofen 400 mg.")
    assert [(f.field, f.relation) for f in findings] == [("amount", "agrees")]
    findings, _ = check_all("Erwachsene nehmen Ibuprofen 4000 mg.", "Adults take ibuprofen 400 mg.")
    assert [(f.field, f.relation) for f in findings] == [("amount", "differs")]


ODD = [
    "5\u00a0mg warfarin", "5\u202fmg warfarin",
    "warfarin\u200b 5 mg", "\u202ewarfarin 5 mg", "WARFARIN 5 MG", "warfarin 5 mg", "\x00warfarin 5 mg\x00",
    "warfarin\r\n5 mg", "<b>warfarin</b> 5 mg", "**warfarin** 5 mg", "warfarin {5} mg %s", "w̷a̷rfarin 5 mg",
    "🙂 warfarin 5 mg 🙂", "\u0130NSUL\u0130N 5 units",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_odd_characters(text):
    for title in ("", " ", "Warfarin"):
        check_all(text, (title, SENTENCE))
        check_all(WARFARIN, (title, text))
        check_all(text, (title, text), context=text, question=text)


@pytest.mark.parametrize("passage", ["", " ", "\n", ".", "?!", "\u3000"])
def test_passages_that_say_nothing(passage):
    findings, judgement = check_all(WARFARIN, passage)
    assert findings == []
    assert judgement.label == "not_enough_evidence"


def test_the_same_passage_twice_is_no_conflict():
    findings, judgement = check_all("Warfarin 5 mg is taken once daily.", SENTENCE, SENTENCE)
    assert judgement.label == "supported"
    assert not any(f.disagrees and f.hard for f in findings)


def test_equal_input_gives_equal_output():
    first, second = check_all(WARFARIN, SENTENCE), check_all(WARFARIN, SENTENCE)
    assert first == second


@given(
    st.text(min_size=1, max_size=120),
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=120)), max_size=3),
    st.text(max_size=60),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text(text, passages, question):
    check_all(text, *passages, question=question)
