"""Split an answer into claims without a model: sentences, list items, table rows, with their context.

A claim's text is its slice of the answer without markup, white space folded; a table row is joined with the header
("Test: HbA1c; Diabetes: 6.5% or above"). Its context is what it depends on, in this order: the headings above it, the
subject of an earlier sentence, the introduction of its list, the bold lead-in of its block. A subject travels only to
a sentence that points back to it or speaks of "the dose" and the like without a name of its own
(``factcheck.text.subjects``), and a list item never sets the subject of another, so a change in one sentence leaves
the keys of the others alone unless the subject itself changed.

Headings and introductions are context and no claims, except where they state something, where nothing follows them,
or where they are too long to travel; those made of stock words ("Key points") do neither. So every letter and digit
outside markup lies in a claim's span, in some claim's context, or in a stock label.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from pydantic import Field

from factcheck.schema import QUESTION_LIMIT, Answer, Claim, Model
from factcheck.text.pieces import cut

CLAIM_LIMIT = 2000

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER_WORDS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
}


class SentenceDecomposer:
    """Split Markdown or plain text into claims by rule; deterministic, and linear in the length of the answer."""

    version = "1"

    class Settings(Model):
        """Hold ``claim_limit``, the greatest length of a claim in code points; longer ones are cut at white space."""

        claim_limit: int = Field(default=CLAIM_LIMIT, ge=100, le=100_000)

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def decompose(self, answer: Answer) -> list[Claim]:
        """Return the claims in the order of the text, ids ``<answer id>.c01`` and so on; ``[]`` for text without words.

        Spans slice ``answer.text``, do not overlap, and reach over the markup that belongs to the claim.
        ``sentence_span`` equals ``span``, also for the parts of a sentence that was cut.
        """
        pieces, _ = cut(answer.text, self.settings.claim_limit)
        width = max(2, len(str(len(pieces))))
        question = _encodable(answer.question[:QUESTION_LIMIT])
        return [
            Claim(
                id=f"{answer.id}.c{number:0{width}d}",
                answer_id=answer.id,
                text=_encodable(piece.text),
                span=piece.span,
                sentence_span=piece.span,
                context=_encodable(piece.context),
                question=question,
                kind=piece.kind,
            )
            for number, piece in enumerate(pieces, start=1)
        ]


def uncarried_numbers(answer: Answer, claims: Sequence[Claim]) -> list[str]:
    """Return the numbers of ``answer`` that the claims made of their sentence do not carry, as written, in order.

    The claims of a sentence are those whose span or sentence span overlaps it; a number is carried by their text or
    context, in digits or, from two to twelve, in words ("1,000" carries 1000, "0.50" carries .5). Serves any
    decomposer.
    """
    pieces, labels = cut(answer.text, CLAIM_LIMIT)
    starts, ends = [piece.span[0] for piece in pieces], [piece.span[1] for piece in pieces]
    carried: list[set[str]] = [set() for _ in pieces]
    for claim in claims:
        values = _values(claim.text) | _values(claim.context)
        touched: set[int] = set()
        for start, end in {claim.span, claim.sentence_span} if values else ():
            touched.update(range(bisect_right(ends, start), bisect_left(starts, end)))
        for index in touched:
            carried[index] |= values
    everywhere = set().union(*(_values(claim.text) | _values(claim.context) for claim in claims))
    lost = [
        match.group()
        for source, values in (
            *((label, everywhere) for label in labels),
            *zip((p.own for p in pieces), carried, strict=True),
        )
        for match in _NUMBER.finditer(source)
        if _value(match.group()) not in values
    ]
    return list(dict.fromkeys(lost))


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no model field with a length limit can hold, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _values(text: str) -> set[str]:
    words = {_NUMBER_WORDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _NUMBER_WORDS}
    return words | {_value(match.group()) for match in _NUMBER.finditer(text)}


def _value(number: str) -> str:
    plain = "".join(str(unicodedata.decimal(char)) if char.isdigit() else char for char in number)
    plain = plain.replace(",", "") if _THOUSANDS.fullmatch(plain) else plain.replace(",", ".")
    if plain.count(".") == 1:
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"
