"""The command line: the table of commands, exit statuses, and errors as one line.

Exit status 0 done, 1 a ``--fail-on`` condition was met, 2 the user's mistake, 3 the run could not finish.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

COMMANDS = {
    "check": "check the claims of one answer",
    "study": "measure errors recovered and false positives on matched pairs",
    "corpus": "list, inspect, search, verify and build corpora",
    "plugins": "list plugins and say what is wrong with them",
    "ledger": "inspect, prune and export what runs have recorded",
    "prompts": "list and show the prompts of the model stages",
}
NOTICE = "factcheck is an evaluation aid; nothing that it prints is medical advice."


class _Parser(argparse.ArgumentParser):
    """Complain as every other mistake of the user does: one line with a code, exit status 2."""

    def error(self, message: str) -> NoReturn:
        print(f"factcheck: [F110] {message}. See: {self.prog} --help", file=sys.stderr)
        raise SystemExit(2)


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the module of ``command`` is imported."""
    parser = _Parser(
        prog="factcheck",
        description="Check long medical answers against retrieved evidence, and say how often that is wrong.",
        epilog=NOTICE,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        sub = subparsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=NOTICE
        )
        if name == command:
            module = importlib.import_module(f"factcheck.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        return 3
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a sign that the terminal's encoding lacks must not stop a report
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _complain("interrupted.", 3)
    except BrokenPipeError:
        _drop_output()
        return 3
    except OSError as error:
        _drop_output()
        return _complain(f"stopped by the system: {error}.", 3)


def _run(arguments: Sequence[str]) -> int:
    command = next((word for word in arguments if not word.startswith("-")), None)
    parser = build_parser(command if command in COMMANDS else None)
    if command is not None and command not in COMMANDS:
        from factcheck.errors import UnknownNameError

        return _complain(str(UnknownNameError("command", command, COMMANDS)), 2)
    args = parser.parse_args(arguments)
    if args.version:
        from factcheck.source_tree import version

        print(f"factcheck {version()}")
        return 0
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    return _run_command(args)


def _run_command(args: argparse.Namespace) -> int:
    from factcheck.errors import FactcheckError, PluginError, UserError

    try:
        status: int = args.run(args)
    except (UserError, PluginError) as error:
        return _complain(str(error), 2)
    except FactcheckError as error:
        return _complain(str(error), 3)
    except OSError:
        raise
    except Exception:  # a defect of ours: it needs its traceback, and must not be taken for a condition that was met
        traceback.print_exc()
        return _complain("stopped by a defect in factcheck or a plugin; please report it with the lines above.", 3)
    return status


def _complain(message: str, status: int) -> int:
    from factcheck.render import printable

    print(f"factcheck: {printable(message)}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """Send what is still unwritten nowhere, or the interpreter complains again when it flushes at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
