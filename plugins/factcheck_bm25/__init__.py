"""Lexical retrieval by BM25."""

from __future__ import annotations

from factcheck.hookspecs import Register, hookimpl


@hookimpl
def factcheck_register_retrievers(register: Register) -> None:
    """Register the retriever ``bm25``."""
    register("bm25", "factcheck_bm25.retriever:Bm25Retriever", needs=("numpy", "rank_bm25", "Stemmer"))
