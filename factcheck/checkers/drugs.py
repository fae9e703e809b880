"""Know drugs by generic name, brand and class, so that a passage about NSAIDs is about ibuprofen."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import NamedTuple

from factcheck.checkers.cues import usual_letters

_TABLE = "drugs.v1.json"


class DrugMention(NamedTuple):
    """Hold a drug or drug class found at ``text[start:end]``."""

    name: str
    start: int
    end: int


class _Formulary(NamedTuple):
    pattern: re.Pattern[str]
    names: Mapping[str, str]
    parents: Mapping[str, frozenset[str]]


@functools.cache
def _formulary() -> _Formulary:
    raw = json.loads((resources.files("factcheck.data") / _TABLE).read_text(encoding="utf-8"))
    names: dict[str, str] = {}
    parents: dict[str, set[str]] = {}
    for group, members in raw["classes"].items():
        for member in members:
            parents.setdefault(member, set()).add(group)
            names[member.replace("-", " ")] = member
            names[member] = member
    for name, others in raw["synonyms"].items():
        names.update(dict.fromkeys(others, name))
    groups = set(raw["classes"]) | set(raw["parents"])
    for group in groups:
        for form in (group, *raw["class_words"].get(group, ())):
            names[form] = group
            names[form if form.endswith("s") else f"{form}s"] = group
    for group, members in raw["parents"].items():
        for member in members:
            parents.setdefault(member, set()).add(group)
    closed = {name: _ancestors(name, parents) for name in parents}
    return _Formulary(_pattern(names), names, closed)


def _pattern(forms: Iterable[str]) -> re.Pattern[str]:
    """Compile the forms by their first letter, which spares trying each of them at each place; the longest goes first."""
    by_letter: dict[str, list[str]] = {}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        by_letter.setdefault(form[0], []).append(re.escape(form[1:]))
    choices = "|".join(f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in sorted(by_letter.items()))
    return re.compile(rf"(?<![\w-])(?:{choices})(?!\w)", re.IGNORECASE)


def _ancestors(name: str, parents: Mapping[str, set[str]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    # Insulin is the name of a drug and of its class.
    return frozenset(found - {name})


def find_drugs(text: str) -> list[DrugMention]:
    """Return the drugs and drug classes named in a text, by generic name, in order.

    >>> [mention.name for mention in find_drugs("Tylenol or an NSAID")]
    ['paracetamol', 'nsaid']
    """
    table, text = _formulary(), usual_letters(text)
    return [
        DrugMention(table.names[match.group().lower()], match.start(), match.end())
        for match in table.pattern.finditer(text)
    ]


def classes_of(name: str) -> frozenset[str]:
    """Return every class that holds a drug or class, itself left out."""
    return _formulary().parents.get(name, frozenset())


def widen(mentions: Iterable[DrugMention]) -> set[str]:
    """Return the names mentioned together with their classes."""
    names = {mention.name for mention in mentions}
    return names | {group for name in names for group in classes_of(name)}
