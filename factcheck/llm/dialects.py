"""Say the same in three languages: what a request to each API looks like, and what its reply means."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import httpx
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from factcheck.llm.settings import Api, ModelSettings

Finish = Literal["stop", "length", "refusal", "filter", "other"]
Form = Literal["schema", "shape", "object", "plain"]
ANTHROPIC_VERSION = "2023-06-01"
SHAPE_WORDS = frozenset(
    {
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "additionalProperties",
        "description",
        "$defs",
        "$ref",
    }
)

_FINISH: Mapping[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}
# What errors are called in bodies, for those that come with another status than their own.
_STATUS = {
    "insufficient_quota": 402,
    "billing_hard_limit_reached": 402,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 529,
    "server_error": 500,
    "api_error": 500,
    "timeout_error": 504,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
}


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class Ask(NamedTuple):
    """Hold what to ask, and how: ``form`` is the way in which JSON is asked for where ``schema`` is given."""

    settings: ModelSettings
    messages: Sequence[Message]
    schema: Mapping[str, Any] | None
    form: Form
    completion_tokens: bool = False
    temperature: bool = True


class Heard(NamedTuple):
    """Hold what a reply says; token counts are None where it tells none."""

    text: str
    finish: Finish
    tokens_in: int | None
    tokens_out: int | None
    model: str


class Dialect(NamedTuple):
    """Hold how an API is spoken."""

    endpoint: str
    body: Callable[[Ask], dict[str, Any]]
    hear: Callable[[Any], Heard | None]
    forms: tuple[Form, ...]


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


def _or_none(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    try:
        return read(value)
    except ValidationError:  # token counts that cannot be read are none; the reply beside them may be sound
        return None


class _ChatMessage(_Loose):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(_Loose):
    message: _ChatMessage
    finish_reason: str | None = None


class _ChatUsage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chat(_Loose):
    choices: list[_Choice]
    usage: Annotated[_ChatUsage | None, WrapValidator(_or_none)] = None
    model: str | None = None


class _Part(_Loose):
    type: str
    text: str | None = None
    refusal: str | None = None


class _Item(_Loose):
    type: str
    content: list[_Part] | None = None


class _Usage(_Loose):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Incomplete(_Loose):
    reason: str | None = None


class _Response(_Loose):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: Annotated[_Usage | None, WrapValidator(_or_none)] = None
    model: str | None = None


class _AnthropicReply(_Loose):
    content: list[_Part]
    stop_reason: str | None = None
    usage: Annotated[_Usage | None, WrapValidator(_or_none)] = None
    model: str | None = None


def address(settings: ModelSettings) -> httpx.URL:
    """Return the URL to send to; a base URL that names the endpoint already is taken as it is."""
    url, endpoint = settings.url, DIALECTS[settings.api].endpoint
    path = url.path.rstrip("/")
    if settings.api == "anthropic" and not path:
        path = "/v1"
    if not path.endswith(endpoint):
        path += endpoint
    url = url.copy_with(path=path, fragment=None)
    if settings.api_version and settings.api != "anthropic":
        url = url.copy_set_param("api-version", settings.api_version)
    return url


def headers(settings: ModelSettings, key: SecretStr | None) -> dict[str, str | SecretStr]:
    """Return the headers that carry the key, and those of the settings."""
    found: dict[str, str | SecretStr] = {}
    if settings.api == "anthropic":
        found["anthropic-version"] = settings.api_version or ANTHROPIC_VERSION
    if key is not None and settings.api == "anthropic":
        found["x-api-key"] = key
    elif key is not None and settings.azure:
        found["api-key"] = key
    elif key is not None:
        found["authorization"] = SecretStr(f"Bearer {key.get_secret_value()}")
    return {**found, **settings.headers}


def shape(schema: Any) -> Any:
    """Return a JSON schema without the words that bound values, which some servers refuse and code checks anyway."""
    if isinstance(schema, Mapping):
        kept = {name: value for name, value in schema.items() if name in SHAPE_WORDS}
        for name in ("properties", "$defs"):
            if isinstance(kept.get(name), Mapping):
                kept[name] = {key: shape(value) for key, value in kept[name].items()}
        for name in ("items", "anyOf", "additionalProperties"):
            if name in kept:
                kept[name] = shape(kept[name])
        return kept
    return [shape(item) for item in schema] if isinstance(schema, list) else schema


def instructed(ask: Ask) -> list[Message]:
    """Return the messages, with the schema at the end of the last one where the server is not given it."""
    messages = [Message(role=message["role"], content=message["content"]) for message in ask.messages]
    if ask.schema is not None and ask.form in ("object", "plain") and messages:
        text = json.dumps(ask.schema, ensure_ascii=False)
        order = f"\n\nReply with one JSON value that fits this JSON schema, and with nothing else:\n{text}"
        messages[-1] = Message(role=messages[-1]["role"], content=messages[-1]["content"] + order)
    return messages


def restated(status: int, text: str) -> int:
    """Return the status that a reply of a model server stands for; see ``Net.request``."""
    if not (status in (200, 429) or status >= 500) or '"error"' not in text:
        return status
    try:
        error = json.loads(text)["error"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return status
    if not error:
        return status
    named = [error.get(name) for name in ("code", "type", "status")] if isinstance(error, dict) else []
    known = [_STATUS[name] for name in named if isinstance(name, str) and name in _STATUS]
    if status == 429:
        return 402 if 402 in known else 429
    if status >= 500:
        said = text.lower()
        words = ("response_format", "json_schema", "grammar", "guided", "structured output")
        return 400 if any(word in said for word in words) else status
    codes = [code for code in named if isinstance(code, int) and 400 <= code < 600]
    return (codes + known + [400])[0]


def _common(ask: Ask, limit: str) -> dict[str, Any]:
    settings = ask.settings
    body: dict[str, Any] = {"model": settings.model, limit: settings.max_tokens}
    if settings.temperature != "default" and ask.temperature:
        body["temperature"] = settings.temperature
    if settings.seed is not None:
        body["seed"] = settings.seed
    return body


def _wanted(ask: Ask) -> Any:
    return shape(ask.schema) if ask.form == "shape" else ask.schema


def _chat_body(ask: Ask) -> dict[str, Any]:
    body = _common(ask, "max_completion_tokens" if ask.completion_tokens else "max_tokens")
    body["messages"] = instructed(ask)
    if ask.schema is not None and ask.form in ("schema", "shape"):
        wanted = {"name": "reply", "strict": True, "schema": _wanted(ask)}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif ask.schema is not None and ask.form == "object":
        body["response_format"] = {"type": "json_object"}
    return {**body, **ask.settings.extra}


def _response_body(ask: Ask) -> dict[str, Any]:
    body = {**_common(ask, "max_output_tokens"), "input": instructed(ask), "store": False}
    if ask.schema is not None and ask.form in ("schema", "shape"):
        body["text"] = {"format": {"type": "json_schema", "name": "reply", "strict": True, "schema": _wanted(ask)}}
    elif ask.schema is not None and ask.form == "object":
        body["text"] = {"format": {"type": "json_object"}}
    return {**body, **ask.settings.extra}


def _anthropic_body(ask: Ask) -> dict[str, Any]:
    messages = instructed(ask)
    body = _common(ask, "max_tokens")
    body["messages"] = [message for message in messages if message["role"] != "system"]
    if system := "\n\n".join(message["content"] for message in messages if message["role"] == "system"):
        body["system"] = system
    if ask.schema is not None and ask.form in ("schema", "shape"):
        body["output_config"] = {"format": {"type": "json_schema", "schema": _wanted(ask)}}
    return {**body, **ask.settings.extra}


def _hear_chat(value: Any) -> Heard | None:
    reply = _Chat.model_validate(value)
    if not reply.choices:
        return None
    choice, usage = reply.choices[0], reply.usage or _ChatUsage()
    content = choice.message.content
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    finish: Finish = _FINISH.get(choice.finish_reason or "", "other")
    if choice.message.refusal and finish in ("stop", "other"):
        finish = "refusal"
    return Heard(content or "", finish, usage.prompt_tokens, usage.completion_tokens, reply.model or "")


def _hear_response(value: Any) -> Heard | None:
    reply = _Response.model_validate(value)
    parts = [part for item in reply.output if item.type == "message" for part in item.content or ()]
    reason = reply.incomplete_details.reason if reply.incomplete_details else None
    finish: Finish = _FINISH.get(reason or reply.status or "", "other")
    if finish == "stop" and any(part.refusal for part in parts):
        finish = "refusal"
    if not parts and finish == "stop":
        return None
    text = "".join(part.text or "" for part in parts if part.type == "output_text")
    usage = reply.usage or _Usage()
    return Heard(text, finish, usage.input_tokens, usage.output_tokens, reply.model or "")


def _hear_anthropic(value: Any) -> Heard | None:
    reply = _AnthropicReply.model_validate(value)
    finish: Finish = _FINISH.get(reply.stop_reason or "", "other")
    text = "".join(part.text or "" for part in reply.content if part.type == "text")
    if not reply.content and finish == "stop":
        return None
    usage = reply.usage or _Usage()
    counts = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    tokens_in = None if usage.input_tokens is None else sum(count or 0 for count in counts)
    return Heard(text, finish, tokens_in, usage.output_tokens, reply.model or "")


def heard(api: Api, value: Any) -> Heard | None:
    """Return what a reply says, None if it holds no choice or is none of that API."""
    try:
        found = DIALECTS[api].hear(value)
    except ValidationError:
        return None
    if found is None:
        return None
    # A count below zero would give a budget back what it never had.
    counts = [count if count is None or count >= 0 else None for count in (found.tokens_in, found.tokens_out)]
    return found._replace(tokens_in=counts[0], tokens_out=counts[1])


DIALECTS: Mapping[Api, Dialect] = {
    "openai-chat": Dialect("/chat/completions", _chat_body, _hear_chat, ("schema", "shape", "object", "plain")),
    "openai-responses": Dialect("/responses", _response_body, _hear_response, ("schema", "shape", "object", "plain")),
    "anthropic": Dialect("/messages", _anthropic_body, _hear_anthropic, ("schema", "shape", "plain")),
}
