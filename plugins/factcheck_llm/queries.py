"""The query writer ``llm/neutral``: searches that do not repeat the value that the claim makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from factcheck.errors import StageError
from factcheck.llm import ModelRole
from factcheck.schema import Claim
from factcheck_llm.delimit import encodable
from factcheck_llm.reply import Reply
from factcheck_llm.stage import Asked, ModelStage, StageSettings, marked
from factcheck_llm.wording import about, cleaned

PROMPT = "queries.neutral.v2"
RETRY = "queries.retry.v1"
_ASSUMED_WORDS = 12


class QueriesReply(Reply):
    """Hold the queries that the model wrote."""

    queries: tuple[str, ...]


class NeutralQueryWriter(ModelStage):
    """Let a model write searches, and take out of them the values that the claim makes.

    Queries that share no word with the claim or its context are dropped, so that a claim cannot ask for a search of
    something else; if none is left, the model is asked once more, and then it is an error.
    """

    version = "1"
    role: ClassVar[ModelRole] = "query_writer"
    prompt_ids: ClassVar[tuple[str, ...]] = (PROMPT, RETRY)

    class Settings(StageSettings):
        """Set the greatest number of queries for a claim."""

        count: int = Field(default=3, ge=1, le=10)

    async def write_queries(self, claim: Claim) -> list[str]:
        """Return one to ``count`` queries; raises StageError if the model writes none, and what the client raises."""
        values = marked(question=claim.question, context=claim.context, claim=claim.text)
        asked = Asked.of(self.prompt(PROMPT), {**values, "count": str(self.settings.count)})
        assumed = self._assumed(claim)
        reply = await self.ask(asked, QueriesReply, assumed=assumed)
        usable = self._usable(reply.queries, claim)
        if not usable:
            problems = ["none of them names what the claim is about."]
            again = asked.again(reply, self.prompt(RETRY), problems)
            reply = await self.ask(
                again, QueriesReply, assumed=assumed, keep=lambda reply: bool(self._usable(reply.queries, claim))
            )
            usable = self._usable(reply.queries, claim)
        if not usable:
            raise StageError(
                f"the model wrote no usable query for claim {claim.id}, asked twice.",
                hint="Use another model for the query writer, or --query-writer terms.",
            )
        return usable

    def _assumed(self, claim: Claim) -> QueriesReply:
        """Return as many queries as the model may write, of words of the claim."""
        words = encodable(claim.text).split()
        starts = range(min(self.settings.count, len(words)))
        return QueriesReply(queries=tuple(" ".join(words[start : start + _ASSUMED_WORDS]) for start in starts))

    def _usable(self, queries: Sequence[str], claim: Claim) -> list[str]:
        written = (cleaned(query, claim) for query in queries)
        distinct = {text.casefold(): text for text in written if text and about(text, claim)}
        return list(distinct.values())[: self.settings.count]
