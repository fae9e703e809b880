"""Checkers in processes of their own: the same findings, and nothing lost when a process fails."""

import os
import runpy
import signal
import sys
from pathlib import Path

import anyio
import pytest

from factcheck.assembly import DEFAULT_CHECKERS
from factcheck.checking import CheckerProcesses
from factcheck.judge import judge_claim
from factcheck.plugins import Plugins
from factcheck.together import together

pytest.importorskip("pint")
pytest.importorskip("Stemmer")
SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
CLAIM = FAKES["claim"]("Amoxicillin is given at 500 mg twice daily for adults.")
SHOWN = FAKES["evidence"]("For adults, amoxicillin is given at 500 mg three times daily.", "\ud800 Nothing else.")
TABLES = {name: {} for name in DEFAULT_CHECKERS}


@pytest.fixture
def processes():
    found = CheckerProcesses(TABLES, ["clinical"], 2)
    yield found
    found.close()


def ask(processes, times=1):
    return anyio.run(lambda: together(range(times), lambda _: processes.check(CLAIM, SHOWN)))


def test_they_find_what_the_checkers_find_here(processes):
    plugins = Plugins()
    (found,) = ask(processes)
    assert set(found) == set(DEFAULT_CHECKERS)
    for name in DEFAULT_CHECKERS:
        assert found[name] == plugins.create("checker", name).check(CLAIM, SHOWN)
    assert any(finding.relation == "differs" for finding in found["clinical/dosing"])


def test_many_calls_share_the_processes_and_several_event_loops_do(processes):
    first = ask(processes, 50)
    assert all(found == first[0] for found in first)
    assert ask(processes) == [first[0]]
    assert len(processes._desk._processes) == 2


def test_a_process_that_dies_costs_no_findings(processes):
    ask(processes)
    for process in processes._desk._processes:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert ask(processes, 20) == [{}] * 20

    async def judged():
        checkers = {name: Plugins().create("checker", name) for name in ("clinical/dosing",)}
        judge = FAKES["SimpleNamespace"](judge=FAKES["plainly"])
        return await judge_claim(CLAIM, SHOWN, judge=judge, judge_name="j", checkers=checkers, processes=processes)

    assert {finding.checker for finding in anyio.run(judged).findings} == {"clinical/dosing"}


def test_what_cannot_be_made_there_is_left_to_the_caller():
    broken = CheckerProcesses({"no/such": {}}, ["clinical"], 1)
    assert ask(broken, 3) == [{}] * 3
    broken.close()


def test_after_the_end_nothing_waits(processes):
    ask(processes)
    processes.close()
    assert ask(processes, 3) == [{}] * 3


def test_a_folder_with_modules_of_its_own_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "pydantic.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [place for place in sys.path if place])
    found = CheckerProcesses(TABLES, ["clinical"], 1)
    assert set(ask(found)[0]) == set(DEFAULT_CHECKERS)
    found.close()
    assert not (tmp_path / "ran").exists()


LOUD = """
from factcheck.hookspecs import hookimpl

class Loud:
    portable = True
    def check(self, claim, evidence):
        print('{"number": 1, "results": [{}]}', flush=True)
        return []

@hookimpl
def factcheck_register_checkers(register):
    register("loud", Loud)
"""


def test_what_a_checker_prints_is_no_reply(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    SITE["Site"](folder).install("loud", LOUD)
    found = CheckerProcesses({"loud": {}, **TABLES}, ["loud", "clinical"], 1)
    first = ask(found, 10)
    found.close()
    assert all(set(item) == {"loud", *DEFAULT_CHECKERS} for item in first)
    assert first[0]["clinical/dosing"] == first[9]["clinical/dosing"] != []
