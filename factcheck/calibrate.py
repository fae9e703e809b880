"""From what a judge found to the probability that the claim is wrong.

A calibration is a logistic model over named signals in [0, 1], small enough to read, with the data it was fitted on named
beside it. A judge that gives none of them gets the risk of its label. Risks are stated at even odds: for a claim that is as
likely wrong as right before anything is known.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from importlib import resources
from typing import Self, get_args

from pydantic import Field, model_validator

from factcheck.errors import ConfigError
from factcheck.schema import Judgement, Label, Model, Probability

DEFAULT_CALIBRATION = "calibration.v1.json"


class Calibration(Model):
    """Hold a logistic model over signals, the risk of each label for judges without signals, and the default threshold."""

    name: str
    intercept: float
    weights: Mapping[str, float]
    labels: Mapping[Label, Probability]
    threshold: Probability
    fitted_on: str
    data_sha256: str = ""
    note: str = ""
    samples: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _every_label(self) -> Self:
        if missing := set(get_args(Label)) - set(self.labels):
            raise ValueError(f"no risk for {', '.join(sorted(missing))}")
        return self

    def risk(self, label: Label, signals: Mapping[str, float]) -> float:
        """Return the probability in [0, 1] that a claim is wrong.

        A signal that the model does not know counts nothing; without any that it knows, the label decides.
        """
        if self.weights.keys().isdisjoint(signals):
            return self.labels[label]
        z = self.intercept + sum(weight * signals.get(name, 0.0) for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, z))))

    def risk_of(self, label: Label, judgement: Judgement) -> float:
        """Return the risk of a judgement whose label may have been overruled: a veto is never riskless."""
        risk = self.risk(label, judgement.signals)
        return max(risk, self.labels[label]) if label != judgement.label else risk


def load_calibration(text: str) -> Calibration:
    """Read a calibration from JSON; raise ConfigError if it is none."""
    try:
        return Calibration.model_validate(json.loads(text))
    except ValueError as error:
        first = " ".join(str(error).split())[:200]
        raise ConfigError(f"not a calibration: {first}", hint="Write one with the documented fields.") from error


@functools.cache
def default_calibration() -> Calibration:
    """Return the calibration that ships with the package."""
    file = resources.files("factcheck.data") / DEFAULT_CALIBRATION
    return load_calibration(file.read_text(encoding="utf-8"))
