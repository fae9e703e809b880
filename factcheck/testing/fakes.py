"""Scripted components for the tests of a plugin, and oracles that play one stage perfectly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from factcheck.errors import PermanentError, RateLimitedError, TransientError
from factcheck.schema import Answer, Claim, Evidence, Finding, Judgement, Label, Passage, Query, Quote, Stance
from factcheck.testing.samples import make_passages

FAULT_ERRORS: Mapping[str, Callable[[], Exception]] = {
    "error": lambda: PermanentError("the source refused the query."),
    "timeout": lambda: TransientError("the source did not reply in time."),
    "rate_limited": lambda: RateLimitedError("too many queries.", retry_after=1.0),
    "malformed": lambda: PermanentError("the source replied with something unreadable."),
}


class FakeRetriever:
    """Return scripted passages: a list of texts for each query text, ``default`` for every other query.

    A scripted exception is raised. ``fault`` makes every query fail in that way (``empty`` finds nothing); ``delay``
    is in seconds. ``queries`` holds what was asked, in order.
    """

    version = "fake"

    def __init__(
        self,
        results: Mapping[str, Sequence[str] | Exception] | None = None,
        *,
        default: Sequence[str] | Exception = (),
        fault: str = "",
        delay: float = 0.0,
    ) -> None:
        self.results = dict(results or {})
        self.default = default
        self.fault = fault
        self.delay = delay
        self.queries: list[Query] = []

    def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return the scripted passages for the query, at most ``k``."""
        self.queries.append(query)
        time.sleep(self.delay)
        if self.fault == "empty":
            return []
        if self.fault:
            raise FAULT_ERRORS[self.fault]()
        result = self.results.get(query.text, self.default)
        if isinstance(result, Exception):
            raise result
        return list(make_passages(result, corpus="fake")[:k])


class FakeJudge:
    """Give scripted labels: one for each claim text, ``default`` for every other claim; a scripted exception is raised.

    The label None gives a judgement with status error. A label that needs evidence takes its quote from the first
    passage, and becomes not_enough_evidence where there is none. ``claims`` holds what was judged, in order.
    """

    version = "fake"

    def __init__(
        self,
        labels: Mapping[str, Label | Exception | None] | None = None,
        *,
        default: Label | Exception | None = "not_enough_evidence",
    ) -> None:
        self.labels = dict(labels or {})
        self.default = default
        self.claims: list[Claim] = []

    def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Return the scripted judgement."""
        self.claims.append(claim)
        label = self.labels.get(claim.text, self.default)
        if isinstance(label, Exception):
            raise label
        if label is None:
            return Judgement(claim_id=claim.id, label=None, status="error", reason="scripted failure", judge="fake")
        return _judgement(claim, evidence, label, judge="fake")


class FakeDecomposer:
    """Return the scripted texts that stand in the answer as its claims, in the order of the answer."""

    version = "fake"

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)

    def decompose(self, answer: Answer) -> list[Claim]:
        """Return one claim for each scripted text that the answer contains."""
        places = sorted((answer.text.find(text), text) for text in self.texts if text and text in answer.text)
        return [
            Claim(
                id=f"{answer.id}.c{number}",
                answer_id=answer.id,
                text=text,
                span=(start, start + len(text)),
                sentence_span=(start, start + len(text)),
            )
            for number, (start, text) in enumerate(places, start=1)
        ]


class OracleRetriever:
    """Return the right passages for a claim: what a perfect retriever would find.

    ``gold`` maps a query text or a claim id to texts.
    """

    version = "oracle"

    def __init__(self, gold: Mapping[str, Sequence[str]]) -> None:
        self.gold = dict(gold)

    def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return the gold passages of the query's claim, at most ``k``."""
        texts = self.gold.get(query.text, self.gold.get(query.claim_id, ()))
        return list(make_passages(texts, corpus="oracle")[:k])


class OracleJudge:
    """Give the right label of a claim: what a perfect judge would say where there is evidence at all.

    ``gold`` maps a claim text to its label; a claim without one has not enough evidence.
    """

    version = "oracle"

    def __init__(self, gold: Mapping[str, Label]) -> None:
        self.gold = dict(gold)

    def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Return the gold label, not_enough_evidence without passages."""
        return _judgement(claim, evidence, self.gold.get(claim.text, "not_enough_evidence"), judge="oracle")


def _judgement(claim: Claim, evidence: Evidence, label: Label, *, judge: str) -> Judgement:
    shown = [passage for passage in evidence.passages if passage.text.strip()]
    fields: dict[str, Any] = {"claim_id": claim.id, "judge": judge}
    if label == "not_enough_evidence" or not shown or (label == "conflicting" and len(shown) < 2):
        return Judgement(label="not_enough_evidence", **fields)
    kinds: dict[str, list[str]] = {
        "supported": ["supports"],
        "contradicted": ["contradicts"],
        "conflicting": ["supports", "contradicts"],
    }
    stances = [
        Stance.model_validate({"passage_id": passage.id, "stance": kind})
        for passage, kind in zip(shown, kinds[label], strict=False)
    ]
    quotes = [
        Quote(passage_id=passage.id, start=0, end=len(passage.text), text=passage.text)
        for passage, _ in zip(shown, stances, strict=False)
    ]
    return Judgement(label=label, stances=tuple(stances), quotes=tuple(quotes), **fields)
