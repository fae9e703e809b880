"""The models that pass between the stages: each invariant is refused when it is broken, and JSON round-trips."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from factcheck.schema import (
    CHECKABLE_KINDS,
    STATES,
    Accounting,
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Finding,
    Fingerprint,
    Judgement,
    Manifest,
    Passage,
    Query,
    Quote,
    Retrieval,
    Stance,
    Verdict,
    digest,
)

TEXT = "Aspirin thins the blood. Rest helps."
PASSAGE = "Aspirin thins the blood, says the label."


def a_claim(**fields):
    return Claim(**{"id": "c1", "answer_id": "a", "text": "x", "span": (0, 1), "sentence_span": (0, 1), **fields})


def a_verdict(state, claim_id="c1", **fields):
    risk = None if state in ("not_checkable", "error") else 0.5
    return Verdict(claim_id=claim_id, label=state, **{"risk": risk, **fields})


def a_report():
    """Return a report of two claims as plain data, to be broken in one place."""
    quote = {"passage_id": "p1", "start": 8, "end": 23, "text": PASSAGE[8:23]}
    passage = {"id": "p1", "doc_id": "d", "corpus": "k", "text": PASSAGE, "score": 1.0, "rank": 1}
    verdicts = [
        {"claim_id": "c1", "label": "supported", "risk": 0.1, "supporting": [quote]},
        {"claim_id": "c2", "label": "error", "risk": None, "reason": "the judge failed"},
    ]
    return {
        "answer": {"id": "a", "text": TEXT},
        "claims": [
            {"id": "c1", "answer_id": "a", "text": TEXT[:24], "span": [0, 24], "sentence_span": [0, 24]},
            {"id": "c2", "answer_id": "a", "text": TEXT[25:], "span": [25, 36], "sentence_span": [25, 36]},
        ],
        "queries": [{"id": f"c{i}.q1", "claim_id": f"c{i}", "text": "aspirin"} for i in (1, 2)],
        "retrievals": [
            {"query_id": "c1.q1", "retriever": "r", "status": "ok", "passages": [passage]},
            {"query_id": "c2.q1", "retriever": "r", "status": "failed", "error": "gone"},
        ],
        "evidence": [{"claim_id": "c1", "passages": [passage]}, {"claim_id": "c2", "complete": False}],
        "judgements": [
            {
                "claim_id": "c1",
                "label": "supported",
                "stances": [{"passage_id": "p1", "stance": "supports"}],
                "quotes": [quote],
                "findings": [
                    {"checker": "k", "field": "f", "claim_value": "v", "relation": "agrees", "passage_id": "p1"}
                ],
            },
            {"claim_id": "c2", "label": None, "status": "error", "reason": "the judge failed"},
        ],
        "verdicts": verdicts,
        "accounting": {"extracted": 2, "supported": 1, "error": 1},
        "manifest": {"version": "0"},
    }


def put(value, *path):
    def change(report):
        for step in path[:-1]:
            report = report[step]
        report[path[-1]] = value

    return change


def double(field):
    return lambda report: report[field].append(report[field][0])


BREAKS = {
    "a claim id that repeats": (put("c1", "claims", 1, "id"), "claim id c1 occurs twice"),
    "a verdict too few": (lambda r: r["verdicts"].pop(), "one verdict for each claim"),
    "verdicts in another order": (lambda r: r["verdicts"].reverse(), "in the order of the claims"),
    "a verdict too many": (double("verdicts"), "one verdict for each claim"),
    "a state counted as another": (
        put({"extracted": 2, "supported": 2}, "accounting"),
        "accounting does not match the verdicts",
    ),
    "a claim of another answer": (put("b", "claims", 0, "answer_id"), "belongs to another answer"),
    "a span that ends outside": (put([25, 37], "claims", 1, "span"), "ends outside the answer"),
    "a sentence that ends outside": (put([25, 37], "claims", 1, "sentence_span"), "ends outside the answer"),
    "a query for no claim": (put("c9", "queries", 0, "claim_id"), "claim id c9 does not resolve"),
    "evidence for no claim": (put("c9", "evidence", 1, "claim_id"), "claim id c9 does not resolve"),
    "a judgement of no claim": (put("c9", "judgements", 1, "claim_id"), "claim id c9 does not resolve"),
    "a retrieval for no query": (put("q9", "retrievals", 1, "query_id"), "query id q9 does not resolve"),
    "a query id that repeats": (put("c1.q1", "queries", 1, "id"), "query id c1.q1 occurs twice"),
    "two retrievals for a query": (double("retrievals"), "occurs twice"),
    "two evidences for a claim": (double("evidence"), "evidence of claim c1 occurs twice"),
    "two judgements for a claim": (double("judgements"), "judgement of claim c1 occurs twice"),
    "a stance on a passage not shown": (
        put("p9", "judgements", 0, "stances", 0, "passage_id"),
        "passage id p9 of claim c1 does not resolve",
    ),
    "a finding on a passage not shown": (
        put("p9", "judgements", 0, "findings", 0, "passage_id"),
        "passage id p9 of claim c1 does not resolve",
    ),
    "a quote of a judgement that is no slice": (
        put("Aspirin thins i", "judgements", 0, "quotes", 0, "text"),
        "no literal slice",
    ),
    "a quote shifted by one": (
        put([{"passage_id": "p1", "start": 9, "end": 24, "text": PASSAGE[8:23]}], "verdicts", 0, "supporting"),
        "no literal slice",
    ),
    "a quote that reaches beyond the text": (
        put([{"passage_id": "p1", "start": 35, "end": 99, "text": PASSAGE[35:]}], "verdicts", 0, "contradicting"),
        "no literal slice",
    ),
    "a quote from the evidence of another claim": (
        put([{"passage_id": "p1", "start": 0, "end": 7, "text": "Aspirin"}], "verdicts", 1, "contradicting"),
        "no literal slice",
    ),
}


def test_the_report_that_is_broken_below_is_whole():
    report = AnswerReport.model_validate(a_report())
    assert AnswerReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize("name", BREAKS)
def test_a_report_refuses(name):
    change, message = BREAKS[name]
    report = a_report()
    change(report)
    with pytest.raises(ValidationError, match=message):
        AnswerReport.model_validate(report)


@pytest.mark.parametrize("span", [(3, 1), (-1, 2), (-2, -1)])
def test_spans_are_ordered_and_not_negative(span):
    for fields in ({"span": span}, {"sentence_span": span}):
        with pytest.raises(ValidationError, match="0 <= start <= end"):
            a_claim(**fields)
    for fields in ({"claim_span": span}, {"quote_span": span}):
        with pytest.raises(ValidationError, match="0 <= start <= end"):
            Finding(checker="k", field="f", claim_value="v", relation="agrees", **fields)
    assert a_claim(span=(0, 0)).span == (0, 0)


@pytest.mark.parametrize(
    ("start", "end", "text", "expected"),
    [
        (0, 2, "ab", True),
        (1, 3, "bc", True),
        (0, 2, "bc", False),
        (1, 9, "bc", False),
        (2, 1, "", False),
        (9, 9, "", False),
        (3, 3, "", True),
    ],
)
def test_a_quote_knows_whether_it_is_a_slice(start, end, text, expected):
    assert Quote(passage_id="p", start=start, end=end, text=text).slices("abc") is expected


def test_offsets_count_code_points():
    text = "🙂 e\u0301 5 µg"
    assert Quote(passage_id="p", start=5, end=9, text="5 µg").slices(text)


@pytest.mark.parametrize("state", STATES)
def test_a_verdict_has_a_risk_exactly_for_findings_about_the_claim(state):
    without = state in ("not_checkable", "error")
    Verdict(claim_id="c", label=state, risk=None if without else 0.5)
    with pytest.raises(ValidationError, match="risk is None exactly"):
        Verdict(claim_id="c", label=state, risk=0.5 if without else None)


@pytest.mark.parametrize("risk", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_risk_is_a_probability(risk):
    with pytest.raises(ValidationError):
        Verdict(claim_id="c", label="supported", risk=risk)


def test_a_judgement_has_a_label_exactly_when_it_did_not_fail():
    with pytest.raises(ValidationError, match="exactly when its status is ok"):
        Judgement(claim_id="c", label="supported", status="error", reason="x")
    with pytest.raises(ValidationError, match="exactly when its status is ok"):
        Judgement(claim_id="c", label=None)
    with pytest.raises(ValidationError, match="needs a reason"):
        Judgement(claim_id="c", label=None, status="error")


def test_models_are_frozen_and_closed():
    claim = a_claim()
    with pytest.raises(ValidationError):
        claim.text = "y"
    with pytest.raises(ValidationError, match="Extra inputs"):
        a_claim(certainty=1)
    with pytest.raises(ValidationError):
        Passage(id="p", doc_id="d", corpus="k", text="t", score=float("nan"), rank=1)


@given(st.lists(st.sampled_from(STATES)))
def test_the_six_states_add_up(states):
    counts = Accounting.of([a_verdict(state) for state in states])
    assert counts.extracted == len(states) == sum(getattr(counts, state) for state in STATES)
    assert all(getattr(counts, state) == states.count(state) for state in STATES)


def test_counts_that_do_not_add_up_are_refused():
    with pytest.raises(ValidationError, match="add up to 1, not to the 2 claims"):
        Accounting(extracted=2, supported=1)


def test_accountings_add():
    one, other = Accounting(extracted=2, supported=1, error=1), Accounting(extracted=1, error=1)
    assert one + other == Accounting(extracted=3, supported=1, error=2)


def test_the_key_of_a_claim_is_what_its_verdict_depends_on():
    base = a_claim(text="x", context="y", question="z")
    for same in ({"id": "other"}, {"answer_id": "b"}, {"span": (5, 6)}, {"sentence_span": (0, 9)}):
        assert a_claim(**{"text": "x", "context": "y", "question": "z", **same}).key == base.key
    for different in ({"text": "w"}, {"context": "w"}, {"question": "w"}, {"kind": "question"}):
        assert a_claim(**{"text": "x", "context": "y", "question": "z", **different}).key != base.key
    # The parts are told apart, not joined.
    assert a_claim(text="xy", context="").key != a_claim(text="x", context="y").key


def test_a_digest_is_the_hash_of_the_canonical_form():
    expected = hashlib.sha256('{"a":[1,"µ"],"b":null}'.encode()).hexdigest()[:32]
    assert digest({"b": None, "a": [1, "µ"]}) == expected
    assert digest("\ud800")


def test_a_fingerprint_tells_every_part_apart():
    fields = {"role": "judge", "name": "j", "version": "1"}
    changes = [{"name": "k"}, {"version": "2"}, {"settings": {"a": 1}}, {"corpus_sha256": ("x",)}]
    changes += [{"prompt_sha256": "x"}, {"model": "m"}, {"role": "checker"}]
    digests = {Fingerprint(**{**fields, **change}).digest for change in ({}, *changes)}
    assert len(digests) == len(changes) + 1
    assert Manifest(version="0", seed=1).digest != Manifest(version="0").digest == Manifest(version="0").digest


def test_only_statements_and_advice_can_be_checked():
    assert {"statement", "care_advice"} == CHECKABLE_KINDS
    assert a_claim(kind="care_advice").checkable
    assert not a_claim(kind="question").checkable


WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
UNIT = st.floats(0.0, 1.0)


@st.composite
def reports(draw):
    lines = draw(st.lists(WORDS, max_size=4))
    text, claims, evidence, judgements, verdicts, queries, retrievals = "", [], [], [], [], [], []
    for i, line in enumerate(lines):
        span = (len(text), len(text) + len(line))
        text += line + draw(WORDS)
        claims.append(a_claim(id=f"c{i}", text=line, span=span, sentence_span=span, context=draw(st.just("") | WORDS)))
        body = draw(WORDS)
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, len(body)))
        quote = Quote(passage_id="p", start=start, end=end, text=body[start:end])
        passage = Passage(id="p", doc_id="d", corpus="k", text=body, score=draw(st.floats(-1e9, 1e9)), rank=1)
        queries.append(Query(id=f"q{i}", claim_id=f"c{i}", text=draw(WORDS)))
        retrievals.append(Retrieval(query_id=f"q{i}", retriever="r", status="ok", passages=(passage,), seconds=0.5))
        evidence.append(Evidence(claim_id=f"c{i}", passages=(passage,), complete=draw(st.booleans())))
        label = draw(st.sampled_from([s for s in STATES if s not in ("not_checkable", "error")]))
        judgements.append(
            Judgement(
                claim_id=f"c{i}",
                label=label,
                quotes=(quote,),
                stances=(Stance(passage_id="p", stance="silent", score=draw(UNIT)),),
                signals=draw(st.dictionaries(WORDS, UNIT, max_size=2)),
            )
        )
        verdicts.append(
            Verdict(claim_id=f"c{i}", label=label, risk=draw(UNIT), coverage=draw(UNIT), supporting=(quote,))
        )
    return AnswerReport(
        answer=Answer(id="a", question=draw(st.just("") | WORDS), text=text, meta={"n": draw(st.integers(-9, 9))}),
        claims=tuple(claims),
        queries=tuple(queries),
        retrievals=tuple(retrievals),
        evidence=tuple(evidence),
        judgements=tuple(judgements),
        verdicts=tuple(verdicts),
        accounting=Accounting.of(verdicts),
        manifest=Manifest(version="0"),
    )


@given(reports())
def test_any_report_survives_json(report):
    assert AnswerReport.model_validate_json(report.model_dump_json()) == report
    assert AnswerReport.model_validate(json.loads(json.dumps(report.model_dump(mode="json")))) == report


def test_a_lone_surrogate_survives_escaped_json():
    data = a_report()
    data["answer"]["text"] = TEXT + "\ud800"
    report = AnswerReport.model_validate(data)
    assert AnswerReport.model_validate(json.loads(json.dumps(report.model_dump(mode="json")))) == report
