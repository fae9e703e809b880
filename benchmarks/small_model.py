"""Run the whole model pipeline on ten matched pairs, count what goes wrong, and set the offline judge beside it.

usage: python benchmarks/small_model.py --base-url URL --model NAME [--pairs FILE] [--corpus NAME|DIR] [options]

The pairs are every fourth one of the file, ten at most, whatever comes of them. The model splits (``llm/atomic``), writes the
queries (``llm/neutral``) and judges (``llm``); the retriever is ``bm25`` on both sides. Prints Markdown.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
from factcheck_llm.decomposer import AtomicDecomposer, Claims
from factcheck_llm.judge import ModelJudge
from factcheck_llm.queries import NeutralQueryWriter
from pydantic import BaseModel

from factcheck.calibrate import Calibration
from factcheck.errors import PluginError, StageError
from factcheck.hookspecs import Register, hookimpl
from factcheck.ledger import Ledger
from factcheck.llm import ModelClient, ModelReplyError, ModelSettings
from factcheck.pipeline import FactChecker
from factcheck.plugins import Plugins
from factcheck.schema import STATES, Accounting, Answer, AnswerReport, Evidence
from factcheck.study.edits import Edit
from factcheck.study.measure import outcome_of, record_pair
from factcheck.study.pairs import Pair, PairFile, read_pairs
from factcheck.text.sentences import split_sentences
from factcheck.verdicts import decide, parse_policy

M = TypeVar("M", bound=BaseModel)
STEP, MOST = 4, 10
POLICIES = ("contradicted", "unsupported")
SIDES = ("original", "injected")
# What the stages say of a reply that they ask for again, and what it is called here; the first that fits counts.
CAUSES = (
    ("quote not literal", "letter by letter"),
    ("label and stances disagree", "the label says"),
    ("quote missing", "is missing"),
    ("quote too short", "too short"),
    ("quote of something else", "something else than the claim"),
    ("quote beside an order", "gives orders"),
    ("passage not shown", "was not shown"),
    ("two stances on one passage", "two different stances"),
    ("number lost or added", "number"),
    ("negation added", "negates what"),
    ("negation lost", "a negation of"),
    ("condition lost", "a condition of"),
    ("certainty lost", "a degree of certainty"),
    ("words from elsewhere", "words"),
    ("no claim", "no claim"),
    ("empty claim", "says nothing"),
    ("no query about the claim", "names what the claim is about"),
    ("no query about the claim", "no usable query"),
)


def cause(line: str) -> str:
    """Return what a problem is called in the tables."""
    return next((name for name, words in CAUSES if words in line), f"other: {line[:60]}")


class Watch:
    """Ask a model through its client, and count what comes back, by stage."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client
        self.asked: Counter[str] = Counter()
        self.again: Counter[str] = Counter()
        self.problems: dict[str, Counter[str]] = {}
        self.faults: Counter[str] = Counter()

    async def structured(self, messages: Sequence[Any], *, schema: Mapping[str, Any], stage: str, model: type[M]) -> M:
        """Return the reply as an instance of ``model``."""
        self.asked[stage] += 1
        if len(messages) > 1:  # the stage's own second question, which lists what was wrong
            self.again[stage] += 1
            lines = re.findall(r"^- (.+)$", str(messages[-1]["content"]), re.MULTILINE)
            self.problems.setdefault(stage, Counter()).update({cause(line) for line in lines})
        try:
            return await self.client.structured(messages, schema=schema, stage=stage, model=model)
        except ModelReplyError as error:
            self.faults[f"{stage}: {error.fault}"] += 1
            raise
        except StageError as error:
            self.faults[f"{stage}: {type(error).__name__}"] += 1
            raise


class Stages:
    """Offer the three stages under the names ``watched/…``, asking one client."""

    def __init__(self, watch: Watch) -> None:
        self.kept_whole: Counter[str] = Counter()
        self.sentences_kept = 0
        counts = self
        named = watch.client.settings.model

        class Atomic(AtomicDecomposer):
            model = named

            def __init__(self, settings: Any = None) -> None:
                super().__init__(settings, client=watch)

            async def decompose(self, answer: Answer) -> Claims:
                claims = await super().decompose(answer)
                counts.sentences_kept += len(claims.warnings)
                for line in claims.warnings:
                    counts.kept_whole.update({cause(part) for part in re.split(r"(?<=\.) ", line.partition(": ")[2])})
                return claims

        class Neutral(NeutralQueryWriter):
            model = named

            def __init__(self, settings: Any = None) -> None:
                super().__init__(settings, client=watch)

        class Judge(ModelJudge):
            model = named

            def __init__(self, settings: Any = None) -> None:
                super().__init__(settings, client=watch)

        self.decomposer, self.writer, self.judge = Atomic, Neutral, Judge

    @hookimpl
    def factcheck_register_decomposers(self, register: Register) -> None:
        register("watched/atomic", self.decomposer)

    @hookimpl
    def factcheck_register_query_writers(self, register: Register) -> None:
        register("watched/neutral", self.writer)

    @hookimpl
    def factcheck_register_judges(self, register: Register) -> None:
        register("watched/judge", self.judge)


class Column(NamedTuple):
    """Hold the figures of one way to check the pairs."""

    name: str
    pairs: int
    found: Mapping[str, tuple[int, int, int]]
    states: Accounting
    seconds: float | None


def chosen(file: PairFile, part: str = "") -> PairFile:
    """Return every fourth pair, ten at most, cut to the ``paragraph`` or the ``sentence`` of the edit if that is wanted."""
    pairs = file.pairs[::STEP][:MOST]
    return file.model_copy(update={"pairs": tuple(cut(pair, part) for pair in pairs) if part else pairs})


def cut(pair: Pair, part: str) -> Pair:
    """Return a pair cut to the paragraphs, or the sentences, from its first edit to its last."""
    bounds = {}
    for side in SIDES:
        text: str = getattr(pair, side)
        spans = [getattr(edit, side) for edit in pair.edits]
        first, last = min(start for start, _ in spans), max(end for _, end in spans)
        start = text.rfind("\n\n", 0, first) + 2 if "\n\n" in text[:first] else 0
        end = text.find("\n\n", last)
        end = len(text) if end < 0 else end
        if part == "sentence":
            met = [span for span in split_sentences(text, start, end) if span[0] < last and first < span[1]]
            start, end = met[0][0], met[-1][1]
        bounds[side] = (start, end)
    edits = [
        Edit.model_validate(
            {
                side: (getattr(edit, side)[0] - bounds[side][0], getattr(edit, side)[1] - bounds[side][0])
                for side in bounds
            }
        )
        for edit in pair.edits
    ]
    texts = {side: getattr(pair, side)[slice(*bounds[side])] for side in bounds}
    return pair.model_copy(update={**texts, "edits": tuple(edits)})


def without_checkers(report: AnswerReport, calibration: Calibration) -> AnswerReport:
    """Return the report with the verdicts that the judgements alone would give, no checker having its veto."""
    evidence = {item.claim_id: item for item in report.evidence}
    verdicts = tuple(
        decide(
            claim,
            evidence.get(claim.id, Evidence(claim_id=claim.id)),
            judgement.model_copy(update={"findings": ()}),
            calibration,
        )
        for claim, judgement in zip(report.claims, report.judgements, strict=True)
    )
    return report.model_copy(update={"verdicts": verdicts, "accounting": Accounting.of(verdicts)})


def column(name: str, pairs: Sequence[Pair], reports: Mapping[str, AnswerReport], seconds: float | None) -> Column:
    """Return the figures of the reports; a pair without them counts as nothing found."""
    records = {}
    for pair in pairs:
        sides = [reports.get(f"{pair.id}/{side}") for side in SIDES]
        if sides[0] is not None and sides[1] is not None:
            records[pair.id] = (sides[0], sides[1])
    found = {}
    states = Accounting()
    for original, injected in records.values():
        states = states + original.accounting + injected.accounting
    for policy_name in POLICIES:
        policy = parse_policy(policy_name, default_threshold=1.0)
        outcomes = [
            outcome_of(pair, record_pair(pair, *records[pair.id], policy) if pair.id in records else None, policy)
            for pair in pairs
        ]
        found[policy_name] = (
            sum(outcome.recovered for outcome in outcomes),
            sum(outcome.matched_flagged for outcome in outcomes),
            sum(outcome.flagged_original > 0 for outcome in outcomes),
        )
    return Column(name, len(pairs), found, states, seconds)


def run(checker: FactChecker, pairs: Sequence[Pair]) -> tuple[dict[str, AnswerReport], float]:
    """Check both texts of each pair; return the reports by pair and side, and the seconds that it took."""
    reports: dict[str, AnswerReport] = {}

    async def check() -> None:
        for pair in pairs:
            for side in SIDES:
                name = f"{pair.id}/{side}"
                try:
                    reports[name] = await checker.acheck(
                        Answer(id=name, question=pair.question, text=getattr(pair, side))
                    )
                except (StageError, PluginError) as error:
                    print(f"{name} could not be checked: {error}")
                print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)

    started = time.perf_counter()
    anyio.run(check)
    return reports, time.perf_counter() - started


def show(columns: Sequence[Column]) -> None:
    """Print the figures side by side."""
    print(f"| | {' | '.join(item.name for item in columns)} |\n|---|{'---|' * len(columns)}")
    for policy in POLICIES:
        for place, what in enumerate(("recovered", "matched false positives", "correct answers flagged")):
            cells = [f"{item.found[policy][place]} of {item.pairs}" for item in columns]
            print(f"| {what}, policy {policy} | {' | '.join(cells)} |")
    for state in ("extracted", *STATES):
        print(f"| claims: {state} | {' | '.join(str(getattr(item.states, state)) for item in columns)} |")
    print(f"| seconds | {' | '.join('-' if s.seconds is None else f'{s.seconds:.0f}' for s in columns)} |")


def show_errors(watch: Watch, stages: Stages, reports: Mapping[str, AnswerReport], stored: Mapping[str, int]) -> None:
    """Print what the model was asked, what went wrong, and what became of it."""
    print("\n| stage | asked | of these asked again | server calls | failed calls | tokens in | tokens out | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for stage in watch.asked:
        use = watch.client.budget.usage.get(stage)
        spent = (use.calls, use.failed, use.tokens_in, use.tokens_out, f"{use.seconds:.0f}") if use else (0,) * 5
        print(f"| {stage} | {watch.asked[stage]} | {watch.again[stage]} | {' | '.join(map(str, spent))} |")
    calls = sum(use.calls for use in watch.client.budget.usage.values())
    print(
        f"\nReplies that broke the schema and were repaired: {calls - stored['misses']}; from the ledger: {stored['hits']}."
    )
    print(f"Replies that could not be used at all: {dict(watch.faults) or 'none'}.")
    for stage, problems in watch.problems.items():
        print(f"Asked again by the {stage}: {dict(problems.most_common())}.")
    print(f"Sentences kept whole after the second reply: {stages.sentences_kept}, {dict(stages.kept_whole)}.")
    reasons: Counter[str] = Counter()
    for report in reports.values():
        for verdict in report.verdicts:
            if verdict.label == "error":
                reasons.update(
                    {cause(part) for part in re.split(r"(?<=\.) ", verdict.reason.partition(": ")[2] or verdict.reason)}
                )
    print(f"Claims in the state error, by cause (one may have several): {dict(reasons.most_common()) or 'none'}.")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--base-url", required=True, help="of an OpenAI-compatible server, such as http://127.0.0.1:8080/v1"
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=Path, default=Path("examples/tied_pairs.jsonl"))
    parser.add_argument("--corpus", default="tied-pairs")
    parser.add_argument("--k", type=int, default=4, help="passages shown for a claim")
    parser.add_argument("--concurrency", type=int, default=2, help="calls at a time; what the server can do at once")
    parser.add_argument("--max-tokens", type=int, default=700, help="the longest reply")
    parser.add_argument(
        "--part", choices=("paragraph", "sentence"), default="", help="cut both texts to this part with the edit"
    )
    parser.add_argument("--ledger", type=Path, help="keep the replies here, so that a run can be taken up again")
    options = parser.parse_args()

    file = chosen(read_pairs(options.pairs), options.part)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(options.ledger or Path(folder) / "ledger.sqlite")
        settings = ModelSettings(
            base_url=options.base_url,
            model=options.model,
            max_tokens=options.max_tokens,
            concurrency=options.concurrency,
            timeout=600,
            deadline=1800,
        )
        watch = Watch(ModelClient(settings, ledger=ledger))
        stages = Stages(watch)
        plugins = Plugins()
        plugins.register(stages, "watched")
        common: dict[str, Any] = {"corpora": (options.corpus,), "k": options.k}
        model = FactChecker(
            plugins=plugins,
            decomposer="watched/atomic",
            query_writer="watched/neutral",
            judge="watched/judge",
            **common,
        )
        offline, seconds_offline = run(FactChecker(**common), file.pairs)
        with_model, seconds = run(model, file.pairs)
        stats = ledger.stats
        ledger.close()
    alone = {name: without_checkers(report, model.calibration) for name, report in with_model.items()}
    print(
        f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"model {options.model}; pairs {', '.join(pair.id for pair in file.pairs)}"
        f"{f', cut to the {options.part} of the edit' if options.part else ''}; corpus {options.corpus}, k = {options.k}\n"
    )
    show(
        [
            column("offline", file.pairs, offline, seconds_offline),
            column("model and checkers", file.pairs, with_model, seconds),
            column("model alone", file.pairs, alone, None),
        ]
    )
    show_errors(watch, stages, with_model, {"hits": stats.hits + stats.shared, "misses": stats.misses})


if __name__ == "__main__":
    main()
