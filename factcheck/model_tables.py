"""Merge tables of model settings: what one leaves open comes from another, but no key goes to another server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT = "default"
_KEYS = ("key", "key_env", "key_keyring")
_OF_THE_SERVER = (*_KEYS, "headers", "api_version")

Table = Mapping[str, Any]


def inherited(base: Table, own: Table) -> dict[str, Any]:
    """Return ``own`` with what it leaves open taken from ``base``.

    Another server takes over neither keys nor headers, another model no price, and a key given in one way replaces a key given
    in another.
    """
    left: set[str] = set(_KEYS) if any(key in own for key in _KEYS) else set()
    if any(own.get(key, base.get(key)) != base.get(key) for key in ("base_url", "api")):
        left.update(_OF_THE_SERVER)
    if own.get("model", base.get("model")) != base.get("model"):
        left.add("price")
    return {**{key: value for key, value in base.items() if key not in left}, **own}


def overlaid(tables: Mapping[str, Table], flags: Mapping[str, Table]) -> dict[str, dict[str, Any]]:
    """Return the tables of a file with those of the command line over them; its default goes before each role of the file."""
    common = flags.get(DEFAULT, {})
    names = {*tables, *flags, *([DEFAULT] if common else [])}
    return {
        name: inherited(
            inherited(tables.get(name, {}), common if name in (*tables, DEFAULT) else {}), _own(flags, name)
        )
        for name in sorted(names)
    }


def _own(flags: Mapping[str, Table], name: str) -> Table:
    return {} if name == DEFAULT else flags.get(name, {})
