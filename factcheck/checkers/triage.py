"""Compare how urgent the claim says it is with how urgent the evidence says it is.

Levels: 0 self-care, 1 a routine visit, 2 a visit within days, 3 the same day, 4 emergency care now. Two levels apart is a
disagreement; one level is the usual difference between two careful authors.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from factcheck.checkers.align import AlignmentChecker, Candidate, Surroundings, align, findings_of
from factcheck.checkers.cues import any_of
from factcheck.checkers.reading import read
from factcheck.schema import Claim, Evidence, Finding

_DAYS = r"(?:(?:a )?(?:few|couple of)|two or three|two to three|\d|one|two|three|several)(?: (?:to|or) \w+)? (?:working )?days"
_SOMEONE = r"(?:doctor|gp|clinician|physician|nurse|pharmacist|clinic|midwife|dentist|appointment)"
_NEEDED = r"(?:is )?(?:needed|necessary|required)"
_PATTERNS = {
    0: any_of(
        r"not (?:an? )?(?:medical )?emergency",
        r"(?:no|not|n['’]t) (?:need|require|warrant)s? (?:any |for )?(?:emergency|urgent|hospital|medical)[\w -]{0,20}",
        r"(?:need|require)s? no (?:emergency|urgent|hospital|medical)[\w -]{0,20}",
        r"(?:look(?:ed|ing)? after|manag(?:e[ds]?|ing)|treat(?:ed|ing)?|car(?:e[ds]?|ing) for|rest(?:ing)?|stay)\b"
        r"[\w ,']{0,30} at home",
        r"self[- ]care",
        r"without (?:seeing|medical|needing)[\w ]{0,20}",
        r"(?:clears?|settles?|resolves?|go(?:es)? away|get(?:s)? better|passes)\b[\w ]{0,20} "
        r"(?:by itself|on its own|without treatment|spontaneously|by themselves)",
        r"self-limiting",
        rf"no (?:treatment|medical (?:care|attention|assessment)|investigation) {_NEEDED}",
        r"home (?:care|management)",
        r"(?:emergency|urgent|hospital|medical) (?:care|assessment|attendance|attention|treatment|review) is not "
        r"(?:needed|necessary|required)",
        r"nothing to worry about",
        r"watch and wait",
    ),
    1: any_of(
        r"routine(?:ly)? (?:appointment|visit|review|check|follow[- ]?up|care|basis)",
        r"next few weeks",
        r"within (?:a few|several|two to four|two|three|four|six|\d) weeks",
        r"(?:at|until|by) (?:the|your|his|her) next (?:visit|appointment|review|check)",
        r"in due course",
        r"non-urgent",
    ),
    2: any_of(
        rf"(?:within|in) (?:the next )?{_DAYS}",
        rf"(?:see|ask|call|contact|ring|book|visit|consult|tell|talk to|speak (?:to|with))\b[\w ,']{{0,25}} {_SOMEONE}\b",
        r"(?:appointment|visit) (?:with|in|tomorrow)",
        r"tomorrow or the day after",
        r"(?:should|need to|must) be (?:reviewed|seen)",
        r"medical review",
        r"a planned check",
    ),
    3: any_of(
        r"same[- ]day",
        r"(?:seen|see|assess(?:ed|ment)|review(?:ed)?|call)\b[\w ,']{0,25} "
        r"(?:today|within (?:a few|24|\d{1,2}) hours|promptly|urgently)",
        r"(?<!non-)(?<!non )urgent(?:ly)?(?! (?:need|desire|wish|urge) to)",
        r"within 24 hours",
        r"prompt (?:assessment|medical|review|contact|referral)",
        r"out[- ]of[- ]hours",
    ),
    4: any_of(
        r"call (?:an? )?(?:ambulance|911|999|112|emergency)",
        r"ambulance",
        r"(?:911|999|112)\b(?=\s*(?:[.,;:!/)]|$|(?:or|now|if|and|at|for|right|straight|immediately|without|when)\b))",
        r"emergency (?:services?|department|room|help|care|assessment|medical|hospital|call|eye|treatment|number|admission|"
        r"unit|surgery|referral|transfer)",
        r"(?-i:the ER)\b",
        r"(?:urgent|immediate) (?:hospital )?(?:admission|transfer)",
        r"(?:must|should|needs? to) be admitted",
        r"admit(?:ted)? (?:at once|now|immediately|urgently)",
        r"medical emergency",
        r"a&e",
        r"immediate(?:ly)? (?:hospital|to hospital|medical|assessment|transfer|admission|referral|emergency)",
        r"(?:go|taken?|get|sen[dt]|rush(?:ed)?|admit(?:ted)?|transfer(?:red)?)\b[\w ,']{0,20} (?:to )?(?:the )?"
        r"(?:hospital|emergency)",
        r"immediate (?:medical )?(?:attention|help|assessment|referral|transfer|hospital)",
        r"life[- ]threatening",
        r"resuscitat",
        r"within the hour",
        r"hospital (?:treatment|assessment|care) (?:now|immediately)",
        r"needs? (?:an )?emergency",
    ),
}
_CONDITION = re.compile(r"\b(?:if|unless|should (?:you|he|she|they|it)|when|in case|for|after)\b", re.IGNORECASE)
_CANNOT = re.compile(
    r"(?:\b(?:cannot|must not|should not|never|unsafe|inappropriate|not)|n['’]t)\b[\w ]{0,20}$", re.IGNORECASE
)
_UNSAFE = re.compile(
    r"[\w ,]{0,40}\b(?:is|are|would be) (?:unsafe|inappropriate|dangerous|not (?:appropriate|safe|enough|suitable))\b",
    re.IGNORECASE,
)
# "do not hesitate to call 999" and "if she does not wake, call 999" are no reason to stay at home.
_NEED_NOT = re.compile(
    r"(?<!\w)(?:(?:no|not|without|rarely|never|unnecessary)|\w*n['’]t)\b"
    r"(?:\s(?!(?:hesitate|delay|wait|drive|wake|respond|breathe|improve\w*|better|settle\w*|if|when|then)\b)\w+){0,4}\s$",
    re.IGNORECASE,
)
_NO_NEED = re.compile(
    r"(?:\bno need|(?:\bnot|n['’]t|\brarely) (?:need|have|necessary)|\bunnecessary)(?: to| for)?(?: \w+){0,2} $",
    re.IGNORECASE,
)
_IF = re.compile(r"\b(?:if|unless|when)\b[^.;]*$", re.IGNORECASE)
_WINDOW = 60
_EXPLANATION = "the passage says “{theirs}”, which is another urgency than the answer's “{ours}”"


class Urgency(NamedTuple):
    """Hold a level of urgency found at ``text[start:end]``; ``conditional`` if it depends on a stated condition."""

    level: int
    start: int
    end: int
    conditional: bool


def find_urgency(text: str) -> list[Urgency]:
    """Return the levels of urgency that a text states, in order; the more specific (lower listed) negations win.

    >>> [u.level for u in find_urgency("This is not an emergency; book a routine appointment.")]
    [0, 1]
    """
    return list(_find_urgency(text))


@functools.lru_cache(maxsize=20_000)
def _find_urgency(text: str) -> tuple[Urgency, ...]:
    found: list[Urgency] = []
    taken: list[tuple[int, int]] = []
    # Denials and self-care go first; of the others the most urgent reading of a place counts, and "routine" makes a visit one.
    for level in (0, 4, 3, 1, 2):
        for match in _PATTERNS[level].finditer(text):
            place = bisect.bisect_left(taken, match.span())
            before, after = taken[max(0, place - 1) : place], taken[place : place + 1]
            overlaps = any(span[1] > match.start() for span in before) or any(span[0] < match.end() for span in after)
            if overlaps or _inside_word(text, match):
                continue
            taken.insert(place, match.span())
            clause = re.split(r"[.;!?]\s", text[match.start() : match.end() + _WINDOW])[0]
            conditional = bool(_CONDITION.search(clause)) or bool(re.match(r"\s*(?:if|when)\b", text, re.IGNORECASE))
            found.append(Urgency(_stated(text, match, level), match.start(), match.end(), conditional))
    return tuple(sorted(found, key=lambda u: u.start))


def _inside_word(text: str, match: re.Match[str]) -> bool:
    before = text[match.start() - 1 : match.start()]
    return before.isalnum() and not match.group().lower().startswith(("n't", "n’t"))


def _stated(text: str, match: re.Match[str], level: int) -> int:
    """Return the level that is meant, which a denial before the words or a warning behind them changes."""
    before = text[max(0, match.start() - _WINDOW) : match.start()]
    if level == 0 and _CANNOT.search(before):
        return 3
    if level <= 2 and _UNSAFE.match(text, match.end()):
        return 4
    if level in (1, 2) and _NO_NEED.search(before):
        return 0
    if level >= 3 and _NEED_NOT.search(before) and not _IF.search(before):
        return 1
    return level


class TriageChecker(AlignmentChecker):
    """Compare levels of urgency between a claim and the evidence that speaks of the same problem."""

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return at most one finding, on the field ``urgency``."""
        ours = main_urgency(claim.text)
        if not ours or not evidence.passages:
            return []
        weighed = self.weights["urgency"]
        surroundings = Surroundings(claim, read(claim, evidence), of_case=not ours[0].conditional, wanted=weighed)
        candidates = list(urgency_candidates(surroundings, ours))
        alignment = align("urgency", candidates, self.weights)
        said = claim.text[ours[0].start : ours[0].end]
        span = (ours[0].start, ours[0].end)
        return findings_of(alignment, field="urgency", said=said, span=span, explain=_EXPLANATION)


def main_urgency(text: str) -> list[Urgency]:
    """Return the levels that a claim stands for: those stated without a condition, or all if each has one."""
    found = find_urgency(text)
    return [u for u in found if not u.conditional] or found


def urgency_candidates(surroundings: Surroundings, ours: list[Urgency]) -> Iterator[Candidate]:
    """Yield every level of urgency in the evidence; more than one level from all of the claim's differs."""
    drugs: frozenset[str] = frozenset()
    span = (ours[0].start, ours[0].end)
    for _, sentence in surroundings.sentences():
        for theirs in find_urgency(sentence.text):
            gap = min(abs(theirs.level - u.level) for u in ours)
            features = surroundings.features(span, drugs, sentence, (theirs.start, theirs.end))
            yield Candidate("agrees" if gap <= 1 else "differs", sentence, theirs.start, theirs.end, features)
