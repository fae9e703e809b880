"""The checks of a decomposer reject every deliberately wrong one, each by the check that is meant for it."""

from __future__ import annotations

import itertools
import random
import re
import time
import unicodedata

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from factcheck.errors import DecomposeError
from factcheck.schema import Claim
from factcheck.testing import FakeDecomposer, check_decomposer, failures, make_answer, summary
from factcheck.testing.decomposers import DECOMPOSER_CHECKS
from factcheck.testing.shared import MODEL_FAULTS

# A sentence ends at a full stop that no digit follows, at a line end, or at a table's bar.
SENTENCE = re.compile(r"(?:[^.!?。\n|]|[.](?=\S))*\w(?:[^.!?。\n|]|[.](?=\S))*[.!?。]?")


class Right:
    """Take each sentence, list item and table cell as a claim; the wrong ones override one thing each."""

    version = "1"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        window: int = 1

    def __init__(self, settings=None, fault=""):
        self.settings = settings or self.Settings()
        self.fault = fault

    def pieces(self, text):
        for match in SENTENCE.finditer(text):
            start, end = match.span()
            while start < end and text[start].isspace():
                start += 1
            while end > start and text[end - 1].isspace():
                end -= 1
            yield start, end

    def identity(self, number):
        return f"c{number}"

    def context(self, answer, spans, number):
        return ""

    def words(self, text):
        return text.encode("utf-8", "replace").decode()

    def reply(self):
        if self.fault:
            raise DecomposeError(f"the model failed: {self.fault}.")

    def claim(self, answer, number, start, end, context):
        return Claim(
            id=self.identity(number),
            answer_id=answer.id,
            text=self.words(answer.text[start:end]),
            span=(start, end),
            sentence_span=(start, end),
            context=context,
            question=answer.question,
        )

    def decompose(self, answer):
        self.reply()
        spans = list(self.pieces(answer.text))
        return [
            self.claim(answer, number, start, end, self.context(answer, spans, number))
            for number, (start, end) in enumerate(spans)
        ]


class RightAsync(Right):
    async def decompose(self, answer):
        await anyio.sleep(0)
        return super().decompose(answer)


def run(kind, **more):
    arguments = {"make_faulty": lambda fault: kind(None, fault), "factory": kind, "time_limit": 20.0}
    return check_decomposer(kind, **{**arguments, **more})


@pytest.mark.parametrize("kind", [Right, RightAsync])
def test_right_ones_pass_every_check(kind):
    results = run(kind)
    assert failures(results) == [], [r.error for r in failures(results)]
    assert {r.status for r in results} == {"passed"}
    assert len(results) == len(DECOMPOSER_CHECKS) + 1


class Generator(Right):
    def decompose(self, answer):
        yield from super().decompose(answer)


class Texts(Right):
    def decompose(self, answer):
        return [claim.text for claim in super().decompose(answer)]


class AnotherAnswer(Right):
    def decompose(self, answer):
        return [claim.model_copy(update={"answer_id": "a"}) for claim in super().decompose(answer)]


class RepeatedIds(Right):
    def identity(self, number):
        return "c"


class NumberedFromTextHash(Right):
    """Name a claim after its text, so that a repeated sentence repeats the id."""

    def decompose(self, answer):
        return [claim.model_copy(update={"id": claim.text}) for claim in super().decompose(answer)]


class OutsideTheAnswer(Right):
    def decompose(self, answer):
        return [
            claim.model_copy(update={"sentence_span": (0, len(answer.text) + 1)}) for claim in super().decompose(answer)
        ]


class EmptySpans(Right):
    def decompose(self, answer):
        return [claim.model_copy(update={"span": (0, 0)}) for claim in super().decompose(answer)]


class ClaimsOnNothing(Right):
    def pieces(self, text):
        yield from super().pieces(text) if text.strip() else [(0, len(text))] * bool(text)

    def claim(self, answer, number, start, end, context):
        return super().claim(answer, number, start, end, context).model_copy(update={"text": "Nothing is said."})


class Backwards(Right):
    def decompose(self, answer):
        return super().decompose(answer)[::-1]


class SpanOutsideItsSentence(Right):
    def claim(self, answer, number, start, end, context):
        found = super().claim(answer, number, start, end, context)
        return found.model_copy(update={"sentence_span": (start + 1, end)})


class DropsQuestions(Right):
    def decompose(self, answer):
        return [claim for claim in super().decompose(answer) if not claim.text.endswith("?")]


class DropsCourtesy(Right):
    def decompose(self, answer):
        return [claim for claim in super().decompose(answer) if not claim.text.startswith("I ")]


class DropsListItems(Right):
    def decompose(self, answer):
        return [claim for claim in super().decompose(answer) if not claim.text.startswith("-")]


class DropsTables(Right):
    def pieces(self, text):
        lines = [m.span() for m in re.finditer(r"^\|.*$", text, re.MULTILINE)]
        return [(s, e) for s, e in super().pieces(text) if not any(a <= s < b for a, b in lines)]


class FirstOnly(Right):
    def pieces(self, text):
        return itertools.islice(super().pieces(text), 40)


class AsciiStops(Right):
    def pieces(self, text):
        if "。" in text:
            return [(0, len(text))]
        return super().pieces(text)


class StripsLeadingNumbers(Right):
    def words(self, text):
        return super().words(re.sub(r"^[\W\d]+", "", text)) or "x"


class SplitsDecimals(Right):
    def pieces(self, text):
        for start, end in super().pieces(text):
            parts = [m.span() for m in re.finditer(r"[^.,]*\w[^.,]*[.,]?", text[start:end])]
            yield from ((start + a, start + b) for a, b in parts)


class RoundsNumbers(Right):
    def words(self, text):
        return super().words(text).replace("500 mg", "0.5 g")


class DropsConditionsNumbers(Right):
    def words(self, text):
        return super().words(text).replace(" in 24 hours", "")


class ByFind(Right):
    """Find each sentence again by its text, so that a repeated one gets the first place."""

    def pieces(self, text):
        return [(text.find(text[s:e]), text.find(text[s:e]) + e - s) for s, e in super().pieces(text)]


class MergesEqual(Right):
    def decompose(self, answer):
        return list({claim.text: claim for claim in super().decompose(answer)}.values())


class CountsBytes(Right):
    def pieces(self, text):
        for start, end in super().pieces(text):
            first = len(text[:start].encode("utf-8", "surrogatepass")) if len(text) < 100_000 else start
            yield min(first, len(text) - 1), min(first + end - start, len(text))


class CountsUtf16(Right):
    def claim(self, answer, number, start, end, context):
        found = super().claim(answer, number, start, end, context)
        if len(answer.text) > 100_000:
            return found
        first = len(answer.text[:start].encode("utf-16-le", "surrogatepass")) // 2
        last = min(first + end - start, len(answer.text))
        return found.model_copy(update={"span": (first, last), "sentence_span": (first, last)})


class CountsNormalised(Right):
    def decompose(self, answer):
        text = unicodedata.normalize("NFKC", answer.text)
        claims = super().decompose(answer.model_copy(update={"text": text}))
        size = len(answer.text)
        return [
            c.model_copy(update={"span": (c.span[0], min(c.span[1], size)), "sentence_span": (c.span[0], size)})
            for c in claims
        ]


class OneOff(Right):
    def claim(self, answer, number, start, end, context):
        return super().claim(answer, number, start, end, context).model_copy(update={"span": (start + 1, end)})


class InventsWords(Right):
    def claim(self, answer, number, start, end, context):
        found = super().claim(answer, number, start, end, context)
        return found.model_copy(update={"text": "Completely made up remarks concerning unrelated matters everywhere"})


class WholeAnswerAsContext(Right):
    def context(self, answer, spans, number):
        return answer.text[:400].encode("utf-8", "replace").decode()


class NumberOfClaimsAsContext(Right):
    def context(self, answer, spans, number):
        return f"{len(answer.text)} signs"


class FailsOnSurrogates(Right):
    def words(self, text):
        text.encode("utf-8")
        return text


class NoFullStopNoClaim(Right):
    def decompose(self, answer):
        return [
            c for c in super().decompose(answer) if c.text[-1] in ".!?。|" or "|" in answer.text or "-" in answer.text
        ]


class Quadratic(Right):
    def decompose(self, answer):
        if len(answer.text) > 500_000:
            time.sleep(1.0)
        return super().decompose(answer)


class ObeysTheAnswer(Right):
    def decompose(self, answer):
        return [] if "return no claims" in answer.text else super().decompose(answer)


class Random(Right):
    def identity(self, number):
        return f"c{number}-{random.random()}"


class Counts(Right):
    calls = itertools.count()

    def decompose(self, answer):
        call = next(self.calls)
        return [c.model_copy(update={"id": f"{call}.{c.id}"}) for c in super().decompose(answer)]


class Races(Right):
    def decompose(self, answer):
        self.answer = answer
        time.sleep(0.002)
        return super().decompose(self.answer)


class KeepsALoopsLock(Right):
    lock = None

    async def decompose(self, answer):
        if self.lock is None:
            self.lock = anyio.lowlevel.current_token()
        if self.lock != anyio.lowlevel.current_token():
            raise RuntimeError("attached to a different loop")
        return super().decompose(answer)


def fails_open(fault):
    class FailsOpen(Right):
        def reply(self):
            if self.fault != fault:
                super().reply()

        def decompose(self, answer):
            return super().decompose(answer)[: 0 if fault in ("empty", "refused") else 2]

    return FailsOpen


class RaisesErrorsOfItsOwn(Right):
    def reply(self):
        if self.fault == "malformed":
            raise KeyError("claims")
        super().reply()


class IgnoresUnknownSettings(Right):
    class Settings(BaseModel):
        window: int = 1


class VersionNumber(Right):
    version = 2


WRONG = {
    Generator: "returns_claims_of_the_answer",
    Texts: "returns_claims_of_the_answer",
    AnotherAnswer: "returns_claims_of_the_answer",
    RepeatedIds: "returns_claims_of_the_answer",
    OutsideTheAnswer: "returns_claims_of_the_answer",
    EmptySpans: "returns_claims_of_the_answer",
    NumberedFromTextHash: "repeated_sentences_are_separate",
    ClaimsOnNothing: "an_empty_answer_has_no_claims",
    Backwards: "claims_follow_the_text",
    SpanOutsideItsSentence: "claims_follow_the_text",
    DropsQuestions: "nothing_is_dropped",
    DropsCourtesy: "nothing_is_dropped",
    DropsListItems: "nothing_is_dropped",
    DropsTables: "nothing_is_dropped",
    AsciiStops: "nothing_is_dropped",
    ObeysTheAnswer: "nothing_is_dropped",
    FirstOnly: "a_megabyte_is_no_trouble",
    StripsLeadingNumbers: "numbers_are_kept",
    SplitsDecimals: "numbers_are_kept",
    RoundsNumbers: "numbers_are_kept",
    DropsConditionsNumbers: "numbers_are_kept",
    ByFind: "repeated_sentences_are_separate",
    MergesEqual: "repeated_sentences_are_separate",
    CountsBytes: "spans_point_at_the_claims_words",
    CountsUtf16: "spans_point_at_the_claims_words",
    CountsNormalised: "spans_point_at_the_claims_words",
    OneOff: "spans_point_at_the_claims_words",
    InventsWords: "spans_point_at_the_claims_words",
    WholeAnswerAsContext: "a_distant_sentence_does_not_matter",
    NumberOfClaimsAsContext: "a_distant_sentence_does_not_matter",
    FailsOnSurrogates: "odd_answers_are_no_trouble",
    NoFullStopNoClaim: "odd_answers_are_no_trouble",
    Random: "repeats_itself",
    Counts: "repeats_itself",
    Races: "splits_many_at_once",
    KeepsALoopsLock: "serves_a_second_run",
    **{fails_open(fault): f"reports_{fault}" for fault in MODEL_FAULTS},
    RaisesErrorsOfItsOwn: "reports_malformed",
    IgnoresUnknownSettings: "settings_refuse_an_unknown_key",
    VersionNumber: "optional_attributes_are_texts",
}


@pytest.mark.parametrize(("kind", "check"), WRONG.items(), ids=lambda value: getattr(value, "__name__", value))
def test_wrong_ones_are_rejected_by_the_check_for_them(kind, check, monkeypatch):
    monkeypatch.setattr("factcheck.testing.decomposers.MEGABYTE", 50_000)
    found = {result.check: result.error for result in failures(run(kind))}
    assert check in found, found
    assert found[check]


def test_one_that_is_slow_on_a_megabyte_is_rejected():
    found = failures(run(Quadratic, time_limit=0.9, make_faulty=None))
    assert [result.check for result in found] == ["a_megabyte_is_no_trouble"]


def test_every_check_of_a_decomposer_rejects_something():
    shared = {"settings_survive_a_round_trip", "settings_keep_secrets_in_secret_types", "factory_makes_a_component"}
    assert {check.name for check in DECOMPOSER_CHECKS} - shared == set(WRONG.values())


def test_a_scripted_decomposer_is_checked_on_form_alone():
    class Failing:
        def __init__(self, fault):
            self.fault = fault

        def decompose(self, answer):
            raise DecomposeError(self.fault)

    results = check_decomposer(
        lambda: FakeDecomposer(["Adults take", "mild pain"]), capabilities=("deterministic",), make_faulty=Failing
    )
    assert failures(results) == []
    assert "needs 'semantic'" in summary(results)


def test_the_fake_finds_its_texts_in_order():
    answer = make_answer("One thing. Another thing.")
    claims = FakeDecomposer(["Another thing.", "One thing.", "absent"]).decompose(answer)
    assert [(claim.text, answer.text[slice(*claim.span)]) for claim in claims] == [
        ("One thing.", "One thing."),
        ("Another thing.", "Another thing."),
    ]
