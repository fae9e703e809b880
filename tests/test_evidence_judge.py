"""The offline judge with all offline checkers: labels, quotes and signals."""

from __future__ import annotations

import runpy
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck_offline.judge import EvidenceJudge, conflicts, covered, signals_of

from factcheck.checkers.reading import read
from factcheck.judge import judge_claim
from factcheck.plugins import Plugins
from factcheck.schema import Finding

KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
PLUGINS = Plugins()
NEGATION = {"clinical/assertion": {"negation": "plain"}}
CHECKERS = {name: PLUGINS.create("checker", name, NEGATION.get(name)) for name in PLUGINS.names("checker")}
JUDGE = PLUGINS.create("judge", "evidence")

IBU = (
    "Ibuprofen for children with fever: 5 to 10 mg/kg a dose. Repeat every 6 to 8 hours, at most 40 mg/kg in 24 hours."
)
MTX = "In rheumatoid arthritis methotrexate is started at 7.5 mg once a week, never daily."
LEV = "Levothyroxine is started at 50 micrograms once daily, half an hour before breakfast."
VITD = "Vitamin D: most adults need 1000 IU daily in winter."
REYE = "Aspirin is avoided in children with chickenpox because of Reye syndrome."
MI = "Crushing chest pain that spreads to the arm may be a heart attack. Call an ambulance at once."
NOD = "Most thyroid nodules are benign, but cancer cannot be ruled out until the cytology is back."
APX = "Atrial fibrillation: apixaban 5 mg twice daily; 2.5 mg twice daily with two of three reasons."
BRON = "Acute bronchitis is nearly always viral. Antibiotics are not recommended for otherwise healthy adults."
FERN = "Ferns grow in moist shade and spread by spores."

CASES = [
    ("Ibuprofen may be repeated every 6 to 8 hours in a child with fever.", [IBU], "supported"),
    ("Ibuprofen may be repeated every 3 to 4 hours in a child with fever.", [IBU], "contradicted"),
    ("A child with fever may have at most 40 mg/kg of ibuprofen in 24 hours.", [IBU], "supported"),
    ("A child with fever may have at most 80 mg/kg of ibuprofen in 24 hours.", [IBU], "contradicted"),
    ("Methotrexate 7.5 mg is taken once a week in rheumatoid arthritis.", [MTX], "supported"),
    ("Methotrexate 7.5 mg is taken every day in rheumatoid arthritis.", [MTX], "contradicted"),
    ("Levothyroxine is started at 0.05 mg daily.", [LEV], "supported"),
    ("Levothyroxine is started at 0.5 mg daily.", [LEV], "contradicted"),
    ("Most adults need vitamin D 1000 IU daily in winter.", [VITD], "supported"),
    ("Most adults need vitamin D 1000 mg daily in winter.", [VITD], "contradicted"),
    ("Do not give aspirin to children with chickenpox.", [REYE], "supported"),
    ("Give aspirin to children with chickenpox.", [REYE], "contradicted"),
    ("Crushing chest pain that spreads to the arm needs an ambulance at once.", [MI], "supported"),
    ("Crushing chest pain that spreads to the arm can be managed at home.", [MI], "contradicted"),
    ("Apixaban is taken as 5 mg twice daily in atrial fibrillation.", [APX], "supported"),
    ("Apixaban is taken as 50 mg twice daily in atrial fibrillation.", [APX], "contradicted"),
    ("Apixaban is taken as 5 mg once daily in atrial fibrillation.", [APX], "contradicted"),
    ("Antibiotics are not recommended in acute bronchitis.", [BRON], "supported"),
    ("Antibiotics are recommended in acute bronchitis.", [BRON], "contradicted"),
    ("Acute bronchitis is nearly always viral.", [BRON], "supported"),
    ("Thyroid nodules are definitely benign.", [NOD], "contradicted"),
    ("Most thyroid nodules are benign.", [NOD], "supported"),
    ("Most thyroid nodules are benign.", [FERN], "not_enough_evidence"),
    ("Most thyroid nodules are benign.", [], "not_enough_evidence"),
    ("Ferns spread by spores.", [FERN], "supported"),
    ("Warfarin interacts with cranberry juice.", [APX, BRON], "not_enough_evidence"),
    ("Penguins live in the southern oceans.", [IBU, MTX, LEV], "not_enough_evidence"),
    (
        "Ibuprofen may be repeated every 6 to 8 hours in a child with fever.",
        [FERN, BRON, MI, VITD, REYE, NOD, IBU],
        "supported",
    ),
    (
        "Ibuprofen may be repeated every 3 to 4 hours in a child with fever.",
        [FERN, BRON, MI, VITD, REYE, NOD, IBU],
        "contradicted",
    ),
    (
        "Beta-blockers can be given in COPD.",
        ["In 2013 beta-blockers were contraindicated in COPD.", "In 2023 beta-blockers are recommended in COPD."],
        "conflicting",
    ),
    (
        "For cystitis take trimethoprim 200 mg twice daily for 3 days.",
        [
            "Cystitis: trimethoprim 200 mg twice daily for 3 days.",
            "Cystitis: trimethoprim 200 mg twice daily for 7 days.",
        ],
        "conflicting",
    ),
    ("Methotrexate is started at 7.5 mg once a week.", [MTX, LEV, VITD], "supported"),
    ("The child weighs 15 kg.", [IBU], "not_enough_evidence"),
    ("The usual dose is 10 mg/kg of ibuprofen for a child with fever.", [IBU], "supported"),
    ("The usual dose is 100 mg/kg of ibuprofen for a child with fever.", [IBU], "contradicted"),
    (
        "The SPORE-2 trial of 2021 showed that ferns spread by spores in 94% of 2,300 gardens.",
        [FERN],
        "not_enough_evidence",
    ),
    ("成人每日最大剂量为4克。", [IBU], "not_enough_evidence"),
    ("El ibuprofeno se repite cada 3 a 4 horas.", [FERN], "not_enough_evidence"),
    ("Levothyroxine is taken half an hour before breakfast.", [LEV], "supported"),
    ("Levothyroxine is taken four hours before breakfast.", [LEV], "contradicted"),
]


def judged(text, *passages, context="", question=""):
    claim, evidence = KIT["claim"](text, context=context, question=question), KIT["evidence"](*passages)
    return anyio.run(lambda: judge_claim(claim, evidence, judge=JUDGE, judge_name="evidence", checkers=CHECKERS))


def finding(relation, passage="p1", field="amount", span=(0, 1), confidence=0.5, checker="c"):
    return Finding(
        checker=checker,
        field=field,
        claim_value="x",
        relation=relation,
        passage_id=passage,
        claim_span=span,
        confidence=confidence,
    )


@pytest.mark.parametrize(("claim", "passages", "label"), CASES)
def test_label(claim, passages, label):
    judgement = judged(claim, *passages)
    assert judgement.status == "ok"
    assert judgement.label == label
    texts = {f"p{i}": text for i, text in enumerate(passages, start=1)}
    for quote in judgement.quotes:
        assert texts[quote.passage_id][quote.start : quote.end] == quote.text
    if label == "contradicted":
        assert any(f.disagrees and f.reason for f in judgement.findings)
    if label in ("supported", "contradicted", "conflicting"):
        assert judgement.quotes


def test_the_quote_of_a_contradiction_is_the_sentence_that_contradicts():
    judgement = judged("Ibuprofen may be repeated every 3 to 4 hours in a child with fever.", FERN, IBU)
    (quote,) = judgement.quotes
    assert quote.passage_id == "p2"
    assert quote.text == "Repeat every 6 to 8 hours, at most 40 mg/kg in 24 hours."
    assert [(s.passage_id, s.stance) for s in judgement.stances] == [("p1", "silent"), ("p2", "contradicts")]


def test_one_passage_of_ten_that_confirms_is_quoted():
    passages = [f"Passage {i} is about gardening and the care of roses." for i in range(6)]
    passages += [VITD, *(f"Passage {i} is about the care of lawns." for i in range(3))]
    judgement = judged("Most adults need 1000 IU of vitamin D daily in winter.", *passages)
    assert judgement.label == "supported"
    assert [quote.passage_id for quote in judgement.quotes] == ["p7"]


def test_both_sides_of_a_conflict_are_quoted():
    judgement = judged(
        "Beta-blockers can be given in COPD.",
        "In 2013 beta-blockers were contraindicated in COPD.",
        "In 2023 beta-blockers are recommended in COPD.",
    )
    assert {(s.passage_id, s.stance) for s in judgement.stances} == {("p1", "contradicts"), ("p2", "supports")}
    assert {quote.text[3:7] for quote in judgement.quotes} == {"2013", "2023"}


def test_no_passages_is_never_support():
    judgement = judged("Most thyroid nodules are benign.")
    assert (judgement.label, dict(judgement.signals)) == ("not_enough_evidence", {"support": 0.0, "coverage": 0.0})


def test_signals_keep_the_firmest_finding_of_each_kind():
    found = [finding("differs", confidence=0.4), finding("outside_range", field="age", span=(2, 3), confidence=0.7)]
    found += [finding("missing", None, "citation", (4, 5), 0.9), finding("unseen", span=(6, 7), confidence=1.0)]
    assert signals_of(found) == {"value": 0.7, "citation": 0.9}
    assert signals_of([]) == {}


def test_a_firmer_agreement_on_the_same_mention_silences_a_finding():
    weak, strong = finding("differs", confidence=0.4), finding("agrees", "p2", confidence=0.6)
    assert signals_of([weak, strong]) == {}
    assert signals_of([weak.model_copy(update={"confidence": 0.7}), strong]) == {"value": 0.7}
    assert signals_of([weak, strong.model_copy(update={"claim_span": (5, 6)})]) == {"value": 0.4}


def test_conflicts_need_one_mention_and_two_passages():
    pro, contra = finding("agrees"), finding("differs", "p2")
    assert conflicts([pro, contra]) == [(pro, contra)]
    assert conflicts([pro, finding("differs", "p1")]) == []
    assert conflicts([pro, finding("differs", "p2", span=(3, 4))]) == []
    assert conflicts([pro, finding("differs", "p2", field="age")]) == []
    assert conflicts([contra, contra]) == []


def test_coverage_is_the_share_of_the_claim_that_the_closest_sentences_hold():
    claim = KIT["claim"]("Ferns spread by spores.")
    assert covered(read(claim, KIT["evidence"](FERN))) == 1.0
    assert covered(read(claim, KIT["evidence"](VITD))) == 0.0
    assert 0.0 < covered(read(claim, KIT["evidence"]("Ferns are green."))) < 1.0


def test_settings_move_the_thresholds():
    claim, evidence = KIT["claim"]("Ferns spread by spores in spring."), KIT["evidence"](FERN)
    for least, label in ((0.1, "supported"), (1.0, "not_enough_evidence")):
        judge = EvidenceJudge(EvidenceJudge.Settings(supported_from=least))
        assert judge.judge(claim, evidence, ()).label == label
    against = finding("differs", confidence=0.5, span=(0, 5)).model_copy(update={"quote_span": (0, 5)})
    for least, label in ((0.4, "contradicted"), (0.6, "supported")):
        judge = EvidenceJudge(EvidenceJudge.Settings(contradicted_from=least))
        assert judge.judge(claim, evidence, (against,)).label == label


@given(st.text(min_size=1, max_size=80), st.lists(st.text(max_size=120), max_size=3))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_a_judgement_that_keeps_the_contract(text, passages):
    judgement = judged(text, *passages)
    assert judgement.status == "ok", judgement.reason
    if not passages:
        assert judgement.label == "not_enough_evidence"
    assert all(0.0 <= value <= 1.0 for value in judgement.signals.values())


class TestWhatIsNotSupported:
    @pytest.mark.parametrize(
        "text",
        [
            "x",
            "Treatment.",
            "Purple elephants cure warfarin.",
            "Take 1e6 mg of ibuprofen daily.",
            "Adults may take 200 to ٤٠٠٠ mg of ibuprofen every four to six hours.",
            "Adults may take 200 to ４０００ mg of ibuprofen every four to six hours.",
            "A 2019 trial in 4,000 adults showed that ibuprofen taken every four to six hours cures baldness.",
        ],
    )
    def test_shared_words_are_not_enough(self, text):
        from factcheck.pipeline import FactChecker

        (verdict,) = FactChecker(corpora=("tied-pairs",)).check(text).verdicts
        assert verdict.label != "supported"

    def test_a_number_may_stand_in_the_passage_the_question_or_an_agreeing_finding(self):
        from factcheck_offline.judge import unseen_numbers

        from factcheck.schema import Claim, Evidence, Finding, Passage

        shown = Passage(id="p", doc_id="d", corpus="c", text="Give 40 mg for 5 days.", score=1.0, rank=1)
        evidence = Evidence(claim_id="c", passages=(shown,))
        claim = Claim(
            id="c",
            answer_id="a",
            text="Give 40 mg, then 1,250 mg at 15 kg.",
            question="15 kg",
            span=(0, 35),
            sentence_span=(0, 35),
        )
        assert unseen_numbers(claim, evidence, ()) == ["1250"]
        agrees = Finding(checker="k", field="amount", claim_value="1,250 mg", relation="agrees", claim_span=(17, 25))
        assert unseen_numbers(claim, evidence, (agrees,)) == []
