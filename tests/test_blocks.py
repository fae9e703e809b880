"""Blocks and inline markup: structure, visible text and offsets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.text.blocks import parse_blocks
from factcheck.text.inline import Line, render


def blocks(text):
    return [
        (block.kind, block.level, [text[line.start : line.end] for line in block.lines])
        for block in parse_blocks(text).blocks
    ]


def visible(text, **options):
    return render(text, [Line(0, len(text))], **options)


def test_headings():
    assert blocks("# One\n\nTwo\n===\n\nThree\n---\n\n## Four ##\n#hashtag") == [
        ("heading", 1, ["One"]),
        ("heading", 1, ["Two"]),
        ("heading", 2, ["Three"]),
        ("heading", 2, ["Four"]),
        ("paragraph", 0, ["#hashtag"]),
    ]


def test_a_rule_below_a_sentence_is_no_heading():
    assert blocks("Take 5 mg.\n---\nStop.") == [("paragraph", 0, ["Take 5 mg."]), ("paragraph", 0, ["Stop."])]


def test_lists_nest_by_indentation():
    text = "- a\n  - b\n    continued\n   - c\n- d\n\n  more d\n\nafter"
    assert blocks(text) == [
        ("item", 1, ["a"]),
        ("item", 2, ["b", "continued"]),
        ("item", 2, ["c"]),
        ("item", 1, ["d"]),
        ("paragraph", 1, ["more d"]),
        ("paragraph", 0, ["after"]),
    ]


@pytest.mark.parametrize(
    ("line", "content"),
    [
        ("1. Take it", "Take it"),
        ("(2) Take it", "Take it"),
        ("3) Take it", "Take it"),
        ("1.Take it", "Take it"),
        ("a) take it", "take it"),
        ("• 500 mg daily", "500 mg daily"),
        ("•500 mg daily", "500 mg daily"),
        ("- [x] done", "done"),
        ("-Capacity is reduced", "Capacity is reduced"),
        ("*\tTabbed", "Tabbed"),
        ("– dash", "dash"),
    ],
)
def test_list_markers(line, content):
    assert blocks(line) == [("item", 1, [content])]


@pytest.mark.parametrize(
    "line",
    [
        "500 mg of amoxicillin",
        "1.5 mg daily",
        "-2.5 or lower",
        "2021. That year",
        "E. coli is common",
        "5 - 10 mg",
        "*emphasis* first",
    ],
)
def test_what_is_no_list_marker(line):
    assert blocks(line) == [("paragraph", 0, [line])]


def test_numbers_and_hyphens_of_a_wrapped_paragraph_open_no_list():
    assert blocks("in patients over\n65. Reduce the dose") == [
        ("paragraph", 0, ["in patients over", "65. Reduce the dose"])
    ]
    assert blocks("doses of 5\n- 10 mg/kg") == [("paragraph", 0, ["doses of 5", "- 10 mg/kg"])]
    assert [kind for kind, _, _ in blocks("Steps:\n1. a\n2. b")] == ["paragraph", "item", "item"]


def test_quotes_lose_their_marks_and_comparisons_keep_theirs():
    assert blocks("> a\n> b\n>> c") == [("paragraph", 0, ["a", "b"]), ("paragraph", 0, ["c"])]
    assert blocks("> 65 years: 2.5 mg") == [("paragraph", 0, ["> 65 years: 2.5 mg"])]
    assert blocks("> Said:\n> 500 mg is fine") == [("paragraph", 0, ["Said:", "500 mg is fine"])]


def test_tables_have_a_header_and_cells():
    text = "Intro\n| Test | Cut-off |\n|:---|---:|\n| HbA1c | 6.5% |\nGlucose | 7.0\n\nafter | x"
    assert blocks(text) == [
        ("paragraph", 0, ["Intro"]),
        ("header", 0, ["Test", "Cut-off"]),
        ("row", 0, ["HbA1c", "6.5%"]),
        ("row", 0, ["Glucose", "7.0"]),
        ("paragraph", 0, ["after | x"]),
    ]
    assert blocks(r"| a \| b | c |") == [("row", 0, [r"a \| b", "c"])]


def test_code_is_taken_line_by_line_and_an_open_fence_runs_to_the_end():
    assert blocks("```text\nDose: 5 mg\n\n- x\n```\nafter") == [
        ("code", 0, ["Dose: 5 mg"]),
        ("code", 0, ["- x"]),
        ("paragraph", 0, ["after"]),
    ]
    assert blocks("~~~\na") == [("code", 0, ["a"])]
    assert blocks("```Dose: 5 mg\n```") == [("code", 0, ["Dose: 5 mg"])]


def test_bold_lines_and_lead_ins_start_a_paragraph():
    text = "**Dosing**\nTake 5 mg.\n**Note:** stop.\nThen wait."
    assert blocks(text) == [
        ("paragraph", 0, ["**Dosing**"]),
        ("paragraph", 0, ["Take 5 mg."]),
        ("paragraph", 0, ["**Note:** stop.", "Then wait."]),
    ]


def test_link_definitions_are_markup():
    document = parse_blocks("[NHS]: https://nhs.uk/x 'T'\n[1]: Smith 2021")
    assert document.references == {"nhs"}
    assert len(document.blocks) == 1


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("**a** *b* ***c*** __d__ _e_ ~~f~~", "a b c d e f"),
        ("dose is **4**克", "dose is 4克"),
        ("5*3 and 4*2, 10*9/L, 2**3", "5*3 and 4*2, 10*9/L, 2**3"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("a **b and *c", "a b and *c"),
        ("a** b", "a b"),
        ("`a*b*` and ``c`d``", "a*b* and c`d"),
        ("lone ` tick", "lone  tick"),
        ("[text](https://x.y/a_(b)) end", "text end"),
        ('![alt](x.png "t") end', "alt end"),
        ("[doi](https://doi.org/10.1016/S0140-6736(97)11096-0).", "doi."),
        ("[not a link] (x) [1]", "[not a link] (x) [1]"),
        ("[open](http://", "[open](http://"),
        ("<b>5 mg</b> x<sup>2</sup> <https://x.y>", "5 mg x2 https://x.y"),
        ("p <30 and a<b>c", "p <30 and ac"),
        ("eGFR <30 and >60", "eGFR <30 and >60"),
        ("&lt;30 &amp; 5&nbsp;mg &bogus;", "<30 & 5\u00a0mg &bogus;"),
        (r"\*a\* 5\% \d", r"*a* 5% \d"),
        ("a\u200bb\ufeff c\x00d", "ab c d"),
        ("a<!-- hidden -->b <!-- open", "ab <!-- open"),
        ("a<br>b<li>c", "a\u2028b\u2029c"),
    ],
)
def test_visible_text(source, text):
    assert visible(source).text == text


def test_links_by_reference_need_a_definition():
    assert visible("[a][ref] [b][other] [ref]", references=frozenset({"ref"})).text == "a [b][other] ref"
    assert visible("see [1][2]").text == "see [1][2]"


def test_spans_reach_over_the_markup_that_belongs_to_them():
    source = "**Stop it.** Then [see this](http://x.y). `Ok` &lt;5"
    shown = visible(source)

    def sliced(part):
        start = shown.text.index(part)
        first, last = shown.span(start, start + len(part))
        return source[first:last]

    assert sliced("Stop it.") == "**Stop it.**"
    assert sliced("Then see this.") == "Then [see this](http://x.y)."
    assert sliced("see this") == "[see this](http://x.y)"
    assert sliced("Ok") == "`Ok`"
    assert sliced("<") == "&lt;"
    assert shown.strong == len("Stop it.")


def test_code_spans_and_emphasis_run_over_lines():
    source = "`a\nb` **c\nd**"
    shown = render(source, [Line(0, 2), Line(3, len("`a\nb` **c")), Line(len("`a\nb` **c\n"), len(source))])
    assert shown.text == "a\nb c\nd"


MARKUP = [
    "w",
    " ",
    "\n",
    "**",
    "*",
    "_",
    "`",
    "[",
    "](http://x.y)",
    "<b>",
    "</b>",
    "&amp;",
    "\\",
    "~~",
    "!",
    "\u200b",
    "5",
]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(MARKUP), max_size=60).map("".join))
def test_rendering_keeps_every_word_and_maps_it_to_its_place(source):
    shown = visible(source)
    kept = [at for at, char in enumerate(shown.text) if char in "w5"]
    origins = [shown._origin(at) for at in kept]
    assert [source[start] for start, _ in origins] == [shown.text[at] for at in kept]
    assert sorted(set(origins)) == origins
    assert len(kept) == source.count("w") + source.count("5")


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet=st.sampled_from("ab1 \t\n\r#*->|`~=[]:().+•"), max_size=150))
def test_blocks_are_ordered_and_lie_in_the_text(text):
    end = 0
    for block in parse_blocks(text).blocks:
        assert block.lines
        for line in block.lines:
            assert end <= line.start <= line.end <= len(text)
            end = line.end
