"""Know list prices of models: US dollars per million tokens, with date and source, from a data file or one's own."""

from __future__ import annotations

import fnmatch
import functools
import importlib.resources
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError

from factcheck.errors import ConfigError
from factcheck.schema import Model

MILLION = 1_000_000


class Price(NamedTuple):
    """Hold US dollars per million tokens, in and out."""

    tokens_in: float
    tokens_out: float

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        """Return the cost in US dollars; discounts for cached or batched input are not counted."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / MILLION


class ListPrice(Model):
    """Hold one entry of a price list; ``pattern`` is a model's name, in which ``*`` and ``?`` stand for other letters."""

    pattern: str = Field(min_length=1)
    price_in: float = Field(alias="in", ge=0)
    price_out: float = Field(alias="out", ge=0)
    date: str = Field(pattern=r"\d{4}-\d\d-\d\d")
    source: str = Field(min_length=1)


class PriceList(Model):
    """Hold price lists merged into one, those that take precedence first."""

    models: tuple[ListPrice, ...]

    def find(self, model: str) -> Price | None:
        """Return the price of a model, None if it is not listed; among patterns that fit the longest decides."""
        entry = self.entry(model)
        return None if entry is None else Price(entry.price_in, entry.price_out)

    def entry(self, model: str) -> ListPrice | None:
        """Return the entry that decides the price of a model."""
        name = model.strip().lower()
        fitting = [entry for entry in self.models if fnmatch.fnmatchcase(name, entry.pattern.lower())]
        return max(fitting, key=lambda entry: len(entry.pattern), default=None)


def load_prices(path: Path | None = None) -> PriceList:
    """Return the packaged price list, with the models of the file ``path`` in place of those that it also lists.

    Raise ConfigError for a file that cannot be read.
    """
    packaged = _packaged()
    if path is None:
        return packaged
    try:
        own = _parsed(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = _reason(error)
        hint = 'A list is {"models": [{"pattern": "…", "in": 1.0, "out": 2.0, "date": "YYYY-MM-DD", "source": "…"}]}.'
        raise ConfigError(f"the price list {path} cannot be read: {reason}.", hint=hint) from None
    return PriceList(models=(*own, *(entry for entry in packaged.models if not _covered(entry, own))))


def no_price(model: str) -> ConfigError:
    """Return the error for a bound in dollars on a model whose price is not known."""
    return ConfigError(
        f"a bound in dollars was set, and the price of the model '{model}' is not known.",
        hint="Give it in the settings of the model, as price = [1.0, 2.0] (dollars per million tokens in and out; [0, 0] for "
        "a server of your own), or in a file of prices.",
    )


@functools.cache
def _packaged() -> PriceList:
    text = importlib.resources.files("factcheck.data").joinpath("prices.v1.json").read_text(encoding="utf-8")
    return PriceList(models=_parsed(text))


def _parsed(text: str) -> tuple[ListPrice, ...]:
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(found.get("models"), list):
        raise ValueError("it has no list 'models'")
    return tuple(ListPrice.model_validate(entry) for entry in found["models"])


def _covered(entry: ListPrice, own: Sequence[ListPrice]) -> bool:
    # A pattern of one's own also wins against longer ones of the package that it covers.
    return any(fnmatch.fnmatchcase(entry.pattern.lower(), mine.pattern.lower()) for mine in own)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return getattr(error, "strerror", None) or str(error)
