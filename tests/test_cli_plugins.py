"""The command factcheck plugins: tables, JSON, exit statuses, and how quickly it starts."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from factcheck.cli import plugins as command
from factcheck.cli.main import build_parser
from factcheck.errors import UnknownNameError
from factcheck.registry import PLUGIN_API
from factcheck.schema import ROLES

ROOT = Path(__file__).resolve().parents[1]
SITE = runpy.run_path(str(Path(__file__).with_name("plugin_site.py")))
GOOD = SITE["GOOD"]
site = SITE["site"]

HEAVY = ("numpy", "pint", "torch", "faiss", "spacy", "rank_bm25", "sentence_transformers", "Stemmer", "selectolax")


def run_command(capsys, *arguments: str) -> tuple[int, str]:
    args = build_parser("plugins").parse_args(["plugins", *arguments])
    status = command.run(args)
    return status, capsys.readouterr().out


class TestCommand:
    @pytest.fixture(autouse=True)
    def _install(self, site):
        site.install("good", "print('hello from a plugin')\n" + GOOD.replace("{name}", "good"))
        self.site = site

    def entry(self, output: str, name: str) -> dict:
        (found,) = [p for p in json.loads(output)["plugins"] if p["name"] == name]
        return found

    def test_list_json(self, capsys):
        status, output = run_command(capsys, "list", "--format", "json")
        assert status == 0
        assert json.loads(output)["schema"] == "factcheck.plugins/1"
        assert self.entry(output, "good") == {
            "name": "good",
            "dist": "factcheck-good",
            "version": "1.2",
            "status": "loaded",
            "first_party": False,
            "api": [1, 0],
            "provides": {"retrievers": ["good"]},
            "hooks": ["factcheck_register_retrievers"],
            "needs": [],
            "missing": [],
            "error": "",
        }

    def test_list_is_the_default_and_survives_the_broken(self, capsys):
        self.site.install("bad", "raise ImportError('what a pity \\x1b[31m')\n")
        status, output = run_command(capsys)
        assert status == 0
        assert re.search(r"^good +1\.2 +loaded +retrievers: good$", output, re.MULTILINE)
        assert re.search(r"^bad +1\.2 +failed +.*what a pity", output, re.MULTILINE)
        assert "\x1b" not in output

    def test_list_by_role(self, capsys):
        _, output = run_command(capsys, "list", "--role", "judge", "--format", "json")
        assert "good" not in [p["name"] for p in json.loads(output)["plugins"]]

    def test_no_plugin(self, capsys):
        for arguments in (
            ["--no-plugin", "good", "list", "--format", "json"],
            ["list", "--no-plugin=good", "--format=json"],
        ):
            _, output = run_command(capsys, *arguments)
            assert self.entry(output, "good")["status"] == "blocked"

    def test_doctor_is_content_with_the_good(self, capsys):
        status, output = run_command(capsys, "doctor", "good", "--format", "json")
        entry = self.entry(output, "good")
        assert status == 0
        assert json.loads(output)["schema"] == "factcheck.plugins.doctor/1"
        assert json.loads(output)["plugin_api"] == list(PLUGIN_API)
        assert [(c["role"], c["name"], c["settings"]) for c in entry["components"]] == [("retriever", "good", None)]

    def test_doctor_shows_traceback_and_fails(self, capsys):
        self.site.install("bad", "def boom():\n    raise ImportError('pity')\nboom()\n")
        status, output = run_command(capsys, "doctor")
        assert status == 1
        assert "in boom" in output
        status, output = run_command(capsys, "doctor", "good")
        assert status == 0
        assert "pity" not in output
        assert "takes no settings" in output

    def test_doctor_shows_the_settings(self, capsys):
        self.site.install(
            "set",
            GOOD.replace("{name}", "set").replace(
                "class Echo:\n",
                "from pydantic import BaseModel\nclass Echo:\n    class Settings(BaseModel, extra='forbid'):\n"
                "        size: int = 7\n",
            ),
        )
        _, output = run_command(capsys, "doctor", "set", "--format", "json")
        assert self.entry(output, "set")["components"][0]["settings"]["properties"]["size"]["default"] == 7
        assert '"default": 7' in run_command(capsys, "doctor", "set")[1]

    def test_doctor_finds_a_factory_that_cannot_be_imported(self, capsys):
        self.site.install("ghost", GOOD.replace("{name}", "ghost").replace(", Echo)", ", 'no_such_module_here:X')"))
        assert run_command(capsys, "list")[0] == 0
        status, output = run_command(capsys, "doctor", "ghost")
        assert status == 1
        assert "no_such_module_here" in output

    def test_doctor_names_what_is_missing_without_failing(self, capsys):
        self.site.install(
            "lean", GOOD.replace("{name}", "lean").replace(", Echo)", ", Echo, needs=('no_such_thing',))")
        )
        status, output = run_command(capsys, "doctor", "lean")
        assert status == 0
        assert "missing: no_such_thing" in output
        assert "(missing: no_such_thing)" in run_command(capsys, "list")[1]

    def test_doctor_of_an_unknown_plugin(self, capsys):
        with pytest.raises(UnknownNameError, match="Did you mean 'good'"):
            run_command(capsys, "doctor", "god")


STARTUP = f"""
import sys
sys.path[:0] = {[str(ROOT), str(ROOT / "plugins")]!r}
from factcheck.cli.main import main
status = main(sys.argv[1:])
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"imported {{heavy}}" if heavy else status)
"""


@pytest.mark.parametrize("arguments", [["list"], ["doctor"], ["list", "--format", "json"]])
def test_start_up_is_quick_and_light(arguments):
    # Processor time and not the clock: the budget is for a machine that does nothing else.
    seconds = []
    for _ in range(5):
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-c", STARTUP, "plugins", *arguments], capture_output=True, text=True, check=False
        )
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        assert done.returncode == 0, done.stderr
    assert min(seconds) < 0.25, seconds


def test_roles_of_the_command_are_the_roles():
    assert command.ROLE_NAMES == ROLES
