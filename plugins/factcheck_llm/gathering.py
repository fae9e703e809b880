"""Add what further searches find to the evidence of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, Self

from factcheck.retrieve import RRF_CONSTANT, folded
from factcheck.schema import Evidence, Query, Retrieval


class Gathered(NamedTuple):
    """Hold the queries that were added, their retrievals, and the evidence with what they found behind what was there."""

    queries: tuple[Query, ...]
    retrievals: tuple[Retrieval, ...]
    evidence: Evidence

    def joined(self, later: Gathered) -> Self:
        """Return both, where ``later`` began with the evidence of this one."""
        return self._replace(
            queries=(*self.queries, *later.queries),
            retrievals=(*self.retrievals, *later.retrievals),
            evidence=later.evidence,
        )

    def numbered(self, before: int) -> Self:
        """Return this with query ids that no other judge's searches have, where ``before`` searches were made already."""
        names = {query.id: f"{query.claim_id}.g{before + n}" for n, query in enumerate(self.queries, start=1)}
        return self._replace(
            queries=tuple(query.model_copy(update={"id": names[query.id]}) for query in self.queries),
            retrievals=tuple(
                item.model_copy(update={"query_id": names.get(item.query_id, item.query_id)})
                for item in self.retrievals
            ),
        )

    def extended(self, query: Query, retrievals: Sequence[Retrieval], limit: int) -> Self:
        """Return this with the passages of one more query that are new, best first, up to ``limit`` passages in all.

        A passage is new if its text is: a search engine may return other words of one page for another query. Evidence is
        incomplete once a retrieval failed.
        """
        passages = list(self.evidence.passages)
        ids = {passage.id for passage in passages}
        seen = {folded(passage.text) for passage in passages}
        found = [passage for item in retrievals for passage in item.passages]
        for passage in sorted(found, key=lambda passage: passage.rank):
            if len(passages) >= limit:
                break
            if folded(passage.text) not in seen:
                seen.add(folded(passage.text))
                # One id may stand for different texts; quotes must still resolve.
                names = (passage.id if n == 1 else f"{passage.id}#{n}" for n in count(1))
                name = next(name for name in names if name not in ids)
                ids.add(name)
                rank = len(passages) + 1
                score = min([1.0 / (RRF_CONSTANT + rank), *(p.score for p in passages[-1:])])
                passages.append(passage.model_copy(update={"id": name, "rank": rank, "score": score}))
        complete = self.evidence.complete and all(item.status == "ok" for item in retrievals)
        evidence = self.evidence.model_copy(update={"passages": tuple(passages), "complete": complete})
        return self._replace(
            queries=(*self.queries, query), retrievals=(*self.retrievals, *retrievals), evidence=evidence
        )
