"""Query writing and the step-by-step search of ``safe``."""

from __future__ import annotations

import runpy
from pathlib import Path

import anyio
import pytest
from factcheck_llm.gathering import Gathered
from factcheck_llm.queries import NeutralQueryWriter
from factcheck_llm.safe import SafeJudge
from factcheck_llm.wording import about, cleaned
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import ConfigError, StageError, TransientError
from factcheck.schema import AnswerReport, Claim, Evidence, Query, Retrieval
from factcheck.testing import FakeRetriever, make_claim, make_evidence, make_passages

FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
FakeClient, judgement = FAKES["FakeClient"], FAKES["judgement"]
CLAIM = "Adults should take no more than 40 g of paracetamol in 24 hours."
TRUE = "Adults should take no more than 4 g of paracetamol in 24 hours."


def about_claim(text=CLAIM, *, question="", context=""):
    span = (0, len(text))
    return Claim(id="c", answer_id="a", text=text, question=question, context=context, span=span, sentence_span=span)


class TestWording:
    @pytest.mark.parametrize(
        ("query", "sent"),
        [
            ("paracetamol maximum daily dose adults", "paracetamol maximum daily dose adults"),
            ("paracetamol 40 g in 24 hours", "paracetamol in"),
            ("is 40g paracetamol safe?", "is paracetamol safe?"),
            ("paracetamol 4 g limit", "paracetamol 4 g limit"),
            ('"paracetamol" -liver site:evil.example https://evil.example/?q=x', "paracetamol liver"),
            ("paracetamol\n\tdose", "paracetamol dose"),
            ("type 2 diabetes and paracetamol", "type 2 diabetes and paracetamol"),
            ("40 g", ""),
            ("…", ""),
        ],
    )
    def test_a_query_is_one_line_without_addresses_and_claimed_values(self, query, sent):
        assert cleaned(query, about_claim()) == sent

    def test_a_long_query_is_cut_at_a_word(self):
        sent = cleaned("paracetamol dosing " * 30, about_claim())
        assert 280 < len(sent) <= 300
        assert set(sent.split()) == {"paracetamol", "dosing"}

    def test_a_value_of_the_question_is_no_secret(self):
        claim = about_claim("He should take 10 mg/kg.", question="My son weighs 12 kg. How much?")
        assert cleaned("dose for a child of 12 kg at 10 mg/kg", claim) == "dose for a child of 12 kg at"
        claim = about_claim("A child of 12 kg takes 120 mg.", question="My son weighs 12 kg. How much?")
        assert cleaned("dose 12 kg 120 mg", claim) == "dose 12 kg"

    @given(st.text(max_size=400))
    def test_any_text_becomes_one_line_or_nothing(self, text):
        sent = cleaned(text, about_claim())
        assert len(sent) <= 300
        assert sent == " ".join(sent.split())
        assert "40 g" not in sent
        assert sent == "" or any(char.isalnum() for char in sent)

    def test_a_query_about_something_else_is_told(self):
        assert about("paracetamol dosing", about_claim())
        assert about("acetaminophen adults", about_claim())
        assert not about("weather in the north", about_claim())
        assert about("对乙酰氨基酚", about_claim())


class TestNeutralQueryWriter:
    def write(self, *replies, claim=None, **settings):
        script = iter(replies)
        client = FakeClient(lambda prompt, turn: {"queries": next(script)})
        writer = NeutralQueryWriter(NeutralQueryWriter.Settings(**settings), client=client)
        return anyio.run(writer.write_queries, claim or about_claim()), client

    def test_queries_are_clean_distinct_and_not_too_many(self):
        written = ["paracetamol 40 g dose", "Paracetamol  dose", "paracetamol liver", "paracetamol adults maximum"]
        found, client = self.write(written, count=2)
        assert found == ["Paracetamol dose", "paracetamol liver"]
        assert client.calls[0][0] == "query_writer"
        assert "up to 2 short queries" in client.calls[0][1][0]["content"]

    @pytest.mark.parametrize("useless", [[], ["", " "], ["weather in the north"], ["40 g"]])
    def test_without_a_usable_query_it_asks_once_more_and_then_fails(self, useless):
        found, client = self.write(useless, ["paracetamol dose"])
        assert (found, len(client.calls)) == (["paracetamol dose"], 2)
        with pytest.raises(StageError, match="asked twice"):
            self.write(useless, useless)


class TestGathered:
    def retrieval(self, *texts, status="ok", corpus="web", rank=1):
        passages = make_passages(texts, corpus=corpus)
        return Retrieval(query_id="q", retriever="r", status=status, passages=passages if status == "ok" else ())

    def start(self, *texts, complete=True):
        return Gathered((), (), make_evidence(*texts, complete=complete))

    def add(self, found, *retrievals, limit=20):
        return found.extended(Query(id="c.s1", claim_id="c", text="q"), retrievals, limit)

    def test_new_passages_come_behind_in_the_order_of_their_ranks(self):
        found = self.add(self.start("one"), self.retrieval("two", "three"), self.retrieval("four", corpus="other"))
        assert [p.text for p in found.evidence.passages] == ["one", "two", "four", "three"]
        assert [p.rank for p in found.evidence.passages] == [1, 2, 3, 4]
        scores = [p.score for p in found.evidence.passages]
        assert scores == sorted(scores, reverse=True)
        ids = [p.id for p in found.evidence.passages]
        assert len(set(ids)) == 4

    def test_a_passage_that_is_there_is_not_added(self):
        first = self.add(self.start("one"), self.retrieval("two", "three"))
        again = self.add(first, self.retrieval("three", "two"), self.retrieval("one  ", corpus="elsewhere"))
        assert [p.text for p in again.evidence.passages] == ["one", "two", "three"]
        assert len(again.retrievals) == 3

    def test_a_failed_retrieval_makes_the_evidence_incomplete_for_good(self):
        failed = self.add(self.start("one"), self.retrieval(status="failed"))
        assert not failed.evidence.complete
        assert not self.add(failed, self.retrieval("two")).evidence.complete
        assert self.add(self.start("one"), self.retrieval("two")).evidence.complete
        assert not self.add(self.start("one", complete=False), self.retrieval("two")).evidence.complete

    def test_there_is_a_limit(self):
        found = self.add(self.start("one"), self.retrieval("two", "three", "four"), limit=3)
        assert [p.text for p in found.evidence.passages] == ["one", "two", "three"]


class TestSafe:
    """Scripted steps: each is a query, or True where the model says that it is enough."""

    def gather(self, scripted, retriever, *, texts=(), known=(), **settings):
        script = iter(scripted)

        def brain(prompt, turn):
            self.prompts.append(prompt)
            step = next(script)
            if isinstance(step, Exception):
                return step
            query = "paracetamol further" if step is True else step
            return {"missing": "m", "enough": step is True, "query": query}

        self.prompts = []
        judge = SafeJudge(SafeJudge.Settings(**settings), client=FakeClient(brain), retrievers={"fake": retriever})
        asked = [Query(id=f"c.q{i}", claim_id="c", text=text) for i, text in enumerate(known, start=1)]
        return anyio.run(judge.gather, about_claim(), make_evidence(*texts), asked)

    def texts(self, found):
        return [passage.text for passage in found.evidence.passages]

    def test_each_step_sees_what_the_ones_before_found(self):
        retriever = FakeRetriever({"paracetamol limit": ["It has a limit."], "paracetamol adults": [TRUE]})
        found = self.gather(["paracetamol limit", "paracetamol adults", True], retriever, texts=["Start."])
        assert self.texts(found) == ["Start.", "It has a limit.", TRUE]
        assert [query.text for query in found.queries] == ["paracetamol limit", "paracetamol adults"]
        assert [query.id for query in found.queries] == ["c.s1", "c.s2"]
        known = [list(FAKES["passages_of"](prompt, "known").values()) for prompt in self.prompts]
        assert known == [["Start."], ["Start.", "It has a limit."], ["Start.", "It has a limit.", TRUE]]
        asked = [[part.text for part in FAKES["parts_of"](prompt)["asked"].parts] for prompt in self.prompts]
        assert asked == [[], ["paracetamol limit"], ["paracetamol limit", "paracetamol adults"]]

    def test_it_stops_when_decided(self):
        retriever = FakeRetriever(default=[TRUE])
        found = self.gather([True], retriever, texts=["Start."])
        assert (found.queries, retriever.queries, self.texts(found)) == ((), [], ["Start."])

    def test_without_evidence_nothing_is_decided(self):
        found = self.gather([True, True], FakeRetriever(default=[TRUE]))
        assert ([query.text for query in found.queries], len(self.prompts)) == (["paracetamol further"], 2)

    def test_it_stops_at_a_repeated_query_and_at_an_empty_one(self):
        retriever = FakeRetriever(default=[TRUE])
        found = self.gather(["Paracetamol  dose"], retriever, known=["paracetamol dose"])
        assert found.queries == ()
        assert self.gather([""], retriever).queries == ()
        assert self.gather(["40 g"], retriever).queries == ()

    def test_it_stops_when_nothing_new_comes(self):
        retriever = FakeRetriever(default=[TRUE])
        steps = [f"paracetamol {word}" for word in ("one", "two", "three", "four", "five")]
        assert len(self.gather(steps, retriever, patience=1).queries) == 3
        assert len(self.gather(steps, retriever, patience=0).queries) == 2
        assert len(self.gather(steps, FakeRetriever(fault="empty"), patience=1).queries) == 2

    def test_it_stops_after_the_last_step_and_at_the_most_passages(self):
        words = ("one", "two", "three", "four", "five", "six", "seven")
        results = {f"paracetamol {word}": [f"Passage {word}.", f"Other {word}."] for word in words}
        steps = list(results)
        assert len(self.gather(steps, FakeRetriever(results)).queries) == 5
        assert len(self.gather(steps, FakeRetriever(results), steps=2).queries) == 2
        found = self.gather(steps, FakeRetriever(results), passages=3)
        assert (len(found.queries), len(found.evidence.passages)) == (2, 3)

    def test_a_failed_search_is_no_silence(self):
        found = self.gather(["paracetamol dose", True], FakeRetriever(fault="timeout"), texts=["Start."])
        assert [item.status for item in found.retrievals] == ["failed"]
        assert not found.evidence.complete

    def test_a_failing_model_is_raised(self):
        with pytest.raises(TransientError):
            self.gather([TransientError("no reply.")], FakeRetriever())

    def test_a_host_lends_the_searches_that_the_settings_name(self):
        sent = []

        async def search(query, k):
            sent.append((query.text, k))
            return [Retrieval(query_id=query.id, retriever="web", status="ok", passages=make_passages([TRUE]))]

        script = iter([{"enough": False, "query": "paracetamol dose"}, {"enough": True}])
        client = FakeClient(lambda prompt, turn: next(script))
        host = FAKES["FakeHost"](client, searches={("web/serper",): search})
        judge = SafeJudge(SafeJudge.Settings(retrievers=("web/serper",), results=4))
        judge.connect(host)
        found = anyio.run(judge.gather, about_claim(), Evidence(claim_id="c"))
        assert sent == [("paracetamol dose", 4)]
        assert self.texts(found) == [TRUE]
        with pytest.raises(ConfigError, match="no retriever"):
            anyio.run(SafeJudge(client=client).gather, about_claim(), Evidence(claim_id="c"))

    def test_what_was_gathered_can_be_judged_and_reported(self):
        def brain(prompt, turn):
            if "known" in FAKES["parts_of"](prompt):
                return {"enough": False, "query": "paracetamol dose"}
            return FAKES["literal_judge"](prompt, turn)

        claim = make_claim(TRUE)
        judge = SafeJudge(client=FakeClient(brain), retrievers={"fake": FakeRetriever(default=[TRUE])})

        async def run():
            gathered = await judge.gather(claim, Evidence(claim_id="c"))
            return gathered, await judge.judge(claim, gathered.evidence, ())

        gathered, found = anyio.run(run)
        assert (found.label, found.judge) == ("supported", "safe")
        from factcheck.schema import Accounting, Answer, Manifest, Verdict

        verdict = Verdict(claim_id="c", label="supported", risk=0.1, supporting=found.quotes)
        report = AnswerReport(
            answer=Answer(id="a", text=TRUE),
            claims=(claim,),
            queries=gathered.queries,
            retrievals=gathered.retrievals,
            evidence=(gathered.evidence,),
            judgements=(found,),
            verdicts=(verdict,),
            accounting=Accounting.of([verdict]),
            manifest=Manifest(version="0"),
        )
        assert AnswerReport.model_validate_json(report.model_dump_json()) == report
