"""Tables of model settings over each other: what is taken over, and what stays with its server or its model."""

import pytest

from factcheck.config import load_settings
from factcheck.host import model_tables
from factcheck.model_tables import inherited, overlaid

BASE = {"model": "m", "base_url": "http://one/v1", "key": "k", "headers": {"x": "y"}, "price": [1, 2], "seed": 5}


def test_what_is_left_open_is_taken_over():
    assert inherited(BASE, {"seed": 6}) == {**BASE, "seed": 6}
    assert inherited(BASE, {"base_url": "http://one/v1"}) == BASE


@pytest.mark.parametrize("own", [{"base_url": "http://two/v1"}, {"api": "anthropic"}])
def test_another_server_gets_neither_key_nor_headers(own):
    assert inherited(BASE, own) == {"model": "m", "base_url": "http://one/v1", "price": [1, 2], "seed": 5, **own}


def test_another_model_gets_no_price():
    assert "price" not in inherited(BASE, {"model": "n"})


def test_a_key_given_in_another_way_replaces_it():
    assert "key" not in inherited(BASE, {"key_env": "K"})


class TestFlags:
    def test_they_go_before_the_file_for_every_role(self):
        file = {"default": BASE, "judge": {"model": "j", "key": "kj", "base_url": "http://j/v1"}}
        found = overlaid(file, {"default": {"model": "n", "base_url": "http://two/v1"}})
        assert found["default"] == {"model": "n", "base_url": "http://two/v1", "seed": 5}
        assert found["judge"] == {"model": "n", "base_url": "http://two/v1"}

    def test_one_for_a_role_goes_before_the_one_for_all(self):
        found = overlaid({"default": BASE}, {"default": {"model": "n"}, "judge": {"model": "j"}})
        assert (found["default"]["model"], found["judge"]) == ("n", {"model": "j"})
        assert model_tables(found)["judge"].key.get_secret_value() == "k"
        assert model_tables(found)["judge"].price is None

    def test_a_key_of_the_file_does_not_go_to_the_server_of_the_flags(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MY_OPENAI", "sk-for-openai-only")
        path = tmp_path / "f.toml"
        path.write_text('[models.default]\nmodel = "a"\nkey = { env = "MY_OPENAI" }\nprice = [0, 0]\n')
        flags = {"models": {"default": {"model": "b", "base_url": "http://127.0.0.1:9/v1"}}}
        found = model_tables(load_settings(path, flags).models)["default"]
        assert (found.model, found.key, found.price, found.secret()) == ("b", None, None, None)

    def test_tables_that_are_none_are_refused_as_such(self, tmp_path):
        path = tmp_path / "f.toml"
        path.write_text("[models]\ndefault = 3\n")
        with pytest.raises(Exception, match=r"models\.default"):
            load_settings(path, {"models": {"default": {"model": "b"}}})
