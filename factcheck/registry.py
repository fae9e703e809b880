"""The registry that plugins fill: each plugin is checked and then enters with all that it registers, or with nothing.

pluggy marks the hooks and validates their signatures. The hooks are called here, one at a time, so that the failure of
one plugin is known to be its own and costs the others nothing.
"""

from __future__ import annotations

import difflib
import inspect
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import pluggy

from factcheck import hookspecs
from factcheck.errors import (
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginIncompatibleError,
    PluginLoadError,
)
from factcheck.hookspecs import Factory
from factcheck.schema import ROLES, Role

PLUGIN_API = (1, 0)
PLUGIN_API_FLOOR = (1, 0)
HOOK_PREFIX = "factcheck_register_"
HOOKS: MappingProxyType[Role, str] = MappingProxyType({role: f"{HOOK_PREFIX}{role}s" for role in ROLES})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Registration:
    """Hold one component that a plugin offers; ``needs`` names top-level modules."""

    role: Role
    name: str
    plugin: str
    factory: Factory
    needs: tuple[str, ...] = ()


class Loaded(NamedTuple):
    """Hold what one plugin brought."""

    api: tuple[int, int]
    hooks: tuple[str, ...]
    registrations: tuple[Registration, ...]


class Registry:
    """Hold every component that is registered, by role and name."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager("factcheck")
        self._manager.add_hookspecs(hookspecs)
        self._taken: dict[tuple[Role, str], Registration] = {}

    def add(self, plugin: object, owner: str) -> Loaded:
        """Register all that ``plugin`` offers under the entry-point name ``owner``.

        Raises a PluginError, and leaves the registry as it was, if the plugin breaks a rule or raises anything,
        SystemExit included.
        """
        try:
            return self._add(plugin, owner)
        except PluginError:
            self._withdraw(plugin, owner)
            raise
        except (Exception, SystemExit) as exc:
            self._withdraw(plugin, owner)
            raise PluginLoadError(f"plugin '{owner}' failed: {first_line(exc)}", plugin=owner) from exc

    def get(self, role: Role, name: str) -> Registration | None:
        """Return the component of that role and name, None if there is none."""
        return self._taken.get((role, name))

    def names(self, role: Role) -> list[str]:
        """Return the names registered for a role, sorted."""
        return sorted(name for known, name in self._taken if known == role)

    def owned(self, owner: str) -> list[Registration]:
        """Return what one plugin registered, in its order."""
        return [item for item in self._taken.values() if item.plugin == owner]

    def _add(self, plugin: object, owner: str) -> Loaded:
        if not NAME.fullmatch(owner):
            raise PluginConflictError(
                f"the entry-point name '{owner}' is not allowed.",
                plugin=owner,
                hint="Use letters, digits, '.', '_' and '-'; variants belong in the names that the plugin registers.",
            )
        api = declared_api(plugin, owner)
        reject_malformed_hooks(self._manager, plugin, owner)
        self._manager.register(plugin, name=owner)
        staging = Staging(owner=owner, taken=self._taken)
        hooks = tuple(self._call_hooks(plugin, staging))
        staging.close()
        self._taken.update(staging.staged)
        return Loaded(api, hooks, tuple(staging.staged.values()))

    def _call_hooks(self, plugin: object, staging: Staging) -> list[str]:
        called = []
        for role, hook_name in HOOKS.items():
            for impl in getattr(self._manager.hook, hook_name).get_hookimpls():
                if impl.plugin is not plugin:
                    continue
                staging.role = role
                arguments = {"register": staging}
                impl.function(**{name: arguments[name] for name in impl.argnames})
                called.append(hook_name)
        return called

    def _withdraw(self, plugin: object, owner: str) -> None:
        # Some releases of pluggy leave a plugin half registered when its validation fails.
        if self._manager.get_plugin(owner) is plugin and plugin is not None:
            self._manager.unregister(name=owner)


@dataclass
class Staging:
    """Take the registrations of one plugin; the first broken rule counts even if the plugin swallows the exception."""

    owner: str
    taken: dict[tuple[Role, str], Registration]
    role: Role = "retriever"
    staged: dict[tuple[Role, str], Registration] = field(default_factory=dict)
    broken: PluginError | None = None
    closed: bool = False

    def __call__(self, name: str, factory: Factory, *, needs: Sequence[str] = ()) -> None:
        """Stage one component; raises a PluginError on a name, factory or need that cannot be registered."""
        try:
            self._stage(name, factory, needs)
        except PluginError as exc:
            self.broken = self.broken or exc
            raise

    def close(self) -> None:
        """End the registration; raises the first broken rule."""
        self.closed = True
        if self.broken is not None:
            raise self.broken

    def _stage(self, name: str, factory: Factory, needs: Sequence[str]) -> None:
        owner = self.owner
        if self.closed:
            raise PluginContractError(
                f"plugin '{owner}' called register after its hook had returned.",
                plugin=owner,
                hint="Register inside the hook.",
            )
        if not isinstance(name, str) or not owns(owner, name):
            raise PluginConflictError(
                f"plugin '{owner}' registered the {self.role} '{name}', a name it does not own.",
                plugin=owner,
                hint=f"Register '{owner}' or '{owner}/<variant>'.",
            )
        holder = self.taken.get((self.role, name)) or self.staged.get((self.role, name))
        if holder is not None:
            raise PluginConflictError(
                f"plugin '{owner}' registered the {self.role} '{name}', a name taken by plugin '{holder.plugin}'.",
                plugin=owner,
                hint=f"Use another variant, '{owner}/<variant>'.",
            )
        if not (callable(factory) or (isinstance(factory, str) and FACTORY.fullmatch(factory))):
            raise PluginContractError(
                f"the factory of the {self.role} '{name}' is {factory!r}.",
                plugin=owner,
                hint="Give a callable or a string 'package.module:Class'.",
            )
        if isinstance(needs, str) or not all(isinstance(module, str) and module for module in needs):
            raise PluginContractError(
                f"the needs of the {self.role} '{name}' are {needs!r}.",
                plugin=owner,
                hint="Give a tuple of module names, as in needs=('faiss',).",
            )
        modules = tuple(dict.fromkeys(module.partition(".")[0] for module in needs))
        self.staged[self.role, name] = Registration(self.role, name, owner, factory, modules)


def owns(owner: str, name: str) -> bool:
    """Tell whether the entry point ``owner`` may register ``name``: itself, or itself, a slash and a variant."""
    first, *variants = name.split("/")
    return first == owner and all(NAME.fullmatch(part) for part in variants)


def declared_api(plugin: object, owner: str) -> tuple[int, int]:
    """Return the plugin interface that a plugin was written for; raises PluginIncompatibleError if it is not served.

    A plugin that declares nothing counts as written for (1, 0), the interface in which the declaration began. That is a
    lower bound, so such a plugin loads until the floor moves, and never passes a break unseen.
    """
    declared = getattr(plugin, "FACTCHECK_PLUGIN_API", (1, 0))
    served = f"{_dotted(PLUGIN_API_FLOOR)} to {_dotted(PLUGIN_API)}"
    if not (
        isinstance(declared, tuple)
        and len(declared) == 2
        and all(isinstance(part, int) and not isinstance(part, bool) and part >= 0 for part in declared)
    ):
        raise PluginIncompatibleError(
            f"plugin '{owner}' declares FACTCHECK_PLUGIN_API = {declared!r}.",
            plugin=owner,
            hint="Declare two whole numbers, as in (1, 0).",
        )
    api = (declared[0], declared[1])
    if api > PLUGIN_API:
        mend = "Update factcheck, or install an older release of the plugin."
    elif api < PLUGIN_API_FLOOR:
        mend = "Install a newer release of the plugin."
    else:
        return api
    raise PluginIncompatibleError(
        f"plugin '{owner}' is written for plugin API {_dotted(api)}, this factcheck serves {served}.",
        plugin=owner,
        hint=mend,
    )


def reject_malformed_hooks(manager: pluggy.PluginManager, plugin: object, owner: str) -> None:
    """Raise PluginLoadError for a hook that pluggy would ignore or call otherwise than its author expects."""
    known = set(HOOKS.values())
    found = False
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            if attribute.startswith(HOOK_PREFIX) and inspect.isroutine(getattr(plugin, attribute, None)):
                raise _bad_hook(owner, attribute, "is not marked.", "Put @hookimpl from factcheck.hookspecs above it.")
            continue
        found = True
        hook = options.get("specname") or attribute
        if hook not in known:
            if options.get("optionalhook"):
                continue
            near = difflib.get_close_matches(hook, known, n=1)
            guess = f"Did you mean '{near[0]}'? " if near else ""
            raise _bad_hook(owner, hook, "does not exist.", f"{guess}Hooks: {', '.join(sorted(known))}.")
        if options.get("wrapper") or options.get("hookwrapper"):
            raise _bad_hook(owner, hook, "is a wrapper.", "Write a plain function that calls register.")
        function = getattr(plugin, attribute)
        if (
            inspect.iscoroutinefunction(function)
            or inspect.isgeneratorfunction(function)
            or inspect.isasyncgenfunction(function)
        ):
            raise _bad_hook(owner, hook, "is a coroutine or a generator.", "Write a plain function.")
        parameters = inspect.signature(function).parameters.values()
        # Releases of pluggy differ in whether they pass an argument that has a default.
        if defaulted := [p.name for p in parameters if p.default is not inspect.Parameter.empty]:
            raise _bad_hook(owner, hook, f"gives its parameter '{defaulted[0]}' a default.", "Remove the default.")
    if not found:
        raise PluginLoadError(
            f"plugin '{owner}' has no hook.",
            plugin=owner,
            hint=f"Mark a function {HOOK_PREFIX}<role>s(register) with @hookimpl where the entry point points.",
        )


def first_line(exc: BaseException) -> str:
    """Describe an exception on one line of at most 500 characters, even one whose ``__str__`` fails."""
    text = " ".join("".join(traceback.format_exception_only(exc)).split())
    return text if len(text) <= 500 else text[:499] + "…"


def _bad_hook(owner: str, hook: str, what: str, hint: str) -> PluginLoadError:
    return PluginLoadError(f"the hook '{hook}' of plugin '{owner}' {what}", plugin=owner, hint=hint)


def _dotted(version: Sequence[Any]) -> str:
    return ".".join(map(str, version))
