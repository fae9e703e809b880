"""Find the plugins that are installed: the entry points of the group ``factcheck``, none of them imported."""

from __future__ import annotations

import importlib.metadata
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from factcheck import source_tree
from factcheck.source_tree import DISTRIBUTION

GROUP = "factcheck"


@dataclass(frozen=True)
class Candidate:
    """Hold one entry point before it is loaded; ``unreadable`` says why its distribution could not be read, if so."""

    name: str
    value: str = ""
    dist: str = ""
    version: str = ""
    load: Callable[[], object] | None = None
    unreadable: BaseException | None = None

    @property
    def first_party(self) -> bool:
        """Tell whether the plugin comes with factcheck itself."""
        return normalised(self.dist) == DISTRIBUTION


def discover() -> list[Candidate]:
    """Return the candidates: those of factcheck first, then by name, whatever the order of installation.

    Equal entry points count once: editable installs and linked folders often show one distribution twice.
    """
    found: dict[tuple[str, str], Candidate] = {}
    for candidate in sorted(_candidates(), key=lambda c: (not c.first_party, c.name, normalised(c.dist), c.value)):
        found.setdefault((candidate.name, candidate.value), candidate)
    return list(found.values())


def clashes(candidates: Iterable[Candidate]) -> dict[Candidate, str]:
    """Return the candidates whose name another one holds, each with a description of the holders.

    A plugin that comes with factcheck keeps its name. Of two others neither gets it: if one of them won, installing an
    unrelated package could change what a settings file means.
    """
    by_name: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_name[candidate.name].append(candidate)
    result = {}
    for same in by_name.values():
        for candidate in same if len(same) > 1 else ():
            if not candidate.first_party:
                result[candidate] = ", ".join(f"'{c.dist}' ({c.value})" for c in same if c is not candidate)
    return result


def normalised(name: str) -> str:
    """Return a distribution's name in the form in which names are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _candidates() -> Iterator[Candidate]:
    for point in source_tree.entry_points(GROUP):
        yield Candidate(point.name, point.value, DISTRIBUTION, source_tree.version(), point.load)
    try:
        points = list(importlib.metadata.entry_points(group=GROUP))
    except Exception:  # one unreadable file anywhere on the path spoils the call for every distribution
        yield from _candidates_one_by_one()
        return
    yield from map(_candidate, points)


def _candidates_one_by_one() -> Iterator[Candidate]:
    seen = set()
    for dist in importlib.metadata.distributions():
        name, version = _identity(dist)
        if normalised(name) in seen:
            continue
        seen.add(normalised(name))
        try:
            points = [point for point in dist.entry_points if point.group == GROUP]
        except Exception as exc:
            yield Candidate(name or "?", dist=name, version=version, unreadable=exc)
            continue
        yield from map(_candidate, points)


def _candidate(point: importlib.metadata.EntryPoint) -> Candidate:
    name, version = _identity(point.dist) if point.dist is not None else ("", "")
    return Candidate(point.name, point.value, name, version, point.load)


def _identity(dist: importlib.metadata.Distribution) -> tuple[str, str]:
    try:
        metadata = dist.metadata
        return metadata["Name"] or "", metadata["Version"] or ""
    except Exception:  # metadata that is missing or malformed leaves the fields empty, the plugin may still load
        return "", ""
