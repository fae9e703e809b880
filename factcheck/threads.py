"""Threads for functions that may hang: neither their caller waits for them once it is cancelled, nor the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import anyio.to_thread

IDLE_SECONDS = 5.0

# Does one piece of work and returns what tells its caller.
Task = Callable[[], Callable[[], None]]


class Threads:
    """Run plain functions in daemon threads, as many as there are calls at a time; each serves again until it was idle.

    The worker threads of anyio are no daemons: the interpreter would wait at its exit for one that hangs.
    """

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Task]] = []

    async def run(self, work: Callable[[], Any]) -> Any:
        """Await ``work()``; a call that is cancelled leaves its thread behind."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # another event loop, whose own worker threads are daemons
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        reply: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
            if not reply.done():
                reply.set_result((value, error))

        def task() -> Callable[[], None]:
            value, error = None, None
            try:
                value = context.run(work)
            except BaseException as caught:  # SystemExit too would end this thread and leave the caller waiting
                error = caught
            return lambda: _tell(loop, settle, value, error)

        self._start(task)
        value, error = await reply
        if error is not None:
            raise error
        return value

    def _start(self, task: Task) -> None:
        try:
            tasks = self._idle.pop()
        except IndexError:
            tasks = SimpleQueue()
            threading.Thread(target=self._serve, args=(tasks,), name="factcheck", daemon=True).start()
        tasks.put(task)

    def _serve(self, tasks: SimpleQueue[Task]) -> None:
        while True:
            try:
                task = tasks.get(timeout=IDLE_SECONDS)
            except Empty:
                try:
                    self._idle.remove(tasks)
                except ValueError:  # it was chosen at this very moment
                    task = tasks.get()
                else:
                    return
            tell = task()
            # Before the caller knows, whose next call shall find this thread and start no other.
            self._idle.append(tasks)
            tell()


def _tell(loop: asyncio.AbstractEventLoop, settle: Callable[..., None], *outcome: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(settle, *outcome)
