"""The default decomposer: sentences, list items and table rows by rule."""

from __future__ import annotations

from factcheck.hookspecs import Register, hookimpl


@hookimpl
def factcheck_register_decomposers(register: Register) -> None:
    """Register ``sentences``."""
    register("sentences", "factcheck.decompose:SentenceDecomposer")
