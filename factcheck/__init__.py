"""Check the claims of long medical answers against retrieved evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factcheck.config import Settings
    from factcheck.errors import FactcheckError
    from factcheck.hookspecs import hookimpl
    from factcheck.pipeline import FactChecker
    from factcheck.plugins import Plugins
    from factcheck.schema import (
        Accounting,
        Answer,
        AnswerReport,
        Claim,
        Evidence,
        Finding,
        Judgement,
        Passage,
        Query,
        Quote,
        Retrieval,
        Score,
        Stance,
        Verdict,
    )

__all__ = [
    "Accounting",
    "Answer",
    "AnswerReport",
    "Claim",
    "Evidence",
    "FactChecker",
    "FactcheckError",
    "Finding",
    "Judgement",
    "Passage",
    "Plugins",
    "Query",
    "Quote",
    "Retrieval",
    "Score",
    "Settings",
    "Stance",
    "Verdict",
    "hookimpl",
]

_HOME = {
    "FactChecker": "pipeline",
    "FactcheckError": "errors",
    "Plugins": "plugins",
    "Settings": "config",
    "hookimpl": "hookspecs",
}


def __getattr__(name: str) -> Any:
    """Import a public name at first use, so that ``import factcheck`` stays cheap."""
    if name == "__version__":
        from factcheck.source_tree import version

        return version()
    if name not in __all__:
        raise AttributeError(f"module 'factcheck' has no attribute '{name}'")
    return getattr(importlib.import_module(f"factcheck.{_HOME.get(name, 'schema')}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
