"""Know whom a sentence speaks of, so that a child's dose is not compared with an adult's."""

from __future__ import annotations

import functools

from factcheck.checkers.cues import any_of

_OF_CHILD = r"(?:[1-9]|1[0-7])"
_OF_ADULT = r"(?:1[89]|[2-9]\d)"
_OLD = r"[- ]?(?:years?[- ]old|yo\b|y/o\b)"
_PATTERNS = {
    "child": any_of(
        r"\b(?:school)?child(?:ren|hood|'s)?\b",
        r"\bpa?ediatric",
        r"\binfants?\b",
        r"\bbab(?:y|ies)\b(?! aspirin)",
        r"\bnewborns?\b",
        r"\bneonat\w+",
        r"\btoddlers?\b",
        r"\bteenagers?\b",
        r"\badolescents?\b",
        r"\b(?:boys?|girls?|kids?)\b",
        rf"\b{_OF_CHILD}{_OLD}",
        r"\b\d+[- ](?:week|month)s?[- ]old",
        rf"\baged {_OF_CHILD}\b(?![\w ]{{0,8}}\b(?:and|or) (?:over|older|above|up)\b)(?! ?(?:to|-|–) ?{_OF_ADULT}\b)",
        r"\bunder (?:[1-9]|1[0-8])(?:s\b| years (?:of age|old)\b)",
        r"\bmy (?:son|daughter)\b",
        r"\bschool-age",
    ),
    "adult": any_of(
        r"\badults?\b",
        rf"\b{_OF_ADULT}{_OLD}",
        rf"\b(?:women|men|people|patients|those|anyone) (?:aged |over ){{1,2}}{_OF_ADULT}\b",
        r"\belderly\b",
        r"\bgeriatric",
        r"\bolder (?:people|adults|patients)\b",
        rf"\bI(?:['’]m| am) {_OF_ADULT}\b",
        r"\bmy (?:mum|mom|mother|father|dad|wife|husband|grand(?:mother|father|ma|pa))\b",
    ),
    "pregnant": any_of(r"\bpregnan\w+", r"\bgestation\w*", r"\btrimester\b", r"\b(?:ante|pre)natal"),
    "renal": any_of(
        r"\brenal (?:impairment|failure|disease|insufficiency)",
        r"\bkidney (?:disease|failure|impairment)",
        r"\b(?:impaired|reduced|poor|declining) (?:renal|kidney) function",
        r"\beGFR\b",
        r"\bcreatinine clearance\b",
        r"\bCrCl\b",
        r"\bdialysis\b",
        r"\bCKD\b",
    ),
    "hepatic": any_of(
        r"\bhepatic (?:impairment|failure|insufficiency)",
        r"\bliver (?:disease|failure|impairment)",
        r"\b(?:impaired|reduced|poor) (?:hepatic|liver) function",
        r"\bcirrhosis\b",
        r"\bChild-Pugh\b",
    ),
}
_AGES = ("child", "adult")
_SPECIAL = ("pregnant", "renal", "hepatic")


@functools.lru_cache(maxsize=20_000)
def populations(text: str) -> frozenset[str]:
    """Return the populations that a text names: child, adult, pregnant, renal, hepatic."""
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(text))


def comparability(claim: str, surroundings: str, sentence: str, title: str) -> float:
    """Return in (0, 1] how far a sentence speaks of the claim's population.

    ``claim`` is the claim's text, ``surroundings`` its context and question. A child against an adult gives 0.25; a
    sentence about a special population that the claim's side never mentions gives 0.6; silence on either side gives 1.
    """
    theirs = populations(sentence) or populations(title)
    if not theirs:
        return 1.0
    # What the claim's side names is looked for only where it matters.
    if not theirs.isdisjoint(_AGES):
        ours = populations(claim) or populations(surroundings)
        for one, other in (_AGES, _AGES[::-1]):
            if one in ours and other not in ours and other in theirs and one not in theirs:
                return 0.25
    special = theirs.intersection(_SPECIAL)
    return 0.6 if special and not special <= populations(f"{claim} {surroundings}") else 1.0
