"""What the model-backed stages share: the model they ask, the prompts they ask with, and what a host lends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from pydantic import BaseModel

from factcheck.errors import ConfigError
from factcheck.interfaces import Host
from factcheck.llm import ModelClient, ModelRole, ModelSettings
from factcheck.prompting import Prompt, load_prompt
from factcheck.schema import Model, digest
from factcheck_llm.delimit import check_delimited, encodable, mark_for

R = TypeVar("R", bound=BaseModel)


class Client(Protocol):
    """Ask a model; ``factcheck.llm.ModelClient`` does."""

    async def structured(
        self,
        messages: Sequence[Any],
        *,
        schema: Mapping[str, Any],
        stage: str,
        model: type[R],
        prompt: str = "",
        keep: Callable[[R], bool] | None = None,
    ) -> R:
        """Return the reply as an instance of ``model``."""


@runtime_checkable
class EstimatingClient(Protocol):
    """Reckon what a call would use and ask nothing, as a client may that a host lends to a stage."""

    async def assume(self, messages: Sequence[Any], *, schema: Mapping[str, Any], stage: str, assumed: R) -> R:
        """Return the reply that the stage takes for the model's, or one that is recorded for these messages."""


class StageSettings(Model):
    """Hold what every model-backed stage takes; ``model`` None is the model of the run for the stage's role."""

    model: ModelSettings | None = None


class Asked(NamedTuple):
    """Hold a conversation that asks for one structured reply."""

    messages: tuple[dict[str, str], ...]
    prompt: Prompt

    @classmethod
    def of(cls, prompt: Prompt, values: Mapping[str, str]) -> Self:
        """Render a prompt whose values are complete, the mark among them."""
        return cls(({"role": "user", "content": prompt.render(**values)},), prompt)

    def again(self, reply: BaseModel, retry: Prompt, problems: Sequence[str]) -> Self:
        """Return the conversation with the reply and what was wrong with it; problems repeat no text from outside."""
        listed = "\n".join(f"- {problem}" for problem in problems)
        added = (
            {"role": "assistant", "content": encodable(reply.model_dump_json())},
            {"role": "user", "content": retry.render(problems=listed)},
        )
        return self._replace(messages=(*self.messages, *added))


class ModelStage:
    """Base of the stages that ask a model.

    A host calls ``connect`` before the first use; without one the stage makes a client of its own from the settings. A
    test may give ``client``, which then is the model.
    """

    role: ClassVar[ModelRole] = "judge"
    prompt_ids: ClassVar[tuple[str, ...]] = ()

    class Settings(StageSettings):
        """Take the model alone."""

    def __init__(
        self, settings: StageSettings | None = None, *, client: Client | None = None, prompts: Path | None = None
    ) -> None:
        self.settings: Any = settings or self.Settings()
        self._client = client
        self._model = "given" if client is not None else ""
        self._folder = prompts
        self._prompts: dict[str, Prompt] = {}

    def connect(self, host: Host) -> None:
        """Take what the host lends; raises ConfigError if no model is named for the stage."""
        if self._client is None:
            self._client, self._model = host.client(self.role, self.settings.model)
        self._folder = self._folder or host.prompts()

    @property
    def model(self) -> str:
        """Return the name of the model."""
        return self._model or (self.settings.model.model if self.settings.model is not None else "")

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return with what the model is asked, its server among it; {} if that is not known."""
        own = self.settings.model.fingerprint if self.settings.model is not None else {}
        known: Mapping[str, Any] = getattr(self._client, "fingerprint", own)
        return known

    @property
    def prompt_sha256(self) -> str:
        """Return the hash of every prompt that the stage may use."""
        hashes = [self.prompt(name).sha256 for name in self.prompt_ids]
        return hashes[0] if len(hashes) == 1 else digest(hashes)

    def prompt(self, prompt_id: str) -> Prompt:
        """Return a prompt; raises PromptError if it would not delimit a text from outside."""
        found = self._prompts.get(prompt_id)
        if found is None:
            found = load_prompt(prompt_id, self._folder)
            if found.inputs != ("problems",):
                check_delimited(found)
            self._prompts[prompt_id] = found
        return found

    async def ask(
        self,
        asked: Asked,
        reply: type[R],
        *,
        stage: str = "",
        assumed: R | None = None,
        keep: Callable[[R], bool] | None = None,
    ) -> R:
        """Return the model's reply; raises what the client raises, a ModelReplyError for half of one included.

        ``assumed`` is a reply of usual length with which the stage would go on; an estimate of the cost reckons with it. A
        reply that ``keep`` refuses is not recorded.
        """
        client, stage, schema = self.client, stage or self.role, asked.prompt.output_schema
        if assumed is not None and isinstance(client, EstimatingClient):
            return await client.assume(asked.messages, schema=schema, stage=stage, assumed=assumed)
        prompt = asked.prompt.sha256
        return await client.structured(
            asked.messages, schema=schema, stage=stage, model=reply, prompt=prompt, keep=keep
        )

    @property
    def client(self) -> Client:
        """Return the client, made from the settings if no host has lent one; raises ConfigError without a model."""
        if self._client is None:
            if self.settings.model is None:
                raise ConfigError(
                    f"the {self.role.replace('_', ' ')} {type(self).__name__} has no model.",
                    hint='Name one in its table of settings: model = { base_url = "…", model = "…" }',
                )
            self._client = ModelClient(self.settings.model)
        return self._client


def marked(**values: str) -> dict[str, str]:
    """Return the values of a prompt with their mark; lone surrogates, which no request can carry, are replaced."""
    clean = {name: encodable(text) for name, text in values.items()}
    return {"mark": mark_for(*clean.values()), **clean}
