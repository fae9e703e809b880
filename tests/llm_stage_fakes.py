"""Models for the tests of the model-backed stages, which read their prompts as a model does: by the tags; loaded with runpy."""

import re

import anyio
from factcheck_llm.delimit import read_back

from factcheck.errors import PermanentError, RateLimitedError, TransientError
from factcheck.llm import ModelReplyError

FAULTS = {
    "error": lambda: PermanentError("the server refused the request (401). Check the key."),
    "timeout": lambda: TransientError("no reply in time."),
    "rate_limited": lambda: RateLimitedError("too many requests.", retry_after=1.0),
    "empty": lambda: ModelReplyError("the reply is empty.", fault="empty"),
    "malformed": lambda: ModelReplyError("the reply is no JSON.", fault="unparseable"),
    "refused": lambda: ModelReplyError("the model refused.", fault="refused"),
    "truncated": lambda: ModelReplyError("the reply is truncated.", fault="truncated"),
}


class FakeClient:
    """Reply with what ``brain(prompt, turn)`` returns for the messages; an exception is raised. ``calls`` holds them."""

    def __init__(self, brain, *, delay=0.0):
        self.brain, self.delay, self.calls = brain, delay, []
        self.running = self.most = 0

    async def structured(self, messages, *, schema, stage, model, prompt="", keep=None):
        self.calls.append((stage, messages))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await anyio.sleep(self.delay)
        finally:
            self.running -= 1
        turns = [message["content"] for message in messages if message["role"] == "user"]
        reply = self.brain(turns[0], len(turns))
        if isinstance(reply, Exception):
            raise reply
        return model.model_validate(reply)


class FakeHost:
    """Lend a client, and judges and searches by name."""

    def __init__(self, client=None, *, judges=None, searches=None, folder=None):
        self.lent, self.judges, self.searches, self.folder, self.asked = (
            client,
            judges or {},
            searches or {},
            folder,
            [],
        )

    def client(self, role, settings):
        self.asked.append((role, settings))
        return self.lent, "lent-model"

    def prompts(self):
        return self.folder

    def search(self, retrievers):
        return self.searches[tuple(retrievers)]

    def judge(self, name):
        return self.judges[name]


def mark_of(prompt):
    return re.search(r"<[a-z]+-([b-v]{8})[ >]", prompt)[1]


def parts_of(prompt):
    """Return the parts of a prompt by name."""
    return {part.name: part for part in read_back(prompt, mark_of(prompt))}


def text_of(prompt, name):
    return parts_of(prompt)[name].text


def passages_of(prompt, name="passages"):
    """Return the texts of the passages by alias, without their titles."""
    found = {}
    for part in parts_of(prompt)[name].parts:
        found[part.attributes["id"]] = next(inner.text for inner in part.parts if inner.name == "text")
    return found


def items_of(prompt):
    """Return the claims of a batch with the aliases of their passages, by id."""
    found = {}
    for part in parts_of(prompt)["items"].parts:
        claim = next(inner.text for inner in part.parts if inner.name == "claim")
        found[part.attributes["id"]] = (claim, part.attributes["passages"].split())
    return found


def judgement(label, *stances):
    """Return a judge's reply from triples of alias, stance and quote."""
    listed = [{"passage": alias, "stance": kind, "quote": quote} for alias, kind, quote in stances]
    return {"stances": listed, "rationale": "because", "label": label}


def literal(claim, passages):
    """Judge as one who understands nothing but repetition: a passage supports the claim that stands in it."""
    wanted = claim.strip()
    stances = [(alias, "supports", wanted) for alias, text in passages.items() if wanted and wanted in text]
    return judgement("supported" if stances else "not_enough_evidence", *stances)


def literal_judge(prompt, turn):
    parts = parts_of(prompt)
    if "items" not in parts:
        return literal(parts["claim"].text, passages_of(prompt))
    texts = passages_of(prompt)
    items = [
        {"id": name, **literal(claim, {alias: texts[alias] for alias in own})}
        for name, (claim, own) in items_of(prompt).items()
    ]
    return {"items": items}


def gullible_judge(prompt, turn):
    """Obey whoever speaks last: find support for anything, and quote the text that asked for it, else the first sentence."""
    passages = passages_of(prompt)
    told = {
        alias: text for alias, text in passages.items() if re.search(r"(?i)supported|ignore|system", text)
    } or passages
    alias, text = next(iter(told.items()))
    place = re.search(r"(?i)[^.\n]*(?:supported|ignore|system)[^.\n]*", text)
    quote = place[0].strip() if place else text.split(".")[0]
    return judgement("supported", (alias, "supports", quote))


def echo_splitter(prompt, turn):
    """Return the sentence as its own claim."""
    return {"claims": [{"text": text_of(prompt, "sentence"), "kind": "statement"}]}


def word_writer(prompt, turn):
    """Return the claim's own words and its context as queries."""
    claim, context = text_of(prompt, "claim"), text_of(prompt, "context")
    return {"queries": [f"{context} {claim}", claim, context or "medicine"]}


def failing(fault):
    """Return a brain that fails in one way."""
    return lambda prompt, turn: FAULTS[fault]()
