"""Calls of components: plain functions, coroutines, threads that may hang; and what is taken for a valid result."""

import asyncio
import contextvars
import runpy
import threading
import time
from pathlib import Path

import anyio
import pytest

from factcheck import threads as module
from factcheck.calling import broken, call, examined, examined_list, reason_of
from factcheck.errors import PluginContractError, TransientError
from factcheck.schema import Passage
from factcheck.threads import Threads

passages = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))["passages"]
NAME = contextvars.ContextVar("NAME", default="outside")


async def double(value):
    await anyio.sleep(0)
    return 2 * value


def own_threads():
    return [thread for thread in threading.enumerate() if thread.name == "factcheck"]


@pytest.mark.parametrize("threads", [None, Threads()], ids=["ordinary", "may hang"])
class TestCall:
    def run(self, threads, function, *args):
        return anyio.run(lambda: call(function, *args, threads=threads))

    def test_each_sort_of_function(self, threads):
        assert self.run(threads, double, 4) == 8
        assert self.run(threads, lambda value: 2 * value, 4) == 8
        assert self.run(threads, lambda value: double(value), 4) == 8
        assert self.run(threads, lambda: None) is None

    def test_a_plain_function_runs_in_another_thread(self, threads):
        assert self.run(threads, threading.get_ident) != threading.get_ident()

    def test_it_sees_the_context_of_its_caller(self, threads):
        async def ask():
            NAME.set("inside")
            return await call(NAME.get, threads=threads)

        assert anyio.run(ask) == "inside"

    @pytest.mark.parametrize("error", [ValueError("x"), KeyError("y")])
    def test_exceptions_pass(self, threads, error):
        def fail():
            raise error

        with pytest.raises(type(error)) as caught:
            self.run(threads, fail)
        assert caught.value is error

    @pytest.mark.parametrize("error", [SystemExit(0), SystemExit("bye"), asyncio.CancelledError(), StopIteration()])
    @pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
    def test_what_would_end_the_program_or_the_task_does_not(self, threads, error, is_async):
        def fail():
            raise error

        async def fail_later():
            raise error

        with pytest.raises(RuntimeError):
            self.run(threads, fail_later if is_async else fail)

    def test_a_cancellation_from_outside_is_no_error(self, threads):
        async def ask():
            task = asyncio.current_task()
            asyncio.get_running_loop().call_later(0.05, task.cancel)
            await call(time.sleep, 0.5, threads=threads)

        async def cancelled():
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(ask())

        anyio.run(cancelled)

    def test_a_deadline_leaves_the_thread_behind(self, threads):
        async def ask():
            with anyio.move_on_after(0.05) as scope:
                await call(time.sleep, 0.5, threads=threads)
            return scope.cancelled_caught

        started = time.monotonic()
        assert anyio.run(ask)
        assert time.monotonic() - started < 0.4


class TestThreads:
    def test_one_serves_again_and_ends_when_it_is_idle(self, monkeypatch):
        monkeypatch.setattr(module, "IDLE_SECONDS", 0.1)
        threads, before = Threads(), len(own_threads())

        async def ask():
            return {await threads.run(threading.get_ident) for _ in range(20)}

        assert len(anyio.run(ask)) == 1
        assert len(anyio.run(ask)) == 1
        deadline = time.monotonic() + 10
        while len(own_threads()) > before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(own_threads()) <= before
        assert len(anyio.run(ask)) == 1

    def test_calls_at_a_time_have_a_thread_each(self):
        threads, barrier = Threads(), threading.Barrier(4)

        async def ask():
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(threads.run, lambda: barrier.wait(timeout=10))

        anyio.run(ask)

    def test_one_that_hangs_hinders_no_other(self):
        threads, release = Threads(), threading.Event()

        async def ask():
            with anyio.move_on_after(0.05):
                await threads.run(release.wait)
            return await threads.run(lambda: "well")

        assert anyio.run(ask) == "well"
        # The loop that it was called from is gone when it comes back.
        release.set()
        assert anyio.run(threads.run, lambda: "well") == "well"

    def test_they_are_daemons(self):
        async def ask():
            return await Threads().run(lambda: threading.current_thread().daemon)

        assert anyio.run(ask)


class TestExamination:
    def test_a_valid_model_passes_as_a_copy(self):
        (passage,) = passages("text")
        assert examined(passage, Passage, "retriever", "r") == passage

    @pytest.mark.parametrize("found", [None, "text", {}, 5, Passage])
    def test_anything_else_is_refused(self, found):
        with pytest.raises(
            PluginContractError, match=r"^\[F213\] judge 'mine' broke its contract: .*, not a Passage\."
        ):
            examined(found, Passage, "judge", "mine")

    def test_a_model_that_nothing_has_validated_is_refused_with_the_place(self):
        passage = passages("text")[0].model_copy(update={"rank": "first"})
        with pytest.raises(PluginContractError, match="the rank of a Passage is not valid: "):
            examined(passage, Passage, "retriever", "mine")

    def test_a_model_of_its_own_with_more_fields_is_refused(self):
        class Richer(Passage):
            mood: str = "good"

        richer = Richer(**passages("text")[0].model_dump())
        with pytest.raises(PluginContractError, match="the mood of a Passage is not valid"):
            examined(richer, Passage, "retriever", "mine")

    @pytest.mark.parametrize("found", [None, "text", b"text", {"a": 1}, {1}, iter([]), 5])
    def test_what_is_no_list_is_refused(self, found):
        with pytest.raises(PluginContractError, match="not a list of Passage"):
            examined_list(found, Passage, "retriever", "mine")

    def test_lists_and_tuples_pass(self):
        assert examined_list(tuple(passages("a", "b")), Passage, "retriever", "r") == passages("a", "b")
        assert examined_list([], Passage, "retriever", "r") == []

    def test_the_error_names_role_component_and_rule(self):
        error = broken("judge", "mine", "it lied")
        assert str(error).startswith("[F213] judge 'mine' broke its contract: it lied. ")
        assert error.plugin == "mine"

    def test_reasons_are_one_line_and_never_empty(self):
        assert reason_of(ValueError("a\nb")) == "ValueError: a b"
        assert reason_of(TransientError("busy.", hint="Wait.")) == "[F321] busy. Wait."
        assert reason_of(ValueError()) == "ValueError"
        assert len(reason_of(TransientError("x" * 9999))) == 500
