import functools
import json
import threading

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import ConfigError, RunError
from factcheck.llm import Budget, BudgetExceededError, ModelClient, ModelSettings, StageUsage
from factcheck.llm.budget import estimated_tokens
from factcheck.llm.prices import Price, load_prices

CENT = Price(10_000.0, 10_000.0)  # a cent for each token


def reserve(budget, stage="judge", *, price=CENT, tokens_in=10, tokens_out=10):
    return budget.reserve(stage, price=price, tokens_in=tokens_in, tokens_out=tokens_out)


def settle(budget, held, *, tokens_in=10, tokens_out=5, **more):
    budget.settle(held, tokens_in=tokens_in, tokens_out=tokens_out, seconds=0.5, **more)


async def spent(budget, calls, **kwargs):
    for _ in range(calls):
        settle(budget, await reserve(budget, **kwargs))


def test_usage_is_kept_for_each_stage_failed_calls_included():
    budget = Budget()

    async def work():
        settle(budget, await reserve(budget, "judge"))
        settle(budget, await reserve(budget, "judge"), tokens_out=0, failed=True, estimated=True)
        settle(budget, await reserve(budget, "decomposer", price=None))

    anyio.run(work)
    judge = StageUsage(calls=2, failed=1, estimated=1, tokens_in=20, tokens_out=5, usd=0.25, seconds=1.0)
    assert budget.usage["judge"] == judge
    assert budget.usage["decomposer"].usd is None
    assert budget.usage["decomposer"].tokens_in == 10


@pytest.mark.parametrize(
    ("bound", "calls", "words"),
    [
        ({"max_calls": 3}, 3, "may make 3 model calls"),
        ({"max_tokens": 65}, 4, "may use 65 tokens; 60 are used, and the next call may need 20"),
        ({"max_usd": 0.65}, 4, r"may cost 0\.65 dollars; it has cost 0\.6000, and the next call may cost 0\.2000"),
    ],
)
def test_each_bound_stops_the_run_and_nothing_is_made_after(bound, calls, words):
    budget = Budget(**bound)
    anyio.run(spent, budget, calls)
    with pytest.raises(BudgetExceededError, match=words) as caught:
        anyio.run(spent, budget, 1)
    assert isinstance(caught.value, RunError)
    assert str(caught.value).startswith("[F401]")
    with pytest.raises(BudgetExceededError, match=words):
        anyio.run(functools.partial(spent, budget, 1, tokens_in=1, tokens_out=0))
    assert budget.usage["judge"].calls == calls


def test_the_deadline_stops_the_run():
    now = [10.0]
    budget = Budget(deadline=60.0, clock=lambda: now[0])
    anyio.run(spent, budget, 1)
    assert budget.time_left == 60.0
    now[0] = 70.5
    assert budget.time_left == 0.0
    with pytest.raises(BudgetExceededError, match="time given to the run is over"):
        anyio.run(spent, budget, 1)


def test_calls_in_progress_count_as_calls():
    budget = Budget(max_calls=2)

    async def work():
        await reserve(budget)
        await reserve(budget)
        await reserve(budget)

    with pytest.raises(BudgetExceededError):
        anyio.run(work)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 100)), min_size=1, max_size=25),
    st.integers(1, 800),
    st.sampled_from(["max_tokens", "max_usd"]),
)
def test_calls_at_once_never_exceed_a_bound_together(calls, bound, kind):
    budget = Budget(**{kind: bound if kind == "max_tokens" else bound / 100})
    refused = []

    async def call(tokens_in, tokens_out, share):
        try:
            held = await reserve(budget, tokens_in=tokens_in, tokens_out=tokens_out)
        except BudgetExceededError:
            refused.append(1)
            return
        await anyio.lowlevel.checkpoint()
        settle(budget, held, tokens_in=tokens_in, tokens_out=tokens_out * share // 100)

    async def work():
        async with anyio.create_task_group() as group:
            for item in calls:
                group.start_soon(call, *item)

    anyio.run(work)
    used = budget.usage.get("judge", StageUsage())
    assert used.tokens_in + used.tokens_out <= bound
    assert used.usd <= bound / 100 + 1e-9
    assert used.calls + len(refused) == len(calls)
    if sum(tokens_in + tokens_out for tokens_in, tokens_out, _ in calls) <= bound:
        assert not refused


def test_a_call_that_fits_after_others_have_settled_waits_for_them():
    budget = Budget(max_tokens=100)
    order = []

    async def second():
        held = await reserve(budget, tokens_in=10, tokens_out=50)
        order.append("second")
        settle(budget, held)

    async def work():
        first = await reserve(budget, tokens_in=10, tokens_out=80)
        async with anyio.create_task_group() as group:
            group.start_soon(second)
            await anyio.sleep(0.01)
            order.append("first")
            settle(budget, first, tokens_out=0)

    with_time(work, 2)
    assert order == ["first", "second"]


def test_a_call_waits_for_one_in_another_event_loop():
    budget = Budget(max_tokens=100)
    ready, go = threading.Event(), threading.Event()

    async def first():
        held = await reserve(budget, tokens_in=10, tokens_out=80)
        ready.set()
        await anyio.to_thread.run_sync(go.wait)
        settle(budget, held, tokens_out=0)

    thread = threading.Thread(target=anyio.run, args=(first,))
    thread.start()
    ready.wait(5)

    async def second():
        async with anyio.create_task_group() as group:
            group.start_soon(functools.partial(spent, budget, 1, tokens_in=10, tokens_out=50))
            await anyio.sleep(0.01)
            assert "judge" not in budget.usage
            go.set()

    with_time(second, 5)
    thread.join(5)
    assert budget.usage["judge"].calls == 2


def test_a_cancelled_wait_leaves_nothing_behind():
    budget = Budget(max_tokens=100)

    async def work():
        first = await reserve(budget, tokens_in=10, tokens_out=80)
        with anyio.move_on_after(0.02):
            await reserve(budget, tokens_in=10, tokens_out=50)
        settle(budget, first, tokens_out=0)
        await spent(budget, 1, tokens_in=10, tokens_out=80)

    with_time(work, 2)


def with_time(work, seconds):
    async def bounded():
        with anyio.fail_after(seconds):
            await work()

    anyio.run(bounded)


def test_tokens_are_estimated_by_length():
    assert estimated_tokens("") == 0
    assert estimated_tokens("a" * 400) == 100
    assert estimated_tokens("药" * 30) == 20


def test_the_packaged_prices_are_in_order():
    prices = load_prices()
    patterns = [entry.pattern for entry in prices.models]
    assert len(set(patterns)) == len(patterns)
    for entry in prices.models:
        assert 0 < entry.price_in < entry.price_out
        assert entry.source.startswith("https://")
        assert "2024-01-01" < entry.date < "2100"
    assert prices.find("GPT-4.1-mini") == Price(0.4, 1.6)
    assert prices.find("claude-haiku-4-5-20251001") == prices.find("claude-haiku-4-5") == Price(1.0, 5.0)
    for unknown in ("gpt-4.1-mini-custom", "my-llama", "", "claude-opus-5-5-20990101-x"):
        assert prices.find(unknown) is None


def test_a_cost_is_the_sum_over_both_directions():
    assert Price(2.0, 8.0).cost(500_000, 250_000) == 3.0


def entry(pattern, price_in, price_out):
    return {"pattern": pattern, "in": price_in, "out": price_out, "date": "2026-01-01", "source": "the contract"}


def test_a_file_of_ones_own_takes_precedence(tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(
        json.dumps({"models": [entry("gpt-4.1*", 1, 2), entry("gpt-4.1-nano", 0.5, 0.6), entry("local/*", 0, 0)]})
    )
    prices = load_prices(path)
    assert prices.find("gpt-4.1-mini") == Price(1.0, 2.0)
    assert prices.find("gpt-4.1-nano") == Price(0.5, 0.6)
    assert prices.find("local/llama") == Price(0.0, 0.0)
    assert prices.find("gpt-4o-mini") == Price(0.15, 0.6)
    assert load_prices().find("gpt-4.1-mini") == Price(0.4, 1.6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"models": {}}',
        '{"models": [{"pattern": "x"}]}',
        json.dumps({"models": [entry("x", -1, 2)]}),
        None,
    ],
)
def test_a_file_that_is_no_price_list_is_refused(tmp_path, text):
    path = tmp_path / "prices.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.json cannot be read") as caught:
        load_prices(path)
    assert "\n" not in str(caught.value)


def test_a_bound_in_dollars_needs_a_price():
    settings = ModelSettings(model="my-llama", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match=r"price of the model 'my-llama' is not known.*price = \["):
        ModelClient(settings, budget=Budget(max_usd=1.0))
    ModelClient(settings, budget=Budget(max_tokens=1))
    ModelClient(settings.model_copy(update={"price": (0.0, 0.0)}), budget=Budget(max_usd=1.0))
    ModelClient(ModelSettings(model="gpt-4.1"), budget=Budget(max_usd=1.0))
