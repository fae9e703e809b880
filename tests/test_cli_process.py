"""The command as a process: what it does to streams and signals, how quickly it starts, and the command prompts."""

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import factcheck
from factcheck.cli import main, prompts

ROOT = Path(__file__).resolve().parents[1]
LOCAL = ("numpy", "rank_bm25", "pint", "Stemmer")
HEAVY = ("numpy", "pint", "rank_bm25", "Stemmer", "selectolax", "torch", "faiss", "spacy", "sentence_transformers")


@pytest.fixture
def answer(tmp_path):
    path = tmp_path / "answer.md"
    path.write_text("one\ntwo\n", encoding="utf-8")
    return path


def one_line(shown):
    return shown.startswith("factcheck: [F") and shown.count("\n") == 1 and shown.endswith("\n")


def heed_interrupts():
    """Undo what a shell does to a process in the background, which is to ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class TestProcess:
    def script(self, tmp_path, judge="FAKES['plainly']"):
        """Write a program that is the command on a pipeline in memory."""
        path = tmp_path / "command.py"
        text = f"""
            import os, runpy, sys, time
            from factcheck.cli import check, main
            FAKES = runpy.run_path({str(Path(__file__).with_name("pipeline_fakes.py"))!r})
            check.checker_from = lambda args: FAKES["fact_checker"](judge={judge})
            sys.exit(main.main())
        """
        path.write_text(textwrap.dedent(text))
        return [sys.executable, str(path), "check"]

    def test_an_interrupt_ends_a_run_that_hangs(self, tmp_path, answer):
        # One write, because several claims are judged at a time.
        line = self.script(tmp_path, judge="lambda *_: (os.write(2, b'judging\\n'), time.sleep(3))[2:]")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started = time.monotonic()
        with subprocess.Popen([*line, str(answer)], preexec_fn=heed_interrupts, **pipes) as process:
            assert process.stderr.readline() == "judging\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 3
        assert out == ""
        assert err.endswith("factcheck: interrupted.\n")
        assert "Traceback" not in err
        assert time.monotonic() - started < 30

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
    def test_a_full_disk_is_no_condition_that_was_met(self, tmp_path, answer):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [*self.script(tmp_path), str(answer)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
            )
        assert done.returncode == 3
        assert done.stderr == "factcheck: stopped by the system: [Errno 28] No space left on device.\n"

    @pytest.mark.parametrize("lines", [1, 20_000], ids=["little output", "much output"])
    def test_a_reader_that_has_gone(self, tmp_path, lines):
        (tmp_path / "long.txt").write_text("same line\n" * lines)
        line = [*self.script(tmp_path), str(tmp_path / "long.txt")]
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(write)
        assert (done.returncode, done.stderr) == (3, "")

    def test_help_for_a_reader_that_has_gone(self):
        read, write = os.pipe()
        os.close(read)
        line = [sys.executable, "-m", "factcheck", "--help"]
        # Without a buffer argparse itself passes over what it cannot write.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, env=environment)
        os.close(write)
        assert (done.returncode, done.stderr) == (3, "")

    def test_a_terminal_that_lacks_a_sign(self, tmp_path):
        (tmp_path / "a.txt").write_text("5 µg — 成人", encoding="utf-8")
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(
            [*self.script(tmp_path), str(tmp_path / "a.txt")],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "5 \\xb5g \\u2014 \\u6210\\u4eba" in done.stdout

    def test_standard_input_that_is_closed(self, tmp_path):
        line = " ".join([*self.script(tmp_path), "-", "<&-"])
        done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert one_line(done.stderr)

    def test_the_whole_command_offline(self, tmp_path):
        for module in LOCAL:
            pytest.importorskip(module)
        text = (
            "For a 15 kg child, ibuprofen is dosed at 5 to 10 mg per kg. You can repeat the dose every 3 to 4 hours.\n"
        )
        line = [sys.executable, "-m", "factcheck", "check", "-", "--corpus", "tied-pairs", "--format", "json"]
        line += ["--fail-on", "contradicted", "--question", "How much ibuprofen for a 15 kg child, and how often?"]
        done = subprocess.run(line, input=text.encode(), capture_output=True, cwd=tmp_path, timeout=120)
        assert (done.returncode, done.stderr) == (1, b"")
        body = json.loads(done.stdout)
        assert [v["label"] for v in body["report"]["verdicts"]][1] == "contradicted"
        assert body["flagged"] == ["stdin.c02"]


class TestPrompts:
    def test_list(self, capsys):
        assert main.main(["prompts", "list"]) == 0
        rows = capsys.readouterr().out.splitlines()
        assert any(row.startswith("judge.evidence.v1 ") for row in rows)

    def test_list_as_json(self, capsys):
        assert main.main(["prompts", "list", "--format", "json"]) == 0
        body = json.loads(capsys.readouterr().out)
        assert body["schema"] == "factcheck.prompts/1"
        (row,) = [p for p in body["prompts"] if p["id"] == "judge.evidence.v1"]
        assert set(row) == {"id", "stage", "purpose", "inputs", "sha256", "origin"}
        assert row["inputs"] == ["question", "context", "claim", "passages"]

    def test_show(self, capsys):
        assert main.main(["prompts", "show", "judge.evidence.v1"]) == 0
        shown = capsys.readouterr().out
        assert "{{claim}}" in shown
        assert "(the package, sha256 " in shown

    def test_show_as_json(self, capsys):
        assert main.main(["prompts", "show", "judge.evidence.v1", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["stage"] == "judge"

    def test_a_folder_takes_precedence(self, capsys, tmp_path):
        source = (ROOT / "prompts" / "judge.evidence.v1.md").read_text(encoding="utf-8")
        (tmp_path / "judge.evidence.v1.md").write_text(source + "More.\n", encoding="utf-8")
        assert main.main(["prompts", "show", "judge.evidence.v1", "--folder", str(tmp_path)]) == 0
        shown = capsys.readouterr().out
        assert shown.endswith("More.\n")
        assert f"({tmp_path}, sha256 " in shown

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["show"], "needs the id of a prompt"),
            (["show", "judge.evidnce.v1"], "Did you mean 'judge.evidence.v1'?"),
            (["list", "judge.evidence.v1"], "takes no id"),
            (["list", "--folder", "nowhere"], "is no folder of prompts"),
        ],
    )
    def test_a_mistake_is_one_line(self, arguments, said, capsys):
        assert main.main(["prompts", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert one_line(err)
        assert said in err

    def test_its_arguments_are_added(self):
        parser = argparse.ArgumentParser()
        prompts.add_arguments(parser)
        assert parser.parse_args(["list"]).format == "text"


def measured(code, repeats=5):
    """Return the least CPU seconds of several processes that run the code, which a busy machine disturbs little."""
    best = float("inf")
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, *code], capture_output=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


class TestStart:
    def test_help_is_quick(self):
        assert measured(["-m", "factcheck", "--help"]) < 0.25

    def test_importing_the_package_is_quick(self):
        assert measured(["-c", "import factcheck"]) - measured(["-c", "pass"]) < 0.06

    @pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["prompts", "--help"], ["--version"]])
    def test_help_imports_nothing_heavy(self, arguments):
        code = (
            "import sys; from factcheck.cli.main import main\n"
            f"try: main({arguments})\n"
            "except SystemExit: pass\n"
            "print(' '.join(sys.modules), file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        loaded = {name.partition(".")[0] for name in done.stderr.split()}
        assert "factcheck" in loaded
        assert not loaded & {*HEAVY, "pydantic", "anyio", "httpx", "pluggy"}

    def test_the_pipeline_imports_nothing_of_the_extras(self):
        code = "import sys, factcheck; factcheck.FactChecker; print(' '.join(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        loaded = {name.partition(".")[0] for name in done.stdout.split()}
        assert "pydantic" in loaded
        assert not loaded & set(HEAVY)

    def test_help_names_every_command_and_says_what_it_is(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main.main(["--help"])
        shown = capsys.readouterr().out
        assert caught.value.code == 0
        assert all(f"  {name}" in shown for name in main.COMMANDS)
        assert "medical advice" in shown

    @pytest.mark.parametrize("name", main.COMMANDS)
    def test_each_command_has_its_help(self, name, capsys):
        with pytest.raises(SystemExit) as caught:
            main.main([name, "--help"])
        assert caught.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: factcheck {name} ")
        module = importlib.import_module(f"factcheck.cli.{name}")
        assert callable(module.add_arguments)
        assert callable(module.run)


class TestPublicNames:
    def test_they_are_sorted_and_importable(self):
        assert list(factcheck.__all__) == sorted(factcheck.__all__)
        for name in factcheck.__all__:
            assert getattr(factcheck, name) is not None
        assert {*factcheck.__all__, "__version__"} <= set(dir(factcheck))

    def test_another_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="no attribute 'FactCheck'"):
            factcheck.FactCheck  # noqa: B018
