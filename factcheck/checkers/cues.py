"""Compile tables of cue phrases."""

from __future__ import annotations

import re


def any_of(*forms: str) -> re.Pattern[str]:
    """Return a pattern that matches any of the forms, the first listed first, without regard to case."""
    return re.compile("|".join(forms), re.IGNORECASE)
