"""Put texts from outside between tags that nothing in them can open or close, and read them back.

A tag is ``<name-mark>``. The mark is eight consonants from the hash of all texts of the prompt, drawn again until it occurs
in none of them, however it is written; so equal inputs give equal prompts, and who writes a text cannot hold its mark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from factcheck.errors import PromptError
from factcheck.prompting import Prompt
from factcheck_llm.disguise import squeezed

# No vowels: a mark is never a word. No digits: a mark never looks like a value of the text.
_LETTERS = "bcdfghjkmnpqrstv"
_LENGTH = 8
_REMEMBERED = 8000
_SURROGATE = re.compile("[\ud800-\udfff]")
# Inputs that the program writes itself.
_TRUSTED = frozenset({"mark", "count"})


class Part(NamedTuple):
    """Hold what stands between two tags: all of it as ``text``, and the parts inside it."""

    name: str
    attributes: Mapping[str, str]
    text: str
    parts: tuple[Part, ...]


def encodable(text: str) -> str:
    """Replace lone surrogates, which no request can carry, by U+FFFD; offsets stay."""
    return _SURROGATE.sub("\ufffd", text)


def mark_for(*texts: str) -> str:
    """Return the mark for prompts that hold ``texts``."""
    held = ["".join(map(_squeezed, text.split("\n"))) for text in texts]
    draw = 0
    while True:
        digest = hashlib.sha256(str(draw).encode())
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d " % len(data) + data)
        mark = "".join(_LETTERS[byte & 15] for byte in digest.digest()[:_LENGTH])
        if not any(mark in text for text in held):
            return mark
        draw += 1


def _squeezed(line: str) -> str:
    return _remembered(line) if len(line) <= _REMEMBERED else squeezed(line)


@lru_cache(maxsize=4096)
def _remembered(line: str) -> str:
    # The claims of an answer share question and passages.
    return squeezed(line)


def enclose(name: str, text: str, mark: str, **attributes: str) -> str:
    """Return ``text`` between tags; names and attributes are the program's own and not texts from outside."""
    listed = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}-{mark}{listed}>{text}</{name}-{mark}>"


def read_back(rendered: str, mark: str) -> tuple[Part, ...]:
    """Return the parts of a rendered prompt as a reader of its tags sees them; raise ValueError if they do not nest."""
    tag = re.compile(rf'<(/?)([a-z]+)-{mark}((?: [a-z]+="[^"<>]*")*)>')
    root: list[Part] = []
    opened: list[tuple[str, dict[str, str], int, list[Part]]] = []
    for match in tag.finditer(rendered):
        closing, name, listed = match.groups()
        if not closing:
            opened.append((name, dict(re.findall(r'([a-z]+)="([^"]*)"', listed)), match.end(), []))
            continue
        if not opened or opened[-1][0] != name:
            raise ValueError(f"</{name}> closes nothing")
        _, attributes, start, parts = opened.pop()
        holder = opened[-1][3] if opened else root
        holder.append(Part(name, attributes, rendered[start : match.start()], tuple(parts)))
    if opened:
        raise ValueError(f"<{opened[-1][0]}> is not closed")
    return tuple(root)


def check_delimited(prompt: Prompt) -> None:
    """Raise PromptError unless a prompt puts every text from outside between tags of its own that carry the mark."""
    values = {name: f"[{name}]" for name in prompt.inputs}
    if "mark" not in values:
        _refuse(prompt, "it has no input 'mark'")
    values["mark"] = mark_for(*values)
    rendered = prompt.render(**values)
    try:
        parts = {part.name: part for part in read_back(rendered, values["mark"])}
    except ValueError as error:
        _refuse(prompt, str(error))
    for name in prompt.inputs:
        if name in _TRUSTED:
            continue
        if name not in parts or parts[name].text.strip() != values[name] or rendered.count(values[name]) != 1:
            _refuse(prompt, f"its input '{name}' does not stand once between <{name}-{{{{mark}}}}> and its closing tag")


def _refuse(prompt: Prompt, reason: str) -> None:
    raise PromptError(
        f"prompt '{prompt.id}' in {prompt.origin} would let a text from outside pass for instructions: {reason}.",
        hint="Write each text as <name-{{mark}}>{{name}}</name-{{mark}}>.",
    )
