"""Read parts of HTTP messages: waiting times, content types, bodies, reports of errors; and keep secrets out of texts."""

from __future__ import annotations

import codecs
import datetime
import email.utils
import fnmatch
import json
import math
import re
import zlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

from factcheck.redaction import MASK

DETAIL_LIMIT = 300
# From this many characters on a secret is surely no word of a text.
KEY_LENGTH = 16
# What packing adds to a body that it cannot make smaller.
PACKING = 1000
# The encodings of the web (WHATWG), by Python's names. Python knows more, of which some take a time that grows with the
# square of the text (punycode), run escapes (unicode_escape) or make what is no text (utf-7).
_CHARSETS = re.compile(
    r"ascii|utf-8(-sig)?|utf-16(-[lb]e)?|iso8859-\d+|cp(8(66|74)|125\d|932|949|950|936)|koi8-[rtu]|mac-(roman|cyrillic)|"
    r"gb2312|gbk|gb18030|hz|big5(hkscs)?|euc_(jp|kr|jis_2004)|shift_jis(_2004|x0213)?|iso2022_jp|tis-620|johab"
)
_CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE)


class BodyError(Exception):
    """A body that cannot be read; the message says why."""


def seconds_to_wait(headers: dict[str, str], now: datetime.datetime) -> float | None:
    """Return the seconds that a reply asks to wait, from Retry-After (seconds or a date) or retry-after-ms; None if none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(\.\d*)?", value):
            return float(value) * unit
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=datetime.UTC)
    wait = (date - now).total_seconds()
    return max(0.0, wait) if math.isfinite(wait) else None


def essence(content_type: str) -> str:
    """Return a content type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def accepts(patterns: Iterable[str], content_type: str) -> bool:
    """Tell whether a content type is one of ``patterns``; those that end in +json are JSON."""
    kind = essence(content_type)
    kinds = {kind, "application/json"} if kind.endswith("+json") else {kind}
    return any(fnmatch.fnmatchcase(item, essence(pattern)) for item in kinds for pattern in patterns)


class Body:
    """Gather a body, unpacking gzip as it comes; raise BodyError past ``limit`` bytes, packed or not.

    A few packed bytes may hold very many, and very many may hold none.
    """

    def __init__(self, limit: int, encoding: str) -> None:
        if encoding.strip().lower() not in ("", "identity", "gzip", "x-gzip"):
            raise BodyError(f"its body is packed as {encoding[:40]!r}, which was not asked for")
        self.packed = encoding.strip().lower() in ("gzip", "x-gzip")
        self._unpacker = zlib.decompressobj(wbits=31)
        self.limit = limit
        self._parts: list[bytes] = []
        self.size = 0
        self._received = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes as they were received."""
        self._received += len(chunk)
        if self._received > self.limit + PACKING:
            raise BodyError(f"its body is larger than {self.limit} bytes")
        if not self.packed:
            self._keep(chunk)
        while self.packed and chunk:
            if self._unpacker.eof:  # a file of several members
                self._unpacker = zlib.decompressobj(wbits=31)
            try:
                self._keep(self._unpacker.decompress(chunk, self.limit - self.size + 1))
            except zlib.error as error:
                raise BodyError("its body is no valid gzip") from error
            chunk = self._unpacker.unconsumed_tail or self._unpacker.unused_data

    def _keep(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
        self.size += len(part)
        if self.size > self.limit:
            raise BodyError(f"its body is larger than {self.limit} bytes")

    @property
    def complete(self) -> bool:
        """Tell whether a packed body has come to its end."""
        return not self.packed or self._unpacker.eof or not self._received

    def bytes(self) -> bytes:
        """Return what has been gathered."""
        return b"".join(self._parts)


def decoded(body: bytes, content_type: str) -> str:
    """Return a body as text; raise BodyError if it is not text in the charset that it declares, UTF-8 if it declares none.

    Pages (HTML) may declare it inside and are read as browsers do, with U+FFFD for what does not decode.
    """
    page = "html" in essence(content_type) or "xml" in essence(content_type)
    found = _CHARSET.search(content_type.encode("ascii", "replace"))
    if found is None and page:
        found = _CHARSET.search(body[:2048])
    charset = found[1].decode("ascii") if found else "utf-8"
    if body.startswith(b"\xef\xbb\xbf") or charset.lower() in ("utf8", "utf-8", "us-ascii", "ascii"):
        charset = "utf-8-sig"
    try:
        known = codecs.lookup(charset).name
        if not _CHARSETS.fullmatch(known):
            raise LookupError
        if page and known == "iso8859-1":
            charset = "cp1252"  # as browsers do
        text = body.decode(charset, "replace" if page else "strict")
    except LookupError as error:
        raise BodyError(f"its charset {charset[:40]!r} is not known") from error
    except (UnicodeError, ValueError) as error:
        raise BodyError(f"its body is no valid {charset[:40]}") from error
    return text


def error_detail(text: str, content_type: str) -> str:
    """Return what an error body says, on one line: the message in its JSON, or its plain text; "" for a page."""
    if accepts(("application/json",), content_type) or text.lstrip()[:1] == "{":
        try:
            found = _message(json.loads(text))
        except (ValueError, RecursionError):
            found = ""
    else:
        found = "" if "html" in essence(content_type) or text.lstrip()[:1] == "<" else text
    return " ".join("".join(c if c.isprintable() else " " for c in found).split())[:DETAIL_LIMIT]


def _message(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return next((text for item in value if (text := _message(item))), "")
    if isinstance(value, dict):
        parts = [
            _message(value.get(name)) for name in ("error", "message", "msg", "detail", "details", "errors", "title")
        ]
        code = value.get("code")
        return next((part for part in parts if part), code if isinstance(code, str) else "")
    return ""


def without_secrets(text: str, secrets: Iterable[str], *, shortened: bool = True) -> str:
    """Return ``text`` with each secret masked, plain or quoted for a URL, and what begins like a long one too.

    Servers shorten a key that they refuse to its first and last letters, which are still part of it. In a text that is
    kept verbatim (``shortened`` False) only whole secrets are masked.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        for form in {secret, quote(secret, safe=""), quote_plus(secret), secret.removeprefix("Bearer ")} - {""}:
            text = text.replace(form, MASK)
            if shortened and len(form) >= KEY_LENGTH:
                text = re.sub(re.escape(form[:8]) + r"[^\s\"'<>]*", MASK, text)
    return text
