"""The command ``factcheck ledger``: say what a ledger holds, check it, prune it, export it.

JSON, whose keys are only ever added to:

``info``    {"schema": "factcheck.ledger.info/1", file, schema_version, bytes, entries, kinds: [{kind, entries, bytes,
            oldest, newest}], versions: [{version, entries, newest}], problems: null, or with --verify a list of texts}
``prune``   {"schema": "factcheck.ledger.prune/1", file, dry_run, removed, kept, bytes_before, bytes_after}
``export``  JSON Lines, an entry each: {"schema": "factcheck.ledger.entry/1", kind, key, created, version, fingerprint,
            cost, value, redacted}

Times are ISO 8601 in UTC. Exit status 1 of ``info --verify`` and ``export`` means that something is damaged.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factcheck.ledger_file import LedgerFile

_DAY = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    info = actions.add_parser("info", help="entries by kind and version, sizes and ages")
    info.add_argument("--verify", action="store_true", help="check every entry; exit status 1 if something is damaged")

    prune = actions.add_parser("prune", help="remove the entries that meet all the conditions given")
    prune.add_argument("--older-than", type=_days, metavar="DAYS", help="stored more than so many days ago")
    prune.add_argument("--kind", action="append", default=[], metavar="KIND", help="of this kind (repeatable)")
    prune.add_argument(
        "--keep-versions",
        type=_positive,
        metavar="N",
        help="not written by the N versions of factcheck that wrote last",
    )
    prune.add_argument("--damaged", action="store_true", help="different from their SHA-256")
    prune.add_argument("--dry-run", action="store_true", help="only say how many there are")

    export = actions.add_parser("export", help="the entries as JSON Lines, oldest first, without secrets")
    export.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this kind (repeatable)")
    export.add_argument("--out", type=Path, metavar="OUT", help="file to write (default: standard output)")

    for name, action in actions.choices.items():
        action.add_argument("file", type=Path, metavar="FILE", help="the ledger")
        if name != "export":
            action.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    """Run the action and return the exit status."""
    from factcheck.ledger_errors import LedgerError
    from factcheck.ledger_file import LedgerFile

    if not args.file.is_file():
        raise LedgerError(f"there is no ledger '{args.file}'.", hint="Name the file of a recorded run.")
    file = LedgerFile(args.file, writable=args.action == "prune" and not args.dry_run)
    try:
        _check_kinds(file, getattr(args, "kind", []))
        return {"info": _info, "prune": _prune, "export": _export}[args.action](file, args)
    finally:
        file.close()


def _check_kinds(file: LedgerFile, named: list[str]) -> None:
    """Raise UnknownNameError for a kind of which the ledger holds nothing: it may be misspelt."""
    from factcheck.errors import UnknownNameError
    from factcheck.ledger_upkeep import survey

    known = [row.kind for row in survey(file).kinds] if named else []
    for kind in named:
        if kind not in known:
            raise UnknownNameError("kind of entry in the ledger", kind, known)


def _info(file: LedgerFile, args: argparse.Namespace) -> int:
    from factcheck.ledger_upkeep import problems, survey

    found = survey(file)
    wrong = problems(file) if args.verify else None
    content = {
        "file": str(args.file),
        "schema_version": found.schema,
        "bytes": found.bytes,
        "entries": found.entries,
        "kinds": [{**k._asdict(), "oldest": _when(k.oldest), "newest": _when(k.newest)} for k in found.kinds],
        "versions": [{**v._asdict(), "newest": _when(v.newest)} for v in found.versions],
        "problems": wrong,
    }
    if args.format == "json":
        _print_json("info", content)
        return 1 if wrong else 0
    print(_line(f"{args.file}: {_many(found.entries, 'entry')}, {_size(found.bytes)}, schema {found.schema}"))
    rows = [
        (k.kind, _many(k.entries, "entry"), _size(k.bytes), f"{_when(k.oldest)} to {_when(k.newest)}")
        for k in found.kinds
    ]
    widths = [max((len(_line(row[i])) for row in rows), default=0) for i in range(3)]
    for name, *cells in rows:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(cells[:2], widths[1:], strict=True))
        print(f"  {_line(name).ljust(widths[0])}  {numbers}  {cells[2]}")
    for v in found.versions:
        print(_line(f"  written by factcheck {v.version}: {_many(v.entries, 'entry')}, last {_when(v.newest)}"))
    if wrong is not None:
        print(
            f"{len(wrong)} problems" if wrong else "no problems: the file is sound and every entry matches its SHA-256"
        )
        for problem in wrong:
            print(f"- {_line(problem)}")
    return 1 if wrong else 0


def _prune(file: LedgerFile, args: argparse.Namespace) -> int:
    import time

    from factcheck.ledger_upkeep import prune

    done = prune(
        file,
        before=None if args.older_than is None else time.time() - args.older_than * _DAY,
        kinds=args.kind,
        keep_versions=args.keep_versions,
        damaged=args.damaged,
        dry_run=args.dry_run,
    )
    if args.format == "json":
        _print_json("prune", {"file": str(args.file), "dry_run": args.dry_run, **done._asdict()})
    elif args.dry_run:
        print(_line(f"{args.file}: {_many(done.removed, 'entry')} to remove, {done.kept} to keep"))
    else:
        sizes = f"{_size(done.bytes_before)} before, {_size(done.bytes_after)} after"
        print(_line(f"{args.file}: {_many(done.removed, 'entry')} removed, {done.kept} kept; {sizes}"))
    return 0


def _export(file: LedgerFile, args: argparse.Namespace) -> int:
    import sys

    from factcheck.errors import OutputError

    if args.out is None:
        return _write_lines(file, args.kind, sys.stdout)
    try:
        # "x": a ledger is often exported once and kept, and its own name is easily given twice.
        with args.out.open("x", encoding="utf-8", newline="\n") as out:
            return _write_lines(file, args.kind, out)
    except FileExistsError as error:
        raise OutputError(f"'{args.out}' exists.", hint="Name a new file.") from error
    except OSError as error:
        raise OutputError(f"cannot write '{args.out}': {error.strerror or error}.") from error


def _write_lines(file: LedgerFile, kinds: list[str], out: Any) -> int:
    import json
    import sys

    from factcheck.ledger_file import Damaged
    from factcheck.ledger_upkeep import exported

    damaged = 0
    for entry in exported(file, kinds):
        if isinstance(entry, Damaged):
            damaged += 1
        else:
            out.write(json.dumps(entry) + "\n")
    if damaged:
        print(f"factcheck: {_many(damaged, 'damaged entry')} left out.", file=sys.stderr)
    return 1 if damaged else 0


def _print_json(action: str, content: dict[str, Any]) -> None:
    import json

    print(json.dumps({"schema": f"factcheck.ledger.{action}/1", **content}, indent=2))


def _when(seconds: int) -> str:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, OverflowError, OSError):  # from a damaged row, which only --verify looks into
        return "?"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun[:-1] + 'ies'}"


def _size(number: int) -> str:
    return f"{number / 1e6:.1f} MB" if number >= 1e5 else f"{number / 1e3:.1f} kB"


def _days(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of days")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _line(value: object) -> str:
    from factcheck.render import printable

    return printable(str(value))
