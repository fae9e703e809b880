"""Run a sample of the work and scale it up to the whole."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial

from factcheck.estimate.rehearsal import CLAIMS_A_SENTENCE, Rehearsal, Work
from factcheck.estimate.report import Estimate, Seen, make_estimate
from factcheck.schema import Answer, AnswerReport
from factcheck.study.controls import ControlName, run_control
from factcheck.study.measure import PairRecord, record_pair
from factcheck.study.pairs import Pair
from factcheck.text.sentences import split_sentences


async def estimate_check(rehearsal: Rehearsal, answer: Answer) -> Estimate:
    """Return the estimate for the check of one answer, all of which is the sample."""
    report, used = await rehearsal.reckon(partial(rehearsal.acheck, answer))
    return make_estimate(rehearsal, Seen(used, [report], "answer", 1, 1, 1.0))


async def estimate_study(rehearsal: Rehearsal, pairs: Sequence[Pair], tied: Sequence[Pair], wanted: int) -> Estimate:
    """Return the estimate for a study of ``pairs``, from ``wanted`` of them; the controls are those of the ``tied`` ones."""
    taken = sample_of(pairs, wanted, rehearsal.wanted.seed)
    work = Work()
    reports: list[AnswerReport] = []
    kept: list[tuple[PairRecord, bool]] = []
    for pair in taken:
        both: list[AnswerReport] = []
        splits = False
        for side, text in (("original", pair.original), ("injected", pair.injected)):
            answer = Answer(id=f"{pair.id}/{side}", question=pair.question, text=text)
            report, used = await rehearsal.reckon(partial(rehearsal.acheck, answer))
            both.append(report)
            work, splits = work.plus(used), splits or used.splits
        reports += both
        record = record_pair(pair, both[0], both[1], rehearsal.policy)
        if record.exhibits:
            kept.append((record, splits))
    whole = distinct_text(taken)
    scale = distinct_text(pairs) / whole if whole else len(pairs) / max(1, len(taken))
    controls = await _controls(rehearsal, kept, shuffled=len({pair.cluster for pair in tied}) > 1)
    work = work.times(scale).plus(controls.times(len(tied) / max(1, len(taken))))
    return make_estimate(rehearsal, Seen(work, reports, "pair", len(taken), len(pairs), scale))


async def _controls(rehearsal: Rehearsal, kept: Sequence[tuple[PairRecord, bool]], *, shuffled: bool) -> Work:
    """Return the work for the controls of these pairs; here a pair lends its evidence to the one before it."""
    names: tuple[ControlName, ...] = ("no_evidence", "shuffled_evidence") if shuffled else ("no_evidence",)
    work = Work()
    for index, (record, splits) in enumerate(kept):
        for name in names:
            donor = kept[(index + 1) % len(kept)][0] if name == "shuffled_evidence" else None
            control = partial(run_control, rehearsal, record, name, rehearsal.policy, donor=donor)
            _, used = await rehearsal.reckon(control)
            work = work.plus(used.with_claims(CLAIMS_A_SENTENCE) if splits else used)
    return work


def sample_of(pairs: Sequence[Pair], wanted: int, seed: int) -> list[Pair]:
    """Return ``wanted`` of the pairs, or all there are, drawn with the seed and in their order."""
    places = random.Random(seed).sample(range(len(pairs)), min(wanted, len(pairs)))
    return [pairs[place] for place in sorted(places)]


def distinct_text(pairs: Iterable[Pair]) -> int:
    """Return the code points of all sentences, each counted once under its question: equal ones are checked once."""
    found = {
        (pair.question, text[start:end])
        for pair in pairs
        for text in (pair.original, pair.injected)
        for start, end in split_sentences(text)
    }
    return sum(len(sentence) for _, sentence in found)
