"""Settings of a run, from flags, factcheck.toml and defaults, in this order of precedence; secrets are never shown.

``factcheck.toml`` holds the fields of Settings at its top level, and a table ``[plugins.<name>]`` for each component
with settings of its own. The environment chooses the file (FACTCHECK_CONFIG) and holds secrets, nothing else: a run is
then described by one file and one command line.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    SerializationInfo,
    ValidationError,
    field_serializer,
    field_validator,
)

from factcheck.errors import ConfigError
from factcheck.model_tables import overlaid
from factcheck.redaction import MASK
from factcheck.schema import Model

FILE = "factcheck.toml"
SECRET_NAME = re.compile(
    r"secret|passw(or)?d|passphrase|credential|authorization|bearer|(^|[_-])dsn([_-]|$)|^headers$"
    r"|((^|[_-])(token|key)|apikey|accesskey|privatekey)$",
    re.IGNORECASE,
)

M = TypeVar("M", bound=BaseModel)


class Settings(Model):
    """Hold the settings of a run.

    ``k`` is the number of passages kept for a claim, ``query_deadline`` the seconds allowed to one query at one retriever,
    ``concurrency`` the claims checked at a time, ``workers`` the processes for checkers (None: the processors to spare in a run
    over the network). ``checkers`` None are those that come with factcheck. ``domains`` are the
    allow-list of the retrievers that have one. ``plugins`` are the tables of single components by name, ``models`` those of
    model roles (``factcheck.llm.ModelSettings``), of which ``default`` serves the roles without one.

    ``prompts`` is a folder whose prompts take precedence, ``graded_model`` the model that wrote the answers, ``ledger`` the
    file to record in or, with ``replay``, to read from alone. ``max_usd``, ``max_calls``, ``max_tokens`` and ``deadline``
    (seconds) bound what the run may spend on models, and ``prices`` is a price list over the packaged one.
    """

    corpora: tuple[str, ...] = ("clinical-starter",)
    retrievers: tuple[str, ...] = Field(default=("bm25",), min_length=1)
    decomposer: str = Field(default="sentences", min_length=1)
    query_writer: str = Field(default="terms", min_length=1)
    judge: str = Field(default="evidence", min_length=1)
    checkers: tuple[str, ...] | None = None
    policy: str = Field(default="contradicted", min_length=1)
    k: int = Field(default=8, ge=1, le=1000, strict=True)
    query_deadline: float = Field(default=30.0, gt=0, le=3600, strict=True)
    concurrency: int = Field(default=64, ge=1, le=10_000, strict=True)
    workers: int | None = Field(default=None, ge=0, le=1000, strict=True)
    seed: int = Field(default=0, ge=0, strict=True)
    domains: tuple[str, ...] = ()
    prompts: Path | None = None
    graded_model: str = ""
    ledger: Path | None = None
    replay: bool = False
    max_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    max_calls: int | None = Field(default=None, ge=0, strict=True)
    max_tokens: int | None = Field(default=None, ge=0, strict=True)
    deadline: float | None = Field(default=None, gt=0, allow_inf_nan=False, strict=True)
    prices: Path | None = None
    plugins: dict[str, dict[str, Any]] = Field(default_factory=dict, repr=False)
    models: dict[str, dict[str, Any]] = Field(default_factory=dict, repr=False)

    @field_validator("corpora", "retrievers", "checkers", "domains")
    @classmethod
    def _names(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in names or ():
            if not name.strip():
                raise ValueError("a name is blank")
        if names is not None and len(set(names)) != len(names):
            raise ValueError("a name repeats")
        return names

    @field_serializer("plugins", "models")
    def _hide(self, tables: dict[str, dict[str, Any]], info: SerializationInfo) -> Any:
        # A program may copy its settings through model_dump; what is written or shown goes through JSON.
        return redacted(tables) if info.mode_is_json() else tables


def load_settings(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a file with ``overrides`` over them; an override of None counts as not given.

    Without ``path`` the file is the one that FACTCHECK_CONFIG names, else factcheck.toml in the working folder if
    there is one. Tables under ``plugins`` and ``models`` merge key by key. Raises ConfigError for a file that cannot be read,
    an unknown key (with the nearest one) and a value that does not fit.
    """
    source, values = _read(path)
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    validate_table(Settings, given, where="the options")
    for key, value in given.items():
        below = values.get(key, {})
        if key == "models":
            value = overlaid(validate_table(Settings, {key: below}, where=source).models, value)
        values[key] = _merged(below, value) if key == "plugins" else value
    return validate_table(Settings, values, where=source)


def validate_table(model: type[M], table: Mapping[str, Any], *, where: str) -> M:
    """Validate ``table`` as ``model``, with ``{ env = "NAME" }`` and ``{ file = "PATH" }`` read where a secret belongs.

    A reference is read only where the model refuses the table as it stands and takes a SecretStr there. So a secret
    always has the type by which dumps and reprs mask it, and a nested table that has a key ``env`` or ``file`` of its
    own is left alone. ``table`` is not changed. Raises ConfigError on one line, which never repeats a value; ``where``
    names the source.
    """
    try:
        return model.model_validate(table)
    except ValidationError as exc:
        found = exc
    references = [error["loc"] for error in found.errors() if _refused_reference(error)]
    resolved: Any = table
    if references:
        for loc in references:
            resolved = _replaced(resolved, loc, where)
        try:
            return model.model_validate(resolved)
        except ValidationError as exc:
            found = exc
    # The cause is dropped on purpose: pydantic's message quotes the input, and the input may hold a secret.
    message = _explain(found, model, where)
    raise ConfigError(hide_secrets(message, resolved, model), hint=f"Mend {where}.") from None


def hide_secrets(text: str, settings: Any, model: Any = None) -> str:
    """Return ``text`` without the secrets of ``settings``, a table or a model, where ``model`` tells their types."""
    for secret in sorted(_secrets(settings, model), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def redacted(value: Any) -> Any:
    """Return a copy of a JSON-like value without its secrets.

    What is of a secret type is masked, then any text under a key that names a secret, then the user part of a URL.
    References to secrets stay, they reveal nothing.
    """
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Mapping):
        return {key: _masked(item) if SECRET_NAME.search(str(key)) else redacted(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redacted(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", f"{MASK}@", value)
    return value


def nearest(word: str, known: Sequence[str]) -> str:
    """Return ``Did you mean …? `` for the known word that is most like ``word``, "" if none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"Did you mean '{near[0]}'? " if near else ""


def _read(path: Path | None) -> tuple[str, dict[str, Any]]:
    named = os.environ.get("FACTCHECK_CONFIG", "")
    if path is None and named:
        path, wanted_by = Path(named), "FACTCHECK_CONFIG names it; "
    elif path is None:
        path, wanted_by = Path(FILE), ""
        if not path.exists():
            return "the settings", {}
    else:
        wanted_by = ""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return str(path), tomllib.loads(text)
    except OSError as exc:
        reason = exc.strerror or type(exc).__name__
        raise ConfigError(
            f"cannot read the settings file {path}: {reason}.", hint=f"{wanted_by}check the path."
        ) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"the settings file {path} is not UTF-8.", hint="Save it as UTF-8.") from exc
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise ConfigError(f"the settings file {path} is not valid TOML: {exc}.", hint="Mend the syntax.") from None


def _merged(below: Any, above: Any, *, depth: int = 2) -> Any:
    if depth == 0 or not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{key: _merged(below.get(key), value, depth=depth - 1) for key, value in above.items()}}


def _is_reference(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) == 1
        and all(key in ("env", "file") and isinstance(item, str) for key, item in value.items())
    )


def _refused_reference(error: Any) -> bool:
    return error["type"] == "string_type" and _is_reference(error["input"])


def _replaced(value: Any, loc: Sequence[int | str], where: str) -> Any:
    """Return a copy of ``value`` in which the reference at ``loc`` is the secret that it names."""
    if _is_reference(value) and not (loc and loc[0] in value):
        return _secret(value, where)
    if not loc:
        return value
    head, rest = loc[0], loc[1:]
    if isinstance(value, Mapping) and head in value:
        return {**value, head: _replaced(value[head], rest, where)}
    if isinstance(value, (list, tuple)) and isinstance(head, int) and head < len(value):
        items = [_replaced(item, rest, where) if i == head else item for i, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    # The name of a union's arm or of a validator, which pydantic puts into the location: no key of the input.
    return _replaced(value, rest, where)


def _secret(reference: Mapping[str, str], where: str) -> SecretStr:
    ((kind, name),) = reference.items()
    if kind == "env":
        value = os.environ.get(name, "")
        if not value:
            raise ConfigError(
                f"{where} takes a secret from the environment variable {name}, which is not set.",
                hint=f"Set {name}, or change the table.",
            )
        return SecretStr(value)
    try:
        value = Path(name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or type(exc).__name__
        raise ConfigError(
            f"{where} takes a secret from the file {name}, which cannot be read: {reason}.", hint="Check the path."
        ) from None
    if not value:
        raise ConfigError(
            f"{where} takes a secret from the file {name}, which is empty.", hint="Write the secret to it."
        )
    return SecretStr(value)


def _explain(found: ValidationError, model: type[BaseModel], where: str) -> str:
    seen = dict.fromkeys(_sentence(error, model) for error in found.errors(include_url=False))
    listed = "; ".join(list(seen)[:5])
    more = f"; and {len(seen) - 5} more" if len(seen) > 5 else ""
    return f"{where}: {listed}{more}."


def _sentence(error: Any, model: type[BaseModel]) -> str:
    loc: tuple[int | str, ...] = error["loc"]
    path = ".".join(str(part) for part in loc) or "the table"
    if error["type"] == "extra_forbidden":
        known = sorted(_known_keys(model, loc[:-1]))
        listing = f"Known: {', '.join(known)}" if known else "It takes none"
        return f"unknown key '{path}'. {nearest(str(loc[-1]), known)}{listing}"
    if error["type"] == "missing":
        return f"'{path}' is required"
    if error["type"] == "string_type" and isinstance(error["input"], SecretStr):
        return f"'{path}' is no secret, so it takes no reference to the environment or to a file"
    message = error["msg"].removeprefix("Value error, ")
    given = f" (it is {error['input']!r})" if isinstance(error["input"], (bool, int, float)) else ""
    return f"'{path}': {message[:1].lower()}{message[1:]}{given}"


def _known_keys(model: type[BaseModel], loc: Sequence[int | str]) -> set[str]:
    current: type[BaseModel] | None = model
    for part in loc:
        field = current.model_fields.get(str(part)) if current is not None else None
        if field is not None:
            current = _model_in(field.annotation)
    return {field.alias or name for name, field in current.model_fields.items()} if current is not None else set()


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation holds, as Optional[Model] and list[Model] do."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def _secrets(value: Any, model: Any = None, *, secret: bool = False) -> set[str]:
    """Return the texts in a table that are secrets by type or by the name of their key, at any depth."""
    if isinstance(value, SecretStr):
        return {value.get_secret_value()} - {""}
    if isinstance(value, BaseModel):
        return _secrets({name: getattr(value, name) for name in type(value).model_fields}, secret=secret)
    if isinstance(value, str):
        return {value} - {""} if secret else set()
    if isinstance(value, Mapping):
        fields = getattr(model, "model_fields", {})
        found = set()
        for key, item in value.items():
            kind = fields[key].annotation if key in fields else None
            named = secret or bool(SECRET_NAME.search(str(key))) or "SecretStr" in str(kind)
            found |= _secrets(item, kind, secret=named)
        return found
    if isinstance(value, (list, tuple)):
        return {text for item in value for text in _secrets(item, secret=secret)}
    return set()


def _masked(value: Any) -> Any:
    if _is_reference(value):
        return value
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(item) for item in value]
    return MASK if value not in (None, "") else value
