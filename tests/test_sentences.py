"""Sentence splitting: golden cases, offsets, and time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factcheck.text.sentences import split_sentences


def split(text):
    return [text[start:end] for start, end in split_sentences(text)]


CASES = {
    "decimals": ["Take 0.5 mg at night.", "Then .25 mg, not 1.5 mL."],
    "latin abbreviations": [
        "Use a statin, e.g. atorvastatin, i.e. a CoA reductase inhibitor.",
        "Stop it approx. 3 days before.",
    ],
    "dosing abbreviations before a capital": [
        "Take 500 mg q.i.d.",
        "Avoid alcohol.",
        "Use 5 mg b.i.d. or p.r.n. for pain.",
    ],
    "dosing abbreviations before a number": ["Take p.r.n. 2 tablets.", "The limit is max. 4 g per day.", "See no. 5."],
    "titles and initials": ["Dr. Smith and J. R. Jones treated E. coli.", "Prof. Wu agreed."],
    "vitamin and type names": ["He lacks vitamin C.", "She has hepatitis B.", "The risk is type A.", "Give it."],
    "countries": ["The U.S. Preventive Services Task Force agrees.", "It is sold in the U.S.", "The label differs."],
    "citations": [
        "It was withdrawn (Smith 2021, PMID 99999999; doi:10.1016/S0140-6736(97)11096-0).",
        "Jones et al. found 5 mg vs. 10 mg (Fig. 2).",
    ],
    "citation behind the stop": [
        "It lowers risk. (Smith 2021, doi:10.1016/S0140-6736(97)11096-0)",
        "Take it daily.[1][2]",
        "Stop.",
    ],
    "journal": ["N Engl J Med. 2022;388:9-21."],
    "ellipsis": ["Well... it depends.", "Wait…", "Then stop."],
    "marks": ["Really?!", "Yes!", "No.", "Do not."],
    "quotes": ["He said “stop.”", 'She asked "is it safe?" again.', "Fine."],
    "brackets": ["Give it (up to 4 g. Less if frail.) daily.", "(See below.)", "Done."],
    "semicolons stay": ["Avoid: NSAIDs; diuretics; lithium."],
    "inline list": ["Steps: 1. Take it.", "2. Wait."],
    "lower-case sentences": ["take it with food.", "avoid alcohol.", "eGFR above 30 is fine.", "pH matters."],
    "unknown short abbreviation": ["Give 2 tabs. daily for the resp. rate."],
    "Arabic": ["هل هو آمن؟", "نعم، الجرعة 500 ملغ.", "لا تتجاوز 4 غرامات۔"],
    "Hindi": ["यह दवा लें।", "रोज़ नहीं।"],
    "Spanish": ["¿Es seguro?", "Sí, tome 500 mg."],
    "clock": ["Take it at 8 a.m.", "Metformin goes with food."],
    "url": ["See www.nhs.uk/page.html for more.", "Then ask."],
}


@pytest.mark.parametrize("sentences", CASES.values(), ids=CASES.keys())
def test_golden(sentences):
    assert split(" ".join(sentences)) == sentences


def test_sentences_without_spaces_between_them():
    assert split("成人每日最大剂量为4克。不要超过！好吗？") == ["成人每日最大剂量为4克。", "不要超过！", "好吗？"]
    assert split("他说：“吃药。”然后走了。") == ["他说：“吃药。”然后走了。"]
    assert split("Take it with food.Avoid alcohol.") == ["Take it with food.", "Avoid alcohol."]
    assert split("Version v1.2.Beta of www.site.Org") == ["Version v1.2.Beta of www.site.Org"]


def test_line_breaks_end_sentences_only_where_the_line_was_not_wrapped():
    assert split("Dose: 10 mg\nFrequency: daily") == ["Dose: 10 mg", "Frequency: daily"]
    wrapped = "This line of a paragraph was wrapped by an editor in front of the drug named\nIbuprofen, which is safe."
    assert split(wrapped) == [wrapped]
    assert split("Take 5 mg with\nfood daily.") == ["Take 5 mg with\nfood daily."]
    assert split("A dose of 5 -\n10 mg") == ["A dose of 5 -\n10 mg"]
    assert split("One\n\ntwo") == ["One", "two"]
    assert split("a.\r\n\r\nb") == ["a.", "b"]


def test_bullets_inside_running_text_separate_and_are_left_out():
    assert split("Key points. - Leukemia is a cancer. - It affects blood.") == [
        "Key points.",
        "Leukemia is a cancer.",
        "It affects blood.",
    ]
    assert split("T-score of -2.5 or 5 - 10 mg/kg.") == ["T-score of -2.5 or 5 - 10 mg/kg."]


def test_a_window_of_the_text_is_split_in_place():
    text = "One here. Two here. Three here."
    assert split_sentences(text, 10, 19) == [(10, 19)]
    assert split_sentences(text, 10) == [(10, 19), (20, 31)]
    assert split_sentences("") == split_sentences(" \n ") == []


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet=st.sampled_from("aB1 .!?…。؟()[]\"'“”\n\r\t,;:-•*_\u00a0\u2028\u2029é"), max_size=200))
def test_sentences_are_ordered_and_lose_nothing(text):
    spans = split_sentences(text)
    covered = set()
    end = 0
    for start, stop in spans:
        assert end <= start < stop <= len(text)
        assert not text[start].isspace()
        assert not text[stop - 1].isspace()
        covered.update(range(start, stop))
        end = stop
    lost = {char for at, char in enumerate(text) if at not in covered}
    assert all(char.isspace() or char in "-•*–·▪" for char in lost)


@pytest.mark.parametrize("unit", ["word ", "a. ", "A. ", "(a. ", "a.\n", " ", ". (", "a… ", "x", 'b." ', "a.[1] "])
def test_time_is_linear(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        times = []
        for _ in range(2):
            begin = time.perf_counter()
            split_sentences(text)
            times.append(time.perf_counter() - begin)
        return min(times)

    # Quadratic time would be 64 times as long.
    assert seconds(400_000) < 24 * seconds(50_000) + 3
