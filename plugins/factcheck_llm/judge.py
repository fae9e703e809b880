"""The judge ``llm``: a model reads numbered passages, and its quotes are verified before its label counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from factcheck.errors import JudgeError, StageError
from factcheck.schema import Claim, Evidence, Finding, Judgement
from factcheck.together import together
from factcheck_llm.batch import Gatherer
from factcheck_llm.delimit import encodable
from factcheck_llm.injection import CHECKER, injection_findings
from factcheck_llm.pool import Case, ask_pool
from factcheck_llm.reply import JudgeReply, Reading, StanceReply, read_reply
from factcheck_llm.shown import Shown, show
from factcheck_llm.stage import Asked, Client, ModelStage, StageSettings, marked

PROMPT = "judge.evidence.v2"
RETRY = "judge.retry.v1"
BATCH = "judge.batch.v1"
NAME = "llm"
_ASSUMED_QUOTE = 200
_ASSUMED_RATIONALE = (
    "The passages speak of the subject of the claim, and none of them says whether it holds for the population and the "
    "condition that the claim and the question name."
)


class Rater(ModelStage):
    """Base of the judges that rate one claim against the passages of its evidence."""

    name: ClassVar[str] = NAME
    prompt_ids: ClassVar[tuple[str, ...]] = (PROMPT, RETRY)

    class Settings(StageSettings):
        """Set ``passage_limit``, the code points shown of one passage: a longer one is cut to where it speaks of the claim."""

        passage_limit: int = Field(default=4000, ge=200, le=200_000)

    async def rate(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Judge one claim; without a passage to show it is not_enough_evidence, and no model is asked.

        A reply whose quotes or label do not hold is asked for once more; if that one does not hold either, the judgement
        has status error. Raises what the client raises.
        """
        shown = show(claim, evidence.passages, self.settings.passage_limit)
        if not shown:
            return self.judged(claim, evidence, findings, Reading("not_enough_evidence", (), (), "no passage to read"))
        asked = Asked.of(self.prompt(PROMPT), judge_values(claim, shown))
        assumed = self.assumed(shown)
        reply = await self.ask(asked, JudgeReply, assumed=assumed)
        reading, problems = read_reply(reply, claim, shown)
        if reading is None:
            again = asked.again(reply, self.prompt(RETRY), problems)
            # Recorded only if it holds, so that a claim that failed gets a new attempt in a later run.
            reply = await self.ask(
                again, JudgeReply, assumed=assumed, keep=lambda reply: read_reply(reply, claim, shown)[0] is not None
            )
            reading, problems = read_reply(reply, claim, shown)
        if reading is None:
            error = JudgeError(f"the model's judgement does not hold, asked twice: {' '.join(problems)}")
            return self.failed(claim, evidence, findings, str(error)[:500])
        return self.judged(claim, evidence, findings, reading)

    @staticmethod
    def assumed(shown: Sequence[Shown]) -> JudgeReply:
        """Return a judgement of usual length that decides nothing, with which an estimate of the cost reckons."""
        quote = encodable(shown[0].text[:_ASSUMED_QUOTE])
        stance = StanceReply(passage=shown[0].alias, quote=quote, stance="silent")
        return JudgeReply(stances=(stance,), rationale=_ASSUMED_RATIONALE, label="not_enough_evidence")

    def judged(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding], reading: Reading) -> Judgement:
        """Return the judgement for a reading."""
        return Judgement(
            claim_id=claim.id,
            label=reading.label,
            stances=reading.stances,
            quotes=reading.quotes,
            findings=reported(claim, evidence, findings),
            rationale=reading.rationale,
            judge=self.name,
        )

    def failed(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding], reason: str) -> Judgement:
        """Return the judgement that says that there is none."""
        return Judgement(
            claim_id=claim.id,
            label=None,
            status="error",
            reason=reason,
            findings=reported(claim, evidence, findings),
            judge=self.name,
        )


class ModelJudge(Rater):
    """Judge each claim in a call of its own, or with ``batch`` several in one.

    A batch is made of calls to ``judge`` that are under way at the same time, or of the claims given to ``judge_many``.
    What a reply leaves out or gets wrong is asked for again, one claim at a time, and never assumed.
    """

    version = "1"
    prompt_ids: ClassVar[tuple[str, ...]] = (PROMPT, RETRY, BATCH)

    class Settings(Rater.Settings):
        """Set how many claims share a call (1: none), and how long a call waits for others to share with, in seconds."""

        batch: int = Field(default=1, ge=1, le=32)
        batch_wait: float = Field(default=0.05, ge=0.0, le=5.0)

    def __init__(
        self, settings: StageSettings | None = None, *, client: Client | None = None, prompts: Path | None = None
    ) -> None:
        super().__init__(settings, client=client, prompts=prompts)
        self._gatherer = Gatherer(self._judge_pool, self.settings.batch, self.settings.batch_wait)

    async def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Judge one claim; see ``rate``."""
        if self.settings.batch == 1:
            return await self.rate(claim, evidence, findings)
        judged = await self._gatherer(Case(claim, evidence, tuple(findings)))
        if isinstance(judged, StageError):
            raise judged
        return judged

    async def judge_many(self, cases: Sequence[Case]) -> list[Judgement]:
        """Judge several claims, ``batch`` in a call; which share one depends on their order alone, not on the clock.

        A claim that could not be judged has a judgement with status error.
        """
        judged: list[Judgement | StageError] = []
        for start in range(0, len(cases), self.settings.batch):
            judged += await self._judge_pool(cases[start : start + self.settings.batch])
        return [
            self.failed(*case, str(item)[:500]) if isinstance(item, StageError) else item
            for case, item in zip(cases, judged, strict=True)
        ]

    async def _judge_pool(self, cases: Sequence[Case]) -> list[Judgement | StageError]:
        """Judge cases in one call for each question, and alone what such a call does not settle."""
        readings: dict[int, Reading] = {}
        groups: dict[str, list[int]] = {}
        for index, case in enumerate(cases):
            groups.setdefault(case.claim.question, []).append(index)
        for indices in groups.values():
            # Sorted, so that equal batches make equal prompts whatever came first.
            ordered = sorted(indices, key=lambda index: (cases[index].claim.key, index))
            if len(ordered) > 1:
                found = await ask_pool(self, [cases[index] for index in ordered])
                readings |= {ordered[position]: reading for position, reading in found.items()}

        async def settled(index: int) -> Judgement | StageError:
            if index in readings:
                return self.judged(*cases[index], readings[index])
            try:
                return await self.rate(*cases[index])
            except StageError as error:  # it costs this claim alone
                return error

        return await together(range(len(cases)), settled)


def judge_values(claim: Claim, shown: Sequence[Shown]) -> dict[str, str]:
    """Return the values of the judge's prompt."""
    raw = marked(
        question=claim.question,
        context=claim.context,
        claim=claim.text,
        passages="\n".join(f"{item.passage.title}\n{item.text}" for item in shown),
    )
    return {**raw, "passages": "\n".join(item.drawn(raw["mark"]) for item in shown)}


def reported(claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings with those of text that gives orders, unless the checker for it has run."""
    if any(finding.checker == CHECKER for finding in findings):
        return tuple(findings)
    return (*findings, *injection_findings(claim, evidence))
