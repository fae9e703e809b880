"""Inputs on which fact-checkers commonly fail, through the whole offline checker over a small corpus."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pint")
pytest.importorskip("rank_bm25")
pytest.importorskip("Stemmer")

from factcheck import FactChecker, Settings

FILLERS = [
    ("Rest", "Rest and sleep help recovery after a minor illness."),
    ("Ferns", "Ferns grow in moist shade and spread by spores."),
    ("Bicycles", "A bicycle chain is oiled twice a year."),
    ("Bread", "Bread dough rises for two hours before it is baked."),
]
LEVOTHYROXINE = ("Levothyroxine", "Levothyroxine for an adult is usually started at 50 micrograms once daily.")
METHOTREXATE = (
    "Methotrexate in rheumatoid arthritis",
    "For rheumatoid arthritis methotrexate is taken as 7.5 mg once a week on a fixed day.",
)
VITAMIN_D = ("Vitamin D", "Adults who take vitamin D in winter take 1000 IU daily.")
REYE = ("Chickenpox", "Aspirin must not be given to a child with chickenpox, because of the risk of Reye syndrome.")


@pytest.fixture
def checked(tmp_path):
    """Return a function that checks an answer against passages, each a title and a text, with optional metadata."""

    def check(answer, *passages, question="", fillers=True):
        rows = [*passages, *(FILLERS if fillers else ())]
        lines = []
        for i, (title, text, *meta) in enumerate(rows, start=1):
            lines.append(
                json.dumps({"_id": f"p{i}", "title": title, "text": text, "metadata": meta[0] if meta else {}})
            )
        folder = tmp_path / "corpus"
        folder.mkdir()
        (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        tables = {"clinical/assertion": {"negation": "plain"}}
        checker = FactChecker.from_settings(Settings(corpora=(str(folder),), plugins=tables, k=10))
        return checker.check(answer, question=question)

    return check


def only(report):
    """Return the claim, verdict and judgement of a report on one claim."""
    ((claim, verdict, judgement),) = zip(report.claims, report.verdicts, report.judgements, strict=True)
    return claim, verdict, judgement


def fields_against(judgement):
    return {finding.field for finding in judgement.findings if finding.disagrees and finding.hard}


def test_micrograms_equal_the_milligrams_they_are(checked):
    _, verdict, judgement = only(
        checked("Levothyroxine for an adult is usually started at 0.05 mg once daily.", LEVOTHYROXINE)
    )
    assert verdict.label == "supported"
    assert fields_against(judgement) == set()


def test_ten_times_the_dose_is_contradicted(checked):
    _, verdict, judgement = only(
        checked("Levothyroxine for an adult is usually started at 0.5 mg once daily.", LEVOTHYROXINE)
    )
    assert verdict.label == "contradicted"
    assert "amount" in fields_against(judgement)
    assert "50 micrograms" in verdict.reason


def test_the_same_digits_do_not_rescue_a_wrong_frequency(checked):
    claim, verdict, judgement = only(
        checked("For rheumatoid arthritis methotrexate 7.5 mg is taken every day.", METHOTREXATE)
    )
    assert verdict.label == "contradicted"
    assert "frequency" in fields_against(judgement)
    finding = next(f for f in judgement.findings if f.field == "frequency" and f.disagrees)
    assert claim.text[slice(*finding.claim_span)] == "every day"
    assert finding.evidence_value == "once a week"
    assert verdict.risk > 0.6


def test_a_swapped_unit_is_named_as_such(checked):
    _, verdict, judgement = only(checked("Adults who take vitamin D in winter take 1000 mg daily.", VITAMIN_D))
    assert verdict.label == "contradicted"
    assert "unit" in fields_against(judgement)


def test_the_right_unit_is_supported(checked):
    _, verdict, _ = only(checked("Adults who take vitamin D in winter take 1000 IU daily.", VITAMIN_D))
    assert verdict.label == "supported"


def test_a_negation_keeps_its_polarity(checked):
    _, verdict, judgement = only(checked("Do not give aspirin to a child with chickenpox.", REYE))
    assert verdict.label == "supported"
    assert any(f.field == "assertion" and f.relation == "agrees" for f in judgement.findings)


def test_the_opposite_advice_is_contradicted(checked):
    _, verdict, judgement = only(checked("Aspirin can be given to a child with chickenpox.", REYE))
    assert verdict.label == "contradicted"
    assert "assertion" in fields_against(judgement)


def test_equal_sentences_on_two_drugs_are_two_claims_with_their_own_verdicts(checked):
    answer = (
        "# Bisoprolol\n\nThe usual dose is 10 mg once daily.\n\n# Warfarin\n\nThe usual dose is 10 mg once daily.\n"
    )
    report = checked(
        answer,
        ("Bisoprolol", "The usual dose of bisoprolol is 10 mg once daily."),
        ("Warfarin", "The usual dose of warfarin is 5 mg once daily, guided by the INR."),
    )
    doses = [
        (claim, verdict)
        for claim, verdict in zip(report.claims, report.verdicts, strict=True)
        if "usual dose" in claim.text
    ]
    assert [answer[slice(*claim.span)] for claim, _ in doses] == ["The usual dose is 10 mg once daily."] * 2
    assert len({claim.span for claim, _ in doses}) == 2
    assert len({claim.key for claim, _ in doses}) == 2
    assert ["Bisoprolol" in claim.context for claim, _ in doses] == [True, False]
    assert [verdict.label for _, verdict in doses] == ["supported", "contradicted"]


def test_one_passage_of_ten_is_enough_and_is_quoted(checked):
    others = [
        (f"Note {i}", f"Note {i} speaks of rheumatoid arthritis and of the hands in the morning.") for i in range(9)
    ]
    passages = [*others[:6], METHOTREXATE, *others[6:]]
    report = checked("For rheumatoid arthritis methotrexate is taken as 7.5 mg once a week.", *passages, fillers=False)
    _, verdict, _ = only(report)
    assert verdict.label == "supported"
    assert len(report.evidence[0].passages) == 10
    assert [quote.passage_id for quote in verdict.supporting] == ["p7"]
    assert verdict.supporting[0].text == METHOTREXATE[1]


def test_old_and_new_guidelines_that_disagree_are_a_conflict_with_both_quotes(checked):
    old = ("Guideline", "Beta-blockers were contraindicated in COPD in the guideline of 2013.", {"published": "2013"})
    new = ("Guideline", "Beta-blockers are recommended in COPD in the guideline of 2023.", {"published": "2023"})
    report = checked("Beta-blockers can be given in COPD.", old, new)
    _, verdict, _ = only(report)
    assert verdict.label == "conflicting"
    assert [quote.text for quote in verdict.supporting] == [new[1]]
    assert [quote.text for quote in verdict.contradicting] == [old[1]]
    years = {passage.id: passage.published for passage in report.evidence[0].passages}
    assert {years[q.passage_id] for q in (*verdict.supporting, *verdict.contradicting)} == {"2013", "2023"}


def test_invented_identifiers_are_reported_whole_and_apart_from_the_values(checked):
    answer = (
        "For rheumatoid arthritis methotrexate is taken as 7.5 mg once a week "
        "(Smith 2021, PMID 99999999; doi:10.1016/S0140-6736(97)11096-0)."
    )
    _, verdict, judgement = only(checked(answer, METHOTREXATE))
    missing = {f.claim_value for f in judgement.findings if f.field == "citation" and f.relation == "missing"}
    assert {"PMID 99999999", "10.1016/S0140-6736(97)11096-0"} <= missing
    assert fields_against(judgement) == set()
    assert (verdict.label, verdict.contradicting) == ("not_enough_evidence", ())
    assert "no passage on the matter knows" in verdict.reason


def test_an_identifier_that_the_corpus_holds_is_known(checked):
    known = (METHOTREXATE[0], METHOTREXATE[1], {"url": "https://doi.org/10.1016/S0140-6736(97)11096-0"})
    answer = "For rheumatoid arthritis methotrexate is taken as 7.5 mg once a week (doi:10.1016/S0140-6736(97)11096-0)."
    _, _, judgement = only(checked(answer, known))
    assert [f.relation for f in judgement.findings if f.field == "citation"] == ["agrees"]
