import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from factcheck.llm.replies import SIZE_LIMIT, ModelReplyError, UnreadableError, complaint, fitted, read_json

SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
PROSE = st.text(alphabet=st.characters(exclude_characters="{}[]<>\"'", exclude_categories=["Cs"]), max_size=60)

FOUND = {
    "plain": ('{"a": 1}', {"a": 1}),
    "byte order mark": ('\ufeff{"a": 1}', {"a": 1}),
    "fenced": ('```json\n{"a": 1}\n```', {"a": 1}),
    "fenced in prose": ('Here it is:\n```\n{"a": 1}\n```\nHope this helps {smile}!', {"a": 1}),
    "prose around": ('Sure. {"a": {"b": [1, 2]}} Done.', {"a": {"b": [1, 2]}}),
    "trailing commas": ('{"a": [1, 2,], "b": {"c": 3 , } ,\n}', {"a": [1, 2], "b": {"c": 3}}),
    "comma before a bracket in a string": ('{"a": "x,}", "b": ",]"}', {"a": "x,}", "b": ",]"}),
    "brackets in strings": ('{"a": "}{][", "b": "\\"}"}', {"a": "}{][", "b": '"}'}),
    "escaped backslash at the end": ('{"a": "\\\\"}', {"a": "\\"}),
    "line break in a string": ('{"a": "one\ntwo\ttabbed"}', {"a": "one\ntwo\ttabbed"}),
    "the last of several": ('First {"a": 1}, no, better {"a": 2}.', {"a": 2}),
    "a thought before": ('<think>perhaps {"a": "draft"} or {"a</think>{"a": "final"}', {"a": "final"}),
    "empty": ("{}", {}),
    "a citation after": ('{"a": 1} as shown in [1] and [see note].', {"a": 1}),
    "an open bracket after": ('{"a": 1} [1, and so on', {"a": 1}),
    "a bracketed word before": ('[note] {"a": 1}', {"a": 1}),
    "escapes": ('{"a": "\\u00e4\\ud83d\\ude00"}', {"a": "ä😀"}),
}
REFUSED = {
    "nothing": ("", "no JSON object"),
    "prose": ("The claim is supported.", "no JSON object"),
    "a list": ('[{"a": 1}]', "no JSON object"),
    "a string": ('"supported"', "no JSON object"),
    "cut in an object": ('{"claims": [{"text": "a"}, {"text": "b"}', "ends in the middle"),
    "cut in a string": ('{"claims": [{"text": "a"}, {"text": "b', "ends in the middle"),
    "cut after a draft": ('{"a": 1} On reflection: {"a": 2, "b', "ends in the middle"),
    "cut in a thought": ('<think>{"a": 1}', "in the middle of a thought"),
    "only a thought": ('<think>{"a": 1}</think>', "no JSON object"),
    "a key twice": ('{"label": "supported", "label": "contradicted"}', "'label' occurs twice"),
    "a key twice inside": ('{"a": [{"b": 1, "b": 1}]}', "'b' occurs twice"),
    "not a number": ('{"a": NaN}', "NaN is no number"),
    "infinity": ('{"a": -Infinity}', "-Infinity is no number"),
    "half a surrogate pair": ('{"a": "\\ud83d"}', "half of a surrogate pair"),
    "single quotes": ("{'a': 1}", "no JSON object"),
    "no comma": ('{"a": 1 "b": 2}', "not valid.*line 1"),
    "an ellipsis": ('{"a": [1, ...]}', "not valid"),
    "brackets that do not match": ('{"a": [1}', "not valid"),
    "a broken one after a good one": ('{"a": 1} {"a": oops}', "not valid"),
    "a good one inside a broken one": ('{"wrong": {"a": 1} {"b": 2}}', "not valid"),
}


@pytest.mark.parametrize("case", FOUND)
def test_json_is_found_in_what_models_write(case):
    text, value = FOUND[case]
    assert read_json(text) == value


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_one_complete_value_is_refused(case):
    text, words = REFUSED[case]
    with pytest.raises(UnreadableError, match=words):
        read_json(text)


def test_lists_are_found_where_lists_are_wanted():
    assert read_json('Here: [{"a": 1}, {"a": 2}] and {"b": 3}', list) == [{"a": 1}, {"a": 2}]
    with pytest.raises(UnreadableError, match="no JSON array"):
        read_json('{"a": [1]}', list)


@given(OBJECTS, PROSE, PROSE, st.booleans(), st.sampled_from([None, 0, 2]))
def test_any_object_is_found_again_inside_prose(value, before, after, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_json(f"{before}{text}{after}") == value


@given(OBJECTS.filter(bool), st.data())
def test_no_part_of_a_cut_object_is_taken_for_it(value, data):
    text = json.dumps({"claims": [value, value]})
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(UnreadableError):
        read_json(cut)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text):
    for kind in (dict, list):
        try:
            found = read_json(text, kind)
        except UnreadableError:
            continue
        assert isinstance(found, kind)


@given(st.text(alphabet='{}[]",:\\ \n1a', max_size=120))
def test_no_brackets_break_the_reader(text):
    try:
        found = read_json(text)
    except UnreadableError:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        '{"a":' * 150_000,
        "[1" * 400_000,
        '{"a": 1}' + "[1" * 400_000,
        '{"a": 1}' * 60_000,
        '{"a": "' + "\\" * 900_000,
        '{"a": [' + "1,     " * 120_000 + "]}",
        '{"a": "' + "x," * 400_000 + '"}',
        "{ " * 400_000,
        '{"a": ' + "9" * 900_000 + "}",
        "<think>" * 100_000,
    ],
)
def test_no_text_takes_long_to_read(text):
    started = time.process_time()
    with contextlib.suppress(UnreadableError):
        read_json(text)
    assert time.process_time() - started < 3.0


def test_a_reply_of_great_length_is_refused():
    with pytest.raises(UnreadableError, match="longer than"):
        read_json(" " * (SIZE_LIMIT + 1))


class Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: str = Field(pattern="^(supported|contradicted)$")
    items: list[int] = Field(min_length=1)


def test_what_does_not_fit_is_told_without_hiding_where():
    assert fitted({"label": "supported", "items": [1]}, Reply).items == [1]
    with pytest.raises(UnreadableError, match=r"label: .*items: .*extra") as caught:
        fitted({"label": "maybe", "items": [], "extra": 1}, Reply)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnreadableError, match="and 3 more"):
        fitted({"label": "supported", "items": ["x"] * 8}, Reply)


def test_the_complaint_names_problem_and_schema():
    text = complaint("it holds no JSON", {"type": "object", "title": "Gebäude"})
    assert "it holds no JSON" in text
    assert '{"type": "object", "title": "Gebäude"}' in text


def test_an_error_of_a_reply_has_its_code_and_fault():
    error = ModelReplyError("the reply is empty.", fault="empty")
    assert str(error) == "[F360] the reply is empty."
    assert error.fault == "empty"
