"""Credentials are masked, and nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.redaction import MASK, redacted, scrubbed

SECRET = "q7Zk29xPw41LmN0vB8sT"


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{SECRET}@host/path",
        f"GET /search?q=gout&api_key={SECRET}&page=2",
        f"https://host/?key={SECRET}",
        f"https://host/?x=1&access_token={SECRET}",
        f"https://host/?sig={SECRET}#top",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}==",
        f"Incorrect API key provided: sk-proj-{SECRET}.",
        f"tvly-{SECRET}",
        f"hf_{SECRET}",
        "AIza" + SECRET[:15] + SECRET,
    ],
)
def test_credentials_are_masked(text):
    assert SECRET not in scrubbed(text)
    assert MASK in scrubbed(text)
    assert json.loads(json.dumps(redacted({"a": [{"b": text}]})))["a"][0]["b"] == scrubbed(text)


def test_what_surrounds_a_credential_stays():
    assert (
        scrubbed(f"https://u:{SECRET}@h/p?q=gout&key={SECRET}&page=2") == f"https://{MASK}@h/p?q=gout&key={MASK}&page=2"
    )


@pytest.mark.parametrize(
    "name",
    ["key", "api_key", "API-Key", "x-api-key", "Authorization", "token", "access_token", "password", "clientSecret"],
)
def test_telling_names_are_masked(name):
    assert redacted({"outer": {name: "short"}}) == {"outer": {name: MASK}}
    assert redacted({name: ""}) == {name: ""}
    assert redacted({name: 3, name + "s": [1]}) == {name: 3, name + "s": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "Metformin 500 mg twice daily; the key finding was a risk ratio of 0.82 (95% CI 0.7-0.9).",
        "The bearer of this card has a sickle-cell trait. Basic cardiopulmonary resuscitation was given.",
        "See https://www.nice.org.uk/guidance/ng28?query=key and mail a@b.org at 10:30.",
        "The sk-learn toolkit; a risk-benefit-assessment-of-anticoagulants; task_force_recommendations_2021",
        "tokens: 12, key_env: OPENAI_API_KEY, https://host:8080/v1",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert scrubbed(text) == text


@pytest.mark.parametrize("name", ["max_tokens", "key_env", "keywords", "monkey", "tokenizer", "name"])
def test_ordinary_names_are_left_alone(name):
    assert redacted({name: "value"}) == {name: "value"}


@given(st.recursive(st.none() | st.integers() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=3)))
def test_the_shape_stays_and_twice_is_once(value):
    once = redacted(value)
    assert redacted(once) == once
    assert type(once) is type(value)
