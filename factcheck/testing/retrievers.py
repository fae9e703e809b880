"""Checks of a retriever.

Capabilities: ``deterministic`` (equal calls give equal results), ``indexable`` (``make(documents)`` builds a retriever
over the documents given), ``lexical`` (it returns only passages that share a term with the query).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factcheck.errors import PluginContractError, RateLimitedError, RetrievalError, UserError
from factcheck.retrieve import check_passages
from factcheck.schema import Passage
from factcheck.testing.harness import Bench, Check, CheckFailed, CheckResult, require, run_checks
from factcheck.testing.samples import (
    COMMON_WORD,
    DOCUMENTS,
    HOSTILE_QUERIES,
    PAIRED_WORD,
    UNMATCHED,
    Document,
    make_query,
)
from factcheck.testing.shared import settings_checks, trouble, works_in_a_second_event_loop

RETRIEVER_CAPABILITIES = ("deterministic", "indexable", "lexical")
RETRIEVER_FAULTS = ("error", "timeout", "rate_limited", "empty", "malformed")
RETRIEVER_FLOOR = 12


@dataclass(kw_only=True)
class RetrieverBench(Bench):
    """Hold the retriever under test; ``queries`` are texts for which it finds something."""

    queries: Sequence[str] = ()
    known_capabilities: tuple[str, ...] = RETRIEVER_CAPABILITIES
    known_faults: tuple[str, ...] = RETRIEVER_FAULTS

    @property
    def offers(self) -> set[str]:
        """Return what checks may need of this component."""
        probes = len(set(self.probes))
        return super().offers | ({"queries"} if probes else set()) | ({"two queries"} if probes > 1 else set())

    @property
    def probes(self) -> list[str]:
        """Return texts for which the retriever finds something."""
        if "indexable" in self.capabilities:
            return [COMMON_WORD, PAIRED_WORD, DOCUMENTS[0].text, DOCUMENTS[-1].text, *self.queries]
        return list(self.queries)

    def new(self, documents: Sequence[Document] = DOCUMENTS) -> Any:
        """Return a fresh retriever, over ``documents`` if it is indexable."""
        return self.make(documents) if "indexable" in self.capabilities else self.make()

    async def ask(self, component: Any, text: str, k: int = 10) -> list[Passage]:
        """Return what the retriever finds, as a list of passages."""
        found = await self.call(component.retrieve, make_query(text), k)
        require(
            isinstance(found, Sequence) and not isinstance(found, (str, bytes)),
            f"it returned {type(found).__name__} for {_short(text)}, not a list of passages",
        )
        stray = next((item for item in found if not isinstance(item, Passage)), None)
        require(stray is None, f"it returned a {type(stray).__name__} among its passages for {_short(text)}")
        return list(found)


def check_retriever(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = ("deterministic",),
    queries: Sequence[str] = (),
    make_faulty: Callable[[str], Any] | None = None,
    faults: Collection[str] = (),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    secrets: Sequence[str] = (),
    time_limit: float = 30.0,
    minimum: int = RETRIEVER_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a retriever and return the results, of which ``failures`` picks the bad ones.

    ``make`` returns a fresh retriever: ``make(documents)`` if it is indexable, else ``make()``, and then ``queries``
    names searches that find something. See ``factcheck.testing.harness.Bench`` for the other arguments.
    """
    bench = RetrieverBench(
        make=make,
        capabilities=capabilities,
        queries=queries,
        make_faulty=make_faulty,
        faults=faults,
        factory=factory,
        settings=settings or {},
        secrets=secrets,
        time_limit=time_limit,
    )
    return run_checks(RETRIEVER_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


async def returns_passages(bench: RetrieverBench) -> None:
    """It returns a list of passages for a query that finds something and for one that may not."""
    component = bench.new()
    await bench.ask(component, UNMATCHED)
    for text in bench.probes:
        found = await bench.ask(component, text)
        require(found, f"it found nothing for {_short(text)}")
        require(all(passage.text.strip() for passage in found), f"a passage for {_short(text)} is blank")


async def honours_k(bench: RetrieverBench) -> None:
    """It returns at most k passages, and one where there is one to return."""
    component = bench.new()
    for text in [*bench.probes, UNMATCHED]:
        for k in (1, 2, 50, 1):
            found = await bench.ask(component, text, k)
            require(len(found) <= k, f"asked for {k} passages for {_short(text)}, it returned {len(found)}")
            require(found or text == UNMATCHED, f"asked for {k} passages for {_short(text)}, it returned none")


async def ranks_and_scores_are_ordered(bench: RetrieverBench) -> None:
    """Ranks count 1, 2, …; scores are finite and do not rise."""
    component = bench.new()
    for text in bench.probes:
        found = await bench.ask(component, text)
        ranks = [passage.rank for passage in found]
        require(ranks == list(range(1, len(found) + 1)), f"the ranks for {_short(text)} are {ranks}")
        scores = [passage.score for passage in found]
        require(all(map(math.isfinite, scores)), f"a score for {_short(text)} is not finite: {scores}")
        require(scores == sorted(scores, reverse=True), f"the scores for {_short(text)} rise: {scores}")


async def ids_are_unique(bench: RetrieverBench) -> None:
    """No passage comes twice in one result."""
    component = bench.new()
    for text in bench.probes:
        ids = [(passage.corpus, passage.id) for passage in await bench.ask(component, text, 50)]
        require(len(set(ids)) == len(ids), f"a passage id repeats for {_short(text)}: {ids}")


async def the_host_accepts_the_results(bench: RetrieverBench) -> None:
    """What it returns passes the examination that the host makes in every run."""
    component = bench.new()
    for text in [*bench.probes, UNMATCHED]:
        found = await bench.call(component.retrieve, make_query(text), 3)
        try:
            check_passages(found, 3, "candidate")
        except PluginContractError as exc:
            raise CheckFailed(str(exc)) from exc


async def hostile_queries_do_no_harm(bench: RetrieverBench) -> None:
    """Odd text in a query gives a result or a RetrievalError, and the next query works as before."""
    component = bench.new()
    for text in HOSTILE_QUERIES:
        try:
            found = await bench.ask(component, text)
        except RetrievalError:
            continue
        require(len(found) <= 10, f"asked for 10 passages for {_short(text)}, it returned {len(found)}")
    for text in bench.probes[:1]:
        require(await bench.ask(component, text), f"after odd queries it finds nothing for {_short(text)}")


async def results_are_not_shared(bench: RetrieverBench) -> None:
    """A caller who changes the list that it got does not change the next result."""
    component = bench.new()
    for text in bench.probes:
        found = await bench.call(component.retrieve, make_query(text), 5)
        before = list(found)
        if isinstance(found, list):
            found.clear()
        again = await bench.ask(component, text, 5)
        require(len(again) == len(before), f"the result for {_short(text)} is an object that callers can change")


async def repeats_itself(bench: RetrieverBench) -> None:
    """The same query again, after others, gives the same passages and scores."""
    component = bench.new()
    first = [await bench.ask(component, text) for text in bench.probes]
    await bench.ask(component, UNMATCHED)
    for text, before in reversed(list(zip(bench.probes, first, strict=True))):
        require(await bench.ask(component, text) == before, f"the second result for {_short(text)} differs")


async def a_small_k_does_not_stick(bench: RetrieverBench) -> None:
    """Asked for one passage first, it still returns all when asked for more."""
    component = bench.new()
    for text in bench.probes:
        wanted = await bench.ask(bench.new(), text, 10)
        await bench.ask(component, text, 1)
        found = await bench.ask(component, text, 10)
        require(
            found == wanted,
            f"asked for 1 and then for 10, it returns {len(found)}, not {len(wanted)}, for {_short(text)}",
        )


async def a_fresh_instance_repeats_it(bench: RetrieverBench) -> None:
    """Another instance gives the same passages and scores."""
    for text in bench.probes:
        one, other = await bench.ask(bench.new(), text), await bench.ask(bench.new(), text)
        require(one == other, f"two instances differ on {_short(text)}")


async def serves_many_at_once(bench: RetrieverBench) -> None:
    """Queries at the same time get the results that they get alone."""
    component = bench.new()
    texts = [text for text in (*bench.probes, UNMATCHED) for _ in range(5)]
    alone = {text: await bench.ask(component, text) for text in dict.fromkeys(texts)}
    together = await bench.call_together(component.retrieve, [(make_query(text), 10) for text in texts])
    for text, found in zip(texts, together, strict=True):
        require(
            list(found) == alone[text], f"asked with others at the same time, the result for {_short(text)} differs"
        )


async def the_query_matters(bench: RetrieverBench) -> None:
    """Different queries do not all find the same."""
    component = bench.new()
    results = [[(p.corpus, p.id, p.text) for p in await bench.ask(component, text)] for text in bench.probes]
    require(any(found != results[0] for found in results), "every query finds the same passages")


async def text_is_verbatim(bench: RetrieverBench) -> None:
    """Each passage is a slice of the document that it names."""
    component = bench.new()
    texts = {document.id: document.text for document in DOCUMENTS}
    for text in bench.probes:
        for passage in await bench.ask(component, text):
            require(passage.doc_id in texts, f"no document has the id {passage.doc_id!r}")
            require(
                passage.text in texts[passage.doc_id],
                f"a passage is no slice of document {passage.doc_id!r}: {passage.text!r}",
            )


async def each_document_finds_itself(bench: RetrieverBench) -> None:
    """The text of a document as the query brings that document first."""
    component = bench.new()
    for document in DOCUMENTS:
        found = await bench.ask(component, document.text)
        best = found[0].doc_id if found else "nothing"
        require(best == document.id, f"the text of {document.id!r} as the query finds {best!r} first")


async def signs_beyond_ascii_matter(bench: RetrieverBench) -> None:
    """5 g and 5 µg are not the same, nor are α and β."""
    component = bench.new()
    for text, wanted in (
        ("reference substance 5 g", "substance-gram"),
        ("reference substance 5 µg", "substance-microgram"),
        ("blocker of the α receptor", "alpha"),
        ("blocker of the β receptor", "beta"),
    ):
        found = await bench.ask(component, text)
        best = found[0].doc_id if found else "nothing"
        require(best == wanted, f"{text!r} finds {best!r} before {wanted!r}")


async def a_common_word_still_finds(bench: RetrieverBench) -> None:
    """A word that most documents hold finds them."""
    found = await bench.ask(bench.new(), COMMON_WORD, 50)
    wanted = {document.id for document in DOCUMENTS if COMMON_WORD in document.text.lower()}
    absent = wanted - {passage.doc_id for passage in found}
    require(not absent, f"{COMMON_WORD!r} is in {len(wanted)} documents and does not find {sorted(absent)}")


async def one_document_is_enough(bench: RetrieverBench) -> None:
    """An index of one document finds it."""
    document = DOCUMENTS[1]
    found = await bench.ask(bench.new(DOCUMENTS[1:2]), PAIRED_WORD)
    require([passage.doc_id for passage in found] == [document.id], "an index of one document does not find it")


async def an_empty_index_is_no_crash(bench: RetrieverBench) -> None:
    """An index of no documents finds nothing, or says that it is empty by a UserError."""
    try:
        found = await bench.ask(bench.new(()), PAIRED_WORD)
    except UserError:
        return
    require(not found, "an index of no documents finds something")


async def finds_all_and_only_matches(bench: RetrieverBench) -> None:
    """A word finds exactly the documents that hold it, however many were asked for."""
    component = bench.new()
    for word in (PAIRED_WORD, "colchicine", "breakfast"):
        wanted = {document.id for document in DOCUMENTS if word in document.text.lower()}
        for k in (len(wanted), 50):
            found = {passage.doc_id for passage in await bench.ask(component, word, k)}
            require(found == wanted, f"{word!r} is in {sorted(wanted)}; asked for {k}, it finds {sorted(found)}")


async def no_match_is_an_empty_list(bench: RetrieverBench) -> None:
    """A query that shares no word with any document finds nothing."""
    found = await bench.ask(bench.new(), UNMATCHED)
    require(not found, f"a query of no known word finds {[passage.doc_id for passage in found]}")


def _on_fault(fault: str) -> Callable[[RetrieverBench], Awaitable[None]]:
    async def check(bench: RetrieverBench) -> None:
        error, found = await trouble(bench, fault, lambda component: bench.ask(component, PAIRED_WORD))
        if fault == "empty":
            require(error is None and not found, f"its source found nothing, and it gave {error or found!r}, not []")
            return
        require(error is not None, f"its source fails ({fault}), and it returned {found!r} as if that were a result")
        wanted = (RateLimitedError,) if fault == "rate_limited" else (RetrievalError, UserError)
        require(
            isinstance(error, wanted),
            f"on the fault '{fault}' it raised {type(error).__name__}, not {wanted[0].__name__}",
        )

    check.__name__ = f"reports_{fault}" if fault != "empty" else "an_empty_reply_is_an_empty_list"
    check.__doc__ = f"It reports the fault '{fault}' of its source as the contract says."
    return check


RETRIEVER_CHECKS = (
    Check(returns_passages, ("queries",)),
    Check(honours_k, ("queries",)),
    Check(ranks_and_scores_are_ordered, ("queries",)),
    Check(ids_are_unique, ("queries",)),
    Check(the_host_accepts_the_results, ("queries",)),
    Check(hostile_queries_do_no_harm),
    Check(results_are_not_shared, ("queries",)),
    Check(works_in_a_second_event_loop("retrieve", make_query(PAIRED_WORD), 3)),
    Check(repeats_itself, ("deterministic", "queries")),
    Check(a_small_k_does_not_stick, ("deterministic", "queries")),
    Check(a_fresh_instance_repeats_it, ("deterministic", "queries")),
    Check(serves_many_at_once, ("deterministic", "queries")),
    Check(the_query_matters, ("two queries",)),
    Check(text_is_verbatim, ("indexable",)),
    Check(each_document_finds_itself, ("indexable",)),
    Check(signs_beyond_ascii_matter, ("indexable",)),
    Check(a_common_word_still_finds, ("indexable",)),
    Check(one_document_is_enough, ("indexable",)),
    Check(an_empty_index_is_no_crash, ("indexable",)),
    Check(finds_all_and_only_matches, ("indexable", "lexical")),
    Check(no_match_is_an_empty_list, ("indexable", "lexical")),
    *(Check(_on_fault(fault), (f"fault {fault}",)) for fault in RETRIEVER_FAULTS),
    *settings_checks("retriever"),
)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
