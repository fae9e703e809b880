"""The offline judge: sentences of the evidence that say what the claim says, and the checkers' findings against it."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Sequence

from pydantic import Field

from factcheck.checkers.reading import Reading, Sentence, read
from factcheck.schema import Claim, Evidence, Finding, Judgement, Label, Model, Quote, Span, Stance

_VALUES = frozenset({"amount", "unit", "frequency", "duration", "threshold", "age", "gestation", "time"})
_SENTENCES = 10
_UNION = 4
_DIGITS = re.compile(r"\d[\d.,]*")
# A word or two ("Treatment.") is in every passage on the matter and states nothing.
_TERMS_NEEDED = 3
# What holds clearly less of the claim than the best sentence is about something near it.
_SUPPORTS_SHOWN = 3
_SUPPORT_NEAR_BEST = 0.8


class EvidenceJudge:
    """Judge a claim by the evidence sentence that covers it best and by what the checkers found against it.

    Support is the share of the claim's content terms, weighted by rarity, that one evidence sentence with its title holds.
    The label is contradicted where a finding disagrees firmly, conflicting where passages are about equally firm on both
    sides, supported where support reaches the setting, and not_enough_evidence otherwise.
    """

    version = "1"

    class Settings(Model):
        """Set the support that makes a claim supported and the confidence that makes a finding contradict it."""

        supported_from: float = Field(default=0.4, ge=0.0, le=1.0)
        contradicted_from: float = Field(default=0.3, ge=0.0, le=1.0)

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Return the judgement with signals for calibration: the firmest finding of each kind, support and coverage."""
        if not evidence.passages:
            return Judgement(
                claim_id=claim.id,
                label="not_enough_evidence",
                signals={"support": 0.0, "coverage": 0.0},
                rationale="no passage was found",
            )
        reading = read(claim, evidence)
        supports = self._supports(reading)
        support = supports[0][0] if supports else 0.0
        against = [f for f in findings if f.disagrees and f.confidence >= self.settings.contradicted_from]
        stated = len(reading.claim.terms) >= _TERMS_NEEDED and not unseen_numbers(claim, evidence, findings)
        label = self._label(support, stated, against, findings)
        stances, quotes = self._stances(label, evidence, supports, against, findings)
        if label == "conflicting" and not {"supports", "contradicts"} <= {stance.stance for stance in stances}:
            # Every passage that speaks for one mention speaks against another: no side can be shown.
            label = "not_enough_evidence"
            stances, quotes = self._stances(label, evidence, supports, against, findings)
        return Judgement(
            claim_id=claim.id,
            label=label,
            stances=stances,
            quotes=quotes,
            signals={**signals_of(findings), "support": round(support, 4), "coverage": round(covered(reading), 4)},
            rationale=self._rationale(label, support, findings),
        )

    def _supports(self, reading: Reading) -> list[tuple[float, Sentence]]:
        # Without the classes of its drugs: a passage on warfarin must not support whatever is said of warfarin.
        own = frozenset(name for name in reading.claim.terms if not name.startswith("="))
        shares = [(reading.share(own, s.terms | s.topic), s) for _, s in reading.ranked[:_SENTENCES]]
        return sorted(shares, key=lambda pair: -pair[0])

    def _label(self, support: float, stated: bool, against: Sequence[Finding], findings: Sequence[Finding]) -> Label:
        divided = {(pro.field, pro.claim_span) for pro, _ in conflicts(findings)}
        if any((finding.field, finding.claim_span) not in divided for finding in against):
            return "contradicted"
        if divided:
            return "conflicting"
        if not stated or any(finding.relation == "missing" for finding in findings):
            return "not_enough_evidence"
        return "supported" if support >= self.settings.supported_from else "not_enough_evidence"

    def _stances(
        self,
        label: Label,
        evidence: Evidence,
        supports: Sequence[tuple[float, Sentence]],
        against: Sequence[Finding],
        findings: Sequence[Finding],
    ) -> tuple[tuple[Stance, ...], tuple[Quote, ...]]:
        texts = {passage.id: passage.text for passage in evidence.passages}
        contra: dict[str, tuple[float, Quote]] = {}
        pro: dict[str, tuple[float, Quote]] = {}
        both = conflicts(findings) if label == "conflicting" else []
        for finding in [*against, *(pair[1] for pair in both)]:
            _keep(contra, finding, texts)
        for finding in (pair[0] for pair in both):
            _keep(pro, finding, texts)
        if label == "supported":
            best = supports[0][0]
            for share, sentence in supports[:_SUPPORTS_SHOWN]:
                if share >= max(self.settings.supported_from, _SUPPORT_NEAR_BEST * best):
                    quote = Quote(
                        passage_id=sentence.passage_id, start=sentence.start, end=sentence.end, text=sentence.text
                    )
                    pro.setdefault(sentence.passage_id, (min(1.0, share), quote))
        stances = []
        for name in texts:
            if name in contra:
                stances.append(Stance(passage_id=name, stance="contradicts", score=contra[name][0]))
            elif name in pro:
                stances.append(Stance(passage_id=name, stance="supports", score=pro[name][0]))
            else:
                stances.append(Stance(passage_id=name, stance="silent"))
        quotes = [
            found[1] for name, found in (*contra.items(), *pro.items()) if name not in contra or found is contra[name]
        ]
        return tuple(stances), tuple(quotes)

    def _rationale(self, label: Label, support: float, findings: Sequence[Finding]) -> str:
        missing = next((f.reason for f in findings if f.relation == "missing"), "")
        if label == "conflicting":
            return "passages speak for it and against it"
        if missing:
            return missing
        return f"one passage sentence holds {support:.0%} of what the claim says"


def signals_of(findings: Sequence[Finding]) -> dict[str, float]:
    """Return for each kind of finding the confidence of the firmest that speaks against the claim; all values are one kind.

    A finding against a mention for which a firmer one speaks is no signal.
    """
    agreed: dict[tuple[str, Span | None], float] = {}
    for finding in findings:
        if finding.relation == "agrees":
            mention = (finding.checker, finding.claim_span)
            agreed[mention] = max(agreed.get(mention, 0.0), finding.confidence)
    signals: dict[str, float] = {}
    for finding in findings:
        outdone = agreed.get((finding.checker, finding.claim_span), 0.0) > finding.confidence
        if (finding.disagrees and not outdone) or finding.relation == "missing":
            kind = "value" if finding.field in _VALUES else finding.field
            signals[kind] = max(signals.get(kind, 0.0), finding.confidence)
    return signals


def conflicts(findings: Sequence[Finding]) -> list[tuple[Finding, Finding]]:
    """Return pairs of findings on one mention, for and against, from different passages."""
    mentions: dict[tuple[str, Span | None], list[Finding]] = {}
    for finding in findings:
        mentions.setdefault((finding.field, finding.claim_span), []).append(finding)
    return [
        (pro, contra)
        for group in mentions.values()
        for pro, contra in itertools.product(group, group)
        if pro.relation == "agrees" and contra.disagrees and pro.passage_id != contra.passage_id
    ]


def unseen_numbers(claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> list[str]:
    """Return the numbers of a claim that stand neither in a passage, nor in the question, nor within an agreeing finding.

    Digits of every script and width count, so that a number which no checker can read is not taken for one that agrees.
    """
    agreed = [f.claim_span for f in findings if f.relation == "agrees" and f.claim_span]
    known = set(_numbers(claim.question)) | set(_numbers(claim.context))
    for passage in evidence.passages:
        known |= set(_numbers(passage.title)) | set(_numbers(passage.text))
    return [
        number
        for number, (start, end) in _numbers(claim.text).items()
        if number not in known and not any(low <= start and end <= high for low, high in agreed)
    ]


@functools.lru_cache(maxsize=5_000)
def _numbers(text: str) -> dict[str, tuple[int, int]]:
    found = {}
    for match in _DIGITS.finditer(text):
        digits = "".join(str(unicodedata.digit(char, char)) for char in match.group().replace(",", ""))
        found[digits.rstrip(".")] = match.span()
    return found


def covered(reading: Reading) -> float:
    """Return the share in [0, 1] of the claim's terms that its four closest evidence sentences hold together."""
    union: frozenset[str] = frozenset()
    for _, sentence in reading.ranked[:_UNION]:
        union |= sentence.terms | sentence.topic
    return min(1.0, reading.share(reading.claim.terms, union))


def _keep(side: dict[str, tuple[float, Quote]], finding: Finding, texts: dict[str, str]) -> None:
    if finding.passage_id is None or finding.quote_span is None:
        return
    start, end = _sentence_around(texts[finding.passage_id], *finding.quote_span)
    quote = Quote(passage_id=finding.passage_id, start=start, end=end, text=texts[finding.passage_id][start:end])
    known = side.get(finding.passage_id)
    if known is None or known[0] < finding.confidence:
        side[finding.passage_id] = (finding.confidence, quote)


def _sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    return next((span for span in _sentences(text) if span[0] <= start and end <= span[1]), (start, end))


@functools.lru_cache(maxsize=64)
def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    from factcheck.text.sentences import split_sentences

    return tuple(split_sentences(text))
