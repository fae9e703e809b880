"""Read matched pairs: a correct answer, and the same answer with one injected error.

One JSON object a line. Required: ``id``, ``original``, ``injected``. Optional: ``question``, ``question_id``,
``error_type``, ``edits`` (list of {find, replace}), ``original_span`` and ``injected_span`` (lists of [start, end], one
of each per edit), ``rubric_scores`` ({original, injected}) or ``original_score`` and ``injected_score``. Other keys are
ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from factcheck.errors import InputError
from factcheck.schema import Model
from factcheck.study.edits import Edit, differ_outside, edits_from_diff, edits_from_replacements, trim

UNSPECIFIED = "unspecified"
SpansFrom = Literal["given", "edits", "diff"]
_MISSING = object()


class Scores(NamedTuple):
    """Hold the rubric's scores of the two texts, before any fact-checking."""

    original: float
    injected: float


class Pair(Model):
    """Hold one matched pair.

    ``cluster`` names the question that the pair belongs to. ``spans_from`` tells where ``edits`` come from; ``exact``
    is false if they were given and the texts differ outside them too.
    """

    id: str
    question: str = ""
    error_type: str = UNSPECIFIED
    original: str
    injected: str
    cluster: str
    edits: tuple[Edit, ...]
    spans_from: SpansFrom
    exact: bool = True
    scores: Scores | None = None

    @property
    def tied(self) -> bool | None:
        """Tell whether the rubric scores are equal, None without scores."""
        return None if self.scores is None else self.scores.original == self.scores.injected

    @property
    def error_spans(self) -> list[tuple[int, int]]:
        """Return what the injected text does not share with the original, one span an edit."""
        return [trim(self.original, self.injected, edit) for edit in self.edits]


class Skipped(Model):
    """Hold one line that could not be used, and why."""

    line: int
    reason: str


class PairFile(Model):
    """Hold what was read; ``sha256`` is that of the file's bytes."""

    name: str
    sha256: str
    pairs: tuple[Pair, ...]
    skipped: tuple[Skipped, ...] = ()


class _RowError(Exception):
    """Why a row cannot be used."""


def read_pairs(path: Path, *, skip_invalid: bool = False) -> PairFile:
    """Read a file of pairs.

    A row that cannot be used raises InputError with the file and the line; with ``skip_invalid`` it is put into
    ``skipped`` instead. A file that cannot be read, or that leaves no pairs, raises InputError in any case.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the pairs in '{path}': {error.strerror or error}.") from error
    pairs: list[Pair] = []
    skipped: list[Skipped] = []
    lines: dict[str, int] = {}
    # Only a line feed ends a line: JSON strings may hold other line separators as they are.
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            pair = _parse(line)
            if pair.id in lines:
                _fail(f"the id '{_shorten(pair.id)}' was already used in line {lines[pair.id]}")
        except _RowError as error:
            if not skip_invalid:
                raise InputError(
                    f"{path}, line {number}: {error}.",
                    hint="Mend the line, or add --skip-invalid to go on without such lines.",
                ) from error
            skipped.append(Skipped(line=number, reason=str(error)))
            continue
        lines[pair.id] = number
        pairs.append(pair)
    if not pairs:
        first = (
            f"; {len(skipped)} lines are invalid, first line {skipped[0].line}: {skipped[0].reason}" if skipped else ""
        )
        raise InputError(f"{path} holds no pairs that can be used{first}.", hint="One JSON object a line is expected.")
    return PairFile(name=path.name, sha256=hashlib.sha256(data).hexdigest(), pairs=tuple(pairs), skipped=tuple(skipped))


def _parse(line: bytes) -> Pair:
    """Make a pair of one line of JSON."""
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        _fail(f"the line is not valid UTF-8 (byte {error.start + 1} of the line)")
    except json.JSONDecodeError as error:
        _fail(f"the line is not valid JSON ({error.msg}, column {error.colno})")
    except (ValueError, RecursionError) as error:
        _fail(f"the line is not valid JSON ({_shorten(str(error))})")
    if not isinstance(row, dict):
        _fail(f"the line holds {_kind(row)}, not an object")
    pair_id = _text(row, "id", required=True)
    if not pair_id.strip():
        _fail("'id' is blank")
    original, injected = _text(row, "original", required=True), _text(row, "injected", required=True)
    if original == injected:
        _fail(f"'original' and 'injected' of pair '{_shorten(pair_id)}' are equal")
    question = _text(row, "question")
    edits, spans_from = _edits(row, original, injected)
    if not edits:
        _fail(f"'original' and 'injected' of pair '{_shorten(pair_id)}' differ in white space alone")
    cluster = _text(row, "question_id")
    if not cluster:
        cluster = "question:" + hashlib.sha256(question.encode()).hexdigest()[:16] if question else f"pair:{pair_id}"
    return Pair(
        id=pair_id,
        question=question,
        error_type=_text(row, "error_type").strip() or UNSPECIFIED,
        original=original,
        injected=injected,
        cluster=cluster,
        edits=edits,
        spans_from=spans_from,
        exact=spans_from != "given" or not differ_outside(original, injected, edits),
        scores=_scores(row),
    )


def _edits(row: Mapping[str, Any], original: str, injected: str) -> tuple[tuple[Edit, ...], SpansFrom]:
    given = _spans(row, "original_span", len(original)), _spans(row, "injected_span", len(injected))
    replacements = _replacements(row)
    if given[0] or given[1]:
        if len(given[0]) != len(given[1]):
            _fail(
                f"'original_span' holds {len(given[0])} spans and 'injected_span' {len(given[1])}; "
                "give one of each per edit, or neither"
            )
        edits = [Edit(original=old, injected=new) for old, new in zip(*given, strict=True)]
        # A span over the same text on both sides marks no difference.
        changed = tuple(e for e in edits if original[slice(*e.original)] != injected[slice(*e.injected)])
        if not changed:
            _fail("the spans hold the same text on both sides, so they mark no difference; spans count code points")
        return changed, "given"
    placed = edits_from_replacements(original, injected, replacements)
    if placed is not None:
        return tuple(placed), "edits"
    return tuple(edits_from_diff(original, injected)), "diff"


def _spans(row: Mapping[str, Any], key: str, size: int) -> list[tuple[int, int]]:
    value = row.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        _fail(f"'{key}' is {_kind(value)}, not a list of [start, end]")
    spans = []
    for item in value:
        if not (isinstance(item, list) and len(item) == 2 and all(type(bound) is int for bound in item)):
            _fail(f"'{key}' must be a list of [start, end] with whole numbers, not {_shorten(json.dumps(value))}")
        start, end = item
        if not 0 <= start <= end <= size:
            _fail(f"'{key}' [{start}, {end}] lies outside the text, which has {size} code points")
        spans.append((start, end))
    return spans


def _replacements(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    value = row.get("edits")
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        _fail("'edits' must be a list of {find, replace}")
    return [(_text(item, "find", required=True), _text(item, "replace", required=True)) for item in value]


def _scores(row: Mapping[str, Any]) -> Scores | None:
    value = row.get("rubric_scores")
    if value is None:
        values = {name: row.get(f"{name}_score") for name in ("original", "injected")}
    elif isinstance(value, dict):
        values = {name: value.get(name) for name in ("original", "injected")}
    else:
        _fail(f"'rubric_scores' is {_kind(value)}, not {{original, injected}}")
    if value is None and not any(score is not None for score in values.values()):
        return None
    return Scores(**{name: _number(name, score) for name, score in values.items()})


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _fail(f"the rubric score of the {name} text is {_kind(value)}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _fail(f"the rubric score of the {name} text is not finite")
    return number


def _text(row: Mapping[str, Any], key: str, *, required: bool = False) -> str:
    value = row.get(key, _MISSING)
    if value is _MISSING or (value is None and not required):
        if required:
            _fail(f"'{key}' is missing")
        return ""
    if not isinstance(value, str):
        _fail(f"'{key}' is {_kind(value)}, not a string")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        _fail(f"'{key}' holds half of a surrogate pair at code point {error.start}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return "missing or null" if value is None else names[type(value)]


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _fail(reason: str) -> NoReturn:
    raise _RowError(reason)
