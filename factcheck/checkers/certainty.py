"""Find certainty and scope that the evidence does not share.

A claim that is certain where the closest evidence hedges, or that speaks of everyone where the closest evidence speaks of
some, is one error made twice over: the added word is the whole error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from factcheck.checkers.cues import any_of
from factcheck.checkers.reading import Sentence, read
from factcheck.schema import Claim, Evidence, Finding, Model, Relation

_CERTAIN = any_of(
    r"\bdefinite(?:ly)?\b",
    r"\bcertain(?:ly|ty)\b",
    r"\b(?:be|am|is|are|was|feel|for|almost) certain\b",
    r"\bcertain (?:that|to|it|of)\b",
    r"\bguarante\w+",
    r"\bpromise[sd]?\b",
    r"\bundoubted(?:ly)?\b",
    r"\b(?:no|without(?: any| a)?|beyond(?: any)?) doubt\b",
    # Nodules that "prove benign" turn out so.
    (
        r"\bproves?\b(?! (?:to be|benign|malignant|cancerous|harmless|serious|fatal|normal|abnormal|negative|positive|"
        r"(?:un|in)?(?:useful|helpful|effective|necessary|sufficient|adequate|successful)|difficult|resistant|refractory|"
        r"wrong|right|true|false|little|nothing)\b)"
    ),
    r"\bproven\b(?= (?:to be (?:the )?cause|that))",
    r"\b100 ?(?:%|percent\b|per cent\b)",
    r"\b(?:entirely|totally|perfectly) (?:safe|harmless)\b",
    r"\bzero risk\b",
    r"\brisk-free\b",
    r"\bfoolproof\b",
    r"\b(?:never|cannot|can['’]t) fails?\b",
    r"\bno side[- ]effects\b",
    r"\bcompletely (?:safe|cure[sd]?|prevent[sed]*|rule[sd]? out|protect\w*|harmless)\b",
    r"\babsolutely\b",
    r"\b(?:only|just|merely) a formality\b",
    r"\bno (?:risk|chance|possibility|way|exceptions?|need to (?:worry|check|test|confirm))\b",
    r"\b(?:can|could|will) (?:safely )?be (?:sure|confident|certain)\b",
    r"\bbe (?:sure|confident|certain) that\b",
    # "to rule out cancer" is what a test is for, not what it has done.
    r"\b(?:rules|(?:will|would|can|must|therefore) rule) out\b",
    r"\bcannot (?:be anything|possibly|change)\b",
    r"\bcould not (?:be anything|change)\b",
    r"\bwill (?:always|never|certainly|definitely|completely)\b",
    r"\bis (?:always|never)\b",
    r"\bare (?:always|never)\b",
    r"\bmake no difference at all\b",
    r"\bimpossible\b",
    r"\binevitabl[ey]\b",
    r"\bunquestionabl[ey]\b",
    r"\bevery time\b",
    r"\bcertain to\b",
    # The boundary first, as in all the others: re then looks for it once a place.
    r"\b(?<!\bbe )(?<!\bmake )(?<!\bmaking )sure to\b",
    r"\bconclusive(?:ly)?\b",
    r"\bwithout exception\b",
    r"\balways (?:means?|works?|cures?)\b",
)
_NOT_CERTAIN = re.compile(r"(?:\b(?:not|no|cannot|never)|n['’]t)\b[\w ]{0,20}$", re.IGNORECASE)
_NOT_ALL = re.compile(r"(?:\b(?:not|never|nearly|almost)|n['’]t)\s+$", re.IGNORECASE)
_WINDOW = 40
_HEDGED = any_of(
    r"\bmay\b",
    r"\bmight\b",
    r"\bcould\b",
    r"\bcan\b",
    r"\bsome(?:times)?\b",
    r"\busually\b",
    r"\boften\b",
    r"\bgenerally\b",
    r"\btypically\b",
    r"\bmost(?:ly)?\b",
    r"\blikely\b",
    r"\bunlikely\b",
    r"\bprobabl[ey]\b",
    r"\bpossibl[ey]\b",
    r"\bsuggest\w*",
    r"\bappear\w*",
    r"\babout\b",
    r"\baround\b",
    r"\broughly\b",
    r"\bapproximately\b",
    r"\b(?:in|up to) \d+(?: to \d+)? ?(?:%|percent|per cent)",
    r"\b\d+(?: to \d+)? ?(?:%|percent|per cent)",
    r"\bcannot (?:be )?(?:exclude|rule[sd]? out|confirm|establish|predict|diagnos)\w*",
    (
        r"\bnot (?:a guarantee|guaranteed|always|all|certain|sufficient|enough|established|proven|reliabl\w+|"
        r"confirm\w*|exclude\w*|diagnos\w*)"
    ),
    r"\brequires?\b",
    r"\bneed(?:s|ed)?\b",
    r"\bdepend\w*",
    r"\bnecessary\b",
    r"\bunless\b",
    r"\buncertain\w*",
    r"\bvar(?:y|ies|iable)\b",
    r"\brisk of\b",
    r"\bfalse[- ](?:positive|negative)",
    r"\bconfirm\w*",
    r"\bstill\b",
    r"\breduc\w+",
    r"\blower\w*",
)
_UNIVERSAL = any_of(
    r"\beveryone\b",
    r"\beverybody\b",
    (
        r"\ball (?:the )?(?:patients|people|adults|women|men|children|infants|babies|pregnan\w+|age groups?|ages|"
        r"types|forms|cases|severit\w+|stages|strains|older|smokers|diabetics|individuals|groups|[a-z]+ patients)\b"
    ),
    (
        r"\b(?:every|each|any) (?:patient|person|adult|woman|man|child|infant|case|type|stage|form|pregnan\w+|degree|"
        r"severity)\b"
    ),
    r"\bwhatever (?:the|their|his|her|your)\b",
    r"\bregardless of\b",
    r"\birrespective of\b",
    r"\bno matter (?:what|how|which|whether)\b",
    r"\bin (?:all|every) (?:patients?|people|cases?|adults?|child\w*|wom[ae]n|m[ae]n|stages?)\b",
    r"\bacross (?:all|the board|every)\b",
    r"\buniversal(?:ly)?\b",
    r"\bwhoever\b",
    r"\beven (?:those|people|patients) (?:with|who|without)\b",
    r"\bjust as (?:it|they) (?:was|were|is|are|does|do)\b",
    r"\bequally (?:in|to|for) all\b",
)
_DIAGNOSED = any_of(
    (
        r"\b(?:means?|shows?|proves?|confirms?|indicates?|establish\w*|tells? (?:us|you))\b[^.;:]{0,40}\b(?:you|he|"
        r"she|they|your \w+|her|him|patient|child|baby)\b[^.;:]{0,12}\b(?:have|has|had)\b"
    ),
    r"\b(?:you|he|she|they|patient) (?:must|also|therefore|clearly|already|now) ha(?:ve|s)\b"
    r"(?! (?:to|your|his|her|their)\b|[\w -]{1,25}\b(?:tests?|scans?|checks?|x-rays?|vaccines?|review|ECG)\b)",
    r"\balso means? (?:that )?(?:you|he|she|they)\b",
    r"\bha(?:s|ve) \w+[\w ]{0,30} (?:too|as well)\b",
)
_REQUIREMENT = any_of(
    (
        r"\bdiagnos\w+\b[^.;]{0,60}\b(?:requires?|needs?|depends?|rests?|based|confirm\w*|criteria|at least|"
        r"persist\w*|repeat\w*|not)\b"
    ),
    r"\b(?:requires?|needs?|should|must|cannot|not)\b[^.;]{0,60}\bdiagnos\w+",
    r"\bconfirm\w*\b",
    r"\b(?:two|three) of three\b",
    (
        r"\b(?:not|cannot|should not)\b[^.;]{0,30}\b(?:labell?ed|attributed|assumed|sufficient|enough|establish\w*|"
        r"reliabl\w+|specific)\b"
    ),
    r"\bpersist(?:s|ent(?:ly)?)?\b",
    r"\brecurr\w+\b",
    r"\bscreen\w*\b",
    r"\bexclud\w+",
)
_RESTRICTED = any_of(
    r"\bonly\b",
    r"\bselected\b",
    r"\bsome\b",
    r"\bsubgroups?\b",
    r"\bconcentrated in\b",
    r"\bspecific(?:ally)?\b",
    r"\bparticular(?:ly)?\b",
    r"\bin (?:people|patients|those|adults|women|men|children) (?:with|who|at|aged|whose|without|under|over)\b",
    (
        r"\b(?:people|patients|those|adults|women|men|children|individuals) (?:with|who|at (?:high|increased|low)|"
        r"aged|whose|without|under|over)\b"
    ),
    r"\bdepends?\b",
    (
        r"\bnot (?:be )?(?:applied|apply|appl\w+ to|recommended|generali\w+|for everyone|all|studied|include\w*|"
        r"offered|beneficial|benefit)"
    ),
    r"\bexclud\w+",
    r"\bhigh[- ]risk\b",
    r"\bseverely?\b",
    r"\bmoderate\b",
    r"\bif\b",
    r"\bunless\b",
    r"\bexcept\b",
    r"\bwere not (?:studied|included|enrolled)",
    r"\bless (?:benefit|effect|clear)",
    r"\blittle\b",
    r"\bno (?:discernible|clear|significant|benefit|effect)",
    r"\bmost\b",
    r"\bmany\b",
    r"\bvaries\b",
    r"\bindividual\w*",
    r"\bstrongest\b",
    r"\bgreatest\b",
    r"\bdiffer\w*",
)
_SENTENCES = 8
_FLOOR = 0.08
_SHARED_CLOSENESS = 0.85
_BASE_CONFIDENCE = 0.5
_EXPLANATIONS = {
    "certainty": "the answer is certain (“{ours}”), the passage is not (“{theirs}”)",
    "scope": "the answer speaks of all (“{ours}”), the passage of some (“{theirs}”)",
    "diagnosis": "the answer states a diagnosis (“{ours}”) for which the passage asks more (“{theirs}”)",
}

Finder = Callable[[str], list[tuple[int, int]]]


def find_certainty(text: str) -> list[tuple[int, int]]:
    """Return the spans of categorical words; "not certain", "not guaranteed" and "cannot rule out" are none.

    >>> find_certainty("This is definitely benign."), find_certainty("That is not guaranteed.")
    ([(8, 18)], [])
    """
    return _unless_denied(_CERTAIN, _NOT_CERTAIN, text)


def find_universal(text: str) -> list[tuple[int, int]]:
    """Return the spans of words that widen a statement to everyone; "not everyone" is none."""
    return _unless_denied(_UNIVERSAL, _NOT_ALL, text)


def find_diagnosis(text: str) -> list[tuple[int, int]]:
    """Return the spans that say that this patient has a further condition; "does not prove that you have" is none."""
    return _unless_denied(_DIAGNOSED, _NOT_CERTAIN, text)


def _unless_denied(cues: re.Pattern[str], denial: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    found = cues.finditer(text)
    return [m.span() for m in found if not denial.search(text[max(0, m.start() - _WINDOW) : m.start()])]


_FIELDS: tuple[tuple[str, Finder, re.Pattern[str]], ...] = (
    ("certainty", find_certainty, _HEDGED),
    ("scope", find_universal, _RESTRICTED),
    ("diagnosis", find_diagnosis, _REQUIREMENT),
)


class CertaintyChecker:
    """Compare how certain, how wide and how far-reaching a claim is with the closest evidence."""

    portable = True
    version = "1"

    class Settings(Model):
        """Take no settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return at most one finding each for the fields ``certainty``, ``scope`` and ``diagnosis``."""
        stated = [(field, find, limit, find(claim.text)) for field, find, limit in _FIELDS]
        if not any(spans for *_, spans in stated) or not evidence.passages:
            return []
        closest = [pair for pair in read(claim, evidence).ranked[:_SENTENCES] if pair[0] >= _FLOOR]
        found = (
            _compare(claim, field, spans[0], closest, find, limit) for field, find, limit, spans in stated if spans
        )
        return [finding for finding in found if finding is not None]


def _compare(
    claim: Claim,
    field: str,
    span: tuple[int, int],
    closest: list[tuple[float, Sentence]],
    find: Finder,
    limit: re.Pattern[str],
) -> Finding | None:
    for closeness, sentence in closest:
        shared = find(sentence.text)
        if shared and closeness >= _SHARED_CLOSENESS * closest[0][0]:
            return _finding(claim, field, span, sentence, shared[0], "agrees", closeness)
    for closeness, sentence in closest:
        match = limit.search(sentence.text)
        if match:
            return _finding(claim, field, span, sentence, match.span(), "differs", closeness)
    return None


def _finding(
    claim: Claim,
    field: str,
    span: tuple[int, int],
    sentence: Sentence,
    quote: tuple[int, int],
    relation: Relation,
    closeness: float,
) -> Finding:
    ours, theirs = claim.text[span[0] : span[1]], sentence.text[quote[0] : quote[1]]
    return Finding(
        checker="",
        field=field,
        claim_value=ours,
        evidence_value=theirs,
        relation=relation,
        confidence=round(min(1.0, _BASE_CONFIDENCE + closeness), 4),
        passage_id=sentence.passage_id,
        claim_span=span,
        quote_span=(sentence.start + quote[0], sentence.start + quote[1]),
        reason=_EXPLANATIONS[field].format(ours=ours, theirs=theirs) if relation == "differs" else "",
    )
