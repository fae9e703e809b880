"""The retriever ``web/serper``: Google results through serper.dev."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from factcheck_web.base import Hit, Rate, ReplyModel, Text, page_hit, reject
from factcheck_web.open_web import OpenWebKeySettings, OpenWebRetriever
from factcheck_web.texts import iso_date


class _Result(ReplyModel):
    title: Text = ""
    link: str
    snippet: Text = ""
    date: Text = ""


class _AnswerBox(ReplyModel):
    title: Text = ""
    link: Text = ""
    snippet: Text = ""
    answer: Text = ""
    date: Text = ""


class SerperReply(ReplyModel):
    """Hold a reply; an error has ``message`` and neither results nor the parameters of a search."""

    search_parameters: dict[str, Any] | None = Field(default=None, alias="searchParameters")
    organic: tuple[_Result, ...] | None = None
    answer_box: _AnswerBox | None = Field(default=None, alias="answerBox")
    message: Text = ""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.organic is None and self.search_parameters is None and not self.message:
            raise ValueError("there is neither 'organic' nor 'searchParameters' nor 'message'")
        return self


class SerperRetriever(OpenWebRetriever):
    """Search Google; a featured answer with a source comes first."""

    name = "web/serper"
    provider = "Serper"
    rate = Rate(per_second=20.0, burst=20, concurrency=16)
    query_chars = 2000
    query_words = 32

    class Settings(OpenWebKeySettings):
        """Set the country (``gl``, as in "gb") and the language (``hl``, as in "en") of the search."""

        base_url: str = Field(default="https://google.serper.dev", pattern=r"^https?://[^\s?#]+$")
        key_env: str = "SERPER_API_KEY"
        gl: str = Field(default="", pattern=r"^([a-z]{2})?$")
        hl: str = Field(default="", pattern=r"^([a-z]{2}(-[A-Za-z]{2,4})?)?$")

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits; Serper charges two credits for more than ten."""
        body = {"q": self.narrowed(text), "num": max(10, self.wanted(k, 20))}
        body |= {name: value for name, value in (("gl", self.settings.gl), ("hl", self.settings.hl)) if value}
        url = f"{self.settings.base_url}/search"
        reply = await self.net.request("POST", url, json=body, headers={"X-API-KEY": self.secret})
        found = self.read(SerperReply, reply.json())
        if found.organic is None and found.message:
            reject(self.provider, found.message, hint="Check the key and the credits at serper.dev.")
        box = found.answer_box
        first = []
        if box is not None and box.link and (box.snippet or box.answer):
            first = [page_hit(box.link, box.snippet or box.answer, title=box.title, published=iso_date(box.date))]
        return first + [
            page_hit(result.link, result.snippet, title=result.title, published=iso_date(result.date))
            for result in found.organic or ()
        ]
