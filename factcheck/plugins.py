"""The plugins of a run: what is installed, what became of it, and the components that it offers.

A plugin that cannot be used is recorded with the reason and is in nobody's way, until a run names something that it
might own: names carry the entry point they belong to, so that is known even of a plugin that never loaded.
"""

from __future__ import annotations

import os
import traceback
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from factcheck.components import build, describe, missing_modules
from factcheck.config import redacted
from factcheck.discovery import Candidate, clashes, discover
from factcheck.errors import (
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginIncompatibleError,
    PluginLoadError,
    UnknownNameError,
    UserError,
)
from factcheck.registry import Registration, Registry, first_line
from factcheck.schema import ROLES, Fingerprint, Model, Role

Status = Literal["loaded", "blocked", "failed", "incompatible", "conflict"]

BROKEN: tuple[Status, ...] = ("failed", "incompatible", "conflict")


class PluginRecord(Model):
    """Hold what became of one plugin.

    ``name`` is its entry point, ``api`` the plugin interface it was written for, ``provides`` the names it registered
    by plural of the role, ``needs`` the modules its components import and ``missing`` those of them that are not
    installed. ``error`` is one line, ``traceback`` the whole of it for a plugin that raised.
    """

    name: str
    dist: str = ""
    version: str = ""
    status: Status
    first_party: bool = False
    api: tuple[int, int] | None = None
    provides: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    hooks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    error: str = ""
    traceback: str = Field(default="", repr=False)


class Plugins:
    """Hold the plugins of one process or test.

    ``blocked`` names plugins that must not load; ``only``, if not None, the only ones that may, first-party ones
    included. ``strict`` raises the error of the first broken plugin. What is not given comes from the environment:
    FACTCHECK_PLUGINS (names separated by commas; empty for none) and FACTCHECK_STRICT_PLUGINS (1 for true). With
    ``autoload=False`` nothing that is installed is read. Raises UnknownNameError if ``blocked`` or ``only`` names a
    plugin that is not installed.
    """

    def __init__(
        self,
        *,
        autoload: bool = True,
        blocked: Iterable[str] = (),
        only: Iterable[str] | None = None,
        strict: bool | None = None,
    ) -> None:
        self.autoload = autoload
        self._registry = Registry()
        self._records: list[PluginRecord] = []
        self._made: dict[int, tuple[Any, BaseModel | None]] = {}
        if strict is None:
            strict = os.environ.get("FACTCHECK_STRICT_PLUGINS", "") not in ("", "0")
        if autoload:
            self._load(set(blocked), *_selection(only), strict=strict)

    @property
    def records(self) -> tuple[PluginRecord, ...]:
        """Return one record a plugin: those of factcheck first, then by name, then those that a program registered."""
        return tuple(self._records)

    def names(self, role: Role) -> list[str]:
        """Return the names that are registered for a role, sorted."""
        return self._registry.names(_known(role))

    def owner(self, role: Role, name: str) -> str:
        """Return the plugin that registered a component."""
        return self._registration(role, name).plugin

    def registrations(self, plugin: str) -> list[Registration]:
        """Return the components that one plugin registered, in its order."""
        return self._registry.owned(plugin)

    def register(self, plugin: object, name: str) -> PluginRecord:
        """Register a module or object with hooks, as if it were installed with the entry point ``name``.

        Raises a PluginError if it breaks a rule; nothing of it is registered then.
        """
        if holder := next((r for r in self._records if r.name == name and r.status == "loaded"), None):
            raise PluginConflictError(
                f"a plugin named '{name}' is loaded already{_from(holder)}.", plugin=name, hint="Use another name."
            )
        record = self._add(Candidate(name, load=lambda: plugin))
        self._records.append(record)
        return record

    def create(
        self,
        role: Role,
        name: str,
        settings: Mapping[str, Any] | None = None,
        *,
        corpora: Sequence[str] = (),
        domains: Sequence[str] = (),
    ) -> Any:
        """Make a component from its table of settings.

        ``corpora`` and ``domains`` go into the settings fields of these names that ``settings`` leaves open. Raises
        UnknownNameError, with the reason if a plugin that might own the name is not loaded; MissingExtraError if a
        package that it needs is not installed; ConfigError for settings that do not fit; PluginLoadError if it cannot
        be imported or made; PluginContractError if it does not fill the role.
        """
        registration = self._registration(role, name)
        shared = {"corpora": corpora, "domains": domains}
        component, chosen = build(registration, self._record(registration.plugin).dist, settings, shared)
        self._remember(component, chosen)
        return component

    def fingerprint(self, role: Role, name: str, component: Any) -> Fingerprint:
        """Identify a component that ``create`` made; its secrets are masked.

        Raises PluginContractError if its optional attributes are not what ``factcheck.interfaces`` says.
        """
        registration = self._registration(role, name)
        record = self._record(registration.plugin)
        _, chosen = self._made.get(id(component), (None, None))
        try:
            return Fingerprint(
                role=role,
                name=name,
                version=getattr(component, "version", None) or record.version or "0",
                settings=_shown(chosen) if chosen is not None else {},
                corpus_sha256=getattr(component, "corpus_sha256", None) or (),
                prompt_sha256=getattr(component, "prompt_sha256", None) or "",
                model=getattr(component, "model", None) or "",
                parameters=redacted(getattr(component, "parameters", None) or {}),
            )
        except UserError:
            raise
        except ValidationError as exc:
            fields = ", ".join(sorted({str(error["loc"][0]) for error in exc.errors()}))
            raise PluginContractError(
                f"{describe(registration)} has an attribute of the wrong type: {fields}.",
                plugin=registration.plugin,
                hint="See factcheck.interfaces for the optional attributes.",
            ) from exc
        except Exception as exc:
            raise PluginContractError(
                f"{describe(registration)} cannot be identified: {first_line(exc)}", plugin=registration.plugin
            ) from exc

    def check_tables(self, tables: Mapping[str, Any]) -> None:
        """Raise UnknownNameError for a table whose name no component has; that of a plugin not loaded is left alone."""
        known = {name for role in ROLES for name in self.names(role)}
        absent = {record.name for record in self._records if record.status != "loaded"}
        for name in tables:
            if name not in known and name.partition("/")[0] not in absent:
                raise UnknownNameError("component for the table of settings", name, known)

    def _load(self, blocked: set[str], only: set[str] | None, only_from: str, *, strict: bool) -> None:
        candidates = discover()
        known = {candidate.name for candidate in candidates}
        for wanted, source in ((blocked, "The name was to be blocked."), (only or set(), only_from)):
            for name in sorted(wanted - known):
                raise UnknownNameError("plugin", name, known, hint=source)
        clashing = clashes(candidates)
        for candidate in candidates:
            if candidate.name in blocked:
                record = _record_of(candidate, "blocked", error="blocked by name (--no-plugin)")
            elif only is not None and candidate.name not in only:
                record = _record_of(candidate, "blocked", error="not among the plugins to load (FACTCHECK_PLUGINS)")
            else:
                try:
                    record = self._add(candidate, clash=clashing.get(candidate, ""))
                except PluginError as exc:
                    if strict:
                        raise
                    record = _record_of(candidate, _status(exc), error=str(exc), traceback=_traceback(exc))
            self._records.append(record)

    def _add(self, candidate: Candidate, *, clash: str = "") -> PluginRecord:
        if clash:
            raise PluginConflictError(
                f"the plugin '{candidate.name}' of '{candidate.dist}' ({candidate.value}) has the name of {clash}.",
                plugin=candidate.name,
                hint="Uninstall one of the distributions.",
            )
        try:
            if candidate.unreadable is not None:
                raise candidate.unreadable
            plugin = candidate.load() if candidate.load else None
        except (Exception, SystemExit) as exc:
            raise PluginLoadError(
                f"plugin '{candidate.name}'{_from(candidate)} cannot be loaded: {first_line(exc)}",
                plugin=candidate.name,
            ) from exc
        loaded = self._registry.add(plugin, candidate.name)
        provides: dict[str, tuple[str, ...]] = {}
        for item in loaded.registrations:
            provides[f"{item.role}s"] = (*provides.get(f"{item.role}s", ()), item.name)
        needs = tuple(dict.fromkeys(module for item in loaded.registrations for module in item.needs))
        return _record_of(
            candidate,
            "loaded",
            api=loaded.api,
            provides=provides,
            hooks=loaded.hooks,
            needs=needs,
            missing=tuple(missing_modules(needs)),
        )

    def _registration(self, role: Role, name: str) -> Registration:
        registration = self._registry.get(_known(role), name)
        if registration is not None:
            return registration
        owner = name.partition("/")[0]
        reasons = [
            f"Plugin '{record.name}'{_from(record)}, which may own it, is {record.status}: {record.error}"
            for record in self._records
            if record.name == owner and record.status != "loaded"
        ]
        hint = " ".join([*reasons, f"See: factcheck plugins doctor {owner}"] if reasons else [])
        raise UnknownNameError(role.replace("_", " "), name, self.names(role), hint=hint)

    def _record(self, plugin: str) -> PluginRecord:
        return next(record for record in self._records if record.name == plugin and record.status == "loaded")

    def _remember(self, component: Any, chosen: BaseModel | None) -> None:
        key = id(component)
        try:
            weakref.finalize(component, self._made.pop, key, None).atexit = False
        except TypeError:  # no weak reference to it is possible: keep it, so that its id stays its own
            self._made[key] = (component, chosen)
        else:
            self._made[key] = (None, chosen)


def _selection(only: Iterable[str] | None) -> tuple[set[str] | None, str]:
    if only is not None:
        return set(only), "The name was to be loaded."
    listed = os.environ.get("FACTCHECK_PLUGINS")
    if listed is None:
        return None, ""
    return {name.strip() for name in listed.split(",") if name.strip()}, "FACTCHECK_PLUGINS names it."


def _known(role: Role) -> Role:
    if role not in ROLES:
        raise ValueError(f"no role '{role}'; the roles are {', '.join(ROLES)}")
    return role


def _record_of(candidate: Candidate, status: Status, **fields: Any) -> PluginRecord:
    return PluginRecord(
        name=candidate.name,
        dist=candidate.dist,
        version=candidate.version,
        first_party=candidate.first_party,
        status=status,
        **fields,
    )


def _status(exc: PluginError) -> Status:
    if isinstance(exc, PluginIncompatibleError):
        return "incompatible"
    return "conflict" if isinstance(exc, PluginConflictError) else "failed"


def _from(holder: Candidate | PluginRecord) -> str:
    return f" of '{holder.dist} {holder.version}'".rstrip() if holder.dist else ""


def _traceback(exc: PluginError) -> str:
    return "".join(traceback.format_exception(exc.__cause__ or exc))


def _shown(settings: BaseModel) -> dict[str, Any]:
    """Dump settings for a fingerprint: secrets masked, and corpora by name, because their hashes identify them, not paths."""
    dumped: dict[str, Any] = redacted(settings.model_dump(mode="json"))
    if "corpora" in dumped:
        dumped["corpora"] = [Path(corpus).name for corpus in dumped["corpora"]]
    return dumped
