"""Checks of a judge.

Capabilities: ``deterministic`` (equal calls give equal labels), ``semantic`` (it reads the texts; leave it out for a
judge whose model is scripted, then the checks of sense are skipped).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factcheck.errors import PluginContractError
from factcheck.judge import check_judgement
from factcheck.schema import Claim, Evidence, Finding, Judgement
from factcheck.testing.harness import Bench, Check, CheckFailed, CheckResult, require, run_checks
from factcheck.testing.samples import (
    CLAIM,
    FOREIGN,
    INFLATED_CLAIM,
    INJECTIONS,
    NEGATED_CLAIM,
    NEGATING_TEXT,
    UNRELATED,
    WIDE,
    make_claim,
    make_evidence,
)
from factcheck.testing.shared import MODEL_FAULTS, settings_checks, trouble, works_in_a_second_event_loop
from factcheck.verdicts import veto

JUDGE_CAPABILITIES = ("deterministic", "semantic")
JUDGE_FLOOR = 15
SUPPORTING = f"{CLAIM} Doses are at least four hours apart."


@dataclass(kw_only=True)
class JudgeBench(Bench):
    """Hold the judge under test; ``checkers`` give it their findings, and may veto ``supported``, as in a run."""

    checkers: Sequence[Any] = ()
    known_capabilities: tuple[str, ...] = JUDGE_CAPABILITIES
    known_faults: tuple[str, ...] = MODEL_FAULTS

    async def judge(self, component: Any, claim: Claim, evidence: Evidence) -> Judgement:
        """Return the judgement, after the examination that the host makes in every run."""
        findings = await self.findings(claim, evidence)
        found = await self.call(component.judge, claim, evidence, findings)
        try:
            check_judgement(found, claim, evidence, "candidate", findings)
        except PluginContractError as exc:
            raise CheckFailed(str(exc)) from exc
        judgement: Judgement = found
        return judgement

    async def label(self, component: Any, claim: str, *texts: str, complete: bool = True) -> str:
        """Return the label for a claim and the texts of its evidence, ``error`` for a judgement that failed."""
        subject, evidence = make_claim(claim), make_evidence(*texts, complete=complete)
        found = await self.judge(component, subject, evidence)
        if found.label is None:
            return "error"
        return veto(found.label, (*await self.findings(subject, evidence), *found.findings))

    async def findings(self, claim: Claim, evidence: Evidence) -> tuple[Finding, ...]:
        """Return what the checkers find."""
        return tuple([item for checker in self.checkers for item in await self.call(checker.check, claim, evidence)])


def check_judge(
    make: Callable[..., Any],
    *,
    capabilities: Collection[str] = JUDGE_CAPABILITIES,
    checkers: Sequence[Any] = (),
    make_faulty: Callable[[str], Any] | None = None,
    faults: Collection[str] = (),
    factory: Any = None,
    settings: Mapping[str, Any] | None = None,
    secrets: Sequence[str] = (),
    time_limit: float = 30.0,
    minimum: int = JUDGE_FLOOR,
    expected_failures: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """Run every check on a judge and return the results.

    ``make()`` returns a fresh judge. ``checkers`` are those whose findings it is made for: it is given them, and they
    may veto its ``supported``, as in a run. See ``factcheck.testing.harness.Bench`` for the other arguments.
    """
    bench = JudgeBench(
        make=make,
        capabilities=capabilities,
        checkers=checkers,
        make_faulty=make_faulty,
        faults=faults,
        factory=factory,
        settings=settings or {},
        secrets=secrets,
        time_limit=time_limit,
    )
    return run_checks(JUDGE_CHECKS, bench, minimum=minimum, expected_failures=expected_failures or {})


async def returns_an_acceptable_judgement(bench: JudgeBench) -> None:
    """It returns a Judgement of the claim that it was given, with stances and quotes from the passages shown."""
    component = bench.new()
    for claim, texts in ((CLAIM, (SUPPORTING, *UNRELATED)), (INFLATED_CLAIM, (SUPPORTING,)), (CLAIM, UNRELATED)):
        evidence = make_evidence(*texts, claim_id="another")
        await bench.judge(component, make_claim(claim, id="another"), evidence)


async def a_label_has_its_stance(bench: JudgeBench) -> None:
    """``supported`` comes with a passage that supports, ``contradicted`` with one that contradicts."""
    component = bench.new()
    for claim in (CLAIM, INFLATED_CLAIM):
        found = await bench.judge(component, make_claim(claim), make_evidence(SUPPORTING, *UNRELATED))
        ids = [stance.passage_id for stance in found.stances]
        require(len(set(ids)) == len(ids), f"it takes two stances on one passage: {ids}")
        wanted = {"supported": "supports", "contradicted": "contradicts"}.get(found.label or "")
        kinds = {stance.stance for stance in found.stances}
        require(wanted is None or wanted in kinds, f"it says {found.label}, and no passage has the stance '{wanted}'")


async def no_evidence_means_no_label(bench: JudgeBench) -> None:
    """Without passages a claim is not supported and not contradicted."""
    component = bench.new()
    for claim in (CLAIM, NEGATED_CLAIM, INJECTIONS[0]):
        label = await bench.label(component, claim)
        require(label in ("not_enough_evidence", "error"), f"without evidence it says {label}")


async def a_failed_retrieval_means_no_label(bench: JudgeBench) -> None:
    """Where the retrieval failed and brought nothing, a claim is not supported and not contradicted."""
    label = await bench.label(bench.new(), CLAIM, complete=False)
    require(label in ("not_enough_evidence", "error"), f"after a failed retrieval it says {label}")


async def blank_passages_mean_no_label(bench: JudgeBench) -> None:
    """Passages without a word neither support nor contradict."""
    label = await bench.label(bench.new(), CLAIM, " ", "\n\n", "…")
    require(label in ("not_enough_evidence", "error"), f"on blank passages it says {label}")


async def a_hundred_passages_are_no_trouble(bench: JudgeBench) -> None:
    """It judges against a hundred passages, and says supported only if one of them may support."""
    component = bench.new()
    texts = [f"{UNRELATED[i % len(UNRELATED)]} This is note {i}." for i in range(100)]
    label = await bench.label(component, CLAIM, *texts)
    require(label != "supported", "a hundred passages on other matters support the claim")
    texts[56] = SUPPORTING
    await bench.label(component, CLAIM, *texts)


async def long_passages_are_no_trouble(bench: JudgeBench) -> None:
    """It judges against a passage of 200,000 characters."""
    text = f"{' '.join(UNRELATED)} " * 1200 + SUPPORTING
    await bench.label(bench.new(), CLAIM, text[-200_000:], UNRELATED[0])


async def offsets_count_code_points(bench: JudgeBench) -> None:
    """Quotes are exact where bytes, UTF-16 units and code points differ."""
    component = bench.new()
    wide = "🙂" * 7 + f" {WIDE} 👩‍⚕️ e\u0301 {SUPPORTING} ﬁnis 𝒳𝒳"
    for claim in (CLAIM, INFLATED_CLAIM):
        await bench.label(component, claim, wide, *UNRELATED)


async def other_languages_are_no_trouble(bench: JudgeBench) -> None:
    """Passages in other languages about other matters do not support the claim."""
    component = bench.new()
    for text in FOREIGN:
        label = await bench.label(component, CLAIM, text)
        require(label != "supported", f"a passage about sun protection in another language supports the claim: {text}")


async def odd_claims_are_no_trouble(bench: JudgeBench) -> None:
    """Odd text in a claim gives an acceptable judgement."""
    component = bench.new()
    for text in ("x", "?!", "\u202e5 mg\u202c", "5\u00a0mg <b>&amp;</b>", "word " * 3000):
        await bench.label(component, text, SUPPORTING, *UNRELATED)


async def hostile_passages_change_nothing(bench: JudgeBench) -> None:
    """An instruction inside a passage is data: it does not make an unrelated passage support the claim."""
    component = bench.new()
    for text in INJECTIONS:
        for hostile in (text, f"{UNRELATED[0]} {text}", f"{text} {CLAIM[:12]}"):
            label = await bench.label(component, CLAIM, UNRELATED[1], hostile, UNRELATED[2])
            require(label != "supported", f"a passage that holds {text!r} makes it say supported")


async def hostile_claims_change_nothing(bench: JudgeBench) -> None:
    """An instruction inside the claim is data: it does not make unrelated evidence support it."""
    component = bench.new()
    for text in INJECTIONS:
        label = await bench.label(component, f"{INFLATED_CLAIM} {text}", *UNRELATED)
        require(label != "supported", f"a claim that holds {text!r} makes it say supported")


async def unrelated_passages_do_not_support(bench: JudgeBench) -> None:
    """Passages on other matters do not support a claim, nor contradict it."""
    label = await bench.label(bench.new(), CLAIM, *UNRELATED)
    require(label in ("not_enough_evidence", "error"), f"passages on other matters make it say {label}")


async def a_passage_that_repeats_the_claim_supports_it(bench: JudgeBench) -> None:
    """A claim that a passage states word for word is supported, wherever the passage stands."""
    component = bench.new()
    for texts in ((SUPPORTING,), (*UNRELATED, SUPPORTING, *UNRELATED)):
        label = await bench.label(component, CLAIM, *texts)
        require(label == "supported", f"a passage states the claim word for word, and it says {label}")


async def a_tenfold_value_is_not_supported(bench: JudgeBench) -> None:
    """A claim of ten times the amount that the passage gives is not supported."""
    label = await bench.label(bench.new(), INFLATED_CLAIM, SUPPORTING)
    require(label != "supported", "the passage says 4 g, the claim 40 g, and it says supported")


async def a_negated_passage_does_not_support(bench: JudgeBench) -> None:
    """A claim is not supported by the passage that says the opposite."""
    label = await bench.label(bench.new(), NEGATED_CLAIM, NEGATING_TEXT)
    require(label != "supported", "the passage says 'should not', the claim 'should', and it says supported")


async def repeats_its_label(bench: JudgeBench) -> None:
    """The same question gives the same judgement, again and in a fresh instance."""
    component = bench.new()
    claim, evidence = make_claim(CLAIM), make_evidence(*UNRELATED, SUPPORTING)
    first = await bench.judge(component, claim, evidence)
    await bench.label(component, NEGATED_CLAIM, NEGATING_TEXT)
    require(await bench.judge(component, claim, evidence) == first, "the second judgement differs from the first")
    require(await bench.judge(bench.new(), claim, evidence) == first, "two instances differ")


async def the_order_of_passages_does_not_matter(bench: JudgeBench) -> None:
    """The label is the same for every order of the passages."""
    component = bench.new()
    for claim in (CLAIM, INFLATED_CLAIM):
        texts = [SUPPORTING, *UNRELATED]
        labels = {await bench.label(component, claim, *texts[i:], *texts[:i]) for i in range(len(texts))}
        require(len(labels) == 1, f"the order of the passages changes the label: {sorted(labels)}")


async def judges_many_at_once(bench: JudgeBench) -> None:
    """Claims at the same time get the labels that they get alone."""
    component = bench.new()
    cases = [
        (CLAIM, SUPPORTING),
        (INFLATED_CLAIM, SUPPORTING),
        (NEGATED_CLAIM, NEGATING_TEXT),
        (CLAIM, UNRELATED[0]),
    ] * 4
    pairs = [(make_claim(c, id=f"c{i}"), make_evidence(t, claim_id=f"c{i}")) for i, (c, t) in enumerate(cases)]
    alone = [await bench.judge(component, *pair) for pair in pairs]
    arguments = [(*pair, await bench.findings(*pair)) for pair in pairs]
    together = await bench.call_together(component.judge, arguments)
    wrong = [i for i, (one, other) in enumerate(zip(alone, together, strict=True)) if one != other]
    require(not wrong, f"asked together with others, {len(wrong)} of {len(cases)} judgements differ")


def _on_fault(fault: str) -> Callable[[JudgeBench], Awaitable[None]]:
    async def check(bench: JudgeBench) -> None:
        async def use(component: Any) -> Judgement:
            return await bench.judge(component, make_claim(CLAIM), make_evidence(SUPPORTING, *UNRELATED))

        error, found = await trouble(bench, fault, use)
        require(
            error is not None or found.label is None,
            f"its model fails ({fault}), and it says {getattr(found, 'label', None)} as if it had judged",
        )
        leaked = [secret for secret in bench.secrets if found is not None and secret in found.model_dump_json()]
        require(not leaked, f"the judgement on the fault '{fault}' shows a secret")

    check.__name__ = f"reports_{fault}"
    check.__doc__ = f"It reports the fault '{fault}' of its model: it raises, or returns a judgement with status error."
    return check


JUDGE_CHECKS = (
    Check(returns_an_acceptable_judgement),
    Check(a_label_has_its_stance),
    Check(no_evidence_means_no_label),
    Check(a_failed_retrieval_means_no_label),
    Check(long_passages_are_no_trouble),
    Check(offsets_count_code_points),
    Check(odd_claims_are_no_trouble),
    Check(works_in_a_second_event_loop("judge", make_claim(CLAIM), make_evidence(SUPPORTING), ())),
    Check(blank_passages_mean_no_label, ("semantic",)),
    Check(a_hundred_passages_are_no_trouble, ("semantic",)),
    Check(other_languages_are_no_trouble, ("semantic",)),
    Check(hostile_passages_change_nothing, ("semantic",)),
    Check(hostile_claims_change_nothing, ("semantic",)),
    Check(unrelated_passages_do_not_support, ("semantic",)),
    Check(a_passage_that_repeats_the_claim_supports_it, ("semantic",)),
    Check(a_tenfold_value_is_not_supported, ("semantic",)),
    Check(a_negated_passage_does_not_support, ("semantic",)),
    Check(repeats_its_label, ("deterministic",)),
    Check(the_order_of_passages_does_not_matter, ("deterministic",)),
    Check(judges_many_at_once, ("deterministic",)),
    *(Check(_on_fault(fault), (f"fault {fault}",)) for fault in MODEL_FAULTS),
    *settings_checks("judge"),
)
