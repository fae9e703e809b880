"""The command line: exit statuses, one line for a mistake, and input that cannot be used or trusted."""

import argparse
import io
import json
import os
import runpy
import sys
from pathlib import Path

import pytest

import factcheck
from factcheck import errors
from factcheck.cli import check, main, options
from factcheck.config import load_settings
from factcheck.errors import (
    ConfigError,
    FactcheckError,
    InputError,
    MissingExtraError,
    PluginError,
    UnknownNameError,
    UserError,
)

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
LOCAL = ("numpy", "rank_bm25", "pint", "Stemmer")


def need_local():
    for module in LOCAL:
        pytest.importorskip(module)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Run where no factcheck.toml is, with no setting in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("FACTCHECK_CONFIG", "FACTCHECK_PLUGINS", "FACTCHECK_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answer(tmp_path):
    path = tmp_path / "answer.md"
    path.write_text("supported\ncontradicted\n", encoding="utf-8")
    return path


def by_label(subject, shown, findings):
    """Judge a claim by what it says: the name of a label, or a failure."""
    if subject.text == "error":
        raise ValueError("x")
    return FAKES["judgement"](subject.text, subject, shown)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command on a pipeline in memory: (status, stdout, stderr)."""

    def run(*arguments, **settings):
        checker = FAKES["fact_checker"](
            judge=by_label, retriever=lambda q, k: FAKES["passages"]("one", "two"), settings=settings
        )
        monkeypatch.setattr(check, "checker_from", lambda args: checker)
        status = main.main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


def one_line(shown):
    return shown.startswith("factcheck: [F") and shown.count("\n") == 1 and shown.endswith("\n")


class TestCheck:
    def test_text_is_the_default(self, run, answer):
        status, out, err = run("check", answer)
        assert (status, err) == (0, "")
        assert out.startswith("2 claims: 1 supported, 1 contradicted; 1 flagged (contradicted).\n")
        assert "x contradicted  risk 0.90  FLAGGED  [10:22]" in out

    def test_json(self, run, answer):
        status, out, _ = run("check", answer, "--format", "json", "--question", "why?")
        body = json.loads(out)
        assert status == 0
        assert (body["schema"], body["policy"], body["flagged"]) == ("factcheck.check/1", "contradicted", ["answer.c2"])
        assert body["report"]["answer"] == {
            "id": "answer",
            "question": "why?",
            "text": "supported\ncontradicted\n",
            "meta": {},
        }
        assert factcheck.AnswerReport.model_validate(body["report"])

    def test_markdown(self, run, answer):
        assert run("check", answer, "--format", "markdown")[1].startswith("# Fact check\n")

    def test_an_empty_answer(self, run, tmp_path):
        (tmp_path / "empty").write_bytes(b"")
        status, out, _ = run("check", tmp_path / "empty", "--fail-on", "unsupported")
        assert status == 0
        assert out.startswith("0 claims: the answer holds nothing that could be checked.")

    @pytest.mark.parametrize(
        ("text", "conditions", "status"),
        [
            ("supported", ["contradicted"], 0),
            ("contradicted", [], 0),
            ("contradicted", ["contradicted"], 1),
            ("contradicted", ["conflicting"], 0),
            ("not_enough_evidence", ["contradicted"], 0),
            ("not_enough_evidence", ["unsupported"], 1),
            ("conflicting", ["unsupported"], 0),
            ("conflicting", ["unsupported", "conflicting"], 1),
            ("contradicted", ["risk>=0.95"], 0),
            ("contradicted", ["risk>=0.9"], 1),
            ("contradicted", ["risk"], 1),
            ("error\nsupported", [], 0),
            ("error", [], 3),
            ("error", ["error"], 1),
            ("error", ["contradicted"], 3),
            ("error\ncontradicted", ["contradicted"], 1),
        ],
    )
    def test_fail_on(self, run, tmp_path, text, conditions, status):
        (tmp_path / "a.txt").write_text(text)
        flags = [flag for condition in conditions for flag in ("--fail-on", condition)]
        found, out, err = run("check", tmp_path / "a.txt", *flags)
        assert found == status
        assert out.startswith(f"{len(text.split())} claim")
        assert (err != "") is (status == 3)
        if status == 3:
            assert one_line(err)
            assert ("it is open whether --fail-on is met" in err) is bool(conditions)

    def test_an_answer_of_which_nothing_could_be_checked_is_no_success(self, run, tmp_path):
        (tmp_path / "a.txt").write_text("error\nerror")
        status, out, err = run("check", tmp_path / "a.txt")
        assert (status, out.startswith("2 claims: 2 error;")) == (3, True)
        assert "none of the 2 claims could be checked: " in err
        assert "judge 't' failed on claim a.c" in err

    def test_an_unknown_condition_names_all_that_are_known(self, run, answer):
        status, out, err = run("check", answer, "--fail-on", "conflict")
        assert (status, out) == (2, "")
        assert one_line(err)
        assert "Did you mean 'conflicting'?" in err
        assert "Known: conflicting, contradicted, error, risk, risk>=T, unsupported." in err


class TestInput:
    def test_standard_input(self, run, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"supported\n")))
        status, out, _ = run("check", "-", "--format", "json")
        assert status == 0
        assert json.loads(out)["report"]["answer"]["id"] == "stdin"

    def test_a_byte_order_mark_is_no_text(self, run, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfsupported")
        body = json.loads(run("check", tmp_path / "a.txt", "--format", "json")[1])
        assert body["report"]["answer"]["text"] == "supported"

    def test_line_ends_are_the_answers_own(self, run, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"supported\r\ncontradicted")
        body = json.loads(run("check", tmp_path / "a.txt", "--format", "json")[1])
        assert body["report"]["claims"][1]["span"] == [11, 23]

    @pytest.mark.parametrize(
        ("name", "data", "said"),
        [
            ("missing.txt", None, "cannot read '{}': No such file or directory."),
            (".", None, "cannot read '{}': Is a directory."),
            ("latin.txt", b"supported \xb5g", "'{}' is not UTF-8: bad byte at offset 10. Save it as UTF-8"),
        ],
    )
    def test_a_file_that_cannot_be_used(self, run, tmp_path, name, data, said):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        status, out, err = run("check", path)
        assert (status, out) == (2, "")
        assert one_line(err)
        assert err.startswith(f"factcheck: [F120] {said.format(path)}")

    def test_bad_bytes_on_standard_input(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff")))
        with pytest.raises(InputError, match="'standard input' is not UTF-8: bad byte at offset 0"):
            check.read_text("-")

    def test_standard_input_that_is_closed(self, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(InputError, match="it is closed"):
            check.read_text("-")

    def test_arguments_that_are_no_utf_8(self, run, tmp_path):
        path = tmp_path / os.fsdecode(b"\xff.txt")
        path.write_text("supported")
        status, out, _ = run("check", path, "--question", os.fsdecode(b"why\xff"), "--format", "json")
        assert status == 0
        answer = json.loads(out)["report"]["answer"]
        assert (answer["id"], answer["question"]) == ("?", "why?")

    def test_a_file_of_nothing_but_a_suffix_has_an_id(self, run, tmp_path):
        (tmp_path / ".txt").write_text("supported")
        assert json.loads(run("check", tmp_path / ".txt", "--format", "json")[1])["report"]["answer"]["id"] == ".txt"

    @pytest.mark.parametrize("form", ["text", "markdown", "json"])
    def test_hostile_text_does_not_reach_the_terminal(self, run, tmp_path, form):
        (tmp_path / "a.txt").write_text("supported\n\x1b[31m\u202e|<b>\n", encoding="utf-8")
        checker = FAKES["fact_checker"]()
        assert checker.check((tmp_path / "a.txt").read_text()).accounting.extracted == 2
        check_checker = argparse.Namespace(
            file=str(tmp_path / "a.txt"), question="", format=form, fail_on=[], dry_run=False
        )
        buffer = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(check, "checker_from", lambda args: checker)
            patch.setattr(sys, "stdout", buffer)
            assert check.run(check_checker) == 0
        assert "\x1b" not in buffer.getvalue()
        assert "\u202e" not in buffer.getvalue()


class TestPipelineOptions:
    def parse(self, *arguments):
        parser = argparse.ArgumentParser()
        options.add_pipeline_options(parser)
        return parser.parse_args(arguments)

    def test_flags_become_settings(self):
        args = self.parse(
            *("--corpus", "a", "--corpus", "b", "--retriever", "r", "--decomposer", "d", "--query-writer", "w"),
            *(
                "--judge",
                "j",
                "--checker",
                "c",
                "--policy",
                "risk",
                "-k",
                "3",
                "--query-deadline",
                "1.5",
                "--seed",
                "7",
            ),
        )
        assert options.overrides(args) == {
            "corpora": ["a", "b"],
            "retrievers": ["r"],
            "decomposer": "d",
            "query_writer": "w",
            "judge": "j",
            "checkers": ["c"],
            "policy": "risk",
            "k": 3,
            "query_deadline": 1.5,
            "seed": 7,
        }

    def test_models_by_role_and_their_server(self):
        args = self.parse("--model", "m", "--model", "judge=org/j=2", "--base-url", "http://h/v1", "--key-env", "K")
        assert options.overrides(args) == {
            "models": {
                "default": {"model": "m", "base_url": "http://h/v1", "key_env": "K"},
                "judge": {"model": "org/j=2"},
            }
        }
        assert options.overrides(self.parse("--model", "org/m=2"))["models"] == {"default": {"model": "org/m=2"}}

    def test_flags_of_models_go_over_the_tables_of_the_file_key_by_key(self, tmp_path):
        (tmp_path / "f.toml").write_text('[models.default]\nmodel = "a"\nbase_url = "http://h/v1"\nseed = 5\n')
        args = self.parse("--config", str(tmp_path / "f.toml"), "--model", "b", "--model", "judge=c")
        found = load_settings(args.config, options.overrides(args)).models
        assert found == {"default": {"model": "b", "base_url": "http://h/v1", "seed": 5}, "judge": {"model": "c"}}

    def test_ledger_budget_and_the_rest(self):
        args = self.parse(
            *(
                "--ledger",
                "l",
                "--replay",
                "--max-usd",
                "1.5",
                "--max-calls",
                "9",
                "--max-tokens",
                "99",
                "--deadline",
                "60",
            ),
            *("--prices", "p", "--prompts", "d", "--graded-model", "g", "--domains", "nice.org.uk, who.int"),
            *("--concurrency", "4", "--workers", "0"),
        )
        assert options.overrides(args) == {
            "ledger": Path("l"),
            "replay": True,
            "max_usd": 1.5,
            "max_calls": 9,
            "max_tokens": 99,
            "deadline": 60.0,
            "prices": Path("p"),
            "prompts": Path("d"),
            "graded_model": "g",
            "domains": ["nice.org.uk", "who.int"],
            "concurrency": 4,
            "workers": 0,
        }

    def test_what_is_not_given_is_left_to_the_settings_file(self):
        assert options.overrides(self.parse()) == {}
        assert options.overrides(self.parse("--seed", "0")) == {"seed": 0}

    def test_a_settings_file_and_flags_over_it(self, tmp_path, monkeypatch):
        need_local()
        (tmp_path / "other.toml").write_text('k = 5\nseed = 3\npolicy = "unsupported"\n')
        given = options.checker_from(self.parse("--config", str(tmp_path / "other.toml"), "--seed", "4"))
        assert (given.settings.k, given.settings.seed, str(given.policy)) == (5, 4, "unsupported")
        monkeypatch.setenv("FACTCHECK_CONFIG", str(tmp_path / "other.toml"))
        assert options.checker_from(self.parse()).settings.k == 5
        (tmp_path / "own.toml").write_text("k = 6\n")
        assert options.checker_from(self.parse("--config", str(tmp_path / "own.toml"))).settings.k == 6

    def test_a_plugin_may_be_left_out_unless_the_run_needs_it(self):
        need_local()
        assert options.checker_from(self.parse()).plugins.names("primitive")
        assert options.checker_from(self.parse("--no-plugin", "report")).plugins.names("primitive") == []
        with pytest.raises(UnknownNameError, match=r"Plugin 'clinical' .* is blocked: blocked by name \(--no-plugin\)"):
            options.checker_from(self.parse("--no-plugin", "clinical"))

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (["--judge", "evidenc"], "no judge named 'evidenc'. Did you mean 'evidence'?"),
            (["--decomposer", "sentence"], "Did you mean 'sentences'?"),
            (["--query-writer", "term"], "Did you mean 'terms'?"),
            (["--retriever", "bm52"], "Did you mean 'bm25'?"),
            (["--checker", "clinical/dosin"], "Did you mean 'clinical/dosing'?"),
            (["--corpus", "clinical-start"], "Did you mean 'clinical-starter'?"),
            (["--policy", "contradict"], "Did you mean 'contradicted'?"),
            (["--no-plugin", "clinica"], "Did you mean 'clinical'?"),
            (["-k", "0"], "'k'"),
            (["--query-deadline", "-1"], "'query_deadline'"),
            (["--query-deadline", "nan"], "'query_deadline'"),
            (["--config", "nowhere.toml"], "cannot read the settings file nowhere.toml"),
        ],
    )
    def test_a_mistake_is_one_line_with_the_nearest_name(self, flags, said, answer, capsys):
        need_local()
        assert main.main(["check", str(answer), *flags]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert one_line(err)
        assert said in err


TREE = [FactcheckError]
for kind in TREE:
    TREE += [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]


def an_error(kind):
    if issubclass(kind, UnknownNameError):
        return kind("thing", "x", ["y"])
    if issubclass(kind, MissingExtraError):
        return kind("thing", "package", "local")
    owner = {"plugin": "p"} if issubclass(kind, PluginError) else {}
    return kind("what\nwhich.", hint="How\nto mend.", **owner)


class TestExitStatus:
    def raising(self, monkeypatch, error):
        def fail(args):
            raise error

        monkeypatch.setattr(check, "run", fail)
        return main.main(["check", "x"])

    @pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
    def test_each_error_is_one_line_and_a_status(self, kind, monkeypatch, capsys):
        error = an_error(kind)
        status = self.raising(monkeypatch, error)
        assert status == (2 if issubclass(kind, (UserError, PluginError)) else 3)
        out, err = capsys.readouterr()
        assert (out, err) == ("", f"factcheck: {error}\n")
        assert one_line(err)

    def test_an_error_cannot_command_the_terminal(self, monkeypatch, capsys):
        self.raising(monkeypatch, ConfigError("\x1b[2Jgone \u202e"))
        assert capsys.readouterr().err == "factcheck: [F110] \\u001b[2Jgone \\u202e\n"

    @pytest.mark.parametrize("error", [RuntimeError("x"), ExceptionGroup("two", [ValueError("x")]), RecursionError()])
    def test_a_defect_shows_its_traceback_and_is_no_condition_that_was_met(self, error, monkeypatch, capsys):
        assert self.raising(monkeypatch, error) == 3
        err = capsys.readouterr().err
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith("factcheck: stopped by a defect in factcheck or a plugin;")

    def test_an_interrupt(self, monkeypatch, capsys):
        assert self.raising(monkeypatch, KeyboardInterrupt()) == 3
        assert capsys.readouterr().err == "factcheck: interrupted.\n"

    def test_no_command_is_a_mistake(self, capsys):
        assert main.main([]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "COMMAND" in err

    def test_an_unknown_command_names_the_nearest(self, capsys):
        assert main.main(["chekc", "x"]) == 2
        err = capsys.readouterr().err
        assert one_line(err)
        assert "no command named 'chekc'. Did you mean 'check'?" in err

    @pytest.mark.parametrize("arguments", ["check", "check x --format xml", "--nonsense", "check x -k a"])
    def test_a_wrong_call(self, arguments, capsys):
        with pytest.raises(SystemExit) as caught:
            main.main(arguments.split())
        assert caught.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert one_line(err)
        assert err.endswith(" --help\n")

    def test_version(self, capsys):
        assert main.main(["--version"]) == 0
        assert capsys.readouterr().out == f"factcheck {factcheck.__version__}\n"
