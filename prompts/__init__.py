"""Prompts of the model stages; a released version is never edited."""
