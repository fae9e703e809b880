"""The pipeline options, the same for every command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factcheck.pipeline import FactChecker


def add_pipeline_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the parts of the pipeline."""
    group = parser.add_argument_group("pipeline")
    group.add_argument("--corpus", action="append", metavar="NAME|DIR", help="corpus to search (repeatable)")
    group.add_argument("--retriever", action="append", metavar="NAME", help="retriever to ask (repeatable)")
    group.add_argument("--decomposer", metavar="NAME", help="splits the answer into claims")
    group.add_argument("--query-writer", metavar="NAME", help="writes searches for a claim")
    group.add_argument("--judge", metavar="NAME", help="judges a claim against its evidence")
    group.add_argument("--checker", action="append", metavar="NAME", help="checker to run (repeatable; default: all)")
    group.add_argument(
        "--policy", metavar="POLICY", help="which verdicts flag a claim: contradicted, unsupported, risk, risk>=T"
    )
    group.add_argument("-k", type=int, metavar="N", help="passages kept for a claim")
    group.add_argument("--deadline", type=float, metavar="SECONDS", help="time allowed for one query at one retriever")
    group.add_argument("--seed", type=int, metavar="N", help="seed of everything random")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings file (default: the one that FACTCHECK_CONFIG names, else factcheck.toml, if there is one)",
    )
    group.add_argument(
        "--no-plugin", action="append", metavar="NAME", default=[], help="do not load this plugin (repeatable)"
    )


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given as flags."""
    given = {
        "corpora": args.corpus,
        "retrievers": args.retriever,
        "decomposer": args.decomposer,
        "query_writer": args.query_writer,
        "judge": args.judge,
        "checkers": args.checker,
        "policy": args.policy,
        "k": args.k,
        "deadline": args.deadline,
        "seed": args.seed,
    }
    return {name: value for name, value in given.items() if value is not None}


def checker_from(args: argparse.Namespace) -> FactChecker:
    """Build the pipeline that the options, the environment and the settings file describe."""
    from factcheck.config import load_settings
    from factcheck.pipeline import FactChecker
    from factcheck.plugins import Plugins

    settings = load_settings(args.config, overrides(args))
    return FactChecker.from_settings(settings, plugins=Plugins(blocked=args.no_plugin))
