"""The author guide: its examples run."""

from __future__ import annotations

import contextlib
import re
import runpy
from pathlib import Path

import pytest

from factcheck.errors import (
    ConfigError,
)
from factcheck.plugins import Plugins
from factcheck.schema import Query

ROOT = Path(__file__).resolve().parents[1]
SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
site = SITE["site"]
record = SITE["record"]
module = SITE["module"]
retrievers = SITE["retrievers"]


def documented(name: str) -> str:
    """Return the code block of docs/plugins.md that follows the marker of an example."""
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found, name
    return found[1]


def execute(source: str) -> dict:
    namespace: dict = {"__name__": "documented"}
    exec(compile(source, "docs/plugins.md", "exec", dont_inherit=True), namespace)  # noqa: S102
    return namespace


class TestDocumentedExamples:
    def test_hook_and_retriever(self, site):
        text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
        hook = re.search(r"`factcheck_pages/__init__.py`.*?```python\n(.*?)```", text, re.DOTALL)
        site.install("pages", hook[1], dist="factcheck-pages", module="factcheck_pages_hook")
        package = site.folder / "factcheck_pages"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "retriever.py").write_text(documented("retriever"), encoding="utf-8")
        site.modules += ["factcheck_pages", "factcheck_pages.retriever"]
        plugins = Plugins()
        assert record(plugins, "pages").provides == {"retrievers": ("pages",)}
        found = plugins.create("retriever", "pages").retrieve(Query(id="q", claim_id="c", text="blood warfarin"), 5)
        assert [passage.id for passage in found] == ["warfarin", "insulin"]
        namespace = execute(documented("retriever") + documented("functions"))
        assert namespace["failures"](namespace["results"]) == []
        suite = execute(documented("suite"))["TestPages"]
        names = suite.test_conformance.pytestmark[0].args[1]
        assert len(names) > 20
        for check in names:
            with contextlib.suppress(pytest.skip.Exception):
                suite().run(check)

    def test_settings(self, monkeypatch):
        plugins = Plugins(autoload=False)
        plugins.register(retrievers(("web", execute(documented("settings"))["WebRetriever"])), "web")
        monkeypatch.setenv("WEB_API_KEY", "sk-1")
        made = plugins.create("retriever", "web", {"api_key": {"env": "WEB_API_KEY"}}, corpora=["x"])
        assert made.settings.api_key.get_secret_value() == "sk-1"
        assert made.settings.corpora == ("x",)
        with pytest.raises(ConfigError, match="Did you mean 'host'"):
            plugins.create("retriever", "web", {"hots": "x"})
