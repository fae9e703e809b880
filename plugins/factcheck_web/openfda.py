"""The retriever ``web/openfda``: sections of drug labels of the FDA through openFDA."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple

import anyio.to_thread
from pydantic import Field, SecretStr

from factcheck.checkers.drugs import find_drugs
from factcheck.corpus.chunking import chunk_spans
from factcheck.text.lexicon import words as lexicon
from factcheck.together import together
from factcheck_web.base import (
    Hit,
    KeySettings,
    Rate,
    ReplyModel,
    Text,
    WebRetriever,
    find_key,
    reject,
    restate,
    text_id,
)
from factcheck_web.excerpts import closeness
from factcheck_web.texts import content_words, iso_date, one_line

Section = Literal[
    "boxed_warning", "indications", "dosage", "contraindications", "warnings", "interactions", "pregnancy",
    "populations", "adverse_reactions", "overdosage",
]  # fmt: skip

# Fields of a label, of prescription drugs and over-the-counter ones, and words by which a query asks for them.
FIELDS: dict[Section, tuple[str, ...]] = {
    "boxed_warning": ("boxed_warning",),
    "indications": ("indications_and_usage", "purpose"),
    "dosage": ("dosage_and_administration", "dosage_forms_and_strengths"),
    "contraindications": ("contraindications", "do_not_use"),
    "warnings": (
        "warnings_and_cautions", "warnings", "precautions", "general_precautions", "ask_doctor", "stop_use", "when_using",
    ),
    "interactions": ("drug_interactions", "ask_doctor_or_pharmacist"),
    "pregnancy": ("pregnancy", "lactation", "nursing_mothers", "pregnancy_or_breast_feeding"),
    "populations": ("use_in_specific_populations", "pediatric_use", "geriatric_use"),
    "adverse_reactions": ("adverse_reactions",),
    "overdosage": ("overdosage",),
}  # fmt: skip
_CUES: dict[Section, str] = {
    "boxed_warning": r"boxed|black.box",
    "indications": r"indicat(?!e that)|treat|approved|licen[cs]ed|used for",
    "dosage": r"dos(?:e|es|age|ing)\b|mg\b|mcg|microgram|g\b|units?\b|daily|twice|titrat|maximum|tablet|inject",
    "contraindications": r"contra-?indicat|must not|should not (?:take|use|be)|avoid|never",
    "warnings": r"warn|caution|monitor|risk|avoid",
    "interactions": r"interact|together|combin|concomitant|co-?administ|inhibitor|inducer|alcohol",
    "pregnancy": r"pregnan|breast|lactat|f[eo]etus|f[eo]etal|teratogen|nursing|trimester",
    "populations": r"child|p(?:a)?ediatric|elderly|geriatric|older|renal|kidney|hepatic|liver|egfr|creatinine",
    "adverse_reactions": r"side.effect|adverse|react|cause|common|rash|nausea",
    "overdosage": r"over-?dos|poison|toxic|antidote",
}
# As much as a word that the query shares with no other part, and a common one besides.
PREFERENCE = 3.0
DRUGS = 3

# Names of the WHO or of Britain, and the name under which the label files the drug.
US_NAMES = {
    "paracetamol": "acetaminophen", "salbutamol": "albuterol", "adrenaline": "epinephrine",
    "noradrenaline": "norepinephrine", "isoprenaline": "isoproterenol", "orciprenaline": "metaproterenol",
    "glibenclamide": "glyburide", "pethidine": "meperidine", "lignocaine": "lidocaine", "rifampicin": "rifampin",
    "frusemide": "furosemide", "ciclosporin": "cyclosporine", "cyclosporin": "cyclosporine", "aciclovir": "acyclovir",
    "valaciclovir": "valacyclovir", "suxamethonium": "succinylcholine", "beclometasone": "beclomethasone",
    "cefalexin": "cephalexin", "dexamfetamine": "dextroamphetamine",
    "chlorphenamine": "chlorpheniramine", "glyceryl trinitrate": "nitroglycerin", "phytomenadione": "phytonadione",
    "ethinylestradiol": "ethinyl estradiol", "oestradiol": "estradiol", "thyroxine": "levothyroxine",
    "co-trimoxazole": "sulfamethoxazole and trimethoprim", "co-amoxiclav": "amoxicillin and clavulanate potassium",
    "methylthioninium chloride": "methylene blue",
    "hydroxycarbamide": "hydroxyurea", "mesalazine": "mesalamine", "sulphasalazine": "sulfasalazine",
    "tetracosactide": "cosyntropin", "ergometrine": "ergonovine",
    "acetylsalicylic acid": "aspirin", "aluminium hydroxide": "aluminum hydroxide",
}  # fmt: skip
# Parts of drug names that name no drug.
_NO_NAMES = lexicon(
    "acid sodium potassium calcium magnesium hydrochloride chloride sulfate sulphate acetate phosphate citrate maleate "
    "tartrate oral extended release tablet tablets capsule injection drug drugs dose dosage daily adults adult children "
    "patients patient treatment medication medicine pain water oxygen relief cold day night cough blood sugar"
)


class _Names(ReplyModel):
    generic: tuple[str, ...] = Field(default=(), alias="generic_name")
    brand: tuple[str, ...] = Field(default=(), alias="brand_name")
    substance: tuple[str, ...] = Field(default=(), alias="substance_name")
    manufacturer: tuple[str, ...] = Field(default=(), alias="manufacturer_name")


class Label(ReplyModel):
    """Hold a label; ``sections`` has the text of each field that ``FIELDS`` names and the label has."""

    set_id: str = Field(min_length=1)
    effective_time: Text = ""
    names: _Names = Field(default=_Names(), alias="openfda")
    sections: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class _Error(ReplyModel):
    code: Text = ""
    message: Text = ""


class OpenFdaReply(ReplyModel):
    """Hold a reply; an error stands in place of the results, and NOT_FOUND means that no label matches."""

    results: tuple[dict[str, Any], ...] | None = None
    error: _Error | None = None


class _Whole(ReplyModel):
    results: tuple[dict[str, Any], ...]


class _Part(NamedTuple):
    label: Label
    section: Section
    field: str
    start: int
    end: int
    text: str


class OpenFdaRetriever(WebRetriever):
    """Find the parts of drug labels that are closest to a query, those of sections that it asks for first.

    A query that names no drug finds nothing.
    """

    name = "web/openfda"
    provider = "openFDA"
    host = "dailymed.nlm.nih.gov"
    rate = Rate(per_second=4.0, burst=4)
    query_chars = 1000
    query_words = 200

    class Settings(KeySettings):
        """Set the sections to search, () for all, and how many labels to read for each of at most three drugs.

        A key is not needed; with one openFDA allows 120,000 requests a day in place of 1,000.
        """

        base_url: str = Field(default="https://api.fda.gov", pattern=r"^https?://[^\s?#]+$")
        key_env: str = "OPENFDA_API_KEY"
        sections: tuple[Section, ...] = ()
        labels: int = Field(default=3, ge=1, le=30)

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits; of equal texts in several labels the first counts."""
        drugs = drug_names(text)[:DRUGS]
        guesses = () if drugs else tuple(word for word in content_words(text, limit=40) if _may_be_a_drug(word))[:12]
        labels = [
            label
            for found in await together(list(self._asking(drugs or [guesses])), lambda ask: ask())
            for label in found
        ]
        if guesses:
            # The words were a guess, and a label must bear one of them as its name.
            labels = [label for label in labels if _bears(label, guesses)]
        names = " ".join(name for group in drugs for name in group)
        return await anyio.to_thread.run_sync(self._closest, labels, text, names, k)  # labels are long

    def _closest(self, labels: Sequence[Label], text: str, names: str, k: int) -> list[Hit]:
        """Return the parts of labels that are closest to a query, best first."""
        parts = [part for label in labels for part in self._parts(label)]
        scores = closeness([part.text for part in parts], f"{text} {names}")
        asked = {section for section, cue in _CUES.items() if re.search(rf"\b(?:{cue})", text, re.IGNORECASE)}
        weighed = [
            (score * (PREFERENCE if part.section in asked else 1.0), part)
            for score, part in zip(scores, parts, strict=True)
            if score > 0
        ]
        weighed.sort(key=lambda pair: -pair[0])
        distinct: dict[str, Hit] = {}
        for score, part in weighed:
            distinct.setdefault(one_line(part.text).casefold(), _hit(part, score))
        return list(distinct.values())[:k]

    def _asking(self, drugs: Sequence[tuple[str, ...]]) -> list[Callable[[], Awaitable[list[Label]]]]:
        return [functools.partial(self._labels, names) for names in drugs if names]

    async def _labels(self, names: Sequence[str]) -> list[Label]:
        """Return labels of a drug, those of the drug alone before combinations with others."""
        fields = ("openfda.generic_name", "openfda.brand_name", "openfda.substance_name")
        # A space between terms means "or".
        query = " ".join(f'{field}:"{name}"' for name in names for field in fields)
        params = {"search": query, "limit": 3 * self.settings.labels, "api_key": self.key}
        reply = await self.get("/drug/label.json", params, restate=_restate)
        found = self.read(OpenFdaReply, reply.json())
        if found.error is not None:
            if found.error.code == "NOT_FOUND":
                return []
            reject(self.provider, f"{found.error.code} {found.error.message}")
        if found.results is None:
            self.read(_Whole, {})
        known = [field for fields in FIELDS.values() for field in fields]
        labels = [
            self.read(Label, {**raw, "sections": {field: raw[field] for field in known if raw.get(field) is not None}})
            for raw in found.results or ()
        ]
        return sorted(labels, key=lambda label: len(label.names.substance))[: self.settings.labels]

    def _parts(self, label: Label) -> list[_Part]:
        parts = []
        for section in self.settings.sections or FIELDS:
            for field in FIELDS[section]:
                text = "\n".join(label.sections.get(field, ()))
                spans = chunk_spans(text, 0, len(text)) if text.strip() else []
                parts += [_Part(label, section, field, start, end, text[start:end]) for start, end in spans]
        return parts

    def _find_key(self) -> SecretStr | None:
        return find_key(self.settings, self.name, needed=False)


def drug_names(text: str) -> list[tuple[str, ...]]:
    """Return for each drug that a text names the names to look for: as it stands there, and as American labels have it."""
    lowered = text.lower()
    groups: dict[str, list[str]] = {}
    for mention in find_drugs(text):
        groups.setdefault(mention.name, []).extend((lowered[mention.start : mention.end], mention.name))
    for name in US_NAMES:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", lowered):
            known = next((canonical for canonical, names in groups.items() if name in names), name)
            groups.setdefault(known, []).append(name)
    american = ([*(US_NAMES[name] for name in names if name in US_NAMES), *names] for names in groups.values())
    return [tuple(dict.fromkeys(re.sub(r"[^\w\s-]", " ", name).strip() for name in names)) for names in american]


def _may_be_a_drug(word: str) -> bool:
    return len(word) > 3 and word not in _NO_NAMES


def _bears(label: Label, words: Sequence[str]) -> bool:
    held = {
        word
        for name in (*label.names.generic, *label.names.brand, *label.names.substance)
        for word in content_words(name, limit=40)
    }
    return any(word in held for word in words)


def _restate(status: int, body: str) -> int:
    # That nothing matches is an answer, and its own: any other 404 means that the address is wrong.
    if status == 404 and '"NOT_FOUND"' in body and "No matches found" in body:
        return 200
    return restate(status, body)


def _hit(part: _Part, score: float) -> Hit:
    names = part.label.names
    generic = one_line(next(iter(names.generic), "") or next(iter(names.substance), ""))
    brand = one_line(next(iter(names.brand), ""))
    drug = f"{brand} ({generic})" if brand and generic and brand.casefold() != generic.casefold() else brand or generic
    heading = part.field.replace("_", " ").capitalize()
    maker = one_line(next(iter(names.manufacturer), ""))
    return Hit(
        id=f"spl:{part.label.set_id}:{part.field}:{part.start}-{part.end}:{text_id(part.text)[:8]}",
        doc_id=f"spl:{part.label.set_id}",
        text=part.text,
        title=f"{drug}: {heading}" if drug else heading,
        url=f"https://dailymed.nlm.nih.gov/dailymed/lookup.cfm?setid={part.label.set_id}",
        source=f"FDA label, {maker}" if maker else "FDA label",
        published=iso_date(part.label.effective_time),
        score=score,
    )
