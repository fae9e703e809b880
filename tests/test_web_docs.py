"""docs/web.md names every retriever of the plugin, every setting and variable, and where terms stand."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from factcheck.components import resolve_factory
from factcheck.plugins import Plugins

DOCS = (Path(__file__).resolve().parents[1] / "docs" / "web.md").read_text(encoding="utf-8")


def registrations():
    plugins = Plugins(autoload=False)
    plugins.register(importlib.import_module("factcheck_web"), "web")
    return plugins.registrations("web")


def test_the_plugin_registers_what_the_documentation_lists():
    listed = re.findall(r"^\| `(web/\w+)` \|", DOCS, flags=re.MULTILINE)
    assert listed == [registration.name for registration in registrations()]
    assert len(listed) == 10
    assert re.findall(r"^### (web/\w+)$", DOCS, flags=re.MULTILINE) == listed


@pytest.mark.parametrize("registration", registrations(), ids=lambda registration: registration.name)
def test_every_setting_is_documented(registration):
    fields = resolve_factory(registration, "factcheck").Settings.model_fields
    for name in fields:
        assert f"`{name}`" in DOCS or f"`{name}," in DOCS, name
    if "key_env" in fields:
        assert f"`{fields['key_env'].default}`" in DOCS
    for name in (fields.get("fetch") and fields["fetch"].annotation.model_fields) or ():
        assert f"`{name}`" in DOCS, name


@pytest.mark.parametrize("name", [registration.name for registration in registrations()])
def test_every_service_has_its_rate_and_its_terms_with_an_address(name):
    section = DOCS.split(f"### {name}\n", 1)[1].split("\n#", 1)[0]
    assert "Rate:" in section
    assert re.search(r"Terms:.*https://", section, flags=re.DOTALL)
