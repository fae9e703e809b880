"""Remembering by key: what is kept, what is forgotten first, and work that overlaps."""

import anyio
import pytest

from factcheck.memo import Memo
from factcheck.together import together


def counting(results, seconds=0.0):
    calls = []

    def of(key):
        async def compute():
            calls.append(key)
            await anyio.sleep(seconds)
            found = results(key)
            if isinstance(found, Exception):
                raise found
            return found

        return compute

    return of, calls


def test_what_was_used_last_is_forgotten_last():
    memo = Memo(2)
    of, calls = counting(str.upper)

    async def work():
        for key in "abacab":
            assert await memo.obtain(key, of(key)) == key.upper()

    anyio.run(work)
    assert calls == ["a", "b", "c", "b"]
    assert len(memo) == 2


def test_equal_work_that_overlaps_runs_once_and_is_shared():
    memo = Memo(10)
    of, calls = counting(str.upper, 0.01)
    found = anyio.run(lambda: together("aabab", lambda key: memo.obtain(key, of(key))))
    assert found == list("AABAB")
    assert sorted(calls) == ["a", "b"]


def test_a_result_that_is_not_kept_is_shared_while_it_is_made_and_made_again_later():
    memo = Memo(10, keeps=lambda result: result != "A")
    of, calls = counting(str.upper, 0.01)

    async def work():
        await together("aa", lambda key: memo.obtain(key, of(key)))
        await memo.obtain("a", of("a"))

    anyio.run(work)
    assert calls == ["a", "a"]


def test_an_error_goes_to_all_who_wait_and_is_not_remembered():
    memo = Memo(10)
    of, calls = counting(lambda key: ValueError("no"), 0.01)
    caught = []

    async def ask(key):
        with pytest.raises(ValueError, match="no"):
            await memo.obtain(key, of(key))
        caught.append(key)

    async def work():
        await together("aaa", ask)
        await ask("a")

    anyio.run(work)
    assert len(caught) == 4
    assert calls == ["a", "a"]


def test_if_the_first_is_cancelled_another_takes_its_place():
    memo = Memo(10)
    of, calls = counting(str.upper, 0.05)
    found = []

    async def waiting():
        found.append(await memo.obtain("a", of("a")))

    async def work():
        async with anyio.create_task_group() as group:
            with anyio.move_on_after(0.01):
                async with anyio.create_task_group() as doomed:
                    doomed.start_soon(memo.obtain, "a", of("a"))
                    await anyio.sleep(0)
                    group.start_soon(waiting)
                    await anyio.sleep(1)

    anyio.run(work)
    assert found == ["A"]
    assert calls == ["a", "a"]


def test_it_serves_several_event_loops():
    memo = Memo(10)
    of, calls = counting(str.upper)
    assert [anyio.run(memo.obtain, "a", of("a")) for _ in range(2)] == ["A", "A"]
    assert calls == ["a"]
