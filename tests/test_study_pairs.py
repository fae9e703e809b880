import json
from pathlib import Path

import pytest

from factcheck.errors import InputError
from factcheck.study.pairs import read_pairs

GOOD = {"id": "p1", "question": "How much?", "original": "Take 5 mg.", "injected": "Take 50 mg."}
SHARED = Path(__file__).resolve().parents[2] / "shared"


def write(tmp_path, *rows):
    path = tmp_path / "pairs.jsonl"
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def read_one(tmp_path, **changes):
    return read_pairs(write(tmp_path, {**GOOD, **changes})).pairs[0]


def test_a_row_of_the_required_keys_is_enough(tmp_path):
    pair = read_pairs(write(tmp_path, {"id": "x", "original": "a b", "injected": "a c"})).pairs[0]
    assert (pair.error_type, pair.question, pair.cluster, pair.spans_from, pair.tied) == (
        "unspecified",
        "",
        "pair:x",
        "diff",
        None,
    )
    assert [pair.injected[slice(*span)] for span in pair.error_spans] == ["c"]


def test_unknown_keys_are_ignored(tmp_path):
    assert read_one(tmp_path, setting="patient", evidence=[1], rubric={}).id == "p1"


def test_given_spans_win_over_edits(tmp_path):
    pair = read_one(
        tmp_path,
        original_span=[[0, 9]],
        injected_span=[[0, 10]],
        edits=[{"find": "5", "replace": "50"}],
    )
    assert pair.spans_from == "given"
    assert pair.edits[0].original == (0, 9)
    assert pair.exact


def test_edits_win_over_the_diff(tmp_path):
    pair = read_one(tmp_path, edits=[{"find": "Take 5 mg", "replace": "Take 50 mg"}])
    assert pair.spans_from == "edits"
    assert pair.edits[0].original == (0, 9)


def test_edits_that_do_not_fit_give_way_to_the_diff(tmp_path):
    pair = read_one(tmp_path, edits=[{"find": "9", "replace": "50"}], original_span=[], injected_span=[])
    assert pair.spans_from == "diff"
    assert pair.edits[0].original == (5, 6)


def test_spans_count_code_points(tmp_path):
    original, injected = "𝟓 µg 🙂 daily.", "𝟓 µg 🙂 weekly."
    pair = read_one(tmp_path, original=original, injected=injected, original_span=[[7, 12]], injected_span=[[7, 13]])
    assert pair.exact
    assert pair.injected[slice(*pair.error_spans[0])] == "weekly"


def test_texts_that_differ_outside_the_spans_are_marked(tmp_path):
    assert not read_one(tmp_path, original_span=[[0, 4]], injected_span=[[0, 5]]).exact


def test_spans_over_equal_text_are_left_out(tmp_path):
    pair = read_one(tmp_path, original_span=[[0, 4], [5, 6]], injected_span=[[0, 4], [5, 7]])
    assert [edit.original for edit in pair.edits] == [(5, 6)]


def test_clusters(tmp_path):
    rows = [
        {**GOOD, "id": "a"},
        {**GOOD, "id": "b"},
        {**GOOD, "id": "c", "question": "Else?"},
        {**GOOD, "id": "d", "question_id": "q9"},
        {**GOOD, "id": "e", "question": ""},
        {**GOOD, "id": "f", "question": None},
    ]
    clusters = [pair.cluster for pair in read_pairs(write(tmp_path, *rows)).pairs]
    assert clusters[0] == clusters[1] != clusters[2]
    assert clusters[3:] == ["q9", "pair:e", "pair:f"]


@pytest.mark.parametrize(
    ("scores", "tied"),
    [
        ({"rubric_scores": {"original": 5, "injected": 5.0}}, True),
        ({"original_score": 5, "injected_score": 4}, False),
        ({"rubric_scores": None}, None),
        ({}, None),
    ],
)
def test_scores(tmp_path, scores, tied):
    assert read_one(tmp_path, **scores).tied is tied


BAD = [
    (b'{"id": "x", ', "not valid JSON"),
    (b'{"id": "\xff", "original": "a", "injected": "b"}', "not valid UTF-8"),
    (b"[" * 100_000, "not valid JSON"),
    (b"[1]", "not an object"),
    (b"17", "not an object"),
    (b'{"id": "x", "original": "a", "injected": "b", "original_score": NaN, "injected_score": 1}', "NaN"),
    ({**GOOD, "id": 7}, "'id' is a number"),
    ({**GOOD, "id": " "}, "'id' is blank"),
    ({"original": "a", "injected": "b"}, "'id' is missing"),
    ({"id": "x", "injected": "b"}, "'original' is missing"),
    ({**GOOD, "injected": None}, "'injected' is missing or null"),
    ({**GOOD, "original": ["a"]}, "'original' is a list"),
    ({**GOOD, "question": 3}, "'question' is a number"),
    ({**GOOD, "error_type": {}}, "'error_type' is an object"),
    ({**GOOD, "injected": GOOD["original"]}, "are equal"),
    ({**GOOD, "original": "", "injected": ""}, "are equal"),
    ({**GOOD, "injected": "Take  5 mg."}, "differ in white space alone"),
    ({**GOOD, "original": "\ud800"}, "surrogate"),
    ({**GOOD, "original_span": [[5, 11]], "injected_span": [[5, 7]]}, "lies outside the text, which has 10"),
    ({**GOOD, "original_span": [[6, 5]], "injected_span": [[5, 7]]}, "lies outside"),
    ({**GOOD, "original_span": [[-1, 5]], "injected_span": [[5, 7]]}, "lies outside"),
    ({**GOOD, "original_span": [[5, 6]]}, "holds 1 spans and 'injected_span' 0"),
    ({**GOOD, "original_span": [5, 6], "injected_span": [5, 7]}, "must be a list of"),
    ({**GOOD, "original_span": [[5, True]], "injected_span": [[5, 7]]}, "must be a list of"),
    ({**GOOD, "original_span": "5-6"}, "'original_span' is a string"),
    ({**GOOD, "original_span": [[0, 4]], "injected_span": [[0, 4]]}, "mark no difference"),
    ({**GOOD, "edits": {"find": "a"}}, "'edits' must be a list"),
    ({**GOOD, "edits": [{"find": "a"}]}, "'replace' is missing"),
    ({**GOOD, "rubric_scores": 4}, "'rubric_scores' is a number"),
    ({**GOOD, "rubric_scores": {"original": 4}}, "injected text is missing"),
    ({**GOOD, "original_score": 4}, "injected text is missing"),
    ({**GOOD, "original_score": True, "injected_score": 1}, "original text is a boolean"),
    ({**GOOD, "original_score": "4", "injected_score": 1}, "original text is a string"),
    (b'{"id": "x", "original": "a", "injected": "b", "original_score": 1e999, "injected_score": 1}', "not finite"),
    (
        b'{"id": "x", "original": "a", "injected": "b", "original_score": 1' + b"0" * 400 + b', "injected_score": 1}',
        "not finite",
    ),
]


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, row, reason):
    path = write(tmp_path, {**GOOD, "id": "before"}, b"", row, {**GOOD, "id": "after"})
    with pytest.raises(InputError) as caught:
        read_pairs(path)
    message = str(caught.value)
    assert message.startswith(f"[F120] {path}, line 3: ")
    assert reason in message
    assert "--skip-invalid" in message
    assert "\n" not in message


@pytest.mark.parametrize(("row", "reason"), BAD)
def test_skipped_rows_are_counted_and_the_others_stay(tmp_path, row, reason):
    path = write(tmp_path, {**GOOD, "id": "before"}, b"", row, {**GOOD, "id": "after"})
    file = read_pairs(path, skip_invalid=True)
    assert [pair.id for pair in file.pairs] == ["before", "after"]
    assert [skipped.line for skipped in file.skipped] == [3]
    assert reason in file.skipped[0].reason


def test_duplicate_ids_name_both_lines(tmp_path):
    path = write(tmp_path, GOOD, {**GOOD, "question": "Again?"})
    with pytest.raises(InputError, match=r"line 2: the id 'p1' was already used in line 1"):
        read_pairs(path)
    assert len(read_pairs(path, skip_invalid=True).pairs) == 1


def test_files_that_hold_nothing(tmp_path):
    with pytest.raises(InputError, match="cannot read the pairs"):
        read_pairs(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="cannot read the pairs"):
        read_pairs(tmp_path)
    with pytest.raises(InputError, match="holds no pairs"):
        read_pairs(write(tmp_path, b""))
    with pytest.raises(InputError, match="1 lines are invalid, first line 1: the line is not valid JSON"):
        read_pairs(write(tmp_path, b"{"), skip_invalid=True)


def test_byte_order_mark_and_line_separators(tmp_path):
    row = json.dumps({**GOOD, "question": "a\u2028b\x85c"}, ensure_ascii=False).encode()
    file = read_pairs(write(tmp_path, b"\xef\xbb\xbf" + row + b"\r"))
    assert file.pairs[0].question == "a\u2028b\x85c"


@pytest.mark.shared
def test_development_pairs(tmp_path):
    path = SHARED / "data/pairs/clinical_dev.jsonl"
    if not path.exists():
        pytest.skip("the development data does not lie beside the project")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    given = read_pairs(path)
    assert len(given.pairs) == len(rows)
    assert all(pair.exact and pair.spans_from == "given" for pair in given.pairs)
    for row in rows:
        del row["original_span"], row["injected_span"]
    placed = read_pairs(write(tmp_path, *rows))
    assert [pair.edits for pair in placed.pairs] == [pair.edits for pair in given.pairs]
    assert all(pair.spans_from == "edits" for pair in placed.pairs)
    for row in rows:
        del row["edits"]
    found = read_pairs(write(tmp_path, *rows))
    assert all(pair.spans_from == "diff" and pair.exact for pair in found.pairs)
    for one, other in zip(found.pairs, given.pairs, strict=True):
        inside = [
            any(old[0] <= start and end <= old[1] for old in (edit.injected for edit in other.edits))
            for start, end in one.error_spans
        ]
        assert all(inside), one.id
