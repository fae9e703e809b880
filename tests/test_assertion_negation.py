"""The assertion checker where only a negation speaks against a drug or measure."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("pint")
pytest.importorskip("Stemmer")

from factcheck.checkers import negation
from factcheck.checkers.assertion import AssertionChecker, polarity_of, stand_of
from factcheck.errors import MissingExtraError
from factcheck.plugins import Plugins

# spaCy imports a module of click that warns of its own end.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BACKENDS = ("medspacy", "negspacy")
KIT = runpy.run_path(str(Path(__file__).with_name("checker_kit.py")))
BY_NEGATION = [
    "There is no indication for antibiotics",
    "Treat the cold without antibiotics",
    "no aspirin before the operation",
    "There is no need for an x-ray",
    "It calls for neither surgery nor a biopsy",
]
OPEN = [
    "Antibiotics kill bacteria", "There is no fever", "if there is no indication for antibiotics",
    "people who take no aspirin", "do not restrict calcium", "It settles without antibiotics",
    "in those not on statins", "unless aspirin is contraindicated",
]  # fmt: skip


@pytest.mark.parametrize("text", BY_NEGATION)
def test_a_negated_drug_or_measure_is_a_stand_against_it(text):
    assert polarity_of(text) is None
    stand = stand_of(text, "plain")
    assert stand is not None
    assert (stand.polarity, text[stand.start : stand.end]) == ("against", text)


@pytest.mark.parametrize("text", OPEN)
def test_what_stays_open(text):
    assert stand_of(text, "plain") is None


@pytest.mark.parametrize(
    "text", ["Aspirin should be avoided", "Aspirin is safe", "no contraindication to aspirin", "Do not use aspirin"]
)
@pytest.mark.parametrize("backend", ["plain", *BACKENDS])
def test_the_table_of_cues_is_not_overruled(text, backend):
    assert stand_of(text, backend) == polarity_of(text) is not None


@pytest.mark.parametrize("choice", ["plain", *BACKENDS])
def test_the_checker_reports_negations_and_names_its_backend(choice):
    if choice != "plain":
        pytest.importorskip(choice, exc_type=ImportError)
    plugins = Plugins()
    checker = plugins.create("checker", "clinical/assertion", {"negation": choice})
    passage = "In a common cold there is no indication for antibiotics."
    (finding,) = KIT["firm"](KIT["run"](checker, "In a common cold antibiotics are recommended.", passage))
    assert finding.evidence_value == passage.rstrip(".")
    fingerprint = plugins.fingerprint("checker", "clinical/assertion", checker)
    assert fingerprint.model.startswith(choice)
    assert fingerprint.settings == {"negation": choice}


def test_what_auto_chose_enters_the_fingerprint(monkeypatch):
    plugins = Plugins()
    digests = set()
    for installed in (set(), {"negspacy"}, {"medspacy"}):
        monkeypatch.setattr(negation, "_installed", lambda name, there=installed: name in there)
        monkeypatch.setattr(negation.importlib.metadata, "version", lambda name: "9.9")
        checker = plugins.create("checker", "clinical/assertion")
        digests.add(plugins.fingerprint("checker", "clinical/assertion", checker).digest)
    assert len(digests) == 3


def test_a_missing_backend_stops_the_checker_before_it_runs(monkeypatch):
    monkeypatch.setattr(negation, "_installed", lambda name: False)
    with pytest.raises(MissingExtraError, match="pip install"):
        Plugins().create("checker", "clinical/assertion", {"negation": "medspacy"})


def test_plain_is_what_the_setting_asks_for():
    checker = AssertionChecker(AssertionChecker.Settings(negation="plain"))
    assert (checker.backend, checker.model) == ("plain", "plain 1")
