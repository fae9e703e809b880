"""Making components: settings, needs, factories, and the fingerprint of what was made."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, field_validator

from factcheck.discovery import DISTRIBUTION
from factcheck.errors import (
    ConfigError,
    CorpusError,
    MissingExtraError,
    PluginContractError,
    PluginLoadError,
    UnknownNameError,
)
from factcheck.plugins import Plugins

SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
GOOD = SITE["GOOD"]
Echo = SITE["Echo"]
site = SITE["site"]
record = SITE["record"]
retrievers = SITE["retrievers"]
Closed = SITE["Closed"]
Configured = SITE["Configured"]


class TestCreate:
    def plugins(self, *registrations, name="p") -> Plugins:
        made = Plugins(autoload=False)
        made.register(retrievers(*registrations), name)
        return made

    def test_settings_are_validated_and_corpora_passed(self):
        plugins = self.plugins(("p", Configured))
        assert plugins.create("retriever", "p", {"size": 3}, corpora=["x"]).settings == Closed(corpora=("x",), size=3)
        assert plugins.create("retriever", "p", {"corpora": ["own"]}, corpora=["x"]).settings.corpora == ("own",)
        assert plugins.create("retriever", "p").settings == Closed()

    def test_an_unknown_key_names_the_nearest(self):
        with pytest.raises(ConfigError, match=r"\[plugins.p\]: unknown key 'sise'. Did you mean 'size'\?"):
            self.plugins(("p", Configured)).create("retriever", "p", {"sise": 3})

    def test_settings_for_a_component_that_takes_none(self):
        plugins = self.plugins(("p", Echo))
        assert isinstance(plugins.create("retriever", "p", {}, corpora=["x"]), Echo)
        with pytest.raises(ConfigError, match="takes no settings"):
            plugins.create("retriever", "p", {"size": 3})

    def test_settings_that_would_ignore_a_key_are_refused(self):
        class Open(Echo):
            class Settings(BaseModel):
                size: int = 1

            def __init__(self, settings):
                pass

        with pytest.raises(PluginContractError, match="forbid"):
            self.plugins(("p", Open)).create("retriever", "p")

    def test_settings_whose_validation_breaks_are_the_plugins_fault(self):
        class Crashing(Configured):
            class Settings(Closed):
                @field_validator("size")
                @classmethod
                def _check(cls, value):
                    raise KeyError(value)

        class Undefined(Configured):
            class Settings(Closed):
                later: NotDefinedAnywhere = None  # noqa: F821

        for kind in (Crashing, Undefined):
            with pytest.raises(PluginContractError, match="settings of the retriever 'p' cannot be validated"):
                self.plugins(("p", kind)).create("retriever", "p", {"size": 3})

    def test_a_string_factory_is_imported_at_first_use(self, site):
        site.install(
            "lazy",
            GOOD.replace("{name}", "lazy").replace(", Echo)", ", 'factcheck_test_part:Holder.Echo')"),
        )
        (site.folder / "factcheck_test_part.py").write_text(
            "class Holder:\n    class Echo:\n        retrieve = print\n"
        )
        site.modules.append("factcheck_test_part")
        plugins = Plugins()
        assert "factcheck_test_part" not in sys.modules
        plugins.create("retriever", "lazy")
        assert "factcheck_test_part" in sys.modules

    @pytest.mark.parametrize("factory", ["no_such_module_here:X", "json:Absent", "json:decoder.Absent"])
    def test_a_string_that_leads_nowhere(self, factory):
        with pytest.raises(PluginLoadError, match="could not be imported"):
            self.plugins(("p", factory)).create("retriever", "p")

    def test_a_string_that_leads_to_no_factory(self):
        with pytest.raises(PluginContractError, match="not callable"):
            self.plugins(("p", "json:__name__")).create("retriever", "p")

    def test_a_factory_that_raises(self):
        def boom():
            raise SystemExit(1)

        with pytest.raises(PluginLoadError, match="could not be made: SystemExit"):
            self.plugins(("p", boom)).create("retriever", "p")

    def test_a_factory_that_raises_does_not_show_its_secrets(self):
        class Loud(Configured):
            def __init__(self, settings):
                raise RuntimeError(f"no access with {settings.api_key.get_secret_value()}")

        with pytest.raises(PluginLoadError) as caught:
            self.plugins(("p", Loud)).create("retriever", "p", {"api_key": "sk-12345"})
        assert "no access with **********" in str(caught.value)

    def test_a_factory_that_reports_a_mistake_of_the_user(self):
        def boom():
            raise CorpusError("no corpus named 'x'.")

        with pytest.raises(CorpusError):
            self.plugins(("p", boom)).create("retriever", "p")

    def test_a_component_that_does_not_fill_the_role(self):
        with pytest.raises(PluginContractError, match="does not fill the role"):
            self.plugins(("p", dict)).create("retriever", "p")

    def test_unknown_names_list_the_known_and_the_nearest(self):
        with pytest.raises(UnknownNameError, match=r"Did you mean 'search'\? Known: search\."):
            self.plugins(("search", Echo), name="search").create("retriever", "serch")

    def test_an_unknown_role_is_a_programming_error(self):
        with pytest.raises(ValueError, match="no role 'retrievers'"):
            self.plugins(("p", Echo)).names("retrievers")

    def test_missing_need_of_a_stranger(self, site):
        site.install(
            "heavy",
            GOOD.replace("{name}", "heavy").replace(
                ", Echo)", ", Echo, needs=('no_such_thing', 'json', 'other_thing.x'))"
            ),
            dist="factcheck-heavy",
        )
        site.metadata(
            "factcheck-heavy",
            "[factcheck]\nheavy = factcheck_test_factcheck_heavy\n",
            requires="Requires-Dist: No.Such-Thing>=2; extra == 'big'\n",
        )
        plugins = Plugins()
        found = record(plugins, "heavy")
        assert found.status == "loaded"
        assert found.needs == ("no_such_thing", "json", "other_thing")
        assert found.missing == ("no_such_thing", "other_thing")
        with pytest.raises(MissingExtraError) as caught:
            plugins.create("retriever", "heavy")
        assert "pip install 'factcheck-heavy[big]'" in str(caught.value)

    def test_missing_need_of_our_own(self, site, monkeypatch):
        site.metadata(
            DISTRIBUTION,
            "[factcheck]\nheavy = factcheck_test_ours\n",
            version="9",
            requires='Requires-Dist: PyStemmer>=2; extra == "local"\n',
        )
        (site.folder / "factcheck_test_ours.py").write_text(
            GOOD.replace("{name}", "heavy").replace(", Echo)", ", Echo, needs=('Stemmer',))")
        )
        site.modules.append("factcheck_test_ours")
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"needs the package 'PyStemmer'.*pip install 'factcheck\[local\]'"):
            Plugins().create("retriever", "heavy")

    def test_an_undeclared_need_is_still_named_by_its_extra(self, site):
        site.install(
            "sly",
            GOOD.replace("{name}", "sly").replace(", Echo)", ", 'factcheck_test_sly_part:Echo')"),
            dist="factcheck-sly",
        )
        (site.folder / "factcheck_test_sly_part.py").write_text("import no_such_thing.part\n")
        site.metadata(
            "factcheck-sly",
            "[factcheck]\nsly = factcheck_test_factcheck_sly\n",
            requires="Requires-Dist: no-such-thing; extra == 'big'\n",
        )
        with pytest.raises(MissingExtraError, match=r"factcheck-sly\[big\]"):
            Plugins().create("retriever", "sly")


class TestFingerprint:
    def make(self, factory=Configured, settings=None, **attributes):
        plugins = Plugins(autoload=False)
        plugins.register(retrievers(("p", factory)), "p")
        component = plugins.create("retriever", "p", settings)
        for name, value in attributes.items():
            setattr(component, name, value)
        return plugins.fingerprint("retriever", "p", component)

    def test_holds_settings_and_attributes(self):
        found = self.make(settings={"size": 4}, version="3", corpus_sha256=("ab",), prompt_sha256="cd", model="m")
        assert (found.role, found.name, found.version) == ("retriever", "p", "3")
        assert (found.settings["size"], found.corpus_sha256) == (4, ("ab",))
        assert (found.prompt_sha256, found.model) == ("cd", "m")

    def test_settings_change_it_and_equal_ones_do_not(self):
        assert self.make(settings={"size": 4}).digest == self.make(settings={"size": 4}).digest
        assert self.make(settings={"size": 4}).digest != self.make(settings={"size": 5}).digest

    def test_secrets_are_masked(self):
        found = self.make(
            settings={"api_key": "sk-12345", "opaque": "sk-67890", "connection": "postgres://joe:hunter2@db/x"},
        )
        text = found.model_dump_json()
        assert "sk-12345" not in text
        assert "sk-67890" not in text
        assert "hunter2" not in text
        assert found.settings["api_key"] == "**********"

    def test_attribute_of_the_wrong_type(self):
        with pytest.raises(PluginContractError, match="wrong type: model"):
            self.make(model=object())

    def test_component_without_weak_references_or_attributes(self):
        class Slotted:
            __slots__ = ()
            Settings = Closed

            def __init__(self, settings):
                pass

            def retrieve(self, query, k):
                return []

        assert self.make(Slotted, {"size": 7}).settings["size"] == 7

    def test_settings_do_not_outlive_their_component(self):
        plugins = Plugins(autoload=False)
        plugins.register(retrievers(("p", Configured)), "p")
        for size in range(50):
            component = plugins.create("retriever", "p", {"size": size})
            assert plugins.fingerprint("retriever", "p", component).settings["size"] == size
            del component
        assert len(plugins._made) <= 1

    def test_version_of_the_distribution_when_the_component_has_none(self, site):
        site.install("good", GOOD.replace("{name}", "good"), version="4.5")
        plugins = Plugins()
        assert plugins.fingerprint("retriever", "good", plugins.create("retriever", "good")).version == "4.5"
