"""The judge ``panel``: several judges look at the same claim and evidence, and a rule decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, field_validator

from factcheck.calling import call, reason_of
from factcheck.checked import check_gathered
from factcheck.errors import ConfigError, RunError, UserError
from factcheck.interfaces import Host
from factcheck.judge import check_judgement, failed_judgement
from factcheck.schema import Claim, Evidence, Finding, Judgement, Label, Model, Query, Quote, Retrieval, Stance, digest
from factcheck.together import together
from factcheck.verdicts import coverage, merge, objection, quoted
from factcheck_llm.gathering import Gathered

NAME = "panel"
Rule = Literal["majority", "unanimous", "any-contradiction"]


class PanelJudge:
    """Ask several judges at once and decide by a rule; who said what stands in the rationale.

    majority: the label that more than half of all judges give. unanimous: the label that all give. any-contradiction: as
    soon as one judge says contradicted so does the panel, else the majority. Where no label is decided, the claim has
    not enough evidence if every judge gave a label, and the judgement is an error if one failed. A failed judge has no
    vote, and still counts among all. ``signals["agreement"]`` is the share of all judges who gave the panel's label,
    ``signals["coverage"]`` the highest of theirs.
    """

    version = "1"

    class Settings(Model):
        """Name the judges and the rule; their own settings are in tables of their own names."""

        judges: tuple[str, ...] = Field(min_length=2, max_length=9)
        rule: Rule = "majority"

        @field_validator("judges")
        @classmethod
        def _distinct(cls, judges: tuple[str, ...]) -> tuple[str, ...]:
            if len(set(judges)) != len(judges):
                raise ValueError("a judge is named twice")
            if NAME in judges:
                raise ValueError("a panel cannot be its own judge")
            return judges

    def __init__(self, settings: Settings, *, judges: Mapping[str, Any] | None = None) -> None:
        self.settings = settings
        self._judges: dict[str, Any] = {name: judges[name] for name in settings.judges} if judges is not None else {}
        self._identity = ""

    def connect(self, host: Host) -> None:
        """Take the judges from the host; raises what making one of them raises."""
        if not self._judges:
            found = {name: host.judge(name) for name in self.settings.judges}
            self._judges = {name: judge for name, (judge, _) in found.items()}
            self._identity = digest([fingerprint.model_dump(mode="json") for _, fingerprint in found.values()])

    @property
    def prompt_sha256(self) -> str:
        """Return the hash of the fingerprints of all judges, so that a change in one of them is a change of the panel."""
        return self._identity

    @property
    def model(self) -> str:
        """Return the models of the judges that have one, in order, separated by commas."""
        models = (getattr(judge, "model", "") for judge in self._judges.values())
        return ", ".join(dict.fromkeys(model for model in models if isinstance(model, str) and model))

    async def gather(self, claim: Claim, evidence: Evidence, queries: Sequence[Query] = ()) -> Gathered:
        """Let each judge that searches for itself add to the evidence, one after the other; see ``safe``.

        One whose search fails leaves the evidence incomplete, so that silence becomes an error.
        """
        found = Gathered((), (), evidence)
        for name, judge in self._judges.items():
            if hasattr(judge, "gather"):
                found = found.joined(await self._more(name, claim, found, queries))
        return found

    async def _more(self, name: str, claim: Claim, found: Gathered, queries: Sequence[Query]) -> Gathered:
        asked = (*queries, *found.queries)
        try:
            more = await call(self._judges[name].gather, claim, found.evidence, asked)
            more = Gathered(tuple(more.queries), tuple(more.retrievals), more.evidence).numbered(len(found.queries))
            return _tupled(check_gathered(more, claim, found.evidence, asked, name))
        except (UserError, RunError):
            raise
        except Exception:  # as in _ask; the judge itself will say what is wrong, or judge by what there is
            return Gathered((), (), found.evidence.model_copy(update={"complete": False}))

    async def judge(self, claim: Claim, evidence: Evidence, findings: Sequence[Finding]) -> Judgement:
        """Return the panel's judgement; raises ConfigError if no host has lent the judges."""
        if not self._judges:
            raise ConfigError(
                f"judge '{NAME}' has no judges to ask.", hint="Run it through FactChecker or the command."
            )
        names = list(self._judges)
        judged = await together(names, lambda name: self._ask(name, claim, evidence, tuple(findings)))
        return combine(claim, dict(zip(names, judged, strict=True)), self.settings.rule, tuple(findings))

    async def _ask(self, name: str, claim: Claim, evidence: Evidence, findings: tuple[Finding, ...]) -> Judgement:
        try:
            found = await call(self._judges[name].judge, claim, evidence, findings)
            return _after_veto(check_judgement(found, claim, evidence, name, findings), evidence)
        except (UserError, RunError):
            raise
        except Exception as error:  # one judge may raise anything; it loses its vote, and the panel says so
            return failed_judgement(claim, reason_of(error), name, findings)


def _tupled(checked: tuple[list[Query], list[Retrieval], Evidence]) -> Gathered:
    return Gathered(tuple(checked[0]), tuple(checked[1]), checked[2])


def _after_veto(judgement: Judgement, evidence: Evidence) -> Judgement:
    """Return a judgement as it counts alone: a hard finding of a checker turns supported into contradicted before the vote."""
    against = objection(judgement.findings)
    if judgement.label is None or against is None or merge(judgement.label, judgement.stances) != "supported":
        return judgement
    kinds = {passage.id: "silent" for passage in evidence.passages}
    if against.passage_id is not None:
        kinds[against.passage_id] = "contradicts"
    stances = tuple(Stance.model_validate({"passage_id": name, "stance": kind}) for name, kind in kinds.items())
    return judgement.model_copy(
        update={"label": "contradicted", "stances": stances, "quotes": quoted(against, evidence)}
    )


def combine(claim: Claim, given: Mapping[str, Judgement], rule: Rule, findings: tuple[Finding, ...] = ()) -> Judgement:
    """Return the judgement of a panel from those of its judges; pure, and ordered by the judges."""
    label = _decide([judgement.label for judgement in given.values()], rule)
    own = tuple(dict.fromkeys(f for judgement in given.values() for f in judgement.findings if f not in findings))
    everything = (*findings, *own)
    if label is None:
        broken = "; ".join(f"{name}: {item.reason}" for name, item in given.items() if item.label is None)
        reason = f"the panel could not decide without every judge: {broken}"[:500]
        return failed_judgement(claim, reason, NAME, everything)
    winners = [judgement for judgement in given.values() if judgement.label == label]
    stances, quotes = _merged(winners)
    return Judgement(
        claim_id=claim.id,
        label=label,
        stances=stances,
        quotes=quotes,
        findings=everything,
        signals={
            "agreement": round(len(winners) / len(given), 4),
            "coverage": max(coverage(judgement) for judgement in given.values()),
        },
        rationale=_rationale(given, label, rule),
        judge=NAME,
    )


def _decide(labels: Sequence[Label | None], rule: Rule) -> Label | None:
    """Return the panel's label, None if a judge that failed may have decided it."""
    votes = Counter(label for label in labels if label is not None)
    failed = len(labels) - votes.total()
    if rule == "any-contradiction" and votes["contradicted"]:
        return "contradicted"
    top = max(votes, key=lambda label: votes[label], default=None)
    needed = len(labels) if rule == "unanimous" else len(labels) // 2 + 1
    if top is not None and votes[top] >= needed and not (failed and rule == "any-contradiction"):
        return top
    return None if failed else "not_enough_evidence"


def _merged(winners: Sequence[Judgement]) -> tuple[tuple[Stance, ...], tuple[Quote, ...]]:
    """Merge stances and quotes of the judges that gave the panel's label; of two on one passage the one that speaks wins."""
    stances: dict[str, Stance] = {}
    quotes: list[Quote] = []
    for judgement in winners:
        for stance in judgement.stances:
            known = stances.get(stance.passage_id)
            if known is None or (known.stance == "silent" and stance.stance != "silent"):
                stances[stance.passage_id] = stance
    for judgement in winners:
        kinds = {stance.passage_id: stance.stance for stance in judgement.stances}
        for quote in judgement.quotes:
            kind = kinds.get(quote.passage_id)
            if kind is not None and kind == stances[quote.passage_id].stance and quote not in quotes:
                quotes.append(quote)
    return tuple(stances.values()), tuple(quotes)


def _rationale(given: Mapping[str, Judgement], label: Label, rule: Rule) -> str:
    said: dict[str, list[str]] = {}
    for name, judgement in given.items():
        said.setdefault(judgement.label or f"failed ({judgement.reason})", []).append(name)
    listed = "; ".join(f"{what.replace('_', ' ')}: {', '.join(names)}" for what, names in said.items())
    why = next((item.rationale for item in given.values() if item.label == label and item.rationale), "")
    verb = "agree" if len(said) == 1 else "disagree"
    return f"{len(given)} judges {verb} ({rule}): {listed}." + (f" {why}" if why else "")
