"""Find what a sentence is about, and tell which sentences depend on an earlier subject.

A heuristic for English. The subject of a sentence is, in this order: the drug, drug class or condition in its subject
phrase (behind an introductory phrase up to a comma) or that an opening imperative acts on; the condition that a
diagnosis names ("This is acute cystitis"); the capitalised noun phrase with which it begins ("Green mucus is").
Trials, guidelines and other evidence are never the subject, so a sentence that cites one does not change what "it"
means in the next. Words are recognised by the tables and suffixes of ``factcheck.text.lexicon``; other languages give
no subject and no dependence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from factcheck.text import lexicon

Sort = Literal["drug", "class", "condition", "substance", "symptom"]
Need = Literal["", "drug", "any", "one", "many"]


class Subject(NamedTuple):
    """Hold what a sentence is about; ``sort`` is "phrase" for a noun phrase that no table knows."""

    text: str
    sort: Literal["drug", "class", "condition", "phrase"]


class Mention(NamedTuple):
    """Hold one recognised name, ``text[start:end]``."""

    start: int
    end: int
    sort: Sort


_WORD_LIMIT = 60
_WORD = re.compile(r"[A-Za-z][\w'’/-]*")
_PREAMBLE = re.compile(
    r"(?:(?:yes|no|sure|so|and|but|also|however|then|therefore|instead|still|overall|usually|often)\b,?\s+)+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^,;:]{1,120},\s")
_SPLIT = re.compile(r"[,;:()–—]")
_EXPLETIVE = re.compile(
    r"(?:it|this|that)(?:\s+(?:is|was|can|may|might|could|will|would|also|usually|often|always|be)\b|['’]s\b){1,3}\s+"
    r"(?:\w+\s+){0,2}?\w+\s+(?:to|that|whether|if|when|for)\b|it\s+(?:(?:may\s+|can\s+)?helps?\s+to|takes\s+(?:\w+\s+){1,4}(?:to|for)|seems|depends)\b",
    re.IGNORECASE,
)
_DIAGNOSIS = re.compile(
    r"(?:this|it|that|which|these|your|what|the|you|she|he)\b[^,;:.]{0,60}?\b(?:is|was|are|be|sounds?|looks?|fits?|suggests?|suggest|"
    r"consistent|likely|due|has|have|means?|called|describes?)\b",
    re.IGNORECASE,
)
_CIRCUMSTANCE = re.compile(r"\b(?:for|in|against|when|if|unless)\b", re.IGNORECASE)
_POINTER = re.compile(r"\b(?:it|its|them)\b", re.IGNORECASE)
_COMMAND_WORD = re.compile(r"\d+|[A-Za-z][\w'’-]*")
_PLURAL = lexicon.words("they them their theirs these those both")
_COMMAND_OPENERS = frozenset(("do", "don't", "don’t", "never", "always", "please"))
DOSE = re.compile(r"\d\s?(?:mg|g|mcg|µg|μg|micrograms?|ml|mL|units?|IU|puffs?)\b(?!/(?:d?l|ml|mmol)\b)", re.IGNORECASE)
_VERBAL = lexicon.VERBS | lexicon.IMPERATIVES


def mentions(text: str) -> list[Mention]:
    """Return the drugs, drug classes, conditions, substances and symptoms named in ``text``, in order."""
    found: list[Mention] = []
    words = [(match.start(), match.end(), match.group().lower()) for match in _WORD.finditer(text)]
    for index, (start, end, word) in enumerate(words):
        sort = _sort(word)
        if sort is None and word in lexicon.CONDITION_HEADS and index and _modifies(words[index - 1][2]):
            sort = "condition"
        if sort is None:
            continue
        if sort in ("condition", "class"):
            first = index
            while (
                first
                and index - first < 3
                and _modifies(words[first - 1][2])
                and _adjacent(text, words[first - 1][1], start)
            ):
                first -= 1
                start = words[first][0]
        found.append(Mention(start, end, sort))
    return found


def _modifies(word: str) -> bool:
    return word in lexicon.MODIFIERS or word.endswith(("'s", "’s", "s'", "s’"))


def _adjacent(text: str, left: int, right: int) -> bool:
    return right - left <= 2 and not text[left:right].strip()


@lru_cache(maxsize=16384)
def _sort(word: str) -> Sort | None:
    if len(word) > _WORD_LIMIT:
        return None
    parts = [part for part in re.split("[/-]", word) if part]
    if word in lexicon.DRUGS or any(_is_drug(part) for part in parts):
        return "drug"
    if word in lexicon.DRUG_CLASSES:
        return "class"
    if word in lexicon.CONDITIONS or any(_is_condition(part) for part in parts):
        return "condition"
    if word in lexicon.SUBSTANCES:
        return "substance"
    return "symptom" if word in lexicon.SYMPTOMS else None


def _is_drug(word: str) -> bool:
    if word in lexicon.DRUGS:
        return True
    return len(word) >= 6 and word.endswith(lexicon.DRUG_SUFFIXES) and word not in lexicon.NOT_DRUGS


def _is_condition(word: str) -> bool:
    if word in lexicon.CONDITIONS:
        return True
    return len(word) >= 6 and word.endswith(lexicon.CONDITION_SUFFIXES) and word not in lexicon.NOT_CONDITIONS


def names(text: str) -> bool:
    """Tell whether ``text`` names a drug, a drug class or a condition; a symptom or a mineral is no name."""
    return any(mention.sort in ("drug", "class", "condition") for mention in mentions(text))


def subject_of(sentence: str) -> Subject | None:
    """Return the subject of ``sentence``, at most a few words, None if it has none of its own."""
    body, preamble = _main_clause(sentence)
    words = [(match.start(), match.end(), match.group()) for match in _WORD.finditer(body[:200])]
    if not words or any(word.lower() in lexicon.EVIDENCE_NOUNS for _, _, word in words[:8]):
        return None
    if words[0][2].lower() in ("ask", "check", "confirm"):
        return _pick(body[: _end_of(words, 9)], ("drug", "class")) or _dosed(body)
    command = _command([word.lower() for _, _, word in words[:9]])
    if command is not None:
        return _pick(body[: _end_of(words, command + 7)], ("drug", "class")) or _dosed(body)
    verb = next((at for at, (_, _, word) in enumerate(words[:9]) if at and word.lower() in lexicon.VERBS), None)
    if verb is None:
        return _pick(body, ("drug",)) or _pick(preamble, ("drug",))
    phrase = body[: words[verb - 1][1]]
    cut = _SPLIT.search(phrase)
    named = _pick(phrase[: cut.start()] if cut else phrase, ("drug", "class", "condition"))
    if named is None and (diagnosis := _DIAGNOSIS.match(body)):
        # Up to a preposition: "is meant for people with dementia" is no diagnosis.
        said = _CIRCUMSTANCE.split(body[diagnosis.end() : _end_of(words, 14)], maxsplit=1)[0]
        named = _pick(said, ("condition",))
    named = named or _pick(preamble, ("drug",)) or _dosed(body)
    first = words[0][2].lower()
    if named or cut or verb > 4 or not words[0][2][0].isupper() or first.endswith("ing"):
        return named
    if first in lexicon.NO_SUBJECT or first in lexicon.PREPOSITIONS or first in lexicon.IMPERATIVES:
        return None
    return Subject(_plain(phrase), "phrase")


def _command(words: list[str]) -> int | None:
    """Return the place of the verb of an opening imperative that can have a drug as its object."""
    at = next((at for at, word in enumerate(words[:3]) if word not in _COMMAND_OPENERS and word != "not"), None)
    return at if at is not None and words[at] in lexicon.DRUG_VERBS else None


def _dosed(sentence: str) -> Subject | None:
    """Return the drug of which a dose is given, as in "40 to 50 mg of prednisolone"."""
    dose = DOSE.search(sentence)
    return _pick(sentence[max(0, dose.start() - 40) : dose.end() + 40], ("drug",)) if dose else None


def _main_clause(sentence: str) -> tuple[str, str]:
    """Split off an introductory phrase such as "For a 15 kg child, "; return the main clause and that phrase."""
    opening = _PREAMBLE.match(sentence)
    body = sentence[opening.end() :] if opening else sentence
    word = _WORD.match(body)
    clause = _CLAUSE.match(body) if word and word.group().lower() in lexicon.PREPOSITIONS else None
    return (body[clause.end() :], clause.group()) if clause else (body, "")


def _end_of(words: list[tuple[int, int, str]], count: int) -> int:
    return words[min(len(words), count) - 1][1]


def _pick(text: str, sorts: tuple[Literal["drug", "class", "condition"], ...]) -> Subject | None:
    """Return the first mention of the first sort that has one."""
    found = mentions(text)
    for sort in sorts:
        for mention in found:
            if mention.sort == sort:
                return Subject(_plain(text[mention.start : mention.end]), sort)
    return None


def _plain(phrase: str) -> str:
    """Fold white space and the capital of a first word, so that a subject reads alike wherever it stood."""
    words = phrase.split()
    if words[0].istitle():
        words[0] = words[0].lower()
    return " ".join(words)


def is_pointer(sentence: str) -> bool:
    """Tell whether ``sentence`` begins with a pronoun that points back: "It …", not "It is important to …"."""
    opening = _PREAMBLE.match(sentence)
    body = sentence[opening.end() :] if opening else sentence
    word = _WORD.match(body.lstrip("\"'“‘("))
    return word is not None and word.group().lower() in lexicon.PRONOUNS and not _EXPLETIVE.match(body)


def needs(sentence: str) -> Need:
    """Tell what ``sentence`` speaks of without naming it.

    "drug" is a drug, "one" and "many" are what a pronoun in the singular or plural points to, "any" is any subject.
    """
    pointed = _pointed(sentence)
    if pointed:
        return pointed
    sorts = {mention.sort for mention in mentions(sentence)}
    words = [match.group().lower() for match in _WORD.finditer(sentence)]
    if not sorts & {"drug", "class"} and _behind_determiner(words):
        return "drug"
    if not sorts & {"drug", "class", "substance"}:
        if lexicon.DOSE_NOUNS & set(words) or DOSE.search(sentence):
            return "drug"
        body, _ = _main_clause(sentence)
        opening = [match.group().lower() for match in _COMMAND_WORD.finditer(body[:80])][:5]
        verb = _command(opening)
        if verb is not None and "condition" not in sorts:
            after = opening[verb + 1] if verb + 1 < len(opening) else "it"
            if after in lexicon.NO_OBJECT or after in lexicon.PREPOSITIONS or after.isdigit():
                return "drug"
    if not sorts and words[:1] == ["the"] and lexicon.STANDING_NOUNS & set(words[:4]):
        return "any"
    return ""


def _behind_determiner(words: list[str]) -> bool:
    """Tell whether a noun such as "dose" or "drug" follows "the" or the like, with at most one word between."""
    nouns = lexicon.DRUG_NOUNS | lexicon.DOSE_NOUNS
    return any(word in nouns and lexicon.DETERMINERS & set(words[max(0, at - 2) : at]) for at, word in enumerate(words))


def _pointed(sentence: str) -> Need:
    """Tell whether a pronoun early in ``sentence`` points back, and to how many."""
    if is_pointer(sentence):
        opening = _PREAMBLE.match(sentence)
        word = _WORD.match(sentence[opening.end() :].lstrip("\"'“‘(") if opening else sentence.lstrip("\"'“‘("))
        return "many" if word is not None and word.group().lower() in _PLURAL else "one"
    pointer = next(
        (match for match in _POINTER.finditer(sentence) if not _EXPLETIVE.match(sentence, match.start())), None
    )
    if pointer is None:
        return ""
    before = sentence[: pointer.start()]
    clause, comma, rest = before.rpartition(",")
    words = [match.group().lower() for match in _WORD.finditer(rest if comma else before)]
    # Behind a clause with a verb the pronoun most likely points into that clause.
    if len(words) > 5 or mentions(before) or (comma and has_verb(clause)):
        return ""
    return "many" if pointer.group().lower() == "them" else "one"


def is_command(sentence: str) -> bool:
    """Tell whether ``sentence`` begins with an imperative of the tables."""
    word = _WORD.match(sentence)
    return word is not None and word.group().lower() in lexicon.IMPERATIVES


def has_verb(text: str) -> bool:
    """Tell whether ``text`` has a word that may be a verb of the tables."""
    return any(match.group().lower() in _VERBAL for match in _WORD.finditer(text))
