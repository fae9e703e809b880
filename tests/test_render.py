"""Reports for people: what they say, and that nothing in the texts can break out of them."""

import json
import re
import runpy
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.cli.check import SCHEMA, as_json
from factcheck.render import NOTICE, as_markdown, as_text, escape_markdown, printable, summary
from factcheck.schema import (
    STATES,
    Accounting,
    Answer,
    AnswerReport,
    Claim,
    Evidence,
    Manifest,
    Passage,
    Quote,
    Verdict,
)
from factcheck.spending import Spent
from factcheck.verdicts import Policy

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
POLICY = Policy("contradicted")
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07",
    "\x9b31m \x08\x08\x08 \x7f",
    "\u202eevil\u202c \u2066isolate\u2069 \u200b\ufeff\u00ad",
    "<script>alert(1)</script> <img src=x onerror=alert(1)> &lt;b&gt; &#60;",
    "| a | b |\n|---|---|\n| c | d |",
    "`code` ``` ```\n~~~",
    "# heading\n\n- item\n> quote\n---\n===",
    "[text](javascript:alert(1)) ![image](http://x/y.png) <http://x> [a]: http://x",
    "**bold** __under__ ~~gone~~ $x^2$ \\| \\",
    "a\r\nb\u2028c\u2029d\x85e\x0bf\x0cg\x1ch",
    "lone \ud800 surrogate \udfff",
    "\U000e0041\U000e0042 tags \ue000 private \ufdd0",
    "+ supported  risk 0.00\nThis is an evaluation aid, not medical advice.",
)


def a_report(text="Take 5 mg.", *, label="contradicted", reason="because", quote_text=None, title="Label", warning=()):
    """Return a report of one claim in which every text from outside is the given one."""
    body = quote_text if quote_text is not None else "Take 50 mg."
    passage = Passage(
        id="p1", doc_id="d", corpus="c", title=title, source=title, url=title, text=body, score=1.0, rank=1
    )
    quotes = (Quote(passage_id="p1", start=0, end=len(body), text=body),)
    risk = None if label in ("not_checkable", "error") else 0.25
    sides = {"contradicted": {"contradicting": quotes}, "supported": {"supporting": quotes}}.get(label, {})
    verdict = Verdict(claim_id="c1", label=label, risk=risk, reason=reason, **sides)
    span = (0, len(text))
    # A claim's text has no lone surrogates; the slice of the answer that it comes from may.
    shown = text.encode("utf-8", "replace").decode()
    claim = Claim(id="c1", answer_id="a", text=shown, span=span, sentence_span=span)
    return AnswerReport(
        answer=Answer(id="a", text=text),
        claims=(claim,),
        evidence=(Evidence(claim_id="c1", passages=(passage,)),),
        verdicts=(verdict,),
        accounting=Accounting.of((verdict,)),
        warnings=warning,
        manifest=Manifest(version="0"),
    )


def everywhere(text):
    return a_report(text, reason=text, quote_text=text, title=text, warning=(text,))


class TestText:
    def test_a_report(self):
        assert as_text(a_report(warning=("no claim carries the number 7",)), POLICY) == (
            "1 claim: 1 contradicted; 1 flagged (contradicted).\n"
            "\n"
            "x contradicted  risk 0.25  FLAGGED  [0:10]\n"
            "    Take 5 mg.\n"
            "    because because\n"
            "    against “Take 50 mg.”\n"
            "      Label · Label · Label\n"
            "warning: no claim carries the number 7\n"
            "\n"
            "This is an evaluation aid, not medical advice.\n"
        )

    def test_a_supported_claim_shows_its_source_and_no_reason(self):
        shown = as_text(a_report(label="supported", reason="as it says", title=""), POLICY)
        assert "+ supported  risk 0.25  [0:10]\n    Take 5 mg.\n    for “Take 50 mg.”\n      p1\n" in shown
        assert "as it says" not in shown

    @pytest.mark.parametrize("label", ["error", "not_checkable", "not_enough_evidence"])
    def test_other_states(self, label):
        shown = as_text(a_report(label=label), POLICY)
        assert label.replace("_", " ") in shown
        assert ("risk" in shown) is (label == "not_enough_evidence")
        assert ("because" in shown.replace("because because", "because")) is (label != "not_checkable")
        assert "FLAGGED" not in shown

    @pytest.mark.parametrize("text", HOSTILE)
    def test_no_text_breaks_out(self, text):
        shown = as_text(everywhere(text), POLICY)
        # As many lines as an ordinary report has, each with its own beginning.
        lines = shown.splitlines()
        assert [line[:4] for line in lines if line.strip()] == [
            "1 cl",
            "x co",
            "    ",
            "    ",
            "    ",
            "    ",
            "warn",
            "This",
        ]
        hidden = [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn")]
        assert hidden == []

    @given(st.text(st.characters()))
    def test_printable_is_one_line_that_commands_nothing(self, text):
        shown = printable(text)
        assert len(shown.splitlines()) <= 1
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
        assert shown == " ".join(shown.split())
        assert shown.encode("utf-8").decode("utf-8") == shown

    def test_printable_keeps_what_can_be_read(self):
        assert printable("5\u00a0µg of α-blocker, 成人 é\r\n🙂") == "5 µg of α-blocker, 成人 é 🙂"
        assert printable("\x1b[0m\u202e\ud800") == "\\u001b[0m\\u202e\\ud800"


def cells(row):
    return re.split(r"(?<!\\)(?:\\\\)*\|", row)


class TestMarkdown:
    def test_a_report(self):
        assert as_markdown(a_report("Take <5 mg.", warning=("odd",)), POLICY) == (
            "# Fact check\n"
            "\n"
            "1 claim: 1 contradicted; 1 flagged \\(contradicted\\).\n"
            "\n"
            "| verdict | risk | claim | reason | source |\n"
            "|---|---|---|---|---|\n"
            "| **contradicted** | 0.25 | Take &lt;5 mg. | because | against “Take 50 mg.”, Label · Label · Label |\n"
            "\n"
            "- warning: odd\n"
            "\n"
            "This is an evaluation aid, not medical advice.\n"
        )

    @pytest.mark.parametrize("text", HOSTILE)
    def test_no_text_breaks_out(self, text):
        shown = as_markdown(everywhere(text), POLICY)
        lines = [line for line in shown.splitlines() if line]
        assert [line[:2] for line in lines] == ["# ", "1 ", "| ", "|-", "| ", "- ", "Th"]
        assert len(cells(lines[4])) == 7
        outside = "".join(lines[4:6]).replace("<br>", "").replace("**contradicted**", "")
        assert "<" not in outside
        assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]$~]", outside)
        assert not re.search(r"&(?!amp;|lt;|gt;)", outside)

    @given(st.text(st.characters()))
    def test_every_sign_of_markup_is_escaped(self, text):
        shown = escape_markdown(text)
        assert not re.search(r"[<>]", shown)
        bare = re.sub(r"\\[\\`*_{}\[\]()#+!|~$]", "", shown)
        assert not re.search(r"[\\`*_{}\[\]()#+!|~$]", bare)
        assert not re.search(r"&(?!amp;|lt;|gt;)", bare)

    @given(st.text(st.characters()))
    def test_what_was_escaped_reads_as_it_was(self, text):
        shown = escape_markdown(text)
        read = re.sub(r"\\([\\`*_{}\[\]()#+!|~$])", r"\1", shown)
        read = read.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        assert read == printable(text)


class TestJson:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_any_text_survives(self, text):
        report = everywhere(text)
        shown = as_json(report, POLICY, Spent())
        assert shown.isascii()
        body = json.loads(shown)
        assert AnswerReport.model_validate(body["report"]) == report
        assert (body["schema"], body["policy"], body["flagged"]) == (SCHEMA, "contradicted", ["c1"])

    def test_what_is_flagged_follows_the_policy(self):
        assert json.loads(as_json(a_report(), Policy("risk", 0.3), Spent()))["flagged"] == []
        assert json.loads(as_json(a_report(), Policy("risk", 0.25), Spent()))["policy"] == "risk>=0.25"


class TestSummary:
    def report(self, *states):
        checker = FAKES["fact_checker"](
            decomposer=lambda answer: [
                c.model_copy(update={"kind": "greeting" if c.text == "not_checkable" else "statement"})
                for c in FAKES["by_line"](answer)
            ],
            judge=lambda c, e, f: None if c.text == "error" else FAKES["judgement"](c.text, c, e),
            retriever=lambda q, k: FAKES["passages"]("one", "two"),
        )
        return checker.check("\n".join(states))

    def test_all_six_states_in_their_order(self):
        assert summary(self.report(*reversed(STATES)), Policy("unsupported")) == (
            "6 claims: 1 supported, 1 contradicted, 1 conflicting, 1 not enough evidence, 1 not checkable, 1 error; "
            "2 flagged (unsupported)."
        )

    def test_states_that_do_not_occur_are_left_out(self):
        assert summary(self.report("supported"), POLICY) == "1 claim: 1 supported; 0 flagged (contradicted)."

    def test_an_empty_answer_is_no_success(self):
        shown = as_text(self.report(), POLICY)
        assert shown == f"0 claims: the answer holds nothing that could be checked.\n\n\n{NOTICE}\n"


def test_evidence_is_found_by_its_claim_and_may_be_missing():
    report = a_report(label="not_enough_evidence").model_copy(update={"evidence": ()})
    assert "Take 5 mg." in as_text(report, POLICY)
    assert "Take 5 mg." in as_markdown(report, POLICY)
