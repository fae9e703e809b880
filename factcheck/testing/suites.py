"""The checks as pytest classes: subclass one, define ``make``, and each check is a test of its own.

The checks themselves are plain functions; a suite only turns their outcomes into those of pytest. An expected failure
that passes fails the test, because its entry is out of date.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from factcheck.testing.decomposers import (
    DECOMPOSER_CAPABILITIES,
    DECOMPOSER_CHECKS,
    DECOMPOSER_FLOOR,
    DecomposerBench,
)
from factcheck.testing.harness import (
    FLOOR_CHECK,
    Bench,
    Check,
    CheckResult,
    floor_result,
    refuse_unknown,
    run_check,
)
from factcheck.testing.judges import JUDGE_CAPABILITIES, JUDGE_CHECKS, JUDGE_FLOOR, JudgeBench
from factcheck.testing.retrievers import RETRIEVER_CHECKS, RETRIEVER_FLOOR, RetrieverBench
from factcheck.testing.small_roles import (
    CHECKER_CHECKS,
    CHECKER_FLOOR,
    PRIMITIVE_CHECKS,
    PRIMITIVE_FLOOR,
    QUERY_WRITER_CHECKS,
    QUERY_WRITER_FLOOR,
    CheckerBench,
    PrimitiveBench,
    QueryWriterBench,
)


def _tests(checks: Sequence[Check]) -> Callable[..., None]:
    """Return the test method that runs each of the checks."""

    def test_conformance(self: Suite, check: str) -> None:
        self.run(check)

    names = [*(check.name for check in checks), FLOOR_CHECK]
    marked: Callable[..., None] = pytest.mark.parametrize("check", names)(test_conformance)
    return marked


class Suite:
    """Hold what the suites share; the attributes are those of ``factcheck.testing.harness.Bench``.

    Define ``make_faulty(self, fault)`` to have faults injected: it returns a component whose source or model shows the
    fault, one of ``faults`` if that is given.
    """

    checks: ClassVar[tuple[Check, ...]] = ()
    bench_type: ClassVar[type[Bench]] = Bench
    capabilities: Collection[str] = ("deterministic",)
    faults: Collection[str] = ()
    factory: Any = None
    settings: Mapping[str, Any] = {}
    secrets: Sequence[str] = ()
    time_limit: float = 30.0
    minimum: int = 0
    expected_failures: Mapping[str, str] = {}

    def make(self, *documents: Any) -> Any:
        """Return a fresh component."""
        raise NotImplementedError("define make(self)")

    def bench(self, **more: Any) -> Bench:
        """Return the bench on which the checks run."""
        # Read as it stands: a plain function would come back bound to the suite.
        factory = inspect.getattr_static(self, "factory")
        return self.bench_type(
            make=self.make,
            capabilities=self.capabilities,
            make_faulty=getattr(self, "make_faulty", None),
            faults=self.faults,
            factory=factory.__func__ if isinstance(factory, staticmethod) else factory,
            settings=self.settings,
            secrets=self.secrets,
            time_limit=self.time_limit,
            **more,
        )

    def run(self, name: str) -> None:
        """Run one check and report its outcome to pytest."""
        refuse_unknown(self.checks, self.expected_failures)
        bench = self.bench()
        if name == FLOOR_CHECK:
            result = floor_result(self.checks, bench, self.minimum)
        else:
            (check,) = [check for check in self.checks if check.name == name]
            result = run_check(check, bench, self.expected_failures)
        _report(result)


class RetrieverSuite(Suite):
    """Check a retriever; define ``make(self)``, and ``queries`` that find something.

    If ``capabilities`` include ``indexable``, define ``make(self, documents)`` instead.
    """

    checks = RETRIEVER_CHECKS
    bench_type = RetrieverBench
    minimum = RETRIEVER_FLOOR
    queries: Sequence[str] = ()
    test_conformance = _tests(RETRIEVER_CHECKS)

    def bench(self, **more: Any) -> Bench:
        """Return the bench on which the checks run."""
        return super().bench(queries=self.queries, **more)


class JudgeSuite(Suite):
    """Check a judge; define ``make(self)``, and ``checkers`` if it is made for the findings of some."""

    checks = JUDGE_CHECKS
    bench_type = JudgeBench
    capabilities = JUDGE_CAPABILITIES
    minimum = JUDGE_FLOOR
    checkers: Sequence[Any] = ()
    test_conformance = _tests(JUDGE_CHECKS)

    def bench(self, **more: Any) -> Bench:
        """Return the bench on which the checks run."""
        return super().bench(checkers=self.checkers, **more)


class DecomposerSuite(Suite):
    """Check a decomposer; define ``make(self)``."""

    checks = DECOMPOSER_CHECKS
    bench_type = DecomposerBench
    capabilities = DECOMPOSER_CAPABILITIES
    minimum = DECOMPOSER_FLOOR
    time_limit = 60.0
    test_conformance = _tests(DECOMPOSER_CHECKS)


class QueryWriterSuite(Suite):
    """Check a query writer; define ``make(self)``."""

    checks = QUERY_WRITER_CHECKS
    bench_type = QueryWriterBench
    minimum = QUERY_WRITER_FLOOR
    test_conformance = _tests(QUERY_WRITER_CHECKS)


class CheckerSuite(Suite):
    """Check a checker; define ``make(self)``."""

    checks = CHECKER_CHECKS
    bench_type = CheckerBench
    minimum = CHECKER_FLOOR
    test_conformance = _tests(CHECKER_CHECKS)


class PrimitiveSuite(Suite):
    """Check a primitive; define ``make(self)``."""

    checks = PRIMITIVE_CHECKS
    bench_type = PrimitiveBench
    minimum = PRIMITIVE_FLOOR
    test_conformance = _tests(PRIMITIVE_CHECKS)


def _report(result: CheckResult) -> None:
    if result.status == "skipped":
        pytest.skip(result.reason)
    if result.status == "xfail":
        pytest.xfail(result.reason)
    stale = f"it was expected to fail ({result.reason}) and passes: remove the entry"
    assert result.ok, stale if result.status == "xpass" else result.error
