"""Clean the queries that a model wrote: one line, no addresses, none of the values that the claim makes."""

from __future__ import annotations

import re

from factcheck.schema import Claim
from factcheck_llm.shown import content_words

QUERY_LIMIT = 300
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\b(?:site|inurl|filetype|intitle|link):\S+", re.IGNORECASE)
_OPERATORS = re.compile(r"[\"“”<>{}|\\^~`]|(?<!\w)[-+](?=\w)")
_UNITS = (
    r"(?:%|percent|°\s?[CF]\b|mg|mcg|µg|μg|ng|g|kg|lbs?|ml|mL|dl|dL|l|L|litres?|liters?|IU|U|units?|mmol|mEq|mmHg|kPa|bpm|cm|mm|"
    r"puffs?|tablets?|capsules?|drops?|times|doses?|hours?|hrs?|h|days?|weeks?|months?|years?|minutes?|mins?|fold)"
)
_VALUE = re.compile(
    rf"[<>≤≥~±]?\s?\d[\d.,/:]*(?:\s?(?:-|–|to)\s?\d[\d.,]*)?\s?-?{_UNITS}(?![\w])(?:/[\w.]+)*", re.IGNORECASE
)


def values_of(text: str) -> frozenset[str]:
    """Return the numbers of ``text`` that stand with a unit, as they are written."""
    return frozenset(number for match in _VALUE.finditer(text) for number in re.findall(r"\d+(?:[.,]\d+)*", match[0]))


def cleaned(query: str, claim: Claim) -> str:
    """Return a query as it is sent, "" if nothing is left of it.

    Values of the claim are taken out together with their units, unless the question or the context has the same value.
    """
    known = values_of(claim.question) | values_of(claim.context)
    claimed = values_of(claim.text) - known
    text = _OPERATORS.sub(" ", _ADDRESS.sub(" ", query))

    def without(match: re.Match[str]) -> str:
        return " " if claimed & set(re.findall(r"\d+(?:[.,]\d+)*", match[0])) else match[0]

    text = " ".join(_VALUE.sub(without, text).split())
    if len(text) > QUERY_LIMIT:
        text = text[:QUERY_LIMIT].rsplit(None, 1)[0]
    return text if any(char.isalnum() for char in text) else ""


def about(query: str, claim: Claim) -> bool:
    """Tell whether a query shares a content word with the claim or its context; True where there are none to compare."""
    wanted, held = content_words(f"{claim.text} {claim.context}"), content_words(query)
    return not wanted or not held or not wanted.isdisjoint(held)
