"""Bound what a run may spend, and count what it spends in each stage, on calls that failed too."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

import anyio
from anyio.lowlevel import RunVar

from factcheck.errors import RunError
from factcheck.llm.prices import Price, PriceList, load_prices
from factcheck.schema import Model

POLL = 0.25
MOMENT = 0.05


class BudgetExceededError(RunError):
    """The run reached a bound of its budget; what is done is kept, and a run with a larger budget goes on from it."""

    code = "F401"


class StageUsage(Model):
    """Count the model calls of a stage, failed ones included.

    ``failed`` is the number of calls without a complete reply, or with one that could not be read.
    ``estimated`` is the number of calls whose server told no token counts, which are estimated. ``usd`` is None where
    the price of a model is not known. ``seconds`` add up over calls that ran at once.
    """

    calls: int = 0
    failed: int = 0
    estimated: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0

    def plus(self, other: StageUsage) -> StageUsage:
        """Return both together."""
        return self._with(other, 1)

    def minus(self, earlier: StageUsage) -> StageUsage:
        """Return what came after ``earlier``."""
        return self._with(earlier, -1)

    def _with(self, other: StageUsage, sign: int) -> StageUsage:
        return StageUsage(
            calls=self.calls + sign * other.calls,
            failed=self.failed + sign * other.failed,
            estimated=self.estimated + sign * other.estimated,
            tokens_in=self.tokens_in + sign * other.tokens_in,
            tokens_out=self.tokens_out + sign * other.tokens_out,
            # Rounded, because sums of decimal fractions would show the error of the last digit.
            usd=None if self.usd is None or other.usd is None else round(self.usd + sign * other.usd, 9),
            seconds=round(self.seconds + sign * other.seconds, 6),
        )


class Reservation(NamedTuple):
    """Hold the most that a call may use: ``tokens_out`` is a bound, ``tokens_in`` an estimate."""

    stage: str
    price: Price | None
    tokens_in: int
    tokens_out: int

    @property
    def tokens(self) -> int:
        """Return the tokens in and out together."""
        return self.tokens_in + self.tokens_out

    @property
    def usd(self) -> float:
        """Return what the tokens cost, 0 if the price is not known."""
        return self.price.cost(self.tokens_in, self.tokens_out) if self.price is not None else 0.0


class Budget:
    """Hold the bounds of a run; None is no bound. ``deadline`` is in seconds from now, dollars follow the price list.

    For each call in progress the most that it may cost is set aside, so that calls at once cannot exceed a bound together.
    A call that fits only once others have cost less than was set aside for them waits for those. What a server charges
    can exceed a bound by the error of the estimates of input tokens.
    """

    def __init__(
        self,
        max_usd: float | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
        *,
        prices: PriceList | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_usd = max_usd
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self._clock = clock
        self._ends = None if deadline is None else clock() + deadline
        self._prices = prices
        self._lock = threading.Lock()
        self._stages: dict[str, StageUsage] = {}
        self._held: list[Reservation] = []
        self._exceeded = ""
        # Some versions of anyio tell such variables apart by name alone.
        self._waiting: RunVar[list[anyio.Event]] = RunVar(f"factcheck.budget.{uuid.uuid4()}")

    @property
    def prices(self) -> PriceList:
        """Return the price list, the packaged one if none was given."""
        return self._prices if self._prices is not None else load_prices()

    @property
    def usage(self) -> dict[str, StageUsage]:
        """Return the usage of each stage so far."""
        with self._lock:
            return dict(self._stages)

    @property
    def exceeded(self) -> str:
        """Return why nothing more is let through, "" as long as it is."""
        return self._exceeded

    @property
    def time_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None if there is none."""
        return None if self._ends is None else max(0.0, self._ends - self._clock())

    async def reserve(self, stage: str, *, price: Price | None, tokens_in: int, tokens_out: int) -> Reservation:
        """Set aside what a call may use, waiting for calls in progress where it fits only after them.

        ``price`` is that of the model, ``tokens_in`` an estimate and ``tokens_out`` the most that the model may write.
        Raise BudgetExceededError if the call does not fit at all; from then on nothing does. Each reservation must be
        settled.
        """
        wanted = Reservation(stage, price, tokens_in, tokens_out)
        while not self._set_aside(wanted):
            turn = anyio.Event()
            waiting = self._waiting.get(None)
            if waiting is None:
                self._waiting.set(waiting := [])
            waiting.append(turn)
            # Events do not cross event loops, so that what settles in another one is seen a little later.
            with anyio.move_on_after(POLL):
                await turn.wait()
            if turn in waiting:
                waiting.remove(turn)
        return wanted

    def settle(
        self,
        held: Reservation,
        *,
        tokens_in: int,
        tokens_out: int,
        seconds: float,
        failed: bool = False,
        estimated: bool = False,
    ) -> None:
        """Put what a call has used in place of what was set aside for it."""
        with self._lock:
            self._held.remove(held)
            usage = StageUsage(
                calls=1,
                failed=int(failed),
                estimated=int(estimated),
                tokens_in=tokens_in,
                tokens_out=tokens_out,
                usd=held.price.cost(tokens_in, tokens_out) if held.price is not None else None,
                seconds=seconds,
            )
            self._stages[held.stage] = self._stages.get(held.stage, StageUsage()).plus(usage)
        for turn in self._waiting.get(None) or ():
            turn.set()

    def spoiled(self, stage: str) -> None:
        """Count a call of a stage that has settled among the failed ones, because its reply could not be read."""
        with self._lock:
            usage = self._stages[stage]
            self._stages[stage] = usage.model_copy(update={"failed": usage.failed + 1})

    def check_time(self) -> None:
        """Raise BudgetExceededError if the deadline has passed."""
        with self._lock:
            over = self.time_left is not None and self.time_left < MOMENT
            self._refuse("the time given to the run is over" if over else "")

    def _set_aside(self, wanted: Reservation) -> bool:
        """Set aside what is wanted and return True; return False if it may fit once other calls have settled."""
        self.check_time()
        with self._lock:
            spent = self._stages.values()
            held = self._held
            calls = sum(stage.calls for stage in spent) + len(held)
            tokens = sum(stage.tokens_in + stage.tokens_out for stage in spent)
            usd = sum(stage.usd or 0.0 for stage in spent)
            if self.max_calls is not None and calls + 1 > self.max_calls:
                self._refuse(f"the run may make {self.max_calls} model calls, and has made them")
            if self.max_tokens is not None and tokens + wanted.tokens > self.max_tokens:
                self._refuse(
                    f"the run may use {self.max_tokens} tokens; {tokens} are used, and the next call may need "
                    f"{wanted.tokens}"
                )
            if self.max_usd is not None and usd + wanted.usd > self.max_usd:
                self._refuse(
                    f"the run may cost {self.max_usd:.2f} dollars; it has cost {usd:.4f}, and the next call may cost "
                    f"{wanted.usd:.4f}"
                )
            self._refuse("")
            in_tokens = tokens + sum(item.tokens for item in held) + wanted.tokens
            in_usd = usd + sum(item.usd for item in held) + wanted.usd
            fits = (self.max_tokens is None or in_tokens <= self.max_tokens) and (
                self.max_usd is None or in_usd <= self.max_usd
            )
            if fits:
                held.append(wanted)
            return fits

    def _refuse(self, reason: str) -> None:
        self._exceeded = self._exceeded or reason
        if self._exceeded:
            raise exceeded(self._exceeded)


def exceeded(reason: str) -> BudgetExceededError:
    """Return the error for a bound that was reached."""
    return BudgetExceededError(
        f"{reason}.", hint="With a ledger what is done is kept: run again with a larger budget to go on."
    )


def estimated_tokens(text: str) -> int:
    """Return about how many tokens a text is: four letters each, one and a half outside ASCII."""
    plain = len(text.encode("ascii", "ignore"))
    return round(plain / 4 + (len(text) - plain) / 1.5)
