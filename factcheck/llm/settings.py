"""What a model role is set to: which API, which server, which model, and where its key comes from."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any, Literal, Self

import httpx
from pydantic import Field, SecretStr, field_validator, model_validator

from factcheck.config import SECRET_NAME
from factcheck.errors import ConfigError
from factcheck.schema import Model

Api = Literal["openai-chat", "openai-responses", "anthropic"]
ModelRole = Literal["decomposer", "query_writer", "judge", "grader", "injector"]

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
OWN_FIELDS = frozenset(
    {"model", "messages", "input", "system", "stream", "max_tokens", "temperature", "response_format"}
)
_SNAPSHOT = re.compile(r"[-@:](20\d\d-?[01]\d-?[0-3]\d|latest|preview)$")


class ModelSettings(Model):
    """Hold the settings of one model.

    ``base_url`` "" is the provider's own, which is also the only case in which its usual variable (OPENAI_API_KEY,
    ANTHROPIC_API_KEY) is read for the key. A key comes from ``key``, else the variable ``key_env``, else the system's
    keyring under ``key_keyring`` ("service/user"). For Azure ``base_url`` is that of the deployment, with ``api_version``.

    ``temperature`` is left out where the model takes none and it was not set; "default" leaves it to the server.
    ``json_schema`` "auto" uses what the server takes of it. ``extra`` goes into the body of each request. ``price`` is US
    dollars per million tokens in and out, over that of the price list. Times are in seconds.
    """

    api: Api = "openai-chat"
    base_url: str = ""
    model: str = Field(min_length=1)
    key: SecretStr | None = None
    key_env: str = ""
    key_keyring: str = ""
    api_version: str = ""
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    temperature: float | Literal["default"] = 0.0
    max_tokens: int = Field(default=2048, ge=1)
    seed: int | None = None
    json_schema: Literal["auto", "on", "off"] = "auto"
    extra: Mapping[str, Any] = Field(default_factory=dict)
    timeout: float = Field(default=120.0, gt=0, le=3600)
    deadline: float = Field(default=300.0, gt=0, le=7200)
    attempts: int = Field(default=5, ge=1, le=20)
    concurrency: int = Field(default=64, ge=1, le=10_000)
    requests_per_minute: float | None = Field(default=None, gt=0)
    tokens_per_minute: float | None = Field(default=None, gt=0)
    price: tuple[float, float] | None = None

    @field_validator("base_url")
    @classmethod
    def _no_secret_in_url(cls, value: str) -> str:
        try:
            url = httpx.URL(value)
        except (httpx.InvalidURL, ValueError):
            raise ValueError("it is no URL") from None
        if value and (url.scheme not in ("http", "https") or not url.host):
            raise ValueError("it must begin with http:// or https://")
        if url.userinfo or any(SECRET_NAME.search(name) for name in url.params):
            raise ValueError("it holds a user or a key; give the key as key_env")
        return value

    @field_validator("price")
    @classmethod
    def _not_negative(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and min(value) < 0:
            raise ValueError("a price is not negative")
        return value

    @field_validator("extra")
    @classmethod
    def _not_its_own(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        if taken := sorted(OWN_FIELDS & set(value)):
            raise ValueError(f"it may not set {', '.join(taken)}")
        if named := [name for name in value if SECRET_NAME.search(name) and not name.endswith("tokens")]:
            raise ValueError(f"{named[0]} names a secret; give it under headers")
        return value

    @model_validator(mode="after")
    def _api_takes_them(self) -> Self:
        if self.seed is not None and self.api != "openai-chat":
            raise ValueError(f"the API '{self.api}' takes no seed")
        if self.api_version and self.api == "anthropic" and not re.fullmatch(r"\d{4}-\d\d-\d\d", self.api_version):
            raise ValueError("an api_version of Anthropic is a date such as 2023-06-01")
        return self

    @property
    def url(self) -> httpx.URL:
        """Return the base URL, that of the provider if none is set."""
        return httpx.URL(self.base_url or (ANTHROPIC if self.api == "anthropic" else OPENAI))

    @property
    def azure(self) -> bool:
        """Tell whether the server is one of Azure, which takes its key in a header of its own."""
        return self.url.host.endswith(AZURE_HOSTS) or (bool(self.api_version) and self.api != "anthropic")

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Return what a reply depends on: server, model and parameters, and no secret."""
        fields = ("api", "model", "api_version", "temperature", "max_tokens", "seed", "json_schema")
        chosen = {name: getattr(self, name) for name in fields}
        return {**chosen, "base_url": str(self.url).rstrip("/"), "extra": dict(self.extra)}

    def secret(self) -> SecretStr | None:
        """Return the key, None for a server without one; raise ConfigError if the place named for it holds none."""
        if self.key is not None:
            return _stripped(self.key.get_secret_value(), "the setting key")
        if self.key_env:
            return _stripped(os.environ.get(self.key_env, ""), f"the environment variable {self.key_env}")
        if self.key_keyring:
            return _stripped(_from_keyring(self.key_keyring), f"the keyring under '{self.key_keyring}'")
        if self.base_url:
            return None
        usual = "ANTHROPIC_API_KEY" if self.api == "anthropic" else "OPENAI_API_KEY"
        hint = f"Set {usual}, or name the key's variable with --key-env."
        if self.api == "openai-chat" and family(self.model).startswith("claude"):
            hint = "For Anthropic's own server add --api anthropic."
        return _stripped(os.environ.get(usual, ""), f"the environment variable {usual}", hint)


def roles_differ(judge: ModelSettings, graded_model: str) -> None:
    """Raise ConfigError if the judge is the model that it is to judge; other snapshots of one model count as the same."""
    if graded_model.strip() and family(judge.model) == family(graded_model):
        raise ConfigError(
            f"the judge '{judge.model}' is the model under evaluation, '{graded_model}', and would judge itself.",
            hint="Choose another model as the judge.",
        )


def family(model: str) -> str:
    """Return a model's name without provider, snapshot date and case."""
    name = model.strip().lower().rpartition("/")[2]
    name = re.sub(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai)\.", "", name)  # as Bedrock writes them
    while (shorter := _SNAPSHOT.sub("", re.sub(r"-v\d+(:\d+)?$", "", name))) != name:
        name = shorter
    return name


def _stripped(value: str, place: str, hint: str = "Set it, or name another place for the key.") -> SecretStr:
    if not value.strip():
        raise ConfigError(f"{place} holds no key.", hint=hint)
    return SecretStr(value.strip())


def _from_keyring(place: str) -> str:
    service, _, user = place.rpartition("/")
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        raise ConfigError("key_keyring needs the package 'keyring'.", hint="Run: pip install keyring") from None
    try:
        return str(keyring.get_password(service or user, user) or "")
    except Exception as error:  # each backend has its own
        raise ConfigError(f"the keyring cannot be read: {type(error).__name__}.", hint="Unlock it.") from None
