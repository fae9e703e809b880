"""Read the replies of a judge: what holds becomes a reading, what does not becomes a list of problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from factcheck.schema import Claim, Label, Quote, Stance
from factcheck_llm.injection import tainted_spans, touches
from factcheck_llm.quotes import occurrences, says_something
from factcheck_llm.shown import Shown, content_words

_AROUND = 200
_RATIONALE = 1000


class Reply(BaseModel):
    """Base of what a model replies; fields that nobody asked for are dropped."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class StanceReply(Reply):
    """Hold what the model says of one passage."""

    passage: str
    quote: str = ""
    stance: Literal["supports", "contradicts", "silent"]


class JudgeReply(Reply):
    """Hold a judgement of one claim."""

    stances: tuple[StanceReply, ...]
    rationale: str = ""
    label: Label


class ItemReply(JudgeReply):
    """Hold a judgement of one claim of a batch."""

    id: str


class BatchReply(Reply):
    """Hold the judgements of a batch."""

    items: tuple[ItemReply, ...]


class Reading(NamedTuple):
    """Hold a reply that was verified: literal quotes, one stance a passage, and a label that they bear out."""

    label: Label
    stances: tuple[Stance, ...]
    quotes: tuple[Quote, ...]
    rationale: str


def read_reply(reply: JudgeReply, claim: Claim, shown: Sequence[Shown]) -> tuple[Reading | None, list[str]]:
    """Verify a reply; return a reading and no problems, or None and what is wrong, in words without text from outside."""
    by_alias = {item.alias: item for item in shown}
    problems: list[str] = []
    kinds: dict[str, str] = {}
    quotes: list[Quote] = []
    for number, stance in enumerate(reply.stances, start=1):
        item = by_alias.get(stance.passage.strip())
        if item is None:
            problems.append(f"stance {number} names a passage that was not shown.")
            continue
        if kinds.setdefault(item.alias, stance.stance) != stance.stance:
            problems.append(f"there are two different stances on passage {item.alias}.")
            continue
        if stance.stance == "silent":
            continue
        quote, problem = _quote(stance.quote, claim, item)
        if quote is None:
            problems.append(f"stance {number}: {problem}")
        elif quote not in quotes:
            quotes.append(quote)
    label, problem = _label(reply.label, set(kinds.values()))
    if problem:
        problems.append(problem)
    if problems:
        return None, problems
    return Reading(label, _stances(kinds, shown), tuple(quotes), " ".join(reply.rationale.split())[:_RATIONALE]), []


def _stances(kinds: Mapping[str, str], shown: Sequence[Shown]) -> tuple[Stance, ...]:
    return tuple(
        Stance.model_validate({"passage_id": item.passage.id, "stance": kinds.get(item.alias, "silent")})
        for item in shown
    )


def _quote(text: str, claim: Claim, item: Shown) -> tuple[Quote | None, str]:
    """Return the quote as a slice of its passage, or None and why it is none."""
    name = item.alias
    if not text.strip():
        return None, f"the quote from passage {name} is missing."
    tainted = tainted_spans(item.passage.text)
    found = False
    for start, end in occurrences(text, item.text):
        found = True
        if touches((item.offset + start, item.offset + end), tainted):
            continue
        if not says_something(item.text[start:end], item.text):
            return None, f"the quote from passage {name} is too short to show anything."
        if not _related(claim, item, start, end):
            return None, f"the quote from passage {name} speaks of something else than the claim."
        first, last = item.offset + start, item.offset + end
        return Quote(passage_id=item.passage.id, start=first, end=last, text=item.passage.text[first:last]), ""
    if found:
        return None, f"the quote from passage {name} stands in or beside text that gives orders, which is no evidence."
    return None, f"the quote is not in the text of passage {name}, letter by letter and in whole words."


def _related(claim: Claim, item: Shown, start: int, end: int) -> bool:
    """Tell whether the quote, with its title and surroundings, shares a content word with the claim or its context.

    It is a floor and no proof. Where claim or passage has no words in an alphabet there is nothing to compare.
    """
    wanted = content_words(f"{claim.text} {claim.context}")
    held = content_words(f"{item.passage.title} {item.text[max(0, start - _AROUND) : end + _AROUND]}")
    return not wanted or not held or not wanted.isdisjoint(held)


def _label(label: Label, kinds: set[str]) -> tuple[Label, str]:
    """Return the label that the stances bear out, or what is wrong."""
    spoken = kinds - {"silent"}
    if spoken == {"supports", "contradicts"}:
        # What the host makes of both, whichever side the model took.
        if label == "not_enough_evidence":
            return label, "passages support and contradict the claim, and the label says not_enough_evidence."
        return "conflicting", ""
    wanted = {"supported": {"supports"}, "contradicted": {"contradicts"}, "not_enough_evidence": set[str]()}
    if spoken != wanted.get(label):
        listed = " and ".join(sorted(spoken)) or "none"
        return label, f"the label says {label}, and the stances that you listed are: {listed}."
    return label, ""
