"""Which mention in the evidence a mention in the claim is compared with."""

from __future__ import annotations

import json
import math
import runpy
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers.align import (
    DIVIDED_SHARE,
    HARD_CONFIDENCE,
    AlignmentChecker,
    Candidate,
    Surroundings,
    align,
    default_weights,
    drug_match,
    findings_of,
    related,
)
from factcheck.checkers.reading import read

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
PASSAGES = KIT["evidence"](
    "Aspirin 300 mg is given at once.", "Ibuprofen 400 mg is taken with food. Then rest.", ("Statins", "Take 20 mg.")
)
READING = read(KIT["claim"]("Take 5 mg."), PASSAGES)
RELATED = [
    ({"ibuprofen"}, {"ibuprofen"}, True), ({"ibuprofen"}, {"nsaid"}, True), ({"nsaid"}, {"ibuprofen"}, True),
    ({"ibuprofen"}, {"naproxen"}, False), ({"ibuprofen"}, {"paracetamol"}, False),
    ({"amoxicillin"}, {"penicillin"}, True), ({"amoxicillin"}, {"antibiotic"}, True),
    ({"antibiotic"}, {"amoxicillin"}, True), ({"penicillin"}, {"antibiotic"}, True),
    ({"antibiotic"}, {"penicillin"}, True), ({"amoxicillin"}, {"clarithromycin"}, False),
    ({"apixaban"}, {"anticoagulant"}, True), ({"apixaban"}, {"warfarin"}, False),
    ({"ibuprofen", "warfarin"}, {"warfarin"}, True), ({"insulin"}, {"insulin"}, True),
    ({"insulin"}, {"metformin"}, False), (set(), {"aspirin"}, False), ({"aspirin"}, set(), False),
    ({"unknown"}, {"unknown"}, True),
]  # fmt: skip


def candidate(relation, sentence=0, **features):
    return Candidate(relation, READING.sentences[sentence], 0, 7, features)


def weights(**table):
    return {"value": {"none": 0.0, "agrees": 0.0, **table}}


@pytest.mark.parametrize(("ours", "theirs", "expected"), RELATED)
def test_related(ours, theirs, expected):
    assert related(ours, theirs) is expected
    assert related(theirs, ours) is expected


@pytest.mark.parametrize(
    ("ours", "here", "place", "expected"),
    [
        (set(), {"aspirin"}, 0, 0.7),
        ({"aspirin"}, {"aspirin"}, 0, 1.0),
        ({"ibuprofen"}, {"aspirin"}, 0, 0.3),
        ({"aspirin"}, set(), 0, 0.9),
        ({"ibuprofen"}, set(), 0, 0.3),
        ({"nsaid"}, set(), 1, 0.9),
        ({"aspirin"}, set(), 2, 0.7),
        ({"atorvastatin"}, set(), 3, 0.9),
        ({"aspirin"}, set(), 3, 0.3),
    ],
)
def test_drug_match(ours, here, place, expected):
    assert drug_match(frozenset(ours), frozenset(here), READING.sentences[place]) == expected


def test_nothing_to_compare_with_is_absent():
    assert align("value", [], weights()) == (0.0, 0.0, None, None, False)


def test_two_equal_candidates_share_with_absence():
    found = align("value", [candidate("agrees"), candidate("differs", 1)], weights())
    assert found.agrees == found.differs == pytest.approx(1 / 3)
    assert (found.agreeing.relation, found.differing.relation) == ("agrees", "differs")


def test_agreement_gets_a_head_start_that_does_not_count_for_division():
    pair = [candidate("agrees"), candidate("differs", 1)]
    started = align("value", pair, weights(agrees=math.log(8), none=-50.0))
    assert started.agrees == pytest.approx(8 / 9)
    assert started.divided


def test_a_stronger_feature_decides():
    pair = [candidate("agrees", near=0.0), candidate("differs", 1, near=1.0)]
    found = align("value", pair, weights(near=3.0))
    assert found.differs == pytest.approx(math.exp(3) / (math.exp(3) + 2))
    assert not found.divided


def test_unseen_candidates_take_their_share_but_count_for_neither_side():
    found = align("value", [candidate("unseen"), candidate("differs", 1)], weights(none=-50.0))
    assert found.differs == pytest.approx(0.5)
    assert (found.agrees, found.agreeing) == (0.0, None)


@pytest.mark.parametrize("relation", ["differs", "outside_range", "negated"])
def test_every_relation_against_counts_against(relation):
    found = align("value", [candidate(relation)], weights(none=0.0))
    assert (found.agrees, found.differs) == (0.0, pytest.approx(0.5))


_RELATIONS = st.sampled_from(["agrees", "differs", "outside_range", "negated", "unseen"])
_CANDIDATES = st.lists(
    st.builds(candidate, _RELATIONS, st.integers(0, 3), near=st.floats(0, 1), own=st.floats(0, 1)),
    min_size=1,
    max_size=8,
)


@given(_CANDIDATES, st.floats(-5, 10), st.floats(0, 5), st.floats(0, 5))
def test_the_shares_are_probabilities(candidates, none, near, own):
    found = align("value", candidates, weights(none=none, near=near, own=own, agrees=1.0))
    assert 0.0 <= found.agrees <= 1.0 + 1e-9
    assert 0.0 <= found.differs <= 1.0 + 1e-9
    assert found.agrees + found.differs <= 1.0 + 1e-9
    assert (found.agreeing is None) == (found.agrees == 0.0)
    assert (found.differing is None) == (found.differs == 0.0)


@given(_CANDIDATES, st.randoms())
def test_the_order_of_the_candidates_does_not_matter(candidates, random):
    shuffled = list(candidates)
    random.shuffle(shuffled)
    table = weights(near=2.0, own=1.0, none=1.0)
    one, other = align("value", candidates, table), align("value", shuffled, table)
    assert (one.agrees, one.differs, one.divided) == pytest.approx((other.agrees, other.differs, other.divided))


def _found(*candidates, **table):
    alignment = align("value", candidates, weights(**table))
    return findings_of(alignment, field="amount", said="5 mg", span=(5, 9), explain="{theirs} not {ours}")


def test_a_finding_quotes_the_passage_at_its_own_offsets():
    (finding,) = _found(Candidate("differs", READING.sentences[2], 5, 9, {}), none=-9.0)
    assert PASSAGES.passages[1].text[slice(*finding.quote_span)] == finding.evidence_value == "rest"
    assert (finding.passage_id, finding.hard, finding.reason) == ("p2", True, "rest not 5 mg")


def test_only_a_firm_finding_against_is_hard():
    for none, hard in (
        (-5.0, True),
        (math.log(1 / HARD_CONFIDENCE - 1) - 0.01, True),
        (math.log(1 / HARD_CONFIDENCE - 1) + 0.01, False),
    ):
        (finding,) = _found(candidate("differs"), none=none)
        assert finding.hard is hard
    (finding,) = _found(candidate("agrees"), none=-9.0)
    assert (finding.hard, finding.reason) == (False, "")


def test_both_sides_are_reported_only_if_divided_between_passages():
    divided = _found(candidate("agrees", 0), candidate("differs", 1), none=-9.0)
    assert [finding.relation for finding in divided] in (["agrees", "differs"], ["differs", "agrees"])
    assert len(_found(candidate("agrees", 1), candidate("differs", 2), none=-9.0)) == 1
    lopsided = _found(candidate("agrees", 0, near=1.0), candidate("differs", 1, near=0.0), near=5.0, none=-9.0)
    assert [finding.relation for finding in lopsided] == ["agrees"]
    assert 0.0 < DIVIDED_SHARE < 0.5


def test_no_finding_where_nothing_can_be_compared():
    assert _found() == []
    assert _found(candidate("unseen")) == []


def test_features_are_bounded_and_complete():
    claim = KIT["claim"]("Aspirin 300 mg is given at once.", question="May I take aspirin?", context="Heart attack")
    for of_case in (False, True):
        surroundings = Surroundings(claim, read(claim, PASSAGES), of_case=of_case)
        for _, sentence in surroundings.sentences():
            features = surroundings.features((8, 14), frozenset({"aspirin"}), sentence, (0, 5))
            assert all(0.0 <= value <= 1.0 + 1e-9 for value in features.values())
            needed = {name for slot in default_weights().values() for name in slot} - {
                "none",
                "agrees",
                "bound",
                "unit",
                "clause",
            }
            assert needed <= set(features)


def test_the_mention_in_the_same_words_is_the_nearest():
    claim = KIT["claim"]("Aspirin 300 mg is given at once.")
    surroundings = Surroundings(claim, read(claim, PASSAGES))
    near = {
        s.passage_id: surroundings.features((8, 14), frozenset({"aspirin"}), s, (8, 14))["near"]
        for _, s in surroundings.sentences()
        if len(s.text) > 20
    }
    assert near["p1"] == pytest.approx(1.0)
    assert near["p1"] > near["p2"]


def test_the_weights_that_ship_name_every_slot_and_never_reward_distance():
    raw = json.loads((resources.files("factcheck.data") / "alignment.v1.json").read_text(encoding="utf-8"))
    assert set(raw["slots"]) == {"value", "assertion", "urgency"}
    for table in raw["slots"].values():
        assert all(value >= 0 for name, value in table.items() if name != "none")
    assert AlignmentChecker().weights is default_weights()
