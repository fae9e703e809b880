"""The pipeline options, the same for every command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factcheck.pipeline import FactChecker


def add_pipeline_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the parts of the pipeline, its models, its ledger and its budget."""
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
    group.add_argument("--domains", metavar="D,…", help="allow-list of domains for retrievers that search the web")
    group.add_argument(
        "--query-deadline", type=float, metavar="SECONDS", help="time allowed for one query at one retriever"
    )
    group.add_argument("--concurrency", type=int, metavar="N", help="claims checked at a time")
    group.add_argument(
        "--workers", type=int, metavar="N", help="processes for the checkers (default: what is to spare)"
    )
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
    _add_model_options(parser.add_argument_group("models"))
    _add_ledger_options(parser.add_argument_group("ledger"))
    _add_budget_options(parser.add_argument_group("budget"))


def _add_model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--model",
        action="append",
        metavar="[ROLE=]NAME",
        help="model to ask, for all roles or for one: decomposer, query_writer, judge, grader, injector (repeatable)",
    )
    group.add_argument("--base-url", metavar="URL", help="server of the model (default: that of the provider)")
    group.add_argument("--api", metavar="API", help="openai-chat (default), openai-responses or anthropic")
    group.add_argument("--key-env", metavar="NAME", help="environment variable that holds the key")
    group.add_argument("--prompts", type=Path, metavar="DIR", help="folder whose prompts take precedence")
    group.add_argument(
        "--graded-model", metavar="NAME", help="model that wrote the answers, which the judge must not be"
    )


def _add_ledger_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--ledger", type=Path, metavar="FILE", help="record in this file, and ask nothing twice")
    group.add_argument(
        "--replay", action="store_true", default=None, help="take everything from the ledger, nothing from the network"
    )


def _add_budget_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--max-usd", type=float, metavar="USD", help="most that model calls may cost")
    group.add_argument("--max-calls", type=int, metavar="N", help="most model calls")
    group.add_argument("--max-tokens", type=int, metavar="N", help="most tokens, in and out together")
    group.add_argument("--deadline", type=float, metavar="SECONDS", help="time for the whole run")
    group.add_argument("--prices", type=Path, metavar="FILE", help="price list that goes before the packaged one")


def overrides(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given as flags."""
    domains = [name.strip() for name in args.domains.split(",")] if args.domains is not None else None
    given = {
        "corpora": args.corpus,
        "retrievers": args.retriever,
        "decomposer": args.decomposer,
        "query_writer": args.query_writer,
        "judge": args.judge,
        "checkers": args.checker,
        "policy": args.policy,
        "k": args.k,
        "domains": domains,
        "query_deadline": args.query_deadline,
        "concurrency": args.concurrency,
        "workers": args.workers,
        "seed": args.seed,
        "prompts": args.prompts,
        "graded_model": args.graded_model,
        "ledger": args.ledger,
        "replay": args.replay,
        "max_usd": args.max_usd,
        "max_calls": args.max_calls,
        "max_tokens": args.max_tokens,
        "deadline": args.deadline,
        "prices": args.prices,
        "models": _models(args),
    }
    return {name: value for name, value in given.items() if value is not None}


def _models(args: argparse.Namespace) -> dict[str, dict[str, str]] | None:
    """Return the tables of models that the flags describe; a name without a role is for all of them."""
    server = {"base_url": args.base_url, "api": args.api, "key_env": args.key_env}
    tables: dict[str, dict[str, str]] = {}
    if common := {name: value for name, value in server.items() if value is not None}:
        tables["default"] = common
    for word in args.model or ():
        role, equals, name = word.partition("=")
        # Names of models may hold an equals sign, names of roles are words.
        role, name = (role, name) if equals and role.isidentifier() else ("default", word)
        tables.setdefault(role, {})["model"] = name
    return tables or None


def checker_from(args: argparse.Namespace, *, usual_ledger: Path | None = None) -> FactChecker:
    """Build the pipeline that the options, the environment and the settings file describe."""
    from factcheck.config import load_settings
    from factcheck.pipeline import FactChecker
    from factcheck.plugins import Plugins

    settings = load_settings(args.config, overrides(args))
    return FactChecker.from_settings(settings, plugins=Plugins(blocked=args.no_plugin), usual_ledger=usual_ledger)
