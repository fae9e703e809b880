"""What a run lends to its components: models by role, keys that stay with their server, judges that differ from authors."""

from pathlib import Path

import pytest

from factcheck.config import Settings
from factcheck.errors import ConfigError, PromptError
from factcheck.host import Host, model_tables
from factcheck.ledger import Ledger
from factcheck.llm import Budget, ModelSettings
from factcheck.pipeline import FactChecker


def host(**settings):
    return Host(
        Settings.model_validate(settings),
        budget=Budget(),
        ledger=Ledger.open(None, mode="off"),
        search=lambda names: names,
        judge=lambda name: (name, None),
    )


WEB = {"checkers": (), "plugins": {"web/searxng": {"base_url": "http://localhost:1"}}}


class TestModels:
    def test_a_role_takes_from_the_default_what_its_table_leaves_open(self):
        found = model_tables(
            {
                "default": {
                    "model": "m-1",
                    "base_url": "http://one/v1",
                    "key": "k",
                    "temperature": 0.5,
                    "price": [1, 2],
                },
                "judge": {"model": "m-2"},
                "grader": {"temperature": 0.1},
            }
        )
        judge, grader = found["judge"], found["grader"]
        assert (judge.model, str(judge.url), judge.temperature) == ("m-2", "http://one/v1", 0.5)
        assert judge.key.get_secret_value() == "k"
        assert (grader.model, grader.temperature, grader.price) == ("m-1", 0.1, (1, 2))

    def test_a_price_belongs_to_its_model(self):
        found = model_tables({"default": {"model": "m-1", "price": [1, 2]}, "judge": {"model": "m-2"}})
        assert found["judge"].price is None

    @pytest.mark.parametrize("table", [{"base_url": "http://two/v1"}, {"api": "anthropic"}])
    def test_a_key_is_not_taken_to_another_server(self, table):
        base = {
            "model": "m",
            "base_url": "http://one/v1",
            "key": "k",
            "headers": {"x-org": "o"},
            "api_version": "2024-01-01",
        }
        judge = model_tables({"default": base, "judge": table})["judge"]
        assert judge.key is None
        assert judge.headers == {}
        assert judge.api_version == ""

    def test_a_key_of_its_own_takes_the_place_of_the_common_one_however_it_is_given(self, monkeypatch):
        monkeypatch.setenv("OWN", "mine")
        base = {"model": "m", "base_url": "http://one/v1", "key": "common"}
        judge = model_tables({"default": base, "judge": {"key_env": "OWN"}})["judge"]
        assert judge.secret().get_secret_value() == "mine"

    def test_a_misspelt_role_is_named_with_the_nearest(self):
        with pytest.raises(ConfigError, match=r"\[models\.juge\] names no model role\. Did you mean 'judge'\?"):
            model_tables({"juge": {"model": "m"}})

    def test_a_misspelt_setting_is_refused_when_the_run_is_set_up_and_no_key_is_told(self):
        with pytest.raises(
            ConfigError, match=r"\[models\.judge\]: .*unknown key 'modle'\. Did you mean 'model'"
        ) as caught:
            host(models={"judge": {"modle": "m", "key": "sk-hidden"}})
        assert "sk-hidden" not in str(caught.value)


class TestClients:
    def test_equal_settings_share_a_client_and_with_it_its_limits(self):
        lender = host(models={"default": {"model": "m", "base_url": "http://one/v1"}})
        first, name = lender.client("judge")
        assert name == "m"
        assert lender.client("decomposer")[0] is first
        own = ModelSettings(model="other", base_url="http://one/v1")
        assert lender.client("judge", own)[0] is not first
        assert lender.client("grader", own)[1] == "other"

    def test_without_a_model_it_says_how_to_name_one(self):
        with pytest.raises(ConfigError, match=r"no model is named for the query writer\. Give --model NAME"):
            host().client("query_writer")

    def test_the_table_of_a_role_goes_before_the_default(self):
        lender = host(models={"default": {"model": "m"}, "judge": {"model": "j"}})
        assert lender.client("judge")[1] == "j"
        assert lender.client("injector")[1] == "m"

    def test_a_bound_in_dollars_needs_a_price(self):
        lender = Host(
            Settings.model_validate({"models": {"default": {"model": "unheard-of"}}}),
            budget=Budget(max_usd=1.0),
            ledger=None,
            search=lambda names: names,
            judge=lambda name: (name, None),
        )
        with pytest.raises(ConfigError, match="price of the model 'unheard-of' is not known"):
            lender.client("judge")


class TestSecrets:
    def test_a_replay_needs_no_key_and_a_run_does(self, monkeypatch):
        monkeypatch.delenv("MY_KEY", raising=False)
        tables = {"models": {"default": {"model": "m", "key": {"env": "MY_KEY"}}, "judge": {"model": "j"}}}
        assert host(**tables, replay=True).client("judge")[1] == "j"
        with pytest.raises(ConfigError, match="MY_KEY, which is not set"):
            host(**tables).client("judge")

    def test_a_model_that_no_stage_asks_needs_none_either(self, monkeypatch):
        monkeypatch.delenv("MY_KEY", raising=False)
        host(models={"default": {"model": "m", "key": {"env": "MY_KEY"}}})


class TestAuthors:
    @pytest.mark.parametrize("graded", ["gpt-9", "openai/GPT-9", "gpt-9-2026-01-02"])
    def test_a_judge_is_not_the_model_that_wrote_the_answers(self, graded):
        lender = host(models={"default": {"model": "gpt-9"}}, graded_model=graded)
        with pytest.raises(ConfigError, match="is the model under evaluation"):
            lender.client("judge")
        assert lender.client("decomposer")[1] == "gpt-9"

    def test_an_answer_that_names_its_author_is_held_against_the_judges(self):
        lender = host(models={"default": {"model": "gpt-9"}})
        lender.client("decomposer")
        lender.check_author("gpt-9")  # no judge was lent
        lender.client("judge")
        lender.check_author("gpt-8")
        lender.check_author(None)
        with pytest.raises(ConfigError, match="would judge itself"):
            lender.check_author("gpt-9-latest")


def test_prompts_searches_and_judges_are_those_of_the_run(tmp_path):
    lender = host(prompts=tmp_path)
    assert lender.prompts() == Path(tmp_path)
    assert lender.search(("bm25",)) == ("bm25",)
    assert lender.judge("evidence") == ("evidence", None)
    assert lender.requests == 0


def test_a_stage_is_known_by_its_model_with_parameters_and_server_and_by_no_key():
    def judge_of(**model):
        table = {"model": "m", "base_url": "http://one/v1", "key": "sk-hidden", **model}
        with FactChecker.from_settings(
            Settings.model_validate(
                {"judge": "llm", "retrievers": ("web/searxng",), "models": {"default": table}, **WEB}
            )
        ) as checker:
            return checker.manifest.components[-1]

    first = judge_of()
    assert (first.model, first.parameters["base_url"], first.parameters["temperature"]) == ("m", "http://one/v1", 0.0)
    assert "sk-hidden" not in first.model_dump_json()
    for change in (
        {"base_url": "http://two/v1"},
        {"temperature": 0.5},
        {"max_tokens": 99},
        {"seed": 1},
        {"model": "n"},
    ):
        assert judge_of(**change).digest != first.digest
    for change in ({"key": "other"}, {"timeout": 9.0}, {"concurrency": 3}):
        assert judge_of(**change).digest == first.digest


class TestWhatWouldChangeNothing:
    def run(self, **settings):
        given = {
            "judge": "llm",
            "retrievers": ("web/searxng",),
            "models": {"default": {"model": "m", "base_url": "http://h/v1"}},
        }
        return FactChecker.from_settings(Settings.model_validate({**given, **WEB, **settings}))

    def test_a_folder_of_prompts_that_nobody_asks_with(self, tmp_path):
        (tmp_path / "judge.evidance.v2.md").write_text("x")
        with pytest.raises(
            PromptError, match=r"holds no prompt that this run asks with\. It asks with: judge\.batch\.v1, "
        ):
            self.run(prompts=tmp_path)

    def test_domains_without_a_retriever_that_has_an_allow_list(self):
        with self.run(domains=("who.int",)) as checker:
            assert checker.manifest.components[2].settings["domains"] == ["who.int"]
        pytest.importorskip("rank_bm25")
        with pytest.raises(ConfigError, match="no retriever of the run has an allow-list"):
            self.run(domains=("who.int",), retrievers=("bm25",), corpora=("clinical-starter",))
