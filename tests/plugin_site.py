"""Distributions installed into a folder on the path, and plugins made in memory, for the tests of loading."""

from __future__ import annotations

import importlib
import re
import sys
import types
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr

from factcheck.hookspecs import hookimpl
from factcheck.plugins import PluginRecord, Plugins

GOOD = """
from factcheck.hookspecs import hookimpl

class Echo:
    def retrieve(self, query, k):
        return []

@hookimpl
def factcheck_register_retrievers(register):
    register("{name}", Echo)
"""


class Site:
    """A folder on the path into which distributions are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def install(self, name: str, source: str, *, dist: str = "", module: str = "", value: str = "", version="1.2"):
        """Install one distribution with one plugin; the module is named after the entry point unless told otherwise."""
        dist = dist or f"factcheck-{name}"
        module = module or f"factcheck_test_{re.sub(r'[^a-z0-9]', '_', dist)}"
        self.modules.append(module)
        (self.folder / f"{module}.py").write_text(source, encoding="utf-8")
        self.metadata(dist, f"[factcheck]\n{name} = {value or module}\n", version=version)

    def metadata(self, dist: str, entry_points: str, *, version: str = "1.2", requires: str = "") -> None:
        info = self.folder / f"{dist.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n{requires}")
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path, monkeypatch):
    for variable in ("FACTCHECK_PLUGINS", "FACTCHECK_STRICT_PLUGINS", "FACTCHECK_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    installed = Site(folder)
    yield installed
    for module in installed.modules:
        sys.modules.pop(module, None)


def record(plugins: Plugins, name: str) -> PluginRecord:
    (found,) = [r for r in plugins.records if r.name == name]
    return found


def module(**attributes) -> types.ModuleType:
    made = types.ModuleType("plugin_under_test")
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def retrievers(*registrations, **attributes) -> types.ModuleType:
    """A plugin whose retriever hook registers each (name, factory[, needs])."""

    @hookimpl
    def factcheck_register_retrievers(register):
        for name, factory, *needs in registrations:
            register(name, factory, needs=needs[0] if needs else ())

    return module(factcheck_register_retrievers=factcheck_register_retrievers, **attributes)


class Echo:
    def retrieve(self, query, k):
        return []


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    corpora: tuple[str, ...] = ()
    size: int = 1
    api_key: SecretStr | None = None
    opaque: SecretStr | None = None
    connection: str = ""


class Configured(Echo):
    Settings = Closed

    def __init__(self, settings):
        self.settings = settings
