"""Compile tables of cue phrases, and prepare text for them."""

from __future__ import annotations

import re


def any_of(*forms: str) -> re.Pattern[str]:
    """Return a pattern that matches any of the forms, the first listed first, without regard to case."""
    return re.compile("|".join(forms), re.IGNORECASE)


# Without regard to case, re takes these for i, s and k, which no table of words knows.
_ODD_LETTERS = str.maketrans({"\u0130": "I", "\u0131": "i", "\u017f": "s", "\u212a": "K"})


def usual_letters(text: str) -> str:
    """Return a text of the same length in which letters that match i, s and k are i, s and k."""
    return text if text.isascii() else text.translate(_ODD_LETTERS)
