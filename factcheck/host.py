"""What a run lends to its components: models that share one budget and one ledger, searches, and other judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from factcheck.config import Settings, nearest, validate_table
from factcheck.errors import ConfigError
from factcheck.interfaces import Search
from factcheck.ledger import Ledger
from factcheck.llm import Budget, ModelClient, ModelRole, ModelSettings, roles_differ
from factcheck.model_tables import DEFAULT, inherited
from factcheck.schema import Fingerprint

SECRETS = ("key", "headers")
ROLES: tuple[ModelRole, ...] = get_args(ModelRole)


class Host:
    """Lend components what they share. ``judge`` and ``search`` are how the pipeline makes a judge and searches."""

    sends = True

    def __init__(
        self,
        settings: Settings,
        *,
        budget: Budget,
        ledger: Ledger | None,
        search: Callable[[Sequence[str]], Search],
        judge: Callable[[str], tuple[Any, Fingerprint]],
    ) -> None:
        self.budget = budget
        self._settings = settings
        self._ledger = ledger
        self._search = search
        self._judge = judge
        self._clients: list[ModelClient] = []
        self._judges: list[ModelSettings] = []
        model_tables(settings.models, secrets=False)  # a mistake is one although no stage asks

    def client(self, role: ModelRole, settings: ModelSettings | None = None) -> tuple[ModelClient, str]:
        """Return the client for a role and the name of its model; ``settings`` None is the model of the run for it.

        Components whose settings are equal share a client, and with it its limits. Raise ConfigError if no model is named
        for the role, or if a judge is the model that wrote the answers.
        """
        chosen = settings if settings is not None else self._model(role)
        if chosen is None:
            raise ConfigError(
                f"no model is named for the {role.replace('_', ' ')}.",
                hint=f"Give --model NAME (and --base-url URL), or a table [models.{role}] or [models.default].",
            )
        if role in ("judge", "grader"):
            roles_differ(chosen, self._settings.graded_model)
            self._judges.append(chosen)
        for client in self._clients:
            if client.settings == chosen:
                return client, chosen.model
        client = self.make_client(chosen)
        self._clients.append(client)
        return client, chosen.model

    def make_client(self, settings: ModelSettings) -> ModelClient:
        """Return a new client that shares the budget and the ledger of the run."""
        return ModelClient(settings, budget=self.budget, ledger=self._ledger)

    def _model(self, role: ModelRole) -> ModelSettings | None:
        """Return the settings of the model for a role; those of a replay, which sends nothing, have no key."""
        tables = self._settings.models
        name = role if role in tables else DEFAULT
        wanted = {key: tables[key] for key in (DEFAULT, name) if key in tables}
        return model_tables(wanted, secrets=self.sends and not self._settings.replay).get(name)

    def check_author(self, model: object) -> None:
        """Raise ConfigError if a judge that was lent is the model that wrote an answer; anything but a text names none."""
        if isinstance(model, str):
            for judge in self._judges:
                roles_differ(judge, model)

    def prompts(self) -> Path | None:
        """Return the folder of prompts that take precedence, None if there is none."""
        return self._settings.prompts

    def search(self, retrievers: Sequence[str] = ()) -> Search:
        """Return what sends a query to the named retrievers, to those of the run for ``()``."""
        return self._search(retrievers)

    def judge(self, name: str) -> tuple[Any, Fingerprint]:
        """Return a judge by its registered name, connected, with its fingerprint."""
        return self._judge(name)

    @property
    def requests(self) -> int:
        """Return how many HTTP requests the model clients have made, retries included."""
        return sum(client.requests for client in self._clients)


def model_tables(tables: Mapping[str, Mapping[str, Any]], *, secrets: bool = True) -> dict[str, ModelSettings]:
    """Return the settings of the models by role; a role takes from ``default`` what its own table leaves open.

    Keys and headers are not taken over to another server, nor a price to another model; without ``secrets`` they are left out,
    and need not be there. Raise ConfigError for a role that
    there is not, and for settings that do not fit.
    """
    known = (DEFAULT, *ROLES)
    for name in tables:
        if name not in known:
            hint = f"{nearest(name, known)}Known: {', '.join(known)}."
            raise ConfigError(f"[models.{name}] names no model role.", hint=hint)
    base = tables.get(DEFAULT, {})
    found = {name: inherited(base, table) for name, table in tables.items()}
    if not secrets:
        found = {name: {key: table[key] for key in table if key not in SECRETS} for name, table in found.items()}
    return {
        name: validate_table(ModelSettings, table, where=f"[models.{name}]")
        for name, table in found.items()
        # A default may be there for what the roles have in common alone.
        if name != DEFAULT or "model" in table or len(found) == 1
    }
