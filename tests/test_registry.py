"""Registration: what a plugin may register, and that it is all or nothing."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from factcheck.errors import (
    PluginConflictError,
    PluginContractError,
    PluginIncompatibleError,
    PluginLoadError,
)
from factcheck.hookspecs import hookimpl
from factcheck.plugins import Plugins
from factcheck.registry import PLUGIN_API, PLUGIN_API_FLOOR, declared_api, owns
from factcheck.schema import ROLES

SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
Echo = SITE["Echo"]
module = SITE["module"]
retrievers = SITE["retrievers"]


class TestRegistration:
    def test_all_or_nothing_over_all_hooks(self):
        @hookimpl
        def factcheck_register_judges(register):
            register("p", lambda: None)

        @hookimpl
        def factcheck_register_primitives(register):
            register("q", lambda: None)

        plugins = Plugins(autoload=False)
        plugin = retrievers(
            ("p", Echo),
            factcheck_register_judges=factcheck_register_judges,
            factcheck_register_primitives=factcheck_register_primitives,
        )
        with pytest.raises(PluginConflictError):
            plugins.register(plugin, "p")
        assert not any(plugins.names(role) for role in ROLES)
        assert plugins.records == ()

    def test_a_corrected_plugin_can_register_after_a_failure(self):
        plugins = Plugins(autoload=False)
        with pytest.raises(PluginConflictError):
            plugins.register(retrievers(("other", Echo)), "p")
        assert plugins.register(retrievers(("p", Echo)), "p").status == "loaded"

    def test_a_swallowed_refusal_still_counts(self):
        @hookimpl
        def factcheck_register_retrievers(register):
            register("p", Echo)
            try:
                register("stolen", Echo)
            except Exception:
                return

        with pytest.raises(PluginConflictError, match="stolen"):
            Plugins(autoload=False).register(module(factcheck_register_retrievers=factcheck_register_retrievers), "p")

    def test_register_is_dead_after_the_hook(self):
        kept = []

        @hookimpl
        def factcheck_register_retrievers(register):
            kept.append(register)

        plugins = Plugins(autoload=False)
        plugins.register(module(factcheck_register_retrievers=factcheck_register_retrievers), "p")
        with pytest.raises(PluginContractError, match="after its hook"):
            kept[0]("p", Echo)
        assert plugins.names("retriever") == []

    @pytest.mark.parametrize("name", ["q", "p2", "p/", "/p", "p//x", "p/x y", "p/\n", "", "P", 3])
    def test_names_that_a_plugin_does_not_own(self, name):
        with pytest.raises(PluginConflictError):
            Plugins(autoload=False).register(retrievers((name, Echo)), "p")

    def test_names_that_it_owns(self):
        plugins = Plugins(autoload=False)
        plugins.register(retrievers(("p", Echo), ("p/large", Echo), ("p/a/b", Echo)), "p")
        assert plugins.names("retriever") == ["p", "p/a/b", "p/large"]
        assert owns("p", "p/large")
        assert not owns("p", "p-large")

    def test_a_name_twice_in_one_plugin(self):
        with pytest.raises(PluginConflictError, match="taken"):
            Plugins(autoload=False).register(retrievers(("p", Echo), ("p", Echo)), "p")

    def test_one_name_in_two_roles_is_no_clash(self):
        @hookimpl
        def factcheck_register_judges(register):
            register("p", Echo)

        plugins = Plugins(autoload=False)
        found = plugins.register(retrievers(("p", Echo), factcheck_register_judges=factcheck_register_judges), "p")
        assert found.provides == {"retrievers": ("p",), "judges": ("p",)}

    def test_a_loaded_name_cannot_be_taken_by_a_program(self):
        plugins = Plugins(autoload=False)
        plugins.register(retrievers(("p", Echo)), "p")
        with pytest.raises(PluginConflictError, match="loaded already"):
            plugins.register(retrievers(("p/x", Echo)), "p")

    @pytest.mark.parametrize("factory", [None, 3, "module", "module:", ":Class", "a b:C", "a:b:c", "a.:b"])
    def test_factories_that_are_none(self, factory):
        with pytest.raises(PluginContractError, match="factory"):
            Plugins(autoload=False).register(retrievers(("p", factory)), "p")

    @pytest.mark.parametrize("needs", ["faiss", (3,), ("",)])
    def test_needs_that_are_none(self, needs):
        with pytest.raises(PluginContractError, match="needs"):
            Plugins(autoload=False).register(retrievers(("p", Echo, needs)), "p")

    def test_hook_faults(self):
        @hookimpl
        def defaulted(register, extra=5):
            register("p", Echo)

        @hookimpl
        async def coroutine(register):
            register("p", Echo)

        @hookimpl
        def generator(register):
            yield register

        @hookimpl(wrapper=True)
        def wrapper(register):
            return (yield)

        def unmarked(register):
            register("p", Echo)

        faults = {"default": defaulted, "coroutine": coroutine, "generator": generator, "wrapper": wrapper}
        faults["not marked"] = unmarked
        for reason, function in faults.items():
            plugins = Plugins(autoload=False)
            with pytest.raises(PluginLoadError, match=reason):
                plugins.register(module(factcheck_register_retrievers=function), "p")
            assert plugins.names("retriever") == []

    def test_a_default_for_register_itself_is_refused(self):
        @hookimpl
        def factcheck_register_retrievers(register=None):
            register("p", Echo)

        with pytest.raises(PluginLoadError, match="default"):
            Plugins(autoload=False).register(module(factcheck_register_retrievers=factcheck_register_retrievers), "p")

    def test_a_module_without_hooks_is_refused(self):
        with pytest.raises(PluginLoadError, match="no hook"):
            Plugins(autoload=False).register(module(), "p")

    def test_hook_under_another_name_and_optional_hook(self):
        @hookimpl(specname="factcheck_register_retrievers")
        def mine(register):
            register("p", Echo)

        @hookimpl(optionalhook=True)
        def factcheck_register_dreams(register):
            raise AssertionError

        plugins = Plugins(autoload=False)
        found = plugins.register(module(mine=mine, factcheck_register_dreams=factcheck_register_dreams), "p")
        assert found.hooks == ("factcheck_register_retrievers",)


class TestApiVersion:
    def test_within_the_window(self):
        assert PLUGIN_API_FLOOR <= declared_api(module(FACTCHECK_PLUGIN_API=PLUGIN_API), "p") <= PLUGIN_API

    def test_undeclared_counts_as_the_first(self):
        assert declared_api(module(), "p") == (1, 0)

    @pytest.mark.parametrize(
        "declared", [(1, 99), (2, 0), (0, 9), (1,), (1, 0, 0), "1.0", 1.0, None, (True, 0), (1, -1)]
    )
    def test_outside_or_malformed(self, declared):
        with pytest.raises(PluginIncompatibleError):
            declared_api(module(FACTCHECK_PLUGIN_API=declared), "p")

    def test_the_floor_refuses_the_old(self, monkeypatch):
        monkeypatch.setattr("factcheck.registry.PLUGIN_API", (3, 1))
        monkeypatch.setattr("factcheck.registry.PLUGIN_API_FLOOR", (2, 0))
        assert declared_api(module(FACTCHECK_PLUGIN_API=(2, 4)), "p") == (2, 4)
        with pytest.raises(PluginIncompatibleError, match="newer release of the plugin"):
            declared_api(module(), "p")
