"""Judge several claims in one call: each passage is shown once, and each claim names those that are its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from factcheck.llm import ModelReplyError
from factcheck.schema import Claim, Evidence, Finding
from factcheck_llm.delimit import enclose
from factcheck_llm.reply import BatchReply, ItemReply, Reading, read_reply
from factcheck_llm.shown import Shown, show
from factcheck_llm.stage import Asked, marked

if TYPE_CHECKING:
    from factcheck_llm.judge import Rater

BATCH = "judge.batch.v1"


class Case(NamedTuple):
    """Hold one claim to judge, with its evidence and what the checkers found."""

    claim: Claim
    evidence: Evidence
    findings: tuple[Finding, ...] = ()


async def ask_pool(stage: Rater, cases: Sequence[Case]) -> dict[int, Reading]:
    """Return the readings that hold, by the place of their case; the cases have one question.

    A reply that is unusable as a whole gives none. Cases without a passage to show are left out of the call, and so out
    of the result.
    """
    shown = _pooled(cases, stage.settings.passage_limit)
    indices = [index for index, items in enumerate(shown) if items]
    if len(indices) < 2:
        return {}
    asked = Asked.of(stage.prompt(BATCH), _values(cases, shown, indices))
    assumed = [
        ItemReply(id=f"c{number}", **stage.assumed(shown[index]).model_dump())
        for number, index in enumerate(indices, start=1)
    ]
    try:
        reply = await stage.ask(asked, BatchReply, assumed=BatchReply(items=tuple(assumed)))
    except ModelReplyError:
        return {}  # one claim may have caused it: each is asked for alone, and only its own failure counts
    readings: dict[int, Reading] = {}
    for number, index in enumerate(indices, start=1):
        items = [item for item in reply.items if item.id.strip() == f"c{number}"]
        if len(items) == 1:
            reading, _ = read_reply(items[0], cases[index].claim, shown[index])
            if reading is not None:
                readings[index] = reading
    return readings


def _pooled(cases: Sequence[Case], limit: int) -> list[list[Shown]]:
    """Return what is shown for each case; a stretch of a passage that several have is shown under one alias."""
    aliases: dict[tuple[str, str, int, str], str] = {}
    pooled = []
    for case in cases:
        own = []
        for item in show(case.claim, case.evidence.passages, limit):
            key = (item.passage.id, item.passage.title, item.offset, item.text)
            own.append(item._replace(alias=aliases.setdefault(key, f"p{len(aliases) + 1}")))
        pooled.append(own)
    return pooled


def _values(cases: Sequence[Case], shown: Sequence[Sequence[Shown]], indices: Sequence[int]) -> dict[str, str]:
    pool = {item.alias: item for index in indices for item in shown[index]}
    texts = [f"{item.passage.title}\n{item.text}" for item in pool.values()]
    claims = [f"{cases[index].claim.context}\n{cases[index].claim.text}" for index in indices]
    raw = marked(question=cases[indices[0]].claim.question, passages="\n".join(texts), items="\n".join(claims))
    mark = raw["mark"]
    items = []
    for number, index in enumerate(indices, start=1):
        clean = marked(context=cases[index].claim.context, claim=cases[index].claim.text)
        body = f"\n{enclose('context', clean['context'], mark)}\n{enclose('claim', clean['claim'], mark)}\n"
        named = " ".join(item.alias for item in shown[index])
        items.append(enclose("item", body, mark, id=f"c{number}", passages=named))
    return {**raw, "passages": "\n".join(item.drawn(mark) for item in pool.values()), "items": "\n".join(items)}
