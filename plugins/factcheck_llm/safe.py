"""The judge ``safe``: searches step by step, each from what the ones before found, then judges.

The method is that of SAFE (Wei et al., 2024), with an early end: as soon as the model says that the passages decide the
claim, or searches bring nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from factcheck.errors import ConfigError
from factcheck.interfaces import Host, Search
from factcheck.retrieve import Source, retrieve_all
from factcheck.schema import Claim, Evidence, Finding, Judgement, Query, Retrieval
from factcheck_llm.delimit import enclose, encodable
from factcheck_llm.gathering import Gathered
from factcheck_llm.judge import PROMPT, RETRY, Rater
from factcheck_llm.reply import Reply
from factcheck_llm.shown import show
from factcheck_llm.stage import Asked, Client, StageSettings, marked
from factcheck_llm.wording import cleaned

NEXT = "queries.next.v1"
STAGE = "search"
_ASSUMED_WORDS = 12
_ASSUMED_MISSING = "The passages do not say whether the claim holds for the population and the condition that it names."


class NextReply(Reply):
    """Hold what the model wants to search next."""

    missing: str = ""
    enough: bool
    query: str = ""


class SafeJudge(Rater):
    """Gather evidence in at most ``steps`` searches, then judge by all of it with the quote rules of ``llm``.

    A host calls ``gather`` between its own retrieval and its checkers, puts the queries, retrievals and evidence that it
    returns in place of its own, and calls ``judge`` with that evidence, so that every passage behind a verdict is in the
    report and passes the checkers.
    """

    version = "1"
    name: ClassVar[str] = "safe"
    prompt_ids: ClassVar[tuple[str, ...]] = (NEXT, PROMPT, RETRY)

    class Settings(Rater.Settings):
        """Set the searches.

        ``results`` is the number of passages asked of each retriever for a query, ``passages`` the most that the evidence
        may hold, ``patience`` how many searches in a row may bring nothing new. ``retrievers`` () are those of the run;
        ``deadline`` is in seconds for one query where no host searches.
        """

        steps: int = Field(default=5, ge=1, le=20)
        results: int = Field(default=3, ge=1, le=50)
        passages: int = Field(default=20, ge=1, le=200)
        patience: int = Field(default=1, ge=0, le=20)
        retrievers: tuple[str, ...] = ()
        deadline: float = Field(default=30.0, gt=0, le=3600)

    def __init__(
        self,
        settings: StageSettings | None = None,
        *,
        client: Client | None = None,
        prompts: Path | None = None,
        retrievers: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(settings, client=client, prompts=prompts)
        self._search: Search | None = self._own_search(retrievers) if retrievers is not None else None

    def connect(self, host: Host) -> None:
        """Take client and searches from the host."""
        super().connect(host)
        self._search = self._search or host.search(self.settings.retrievers)

    async def gather(
        self, claim: Claim, evidence: Evidence, queries: Sequence[Query] = (), *, search: Search | None = None
    ) -> Gathered:
        """Search further, beginning with the evidence at hand and the queries that led to it.

        Raises ConfigError without a retriever, and what the client raises; failed retrievals make the evidence incomplete.
        """
        send = search or self._search
        if send is None:
            raise ConfigError(f"judge '{self.name}' has no retriever to search with.", hint="Run it in a FactChecker.")
        found = Gathered((), (), evidence)
        tried = [query.text for query in queries]
        dry = 0
        for step in range(1, self.settings.steps + 1):
            reply = await self._next(claim, found.evidence, tried)
            text = cleaned(reply.query, claim)
            repeated = text.casefold() in {query.casefold() for query in tried}
            decided = reply.enough and bool(found.evidence.passages)
            if decided or not text or repeated or len(found.evidence.passages) >= self.settings.passages:
                break
            tried.append(text)
            query = Query(id=f"{claim.id}.s{step}", claim_id=claim.id, text=text)
            before = len(found.evidence.passages)
            found = found.extended(query, await send(query, self.settings.results), self.settings.passages)
            dry = dry + 1 if len(found.evidence.passages) == before else 0
            if dry > self.settings.patience:
                break
        return found

    async def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Judge by the evidence that was gathered; raises ConfigError if nothing could have been gathered."""
        if self._search is None:
            raise ConfigError(
                f"judge '{self.name}' was asked to judge, and had no retriever to search with.",
                hint="Run it in a FactChecker, or use llm for evidence that is given.",
            )
        return await self.rate(claim, evidence, findings)

    async def _next(self, claim: Claim, evidence: Evidence, tried: Sequence[str]) -> NextReply:
        shown = show(claim, evidence.passages, self.settings.passage_limit)
        raw = marked(
            question=claim.question,
            context=claim.context,
            claim=claim.text,
            asked="\n".join(tried),
            known="\n".join(f"{item.passage.title}\n{item.text}" for item in shown),
        )
        mark = raw["mark"]
        drawn = {
            "asked": "\n".join(enclose("search", text, mark) for text in raw["asked"].split("\n") if text),
            "known": "\n".join(item.drawn(mark) for item in shown),
        }
        # Never enough, and each time another search: an estimate takes every step.
        words = " ".join(encodable(claim.text).split()[:_ASSUMED_WORDS])
        assumed = NextReply(missing=_ASSUMED_MISSING, enough=False, query=f"{words} {len(tried) + 1}")
        asked = Asked.of(self.prompt(NEXT), {**raw, **drawn})
        return await self.ask(asked, NextReply, stage=STAGE, assumed=assumed)

    def _own_search(self, retrievers: Mapping[str, Any]) -> Search:
        sources = [Source(name, retriever, self.settings.deadline) for name, retriever in retrievers.items()]

        async def search(query: Query, k: int) -> Sequence[Retrieval]:
            return await retrieve_all([query], sources, k)

        return search
