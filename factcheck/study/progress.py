"""The progress file of a study: one line for each finished pair, so that a run that was stopped can go on.

The first line says what the run is: the manifest and the hash of the pairs. Lines are appended and synced one by one; a
last line that was cut off by a kill is dropped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import ValidationError

from factcheck.errors import OutputError
from factcheck.schema import Manifest, Model
from factcheck.study.controls import ControlRecord
from factcheck.study.measure import PairRecord

NAME = "progress.jsonl"


class Header(Model):
    """Identify a run: what must be equal for its finished pairs to be reusable."""

    format: Literal["factcheck.study-progress/1"] = "factcheck.study-progress/1"
    pairs_sha256: str
    manifest: Manifest


class Progress:
    """Hold the finished pairs and controls, and append to them; a context manager that closes the file."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self.pairs: dict[str, PairRecord] = {}
        self.controls: dict[tuple[str, str], ControlRecord] = {}
        self.finished = False
        self._kept_bytes = 0
        self._file: Any = None

    def __enter__(self) -> Self:
        try:
            self._file = self.path.open("r+b" if self._kept_bytes else "wb")
            self._file.truncate(self._kept_bytes)
            self._file.seek(self._kept_bytes)
        except OSError as error:
            raise OutputError(f"cannot write '{self.path}': {error.strerror or error}.") from error
        if not self._kept_bytes:
            self._append("run", self.header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add_pair(self, record: PairRecord) -> None:
        """Keep a finished pair; one with errors is not written down, so that a resumed run tries it again."""
        if not record.accounting.error:
            self._append("pair", record)
        self.pairs[record.pair] = record

    def add_control(self, record: ControlRecord) -> None:
        """Keep a finished control of a pair."""
        self._append("control", record)
        self.controls[record.control, record.pair] = record

    def finish(self) -> None:
        """Note that the report was written."""
        self._append("finished", None)
        self.finished = True

    def clear(self) -> None:
        """Forget all that was kept; the file is emptied when it is opened."""
        self.pairs.clear()
        self.controls.clear()
        self.finished, self._kept_bytes = False, 0

    def load(self) -> Header | None:
        """Take in what an earlier run kept and return its header, None if it kept nothing."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutputError(f"cannot read '{self.path}': {error.strerror or error}.") from error
        header: Header | None = None
        lines = data.split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                header = self._take(header, row["kind"], row["content"])
            except (ValueError, ValidationError, KeyError, TypeError, RecursionError) as error:
                if header is not None and number == len(lines):
                    break
                raise OutputError(
                    f"line {number} of '{self.path}' is damaged, so the run cannot be resumed.",
                    hint="Choose another --out, or add --force to begin again.",
                ) from error
            self._kept_bytes += len(line) + 1
        return header

    def _take(self, header: Header | None, kind: str, content: Any) -> Header:
        if header is None:
            if kind != "run":
                raise ValueError("the first line is no header")
            return Header.model_validate(content)
        if kind == "pair":
            pair = PairRecord.model_validate(content)
            self.pairs[pair.pair] = pair
        elif kind == "control":
            control = ControlRecord.model_validate(content)
            self.controls[control.control, control.pair] = control
        elif kind == "finished":
            self.finished = True
        else:
            raise ValueError(f"unknown kind {kind}")
        return header

    def _append(self, kind: str, content: Model | None) -> None:
        row = {"kind": kind, "content": content.model_dump(mode="json") if content else None}
        try:
            self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OutputError(f"cannot write '{self.path}': {error.strerror or error}.") from error


def open_progress(folder: Path, header: Header, *, resume: bool = False, force: bool = False) -> Progress:
    """Return the progress to enter, with what an earlier run kept if ``resume``.

    ``resume`` refuses the progress of a run with another manifest or other pairs. Without it, an unfinished run and the
    report of another run are refused, unless ``force``; the same run that was finished is begun again.
    """
    progress = Progress(folder / NAME, header)
    if force:
        return progress
    stored = progress.load()
    if stored is None:
        if (folder / "report.json").exists():
            raise OutputError(
                f"'{folder}' holds a report and no progress file.",
                hint="Choose another --out, or add --force to replace it.",
            )
        return progress
    differences = ", ".join(_differences(stored, header))
    if resume:
        if differences:
            raise OutputError(
                f"the run in '{folder}' cannot be resumed, because it was another one; what differs: {differences}.",
                hint="Run with the same settings and pairs, or choose another --out.",
            )
        return progress
    if progress.pairs and not progress.finished:
        raise OutputError(
            f"'{folder}' holds an unfinished run with {len(progress.pairs)} pairs done.",
            hint="Add --resume to go on with it, or --force to begin again.",
        )
    if progress.finished and differences:
        raise OutputError(
            f"'{folder}' holds the report of another run; what differs: {differences}.",
            hint="Choose another --out, or add --force to replace it.",
        )
    progress.clear()
    return progress


def _differences(stored: Header, wanted: Header) -> list[str]:
    old, new = stored.manifest, wanted.manifest
    found = ["the pairs"] if stored.pairs_sha256 != wanted.pairs_sha256 else []
    for name, before, after in (
        ("the version of factcheck", old.version, new.version),
        ("the policy", old.policy, new.policy),
        ("the seed", old.seed, new.seed),
    ):
        if before != after:
            found.append(f"{name} ({before}, now {after})")
    parts = [{(part.role, part.name): part.digest for part in manifest.components} for manifest in (old, new)]
    for role, name in sorted(parts[0].keys() | parts[1].keys()):
        if parts[0].get((role, name)) != parts[1].get((role, name)):
            found.append(f"the {role.replace('_', ' ')} '{name}'")
    if not found and old.digest != new.digest:
        found.append("the manifest")
    return found
