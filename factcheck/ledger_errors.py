"""The exceptions of the ledger.

UserError
└─ LedgerError           F160  a file that cannot be used as a ledger, or not in this way
   ├─ LedgerCorruptError F160  its contents are damaged
   └─ ReplayMissError    F161  a replay needs what was never recorded
StageError
└─ NotStoredError        F350  a value that a ledger must not hold
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from factcheck.errors import FactcheckError, OutputError, StageError, UserError

NEW_FILE = "Move it away and run again to record anew, or restore it from a copy."


class LedgerError(UserError):
    """A file that cannot be used as a ledger, or not in this way."""

    code = "F160"


class LedgerCorruptError(LedgerError):
    """A ledger whose contents are damaged."""


class ReplayMissError(LedgerError):
    """A replay that needs an entry which the ledger does not hold; ``kind``, ``stage`` and ``key`` name it."""

    code = "F161"

    def __init__(self, where: str, *, kind: str, stage: str, key: str) -> None:
        wanted = f"'{kind}' entry {key[:12]}" + (f" of stage '{stage}'" if stage else "")
        super().__init__(
            f"the ledger '{where}' does not hold the {wanted}.",
            hint="Replay with the answers, settings, models, prompts and corpora of the recorded run, "
            "or run without replay to record it.",
        )
        self.kind = kind
        self.stage = stage
        self.key = key


class NotStoredError(StageError):
    """A value that a ledger must not hold: a failure, or no JSON."""

    code = "F350"


def explain(path: Path, error: Exception, waited: float) -> FactcheckError:
    """Return the error that says what SQLite met with at ``path``, after ``waited`` seconds if it was locked."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerError(
            f"the ledger '{path}' has been locked by another process for {waited:.0f} seconds.",
            hint="Wait for that process, or give each run a ledger of its own.",
        )
    if code == sqlite3.SQLITE_FULL:
        return OutputError(
            f"cannot write the ledger '{path}': the disk is full.", hint="Free some space and run again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return OutputError(
            f"cannot open or write the ledger '{path}': {error}.",
            hint="The file and its folder must be writable, except for a replay; or name another file.",
        )
    if code == sqlite3.SQLITE_IOERR:
        return OutputError(
            f"cannot read or write the ledger '{path}': {error}.",
            hint="Check the disk, its free space and the limit on the size of files; what was stored before is kept.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return LedgerCorruptError(
            f"'{path}' is no ledger, or its head is damaged: it is not an SQLite database.",
            hint=f"Name another file. {NEW_FILE}",
        )
    return LedgerCorruptError(f"the ledger '{path}' is damaged: {error}.", hint=NEW_FILE)
