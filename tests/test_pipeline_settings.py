"""The pipeline and its parts: settings, manifest, the components that ship, and text of every size."""

import itertools
import runpy
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from factcheck.assembly import DEFAULT_CHECKERS
from factcheck.config import Settings
from factcheck.decompose import SentenceDecomposer
from factcheck.errors import CorpusError, UnknownNameError, UserError
from factcheck.hookspecs import hookimpl
from factcheck.pipeline import FactChecker
from factcheck.schema import Answer, AnswerReport, Model

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
fact_checker, passages, plainly, plugins_of, labels = (
    FAKES[n] for n in ("fact_checker", "passages", "plainly", "plugins_of", "labels")
)


class TestSettings:
    def test_the_manifest_names_every_component(self):
        checker = fact_checker(
            retriever={"a": lambda q, k: [], "b": lambda q, k: []},
            checker={"y": lambda c, e: [], "x": lambda c, e: []},
            settings={"policy": "risk>=0.25", "k": 3, "seed": 7},
        )
        manifest = checker.check("x").manifest
        assert [(c.role, c.name) for c in manifest.components] == [
            ("decomposer", "t"),
            ("query_writer", "t"),
            ("retriever", "t/a"),
            ("retriever", "t/b"),
            ("checker", "t/x"),
            ("checker", "t/y"),
            ("judge", "t"),
        ]
        assert (manifest.policy, manifest.k, manifest.seed) == ("risk>=0.25", 3, 7)
        name, _, digest = manifest.calibration.partition(" ")
        assert (name, len(digest)) == (checker.calibration.name, 32)
        assert manifest.version
        assert manifest == checker.manifest

    def test_k_reaches_the_retriever_and_the_evidence(self):
        def retrieve(asked, k):
            return passages(*"abcdefgh"[:k])

        report = fact_checker(retriever=retrieve, settings={"k": 3}).check("x")
        assert [p.text for p in report.evidence[0].passages] == ["a", "b", "c"]

    def test_checkers_are_all_or_those_that_are_named(self):
        checkers = {"a": lambda c, e: [], "b": lambda c, e: []}
        for named, used in ((None, ["t/a", "t/b"]), (("t/b",), ["t/b"]), ((), [])):
            checker = fact_checker(checker=checkers, settings={"checkers": named})
            assert [c.name for c in checker.manifest.components if c.role == "checker"] == used

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"colour": "red"}, "unknown key 'colour'"),
            ({"k": 0}, "'k'"),
            ({"query_deadline": float("nan")}, "'query_deadline'"),
            ({"policy": "contradict"}, "Did you mean 'contradicted'"),
            ({"judge": "tt"}, "no judge named 'tt'. Did you mean 't'"),
            ({"decomposer": "x"}, "no decomposer named 'x'. Known: t."),
            ({"query_writer": "x"}, "no query writer named 'x'"),
            ({"retrievers": ("x",)}, "no retriever named 'x'"),
            ({"checkers": ("x",)}, "no checker named 'x'"),
        ],
    )
    def test_what_cannot_be_used_is_refused_on_one_line(self, change, said):
        with pytest.raises(UserError) as caught:
            fact_checker(settings=change)
        assert said in str(caught.value)
        assert str(caught.value).splitlines() == [str(caught.value)]

    def test_without_any_named_installed_plugins_give_those_that_come_with_factcheck(self):
        for module in ("numpy", "rank_bm25", "pint", "Stemmer"):
            pytest.importorskip(module)
        used = [c.name for c in FactChecker(corpora=("tied-pairs",)).manifest.components if c.role == "checker"]
        assert used == list(DEFAULT_CHECKERS)

    CHOSEN = Settings(decomposer="t", query_writer="t", judge="t", retrievers=("t",), corpora=(), k=2)

    def test_from_settings(self):
        checker = FactChecker.from_settings(self.CHOSEN, plugins=plugins_of())
        assert checker.settings is self.CHOSEN
        assert labels(checker.check("x")) == ["supported"]

    @pytest.mark.parametrize(
        ("table", "said"),
        [
            ({"tt": {"a": 1}}, "no component for the table of settings named 'tt'"),
            ({"t": {"a": 1}}, "takes no settings"),
        ],
    )
    def test_a_table_that_no_component_reads_is_refused(self, table, said):
        with pytest.raises(UserError, match=said):
            FactChecker.from_settings(self.CHOSEN.model_copy(update={"plugins": table}), plugins=plugins_of())

    def test_a_table_reaches_its_component(self):
        seen = []

        class Judge:
            class Settings(Model):
                strictness: int = 1

            def __init__(self, chosen):
                seen.append(chosen.strictness)

            judge = staticmethod(plainly)

        @hookimpl
        def factcheck_register_judges(register):
            register("strict", Judge)

        loaded = plugins_of()
        loaded.register(SimpleNamespace(factcheck_register_judges=factcheck_register_judges), "strict")
        chosen = self.CHOSEN.model_copy(update={"judge": "strict", "plugins": {"strict": {"strictness": 5}}})
        checker = FactChecker.from_settings(chosen, plugins=loaded)
        assert labels(checker.check("x")) == ["supported"]
        assert seen == [5]
        assert checker.manifest.components[-1].settings == {"strictness": 5}

    def test_the_question_goes_with_a_text_and_an_answer_has_its_own(self):
        checker = fact_checker()
        assert checker.check("x", question="why?").answer == Answer(id="answer", question="why?", text="x")
        answer = Answer(id="a", question="own", text="x", meta={"model": "m"})
        assert checker.check(answer, question="other").answer == answer

    def test_a_corpus_that_cannot_be_used_is_known_before_any_work(self):
        seen = []

        class Retriever:
            @property
            def corpus_sha256(self):
                raise CorpusError("the corpus is empty.")

            def retrieve(self, asked, k):
                return []

        @hookimpl
        def factcheck_register_retrievers(register):
            register("r", Retriever)

        loaded = plugins_of(decomposer=lambda answer: seen.append(1) or [])
        loaded.register(SimpleNamespace(factcheck_register_retrievers=factcheck_register_retrievers), "r")
        checker = FactChecker(
            plugins=loaded, decomposer="t", query_writer="t", judge="t", retrievers=("r",), corpora=(), checkers=()
        )
        with pytest.raises(CorpusError, match="the corpus is empty"):
            checker.check("x")
        assert not seen


class TestWarmUp:
    def checker(self, warm_up, deadline=0.2):
        retriever = SimpleNamespace(retrieve=lambda q, k: passages(q.text), warm_up=warm_up)

        @hookimpl
        def factcheck_register_retrievers(register):
            register("r", lambda: retriever)

        loaded = plugins_of()
        loaded.register(SimpleNamespace(factcheck_register_retrievers=factcheck_register_retrievers), "r")
        chosen = {"decomposer": "t", "query_writer": "t", "judge": "t", "retrievers": ("r",), "corpora": ()}
        return FactChecker(plugins=loaded, query_deadline=deadline, **chosen)

    def test_a_retriever_prepares_once_outside_the_deadline_of_its_queries(self):
        calls = []
        checker = self.checker(lambda: calls.append(time.sleep(0.4)))
        assert [labels(checker.check(text)) for text in ("one", "two")] == [["supported"], ["supported"]]
        assert len(calls) == 1

    def test_it_may_be_a_coroutine(self):
        calls = []

        async def warm_up():
            calls.append(1)

        assert labels(self.checker(warm_up).check("one")) == ["supported"]
        assert calls == [1]

    @pytest.mark.parametrize("error", [ValueError("x"), SystemExit(0)])
    def test_one_that_fails_is_left_to_its_queries(self, error):
        assert labels(self.checker(FAKES["raising"](error)).check("one")) == ["supported"]


@pytest.fixture(scope="module")
def checker():
    for module in ("numpy", "rank_bm25", "pint", "Stemmer"):
        pytest.importorskip(module)
    return FactChecker(corpora=("tied-pairs",))


class TestRealComponents:
    def test_the_offline_defaults_on_an_answer(self, checker):
        text = (
            "For a 15 kg child, ibuprofen is dosed by weight at 5 to 10 mg per kg.\n\n"
            "You can repeat the dose every 3 to 4 hours.\n\nAre you allergic to it?"
        )
        report = checker.check(
            Answer(id="a", text=text, question="How much ibuprofen for a child of 15 kg, how often?")
        )
        assert report.accounting.extracted == len(report.claims)
        assert report.accounting.error == 0
        assert report.verdicts[2].label == "not_checkable"
        assert report.verdicts[1].label == "contradicted"
        assert report.verdicts[1].risk > report.verdicts[0].risk
        assert report.verdicts[1].contradicting
        assert AnswerReport.model_validate_json(report.model_dump_json()) == report

    @pytest.mark.parametrize("text", ["\ud800 5 mg \udfff.", "\x00\x1b[31m 5 mg", "5 mg " * 500, "🙂 5\u00a0µg é"])
    def test_odd_text_is_checked(self, checker, text):
        report = checker.check(text)
        assert report.accounting.extracted == len(report.claims)
        assert report.accounting.error == 0

    def test_an_unknown_corpus_is_the_users_mistake(self, checker):
        with pytest.raises(UnknownNameError, match=r"no corpus named 'tied-pair'\. Did you mean 'tied-pairs'"):
            FactChecker(corpora=("tied-pair",)).check("x")


def test_a_megabyte_takes_time_in_proportion():
    checker = fact_checker(decomposer=SentenceDecomposer().decompose)

    def cpu(size):
        lines = (f"Child {i} is given ibuprofen at 5 to 10 mg per kg{', in good time' * 15}.\n" for i in count())
        text = "".join(itertools.islice(lines, size // 240))[:size]
        started = time.process_time()
        report = checker.check(Answer(id=f"a{size}", text=text))
        assert report.accounting.supported > size // 300
        return time.process_time() - started

    small, large = cpu(100_000), cpu(1_000_000)
    # Ten times the text, with room for noise; a step that compares all claims with all would make it a hundred times.
    assert large < 30 * max(small, 0.1)
