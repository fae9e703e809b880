"""The order of the stages: the only module that knows it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from factcheck.assembly import Assembly
from factcheck.calibrate import default_calibration
from factcheck.calling import broken, call, examined_list, reason_of
from factcheck.checked import Checked, check_gathered, failed_searches, without_answer
from factcheck.checking import CheckerProcesses
from factcheck.config import Settings, validate_table
from factcheck.decompose import uncarried_numbers
from factcheck.errors import ConfigError, DecomposeError, FactcheckError, RunError, UserError
from factcheck.judge import failed_judgement, judge_claim
from factcheck.ledger import Maker
from factcheck.llm.budget import StageUsage
from factcheck.memo import Memo
from factcheck.plugins import Plugins
from factcheck.queries import make_queries
from factcheck.recording import identity, recorded
from factcheck.registry import first_line
from factcheck.retrieve import fuse, retrieve_all
from factcheck.schema import (
    Accounting,
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Judgement,
    Manifest,
    Model,
    Verdict,
    digest,
)
from factcheck.spending import Account, account
from factcheck.together import together
from factcheck.verdicts import Policy, decide, parse_policy

# The claims of both texts of 64 pairs of 32 claims each; with eight passages for each that is some 150 MB.
MEMO_SIZE = 4_096
# To start a process takes as long as to check some hundred claims.
PROCESSES_FROM = 200

T = TypeVar("T")


class _Split(Model):
    """Hold what a decomposer made of an answer."""

    claims: tuple[Claim, ...]
    warnings: tuple[str, ...] = ()
    whole: bool = True


class FactChecker:
    """Check answers with one set of components.

    Keyword arguments are the fields of ``factcheck.config.Settings`` but for its tables of single components, which
    ``from_settings`` takes. Claims with equal keys are judged once and share their verdict, within an answer and between
    answers, as long as the object lives; with a ledger also between runs. Also a context manager, which closes the ledger.
    """

    def __init__(self, *, plugins: Plugins | None = None, **settings: Any) -> None:
        self._setup(validate_table(Settings, settings, where="the settings"), plugins, None)

    @classmethod
    def from_settings(
        cls, settings: Settings, *, plugins: Plugins | None = None, usual_ledger: Path | None = None
    ) -> FactChecker:
        """Build a checker from validated settings.

        ``usual_ledger`` is where a run records if the settings name no ledger and it calls models or asks over the network.
        """
        checker = cls.__new__(cls)
        checker._setup(settings, plugins, usual_ledger)
        return checker

    def _setup(self, settings: Settings, plugins: Plugins | None, usual_ledger: Path | None) -> None:
        self.settings = settings
        self.calibration = default_calibration()
        self.policy: Policy = parse_policy(settings.policy, default_threshold=self.calibration.threshold)
        self.plugins = plugins if plugins is not None else Plugins()
        self._parts = Assembly(settings, self.plugins, usual_ledger)
        self._ledger = self._parts.ledger
        self._memo: Memo[Checked] = Memo(MEMO_SIZE, keeps=lambda found: found.whole)
        self._judged = 0
        self._processes: CheckerProcesses | None = None
        self._warm: set[str] = set()
        self._warming: RunVar[anyio.Lock] = RunVar(f"warming {uuid.uuid4()}")
        self._places: RunVar[anyio.CapacityLimiter] = RunVar(f"places {uuid.uuid4()}")

    def close(self) -> None:
        """Close the ledger and end the processes; closing twice does nothing."""
        self._parts.close()
        if self._processes is not None:
            self._processes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @functools.cached_property
    def manifest(self) -> Manifest:
        """Name every component with its version, settings and corpus or prompt hash."""
        return self._parts.manifest(self.policy, self.calibration)

    @property
    def usage(self) -> Mapping[str, StageUsage]:
        """Return what the model calls of each stage have used since the checker was made, failed ones included."""
        return self._parts.budget.usage

    @property
    def reaches_out(self) -> bool:
        """Tell whether a component asks a model or the network."""
        return self._parts.reaches_out

    @property
    def exhausted(self) -> str:
        """Return why the budget refuses further work, "" as long as it does not."""
        return self._parts.budget.exceeded

    def account(self, inputs: object) -> AbstractAsyncContextManager[Account]:
        """Keep the account of a run on ``inputs`` (JSON): what it spends, and with a ledger what it has spent before."""
        counted = functools.partial(self._parts.counted, self.manifest)
        return account(self._ledger, digest([self.manifest.digest, inputs]), counted)

    def check(self, answer: str | Answer, *, question: str = "") -> AnswerReport:
        """Check one answer; see ``acheck``. Raise ConfigError inside a running event loop, where it would block."""
        return run_async(functools.partial(self.acheck, answer, question=question))

    def check_many(self, answers: Iterable[str | Answer]) -> list[AnswerReport]:
        """Check several answers at once; the reports come in the order of the answers. Otherwise like ``check``."""
        return run_async(functools.partial(self.acheck_many, list(answers)))

    async def acheck_many(self, answers: Sequence[str | Answer]) -> list[AnswerReport]:
        """Check several answers at once, ``concurrency`` claims of them at a time."""
        # Answers of one claim must fill the places for claims too.
        limiter = anyio.CapacityLimiter(self.settings.concurrency)
        return await together(answers, self.acheck, limiter=limiter)

    async def acheck(self, answer: str | Answer, *, question: str = "") -> AnswerReport:
        """Check one answer and return its report; ``question`` goes with a text, an Answer has its own.

        An answer whose ``meta["model"]`` names the judge's own model is refused with a ConfigError. Raise DecomposeError or
        PluginContractError if the answer cannot be split into claims, BudgetExceededError if the
        budget ends before it is, and a UserError for what no claim could do without: a corpus, a key, an entry that a replay
        lacks. A failure on one claim, the end of the budget included, becomes that claim's state ``error``.
        """
        subject = answer if isinstance(answer, Answer) else Answer(id="answer", question=question, text=answer)
        self._parts.host.check_author(subject.meta.get("model"))
        # First, because it opens the corpora: what is wrong with them is known before any work is done.
        manifest = await anyio.to_thread.run_sync(lambda: self.manifest)
        split = await self._split(subject)
        claims = split.claims
        if self._ledger is None or self._ledger.mode == "record":
            await self._warm_up()
        checked = await self._check_claims(claims)
        verdicts = tuple(
            decide(claim, found.evidence, found.judgement, self.calibration)
            for claim, found in zip(claims, checked, strict=True)
        )
        missing = await anyio.to_thread.run_sync(uncarried_numbers, subject, claims)
        warnings = [*split.warnings, *_silence(subject, claims), *failed_searches(checked)]
        return AnswerReport(
            answer=subject,
            claims=tuple(claims),
            queries=tuple(query for found in checked for query in found.queries),
            retrievals=tuple(item for found in checked for item in found.retrievals),
            evidence=tuple(found.evidence for found in checked),
            judgements=tuple(found.judgement for found in checked),
            verdicts=verdicts,
            accounting=Accounting.of(verdicts),
            warnings=(*warnings, *(f"no claim carries the number {number}" for number in missing)),
            manifest=manifest,
        )

    async def ajudge(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence]
    ) -> tuple[list[Judgement], list[Verdict]]:
        """Judge claims against evidence that was chosen elsewhere (stages 4 and 5 alone), in the order of the claims."""
        pairs = list(zip(claims, evidence, strict=True))
        judgements = await together(pairs, lambda pair: self._judge_given(*pair), limiter=self._limiter())
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
            for source in self._parts.every_source:
                prepare = getattr(source.retriever, "warm_up", None)
                if prepare is not None and source.name not in self._warm:
                    with contextlib.suppress(Exception):
                        await call(prepare)
                    self._warm.add(source.name)

    async def _split(self, answer: Answer) -> _Split:
        async def compute() -> _Split:
            self._parts.budget.check_time()
            return await self._decompose(answer)

        given = answer.model_dump(mode="json")
        return await recorded(
            self._ledger, "decompose", self._split_maker, given, compute, _Split, good=lambda split: split.whole
        )

    async def _decompose(self, answer: Answer) -> _Split:
        name = self.settings.decomposer
        try:
            found = await call(self._parts.decomposer.decompose, answer)
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
        warnings = tuple(str(warning) for warning in getattr(found, "warnings", ()))
        return _Split(claims=tuple(claims), warnings=warnings, whole=bool(getattr(found, "whole", True)))

    async def _check_claims(self, claims: Sequence[Claim]) -> list[Checked]:
        firsts: dict[str, Claim] = {}
        keys = [claim.key for claim in claims]
        for key, claim in zip(keys, claims, strict=True):
            firsts.setdefault(key, claim)
        held = {key: self._memo.kept(key) for key in firsts}
        found = {key: checked for key, checked in held.items() if checked is not None}
        missing = {key: claim for key, claim in firsts.items() if key not in found}
        results = await together(list(missing.values()), self._check_claim, limiter=self._limiter())
        found |= zip(missing, results, strict=True)
        return [
            found[key].rebound(claim, again=firsts[key] is not claim) for key, claim in zip(keys, claims, strict=True)
        ]

    async def _check_claim(self, claim: Claim) -> Checked:
        if not claim.checkable:
            judgement = Judgement(claim_id=claim.id, label="not_enough_evidence", rationale="not checkable")
            return Checked(evidence=Evidence(claim_id=claim.id), judgement=judgement)
        maker = self._claim_maker
        return await self._memo.obtain(
            claim.key,
            lambda: recorded(
                self._ledger,
                "claim",
                maker,
                without_answer(claim),
                lambda: self._check_anew(claim),
                Checked,
                good=lambda found: found.whole,
                dump=Checked.packed,
                load=Checked.unpacked,
            ),
        )

    @functools.cached_property
    def _split_maker(self) -> Maker:
        return identity(self.manifest.components[0])

    @functools.cached_property
    def _claim_maker(self) -> Maker:
        return identity(*self.manifest.components[1:], k=self.settings.k)

    @functools.cached_property
    def _judgement_maker(self) -> Maker:
        return identity(*(part for part in self.manifest.components if part.role in ("checker", "judge")))

    async def _check_anew(self, claim: Claim) -> Checked:
        try:
            self._parts.budget.check_time()
            texts = await call(self._parts.writer.write_queries, claim)
            queries = make_queries(claim, texts, writer=self.settings.query_writer)
        except UserError:
            raise
        except Exception as error:  # a plugin may raise anything; the claim is an error, the others go on
            reason = reason_of(error)
            if not isinstance(error, FactcheckError):
                reason = f"query writer '{self.settings.query_writer}' failed on claim {claim.id}: {reason}"
            judgement = failed_judgement(claim, reason, self.settings.judge)
            return Checked(evidence=Evidence(claim_id=claim.id, complete=False), judgement=judgement)
        await self._parts.record_searches(self._parts.sources)
        retrievals = await retrieve_all(queries, self._parts.sources, self.settings.k)
        evidence = fuse(claim.id, retrievals, self.settings.k)
        judge = self._parts.judge
        if hasattr(judge, "gather"):
            try:
                found = await call(judge.gather, claim, evidence, tuple(queries))
                more, further, evidence = check_gathered(found, claim, evidence, queries, self.settings.judge)
            except UserError:
                raise
            except Exception as error:  # as above
                judgement = failed_judgement(claim, reason_of(error), self.settings.judge)
                lost = evidence.model_copy(update={"complete": False})
                return Checked(queries=tuple(queries), retrievals=tuple(retrievals), evidence=lost, judgement=judgement)
            queries, retrievals = [*queries, *more], [*retrievals, *further]
        judgement = await self._judge_one(claim, evidence)
        found = Checked(queries=tuple(queries), retrievals=tuple(retrievals), evidence=evidence, judgement=judgement)
        return found.numbered()

    async def _judge_given(self, claim: Claim, evidence: Evidence) -> Judgement:
        if self._ledger is None:
            return await self._judge_one(claim, evidence)
        shown = evidence.model_dump(mode="json", exclude={"claim_id"})
        given = {"claim": without_answer(claim), "evidence": shown}
        found = await recorded(
            self._ledger,
            "judgement",
            self._judgement_maker,
            given,
            lambda: self._judge_one(claim, evidence),
            Judgement,
            good=lambda judgement: judgement.status == "ok",
        )
        return found.model_copy(update={"claim_id": claim.id})

    async def _judge_one(self, claim: Claim, evidence: Evidence) -> Judgement:
        try:
            self._parts.budget.check_time()
        except RunError as error:  # what was found by now may lack what there was no time for
            return failed_judgement(claim, reason_of(error), self.settings.judge)
        self._judged += 1
        if self._judged == PROCESSES_FROM:
            self._processes = self._parts.checker_processes()
        return await judge_claim(
            claim,
            evidence,
            judge=self._parts.judge,
            judge_name=self.settings.judge,
            checkers=self._parts.checkers,
            processes=self._processes,
        )

    def _limiter(self) -> anyio.CapacityLimiter:
        """Return the places for claims in this event loop, which all answers share."""
        found = self._places.get(None)
        if found is None:
            found = anyio.CapacityLimiter(self.settings.concurrency)
            self._places.set(found)
        return found


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Do the work in an event loop of its own; raise ConfigError inside a running one, which it would block."""
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


def _silence(answer: Answer, claims: Sequence[Claim]) -> list[str]:
    """Warn of words from which no claim was made, so that nothing checked is not taken for nothing wrong."""
    words = len(answer.text.split())
    return [f"no claim was made of the {words} words of the answer"] if words and not claims else []
