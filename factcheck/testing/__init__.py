"""The conformance kit for plugin authors: checks of every role, pytest suites of them, fakes and sample texts.

``check_retriever(make, …)`` and its siblings return one result a check, and need no pytest. The suites are imported
only when one is named, and only then is pytest. There is no pytest entry point on purpose: it would import this
package before a coverage tool starts to measure.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from factcheck.testing.decomposers import check_decomposer
from factcheck.testing.fakes import FakeDecomposer, FakeJudge, FakeRetriever, OracleJudge, OracleRetriever
from factcheck.testing.harness import CheckResult, failures, summary
from factcheck.testing.judges import check_judge
from factcheck.testing.retrievers import check_retriever
from factcheck.testing.samples import (
    DOCUMENTS,
    Document,
    make_answer,
    make_claim,
    make_evidence,
    make_passages,
    make_query,
)
from factcheck.testing.small_roles import check_checker, check_primitive, check_query_writer, sample_report

if TYPE_CHECKING:
    from factcheck.testing.suites import (
        CheckerSuite,
        DecomposerSuite,
        JudgeSuite,
        PrimitiveSuite,
        QueryWriterSuite,
        RetrieverSuite,
    )

__all__ = [
    "CheckResult",
    "CheckerSuite",
    "DOCUMENTS",
    "DecomposerSuite",
    "Document",
    "FakeDecomposer",
    "FakeJudge",
    "FakeRetriever",
    "JudgeSuite",
    "OracleJudge",
    "OracleRetriever",
    "PrimitiveSuite",
    "QueryWriterSuite",
    "RetrieverSuite",
    "check_checker",
    "check_decomposer",
    "check_judge",
    "check_primitive",
    "check_query_writer",
    "check_retriever",
    "failures",
    "make_answer",
    "make_claim",
    "make_evidence",
    "make_passages",
    "make_query",
    "sample_report",
    "summary",
]

SUITES = "factcheck.testing.suites"


def __getattr__(name: str) -> Any:
    """Import a suite at first use, with pytest's explanation of failed assertions."""
    if name not in __all__:
        raise AttributeError(f"module 'factcheck.testing' has no attribute '{name}'")
    if SUITES not in sys.modules:
        import pytest

        pytest.register_assert_rewrite(SUITES)
    return getattr(importlib.import_module(SUITES), name)
