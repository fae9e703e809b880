"""Find named studies, guidelines, registries, identifiers and dated reports that the evidence does not know."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from typing import NamedTuple

from factcheck.checkers.cues import any_of
from factcheck.checkers.reading import read
from factcheck.schema import Claim, Evidence, Finding, Model, Passage
from factcheck.text.lexicon import words

_KIND = (
    r"(?:randomi[sz]ed )?(?:controlled )?(?:trial|study|studies|registry|register|cohort|survey|meta-analysis|"
    r"meta-analyses|systematic review|review|analysis|"
    r"guidelines?|guidance|consensus(?: statement)?|position statement|statement|report|audit|programme|"
    r"recommendation|task ?force|council|network|society|institute|collaboration|database|journal)"
)
_YEAR = r"(?:19[5-9]\d|20[0-4]\d)"
_UPPER = "A-ZÀ-ÖØ-Þ"
_PROPER = rf"[{_UPPER}][\w’'-]+"
_BODY = (
    r"(?:Association|Society|College|Institute|Institutes|Organi[sz]ation|Agency|Academy|Council|Foundation|Federation|"
    r"Service|Network|Collaboration|Collaborative|Group|Committee|Cent(?:re|er)s?|Ministry|Authority|Commission|Task Force|"
    r"Registry|Trial|Study|Initiative|Alliance|Union|University|Administration)"
)
_CITED = re.compile(
    rf"(?P<coded>\b[A-Z][A-Za-z0-9]{{0,24}}(?:[A-Z]{{2,8}}|-[A-Z\d])[\w-]{{0,24}})(?=\s(?:{_KIND})\b|\s\({_YEAR})|"
    rf"\b(?P<year>{_YEAR})\s(?:[A-Z][\w-]*\s){{0,6}}(?:(?!(?:the|this|that|his|her)\b)[a-z-]+\s){{0,2}}{_KIND}\b|"
    rf"\b{_KIND}\b[^.;]{{0,60}}?(?:\b(?:published|reported|released|conducted|from|in)\s(?:in\s)?(?P<year2>{_YEAR})\b|\((?P<year3>{_YEAR})\))|"
    rf"\b(?P<body>[A-Z][\w-]+(?:\s(?:[A-Z][\w-]+|of|for|on|and)){{1,7}})\s(?=(?:found|guideline|reported|recommends?|"
    rf"showed|states?|gives|analysis|registry|trial|study)\b)|"
    rf"\b(?:by|[Aa]ccording to|from) the (?P<body2>(?:[A-Z][\w-]+\s|(?:of|for|on|and)\s){{0,7}}{_BODY}"
    rf"(?:\s(?:of|for|on|and)(?:\s[A-Z][\w-]+){{1,3}}){{0,3}})|"
    rf"\b(?P<pmid>PMID:?\s?\d{{4,9}})\b|\b(?P<pmc>PMC\d{{5,9}})\b|\b(?P<doi>10\.\d{{4,9}}/[^\s\"<>]+)|\b(?P<nct>NCT\d{{8}})\b|"
    rf"\b(?P<author>{_PROPER}(?:\s(?:et al\.?|and colleagues)|\s(?:and|&)\s{_PROPER}),?\s(?:\({_YEAR}\)|{_YEAR}\b))|"
    rf"(?<=\()(?P<author2>{_PROPER},?\s{_YEAR})(?=[),;])"
)
_SPECIFIC = any_of(
    r"\b\d{1,3}(?:,\d{3})+\b",
    r"\b\d+(?:\.\d+)?\s?(?:%|percent|per cent)",
    r"\b\d{3,}\s(?:adults|patients|people|participants|children|women|men)\b",
)
_GENERIC = words(
    "the of for on and in by from according to trial study guideline guidelines report review et al colleagues"
)
# Tests, diseases and drugs that are written like the name of a trial.
_ABBREVIATIONS = words(
    "ace acei arb arni asd bmi bnp bp bpm ckd cmv cns copd covid cpr crp csf ct cvd dexa dka dmard dna dvt ebv ecg eeg egfr "
    "ekg emg esr fbc fev1 fna fsh fvc gerd gi glp gord gp hba1c hbv hcv hdl hfpef hfref hfmref hiv hpv hrt ibd ibs icd icu "
    "ige iud iv ldl lft lh maoi mri mrsa nac niv nsaid nstemi oct ogtt pcos pcr pde5 pe pet ppi psa ra rct rna rsv sars sglt2 "
    "snri ssri std stemi sti t2dm tb tca tia tsh uk us usa uti vte wbc xr cha2ds2 ph er a&e doac noac lama laba ics"
)
_FLOOR = 0.12
# A name counts as known if so many of its words are in the passage.
_SHARE = 0.75


class Citation(NamedTuple):
    """Hold a cited source at ``text[start:end]``.

    ``names`` are the words by which it would be known, ``year`` may be empty, and ``identifier`` is a PMID, PMCID, DOI or
    trial number in normal form, "" if there is none.
    """

    text: str
    start: int
    end: int
    names: tuple[str, ...]
    year: str
    identifier: str = ""


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKD", text).casefold()
    return re.sub(r"[^\w]+", " ", "".join(c for c in folded if not unicodedata.combining(c))).strip()


def whole_doi(text: str) -> str:
    """Return a DOI without the punctuation of the sentence; its own brackets stay.

    >>> whole_doi("10.1016/S0140-6736(97)11096-0);")
    '10.1016/S0140-6736(97)11096-0'
    """
    pairs = {")": "(", "]": "[", "}": "{"}
    while text:
        last = text[-1]
        unopened = last in pairs and text.count(last) > text.count(pairs[last])
        if not unopened and last not in ".,;:!?'’”»*_":
            break
        text = text[:-1]
    return text


def find_citations(text: str) -> list[Citation]:
    """Return the sources that a text cites by name, year or identifier; unnamed "studies" are none.

    >>> [c.names for c in find_citations("The HIVE-Kids trial, published in 2021, found less cough.")]
    [('hive', 'kids'), ()]
    """
    found = []
    for match in _CITED.finditer(text):
        citation = _citation(match)
        if citation is not None:
            found.append(citation)
    return found


def _citation(match: re.Match[str]) -> Citation | None:
    start = match.start()
    for group in ("pmid", "pmc", "nct", "doi"):
        if match[group]:
            surface = whole_doi(match[group]) if group == "doi" else match[group]
            digits = re.sub(r"\D", "", surface)
            identifier = {"pmid": digits, "doi": _plain(surface)}.get(group, surface.lower())
            return Citation(surface, start, start + len(surface), (), "", identifier)
    coded = match["coded"] or ""
    if coded and _plain(coded).split()[0] in _ABBREVIATIONS:
        return None
    author = match["author"] or match["author2"] or ""
    year = match["year"] or match["year2"] or match["year3"] or "".join(re.findall(rf"{_YEAR}\b", author)[-1:])
    named = coded or match["body"] or match["body2"] or author
    if match["year"]:
        named = " ".join(re.findall(rf"\b[{_UPPER}][\w-]*", match.group()))
    if not named and not year:
        return None
    # The number of a trial and the year of a paper belong to its name.
    numbered = bool(coded or author)
    named_by = tuple(w for w in _plain(named).split() if w not in _GENERIC and (numbered or not w.isdigit()))
    if (match["body"] or coded) and not any(word not in _ABBREVIATIONS for word in named_by):
        return None
    return Citation(match.group().strip(), start, start + len(match.group().rstrip()), named_by, year)


class CitationChecker:
    """Look for each cited source in the evidence; one that evidence on the same matter does not know is ``missing``."""

    portable = True
    version = "1"

    class Settings(Model):
        """Take no settings."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()

    def check(self, claim: Claim, evidence: Evidence) -> list[Finding]:
        """Return one finding a cited source: agrees if a passage names it, missing if none does."""
        cited = find_citations(claim.text)
        if not cited or not evidence.passages:
            return []
        reading = read(claim, evidence)
        closest = reading.ranked[0][0] if reading.ranked else 0.0
        specific = len(_SPECIFIC.findall(claim.text))
        findings = []
        for citation in cited:
            known = next((passage.id for passage in evidence.passages if _knows(passage, citation)), None)
            if known is not None:
                findings.append(self._finding(citation, known, 1.0))
            elif closest >= _FLOOR:
                exact = bool(citation.names or citation.identifier)
                confidence = min(1.0, 0.5 + 0.15 * bool(citation.year) + 0.15 * min(2, specific) + 0.1 * exact)
                findings.append(self._finding(citation, None, confidence))
        return findings

    def _finding(self, citation: Citation, known: str | None, confidence: float) -> Finding:
        return Finding(
            checker="",
            field="citation",
            claim_value=citation.text,
            relation="missing" if known is None else "agrees",
            confidence=round(confidence, 4),
            passage_id=known,
            claim_span=(citation.start, citation.end),
            reason=f"no passage on the matter knows “{citation.text}”" if known is None else "",
        )


def _knows(passage: Passage, citation: Citation) -> bool:
    text, held_words, initials = _index(f"{passage.title}\n{passage.source}\n{passage.url}\n{passage.text}")
    if citation.identifier:
        return f" {citation.identifier} " in f" {text} "
    if citation.names:
        held = sum(name in held_words for name in citation.names)
        if held >= math.ceil(_SHARE * len(citation.names)):
            return True
        short = "".join(name[0] for name in citation.names)
        return (len(citation.names) > 2 and short in held_words) or (
            len(citation.names) == 1 and citation.names[0] in initials
        )
    return citation.year in held_words


@functools.lru_cache(maxsize=5_000)
def _index(text: str) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return a text in plain form, its words, and the initials of its names ("ada" for American Diabetes Association)."""
    plain = _plain(text)
    names = re.findall(r"(?!The\b)[A-Z][a-z]+(?:\s(?:(?:of|for|and|on|the)\s){0,2}[A-Z][a-z]+){1,6}", text)
    initials = frozenset("".join(re.findall(r"[A-Z]", name)).lower() for name in names)
    return plain, frozenset(plain.split()), initials
