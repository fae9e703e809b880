"""Stage 2: what the offline writer searches for, and what is refused of any writer."""

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import PluginContractError
from factcheck.queries import TermsQueryWriter, make_queries
from factcheck.testing import check_query_writer, failures

claim = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))["claim"]
write = TermsQueryWriter().write_queries


def test_the_claim_the_claim_without_its_values_and_the_question():
    subject = claim(
        "Give 500 mg every  8 hours.", context="Amoxicillin", question="What is the dose of amoxicillin (child)?"
    )
    assert write(subject) == [
        "Give 500 mg every 8 hours. Amoxicillin",
        "Give every hours. What is the dose of amoxicillin child",
        "What is the dose of amoxicillin child",
    ]


def test_equal_forms_are_written_once():
    assert write(claim("Rest helps.")) == ["Rest helps."]
    assert write(claim("Give 5 mg.")) == ["Give 5 mg.", "Give ."]
    assert write(claim("Rest helps", question="Rest helps")) == ["Rest helps", "Rest helps Rest helps"]


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("take 7.5 mg weekly", "take weekly"),
        ("below <30 mL/min/1.73m2 stop", "below stop"),
        ("5 µg/kg/min of it", "of it"),
        ("over 38.5 °C", "over"),
        ("about 10% of them", "about of them"),
        ("1,000 IU a day", "a day"),
        ("5–10 mg/kg a dose", "a dose"),
        ("≥ 140/90 mmHg twice", "twice"),
        ("HbA1c and COVID-19 and B12", "HbA1c and COVID-19 and B12"),
        ("two tablets", "two tablets"),
    ],
)
def test_the_neutral_form_leaves_the_claimed_value_out(text, neutral):
    forms = write(claim(text))
    assert forms[0] == text
    assert forms[1:] == ([neutral] if neutral != text else [])


def test_a_question_counts_by_its_first_sixty_words():
    question = " ".join(f"word{i}" for i in range(100))
    assert write(claim("x", question=question))[-1] == " ".join(f"word{i}" for i in range(60))


@given(st.text(min_size=1, max_size=60), st.text(max_size=20), st.text(max_size=40))
def test_queries_are_distinct_and_not_blank(text, context, question):
    forms = write(claim(text, context=context, question=question))
    assert len(set(forms)) == len(forms) <= 3
    assert all(form.strip() == form != "" for form in forms)
    if text.strip():
        assert forms


def test_the_writer_conforms():
    assert failures(check_query_writer(TermsQueryWriter, factory=TermsQueryWriter)) == []


def test_queries_get_ids_in_the_order_of_the_writer():
    made = make_queries(claim(id="a.c7"), ["b", "a"], writer="w")
    assert [(q.id, q.claim_id, q.text) for q in made] == [("a.c7.q1", "a.c7", "b"), ("a.c7.q2", "a.c7", "a")]


def test_blank_and_repeated_queries_are_left_out():
    assert [q.text for q in make_queries(claim(), ["", " \n", "a", "a", "b", "a"], writer="w")] == ["a", "b"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "no usable query"),
        (["", " ", "\n"], "no usable query"),
        ("aspirin", "a str, not a list"),
        (b"aspirin", "a bytes, not a list"),
        (None, "a NoneType, not a list"),
        ({"aspirin"}, "a set, not a list"),
        ((text for text in ["aspirin"]), "a generator, not a list"),
        (["aspirin", None], "a NoneType among its queries"),
        (["aspirin", 5], "a int among its queries"),
    ],
)
def test_a_writer_that_breaks_its_contract_is_refused_by_name(texts, said):
    with pytest.raises(PluginContractError, match=f"query writer 'mine' broke its contract: .*{said}") as caught:
        make_queries(claim(), texts, writer="mine")
    assert caught.value.plugin == "mine"
