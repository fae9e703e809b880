"""Corpora: BEIR rows with a manifest, opened by name or folder, and built from documents."""

from factcheck.corpus.build import BuildResult, build_corpus
from factcheck.corpus.manifest import CorpusManifest
from factcheck.corpus.opening import Corpus, Verification, corpus_of, list_corpora, open_corpus, read_manifest, verify
from factcheck.corpus.passages import CorpusPassage

__all__ = [
    "BuildResult",
    "Corpus",
    "CorpusManifest",
    "CorpusPassage",
    "Verification",
    "build_corpus",
    "corpus_of",
    "list_corpora",
    "open_corpus",
    "read_manifest",
    "verify",
]
