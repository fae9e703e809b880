"""Do several things at once: results in order, and the first error as it is, not in a group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

S = TypeVar("S")
T = TypeVar("T")


async def together(
    items: Sequence[S], work: Callable[[S], Awaitable[T]], *, limiter: anyio.CapacityLimiter | None = None
) -> list[T]:
    """Return the results of ``work`` in the order of the items, as many at a time as ``limiter`` has places.

    After an error no further work begins, and what is under way ends by itself: a reply that was paid for is recorded.
    """
    results: dict[int, T] = {}
    errors: list[Exception] = []

    async def attempt(index: int) -> None:
        if not errors:
            try:
                results[index] = await work(items[index])
            except Exception as error:
                errors.append(error)

    async def one(index: int) -> None:
        if limiter is None:
            await attempt(index)
        else:
            async with limiter:
                await attempt(index)

    if len(items) == 1 and limiter is None:
        return [await work(items[0])]
    async with anyio.create_task_group() as group:
        for index in range(len(items)):
            group.start_soon(one, index)
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(items))]
