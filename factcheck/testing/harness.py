"""Run the checks of one role on a component, all of them, and report every outcome.

A check is a function that takes a bench and raises CheckFailed. It names what the component must offer for the check to
apply; where that is absent the check is skipped, and the skip is reported with its reason. Conditions are tested by
``require`` and not by ``assert``, which ``python -O`` would remove.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import anyio
from pydantic import Field

from factcheck.calling import call
from factcheck.errors import UnknownNameError
from factcheck.registry import first_line
from factcheck.schema import Model

FLOOR_CHECK = "enough_checks_ran"

Outcome = Literal["passed", "failed", "skipped", "xfail", "xpass"]
T = TypeVar("T")


class CheckFailed(AssertionError):
    """A rule that the component under test breaks."""


class CheckResult(Model):
    """Hold the outcome of one check.

    ``xfail`` is a failure that was expected, ``xpass`` an expected one that did not come. ``reason`` says why a check
    was skipped or its failure expected, ``error`` what was wrong.
    """

    check: str
    status: Outcome
    reason: str = ""
    error: str = Field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Tell whether the outcome is acceptable; an expected failure that passes is not, its entry is out of date."""
        return self.status not in ("failed", "xpass")


class Check(NamedTuple):
    """Hold a check and what a component must offer for it to apply."""

    run: Callable[[Any], Any]
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name under which the check is reported."""
        return self.run.__name__


@dataclass(kw_only=True)
class Bench:
    """Hold the component under test, and what is known of it.

    ``make`` returns a fresh component. ``capabilities`` are what its author declares. ``make_faulty`` returns a
    component whose source or model shows a fault; ``faults`` are those it can show. ``factory`` is what the plugin
    registers, with ``settings`` as a table that it accepts. ``secrets`` are texts that no error may repeat.
    ``time_limit`` is in seconds for one call.
    """

    make: Callable[..., Any]
    capabilities: Collection[str] = ()
    make_faulty: Callable[[str], Any] | None = None
    faults: Collection[str] = ()
    factory: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    secrets: Sequence[str] = ()
    time_limit: float = 30.0

    known_capabilities: tuple[str, ...] = ("deterministic",)
    known_faults: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind, given, known in (
            ("capability", self.capabilities, self.known_capabilities),
            ("fault", self.faults, self.known_faults),
        ):
            if isinstance(given, str):
                raise TypeError(f"give the names of each {kind} as a collection, not as the text {given!r}")
            for name in given:
                if name not in known:
                    raise UnknownNameError(kind, name, known)

    @property
    def offers(self) -> set[str]:
        """Return what checks may need of this component."""
        offered = set(self.capabilities)
        if self.make_faulty is not None:
            offered |= {f"fault {name}" for name in self.faults or self.known_faults}
        if getattr(self.factory, "Settings", None) is not None:
            offered.add("factory")
        return offered

    def new(self) -> Any:
        """Return a fresh component."""
        return self.make()

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        """Call a method as the host does; fails the check if it does not return in time."""
        with anyio.move_on_after(self.time_limit) as scope:
            return await call(function, *args)
        if scope.cancelled_caught:
            raise CheckFailed(f"{_name(function)} did not return within {self.time_limit:g} s")
        raise CheckFailed(f"{_name(function)} was cancelled")

    async def call_together(self, function: Callable[..., Any], arguments: Sequence[tuple[object, ...]]) -> list[Any]:
        """Call a method once for each tuple of arguments, all at the same time; the first exception is raised."""
        results: list[Any] = [None] * len(arguments)
        errors: list[Exception] = []

        async def one(i: int) -> None:
            try:
                results[i] = await self.call(function, *arguments[i])
            except Exception as exc:
                errors.append(exc)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            async with anyio.create_task_group() as group:
                for i in range(len(arguments)):
                    group.start_soon(one, i)
        finally:
            sys.setswitchinterval(interval)
        if errors:
            raise errors[0]
        return results


def require(condition: object, message: str) -> None:
    """Raise CheckFailed with ``message`` unless ``condition`` holds."""
    if not condition:
        raise CheckFailed(message)


def run_checks(
    checks: Sequence[Check], bench: Bench, *, minimum: int, expected_failures: Mapping[str, str]
) -> list[CheckResult]:
    """Run every check; the last result says whether at least ``minimum`` of them ran.

    ``expected_failures`` maps the name of a check to the reason why it is known to fail. Raises UnknownNameError for a
    name that no check has.
    """
    refuse_unknown(checks, expected_failures)
    results = [run_check(check, bench, expected_failures) for check in checks]
    return [*results, floor_result(checks, bench, minimum)]


def run_check(check: Check, bench: Bench, expected_failures: Mapping[str, str]) -> CheckResult:
    """Run one check, or say why it does not apply."""
    expected = expected_failures.get(check.name)
    _refuse_running_loop()
    if absent := _absent(check, bench):
        return CheckResult(check=check.name, status="skipped", reason=f"needs {absent}")
    error = _execute(check, bench)
    if expected is None:
        return CheckResult(check=check.name, status="failed" if error else "passed", error=error)
    return CheckResult(check=check.name, status="xfail" if error else "xpass", reason=expected, error=error)


def floor_result(checks: Sequence[Check], bench: Bench, minimum: int) -> CheckResult:
    """Say whether enough checks apply: a component that skips its checks proves nothing."""
    ran = sum(not _absent(check, bench) for check in checks)
    if ran >= minimum:
        return CheckResult(check=FLOOR_CHECK, status="passed", reason=f"{ran} of {len(checks)}")
    wanted = sorted({need for check in checks for need in check.needs} - bench.offers)
    error = f"{ran} of {len(checks)} checks apply, at least {minimum} must; offer more of: {', '.join(wanted)}"
    return CheckResult(check=FLOOR_CHECK, status="failed", error=error)


def refuse_unknown(checks: Iterable[Check], expected_failures: Mapping[str, str]) -> None:
    """Raise UnknownNameError for an expected failure of a check that does not exist."""
    known = [check.name for check in checks]
    for name in expected_failures:
        if name not in known:
            raise UnknownNameError("check", name, known)


def summary(results: Sequence[CheckResult]) -> str:
    """Say in one line how many checks there were and what became of them, skips with what they need."""
    counted = [result for result in results if result.check != FLOOR_CHECK]
    parts = []
    for status in ("passed", "failed", "xpass", "xfail", "skipped"):
        same = [result for result in counted if result.status == status]
        reasons = dict.fromkeys(result.reason for result in same if status == "skipped")
        if same:
            parts.append(f"{len(same)} {status}" + (f" ({'; '.join(reasons)})" if reasons else ""))
    return f"{len(counted)} checks: {', '.join(parts)}"


def failures(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the results that are not acceptable; an empty list means that the component conforms."""
    return [result for result in results if not result.ok]


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("the checks start event loops of their own; run them outside a running event loop")


def _absent(check: Check, bench: Bench) -> str:
    return " and ".join(repr(need) for need in check.needs if need not in bench.offers)


def _execute(check: Check, bench: Bench) -> str:
    try:
        if inspect.iscoroutinefunction(check.run):
            anyio.run(check.run, bench)
        else:
            check.run(bench)
    except CheckFailed as exc:
        return str(exc) or "failed"
    except (Exception, SystemExit) as exc:
        return f"the component raised {first_line(exc)}\n{_frames(exc)}"
    return ""


def _frames(exc: BaseException) -> str:
    """Return the traceback with its causes, without the frames of the event loop."""
    whole = traceback.TracebackException.from_exception(exc)
    part: traceback.TracebackException | None = whole
    while part is not None:
        kept = [frame for frame in part.stack if not re.search(r"[/\\](anyio|asyncio)[/\\]", frame.filename)]
        part.stack = traceback.StackSummary.from_list(kept)
        part = part.__cause__ or part.__context__
    return "".join(whole.format())


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
