"""Model-backed stages: they split, search and judge through a model that the settings name."""

from __future__ import annotations

from factcheck.hookspecs import Register, hookimpl

FACTCHECK_PLUGIN_API = (1, 0)


@hookimpl
def factcheck_register_decomposers(register: Register) -> None:
    """Register ``llm/atomic``."""
    register("llm/atomic", "factcheck_llm.decomposer:AtomicDecomposer")


@hookimpl
def factcheck_register_query_writers(register: Register) -> None:
    """Register ``llm/neutral``."""
    register("llm/neutral", "factcheck_llm.queries:NeutralQueryWriter")


@hookimpl
def factcheck_register_judges(register: Register) -> None:
    """Register ``llm``; ``safe`` and ``panel`` are plugins of their own names."""
    register("llm", "factcheck_llm.judge:ModelJudge")


@hookimpl
def factcheck_register_checkers(register: Register) -> None:
    """Register ``llm/injection``, which needs no model."""
    register("llm/injection", "factcheck_llm.injection:InjectionChecker")
