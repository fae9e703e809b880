"""The decomposer ``llm/atomic``: a model splits each sentence into claims, and rules check that nothing is lost or added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import anyio
import anyio.to_thread
from pydantic import Field

from factcheck.decompose import CLAIM_LIMIT, SentenceDecomposer
from factcheck.errors import DecomposeError
from factcheck.llm import ModelReplyError, ModelRole
from factcheck.schema import CHECKABLE_KINDS, Answer, Claim, ClaimKind
from factcheck.text import subjects
from factcheck.together import together
from factcheck_llm.delimit import encodable
from factcheck_llm.grounding import is_stray, numbers, problems_of
from factcheck_llm.injection import find_orders
from factcheck_llm.reply import Reply
from factcheck_llm.stage import Asked, ModelStage, StageSettings, marked

PROMPT = "decompose.atomic.v2"
RETRY = "decompose.retry.v1"
_QUESTION = 600
# "It" and "the dose" are for factcheck.text.subjects to tell; these it does not look for.
_POINTS = re.compile(
    r"\b(?:this|these|those|such|former|latter|otherwise)\b"
    r"|^\W*(?:[\w'’-]+\W+){0,3}?(?:that|they|them|their|he|she|him|his|her|then|also|so|but|however|instead|both|same)\b",
    re.IGNORECASE,
)


class AtomReply(Reply):
    """Hold one claim that the model wrote."""

    text: str
    kind: ClaimKind = "statement"


class AtomsReply(Reply):
    """Hold the claims of one sentence."""

    claims: tuple[AtomReply, ...]


class Claims(list[Claim]):
    """Hold the claims of an answer, and ``warnings`` about sentences that were kept whole, one line each.

    ``whole`` is false if a reply that another attempt may mend is among the reasons.
    """

    def __init__(self, claims: Iterable[Claim] = (), warnings: Sequence[str] = (), *, whole: bool = True) -> None:
        super().__init__(claims)
        self.warnings = tuple(warnings)
        self.whole = whole


class _Ask(NamedTuple):
    """What a split depends on: equal ones are asked once."""

    question: str
    context: str
    before: str
    sentence: str
    kind: ClaimKind


class _Split(NamedTuple):
    atoms: tuple[tuple[str, ClaimKind], ...]
    trouble: str = ""
    failed: bool = False


class AtomicDecomposer(ModelStage):
    """Let a model split each sentence of an answer, list items and table rows among them, in a call of its own.

    A call sees the sentence, its context as ``sentences`` finds it (headings, the subject it hangs on), the question up to
    600 code points, and the ``window`` sentences before it if it points back. So a claim's key does not hang on the rest
    of the answer. Claims that are of other text than the sentence are left out, if the others carry all of it. Claims that
    lose or add a number, a unit, a negation or a condition, that leave much of the sentence out or use other words than it
    are asked for once more; if they do so again, the sentence itself is the claim, with a warning.
    """

    version = "1"
    role: ClassVar[ModelRole] = "decomposer"
    prompt_ids: ClassVar[tuple[str, ...]] = (PROMPT, RETRY)

    class Settings(StageSettings):
        """Set the window in sentences, the code points of a longest sentence, and how many calls run at once."""

        window: int = Field(default=1, ge=0, le=3)
        claim_limit: int = Field(default=CLAIM_LIMIT, ge=100, le=100_000)
        concurrency: int = Field(default=64, ge=1, le=1000)

    async def decompose(self, answer: Answer) -> Claims:
        """Return the claims in the order of the text, ids ``<answer id>.c01`` and so on; span and sentence span are equal.

        A sentence whose reply is unusable as a whole stays whole too. Raises DecomposeError if that is so of every sentence,
        and what the client raises otherwise.
        """
        sentences = SentenceDecomposer(SentenceDecomposer.Settings(claim_limit=self.settings.claim_limit))
        pieces = await anyio.to_thread.run_sync(sentences.decompose, answer)
        asks = [self._ask_for(pieces, index) for index in range(len(pieces))]
        splits = await self._split_all(list(dict.fromkeys(asks)))
        made = [(piece, atom) for piece, ask in zip(pieces, asks, strict=True) for atom in splits[ask].atoms]
        width = max(2, len(str(len(made))))
        claims = [
            piece.model_copy(update={"id": f"{answer.id}.c{number:0{width}d}", "text": text, "kind": kind})
            for number, (piece, (text, kind)) in enumerate(made, start=1)
        ]
        warnings = [
            f"the sentence at {piece.span[0]}:{piece.span[1]} was kept whole: {splits[ask].trouble}"
            for piece, ask in zip(pieces, asks, strict=True)
            if splits[ask].trouble
        ]
        return Claims(claims, warnings, whole=not any(splits[ask].failed for ask in asks))

    def _ask_for(self, pieces: Sequence[Claim], index: int) -> _Ask:
        piece = pieces[index]
        before = ""
        if self.settings.window and points_back(piece.text):
            before = "\n".join(other.text for other in pieces[max(0, index - self.settings.window) : index])
        return _Ask(piece.question[:_QUESTION], piece.context, before, piece.text, piece.kind)

    async def _split_all(self, asks: Sequence[_Ask]) -> dict[_Ask, _Split]:
        failures: list[ModelReplyError] = []

        async def split(ask: _Ask) -> _Split:
            try:
                return await self._split(ask)
            except ModelReplyError as error:  # it costs the split of this sentence alone, and nothing of its text
                failures.append(error)
                return _Split(((ask.sentence, ask.kind),), error.message, failed=True)

        splits = await together(asks, split, limiter=anyio.CapacityLimiter(self.settings.concurrency))
        if failures and len(failures) == len(asks):
            first = failures[0]
            raise DecomposeError(f"no sentence could be split: {first.message}", hint=first.hint) from first
        return dict(zip(asks, splits, strict=True))

    async def _split(self, ask: _Ask) -> _Split:
        values = marked(question=ask.question, context=ask.context, before=ask.before, sentence=ask.sentence)
        around = f"{ask.before} {ask.context} {ask.question}"
        asked = Asked.of(self.prompt(PROMPT), values)
        assumed = AtomsReply(claims=(AtomReply(text=encodable(ask.sentence), kind=ask.kind),))
        reply = await self.ask(asked, AtomsReply, assumed=assumed)
        atoms, problems = _held(reply, ask.sentence, around)
        if problems:
            reply = await self.ask(asked.again(reply, self.prompt(RETRY), problems), AtomsReply, assumed=assumed)
            atoms, problems = _held(reply, ask.sentence, around)
        if problems:
            return _Split(((ask.sentence, ask.kind),), " ".join(problems))
        return _Split(tuple(dict.fromkeys((_fold(atom.text), self._kind(atom, ask)) for atom in atoms)))

    def _kind(self, atom: AtomReply, ask: _Ask) -> ClaimKind:
        """Return the kind of a claim: the model cannot take a claim out of the check that has a number or gives orders."""
        if atom.kind in CHECKABLE_KINDS or ask.kind == atom.kind:
            return atom.kind
        guarded = numbers(atom.text) or find_orders(ask.sentence)
        return ask.kind if guarded else atom.kind


def points_back(sentence: str) -> bool:
    """Tell whether a sentence may need the one before it to be understood."""
    return bool(_POINTS.search(sentence)) or subjects.needs(sentence) != ""


def _held(reply: AtomsReply, sentence: str, around: str) -> tuple[Sequence[AtomReply], list[str]]:
    """Return the claims that are of the sentence, if these carry all of it, or the claims and what is wrong with them."""
    problems = problems_of([_fold(atom.text) for atom in reply.claims], sentence, around)
    if problems:
        own = [atom for atom in reply.claims if not is_stray(_fold(atom.text), sentence, around)]
        if not problems_of([_fold(atom.text) for atom in own], sentence, around):
            return own, []
    return reply.claims, problems


def _fold(text: str) -> str:
    return " ".join(text.split())
