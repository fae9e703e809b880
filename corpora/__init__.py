"""Packaged corpora, one folder each: ``corpus.jsonl``, ``manifest.json``, ``CARD.md``."""
