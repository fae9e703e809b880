"""Works registered with Crossref, and which agency a DOI is registered with."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field, SecretStr

from factcheck.net import Net
from factcheck_web.base import ReplyModel, Text, read_reply, reject, restate
from factcheck_web.texts import iso_date, one_line, plain_text

PROVIDER = "Crossref"
BASE_URL = "https://api.crossref.org"
AGENCY_PROVIDER = "doi.org"
AGENCY_URL = "https://doi.org/doiRA"
RETRACTIONS = frozenset({"retraction", "withdrawal", "removal", "partial_retraction"})


class _Update(ReplyModel):
    type: Text = ""
    label: Text = ""
    doi: Text = Field(default="", alias="DOI")


class _Issued(ReplyModel):
    parts: tuple[tuple[int | None, ...], ...] = Field(default=(), alias="date-parts")


class Work(ReplyModel):
    """Hold a work; ``updated_by`` are notices about it, by publishers and by Retraction Watch."""

    doi: str = Field(alias="DOI", min_length=1)
    titles: tuple[str, ...] = Field(default=(), alias="title")
    subtitles: tuple[str, ...] = Field(default=(), alias="subtitle")
    containers: tuple[str, ...] = Field(default=(), alias="container-title")
    issued: _Issued = _Issued()
    type: Text = ""
    updated_by: tuple[_Update, ...] = Field(default=(), alias="updated-by")

    @property
    def title(self) -> str:
        """Return the title without markup, with its subtitle."""
        parts = [one_line(plain_text(part)) for part in (*self.titles[:1], *self.subtitles[:1])]
        return ": ".join(part for part in parts if part)

    @property
    def container(self) -> str:
        """Return the journal or book, "" if there is none."""
        return one_line(plain_text(next(iter(self.containers), "")))

    @property
    def published(self) -> str:
        """Return the date of publication, "" if there is none."""
        parts = [part for part in next(iter(self.issued.parts), ()) if part is not None]
        return iso_date("-".join(f"{part:04d}" if index == 0 else f"{part:02d}" for index, part in enumerate(parts)))

    @property
    def retracted(self) -> bool:
        """Tell whether a notice retracts or withdraws the work, or its title says so."""
        prefix = self.title.casefold().startswith(("retracted:", "retracted article", "withdrawn:"))
        return prefix or any(update.type.casefold() in RETRACTIONS for update in self.updated_by)

    @property
    def updates(self) -> tuple[str, ...]:
        """Name each notice and its DOI, once."""
        named = ((update.label or update.type or "update", update.doi.lower()) for update in self.updated_by)
        return tuple(dict.fromkeys(f"{kind} ({doi})" if doi else kind for kind, doi in named))


class _WorkReply(ReplyModel):
    status: Literal["ok"]
    message: Work


class _Items(ReplyModel):
    items: tuple[Work, ...]


class _ListReply(ReplyModel):
    status: Literal["ok"]
    message: _Items


class _Agency(ReplyModel):
    agency: Text = Field(default="", alias="RA")
    status: Text = ""


class _AgencyReply(ReplyModel):
    entries: tuple[_Agency, ...] = Field(min_length=1)


class Crossref:
    """Ask Crossref and doi.org; with ``email`` Crossref counts the requests as polite and allows more of them."""

    def __init__(
        self, net: Net, agencies: Net, *, base_url: str, agency_url: str, email: SecretStr | None = None
    ) -> None:
        self._net = net
        self._agencies = agencies
        self._base_url = base_url
        self._agency_url = agency_url
        self._email = email

    async def work(self, doi: str) -> Work | None:
        """Return the work of a DOI, None if Crossref has none."""
        url = f"{self._base_url}/works/{quote(doi, safe='')}"
        reply = await self._ask(url, {}, restate=_restate)
        if reply.text.strip() == "Resource not found.":
            return None
        return read_reply(_WorkReply, self._checked(reply.json()), provider=PROVIDER).message

    async def find(self, title: str, k: int) -> list[Work]:
        """Return at most ``k`` works, those first whose bibliographic data are most like ``title``."""
        reply = await self._ask(f"{self._base_url}/works", {"query.bibliographic": title, "rows": k})
        return list(read_reply(_ListReply, self._checked(reply.json()), provider=PROVIDER).message.items[:k])

    async def agency(self, doi: str) -> str:
        """Return the name of the agency a DOI is registered with, "" if it is not registered at all."""
        url = f"{self._agency_url}/{quote(doi, safe='')}"
        reply = await self._agencies.request("GET", url, accept=("application/json", "text/*"))
        found = read_reply(_AgencyReply, {"entries": reply.json()}, provider=AGENCY_PROVIDER).entries[0]
        if found.agency:
            return found.agency
        if found.status.casefold() in ("doi does not exist", "invalid doi", "unknown doi"):
            return ""
        reject(AGENCY_PROVIDER, found.status)

    async def _ask(self, url: str, params: dict[str, Any], **more: Any) -> Any:
        more.setdefault("restate", restate)
        accept = ("application/json", "text/plain")
        return await self._net.request("GET", url, params={**params, "mailto": self._email}, accept=accept, **more)

    def _checked(self, data: Any) -> Any:
        if isinstance(data, dict) and data.get("status") not in (None, "ok"):
            message = data.get("message")
            first = message[0] if isinstance(message, list) and message else message
            reject(PROVIDER, str(first.get("message", "") if isinstance(first, dict) else first or ""))
        return data


def _restate(status: int, body: str) -> int:
    # Crossref answers so for a DOI that it does not have; any other 404 means that the address is wrong.
    return 200 if status == 404 and body.strip() == "Resource not found." else restate(status, body)
