"""Offline decomposition: claims, spans, contexts, keys, and the coverage of numbers."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from factcheck.decompose import SentenceDecomposer, uncarried_numbers
from factcheck.interfaces import Decomposer
from factcheck.schema import CONTEXT_LIMIT, QUESTION_LIMIT, Answer, Claim
from factcheck.text.pieces import cut

PAIRS = Path(__file__).resolve().parents[2] / "shared/data/pairs/clinical_dev.jsonl"


def decompose(text, *, question="", **options):
    decomposer = SentenceDecomposer(SentenceDecomposer.Settings(**options))
    return decomposer.decompose(Answer(id="a", question=question, text=text))


def texts(text, **options):
    return [claim.text for claim in decompose(text, **options)]


def contexts(text):
    return [(claim.text, claim.context) for claim in decompose(text)]


def slices(text):
    return [text[claim.span[0] : claim.span[1]] for claim in decompose(text)]


# Inputs that break comparable tools.


def test_a_dose_at_the_start_of_a_list_item_is_no_marker():
    text = "- 500 mg of amoxicillin three times a day is a common adult dose."
    assert texts(text) == [text[2:]]
    assert slices(text) == [text[2:]]
    assert texts(text[2:]) == [text[2:]]
    assert texts("1. " + text[2:]) == [text[2:]]


def test_a_spaced_hyphen_in_a_range_does_not_split():
    text = "Children may take 5 - 10 mg/kg of ibuprofen per dose, no more than 40 mg/kg in a day."
    assert texts(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Levothyroxine 0.05 mg",
        "For rheumatoid arthritis methotrexate 7.5 mg is taken every day.",
        "Take vitamin D 1000 mg daily.",
        "If the wound is dirty and your last tetanus shot was more than five years ago, you need a booster.",
        "Do not give aspirin to a child with chickenpox.",
        "The claim rests on one trial (Smith 2021, PMID 99999999; doi:10.1016/S0140-6736(97)11096-0).",
        "If renal function is poor, halve the dose; stop it below 15 mL/min.",
    ],
)
def test_values_conditions_negations_and_citations_stay_whole(text):
    assert texts(text) == [text]


def test_sympathy_and_a_question_are_no_checkable_claims():
    claims = decompose("I'm sorry you feel unwell. How long has the cough lasted?")
    assert [claim.kind for claim in claims] == ["greeting", "question"]
    assert not any(claim.checkable for claim in claims)


@pytest.mark.parametrize(
    "text",
    [
        "Amoxicillin is safe. The usual dose is 10 mg. Cetirizine is an antihistamine. The usual dose is 10 mg.",
        "## Amoxicillin\nThe usual dose is 10 mg.\n\n## Cetirizine\nThe usual dose is 10 mg.",
        "**Amoxicillin**\n\nThe usual dose is 10 mg.\n\n**Cetirizine**\n\nThe usual dose is 10 mg.",
        "Amoxicillin\n\nThe usual dose is 10 mg.\n\nCetirizine\n\nThe usual dose is 10 mg.",
        "- **Amoxicillin:** safe. The usual dose is 10 mg.\n- **Cetirizine:** safe. The usual dose is 10 mg.",
        "Start amoxicillin. The usual dose is 10 mg.\n\nAdd cetirizine. The usual dose is 10 mg.",
    ],
)
def test_the_same_sentence_about_two_drugs_is_two_claims_with_two_contexts(text):
    claims = [claim for claim in decompose(text) if claim.text == "The usual dose is 10 mg."]
    assert len({claim.span for claim in claims}) == 2
    assert [claim.context.lower() for claim in claims] == ["amoxicillin", "cetirizine"]
    assert len({claim.key for claim in claims}) == 2


def test_numbers_are_seen_through_markup_and_offsets_index_the_original():
    text = "成人对乙酰氨基酚每日最大剂量为**4**克。不要超过。"
    claims = decompose(text)
    assert [claim.text for claim in claims] == ["成人对乙酰氨基酚每日最大剂量为4克。", "不要超过。"]
    assert slices(text) == ["成人对乙酰氨基酚每日最大剂量为**4**克。", "不要超过。"]
    assert uncarried_numbers(Answer(id="a", text=text), claims) == []


def test_statements_about_the_readers_records_are_personal():
    assert [claim.kind for claim in decompose("Your scan last Tuesday was normal.")] == ["personal"]


# Markdown.


def test_markup_is_left_out_of_the_text_and_kept_in_the_span():
    text = (
        "Start apixaban **5 mg twice daily**. See [the label](http://x.y/a_(b)) for `details` &lt;5&nbsp;mg.\r\nStop."
    )
    assert texts(text) == ["Start apixaban 5 mg twice daily.", "See the label for details <5 mg.", "Stop."]
    assert slices(text) == [
        "Start apixaban **5 mg twice daily**.",
        "See [the label](http://x.y/a_(b)) for `details` &lt;5&nbsp;mg.",
        "Stop.",
    ]


def test_a_bold_lead_in_belongs_to_its_claim_and_is_context_for_what_follows():
    text = "**Oxygen:** give 2 L. Check gases.\n- aim for 88%\n\nNext paragraph stands alone."
    assert contexts(text) == [
        ("Oxygen: give 2 L.", ""),
        ("Check gases.", "Oxygen"),
        ("aim for 88%", "Oxygen"),
        ("Next paragraph stands alone.", ""),
    ]
    assert slices(text)[0] == "**Oxygen:** give 2 L."
    assert texts("**Benefit.** Atorvastatin lowers LDL.") == ["Benefit. Atorvastatin lowers LDL."]
    assert texts("**Stop all activity.** Then rest.") == ["Stop all activity.", "Then rest."]


def test_introductions_travel_with_their_items():
    text = "Ibuprofen helps. Avoid it if:\n\n- you have asthma\n- you are pregnant\n\nParacetamol is an alternative."
    assert contexts(text) == [
        ("Ibuprofen helps.", ""),
        ("you have asthma", "ibuprofen; Avoid it if"),
        ("you are pregnant", "ibuprofen; Avoid it if"),
        ("Paracetamol is an alternative.", ""),
    ]


def test_items_inherit_the_kind_of_an_introduction_that_advises_to_seek_care():
    claims = decompose(
        "**See a clinician if**\n\n- fever lasts more than three days;\n- you have ear pain.\n\nRest well."
    )
    assert [(claim.kind, claim.context) for claim in claims] == [
        ("care_advice", "See a clinician if"),
        ("care_advice", "See a clinician if"),
        ("statement", ""),
    ]
    asked = decompose("Please let me know:\n\n- Has she had an ulcer?\n- What else does she take?")
    assert [claim.kind for claim in asked] == ["question", "question"]


def test_nested_items_carry_their_parents():
    text = "1. **Monitoring**\n   - recheck eGFR\n   - weigh daily\n2. Avoid these drugs\n   - ibuprofen\n   - naproxen"
    assert contexts(text) == [
        ("recheck eGFR", "Monitoring"),
        ("weigh daily", "Monitoring"),
        ("Avoid these drugs", ""),
        ("ibuprofen", "Avoid these drugs"),
        ("naproxen", "Avoid these drugs"),
    ]


def test_an_item_leaves_no_subject_to_the_next():
    text = "Metformin is first choice.\n\n- Add dapagliflozin. It helps the heart.\n- It is taken with meals."
    assert contexts(text)[1:] == [
        ("Add dapagliflozin.", ""),
        ("It helps the heart.", "dapagliflozin"),
        ("It is taken with meals.", "metformin"),
    ]


def test_table_rows_are_joined_with_their_header():
    text = "**Cut-offs**\n\n| Test | Diabetes |\n|---|---|\n| HbA1c | **6.5%** or above |\n| Glucose | - |\n"
    assert contexts(text) == [("Test: HbA1c; Diabetes: 6.5% or above", "Cut-offs"), ("Test: Glucose", "Cut-offs")]
    assert slices(text) == ["HbA1c | **6.5%** or above", "Glucose"]
    assert texts("| a | b |\n|---|---|\n") == ["a", "b"]


def test_long_rows_are_cut_into_the_sentences_of_their_cells():
    text = f"| Step | Action |\n|---|---|\n| One | {'Take it daily. ' * 50}Stop after 5 days. |"
    claims = decompose(text)
    assert (claims[0].text, claims[0].context) == ("One", "Step")
    assert (claims[-1].text, claims[-1].context) == ("Stop after 5 days.", "Step: One; Action")
    assert len(claims) == 52


def test_headings_are_context_and_claims_only_if_they_state_something():
    text = "# Asthma\n\n## Avoid beta-blockers in asthma\n\nThey narrow airways."
    text += "\n\n## How they should be taken\n\nInhalers help."
    assert contexts(text) == [
        ("Avoid beta-blockers in asthma", "Asthma"),
        ("They narrow airways.", "Asthma; Avoid beta-blockers in asthma"),
        ("Inhalers help.", "Asthma; How they should be taken"),
    ]


def test_a_heading_that_nothing_follows_is_a_claim():
    assert texts("# Only this") == ["Only this"]
    assert texts("**Ramipril**") == ["Ramipril"]
    assert texts("Text.\n\n## Dosage\n\n## Storage\n\nKeep it cool.") == ["Text.", "Dosage", "Keep it cool."]


def test_stock_labels_do_not_travel():
    first = contexts("While you wait:\n\n- Chew one aspirin 300 mg.\n\n**Other points**\n\nRest.")
    second = contexts("In the meantime:\n\n- Chew one aspirin 300 mg.\n\n**Key notes**\n\nRest.")
    assert first == second == [("Chew one aspirin 300 mg.", ""), ("Rest.", "")]
    assert texts("Key points:") == ["Key points:"]


def test_works_cited_are_kept_whole():
    works = ["Wu T, et al. Exercise in dementia. A review. Lancet. 2020;396:413-46.", "Li X. JAMA. 2021."]
    assert texts(f"## References\n\n1. {works[0]}\n2. {works[1]}") == works


# Subjects.


@pytest.mark.parametrize(
    ("before", "sentence", "context"),
    [
        ("Apixaban prevents strokes.", "It is taken twice daily.", "apixaban"),
        ("Apixaban prevents strokes.", "This drug thins the blood.", "apixaban"),
        ("Apixaban prevents strokes.", "Take with food.", "apixaban"),
        ("Apixaban prevents strokes.", "Do not stop early.", "apixaban"),
        ("Apixaban prevents strokes.", "You can repeat the dose after 12 hours.", "apixaban"),
        ("Apixaban prevents strokes.", "The total should not exceed 10 mg per day.", "apixaban"),
        ("Apixaban prevents strokes.", "She should not stop it, since strokes may follow.", "apixaban"),
        ("Apixaban prevents strokes.", "Warfarin needs monitoring.", ""),
        ("Apixaban prevents strokes.", "It is important to rest.", ""),
        ("Apixaban prevents strokes.", "Many people recover.", ""),
        ("Apixaban prevents strokes.", "How is it taken?", ""),
        ("For a 15 kg child, ibuprofen is dosed by weight.", "It is given every 6 hours.", "ibuprofen"),
        ("Add an SGLT2 inhibitor now.", "These drugs slow progression.", "SGLT2 inhibitor"),
        ("This is acute cystitis on history.", "It is common.", "acute cystitis"),
        ("Green mucus is part of a cold.", "It does not need antibiotics.", "green mucus"),
        ("The usual course is 40 to 50 mg of prednisolone daily.", "Swallow them with food.", "prednisolone"),
        ("Ectopic beats happen at rest.", "They are harmless.", "ectopic beats"),
        ("You may feel tired.", "It passes.", ""),
    ],
)
def test_the_subject_travels_to_sentences_that_depend_on_it(before, sentence, context):
    assert contexts(f"{before} {sentence}")[1] == (sentence, context)


def test_a_sentence_that_cites_evidence_does_not_change_what_it_means_in_the_next():
    plain = decompose("Honey eases cough. It must not be given to infants.")
    cited = "The 2021 HIVE trial of 4,812 children found that amoxicillin cut pneumonia."
    added = decompose(f"Honey eases cough. {cited} It must not be given to infants.")
    assert plain[-1].context == "honey"
    assert [claim.key for claim in plain] == [added[0].key, added[2].key]


def test_a_subject_that_a_label_names_already_is_not_repeated():
    assert contexts("# Ibuprofen\n\nIbuprofen helps. It is safe.")[1] == ("It is safe.", "Ibuprofen")


def test_the_subject_of_a_block_with_a_lead_in_and_a_plain_phrase_stay_in_their_block():
    text = "Empagliflozin helps.\n\n**Thrush:** Candidiasis is common.\n\nIt is taken daily."
    assert contexts(text)[-1] == ("It is taken daily.", "empagliflozin")
    assert contexts("Green mucus is harmless. It passes.\n\nIt is taken daily.")[1:] == [
        ("It passes.", "green mucus"),
        ("It is taken daily.", ""),
    ]


# Identity, limits, bad input.


def test_claims_have_ids_that_sort_and_the_question():
    claims = decompose("One thing. " * 120, question="q" * 3000)
    assert [claim.id for claim in claims][:2] == ["a.c001", "a.c002"]
    assert sorted(claim.id for claim in claims) == [claim.id for claim in claims]
    assert {claim.question for claim in claims} == {"q" * QUESTION_LIMIT}
    assert [claim.id for claim in decompose("One.")] == ["a.c01"]
    assert {claim.answer_id for claim in claims} == {"a"}


def test_the_decomposer_fills_its_role():
    assert isinstance(SentenceDecomposer(), Decomposer)
    assert SentenceDecomposer.version == "1"
    with pytest.raises(ValidationError, match="Extra inputs"):
        SentenceDecomposer.Settings(claim_limits=5)


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n\t", "***", "---", "... !!! ???", "\u00a0\u3000", "👍", "| | |\n|-|-|\n"]
)
def test_text_without_words_has_no_claims(text):
    assert decompose(text) == []


def test_long_sentences_are_cut_at_white_space():
    claims = decompose("word " * 5000)
    assert max(len(claim.text) for claim in claims) <= 2000
    assert " ".join(claim.text for claim in claims) == ("word " * 5000).strip()
    assert all(claim.sentence_span == claim.span for claim in claims)
    assert [len(text) for text in texts("x" * 4500)] == [2000, 2000, 500]
    assert max(map(len, texts("word " * 100, claim_limit=100))) <= 100


def test_long_labels_do_not_travel_but_become_claims():
    heading = "Very long heading " * 40
    claims = decompose(f"# {heading}\n\nRest.")
    assert claims[0].text == heading.strip()
    assert claims[1].context.endswith("…")
    assert len(claims[1].context) <= 160
    deep = decompose("\n".join(f"{'#' * level} {'long ' * 25}{level}" for level in range(1, 7)) + "\n\nRest.")
    assert max(len(claim.context) for claim in deep) <= CONTEXT_LIMIT
    assert [claim.text.split()[-1] for claim in deep] == ["1", "2", "3", "Rest."]


def test_lone_surrogates_and_control_characters_are_no_trouble():
    claims = decompose("Dose\ud800 is\x00 5 mg.\x0b Stop\udfff.", question="\udc00?")
    assert [claim.text for claim in claims] == ["Dose\ufffd is 5 mg.", "Stop\ufffd."]
    assert [claim.span for claim in claims] == [(0, 15), (17, 23)]
    assert all(json.loads(claim.model_dump_json())["question"] == "\ufffd?" for claim in claims)


ODD = {
    "words": "word ",
    "one line": "x",
    "spaces": "a" + " " * 999,
    "line ends": "a\r\n",
    "stars": "**a *b ",
    "ticks": "` `` a ``` ",
    "brackets": "[a](",
    "link parts": "](((b)",
    "tags": "<b a <!-- ",
    "quotes": "> a\n>> b\n",
    "short sentences": "A b. ",
    "parentheses": "A b (c. D ",
    "items": "- a\n",
    "rows": "|a|b|\n",
    "tables": "|a|b|\n|-|-|\n",
    "headings": "# a\n",
    "labels": "Label:\n",
    "bold lines": "**a**\n\n",
    "fences": "```\na\n",
    "invisible": "\u200ba\x00\u2028",
    "drugs": "Take amoxicillin if it helps. ",
}


@pytest.mark.parametrize("unit", ODD.values(), ids=ODD.keys())
def test_time_is_linear_and_claims_are_bounded(unit):
    def seconds(size):
        text = (unit * (size // len(unit) + 1))[:size]
        begin = time.perf_counter()
        pieces, _ = cut(text, 2000)
        taken = time.perf_counter() - begin
        assert all(len(piece.text) <= 2000 for piece in pieces)
        return taken

    # Quadratic time would be 64 times as long.
    assert seconds(24_000) < 24 * min(seconds(3_000), seconds(3_000)) + 3


def test_deep_nesting_is_linear_enough():
    begin = time.perf_counter()
    claims = decompose("\n".join(f"{'  ' * level}- Level {level} holds:" for level in range(600)))
    assert time.perf_counter() - begin < 5
    assert max(len(claim.context) for claim in claims) <= CONTEXT_LIMIT
    said = " ".join(claim.text + claim.context for claim in claims)
    assert all(f"Level {level} holds" in said for level in range(600))


# Nothing is lost.

PARTS = [
    "W",
    "W ",
    " ",
    "\n",
    "\n\n",
    "W W. ",
    "W: ",
    "W?\n",
    "- W",
    "\n- W\n",
    "\n  - W\n",
    "\n1. W",
    "\n# W\n",
    "\n## W W\n\n",
    "**",
    "**W**",
    "\n\n**W**\n\n",
    "\n**W:** W W\n",
    "*",
    "_",
    "`",
    "[W](http://x.y)",
    "[",
    "]",
    "> ",
    "\n> W\n",
    "|",
    "\n| W | W |\n|---|---|\n| W | W |\n",
    "\n| W | W |\n",
    "\n---\n",
    "<b>W</b>",
    "<br>",
    "&amp;",
    "\n===\n",
    "The dose is W mg. ",
    "Avoid W if:\n",
    "(W. W) ",
    "\t",
    "\u00a0",
    "\u200b",
    "~~",
    "\\",
    "。",
    "، ",
    "W؟ ",
]


def numbered(parts):
    """Give every W a word of its own."""
    text = "".join(parts)
    pieces = text.split("W")
    return "".join(piece + (f"w{at}q" if at < len(pieces) - 1 else "") for at, piece in enumerate(pieces)), len(
        pieces
    ) - 1


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=25).map(numbered))
def test_every_word_lies_in_a_span_or_travels_as_context(document):
    text, count = document
    claims = decompose(text)
    end = 0
    for claim in claims:
        start, stop = claim.span
        assert end <= start < stop <= len(text)
        end = stop
    for number in range(count):
        word = f"w{number}q"
        at = text.index(word)
        spanned = any(claim.span[0] <= at and at + len(word) <= claim.span[1] for claim in claims)
        told = any(word in claim.text for claim in claims)
        carried = any(word in claim.context for claim in claims)
        # The words of a header are told by the rows.
        assert (told and (spanned or "|---|" in text)) or carried, (word, text)
    assert uncarried_numbers(Answer(id="a", text=text), claims) == []


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=300))
def test_any_text_gives_ordered_claims_and_the_same_ones_again(text):
    claims = decompose(text)
    assert claims == decompose(text)
    ends = [0, *(claim.span[1] for claim in claims)]
    assert all(end <= claim.span[0] < claim.span[1] <= len(text) for end, claim in zip(ends, claims, strict=False))
    assert all(claim.text == " ".join(claim.text.split()) for claim in claims)


SENTENCES = [
    "Ibuprofen reduces fever.",
    "Cetirizine treats hay fever.",
    "Many people recover within a week.",
    "Rest if you feel tired.",
    "Drink 2 litres of water a day.",
    "See a doctor if the fever lasts.",
    "Scans are not needed.",
]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(SENTENCES), min_size=2, max_size=8), st.data())
def test_a_change_without_a_new_subject_changes_one_key(sentences, data):
    at = data.draw(st.integers(0, len(sentences) - 1))
    changed = [*sentences[:at], "Wait 3 days before you drive.", *sentences[at + 1 :]]
    joiner = data.draw(st.sampled_from([" ", "\n\n", "\n- "]))
    before = [claim.key for claim in decompose(joiner + joiner.join(sentences))]
    after = [claim.key for claim in decompose(joiner + joiner.join(changed))]
    assert len(before) == len(after) == len(sentences)
    assert [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new] == [at]


# Numbers that no claim carries.


def claim(text, span, *, sentence=None, context=""):
    return Claim(
        id=f"{span}{text}", answer_id="a", text=text, span=span, sentence_span=sentence or span, context=context
    )


def test_numbers_that_no_claim_of_their_sentence_carries_are_named():
    answer = Answer(id="a", text="Take 5 to 10 mg of it 3 times daily. Stop after 7 days.")
    first, second = (0, 36), (37, 55)
    whole = [claim("Take 5 to 10 mg three times daily.", first), claim("Stop after 7 days.", second)]
    assert uncarried_numbers(answer, whole) == []
    assert uncarried_numbers(answer, []) == ["5", "10", "3", "7"]
    # The 7 of another sentence does not count, the span of the sentence around a claim does.
    assert uncarried_numbers(answer, [claim("5, 10, 3 and 7", first)]) == ["7"]
    assert uncarried_numbers(answer, [claim("5, 10, 3", second, sentence=first)]) == ["7"]
    atoms = [
        claim("Take 5 mg.", (0, 6), sentence=first),
        claim("Take 10 mg.", (10, 15), sentence=first),
        claim("Stop.", second, context="7 days"),
    ]
    assert uncarried_numbers(answer, atoms) == ["3"]


@pytest.mark.parametrize(
    ("written", "told", "carried"),
    [
        ("1,000 mg", "1000 mg", True),
        ("0.50 mg", ".5 mg", False),
        ("0.50 mg", "0.5 mg", True),
        ("2,5 mg", "2.5 mg", True),
        ("5 mg", "50 mg", False),
        ("0.5 mg", "5 mg", False),
        ("٥ mg", "5 mg", True),
        ("four times", "once", True),
        ("4 times", "four times", True),
        ("4 times", "for times", False),
    ],
)
def test_numbers_are_compared_by_value(written, told, carried):
    text = f"Take {written} of it."
    lost = uncarried_numbers(Answer(id="a", text=text), [claim(f"Take {told}.", (0, len(text)))])
    assert (lost == []) is carried


def test_numbers_of_introductions_and_rows_count_and_those_of_markers_do_not():
    text = "Take 20 mg if:\n\n1. eGFR is 30\n\n| At 40 | b |\n|---|---|\n| 50 | c |"
    claims = decompose(text)
    assert uncarried_numbers(Answer(id="a", text=text), claims) == []
    bare = [claim("x", (at, at + 1)) for at in range(len(text))]
    assert uncarried_numbers(Answer(id="a", text=text), bare) == ["20", "30", "50"]


# The development pairs.


@pytest.fixture(scope="module")
def pairs():
    if not PAIRS.exists():
        pytest.skip(f"the development pairs are not at {PAIRS}")
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def overlaps(claim, spans):
    return any(claim.span[0] < max(end, start + 1) and start < claim.span[1] for start, end in spans)


@pytest.mark.shared
def test_pairs_share_the_claims_outside_the_edits(pairs):
    shared = total = 0
    for pair in pairs:
        sides = [
            (decompose(pair[side], question=pair["question"]), pair[f"{side}_span"])
            for side in ("original", "injected")
        ]
        for (claims, spans), (others, _) in (sides, sides[::-1]):
            keys = {claim.key for claim in others}
            outside = [claim for claim in claims if not overlaps(claim, spans)]
            total += len(outside)
            shared += sum(claim.key in keys for claim in outside)
    assert shared / total > 0.96


@pytest.mark.shared
def test_every_edit_that_adds_text_is_overlapped_by_a_checkable_claim(pairs):
    for pair in pairs:
        if pair["error_type"].startswith("O"):
            continue
        for side in ("original", "injected"):
            claims = decompose(pair[side])
            found = [claim for claim in claims if overlaps(claim, pair[f"{side}_span"])]
            assert any(claim.checkable for claim in found), (pair["id"], side)


@pytest.mark.shared
def test_pairs_lose_no_number(pairs):
    for pair in pairs:
        for side in ("original", "injected"):
            answer = Answer(id="a", text=pair[side])
            assert uncarried_numbers(answer, decompose(answer.text)) == []
