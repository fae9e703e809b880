"""Call a model: within its budget, from the ledger where it was asked before, and never taking half a reply for one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import anyio
from pydantic import BaseModel, SecretStr

from factcheck.breaker import Breaker
from factcheck.errors import PermanentError, RetrievalError, StageError, TransientError
from factcheck.ledger import Ledger, Maker
from factcheck.llm.budget import Budget, Reservation, estimated_tokens
from factcheck.llm.dialects import (
    DIALECTS,
    Ask,
    Finish,
    Form,
    Message,
    address,
    headers,
    heard,
    instructed,
    restated,
    shape,
)
from factcheck.llm.prices import Price, no_price
from factcheck.llm.replies import Fault, ModelReplyError, UnreadableError, complaint, fitted, read_json
from factcheck.llm.settings import ModelSettings
from factcheck.net import HttpStatusError, Net, NetSettings, RateLimit, TokenBucket
from factcheck.schema import Model

M = TypeVar("M", bound=BaseModel)
ECHO_LIMIT = 20_000
REST = 5.0
MOMENT = 0.1
# A refusal with one of these statuses may be of the way in which JSON was asked for.
OF_FORM = frozenset({400, 415, 422, 501})
# A refusal with one of these meets every request.
OF_ALL = frozenset({401, 402, 403, 404, 407})
ELSEWHERE = ("context length", "context_length", "context window", "too long", "too many tokens", "content_filter")
FAULTS: Mapping[Finish, tuple[Fault, str, str]] = {
    "length": ("truncated", "was cut off at its limit of tokens (truncated)", "Raise max_tokens."),
    "refusal": ("refused", "was refused by the model", ""),
    "filter": ("filtered", "was withheld by the server's content filter", ""),
    "other": ("unfinished", "ended for a reason that leaves it incomplete", ""),
}


class Completion(Model):
    """Hold what a model replied; ``finish`` is ``stop`` only for a reply that the server calls complete."""

    text: str
    finish: Finish
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str = ""
    seconds: float = 0.0
    attempts: int = 1
    cached: bool = False


class _Manner(NamedTuple):
    """Hold what the server has been found to take."""

    form: Form
    completion_tokens: bool
    temperature: bool


class ModelClient:
    """Call one model; safe for concurrent use, from any event loop.

    ``net`` defaults to one made for the settings, which may reach private addresses, and ``budget`` to one without bounds,
    which counts. What the server does not take of the ways to ask for JSON is found out once. Raise ConfigError if
    ``budget`` has a bound in dollars and the price of the model is not known.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        net: Net | None = None,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.settings = settings
        self.budget = budget if budget is not None else Budget()
        self._ledger = ledger
        self._net = net if net is not None else _own_net(settings)
        self._gate = RateLimit(concurrency=settings.concurrency).of("model")
        self._makers: dict[str, Maker] = {}
        self._breaker = Breaker(REST)
        self._hopeless = False
        self._sleep = sleep
        self._price = Price(*settings.price) if settings.price is not None else self.budget.prices.find(settings.model)
        if self._price is None and self.budget.max_usd is not None:
            raise no_price(settings.model)
        self._url = address(settings)
        self._headers: Mapping[str, str | SecretStr] | None = None
        minute = settings.tokens_per_minute
        self._tokens = None if minute is None else TokenBucket(minute / 60, minute / 6)
        official = settings.api == "openai-chat" and (not settings.base_url or settings.azure)
        self._manner = _Manner("plain" if settings.json_schema == "off" else "schema", official, True)

    def __repr__(self) -> str:
        return f"ModelClient({self.settings.model!r} at {self.settings.url.host})"

    @property
    def requests(self) -> int:
        """Return how many HTTP requests were made, retries included."""
        return self._net.usage.requests

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Return what a reply depends on besides the messages: server, model and parameters."""
        return self.settings.fingerprint

    async def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, stage: str, sample: int = 0
    ) -> Completion:
        """Return the reply to ``messages``; look at ``finish`` before using its text.

        ``sample`` tells apart repeated calls with equal messages, which the ledger would otherwise answer alike. Raise the
        errors of ``Net.request``, BudgetExceededError, and ModelReplyError for a reply without a choice.
        """

        async def compute() -> dict[str, Any]:
            completion = await self._ask(messages, schema, stage)
            good = completion.finish == "stop" and bool(completion.text.strip())
            return {"status": "ok" if good else "failed", "completion": completion.model_dump(mode="json")}

        found, cached = await self._remembered("completion", messages, schema, stage, sample, compute)
        completion = Completion.model_validate(found["completion"])
        return completion.model_copy(update={"cached": True}) if cached else completion

    async def structured(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any],
        stage: str,
        model: type[M],
        sample: int = 0,
        prompt: str = "",
        keep: Callable[[M], bool] | None = None,
    ) -> M:
        """Return the reply as an instance of ``model``; one that does not parse or fit is asked for once more.

        ``prompt`` is the hash of the prompt behind the messages, which enters the record. A reply that ``keep`` refuses is
        returned and not stored, so that a later run asks for it anew.

        Raise ModelReplyError for a reply that is truncated, refused, filtered, empty or twice unparseable, and the errors
        of ``complete``. Only what fitted is stored in the ledger.
        """
        kind: type[Any] = list if schema.get("type") == "array" else dict

        def flagged(value: Any, *, repaired: bool) -> dict[str, Any]:
            good = keep is None or keep(fitted(value, model))
            return {"status": "ok" if good else "failed", "value": value, "repaired": repaired}

        async def compute() -> dict[str, Any]:
            first = self._whole(await self._ask(messages, schema, stage))
            value, problem = _read(first.text, kind, model)
            if not problem:
                return flagged(value, repaired=False)
            self.budget.spoiled(stage)
            echo = Message(role="assistant", content=first.text[:ECHO_LIMIT])
            order = Message(role="user", content=complaint(problem, schema))
            second = self._whole(await self._ask([*messages, echo, order], schema, stage))
            value, problem = _read(second.text, kind, model)
            if not problem:
                return flagged(value, repaired=True)
            self.budget.spoiled(stage)
            raise self._fault("unparseable", f"could not be read, nor when asked for again: {problem}")

        found, _ = await self._remembered("structured", messages, schema, stage, sample, compute, prompt)
        try:
            return fitted(found["value"], model)
        except UnreadableError as error:
            problem = str(error)
        raise self._fault("unparseable", f"is recorded in a form that is read no more: {problem}")

    async def _remembered(
        self,
        kind: str,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        stage: str,
        sample: int,
        compute: Callable[[], Awaitable[dict[str, Any]]],
        prompt: str = "",
    ) -> tuple[dict[str, Any], bool]:
        """Return what is recorded for these, or else what ``compute`` returns, and whether it was recorded."""
        if self._ledger is None:
            return await compute(), False
        cached = True

        async def computed() -> dict[str, Any]:
            nonlocal cached
            cached = False
            return await compute()

        asked = {"messages": [dict(message) for message in messages], "schema": schema, "sample": sample}
        maker = self._makers.get(prompt)
        if maker is None:
            maker = self._makers[prompt] = Maker({**self.fingerprint, "prompt_sha256": prompt})
        found = await self._ledger.remember(kind, maker, asked, computed, stage=stage)
        return found, cached

    async def _ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None, stage: str) -> Completion:
        """Return the reply of the server, asking in plainer ways until it takes one."""
        manner = self._manner
        tried = {manner}
        while True:
            ask = Ask(self.settings, messages, schema, *manner)
            try:
                async with self._gate.slot():  # before the budget, so that nothing is set aside for calls that queue
                    completion = await self._unless_open(ask, stage)
            except HttpStatusError as error:
                plainer = self._plainer(manner, error, schema)
                if plainer is None or plainer in tried:
                    if error.status == 404:
                        error.hint = "Check base_url, which often ends in /v1, and the name of the model."
                    raise
                manner = plainer
                tried.add(manner)
                continue
            if manner != self._manner:
                self._manner = _Manner(
                    _later(self._manner.form, manner.form), manner.completion_tokens, manner.temperature
                )
            return completion

    def _plainer(self, manner: _Manner, error: HttpStatusError, schema: Mapping[str, Any] | None) -> _Manner | None:
        """Return another way to ask after a refusal, None if none would help; each way is tried once."""
        said = error.detail.lower()
        if error.status not in OF_FORM or any(words in said for words in ELSEWHERE):
            return None
        if self.settings.api == "openai-chat" and ("max_tokens" in said or "max_completion_tokens" in said):
            return manner._replace(completion_tokens=not manner.completion_tokens)
        if "temperature" in said and manner.temperature and self.settings.temperature != "default":
            if "temperature" in self.settings.model_fields_set:
                error.hint = 'Set temperature = "default" for this model.'
                return None
            return manner._replace(temperature=False)
        if schema is None or self.settings.json_schema != "auto":
            return None
        forms = DIALECTS[self.settings.api].forms
        later = forms[forms.index(manner.form) + 1 :]
        if later and later[0] == "shape" and shape(schema) == schema:
            later = later[1:]
        return manner._replace(form=later[0]) if later else None

    async def _unless_open(self, ask: Ask, stage: str) -> Completion:
        """Make one call; while the server keeps failing wait for the one that tries it, no longer than a call may take."""
        while reason := self._breaker.refusal():
            self.budget.check_time()
            if self._hopeless or self._breaker.open_for > self.settings.deadline:
                raise TransientError(f"the model '{self.settings.model}' was not asked: {reason}")
            await self._sleep(MOMENT)
        try:
            completion = await self._call(ask, stage)
        except RetrievalError as error:
            self._hopeless = isinstance(error, HttpStatusError) and error.status in OF_ALL
            if self._hopeless or not isinstance(error, PermanentError):
                self._breaker.failed(error.message)
            else:
                self._breaker.succeeded()  # the server is there, and refuses this very request
            raise
        self._breaker.succeeded()
        return completion

    async def _call(self, ask: Ask, stage: str) -> Completion:
        """Make one call within the budget, and count it whatever becomes of it."""
        if self._headers is None:
            self._headers = headers(self.settings, self.settings.secret())
        settings = self.settings
        text = "".join(message["content"] for message in instructed(ask))
        expected = estimated_tokens(text) + 4 * len(ask.messages)
        held = await self.budget.reserve(stage, price=self._price, tokens_in=expected, tokens_out=settings.max_tokens)
        started, completion, used = time.monotonic(), None, (expected, 0)
        try:
            if self._tokens is not None and (wait := self._tokens.reserve(expected + settings.max_tokens)) > 0:
                left = self.budget.time_left
                await self._sleep(wait if left is None else min(wait, left))
                self.budget.check_time()
            started = time.monotonic()
            completion = await self._sent(ask)
        except HttpStatusError:
            used = (0, 0)  # it refused the request, which is not charged for
            raise
        except StageError:
            self.budget.check_time()
            raise
        finally:
            self._settle(held, completion, used, completion.seconds if completion else time.monotonic() - started)
        return completion

    def _settle(self, held: Reservation, completion: Completion | None, used: tuple[int, int], seconds: float) -> None:
        told = completion is not None and completion.tokens_in is not None and completion.tokens_out is not None
        if completion is not None:
            guess = estimated_tokens(completion.text)
            tokens_in, tokens_out = completion.tokens_in, completion.tokens_out
            used = (used[0] if tokens_in is None else tokens_in, guess if tokens_out is None else tokens_out)
        if self._tokens is not None:
            self._tokens.reserve(sum(used) - held.tokens)
        self.budget.settle(
            held,
            tokens_in=used[0],
            tokens_out=used[1],
            seconds=seconds,
            failed=completion is None or completion.finish != "stop" or not completion.text.strip(),
            estimated=not told and used != (0, 0),
        )

    async def _sent(self, ask: Ask) -> Completion:
        settings = self.settings
        left = self.budget.time_left
        deadline = settings.deadline if left is None else min(settings.deadline, left)
        reply = None
        with anyio.move_on_after(left):  # the deadline of a request begins with its turn, that of the run does not wait
            reply = await self._net.request(
                "POST",
                self._url,
                json=DIALECTS[settings.api].body(ask),
                headers=self._headers,
                timeout=settings.timeout,
                deadline=max(deadline, 0.001),
                attempts=settings.attempts,
                restate=restated,
            )
        if reply is None:
            raise TransientError(f"the model '{settings.model}' did not reply within the time given to the run.")
        try:
            value = reply.json()
        except PermanentError:
            value = None
        said = None if value is None else heard(settings.api, value)
        if said is None:
            what = "holds no choice" if isinstance(value, dict) else "is no valid JSON"
            hint = f"Check that the server speaks the API '{settings.api}'."
            raise self._fault("empty", f"{what}", hint=hint)
        # Text with half of a surrogate pair can neither be sent nor stored.
        said = said._replace(text=said.text.encode("utf-8", "replace").decode("utf-8"))
        return Completion(**said._asdict(), seconds=reply.seconds, attempts=reply.attempts)

    def _whole(self, completion: Completion) -> Completion:
        if completion.finish != "stop":
            fault, problem, hint = FAULTS[completion.finish]
            raise self._fault(fault, problem, hint=hint)
        if not completion.text.strip():
            raise self._fault("empty", "is empty")
        return completion

    def _fault(self, fault: Fault, problem: str, *, hint: str = "") -> ModelReplyError:
        return ModelReplyError(f"the reply of the model '{self.settings.model}' {problem}.", fault=fault, hint=hint)


def _read(text: str, kind: type[Any], model: type[BaseModel]) -> tuple[Any, str]:
    """Return the JSON in a text, and what is wrong with it, "" if it fits."""
    try:
        value = read_json(text, kind)
        fitted(value, model)
    except UnreadableError as error:
        return None, str(error)
    return value, ""


def _own_net(settings: ModelSettings) -> Net:
    minute = settings.requests_per_minute
    rate = RateLimit(None if minute is None else minute / 60, concurrency=settings.concurrency)
    return Net(NetSettings(allow_private=True, timeout=settings.timeout, deadline=settings.deadline), rate=rate)


def _later(one: Form, other: Form) -> Form:
    order: tuple[Form, ...] = ("schema", "shape", "object", "plain")
    return max(one, other, key=order.index)
