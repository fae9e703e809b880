"""The command ``factcheck corpus``: list, inspect, search, verify and build corpora.

JSON, whose keys are only ever added to:

``list``    {"schema": "factcheck.corpus.list/1", "corpora": [{name, title, licence, date, passages, sha256,
            reviewed_by_clinician}]}
``info``    {"schema": "factcheck.corpus.info/1", where, note, manifest,
            counts: {passages, documents, words, sources, kinds: {kind: number}}}
``search``  {"schema": "factcheck.corpus.search/1", corpus, sha256, query, "passages": [the fields of a Passage]}
``verify``  {"schema": "factcheck.corpus.verify/1", name, where, ok, passages, sha256, expected, problems}
``build``   {"schema": "factcheck.corpus.build/1", out, manifest, documents, empty, left_out}
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_SHOWN = 20
# What an action returns: JSON without its schema, lines of text, exit status.
_Outcome = tuple[dict[str, Any], list[str], int]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    actions.add_parser("list", help="the corpora that come with factcheck")

    info = actions.add_parser("info", help="manifest and counts of a corpus")
    info.add_argument("corpus", metavar="NAME|DIR")

    search = actions.add_parser("search", help="the passages that a query finds by BM25, best first")
    search.add_argument("corpus", metavar="NAME|DIR")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("-k", type=_positive, default=5, metavar="N", help="passages to show (default: %(default)s)")

    verify = actions.add_parser("verify", help="check the hash and every row; exit status 1 if something is wrong")
    verify.add_argument("corpus", metavar="NAME|DIR")

    build = actions.add_parser("build", help="make a corpus of a folder of JSONL, Markdown, text and HTML files")
    build.add_argument("documents", type=Path, metavar="DOCUMENTS", help="folder, read with all folders below it")
    build.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the corpus")
    build.add_argument("--name", default="", help="name under which passages are reported (default: that of DIR)")
    build.add_argument("--title", default="", help="title for people")
    build.add_argument("--description", default="", help="what the corpus is and is not")
    build.add_argument("--licence", default="", help="terms under which the documents may be used")
    build.add_argument("--source", default="", help="source of passages that name none (default: path of the document)")
    build.add_argument("--date", default="", metavar="YYYY-MM-DD", help="date of the contents, or its year or month")
    build.add_argument("--min-words", type=_positive, default=80, metavar="N", help="default: %(default)s")
    build.add_argument("--max-words", type=_positive, default=150, metavar="N", help="default: %(default)s")
    build.add_argument("--force", action="store_true", help="replace the corpus in DIR")

    for action in actions.choices.values():
        action.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")


def run(args: argparse.Namespace) -> int:
    """Run the action and return the exit status."""
    act = {"list": _list, "info": _info, "search": _search, "verify": _verify, "build": _build}[args.action]
    content, lines, status = act(args)
    if args.format == "json":
        import json

        print(json.dumps({"schema": f"factcheck.corpus.{args.action}/1", **content}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(lines))
    return status


def _list(args: argparse.Namespace) -> _Outcome:
    from factcheck.corpus import list_corpora, open_corpus, read_manifest

    shown = ("name", "title", "licence", "date", "passages", "sha256", "reviewed_by_clinician")
    manifests = [read_manifest(name) or open_corpus(name).manifest for name in list_corpora()]
    rows = [{key: getattr(manifest, key) for key in shown} for manifest in manifests]
    width = max((len(row["name"]) for row in rows), default=0)
    lines = [f"{_line(row['name']):{width}}  {_line(_summary(row))}" for row in rows]
    return (
        {"corpora": rows},
        lines or ["No corpora come with this installation; 'factcheck corpus build' makes one."],
        0,
    )


def _summary(row: dict[str, Any]) -> str:
    reviewed = "reviewed by a clinician" if row["reviewed_by_clinician"] else "not reviewed by a clinician"
    return ", ".join(filter(None, [row["title"], f"{row['passages']} passages", row["date"], reviewed]))


def _info(args: argparse.Namespace) -> _Outcome:
    from collections import Counter

    from factcheck.corpus import open_corpus

    corpus = open_corpus(args.corpus)
    passages = list(corpus.passages())
    kinds = Counter(str(p.metadata["kind"]) for p in passages if p.metadata.get("kind"))
    counts = {
        "passages": len(passages),
        "documents": len({p.doc_id for p in passages}),
        "words": sum(len(p.text.split()) for p in passages),
        "sources": len({p.source for p in passages if p.source}),
        "kinds": dict(sorted(kinds.items())),
    }
    manifest = corpus.manifest.model_dump(mode="json", by_alias=True)
    lines = [f"{key}: {_line(_flat(value))}" for key, value in manifest.items() if value not in ("", [], None)]
    lines.append(f"in it: {', '.join(f'{n} {what}' for what, n in counts.items() if what != 'kinds')}")
    if kinds:
        lines.append(f"kinds: {_line(', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items())))}")
    if corpus.note:
        lines.append(f"note: {corpus.note}")
    return {"where": corpus.where, "note": corpus.note, "manifest": manifest, "counts": counts}, lines, 0


def _search(args: argparse.Namespace) -> _Outcome:
    from factcheck.errors import InputError
    from factcheck.plugins import Plugins
    from factcheck.schema import Query

    if not args.query.isprintable() and any("\ud800" <= char <= "\udfff" for char in args.query):
        raise InputError("the query is not valid UTF-8.", hint="Check the encoding of the terminal.")
    retriever = Plugins(only=("bm25",)).create("retriever", "bm25", corpora=(args.corpus,))
    passages = retriever.retrieve(Query(id="q", claim_id="q", text=args.query), args.k) if args.query.strip() else []
    content = {
        "corpus": args.corpus,
        "sha256": retriever.corpus_sha256[0],
        "query": args.query,
        "passages": [passage.model_dump(mode="json") for passage in passages],
    }
    lines = []
    for p in passages:
        lines.append(_line(f"{p.rank}. {p.title or p.id}  [{p.id}]  score {p.score:.3f}"))
        lines += [_line(text) for text in (p.text, _reference(p)) if text]
        lines.append("")
    return content, lines[:-1] or ["No passage shares a term with the query."], 0


def _reference(passage: Any) -> str:
    published = "" if passage.published in passage.source else passage.published
    return " ".join(filter(None, [passage.source, published, passage.url]))


def _verify(args: argparse.Namespace) -> _Outcome:
    from factcheck.corpus import verify

    found = verify(args.corpus)
    content = {
        "name": found.name,
        "where": found.where,
        "ok": found.ok,
        "passages": found.passages,
        "sha256": found.sha256,
        "expected": found.expected,
        "problems": list(found.problems),
    }
    compared = "as in the manifest" if found.expected else "with no manifest to compare it with"
    if found.ok:
        return content, [_line(f"{found.name}: {found.passages} passages, SHA-256 {found.sha256}, {compared}")], 0
    lines = [
        _line(f"{found.name}: {len(found.problems)} problems"),
        *(f"- {_line(p)}" for p in found.problems[:_SHOWN]),
    ]
    if len(found.problems) > _SHOWN:
        lines.append(f"- and {len(found.problems) - _SHOWN} more; --format json lists them all")
    return content, lines, 1


def _build(args: argparse.Namespace) -> _Outcome:
    from factcheck.corpus import build_corpus

    names = ("name", "title", "description", "licence", "source", "date", "min_words", "max_words", "force")
    built = build_corpus(args.documents, args.out, **{name: getattr(args, name) for name in names})
    manifest = built.manifest
    content = {
        "out": str(built.out),
        "manifest": manifest.model_dump(mode="json", by_alias=True),
        "documents": built.documents,
        "empty": list(built.empty),
        "left_out": list(built.left_out),
    }
    lines = [
        _line(f"{built.out}: {manifest.passages} passages from {built.documents} documents"),
        f"SHA-256 {manifest.sha256}",
    ]
    for what, paths in (("without text", built.empty), ("of other kinds, left out", built.left_out)):
        if paths:
            more = f", and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
            lines.append(_line(f"{len(paths)} {what}: {', '.join(paths[:_SHOWN])}{more}"))
    if not args.licence:
        lines.append("No licence is recorded; --licence states it.")
    return content, lines, 0


def _flat(value: object) -> object:
    return "; ".join(str(item) for item in value) if isinstance(value, list) else value


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _line(value: object) -> str:
    from factcheck.render import printable

    return printable(str(value))
