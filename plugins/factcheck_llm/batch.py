"""Gather calls that are under way at the same time, so that they can be answered together."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import RunVar

T = TypeVar("T")
R = TypeVar("R")


class _Group(Generic[T, R]):
    def __init__(self) -> None:
        self.items: list[T] = []
        self.results: Sequence[R] | None = None
        self.error: Exception | None = None
        self.full = anyio.Event()
        self.done = anyio.Event()


class Gatherer(Generic[T, R]):
    """Answer calls in groups of at most ``size``; the first call of a group waits ``wait`` seconds for it to fill.

    ``work`` answers a group, one result an item, in order; what it raises is raised to every caller of the group. If the
    call that does the work is cancelled, the others of its group form another.
    """

    def __init__(self, work: Callable[[Sequence[T]], Awaitable[Sequence[R]]], size: int, wait: float) -> None:
        self._work, self._size, self._wait = work, size, wait
        # Bound to the event loop; some releases of anyio tell such variables apart by their name alone.
        self._open: RunVar[_Group[T, R] | None] = RunVar(f"group {uuid.uuid4()}", default=None)

    async def __call__(self, item: T) -> R:
        """Return the result for one item."""
        while True:
            group = self._open.get()
            leads = group is None
            if group is None:
                group = _Group()
                self._open.set(group)
            place = len(group.items)
            group.items.append(item)
            if len(group.items) >= self._size:
                self._open.set(None)
                group.full.set()
            if leads:
                await self._lead(group)
            else:
                await group.done.wait()
            if group.error is not None:
                raise group.error
            if group.results is not None:
                return group.results[place]

    async def _lead(self, group: _Group[T, R]) -> None:
        try:
            with anyio.move_on_after(self._wait):
                await group.full.wait()
            self._close(group)
            group.results = await self._work(tuple(group.items))
        except Exception as error:
            group.error = error
        finally:
            self._close(group)
            group.done.set()

    def _close(self, group: _Group[T, R]) -> None:
        if self._open.get() is group:
            self._open.set(None)
