"""The checks of a judge reject every deliberately wrong one, each by the check that is meant for it."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import time
import unicodedata

import anyio
import pytest
from pydantic import BaseModel, ConfigDict

from factcheck.errors import JudgeError
from factcheck.schema import Finding, Judgement, Quote, Stance
from factcheck.testing import FakeJudge, OracleJudge, check_judge, failures, make_claim, make_evidence, summary
from factcheck.testing.judges import JUDGE_CHECKS
from factcheck.testing.shared import MODEL_FAULTS

SECRET = "sk-live-0123456789"
NEGATIONS = {"not", "no", "never", "avoid"}


class Right:
    """Compare words, numbers and negations of the claim with each sentence; the wrong ones override one thing each."""

    version = "1"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        overlap: float = 0.8

    def __init__(self, settings=None, fault=""):
        self.settings = settings or self.Settings()
        self.fault = fault

    def stance(self, claim, sentence):
        words, found = self.words(claim), self.words(sentence)
        content = {w for w in words if not w.isdigit()} - NEGATIONS
        if not content or len(content & found) / len(content) < self.settings.overlap:
            return "silent"
        numbers = {w for w in words if w.isdigit()}
        agree = numbers <= found and bool(words & NEGATIONS) == bool(found & NEGATIONS)
        return "supports" if agree else "contradicts"

    def words(self, text):
        return set(re.findall(r"[a-z]+|\d+", text.lower()))

    def sentences(self, text):
        return [(m.start(), m.end()) for m in re.finditer(r"[^.。]*\w[^.。]*[.。]?", text)]

    def quote(self, passage, start, end):
        return Quote(passage_id=passage.id, start=start, end=end, text=passage.text[start:end])

    def reply(self):
        if self.fault:
            raise JudgeError(f"the model failed: {self.fault}.")

    def judge(self, claim, evidence, findings):
        self.reply()
        stances, quotes = [], []
        for passage in evidence.passages:
            kind = "silent"
            for start, end in self.sentences(passage.text):
                found = self.stance(claim.text, passage.text[start:end])
                if found != "silent" and kind != "supports":
                    kind = found
                    quotes.append(self.quote(passage, start, end))
            stances.append(Stance(passage_id=passage.id, stance=kind))
        return self.decide(claim, stances, quotes)

    def decide(self, claim, stances, quotes):
        kinds = {stance.stance for stance in stances}
        label = "not_enough_evidence"
        if "supports" in kinds:
            label = "supported"
        elif "contradicts" in kinds:
            label = "contradicted"
        return Judgement(claim_id=claim.id, label=label, stances=tuple(stances), quotes=tuple(quotes), judge="right")


class RightAsync(Right):
    async def judge(self, claim, evidence, findings):
        await anyio.sleep(0)
        return super().judge(claim, evidence, findings)


class RightByStatus(Right):
    def judge(self, claim, evidence, findings):
        if self.fault:
            return Judgement(claim_id=claim.id, label=None, status="error", reason=f"the model failed: {self.fault}")
        return super().judge(claim, evidence, findings)


def run(kind, **more):
    arguments = {
        "make_faulty": lambda fault: kind(None, fault),
        "factory": kind,
        "secrets": (SECRET,),
        "time_limit": 10.0,
    }
    return check_judge(kind, **{**arguments, **more})


@pytest.mark.parametrize("kind", [Right, RightAsync, RightByStatus])
def test_right_ones_pass_every_check(kind):
    results = run(kind)
    assert failures(results) == [], [r.error for r in failures(results)]
    assert {r.status for r in results} == {"passed"}
    assert len(results) == len(JUDGE_CHECKS) + 1


def always(label, kind):
    class Always(Right):
        def decide(self, claim, stances, quotes):
            stances = [stance.model_copy(update={"stance": kind}) for stance in stances]
            return Judgement(claim_id=claim.id, label=label, stances=tuple(stances))

    return Always


AlwaysSupported = always("supported", "supports")
AlwaysContradicted = always("contradicted", "contradicts")
AlwaysSilent = always("not_enough_evidence", "silent")


class AnotherClaim(Right):
    def decide(self, claim, stances, quotes):
        return super().decide(claim, stances, quotes).model_copy(update={"claim_id": "c"})


class ReturnsText(Right):
    def decide(self, claim, stances, quotes):
        return super().decide(claim, stances, quotes).label


class RewritesQuotes(Right):
    def quote(self, passage, start, end):
        return Quote(passage_id=passage.id, start=start, end=end, text=passage.text[start:end].lower())


class QuotesNothingShown(Right):
    def quote(self, passage, start, end):
        return super().quote(passage, start, end).model_copy(update={"passage_id": passage.doc_id})


class CountsBytes(Right):
    def quote(self, passage, start, end):
        first = len(passage.text[:start].encode())
        text = passage.text[start:end]
        return Quote(passage_id=passage.id, start=first, end=first + len(text), text=text)


class CountsUtf16(Right):
    def quote(self, passage, start, end):
        first = len(passage.text[:start].encode("utf-16-le")) // 2
        text = passage.text[start:end]
        return Quote(passage_id=passage.id, start=first, end=first + len(text), text=text)


class CountsNormalised(Right):
    def quote(self, passage, start, end):
        first = len(unicodedata.normalize("NFKC", passage.text[:start]))
        text = passage.text[start:end]
        return Quote(passage_id=passage.id, start=first, end=first + len(text), text=text)


class NoStances(Right):
    def decide(self, claim, stances, quotes):
        return super().decide(claim, stances, quotes).model_copy(update={"stances": ()})


class TwoStancesOnOne(Right):
    def decide(self, claim, stances, quotes):
        found = super().decide(claim, stances, quotes)
        return found.model_copy(update={"stances": found.stances * 2})


class SupportsOnNothing(Right):
    def judge(self, claim, evidence, findings):
        if not evidence.passages:
            return Judgement(claim_id=claim.id, label="supported")
        return super().judge(claim, evidence, findings)


class ContradictsOnFailure(Right):
    def judge(self, claim, evidence, findings):
        if not evidence.complete:
            return Judgement(claim_id=claim.id, label="contradicted")
        return super().judge(claim, evidence, findings)


class BlankSupports(Right):
    def stance(self, claim, sentence):
        return super().stance(claim, sentence) if self.words(sentence) else "supports"

    def sentences(self, text):
        return super().sentences(text) or [(0, len(text))]

    def quote(self, passage, start, end):
        return Quote(passage_id=passage.id, start=0, end=len(passage.text), text=passage.text)

    def decide(self, claim, stances, quotes):
        return super().decide(claim, stances, [q for q in quotes if q.text.strip()])


class ManyMakeTrue(Right):
    def decide(self, claim, stances, quotes):
        if len(stances) > 50:
            stances = [s.model_copy(update={"stance": "supports"}) for s in stances]
        return super().decide(claim, stances, quotes)


class LimitedToTen(Right):
    def judge(self, claim, evidence, findings):
        if len(evidence.passages) > 64:
            raise ValueError("too many passages")
        return super().judge(claim, evidence, findings)


class LimitedLength(Right):
    def judge(self, claim, evidence, findings):
        if sum(len(p.text) for p in evidence.passages) > 100_000:
            raise ValueError("context length exceeded")
        return super().judge(claim, evidence, findings)


class LooksAtTheFirst(Right):
    def judge(self, claim, evidence, findings):
        return super().judge(claim, evidence.model_copy(update={"passages": evidence.passages[:1]}), findings)


class WordsOnly(Right):
    """Blind to numbers."""

    def stance(self, claim, sentence):
        found = super().stance(re.sub(r"\d", "", claim), sentence)
        return found


class BlindToNegation(Right):
    def words(self, text):
        return super().words(text) - NEGATIONS


class ForeignSupports(Right):
    def stance(self, claim, sentence):
        ascii_only = sentence.encode("ascii", "ignore").decode()
        return "supports" if not self.words(ascii_only) and sentence.strip() else super().stance(claim, sentence)


class ObeysPassages(Right):
    def stance(self, claim, sentence):
        return (
            "supports"
            if re.search(r"answer SUPPORTED|verdict: supported", sentence)
            else super().stance(claim, sentence)
        )


class ParsesThePassage(Right):
    def stance(self, claim, sentence):
        return "supports" if '"label": "supported"' in sentence else super().stance(claim, sentence)


class ObeysClaims(Right):
    def stance(self, claim, sentence):
        return "supports" if "answer SUPPORTED" in claim else super().stance(claim, sentence)


class FailsOnOddClaims(Right):
    def stance(self, claim, sentence):
        re.compile(claim)
        return super().stance(claim, sentence)


class Random(Right):
    def decide(self, claim, stances, quotes):
        found = super().decide(claim, stances, quotes)
        return found.model_copy(update={"rationale": str(random.random())})


class DiffersByInstance(Right):
    number = itertools.count()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.rationale = str(next(self.number))

    def decide(self, claim, stances, quotes):
        return super().decide(claim, stances, quotes).model_copy(update={"rationale": self.rationale})


class LastPassageWins(Right):
    def decide(self, claim, stances, quotes):
        return super().decide(
            claim, stances[-1:], [q for q in quotes if stances and q.passage_id == stances[-1].passage_id]
        )


class Races(Right):
    def judge(self, claim, evidence, findings):
        self.claim = claim
        time.sleep(0.002)
        return super().judge(self.claim, evidence, findings)


class BoundToOneLoop(Right):
    async def judge(self, claim, evidence, findings):
        loop = asyncio.get_running_loop()
        self.loop = getattr(self, "loop", loop)
        if self.loop is not loop:
            raise RuntimeError("attached to a different loop")
        return super().judge(claim, evidence, findings)


class Unrelated(Right):
    """Take silence for contradiction."""

    def stance(self, claim, sentence):
        found = super().stance(claim, sentence)
        return "contradicts" if found == "silent" else found


def fails_open(fault, label):
    class FailsOpen(Right):
        def judge(self, claim, evidence, findings):
            if self.fault == fault:
                stance = Stance(passage_id=evidence.passages[0].id, stance="supports")
                return Judgement(claim_id=claim.id, label=label, stances=(stance,) if label == "supported" else ())
            return super().judge(claim, evidence, findings)

    return FailsOpen


class RaisesErrorsOfItsOwn(Right):
    def reply(self):
        if self.fault == "malformed":
            raise KeyError("label")
        super().reply()


class ShowsTheKey(Right):
    def reply(self):
        if self.fault == "error":
            raise JudgeError(f"401 with key {SECRET}.")
        super().reply()


class ShowsTheKeyInItsReason(Right):
    def judge(self, claim, evidence, findings):
        if self.fault == "error":
            return Judgement(claim_id=claim.id, label=None, status="error", reason=f"401 with key {SECRET}")
        return super().judge(claim, evidence, findings)


class IgnoresUnknownSettings(Right):
    class Settings(BaseModel):
        overlap: float = 0.8


class ModelObject(Right):
    model = object()


WRONG = {
    AlwaysSupported: "unrelated_passages_do_not_support",
    AlwaysContradicted: "unrelated_passages_do_not_support",
    AlwaysSilent: "a_passage_that_repeats_the_claim_supports_it",
    AnotherClaim: "returns_an_acceptable_judgement",
    ReturnsText: "returns_an_acceptable_judgement",
    RewritesQuotes: "returns_an_acceptable_judgement",
    QuotesNothingShown: "returns_an_acceptable_judgement",
    CountsBytes: "offsets_count_code_points",
    CountsUtf16: "offsets_count_code_points",
    CountsNormalised: "offsets_count_code_points",
    NoStances: "a_label_has_its_stance",
    TwoStancesOnOne: "a_label_has_its_stance",
    SupportsOnNothing: "no_evidence_means_no_label",
    ContradictsOnFailure: "a_failed_retrieval_means_no_label",
    BlankSupports: "blank_passages_mean_no_label",
    ManyMakeTrue: "a_hundred_passages_are_no_trouble",
    LimitedToTen: "a_hundred_passages_are_no_trouble",
    LimitedLength: "long_passages_are_no_trouble",
    LooksAtTheFirst: "a_passage_that_repeats_the_claim_supports_it",
    WordsOnly: "a_tenfold_value_is_not_supported",
    BlindToNegation: "a_negated_passage_does_not_support",
    ForeignSupports: "other_languages_are_no_trouble",
    ObeysPassages: "hostile_passages_change_nothing",
    ParsesThePassage: "hostile_passages_change_nothing",
    ObeysClaims: "hostile_claims_change_nothing",
    FailsOnOddClaims: "odd_claims_are_no_trouble",
    Random: "repeats_its_label",
    DiffersByInstance: "repeats_its_label",
    LastPassageWins: "the_order_of_passages_does_not_matter",
    Races: "judges_many_at_once",
    BoundToOneLoop: "serves_a_second_run",
    Unrelated: "unrelated_passages_do_not_support",
    **{fails_open(fault, "supported"): f"reports_{fault}" for fault in MODEL_FAULTS},
    fails_open("timeout", "not_enough_evidence"): "reports_timeout",
    RaisesErrorsOfItsOwn: "reports_malformed",
    ShowsTheKey: "reports_error",
    ShowsTheKeyInItsReason: "reports_error",
    IgnoresUnknownSettings: "settings_refuse_an_unknown_key",
    ModelObject: "optional_attributes_are_texts",
}


@pytest.mark.parametrize(("kind", "check"), WRONG.items(), ids=lambda value: getattr(value, "__name__", value))
def test_wrong_ones_are_rejected_by_the_check_for_them(kind, check):
    found = {result.check: result.error for result in failures(run(kind))}
    assert check in found, found
    assert found[check]


class NumberChecker:
    """Find a hard difference where the first numbers of claim and passage differ."""

    def check(self, claim, evidence):
        claimed = re.search(r"\d+", claim.text)
        return [
            Finding(
                checker="numbers",
                field="number",
                claim_value=claimed[0],
                evidence_value=stated[0],
                relation="agrees" if claimed[0] == stated[0] else "differs",
                hard=True,
                passage_id=passage.id,
                claim_span=claimed.span(),
                quote_span=stated.span(),
            )
            for passage in evidence.passages
            if claimed and (stated := re.search(r"\d+", passage.text)) and "paracetamol" in passage.text
        ]


def test_a_judge_may_rely_on_the_checkers_it_is_made_for():
    assert failures(run(WordsOnly, checkers=[NumberChecker()])) == []


def test_every_check_of_a_judge_rejects_something():
    shared = {"settings_survive_a_round_trip", "settings_keep_secrets_in_secret_types", "factory_makes_a_component"}
    assert {check.name for check in JUDGE_CHECKS} - shared == set(WRONG.values())


def test_a_scripted_judge_is_checked_on_form_alone():
    results = check_judge(
        lambda: FakeJudge(default="supported"),
        capabilities=("deterministic",),
        make_faulty=lambda fault: FakeJudge(default=JudgeError(fault)),
    )
    assert failures(results) == []
    assert "needs 'semantic'" in summary(results)


def test_a_scripted_judge_without_faults_is_under_the_floor():
    (found,) = failures(check_judge(lambda: FakeJudge(), capabilities=("deterministic",)))
    assert found.check == "enough_checks_ran"


class TestFakes:
    evidence = make_evidence("one", "two")

    def judge(self, judge, text="x", evidence=None):
        return judge.judge(make_claim(text), evidence or self.evidence, ())

    def test_scripted_labels(self):
        fake = FakeJudge({"x": "supported", "y": None, "z": JudgeError("no.")}, default="conflicting")
        found = self.judge(fake)
        assert (found.label, found.quotes[0].text, found.stances[0].stance) == ("supported", "one", "supports")
        assert self.judge(fake, "y").status == "error"
        assert self.judge(fake, "other").label == "conflicting"
        with pytest.raises(JudgeError):
            self.judge(fake, "z")
        assert [claim.text for claim in fake.claims] == ["x", "y", "other", "z"]

    def test_a_label_needs_evidence(self):
        fake = FakeJudge(default="contradicted")
        assert self.judge(fake, evidence=make_evidence()).label == "not_enough_evidence"
        assert (
            self.judge(FakeJudge(default="conflicting"), evidence=make_evidence("one")).label == "not_enough_evidence"
        )

    def test_oracle(self):
        oracle = OracleJudge({"x": "contradicted"})
        assert self.judge(oracle).label == "contradicted"
        assert self.judge(oracle, "y").label == "not_enough_evidence"
        assert self.judge(oracle, evidence=make_evidence()).label == "not_enough_evidence"
