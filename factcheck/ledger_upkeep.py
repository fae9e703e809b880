"""Look after the file of a ledger: what it holds, whether it is sound, what may go, and its entries as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from factcheck.errors import ConfigError
from factcheck.ledger_file import SCHEMA_VERSION, Damaged, LedgerFile, in_transaction
from factcheck.redaction import redacted

ENTRY_SCHEMA = "factcheck.ledger.entry/1"
_PROBLEMS_SHOWN = 100


class Kind(NamedTuple):
    """Count the entries of one kind; ``bytes`` are those of the values as stored, times in seconds since 1970."""

    kind: str
    entries: int
    bytes: int
    oldest: int
    newest: int


class Version(NamedTuple):
    """Count the entries that one version of factcheck wrote."""

    version: str
    entries: int
    newest: int


class Survey(NamedTuple):
    """Say what a ledger holds; ``bytes`` is the size of the file with SQLite's log."""

    schema: int
    bytes: int
    kinds: tuple[Kind, ...]
    versions: tuple[Version, ...]

    @property
    def entries(self) -> int:
        """Count all entries."""
        return sum(kind.entries for kind in self.kinds)


class Pruned(NamedTuple):
    """Say what a pruning removed, or would remove, and the size of the file before and after in bytes."""

    removed: int
    kept: int
    bytes_before: int
    bytes_after: int


def survey(file: LedgerFile) -> Survey:
    """Count the entries by kind, and by version with the latest written first."""
    kinds = file.fetch(
        "SELECT kind, COUNT(*), SUM(LENGTH(value)), MIN(created), MAX(created) FROM entry GROUP BY kind ORDER BY kind"
    )
    versions = file.fetch(
        "SELECT version, COUNT(*), MAX(created) FROM entry JOIN origin ON origin.id = entry.origin "
        "GROUP BY version ORDER BY MAX(created) DESC, MAX(entry.id) DESC"
    )
    return Survey(
        SCHEMA_VERSION, _size(file), tuple(Kind(*row) for row in kinds), tuple(Version(*row) for row in versions)
    )


def problems(file: LedgerFile) -> list[str]:
    """Check the structure of the file and the seal of every entry, and return what is wrong, at most 100 lines."""
    found = [str(row[0]) for row in file.fetch(f"PRAGMA integrity_check({_PROBLEMS_SHOWN})") if row[0] != "ok"]
    for _, entry in file.rows():
        if len(found) >= _PROBLEMS_SHOWN:
            break
        if isinstance(entry, Damaged):
            found.append(entry.reason)
    return found


def prune(
    file: LedgerFile,
    *,
    before: float | None = None,
    kinds: Iterable[str] = (),
    keep_versions: int | None = None,
    damaged: bool = False,
    dry_run: bool = False,
) -> Pruned:
    """Remove the entries to which every given condition applies, and give the space back to the disk.

    Args:
        file: the ledger.
        before: those stored earlier than this time, in seconds since 1970.
        kinds: those of these kinds.
        keep_versions: those that none of this many versions of factcheck wrote, counted from the one that wrote last.
        damaged: those whose content differs from their seal; also builds the index anew.
        dry_run: only count.

    Raise ConfigError without any condition: a whole ledger is removed by deleting its file.
    """
    conditions: list[str] = []
    values: list[Any] = []
    if before is not None:
        conditions.append("created < ?")
        values.append(before)
    if chosen := sorted(set(kinds)):
        conditions.append(f"kind IN ({', '.join('?' * len(chosen))})")
        values += chosen
    if keep_versions is not None:
        latest = [version.version for version in survey(file).versions[:keep_versions]]
        conditions.append(f"origin NOT IN (SELECT id FROM origin WHERE version IN ({', '.join('?' * len(latest))}))")
        values += latest
    if not conditions and not damaged:
        raise ConfigError(
            "nothing says which entries to remove.",
            hint="Give --older-than, --kind, --keep-versions or --damaged; to remove all of them, delete the file.",
        )
    size = _size(file)
    if damaged and not dry_run:
        with file.exclusive() as connection:
            connection.execute("REINDEX")
    if damaged:
        bad = [number for number, entry in file.rows() if isinstance(entry, Damaged)]
        conditions.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(bad))
    where = " AND ".join(conditions)
    if dry_run:
        ((total,),) = file.fetch("SELECT COUNT(*) FROM entry")
        ((count,),) = file.fetch(f"SELECT COUNT(*) FROM entry WHERE {where}", *values)
        return Pruned(count, total - count, size, size)
    with file.exclusive() as connection:
        with in_transaction(connection):
            count = connection.execute(f"DELETE FROM entry WHERE {where}", values).rowcount
            connection.execute("DELETE FROM origin WHERE id NOT IN (SELECT origin FROM entry)")
            ((left,),) = connection.execute("SELECT COUNT(*) FROM entry").fetchall()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return Pruned(count, left, size, _size(file))


def exported(file: LedgerFile, kinds: Iterable[str] = ()) -> Iterator[dict[str, Any] | Damaged]:
    """Yield the entries as JSON objects, oldest first, with what looks like a credential masked; damaged rows as Damaged.

    Keys: schema, kind, key, created (ISO 8601, UTC), version, fingerprint, cost, value, and redacted, which is true if the
    value shown differs from the one stored.
    """
    for _, entry in file.rows(kinds):
        if isinstance(entry, Damaged):
            yield entry
            continue
        value = json.loads(entry.value)
        shown = redacted(value)
        yield {
            "schema": ENTRY_SCHEMA,
            "kind": entry.kind,
            "key": entry.key,
            "created": datetime.fromtimestamp(entry.created, UTC).isoformat(),
            "version": entry.version,
            "fingerprint": redacted(json.loads(entry.fingerprint)),
            "cost": redacted(json.loads(entry.cost)),
            "value": shown,
            "redacted": shown != value,
        }


def _size(file: LedgerFile) -> int:
    paths = [file.path.with_name(file.path.name + ending) for ending in ("", "-wal")]
    return sum(path.stat().st_size for path in paths if path.exists())
