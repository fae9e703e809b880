"""Check that claims follow from their sentence as far as rules can tell: numbers, units, negations, conditions, words.

The rules are one-sided. What passes may still be a bad claim; what fails has lost or added something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from factcheck_llm.shown import content_words

# Of a claim's content words so many must be in the sentence or in what it hangs on, and so many in the sentence itself; of
# those of the sentence so many must be in its claims.
GROUNDED = 0.6
OWN = 0.34
CARRIED = 0.6

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORDED = {
    "one": "1",
    "once": "1",
    "two": "2",
    "twice": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "half": "0.5",
}
_UNIT = re.compile(
    r"\s?-?(%|percent|°\s?[cf]|micrograms?|milligrams?|kilograms?|grams?|milliliters?|millilitres?|mcg|µg|μg|ug|mg|ng|kg|g|"
    r"ml|dl|l|iu|units?|mmol|mol|meq|mmhg|kpa|cm|mm|puffs?|tablets?|capsules?|drops?|times|hours?|hrs?|h|days?|weeks?|"
    r"months?|years?|minutes?|mins?)(?![a-z])",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|nor|without|cannot|avoid\w*|stop\w*|contraindicated|unlikely|rarely|instead)\b|n['’]t\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|unless|except\w*|only|until|provided|when|whenever|in case|as long as|other than|apart from)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:may|might|could|can|possibly|possible|probably|likely|usually|often|sometimes|rarely|suggest\w*|appear\w*|seem\w*|"
    r"typically|generally|occasionally|perhaps)\b",
    re.IGNORECASE,
)


def problems_of(claims: Sequence[str], sentence: str, around: str) -> list[str]:
    """Return what claims made of a sentence lost or added; ``around`` is what its words may refer to.

    The problems repeat no text. No problems means that the claims may stand.
    """
    if not claims:
        return ["there is no claim, and the sentence says something."]
    problems = []
    if missing := len(numbers(sentence) - numbers(" ".join(claims))):
        problems.append(f"{missing} of the numbers of the sentence are in no claim.")
    for number, claim in enumerate(claims, start=1):
        problems += [f"claim {number} {problem}" for problem in _of_one(claim, sentence, around)]
    for cue, name in ((_NEGATION, "a negation"), (_CONDITION, "a condition"), (_HEDGE, "a degree of certainty")):
        if cue.search(sentence) and not any(cue.search(claim) for claim in claims):
            problems.append(f"{name} of the sentence is in no claim.")
    own = content_words(sentence)
    if len(own & content_words(" ".join(claims))) < CARRIED * len(own):
        problems.append("much of what the sentence says is in no claim.")
    return problems


def is_stray(claim: str, sentence: str, around: str) -> bool:
    """Tell whether a claim says what the sentence does not, so that it is none of its claims."""
    return any(_of_one(claim, sentence, around))


def numbers(text: str) -> frozenset[str]:
    """Return the numbers of ``text`` in digits, as they are written."""
    return frozenset(_NUMBER.findall(text))


def _of_one(claim: str, sentence: str, around: str) -> Iterable[str]:
    if not any(char.isalnum() for char in claim):
        yield "says nothing."
        return
    if numbers(claim) - numbers(sentence) - _worded(sentence):
        yield "has a number that the sentence has not."
    elif not _units_kept(claim, sentence):
        yield "has a number with another unit than the sentence."
    if _NEGATION.search(claim) and not _NEGATION.search(f"{sentence} {around}"):
        yield "negates what the sentence does not."
    words = content_words(claim)
    own = content_words(sentence)
    if not words or not own:
        return
    if len(words & (own | content_words(around))) < GROUNDED * len(words):
        yield "has words that are in neither the sentence nor its surroundings."
    elif len(words & own) < OWN * len(words):
        yield "takes most of its words from elsewhere than the sentence."


def _worded(text: str) -> frozenset[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return frozenset(_WORDED[word] for word in words if word in _WORDED)


def _units_kept(claim: str, sentence: str) -> bool:
    """Tell whether each number of the claim has a unit that follows the same number in the sentence, at once or later.

    Later, because "2 to 4 mg" gives 2 its unit behind 4.
    """
    following = _first_units(sentence)
    for match in _NUMBER.finditer(claim):
        unit = _UNIT.match(claim, match.end())
        if unit is None or match.group() not in following:
            continue
        if _unit(unit[1]) not in following[match.group()]:
            return False
    return True


def _first_units(sentence: str) -> dict[str, set[str]]:
    """Return for each number of the sentence the first unit behind it, wherever it stands."""
    found: dict[str, set[str]] = {}
    waiting: list[str] = []
    for match in _NUMBER.finditer(sentence):
        waiting.append(match.group())
        unit = _UNIT.match(sentence, match.end())
        if unit is not None:
            for number in waiting:
                found.setdefault(number, set()).add(_unit(unit[1]))
            waiting.clear()
    return found


def _unit(text: str) -> str:
    folded = re.sub(r"\s", "", text.lower()).replace("μ", "µ")
    return folded[:-1] if len(folded) > 3 and folded.endswith("s") else folded
