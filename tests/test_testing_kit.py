"""The kit itself: outcomes, the floor, the pytest suites, and the first-party components that must pass it."""

from __future__ import annotations

import ast
import functools
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest

import factcheck.testing
from factcheck.components import resolve_factory
from factcheck.errors import UnknownNameError
from factcheck.plugins import Plugins
from factcheck.testing import (
    FakeRetriever,
    OracleRetriever,
    check_checker,
    check_decomposer,
    check_judge,
    check_primitive,
    check_query_writer,
    check_retriever,
    failures,
    harness,
    make_query,
    summary,
)
from factcheck.testing.decomposers import DECOMPOSER_CHECKS
from factcheck.testing.harness import Bench, Check, CheckFailed, require, run_checks
from factcheck.testing.judges import JUDGE_CHECKS
from factcheck.testing.retrievers import RETRIEVER_CHECKS
from factcheck.testing.small_roles import CHECKER_CHECKS, PRIMITIVE_CHECKS, QUERY_WRITER_CHECKS

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
ALL_CHECKS = [
    *RETRIEVER_CHECKS,
    *JUDGE_CHECKS,
    *DECOMPOSER_CHECKS,
    *QUERY_WRITER_CHECKS,
    *CHECKER_CHECKS,
    *PRIMITIVE_CHECKS,
]


def passes(bench):
    pass


async def fails(bench):
    require(False, "two and two is five")


def raises(bench):
    raise LookupError("deep inside")


def exits(bench):
    raise SystemExit(3)


def interrupts(bench):
    raise KeyboardInterrupt


CHECKS = (Check(passes), Check(fails), Check(raises), Check(exits), Check(passes, ("deterministic",)))


class TestOutcomes:
    def run(self, checks=CHECKS, *, minimum=1, capabilities=(), **expected):
        bench = Bench(make=object, capabilities=capabilities)
        return run_checks(checks, bench, minimum=minimum, expected_failures=expected)

    def test_all_run_whatever_fails(self):
        results = self.run()
        assert [r.status for r in results] == ["passed", "failed", "failed", "failed", "skipped", "passed"]
        assert results[1].error == "two and two is five"
        assert "LookupError: deep inside" in results[2].error
        assert "in raises" in results[2].error
        assert "SystemExit: 3" in results[3].error
        assert results[4].reason == "needs 'deterministic'"
        assert len(failures(results)) == 3

    def test_an_interrupt_is_not_swallowed(self):
        with pytest.raises(KeyboardInterrupt):
            self.run((Check(interrupts),))

    def test_expected_failures_are_strict(self):
        results = self.run(fails="known", passes="fixed since")
        assert [(r.status, r.reason) for r in results[:2]] == [("xpass", "fixed since"), ("xfail", "known")]
        assert [r.check for r in failures(results)] == ["passes", "raises", "exits"]

    def test_an_expected_failure_of_no_check_is_an_error(self):
        with pytest.raises(UnknownNameError, match="no check named 'fail'"):
            self.run(fail="typo")
        with pytest.raises(UnknownNameError):
            self.run(enough_checks_ran="cannot be excused")

    def test_the_floor_counts_what_applies(self):
        assert self.run(minimum=4)[-1].ok
        floor = self.run(minimum=5)[-1]
        assert (floor.check, floor.status) == ("enough_checks_ran", "failed")
        assert "4 of 5 checks apply" in floor.error
        assert "deterministic" in floor.error
        assert self.run(minimum=5, capabilities=("deterministic",))[-1].ok

    def test_the_summary_names_what_was_skipped(self):
        text = summary(self.run(fails="known"))
        assert text == "5 checks: 1 passed, 2 failed, 1 xfail, 1 skipped (needs 'deterministic')"

    def test_require_survives_optimisation(self):
        code = "from factcheck.testing.harness import require; require(False, 'kept')"
        done = subprocess.run(
            [sys.executable, "-O", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "CheckFailed: kept" in done.stderr

    def test_the_checks_hold_no_assert(self):
        for path in (ROOT / "factcheck" / "testing").glob("*.py"):
            if path.name != "suites.py":
                tree = ast.parse(path.read_text(encoding="utf-8"))
                assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)], path.name


def test_every_check_says_what_it_checks_and_has_a_name_of_its_own():
    for check in ALL_CHECKS:
        assert inspect.getdoc(check.run), check.name
    for checks in (RETRIEVER_CHECKS, JUDGE_CHECKS, DECOMPOSER_CHECKS, QUERY_WRITER_CHECKS, CHECKER_CHECKS):
        names = [check.name for check in checks]
        assert len(set(names)) == len(names)


def test_public_names_are_sorted_and_exist():
    assert sorted(factcheck.testing.__all__) == factcheck.testing.__all__
    for name in factcheck.testing.__all__:
        assert getattr(factcheck.testing, name) is not None
    with pytest.raises(AttributeError):
        factcheck.testing.no_such_name  # noqa: B018


def test_the_kit_needs_no_pytest():
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['pytest'] = None\n"
        "from factcheck.testing import FakeRetriever, check_retriever\n"
        "print(len(check_retriever(FakeRetriever)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(len(RETRIEVER_CHECKS) + 1), done.stderr


class TestFakeRetriever:
    def test_script_delay_and_log(self):
        fake = FakeRetriever({"a": ["one", "two"], "b": CheckFailed("no")}, default=["other"])
        assert [p.text for p in fake.retrieve(make_query("a"), 1)] == ["one"]
        assert [p.text for p in fake.retrieve(make_query("z"), 5)] == ["other"]
        with pytest.raises(CheckFailed):
            fake.retrieve(make_query("b"), 1)
        assert [query.text for query in fake.queries] == ["a", "z", "b"]


def test_the_oracle_finds_the_gold_of_a_query_or_of_its_claim():
    oracle = OracleRetriever({"a query": ["one", "two"], "c": ["three"]})
    assert [p.text for p in oracle.retrieve(make_query("a query"), 1)] == ["one"]
    assert [p.text for p in oracle.retrieve(make_query("another"), 5)] == ["three"]
    assert OracleRetriever({}).retrieve(make_query("a query"), 5) == []


SUITE = """
from factcheck.testing import {suite}, FakeJudge, FakeRetriever

class TestMine({suite}):
    {body}
"""


class TestSuites:
    """Run the suites as an author would."""

    @pytest.fixture
    def run(self, pytester, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))

        def run(suite, *body, apart=False):
            pytester.makepyfile(SUITE.format(suite=suite, body="\n    ".join(body)))
            how = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
            return how("-rsx", "-p", "no:cacheprovider", "-W", "error")

        return run

    RIGHT = (
        "queries = ['a', 'b']",
        "def make(self):",
        "    return FakeRetriever({'a': ['one'], 'b': ['two']})",
        "def make_faulty(self, fault):",
        "    return FakeRetriever(fault=fault)",
    )

    def test_a_right_one_passes_with_its_skips_shown(self, run):
        result = run("RetrieverSuite", *self.RIGHT)
        skipped = sum("indexable" in check.needs or "factory" in check.needs for check in RETRIEVER_CHECKS)
        result.assert_outcomes(passed=len(RETRIEVER_CHECKS) + 1 - skipped, skipped=skipped)
        result.stdout.fnmatch_lines(["*needs 'indexable'*"])

    def test_a_wrong_one_fails_with_the_reason(self, run):
        # In a process of its own, where the suites are imported for the first time and their assertions explained.
        result = run("RetrieverSuite", *self.RIGHT[:2], "    return FakeRetriever(default=['one'])", apart=True)
        assert result.ret == 1
        result.stdout.fnmatch_lines(
            ["*every query finds the same passages*", "*where False = CheckResult(check='the_query_matters'*.ok*"]
        )

    def test_expected_failures(self, run):
        result = run(
            "RetrieverSuite",
            "expected_failures = {'the_query_matters': 'a stub'}",
            *self.RIGHT[:2],
            "    return FakeRetriever(default=['one'])",
        )
        assert result.ret == 0
        result.stdout.fnmatch_lines(["*a stub*"])

    def test_a_stale_expected_failure_fails(self, run):
        result = run("RetrieverSuite", "expected_failures = {'honours_k': 'once true'}", *self.RIGHT)
        assert result.parseoutcomes()["failed"] == 1
        result.stdout.fnmatch_lines(["*once true*passes: remove the entry*"])

    def test_an_unknown_expected_failure_fails(self, run):
        result = run("RetrieverSuite", "expected_failures = {'honors_k': 'typo'}", *self.RIGHT)
        assert result.parseoutcomes()["failed"] == len(RETRIEVER_CHECKS) + 1
        result.stdout.fnmatch_lines(["*Did you mean 'honours_k'*"])

    def test_under_the_floor_it_fails(self, run):
        result = run("RetrieverSuite", "def make(self):", "    return FakeRetriever()")
        assert result.parseoutcomes()["failed"] == 1
        result.stdout.fnmatch_lines(["*at least 12 must; offer more of: *queries*"])

    def test_a_suite_without_make_says_so(self, run):
        result = run("JudgeSuite", "pass")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*define make(self)*"])

    def test_a_factory_that_is_a_function_is_not_bound(self, run):
        result = run(
            "JudgeSuite",
            "def make_it(): return FakeJudge()",
            "factory = make_it",
            "capabilities = ('deterministic',)",
            "minimum = 1",
            "def make(self):",
            "    return type(self).factory()",
        )
        assert result.ret == 0

    def test_every_suite_rejects_an_empty_object(self, pytester, monkeypatch):
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        suites = [name for name in factcheck.testing.__all__ if name.endswith("Suite")]
        assert len(suites) == len(KITS) + 1
        classes = (
            f"class Test{s}(factcheck.testing.{s}):\n    def make(self, *_):\n        return object()\n" for s in suites
        )
        pytester.makepyfile("import factcheck.testing\n" + "\n".join(classes))
        result = pytester.runpytest_inprocess("-q", "-rf", "--tb=no", "-p", "no:cacheprovider")
        for suite in suites:
            result.stdout.fnmatch_lines([f"FAILED *::Test{suite}::test_conformance*"])


def test_no_pytest_plugin_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["entry-points"]) == {"factcheck"}


def entry_points() -> dict[str, str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["entry-points"]["factcheck"]


def clinical_checkers():
    """The checkers for whose findings the judge ``evidence`` is made."""
    plugins = Plugins(autoload=False)
    plugins.register(pytest.importorskip("factcheck_clinical"), "clinical")
    return [plugins.create("checker", name) for name in plugins.names("checker")]


KITS = {
    "decomposer": check_decomposer,
    "query_writer": check_query_writer,
    "judge": check_judge,
    "checker": check_checker,
    "primitive": check_primitive,
}


class TestFirstParty:
    """What comes with factcheck passes the same checks as anyone's."""

    def conforms(self, results):
        assert failures(results) == [], "\n".join(f"{r.check}: {r.error}" for r in failures(results))
        print(summary(results))

    @pytest.mark.parametrize("name", entry_points())
    def test_components(self, name):
        module = pytest.importorskip(entry_points()[name])
        if module.__file__ is None:
            pytest.skip(f"{module.__name__} is an empty folder")
        plugins = Plugins(autoload=False)
        found = plugins.register(module, name)
        assert found.provides
        if found.missing:
            pytest.skip(f"needs {', '.join(found.missing)}")
        for item in plugins.registrations(name):
            factory = resolve_factory(item, "factcheck")
            if item.role == "retriever" or hasattr(factory, "connect"):
                continue  # tested below, or with a model in the tests of the stages that ask one
            more = {"checkers": clinical_checkers()} if item.role == "judge" else {}
            self.conforms(
                KITS[item.role](
                    functools.partial(plugins.create, item.role, item.name),
                    factory=factory,
                    **more,
                )
            )

    def test_retriever_bm25(self):
        for module in ("numpy", "rank_bm25", "Stemmer"):
            pytest.importorskip(module)
        retriever = pytest.importorskip("factcheck_bm25.retriever").Bm25Retriever
        self.conforms(
            check_retriever(
                retriever.over,
                capabilities=("deterministic", "indexable", "lexical"),
                factory=retriever,
                make_faulty=lambda fault: retriever(retriever.Settings(corpora=("no-such-corpus",))),
                faults=("error",),
            )
        )


def test_harness_has_no_state():
    assert not [
        name for name, value in vars(harness).items() if isinstance(value, list | dict | set) and name[0] != "_"
    ]


def test_a_check_in_a_running_loop_is_a_clear_error():
    async def inside():
        return check_retriever(FakeRetriever)

    with pytest.raises(RuntimeError, match="running event loop"):
        anyio.run(inside)
