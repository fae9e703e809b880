"""Record, resume and replay: results of model calls, searches and stages under a hash of what produced them.

A key hashes the kind, the fingerprint of the component (name, version, settings, model, prompt hash, corpus hash) and its
input, so that a result is found again exactly when everything that could change it is equal. Failures are never stored.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import anyio
import anyio.lowlevel
import anyio.to_thread

from factcheck.errors import ConfigError
from factcheck.ledger_errors import LedgerError, NotStoredError, ReplayMissError
from factcheck.ledger_file import Entry, LedgerFile
from factcheck.redaction import MASK, redacted
from factcheck.source_tree import version

Mode = Literal["record", "replay", "off"]
_READERS, _WRITERS = 4, 32
_FAILED = frozenset({"error", "failed", "skipped"})

_Flight = concurrent.futures.Future[str]


class LedgerStats(NamedTuple):
    """Count look-ups that found a value or not, values stored, and calls that shared the result of an equal call."""

    hits: int = 0
    misses: int = 0
    stores: int = 0
    shared: int = 0


class Maker:
    """Hold what made a result, prepared once for the keys and entries of many."""

    def __init__(self, fingerprint: object) -> None:
        self.canonical = canonical(fingerprint)
        self.shown = json.dumps(redacted(_plain(fingerprint)), sort_keys=True)


class Ledger:
    """Keep results in one file, for any number of tasks, event loops, threads and processes at once.

    ``record`` finds what is stored and stores what is new; ``replay`` only finds, and raises ReplayMissError for what is
    missing; ``off`` neither finds nor stores. Nothing here blocks the event loop except ``open`` and ``close``.
    """

    def __init__(self, path: Path | None, mode: Mode, file: LedgerFile | None) -> None:
        self.path = path
        self.mode: Mode = mode
        self._file = file
        self._inherited: list[LedgerFile | None] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._flights: dict[tuple[str, str], _Flight] = {}
        self._stats = LedgerStats()
        self._version = version()
        self._limits: anyio.lowlevel.RunVar[tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]]
        self._limits = anyio.lowlevel.RunVar(f"ledger limits {id(self)}")

    @classmethod
    def open(cls, path: Path | str | None, *, mode: Mode = "record") -> Ledger:
        """Open a ledger; ``record`` makes the file and its folder if they are missing, ``off`` needs no path.

        Raise LedgerError for a file that is none or of a newer version, LedgerCorruptError for a damaged one, OutputError
        for one that cannot be written.
        """
        if mode not in ("record", "replay", "off"):
            raise ConfigError(f"a ledger has no mode '{mode}'.", hint="Known: off, record, replay.")
        if mode == "off":
            return cls(None, mode, None)
        if path is None:
            raise ConfigError(f"the ledger mode '{mode}' needs a file.", hint="Name one with --ledger.")
        return cls(Path(path), mode, LedgerFile(Path(path), writable=mode == "record"))

    @staticmethod
    def key(kind: str, fingerprint: object, input: object) -> str:
        """Return the SHA-256 of the canonical JSON of the three, 64 hexadecimal digits; see ``canonical``.

        A fingerprint that was prepared as a ``Maker`` gives the same key.
        """
        made = fingerprint.canonical if isinstance(fingerprint, Maker) else canonical(fingerprint)
        text = f"[{canonical(kind)},{made},{canonical(input)}]"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def stats(self) -> LedgerStats:
        """Return the counts since the ledger was opened in this process."""
        return self._stats

    async def lookup(self, kind: str, key: str, *, stage: str = "") -> str | None:
        """Return the JSON text stored under a kind and key, None if there is none.

        Raise ReplayMissError, which names ``stage``, instead of returning None in a replay; LedgerCorruptError if the
        value differs from its SHA-256.
        """
        file = self._opened()
        # In the event loop: a look-up by key takes some 30 µs, to hand it to a thread several times as long.
        found = None if file is None else file.read(kind, key)
        self._count(hits=found is not None, misses=found is None)
        if found is None and self.mode == "replay":
            raise ReplayMissError(str(self.path), kind=kind, stage=stage, key=key)
        return found

    async def values(self, kind: str, prefix: str) -> list[str]:
        """Return the JSON texts of a kind whose keys begin with ``prefix``, in the order of the keys."""
        file = self._opened()
        if file is None:
            return []
        return await anyio.to_thread.run_sync(file.read_all, kind, prefix, limiter=self._limiters()[0])

    async def store(
        self, kind: str, key: str, fingerprint: object, value_json: str, *, cost: Mapping[str, Any] | None = None
    ) -> str:
        """Store the JSON text of a success, and return what the ledger now holds under the kind and key.

        That is the earlier value if another process was first: go on with what is returned, or a replay will differ.
        ``fingerprint`` is kept for audits, with secrets masked, as is ``cost``. A cancelled caller still stores, because
        the result is paid for. Raise NotStoredError for a failure or what is no JSON, OutputError if the file cannot be
        written, LedgerError in a replay.
        """
        if self.mode == "replay":
            raise LedgerError(f"the ledger '{self.path}' is being replayed.", hint="Nothing is stored in a replay.")
        file = self._opened()
        if file is None:
            return value_json
        for name, word in (("kind", kind), ("key", key)):
            if not word or not word.isprintable():
                raise NotStoredError(f"{word!r} is no {name} of a ledger entry: it must be printable text.")
        try:
            value = json.loads(value_json, parse_constant=_refuse_constant)
        except ValueError as error:
            raise NotStoredError(f"a value of kind '{kind}' is no JSON: {error}.") from error
        if reason := failure_in(value):
            raise NotStoredError(f"a value of kind '{kind}' is a failure ({reason}), and failures are never stored.")
        return await self._keep(kind, key, fingerprint, value_json, dict(cost or {}))

    async def remember(
        self,
        kind: str,
        fingerprint: object,
        input: object,
        compute: Callable[[], Awaitable[Any]],
        *,
        stage: str = "",
        cost: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> Any:
        """Return the value under the key of these, computing and storing it if there is none.

        Equal calls that overlap, from whichever task, thread or event loop of the process, compute once and share the
        value or the exception. The value comes as JSON gives it back (a list for a tuple), the same whether it was computed
        or found. A value that is flagged as a failure is returned and not stored.

        Args:
            kind: what sort of result it is, such as ``model`` or ``retrieval``.
            fingerprint: what identifies the component, as for ``key``.
            input: what it was given, as for ``key``.
            compute: makes the value, which must be JSON or a pydantic model.
            stage: is named if a replay misses the value.
            cost: gives what the value cost, for audits.
        """
        self._opened()
        key = self.key(kind, fingerprint, input)
        while True:
            with self._lock:
                flight = self._flights.get((kind, key))
                leads = flight is None
                if flight is None:
                    flight = self._flights[kind, key] = _Flight()
            if leads:
                with self._leading(flight, kind, key):
                    flight.set_result(await self._obtain(kind, key, fingerprint, compute, stage, cost))
            else:
                await _landed(flight)
                if flight.cancelled():  # the task that computed was cancelled, which is no concern of this one
                    continue
                self._count(shared=1)
            return json.loads(flight.result())

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._file is not None and self._process == os.getpid():
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, mode={self.mode!r})"

    async def _obtain(
        self,
        kind: str,
        key: str,
        fingerprint: object,
        compute: Callable[[], Awaitable[Any]],
        stage: str,
        cost: Callable[[Any], Mapping[str, Any]] | None,
    ) -> str:
        found = await self.lookup(kind, key, stage=stage)
        if found is not None:
            return found
        value = await compute()
        try:
            plain = _plain(value)
            text = _dumped(plain)
        except (TypeError, ValueError) as error:
            raise NotStoredError(f"a result of kind '{kind}' is no JSON: {error}.") from error
        if self.mode == "off" or failure_in(plain):
            return text
        return await self._keep(kind, key, fingerprint, text, cost(value) if cost else {})

    @contextlib.contextmanager
    def _leading(self, flight: _Flight, kind: str, key: str) -> Any:
        """Let those who wait go on, whatever happens to the task that computes for them."""
        try:
            yield
        except Exception as error:
            flight.set_exception(error)
            raise
        except BaseException:
            flight.cancel()
            raise
        finally:
            with self._lock:
                self._flights.pop((kind, key), None)

    async def _keep(self, kind: str, key: str, fingerprint: object, text: str, cost: Mapping[str, Any]) -> str:
        file = self._opened()
        if file is None:
            return text
        maker = fingerprint if isinstance(fingerprint, Maker) else Maker(fingerprint)
        costs = json.dumps(redacted(_plain(cost)), sort_keys=True) if cost else "{}"
        entry = Entry(kind, key, maker.shown, self._version, int(time.time()), costs, text)
        with anyio.CancelScope(shield=True):
            held = await anyio.to_thread.run_sync(file.write, entry, limiter=self._limiters()[1])
        self._count(stores=1)
        return held

    def _opened(self) -> LedgerFile | None:
        """Return the file; a process that was forked opens it anew, because SQLite's handles do not survive a fork."""
        if self._process != os.getpid():
            self._inherited.append(self._file)  # never closed here: it is the parent's
            self._lock, self._flights, self._stats = threading.Lock(), {}, LedgerStats()
            if self.path is not None:
                self._file = LedgerFile(self.path, writable=self.mode == "record")
            self._process = os.getpid()
        return self._file

    def _limiters(self) -> tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]:
        """Return the limits of this event loop for threads that read and write: shared ones may be held by slow work."""
        limits = self._limits.get(None)
        if limits is None:
            limits = anyio.CapacityLimiter(_READERS), anyio.CapacityLimiter(_WRITERS)
            self._limits.set(limits)
        return limits

    def _count(self, *, hits: int = 0, misses: int = 0, stores: int = 0, shared: int = 0) -> None:
        with self._lock:
            added = zip(self._stats, (hits, misses, stores, shared), strict=True)
            self._stats = LedgerStats(*(old + new for old, new in added))


def canonical(value: object) -> str:
    """Return the JSON text that is equal for equal content, whatever the order of mapping keys.

    Takes JSON values, tuples, and pydantic models; secrets are masked by type, so that a key may change. Raise TypeError for
    anything else and for keys that are no strings (JSON would make 1 and "1" equal), ValueError for NaN and infinity.
    """
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def failure_in(value: object) -> str:
    """Say what marks a JSON value as a failure, "" if nothing does.

    That is a status or label of error, failed or skipped, an error that is not empty, or no value at all; in the object
    itself or in an item of the list.
    """
    if value is None:
        return "null"
    items = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, dict):
            continue
        for name in ("status", "label"):
            if isinstance(item.get(name), str) and item[name].lower() in _FAILED:
                return f"{name} {item[name].lower()}"
        if item.get("error"):
            return "it has an error"
    return ""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"the key {name!r} of a mapping is no string")
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(item) for item in value]
    if hasattr(value, "get_secret_value"):
        return MASK
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no canonical JSON")


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


async def _landed(flight: _Flight) -> None:
    """Wait for a flight that may belong to another event loop."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # another library's event loop
        while not flight.done():
            await anyio.sleep(0.01)
        return
    landed = anyio.Event()

    def wake(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(landed.set)

    flight.add_done_callback(wake)
    await landed.wait()
