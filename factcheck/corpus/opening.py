"""Find a corpus by name or folder, verify it, and read its passages."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from factcheck.corpus.manifest import CORPUS_FILE, MANIFEST_FILE, CorpusManifest, parse_manifest, sha256_of
from factcheck.corpus.passages import CorpusPassage, Problem, dump_rows, read_rows
from factcheck.errors import CorpusError, HashMismatchError, UnknownNameError
from factcheck.source_tree import data_folder


class Corpus:
    """Hold a corpus that was read and verified; ``len`` is the number of passages.

    ``manifest`` describes the corpus; where there was no manifest file it is made from the rows, and ``note`` says so.
    """

    def __init__(
        self, passages: tuple[CorpusPassage, ...], manifest: CorpusManifest, *, where: str, note: str = ""
    ) -> None:
        self._passages = passages
        self.manifest = manifest
        self.where = where
        self.note = note

    @property
    def name(self) -> str:
        """Return the name under which the passages are reported."""
        return self.manifest.name

    @property
    def sha256(self) -> str:
        """Return the hash of the bytes of ``corpus.jsonl``."""
        return self.manifest.sha256

    def passages(self) -> Iterator[CorpusPassage]:
        """Iterate over the passages in the order of the file."""
        return iter(self._passages)

    def __len__(self) -> int:
        return len(self._passages)

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, {len(self)} passages, sha256 {self.sha256[:12]}…)"


@dataclass(frozen=True)
class Verification:
    """Hold what ``verify`` found; ``expected`` is the hash in the manifest, None without one."""

    name: str
    where: str
    passages: int
    sha256: str
    expected: str | None
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Tell whether the hash and every row are right."""
        return not self.problems


def list_corpora() -> list[str]:
    """Return the names of the corpora that come with factcheck, sorted."""
    root = data_folder("corpora")
    if root is None:
        return []
    return sorted(folder.name for folder in root.iterdir() if folder.is_dir() and (folder / CORPUS_FILE).is_file())


def open_corpus(name_or_dir: str | os.PathLike[str]) -> Corpus:
    """Open a packaged corpus by name, or any folder that holds a ``corpus.jsonl``.

    A packaged name wins over a folder of the same name; write ``./name`` for the folder. Raises UnknownNameError,
    HashMismatchError if the file is not the one that its manifest describes, CorpusError if it is missing, empty or
    malformed.
    """
    folder, where = _locate(name_or_dir)
    data = _read(folder, where)
    manifest = read_manifest(name_or_dir)
    digest = sha256_of(data)
    if manifest is not None and manifest.sha256 != digest:
        raise HashMismatchError(
            f"{_file(where, CORPUS_FILE)} has the SHA-256 {digest}, but its manifest says {manifest.sha256}.",
            hint="Restore the file, or build the corpus again if it was changed on purpose.",
        )
    passages = []
    for item in read_rows(data):
        if isinstance(item, Problem):
            raise CorpusError(
                f"{_file(where, CORPUS_FILE)}, {item}.",
                hint="Mend the line; 'factcheck corpus verify' lists all that are wrong.",
            )
        passages.append(item)
    if not passages:
        raise CorpusError(f"{_file(where, CORPUS_FILE)} holds no passages.", hint=_BUILD_HINT)
    if manifest is not None and manifest.passages != len(passages):
        raise CorpusError(
            _count_reason(where, manifest, len(passages)) + ".", hint="Correct the number, or build the corpus again."
        )
    if manifest is not None:
        return Corpus(tuple(passages), manifest, where=where)
    described = CorpusManifest(name=_name_of(where), passages=len(passages), sha256=digest)
    note = f"no {MANIFEST_FILE}: the SHA-256 was computed and compared with nothing"
    return Corpus(tuple(passages), described, where=where, note=note)


def corpus_of(passages: Iterable[CorpusPassage], *, name: str) -> Corpus:
    """Make a corpus of passages in memory; its hash is that of the file they would make. There may be none.

    Raises CorpusError if an id repeats.
    """
    held = tuple(passages)
    counts = Counter(passage.id for passage in held)
    if repeated := [id for id, n in counts.items() if n > 1]:
        raise CorpusError(
            f"the passage id '{repeated[0]}' is used {counts[repeated[0]]} times.", hint="Make ids unique."
        )
    described = CorpusManifest(name=name, passages=len(held), sha256=sha256_of(dump_rows(held)))
    return Corpus(held, described, where="memory", note="made in memory")


def read_manifest(name_or_dir: str | os.PathLike[str]) -> CorpusManifest | None:
    """Return the manifest of a corpus without reading its passages, None if it has none; raises as ``open_corpus``."""
    folder, where = _locate(name_or_dir)
    if not (folder / MANIFEST_FILE).is_file():
        return None
    return parse_manifest(_read(folder, where, MANIFEST_FILE), _file(where, MANIFEST_FILE))


def verify(name_or_dir: str | os.PathLike[str]) -> Verification:
    """Recompute the hash and check every row; what is wrong is listed, not raised.

    Raises UnknownNameError or CorpusError only if there is no corpus to look at.
    """
    folder, where = _locate(name_or_dir)
    data = _read(folder, where)
    digest = sha256_of(data)
    problems: list[str] = []
    manifest: CorpusManifest | None = None
    try:
        manifest = read_manifest(name_or_dir)
    except CorpusError as error:
        problems.append(error.message)
    if manifest is not None and manifest.sha256 != digest:
        problems.append(f"{CORPUS_FILE} has the SHA-256 {digest}, but the manifest says {manifest.sha256}")
    rows = list(read_rows(data))
    problems += [f"{CORPUS_FILE}, {row}" for row in rows if isinstance(row, Problem)]
    count = sum(isinstance(row, CorpusPassage) for row in rows)
    if not rows:
        problems.append(f"{CORPUS_FILE} holds no passages")
    elif manifest is not None and manifest.passages != count:
        problems.append(_count_reason(where, manifest, count))
    name = manifest.name if manifest else _name_of(where)
    return Verification(name, where, count, digest, manifest.sha256 if manifest else None, tuple(problems))


_BUILD_HINT = "Make one from documents: factcheck corpus build DOCUMENTS --out DIR"


def _locate(name_or_dir: str | os.PathLike[str]) -> tuple[Traversable, str]:
    text = os.fspath(name_or_dir)
    names = list_corpora()
    root = data_folder("corpora")
    if root is not None and text in names:
        return root / text, text
    path = Path(text).expanduser()
    if path.is_dir():
        return path, str(path)
    if path.is_file():
        raise CorpusError(
            f"'{text}' is a file, not a corpus.", hint=f"Name the folder that holds {CORPUS_FILE}. {_BUILD_HINT}"
        )
    if os.sep in text or text.startswith((".", "~")) or not text:
        raise CorpusError(f"there is no folder '{text}'.", hint=f"Packaged corpora: {', '.join(names) or 'none'}.")
    raise UnknownNameError("corpus", text, names, hint=f"A folder with a {CORPUS_FILE} will do as well.")


def _read(folder: Traversable, where: str, name: str = CORPUS_FILE) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise CorpusError(f"the folder '{where}' holds no {name}.", hint=_BUILD_HINT) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CorpusError(
            f"{_file(where, name)} cannot be read: {reason}.", hint="Check the path and its permissions."
        ) from error


def _file(where: str, name: str) -> str:
    return str(Path(where) / name)


def _name_of(where: str) -> str:
    return Path(where).resolve().name or "corpus"


def _count_reason(where: str, manifest: CorpusManifest, found: int) -> str:
    return f"{_file(where, MANIFEST_FILE)} counts {manifest.passages} passages, but {CORPUS_FILE} holds {found}"
