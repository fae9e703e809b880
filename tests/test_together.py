"""Doing several things at once: the order of the results, the limit, and what becomes of errors."""

import anyio
import pytest

from factcheck.errors import ConfigError
from factcheck.together import together


def run(items, work, **options):
    return anyio.run(lambda: together(items, work, **options))


def test_results_have_the_order_of_the_items_whatever_finished_first():
    async def work(number):
        await anyio.sleep(0.02 - number / 1000)
        return number * number

    assert run(list(range(10)), work) == [n * n for n in range(10)]
    assert run([], work) == []
    assert run([3], work) == [9]


def test_no_more_run_at_a_time_than_there_are_places():
    inside, most = [], []

    async def work(number):
        inside.append(number)
        most.append(len(inside))
        await anyio.sleep(0.005)
        inside.remove(number)

    async def limited():
        await together(range(20), work, limiter=anyio.CapacityLimiter(3))

    anyio.run(limited)
    assert max(most) == 3


def test_the_first_error_is_raised_as_it_is_and_what_runs_ends_by_itself():
    done, begun = [], []

    async def work(number):
        begun.append(number)
        if number == 1:
            await anyio.sleep(0.005)
            raise ConfigError("no key.")
        await anyio.sleep(0.02)
        done.append(number)

    async def limited():
        await together(range(10), work, limiter=anyio.CapacityLimiter(3))

    with pytest.raises(ConfigError, match="no key"):
        anyio.run(limited)
    assert begun == [0, 1, 2]
    assert done == [0, 2]
