"""Put the components of a run together, with the ledger, the budget and the host that they share."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from factcheck.calibrate import Calibration
from factcheck.checking import CheckerProcesses
from factcheck.config import Settings
from factcheck.errors import ConfigError, PromptError
from factcheck.host import Host, model_tables
from factcheck.interfaces import Search
from factcheck.ledger import Ledger
from factcheck.llm.budget import Budget
from factcheck.llm.prices import load_prices
from factcheck.plugins import Plugins
from factcheck.recording import recorded_retrieval
from factcheck.retrieve import Source, places, retrieve_all
from factcheck.schema import Fingerprint, Manifest, Query, Retrieval, Role, digest
from factcheck.source_tree import version
from factcheck.spending import Spent
from factcheck.verdicts import Policy

DEFAULT_CHECKERS = tuple(
    f"clinical/{name}" for name in ("dosing", "thresholds", "assertion", "triage", "certainty", "citations")
)


class Assembly:
    """Hold the components that settings name, connected to what they share.

    ``usual_ledger`` is where a run records if the settings name no ledger and it calls models or asks over the network.
    """

    def __init__(self, settings: Settings, plugins: Plugins, usual_ledger: Path | None = None) -> None:
        self.settings = settings
        self.plugins = plugins
        plugins.check_tables(settings.plugins)
        names = settings.checkers if settings.checkers is not None else self._usual_checkers()
        self.decomposer = self._create("decomposer", settings.decomposer)
        self.writer = self._create("query_writer", settings.query_writer)
        self.judge = self._create("judge", settings.judge)
        self.checkers = {name: self._create("checker", name) for name in names}
        prices = load_prices(settings.prices) if settings.prices is not None else None
        bounds = (settings.max_usd, settings.max_calls, settings.max_tokens, settings.deadline)
        self.budget = Budget(*bounds, prices=prices)
        self.sources = [self._source(name) for name in settings.retrievers]
        if settings.domains and not any(self._listens_to_domains(source.retriever) for source in self.sources):
            hint = "Name a retriever that has one, such as web/brave, or leave out --domains."
            raise ConfigError("no retriever of the run has an allow-list of domains.", hint=hint)
        self._searched: dict[str, Source] = {}
        self._judges: list[tuple[Any, Fingerprint]] = []
        model_tables(settings.models, secrets=False)  # before a ledger is made
        self.ledger = self._open_ledger(usual_ledger)
        try:
            self.host = self._make_host()
            for component in self.components:
                self._connect(component)
            self._check_prompts()
        except BaseException:
            self.close()
            raise

    @property
    def components(self) -> list[Any]:
        """Return every component, in the order of the manifest; judges that a panel was lent are not among them."""
        retrievers = [source.retriever for source in self.every_source]
        return [self.decomposer, self.writer, *retrievers, *self.checkers.values(), self.judge]

    @property
    def every_source(self) -> list[Source]:
        """Return the retrievers of the run, then those with which only a judge searches."""
        return [*self.sources, *self._searched.values()]

    @property
    def reaches_out(self) -> bool:
        """Tell whether a component asks a model or the network."""
        return any(hasattr(part, "connect") or getattr(part, "network", False) for part in self.components)

    def checker_processes(self) -> CheckerProcesses | None:
        """Return processes for the checkers that can be made in one, None if there is none or no processor to spare."""
        spare = (os.cpu_count() or 1) - 1 if self.reaches_out else 0
        count = spare if self.settings.workers is None else self.settings.workers
        tables = {
            name: self.settings.plugins.get(name, {})
            for name, checker in self.checkers.items()
            if getattr(checker, "portable", False) and self.plugins.autoload
        }
        if count < 1 or not tables:
            return None
        try:
            return CheckerProcesses(tables, [self.plugins.owner("checker", name) for name in tables], count)
        except TypeError:  # a table that a program gave holds what is no JSON
            return None

    def manifest(self, policy: Policy, calibration: Calibration) -> Manifest:
        """Name every component with its version, settings and corpus or prompt hash; the decomposer comes first."""
        parts: list[tuple[Role, str, Any]] = [
            ("decomposer", self.settings.decomposer, self.decomposer),
            ("query_writer", self.settings.query_writer, self.writer),
            *(("retriever", source.name, source.retriever) for source in self.every_source),
            *(("checker", name, checker) for name, checker in self.checkers.items()),
            ("judge", self.settings.judge, self.judge),
        ]
        return Manifest(
            version=version(),
            components=tuple(self.plugins.fingerprint(role, name, part) for role, name, part in parts),
            policy=str(policy),
            calibration=f"{calibration.name} {digest(calibration.model_dump(mode='json'))}",
            k=self.settings.k,
            seed=self.settings.seed,
        )

    def counted(self, manifest: Manifest) -> Spent:
        """Return what has been used since the components were made; ``seconds`` is not told here.

        A component tells its requests as ``requests`` (int). Their number is left open by one that asks over the network and by
        a retriever without a corpus, if it does not tell them. One that calls a model on its own leaves its calls open too.
        """
        requests: int | None = self.host.requests
        uncounted: list[str] = []
        held = [*zip(self.components, manifest.components, strict=True), *self._judges]
        for component, fingerprint in held:
            made = getattr(component, "requests", None)
            alone = bool(fingerprint.model) and fingerprint.role != "checker" and not hasattr(component, "connect")
            searches = fingerprint.role == "retriever" and not fingerprint.corpus_sha256
            if alone:
                uncounted.append(fingerprint.name)
            if isinstance(made, int):
                requests = None if requests is None else requests + made
            elif alone or searches or getattr(component, "network", False):
                requests = None
        return Spent(stages=self.budget.usage, requests=requests, uncounted=tuple(uncounted))

    async def record_searches(self, sources: Sequence[Source]) -> None:
        """Have the replies of retrievers recorded one by one, unless they search a corpus, which can be searched again."""
        for source in sources:
            if self.ledger is not None and source.recorded is None:
                named = functools.partial(self.plugins.fingerprint, "retriever", source.name, source.retriever)
                fingerprint = await anyio.to_thread.run_sync(named)
                if not fingerprint.corpus_sha256:
                    source.recorded = recorded_retrieval(self.ledger, fingerprint)

    def close(self) -> None:
        """Close the ledger; closing twice does nothing."""
        if self.ledger is not None:
            self.ledger.close()

    def _usual_checkers(self) -> tuple[str, ...]:
        """Return those that come with factcheck: neither a package too many nor one that is broken may change a run unsaid.

        A set of plugins that a program put together has those that it holds.
        """
        return DEFAULT_CHECKERS if self.plugins.autoload else tuple(self.plugins.names("checker"))

    def _create(self, role: Role, name: str) -> Any:
        table = self.settings.plugins.get(name)
        return self.plugins.create(role, name, table, corpora=self.settings.corpora, domains=self.settings.domains)

    def _source(self, name: str) -> Source:
        retriever = self._create("retriever", name)
        if getattr(getattr(retriever, "settings", None), "corpora", None) == ():
            raise ConfigError(f"retriever '{name}' has no corpus to search.", hint="Name one: --corpus NAME|DIR")
        limit = places(retriever, self.settings.concurrency)
        deadline, left = self.settings.query_deadline, lambda: self.budget.time_left
        return Source(name, retriever, deadline, concurrency=limit, time_left=left)

    def _open_ledger(self, usual: Path | None) -> Ledger | None:
        replay = self.settings.replay
        path = self.settings.ledger or (usual if self.reaches_out or replay else None)
        return Ledger.open(path, mode="replay" if replay else "record") if path is not None or replay else None

    def _make_host(self) -> Host:
        return Host(self.settings, budget=self.budget, ledger=self.ledger, search=self._search_with, judge=self._lent)

    def _connect(self, component: Any) -> None:
        connect = getattr(component, "connect", None)
        if connect is not None:
            connect(self.host)

    @staticmethod
    def _listens_to_domains(retriever: Any) -> bool:
        return hasattr(getattr(retriever, "settings", None), "domains")

    def _check_prompts(self) -> None:
        """Raise PromptError for a folder of prompts of which the run would ask with none."""
        folder = self.settings.prompts
        parts = [*self.components, *(judge for judge, _ in self._judges)]
        used = sorted({name for part in parts for name in getattr(part, "prompt_ids", ())})
        if folder is None or not folder.is_dir() or any((folder / f"{name}.md").is_file() for name in used):
            return
        asked = f"It asks with: {', '.join(used)}." if used else "It asks no model."
        raise PromptError(f"'{folder}' holds no prompt that this run asks with.", hint=asked)

    def _search_with(self, names: Sequence[str]) -> Search:
        """Return what searches for a judge, with the retrievers of these names or those of the run."""
        for name in names:
            if name not in self.settings.retrievers and name not in self._searched:
                self._searched[name] = self._source(name)
        held = {source.name: source for source in self.every_source}
        chosen = [held[name] for name in names] if names else self.sources

        async def search(query: Query, k: int) -> Sequence[Retrieval]:
            await self.record_searches(chosen)
            return await retrieve_all([query], chosen, k)

        return search

    def _lent(self, name: str) -> tuple[Any, Fingerprint]:
        judge = self._create("judge", name)
        self._connect(judge)
        lent = judge, self.plugins.fingerprint("judge", name, judge)
        self._judges.append(lent)
        return lent
