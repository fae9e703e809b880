"""Settings: precedence, messages, and secrets that never show."""

from __future__ import annotations

import copy
import traceback
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from factcheck.config import MASK, Settings, load_settings, redacted, validate_table
from factcheck.errors import ConfigError

SECRET = "sk-live-9f8e7d6c"


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.delenv("FACTCHECK_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "factcheck.toml") -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


class TestPrecedence:
    def test_defaults(self):
        assert load_settings() == Settings()
        assert load_settings(None, {}).corpora == ("clinical-starter",)
        assert Settings().checkers is None

    def test_file_over_defaults_and_flags_over_file(self):
        write('k = 5\nseed = 3\nretrievers = ["a", "b"]\n')
        assert (load_settings().k, load_settings().retrievers) == (5, ("a", "b"))
        settings = load_settings(None, {"k": 9, "retrievers": ["c"], "judge": None})
        assert (settings.k, settings.seed, settings.retrievers, settings.judge) == (9, 3, ("c",), "evidence")

    def test_an_explicit_file_beats_the_environment_beats_the_working_folder(self, monkeypatch):
        write("k = 1\n")
        write("k = 2\n", "env.toml")
        named = write("k = 3\n", "named.toml")
        assert load_settings().k == 1
        monkeypatch.setenv("FACTCHECK_CONFIG", "env.toml")
        assert load_settings().k == 2
        assert load_settings(named).k == 3
        monkeypatch.setenv("FACTCHECK_CONFIG", "")
        assert load_settings().k == 1

    def test_plugin_tables_merge_key_by_key(self):
        write('[plugins.web]\nsize = 1\nhost = "a"\n[plugins."web/pubmed"]\nsize = 2\n')
        settings = load_settings(None, {"plugins": {"web": {"size": 7}, "bm25": {"b": 0.5}}})
        assert settings.plugins == {
            "web": {"size": 7, "host": "a"},
            "web/pubmed": {"size": 2},
            "bm25": {"b": 0.5},
        }

    def test_a_reference_replaces_another_as_a_whole(self):
        write('[plugins.web]\napi_key = { env = "A" }\n')
        settings = load_settings(None, {"plugins": {"web": {"api_key": {"file": "b"}}}})
        assert settings.plugins == {"web": {"api_key": {"file": "b"}}}

    def test_a_byte_order_mark_does_not_matter(self):
        Path("factcheck.toml").write_bytes(b"\xef\xbb\xbfk = 4\n")
        assert load_settings().k == 4


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("retreivers = ['bm25']\n", "unknown key 'retreivers'. Did you mean 'retrievers'?"),
            ("zzzzzz = 1\n", "unknown key 'zzzzzz'. Known: checkers, concurrency, corpora"),
            ("k = 0\n", "'k': input should be greater than or equal to 1 (it is 0)"),
            ("k = '5'\n", "'k': input should be a valid integer"),
            ("k = true\n", "'k': input should be a valid integer"),
            ("k = 2.0\n", "'k': input should be a valid integer"),
            ("query_deadline = 0\n", "'query_deadline': input should be greater than 0"),
            ("query_deadline = nan\n", "'query_deadline'"),
            ("query_deadline = inf\n", "'query_deadline'"),
            ("seed = -1\n", "'seed'"),
            ("retrievers = 'bm25'\n", "'retrievers': input should be a valid tuple"),
            ("retrievers = []\n", "'retrievers'"),
            ("retrievers = ['a', 'a']\n", "'retrievers': a name repeats"),
            ("corpora = [' ']\n", "'corpora': a name is blank"),
            ("judge = ''\n", "'judge'"),
            ("[plugins]\nweb = 3\n", "'plugins.web': input should be a valid dictionary"),
            ("k = \n", "not valid TOML"),
            ("k = 1\nk = 2\n", "not valid TOML"),
        ],
    )
    def test_in_the_file(self, text, message):
        write(text)
        with pytest.raises(ConfigError) as caught:
            load_settings()
        assert message in str(caught.value)
        assert "factcheck.toml" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_in_the_flags(self):
        with pytest.raises(ConfigError, match=r"unknown key 'judg'\. Did you mean 'judge'"):
            load_settings(None, {"judg": "x"})

    def test_merging_into_a_malformed_table_is_reported_and_not_a_crash(self):
        write("plugins = 3\n")
        assert load_settings(None, {"plugins": {"a": {}}}).plugins == {"a": {}}
        with pytest.raises(ConfigError, match=r"'plugins\.a'"):
            load_settings(None, {"plugins": {"a": 3}})
        write("[plugins]\na = 3\n")
        assert load_settings(None, {"plugins": {"a": {"x": 1}}}).plugins == {"a": {"x": 1}}

    def test_several_at_once(self):
        write("k = 0\nseed = -1\njugde = 'x'\n")
        with pytest.raises(ConfigError) as caught:
            load_settings()
        for key in ("'k'", "'seed'", "'jugde'"):
            assert key in str(caught.value)

    def test_files_that_cannot_be_read(self, tmp_path, monkeypatch):
        with pytest.raises(ConfigError, match="No such file"):
            load_settings(Path("absent.toml"))
        with pytest.raises(ConfigError, match="directory"):
            load_settings(tmp_path)
        Path("latin.toml").write_bytes(b"judge = '\xe9'\n")
        with pytest.raises(ConfigError, match="not UTF-8"):
            load_settings(Path("latin.toml"))
        monkeypatch.setenv("FACTCHECK_CONFIG", "absent.toml")
        with pytest.raises(ConfigError, match="FACTCHECK_CONFIG"):
            load_settings()


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    file: str = ""
    token: SecretStr | None = None


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid")
    api_key: SecretStr | None = None
    many: list[SecretStr] = []
    pair: tuple[SecretStr, ...] = ()
    headers: dict[str, SecretStr] = {}
    either: SecretStr | int = 0
    inner: Inner | None = None
    inners: list[Inner] = []
    name: str = ""
    size: int = Field(default=1, ge=1)
    mode: Literal["a", "b"] = "a"
    labels: dict[str, str] = {}


class TestSecrets:
    def resolve(self, table) -> Table:
        return validate_table(Table, table, where="[plugins.web]")

    @pytest.fixture(autouse=True)
    def _secret(self, monkeypatch, tmp_path):
        monkeypatch.setenv("WEB_KEY", SECRET)
        self.file = tmp_path / "key"
        self.file.write_text(f"{SECRET}\n")

    def test_at_any_depth(self):
        ref = {"env": "WEB_KEY"}
        found = self.resolve(
            {
                "api_key": ref,
                "many": ["plain", ref, {"file": str(self.file)}],
                "pair": (ref, "x"),
                "headers": {"X-Key": ref},
                "either": ref,
                "inner": {"token": ref},
                "inners": [{"file": "p"}, {"token": ref, "file": "q"}],
            }
        )
        assert found.api_key.get_secret_value() == SECRET
        assert [s.get_secret_value() for s in found.many] == ["plain", SECRET, SECRET]
        assert found.pair[0].get_secret_value() == SECRET
        assert found.headers["X-Key"].get_secret_value() == SECRET
        assert found.either.get_secret_value() == SECRET
        assert found.inner.token.get_secret_value() == SECRET
        assert (found.inners[0].file, found.inners[1].token.get_secret_value()) == ("p", SECRET)
        for text in (repr(found), str(found), found.model_dump_json(), str(found.model_dump())):
            assert SECRET not in text

    def test_into_a_copy(self):
        table = {"api_key": {"env": "WEB_KEY"}, "many": [{"env": "WEB_KEY"}], "inner": {"token": {"env": "WEB_KEY"}}}
        before = copy.deepcopy(table)
        self.resolve(table)
        assert table == before

    def test_a_table_with_such_a_key_of_its_own_is_left_alone(self, monkeypatch):
        assert self.resolve({"inner": {"file": "/no/such/file"}}).inner.file == "/no/such/file"
        assert self.resolve({"labels": {"env": "WEB_KEY"}}).labels == {"env": "WEB_KEY"}

    def test_only_for_settings_that_are_secrets(self):
        for key in ("name", "size", "mode"):
            with pytest.raises(ConfigError) as caught:
                self.resolve({key: {"env": "WEB_KEY"}})
            assert f"'{key}'" in str(caught.value)
            assert SECRET not in str(caught.value)

    def test_missing_sources_are_named(self, monkeypatch):
        monkeypatch.delenv("WEB_KEY")
        with pytest.raises(ConfigError, match=r"\[plugins.web\].*environment variable WEB_KEY, which is not set"):
            self.resolve({"api_key": {"env": "WEB_KEY"}})
        monkeypatch.setenv("WEB_KEY", "")
        with pytest.raises(ConfigError, match="not set"):
            self.resolve({"api_key": {"env": "WEB_KEY"}})
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            self.resolve({"api_key": {"file": "/no/such/file"}})
        self.file.write_text("  \n")
        with pytest.raises(ConfigError, match="is empty"):
            self.resolve({"api_key": {"file": str(self.file)}})
        self.file.write_bytes(b"\xff\xfe")
        with pytest.raises(ConfigError, match="cannot be read"):
            self.resolve({"api_key": {"file": str(self.file)}})

    def test_an_unknown_key_is_reported_before_its_secret_is_read(self, monkeypatch):
        monkeypatch.delenv("WEB_KEY")
        with pytest.raises(ConfigError, match="Did you mean 'api_key'"):
            self.resolve({"api_kay": {"env": "WEB_KEY"}})

    @pytest.mark.parametrize("given", [{"env": "WEB_KEY"}, SECRET, SecretStr(SECRET)])
    def test_an_error_never_repeats_a_secret(self, given):
        class Picky(BaseModel):
            model_config = ConfigDict(extra="forbid")
            credential: SecretStr
            size: int = 1

            @field_validator("credential")
            @classmethod
            def _check(cls, value: SecretStr) -> SecretStr:
                raise ValueError(f"'{value.get_secret_value()}' is no key")

        with pytest.raises(ConfigError) as caught:
            validate_table(Picky, {"credential": given, "size": "x"}, where="[plugins.web]")
        shown = "".join(traceback.format_exception(caught.value))
        assert f"'credential': '{MASK}' is no key" in str(caught.value)
        assert SECRET not in shown
        assert SECRET not in str(caught.value)

    def test_a_nested_unknown_key_lists_those_of_the_nested_table(self):
        with pytest.raises(ConfigError, match=r"unknown key 'inner.tokn'. Did you mean 'token'\? Known: file, token"):
            self.resolve({"inner": {"tokn": "x"}})

    def test_a_missing_key(self):
        class Needy(BaseModel):
            model_config = ConfigDict(extra="forbid")
            url: str

        with pytest.raises(ConfigError, match="'url' is required"):
            validate_table(Needy, {}, where="[plugins.web]")


class TestRedaction:
    def test_settings_do_not_show_their_tables_secrets(self):
        write(f'[plugins.web]\napi_key = "{SECRET}"\nsize = 3\nurl = "https://me:{SECRET}@host/x"\n')
        settings = load_settings()
        assert settings.plugins["web"]["api_key"] == SECRET
        for text in (repr(settings), str(settings), settings.model_dump_json()):
            assert SECRET not in text
        assert settings.model_dump(mode="json")["plugins"]["web"]["size"] == 3
        assert Settings(**settings.model_dump()) == settings

    def test_settings_do_not_show_the_keys_of_models(self):
        table = {"model": "m", "key": SECRET, "headers": {"x-org": SECRET}, "key_env": "NAME"}
        settings = Settings(models={"default": table}, plugins={"web/brave": {"key": SECRET}})
        assert settings.models["default"]["key"] == SECRET
        for text in (repr(settings), settings.model_dump_json()):
            assert SECRET not in text
        assert settings.model_dump(mode="json")["models"]["default"]["key_env"] == "NAME"

    @pytest.mark.parametrize(
        "name",
        [
            "password",
            "db_passwd",
            "key",
            "headers",
            "api_key",
            "apiKey",
            "X-API-Key",
            "client_secret",
            "dsn",
            "token",
            "auth-token",
        ],
    )
    def test_names_of_secrets(self, name):
        assert redacted({name: SECRET}) == {name: MASK}
        assert redacted({"a": [{name: [SECRET, {"b": SECRET}]}]}) == {"a": [{name: [MASK, {"b": MASK}]}]}

    @pytest.mark.parametrize(
        "name",
        ["tokens", "tokenizer", "max_tokens", "key_env", "key_keyring", "monkey", "keyword", "pattern", "second"],
    )
    def test_names_that_only_look_like_it(self, name):
        assert redacted({name: "value"}) == {name: "value"}

    def test_references_stay(self):
        assert redacted({"api_key": {"env": "WEB_KEY"}}) == {"api_key": {"env": "WEB_KEY"}}

    def test_by_type(self):
        assert redacted({"plain": (SecretStr(SECRET), 1, None, "x")}) == {"plain": [MASK, 1, None, "x"]}

    @given(
        st.recursive(
            st.none() | st.integers() | st.just(SECRET).map(SecretStr) | st.just(f"ftp://u:{SECRET}@h"),
            lambda inner: (
                st.lists(inner) | st.dictionaries(st.sampled_from(["a", "password", "b"]), inner | st.just("z"))
            ),
        )
    )
    def test_nothing_secret_is_left_at_any_depth(self, value):
        before = copy.deepcopy(value)
        assert SECRET not in str(redacted(value))
        assert value == before
