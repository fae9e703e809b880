"""Checks that hold for every role: identity, settings, repetition, and what a component does when its source fails."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import anyio
from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from factcheck.config import SECRET_NAME
from factcheck.errors import FactcheckError, PluginError, StageError, UserError
from factcheck.hookspecs import hookimpl
from factcheck.plugins import Plugins
from factcheck.registry import HOOKS
from factcheck.schema import Fingerprint, Role
from factcheck.testing.harness import Bench, Check, CheckFailed, require

MODEL_FAULTS = ("error", "timeout", "rate_limited", "empty", "malformed", "refused", "truncated")


def optional_attributes_are_texts(bench: Bench) -> None:
    """``version``, ``model`` and ``prompt_sha256`` are texts, ``corpus_sha256`` a tuple of them, where they exist."""
    component = bench.new()
    try:
        Fingerprint(
            role="retriever",
            name="x",
            version=getattr(component, "version", None) or "0",
            corpus_sha256=getattr(component, "corpus_sha256", None) or (),
            prompt_sha256=getattr(component, "prompt_sha256", None) or "",
            model=getattr(component, "model", None) or "",
        )
    except ValidationError as exc:
        fields = ", ".join(sorted({str(error["loc"][0]) for error in exc.errors()}))
        raise CheckFailed(
            f"of the wrong type: {fields}; see factcheck.interfaces for the optional attributes"
        ) from None


def settings_refuse_an_unknown_key(bench: Bench) -> None:
    """A misspelt key in the table of settings is an error."""
    model = _settings(bench)
    try:
        model.model_validate({**bench.settings, "a_key_that_nobody_has": 1})
    except ValidationError as exc:
        extra = [error for error in exc.errors() if error["type"] == "extra_forbidden"]
        require(extra, f"the settings refuse more than the unknown key: {_places(exc)}; pass a table as settings=…")
        return
    raise CheckFailed('Settings ignores an unknown key; give it extra="forbid"')


def settings_survive_a_round_trip(bench: Bench) -> None:
    """Settings that were dumped and read again are equal."""
    model = _settings(bench)
    first = model.model_validate(dict(bench.settings))
    require(model.model_validate(first.model_dump()) == first, "Settings differ after model_dump and model_validate")


def settings_keep_secrets_in_secret_types(bench: Bench) -> None:
    """A field whose name is that of a secret has a type that hides it."""
    plain = [
        name
        for name, info in _settings(bench).model_fields.items()
        if SECRET_NAME.search(name) and not _is_secret_type(info.annotation)
    ]
    require(not plain, f"declare as SecretStr, so that no log or report shows it: {', '.join(plain)}")


def registered_factory_makes_a_component(role: Role) -> Callable[[Bench], None]:
    """Return the check that the host can register the factory, make a component of it and identify it."""

    def factory_makes_a_component(bench: Bench) -> None:
        """The host registers the factory, makes a component from the settings and identifies it."""

        @hookimpl(specname=HOOKS[role])
        def implementation(register: Any) -> None:
            register("candidate", bench.factory)

        plugin = types.SimpleNamespace(implementation=implementation)
        plugins = Plugins(autoload=False)
        try:
            plugins.register(plugin, "candidate")
            component = plugins.create(role, "candidate", dict(bench.settings))
            shown = plugins.fingerprint(role, "candidate", component).model_dump_json()
        except PluginError as exc:
            raise CheckFailed(str(exc)) from exc
        leaked = [secret for secret in bench.secrets if secret in shown]
        require(not leaked, "the fingerprint shows a secret")

    return factory_makes_a_component


def works_in_a_second_event_loop(method: str, *arguments: object) -> Callable[[Bench], None]:
    """Return the check that an instance serves two runs, each with an event loop of its own."""

    def serves_a_second_run(bench: Bench) -> None:
        """One instance serves two runs, each with an event loop of its own."""
        component = bench.new()
        for _ in range(2):
            anyio.run(bench.call, getattr(component, method), *arguments)

    return serves_a_second_run


def settings_checks(role: Role) -> tuple[Check, ...]:
    """Return the checks of a component's identity and settings."""
    return (
        Check(optional_attributes_are_texts),
        Check(settings_refuse_an_unknown_key, ("factory",)),
        Check(settings_survive_a_round_trip, ("factory",)),
        Check(settings_keep_secrets_in_secret_types, ("factory",)),
        Check(registered_factory_makes_a_component(role), ("factory",)),
    )


async def trouble(bench: Bench, fault: str, use: Callable[[Any], Any]) -> tuple[FactcheckError | None, Any]:
    """Use a component whose source shows ``fault``; return the StageError or UserError that it raised, or its result.

    Anything else that it raises fails the check: the host can tell what to retry only from the project's own errors.
    """
    if bench.make_faulty is None:
        raise CheckFailed("make_faulty is not given")
    try:
        component = bench.make_faulty(fault)
        return None, await use(component)
    except CheckFailed:
        raise
    except (StageError, UserError) as exc:
        leaked = [secret for secret in bench.secrets if secret in f"{exc!r} {exc}"]
        require(not leaked, f"the error on the fault '{fault}' shows a secret")
        return exc, None
    except FactcheckError as exc:
        raise CheckFailed(f"on the fault '{fault}' it raised {type(exc).__name__}, not a StageError") from exc


def _settings(bench: Bench) -> type[BaseModel]:
    model = getattr(bench.factory, "Settings", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise CheckFailed("Settings is no pydantic model")
    return model


def _is_secret_type(annotation: Any) -> bool:
    text = repr(annotation)
    return any(kind.__name__ in text for kind in (SecretStr, SecretBytes))


def _places(exc: ValidationError) -> str:
    return ", ".join(sorted({".".join(map(str, error["loc"])) for error in exc.errors()}))
