"""Checks of a decomposer.

Capabilities: ``deterministic`` (equal answers give equal claims), ``semantic`` (it reads the text; leave it out for a
decomposer whose model is scripted, then the checks of what it finds are skipped).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factcheck.schema import Answer, Claim
from factcheck.testing.harness import Bench, Check, CheckResult, require, run_checks
from factcheck.testing.samples import (
    CHAIN,
    CJK,
    INJECTED,
    INJECTED_MARKERS,
    MARKDOWN,
    MARKDOWN_MARKERS,
    NUMBERS,
    ODD_ANSWERS,
    PROSE,
    PROSE_MARKERS,
    REPEATED,
    WIDE,
    WIDE_MARKERS,
    make_answer,
)
from factcheck.testing.shared import MODEL_FAULTS, settings_checks, trouble, works_in_a_second_event_loop

DECOMPOSER_CAPABILITIES = ("deterministic", "semantic")
DECOMPOSER_FLOOR = 10
MEGABYTE = 1_000_000
# A sentence may hang on the one before it, and that one on its own heading or antecedent; not on all of the answer.
WINDOW = 4


@dataclass(kw_only=True)
class DecomposerBench(Bench):
    """Hold the decomposer under test."""

    known_capabilities: tuple[str, ...] = DECOMPOSER_CAPABILITIES
    known_faults: tuple[str, ...] = MODEL_FAULTS

    async def split(self, component: Any, text: str | Answer) -> list[Claim]:
        """Return the claims of an answer, after checking what must hold for every answer."""
        answer = make_answer(text) if isinstance(text, str) else text
        found = await self.call(component.decompose, answer)
        require(
            isinstance(found, Sequence) and not isinstance(found, (str, bytes)),
            f"it returned {type(found).__name__}, not a list of claims",
        )
        claims = list(found)
        for claim in claims:
            require(isinstance(claim, Claim), f"it returned a {type(claim).__name__} among its claims")
            require(claim.answer_id == answer.id, f"claim {claim.id!r} has the answer id {claim.answer_id!r}")
            require(claim.text.strip(), f"claim {claim.id!r} is blank")
            for name, (start, end) in (("span", claim.span), ("sentence span", claim.sentence_span)):
                inside = start < end <= len(answer.text)
                require(inside, f"the {name} {start, end} of claim {claim.id!r} is empty or outside the answer")
        ids = [claim.id for claim in claims]
        require(len(set(ids)) == len(ids), f"a claim id repeats: {ids[:20]}")
        return claims


def check_decomposer(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = DECOMPOSER_CAPABILITIES,
    make_faulty: Callable[[str], Any] | None = None,
    faults: Collection[str] = (),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    secrets: Sequence[str] = (),
    time_limit: float = 60.0,
    minimum: int = DECOMPOSER_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a decomposer and return the results.

    ``make()`` returns a fresh decomposer; see ``factcheck.testing.harness.Bench`` for the other arguments.
    """
    bench = DecomposerBench(
        make=make,
        capabilities=capabilities,
        make_faulty=make_faulty,
        faults=faults,
        factory=factory,
        settings=settings or {},
        secrets=secrets,
        time_limit=time_limit,
    )
    return run_checks(DECOMPOSER_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


async def returns_claims_of_the_answer(bench: DecomposerBench) -> None:
    """It returns claims with unique ids that belong to the answer and lie inside it."""
    component = bench.new()
    for text in (PROSE, MARKDOWN, CJK):
        await bench.split(component, make_answer(text, question="What should I take?", id="another"))


async def an_empty_answer_has_no_claims(bench: DecomposerBench) -> None:
    """An answer without a word gives no claims."""
    component = bench.new()
    for text in ("", " ", "\n\n\t", "\u00a0\u3000"):
        claims = await bench.split(component, text)
        require(not claims, f"the answer {text!r} gives {len(claims)} claims")


async def odd_answers_are_no_trouble(bench: DecomposerBench) -> None:
    """Surrogates, control characters, unclosed markup and the like give claims whose spans lie inside the answer."""
    component = bench.new()
    for name, text in ODD_ANSWERS.items():
        claims = await bench.split(component, text)
        if name in ("a lone surrogate", "no full stop", "right to left"):
            require(claims, f"an answer with {name} gives no claims: {text!r}")


async def a_megabyte_is_no_trouble(bench: DecomposerBench) -> None:
    """An answer of a megabyte gives claims in time, to its end."""
    text = (PROSE + "\n\n") * (MEGABYTE // (len(PROSE) + 2))
    claims = await bench.split(bench.new(), text)
    last = max((claim.sentence_span[1] for claim in claims), default=0)
    require(last > len(text) - len(PROSE), f"of {len(text)} characters, nothing after {last} is in a claim")


async def claims_follow_the_text(bench: DecomposerBench) -> None:
    """Claims come in the order of the text, and each lies in its sentence."""
    component = bench.new()
    for text in (PROSE, MARKDOWN, WIDE):
        claims = await bench.split(component, text)
        starts = [claim.sentence_span[0] for claim in claims]
        require(starts == sorted(starts), f"the claims are not in the order of the text: {starts}")
        for claim in claims:
            inside = claim.sentence_span[0] <= claim.span[0] and claim.span[1] <= claim.sentence_span[1]
            require(inside, f"span {claim.span} lies outside the sentence {claim.sentence_span}")


async def nothing_is_dropped(bench: DecomposerBench) -> None:
    """Every statement, question and courtesy of an answer lies in a claim, in prose and in markup."""
    component = bench.new()
    for text, markers in (
        (PROSE, PROSE_MARKERS),
        (MARKDOWN, MARKDOWN_MARKERS),
        (WIDE, WIDE_MARKERS),
        (INJECTED, INJECTED_MARKERS),
    ):
        claims = await bench.split(component, text)
        for marker in markers:
            start = text.index(marker)
            held = any(
                first <= start and start + len(marker) <= last
                for claim in claims
                for first, last in (claim.span, claim.sentence_span)
            )
            require(held, f"no claim covers {marker!r} of {text[:40]!r}…")
    require(len(await bench.split(component, CJK)) >= 2, "two sentences that end in 。 give fewer than two claims")


async def numbers_are_kept(bench: DecomposerBench) -> None:
    """Every number of the answer is in the text of a claim from that place, and no claim has a number of its own."""
    component = bench.new()
    for text in (PROSE, WIDE, NUMBERS):
        claims = await bench.split(component, text)
        for number in re.finditer(r"\d+(?:[.,]\d+)*", text):
            kept = any(
                number[0] in claim.text
                for claim in claims
                if claim.sentence_span[0] <= number.start() < claim.sentence_span[1]
            )
            require(kept, f"no claim keeps the number {number[0]} of {text[:40]!r}…")
        for claim in claims:
            source = text[slice(*claim.sentence_span)]
            for invented in set(re.findall(r"\d+(?:[.,]\d+)*", claim.text)) - set(
                re.findall(r"\d+(?:[.,]\d+)*", source)
            ):
                require(False, f"the claim {claim.text!r} has the number {invented}, its sentence {source!r} has not")


async def spans_point_at_the_claims_words(bench: DecomposerBench) -> None:
    """Most words of a claim are in the slice of the answer that it names, whatever the width of the signs before it."""
    component = bench.new()
    for text in (PROSE, MARKDOWN, WIDE, REPEATED):
        for claim in await bench.split(component, text):
            source = text[slice(*claim.sentence_span)].lower()
            words = re.findall(r"[a-z0-9]+", claim.text.lower())
            found = sum(word in source for word in words)
            require(
                2 * found >= len(words),
                f"the claim {claim.text!r} names the slice {source!r}, where few of its words are",
            )
            cut = [place for place in claim.span if 0 < place < len(text) and text[place - 1 : place + 1].isalnum()]
            require(not cut, f"the span of the claim {claim.text!r} cuts a word: {text[slice(*claim.span)]!r}")


async def repeated_sentences_are_separate(bench: DecomposerBench) -> None:
    """A sentence that stands three times gives three claims in three places."""
    claims = await bench.split(bench.new(), REPEATED)
    spans = {claim.sentence_span for claim in claims}
    require(
        len(claims) >= 3 and len(spans) == 3, f"three equal sentences give {len(claims)} claims in {len(spans)} places"
    )


async def a_distant_sentence_does_not_matter(bench: DecomposerBench) -> None:
    """A claim hangs on a bounded window, so that two answers share the claims far from where they differ."""
    component = bench.new()
    whole = await bench.split(component, " ".join(CHAIN))
    for place in (0, len(CHAIN) // 2, len(CHAIN) - 1):
        changed = list(CHAIN)
        changed[place] = "Quite another remark about the weather in the north stands here instead."
        keys = {claim.key for claim in await bench.split(component, " ".join(changed))}
        for claim in whole:
            number = next((i for i, sentence in enumerate(CHAIN) if sentence.split()[0] in claim.text), place)
            if abs(number - place) > WINDOW:
                require(
                    claim.key in keys, f"a change in sentence {place + 1} changes the claim of sentence {number + 1}"
                )


async def repeats_itself(bench: DecomposerBench) -> None:
    """The same answer gives the same claims, again and in a fresh instance."""
    component = bench.new()
    first = await bench.split(component, MARKDOWN)
    await bench.split(component, PROSE)
    require(await bench.split(component, MARKDOWN) == first, "the second result differs from the first")
    require(await bench.split(bench.new(), MARKDOWN) == first, "two instances differ")


async def splits_many_at_once(bench: DecomposerBench) -> None:
    """Answers at the same time get the claims that they get alone."""
    component = bench.new()
    answers = [make_answer(text, id=f"a{i}") for i, text in enumerate([PROSE, MARKDOWN, WIDE, REPEATED, CJK] * 4)]
    alone = [await bench.split(component, answer) for answer in answers]
    together = await bench.call_together(component.decompose, [(answer,) for answer in answers])
    wrong = [i for i, (one, other) in enumerate(zip(alone, together, strict=True)) if one != list(other)]
    require(not wrong, f"asked together with others, {len(wrong)} of {len(answers)} answers differ")


def _on_fault(fault: str) -> Callable[[DecomposerBench], Awaitable[None]]:
    async def check(bench: DecomposerBench) -> None:
        error, found = await trouble(bench, fault, lambda component: bench.split(component, PROSE))
        require(
            error is not None,
            f"its model fails ({fault}), and it returned {len(found or ())} claims as if that were all",
        )

    check.__name__ = f"reports_{fault}"
    check.__doc__ = f"It reports the fault '{fault}' of its model by raising a StageError."
    return check


DECOMPOSER_CHECKS = (
    Check(returns_claims_of_the_answer),
    Check(an_empty_answer_has_no_claims),
    Check(works_in_a_second_event_loop("decompose", make_answer(PROSE))),
    Check(odd_answers_are_no_trouble, ("semantic",)),
    Check(a_megabyte_is_no_trouble, ("semantic",)),
    Check(claims_follow_the_text, ("semantic",)),
    Check(nothing_is_dropped, ("semantic",)),
    Check(numbers_are_kept, ("semantic",)),
    Check(spans_point_at_the_claims_words, ("semantic",)),
    Check(repeated_sentences_are_separate, ("semantic",)),
    Check(a_distant_sentence_does_not_matter, ("semantic",)),
    Check(repeats_itself, ("deterministic",)),
    Check(splits_many_at_once, ("deterministic",)),
    *(Check(_on_fault(fault), (f"fault {fault}",)) for fault in MODEL_FAULTS),
    *settings_checks("decomposer"),
)
