"""A deterministic checker for the tests of the study: words in the claim decide its verdict.

WRONG is contradicted by evidence on the same question, SHAKY has not enough evidence, BROKEN fails, a question is not
checkable. An answer with EXPLODE cannot be split into claims.
"""

import re
import signal
from types import SimpleNamespace

import anyio

from factcheck.errors import DecomposeError, JudgeError
from factcheck.schema import (
    Accounting,
    AnswerReport,
    Claim,
    Evidence,
    Fingerprint,
    Judgement,
    Manifest,
    Passage,
    Quote,
    Stance,
    Verdict,
)
from factcheck.spending import Spent, account
from factcheck.verdicts import parse_policy

RISKS = {"contradicted": 0.9, "not_enough_evidence": 0.4, "supported": 0.1}


class FakeChecker:
    exhausted = ""
    reaches_out = False

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        pass

    def __init__(self, *, policy="contradicted", seed=0, delays=None, judge="fake", stop_after=None, explode=True):
        self.policy = parse_policy(policy, default_threshold=0.5)
        self.calibration = SimpleNamespace(threshold=0.5, data_sha256="")
        self.manifest = Manifest(
            version="0",
            components=(Fingerprint(role="judge", name=judge, version="1"),),
            policy=str(self.policy),
            seed=seed,
        )
        self.delays = delays or {}
        self.stop_after = stop_after
        self.explode = explode
        self.checked = []
        self.judged = 0

    def account(self, inputs):
        return account(None, "run", Spent)

    async def acheck(self, answer):
        await anyio.sleep(self.delays.get(answer.id, 0))
        if self.stop_after is not None and len(self.checked) >= self.stop_after:
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep(60)
        if self.explode and "EXPLODE" in answer.text:
            raise DecomposeError(f"cannot split {answer.id}.")
        self.checked.append(answer.id)
        claims, evidence = [], []
        for number, match in enumerate(re.finditer(r"[^\s.!?][^.!?\n]*[.!?]?", answer.text), start=1):
            kind = "question" if match.group().endswith("?") else "statement"
            claim = Claim(
                id=f"{answer.id}#{number}",
                answer_id=answer.id,
                text=match.group(),
                span=match.span(),
                sentence_span=match.span(),
                question=answer.question[:2000],
                kind=kind,
            )
            claims.append(claim)
            text = f"What is known on {answer.question}: all of it."
            passage = Passage(
                id=f"p{number}", doc_id="d", corpus="c", title="T|itle", text=text, source="S", score=1.0, rank=1
            )
            evidence.append(Evidence(claim_id=claim.id, passages=(passage,)))
        judgements, verdicts = await self.ajudge(claims, evidence)
        return AnswerReport(
            answer=answer,
            claims=tuple(claims),
            evidence=tuple(evidence),
            judgements=tuple(judgements),
            verdicts=tuple(verdicts),
            accounting=Accounting.of(verdicts),
            warnings=("no claim carries the number 7",) if "seven" in answer.text else (),
            manifest=self.manifest,
        )

    async def ajudge(self, claims, evidence):
        self.judged += len(claims)
        if any("REFUSE" in claim.text and not item.passages for claim, item in zip(claims, evidence, strict=True)):
            raise JudgeError("refused.")
        found = [self._judge(claim, item) for claim, item in zip(claims, evidence, strict=True)]
        return [judgement for judgement, _ in found], [verdict for _, verdict in found]

    def _judge(self, claim, evidence):
        if claim.kind == "question":
            judgement = Judgement(claim_id=claim.id, label="not_enough_evidence")
            return judgement, Verdict(claim_id=claim.id, label="not_checkable", risk=None)
        if "BROKEN" in claim.text:
            judgement = Judgement(claim_id=claim.id, label=None, status="error", reason="broken")
            return judgement, Verdict(claim_id=claim.id, label="error", risk=None, reason="broken")
        speaks = [p for p in evidence.passages if claim.question and claim.question in p.text]
        label = "supported" if speaks else "not_enough_evidence"
        if speaks and "WRONG" in claim.text:
            label = "contradicted"
        elif "SHAKY" in claim.text:
            label = "not_enough_evidence"
        quotes = tuple(Quote(passage_id=p.id, start=0, end=4, text=p.text[:4]) for p in speaks)
        stances = tuple(Stance(passage_id=p.id, stance="contradicts", score=1.0) for p in speaks)
        judgement = Judgement(claim_id=claim.id, label=label, stances=stances, quotes=quotes)
        return judgement, Verdict(
            claim_id=claim.id,
            label=label,
            risk=RISKS[label],
            coverage=0.5,
            contradicting=quotes if label == "contradicted" else (),
            supporting=quotes if label == "supported" else (),
            reason=label,
        )
