"""What a run spent: sums over stages and invocations, written down while it lasts, and the same in a replay."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.ledger import Ledger
from factcheck.llm.budget import StageUsage
from factcheck.spending import KIND, Spent, account

COUNTS = st.integers(0, 10**6)
USAGE = st.builds(
    StageUsage,
    calls=COUNTS,
    failed=COUNTS,
    tokens_in=COUNTS,
    tokens_out=COUNTS,
    usd=st.none() | st.decimals(0, 1000, places=6).map(float),
    seconds=st.decimals(0, 1000, places=3).map(float),
)
SPENT = st.builds(Spent, stages=st.dictionaries(st.sampled_from(["judge", "decomposer"]), USAGE), requests=COUNTS)


class Meter:
    """Stand for the components of a run."""

    def __init__(self):
        self.spent = Spent()

    def use(self, calls, stage="judge", failed=0):
        usage = StageUsage(calls=calls, failed=failed, tokens_in=10 * calls, tokens_out=calls, usd=0.25 * calls)
        self.spent = self.spent.plus(Spent(stages={stage: usage}, requests=calls))

    def __call__(self):
        return self.spent


@given(SPENT, SPENT)
def test_what_came_later_is_the_difference(one, other):
    both = one.plus(other)
    later = both.minus(one)
    assert later.requests == other.requests
    for stage, usage in later.stages.items():
        assert usage.calls == other.stages[stage].calls
        assert usage.usd is None or usage.usd == pytest.approx(other.stages[stage].usd)


def test_the_total_has_no_price_if_one_is_not_known():
    known, unknown = StageUsage(calls=1, usd=0.5), StageUsage(calls=2, usd=None)
    assert Spent(stages={"judge": known}).total.usd == 0.5
    total = Spent(stages={"judge": known, "decomposer": unknown}).total
    assert (total.calls, total.usd) == (3, None)


def run(path, meter, work, *, mode="record", name="run"):
    async def main():
        with Ledger.open(path, mode=mode) as ledger:
            async with account(ledger, name, meter) as kept:
                await work(kept)
                return await kept.spent()

    return anyio.run(main)


def using(meter, calls, **more):
    async def work(kept):
        meter.use(calls, **more)

    return work


async def nothing(kept):
    pass


def test_without_a_ledger_it_is_what_this_run_has_spent_since_it_began():
    meter = Meter()
    meter.use(3)

    async def main():
        async with account(None, "run", meter) as kept:
            meter.use(2, failed=1)
            return await kept.spent()

    spent = anyio.run(main)
    assert (spent.total.calls, spent.total.failed, spent.requests, spent.total.usd) == (2, 1, 2, 0.5)
    assert spent.seconds > 0


def test_invocations_add_up_and_a_replay_reads_the_same(tmp_path):
    path = tmp_path / "l.sqlite"
    meter = Meter()
    first = run(path, meter, using(meter, 3))
    second = run(path, meter, using(meter, 2, stage="decomposer"))
    assert first.total.calls == 3
    assert {name: usage.calls for name, usage in second.stages.items()} == {"judge": 3, "decomposer": 2}
    replayed = run(path, Meter(), nothing, mode="replay")
    assert replayed.model_dump_json() == second.model_dump_json()


def test_runs_with_other_names_are_apart(tmp_path):
    path = tmp_path / "l.sqlite"
    meter = Meter()
    run(path, meter, using(meter, 3), name="one")
    assert run(path, meter, using(meter, 1), name="other").total.calls == 1


def test_what_a_killed_invocation_has_spent_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.spending.INTERVAL", 0.01)
    path = tmp_path / "l.sqlite"
    meter = Meter()

    async def killed(kept):
        meter.use(4)
        await anyio.sleep(0.1)
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        run(path, meter, killed)
    meter = Meter()
    assert run(path, meter, using(meter, 1)).total.calls == 5


def test_an_error_of_the_run_is_raised_as_it_is(tmp_path):
    async def failing(kept):
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        run(tmp_path / "l.sqlite", Meter(), failing)


def test_nothing_is_written_while_nothing_is_spent(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.spending.INTERVAL", 0.01)
    path = tmp_path / "l.sqlite"

    async def waiting(kept):
        await anyio.sleep(0.05)

    run(path, Meter(), waiting)

    async def count():
        with Ledger.open(path, mode="replay") as ledger:
            return await ledger.values(KIND, "run:")

    assert len(anyio.run(count)) == 1
