"""Stage 2: a claim becomes searches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from factcheck.calling import broken
from factcheck.schema import Claim, Model, Query

_VALUE = re.compile(
    r"(?<![\w-])[<>≤≥~±]?\s?\d[\d.,/:–-]*\s?(?:%|°\s?[CF]|(?:mg|mcg|µg|μg|g|kg|mL|ml|L|IU|mmol|mmHg|kPa|units?)\b(?:/[\w.]+)*)?"
)
_WORD = re.compile(r"\w[\w'/-]*")
_QUESTION_WORDS = 60


class TermsQueryWriter:
    """Write the claim itself, the claim without its values in the light of the question, and the question.

    A form without the values lets a passage that states another value rank as high as one that repeats the claimed value;
    the question brings the passages that the whole answer should rest on.
    """

    version = "1"
    quick = True

    class Settings(Model):
        """Take no settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def write_queries(self, claim: Claim) -> list[str]:
        """Return one to three distinct queries, the most specific first."""
        neutral = _VALUE.sub(" ", claim.text)
        question = " ".join(_WORD.findall(claim.question)[:_QUESTION_WORDS])
        written = [_fold(f"{claim.text} {claim.context}"), _fold(f"{neutral} {question}"), question]
        return list(dict.fromkeys(text for text in written if text))


def make_queries(claim: Claim, texts: object, *, writer: str) -> list[Query]:
    """Turn the texts that a writer returned into queries, blank and repeated ones left out.

    Raises PluginContractError for anything but a list of texts, and if none is left.
    """
    if not isinstance(texts, Sequence) or isinstance(texts, str | bytes):
        raise broken("query writer", writer, f"it returned a {type(texts).__name__}, not a list of texts")
    if stray := [text for text in texts if not isinstance(text, str)]:
        raise broken("query writer", writer, f"it returned a {type(stray[0]).__name__} among its queries")
    usable = list(dict.fromkeys(text for text in texts if text.strip()))
    if not usable:
        raise broken("query writer", writer, f"it wrote no usable query for claim {claim.id}")
    return [Query(id=f"{claim.id}.q{i}", claim_id=claim.id, text=text) for i, text in enumerate(usable, start=1)]


def _fold(text: str) -> str:
    return " ".join(text.split())
