"""Small claims and passages for the tests of the checkers, and what every finding must satisfy."""

from factcheck.checkers.align import HARD_CONFIDENCE
from factcheck.schema import Claim, Evidence, Passage


def claim(text, *, context="", question="", kind="statement"):
    span = (0, len(text))
    return Claim(
        id="c", answer_id="a", text=text, span=span, sentence_span=span, context=context, question=question, kind=kind
    )


def evidence(*passages):
    """Make evidence of texts or (title, text) pairs; the passages are p1, p2, …"""
    made = []
    for rank, item in enumerate(passages, start=1):
        title, text = item if isinstance(item, tuple) else ("", item)
        made.append(
            Passage(id=f"p{rank}", doc_id=f"d{rank}", corpus="c", title=title, text=text, score=1.0 / rank, rank=rank)
        )
    return Evidence(claim_id="c", passages=tuple(made))


def run(checker, text, *passages, context="", question=""):
    """Check a claim against passages and verify spans, quotes and reasons."""
    subject, shown = claim(text, context=context, question=question), evidence(*passages)
    findings = checker.check(subject, shown)
    texts = {passage.id: passage.text for passage in shown.passages}
    for finding in findings:
        start, end = finding.claim_span
        assert text[start:end].strip() == finding.claim_value.strip() != ""
        if finding.passage_id is None:
            assert finding.relation == "missing"
        elif finding.quote_span is not None:
            start, end = finding.quote_span
            assert texts[finding.passage_id][start:end] == finding.evidence_value != ""
        if finding.disagrees or finding.relation == "missing":
            assert finding.reason
            assert "\n" not in finding.reason
        else:
            assert not finding.hard
    return findings


def firm(findings):
    """Return the findings against the claim that are firm enough to count."""
    return [f for f in findings if f.disagrees and f.confidence >= HARD_CONFIDENCE]


def fields(findings):
    return sorted({finding.field for finding in findings})
