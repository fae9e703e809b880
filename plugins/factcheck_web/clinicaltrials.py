"""The retriever ``web/clinicaltrials``: registered studies of ClinicalTrials.gov, API version 2."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from factcheck_web.base import Hit, Rate, ReplyModel, Text, WebRetriever, WebSettings
from factcheck_web.texts import content_words, iso_date, one_line

FIELDS = (
    "NCTId,BriefTitle,OfficialTitle,OverallStatus,WhyStopped,StartDate,PrimaryCompletionDate,CompletionDate,"
    "LastUpdatePostDate,LeadSponsorName,BriefSummary,Condition,StudyType,Phase,EnrollmentCount,EnrollmentType,"
    "InterventionType,InterventionName,PrimaryOutcomeMeasure,PrimaryOutcomeTimeFrame,HasResults"
)
NCT = re.compile(r"\bNCT\d{8}\b", re.IGNORECASE)
LISTED = 10


class _Date(ReplyModel):
    date: Text = ""


class _Named(ReplyModel):
    name: Text = ""


class _Identification(ReplyModel):
    nct: str = Field(alias="nctId", pattern=r"^NCT\d{8}$")
    brief_title: Text = Field(default="", alias="briefTitle")
    official_title: Text = Field(default="", alias="officialTitle")


class _Status(ReplyModel):
    overall: Text = Field(default="", alias="overallStatus")
    why_stopped: Text = Field(default="", alias="whyStopped")
    start: _Date = Field(default=_Date(), alias="startDateStruct")
    primary_completion: _Date = Field(default=_Date(), alias="primaryCompletionDateStruct")
    completion: _Date = Field(default=_Date(), alias="completionDateStruct")
    updated: _Date = Field(default=_Date(), alias="lastUpdatePostDateStruct")


class _Sponsors(ReplyModel):
    lead: _Named = Field(default=_Named(), alias="leadSponsor")


class _Description(ReplyModel):
    brief_summary: Text = Field(default="", alias="briefSummary")


class _Conditions(ReplyModel):
    conditions: tuple[str, ...] = ()


class _Enrollment(ReplyModel):
    count: int | None = None
    type: Text = ""


class _Design(ReplyModel):
    study_type: Text = Field(default="", alias="studyType")
    phases: tuple[str, ...] = ()
    enrollment: _Enrollment = Field(default=_Enrollment(), alias="enrollmentInfo")


class _Intervention(ReplyModel):
    type: Text = ""
    name: Text = ""


class _Interventions(ReplyModel):
    interventions: tuple[_Intervention, ...] = ()


class _Outcome(ReplyModel):
    measure: Text = ""
    time_frame: Text = Field(default="", alias="timeFrame")


class _Outcomes(ReplyModel):
    primary: tuple[_Outcome, ...] = Field(default=(), alias="primaryOutcomes")


class Protocol(ReplyModel):
    """Hold what a study registered; sections that it does not have are empty."""

    identification: _Identification = Field(alias="identificationModule")
    status: _Status = Field(default=_Status(), alias="statusModule")
    sponsors: _Sponsors = Field(default=_Sponsors(), alias="sponsorCollaboratorsModule")
    description: _Description = Field(default=_Description(), alias="descriptionModule")
    conditions: _Conditions = Field(default=_Conditions(), alias="conditionsModule")
    design: _Design = Field(default=_Design(), alias="designModule")
    arms: _Interventions = Field(default=_Interventions(), alias="armsInterventionsModule")
    outcomes: _Outcomes = Field(default=_Outcomes(), alias="outcomesModule")


class Study(ReplyModel):
    """Hold one study."""

    protocol: Protocol = Field(alias="protocolSection")
    has_results: bool | None = Field(default=None, alias="hasResults")


class StudiesReply(ReplyModel):
    """Hold a reply; ``studies`` is an empty list when nothing was found."""

    studies: tuple[Study, ...]


class ClinicalTrialsRetriever(WebRetriever):
    """Find studies, most relevant first; if the query names studies by NCT number, exactly those."""

    name = "web/clinicaltrials"
    provider = "ClinicalTrials.gov"
    rate = Rate(per_second=50 / 60, burst=3)
    host = "clinicaltrials.gov"
    query_chars = 1000
    query_words = 200

    class Settings(WebSettings):
        """Take what every service takes."""

        base_url: str = Field(default="https://clinicaltrials.gov/api/v2", pattern=r"^https?://[^\s?#]+$")

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits: studies that hold all words of the query, or any of them if none holds all."""
        if numbers := list(dict.fromkeys(match.upper() for match in NCT.findall(text))):
            return await self._ask({"filter.ids": ",".join(numbers[:50])}, max(k, len(numbers[:50])))

        async def ask(words: list[str], some: bool) -> list[Hit]:
            return await self._ask({"query.term": (" OR " if some else " ").join(words)}, k)

        return await self.relaxed(content_words(text, limit=16), ask)

    async def _ask(self, what: dict[str, Any], k: int) -> list[Hit]:
        params = {**what, "pageSize": k, "format": "json", "fields": FIELDS}
        found = self.read(StudiesReply, (await self.get("/studies", params)).json())
        return [study_hit(study) for study in found.studies]


def study_hit(study: Study) -> Hit:
    """Return a study as lines of ``name: value``; the values are verbatim, and so is the brief summary at the end."""
    protocol = study.protocol
    number = protocol.identification.nct
    title = protocol.identification.official_title or protocol.identification.brief_title
    text = "\n".join(f"{name}: {value}" for name, value in _facts(study) if value)
    summary = protocol.description.brief_summary.strip()
    return Hit(
        id=f"nct:{number}",
        doc_id=f"nct:{number}",
        text=f"{text}\n{summary}".strip(),
        title=title,
        url=f"https://clinicaltrials.gov/study/{number}",
        source="ClinicalTrials.gov",
        published=iso_date(protocol.status.updated.date),
    )


def _facts(study: Study) -> list[tuple[str, str]]:
    protocol, status, design = study.protocol, study.protocol.status, study.protocol.design
    enrollment = "" if design.enrollment.count is None else f"{design.enrollment.count} {design.enrollment.type}"
    outcomes = (
        f"{item.measure} ({item.time_frame})" if item.time_frame else item.measure for item in protocol.outcomes.primary
    )
    treatments = (f"{item.type}: {item.name}" if item.type else item.name for item in protocol.arms.interventions)
    results = {True: "posted", False: "not posted", None: ""}[study.has_results]
    return [
        ("Study", protocol.identification.nct),
        ("Title", one_line(protocol.identification.brief_title)),
        ("Status", status.overall),
        ("Why stopped", one_line(status.why_stopped)),
        ("Study type", design.study_type),
        ("Phase", ", ".join(design.phases)),
        ("Enrollment", enrollment.strip()),
        ("Start", status.start.date),
        ("Primary completion", status.primary_completion.date),
        ("Completion", status.completion.date),
        ("Sponsor", one_line(protocol.sponsors.lead.name)),
        ("Conditions", _listed(protocol.conditions.conditions)),
        ("Interventions", _listed(treatments)),
        ("Primary outcomes", _listed(outcomes)),
        ("Results", results),
    ]


def _listed(items: Any) -> str:
    shown = [one_line(item) for item in items if item.strip()]
    more = f"; and {len(shown) - LISTED} more" if len(shown) > LISTED else ""
    return "; ".join(shown[:LISTED]) + more
