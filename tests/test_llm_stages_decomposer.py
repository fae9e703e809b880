"""The decomposer ``llm/atomic``: what it takes from a model, and what it keeps whole."""

from __future__ import annotations

import runpy
from pathlib import Path

import anyio
import pytest
from factcheck_llm.decomposer import AtomicDecomposer, points_back
from factcheck_llm.grounding import problems_of
from hypothesis import given
from hypothesis import strategies as st

from factcheck.decompose import SentenceDecomposer, uncarried_numbers
from factcheck.errors import DecomposeError, TransientError
from factcheck.llm import ModelReplyError
from factcheck.schema import Answer
from factcheck.testing import make_answer
from factcheck.testing.samples import CHAIN, MARKDOWN, NUMBERS, PROSE

FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
FakeClient, text_of = FAKES["FakeClient"], FAKES["text_of"]
DOSE = "Adults take 500 mg to 1 g every 4 to 6 hours, unless the liver is damaged."


def split(text, brain, *, question="", **settings):
    client = FakeClient(brain)
    decomposer = AtomicDecomposer(AtomicDecomposer.Settings(**settings), client=client)
    return anyio.run(decomposer.decompose, make_answer(text, question=question)), client


def saying(*replies, kind="statement"):
    """Return a brain that gives for each turn a list of claims."""

    def brain(prompt, turn):
        return {"claims": [{"text": text, "kind": kind} for text in replies[min(turn, len(replies)) - 1]]}

    return brain


class TestRules:
    @pytest.mark.parametrize(
        "claims",
        [
            ["Adults take 500 mg to 1 g every 4 to 6 hours, unless the liver is damaged."],
            ["Adults take 500 mg to 1 g every 4 to 6 hours unless their liver is damaged."],
            ["Adults take 500 mg to 1 g, unless the liver is damaged.", "Adults take it every 4 to 6 hours."],
        ],
    )
    def test_claims_that_keep_everything_pass(self, claims):
        assert problems_of(claims, DOSE, "Paracetamol") == []

    @pytest.mark.parametrize(
        ("claims", "problem"),
        [
            ([], "no claim"),
            (["Adults take 500 mg every 4 to 6 hours, unless the liver is damaged."], "1 of the numbers"),
            (
                ["Adults take 500 mg to 1 g every 4 to 8 hours, unless the liver is damaged."],
                "number that the sentence",
            ),
            (["Adults take 500 g to 1 g every 4 to 6 hours, unless the liver is damaged."], "another unit"),
            (["Adults take 500 mg to 1 g every 4 to 6 days, unless the liver is damaged."], "another unit"),
            (["Adults take 500 mg to 1 g every 4 to 6 hours."], "a condition of the sentence"),
            (["Adults do not take 500 mg to 1 g every 4 to 6 hours unless the liver is damaged."], "negates"),
            (
                [DOSE, "Warfarin interacts badly with grapefruit juice and cranberries."],
                "neither the sentence nor its surroundings",
            ),
            ([DOSE, "…"], "says nothing"),
        ],
    )
    def test_claims_that_lose_or_add_are_told(self, claims, problem):
        problems = problems_of(claims, DOSE, "Paracetamol")
        assert any(problem in item for item in problems), problems
        assert not any(word in " ".join(problems) for word in ("500", "Adults", "Warfarin"))

    def test_negation_certainty_and_context(self):
        sentence = "It may not be given to children."
        around = "Codeine relieves pain. Children with sleep apnoea"
        assert problems_of(["Codeine may not be given to children."], sentence, around) == []
        assert "negation" in problems_of(["Codeine may be given to children."], sentence, around)[0]
        assert "certainty" in problems_of(["Codeine is not given to children."], sentence, around)[0]
        assert (
            "elsewhere"
            in problems_of(
                ["Codeine may not relieve pain with sleep apnoea.", "It may not be given to children."],
                sentence,
                around,
            )[0]
        )

    def test_a_unit_behind_a_range_belongs_to_both_ends(self):
        sentence = "Give 2 to 4 mg, or 5 g once; never more than 8."
        assert problems_of(["Give 2 mg to 4 mg, or 5 g once, never more than 8."], sentence, "") == []
        for wrong in (
            "Give 2 g to 4 mg, or 5 g once, never more than 8.",
            "Give 2 to 4 mg or 5 mg, never more than 8.",
        ):
            assert any("another unit" in item for item in problems_of([wrong], sentence, "")), wrong

    def test_a_number_in_words_may_become_digits_and_no_other(self):
        assert problems_of(["Take 2 tablets twice a day."], "Take two tablets twice a day.", "") == []
        assert problems_of(["Take 3 tablets twice a day."], "Take two tablets twice a day.", "") != []

    @given(st.text(max_size=200))
    def test_a_sentence_is_always_a_claim_of_itself(self, text):
        if any(char.isalnum() for char in text):
            assert problems_of([text], text, "") == []


class TestSplitting:
    def test_claims_get_place_context_and_question_of_their_sentence(self):
        parts = ["Adults take 500 mg to 1 g, unless the liver is damaged.", "Adults take it every 4 to 6 hours."]
        text = f"# Paracetamol\n\n**{DOSE}**"
        found, client = split(text, saying(parts), question="How much?")
        assert [claim.text for claim in found] == parts
        assert [claim.id for claim in found] == ["a.c01", "a.c02"]
        assert {text[slice(*claim.span)] for claim in found} == {f"**{DOSE}**"}
        assert {claim.span for claim in found} == {claim.sentence_span for claim in found}
        assert {(claim.context, claim.question, claim.kind) for claim in found} == {
            ("Paracetamol", "How much?", "statement")
        }
        assert found.warnings == ()
        assert len(client.calls) == 1
        prompt = client.calls[0][1][0]["content"]
        assert text_of(prompt, "context") == "Paracetamol"
        assert text_of(prompt, "question") == "How much?"

    def test_a_reply_that_loses_something_is_asked_for_once_more(self):
        found, client = split(DOSE, saying(["Adults take 500 mg."], [DOSE]))
        assert ([claim.text for claim in found], found.warnings) == ([DOSE], ())
        turns = client.calls[1][1]
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
        assert "numbers of the sentence are in no claim" in turns[2]["content"]

    @pytest.mark.parametrize("claims", [[], ["Adults take 500 mg."], ["Adults take 7 mg."], [" "]])
    def test_a_sentence_that_cannot_be_split_stays_whole_with_a_warning(self, claims):
        found, client = split(
            f"{DOSE} Rest helps.",
            lambda prompt, turn: (
                saying(claims)(prompt, turn)
                if "500" in text_of(prompt, "sentence")
                else FAKES["echo_splitter"](prompt, turn)
            ),
        )
        assert [claim.text for claim in found] == [DOSE, "Rest helps."]
        (warning,) = found.warnings
        assert warning.startswith(f"the sentence at 0:{len(DOSE)} was kept whole: ")
        assert len(client.calls) == 3

    def test_claims_of_other_text_are_left_out_if_the_others_carry_the_sentence(self):
        found, client = split(DOSE, saying(["Adults take 7 mg.", DOSE, "Warfarin thins the blood."]))
        assert ([claim.text for claim in found], found.warnings, len(client.calls)) == ([DOSE], (), 1)

    def test_a_half_of_a_sentence_is_not_left_out(self):
        text = "Aspirin thins the blood and irritates the lining of the stomach."
        parts = ["Aspirin thins the blood.", "Aspirin irritates the lining of the stomach."]
        assert problems_of(parts, text, "") == []
        found, client = split(text, saying(parts[:1]))
        assert ([claim.text for claim in found], len(client.calls)) == ([text], 2)
        assert "in no claim" in found.warnings[0]

    @pytest.mark.parametrize("fault", ["truncated", "unparseable", "refused"])
    def test_a_sentence_whose_reply_is_unusable_stays_whole_and_the_others_are_split(self, fault):
        parts = ["Adults take 500 mg to 1 g, unless the liver is damaged.", "Adults take it every 4 to 6 hours."]

        def brain(prompt, turn):
            if "Rest" in text_of(prompt, "sentence"):
                return ModelReplyError("the reply was of no use.", fault=fault)
            return saying(parts)(prompt, turn)

        found, _ = split(f"{DOSE} Rest helps.", brain)
        assert [claim.text for claim in found] == [*parts, "Rest helps."]
        assert found.warnings == (
            f"the sentence at {len(DOSE) + 1}:{len(DOSE) + 12} was kept whole: the reply was of no use.",
        )

    def test_equal_claims_of_a_sentence_are_one(self):
        found, _ = split(DOSE, saying([DOSE, f" {DOSE} ", DOSE.replace(" ", "  ")]))
        assert len(found) == 1

    def test_every_number_of_an_answer_is_carried_whatever_the_model_does(self):
        for text in (PROSE, MARKDOWN, NUMBERS):
            answer = make_answer(text)
            for brain in (saying([]), saying(["Take 7 mg."]), FAKES["echo_splitter"]):
                found, _ = split(text, brain)
                assert uncarried_numbers(answer, found) == []

    def test_the_model_cannot_take_a_value_out_of_the_check(self):
        found, _ = split("You take 40 g of paracetamol. I hope you feel better.", FAKES["echo_splitter"])
        personal, _ = split(
            "You take 40 g of paracetamol. I hope you feel better.",
            lambda prompt, turn: {"claims": [{"text": text_of(prompt, "sentence"), "kind": "personal"}]},
        )
        assert personal[0].kind == found[0].kind == "statement"
        assert personal[1].kind in ("greeting", "personal")

    def test_a_kind_of_the_model_is_taken_otherwise(self):
        found, _ = split(
            "Your headache is getting worse.", saying(["Your headache is getting worse."], kind="personal")
        )
        assert (found[0].kind, found[0].checkable) == ("personal", False)

    def test_an_answer_without_words_asks_nothing(self):
        found, client = split("\n\n— …", FAKES["echo_splitter"])
        assert (found, found.warnings, client.calls) == ([], (), [])

    def test_equal_sentences_are_asked_once(self):
        found, client = split("The usual dose is 10 mg. " * 3, FAKES["echo_splitter"], window=0)
        assert (len(found), len(client.calls)) == (3, 1)

    def test_no_more_calls_at_once_than_set(self):
        client = FakeClient(FAKES["echo_splitter"], delay=0.01)
        decomposer = AtomicDecomposer(AtomicDecomposer.Settings(concurrency=3), client=client)
        anyio.run(decomposer.decompose, make_answer(" ".join(CHAIN)))
        assert client.most == 3

    @pytest.mark.parametrize(
        ("error", "kind", "calls"),
        [
            (TransientError("no reply."), TransientError, 1),
            (ModelReplyError("cut off.", fault="truncated", hint="Raise max_tokens."), DecomposeError, len(CHAIN)),
        ],
    )
    def test_a_failing_model_fails_the_answer(self, error, kind, calls):
        client = FakeClient(lambda prompt, turn: error)
        decomposer = AtomicDecomposer(AtomicDecomposer.Settings(concurrency=1), client=client)
        with pytest.raises(kind) as caught:
            anyio.run(decomposer.decompose, make_answer(" ".join(CHAIN)))
        assert len(client.calls) == calls
        assert caught.value.hint == error.hint


class TestWindow:
    def before(self, text, **settings):
        _, client = split(text, FAKES["echo_splitter"], **settings)
        prompts = [call[1][0]["content"] for call in client.calls]
        return {text_of(prompt, "sentence"): text_of(prompt, "before") for prompt in prompts}

    def test_only_a_sentence_that_points_back_sees_the_one_before(self):
        text = "Warfarin thins the blood. It is taken in the evening. Aspirin is another drug."
        assert self.before(text) == {
            "Warfarin thins the blood.": "",
            "It is taken in the evening.": "Warfarin thins the blood.",
            "Aspirin is another drug.": "",
        }
        assert set(self.before(text, window=0).values()) == {""}

    def test_pointing_back(self):
        for sentence in ("They cause nausea.", "Then stop.", "This helps.", "The dose is doubled.", "Take them daily."):
            assert points_back(sentence), sentence
        for sentence in ("Warfarin thins the blood.", "Aspirin is not a statin.", "Adults rest in bed."):
            assert not points_back(sentence), sentence

    def test_answers_that_differ_in_one_sentence_share_the_prompts_of_the_others(self):
        original = [*CHAIN[:6], "Warfarin 5 mg is taken daily.", *CHAIN[6:]]
        changed = [*CHAIN[:6], "Warfarin 50 mg is taken daily.", *CHAIN[6:]]
        prompts = []
        keys = []
        for sentences in (original, changed):
            found, client = split(" ".join(sentences), FAKES["echo_splitter"])
            prompts.append({call[1][0]["content"] for call in client.calls})
            keys.append({claim.key for claim in found})
        assert len(prompts[0] - prompts[1]) == len(prompts[1] - prompts[0]) == 1
        assert len(keys[0] - keys[1]) == 1

    def test_the_question_is_cut_in_the_prompt_and_kept_in_the_claim(self):
        question = "long " * 300
        client = FakeClient(FAKES["echo_splitter"])
        answer = Answer(id="a", question=question, text="Rest helps.")
        (claim,) = anyio.run(AtomicDecomposer(client=client).decompose, answer)
        (offline,) = SentenceDecomposer().decompose(answer)
        assert len(text_of(client.calls[0][1][0]["content"], "question")) == 600
        assert claim.question == offline.question
        assert claim.key == offline.key
