"""Read structured replies: find the JSON in a text, say what is wrong with it, ask for it again.

Only a complete value counts. Where a text holds several the last one does, because models think aloud before they answer; a
value that begins and does not end is a reply that was cut off, whatever came before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from factcheck.errors import StageError

Fault = Literal["truncated", "refused", "filtered", "empty", "unfinished", "unparseable"]
M = TypeVar("M", bound=BaseModel)

SIZE_LIMIT = 1_000_000
_OPENERS = {"{": "}", "[": "]"}
_BEGINS = re.compile(r'\{\s*["}]|\[\s*[\[{"\]0-9tfn-]')
_OBJECT = re.compile(r'\{\s*["}]')
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_CONSTRUCT = re.compile(r'["\\\[\]{}]')
_TRAILING = re.compile(r",(\s*)$")


class ModelReplyError(StageError):
    """A reply of a model that cannot be used; ``fault`` says why."""

    code = "F360"

    def __init__(self, message: str, *, fault: Fault, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


class UnreadableError(ValueError):
    """A text in which no JSON of the wanted kind was found; the message can be shown to the model."""


def read_json(text: str, kind: type[Any] = dict) -> Any:
    """Return the last complete JSON value of a kind (dict or list) in ``text``; raise UnreadableError if there is none.

    Fences, prose and thoughts around it, a byte order mark, line breaks in strings and commas before a closing bracket are
    forgiven. Not forgiven are a value that does not end, a key that repeats, numbers that JSON does not have, and halves of
    surrogate pairs.
    """
    if len(text) > SIZE_LIMIT:
        raise UnreadableError(f"the reply is longer than {SIZE_LIMIT} characters")
    text = _without_thoughts(text)
    found: list[Any] = []
    fault = ""
    at = 0
    while (begin := _BEGINS.search(text, at)) is not None:
        start = begin.start()
        end, commas = _end_of_value(text, start)
        if end is None:
            if text[start] == "{" or not found or _OBJECT.search(text, start):
                raise UnreadableError("the reply ends in the middle of a JSON value")
            break  # prose with an open bracket after the answer
        try:
            value = _parsed(text, start, end, commas)
        except (ValueError, RecursionError) as error:
            fault = _fault(error)
            if text[start] == "{":
                found = []  # the answer is later or nowhere: what came before may be a draft of it
            at = end
            continue
        if isinstance(value, kind):
            found, fault = [value], ""
        at = end
    if not found:
        raise UnreadableError(fault or f"the reply holds no JSON {'object' if kind is dict else 'array'}")
    return found[-1]


def fitted(value: Any, model: type[M]) -> M:
    """Return a JSON value as an instance of ``model``; raise UnreadableError if it does not fit."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        listed = [
            f"{'.'.join(map(str, item['loc'])) or 'it'}: {item['msg']}" for item in error.errors(include_url=False)
        ]
        more = f"; and {len(listed) - 5} more" if len(listed) > 5 else ""
        raise UnreadableError(f"the JSON does not fit: {'; '.join(listed[:5])}{more}"[:1000]) from None


def complaint(problem: str, schema: Mapping[str, Any]) -> str:
    """Return the message that asks a model for its reply once more."""
    text = json.dumps(schema, ensure_ascii=False)
    return (
        f"Your reply could not be used: {problem}. Give the same answer again as one JSON value that fits this JSON schema, "
        f"complete, and with nothing before or after it:\n{text}"
    )


def _without_thoughts(text: str) -> str:
    """Return what follows the last thought that a model wrote out: a draft inside one is no answer."""
    marks = list(_THOUGHT.finditer(text))
    if not marks:
        return text
    if not marks[-1][1]:
        raise UnreadableError("the reply ends in the middle of a thought")
    return text[marks[-1].end() :]


def _end_of_value(text: str, start: int) -> tuple[int | None, list[int]]:
    """Return where the bracket at ``start`` is closed, None if nowhere, and the commas that stand before closing brackets."""
    stack = [_OPENERS[text[start]]]
    commas: list[int] = []
    at = last = start + 1
    while (match := _CONSTRUCT.search(text, at)) is not None:
        sign, at = match[0], match.end()
        if sign == '"':
            closing = _end_of_string(text, at)
            if closing is None:
                return None, commas
            at = last = closing
        elif sign in _OPENERS:
            stack.append(_OPENERS[sign])
            last = at
        elif sign in ("}", "]"):
            if stack.pop() != sign:
                return at, commas  # brackets that do not match: no JSON, but it ends
            if comma := _TRAILING.search(text, last, match.start()):
                commas.append(comma.start())
            last = at
            if not stack:
                return at, commas
    return None, commas


def _end_of_string(text: str, at: int) -> int | None:
    while (quote := text.find('"', at)) >= 0:
        before = quote
        while text[before - 1] == "\\":
            before -= 1
        if (quote - before) % 2 == 0:
            return quote + 1
        at = quote + 1
    return None


def _parsed(text: str, start: int, end: int, commas: list[int]) -> Any:
    parts, at = [], start
    for comma in commas:
        parts.append(text[at:comma])
        at = comma + 1
    parts.append(text[at:end])
    source = "".join(parts)
    value = json.loads(source, strict=False, parse_constant=_no_number, object_pairs_hook=_once)
    if "\\ud" in source.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = next(name for i, (name, _) in enumerate(pairs) if name in {other for other, _ in pairs[:i]})
        raise ValueError(f"the key '{repeated[:60]}' occurs twice in one object")
    return found


def _fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"its JSON is not valid: {error.msg} at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeError):
        return "its JSON holds half of a surrogate pair"
    return str(error) if isinstance(error, ValueError) else "its JSON is nested too deeply"
