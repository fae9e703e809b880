"""Call a component, whether its method is a plain function or a coroutine function, and examine what it returns."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio.to_thread
from pydantic import ValidationError

from factcheck.errors import FactcheckError, PluginContractError
from factcheck.registry import first_line
from factcheck.schema import Model
from factcheck.threads import Threads

M = TypeVar("M", bound=Model)


async def call(function: Callable[..., Any], *args: object, threads: Threads | None = None) -> Any:
    """Await ``function(*args)``; a plain function runs in a worker thread, abandoned when the caller is cancelled.

    A method of a component that is ``quick`` runs here and now: to hand it to a thread would take longer than it does.
    ``threads`` are those to use for a function that may hang. What a component raises to end the program or the task is
    raised as RuntimeError: it must cost no more than its own result.
    """
    try:
        if inspect.iscoroutinefunction(function):
            return await function(*args)
        if getattr(getattr(function, "__self__", None), "quick", False) is True:
            return function(*args)
        work = functools.partial(function, *args)
        result = await (threads.run(work) if threads else anyio.to_thread.run_sync(work, abandon_on_cancel=True))
        return await result if inspect.isawaitable(result) else result
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled from inside") from error


def examined(found: object, kind: type[M], role: str, name: str) -> M:
    """Return what a component returned as a valid ``kind``; raise PluginContractError if it is none.

    It is validated anew, because ``model_construct`` and ``model_copy`` make models that nothing has validated.
    """
    if not isinstance(found, kind):
        raise broken(role, name, f"it returned a {type(found).__name__}, not a {kind.__name__}")
    try:
        return kind.model_validate(found.model_dump(warnings=False))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "whole"
        raise broken(role, name, f"the {place} of a {kind.__name__} is not valid: {first['msg']}") from error


def examined_list(found: object, kind: type[M], role: str, name: str) -> list[M]:
    """Return what a component returned as a list of valid ``kind``; raise PluginContractError if it is none."""
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise broken(role, name, f"it returned a {type(found).__name__}, not a list of {kind.__name__}")
    return [examined(item, kind, role, name) for item in found]


def broken(role: str, name: str, rule: str) -> PluginContractError:
    """Return the error for a component that broke a rule of its role."""
    return PluginContractError(
        f"{role} '{name}' broke its contract: {rule}.", plugin=name, hint="Run the checks of factcheck.testing on it."
    )


def reason_of(error: BaseException) -> str:
    """Describe an exception on one line of at most 500 characters, never empty; those of factcheck by their message."""
    text = " ".join(str(error).split()) if isinstance(error, FactcheckError) else first_line(error)
    return text[:500]
