"""Find text that gives orders to a model, in evidence and in claims, by rule.

What is found is reported and never acted on: a soft finding beside the judgement, and no quote from it counts.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from factcheck.schema import Claim, Evidence, Finding, Model
from factcheck.text.sentences import split_sentences
from factcheck_llm.disguise import plain
from factcheck_llm.orders import TIGHT, matches

CHECKER = "llm/injection"
FIELD = "injection"
_EXCERPT = 160
_LIMIT = 20
# An order is rarely alone: what stands this far from it in the same text is not quoted either.
_REACH = 300
_REMEMBERED = 8000

_SPACED = re.compile(r"(?<!\w)(?:\w[ .·_*|/\-]{1,3}){9,400}\w(?!\w)")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{20,4000}={0,2}(?![\w+/=-])")
_HEX = re.compile(r"(?<!\w)(?:(?:\\x|%|0x)?[0-9a-fA-F]{2}[ :,]?){14,2000}(?!\w)")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2}|[\w.,;:!?'+-]){10,2000}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}){8,1000}")
_SMUGGLED = re.compile(
    "[\U000e0020-\U000e007e]{4,}|[\u200b-\u200f\u2060-\u2064\ufeff]{8,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}"
    "|[\u202d\u202e]"
)
_COMMON = frozenset({"override", "verdict"})
_READABLE = re.compile(r"[\x20-\x7e\s]*")
_WORDS = re.compile(r"[A-Za-z]{2,}")


class Order(NamedTuple):
    """Hold one place, ``text[start:end]``, that reads like an order to a model."""

    kind: str
    start: int
    end: int


class InjectionChecker:
    """Report text in the claim or its evidence that reads like an order to a model; soft, and no opinion on the claim."""

    portable = True
    version = "1"

    class Settings(Model):
        """Take no settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return a finding of field ``injection`` for each such place, those of the claim first."""
        return injection_findings(claim, evidence)


def find_orders(text: str) -> tuple[Order, ...]:
    """Return the places of ``text`` that read like orders to a model, in order, at most 20; linear in its length."""
    return _remembered(text) if len(text) <= _REMEMBERED else _find(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> tuple[Order, ...]:
    # The claims of an answer share passages, and the same text is looked at before and after the model.
    return _find(text)


def _find(text: str) -> tuple[Order, ...]:
    found = [*_spelled_out(text), *_encoded(text)]
    if not text.isascii():
        found += [Order("invisible signs", match.start(), match.end()) for match in _SMUGGLED.finditer(text)]
    kept: list[Order] = []
    for order in sorted(found, key=lambda order: (order.start, -order.end)):
        if not kept or order.start >= kept[-1].end:
            kept.append(order)
        elif order.end > kept[-1].end:
            kept[-1] = kept[-1]._replace(end=order.end)
    return tuple(kept[:_LIMIT])


def tainted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of ``text`` that no quote may touch: the sentences with an order, and those next to them."""
    orders = find_orders(text)
    if not orders:
        return ()
    spans = []
    for order in orders:
        start, end = max(0, order.start - _REACH), min(len(text), order.end + _REACH)
        sentences = split_sentences(text, start, end)
        touched = [i for i, (first, last) in enumerate(sentences) if first < order.end and order.start < last]
        if touched:
            start = min(order.start, sentences[max(0, touched[0] - 1)][0])
            end = max(order.end, sentences[min(len(sentences) - 1, touched[-1] + 1)][1])
        spans.append((start, end))
    return tuple(spans)


def injection_findings(claim: Claim, evidence: Evidence) -> list[Finding]:
    """Return a soft finding for each order in the claim and in its passages, titles included."""
    findings = [
        _finding(order.kind, "the claim", claim_value=_excerpt(claim.text, order), claim_span=(order.start, order.end))
        for order in find_orders(claim.text)
    ]
    for passage in evidence.passages:
        for order in find_orders(passage.text):
            findings.append(
                _finding(
                    order.kind,
                    "the evidence",
                    evidence_value=_excerpt(passage.text, order),
                    passage_id=passage.id,
                    quote_span=(order.start, order.end),
                )
            )
        for order in find_orders(passage.title):
            value = _excerpt(passage.title, order)
            findings.append(_finding(order.kind, "a title", evidence_value=value, passage_id=passage.id))
    return findings


def _finding(kind: str, where: str, **fields: object) -> Finding:
    return Finding.model_validate(
        {
            "checker": CHECKER,
            "field": FIELD,
            "claim_value": "",
            "relation": "unseen",
            "reason": f"text in {where} reads like an order to the judge ({kind}); it is not followed and not quoted",
            **fields,
        }
    )


def _excerpt(text: str, order: Order) -> str:
    return text[order.start : order.end][:_EXCERPT]


def _spelled_out(text: str, *, disguised: bool = True) -> Iterator[Order]:
    folded = plain(text)
    for kind, start, end in matches(folded.text):
        yield Order(kind, *folded.span(start, end))
    if not disguised:
        return
    for match in _SPACED.finditer(folded.text):
        letters = [at for at in range(*match.span()) if folded.text[at].isalnum()]
        for tight in TIGHT.finditer("".join(folded.text[at] for at in letters)):
            yield Order("spaced letters", *folded.span(letters[tight.start()], letters[tight.end() - 1] + 1))
    for name, turned in (("rot13", codecs.encode(folded.text, "rot13")), ("reversed", folded.text[::-1])):
        if "instruction" not in turned and "supported" not in turned and "prompt" not in turned:
            continue
        for _, start, end in matches(turned, _COMMON):
            if name == "reversed":
                start, end = len(turned) - end, len(turned) - start
            yield Order(f"{name} text", *folded.span(start, end))


def _encoded(text: str) -> Iterator[Order]:
    """Find orders in what decodes to text; a run that decodes to several words is one even without a pattern."""
    for pattern, decode in (
        (_BASE64, _from_base64),
        (_HEX, _from_hex),
        (_PERCENT, _from_percent),
        (_ESCAPES, _from_escapes),
    ):
        if (pattern is _PERCENT and text.count("%") < 3) or (pattern is _ESCAPES and "\\u" not in text):
            continue
        for match in pattern.finditer(text):
            decoded = decode(match.group())
            if not decoded or not _READABLE.fullmatch(decoded):
                continue
            words = decoded.split()
            prose = len(words) >= 3 and sum(bool(_WORDS.fullmatch(word.strip(".,:;!?\"'"))) for word in words) >= 3
            hides = pattern is not _PERCENT and prose
            if hides or next(_spelled_out(decoded, disguised=False), None) is not None:
                yield Order("encoded text", *match.span())


def _from_base64(run: str) -> str:
    plain_run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain_run + "=" * (-len(plain_run) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _from_hex(run: str) -> str:
    digits = re.sub(r"\\x|%|0x|[ :,]", "", run)
    try:
        return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8")
    except (UnicodeDecodeError, ValueError):
        return ""


def _from_percent(run: str) -> str:
    return unquote(run.replace("+", " ")) if run.count("%") >= 3 else ""


def _from_escapes(run: str) -> str:
    return "".join(chr(int(code, 16)) for code in re.findall(r"\\u([0-9a-fA-F]{4})", run))


def touches(span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a span shares a place with one of several."""
    return any(span[0] < end and start < span[1] for start, end in spans)
