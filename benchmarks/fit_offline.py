"""Fit the offline judge's parameters on development pairs, and say how far they carry over by leaving pairs out.

usage: python benchmarks/fit_offline.py PAIRS.jsonl CORPUS [--other CORPUS …] [--write]

CORPUS holds the evidence of the pairs. Other corpora know the pairs only by chance: they teach what it looks like when nothing
is about a claim.

Alignment weights are fitted on the correct answers alone: the mention that agrees with a true claim is the one to compare it
with. The calibration is fitted on all claims of the correct answers against the claims that hold the injected error, at even
odds. --write replaces factcheck/data/alignment.v1.json and calibration.v1.json. Needs the extra `local`.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import numpy as np
from factcheck_offline.judge import EvidenceJudge

from factcheck.checkers.align import Candidate, Slot, Surroundings
from factcheck.checkers.assertion import AssertionChecker, assertion_candidates, polarity_of
from factcheck.checkers.certainty import CertaintyChecker
from factcheck.checkers.citations import CitationChecker
from factcheck.checkers.dosing import DosingChecker
from factcheck.checkers.reading import read
from factcheck.checkers.thresholds import ThresholdChecker
from factcheck.checkers.triage import TriageChecker, main_urgency, urgency_candidates
from factcheck.checkers.values import comparable_values, value_candidates
from factcheck.pipeline import FactChecker
from factcheck.schema import Answer, AnswerReport, Claim, Evidence
from factcheck.study.edits import matched_claims, meets_error
from factcheck.study.pairs import Pair, read_pairs

FEATURES: dict[Slot, tuple[str, ...]] = {
    "value": ("near", "nearq", "own", "ownctx", "topic", "pop", "drug", "bound", "unit"),
    "assertion": ("near", "clause", "own", "ownctx", "topic", "fit", "case"),
    "urgency": ("near", "nearq", "own", "ownctx", "topic", "pop", "case"),
}
SIGNALS = ("value", "assertion", "urgency", "certainty", "scope", "diagnosis", "citation", "support")
# Chosen on the same pairs, left out by turns; a head start for "may be used" over "contraindicated" would be unsafe.
AGREEMENT_START: dict[Slot, float] = {"value": 2.0, "assertion": 0.25, "urgency": 2.5}
RIDGE = {"alignment": 0.005, "calibration": 0.1}
FOLDS = 11
DATA = Path(__file__).parents[1] / "factcheck" / "data"


class Mention(NamedTuple):
    """Hold one mention of a true claim with its candidates; ``decisive`` if the evidence was written for the claim's pair."""

    slot: Slot
    pair: str
    features: np.ndarray
    agrees: np.ndarray
    decisive: bool


class Sample(NamedTuple):
    """Hold one claim: its pair, whether it holds the error, whether it is matched, its evidence and whether that decides."""

    pair: str
    wrong: bool
    matched: bool
    claim: Claim
    evidence: Evidence
    decisive: bool


def mentions(sample: Sample) -> Iterator[Mention]:
    """Yield the mentions of a claim that the evidence can be compared with."""
    reading = read(sample.claim, sample.evidence)
    surroundings = Surroundings(sample.claim, reading)
    found: list[tuple[Slot, list[Candidate]]] = [
        ("value", list(value_candidates(surroundings, value))) for value in comparable_values(sample.claim, reading)
    ]
    for clause in reading.claim.clauses:
        stand = polarity_of(clause.text)
        if stand is not None:
            found.append(("assertion", list(assertion_candidates(surroundings, clause, stand))))
    urgency = main_urgency(sample.claim.text)
    if urgency:
        case = Surroundings(sample.claim, reading, of_case=not urgency[0].conditional)
        found.append(("urgency", list(urgency_candidates(case, urgency))))
    for slot, candidates in found:
        usable = [c for c in candidates if c.relation != "unseen"]
        if usable:
            rows = [[c.features[name] for name in FEATURES[slot]] for c in usable]
            agrees = np.array([c.relation == "agrees" for c in usable])
            yield Mention(slot, sample.pair, np.array(rows), agrees, sample.decisive)


def fit_alignment(items: Sequence[Mention], slot: Slot) -> dict[str, float]:
    """Fit the weights of one slot.

    A mention of a true claim agrees with what it is compared with, or nothing is about it: whatever the corpus, no candidate
    that differs may win. With evidence that decides, an altered mention must not pass for absent.
    """
    names = FEATURES[slot]
    rows = np.concatenate([item.features for item in items])
    sizes = np.array([len(item.features) for item in items])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    owner = np.repeat(np.arange(len(items)), sizes)
    agrees = np.concatenate([item.agrees for item in items])
    altered = np.ones(len(rows), bool) if slot == "value" else agrees
    usable = np.array([item.decisive and bool(item.agrees.any()) for item in items])

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = rows @ w[:-1]
        top = np.maximum(np.maximum.reduceat(scores, starts), w[-1])
        powers, nothing = np.exp(scores - top[owner]), np.exp(w[-1] - top)
        total = np.add.reduceat(powers, starts) + nothing
        p, none = powers / total[owner], nothing / total
        value, slope = 0.0, np.zeros_like(w)
        for mask, with_none, weight in ((agrees, 1.0, np.ones(len(items))), (altered, 0.0, usable.astype(float))):
            share = np.add.reduceat(p * mask, starts) + with_none * none + 1e-12
            value -= float(weight @ np.log(share))
            pull = weight[owner] * (p * mask / share[owner] - p)
            slope[:-1] -= pull @ rows
            slope[-1] -= float(weight @ (with_none * none / share - none))
        ridge = np.append(np.full(len(names), RIDGE["alignment"] * len(items)), 0.0)
        return value + float(ridge @ (w * w)), slope + 2 * ridge * w

    start = np.append(np.ones(len(names)), 3.0)
    low = np.append(np.zeros(len(names)), -5.0)
    weights = descend(loss, start, low)
    return {
        **dict(zip((*names, "none"), (round(float(x), 3) for x in weights), strict=True)),
        "agrees": AGREEMENT_START[slot],
    }


def descend(loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Minimise by projected gradient steps whose length adapts; deterministic, stops when nothing moves."""
    w, step = start.copy(), 0.05
    value, slope = loss(w)
    for _ in range(600):
        trial = np.maximum(w - step * slope, low)
        new, gradient = loss(trial)
        if new < value:
            moved = float(np.abs(trial - w).max())
            w, value, slope, step = trial, new, gradient, step * 1.5
            if moved < 1e-4:
                break
        else:
            step /= 3
            if step < 1e-9:
                break
    return w


def fit_calibration(rows: np.ndarray, wrong: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit a logistic model whose findings can only raise the risk and whose support can only lower it."""
    sign = np.array([-1.0 if name == "support" else 1.0 for name in SIGNALS])
    signed = rows * sign

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = signed @ w[:-1] + w[-1]
        p = 1 / (1 + np.exp(-z))
        value = -(weights * np.where(wrong, np.log(p + 1e-12), np.log(1 - p + 1e-12))).sum()
        pull = weights * (p - wrong)
        ridge = RIDGE["calibration"]
        return value + ridge / 2 * float(w[:-1] @ w[:-1]), np.append(signed.T @ pull + ridge * w[:-1], pull.sum())

    w = descend(loss, np.zeros(len(SIGNALS) + 1), np.append(np.zeros(len(SIGNALS)), -10.0))
    return w[:-1] * sign, float(w[-1])


async def collect(pairs: Sequence[Pair], checker: FactChecker, *, decisive: bool) -> list[Sample]:
    """Run decomposition and retrieval on both texts of every pair; of the injected text keep what holds the error."""
    samples = []
    for pair in pairs:
        original = await checker.acheck(Answer(id=f"{pair.id}/o", question=pair.question, text=pair.original))
        injected = await checker.acheck(Answer(id=f"{pair.id}/i", question=pair.question, text=pair.injected))
        matched = matched_claims(pair.original, original.claims, [edit.original for edit in pair.edits])
        edited = {c.id for c in injected.claims if any(meets_error(c, span) for span in pair.error_spans)}
        samples += _samples(pair, original, wrong=False, chosen=matched, decisive=decisive)
        if decisive:
            samples += [s for s in _samples(pair, injected, wrong=True, chosen=edited, decisive=True) if s.matched]
    return samples


def _samples(pair: Pair, report: AnswerReport, *, wrong: bool, chosen: set[str], decisive: bool) -> list[Sample]:
    return [
        Sample(pair.id, wrong, claim.id in chosen, claim, evidence, decisive)
        for claim, evidence in zip(report.claims, report.evidence, strict=True)
        if claim.checkable
    ]


def signals(samples: Sequence[Sample], table: Any) -> np.ndarray:
    """Return the signals of the evidence judge for each claim under the given alignment."""
    judge = EvidenceJudge()
    checkers = [kind(weights=table) for kind in (DosingChecker, ThresholdChecker, TriageChecker, AssertionChecker)]
    rows = []
    for sample in samples:
        findings = [
            found
            for checker in (*checkers, CertaintyChecker(), CitationChecker())
            for found in checker.check(sample.claim, sample.evidence)
        ]
        given = judge.judge(sample.claim, sample.evidence, findings).signals
        rows.append([given.get(name, 0.0) for name in SIGNALS])
    return np.array(rows)


def even_odds(samples: Sequence[Sample]) -> np.ndarray:
    """Weigh claims so that each pair counts once on either side and both sides weigh the same."""
    count: dict[tuple[str, bool], int] = defaultdict(int)
    for sample in samples:
        count[sample.pair, sample.wrong] += sample.decisive
    return np.array([1 / max(1, count[s.pair, s.wrong]) for s in samples])


def operating_point(samples: Sequence[Sample], risks: np.ndarray, rate: float) -> tuple[float, float, float]:
    """Return threshold, recovered share and paired AUROC at the given matched-claim false-positive rate."""
    pairs = sorted({s.pair for s in samples})
    top = {(pair, side): 0.0 for pair in pairs for side in (False, True)}
    for sample, risk in zip(samples, risks, strict=True):
        if sample.matched and sample.decisive:
            top[sample.pair, sample.wrong] = max(top[sample.pair, sample.wrong], float(risk))
    right = np.array([top[pair, False] for pair in pairs])
    wrong = np.array([top[pair, True] for pair in pairs])
    allowed = int(rate * len(pairs) + 1e-9)
    limit = float(np.sort(right)[::-1][allowed])
    # Of all thresholds that recover the same pairs the highest, which asks for something to have been found.
    threshold = float(min(wrong[wrong > limit], default=limit))
    auroc = float(((wrong > right) + 0.5 * (wrong == right)).mean())
    return threshold, float((wrong >= threshold).mean()), auroc


def main() -> None:
    """Fit, report, and write on request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("corpus")
    parser.add_argument("--other", action="append", default=[], metavar="CORPUS")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    pairs = read_pairs(args.pairs).pairs
    samples: list[Sample] = []
    for corpus in (args.corpus, *args.other):
        checker = FactChecker(corpora=(corpus,))
        samples += anyio.run(functools.partial(collect, pairs, checker, decisive=corpus == args.corpus))
    names = sorted({s.pair for s in samples})
    fold = {pair: i % FOLDS for i, pair in enumerate(names)}
    found = [list(mentions(s)) for s in samples if not s.wrong]
    slots: tuple[Slot, ...] = ("value", "assertion", "urgency")

    def alignment(keep: Callable[[str], bool]) -> dict[str, dict[str, float]]:
        items = [m for group in found for m in group if keep(m.pair)]
        return {slot: fit_alignment([m for m in items if m.slot == slot], slot) for slot in slots}

    def measured(table: dict[str, dict[str, float]]) -> np.ndarray:
        return signals(samples, table)

    wrong = np.array([s.wrong for s in samples])
    decisive = np.array([s.decisive for s in samples])
    weights = even_odds(samples)
    left_out = np.zeros(len(samples))
    for k in range(FOLDS):
        inside = decisive & np.array([fold[s.pair] != k for s in samples])
        rows = measured(alignment(lambda pair, k=k: fold[pair] != k))
        w, b = fit_calibration(rows[inside], wrong[inside], weights[inside])
        outside = np.array([fold[s.pair] == k for s in samples])
        left_out[outside] = rows[outside] @ w + b
    table = alignment(lambda pair: True)
    rows = measured(table)
    w, b = fit_calibration(rows[decisive], wrong[decisive], weights[decisive])
    print(f"{len(names)} pairs, {len(samples)} claims, {sum(len(g) for g in found)} mentions")
    for title, scores in (("fitted", rows @ w + b), (f"left out, {FOLDS} folds", left_out)):
        for rate in (0.05, 0.1, 0.2):
            threshold, recovered, auroc = operating_point(samples, 1 / (1 + np.exp(-scores)), rate)
            print(
                f"{title:22} at {rate:4.0%}: recovered {recovered:5.1%}  threshold {threshold:.3f}  AUROC {auroc:.3f}"
            )
    print(json.dumps({"slots": table}, indent=1))
    print({name: round(float(x), 3) for name, x in zip(SIGNALS, w, strict=True)}, round(b, 3))
    if args.write:
        digest = hashlib.sha256(args.pairs.read_bytes()).hexdigest()
        # Silence alone must flag nothing: the threshold stays above the risk of a claim of which nothing was found.
        silence = 1 / (1 + math.exp(-b))
        threshold = max(operating_point(samples, 1 / (1 + np.exp(-(rows @ w + b))), 0.1)[0], silence + 0.01)
        write(table, w, b, threshold, digest, len(samples), len(names))


def write(
    table: dict[str, Any], w: np.ndarray, b: float, threshold: float, digest: str, samples: int, pairs: int
) -> None:
    """Replace the shipped parameters."""
    today = datetime.date.today().isoformat()
    basis = f"{pairs} development pairs with their own evidence as corpus, {today}"
    header = {"fitted_on": basis, "data_sha256": digest}
    (DATA / "alignment.v1.json").write_text(json.dumps({**header, "slots": table}, indent=1) + "\n")
    body = {
        "name": "evidence.v1",
        "intercept": round(b, 3),
        "weights": {name: round(float(x), 3) for name, x in zip(SIGNALS, w, strict=True)},
        "labels": {"supported": 0.1, "contradicted": 0.9, "conflicting": 0.6, "not_enough_evidence": 0.5},
        "threshold": round(threshold, 2),
        **header,
        "samples": samples,
        "note": "Even odds; at most 10 % matched-claim false positives on these pairs, and above the risk of silence.",
    }
    (DATA / "calibration.v1.json").write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
