"""Know whether the package runs from a checkout that nobody installed, and what the installation would have told.

An installation maps the folders ``prompts``, ``corpora`` and ``plugins`` into place and records version and entry points. In a
bare checkout those folders lie beside the package, and pyproject.toml is the record.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import importlib.util
import sys
import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

DISTRIBUTION = "factcheck"


def version() -> str:
    """Return the version of the installation, or that of the checkout."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        project = _project()
        return str(project["version"]) if project else "0"


def data_folder(name: str) -> Traversable | None:
    """Return the folder ``prompts`` or ``corpora``, wherever it lies, None if it is missing."""
    try:
        folder = importlib.resources.files(f"factcheck.{name}")
    except ModuleNotFoundError:
        root = _checkout()
        if root is None:
            return None
        folder = root / name
    return folder if folder.is_dir() else None


def entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
    """Return the entry points that a bare checkout declares, none if installed; the checkout's plugins become importable."""
    root, project = _checkout(), _project()
    if root is None or project is None:
        return []
    # A checkout that another interpreter installed has metadata beside the package, but its plugins are on no path.
    if importlib.util.find_spec("factcheck_offline") is None:
        sys.path.append(str(root / "plugins"))
    try:
        importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        declared = project.get("entry-points", {}).get(group, {})
        return [importlib.metadata.EntryPoint(name, value, group) for name, value in declared.items()]
    return []


def _checkout() -> Path | None:
    root = Path(__file__).resolve().parents[1]
    return root if (root / "pyproject.toml").is_file() else None


@functools.cache
def _project() -> dict[str, Any] | None:
    root = _checkout()
    if root is None:
        return None
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project
