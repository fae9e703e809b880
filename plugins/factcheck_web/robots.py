"""The rules of a robots.txt, as RFC 9309 reads them: groups by user agent, wildcards, and the longest match decides.

``urllib.robotparser`` takes the first rule that matches and ``*`` for itself, and so allows pages that sites exclude.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from factcheck.net.guard import parse_url

# RFC 9309 asks for at least 500 KiB.
TEXT_LIMIT = 524_288


class _Rule(NamedTuple):
    allow: bool
    path: str


class Robots:
    """Hold the rules of one site for one user agent; ``delay`` is the pause it asks for in seconds, 0 if none."""

    def __init__(self, text: str, agent: str) -> None:
        groups = _groups(text)
        product = agent.split("/", 1)[0].strip().lower()
        named = [group for names, group in groups if product in names]
        chosen = named or [group for names, group in groups if "*" in names]
        lines = [line for group in chosen for line in group]
        self._rules = [_Rule(key == "allow", path) for key, path in lines if key != "crawl-delay" and path]
        self.delay = max((_seconds(value) for key, value in lines if key == "crawl-delay"), default=0.0)

    def allows(self, url: str) -> bool:
        """Tell whether the rules allow to fetch ``url``; of rules of the same length the one that allows counts."""
        path = _normal(parse_url(url).raw_path.decode("ascii"))
        matching = [rule for rule in self._rules if _matches(rule.path, path)]
        longest = max((len(rule.path) for rule in matching), default=0)
        return not matching or any(rule.allow for rule in matching if len(rule.path) == longest)


def _groups(text: str) -> list[tuple[set[str], list[tuple[str, str]]]]:
    groups: list[tuple[set[str], list[tuple[str, str]]]] = []
    naming = False
    for line in text[:TEXT_LIMIT].removeprefix("\ufeff").splitlines():
        key, colon, value = line.split("#", 1)[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if not naming:
                groups.append((set(), []))
            groups[-1][0].add(value.split("/", 1)[0].strip().lower())
            naming = True
        elif key in ("allow", "disallow", "crawl-delay"):
            naming = False
            if groups:
                groups[-1][1].append((key, value if key == "crawl-delay" else _normal(value)))
    return groups


def _normal(path: str) -> str:
    # Both sides in one spelling, so that %7E and ~ are the same.
    return quote(unquote(path), safe="/*$?&=:;,@!+~'()%")


def _matches(rule: str, path: str) -> bool:
    """Match piece by piece, in linear time whatever the rule."""
    anchored = rule.endswith("$")
    first, *rest = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    if not rest:
        return not anchored or position == len(path)
    last = rest.pop() if anchored else ""
    for piece in rest:
        found = path.find(piece, position)
        if found < 0:
            return False
        position = found + len(piece)
    return not anchored or (path.endswith(last) and len(path) - len(last) >= position)


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,6}(?:\.\d{1,3})?", text) else 0.0
