"""Make the components that plugins register: find what they need, import the factory, validate the settings."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from factcheck.config import hide_secrets, validate_table
from factcheck.discovery import normalised
from factcheck.errors import (
    ConfigError,
    FactcheckError,
    MissingExtraError,
    PluginContractError,
    PluginLoadError,
    UserError,
)
from factcheck.interfaces import Checker, Decomposer, Judge, Primitive, QueryWriter, Retriever
from factcheck.registry import Registration, first_line
from factcheck.schema import Role
from factcheck.source_tree import DISTRIBUTION

PROTOCOLS: Mapping[Role, Any] = {
    "decomposer": Decomposer,
    "query_writer": QueryWriter,
    "retriever": Retriever,
    "judge": Judge,
    "checker": Checker,
    "primitive": Primitive,
}
# Modules whose distribution has another name.
PACKAGES = {"faiss": "faiss-cpu", "Stemmer": "PyStemmer"}


def missing_modules(modules: Iterable[str]) -> list[str]:
    """Return the modules that are not installed; imports none of them."""
    return [module for module in modules if not _installed(module)]


def install_line(module: str, dist: str) -> str:
    """Return the pip command that brings ``module`` to the plugin of ``dist``, "" if its metadata names none."""
    package, extra = _requirement(module, dist)
    if not package:
        return ""
    return f"pip install '{dist}[{extra}]'" if extra else f"pip install '{package}'"


def missing_extra(registration: Registration, module: str, dist: str) -> MissingExtraError:
    """Return the error for a component whose module is not installed."""
    package, extra = _requirement(module, dist)
    error = MissingExtraError(describe(registration), package or module, extra)
    if normalised(dist) != DISTRIBUTION or not extra:
        line = install_line(module, dist)
        error.hint = f"Run: {line}" if line else f"See the documentation of '{dist or registration.plugin}'."
    return error


def describe(registration: Registration) -> str:
    """Name a component for a message."""
    return f"the {registration.role.replace('_', ' ')} '{registration.name}'"


def resolve_factory(registration: Registration, dist: str) -> Any:
    """Return the factory, imported if it is a string.

    Raises MissingExtraError if a package is not installed for which the plugin has an extra, PluginLoadError otherwise.
    """
    factory = registration.factory
    if not isinstance(factory, str):
        return factory
    module, _, path = factory.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except UserError:
        raise
    except (Exception, SystemExit) as exc:
        if isinstance(exc, ModuleNotFoundError) and exc.name and _requirement(exc.name.partition(".")[0], dist)[1]:
            raise missing_extra(registration, exc.name.partition(".")[0], dist) from exc
        raise PluginLoadError(
            f"{describe(registration)} could not be imported from '{factory}': {first_line(exc)}",
            plugin=registration.plugin,
            hint=f"See: factcheck plugins doctor {registration.plugin}",
        ) from exc
    if not callable(found):
        raise PluginContractError(f"the factory '{factory}' is not callable.", plugin=registration.plugin)
    return found


def settings_model(factory: Any, registration: Registration) -> type[BaseModel] | None:
    """Return the factory's nested Settings model, None if it has none; raises PluginContractError if it is unfit."""
    model = getattr(factory, "Settings", None)
    if model is None:
        return None
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise PluginContractError(
            f"Settings of {describe(registration)} is no pydantic model.", plugin=registration.plugin
        )
    if model.model_config.get("extra") != "forbid":
        raise PluginContractError(
            f"Settings of {describe(registration)} would ignore a misspelt key.",
            plugin=registration.plugin,
            hint='Give it extra="forbid".',
        )
    return model


def build(
    registration: Registration, dist: str, settings: Mapping[str, Any] | None, shared: Mapping[str, Sequence[str]]
) -> tuple[Any, BaseModel | None]:
    """Make a component; returns it with its validated settings, None if it takes none.

    ``shared`` holds what the run gives to settings fields of these names that ``settings`` leaves open, () for nothing.

    Raises MissingExtraError, ConfigError for settings that do not fit, PluginLoadError if the factory fails, and
    PluginContractError if what it makes does not fill the role. A UserError of the factory passes.
    """
    if missing := missing_modules(registration.needs):
        raise missing_extra(registration, missing[0], dist)
    factory = resolve_factory(registration, dist)
    model = settings_model(factory, registration)
    if model is None and settings:
        raise ConfigError(
            f"{describe(registration)} takes no settings, but [plugins.{quoted(registration.name)}] sets "
            f"{', '.join(sorted(settings))}.",
            hint="Remove the table.",
        )
    chosen: BaseModel | None = None
    if model is not None:
        table = dict(settings or {})
        for field, given in shared.items():
            if given and field in model.model_fields and field not in table:
                table[field] = tuple(given)
        try:
            chosen = validate_table(model, table, where=f"[plugins.{quoted(registration.name)}]")
        except UserError:
            raise
        except Exception as exc:
            raise PluginContractError(
                # Not its text, which may quote a secret.
                f"settings of {describe(registration)} cannot be validated: {type(exc).__name__}.",
                plugin=registration.plugin,
            ) from exc
    try:
        component = factory() if chosen is None else factory(chosen)
    except UserError:
        raise
    except (Exception, SystemExit) as exc:
        if isinstance(exc, FactcheckError):
            raise
        raise PluginLoadError(
            f"{describe(registration)} could not be made: {hide_secrets(first_line(exc), chosen)}",
            plugin=registration.plugin,
            hint=f"See: factcheck plugins doctor {registration.plugin}",
        ) from exc
    if not isinstance(component, PROTOCOLS[registration.role]):
        raise PluginContractError(
            f"the factory of {describe(registration)} made a {type(component).__name__}, which does not fill the role.",
            plugin=registration.plugin,
            hint=f"See factcheck.interfaces.{PROTOCOLS[registration.role].__name__}.",
        )
    return component, chosen


def quoted(name: str) -> str:
    """Return a name as TOML writes it in a table header."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is loaded, and has no spec
        return True


def _requirement(module: str, dist: str) -> tuple[str, str]:
    """Return the package that holds ``module`` and the extra of ``dist`` that asks for it; "" for what is not known."""
    package = normalised(PACKAGES.get(module, module))
    try:
        requirements = importlib.metadata.requires(dist) or [] if dist else []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    for requirement in requirements:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and normalised(name[0]) == package:
            extra = re.search(r"extra\s*==\s*[\"']([^\"']+)[\"']", requirement)
            return name[0], extra[1] if extra else ""
    return "", ""
