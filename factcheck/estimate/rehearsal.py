"""Estimate what a run would use: its stages run on a sample, with stand-ins for models and for retrievers of the network.

Nothing is asked and nothing is written. The calls and their input follow from the prompts of the run, the output from the
reply of usual length that each stage says to go on with. What the ledger of the run holds is found and costs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from factcheck.assembly import Assembly
from factcheck.config import Settings
from factcheck.errors import ConfigError, StageError
from factcheck.host import Host
from factcheck.interfaces import Search
from factcheck.ledger import Ledger
from factcheck.ledger_file import LedgerFile
from factcheck.llm.budget import estimated_tokens
from factcheck.llm.client import Completion, ModelClient
from factcheck.llm.dialects import Ask, Message, instructed
from factcheck.llm.prices import Price
from factcheck.llm.replies import complaint, fitted
from factcheck.llm.settings import ModelSettings
from factcheck.pipeline import FactChecker
from factcheck.plugins import Plugins
from factcheck.recording import recorded_retrieval
from factcheck.retrieve import Source, retrieve_all
from factcheck.schema import Fingerprint, Passage, Query, Retrieval

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
DECOMPOSER = "decomposer"
# Claims of a model for each sentence of rules. GPT-4.1 made 31.9 claims an answer of 380 HealthBench pairs ("When Rubrics
# Fail", Table 6, mean weighted by N); ``sentences`` makes 19.0 of each of 384 reference answers of HealthBench. These are
# not the same answers, so that the quotient is rough.
CLAIMS_A_SENTENCE = 1.7
# Code points; the mean of 20,523 passages of MedQuAD is 1,005, that of 1,000 abstracts of PubMedQA 1,341.
PASSAGE_LENGTH = 1000
_FILLER = "These words stand for a passage that a search would bring, and they are as long as such a passage often is. "
_TITLE = "A title of usual length for a page that a search would find"
_UNBOUNDED = {"ledger": None, "max_usd": None, "max_calls": None, "max_tokens": None, "deadline": None}


class Line(NamedTuple):
    """Tell apart what is added up: the stage, the model, and its price with date and source, None if it is not known."""

    stage: str
    model: str
    price: Price | None
    date: str = ""
    source: str = ""


class Load(NamedTuple):
    """Hold calls and tokens; ``again`` are the input tokens that asking a second time would take."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    again: float = 0.0

    def plus(self, other: Load) -> Load:
        """Return both together."""
        return Load(*(one + more for one, more in zip(self, other, strict=True)))

    def times(self, factor: float) -> Load:
        """Return this load so many times."""
        return Load(*(value * factor for value in self))

    @property
    def twice(self) -> Load:
        """Return the load if every reply were asked for a second time, with the first one and a complaint in the messages."""
        return Load(2 * self.calls, self.tokens_in + self.again, 2 * self.tokens_out)


class Work(NamedTuple):
    """Hold the loads of model calls, and the searches over the network by retriever."""

    loads: Mapping[Line, Load] = {}
    searches: Mapping[str, float] = {}

    def plus(self, other: Work) -> Work:
        """Return both together."""
        loads = {line: self.loads.get(line, Load()).plus(load) for line, load in other.loads.items()}
        searches = {name: self.searches.get(name, 0.0) + count for name, count in other.searches.items()}
        return Work({**self.loads, **loads}, {**self.searches, **searches})

    def times(self, factor: float) -> Work:
        """Return this work so many times."""
        return Work(
            {line: load.times(factor) for line, load in self.loads.items()},
            {name: count * factor for name, count in self.searches.items()},
        )

    @property
    def splits(self) -> bool:
        """Tell whether a model would split text here, whose claims are then not known."""
        return any(line.stage == DECOMPOSER for line in self.loads)

    def with_claims(self, factor: float) -> Work:
        """Return the work for so many claims a sentence: all of it grows but what the decomposer is given."""
        grown = self.times(factor)
        loads = {
            line: load._replace(tokens_out=load.tokens_out * factor) if line.stage == DECOMPOSER else grown.loads[line]
            for line, load in self.loads.items()
        }
        return Work(loads, grown.searches)


class Tally:
    """Add up work as it comes."""

    def __init__(self) -> None:
        self._work = Work()

    def add(self, work: Work) -> None:
        """Add to the work."""
        self._work = self._work.plus(work)

    def drain(self) -> Work:
        """Return the work since the last time."""
        work, self._work = self._work, Work()
        return work


class Peek(Ledger):
    """Find what a ledger holds, and keep what is new in memory alone; ``found`` counts by kind what the file held."""

    def __init__(self, path: Path) -> None:
        there = path.exists()
        super().__init__(path, "record", LedgerFile(path, writable=False) if there else None)
        self.there = there
        self.found: Counter[str] = Counter()
        self._new: dict[tuple[str, str], str] = {}

    async def lookup(self, kind: str, key: str, *, stage: str = "") -> str | None:
        """Return what was kept or what the file holds, None if there is neither."""
        if (kind, key) in self._new:
            return self._new[kind, key]
        value = await super().lookup(kind, key, stage=stage)
        self.found[kind] += value is not None
        return value

    async def _keep(self, kind: str, key: str, fingerprint: object, text: str, cost: Mapping[str, Any]) -> str:
        return self._new.setdefault((kind, key), text)


class Estimator(ModelClient):
    """Stand in for the client of a model: count what it would be asked, and send nothing.

    A stage that takes part calls ``assume``. Any other call is counted and fails, because its reply is not known.
    """

    def __init__(self, settings: ModelSettings, *, tally: Tally, host: Host, ledger: Ledger | None) -> None:
        super().__init__(settings, budget=host.budget, ledger=ledger)
        self._tally = tally

    async def assume(self, messages: Sequence[Message], *, schema: Mapping[str, Any], stage: str, assumed: M) -> M:
        """Return ``assumed``, or the reply that the ledger holds for these messages."""

        async def compute() -> dict[str, Any]:
            self._count(Ask(self.settings, messages, schema, *self._manner), stage, assumed.model_dump_json())
            return {"value": assumed.model_dump(mode="json"), "repaired": False}

        found, _ = await self._remembered("structured", messages, schema, stage, 0, compute)
        return fitted(found["value"], type(assumed))

    async def _call(self, ask: Ask, stage: str) -> Completion:
        self._count(ask, stage, "")
        raise StageError(
            f"the stage '{stage}' asks the model '{self.settings.model}' for a reply that an estimate cannot know.",
            hint="A stage takes part in estimates if it calls the method assume of a client that has one.",
        )

    def _count(self, ask: Ask, stage: str, reply: str) -> None:
        text = "".join(message["content"] for message in instructed(ask))
        tokens_in = estimated_tokens(text) + 4 * len(ask.messages)
        tokens_out = estimated_tokens(reply)
        order = complaint("it is not as asked", ask.schema or {})
        again = tokens_in + tokens_out + estimated_tokens(order) + 8
        self._tally.add(Work({self._line(stage): Load(1, tokens_in, tokens_out, again)}))

    def _line(self, stage: str) -> Line:
        settings = self.settings
        if settings.price is not None:
            return Line(stage, settings.model, Price(*settings.price), source="the settings of the model")
        entry = self.budget.prices.entry(settings.model)
        if entry is None:
            return Line(stage, settings.model, None)
        return Line(stage, settings.model, Price(entry.price_in, entry.price_out), entry.date, entry.source)


class StandIn:
    """Stand in for a retriever of the network: ``k`` passages for every query, different ones each time."""

    def __init__(self, name: str, most: int | None, count: Callable[[], None]) -> None:
        self.name, self._most, self._count = name, most, count

    async def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return passages of usual length."""
        self._count()
        return [self._passage(query, rank) for rank in range(1, min(k, self._most or k) + 1)]

    def _passage(self, query: Query, rank: int) -> Passage:
        source = json.dumps([self.name, query.text, rank])
        name = hashlib.sha256(source.encode()).hexdigest()[:16].translate(str.maketrans("0123456789", "ghijklmnop"))
        text = f"{name} {_FILLER * (PASSAGE_LENGTH // len(_FILLER) + 1)}"[:PASSAGE_LENGTH]
        return Passage(id=name, doc_id=name, corpus=self.name, title=_TITLE, text=text, score=1 / rank, rank=rank)


class _Host(Host):
    """Lend clients that estimate."""

    sends = False

    def __init__(self, *args: Any, tally: Tally, **named: Any) -> None:
        super().__init__(*args, **named)
        self._tally = tally

    def make_client(self, settings: ModelSettings) -> ModelClient:
        return Estimator(settings, tally=self._tally, host=self, ledger=self._ledger)


class _Assembly(Assembly):
    """Put the components together with what stands in for models and the network."""

    def __init__(self, settings: Settings, plugins: Plugins, ledger: Peek | None, tally: Tally) -> None:
        self._peek, self._tally = ledger, tally
        super().__init__(settings, plugins)
        self.checkers = {name: part for name, part in self.checkers.items() if not getattr(part, "network", False)}

    def _open_ledger(self, usual: Path | None) -> Ledger | None:
        return self._peek

    def _make_host(self) -> Host:
        shared = {"budget": self.budget, "ledger": self.ledger, "search": self._search_with, "judge": self._lent}
        return _Host(self.settings, tally=self._tally, **shared)

    def _source(self, name: str) -> Source:
        source = super()._source(name)
        if not _asks_outside(source.retriever):
            return source
        standing = self._stand_in(source, count=lambda: self._tally.add(Work(searches={name: 1.0})))
        if self._peek is not None:
            fingerprint = self.plugins.fingerprint("retriever", name, source.retriever)
            standing.recorded = recorded_retrieval(self._peek, fingerprint)
        return standing

    def _stand_in(self, source: Source, count: Callable[[], None] = lambda: None) -> Source:
        most = getattr(getattr(source.retriever, "settings", None), "k", None)
        part = StandIn(source.name, most if isinstance(most, int) else None, count)
        return Source(source.name, part, source.deadline, concurrency=source.concurrency)

    def _search_with(self, names: Sequence[str]) -> Search:
        """Let every further search bring something new, so that a judge takes all of its steps: an upper figure."""
        held = {source.name: source for source in self.sources}
        chosen = [held.get(name) or self._source(name) for name in names] if names else self.sources
        standing = [source if isinstance(source.retriever, StandIn) else self._stand_in(source) for source in chosen]

        async def search(query: Query, k: int) -> Sequence[Retrieval]:
            return await retrieve_all([query], standing, k)

        return search

    def _lent(self, name: str) -> tuple[Any, Fingerprint]:
        judge, fingerprint = super()._lent(name)
        _check_that_it_asks_the_host(judge, fingerprint)
        return judge, fingerprint


class Rehearsal(FactChecker):
    """Check answers as a run with these settings would, asking nothing and writing nothing, and count.

    ``wanted`` are the settings of that run, ``held`` its ledger, read alone. Raise ConfigError for a replay, which costs
    nothing, and for a component that asks a model or the network on its own.
    """

    wanted: Settings
    held: Peek | None
    tally: Tally

    def _setup(self, settings: Settings, plugins: Plugins | None, usual_ledger: Path | None) -> None:
        if settings.replay:
            raise ConfigError("a replay asks nothing, so there is no cost to estimate.", hint="Leave out --replay.")
        alone = settings.model_copy(update=_UNBOUNDED)
        super()._setup(alone, plugins, None)
        # Kept, because what stands in would not be found in the ledger.
        for component, fingerprint in zip(self._parts.components, self.manifest.components, strict=True):
            _check_that_it_asks_the_host(component, fingerprint)
        path = settings.ledger or (usual_ledger if self.reaches_out else None)
        self.wanted = settings
        self.held = self._ledger = Peek(path) if path is not None else None
        self.tally = Tally()
        self._parts = _Assembly(alone, self.plugins, self.held, self.tally)

    async def reckon(self, part: Callable[[], Awaitable[T]]) -> tuple[T, Work]:
        """Do a part of the run, alone, and return its result and the work that it stands for."""
        self.tally.drain()
        result = await part()
        work = self.tally.drain()
        return result, work.with_claims(CLAIMS_A_SENTENCE) if work.splits else work


def _asks_outside(retriever: Any) -> bool:
    return bool(getattr(retriever, "network", False)) or not getattr(retriever, "corpus_sha256", None)


def _check_that_it_asks_the_host(component: Any, fingerprint: Fingerprint) -> None:
    if fingerprint.role not in ("decomposer", "query_writer", "judge"):
        return
    alone = fingerprint.model and not hasattr(component, "connect")
    if getattr(component, "network", False) or alone:
        role = fingerprint.role.replace("_", " ")
        raise ConfigError(
            f"{role} '{fingerprint.name}' asks its model or the network on its own, and a dry run can neither count nor stop "
            "it.",
            hint="Estimate with another one.",
        )
