"""The manifest of a corpus: where it comes from, and the hash by which it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from factcheck.errors import CorpusError
from factcheck.schema import Model

CORPUS_FILE = "corpus.jsonl"
MANIFEST_FILE = "manifest.json"
CARD_FILE = "CARD.md"


class CorpusManifest(Model):
    """Hold what ``manifest.json`` says; keys that are not listed here are kept as they are.

    ``sha256`` is the hash of the bytes of ``corpus.jsonl``, 64 hexadecimal digits, and ``passages`` its number of rows.
    ``sources`` name what the passages can be checked against, each a string or an object; ``date`` is that of the
    contents.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    schema_name: Literal["factcheck.corpus/1"] = Field(default="factcheck.corpus/1", alias="schema")
    name: str = Field(min_length=1)
    title: str = ""
    description: str = ""
    licence: str = ""
    sources: tuple[str | Mapping[str, Any], ...] = ()
    date: str = ""
    passages: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    reviewed_by_clinician: bool = False

    def to_json(self) -> str:
        """Return the text of ``manifest.json``."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False) + "\n"


def parse_manifest(data: bytes, where: str) -> CorpusManifest:
    """Read ``manifest.json``; raises CorpusError naming ``where``."""
    try:
        return CorpusManifest.model_validate(json.loads(data.decode("utf-8-sig")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        reason = f"'{field}': {first['msg']}"
    except UnicodeDecodeError as error:
        reason = f"invalid UTF-8 at byte {error.start + 1}"
    except (ValueError, RecursionError) as error:
        reason = f"not JSON: {error}"
    raise CorpusError(
        f"the manifest {where} cannot be used: {reason}.", hint="Mend it, or take it away and rebuild the corpus."
    )


def sha256_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
