"""The hooks by which a plugin registers its components, one a role.

Each hook receives ``register(name, factory, *, needs=())``. ``name`` is the plugin's entry-point name or begins with it and a
slash. ``factory`` is a callable or a string ``"package.module:Class"`` that is imported at first use. ``needs`` names the
modules that the component imports. A hook registers and does nothing else: no models, no network, no files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pluggy

Factory = Callable[..., Any] | str

hookspec = pluggy.HookspecMarker("factcheck")
hookimpl = pluggy.HookimplMarker("factcheck")


class Register(Protocol):
    """Take one component."""

    def __call__(self, name: str, factory: Factory, *, needs: Sequence[str] = ()) -> None:
        """Register ``factory`` under ``name``."""


@hookspec
def factcheck_register_decomposers(register: Register) -> None:
    """Register decomposers, which split an answer into claims."""


@hookspec
def factcheck_register_query_writers(register: Register) -> None:
    """Register query writers, which write searches for a claim."""


@hookspec
def factcheck_register_retrievers(register: Register) -> None:
    """Register retrievers, which find passages for a query."""


@hookspec
def factcheck_register_judges(register: Register) -> None:
    """Register judges, which judge a claim against its evidence."""


@hookspec
def factcheck_register_checkers(register: Register) -> None:
    """Register checkers, which compare a claim with its evidence by rule."""


@hookspec
def factcheck_register_primitives(register: Register) -> None:
    """Register primitives, which measure a report for use in a rubric."""
