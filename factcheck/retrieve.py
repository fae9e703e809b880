"""Stage 3: every query to every retriever, then fusion of what came back."""

from __future__ import annotations

import functools
import inspect
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.lowlevel import RunVar

from factcheck.breaker import Breaker
from factcheck.calling import broken, call, examined_list, reason_of
from factcheck.errors import UserError
from factcheck.memo import Memo
from factcheck.schema import Evidence, Passage, Query, Retrieval
from factcheck.threads import Threads
from factcheck.together import together

# Cormack, Clarke and Buettcher, "Reciprocal rank fusion outperforms Condorcet" (SIGIR 2009), use 60.
RRF_CONSTANT = 60
MEMO_SIZE = 512
# Of plain functions, which take turns in the interpreter anyway.
THREADS = 8

# Returns the retrieval that is recorded for a query and k, else what the last argument makes.
Recorded = Callable[[Query, int, Callable[[], Awaitable[Retrieval]]], Awaitable[Retrieval]]


def _limiter() -> RunVar[anyio.CapacityLimiter]:
    # Some releases of anyio tell such variables apart by their name alone.
    return RunVar(f"limiter {uuid.uuid4()}")


@dataclass(slots=True)
class Source:
    """Hold a retriever with its limits and its circuit breaker, which makes queries be skipped.

    ``deadline`` is in seconds for one query; ``time_left`` returns those of the run, None for no end.
    """

    name: str
    retriever: Any
    deadline: float
    concurrency: int = THREADS
    recorded: Recorded | None = field(default=None, repr=False)
    time_left: Callable[[], float | None] = field(default=lambda: None, repr=False)
    breaker: Breaker = field(default_factory=Breaker, repr=False)
    # The claims of an answer share queries, the question among them, for which a service would be paid each time.
    memo: Memo[Retrieval] = field(default_factory=lambda: Memo(MEMO_SIZE, keeps=lambda r: r.status == "ok"), repr=False)
    # Bound to the event loop, because a checker may be used from several loops one after the other.
    limiter: RunVar[anyio.CapacityLimiter] = field(default_factory=_limiter, repr=False)
    threads: Threads = field(default_factory=Threads, repr=False)

    async def retrieve(self, query: Query, k: int) -> Retrieval:
        """Return what is known for an equal query or recorded, or ask once.

        Every failure but a UserError becomes a Retrieval that says what went wrong.
        """
        found = await self.memo.obtain(f"{k} {query.text}", lambda: self._recorded(query, k))
        return found if found.query_id == query.id else found.model_copy(update={"query_id": query.id})

    async def _recorded(self, query: Query, k: int) -> Retrieval:
        if self.recorded is None:
            return await self._ask(query, k)
        return await self.recorded(query, k, lambda: self._ask(query, k))

    async def _ask(self, query: Query, k: int) -> Retrieval:
        if getattr(self.retriever, "quick", False) is True:  # it neither waits nor can be cut short
            return await self._asked(query, k, None)
        try:
            limiter = self.limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(self.concurrency)
            self.limiter.set(limiter)
        async with limiter:
            left = self.time_left()
            return await self._asked(query, k, self.deadline if left is None else min(self.deadline, left))

    async def _asked(self, query: Query, k: int, allowed: float | None) -> Retrieval:
        if reason := self.breaker.refusal():
            return Retrieval(query_id=query.id, retriever=self.name, status="skipped", error=reason)
        started = time.perf_counter()
        try:
            if allowed is None:
                found = await call(self.retriever.retrieve, query, k)
            else:
                with anyio.move_on_after(allowed) as scope:
                    found = await call(self.retriever.retrieve, query, k, threads=self.threads)
                if scope.cancelled_caught:
                    return self._failed(query, f"no reply within {allowed:g} s", started)
            passages = check_passages(found, k, self.name)
        except UserError:  # a missing key or a broken corpus is the same for every query
            raise
        except Exception as error:  # a plugin may raise anything; it must not cost the other retrievers' results
            return self._failed(query, reason_of(error), started)
        self.breaker.succeeded()
        seconds = time.perf_counter() - started
        return Retrieval(query_id=query.id, retriever=self.name, status="ok", passages=passages, seconds=seconds)

    def _failed(self, query: Query, reason: str, started: float) -> Retrieval:
        self.breaker.failed(reason)
        seconds = time.perf_counter() - started
        return Retrieval(query_id=query.id, retriever=self.name, status="failed", error=reason, seconds=seconds)


def places(retriever: Any, concurrency: int) -> int:
    """Return how many queries a retriever gets at once.

    That is ``concurrency`` or its own bound of that name if it waits for a network, few if it computes.
    """
    if not inspect.iscoroutinefunction(getattr(retriever, "retrieve", None)):
        return min(THREADS, concurrency)
    own = getattr(retriever, "concurrency", None)
    return min(own, concurrency) if isinstance(own, int) and own > 0 else concurrency


def check_passages(found: object, k: int, retriever: str) -> tuple[Passage, ...]:
    """Return what a retriever found, or raise PluginContractError naming the rule it broke; nothing is mended."""
    passages = examined_list(found, Passage, "retriever", retriever)
    scores = [passage.score for passage in passages]
    rules = {
        f"it returned {len(passages)} passages when {k} were asked for": len(passages) <= k,
        "its ranks do not count 1, 2, …": [p.rank for p in passages] == list(range(1, len(passages) + 1)),
        "its scores rise": scores == sorted(scores, reverse=True),
        "it returned a passage twice": len({(p.corpus, p.id) for p in passages}) == len(passages),
    }
    for rule, kept in rules.items():
        if not kept:
            raise broken("retriever", retriever, rule)
    return tuple(passages)


async def retrieve_all(queries: Sequence[Query], sources: Sequence[Source], k: int) -> list[Retrieval]:
    """Send every query to every source at once; the result is ordered by query, then by source.

    Raise the UserError of a source.
    """
    quick = [source for source in sources if getattr(source.retriever, "quick", False)]
    # A task costs as much as a quick query; those do not wait, and so need none of their own.
    found = {(query.id, source.name): await source.retrieve(query, k) for source in quick for query in queries}
    pairs = [(query, source) for query in queries for source in sources]
    waiting = [pair for pair in pairs if (pair[0].id, pair[1].name) not in found]
    others = await together(waiting, lambda pair: pair[1].retrieve(pair[0], k)) if waiting else []
    found |= {(query.id, source.name): item for (query, source), item in zip(waiting, others, strict=True)}
    return [found[query.id, source.name] for query, source in pairs]


def fuse(claim_id: str, retrievals: Sequence[Retrieval], k: int) -> Evidence:
    """Merge the retrievals of one claim into its best ``k`` passages by reciprocal rank fusion.

    Equal passages (same corpus and id, or same text) count once, also within one retrieval; ties go to the passage seen
    first. ``complete`` is false if any retrieval failed or was skipped.
    """
    ranks: dict[tuple[str, str], list[int]] = {}
    first: dict[tuple[str, str], Passage] = {}
    by_text: dict[str, tuple[str, str]] = {}
    for retrieval in retrievals:
        best: dict[tuple[str, str], int] = {}
        for passage in retrieval.passages:
            key = by_text.setdefault(folded(passage.text), (passage.corpus, passage.id))
            first.setdefault(key, passage)
            best.setdefault(key, passage.rank)
        for key, rank in best.items():
            ranks.setdefault(key, []).append(rank)
    # fsum, because a plain sum depends on the order of its terms, and ties would then be no ties.
    scores = {key: math.fsum(1.0 / (RRF_CONSTANT + rank) for rank in found) for key, found in ranks.items()}
    order = sorted(scores, key=lambda key: -scores[key])[:k]
    passages: dict[str, Passage] = {}
    for rank, key in enumerate(order, start=1):
        name = first[key].id
        while name in passages:  # two corpora may use one id for different texts; quotes must still resolve
            name = f"{first[key].corpus}:{name}"
        passages[name] = first[key].model_copy(update={"id": name, "rank": rank, "score": scores[key]})
    complete = all(retrieval.status == "ok" for retrieval in retrievals)
    return Evidence(claim_id=claim_id, passages=tuple(passages.values()), complete=complete)


@functools.lru_cache(maxsize=2048)
def folded(text: str) -> str:
    """Return the text by which two passages count as one: white space of every kind is a single space."""
    return " ".join(text.split())
