"""Stage 3: a retriever that fails in any way is a failed retrieval, the others count, and fusion is exact."""

import asyncio
import itertools
import math
import os
import runpy
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.breaker import BREAKER_LIMIT, Breaker
from factcheck.errors import PermanentError, PluginContractError, TransientError
from factcheck.retrieve import RRF_CONSTANT, Source, check_passages, fuse, retrieve_all
from factcheck.schema import Passage, Retrieval

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
passages, query = FAKES["passages"], FAKES["query"]
GOOD = passages("one", "two", "three")


def changed(passage, **fields):
    return passage.model_copy(update=fields)


def source(function, name="r", deadline=5.0, **fields):
    return Source(name, SimpleNamespace(retrieve=function), deadline, **fields)


NUMBERS = itertools.count()


def ask(*sources, k=3, queries=None):
    return anyio.run(retrieve_all, queries or [query()], list(sources), k)


class TestWhatIsAccepted:
    def test_passages_pass_as_they_are(self):
        assert check_passages(GOOD, 3, "r") == tuple(GOOD)
        assert check_passages([], 3, "r") == ()

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            (None, "a NoneType, not a list of Passage"),
            ("text", "a str, not a list of Passage"),
            (iter(GOOD), "a list_iterator, not a list of Passage"),
            ({"p1": GOOD[0]}, "a dict, not a list of Passage"),
            ([*GOOD[:2], "three"], "a str, not a Passage"),
            ([GOOD[0].model_dump()], "a dict, not a Passage"),
            ([None], "a NoneType, not a Passage"),
            ([*GOOD, changed(GOOD[0], id="p4", rank=4, score=0.1)], "4 passages when 3 were asked for"),
            ([GOOD[1], GOOD[0]], "ranks do not count"),
            ([changed(GOOD[0], rank=2)], "ranks do not count"),
            ([GOOD[0], changed(GOOD[1], rank=1)], "ranks do not count"),
            ([GOOD[0], changed(GOOD[1], score=2.0)], "scores rise"),
            ([changed(GOOD[0], score=math.nan)], "score of a Passage is not valid"),
            ([changed(GOOD[0], score=math.inf)], "score of a Passage is not valid"),
            ([changed(GOOD[0], score="high")], "score of a Passage is not valid"),
            ([changed(GOOD[0], text=None)], "text of a Passage is not valid"),
            ([changed(GOOD[0], rank=0)], "rank of a Passage is not valid"),
            ([Passage.model_construct(id="p1")], "of a Passage is not valid"),
            ([GOOD[0], changed(GOOD[1], id="p1")], "a passage twice"),
        ],
    )
    def test_a_broken_rule_is_named(self, found, said):
        with pytest.raises(PluginContractError, match=f"retriever 'mine' broke its contract: .*{said}"):
            check_passages(found, 3, "mine")

    def test_equal_ids_of_two_corpora_are_two_passages(self):
        found = [GOOD[0], changed(GOOD[1], id="p1", corpus="other")]
        assert check_passages(found, 3, "r") == tuple(found)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raising(error):
    def retrieve(asked, k):
        raise error

    return retrieve


def raising_async(error):
    async def retrieve(asked, k):
        raise error

    return retrieve


FAULTS = {
    "raises": (raising(ValueError("boom\nand more")), "ValueError: boom and more"),
    "raises in a coroutine": (raising_async(KeyError("k")), "KeyError: 'k'"),
    "raises an error of ours": (raising(TransientError("busy.")), "[F321] busy."),
    "raises a TimeoutError of its own": (raising(TimeoutError("connect")), "TimeoutError: connect"),
    "raises what cannot be printed": (raising(Unspeakable()), "Unspeakable"),
    "raises without a word": (raising(PermanentError("")), "[F323]"),
    "raises StopIteration": (raising(StopIteration()), "StopIteration"),
    "exits": (raising(SystemExit(0)), "it called sys.exit(0)"),
    "exits in a coroutine": (raising_async(SystemExit(0)), "it called sys.exit(0)"),
    "is cancelled from inside": (raising(asyncio.CancelledError()), "cancelled from inside"),
    "is cancelled from inside a coroutine": (raising_async(asyncio.CancelledError()), "cancelled from inside"),
    "returns nothing": (lambda asked, k: None, "[F213]"),
    "returns too much": (lambda asked, k: passages("a", "b", "c", "d"), "4 passages when 3 were asked for"),
    "returns the wrong type": (lambda asked, k: ["text"], "not a Passage"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_is_a_failed_retrieval_and_the_others_count(fault):
    function, said = FAULTS[fault]
    bad, good = ask(source(function, "bad"), source(lambda asked, k: passages("found"), "good"))
    assert (bad.status, bad.retriever, bad.passages) == ("failed", "bad", ())
    assert said in bad.error
    assert bad.error.splitlines() == [bad.error]
    assert (good.status, good.retriever, good.error) == ("ok", "good", "")
    assert [p.text for p in good.passages] == ["found"]
    shown = fuse("a.c1", [bad, good], 3)
    assert not shown.complete
    assert [p.text for p in shown.passages] == ["found"]


def test_a_long_reason_is_cut():
    (found,) = ask(source(raising(ValueError("x" * 10_000))))
    assert len(found.error) <= 500


async def hanging_async(asked, k):
    await anyio.sleep(60)


@pytest.mark.parametrize("function", [lambda asked, k: time.sleep(2), hanging_async], ids=["sync", "async"])
def test_a_retriever_that_hangs_costs_its_deadline_and_no_more(function):
    started = time.monotonic()
    bad, good = ask(source(function, "bad", deadline=0.1), source(lambda asked, k: passages("found"), "good"))
    assert time.monotonic() - started < 1.5
    assert bad.status == "failed"
    assert bad.error == "no reply within 0.1 s"
    assert bad.seconds >= 0.1
    assert good.status == "ok"


def test_a_retriever_that_hangs_for_ever_does_not_keep_the_program_alive():
    script = """
        import time, anyio
        from types import SimpleNamespace
        from factcheck.retrieve import Source, retrieve_all
        from factcheck.schema import Query
        source = Source("r", SimpleNamespace(retrieve=lambda query, k: time.sleep(3600)), 0.05)
        print(anyio.run(retrieve_all, [Query(id="q", claim_id="c", text="t")], [source], 1)[0].status)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    assert (done.stdout.strip(), done.returncode) == ("failed", 0), done.stderr


def test_results_are_ordered_by_query_then_by_source_whoever_replies_first():
    async def slow_for_early(asked, k):
        await anyio.sleep(0.05 if asked.id == "q1" else 0)
        return passages(f"{asked.id} slow")

    def fast(asked, k):
        return passages(f"{asked.id} fast")

    asked = [query("one", id="q1"), query("two", id="q2")]
    found = ask(source(slow_for_early, "slow"), source(fast, "fast"), queries=asked)
    assert [(r.query_id, r.retriever) for r in found] == [
        ("q1", "slow"),
        ("q1", "fast"),
        ("q2", "slow"),
        ("q2", "fast"),
    ]
    assert [r.passages[0].text for r in found] == ["q1 slow", "q1 fast", "q2 slow", "q2 fast"]


def test_a_plain_function_may_return_an_awaitable():
    async def later():
        return passages("later")

    (found,) = ask(source(lambda asked, k: later()))
    assert found.passages[0].text == "later"


def test_a_source_is_asked_a_few_queries_at_a_time_and_each_source_has_its_own_few():
    running, most = {"a": 0, "b": 0}, {"a": 0, "b": 0}

    def counting(name):
        async def retrieve(asked, k):
            running[name] += 1
            most[name] = max(most[name], running[name])
            await anyio.sleep(0.01)
            running[name] -= 1
            return []

        return source(retrieve, name, concurrency=3)

    ask(counting("a"), counting("b"), queries=[query(f"query {i}", id=f"q{i}") for i in range(9)])
    assert most == {"a": 3, "b": 3}


def test_a_cancelled_run_is_cancelled_and_no_failure_of_the_retriever():
    bad = source(hanging_async, deadline=60)

    async def stop():
        with anyio.move_on_after(0.05) as scope:
            await bad.retrieve(query(), 1)
        return scope.cancelled_caught

    assert anyio.run(stop)
    assert bad.breaker.failures == 0


class TestCircuitBreaker:
    def flaky(self, plan):
        """Return a source that fails where the plan says so, and the list of the queries it saw."""
        seen = []

        def retrieve(asked, k):
            seen.append(asked.id)
            if plan[len(seen) - 1]:
                raise PermanentError("the service is down.")
            return passages("found")

        return source(retrieve, concurrency=1), seen

    def queries(self, n):
        return [query(f"query {next(NUMBERS)}", id=f"q{i}") for i in range(n)]

    def test_it_opens_after_failures_in_a_row_and_says_so(self):
        one, seen = self.flaky([True] * 20)
        found = ask(one, queries=self.queries(12))
        assert [r.status for r in found] == ["failed"] * BREAKER_LIMIT + ["skipped"] * (12 - BREAKER_LIMIT)
        assert len(seen) == BREAKER_LIMIT
        assert found[-1].error == "circuit open after 5 failures in a row, the last: [F323] the service is down."
        assert not fuse("a.c1", found[-1:], 3).complete

    def test_a_success_starts_the_count_again(self):
        plan = [*[True] * (BREAKER_LIMIT - 1), False] * 3
        one, seen = self.flaky(plan)
        found = ask(one, queries=self.queries(len(plan)))
        assert len(seen) == len(plan)
        assert "skipped" not in {r.status for r in found}

    def test_after_a_rest_one_query_tries_again(self):
        one, seen = self.flaky([True] * (BREAKER_LIMIT + 1) + [False] * 9)
        one.breaker = Breaker(0.1)
        ask(one, queries=self.queries(BREAKER_LIMIT))
        time.sleep(0.15)
        # The trial fails, so the circuit stays open for those behind it.
        assert [r.status for r in ask(one, queries=self.queries(3))] == ["failed", "skipped", "skipped"]
        time.sleep(0.15)
        assert [r.status for r in ask(one, queries=self.queries(3))] == ["ok"] * 3
        assert len(seen) == BREAKER_LIMIT + 4

    def test_while_one_query_tries_the_others_wait_for_what_becomes_of_it(self):
        seen = []

        async def retrieve(asked, k):
            seen.append(asked.id)
            await anyio.sleep(0.05)
            return passages("found")

        clock = SimpleNamespace(now=0.0)
        one = source(retrieve, breaker=Breaker(5.0, clock=lambda: clock.now))
        for _ in range(BREAKER_LIMIT):
            one.breaker.failed("down")
        clock.now = 5.0
        assert sorted(r.status for r in ask(one, queries=self.queries(3))) == ["ok", "skipped", "skipped"]
        assert len(seen) == 1

    def test_one_source_does_not_open_the_circuit_of_another(self):
        one, _ = self.flaky([True] * 20)
        found = ask(one, source(lambda asked, k: [], "good"), queries=self.queries(12))
        assert {r.status for r in found if r.retriever == "good"} == {"ok"}


def test_equal_queries_are_sent_once_and_a_failure_is_none():
    seen = []

    async def retrieve(asked, k):
        seen.append((asked.text, k))
        await anyio.sleep(0.01)
        if len(seen) == 1:
            raise TransientError("down.")
        return passages("found")

    one = source(retrieve)
    failed = ask(one, queries=[query("same", id=f"q{i}") for i in range(3)])
    assert [(r.query_id, r.status) for r in failed] == [("q0", "failed"), ("q1", "failed"), ("q2", "failed")]
    found = ask(one, queries=[query("same", id="q3"), query("other", id="q4"), query("same", id="q5")])
    assert [(r.query_id, r.status) for r in found] == [("q3", "ok"), ("q4", "ok"), ("q5", "ok")]
    assert ask(one, k=2, queries=[query("same", id="q6")])[0].status == "ok"
    assert seen == [("same", 3), ("same", 3), ("other", 3), ("same", 2)]


def test_a_quick_retriever_is_asked_where_the_others_wait():
    threads = set()

    class Quick:
        quick = True

        def retrieve(self, asked, k):
            threads.add(threading.current_thread())
            return passages(asked.text)

    one = Source("quick", Quick(), 5.0)
    found = ask(
        one, source(lambda asked, k: passages("slow"), "slow"), queries=[query("a", id="q1"), query("b", id="q2")]
    )
    assert [(r.query_id, r.retriever) for r in found] == [
        ("q1", "quick"),
        ("q1", "slow"),
        ("q2", "quick"),
        ("q2", "slow"),
    ]
    assert threads == {threading.main_thread()}


def test_a_source_serves_a_second_event_loop():
    one = source(lambda asked, k: passages("found"))
    assert [ask(one)[0].status, ask(one)[0].status] == ["ok", "ok"]


def retrieval(*ids, texts=None, corpus="c", status="ok", query_id="q"):
    """Return a retrieval that ranks passages by their ids; the text of a passage is its id unless given."""
    found = tuple(
        Passage(id=i, doc_id=i, corpus=corpus, text=(texts or {}).get(i, i), score=1.0 / rank, rank=rank)
        for rank, i in enumerate(ids, start=1)
    )
    return Retrieval(query_id=query_id, retriever="r", status=status, passages=found)


def ids(shown):
    return [passage.id for passage in shown.passages]


class TestFusion:
    def test_values_by_hand(self):
        shown = fuse("a.c1", [retrieval("A", "B", "C"), retrieval("B", "D")], 10)
        assert RRF_CONSTANT == 60
        assert ids(shown) == ["B", "A", "D", "C"]
        # 1/62 + 1/61, 1/61, 1/62, 1/63
        assert [p.score for p in shown.passages] == pytest.approx(
            [0.032522474881, 0.016393442623, 0.016129032258, 0.015873015873], abs=1e-12
        )
        assert [p.rank for p in shown.passages] == [1, 2, 3, 4]
        assert shown.claim_id == "a.c1"

    def test_ties_go_to_the_passage_seen_first(self):
        assert ids(fuse("c", [retrieval("A", "B"), retrieval("B", "A")], 10)) == ["A", "B"]
        assert ids(fuse("c", [retrieval("B", "A"), retrieval("A", "B")], 10)) == ["B", "A"]
        assert ids(fuse("c", [retrieval("A"), retrieval("B"), retrieval("C")], 10)) == ["A", "B", "C"]

    def test_the_order_of_the_summands_makes_no_difference(self):
        # Added as they come, these are not the same float.
        assert 1 / 61 + 1 / 61 + 1 / 63 < 1 / 61 + 1 / 63 + 1 / 61
        rankings = (["A"], ["A"], ["v", "w", "A"], ["B"], ["x", "y", "B"], ["B"])
        shown = fuse("c", [retrieval(*names) for names in rankings], 2)
        assert ids(shown) == ["A", "B"]
        assert shown.passages[0].score == shown.passages[1].score

    def test_the_best_k_are_kept(self):
        assert ids(fuse("c", [retrieval("A", "B", "C")], 2)) == ["A", "B"]
        assert ids(fuse("c", [], 2)) == []

    def test_one_text_counts_once_across_corpora_and_white_space(self):
        texts = {"A": "same  text", "B": "same\ntext"}
        shown = fuse("c", [retrieval("A", texts=texts), retrieval("B", texts=texts, corpus="other")], 10)
        assert ids(shown) == ["A"]
        assert shown.passages[0].score == pytest.approx(2 / 61)
        assert shown.passages[0].text == "same  text"

    def test_copies_within_one_retrieval_count_once_at_their_best_rank(self):
        shown = fuse("c", [retrieval("A", "B", "A2", texts={"A": "same", "A2": "same"}), retrieval("B")], 10)
        assert ids(shown) == ["B", "A"]
        assert [p.score for p in shown.passages] == pytest.approx([1 / 62 + 1 / 61, 1 / 61])

    def test_one_id_with_two_texts_is_one_passage(self):
        shown = fuse("c", [retrieval("A", texts={"A": "long"}), retrieval("A", texts={"A": "longer"})], 10)
        assert [(p.id, p.text) for p in shown.passages] == [("A", "long")]

    def test_one_id_in_two_corpora_gets_two_names(self):
        found = [
            retrieval("A", corpus="x", texts={"A": "one"}),
            retrieval("x:A", "A", corpus="y", texts={"x:A": "two", "A": "three"}),
            retrieval("A", corpus="x:x", texts={"A": "four"}),
            retrieval("x:A", corpus="x", texts={"x:A": "five"}),
        ]
        names = ids(fuse("c", found, 10))
        assert names[0] == "A"
        assert len(set(names)) == len(names) == 5

    @pytest.mark.parametrize("status", ["failed", "skipped"])
    def test_evidence_is_complete_only_if_every_retrieval_came(self, status):
        assert fuse("c", [retrieval("A"), retrieval("B")], 3).complete
        assert not fuse("c", [retrieval("A"), retrieval(status=status)], 3).complete

    @given(st.lists(st.lists(st.sampled_from("ABCDEFG"), unique=True, max_size=7), max_size=5), st.integers(1, 8))
    def test_it_agrees_with_exact_arithmetic(self, rankings, k):
        scores, seen = {}, []
        for names in rankings:
            for rank, name in enumerate(names, start=1):
                scores[name] = scores.get(name, Fraction()) + Fraction(1, 60 + rank)
                seen += [name] if name not in seen else []
        expected = sorted(seen, key=lambda name: (-scores[name], seen.index(name)))[:k]
        shown = fuse("c", [retrieval(*names) for names in rankings], k)
        assert ids(shown) == expected
        assert [p.score for p in shown.passages] == [pytest.approx(float(scores[name])) for name in expected]
