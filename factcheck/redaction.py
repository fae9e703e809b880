"""Blot out what looks like a credential in JSON that is kept or shown; types such as SecretStr are the first guard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "**********"
_NAMES = frozenset({"key", "auth", "authorization", "cookie", "setcookie", "bearer", "credentials", "passwd", "pwd"})
_ENDINGS = ("apikey", "accesskey", "secretkey", "privatekey", "subscriptiontoken", "token", "secret", "password")
_PATTERNS = (
    # user:password@host, credentials in a query string, Authorization headers, and keys with a maker's prefix
    re.compile(r"(?P<kept>://)[^/\s:@\"']*:[^/\s@\"']+(?=@)"),
    re.compile(
        r"(?P<kept>[?&](?:[\w-]*key|(?:[\w-]*[_-])?token|secret|password|sig|signature)=)[^&\s\"'#<>\\]+", re.IGNORECASE
    ),
    re.compile(r"(?P<kept>\b(?:bearer|basic)\s+)(?=[A-Za-z._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*", re.IGNORECASE),
    re.compile(r"(?P<kept>)\b(?:sk|pk|tvly|gsk|xai|hf|ghp|glpat)[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"(?P<kept>)\bAIza[A-Za-z0-9_-]{35}"),
)


def scrubbed(text: str) -> str:
    """Return text with what looks like a credential masked."""
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: f"{found['kept']}{MASK}", text)
    return text


def redacted(value: Any) -> Any:
    """Return a copy of a JSON value with secrets masked: text under a telling name, and credentials inside any text."""
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, Mapping):
        return {name: MASK if item and _telling(name, item) else redacted(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def _telling(name: str, item: object) -> bool:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return isinstance(item, str) and (plain in _NAMES or plain.endswith(_ENDINGS))
