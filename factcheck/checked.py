"""What the stages found for one claim, shared by all claims that are equal to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from factcheck.calling import broken, examined, examined_list
from factcheck.schema import Claim, Evidence, Judgement, Model, Query, Retrieval

# What differs between the searches that found one passage.
_OF_A_SEARCH = ("id", "rank", "score")


class Checked(Model):
    """Hold the queries, retrievals, evidence and judgement of a claim."""

    queries: tuple[Query, ...] = ()
    retrievals: tuple[Retrieval, ...] = ()
    evidence: Evidence
    judgement: Judgement

    @property
    def whole(self) -> bool:
        """Tell whether nothing failed, so that it may be kept: what failed gets a new attempt."""
        return self.judgement.status == "ok" and self.evidence.complete

    def numbered(self) -> Self:
        """Return this with the ids of its queries counted on, whatever the judge called its own."""
        names = [f"{self.evidence.claim_id}.q{i}" for i in range(1, len(self.queries) + 1)]
        return self if [query.id for query in self.queries] == names else self._named(self.evidence.claim_id)

    def rebound(self, claim: Claim, *, again: bool = False) -> Self:
        """Return this for an equal claim; ``again`` marks the retrievals as shared within one answer."""
        found = self if self.evidence.claim_id == claim.id else self._named(claim.id)
        if not again:
            return found
        shared = {"seconds": 0.0, "cached": True}
        return found.model_copy(update={"retrievals": tuple(r.model_copy(update=shared) for r in found.retrievals)})

    def packed(self) -> dict[str, Any]:
        """Return this as JSON that holds each passage once, however many searches found it."""
        dumped = self.model_dump(mode="json")
        pool: dict[str, int] = {}
        for holder in (*dumped["retrievals"], dumped["evidence"]):
            for passage in holder["passages"]:
                own = {name: passage.pop(name) for name in tuple(passage) if name not in _OF_A_SEARCH}
                passage["is"] = pool.setdefault(json.dumps(own), len(pool))
        return {**dumped, "passages": [json.loads(own) for own in pool]}

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Self:
        """Return what ``packed`` made JSON of."""
        whole = {name: value for name, value in packed.items() if name != "passages"}

        def filled(holder: Mapping[str, Any]) -> dict[str, Any]:
            passages = [
                {**packed["passages"][p["is"]], **{name: p[name] for name in _OF_A_SEARCH}} for p in holder["passages"]
            ]
            return {**holder, "passages": passages}

        retrievals = [filled(item) for item in whole["retrievals"]]
        return cls.model_validate({**whole, "retrievals": retrievals, "evidence": filled(whole["evidence"])})

    def _named(self, claim_id: str) -> Self:
        names = {query.id: f"{claim_id}.q{i}" for i, query in enumerate(self.queries, start=1)}
        return self.model_copy(
            update={
                "queries": tuple(q.model_copy(update={"id": names[q.id], "claim_id": claim_id}) for q in self.queries),
                "retrievals": tuple(r.model_copy(update={"query_id": names[r.query_id]}) for r in self.retrievals),
                "evidence": self.evidence.model_copy(update={"claim_id": claim_id}),
                "judgement": self.judgement.model_copy(update={"claim_id": claim_id}),
            }
        )


def without_answer(claim: Claim) -> dict[str, Any]:
    """Return the fields of a claim on which its verdict depends: those that ``Claim.key`` hashes."""
    return {"text": claim.text, "context": claim.context, "question": claim.question, "kind": claim.kind}


def check_gathered(
    found: Any, claim: Claim, before: Evidence, asked: Sequence[Query], judge: str
) -> tuple[list[Query], list[Retrieval], Evidence]:
    """Return what a judge's own searches brought, or raise PluginContractError if a passage comes from none of them."""
    queries = examined_list(list(getattr(found, "queries", ())), Query, "judge", judge)
    retrievals = examined_list(list(getattr(found, "retrievals", ())), Retrieval, "judge", judge)
    evidence = examined(getattr(found, "evidence", None), Evidence, "judge", judge)
    names = [query.id for query in (*asked, *queries)]
    ids = {query.id for query in queries}
    sources = [(item.query_id, item.retriever) for item in retrievals]
    known = {(p.corpus, p.text) for p in before.passages}
    known |= {(p.corpus, p.text) for item in retrievals for p in item.passages}
    rules = {
        "its searches name another claim": all(q.claim_id == claim.id for q in queries)
        and evidence.claim_id == claim.id,
        "its searches have an id twice": len(set(names)) == len(names),
        "a retriever answered one of its searches twice": len(set(sources)) == len(sources),
        "a retrieval of its searches answers no query of them": all(item.query_id in ids for item in retrievals),
        "its evidence holds a passage that no search found": all(
            (p.corpus, p.text) in known for p in evidence.passages
        ),
        "its evidence holds a passage id twice": len({p.id for p in evidence.passages}) == len(evidence.passages),
        "its evidence is called complete after a search failed": not evidence.complete
        or (before.complete and all(item.status == "ok" for item in retrievals)),
    }
    for rule, kept in rules.items():
        if not kept:
            raise broken("judge", judge, rule)
    return queries, retrievals, evidence


def failed_searches(checked: Sequence[Checked]) -> list[str]:
    """Warn of retrievers that failed, because a claim may have its verdict from what the others found."""
    found: dict[str, list[Retrieval]] = {}
    for item in (retrieval for claim in checked for retrieval in claim.retrievals):
        found.setdefault(item.retriever, []).append(item)
    warnings = []
    for name, items in found.items():
        failed = [item for item in items if item.status != "ok"]
        if failed:
            warnings.append(f"retriever '{name}' failed on {len(failed)} of {len(items)} searches: {failed[0].error}")
    return warnings
