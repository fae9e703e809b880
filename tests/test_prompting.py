"""Prompts: those that ship are in order, and what is not in order is refused by name."""

import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.errors import PromptError, UnknownNameError
from factcheck.prompting import load_prompt, load_prompts, parse_prompt
from factcheck.schema import ClaimKind, Label, StanceKind

SHIPPED = sorted(load_prompts())
SOURCE = """+++
purpose = "Ask."
method = "By asking."
inputs = ["claim", "question"]
output_schema = '{"type": "object"}'
+++
Judge {{claim}} for {{ question }}, then {{claim}}.
"""


def parsed(source=SOURCE, name="judge.mine.v1.md"):
    return parse_prompt(name, source, "here")


@pytest.fixture(scope="module")
def packaged():
    return load_prompts()


def nodes(schema):
    """Return every schema inside a JSON schema, itself included."""
    inner = [*schema.get("properties", {}).values()]
    inner += [schema["items"]] if "items" in schema else []
    return [schema, *(node for part in inner for node in nodes(part))]


class TestPackaged:
    def test_they_are_all_there_in_order(self, packaged):
        assert set(packaged) >= {"decompose.atomic.v1", "judge.evidence.v1", "queries.neutral.v1"}
        assert list(packaged) == sorted(packaged)
        assert {prompt.origin for prompt in packaged.values()} == {"the package"}
        assert {prompt.stage for prompt in packaged.values()} <= {"decompose", "queries", "judge"}

    @pytest.mark.parametrize("name", SHIPPED)
    def test_each_is_rendered_with_all_its_inputs(self, packaged, name):
        prompt = packaged[name]
        values = {field: f"<value of {field}>" for field in prompt.inputs}
        text = prompt.render(**values)
        assert "{{" not in text
        assert all(value in text for value in values.values())
        assert prompt.purpose
        assert prompt.method
        assert prompt.id == name
        assert prompt.stage == name.partition(".")[0]

    @pytest.mark.parametrize("name", SHIPPED)
    def test_each_asks_for_a_closed_object(self, packaged, name):
        schema = packaged[name].output_schema
        assert json.loads(json.dumps(dict(schema))) == schema
        assert schema["type"] == "object"
        known = {"type", "properties", "required", "additionalProperties", "items", "enum", "minLength", "minItems"}
        for node in nodes(schema):
            assert set(node) <= known
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert sorted(node["required"]) == sorted(node["properties"])
            elif node.get("type") == "array":
                assert "items" in node
            elif "enum" in node:
                assert len(set(node["enum"])) == len(node["enum"]) > 1
            else:
                assert node["type"] in ("string", "boolean", "integer", "number")

    @pytest.mark.parametrize("name", SHIPPED)
    def test_its_words_are_those_of_the_models(self, packaged, name):
        for node in nodes(packaged[name].output_schema):
            for field, words in (("kind", ClaimKind), ("label", Label)):
                if field in node.get("properties", {}):
                    assert tuple(node["properties"][field]["enum"]) == get_args(words)
            if "stance" in node.get("properties", {}):
                assert set(node["properties"]["stance"]["enum"]) <= set(get_args(StanceKind))

    @pytest.mark.parametrize("name", SHIPPED)
    def test_what_comes_from_outside_stands_between_tags_and_is_data(self, packaged, name):
        prompt = packaged[name]
        # The others are written by factcheck itself.
        outside = set(prompt.inputs) - {"count", "mark", "problems"}
        for field in outside:
            assert re.search(rf"<{field}\b[^>]*>\s*\{{\{{{field}\}}\}}\s*</{field}\b[^>]*>", prompt.text)
        assert not outside or "is data" in prompt.text


class TestRendering:
    def test_values_are_inserted_as_they_are(self):
        assert parsed().render(claim="a\\1b", question="?") == "Judge a\\1b for ?, then a\\1b.\n"

    def test_a_value_that_looks_like_a_placeholder_is_not_filled_in(self):
        text = parsed().render(claim="{{question}}", question="{{claim}}")
        assert text == "Judge {{question}} for {{claim}}, then {{question}}.\n"

    @given(st.text(), st.text())
    def test_any_value_is_inserted_verbatim(self, claim, question):
        assert parsed().render(claim=claim, question=question) == f"Judge {claim} for {question}, then {claim}.\n"

    @pytest.mark.parametrize(
        "values", [{}, {"claim": "x"}, {"claim": "x", "question": "y", "more": "z"}, {"clam": "x"}]
    )
    def test_other_values_than_the_inputs_are_refused(self, values):
        with pytest.raises(PromptError, match=r"'judge\.mine\.v1' takes claim, question; it was given"):
            parsed().render(**values)


BROKEN = {
    "no front matter": (("Judge {{claim}}.", "judge.mine.v1.md"), "is no prompt"),
    "front matter that does not end": (("+++\npurpose = 1\n", "judge.mine.v1.md"), "is no prompt"),
    "text before the front matter": (("Hello\n" + SOURCE, "judge.mine.v1.md"), "is no prompt"),
    "a name without a version": ((SOURCE, "judge.mine.md"), "is no prompt"),
    "a name in capitals": ((SOURCE, "Judge.Mine.v1.md"), "is no prompt"),
    "TOML that is none": ((SOURCE.replace("purpose =", "purpose"), "judge.mine.v1.md"), "front matter"),
    "a schema that is no JSON": ((SOURCE.replace('{"type"', "{type"), "judge.mine.v1.md"), "front matter"),
    "a schema that is no object": (
        (SOURCE.replace('\'{"type": "object"}\'', "'[]'"), "judge.mine.v1.md"),
        "output_schema",
    ),
    "no schema": ((SOURCE.replace("output_schema", "schema"), "judge.mine.v1.md"), "output_schema"),
    "a schema that is no text": ((SOURCE.replace('\'{"type": "object"}\'', "5"), "judge.mine.v1.md"), "front matter"),
    "no purpose": ((SOURCE.replace('purpose = "Ask."\n', ""), "judge.mine.v1.md"), "purpose"),
    "a field that nobody knows": ((SOURCE.replace("method", 'author = "x"\nmethod'), "judge.mine.v1.md"), "author"),
    "a field that is not its own": ((SOURCE.replace("method", 'id = "x"\nmethod'), "judge.mine.v1.md"), "front matter"),
    "an input that is not used": ((SOURCE.replace('["claim"', '["passages", "claim"'), "judge.mine.v1.md"), "passages"),
    "a placeholder that is no input": ((SOURCE + "{{answer}}", "judge.mine.v1.md"), "differ in answer"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_prompt_is_refused_on_one_line_with_its_name(name):
    (source, filename), said = BROKEN[name]
    with pytest.raises(PromptError, match=said) as caught:
        parsed(source, filename)
    shown = str(caught.value)
    assert shown.splitlines() == [shown]
    assert filename.removesuffix(".md") in shown
    assert "here" in shown


def test_a_prompt_knows_its_parts():
    prompt = parsed()
    assert (prompt.id, prompt.stage, prompt.inputs) == ("judge.mine.v1", "judge", ("claim", "question"))
    assert prompt.output_schema == {"type": "object"}
    assert prompt.sha256 == hashlib.sha256(SOURCE.encode()).hexdigest()
    assert prompt.sha256 != parsed(SOURCE + " ").sha256


class TestFolder:
    def test_it_adds_and_takes_precedence(self, tmp_path, packaged):
        (tmp_path / "judge.evidence.v1.md").write_text(SOURCE)
        (tmp_path / "judge.mine.v2.md").write_text(SOURCE)
        (tmp_path / "notes.txt").write_text("no prompt")
        prompts = load_prompts(tmp_path)
        assert set(prompts) == set(packaged) | {"judge.mine.v2"}
        assert prompts["judge.evidence.v1"].text.startswith("Judge {{claim}}")
        assert prompts["judge.evidence.v1"].origin == str(tmp_path)
        assert prompts["queries.neutral.v1"] == packaged["queries.neutral.v1"]
        assert load_prompt("judge.mine.v2", tmp_path).id == "judge.mine.v2"

    def test_line_ends_and_a_byte_order_mark_make_no_difference(self, tmp_path):
        (tmp_path / "judge.mine.v1.md").write_bytes(b"\xef\xbb\xbf" + SOURCE.replace("\n", "\r\n").encode())
        assert load_prompt("judge.mine.v1", tmp_path).sha256 == parsed().sha256
        assert load_prompt("judge.mine.v1", tmp_path).text == parsed().text

    def test_a_misnamed_prompt_is_not_passed_over(self, tmp_path):
        (tmp_path / "judge.evidence.md").write_text(SOURCE)
        with pytest.raises(PromptError, match=r"'judge.evidence.md' in .* is no prompt"):
            load_prompts(tmp_path)

    def test_bytes_that_are_not_utf_8(self, tmp_path):
        (tmp_path / "judge.mine.v1.md").write_bytes(b"+++\n\xff")
        with pytest.raises(PromptError, match="not UTF-8: bad byte at offset 4") as caught:
            load_prompts(tmp_path)
        assert "judge.mine.v1.md" in str(caught.value)

    def test_what_cannot_be_read(self, tmp_path):
        (tmp_path / "judge.mine.v1.md").mkdir()
        with pytest.raises(PromptError, match="cannot read the prompt"):
            load_prompts(tmp_path)

    @pytest.mark.parametrize("name", ["missing", "file"])
    def test_no_folder(self, tmp_path, name):
        (tmp_path / "file").write_text("")
        with pytest.raises(PromptError, match="is no folder of prompts"):
            load_prompts(tmp_path / name)


def test_an_unknown_prompt_names_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"no prompt named 'judge\.evidnce\.v1'\. Did you mean 'judge\.evidence\.v1'"
    ):
        load_prompt("judge.evidnce.v1")


def test_the_packaged_hash_is_that_of_the_file(packaged):
    file = Path(__file__).parents[1] / "prompts" / "judge.evidence.v1.md"
    assert packaged["judge.evidence.v1"].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
