"""Negated mentions: the plain backend, and its agreement with ConText and NegEx where they are installed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.checkers import negation
from factcheck.checkers.negation import choose, described, negated
from factcheck.errors import MissingExtraError

# spaCy imports a module of click that warns of its own end.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

# Brackets mark the targets, + those that are negated.
SENTENCES = [
    "There is no indication for [+antibiotics].",
    "She denies [+chest pain].",
    "Treat it without [+antibiotics].",
    "[Antibiotics] are needed.",
    "No evidence of [+pneumonia] was found.",
    "It does not need [+antibiotics].",
    "Patients who cannot take [+aspirin] get clopidogrel.",
    "[+Pneumonia] was ruled out.",
    "No [+aspirin] or [+ibuprofen] is needed.",
    "He is free of [+fever].",
    "Absence of [+fever] does not exclude it.",
    "Give [aspirin] and rest.",
    "No fever, but give [paracetamol].",
    "[Aspirin] should be taken daily.",
    "[Aspirin] is given; heparin is not.",
    "There is no need for [+imaging].",
    "[+Imaging] is unlikely to help.",
    "The patient denied taking [+opioids].",
    "He has no known allergy to [+penicillin].",
    "The child did not receive [+antibiotics].",
    "They don't recommend [+surgery].",
    "No [+aspirin], [+ibuprofen] or [+naproxen].",
    "Use [steroids] without delay.",
    "[Statins] lower cholesterol.",
    "The fracture was treated without [+surgery] although [plaster] was used.",
    "The scan rules out [+stroke].",
    "[Oxygen] is given to all.",
    "No [+X-ray] is necessary unless pain persists.",
    "[Warfarin] is monitored by the INR.",
    "She never had a [+transfusion] and declined [+surgery].",
    "There was no [+bleeding].",
    "[Dialysis] is started when potassium rises.",
]
# What a backend sees otherwise: sentence -> its own marking.
OTHERWISE = {
    "medspacy": {
        # ConText has no rule for "never" or for "negative for", and its "no" reaches over the end that the others see.
        "The test was negative for [+influenza].": "The test was negative for [influenza].",
        "She never took [+codeine].": "She never took [codeine].",
        "Not only [aspirin] but also clopidogrel is given.": "Not only [+aspirin] but also clopidogrel is given.",
        "There was no change in the dose of [warfarin].": "There was no change in the dose of [+warfarin].",
    },
    "negspacy": {
        # NegEx knows neither "rather than" nor "lack of".
        "Rather than [+antibiotics], offer rest.": "Rather than [antibiotics], offer rest.",
        "Lack of [+oxygen] harms the brain.": "Lack of [oxygen] harms the brain.",
    },
    "both": {
        # Neither backend ends the reach at a comma, and neither has rules for refusals, "neither … nor" or "instead of".
        "Without fever, [paracetamol] helps pain.": "Without fever, [+paracetamol] helps pain.",
        "Nausea, no vomiting, [headache].": "Nausea, no vomiting, [+headache].",
        "No more than 4 g of [paracetamol] a day.": "No more than 4 g of [+paracetamol] a day.",
        "He refuses [+vaccination].": "He refuses [vaccination].",
        "Neither [+ibuprofen] nor [+naproxen] helps.": "Neither [ibuprofen] nor [naproxen] helps.",
        "Instead of [+codeine] give [morphine].": "Instead of [codeine] give [morphine].",
    },
}
ALL = [*SENTENCES, *(sentence for table in OTHERWISE.values() for sentence in table)]
BACKENDS = ("medspacy", "negspacy")


def marked(sentence):
    """Return the sentence without marks, its targets, and those of them that are negated."""
    text, targets, denied = "", [], set()
    for part in re.split(r"(\[[^\]]*\])", sentence):
        if not part.startswith("["):
            text += part
            continue
        word = part[1:-1].removeprefix("+")
        span = (len(text), len(text) + len(word))
        targets.append(span)
        if part.startswith("[+"):
            denied.add(span)
        text += word
    return text, targets, denied


@pytest.mark.parametrize("sentence", ALL)
def test_plain(sentence):
    text, targets, denied = marked(sentence)
    assert negated(text, targets) == denied


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sentence", ALL)
def test_backends_agree_or_differ_as_documented(sentence, backend):
    pytest.importorskip(backend, exc_type=ImportError)
    known = {**OTHERWISE["both"], **OTHERWISE[backend]}
    text, targets, denied = marked(known.get(sentence, sentence))
    assert negated(text, targets, backend=backend) == denied


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_is_loaded_once_and_takes_overlapping_targets(backend):
    pytest.importorskip(backend, exc_type=ImportError)
    text = "There is no indication for broad antibiotics."
    targets = [(27, 44), (33, 44), (27, 32), (33, 44), (40, 900), (5, 5)]
    assert negated(text, targets, backend=backend) == {(27, 44), (33, 44), (27, 32)}
    assert negation._pipeline(backend) is negation._pipeline(backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "text", ["no \ud800 aspirin", "no \u202easpirin", "no aspirin\n\n\n", "  no  aspirin", "no «aspirin»"]
)
def test_odd_text_in_the_backends(text, backend):
    pytest.importorskip(backend, exc_type=ImportError)
    start = text.index("aspirin")
    assert negated(text, [(start, start + 7)], backend=backend) <= {(start, start + 7)}


def test_targets_outside_the_text_are_ignored():
    assert negated("no aspirin", [(3, 10), (3, 99), (-1, 4), (5, 5)]) == {(3, 10)}
    assert negated("no aspirin", []) == set()


def test_a_cue_reaches_eight_words():
    near = "no " + "very " * 7 + "aspirin"
    far = "no " + "very " * 9 + "aspirin"
    assert negated(near, [(len(near) - 7, len(near))])
    assert not negated(far, [(len(far) - 7, len(far))])


@given(st.text(max_size=80), st.integers(0, 80), st.integers(0, 80))
def test_any_text(text, start, end):
    assert negated(text, [(start, end)]) <= {(start, end)}


def test_auto_takes_the_first_that_is_installed(monkeypatch):
    for installed, chosen in (
        ({"medspacy", "negspacy"}, "medspacy"),
        ({"negspacy"}, "negspacy"),
        (set(), "plain"),
    ):
        monkeypatch.setattr(negation, "_installed", lambda name, there=installed: name in there)
        assert choose("auto") == chosen
        assert choose("plain") == "plain"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_that_is_not_installed_is_an_error_with_the_pip_line(monkeypatch, backend):
    monkeypatch.setattr(negation, "_installed", lambda name: False)
    with pytest.raises(MissingExtraError, match=rf"negation by {backend}.*pip install 'factcheck\[clinical\]'"):
        choose(backend)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    with pytest.raises(MissingExtraError, match=r"below 3\.13"):
        choose(backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_that_breaks_on_import_is_an_error_too(monkeypatch, backend):
    negation._pipeline.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=backend):
        negated("no aspirin at hand", [(3, 10)], backend=backend)
    negation._pipeline.cache_clear()


def test_the_name_of_a_backend_carries_its_version():
    assert described("plain") == "plain 1"
    for backend in BACKENDS:
        if negation._installed(backend):
            assert re.fullmatch(rf"{backend} \d+(\.\d+)+", described(backend))


def test_importing_the_checker_imports_no_pipeline():
    code = (
        "import sys; from factcheck.checkers.assertion import AssertionChecker as A; A().model; "
        "print([m for m in ('spacy', 'medspacy', 'negspacy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
