"""From signals to risk: golden values, limits, and what is refused as a calibration."""

import json
import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factcheck.calibrate import Calibration, default_calibration, load_calibration
from factcheck.errors import ConfigError
from factcheck.schema import Judgement, Label

LABELS = {"supported": 0.1, "contradicted": 0.9, "conflicting": 0.6, "not_enough_evidence": 0.5}
FIELDS = {
    "name": "test",
    "intercept": 0.5,
    "weights": {"value": 2.0, "support": -1.0},
    "labels": LABELS,
    "threshold": 0.5,
    "fitted_on": "nothing",
}
MODEL = Calibration(**FIELDS)


@pytest.mark.parametrize(
    ("signals", "risk"),
    [
        ({"value": 0.0}, 0.6224593312),  # sigmoid(0.5)
        ({"value": 1.0}, 0.9241418200),  # sigmoid(2.5)
        ({"support": 1.0}, 0.3775406688),  # sigmoid(-0.5)
        ({"value": 0.25, "support": 1.0, "unknown": 1.0}, 0.5),  # sigmoid(0)
    ],
)
def test_values_by_hand(signals, risk):
    assert MODEL.risk("supported", signals) == pytest.approx(risk, abs=1e-10)
    assert MODEL.risk("contradicted", signals) == MODEL.risk("supported", signals)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("signals", [{}, {"coverage": 1.0}, {"confidence": 0.9, "coverage": 0.1}])
def test_without_a_signal_that_it_knows_the_label_decides(label, signals):
    assert MODEL.risk(label, signals) == LABELS[label]


def test_an_overruled_label_is_never_riskless():
    judgement = Judgement(claim_id="c", label="supported", signals={"support": 1.0})
    assert MODEL.risk_of("supported", judgement) == pytest.approx(0.3775406688)
    assert MODEL.risk_of("contradicted", judgement) == 0.9
    sure = judgement.model_copy(update={"signals": {"value": 1.0}})
    assert MODEL.risk_of("contradicted", sure) == pytest.approx(0.92414182)


@given(
    st.floats(-1e6, 1e6),
    st.dictionaries(st.sampled_from("abc"), st.floats(-1e6, 1e6)),
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 1)),
)
def test_a_risk_is_a_probability_whatever_the_weights(intercept, weights, signals):
    model = Calibration(**{**FIELDS, "intercept": intercept, "weights": weights})
    assert 0.0 <= model.risk("supported", signals) <= 1.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_of_a_signal_against_the_claim_is_more_risk(one, other):
    low, high = sorted((one, other))
    assert MODEL.risk("supported", {"value": low}) <= MODEL.risk("supported", {"value": high})


def test_the_shipped_one_is_sound():
    model = default_calibration()
    assert set(model.labels) == set(get_args(Label))
    assert model.labels["supported"] < model.labels["not_enough_evidence"] < model.labels["contradicted"]
    assert 0.0 < model.threshold < 1.0
    assert model.weights["support"] < 0
    assert model.samples > 0
    assert model.fitted_on
    assert len(model.data_sha256) == 64
    assert default_calibration() is model


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": {k: v for k, v in LABELS.items() if k != "conflicting"}}, "no risk for conflicting"),
        ({"labels": {**LABELS, "maybe": 0.5}}, "maybe"),
        ({"labels": {**LABELS, "supported": 1.5}}, "less than or equal to 1"),
        ({"threshold": 2}, "threshold"),
        ({"weights": {"value": math.nan}}, "finite"),
        ({"colour": "red"}, "colour"),
        ({"intercept": None}, "intercept"),
    ],
)
def test_what_is_no_calibration_is_refused_on_one_line(change, said):
    text = json.dumps({**FIELDS, **change})
    with pytest.raises(ConfigError, match=said) as caught:
        load_calibration(text)
    assert str(caught.value).splitlines() == [str(caught.value)]


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(ConfigError, match="not a calibration"):
        load_calibration(text)


def test_it_survives_json():
    assert load_calibration(MODEL.model_dump_json()) == MODEL
