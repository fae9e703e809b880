"""The file of a ledger: several processes, kills, damage, and disks that refuse."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from factcheck.errors import FactcheckError, OutputError
from factcheck.ledger_errors import LedgerCorruptError, LedgerError
from factcheck.ledger_file import BUSY_SECONDS, SCHEMA_VERSION, Damaged, Entry, LedgerFile
from factcheck.ledger_upkeep import problems

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")


def entry(key, value='"value"', *, kind="model", fingerprint='{"model": "m"}', version="1", created=1_700_000_000):
    return Entry(kind, key, fingerprint, version, created, "{}", value)


def value_of(number):
    """Return the value that belongs to a number; every tenth is large and does not compress."""
    rng = random.Random(number)
    return json.dumps(
        {"number": number, "text": rng.randbytes(8000).hex() if number % 10 == 0 else "word " * 60, "end": number}
    )


@pytest.fixture
def filled(tmp_path):
    """A closed ledger of 40 entries."""
    path = tmp_path / "l.db"
    file = LedgerFile(path, writable=True)
    for number in range(40):
        file.write(entry(f"k{number}", value_of(number)))
    file.close()
    return path


def script(code, *arguments):
    """Run Python code with a helper that gives the value of a number; its output is JSON."""
    head = f"import json, os, random, sys\nsys.path.insert(0, {os.path.dirname(__file__)!r})\n"
    command = [sys.executable, "-W", "ignore", "-c", head + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Several processes

WRITER = """
import anyio
from factcheck.ledger import Ledger
path, me, start = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
import time
time.sleep(max(0, start - time.time()))
held = {}
async def main():
    with Ledger.open(path) as ledger:
        async def put(number):
            held[number] = await ledger.store("model", f"k{number}", {"writer": me}, json.dumps([number, me]))
        async with anyio.create_task_group() as group:
            for number in random.Random(me).sample(range(200), 150):
                group.start_soon(put, number)
anyio.run(main)
print(json.dumps(held))
"""


def test_concurrent_writers_agree(tmp_path):
    path, start = tmp_path / "new" / "l.db", time.time() + 1.0  # all of them find no file and make it
    command = [sys.executable, "-c", "import json, random, sys" + WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, str(me), str(start)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for me in range(4)
    ]
    outputs = [writer.communicate(timeout=120) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4, outputs
    held = [json.loads(out) for out, _ in outputs]
    assert [len(one) for one in held] == [150] * 4
    file = LedgerFile(path, writable=False)
    rows = {item.key: item for _, item in file.rows()}
    assert problems(file) == []
    file.close()
    assert {int(number) for one in held for number in one} == {int(key[1:]) for key in rows}
    for one in held:
        for number, value in one.items():
            assert rows[f"k{number}"].value == value
    for item in rows.values():  # the fingerprint is that of the writer whose value it is
        assert json.loads(item.fingerprint)["writer"] == json.loads(item.value)[1]
    assert len({item.fingerprint for item in rows.values()}) > 1


OPENERS = """
import multiprocessing
from pathlib import Path
from factcheck.ledger_file import LedgerFile
from test_ledger_file import entry

def work(folder, me, barrier, errors):
    for number in range(20):
        barrier.wait(60)
        try:
            file = LedgerFile(Path(folder) / f"{number}.db", writable=True)
            file.write(entry(f"k{me}"))
            file.close()
        except Exception as error:
            errors.put(repr(error))
    errors.put(None)

context = multiprocessing.get_context("fork")
barrier, errors = context.Barrier(4), context.Queue()
for me in range(4):
    context.Process(target=work, args=(sys.argv[1], me, barrier, errors)).start()
found, running = [], 4
while running:
    error = errors.get(timeout=100)
    running -= error is None
    found += [error] if error else []
print(json.dumps(found))
"""


@POSIX
def test_processes_that_make_a_file_at_the_same_moment_agree(tmp_path):
    assert script(OPENERS, tmp_path) == []
    for path in tmp_path.glob("*.db"):
        file = LedgerFile(path, writable=False)
        assert {row.key for _, row in file.rows()} == {"k0", "k1", "k2", "k3"}
        file.close()
    assert len(list(tmp_path.iterdir())) == 20  # whoever was last has folded the log in


class Interrupted:
    """A connection between whose reads another process makes the ledger."""

    def __init__(self, path):
        self.real = sqlite3.connect(path, isolation_level=None)
        self.path = path

    def __getattr__(self, name):
        return getattr(self.real, name)

    def execute(self, statement):
        if "user_version" in statement:
            with contextlib.suppress(LedgerError):  # it has to wait, and gives up
                LedgerFile(self.path, writable=True).close()
        return self.real.execute(statement)


def test_a_ledger_that_is_just_being_made_is_not_taken_for_something_else(tmp_path, monkeypatch):
    monkeypatch.setattr("factcheck.ledger_file.BUSY_SECONDS", 0.1)
    file = LedgerFile(tmp_path / "other.db", writable=True)
    connection = Interrupted(tmp_path / "l.db")
    assert file._identify(connection) is False
    connection.close()
    file.close()


@pytest.mark.parametrize("how", ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_another_process_holds_is_waited_for(tmp_path, how):
    path = tmp_path / "l.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute(how)
    other.execute("SELECT * FROM sqlite_schema").fetchall()
    timer = threading.Timer(0.3, other.execute, ["COMMIT"])
    timer.start()
    file = LedgerFile(path, writable=True)
    assert not timer.is_alive()
    file.close()
    other.close()


KILLED = """
import anyio, random, select, signal, time
from factcheck.ledger import Ledger
from test_ledger_file import value_of

def write(path, first, pipe):
    async def main():
        ledger = Ledger.open(path)
        async def put(lane):
            for number in range(first + lane, first + 100_000, 8):
                await ledger.store("model", f"k{number}", {"model": "m"}, value_of(number))
                os.write(pipe, b"%d\\n" % number)
        async with anyio.create_task_group() as group:
            for lane in range(8):
                group.start_soon(put, lane)
    anyio.run(main)

finished, rng = [], random.Random(7)
for round in range(20):
    path = f"{sys.argv[1]}/{round % 4}.db"
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        write(path, round * 100_000, into)
    os.close(into)
    if round % 3:  # the others are killed while they open the file
        select.select([out], [], [], 30)
    time.sleep(rng.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(out, "rb") as pipe:
        lines = pipe.read().split(b"\\n")[:-1]
    finished.append([path, round * 100_000, [int(line) for line in lines]])
print(json.dumps(finished))
"""


@POSIX
def test_a_kill_loses_nothing_finished_and_leaves_nothing_half_written(tmp_path):
    rounds = script(KILLED, tmp_path)
    assert len(rounds) == 20
    assert sum(bool(numbers) for _, _, numbers in rounds) >= 13
    for path in {path for path, _, _ in rounds}:
        file = LedgerFile(Path(path), writable=True)
        for where, first, numbers in rounds:
            if where == path:
                assert [n for n in numbers if file.read("model", f"k{n}") != value_of(n)] == []
                stored = {int(row.key[1:]) for _, row in file.rows() if first <= int(row.key[1:]) < first + 100_000}
                assert stored >= set(numbers)
                assert len(stored) <= len(numbers) + 8  # each lane may have stored one more before it could say so
        assert [
            row for _, row in file.rows() if isinstance(row, Damaged) or row.value != value_of(int(row.key[1:]))
        ] == []
        assert problems(file) == []
        file.close()


# Damage


def outcome(path, number):
    """Return what a replay finds under a number: "right", "wrong", None, or an error; anything but an error of ours rises."""
    try:
        file = LedgerFile(path, writable=False)
        try:
            found = file.read("model", f"k{number}")
        finally:
            file.close()
    except FactcheckError as error:
        return error
    return found if found is None else "right" if found == value_of(number) else "wrong"


def test_any_flipped_byte_is_noticed_or_harmless(filled, tmp_path):
    data, rng, copy = filled.read_bytes(), random.Random(3), tmp_path / "copy.db"
    errors = set()
    places = [*range(100), *rng.sample(range(100, len(data)), 400)]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= rng.choice([1, 2, 16, 128, 255])
        copy.write_bytes(damaged)
        for number in rng.sample(range(40), 4):
            found = outcome(copy, number)
            assert found != "wrong", place
            if isinstance(found, FactcheckError):
                assert found.hint, found
                errors.add(type(found))
        for ending in ("-wal", "-shm"):
            copy.with_name(copy.name + ending).unlink(missing_ok=True)
    assert LedgerCorruptError in errors


@pytest.mark.parametrize("number", [3, 10])
def test_a_flipped_byte_of_a_value_is_an_error_for_that_entry_alone(tmp_path, number):
    path = tmp_path / "l.db"
    file = LedgerFile(path, writable=True)
    for each in (3, 4, 10):
        file.write(entry(f"k{each}", value_of(each)))
    file.close()
    connection = sqlite3.connect(path)
    ((blob,),) = connection.execute("SELECT value FROM entry WHERE key = ?", (f"k{number}",)).fetchall()
    connection.close()
    data = bytearray(path.read_bytes())
    data[data.index(blob[-40:]) + 20] ^= 1
    path.write_bytes(data)
    found = outcome(path, number)
    assert isinstance(found, LedgerCorruptError)
    assert "prune --damaged" in str(found)
    assert f"k{number}" in str(found)
    assert outcome(path, 4) == "right"
    file = LedgerFile(path, writable=True)
    with pytest.raises(LedgerCorruptError):  # what is damaged is never silently replaced
        file.write(entry(f"k{number}", '"new"'))
    file.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET value = (SELECT value FROM entry WHERE key = 'k2') WHERE key = 'k1'",
        "UPDATE entry SET key = 'k1x' WHERE key = 'k1'; UPDATE entry SET key = 'k1' WHERE key = 'k2'",
        "UPDATE entry SET codec = 0 WHERE key = 'k1'",
        "UPDATE entry SET cost = '{\"usd\": 0}' WHERE key = 'k1'",
        "UPDATE entry SET created = created + 1 WHERE key = 'k1'",
        "UPDATE entry SET value = CAST(value AS TEXT) WHERE key = 'k1'",
        "UPDATE entry SET seal = 'x' WHERE key = 'k1'",
    ],
)
def test_the_seal_covers_the_whole_row(filled, change):
    connection = sqlite3.connect(filled)
    connection.executescript(change)
    connection.close()
    assert isinstance(outcome(filled, 1), LedgerCorruptError)
    assert outcome(filled, 3) == "right"


def test_the_seal_keeps_the_fields_apart(filled):
    connection = sqlite3.connect(filled)
    connection.executescript("UPDATE entry SET kind = 'mode', key = 'lk1' WHERE key = 'k1'")
    connection.close()
    file = LedgerFile(filled, writable=False)
    with pytest.raises(LedgerCorruptError):
        file.read("mode", "lk1")
    file.close()


def test_a_changed_origin_is_found(filled):
    connection = sqlite3.connect(filled)
    connection.executescript('UPDATE origin SET fingerprint = \'{"model": "n"}\'')
    connection.close()
    file = LedgerFile(filled, writable=False)
    assert {type(row) for _, row in file.rows()} == {Damaged}
    file.close()


@pytest.mark.parametrize("writable", [False, True])
def test_a_truncated_file_is_noticed(filled, writable):
    data, rng = filled.read_bytes(), random.Random(5)
    for size in [2, 15, 16, 99, 100, 512, 4096, len(data) - 1, *rng.sample(range(100, len(data)), 30)]:
        filled.write_bytes(data[:size])
        with pytest.raises(LedgerCorruptError) as raised:
            LedgerFile(filled, writable=writable)
        assert "Move it away and run again" in str(raised.value)
        assert filled.read_bytes() == data[:size]


def test_a_log_that_was_cut_gives_what_was_whole(tmp_path):
    path, copy = tmp_path / "l.db", tmp_path / "copy.db"
    file = LedgerFile(path, writable=True)
    for number in range(20):
        file.write(entry(f"k{number}", value_of(number)))
    main, log = path.read_bytes(), (tmp_path / "l.db-wal").read_bytes()
    file.close()
    assert len(log) > 40_000
    rng = random.Random(9)
    counts = set()
    for _ in range(60):
        copy.write_bytes(main)
        damaged = bytearray(log[: rng.randrange(len(log))])
        if damaged and rng.random() < 0.5:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (tmp_path / "copy.db-wal").write_bytes(damaged)
        found = [outcome(copy, number) for number in range(20)]
        assert "wrong" not in found
        right = found.count("right")
        assert found[:right] == ["right"] * right  # a prefix: transactions vanish from the end only
        counts.add(right)
        (tmp_path / "copy.db-shm").unlink(missing_ok=True)
        (tmp_path / "copy.db-wal").unlink(missing_ok=True)
    assert len(counts) > 3


def database(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("writable", [False, True])
def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path, filled, writable):
    text, foreign, newer, changed = (tmp_path / name for name in ("text", "foreign", "newer", "changed"))
    text.write_text("These are notes.\n" * 100)
    database(foreign, "CREATE TABLE entry (id INTEGER PRIMARY KEY, kind TEXT)")
    shutil.copy(filled, newer)
    database(newer, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    shutil.copy(filled, changed)
    database(changed, "CREATE TRIGGER t AFTER INSERT ON entry BEGIN DELETE FROM entry; END")
    expected = {
        text: (LedgerCorruptError, "is no ledger", "Name another file."),
        foreign: (LedgerError, "another program", "Name another file."),
        newer: (LedgerError, f"schema {SCHEMA_VERSION + 1}", "Upgrade factcheck"),
        changed: (LedgerCorruptError, "its tables are not those of one", "Move it away"),
    }
    for path, (kind, what, mend) in expected.items():
        before = path.read_bytes()
        with pytest.raises(kind) as raised:
            LedgerFile(path, writable=writable)
        assert str(raised.value).startswith("[F160] ")
        assert what in str(raised.value)
        assert mend in str(raised.value)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
        assert path.read_bytes() == before


def test_an_empty_file_is_begun_but_not_replayed(tmp_path):
    path = tmp_path / "l.db"
    path.touch()
    with pytest.raises(LedgerError, match="is no ledger: it is empty"):
        LedgerFile(path, writable=False)
    LedgerFile(path, writable=True).close()
    LedgerFile(path, writable=False).close()


def test_paths_with_odd_signs(tmp_path):
    path = tmp_path / "a?mode=ro#b %41é" / "l &.db"
    file = LedgerFile(path, writable=True)
    file.write(entry("k"))
    file.close()
    assert path.is_file()
    with pytest.raises(OutputError):
        LedgerFile(path.parent, writable=True)
    with pytest.raises(OutputError):
        LedgerFile(path / "below", writable=True)


# Disks that refuse

LIMITED = """
import resource
from factcheck.ledger_file import LedgerFile
from factcheck.errors import OutputError
from test_ledger_file import entry, value_of
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
file = LedgerFile(Path(sys.argv[1]), writable=True)
done, errors = [], []
for number in range(0, 2000, 10):
    try:
        file.write(entry(f"k{number}", value_of(number)))
        done.append(number)
    except OutputError as error:
        errors.append(str(error))
right = [n for n in done if file.read("model", f"k{n}") == value_of(n)]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.write(entry("after"))
file.close()
print(json.dumps([done, right, errors]))
"""


@POSIX
def test_a_limit_on_the_size_of_files_is_an_error_that_loses_nothing(tmp_path):
    path = tmp_path / "l.db"
    done, right, errors = script(LIMITED, path)
    assert len(done) > 10
    assert len(done) + len(errors) == 200
    assert len(errors) > 10
    assert right == done
    assert errors[0].startswith("[F140] cannot ")
    assert "limit on the size of files" in errors[0]
    file = LedgerFile(path, writable=False)
    assert problems(file) == []
    assert {row.key for _, row in file.rows()} == {f"k{number}" for number in done} | {"after"}
    file.close()


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path):
    file = LedgerFile(tmp_path / "l.db", writable=True)
    with file.exclusive() as connection:
        connection.execute("PRAGMA max_page_count = 30")
    file.write(entry("k1", value_of(1)))
    file.write(entry("k10", value_of(10)))
    with pytest.raises(OutputError, match="the disk is full"):
        file.write(entry("large", json.dumps(random.Random(0).randbytes(200_000).hex())))
    assert file.read("model", "k1") == value_of(1)
    assert file.read("model", "k10") == value_of(10)
    assert file.read("model", "large") is None
    with file.exclusive() as connection:
        connection.execute("PRAGMA max_page_count = 3000")
    file.write(entry("k3", value_of(3)))
    assert problems(file) == []
    file.close()


def test_what_fails_in_the_middle_of_a_write_leaves_nothing_open(tmp_path):
    file = LedgerFile(tmp_path / "l.db", writable=True)
    with pytest.raises(UnicodeEncodeError):
        file.write(entry("\ud800"))
    file.write(entry("k"))
    assert [row.key for _, row in file.rows()] == ["k"]
    file.close()


UNPRIVILEGED = """
import sqlite3
from pathlib import Path
from factcheck.errors import FactcheckError
from factcheck.ledger_file import LedgerFile
from test_ledger_file import entry
found = {}
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name, path, writable in json.loads(sys.argv[1]):
    try:
        file = LedgerFile(Path(path), writable=writable)
        found[name] = len(list(file.rows()))
        file.close()
    except FactcheckError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture
def open_folder():
    """A folder that every user of the system can reach, unlike that of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


@POSIX
def test_files_and_folders_without_permission(filled, open_folder):
    locked, free, logged, hidden = (open_folder / name for name in ("locked", "free", "logged", "hidden"))
    for folder in (locked, free, logged, hidden):
        folder.mkdir()
        shutil.copy(filled, folder / "l.db")
        (folder / "l.db").chmod(0o444)
    writer = LedgerFile(filled, writable=True)  # leaves a log, as a run that was killed does
    writer.write(entry("logged"))
    for name in ("l.db", "l.db-wal"):
        shutil.copy(filled.with_name(name), logged / name)
        (logged / name).chmod(0o444)
    writer.close()
    (hidden / "l.db").chmod(0)
    free.chmod(0o777)
    locked.chmod(0o555)
    logged.chmod(0o555)
    wanted = [
        ("replay in a locked folder", locked / "l.db", False),
        ("replay of a read-only file", free / "l.db", False),
        ("replay of a file nobody may read", hidden / "l.db", False),
        ("replay with a log in a locked folder", logged / "l.db", False),
        ("record in a locked folder", locked / "l.db", True),
        ("record in a read-only file", free / "l.db", True),
        ("new file in a locked folder", locked / "new.db", True),
        ("new folder in a locked folder", locked / "new" / "l.db", True),
    ]
    listed = json.dumps([(name, str(path), writable) for name, path, writable in wanted])
    found = script(UNPRIVILEGED, listed)
    assert found.pop("replay in a locked folder") == 40
    assert found.pop("replay of a read-only file") == 40
    for name, error in found.items():
        assert isinstance(error, str), f"{name}: {error}"
        assert error.startswith("[F140] cannot "), f"{name}: {error}"
    assert "must be writable" in found["record in a read-only file"]
    assert "copy" in found["replay with a log in a locked folder"]
    assert "cannot make the folder" in found["new folder in a locked folder"]


def test_the_wait_for_other_processes_is_bounded():
    assert 1 <= BUSY_SECONDS <= 60
