import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.schema import Claim
from factcheck.study.edits import (
    Edit,
    differ_outside,
    edits_from_diff,
    edits_from_replacements,
    matched_claims,
    meets_error,
    tokens,
    trim,
)


def claim(start, end, sentence=None, name=None):
    return Claim(
        id=name or f"c{start}", answer_id="a", text="x", span=(start, end), sentence_span=sentence or (start, end)
    )


def whole(original, injected):
    return Edit(original=(0, len(original)), injected=(0, len(injected)))


@pytest.mark.parametrize(
    ("original", "injected", "rest"),
    [
        ("every 6 to 8 hours", "every 3 to 4 hours", "3 to 4"),
        ("1,000 mg per day", "2,000 mg per day", "2,000"),
        ("at 70 mg/dL (3.9 mmol/L)", "at 54 mg/dL (3.0 mmol/L)", "54 mg/dL (3.0"),
        ("It settles soon.", "It settles soon. It is asthma too.", "It is asthma too."),
        ("It settles soon.", "Never mind. It settles soon.", "Never mind."),
        # The inserted sentence begins as the next one does: only a whole sentence is what was inserted.
        ("A. X is bad. B.", "A. X is good. X is bad. B.", "X is good."),
        ("Take 5 mg of it.", "Take 5 mg mg of it.", "mg"),
        ("Do not take it.", "Do take it.", ""),
        ("Rest. Drink.", "Rest.", ""),
        ("ab\u0301c de", "ab\u0301c df", "df"),
        ("服用五毫克。", "服用十毫克。", "十"),
        ("", "All of it is new.", "All of it is new."),
        ("All of it is gone.", "", ""),
        ("one two", "three four", "three four"),
    ],
)
def test_trim_leaves_what_is_not_shared(original, injected, rest):
    start, end = trim(original, injected, whole(original, injected))
    assert injected[start:end] == rest


def test_trim_counts_in_the_whole_text():
    original, injected = "Before. Take 5 mg daily. After.", "Before. Take 50 mg daily. After."
    span = trim(original, injected, Edit(original=(8, 24), injected=(8, 25)))
    assert injected[slice(*span)] == "50"


def test_deletion_leaves_a_point_where_it_was_made():
    injected = "You may. Do take it."
    start, end = trim("You may. Do not take it.", injected, Edit(original=(9, 24), injected=(9, 20)))
    assert start == end == 11


@given(st.text("ab .1", max_size=30), st.text("ab .1", max_size=30))
def test_trim_only_cuts_tokens_that_the_original_has(original, injected):
    start, end = trim(original, injected, whole(original, injected))
    assert 0 <= start <= end <= len(injected)
    words = [token.text for token in tokens(original)]
    cut = [token.text for token in tokens(injected) if token.end <= start or token.start >= end]
    for word in set(cut):
        assert cut.count(word) <= words.count(word)


words = st.lists(st.sampled_from(["take", "5", "mg", "daily", ".", "not", "\n", "it"]), max_size=25).map(" ".join)


@given(words, words)
@settings(deadline=None)
def test_diff_rebuilds_the_injected_text(original, injected):
    edits = edits_from_diff(original, injected)
    old, new = [t.text for t in tokens(original)], [t.text for t in tokens(injected)]
    if old == new:
        assert edits == []
        return
    built, read = [], 0
    for edit in edits:
        built += [t.text for t in tokens(original, (read, edit.original[0]))]
        built += [t.text for t in tokens(injected, edit.injected)]
        read = edit.original[1]
    built += [t.text for t in tokens(original, (read, len(original)))]
    assert built == new


def test_diff_finds_an_inserted_sentence_whole():
    original = "It is common. It often goes by itself. See a doctor if not."
    injected = "It is common. It often goes by itself. It always is cancer. See a doctor if it does not."
    found = [injected[slice(*edit.injected)] for edit in edits_from_diff(original, injected)]
    assert found == ["It always is cancer.", "it does"]


def test_long_texts_that_differ_everywhere_give_one_edit_fast():
    original = "Head. " + "take 5 mg of it daily. " * 20_000 + "Tail."
    injected = "Head. " + "daily take it, all 5 mg. " * 20_000 + "Tail."
    start = time.monotonic()
    edits = edits_from_diff(original, injected)
    assert time.monotonic() - start < 10
    assert len(edits) == 1
    assert injected[slice(*edits[0].injected)].startswith("daily take")


def test_long_texts_with_one_difference_give_that():
    original = "Take 5 mg of it daily. " * 40_000 + "Never 5 g. " + "Take 5 mg of it daily. " * 3
    injected = original.replace("Never", "Always")
    assert [injected[slice(*edit.injected)] for edit in edits_from_diff(original, injected)] == ["Always"]


def test_replacements_are_placed():
    original, injected = "a 5 mg, b 5 mg, c 5 mg", "a 5 mg, b 7 mg, c 9 mg"
    edits = edits_from_replacements(original, injected, [("5", "9"), ("5 mg", "7 mg")])
    assert [(original[slice(*e.original)], injected[slice(*e.injected)]) for e in edits] == [
        ("5 mg", "7 mg"),
        ("5", "9"),
    ]
    assert edits[0].original == (10, 14)


@pytest.mark.parametrize(
    "replacements",
    [[], [("", "x")], [("absent", "x")], [("5", "8")], [("a 5", "a 7"), ("5 mg", "9 mg")]],
)
def test_replacements_that_do_not_give_the_injected_text_are_refused(replacements):
    assert edits_from_replacements("a 5 mg", "a 7 mg", replacements) is None


def test_replacement_of_what_is_everywhere_is_refused():
    assert edits_from_replacements("a" * 100, "a" * 99 + "b", [("a", "b")]) is None


def test_differ_outside():
    original, injected = "one two three", "one 2 three"
    assert not differ_outside(original, injected, [Edit(original=(4, 7), injected=(4, 5))])
    assert differ_outside(original, injected, [Edit(original=(4, 6), injected=(4, 5))])


@pytest.mark.parametrize(
    ("span", "met"),
    [((0, 10), False), ((5, 11), True), ((10, 20), True), ((12, 13), True), ((20, 25), False), ((19, 40), True)],
)
def test_an_error_meets_the_claims_that_it_overlaps(span, met):
    assert meets_error(claim(10, 20), span) is met


@pytest.mark.parametrize(("point", "met"), [(9, False), (10, False), (11, True), (19, True), (20, False)])
def test_a_deletion_meets_a_claim_only_from_inside(point, met):
    assert meets_error(claim(10, 20), (point, point)) is met


TEXT = "First one. Second one. Third one."
CLAIMS = [claim(0, 10), claim(11, 22), claim(23, 33)]


@pytest.mark.parametrize(
    ("span", "found"),
    [
        ((0, 10), {"c0"}),
        ((10, 11), {"c0"}),
        ((11, 11), {"c0"}),
        ((10, 10), {"c0"}),
        ((15, 15), {"c11"}),
        ((0, 0), {"c0"}),
        ((33, 33), {"c23"}),
        ((5, 25), {"c0", "c11", "c23"}),
    ],
)
def test_matched_claims(span, found):
    assert matched_claims(TEXT, CLAIMS, [span]) == found


def test_an_insertion_matches_all_claims_of_its_sentence():
    claims = [claim(0, 4, (0, 10)), claim(5, 10, (0, 10), "b"), claim(11, 22)]
    assert matched_claims(TEXT, claims, [(10, 10)]) == {"c0", "b"}
    assert matched_claims(TEXT, claims, [(7, 7)]) == {"c0", "b"}


def test_without_claims_nothing_is_matched():
    assert matched_claims("", [], [(0, 0)]) == set()
