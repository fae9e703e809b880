"""The roles that plugins fill.

A component is made by its factory as ``factory(settings)``, where ``settings`` is an instance of the factory's nested
``Settings`` model (a pydantic model with ``extra="forbid"``), or as ``factory()`` if it has none. Making it is cheap: models
and indexes load at first use. Each method may be a plain function, which the host runs in a worker thread, or a coroutine
function. A component must be safe for concurrent use, must not keep state between calls that changes results, and reports
trouble by raising. A Settings field ``corpora`` or ``domains`` (tuple of str) receives those of the run.

Optional attributes enter a component's fingerprint: ``version`` (str), ``corpus_sha256`` (tuple of str), ``prompt_sha256``
(str), ``model`` (str), ``parameters`` (dict; with what the model is asked). Others tell the host how to treat it:

``network``      True if it asks over the network when it is used, so that a run records what it gets
``requests``     how many HTTP requests it has made (int)
``concurrency``  of a retriever that is a coroutine function: how many queries it answers at a time (int)
``quick``        True if its plain methods take less than a millisecond, so that they are not worth a thread
``warm_up``      of a retriever: a method that prepares it, called once, outside the deadline of any query
``portable``     of a checker: True if it may be made anew, from its settings, in another process
``connect``      a method that takes a Host before the first use, for components that call models
``gather``       of a judge: see SearchingJudge
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from factcheck.schema import (
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Finding,
    Fingerprint,
    Judgement,
    Passage,
    Query,
    Retrieval,
    Score,
)

if TYPE_CHECKING:
    from factcheck.llm import ModelClient, ModelRole, ModelSettings


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


Search = Callable[[Query, int], Awaitable[Sequence[Retrieval]]]
"""Sends a query to retrievers, for so many passages of each."""


class SearchingJudge(Judge, Protocol):
    """Search for itself before it judges."""

    def gather(self, claim: Claim, evidence: Evidence, queries: Sequence[Query]) -> Awaitable[Gathered]:
        """Return further queries, their retrievals, and the evidence with what they found.

        It is called after the retrievers of the run and before the checkers, with what they found and the queries that they
        were asked. The searches go through ``Host.search``. ``judge`` then gets the evidence returned here.
        """


class Gathered(Protocol):
    """Hold what a judge's own searches brought."""

    @property
    def queries(self) -> Sequence[Query]:
        """Return the queries, with ids of their own."""

    @property
    def retrievals(self) -> Sequence[Retrieval]:
        """Return the retrievals of these queries."""

    @property
    def evidence(self) -> Evidence:
        """Return all of the evidence; each passage is one of before or of the retrievals."""


class Host(Protocol):
    """Lend a component what it shares with the others of a run: clients with their budget and ledger, searches, judges."""

    def client(self, role: ModelRole, settings: ModelSettings | None = None) -> tuple[ModelClient, str]:
        """Return the client for a role and the name of its model; ``settings`` None is the model of the run for it.

        Raises ConfigError if there is none.
        """

    def prompts(self) -> Path | None:
        """Return the folder of prompts that take precedence, None if there is none."""

    def search(self, retrievers: Sequence[str] = ()) -> Search:
        """Return what sends a query to the named retrievers, to those of the run for ``()``."""

    def judge(self, name: str) -> tuple[Judge, Fingerprint]:
        """Return a judge by its registered name, connected, with its fingerprint."""


@runtime_checkable
class Primitive(Protocol):
    """Measure a report for use in a rubric."""

    def __call__(self, report: AnswerReport) -> Score | Awaitable[Score]:
        """Return a score; pure, and None as its value where there is nothing to score."""
