"""The three ways in which the project is run: a wheel, an editable installation, a bare checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.wheel

ANSWER = "Methotrexate for rheumatoid arthritis is taken once a day.\n"


def run(*command, cwd, check=True, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "FACTCHECK_PLUGINS")}
    done = subprocess.run(command, cwd=cwd, env={**env, **environment}, capture_output=True, text=True, timeout=600)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a copy of the files under version control, with nothing that a build has left."""
    target = tmp_path_factory.mktemp("copy") / "factcheck-src"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "*.egg-info", "__pycache__", "build", "dist", ".*_cache", ".hypothesis"
    )
    shutil.copytree(ROOT, target, ignore=ignored)
    return target


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    source = tmp_path_factory.mktemp("build") / "src"
    shutil.copytree(checkout, source)
    built = run(sys.executable, "-m", "build", "--outdir", str(out), str(source), cwd=out, check=False)
    if built.returncode and "No matching distribution" in built.stdout + built.stderr:
        pytest.skip("no package index is reachable to build in isolation")
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return next(out.glob("*.whl"))


def environment(folder):
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def exercise(python, cwd, **env):
    """Use prompts, corpora and plugins from a folder that has nothing to do with the checkout."""
    command = (str(python), "-m", "factcheck")
    prompts = json.loads(run(*command, "prompts", "list", "--format", "json", cwd=cwd, **env).stdout)
    corpora = run(*command, "corpus", "list", cwd=cwd, **env).stdout
    plugins = json.loads(run(*command, "plugins", "list", "--format", "json", cwd=cwd, **env).stdout)
    (cwd / "answer.md").write_text(ANSWER)
    checked = run(
        *command, "check", "answer.md", "--format", "json", "--fail-on", "contradicted", cwd=cwd, check=False, **env
    )
    assert {prompt["id"] for prompt in prompts["prompts"]} >= {"judge.evidence.v1", "decompose.atomic.v1"}
    assert "clinical-starter" in corpora
    assert "tied-pairs" in corpora
    assert {p["name"] for p in plugins["plugins"] if p["status"] == "loaded"} >= {
        "bm25",
        "evidence",
        "sentences",
        "clinical",
    }
    report = json.loads(checked.stdout)["report"]
    assert report["accounting"]["extracted"] == 1
    assert report["evidence"][0]["passages"]
    assert checked.returncode == int(bool(report["accounting"]["contradicted"]))
    return report


def test_wheel(wheel, tmp_path):
    scripts = environment(tmp_path / "env")
    run(scripts / "python", "-m", "pip", "install", "-q", f"{wheel}[local]", cwd=tmp_path)
    work = tmp_path / "elsewhere"
    work.mkdir()
    report = exercise(scripts / "python", work)
    assert report["accounting"]["contradicted"] == 1
    listed = run(scripts / "python", "-m", "pip", "list", cwd=work).stdout.lower()
    assert not any(name in listed.split() for name in ("torch", "spacy", "faiss-cpu", "sentence-transformers"))


def test_wheel_alone_names_the_missing_extra(wheel, tmp_path):
    scripts = environment(tmp_path / "env")
    run(scripts / "python", "-m", "pip", "install", "-q", str(wheel), cwd=tmp_path)
    (tmp_path / "answer.md").write_text(ANSWER)
    done = run(scripts / "factcheck", "check", "answer.md", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "pip install 'factcheck[local]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert run(scripts / "factcheck", "corpus", "list", cwd=tmp_path).stdout.count("passages") == 2


def test_editable(checkout, tmp_path):
    scripts = environment(tmp_path / "env")
    run(scripts / "python", "-m", "pip", "install", "-q", "-e", f"{checkout}[local]", cwd=tmp_path)
    work = tmp_path / "elsewhere"
    work.mkdir()
    exercise(scripts / "python", work)
    # Nothing but the packages may become importable: a folder named tests or plugins would shadow the user's own.
    probe = (
        "import importlib.util as u; print([n for n in ('tests', 'plugins', 'corpora', 'prompts') if u.find_spec(n)])"
    )
    assert run(scripts / "python", "-c", probe, cwd=work).stdout.strip() == "[]"


def test_bare_checkout(checkout, tmp_path):
    scripts = environment(tmp_path / "env")
    packages = [
        "anyio",
        "httpx",
        "pluggy",
        "pydantic",
        "tenacity",
        "numpy",
        "pint",
        "PyStemmer",
        "rank-bm25",
        "selectolax",
        "tqdm",
    ]
    run(scripts / "python", "-m", "pip", "install", "-q", *packages, cwd=tmp_path)
    work = tmp_path / "elsewhere"
    work.mkdir()
    exercise(scripts / "python", work, PYTHONPATH=str(checkout))
