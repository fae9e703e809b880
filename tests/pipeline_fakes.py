"""Components in memory for the tests of the pipeline, each made of one function and registered as plugins are.

``fact_checker(judge=function)`` builds a FactChecker whose other roles do the plainest thing: a claim a line, the claim
as its query, one passage that repeats the query, and the label supported.
"""

from types import SimpleNamespace

import anyio

from factcheck.hookspecs import hookimpl
from factcheck.pipeline import FactChecker
from factcheck.plugins import Plugins
from factcheck.schema import Claim, Evidence, Judgement, Passage, Query, Quote, Stance

METHODS = {
    "decomposer": "decompose",
    "query_writer": "write_queries",
    "retriever": "retrieve",
    "judge": "judge",
    "checker": "check",
    "primitive": "__call__",
}


def claim(text="Aspirin thins the blood.", *, id="a.c1", answer_id="a", **fields):
    span = fields.pop("span", (0, len(text)))
    return Claim(id=id, answer_id=answer_id, text=text, span=span, sentence_span=span, **fields)


def query(text="aspirin", *, id="a.c1.q1", claim_id="a.c1"):
    return Query(id=id, claim_id=claim_id, text=text)


def passages(*texts, corpus="c", prefix="p"):
    return [
        Passage(id=f"{prefix}{i}", doc_id="d", corpus=corpus, text=text, score=1.0 / i, rank=i)
        for i, text in enumerate(texts, start=1)
    ]


def evidence(*texts, claim_id="a.c1", complete=True):
    return Evidence(claim_id=claim_id, passages=tuple(passages(*texts)), complete=complete)


def quote(passage, start=0, end=None):
    end = len(passage.text) if end is None else end
    return Quote(passage_id=passage.id, start=start, end=end, text=passage.text[start:end])


def judgement(label, subject, shown, **fields):
    """Return an acceptable judgement whose first passages take the stances that the label needs."""
    kinds = {"supported": ("supports",), "contradicted": ("contradicts",), "conflicting": ("supports", "contradicts")}
    taken = list(zip(shown.passages, kinds.get(label, ()), strict=False))
    fields.setdefault("stances", tuple(Stance(passage_id=p.id, stance=kind) for p, kind in taken))
    fields.setdefault("quotes", tuple(quote(p) for p, _ in taken))
    return Judgement(claim_id=subject.id, label=label, **fields)


def by_line(answer):
    claims, start = [], 0
    for line in answer.text.splitlines(keepends=True):
        text = line.strip()
        if text:
            where = start + line.index(text)
            claims.append(
                claim(text, id=f"{answer.id}.c{len(claims) + 1}", answer_id=answer.id, span=(where, where + len(text)))
            )
        start += len(line)
    return claims


def plainly(subject, shown, findings):
    return judgement("supported" if shown.passages else "not_enough_evidence", subject, shown)


PLAIN = {
    "decomposer": by_line,
    "query_writer": lambda subject: [subject.text],
    "retriever": lambda asked, k: passages(asked.text)[:k],
    "judge": plainly,
    "checker": {},
    "primitive": {},
}


def plugins_of(**roles):
    """Return plugins that hold the functions: one under the name ``t``, several in a dict under ``t/<its key>``."""
    loaded = Plugins(autoload=False)
    hooks = SimpleNamespace()
    for role, plain in PLAIN.items():
        functions = roles.get(role, plain)
        named = {f"t/{key}": f for key, f in functions.items()} if isinstance(functions, dict) else {"t": functions}
        setattr(hooks, f"factcheck_register_{role}s", _hook(role, named))
    loaded.register(hooks, "t")
    return loaded


def _hook(role, named):
    @hookimpl(specname=f"factcheck_register_{role}s")
    def hook(register):
        for name, function in named.items():
            register(name, _factory(role, function))

    return hook


def _factory(role, function):
    return lambda: SimpleNamespace(**{METHODS[role]: function}, version="1")


def fact_checker(*, settings=None, **roles):
    """Return a FactChecker of the functions; retrievers and checkers may be dicts, of which all are used, in order."""
    several = roles.get("retriever", PLAIN["retriever"])
    chosen = {
        "decomposer": "t",
        "query_writer": "t",
        "judge": "t",
        "retrievers": tuple(f"t/{key}" for key in several) if isinstance(several, dict) else ("t",),
        "corpora": (),
        **(settings or {}),
    }
    return FactChecker(plugins=plugins_of(**roles), **chosen)


def labels(report):
    return [verdict.label for verdict in report.verdicts]


def raising(error):
    """Return a component's method that raises."""

    def fail(*arguments):
        raise error

    return fail


def eventually(function):
    """Return a coroutine function that does what the plain one does."""

    async def coroutine(*arguments):
        await anyio.sleep(0)
        return function(*arguments)

    return coroutine
