"""The retriever ``web/brave``: the Brave Search API."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field

from factcheck.errors import PermanentError
from factcheck.net import HttpStatusError
from factcheck_web.base import Hit, Rate, ReplyModel, Text, page_hit, reject, restate
from factcheck_web.open_web import OpenWebKeySettings, OpenWebRetriever
from factcheck_web.texts import iso_date, plain_text

MOST = 20
_QUOTA = re.compile(r'"quota_(limit|current)"\s*:\s*(\d{1,12})\b')


class _Result(ReplyModel):
    title: Text = ""
    url: str
    description: Text = ""
    page_age: Text = ""
    extra_snippets: tuple[str, ...] | None = None


class _Web(ReplyModel):
    results: tuple[_Result, ...]


class _Error(ReplyModel):
    code: Text = ""
    detail: Text = ""


class BraveReply(ReplyModel):
    """Hold a reply; ``web`` is left out when nothing was found."""

    type: Literal["search", "ErrorResponse"]
    web: _Web | None = None
    error: _Error | None = None


class BraveRetriever(OpenWebRetriever):
    """Search the index of Brave; further excerpts of a page, if the plan brings them, follow its description."""

    name = "web/brave"
    provider = "Brave Search"
    rate = Rate(per_second=1.0)
    query_chars = 400
    query_words = 50

    class Settings(OpenWebKeySettings):
        """Set the country (as in "GB") and the language (``search_lang``, as in "en") of the search."""

        base_url: str = Field(default="https://api.search.brave.com", pattern=r"^https?://[^\s?#]+$")
        key_env: str = "BRAVE_API_KEY"
        country: str = Field(default="", pattern=r"^([A-Z]{2,3})?$")
        search_lang: str = Field(default="", pattern=r"^([a-z]{2}(-[a-z]{2,4})?)?$")
        extra_snippets: bool = True

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits of the first page."""
        params: dict[str, Any] = {
            "q": self.narrowed(text),
            "count": self.wanted(k, MOST),
            "result_filter": "web",
            "text_decorations": "false",
            "extra_snippets": "true" if self.settings.extra_snippets else None,
            "country": self.settings.country or None,
            "search_lang": self.settings.search_lang or None,
        }
        headers = {"X-Subscription-Token": self.secret}
        try:
            reply = await self.get("/res/v1/web/search", params, headers=headers, restate=_restate)
        except HttpStatusError as refusal:
            if "not subscribed in the plan" not in refusal.detail:
                raise
            raise PermanentError(
                "the plan of the key leaves out what was asked of Brave Search.", hint="Set extra_snippets = false."
            ) from refusal
        found = self.read(BraveReply, reply.json())
        if found.type == "ErrorResponse":
            error = found.error or _Error()
            reject(self.provider, f"{error.code} {error.detail}")
        return [self._hit(result) for result in found.web.results] if found.web is not None else []

    def _hit(self, result: _Result) -> Hit:
        snippets = dict.fromkeys(plain_text(text) for text in (result.description, *(result.extra_snippets or ())))
        return page_hit(
            result.url,
            "\n".join(text for text in snippets if text),
            title=plain_text(result.title),
            published=iso_date(result.page_age),
        )


def _restate(status: int, body: str) -> int:
    # A month's quota that is used up comes as a rate limit, and no wait within a run will bring it back.
    if status == 429:
        quota = {name: int(number) for name, number in _QUOTA.findall(body)}
        if 0 < quota.get("limit", 0) <= quota.get("current", 0):
            return 402
    return restate(status, body)
