"""The model-backed stages through the real client, against a server that misbehaves."""

from __future__ import annotations

import json
import runpy
import time
from pathlib import Path

import anyio
import pytest
from factcheck_llm.decomposer import AtomicDecomposer
from factcheck_llm.judge import ModelJudge
from factcheck_llm.panel import PanelJudge
from factcheck_llm.queries import NeutralQueryWriter
from factcheck_llm.safe import SafeJudge

from factcheck.errors import FactcheckError, StageError
from factcheck.llm import Budget, BudgetExceededError, ModelClient, ModelSettings
from factcheck.testing import DecomposerSuite, FakeRetriever, JudgeSuite, make_answer, make_claim, make_evidence

FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
MISBEHAVING = runpy.run_path(str(Path(__file__).with_name("misbehaving.py")))
chat, status, reply, answering = (MISBEHAVING[name] for name in ("chat", "status", "reply", "answering"))
PATH = "/v1/chat/completions"
TRUE = "Adults should take no more than 4 g of paracetamol in 24 hours."
GOOD = FAKES["judgement"]("supported", ("p1", "supports", "no more than 4 g of paracetamol"))
FAULTS = {
    "error": status(401, "bad key sk-hidden"),
    "timeout": MISBEHAVING["hang"](30.0),
    "rate_limited": status(429, headers={"retry-after": "60"}),
    "empty": chat(""),
    "malformed": chat("I would say that this is supported."),
    "refused": chat("", refusal="I cannot help with that."),
    "truncated": chat(json.dumps(GOOD), finish="length"),
}


@pytest.fixture(scope="module")
def server():
    with MISBEHAVING["Server"]() as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(server):
    server.reset()


def settings(server, **more):
    given = {"base_url": f"{server.url}/v1", "model": "scripted-1", "key": "sk-hidden", "timeout": 0.3, "deadline": 1.0}
    return ModelSettings.model_validate({**given, **more})


def thinking(brain):
    """Answer each request as a model that thinks with ``brain``."""

    def think(seen):
        messages = seen.json()["messages"]
        turns = [message["content"] for message in messages if message["role"] == "user"]
        return chat(json.dumps(brain(turns[0], len(turns))))

    return answering(think)


class TestJudgeThroughTheServer(JudgeSuite):
    secrets = ("sk-hidden",)

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.server = server

    def make(self):
        self.server.script(PATH, thinking(FAKES["literal_judge"]))
        return ModelJudge(ModelJudge.Settings(model=settings(self.server, timeout=20, deadline=20)))

    def make_faulty(self, fault):
        self.server.script(PATH, FAULTS[fault])
        return ModelJudge(ModelJudge.Settings(model=settings(self.server)))


class TestDecomposerThroughTheServer(DecomposerSuite):
    secrets = ("sk-hidden",)
    capabilities = ("deterministic",)

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.server = server

    def make(self):
        self.server.script(PATH, thinking(FAKES["echo_splitter"]))
        return AtomicDecomposer(AtomicDecomposer.Settings(model=settings(self.server, timeout=20, deadline=20)))

    def make_faulty(self, fault):
        self.server.script(PATH, FAULTS[fault])
        return AtomicDecomposer(AtomicDecomposer.Settings(model=settings(self.server)))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_stage_says_what_went_wrong_in_time(server, fault):
    server.script(PATH, FAULTS[fault])
    claim, evidence = make_claim(TRUE), make_evidence(TRUE)
    table = settings(server)
    safe = SafeJudge(SafeJudge.Settings(model=table), retrievers={"fake": FakeRetriever(default=[TRUE])})
    for use, arguments in (
        (NeutralQueryWriter(NeutralQueryWriter.Settings(model=table)).write_queries, (claim,)),
        (safe.gather, (claim, evidence)),
        (ModelJudge(ModelJudge.Settings(model=table, batch=3, batch_wait=0.0)).judge, (claim, evidence, ())),
    ):
        started = time.monotonic()
        with pytest.raises(StageError) as caught:
            anyio.run(use, *arguments)
        assert time.monotonic() - started < 4
        assert "sk-hidden" not in f"{caught.value!r} {caught.value}"


def test_the_last_complete_json_value_counts(server):
    first = FAKES["judgement"]("contradicted", ("p1", "contradicts", "no more than 4 g of paracetamol"))
    server.script(PATH, chat(f"Example: {json.dumps(first)}\n\nNow the answer:\n```json\n{json.dumps(GOOD)}\n```"))
    judge = ModelJudge(ModelJudge.Settings(model=settings(server)))
    found = anyio.run(judge.judge, make_claim(TRUE), make_evidence(TRUE), ())
    assert found.label == "supported"


def test_a_bad_quote_costs_one_more_call_and_then_an_error(server):
    bad = FAKES["judgement"]("supported", ("p1", "supports", "no more than 5 g of paracetamol"))
    for replies, label in ((([bad, GOOD]), "supported"), ([bad, bad, GOOD], None)):
        server.reset()
        server.script(PATH, *(chat(json.dumps(item)) for item in replies))
        judge = ModelJudge(ModelJudge.Settings(model=settings(server)))
        found = anyio.run(judge.judge, make_claim(TRUE), make_evidence(TRUE), ())
        assert found.label == label
        assert server.count(PATH) == 2
        assert len(server.seen[1].json()["messages"]) == 3


def test_a_lone_surrogate_reaches_the_server(server):
    server.script(PATH, thinking(FAKES["literal_judge"]))
    judge = ModelJudge(ModelJudge.Settings(model=settings(server)))
    found = anyio.run(judge.judge, make_claim(TRUE), make_evidence(f"\udfff {TRUE}"), ())
    assert found.label in ("supported", "not_enough_evidence")
    assert server.count(PATH) == 1


def test_the_end_of_the_budget_is_no_judgement(server):
    server.script(PATH, thinking(FAKES["literal_judge"]))
    client = ModelClient(settings(server), budget=Budget(max_calls=1))
    judges = {"one": ModelJudge(client=client), "two": ModelJudge(client=client)}
    panel = PanelJudge(PanelJudge.Settings(judges=("one", "two")), judges=judges)
    for made in (panel, judges["one"]):
        with pytest.raises(BudgetExceededError):
            anyio.run(made.judge, make_claim(TRUE), make_evidence(TRUE), ())


def test_the_schema_of_each_prompt_is_taken_by_the_client(server):
    server.script(
        PATH,
        answering(
            lambda seen: chat(
                json.dumps(
                    {"claims": [], "queries": ["paracetamol dose"], "enough": True, "query": "", "missing": ""} | GOOD
                )
            )
        ),
    )
    table = settings(server)
    claim, evidence = make_claim(TRUE), make_evidence(TRUE)
    anyio.run(NeutralQueryWriter(NeutralQueryWriter.Settings(model=table)).write_queries, claim)
    anyio.run(SafeJudge(SafeJudge.Settings(model=table), retrievers={}).gather, claim, evidence)
    anyio.run(ModelJudge(ModelJudge.Settings(model=table)).judge, claim, evidence, ())
    anyio.run(AtomicDecomposer(AtomicDecomposer.Settings(model=table)).decompose, make_answer("Rest helps."))
    sent = [seen.json()["response_format"]["json_schema"]["schema"]["required"] for seen in server.seen]
    assert [required for index, required in enumerate(sent) if required not in sent[:index]] == [
        ["queries"],
        ["missing", "enough", "query"],
        ["stances", "rationale", "label"],
        ["claims"],
    ]


def test_a_ledger_answers_again_without_the_server(server, tmp_path):
    from factcheck.ledger import Ledger

    server.script(PATH, thinking(FAKES["literal_judge"]))
    claim, evidence = make_claim(TRUE), make_evidence(TRUE)
    results = []
    for mode in ("record", "replay"):
        ledger = Ledger.open(tmp_path / "ledger.sqlite", mode=mode)
        judge = ModelJudge(client=ModelClient(settings(server), ledger=ledger))
        results.append(anyio.run(judge.judge, claim, evidence, ()))
        if mode == "replay":
            with pytest.raises(FactcheckError, match="F161"):
                anyio.run(judge.judge, make_claim(f"{TRUE} Now."), evidence, ())
        ledger.close()
    assert results[0] == results[1]
    assert server.count(PATH) == 1
