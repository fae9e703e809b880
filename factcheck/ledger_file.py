"""The file of a ledger: an SQLite database that several processes read and write at once.

``entry`` holds one value for each kind and key, ``origin`` what produced it and which version of factcheck wrote it. Every
row carries a seal, the SHA-256 of its content, which is checked whenever the row is read. A write is one transaction that
is on the disk before it counts as done. The file must lie on a local disk: SQLite's log needs shared memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import time
import urllib.parse
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from factcheck.errors import OutputError
from factcheck.ledger_errors import NEW_FILE, LedgerCorruptError, LedgerError, explain

SCHEMA_VERSION = 1
APPLICATION_ID = 0x46434C47  # "FCLG"
BUSY_SECONDS = 30.0
COMPRESS_FROM = 256  # bytes; shorter values gain nothing
_PLAIN, _ZLIB = 0, 1
_BATCH = 500
_TABLES = {
    "origin": "CREATE TABLE origin (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, version TEXT NOT NULL, "
    "seal BLOB NOT NULL, UNIQUE (fingerprint, version))",
    "entry": "CREATE TABLE entry (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, "
    "origin INTEGER NOT NULL REFERENCES origin, created INTEGER NOT NULL, cost TEXT NOT NULL, codec INTEGER NOT NULL, "
    "value BLOB NOT NULL, seal BLOB NOT NULL, UNIQUE (key, kind))",
}
_ROW = "kind, key, origin, created, cost, codec, value, seal"
_NEW_ENTRY = "Remove damaged entries with: factcheck ledger prune --damaged FILE"


class Entry(NamedTuple):
    """Hold one stored value; ``created`` in seconds since 1970, texts are JSON."""

    kind: str
    key: str
    fingerprint: str
    version: str
    created: int
    cost: str
    value: str


class Damaged(NamedTuple):
    """Name a row that cannot be trusted."""

    id: int
    reason: str


class _Pending:
    """Hold one value on its way into the file, and then its outcome."""

    def __init__(self, entry: Entry, codec: int, blob: bytes) -> None:
        self.entry = entry
        self.codec = codec
        self.blob = blob
        self.held: str | None = None
        self.error: BaseException | None = None
        self.done = False


class LedgerFile:
    """Read and write one ledger file; every method blocks, and may be called from any thread.

    ``writable`` creates the file and its folder if they are missing. Raise LedgerError if the file is no ledger of a version
    that can be read, LedgerCorruptError if it is damaged, OutputError if it cannot be written.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._pending: deque[_Pending] = deque()
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._log = path.with_name(path.name + "-wal")
        try:
            self._check_length()
            if writable:
                self._writer = self._open_writer()
            self._reader = self._open_reader()
        except BaseException:
            self.close()
            raise

    def read(self, kind: str, key: str) -> str | None:
        """Return the value under a kind and key, None if there is none; raise LedgerCorruptError if it is damaged."""
        found = self.fetch(f"SELECT {_ROW} FROM entry WHERE key = ? AND kind = ?", key, kind)
        return self._opened(found[0]) if found else None

    def read_all(self, kind: str, prefix: str) -> list[str]:
        """Return the values of a kind whose keys begin with ``prefix``, in the order of the keys."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        query = f"SELECT {_ROW} FROM entry WHERE key >= ? AND key < ? AND kind = ? ORDER BY key"
        return [self._opened(row) for row in self.fetch(query, prefix, end, kind)]

    def write(self, entry: Entry) -> str:
        """Store an entry unless its kind and key are taken, and return the value that the file now holds.

        The first writer wins, so that all processes go on with the value that a replay will find.
        """
        data = entry.value.encode("utf-8", "surrogatepass")
        short = zlib.compress(data) if len(data) >= COMPRESS_FROM else data
        pending = _Pending(entry, *((_ZLIB, short) if len(short) < len(data) else (_PLAIN, data)))
        self._pending.append(pending)
        with self._writing:
            # Whoever gets here first writes for all who wait, in one transaction and with one sync of the disk.
            if not pending.done:
                self._write_pending()
        if pending.error is not None:
            raise pending.error
        return entry.value if pending.held is None else pending.held

    def _write_pending(self) -> None:
        batch = [self._pending.popleft() for _ in range(len(self._pending))]
        try:
            with self._explained():
                connection = self._alive(self._writer)
                with in_transaction(connection):
                    for pending in batch:
                        self._write_one(connection, pending)
        except BaseException as error:
            for pending in batch:
                pending.error = error
            if not isinstance(error, Exception):
                raise
        finally:
            for pending in batch:
                pending.done = True

    def _write_one(self, connection: sqlite3.Connection, pending: _Pending) -> None:
        entry = pending.entry
        names = (entry.kind, entry.key)
        found = connection.execute(f"SELECT {_ROW} FROM entry WHERE kind = ? AND key = ?", names).fetchall()
        if found:
            try:
                pending.held = self._opened(found[0])
            except LedgerCorruptError as error:
                pending.error = error
            return
        source = (entry.fingerprint, entry.version)
        connection.execute("INSERT OR IGNORE INTO origin VALUES (NULL, ?, ?, ?)", (*source, _seal(*source)))
        found = connection.execute("SELECT id FROM origin WHERE fingerprint = ? AND version = ?", source).fetchall()
        content = (*names, found[0][0], entry.created, entry.cost, pending.codec, pending.blob)
        connection.execute("INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", (*content, _seal(*content)))

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[sqlite3.Connection]:
        """Give the writing connection to one thread, outside a transaction; other threads and processes may still read."""
        with self._writing, self._explained():
            yield self._alive(self._writer)

    def rows(self, kinds: Iterable[str] = ()) -> Iterator[tuple[int, Entry | Damaged]]:
        """Yield row numbers and entries, oldest row first, only of ``kinds`` if there are any; damaged rows as Damaged."""
        chosen = sorted(kinds)
        among = f"AND entry.kind IN ({', '.join('?' * len(chosen))})" if chosen else ""
        query = (
            f"SELECT entry.id, {', '.join(f'entry.{name}' for name in _ROW.split(', '))}, fingerprint, version, origin.seal "
            f"FROM entry LEFT JOIN origin ON origin.id = entry.origin WHERE entry.id > ? {among} ORDER BY entry.id LIMIT ?"
        )
        last = -(1 << 63)
        while True:
            with self._reading, self._explained():
                found = self._alive(self._reader).execute(query, (last, *chosen, _BATCH)).fetchall()
            for row in found:
                yield row[0], self._entry(row)
            if len(found) < _BATCH:
                return
            last = found[-1][0]

    def fetch(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query that reads."""
        with self._reading, self._explained():
            return self._alive(self._reader).execute(query, parameters).fetchall()

    def close(self) -> None:
        """Close the file; the last one to close it folds SQLite's log into it."""
        with self._writing, self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    def _entry(self, row: tuple[Any, ...]) -> Entry | Damaged:
        fingerprint, version, seal = row[-3:]
        try:
            value = self._opened(row[1:-3])
        except LedgerCorruptError as error:
            return Damaged(row[0], error.message)
        if seal != _seal(fingerprint, version):
            return Damaged(row[0], f"what produced row {row[0]} is damaged.")
        kind, key, _, created, cost = row[1:6]
        return Entry(kind, key, fingerprint, version, created, cost, value)

    def _opened(self, row: tuple[Any, ...]) -> str:
        """Return the value of a row after its seal has been checked."""
        *content, seal = row
        kind, key, *_, codec, blob = content
        if seal != _seal(*content):
            raise LedgerCorruptError(
                f"the ledger '{self.path}' is damaged: an entry differs from its SHA-256 (kind {kind!r:.40}, key {key!r:.15}).",
                hint=_NEW_ENTRY,
            )
        data: bytes = zlib.decompress(blob) if codec == _ZLIB else blob
        return data.decode("utf-8", "surrogatepass")

    def _alive(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            state = "is closed" if self._reader is None else "was opened for reading only"
            raise LedgerError(f"the ledger '{self.path}' {state}.", hint="Open it again.")
        return connection

    def _open_writer(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"cannot make the folder '{self.path.parent}' of the ledger: {error.strerror or error}.",
                hint="Name a file in a folder that you may write to.",
            ) from error
        connection = self._connect("mode=rwc")
        try:
            with self._explained():
                found = self._identify(connection)  # before anything is written: it may be the file of another program
                _use_log(connection)
                connection.execute("PRAGMA synchronous = FULL")
                with in_transaction(connection):
                    if not found and not self._identify(connection):
                        for table in _TABLES.values():
                            connection.execute(table)
                        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    # Also in a file that has it: only a change fails at once where nothing can be written.
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger '{self.path}'.", hint="Name the file of a recorded run.")
        ways = ["mode=rw", "mode=ro"]  # the first clears its log away at the end, the second may leave it behind
        logged = self._logged()
        if not logged:
            ways.append("mode=ro&immutable=1")  # in a folder where SQLite cannot make the files of its log
        for way in ways:
            connection = self._connect(way)
            try:
                with self._explained():
                    connection.execute("PRAGMA query_only = ON")
                    if not self._identify(connection):
                        raise LedgerError(
                            f"'{self.path}' is no ledger: it is empty.", hint="Name the file of a recorded run."
                        )
                return connection
            except OutputError as error:
                connection.close()
                if way != ways[-1]:
                    continue
                if logged:
                    error.hint = (
                        f"Its log '{self._log.name}' must be folded in: copy both to a folder that you may write to."
                    )
                raise
            except BaseException:
                connection.close()
                raise
        raise AssertionError("unreachable")

    def _logged(self) -> bool:
        return self._log.is_file() and self._log.stat().st_size > 0

    def _check_length(self) -> None:
        """Raise if the last page is cut, which SQLite does not mind; while there is a log, it may just be growing."""
        if not self.path.is_file() or self._logged():
            return
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            head = file.read(18)
            page = int.from_bytes(head[16:], "big")
            if head.startswith(b"SQLite format 3\0") and page > 1 and file.seek(0, os.SEEK_END) % page:
                raise LedgerCorruptError(f"the ledger '{self.path}' is damaged: its end is missing.", hint=NEW_FILE)

    def _connect(self, way: str) -> sqlite3.Connection:
        address = f"file:{urllib.parse.quote(str(self.path.absolute()))}?{way}"
        with self._explained():
            connection = sqlite3.connect(
                address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            # The file may come from somebody else: nothing that its schema defines may run.
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
        connection.text_factory = _decoded
        return connection

    def _identify(self, connection: sqlite3.Connection) -> bool:
        """Tell whether the file is a ledger or still empty; raise if it is something else."""
        alone = not connection.in_transaction
        if alone:
            connection.execute("BEGIN")  # another process may be making the tables just now
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        schema = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())
        if alone:
            connection.execute("COMMIT")
        if application == 0 and not schema:
            return False
        if application != APPLICATION_ID:
            raise LedgerError(f"'{self.path}' is the SQLite database of another program.", hint="Name another file.")
        if version > SCHEMA_VERSION:
            raise LedgerError(
                f"the ledger '{self.path}' was written by a newer factcheck "
                f"(schema {version}, this one reads {SCHEMA_VERSION}).",
                hint="Upgrade factcheck, or name another file.",
            )
        if version != SCHEMA_VERSION or schema != _TABLES:
            raise LedgerCorruptError(
                f"the ledger '{self.path}' is damaged: its tables are not those of one.", hint=NEW_FILE
            )
        return True

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise what SQLite reports as an error that says what happened to which file and how to mend it."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second from a message that quotes a damaged name
            raise explain(self.path, error, BUSY_SECONDS) from error


@contextlib.contextmanager
def in_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take the right to write, waiting for other processes; commit at the end, or undo everything if anything is raised."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")  # what is damaged then differs from its seal, and can still be removed


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; while another process does the same, SQLite refuses instead of waiting."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _seal(*content: object) -> bytes:
    """Hash the fields of a row with their types and lengths, so that nothing can move from one field to the next."""
    seal = hashlib.sha256()
    for field in content:
        data = field if isinstance(field, bytes) else str(field).encode("utf-8", "surrogatepass")
        seal.update(f"{type(field).__name__} {len(data)} ".encode())
        seal.update(data)
    return seal.digest()
