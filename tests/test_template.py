"""The template is a real distribution: built, installed into a clean environment, and passing its own tests there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "plugins" / "template"


def run(*command, cwd, check=True):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHONPATH", "FACTCHECK_", "COVERAGE_"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    output = done.stdout + done.stderr
    if check and done.returncode:
        if re.search(r"NewConnectionError|Temporary failure in name resolution|Network is unreachable", output):
            pytest.skip("no package index can be reached")
        pytest.fail(f"{' '.join(map(str, command))} gave {done.returncode}:\n{output[-4000:]}")
    return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A clean virtual environment that holds the core of factcheck and the template, both from wheels."""
    folder = tmp_path_factory.mktemp("template")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wheels, source = folder / "wheels", folder / "source"
    # From a copy: a build leaves folders beside its source, which the next build would pack.
    unwanted = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "docs", "benchmarks")
    shutil.copytree(ROOT, source, ignore=unwanted)
    template_source = source / "plugins" / "template"
    run(
        python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, source, template_source, cwd=folder
    )
    built = sorted(wheels.glob("*.whl"))
    assert [wheel.name.split("-")[0] for wheel in built] == ["factcheck", "factcheck_template"]
    ours, template = built
    run(python, "-m", "pip", "install", "--quiet", ours, f"{template}[test]", cwd=folder)
    return folder, python, template


@pytest.mark.wheel
class TestInstalled:
    def test_its_tests_pass(self, environment):
        folder, python, _ = environment
        done = run(
            python,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            TEMPLATE / "tests",
            "--rootdir",
            folder,
            cwd=folder,
        )
        counts = dict(reversed(pair) for pair in re.findall(r"(\d+) (passed|skipped|failed|error)", done.stdout))
        assert int(counts["passed"]) >= 30, done.stdout
        assert set(counts) <= {"passed", "skipped"}, done.stdout
        assert "needs 'fault timeout'" in done.stdout

    def test_it_is_listed_and_healthy(self, environment):
        folder, python, _ = environment
        done = run(python, "-m", "factcheck", "plugins", "list", "--format", "json", cwd=folder)
        plugins = {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}
        assert plugins["template"]["status"] == "loaded"
        assert plugins["template"]["dist"] == "factcheck-template"
        assert plugins["template"]["first_party"] is False
        done = run(python, "-m", "factcheck", "plugins", "doctor", "template", cwd=folder)
        assert "suffixes" in done.stdout

    def test_it_works_and_can_be_blocked(self, environment):
        folder, python, _ = environment
        notes = folder / "notes"
        notes.mkdir(exist_ok=True)
        (notes / "a.md").write_text("# Warfarin\n\nAvoid aspirin.\n", encoding="utf-8")
        program = (
            "from factcheck import Plugins, Query\n"
            "from factcheck.errors import UnknownNameError\n"
            "query = Query(id='q', claim_id='c', text='aspirin')\n"
            "found = Plugins().create('retriever', 'template', {'folder': 'notes'}).retrieve(query, 3)\n"
            "print([(p.id, p.title, p.text) for p in found])\n"
            "try:\n    Plugins(blocked=['template']).create('retriever', 'template')\n"
            "except UnknownNameError as error:\n    print(error)\n"
        )
        done = run(python, "-c", program, cwd=folder)
        assert "[('a.md#2', 'Warfarin', 'Avoid aspirin.')]" in done.stdout
        assert "is blocked" in done.stdout

    def test_uninstalling_leaves_no_trace(self, environment):
        folder, python, template = environment
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "factcheck-template", cwd=folder)
        done = run(python, "-m", "factcheck", "plugins", "doctor", "template", cwd=folder, check=False)
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", template, cwd=folder)
        assert done.returncode == 2
        assert "no plugin named 'template'" in done.stderr

    def test_the_wheel_holds_what_it_should(self, environment):
        _, _, template = environment
        names = {name for name in zipfile.ZipFile(template).namelist() if ".dist-info/" not in name}
        assert names == {
            "factcheck_template/__init__.py",
            "factcheck_template/py.typed",
            "factcheck_template/retriever.py",
        }


def test_names_follow_the_convention():
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "factcheck-template"
    assert project["entry-points"]["factcheck"] == {"template": "factcheck_template"}
    assert (TEMPLATE / "factcheck_template" / "__init__.py").is_file()


def test_the_hook_module_imports_only_the_hooks():
    text = (TEMPLATE / "factcheck_template" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r"^(?:from|import) (\S+)", text, re.MULTILINE) == ["factcheck.hookspecs"]
