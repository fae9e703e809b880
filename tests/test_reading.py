"""Reading a claim and its evidence: sentences, clauses, terms, drugs, and how alike two texts are."""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.reading import content_terms, drug_names, read

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
EVIDENCE = KIT["evidence"](
    ("Ibuprofen", "Children take 5 to 10 mg/kg. Repeat every 6 to 8 hours, but not if the child is dehydrated."),
    ("Ferns", "Ferns grow in shade. They spread by spores."),
    ("", "Warfarin (a vitamin K antagonist) is started at 5 mg; it is monitored by the INR."),
)
TERMS = [
    ("Nodules", "nodule", True), ("child's", "child", True), ("tumours", "tumor", True),
    ("anaemia", "anemia", True), ("haemorrhage", "hemorrhage", True), ("diarrhoea", "diarrhea", True),
    ("Ibuprofen", "Advil", True), ("acetaminophen", "paracetamol", True), ("ibuprofen", "NSAID", True),
    ("treated", "treating", True), ("5 mg", "10 mg", True), ("ferns", "spores", False),
    ("aspirin", "warfarin", False), ("hypertension", "hypotension", False), ("the of and", "which is", False),
    ("hyperkalaemia", "hypokalaemia", False), ("left", "right", False), ("mg", "micrograms", False),
]  # fmt: skip
CLAUSES = {
    "Take it with food; avoid alcohol": ["Take it with food", "; avoid alcohol"],
    "Take it, but not with milk": ["Take it", ", ", "but not with milk"],
    "Warfarin (a coumarin) is old": ["Warfarin ", "(a coumarin", ") is old"],
    "1,000 mg is safe, whereas 4,000 mg is not": ["1,000 mg is safe", ", ", "whereas 4,000 mg is not"],
    "Stop it because it harms": ["Stop it ", "because it harms"],
    "one sentence": ["one sentence"],
}


def _read(text, **side):
    return read(KIT["claim"](text, **side), EVIDENCE)


@pytest.mark.parametrize(("left", "right", "share"), TERMS)
def test_content_terms(left, right, share):
    assert bool(content_terms(left) & content_terms(right)) == share


@pytest.mark.parametrize("text", ["", " ", "5", "1,000", "12 34", "<30", "the", "and of the", "。", "?!"])
def test_bare_numbers_and_stop_words_are_no_content(text):
    assert content_terms(text) == frozenset()


@pytest.mark.parametrize(("text", "parts"), CLAUSES.items())
def test_clauses(text, parts):
    reading = _read(text)
    assert [clause.text for clause in reading.claim.clauses] == parts
    assert "".join(clause.text for clause in reading.claim.clauses) == text
    for clause in reading.claim.clauses:
        assert reading.claim.clause_at(clause.start) is clause


def test_sentences_carry_exact_offsets():
    texts = {passage.id: passage.text for passage in EVIDENCE.passages}
    reading = _read("Ferns")
    assert [s.passage_id for s in reading.sentences] == ["p1", "p1", "p2", "p2", "p3"]
    for sentence in reading.sentences:
        assert texts[sentence.passage_id][sentence.start : sentence.end] == sentence.text
        for quantity in sentence.quantities:
            assert sentence.text[quantity.start : quantity.end] == quantity.text


def test_drugs_by_sentence_clause_and_title():
    reading = _read("Advil is an NSAID; warfarin is not")
    assert reading.claim.drugs == {"ibuprofen", "nsaid", "warfarin"}
    assert reading.claim.clauses[0].drugs == {"ibuprofen", "nsaid"}
    assert "=ibuprofen" in reading.sentences[0].topic
    assert drug_names("nothing") == frozenset()


def test_the_closest_sentence_is_the_one_on_the_matter():
    for text, start in (
        ("Ibuprofen is repeated every 6 hours in children.", "Repeat"),
        ("Ferns spread by spores.", "They spread"),
        ("Warfarin is monitored by the INR.", "Warfarin"),
    ):
        closeness, sentence = _read(text).ranked[0]
        assert sentence.text.startswith(start)
        assert 0.0 < closeness <= 1.0


def test_what_nothing_speaks_of_is_close_to_nothing():
    assert all(closeness == 0.0 for closeness, _ in _read("Penguins swim.").ranked)


def test_the_question_decides_between_equal_passages():
    evidence = KIT["evidence"]("The dose is 5 mg for rabbits.", "The dose is 5 mg for tortoises.")
    for question, passage in (("My tortoise is ill", "p2"), ("My rabbit is ill", "p1")):
        reading = read(KIT["claim"]("The dose is 5 mg.", question=question), evidence)
        assert reading.ranked[0][1].passage_id == passage


def test_rare_terms_weigh_more():
    reading = _read("x")
    common, rare = content_terms("dose"), content_terms("spores")
    assert reading.weight(rare) > 0
    assert (
        reading.weight(content_terms("penguin"))
        >= reading.weight(rare)
        >= min(reading.weight(common), reading.weight(rare))
    )


def test_affinity_share_and_nearness_are_bounded_and_symmetric():
    reading = _read("x")
    left, right = content_terms("ferns grow in shade"), content_terms("ferns spread by spores")
    assert reading.affinity(left, right) == pytest.approx(reading.affinity(right, left))
    assert 0.0 < reading.affinity(left, right) < 1.0
    assert reading.affinity(left, left) == pytest.approx(1.0)
    assert reading.affinity(left, frozenset()) == reading.share(frozenset(), left) == 0.0
    assert reading.share(left, left | right) == pytest.approx(1.0)
    near = dict.fromkeys(left, 0.5)
    assert reading.nearness(near, near) == pytest.approx(1.0)
    assert reading.nearness(near, {}) == 0.0


def test_neighbours_weigh_less_the_farther_they_are():
    sentence = _read("alpha beta gamma 5 mg delta epsilon zeta").claim
    around = sentence.around(17, 21)
    (one,), (two,) = content_terms("gamma"), content_terms("alpha")
    (three,), (four,) = content_terms("delta"), content_terms("zeta")
    assert around[one] == around[three] == 1.0
    assert around[two] == around[four] == pytest.approx(0.8)


def test_only_nine_neighbours_on_either_side_count():
    words = [f"word{chr(97 + i)}x" for i in range(26)]
    text = " ".join(words[:13]) + " 5 mg " + " ".join(words[13:])
    start = text.index("5 mg")
    around = _read(text).claim.around(start, start + 4)
    assert set(around) == {term for word in words[4:22] for term in content_terms(word)}


def test_equal_inputs_are_read_once():
    assert _read("Ferns spread.") is _read("Ferns spread.")
    assert _read("Ferns spread.") is not _read("Ferns spread.", context="garden")


@given(st.text(max_size=100), st.text(max_size=100), st.lists(st.text(max_size=80), min_size=1, max_size=3))
@settings(deadline=None)
def test_any_text(text, question, passages):
    reading = read(KIT["claim"](text or "x", question=question), KIT["evidence"](*passages))
    for closeness, sentence in reading.ranked:
        assert 0.0 <= closeness <= 1.0
        assert sentence.text.strip()


def test_time_is_linear_in_the_length_of_a_passage():
    def seconds(copies):
        # The fastest of three, each of a text that was not read before: what the machine does beside can only slow one down.
        times = []
        for name in ("patient", "woman", "man"):
            text = f"The {name} takes one tablet with food and drinks a glass of water every morning. " * copies
            started = time.process_time()
            assert read(KIT["claim"](f"A tablet with food {copies}"), KIT["evidence"](text)).ranked
            times.append(time.process_time() - started)
        return min(times)

    seconds(10)
    short, long = seconds(1000), seconds(8000)
    assert long < 24 * short + 0.1


def test_a_sentence_without_end_costs_no_more_than_its_length():
    text = "dose of 5 mg and " * 10_000
    sentence = _read(text[:-1]).claim
    started = time.perf_counter()
    for quantity in sentence.quantities[:2000]:
        sentence.around(quantity.start, quantity.end)
    assert time.perf_counter() - started < 2.0
