"""The order of the stages: the only module that knows it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from factcheck.calibrate import default_calibration
from factcheck.calling import broken, call, examined_list, reason_of
from factcheck.config import Settings, validate_table
from factcheck.decompose import uncarried_numbers
from factcheck.errors import ConfigError, DecomposeError, FactcheckError
from factcheck.judge import failed_judgement, judge_claim
from factcheck.plugins import Plugins
from factcheck.queries import make_queries
from factcheck.registry import first_line
from factcheck.retrieve import Source, fuse, retrieve_all
from factcheck.schema import (
    Accounting,
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Judgement,
    Manifest,
    Query,
    Retrieval,
    Role,
    Verdict,
    digest,
)
from factcheck.source_tree import version
from factcheck.verdicts import Policy, decide, parse_policy

DEFAULT_CHECKERS = tuple(
    f"clinical/{name}" for name in ("dosing", "thresholds", "assertion", "triage", "certainty", "citations")
)
CONCURRENT_CLAIMS = 8
MEMO_LIMIT = 50_000

S = TypeVar("S")
T = TypeVar("T")


class _Checked(NamedTuple):
    queries: tuple[Query, ...]
    retrievals: tuple[Retrieval, ...]
    evidence: Evidence
    judgement: Judgement


class FactChecker:
    """Check answers with one set of components.

    Keyword arguments are the fields of ``factcheck.config.Settings`` but for its tables of single components, which
    ``from_settings`` takes. Claims with equal keys are judged once and share their verdict, within an answer and between
    answers, as long as the object lives.
    """

    def __init__(self, *, plugins: Plugins | None = None, **settings: Any) -> None:
        self._setup(validate_table(Settings, settings, where="the settings"), plugins)

    @classmethod
    def from_settings(cls, settings: Settings, *, plugins: Plugins | None = None) -> FactChecker:
        """Build a checker from validated settings."""
        checker = cls.__new__(cls)
        checker._setup(settings, plugins)
        return checker

    def _setup(self, settings: Settings, plugins: Plugins | None) -> None:
        self.settings = settings
        self.plugins = plugins if plugins is not None else Plugins()
        self.calibration = default_calibration()
        self.policy: Policy = parse_policy(settings.policy, default_threshold=self.calibration.threshold)
        self.plugins.check_tables(settings.plugins)
        names = settings.checkers if settings.checkers is not None else self._usual_checkers()
        self._decomposer = self._create("decomposer", settings.decomposer)
        self._writer = self._create("query_writer", settings.query_writer)
        self._judge = self._create("judge", settings.judge)
        self._checkers = {name: self._create("checker", name) for name in names}
        self._sources = [
            Source(name, self._create("retriever", name), settings.deadline) for name in settings.retrievers
        ]
        for source in self._sources:
            if getattr(getattr(source.retriever, "settings", None), "corpora", None) == ():
                hint = "Name one: --corpus NAME|DIR"
                raise ConfigError(f"retriever '{source.name}' has no corpus to search.", hint=hint)
        self._memo: dict[str, _Checked] = {}
        self._warm: set[str] = set()
        self._warming: RunVar[anyio.Lock] = RunVar("warming")

    def _usual_checkers(self) -> tuple[str, ...]:
        """Return those that come with factcheck: neither a package too many nor one that is broken may change a run unsaid.

        A set of plugins that a program put together has those that it holds.
        """
        return DEFAULT_CHECKERS if self.plugins.autoload else tuple(self.plugins.names("checker"))

    def _create(self, role: Role, name: str) -> Any:
        table = self.settings.plugins.get(name)
        return self.plugins.create(role, name, table, corpora=self.settings.corpora)

    @functools.cached_property
    def manifest(self) -> Manifest:
        """Name every component with its version, settings and corpus or prompt hash."""
        parts: list[tuple[Role, str, Any]] = [
            ("decomposer", self.settings.decomposer, self._decomposer),
            ("query_writer", self.settings.query_writer, self._writer),
            *(("retriever", source.name, source.retriever) for source in self._sources),
            *(("checker", name, checker) for name, checker in self._checkers.items()),
            ("judge", self.settings.judge, self._judge),
        ]
        return Manifest(
            version=version(),
            components=tuple(self.plugins.fingerprint(role, name, part) for role, name, part in parts),
            policy=str(self.policy),
            calibration=f"{self.calibration.name} {digest(self.calibration.model_dump(mode='json'))}",
            k=self.settings.k,
            seed=self.settings.seed,
        )

    def check(self, answer: str | Answer, *, question: str = "") -> AnswerReport:
        """Check one answer; see ``acheck``. Raise ConfigError inside a running event loop, where it would block."""
        return _run(functools.partial(self.acheck, answer, question=question))

    def check_many(self, answers: Iterable[str | Answer]) -> list[AnswerReport]:
        """Check several answers; the reports come in the order of the answers. Otherwise like ``check``."""
        return _run(functools.partial(self.acheck_many, list(answers)))

    async def acheck_many(self, answers: Sequence[str | Answer]) -> list[AnswerReport]:
        """Check several answers one after the other, the claims of each concurrently."""
        return [await self.acheck(answer) for answer in answers]

    async def acheck(self, answer: str | Answer, *, question: str = "") -> AnswerReport:
        """Check one answer and return its report; ``question`` goes with a text, an Answer has its own.

        Raise DecomposeError or PluginContractError if the answer cannot be split into claims, and CorpusError for a corpus
        that cannot be used; a failure on one claim becomes that claim's state ``error``.
        """
        subject = answer if isinstance(answer, Answer) else Answer(id="answer", question=question, text=answer)
        # First, because it opens the corpora: what is wrong with them is known before any work is done.
        manifest = await anyio.to_thread.run_sync(lambda: self.manifest)
        claims = await self._decompose(subject)
        await self._warm_up()
        checked = await self._check_claims(claims)
        verdicts = tuple(
            decide(claim, found.evidence, found.judgement, self.calibration)
            for claim, found in zip(claims, checked, strict=True)
        )
        missing = await anyio.to_thread.run_sync(uncarried_numbers, subject, claims)
        return AnswerReport(
            answer=subject,
            claims=tuple(claims),
            queries=tuple(query for found in checked for query in found.queries),
            retrievals=tuple(item for found in checked for item in found.retrievals),
            evidence=tuple(found.evidence for found in checked),
            judgements=tuple(found.judgement for found in checked),
            verdicts=verdicts,
            accounting=Accounting.of(verdicts),
            warnings=(*_silence(subject, claims), *(f"no claim carries the number {number}" for number in missing)),
            manifest=manifest,
        )

    async def ajudge(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[list[Judgement], list[Verdict]]:
        """Judge claims against evidence that was chosen elsewhere (stages 4 and 5 alone), in the order of the claims."""
        pairs = list(zip(claims, evidence, strict=True))
        judgements = await _in_order(pairs, lambda pair: self._judge_one(*pair))
        verdicts = [
            decide(claim, item, judgement, self.calibration)
            for (claim, item), judgement in zip(pairs, judgements, strict=True)
        ]
        return judgements, verdicts

    async def _warm_up(self) -> None:
        """Let retrievers that can prepare do so once, outside the deadline of any query; a failure shows in the queries."""
        try:
            lock = self._warming.get()
        except LookupError:
            lock = anyio.Lock()
            self._warming.set(lock)
        async with lock:
            for source in self._sources:
                prepare = getattr(source.retriever, "warm_up", None)
                if prepare is not None and source.name not in self._warm:
                    with contextlib.suppress(Exception):
                        await call(prepare)
                    self._warm.add(source.name)

    async def _decompose(self, answer: Answer) -> list[Claim]:
        name = self.settings.decomposer
        try:
            found = await call(self._decomposer.decompose, answer)
        except FactcheckError:
            raise
        except Exception as error:  # a plugin may raise anything; the caller learns which answer and which plugin
            reason = f"decomposer '{name}' failed on answer {answer.id}: {first_line(error)}"
            raise DecomposeError(reason) from error
        claims = examined_list(found, Claim, "decomposer", name)
        size = len(answer.text)
        for claim in claims:
            if claim.answer_id != answer.id or max(claim.span[1], claim.sentence_span[1]) > size:
                rule = f"claim {claim.id} does not belong to answer {answer.id} or lies outside it"
                raise broken("decomposer", name, rule)
        if len({claim.id for claim in claims}) != len(claims):
            raise broken("decomposer", name, "claim ids repeat")
        return claims

    async def _check_claims(self, claims: Sequence[Claim]) -> list[_Checked]:
        keys = [claim.key for claim in claims]
        firsts: dict[str, Claim] = {}
        for key, claim in zip(keys, claims, strict=True):
            firsts.setdefault(key, claim)
        results = await _in_order(list(firsts.values()), self._check_claim)
        found = dict(zip(firsts, results, strict=True))
        return [
            found[key] if firsts[key] is claim else _rebind(found[key], claim)
            for key, claim in zip(keys, claims, strict=True)
        ]

    async def _check_claim(self, claim: Claim) -> _Checked:
        if not claim.checkable:
            judgement = Judgement(claim_id=claim.id, label="not_enough_evidence", rationale="not checkable")
            return _Checked((), (), Evidence(claim_id=claim.id), judgement)
        known = self._memo.get(claim.key)
        if known is not None:
            return _rebind(known, claim)
        try:
            texts = await call(self._writer.write_queries, claim)
            queries = make_queries(claim, texts, writer=self.settings.query_writer)
        except Exception as error:  # a plugin may raise anything; the claim is an error, the others go on
            reason = reason_of(error)
            if not isinstance(error, FactcheckError):
                reason = f"query writer '{self.settings.query_writer}' failed on claim {claim.id}: {reason}"
            judgement = failed_judgement(claim, reason, self.settings.judge)
            return _Checked((), (), Evidence(claim_id=claim.id, complete=False), judgement)
        retrievals = await retrieve_all(queries, self._sources, self.settings.k)
        evidence = fuse(claim.id, retrievals, self.settings.k)
        judgement = await self._judge_one(claim, evidence)
        checked = _Checked(tuple(queries), tuple(retrievals), evidence, judgement)
        # Failures are not kept: the next answer that shares the claim gets a new attempt.
        if judgement.status == "ok" and evidence.complete and len(self._memo) < MEMO_LIMIT:
            self._memo[claim.key] = checked
        return checked

    async def _judge_one(self, claim: Claim, evidence: Evidence) -> Judgement:
        return await judge_claim(
            claim, evidence, judge=self._judge, judge_name=self.settings.judge, checkers=self._checkers
        )


def _run(work: Callable[[], Awaitable[T]]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        hint = "Await acheck() there."
        raise ConfigError("check() was called inside a running event loop, which it would block.", hint=hint)
    results: list[T] = []

    async def keep() -> None:
        # Kept and not returned: asyncio takes the repr of the main task, its result included, as it restores the handler
        # of signals, which for a report on 10,000 claims lasts 18 s.
        results.append(await work())

    anyio.run(keep)
    return results[0]


async def _in_order(items: Sequence[S], work: Callable[[S], Awaitable[T]]) -> list[T]:
    """Do the work on all items, CONCURRENT_CLAIMS at a time; the results have the order of the items."""
    results: dict[int, T] = {}
    limiter = anyio.CapacityLimiter(CONCURRENT_CLAIMS)

    async def one(index: int) -> None:
        async with limiter:
            results[index] = await work(items[index])

    async with anyio.create_task_group() as group:
        for index in range(len(items)):
            group.start_soon(one, index)
    return [results[index] for index in range(len(items))]


def _rebind(found: _Checked, claim: Claim) -> _Checked:
    """Give what was found for an equal claim to this one."""
    names = {query.id: f"{claim.id}.q{i}" for i, query in enumerate(found.queries, start=1)}
    return _Checked(
        tuple(q.model_copy(update={"id": names[q.id], "claim_id": claim.id}) for q in found.queries),
        tuple(
            r.model_copy(update={"query_id": names[r.query_id], "seconds": 0.0, "cached": True})
            for r in found.retrievals
        ),
        found.evidence.model_copy(update={"claim_id": claim.id}),
        found.judgement.model_copy(update={"claim_id": claim.id}),
    )


def _silence(answer: Answer, claims: Sequence[Claim]) -> list[str]:
    """Warn of words from which no claim was made, so that nothing checked is not taken for nothing wrong."""
    words = len(answer.text.split())
    return [f"no claim was made of the {words} words of the answer"] if words and not claims else []
