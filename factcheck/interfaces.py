"""The roles that plugins fill.

A component is made by its factory as ``factory(settings)``, where ``settings`` is an instance of the factory's nested
``Settings`` model (a pydantic model with ``extra="forbid"``), or as ``factory()`` if it has none. Making it is cheap: models
and indexes load at first use. Each method may be a plain function, which the host runs in a worker thread, or a coroutine
function. A component must be safe for concurrent use, must not keep state between calls that changes results, and reports
trouble by raising. Optional attributes enter its fingerprint: ``version`` (str), ``corpus_sha256`` (tuple of str),
``prompt_sha256`` (str), ``model`` (str). A Settings field ``corpora`` (tuple of str) receives the corpora of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

from factcheck.schema import Answer, AnswerReport, Claim, Evidence, Finding, Judgement, Passage, Query, Score


@runtime_checkable
class Decomposer(Protocol):
    """Split an answer into claims."""

    def decompose(self, answer: Answer) -> Sequence[Claim] | Awaitable[Sequence[Claim]]:
        """Return the claims in the order of the text; unique ids, spans inside ``answer.text``, nothing dropped."""


@runtime_checkable
class QueryWriter(Protocol):
    """Write searches for a claim."""

    def write_queries(self, claim: Claim) -> Sequence[str] | Awaitable[Sequence[str]]:
        """Return at least one query that is not blank for a checkable claim, best first."""


@runtime_checkable
class Retriever(Protocol):
    """Find passages."""

    def retrieve(self, query: Query, k: int) -> Sequence[Passage] | Awaitable[Sequence[Passage]]:
        """Return at most ``k`` passages, ranks 1, 2, …, finite scores that do not rise, unique ids; ``[]`` if none match."""


@runtime_checkable
class Checker(Protocol):
    """Compare a claim with its evidence by rule."""

    def check(self, claim: Claim, evidence: Evidence) -> Sequence[Finding] | Awaitable[Sequence[Finding]]:
        """Return findings whose spans slice ``claim.text`` and the named passage's text; ``[]`` if it has no opinion."""


@runtime_checkable
class Judge(Protocol):
    """Judge a claim against its evidence."""

    def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement | Awaitable[Judgement]:
        """Return a judgement with quotes that are literal slices of the passages shown; never supported without evidence."""


@runtime_checkable
class Primitive(Protocol):
    """Measure a report for use in a rubric."""

    def __call__(self, report: AnswerReport) -> Score | Awaitable[Score]:
        """Return a score; pure, and None as its value where there is nothing to score."""
