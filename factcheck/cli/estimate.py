"""``--dry-run`` of ``check`` and ``study``: print what the run would use, asking nothing and writing nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from factcheck.cli.options import overrides
from factcheck.config import load_settings
from factcheck.estimate.rehearsal import Rehearsal
from factcheck.estimate.report import Estimate
from factcheck.estimate.sample import estimate_check, estimate_study
from factcheck.estimate.text import as_text
from factcheck.pipeline import run_async
from factcheck.plugins import Plugins
from factcheck.schema import Answer
from factcheck.study.pairs import Pair, PairFile

SCHEMA = "factcheck.estimate/1"


def dry_check(args: argparse.Namespace, answer: Answer) -> int:
    """Print the estimate for the check of one answer."""
    with _rehearsal(args, None) as rehearsal:
        return _print(args, run_async(partial(estimate_check, rehearsal, answer)))


def dry_study(args: argparse.Namespace, file: PairFile, tied: Sequence[Pair], usual_ledger: Path) -> int:
    """Print the estimate for a study, from ``args.sample`` of its pairs."""
    with _rehearsal(args, usual_ledger) as rehearsal:
        return _print(args, run_async(partial(estimate_study, rehearsal, file.pairs, tied, args.sample)))


def _rehearsal(args: argparse.Namespace, usual_ledger: Path | None) -> Rehearsal:
    settings = load_settings(args.config, overrides(args))
    found = Rehearsal.from_settings(settings, plugins=Plugins(blocked=args.no_plugin), usual_ledger=usual_ledger)
    assert isinstance(found, Rehearsal)
    return found


def _print(args: argparse.Namespace, estimate: Estimate) -> int:
    if args.format == "json":
        body = {"schema": SCHEMA, **estimate.model_dump(mode="json")}
        sys.stdout.write(json.dumps(body, ensure_ascii=True, indent=1) + "\n")
    else:
        sys.stdout.write(as_text(estimate))
    return 0
