"""Deterministic comparers of a claim with its evidence."""
