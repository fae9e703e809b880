"""Compare what a claim says to do or not to do with what the evidence says of the same drug, test or measure.

The polarity of a clause is for (use, safe, recommended), against (avoid, contraindicated, not recommended) or open. Where the
table of cues sees nothing, a clause is against a drug or measure that it negates ("no indication for antibiotics").
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from factcheck.checkers.align import AlignmentChecker, Candidate, Surroundings, Weights, align, findings_of
from factcheck.checkers.cues import any_of
from factcheck.checkers.drugs import find_drugs
from factcheck.checkers.negation import Backend, Choice, choose, described, negated
from factcheck.checkers.reading import Clause, drug_names, read
from factcheck.schema import Claim, Evidence, Finding, Relation

Polarity = Literal["for", "against"]

# A cough may take weeks.
_A_WHILE = (
    r" (?:place|part|time|longer|care)\b| (?:about |around |up to |at least |roughly )?"
    r"(?:(?:\d[\d.–-]*|an?|few|several|some|many|another|one|two|three|four|five|six|eight|ten|twelve|to|or|couple|of) ){1,5}"
    r"(?:seconds|minutes|hours|days|weeks|months|years)\b"
)
_ACT = (
    r"(?:us(?:e|ed|ing)|tak(?:en|ing)|take(?!"
    + _A_WHILE
    + r")|giv(?:e|en|ing)|combin(?:e|ed|ing)|start(?:ed)?|add(?:ed)?|prescrib(?:e|ed)|"
    r"offer(?:ed)?|exceed(?:ed)?|"
    r"co-?prescrib(?:e|ed)|continu(?:e|ed)|repeat(?:ed)?|switch(?:ed)?|administer(?:ed)?|mix(?:ed)?|order(?:ed)?|"
    r"perform(?:ed)?|receiv(?:e|ed)|appl(?:y|ied)|recommend(?:ed)?|consider(?:ed)?|breastfeed|drive)"
)
_GOOD = (
    r"(?:recommended|advised|suitable|safe|appropriate|indicated|acceptable|encouraged|needed|required|necessary|"
    r"an? (?:(?!poor|bad|wrong|last)\w+ )?(?:option|alternative|substitute|choice)|well tolerated|useful|effective|"
    r"licensed|approved|justified|of benefit|beneficial)"
)
_NOT = r"(?:(?:must|should|do|does|could|can|may|need)(?: not|n['’]t| never|not)|can['’]t)"
_AGAINST = any_of(
    r"\bavoid(?:ed|ing|s|ance)?\b",
    r"\bcontra-?indicat\w+",
    rf"\b{_NOT}(?: \w+ly)?(?: be)?(?: \w+ly)? {_ACT}\b",
    rf"\bnever(?: be)?(?: \w+ly)? {_ACT}\b",
    rf"\bnot (?:to )?(?:be )?(?:routinely |generally |usually |normally |currently )?(?:{_GOOD}|{_ACT})\b",
    r"\bnot (?:an? |the )?(?:\w+ )?(?:first|second)[- ](?:line|choice)\b",
    r"\b(?:poor|bad|wrong) (?:choice|option|alternative)\b",
    r"\bno longer (?:recommended|advised|used|first)\b",
    r"\brecommended against\b",
    r"\badvis\w+ against\b",
    r"\bunsafe\b",
    r"\bunsuitable\b",
    r"\binappropriate\b",
    r"\binadvisable\b",
    r"\bno (?:place|role|value)\b",
    r"\bineffective\b",
    r"\bleave\b[\w ]{0,20} alone\b",
    r"\bwithh(?:old|eld)\b",
    r"\b(?:is|are|be) (?:stopped|discontinued|withdrawn)\b",
    r"\b(?:stop|discontinue|withdraw) (?:the |it\b|taking|using|this)",
    r"\blittle (?:or no )?(?:evidence of )?(?:benefit|effect|value)\b",
    r"\bno (?:clear |meaningful |proven |added |net |discernible |significant )?(?:benefit|effect|advantage)\b",
    r"\bfail(?:ed|s)? to (?:show|improve|prevent|eradicate)\b",
    r"\bno outcome data\b",
    r"\bno (?:\w+ )?evidence (?:of (?:\w+ )?(?:benefit|effect|efficacy)|(?:to support|for|in favou?r of)\b)",
    r"\bno (?:\w+ )?evidence that (?:\w+ ){1,3}(?:helps?|works?|improves?|prevents?|reduces?|shortens?|speeds?|benefits?)\b",
    r"\brefrain from\b",
    r"\bdiscouraged\b",
    r"\bomit(?:ted)?\b",
    r"\bbanned\b",
    r"\b(?:not|n't) (?:been )?(?:shown|proven|established|demonstrated)\b",
    r"\bunnecessary\b",
    r"\binferior\b",
    r"\bdangerous\b",
    r"\bharmful\b",
    r"\bprohibited\b",
    r"\bhazardous\b",
    r"\bnot treated with\b",
)
_FOR = any_of(
    r"\bno (?:\w+ )?(?:change|adjustment|reduction)s? (?:is|are) (?:needed|required|necessary)\b",
    (
        rf"\b(?:is|are|was|were|be|been|remains?|considered|strongly|usually|generally|routinely) (?:(?:\w+ly|the|"
        rf"also|still) )?(?:{_GOOD}|preferred)\b"
    ),
    r"\bsafe (?:with|in|alongside|to|during|for|and|at)\b",
    r"\bsuitable (?:with|in|alongside|for)\b",
    r"\bfirst[- ](?:line|choice)\b",
    r"\b(?:drugs?|treatment|agent) of choice\b",
    rf"\b(?:can|may|could|should|must) (?:safely )?(?:be )?(?:also )?(?:safely )?{_ACT}\b",
    r"\b(?:widely|commonly|usually|routinely) used\b",
    r"\b(?:should|must|do) not (?:be )?(?:delay(?:ed)?|postponed?)\b",
    r"^\W*(?:please |then |also |instead,? |yes,? )?(?:use|give|start|take|add|prescribe|offer|choose|continue)\b",
    r"\bcarry on\b",
    r"\b(?:needs?|requires?) no (?:change|adjustment|reduction)\b",
    r"\bno (?:meaningful|significant|relevant|important|clinically relevant) (?:effect|interaction|impact)\b",
    r"\bthe preferred\b",
    r"\bpreferred (?:step|treatment|option|agent|drug)\b",
    r"\bsuits\b",
    r"\bproven to\b",
    r"\b(?:it is|that is|is) (?:ok|okay|fine|all right|reasonable) to\b",
    r"\brecommended (?:for|in|as|to|treatment|regimen|option)\b",
    r"\bdo(?:es)? not (?:stop|need to stop|interact)\b",
    r"\bin favour of\b",
)
# "no contraindication", "is not contraindicated", "need not be avoided": the cue is there to be denied.
_TAKEN_BACK = re.compile(
    r"(?P<open>\b(?:if|whether|unless)\b[^.;]*)?(?:\b(?:no|not|without|nor|never|(?P<unless>unless))|n['’]t)(?: \w+){0,3} $",
    re.IGNORECASE,
)
# What may be done or left undone, besides drugs.
_MEASURES = any_of(
    r"\b(?:surgery|operation|admission|referral|imaging|x-rays?|scans?|ultrasound|biops(?:y|ies)|"
    r"endoscop(?:y|ies)|screening|tests?|testing|monitoring|vaccin(?:e|es|ation)|transfusions?|dialysis|oxygen|ventilation|"
    r"compression|catheters?|supplements?)\b"
)
# Under a condition nothing is advised: "in people who take no aspirin".
_CONDITION = any_of(r"\b(?:if|when|unless|whether|who|whose|those|group|while|because|since|until)\b")
# "do not restrict calcium", "nothing changes without treatment": what is denied is not the measure.
_OTHERWISE = any_of(
    r"\b(?:stop|restrict|reduc|limit|withh|delay|omit|skip|miss|interrupt|discontinu|ceas|forget|replac|affect|chang|adjust|"
    r"interfer|prevent|lower|rais|increas|alter|exceed|respond|confirm|exclud|show|prov|mean|settl|resolv|recover|heal)\w*"
)
_EDGES = " \t\n,;:()–—-"
_REACH = 200
# "review whether it is still needed", "if they are contraindicated": nothing is said yet. An order behind "and" stands.
_OPEN = re.compile(
    r"\b(?:whether|(?:ask|check|decide|know|sure|tell|unclear|unknown)(?: \w+){0,3} if)\b"
    r"(?:(?! (?:so|but)\b)[^,;.]){0,60}(?<!\band )$"
    r"|\bif (?:it|they|this|that)(?: (?:is|are|was|were|be|been|has|have|had|can|could|may|might|must|should|would|do|does|"
    r"did|not|also|ever|still|\w+ly))* $",
    re.IGNORECASE,
)
# "No drops are required", "neither drug is recommended".
_NONE_OF = re.compile(r"\W*((?:no|none of|neither)\b)[\w -]{0,40}$", re.IGNORECASE)
_SAME_DRUG = 0.9
_EXPLANATION = "the passage says “{theirs}”, the answer “{ours}”"


class Stand(NamedTuple):
    """Hold the polarity of a clause and the cue at ``text[start:end]`` that shows it."""

    polarity: Polarity
    start: int
    end: int


@functools.lru_cache(maxsize=20_000)
def polarity_of(text: str) -> Stand | None:
    """Return what a clause says for or against an action, None if it says neither; a cue against outweighs one for.

    >>> polarity_of("Aspirin should be avoided").polarity, polarity_of("Aspirin can be taken").polarity
    ('against', 'for')
    """
    match = _first_said(_AGAINST, text)
    if match:
        denied = _TAKEN_BACK.search(text, max(0, match.start() - _REACH), match.start())
        if denied is None:
            return Stand("against", *match.span())
        if denied["open"] is None and denied["unless"] is None:
            return Stand("for", denied.start(), match.end())
    match = _first_said(_FOR, text)
    if match is None:
        return None
    denied = _NONE_OF.match(text, 0, match.start())
    return Stand("against", denied.start(1), match.end()) if denied else Stand("for", *match.span())


def _first_said(cues: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = cues.finditer(text)
    return next((m for m in found if not _OPEN.search(text, max(0, m.start() - _REACH), m.start())), None)


@functools.lru_cache(maxsize=20_000)
def stand_of(text: str, backend: Backend) -> Stand | None:
    """Return what the table of cues sees in a clause, or else that the clause negates a drug or measure.

    >>> stand_of("there is no indication for antibiotics", "plain")
    Stand(polarity='against', start=0, end=38)
    """
    stand = polarity_of(text)
    if stand is not None or _CONDITION.search(text) or _OTHERWISE.search(text):
        return stand
    targets = [(drug.start, drug.end) for drug in find_drugs(text)]
    targets += [match.span() for match in _MEASURES.finditer(text)]
    if not targets or not negated(text, targets, backend=backend):
        return None
    start = len(text) - len(text.lstrip(_EDGES))
    return Stand("against", start, len(text.rstrip(f"{_EDGES}.")))


class AssertionChecker(AlignmentChecker):
    """Compare the polarity of a claim's clauses with that of evidence clauses on the same drug or measure."""

    class Settings(AlignmentChecker.Settings):
        """Choose what finds negations where the table of cues sees nothing; ``auto`` is the best that is installed."""

        negation: Choice = "auto"

    def __init__(self, settings: Settings | None = None, *, weights: Weights | None = None) -> None:
        settings = settings or self.Settings()
        super().__init__(settings, weights=weights)
        self.backend = choose(settings.negation)

    @property
    def model(self) -> str:
        """Name what finds negations, with its version."""
        return described(self.backend)

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return at most one finding a clause, on the field ``assertion``."""
        if not evidence.passages:
            return []
        reading = read(claim, evidence)
        find = functools.partial(stand_of, backend=self.backend)
        stands = [(clause, stand) for clause in reading.claim.clauses if (stand := find(clause.text)) is not None]
        if not stands:
            return []
        surroundings = Surroundings(claim, reading, wanted=self.weights["assertion"])
        findings = []
        for clause, stand in stands:
            span = (clause.start + stand.start, clause.start + stand.end)
            candidates = list(assertion_candidates(surroundings, clause, stand, find))
            alignment = align("assertion", candidates, self.weights)
            said = claim.text[span[0] : span[1]].strip()
            findings += findings_of(alignment, field="assertion", said=said, span=span, explain=_EXPLANATION)
        return findings


def assertion_candidates(
    surroundings: Surroundings,
    clause: Clause,
    stand: Stand,
    find: Callable[[str], Stand | None] = functools.partial(stand_of, backend="plain"),  # noqa: B008
) -> Iterator[Candidate]:
    """Yield every clause of the evidence in which ``find`` sees something for or against an action."""
    reading = surroundings.reading
    own = clause.terms | reading.context
    drugs = clause.drugs or reading.claim.drugs or drug_names(surroundings.claim.context)
    span = (clause.start + stand.start, clause.start + stand.end)
    for _, sentence in surroundings.sentences():
        for other in sentence.clauses:
            theirs = find(other.text)
            if theirs is None:
                continue
            place = (other.start + theirs.start, other.start + theirs.end)
            if drugs and surroundings.drug(drugs, sentence, place[0]) < _SAME_DRUG:
                continue
            features = surroundings.features(span, drugs, sentence, place)
            features["clause"] = reading.affinity(own, other.terms | sentence.topic)
            relation: Relation = "agrees" if theirs.polarity == stand.polarity else "negated"
            yield Candidate(relation, sentence, *place, features)
