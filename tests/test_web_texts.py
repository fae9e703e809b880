"""Texts of the web retrievers: queries without commands, markup, dates, safe XML, excerpts, allow-lists of domains."""

from __future__ import annotations

import itertools
import time

import pytest
from factcheck_web.authorities import AUTHORITIES, allowed, host_of
from factcheck_web.base import Hit, WebSettings, passages, text_id
from factcheck_web.excerpts import best_excerpts, closeness
from factcheck_web.safe_xml import markup_of, parse_xml
from factcheck_web.texts import content_words, iso_date, plain_text, search_query
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from factcheck.errors import PermanentError

BOMB = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><r>&c;</r>'
)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Is eGFR <30 mL/min a limit?", "Is eGFR <30 mL/min a limit?"),
        ('"exact phrase" site:evil.example', "exact phrase site evil.example"),
        ("INURL:: x filetype:pdf", "INURL x filetype pdf"),
        ("dose -5 mg +aspirin !bang !!g :de", "dose 5 mg aspirin bang g de"),
        ("aspirin OR NOT warfarin AND (x)", "aspirin or not warfarin and x"),
        ("a ratio of 3:1 at 10:30", "a ratio of 3:1 at 10:30"),
        ("zero\x00width\u200bmarks\u202e and\ttabs", "zero width marks and tabs"),
        ("OR", "or"),
        ("", ""),
    ],
)
def test_a_query_keeps_its_words_and_loses_its_commands(text, query):
    assert search_query(text, chars=400) == query


def test_a_long_query_is_cut_between_words():
    assert search_query("one two three", chars=8) == "one two"
    assert search_query("one two three", chars=400, words=2) == "one two"
    assert search_query("x" * 500, chars=400) == "x" * 400


@given(st.text(), st.integers(1, 50))
def test_a_query_is_short_printable_and_stable(text, chars):
    query = search_query(text, chars=chars)
    assert len(query) <= chars
    assert not set(query) & set('"()[]{}*|^~\\\x00\u200b')
    assert query == query.strip()
    query.encode("utf-8")


def test_content_words_name_the_subject_and_not_the_value():
    text = "Adults should take no more than 4 g of paracetamol in 24 hours; Crohn's disease and COVID-19 are no reason."
    assert content_words(text, limit=20) == ["adults", "paracetamol", "hours", "crohn", "disease", "covid-19", "reason"]
    assert content_words("warfarin Warfarin WARFARIN", limit=5) == ["warfarin"]
    assert content_words("one two three four", limit=2) == ["one", "two"]
    assert content_words("4 5 the of", limit=9) == []


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>One</p><p>two</p>", "One\ntwo"),
        ("eGFR <30 and >15, p<0.05", "eGFR <30 and >15, p<0.05"),
        ("a &lt; b &amp; c&nbsp;mg", "a < b & c mg"),
        ("10<sup>9</sup>/L and 10<sup>-6</sup>", "10^9/L and 10^-6"),
        ("m<sup>2</sup>, HbA<sub>1c</sub>, CO<sub>2</sub>, CD4<sup>+</sup>", "m2, HbA1c, CO2, CD4+"),
        ("<h4>Methods</h4>We <b>did</b> it.", "Methods\nWe did it."),
        ("<jats:p>The <jats:italic>trial</jats:italic></jats:p>", "The trial"),
        ("<!-- hidden --><em class='x'>seen</em>", "seen"),
        ("if x <y and y> z", "if x <y and y> z"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_markup_goes_and_signs_stay(markup, text):
    assert plain_text(markup) == text


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2024-01-05T10:00:00Z", "2024-01-05"),
        ("2024-01-05", "2024-01-05"),
        ("2024-01", "2024-01"),
        ("2024", "2024"),
        ("20231101", "2023-11-01"),
        ("Jan 5, 2024", "2024-01-05"),
        ("January 5 2024", "2024-01-05"),
        ("5 Jan 2024", "2024-01-05"),
        ("2019 Mar", "2019-03"),
        ("2019 Mar-Apr", "2019-03"),
        ("2020 Spring", "2020"),
        ("Fri, 05 Jan 2024 10:00:00 GMT", "2024-01-05"),
        ("3 days ago", ""),
        ("yesterday", ""),
        ("2024-13-45", ""),
        ("20241345", ""),
        ("Foo 5, 2024", "2024"),
        ("9999", ""),
        ("12", ""),
        ("", ""),
    ],
)
def test_dates_have_one_form_or_none(text, date):
    assert iso_date(text) == date


@given(st.text(max_size=40))
def test_no_text_breaks_the_reading_of_dates(text):
    assert iso_date(text) == "" or iso_date(text)[:4].isdigit()


def test_xml_is_read_without_its_document_type():
    head = '<!DOCTYPE r PUBLIC "-//X//EN" "http://127.0.0.1:9/none.dtd">'
    root = parse_xml(f"<?xml version='1.0'?>{head}<r><a>x &lt; y&#160;z &eacute;</a></r>", provider="X", root="r")
    assert root.findtext("a") == "x < y\u00a0z é"


@pytest.mark.parametrize("text", ["<!--" * 50_000, "-->" + "<!--" * 50_000, "1<sup>" + " " * 50_000, "<b " * 50_000])
def test_markup_without_end_takes_no_time(text):
    started = time.perf_counter()
    plain_text(text)
    assert time.perf_counter() - started < 0.5


def test_comments_and_cdata_go():
    assert plain_text("a<!-- x -->b<!---->c <![CDATA[d]]> e<!-- <b>open</b>") == "abc d e<!-- open"


def test_half_a_surrogate_pair_is_no_xml():
    with pytest.raises(PermanentError, match="no XML"):
        parse_xml("<r>\ud800</r>", provider="Service", root="r")


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>',
        '<!DOCTYPE r [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd"> %p;]><r/>',
        "<r>&undeclared;</r>",
        '<!DOCTYPE r SYSTEM "x.dtd"><r>&nonsense;</r>',
        "<r><a></r>",
        "<r/><r/>",
        "no xml",
        "",
        "<other/>",
        f"<r>{'<a>' * 1000}{'</a>' * 1000}</r>",
    ],
)
def test_xml_that_is_broken_or_dangerous_is_refused(text):
    with pytest.raises(PermanentError, match="Service"):
        parse_xml(text, provider="Service", root="r")


def test_markup_inside_xml_survives_as_text():
    root = parse_xml("<r>a &lt; b <i>c</i> 10<sup>9</sup> d</r>", provider="X", root="r")
    assert markup_of(root) == "a &lt; b <i>c</i> 10<sup>9</sup> d"
    assert plain_text(markup_of(root)) == "a < b c 10^9 d"
    assert markup_of(None) == ""


PARTS = (
    "Metformin is the first treatment of type 2 diabetes. It lowers glucose. " * 8,
    "Warfarin needs regular blood tests. The dose is changed by the result. " * 8,
    "Store tablets in a dry place away from children and from heat. " * 8,
)
PAGE = "\n\n".join(PARTS)


def test_the_best_part_of_a_text_is_an_exact_slice():
    found = best_excerpts(PAGE, "How is the dose of warfarin decided?", count=2, min_words=40, max_words=90)
    start, end, score = found[0]
    assert "Warfarin needs regular blood tests." in PAGE[start:end]
    assert score > 0
    assert [excerpt.score for excerpt in found] == sorted((e.score for e in found), reverse=True)
    assert len({(e.start, e.end) for e in found}) == len(found)


def test_a_text_that_shares_no_word_has_no_best_part():
    assert best_excerpts(PAGE, "zebra", count=3) == []
    assert best_excerpts("", "warfarin", count=3) == []
    assert best_excerpts(PAGE, "warfarin", count=0) == []


def test_spelling_number_and_value_count_in_closeness():
    parts = ["Oedema is seen in anaemic patients.", "The dose is 30 mg.", "The dose is 45 mg.", "Nothing here."]
    assert closeness(parts, "edema in the anemic")[0] > 0
    assert closeness(parts, "edema in the anemic")[1:] == [0, 0, 0]
    by_value = closeness(parts, "a dose of 45 mg")
    assert by_value[2] > by_value[1] > by_value[3] == 0
    assert closeness(["tests tests tests tests", "test of urine"], "test of urine")[1] > 0


@given(st.text(max_size=300), st.text(max_size=60))
def test_parts_never_overlap_and_lie_inside(text, query):
    found = sorted(best_excerpts(text, query, count=5, min_words=2, max_words=10))
    assert all(0 <= e.start < e.end <= len(text) for e in found)
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.nice.org.uk/guidance/ng1", True),
        ("https://nice.org.uk", True),
        ("https://NICE.org.uk./x", True),
        ("https://evilnice.org.uk/", False),
        ("https://nice.org.uk.evil.example/", False),
        ("https://evil.example/?u=nice.org.uk", False),
        ("https://user:nice.org.uk@evil.example/", False),
        ("https://[::1]/", False),
        ("nonsense", False),
        ("https://[broken", False),
        ("https://evil.example\\.nice.org.uk/", False),
        ("https://nice.org.uk\\@evil.example/", False),
        ("https://evil.example#.nice.org.uk/", False),
        ("https://evil.example／.nice.org.uk/", False),
        ("https://nice.org.uk。evil.example/", False),
        ("https://nice.org.uk:8443/x", True),
        ("ftp://nice.org.uk/", False),
        ("javascript://nice.org.uk/%0aalert(1)", False),
        ("//nice.org.uk/", False),
    ],
)
def test_an_allow_list_holds_hosts_and_what_is_below_them(url, expected):
    assert allowed(url, ("nice.org.uk",)) is expected
    assert allowed(url, ())


def test_domains_are_given_as_a_list_or_a_text_and_by_name():
    assert WebSettings(domains="nice.org.uk, *.WHO.int").domains == ("nice.org.uk", "who.int")
    assert WebSettings(domains=("münchen.de",)).domains == ("xn--mnchen-3ya.de",)
    assert allowed("https://www.münchen.de/", ("xn--mnchen-3ya.de",))
    # One standard makes ss of ß and the other does not: the two are different sites.
    assert not allowed("https://strasse.de/", WebSettings(domains="straße.de").domains)
    named = WebSettings(domains=["authorities", "example.org", "nice.org.uk"]).domains
    assert named == (*AUTHORITIES, "example.org")
    assert WebSettings(domains=named).domains == named
    assert WebSettings().domains == ()


@pytest.mark.parametrize("wrong", ["https://nice.org.uk", "nice", "a b.org", "nice.org.uk/path", "", [5], 7, "-a.org"])
def test_what_is_no_domain_is_refused(wrong):
    with pytest.raises(ValidationError):
        WebSettings(domains=wrong)


def test_the_authorities_are_distinct_domains_that_name_whom_one_expects():
    assert len(set(AUTHORITIES)) == len(AUTHORITIES) > 100
    assert {"nice.org.uk", "who.int", "cdc.gov", "nih.gov", "ema.europa.eu", "fda.gov"} <= set(AUTHORITIES)
    assert allowed("https://www.who.int/news", AUTHORITIES)
    assert allowed("https://pubmed.ncbi.nlm.nih.gov/1/", AUTHORITIES)
    for other in ("https://en.wikipedia.org/", "https://www.webmd.com/", "https://who.int.example/", "https://gov.uk/"):
        assert not allowed(other, AUTHORITIES)
    assert host_of("https://WWW.Who.int:443/x") == "www.who.int"


def test_hits_become_passages_that_the_host_accepts():
    hits = [
        Hit("a", "a", " one ", score=0.2),
        Hit("b", "b", "two", score=0.9),
        Hit("a", "a", "again", score=0.5),
        Hit("c", "c", " \n "),
        Hit("d", "d", "half \ud83d pair \x00 end", score=0.1),
    ]
    found = passages(hits, 10, corpus="x")
    assert [(p.id, p.rank, p.score) for p in found] == [("b", 1, 0.9), ("a", 2, 0.2), ("d", 3, 0.1)]
    assert found[1].text == "one"
    found[2].text.encode("utf-8")
    assert passages([Hit("a", "a", "x", url="javascript:alert(1)")], 1, corpus="x")[0].url == ""
    assert passages([Hit("a", "a", "x", url=" https://who.int/a ")], 1, corpus="x")[0].url == "https://who.int/a"
    assert passages([Hit("a", "a", "x", score=0.1), Hit("b", "b", "y")], 2, corpus="x")[1].score == 0.5
    assert [p.score for p in passages([Hit(c, c, c) for c in "abcd"], 3, corpus="x")] == [1, 1 / 2, 1 / 3]
    assert passages([Hit("a", "a", "x", score=float("nan"))], 2, corpus="x")[0].score == 1.0


def test_names_of_texts_depend_on_the_text_alone():
    assert text_id("a", "b") == text_id("a", "b") != text_id("ab")
    assert len(text_id("a")) == 16
    assert text_id("\ud800")
