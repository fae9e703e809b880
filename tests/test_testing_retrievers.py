"""The checks of a retriever reject every deliberately wrong one, each by the check that is meant for it."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import re
import time
from collections import Counter

import anyio
import pytest
from pydantic import BaseModel, ConfigDict, SecretStr

from factcheck.errors import CorpusError, PermanentError, RateLimitedError, TransientError, UnknownNameError
from factcheck.schema import Passage
from factcheck.testing import DOCUMENTS, FakeRetriever, check_retriever, failures, summary
from factcheck.testing.retrievers import RETRIEVER_CHECKS, RETRIEVER_FAULTS

ALL = ("deterministic", "indexable", "lexical")
SECRET = "sk-live-0123456789"


class Right:
    """Rank by shared terms, rare ones first; the wrong ones below override one thing each."""

    version = "1"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        size: int = 1
        api_key: SecretStr = SecretStr("")

    def __init__(self, documents=DOCUMENTS, fault=""):
        self.documents = documents if isinstance(documents, tuple | list) else DOCUMENTS
        self.fault = fault
        self.counts = [Counter(self.terms(document.text)) for document in self.documents]

    def terms(self, text):
        return re.findall(r"\w+", text.lower())

    def weight(self, term):
        held = sum(term in counts for counts in self.counts)
        return math.log(1 + len(self.counts) / held) if held else 0.0

    def source(self):
        """Fail as the source would."""
        if self.fault == "error":
            raise PermanentError("the source refused.")
        if self.fault == "timeout":
            raise TransientError("no reply.")
        if self.fault == "rate_limited":
            raise RateLimitedError("slow down.", retry_after=2.0)
        if self.fault == "malformed":
            raise PermanentError("no JSON.")

    def ranked(self, text):
        wanted = sorted(set(self.terms(text)))
        scored = []
        for document, counts in zip(self.documents, self.counts, strict=True):
            score = sum(self.weight(term) * counts[term] / (counts[term] + 1) for term in wanted)
            if score > 0:
                scored.append((score, document))
        return sorted(scored, key=lambda pair: (-pair[0], pair[1].id))

    def passage(self, rank, score, document):
        return Passage(id=document.id, doc_id=document.id, corpus="right", text=document.text, score=score, rank=rank)

    def retrieve(self, query, k):
        self.source()
        if self.fault == "empty":
            return []
        found = self.ranked(query.text)[:k]
        return [self.passage(rank, score, document) for rank, (score, document) in enumerate(found, start=1)]


class RightAsync(Right):
    async def retrieve(self, query, k):
        await anyio.sleep(0)
        return super().retrieve(query, k)


def run(kind, **more):
    arguments = {
        "capabilities": ALL,
        "make_faulty": lambda fault: kind(DOCUMENTS, fault),
        "factory": kind,
        "secrets": (SECRET,),
        "time_limit": 5.0,
    }
    return check_retriever(kind, **{**arguments, **more})


@pytest.mark.parametrize("kind", [Right, RightAsync])
def test_right_ones_pass_every_check(kind):
    results = run(kind)
    assert failures(results) == [], [r.error for r in failures(results)]
    assert {r.status for r in results} == {"passed"}
    assert len(results) == len(RETRIEVER_CHECKS) + 1


def test_a_live_one_is_checked_on_queries_of_its_own():
    results = check_retriever(
        lambda: FakeRetriever({"a": ["one", "two"], "b": ["three"]}),
        queries=["a", "b"],
        make_faulty=lambda fault: FakeRetriever(fault=fault),
    )
    assert failures(results) == []
    assert {r.status for r in results} == {"passed", "skipped"}
    assert "needs 'indexable'" in summary(results)


class Generator(Right):
    def retrieve(self, query, k):
        yield from super().retrieve(query, k)


class Dicts(Right):
    def retrieve(self, query, k):
        return [passage.model_dump() for passage in super().retrieve(query, k)]


class NoneForNothing(Right):
    def retrieve(self, query, k):
        return super().retrieve(query, k) or None


class IgnoresK(Right):
    def retrieve(self, query, k):
        return super().retrieve(query, 50)


class OneTooMany(Right):
    def retrieve(self, query, k):
        return super().retrieve(query, k + 1)


class DropsTheLast(Right):
    def retrieve(self, query, k):
        found = super().retrieve(query, k)
        return found[:-1] if len(found) > 1 else found


class CachesWithoutK(Right):
    def retrieve(self, query, k):
        self.cache = getattr(self, "cache", {})
        found = self.cache.setdefault(query.text, super().retrieve(query, k))
        return found[:k]


class RanksFromZero(Right):
    def retrieve(self, query, k):
        return [p.model_copy(update={"rank": p.rank - 1}) for p in super().retrieve(query, k)]


class EqualRanks(Right):
    def passage(self, rank, score, document):
        return super().passage(1, score, document)


class Distances(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, 1 / (1 + score), document)


class InfiniteScore(Right):
    def retrieve(self, query, k):
        return [p.model_copy(update={"score": math.inf}) if p.rank == 1 else p for p in super().retrieve(query, k)]


class RepeatedIds(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document).model_copy(update={"id": "p"})


class EverythingTwice(Right):
    def retrieve(self, query, k):
        found = [p for p in super().retrieve(query, k) for _ in range(2)][:k]
        return [p.model_copy(update={"rank": rank}) for rank, p in enumerate(found, start=1)]


class Shuffles(Right):
    def ranked(self, text):
        found = super().ranked(text)
        scores = [score for score, _ in found]
        documents = random.sample([document for _, document in found], len(found))
        return list(zip(scores, documents, strict=True))


class Drifts(Right):
    calls = itertools.count()

    def passage(self, rank, score, document):
        return super().passage(rank, score + next(self.calls), document)


class LearnsFromQueries(Right):
    def ranked(self, text):
        self.seen = getattr(self, "seen", 0) + 1
        return [(score / self.seen, document) for score, document in super().ranked(text)]


class DiffersByInstance(Right):
    number = itertools.count(1)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.factor = next(self.number)

    def weight(self, term):
        return super().weight(term) * self.factor


class SharesItsCache(Right):
    def retrieve(self, query, k):
        self.cache = getattr(self, "cache", {})
        if (query.text, k) not in self.cache:
            self.cache[query.text, k] = super().retrieve(query, k)
        return self.cache[query.text, k]


class RacesOnAnAttribute(Right):
    def retrieve(self, query, k):
        self.query = query
        time.sleep(0.002)
        return super().retrieve(self.query, k)


class RacesBetweenAwaits(Right):
    async def retrieve(self, query, k):
        self.query = query
        await anyio.sleep(0.002)
        return super().retrieve(self.query, k)


class PadsWithAnything(Right):
    def ranked(self, text):
        found = super().ranked(text)
        held = {document.id for _, document in found}
        return [*found, *((0.0, d) for d in self.documents if d.id not in held)]


class LowersText(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document._replace(text=document.text.lower()))


class CutsText(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document._replace(text=document.text[:30] + "…"))


class AddsTheTitle(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document._replace(text=f"{document.title}. {document.text}"))


class BlankText(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document._replace(text=" "))


class WrongDocument(Right):
    def passage(self, rank, score, document):
        return super().passage(rank, score, document).model_copy(update={"doc_id": f"{document.id}.txt"})


class AsciiOnly(Right):
    def terms(self, text):
        return re.findall(r"[a-z0-9]+", text.lower())


class IgnoresTheQuery(Right):
    def ranked(self, text):
        return [(1.0, document) for document in self.documents]


class OkapiWeight(Right):
    def weight(self, term):
        held = sum(term in counts for counts in self.counts)
        return math.log((len(self.counts) - held + 0.5) / (held + 0.5))


class FullDocumentsOnly(Right):
    """Score by the share of the query that a document holds, blind to how rare a term is."""

    def ranked(self, text):
        wanted = set(self.terms(text))
        found = [
            (len(wanted & set(c)) / len(wanted), d) for c, d in zip(self.counts, self.documents, strict=True) if wanted
        ]
        return sorted([(s, d) for s, d in found if s == 1.0], key=lambda pair: pair[1].id)[:1]


class DividesByTheSize(Right):
    def ranked(self, text):
        mean = sum(c.total() for c in self.counts) / len(self.counts)
        return [(score / mean, document) for score, document in super().ranked(text)]


class CompilesTheQuery(Right):
    def ranked(self, text):
        re.compile(text)
        return super().ranked(text)


class ExitsOnOddInput(Right):
    def ranked(self, text):
        if "\x00" in text:
            raise SystemExit(2)
        return super().ranked(text)


class QuadraticInTheQuery(Right):
    def ranked(self, text):
        if len(text) > 10_000:
            time.sleep(1.0)
        return super().ranked(text)


class BoundToOneLoop(Right):
    async def retrieve(self, query, k):
        loop = asyncio.get_running_loop()
        self.loop = getattr(self, "loop", loop)
        if self.loop is not loop:
            raise RuntimeError("attached to a different loop")
        return super().retrieve(query, k)


class SwallowsErrors(Right):
    def retrieve(self, query, k):
        try:
            return super().retrieve(query, k)
        except PermanentError:
            return []


class SwallowsTimeouts(Right):
    def retrieve(self, query, k):
        try:
            return super().retrieve(query, k)
        except TransientError:
            return []


class AnswersFromOldResultsWhenLimited(Right):
    def source(self):
        if self.fault != "rate_limited":
            super().source()


class CallsTheLimitPermanent(Right):
    def source(self):
        if self.fault == "rate_limited":
            raise PermanentError("429")
        super().source()


class RaisesErrorsOfItsOwn(Right):
    def source(self):
        if self.fault == "malformed":
            raise KeyError("results")
        super().source()


class RaisesOnNothing(Right):
    def retrieve(self, query, k):
        if self.fault == "empty":
            raise PermanentError("nothing found.")
        return super().retrieve(query, k)


class ShowsTheKey(Right):
    def source(self):
        if self.fault == "error":
            raise PermanentError(f"403 for url 'https://api.example/search?key={SECRET}'.")
        super().source()


class IgnoresUnknownSettings(Right):
    class Settings(BaseModel):
        size: int = 1


class PlainKey(Right):
    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        api_key: str = ""


class SettingsThatDrift(Right):
    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str = "x"

        def model_post_init(self, context):
            object.__setattr__(self, "name", self.name + "x")


class FactoryWithoutSettings(Right):
    def __init__(self, documents=DOCUMENTS, fault="", *, settings=None):
        if isinstance(documents, BaseModel):
            raise TypeError("takes no settings")
        super().__init__(documents, fault)


class ModelObject(Right):
    model = object()


WRONG = {
    Generator: "returns_passages",
    Dicts: "returns_passages",
    NoneForNothing: "returns_passages",
    IgnoresK: "honours_k",
    OneTooMany: "honours_k",
    DropsTheLast: "finds_all_and_only_matches",
    CachesWithoutK: "a_small_k_does_not_stick",
    RanksFromZero: "ranks_and_scores_are_ordered",
    EqualRanks: "ranks_and_scores_are_ordered",
    Distances: "ranks_and_scores_are_ordered",
    InfiniteScore: "ranks_and_scores_are_ordered",
    RepeatedIds: "ids_are_unique",
    EverythingTwice: "ids_are_unique",
    Shuffles: "repeats_itself",
    Drifts: "repeats_itself",
    LearnsFromQueries: "repeats_itself",
    DiffersByInstance: "a_fresh_instance_repeats_it",
    SharesItsCache: "results_are_not_shared",
    RacesOnAnAttribute: "serves_many_at_once",
    RacesBetweenAwaits: "serves_many_at_once",
    PadsWithAnything: "no_match_is_an_empty_list",
    LowersText: "text_is_verbatim",
    CutsText: "text_is_verbatim",
    AddsTheTitle: "text_is_verbatim",
    BlankText: "returns_passages",
    WrongDocument: "text_is_verbatim",
    AsciiOnly: "signs_beyond_ascii_matter",
    IgnoresTheQuery: "the_query_matters",
    OkapiWeight: "a_common_word_still_finds",
    FullDocumentsOnly: "a_common_word_still_finds",
    DividesByTheSize: "an_empty_index_is_no_crash",
    CompilesTheQuery: "hostile_queries_do_no_harm",
    ExitsOnOddInput: "hostile_queries_do_no_harm",
    BoundToOneLoop: "serves_a_second_run",
    SwallowsErrors: "reports_error",
    SwallowsTimeouts: "reports_timeout",
    AnswersFromOldResultsWhenLimited: "reports_rate_limited",
    CallsTheLimitPermanent: "reports_rate_limited",
    RaisesErrorsOfItsOwn: "reports_malformed",
    RaisesOnNothing: "an_empty_reply_is_an_empty_list",
    ShowsTheKey: "reports_error",
    IgnoresUnknownSettings: "settings_refuse_an_unknown_key",
    PlainKey: "settings_keep_secrets_in_secret_types",
    SettingsThatDrift: "settings_survive_a_round_trip",
    FactoryWithoutSettings: "factory_makes_a_component",
    ModelObject: "optional_attributes_are_texts",
}


@pytest.mark.parametrize(("kind", "check"), WRONG.items(), ids=lambda value: getattr(value, "__name__", value))
def test_wrong_ones_are_rejected_by_the_check_for_them(kind, check):
    found = {result.check: result.error for result in failures(run(kind))}
    assert check in found, found
    assert found[check]


def test_one_that_hangs_is_rejected_in_time():
    started = time.perf_counter()
    found = failures(run(QuadraticInTheQuery, time_limit=0.2, make_faulty=None))
    assert [result.check for result in found] == ["hostile_queries_do_no_harm"]
    assert "did not return within 0.2 s" in found[0].error
    assert time.perf_counter() - started < 30


def test_every_check_rejects_something():
    killers = set(WRONG.values())
    covered = {
        "the_host_accepts_the_results": IgnoresK,
        "each_document_finds_itself": IgnoresTheQuery,
        "one_document_is_enough": OkapiWeight,
    }
    for check, kind in covered.items():
        assert check in {result.check for result in failures(run(kind))}
    assert {check.name for check in RETRIEVER_CHECKS} == killers | set(covered)


def test_an_empty_index_may_say_so():
    class SaysSo(Right):
        def retrieve(self, query, k):
            if not self.documents:
                raise CorpusError("no documents.")
            return super().retrieve(query, k)

    assert failures(run(SaysSo)) == []


def test_faults_may_be_narrowed_and_are_then_skipped_visibly():
    results = {r.check: r for r in run(Right, faults=("error",))}
    assert results["reports_error"].status == "passed"
    assert (results["reports_timeout"].status, results["reports_timeout"].reason) == (
        "skipped",
        "needs 'fault timeout'",
    )


@pytest.mark.parametrize(
    "arguments", [{"capabilities": ("determinstic",)}, {"faults": ("eror",)}, {"expected_failures": {"honors_k": "x"}}]
)
def test_misspelt_arguments_are_errors(arguments):
    with pytest.raises(UnknownNameError, match="Did you mean"):
        run(Right, **arguments)


def test_capabilities_are_no_text():
    with pytest.raises(TypeError):
        run(Right, capabilities="indexable")


def test_without_anything_to_find_the_floor_fails():
    (found,) = failures(check_retriever(lambda: Right()))
    assert found.check == "enough_checks_ran"
    assert "queries" in found.error


def test_faults_are_those_of_the_fake():
    for fault in RETRIEVER_FAULTS:
        results = {
            r.check: r for r in run(FakeRetriever, capabilities=(), make_faulty=lambda f: FakeRetriever(fault=f))
        }
        name = "an_empty_reply_is_an_empty_list" if fault == "empty" else f"reports_{fault}"
        assert results[name].status == "passed"
