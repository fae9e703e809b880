"""What the retrievers of this plugin share: settings, requests, validated replies, and hits that become passages."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, field_validator

from factcheck.errors import ConfigError, PermanentError, RateLimitedError, TransientError
from factcheck.net import Net, NetSettings, RateLimit, Reply
from factcheck.schema import Model, Passage, Query
from factcheck_web.authorities import Domains, allowed, host_of
from factcheck_web.texts import one_line, search_query


class ReplyModel(BaseModel):
    """Base of the models of replies: what the documentation names is checked, what it does not name is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that a service may leave out or send as null."""

R = TypeVar("R", bound=ReplyModel)
T = TypeVar("T")


class Rate(NamedTuple):
    """Hold a rate limit: requests per second, how many may come at once after a pause, and how many run at a time."""

    per_second: float
    burst: int = 1
    concurrency: int = 4


class Hit(NamedTuple):
    """Hold one result before it has a rank; ``id`` is stable for the same text of the same document."""

    id: str
    doc_id: str
    text: str
    title: str = ""
    url: str = ""
    source: str = ""
    published: str = ""
    score: float | None = None


_LIMITED = re.compile(r"\s*\{\s*\"error\"\s*:\s*\"(?:API rate limit exceeded|too many requests)", re.IGNORECASE)


class ServiceSettings(Model):
    """Hold what every service takes.

    ``base_url`` may lead to a proxy or a server of your own, and only then to a private address. ``k`` bounds the
    results of one query, whatever the run asks for. ``per_second`` replaces the rate limit that the service documents
    for its lowest plan.
    """

    base_url: str = Field(default="", pattern=r"^https?://[^\s?#]+$")
    k: int = Field(default=10, ge=1, le=100)
    per_second: float | None = Field(default=None, gt=0, le=1000)
    net: NetSettings = NetSettings()

    @field_validator("base_url", "agency_url", "pubmed_url", "trials_url", check_fields=False)
    @classmethod
    def _plain_address(cls, url: str) -> str:
        if "@" in url.split("/", 3)[2]:
            raise ValueError("it names a user, which is not sent; give the key as a setting")
        return url.rstrip("/")


class WebSettings(ServiceSettings):
    """Add the allow-list of sources, ``domains``."""

    domains: Domains = ()


class KeySettings(WebSettings):
    """Add the key of the service; without ``key`` it is read from the environment variable ``key_env``."""

    key: SecretStr | None = None
    key_env: str = ""


class WebRetriever:
    """Ask one service; a subclass says how, and what a result is.

    ``concurrency`` is how many queries are answered at a time: more would wait for their turn, while their time runs.
    Raises ConfigError when it is made without the key that it needs, and RetrievalError for whatever goes wrong later;
    an empty result always means that the service searched and found nothing.
    """

    name: ClassVar[str]
    provider: ClassVar[str]
    rate: ClassVar[Rate]
    query_chars: ClassVar[int] = 400
    query_words: ClassVar[int] = 60
    host: ClassVar[str] = ""
    version = "1"
    network = True

    class Settings(WebSettings):
        """Overridden by each retriever."""

    def __init__(self, settings: Any = None, *, net: Net | None = None) -> None:
        self.settings: Any = settings if settings is not None else self.Settings()
        if self.host and not allowed(f"https://{self.host}/", self.settings.domains):
            raise ConfigError(
                f"the setting 'domains' of retriever '{self.name}' leaves out {self.host}, where all its results are.",
                hint=f"Add {self.host} to the list, or leave the retriever out.",
            )
        self.key = self._find_key()
        self.net = net if net is not None else self._make_net()

    async def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return at most ``k`` passages, in the order of the service; ``[]`` if it found nothing."""
        wanted = min(k, self.settings.k)
        text = search_query(query.text, chars=self.query_chars, words=self.query_words)
        if wanted < 1 or not any(char.isalnum() for char in text):
            return []
        hits = await self.search(text, wanted)
        return passages((hit for hit in hits if allowed(hit.url, self.settings.domains)), wanted, corpus=self.name)

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return what the service finds, best first; more than ``k`` hits and hits of other domains are left out later."""
        raise NotImplementedError

    def read(self, model: type[R], data: object) -> R:
        """Return a reply as ``model``; raises PermanentError naming the field that is not as documented."""
        return read_reply(model, data, provider=self.provider)

    async def relaxed(self, words: list[str], ask: Callable[[list[str], bool], Awaitable[list[Hit]]]) -> list[Hit]:
        """Ask for all ``words`` and, if nothing has them all, for any; ``ask`` is given the words and whether any will do.

        Databases of literature demand every word, and no abstract holds every word of a sentence.
        """
        if not words:
            return []
        return await ask(words, False) or (await ask(words, True) if len(words) > 1 else [])

    async def get(self, path: str, params: Mapping[str, Any], **more: Any) -> Reply:
        """Send a GET request to the service; see ``Net.request`` for ``more``."""
        more.setdefault("restate", restate)
        return await self.net.request("GET", f"{self.settings.base_url}{path}", params=params, **more)

    @property
    def concurrency(self) -> int:
        """Return how many queries are answered at a time."""
        return self.net.rate.concurrency

    @property
    def requests(self) -> int:
        """Return how many HTTP requests were made, retries included."""
        return self.net.usage.requests

    def _find_key(self) -> SecretStr | None:
        return find_key(self.settings, self.name) if isinstance(self.settings, KeySettings) else None

    def _make_net(self) -> Net:
        own = self.settings.base_url != type(self.settings).model_fields["base_url"].default
        return make_net(self.settings.net, self.rate_limit(), per_second=self.settings.per_second, private=own)

    @property
    def secret(self) -> SecretStr:
        """Return the key of a service that needs one."""
        if self.key is None:
            raise ConfigError(f"retriever '{self.name}' has no key.", hint="Set one in its table.")
        return self.key

    def rate_limit(self) -> Rate:
        """Return the rate limit of the service, which may depend on whether there is a key."""
        return self.rate


def make_net(settings: NetSettings, rate: Rate, *, per_second: float | None = None, private: bool = False) -> Net:
    """Return a client under a rate limit; with ``private`` it may ask a private address."""
    chosen = settings.model_copy(update={"allow_private": True}) if private else settings
    limit = RateLimit(per_second=per_second or rate.per_second, burst=rate.burst, concurrency=rate.concurrency)
    return Net(chosen, rate=limit)


def find_key(settings: Any, name: str, *, needed: bool = True) -> SecretStr | None:
    """Return the key of the settings or of the environment they name; raises ConfigError if one is needed and missing."""
    given: SecretStr | None = settings.key
    if given is not None and given.get_secret_value():
        return given
    if found := os.environ.get(settings.key_env, "").strip() if settings.key_env else "":
        return SecretStr(found)
    if not needed:
        return None
    raise ConfigError(
        f"retriever '{name}' has no key.",
        hint=f'Set {settings.key_env or "key_env"}, or write key = {{ env = "NAME" }} under [plugins."{name}"].',
    )


def read_reply(model: type[R], data: object, *, provider: str) -> R:
    """Return ``data`` as ``model``; raises PermanentError naming the service and the field that is not as documented."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The name of a validator or of a union's arm is no key of the reply, but still says where.
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        message = first["msg"].removeprefix("Value error, ")
        raise PermanentError(
            f"the reply of {provider} is not as documented: field '{field}': {message[:1].lower()}{message[1:]}.",
            hint="Check base_url; if it is right, the service has changed.",
        ) from None


def reject(provider: str, message: str, *, hint: str = "") -> NoReturn:
    """Raise what an error in the body of a reply stands for: a rate limit, a passing fault, or a lasting one."""
    text = one_line(message)[:300] or "no reason is given"
    folded = text.casefold()
    if re.search(r"rate limit|too many requests|\b429\b", folded):
        raise RateLimitedError(f"{provider} refuses: {text}.", hint=hint or "Lower per_second, or try again later.")
    if any(
        sign in folded
        for sign in ("temporar", "timeout", "timed out", "try again", "unavailable", "overload", "backend")
    ):
        raise TransientError(f"{provider} failed: {text}.", hint=hint or "Try again later.")
    raise PermanentError(f"{provider} refuses: {text}.", hint=hint or "Check the key and the settings.")


def restate(status: int, body: str) -> int:
    """Return the status that a reply stands for: NCBI and others report a rate limit with status 200 or 400."""
    return 429 if status in (200, 400) and _LIMITED.match(body) else status


def passages(hits: Iterable[Hit], k: int, *, corpus: str) -> list[Passage]:
    """Return at most ``k`` hits as passages with ranks 1, 2, …; blank and repeated ones are left out.

    An address that is none of the web is left out too: a report makes a link of it.
    If the service scored every hit they are ordered by score, else they keep their order and score 1/rank.
    """
    kept: dict[str, Hit] = {}
    for hit in hits:
        if hit.text.strip():
            kept.setdefault(hit.id, hit)
    chosen = list(kept.values())
    scored = bool(chosen) and all(hit.score is not None and math.isfinite(hit.score) for hit in chosen)
    if scored:
        chosen.sort(key=lambda hit: -(hit.score or 0.0))
    return [
        Passage(
            id=_clean(hit.id),
            doc_id=_clean(hit.doc_id),
            corpus=corpus,
            title=_clean(one_line(hit.title)),
            text=_clean(hit.text.strip()),
            source=_clean(one_line(hit.source)),
            url=_clean(hit.url.strip()) if host_of(hit.url.strip()) else "",
            published=hit.published,
            score=hit.score if scored and hit.score is not None else 1.0 / rank,
            rank=rank,
        )
        for rank, hit in enumerate(chosen[:k], start=1)
    ]


def text_id(*parts: str) -> str:
    """Return a short name for texts that is the same in every run: 16 hexadecimal digits of their SHA-256."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def page_hit(url: str, text: str, *, title: str = "", published: str = "", score: float | None = None) -> Hit:
    """Return the hit for a web page known by its address, with an id for this text of it."""
    return Hit(
        id=f"{text_id(url)}-{text_id(text)[:8]}",
        doc_id=url,
        text=text,
        title=title,
        url=url,
        source=host_of(url).removeprefix("www."),
        published=published,
        score=score,
    )


def _clean(text: str) -> str:
    # JSON can carry half a surrogate pair, which no file can; NUL ends a text for many readers.
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", "\ufffd")
