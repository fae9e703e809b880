"""An inverted index over rank-bm25: its statistics and arithmetic, for the documents that share a term with the query.

rank-bm25 looks every query term up in every document, in Python. Nearly all of what it finds are zeros, so postings
give the same scores in a small part of the time. The operations and their order are the same too, so that scores are
equal to the last bit.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi


class Bm25Index(BM25Okapi):  # type: ignore[misc]
    """Score documents by Okapi BM25 with the idf of Lucene, log(1 + (N - n + 0.5) / (n + 0.5)).

    That idf is positive for a term in any number of documents, so exactly the documents that share a term with the
    query score above zero. ``documents`` yields the terms of one document after the other, and is read once.
    """

    doc_freqs: Any

    def __init__(self, documents: Iterable[Sequence[str]], *, k1: float, b: float) -> None:
        super().__init__(documents, k1=k1, b=b)
        self._spans, self._documents, counts = self.doc_freqs.joined()
        self.doc_freqs = []
        sizes = np.array([end - start for start, end in self._spans.values()], dtype=np.intp)
        idf: np.ndarray = np.repeat([self.idf[term] for term in self._spans], sizes)
        lengths = np.array(self.doc_len)[self._documents]
        # Written as in BM25Okapi.get_scores, so that rounding is the same.
        damping = self.k1 * (1 - self.b + self.b * lengths / self.avgdl)
        self._scores = idf * (counts * (self.k1 + 1) / (counts + damping))

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        # The base class keeps a dict of term counts for every document, several times the size of the text; the
        # postings take each dict as it is made, and let it go.
        self.doc_freqs = _Postings()
        try:
            containing: dict[str, int] = super()._initialize(corpus)
        except ZeroDivisionError:
            if self.corpus_size:
                raise
            return {}  # no documents have no average length
        return containing

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        size = self.corpus_size
        self.idf = {term: math.log(1 + (size - n + 0.5) / (n + 0.5)) for term, n in nd.items()}

    def get_scores(self, query: Sequence[str]) -> np.ndarray:
        """Return the score of every document; a term that the query repeats counts as often."""
        scores = np.zeros(self.corpus_size)
        for term in query:
            if span := self._spans.get(term):
                part = slice(*span)
                scores[self._documents[part]] += self._scores[part]
        return scores

    def get_batch_scores(self, query: Sequence[str], doc_ids: Sequence[int]) -> list[float]:
        """Return the scores of some documents, by position."""
        scores: list[float] = self.get_scores(query)[list(doc_ids)].tolist()
        return scores

    def top(self, query: Sequence[str], k: int) -> list[tuple[int, float]]:
        """Return position and score of the best ``k`` documents that share a term with the query; ties by position."""
        scores = self.get_scores(query)
        found = np.flatnonzero(scores > 0)
        if k < 1 or not found.size:
            return []
        if found.size > k:
            least = np.partition(scores[found], -k)[-k]
            found = found[scores[found] >= least]
        best = found[np.lexsort((found, -scores[found]))][:k]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))


class _Postings:
    """Gather for each term the documents that hold it and how often; stands in for a list of dicts."""

    def __init__(self) -> None:
        self.size = 0
        self._documents: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}

    def append(self, frequencies: Mapping[str, int]) -> None:
        """Take the term counts of the next document."""
        for term, count in frequencies.items():
            if term in self._documents:
                self._documents[term].append(self.size)
                self._counts[term].append(count)
            else:
                self._documents[term] = array("i", (self.size,))
                self._counts[term] = array("i", (count,))
        self.size += 1

    def joined(self) -> tuple[dict[str, tuple[int, int]], np.ndarray, np.ndarray]:
        """Return for each term its span, and the documents and counts of all terms one after the other."""
        spans = {}
        start = 0
        for term, documents in self._documents.items():
            spans[term] = (start, start + len(documents))
            start += len(documents)
        documents, counts = (
            np.frombuffer(b"".join(each.values()), dtype=np.intc) for each in (self._documents, self._counts)
        )
        return spans, documents, counts
