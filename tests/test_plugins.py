"""Loading: real distributions on the path, found through their metadata, good ones beside broken ones."""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path

import pluggy
import pytest

from factcheck import hookspecs
from factcheck.discovery import DISTRIBUTION
from factcheck.errors import (
    PluginLoadError,
    UnknownNameError,
)
from factcheck.hookspecs import hookimpl
from factcheck.plugins import PluginRecord, Plugins
from factcheck.registry import HOOKS
from factcheck.schema import Query

ROOT = Path(__file__).resolve().parents[1]
SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
GOOD = SITE["GOOD"]
Echo = SITE["Echo"]
site = SITE["site"]
record = SITE["record"]
module = SITE["module"]
retrievers = SITE["retrievers"]


BROKEN = {
    "importerror": ("import a_module_that_nobody_has\n", "failed", "a_module_that_nobody_has"),
    "signature": (
        GOOD.replace("(register)", "(register, settings)", 1).replace("{name}", "signature"),
        "failed",
        "settings",
    ),
    "misspelt": (
        GOOD.replace("register_retrievers", "register_retriever").replace("{name}", "misspelt"),
        "failed",
        "Did you mean 'factcheck_register_retrievers'",
    ),
    "halfway": (GOOD.replace("{name}", "halfway") + '    raise RuntimeError("half way")\n', "failed", "half way"),
    "future": ("FACTCHECK_PLUGIN_API = (99, 0)\n" + GOOD.replace("{name}", "future"), "incompatible", "99.0"),
    "thief": (GOOD.replace("{name}", "good"), "conflict", "'thief' or 'thief/<variant>'"),
    "exits": ("raise SystemExit(3)\n", "failed", "SystemExit: 3"),
}


class TestDiscovery:
    def test_seven_broken_plugins_leave_the_good_one_working(self, site):
        site.install("good", GOOD.replace("{name}", "good"))
        for name, (source, _, _) in BROKEN.items():
            site.install(name, source)
        plugins = Plugins()
        assert record(plugins, "good").status == "loaded"
        assert record(plugins, "good").provides == {"retrievers": ("good",)}
        assert record(plugins, "good").hooks == ("factcheck_register_retrievers",)
        assert (record(plugins, "good").dist, record(plugins, "good").version) == ("factcheck-good", "1.2")
        component = plugins.create("retriever", "good")
        assert component.retrieve(Query(id="q", claim_id="c", text="x"), 3) == []
        for name, (_, status, reason) in BROKEN.items():
            found = record(plugins, name)
            assert (found.status, found.provides) == (status, {}), name
            assert reason in found.error, name
            assert "\n" not in found.error
            assert name not in plugins.names("retriever")
        assert "raise RuntimeError" in record(plugins, "halfway").traceback
        assert "plugins doctor" not in record(plugins, "good").error

    @pytest.mark.parametrize("name", BROKEN)
    def test_a_broken_plugin_is_fatal_to_a_run_that_names_what_it_might_own(self, site, name):
        source, status, _ = BROKEN[name]
        site.install("good", GOOD.replace("{name}", "good"))
        site.install(name, source)
        plugins = Plugins()
        for wanted in (name, f"{name}/large"):
            with pytest.raises(UnknownNameError) as caught:
                plugins.create("retriever", wanted)
            assert f"is {status}" in str(caught.value)
            assert f"factcheck plugins doctor {name}" in str(caught.value)
        with pytest.raises(UnknownNameError) as caught:
            plugins.create("retriever", "other")
        assert f"'{name}'" not in str(caught.value)

    def test_keyboard_interrupt_is_not_swallowed(self, site):
        site.install("slow", "raise KeyboardInterrupt\n")
        with pytest.raises(KeyboardInterrupt):
            Plugins()

    def test_a_hook_that_exits_costs_only_its_plugin(self, site):
        site.install("quits", GOOD.replace("{name}", "quits") + "    raise SystemExit(0)\n")
        assert record(Plugins(), "quits").status == "failed"

    def test_what_a_plugin_raises_may_be_unprintable(self, site):
        site.install(
            "rude",
            "class Rude(Exception):\n    def __str__(self):\n        raise ValueError('no')\nraise Rude\n",
        )
        assert record(Plugins(), "rude").status == "failed"

    def test_order_is_by_name_and_not_by_installation(self, site):
        for name in ("zeta", "alpha", "mid"):
            site.install(name, GOOD.replace("{name}", name))
        ours = [r.name for r in Plugins().records if not r.first_party]
        assert ours == sorted(ours)
        assert {"zeta", "alpha", "mid"} <= set(ours)

    def test_first_party_comes_first_and_keeps_its_name(self, site, monkeypatch):
        site.install("own", GOOD.replace("{name}", "own"), dist=DISTRIBUTION, module="factcheck_test_own", version="9")
        site.install("own", GOOD.replace("{name}", "own"), dist="a-stranger", module="factcheck_test_stranger")
        found = [r for r in Plugins().records if r.name == "own"]
        assert [(r.first_party, r.status) for r in found] == [(True, "loaded"), (False, "conflict")]
        assert DISTRIBUTION in found[1].error

    def test_of_two_strangers_with_one_name_neither_gets_it(self, site):
        site.install("library", GOOD.replace("{name}", "library"), dist="factcheck-a", module="factcheck_test_a")
        site.install("library", GOOD.replace("{name}", "library"), dist="factcheck-b", module="factcheck_test_b")
        plugins = Plugins()
        found = [r for r in plugins.records if r.name == "library"]
        assert [r.status for r in found] == ["conflict", "conflict"]
        assert "factcheck-b" in found[0].error
        assert "factcheck-a" in found[1].error
        with pytest.raises(UnknownNameError, match="conflict"):
            plugins.create("retriever", "library")

    def test_the_same_entry_point_twice_counts_once(self, site):
        site.install("twice", GOOD.replace("{name}", "twice"), dist="factcheck-twice", module="factcheck_test_twice")
        site.metadata("factcheck-twice-link", "[factcheck]\ntwice = factcheck_test_twice\n")
        assert record(Plugins(), "twice").status == "loaded"

    def test_one_module_under_two_names_loads_once(self, site):
        site.install("one", GOOD.replace("{name}", "one"), module="factcheck_test_shared")
        site.metadata("factcheck-two", "[factcheck]\ntwo = factcheck_test_shared\n")
        plugins = Plugins()
        assert (record(plugins, "one").status, record(plugins, "two").status) == ("loaded", "failed")

    def test_unreadable_metadata_elsewhere_costs_nothing(self, site):
        site.install("good", GOOD.replace("{name}", "good"))
        site.metadata("broken-metadata", "[factcheck]\nno equals sign here\n")
        plugins = Plugins()
        assert record(plugins, "good").status == "loaded"
        assert record(plugins, "good").version == "1.2"
        assert record(plugins, "broken-metadata").status == "failed"

    def test_a_plugin_may_be_an_object(self, site):
        source = GOOD.replace("def factcheck", "def hidden").replace("@hookimpl", "")
        source += (
            "class Plugin:\n    FACTCHECK_PLUGIN_API = (1, 0)\n    @hookimpl\n"
            "    def factcheck_register_retrievers(self, register):\n        register('obj', Echo)\nplugin = Plugin()\n"
        )
        site.install("obj", source, module="factcheck_test_obj", value="factcheck_test_obj:plugin")
        assert record(Plugins(), "obj").provides == {"retrievers": ("obj",)}

    @pytest.mark.parametrize("value", ["factcheck_test_nothing:absent", "factcheck_test_nothing:NONE"])
    def test_an_entry_point_that_leads_nowhere_fails(self, site, value):
        site.install("nothing", "NONE = None\n", module="factcheck_test_nothing", value=value)
        assert record(Plugins(), "nothing").status == "failed"

    def test_an_entry_point_with_a_slash_is_refused(self, site):
        site.install("bm25/evil", GOOD.replace("{name}", "bm25/evil"), dist="factcheck-evil")
        assert record(Plugins(), "bm25/evil").status == "conflict"


class TestSelection:
    @pytest.fixture(autouse=True)
    def _install(self, site):
        for name in ("aa", "bb"):
            site.install(name, GOOD.replace("{name}", name))
        site.install("bad", "raise ImportError('bad')\n")

    def statuses(self, plugins: Plugins) -> dict[str, str]:
        return {r.name: r.status for r in plugins.records if r.name in ("aa", "bb", "bad")}

    def test_blocked(self):
        plugins = Plugins(blocked=["bb"])
        assert self.statuses(plugins) == {"aa": "loaded", "bb": "blocked", "bad": "failed"}
        with pytest.raises(UnknownNameError, match="--no-plugin"):
            plugins.create("retriever", "bb")

    def test_a_blocked_plugin_is_not_imported(self):
        Plugins(blocked=["bb"])
        assert "factcheck_test_factcheck_bb" not in sys.modules
        assert "factcheck_test_factcheck_aa" in sys.modules

    def test_only(self):
        assert self.statuses(Plugins(only=["aa"])) == {"aa": "loaded", "bb": "blocked", "bad": "blocked"}

    def test_environment_names_the_only_ones(self, monkeypatch):
        monkeypatch.setenv("FACTCHECK_PLUGINS", " aa, bb ")
        assert self.statuses(Plugins()) == {"aa": "loaded", "bb": "loaded", "bad": "blocked"}

    def test_an_empty_variable_means_none(self, monkeypatch):
        monkeypatch.setenv("FACTCHECK_PLUGINS", "")
        assert set(self.statuses(Plugins()).values()) == {"blocked"}
        assert all(r.status == "blocked" for r in Plugins().records)

    def test_the_argument_beats_the_environment(self, monkeypatch):
        monkeypatch.setenv("FACTCHECK_PLUGINS", "")
        assert self.statuses(Plugins(only=["bb"]))["bb"] == "loaded"

    @pytest.mark.parametrize("arguments", [{"blocked": ["ab"]}, {"only": ["ab"]}])
    def test_a_name_that_is_not_installed_is_an_error(self, arguments):
        with pytest.raises(UnknownNameError, match="no plugin named 'ab'"):
            Plugins(**arguments)

    def test_strict_raises_the_first_error(self, monkeypatch):
        with pytest.raises(PluginLoadError, match="bad") as caught:
            Plugins(strict=True)
        assert isinstance(caught.value.__cause__, ImportError)
        monkeypatch.setenv("FACTCHECK_STRICT_PLUGINS", "1")
        with pytest.raises(PluginLoadError):
            Plugins()
        assert self.statuses(Plugins(strict=False))["bad"] == "failed"
        monkeypatch.setenv("FACTCHECK_STRICT_PLUGINS", "0")
        assert self.statuses(Plugins())["bad"] == "failed"

    def test_without_autoload_nothing_installed_is_read(self):
        assert Plugins(autoload=False).records == ()


def test_tables_for_components_that_do_not_exist(site):
    site.install("good", GOOD.replace("{name}", "good"))
    site.install("bad", "raise ImportError\n")
    plugins = Plugins()
    plugins.check_tables({"good": {}, "bad": {}, "bad/large": {}})
    with pytest.raises(UnknownNameError, match="Did you mean 'good'"):
        plugins.check_tables({"goood": {}})


def manager() -> pluggy.PluginManager:
    made = pluggy.PluginManager("factcheck")
    made.add_hookspecs(hookspecs)
    return made


def hooks() -> dict[str, tuple[str, ...]]:
    return {name: caller.spec.argnames for name, caller in vars(manager().hook).items() if not name.startswith("_")}


def register_one(hook: str) -> PluginRecord:
    @hookimpl(specname=hook)
    def implementation(register):
        register("p", Echo)
        register("p/other", "json:JSONDecoder", needs=("json",))

    plugins = Plugins(autoload=False)
    return plugins.register(module(implementation=implementation), "p")


def test_hook_factcheck_register_decomposers():
    assert register_one("factcheck_register_decomposers").provides == {"decomposers": ("p", "p/other")}


def test_hook_factcheck_register_query_writers():
    assert register_one("factcheck_register_query_writers").provides == {"query_writers": ("p", "p/other")}


def test_hook_factcheck_register_retrievers():
    assert register_one("factcheck_register_retrievers").provides == {"retrievers": ("p", "p/other")}


def test_hook_factcheck_register_judges():
    assert register_one("factcheck_register_judges").provides == {"judges": ("p", "p/other")}


def test_hook_factcheck_register_checkers():
    assert register_one("factcheck_register_checkers").provides == {"checkers": ("p", "p/other")}


def test_hook_factcheck_register_primitives():
    assert register_one("factcheck_register_primitives").provides == {"primitives": ("p", "p/other")}


def test_every_hook_belongs_to_a_role_and_has_a_test_and_a_section():
    assert set(hooks()) == set(HOOKS.values())
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    for hook, arguments in hooks().items():
        assert f"test_hook_{hook}" in globals()
        assert f"### `{hook}({', '.join(arguments)})`" in text
        assert inspect.getdoc(getattr(hookspecs, hook))
