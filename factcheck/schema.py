"""Frozen models that pass between the stages, and the vocabulary of labels.

Data flows one way: Answer, Claim, Query, Retrieval, Evidence, Judgement, Verdict, AnswerReport. Text is never rewritten;
offsets are Unicode code points of the original string, end exclusive.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Label = Literal["supported", "contradicted", "conflicting", "not_enough_evidence"]
State = Literal["supported", "contradicted", "conflicting", "not_enough_evidence", "not_checkable", "error"]
ClaimKind = Literal["statement", "care_advice", "question", "greeting", "personal"]
Relation = Literal["agrees", "differs", "outside_range", "negated", "missing", "unseen"]
StanceKind = Literal["supports", "contradicts", "silent"]
Role = Literal["decomposer", "query_writer", "retriever", "judge", "checker", "primitive"]

STATES: tuple[State, ...] = get_args(State)
ROLES: tuple[Role, ...] = get_args(Role)
CHECKABLE_KINDS: frozenset[ClaimKind] = frozenset({"statement", "care_advice"})
CONTEXT_LIMIT = 400
QUESTION_LIMIT = 2000


def _ordered(span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if not 0 <= start <= end:
        raise ValueError(f"span {span} must satisfy 0 <= start <= end")
    return span


Span = Annotated[tuple[int, int], AfterValidator(_ordered)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class Model(BaseModel):
    """Base of every model: immutable, and closed to unknown fields."""

    # Releases of pydantic before 2.10 warn of every field that begins with model_.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())


class Answer(Model):
    """Hold one answer under test; ``text`` is the exact string judged."""

    id: str = Field(min_length=1)
    question: str = ""
    text: str
    meta: Mapping[str, Any] = Field(default_factory=dict)


class Claim(Model):
    """Hold one statement of an answer.

    ``answer.text[span]`` is where the claim comes from, ``sentence_span`` the sentence around it. ``text`` is that slice
    without markup (offline) or an atomic rewording of it (model decomposers). ``context`` holds what the claim depends on
    but does not say (heading, drug, antecedent), at most 400 code points; ``question`` the question, at most 2,000.
    """

    id: str = Field(min_length=1)
    answer_id: str
    text: str = Field(min_length=1)
    span: Span
    sentence_span: Span
    context: str = Field(default="", max_length=CONTEXT_LIMIT)
    question: str = Field(default="", max_length=QUESTION_LIMIT)
    kind: ClaimKind = "statement"

    @property
    def key(self) -> str:
        """Hash what the verdict depends on, so that two answers that share a claim share its verdict."""
        return digest([self.text, self.context, self.question, self.kind])

    @property
    def checkable(self) -> bool:
        """Tell whether the claim can be true or false of the world."""
        return self.kind in CHECKABLE_KINDS


class Query(Model):
    """Hold one search for one claim."""

    id: str = Field(min_length=1)
    claim_id: str
    text: str = Field(min_length=1)


class Passage(Model):
    """Hold one retrieved passage: ``text`` verbatim from the document, ``rank`` from 1, a higher ``score`` is better."""

    id: str = Field(min_length=1)
    doc_id: str
    corpus: str
    title: str = ""
    text: str
    source: str = ""
    url: str = ""
    published: str = ""
    score: float
    rank: int = Field(ge=1)


class Retrieval(Model):
    """Hold the outcome of one query at one retriever, failures included."""

    query_id: str
    retriever: str
    status: Literal["ok", "failed", "skipped"]
    passages: tuple[Passage, ...] = ()
    error: str = ""
    seconds: float = Field(default=0.0, ge=0.0)
    cached: bool = False


class Evidence(Model):
    """Hold the fused passages for one claim, best first; ``complete`` is false if any retrieval failed."""

    claim_id: str
    passages: tuple[Passage, ...] = ()
    complete: bool = True


class Finding(Model):
    """Hold one comparison by a checker of a value in the claim with the evidence.

    ``claim_span`` indexes ``claim.text`` and ``quote_span`` the text of passage ``passage_id``. ``confidence`` says how
    surely the two values speak of the same matter. ``hard`` findings that do not agree veto a supported label.
    """

    checker: str
    field: str
    claim_value: str
    evidence_value: str = ""
    relation: Relation
    hard: bool = False
    confidence: Probability = 1.0
    passage_id: str | None = None
    claim_span: Span | None = None
    quote_span: Span | None = None
    reason: str = ""

    @property
    def disagrees(self) -> bool:
        """Tell whether evidence speaks against the claim's value."""
        return self.relation in ("differs", "outside_range", "negated")


class Quote(Model):
    """Hold a literal slice ``passage.text[start:end]``."""

    passage_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str

    def slices(self, text: str) -> bool:
        """Tell whether the quote is that slice of ``text``."""
        return self.start <= self.end <= len(text) and text[self.start : self.end] == self.text


class Stance(Model):
    """Hold what one passage says of the claim, with the judge's strength of that reading in [0, 1]."""

    passage_id: str
    stance: StanceKind
    score: Probability = 1.0


class Judgement(Model):
    """Hold what a judge made of one claim and its evidence.

    ``label`` is None exactly when ``status`` is error. ``signals`` are named numbers in [0, 1] that calibration turns into
    risk and coverage.
    """

    claim_id: str
    label: Label | None
    stances: tuple[Stance, ...] = ()
    quotes: tuple[Quote, ...] = ()
    findings: tuple[Finding, ...] = ()
    signals: Mapping[str, Probability] = Field(default_factory=dict)
    rationale: str = ""
    status: Literal["ok", "error"] = "ok"
    reason: str = ""
    judge: str = ""

    @model_validator(mode="after")
    def _label_matches_status(self) -> Self:
        if (self.label is None) != (self.status == "error"):
            raise ValueError("a judgement has a label exactly when its status is ok")
        if self.status == "error" and not self.reason:
            raise ValueError("a judgement with status error needs a reason")
        return self


class Verdict(Model):
    """Hold the decision on one claim.

    ``risk`` is the calibrated probability in [0, 1] that the claim is wrong, None for the states not_checkable and error.
    ``coverage`` in [0, 1] tells how far the evidence speaks of the claim.
    """

    claim_id: str
    label: State
    risk: Probability | None
    coverage: Probability = 0.0
    supporting: tuple[Quote, ...] = ()
    contradicting: tuple[Quote, ...] = ()
    reason: str = ""

    @model_validator(mode="after")
    def _risk_matches_label(self) -> Self:
        if (self.risk is None) != (self.label in ("not_checkable", "error")):
            raise ValueError("risk is None exactly for the states not_checkable and error")
        return self


class Accounting(Model):
    """Count the claims by state; the six states add up to ``extracted``."""

    extracted: int = Field(default=0, ge=0)
    supported: int = Field(default=0, ge=0)
    contradicted: int = Field(default=0, ge=0)
    conflicting: int = Field(default=0, ge=0)
    not_enough_evidence: int = Field(default=0, ge=0)
    not_checkable: int = Field(default=0, ge=0)
    error: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = sum(getattr(self, state) for state in STATES)
        if total != self.extracted:
            raise ValueError(f"the six states add up to {total}, not to the {self.extracted} claims extracted")
        return self

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Accounting:
        """Count the states of the verdicts."""
        counts = Counter(verdict.label for verdict in verdicts)
        return cls(extracted=counts.total(), **{str(state): n for state, n in counts.items()})

    def __add__(self, other: Accounting) -> Accounting:
        fields = type(self).model_fields
        return Accounting(**{name: getattr(self, name) + getattr(other, name) for name in fields})


class Fingerprint(Model):
    """Identify a component: what must be equal for its output to be reusable.

    ``parameters`` are those with which ``model`` is asked, its server among them.
    """

    role: Role
    name: str
    version: str
    settings: Mapping[str, Any] = Field(default_factory=dict)
    corpus_sha256: tuple[str, ...] = ()
    prompt_sha256: str = ""
    model: str = ""
    parameters: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Hash the fingerprint."""
        return digest(self.model_dump(mode="json"))


class Manifest(Model):
    """Record what produced a report; holds no clock, so that equal runs give equal bytes."""

    schema_version: str = "factcheck.answer/1"
    version: str
    components: tuple[Fingerprint, ...] = ()
    policy: str = ""
    calibration: str = ""
    k: int = 0
    seed: int = 0
    notice: str = "An evaluation aid, not medical advice."

    @property
    def digest(self) -> str:
        """Hash the manifest."""
        return digest(self.model_dump(mode="json"))


class AnswerReport(Model):
    """Hold everything that was found about one answer.

    Verdicts are in the order of the claims, one each; every id resolves; a query has one retrieval at most from each
    retriever, a claim one evidence and one judgement at most; quotes are literal slices. JSON round-trips, except for
    lone surrogates, which UTF-8 cannot hold.
    """

    answer: Answer
    claims: tuple[Claim, ...] = ()
    queries: tuple[Query, ...] = ()
    retrievals: tuple[Retrieval, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    accounting: Accounting
    warnings: tuple[str, ...] = ()
    manifest: Manifest

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [claim.id for claim in self.claims]
        _distinct("claim id", ids)
        if [verdict.claim_id for verdict in self.verdicts] != ids:
            raise ValueError("there must be one verdict for each claim, in the order of the claims")
        if self.accounting != Accounting.of(self.verdicts):
            raise ValueError("the accounting does not match the verdicts")
        size = len(self.answer.text)
        for claim in self.claims:
            if claim.answer_id != self.answer.id:
                raise ValueError(f"claim {claim.id} belongs to another answer")
            if claim.span[1] > size or claim.sentence_span[1] > size:
                raise ValueError(f"a span of claim {claim.id} ends outside the answer")
        self._check_ids(set(ids))
        self._check_quotes()
        return self

    def _check_ids(self, claim_ids: set[str]) -> None:
        queries = [query.id for query in self.queries]
        _distinct("query id", queries)
        _distinct("retrieval of query and retriever", [(r.query_id, r.retriever) for r in self.retrievals])
        _distinct("evidence of claim", [item.claim_id for item in self.evidence])
        _distinct("judgement of claim", [item.claim_id for item in self.judgements])
        owners = [item.claim_id for group in (self.queries, self.evidence, self.judgements) for item in group]
        for kind, found, known in (
            ("claim", owners, claim_ids),
            ("query", [retrieval.query_id for retrieval in self.retrievals], set(queries)),
        ):
            for stray in (item for item in found if item not in known):
                raise ValueError(f"{kind} id {stray} does not resolve")

    def _check_quotes(self) -> None:
        shown = {item.claim_id: {p.id: p.text for p in item.passages} for item in self.evidence}
        named = [(j.claim_id, s.passage_id) for j in self.judgements for s in j.stances]
        named += [(j.claim_id, f.passage_id) for j in self.judgements for f in j.findings if f.passage_id is not None]
        for claim_id, passage_id in named:
            if passage_id not in shown.get(claim_id, {}):
                raise ValueError(f"passage id {passage_id} of claim {claim_id} does not resolve")
        quotes = [(j.claim_id, q) for j in self.judgements for q in j.quotes]
        quotes += [(v.claim_id, q) for v in self.verdicts for q in (*v.supporting, *v.contradicting)]
        for claim_id, quote in quotes:
            text = shown.get(claim_id, {}).get(quote.passage_id)
            if text is None or not quote.slices(text):
                raise ValueError(f"a quote for claim {claim_id} is no literal slice of passage {quote.passage_id}")


def _distinct(what: str, items: Sequence[Any]) -> None:
    if len(set(items)) != len(items):
        repeated = next(item for item, n in Counter(items).items() if n > 1)
        raise ValueError(f"the {what} {repeated} occurs twice")


class Score(Model):
    """Hold what a primitive found in one report, over ``n`` claims.

    ``value`` is None when there was nothing to score; ``reason`` says why, or what was left out.
    """

    name: str
    value: float | None
    n: int = Field(default=0, ge=0)
    reason: str = ""


def digest(value: object) -> str:
    """Hash a JSON-serialisable value: SHA-256 of its canonical form, first 32 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
