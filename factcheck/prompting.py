"""Load prompts: ``<stage>.<name>.v<N>.md`` with TOML front matter between lines of ``+++``.

The packaged prompts are immutable once released; a folder of one's own with files of the same names takes precedence.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from factcheck.errors import PromptError, UnknownNameError
from factcheck.schema import Model
from factcheck.source_tree import data_folder

_FILE = re.compile(r"(?P<stage>[a-z_]+)\.(?P<name>[a-z_]+)\.v(?P<version>\d+)\.md")
_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Prompt(Model):
    """Hold one prompt; ``sha256`` is the hash of the whole file, line ends folded, and enters every record made with it."""

    id: str
    stage: str
    purpose: str
    method: str
    inputs: tuple[str, ...]
    output_schema: Mapping[str, Any]
    text: str
    sha256: str
    origin: str

    def render(self, **values: str) -> str:
        """Fill in the inputs, all of them and no others; values are inserted as they are and never read as placeholders."""
        if set(values) != set(self.inputs):
            raise PromptError(
                f"prompt '{self.id}' takes {', '.join(self.inputs)}; it was given {', '.join(sorted(values)) or 'nothing'}."
            )
        return _PLACE.sub(lambda match: values[match[1]], self.text)


def parse_prompt(filename: str, source: str, origin: str) -> Prompt:
    """Read a prompt file; raise PromptError if its front matter, schema or placeholders are not in order."""
    name = _FILE.fullmatch(filename)
    parts = re.split(r"^\+\+\+[ \t]*\n", source, maxsplit=2, flags=re.MULTILINE)
    if name is None or len(parts) != 3 or parts[0].strip():
        hint = "A prompt is named <stage>.<name>.v<N>.md and begins with front matter between lines of +++."
        raise PromptError(f"'{filename}' in {origin} is no prompt.", hint=hint)
    try:
        matter = tomllib.loads(parts[1])
        schema = json.loads(matter.pop("output_schema"))
        prompt = Prompt(
            id=filename.removesuffix(".md"),
            stage=name["stage"],
            output_schema=schema,
            text=parts[2],
            sha256=hashlib.sha256(source.encode("utf-8")).hexdigest(),
            origin=origin,
            **matter,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise PromptError(f"the front matter of '{filename}' in {origin} cannot be read: {error}.") from error
    used = set(_PLACE.findall(prompt.text))
    if used != set(prompt.inputs):
        odd = ", ".join(sorted(used ^ set(prompt.inputs)))
        raise PromptError(f"prompt '{prompt.id}' in {origin}: its inputs and its placeholders differ in {odd}.")
    return prompt


def load_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """Return all prompts by id, sorted; those of ``folder`` take the place of packaged ones with the same id."""
    sources: dict[str, tuple[str, str]] = {}
    packaged = data_folder("prompts")
    if packaged is None:
        raise PromptError("the prompts of factcheck are missing.", hint="Install it again.")
    for file in packaged.iterdir():
        if file.name.endswith(".md"):
            sources[file.name] = (_read(file), "the package")
    if folder is not None:
        if not folder.is_dir():
            raise PromptError(
                f"'{folder}' is no folder of prompts.", hint="Give a folder with files such as judge.evidence.v2.md."
            )
        for path in sorted(folder.glob("*.md")):
            sources[path.name] = (_read(path), str(folder))
    prompts = (parse_prompt(name, *source) for name, source in sorted(sources.items()))
    return {prompt.id: prompt for prompt in prompts}


def _read(file: Traversable) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise PromptError(f"cannot read the prompt '{file}': {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        hint = "Save it as UTF-8 and try again."
        raise PromptError(f"the prompt '{file}' is not UTF-8: bad byte at offset {error.start}.", hint=hint) from error


def load_prompt(prompt_id: str, folder: Path | None = None) -> Prompt:
    """Return one prompt; raise UnknownNameError with the nearest id."""
    prompts = load_prompts(folder)
    if prompt_id not in prompts:
        raise UnknownNameError("prompt", prompt_id, prompts)
    return prompts[prompt_id]
