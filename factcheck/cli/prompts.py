"""``factcheck prompts list|show``: the prompts of the model stages, with their hashes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("action", choices=("list", "show"), help="list all prompts, or show one whole")
    parser.add_argument("id", nargs="?", metavar="ID", help="the prompt to show, such as judge.evidence.v2")
    parser.add_argument(
        "--prompts", "--folder", dest="folder", type=Path, metavar="DIR", help="your own prompts, which take precedence"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output")


def run(args: argparse.Namespace) -> int:
    """Print the prompts, or one of them."""
    from factcheck.errors import ConfigError
    from factcheck.prompting import load_prompt, load_prompts

    if args.action == "list" and args.id is not None:
        raise ConfigError("'prompts list' takes no id.", hint=f"Show one prompt with: factcheck prompts show {args.id}")
    if args.action == "show":
        if args.id is None:
            raise ConfigError("'prompts show' needs the id of a prompt.", hint="See them with: factcheck prompts list")
        prompt = load_prompt(args.id, args.folder)
        if args.format == "json":
            print(prompt.model_dump_json(indent=1))
        else:
            print(
                f"{prompt.id} ({prompt.origin}, sha256 {prompt.sha256})\n{prompt.purpose}\n{prompt.method}\n\n{prompt.text}",
                end="",
            )
        return 0
    prompts = load_prompts(args.folder)
    if args.format == "json":
        rows = [
            {k: getattr(p, k) for k in ("id", "stage", "purpose", "inputs", "sha256", "origin")}
            for p in prompts.values()
        ]
        print(json.dumps({"schema": "factcheck.prompts/1", "prompts": rows}, indent=1))
    else:
        for prompt in prompts.values():
            print(f"{prompt.id:24} {prompt.sha256[:12]}  {prompt.purpose}")
    return 0
