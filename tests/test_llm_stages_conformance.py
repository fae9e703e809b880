"""The model-backed stages keep the contracts of their roles, with models that read and with models that fail."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import ClassVar

import anyio
import factcheck_llm
import pytest
from factcheck_llm import panel_plugin, safe_plugin
from factcheck_llm.decomposer import AtomicDecomposer, AtomsReply
from factcheck_llm.delimit import check_delimited
from factcheck_llm.injection import InjectionChecker
from factcheck_llm.judge import ModelJudge
from factcheck_llm.panel import PanelJudge
from factcheck_llm.queries import NeutralQueryWriter, QueriesReply
from factcheck_llm.reply import BatchReply, JudgeReply
from factcheck_llm.safe import NextReply, SafeJudge
from factcheck_llm.stage import marked

from factcheck.errors import PromptError
from factcheck.llm import ModelSettings
from factcheck.plugins import Plugins
from factcheck.prompting import load_prompts
from factcheck.schema import Fingerprint
from factcheck.testing import (
    CheckerSuite,
    DecomposerSuite,
    JudgeSuite,
    QueryWriterSuite,
    make_answer,
    make_claim,
    make_evidence,
)

FAKES = runpy.run_path(str(Path(__file__).with_name("llm_stage_fakes.py")))
FakeClient, FakeHost, failing = FAKES["FakeClient"], FAKES["FakeHost"], FAKES["failing"]
MODEL = {"base_url": "http://127.0.0.1:9/v1", "model": "tiny-1", "key": "sk-hidden"}


class TestAtomicDecomposer(DecomposerSuite):
    factory = AtomicDecomposer
    settings: ClassVar = {"model": MODEL}
    secrets = ("sk-hidden",)

    def make(self):
        return AtomicDecomposer(client=FakeClient(FAKES["echo_splitter"]))

    def make_faulty(self, fault):
        return AtomicDecomposer(client=FakeClient(failing(fault)))


class TestNeutralQueryWriter(QueryWriterSuite):
    factory = NeutralQueryWriter
    settings: ClassVar = {"model": MODEL}
    secrets = ("sk-hidden",)

    def make(self):
        return NeutralQueryWriter(client=FakeClient(FAKES["word_writer"]))


class Judges(JudgeSuite):
    secrets = ("sk-hidden",)

    def client(self, fault=""):
        return FakeClient(failing(fault) if fault else FAKES["literal_judge"])


class TestModelJudge(Judges):
    factory = ModelJudge
    settings: ClassVar = {"model": MODEL}

    def make(self):
        return ModelJudge(client=self.client())

    def make_faulty(self, fault):
        return ModelJudge(client=self.client(fault))


class TestModelJudgeInBatches(Judges):
    factory = ModelJudge
    settings: ClassVar = {"model": MODEL, "batch": 4}

    def make(self):
        return ModelJudge(ModelJudge.Settings(batch=4, batch_wait=0.01), client=self.client())

    def make_faulty(self, fault):
        return ModelJudge(ModelJudge.Settings(batch=4, batch_wait=0.0), client=self.client(fault))


class TestSafeJudge(Judges):
    factory = SafeJudge
    settings: ClassVar = {"model": MODEL, "steps": 2}

    def make(self):
        return SafeJudge(client=self.client(), retrievers={})

    def make_faulty(self, fault):
        return SafeJudge(client=self.client(fault), retrievers={})


class TestPanelJudge(Judges):
    factory = PanelJudge
    settings: ClassVar = {"judges": ["llm", "evidence"]}
    secrets = ()

    def panel(self, fault=""):
        members = {"one": ModelJudge(client=self.client(fault)), "two": ModelJudge(client=self.client())}
        return PanelJudge(PanelJudge.Settings(judges=("one", "two")), judges=members)

    def make(self):
        return self.panel()

    def make_faulty(self, fault):
        return self.panel(fault)


class TestInjectionChecker(CheckerSuite):
    factory = InjectionChecker

    def make(self):
        return InjectionChecker()


COMPONENTS = (
    ("decomposer", "llm/atomic"),
    ("query_writer", "llm/neutral"),
    ("judge", "llm"),
    ("judge", "safe"),
)


REPLIES = {
    "decompose.atomic.v2": AtomsReply,
    "decompose.retry.v1": AtomsReply,
    "judge.evidence.v2": JudgeReply,
    "judge.retry.v1": JudgeReply,
    "judge.batch.v1": BatchReply,
    "queries.neutral.v2": QueriesReply,
    "queries.retry.v1": QueriesReply,
    "queries.next.v1": NextReply,
}


def sample(schema):
    """Return a value that a schema describes, with every field and the last choice of each."""
    if "enum" in schema:
        return schema["enum"][-1]
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        return {name: sample(part) for name, part in schema["properties"].items()}
    return [sample(schema["items"])] if schema["type"] == "array" else {"string": "x", "boolean": True}[schema["type"]]


@pytest.mark.parametrize("id", REPLIES)
def test_schema_and_example_of_a_prompt_fit_the_reply_that_is_read(id):
    prompt = load_prompts()[id]
    value = sample(prompt.output_schema)
    read = REPLIES[id].model_validate(value)
    assert read.model_dump(mode="json") == value
    examples = re.findall(r"of the form\s+(\{.*\})\s+and\s+nothing", prompt.text, re.DOTALL)
    assert len(examples) == ("of the form" in prompt.text)
    for example in examples:
        REPLIES[id].model_validate_json(example)


def test_every_prompt_that_a_stage_asks_with_is_tried():
    stages = (AtomicDecomposer, NeutralQueryWriter, ModelJudge, SafeJudge)
    assert {prompt_id for stage in stages for prompt_id in stage.prompt_ids} == set(REPLIES)
    for prompt_id in REPLIES:
        if prompt_id.split(".")[1] != "retry":
            check_delimited(load_prompts()[prompt_id])


@pytest.fixture
def plugins():
    found = Plugins(autoload=False)
    for module, name in ((factcheck_llm, "llm"), (safe_plugin, "safe"), (panel_plugin, "panel")):
        found.register(module, name)
    return found


def test_the_plugin_registers_its_components(plugins):
    assert [record.status for record in plugins.records] == ["loaded"] * 3
    assert [record.provides for record in plugins.records] == [
        {
            "decomposers": ("llm/atomic",),
            "query_writers": ("llm/neutral",),
            "judges": ("llm",),
            "checkers": ("llm/injection",),
        },
        {"judges": ("safe",)},
        {"judges": ("panel",)},
    ]


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_a_fingerprint_names_model_and_prompts_and_no_key(plugins, role, name):
    table = {"model": MODEL}
    made = plugins.create(role, name, table)
    found = plugins.fingerprint(role, name, made)
    assert found.model == "tiny-1"
    assert found.prompt_sha256
    assert "sk-hidden" not in found.model_dump_json()
    other = plugins.create(role, name, {"model": {**MODEL, "model": "tiny-2"}})
    assert plugins.fingerprint(role, name, other).digest != found.digest


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_a_changed_prompt_changes_the_fingerprint(plugins, role, name, tmp_path):
    made = plugins.create(role, name, {"model": MODEL})
    before = made.prompt_sha256
    for prompt_id in made.prompt_ids:
        folder = tmp_path / prompt_id
        folder.mkdir()
        source = (Path(__file__).parents[1] / "prompts" / f"{prompt_id}.md").read_text(encoding="utf-8")
        assert prompt_id in load_prompts()
        (folder / f"{prompt_id}.md").write_text(f"{source}\nBe brief.\n", encoding="utf-8")
        changed = type(made)(made.settings, prompts=folder)
        assert changed.prompt_sha256 != before, prompt_id


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_without_a_model_the_first_use_says_what_to_write(plugins, role, name):
    made = plugins.create(role, name, {})
    if name == "safe":
        made._search = lambda query, k: None
    use = {
        "decomposer": lambda: made.decompose(make_answer("Paracetamol relieves mild pain.")),
        "query_writer": lambda: made.write_queries(make_claim("Paracetamol relieves pain.")),
        "judge": lambda: made.judge(make_claim("Paracetamol relieves pain."), make_evidence("Pain."), ()),
    }[role]
    with pytest.raises(Exception, match=r"has no model.*base_url"):
        anyio.run(use)


def test_a_host_lends_the_client_and_names_the_model():
    client = FakeClient(FAKES["echo_splitter"])
    host = FakeHost(client)
    stage = AtomicDecomposer(AtomicDecomposer.Settings(model=ModelSettings(**MODEL)))
    stage.connect(host)
    assert stage.model == "lent-model"
    assert [role for role, _ in host.asked] == ["decomposer"]
    assert host.asked[0][1].model == "tiny-1"
    found = anyio.run(stage.decompose, make_answer("Paracetamol relieves mild pain."))
    assert [claim.text for claim in found] == ["Paracetamol relieves mild pain."]
    assert client.calls[0][0] == "decomposer"


def test_a_panel_takes_its_judges_and_their_identity_from_the_host():
    one, two = (
        ModelJudge(client=FakeClient(FAKES["literal_judge"])),
        ModelJudge(client=FakeClient(FAKES["literal_judge"])),
    )

    def prints(version):
        return Fingerprint(role="judge", name="one", version=version)

    panels = []
    for version in ("1", "1", "2"):
        panel = PanelJudge(PanelJudge.Settings(judges=("one", "two")))
        panel.connect(FakeHost(judges={"one": (one, prints(version)), "two": (two, prints("1"))}))
        panels.append(panel)
    assert panels[0].prompt_sha256 == panels[1].prompt_sha256 != panels[2].prompt_sha256
    found = anyio.run(panels[0].judge, make_claim("Rest helps."), make_evidence("Rest helps. So does water."), ())
    assert found.label == "supported"


@pytest.mark.parametrize("judge", [PanelJudge(PanelJudge.Settings(judges=("one", "two"))), SafeJudge(client=object())])
def test_without_a_host_they_refuse_to_judge(judge):
    with pytest.raises(Exception, match="FactChecker"):
        anyio.run(judge.judge, make_claim("Rest helps."), make_evidence("Rest helps."), ())


def test_a_prompt_of_ones_own_that_does_not_delimit_is_refused_when_it_is_used(tmp_path):
    source = (Path(__file__).parents[1] / "prompts" / "judge.evidence.v2.md").read_text(encoding="utf-8")
    open_claim = source.replace("<claim-{{mark}}>{{claim}}</claim-{{mark}}>", "Claim: {{claim}}")
    (tmp_path / "judge.evidence.v2.md").write_text(open_claim, encoding="utf-8")
    client = FakeClient(FAKES["literal_judge"])
    judge = ModelJudge(client=client)
    judge.connect(FakeHost(folder=tmp_path))
    with pytest.raises(PromptError, match="'claim' does not stand once between"):
        anyio.run(judge.judge, make_claim("Rest helps."), make_evidence("Rest helps."), ())
    assert client.calls == []


def test_values_are_made_fit_for_a_request():
    values = marked(claim="a\ud800b", context="c")
    assert (values["claim"], values["context"]) == ("a\ufffdb", "c")
    assert len(values["mark"]) == 8
