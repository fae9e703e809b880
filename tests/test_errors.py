"""The tree of errors: what is drawn is what there is, each is raised by something, and each prints on one line."""

import inspect
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from factcheck import errors
from factcheck.cli.check import read_text
from factcheck.config import load_settings
from factcheck.corpus import open_corpus
from factcheck.errors import (
    CheckerError,
    ConfigError,
    CorpusError,
    DecomposeError,
    FactcheckError,
    HashMismatchError,
    InputError,
    JudgeError,
    MissingExtraError,
    OutputError,
    PermanentError,
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginIncompatibleError,
    PluginLoadError,
    PromptError,
    RateLimitedError,
    RetrievalError,
    RunError,
    StageError,
    TransientError,
    UnknownNameError,
    UserError,
)
from factcheck.hookspecs import hookimpl
from factcheck.judge import judge_claim
from factcheck.plugins import Plugins
from factcheck.prompting import parse_prompt
from factcheck.retrieve import check_passages
from factcheck.study.run import prepare_folder
from factcheck.testing.fakes import FakeRetriever
from factcheck.verdicts import parse_policy

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))


def subclasses(kind=FactcheckError):
    return [kind, *(each for child in kind.__subclasses__() for each in subclasses(child))]


TREE = [kind for kind in subclasses() if kind.__module__ == errors.__name__]


def hooks(**members):
    @hookimpl
    def factcheck_register_judges(register):
        register("mine", lambda: SimpleNamespace(judge=None), needs=("a_module_that_nobody_has",))

    return SimpleNamespace(factcheck_register_judges=factcheck_register_judges, **members)


def register(plugin, times=1):
    plugins = Plugins(autoload=False)
    for _ in range(times):
        plugins.register(plugin, "mine")
    return plugins


def open_folder(folder, text, **manifest):
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(text)
    if manifest:
        (folder / "manifest.json").write_text(json.dumps({"schema": "factcheck.corpus/1", "name": "tiny", **manifest}))
    return list(open_corpus(str(folder)).passages())


def ask(fault):
    FakeRetriever(fault=fault).retrieve(FAKES["query"](), 1)


def blamed(kind):
    """Raise what a failing component is turned into, which travels as the reason of a judgement."""

    def fail(*_):
        raise ValueError("a\nb")

    judge = SimpleNamespace(judge=fail if kind is JudgeError else FAKES["plainly"])
    checkers = {"k": SimpleNamespace(check=fail)} if kind is CheckerError else {}
    arguments = (FAKES["claim"](), FAKES["evidence"]("x"))
    found = anyio.run(lambda: judge_claim(*arguments, judge=judge, judge_name="j", checkers=checkers))
    assert found.label is None
    assert found.reason.startswith(f"[{kind.code}] ")
    raise kind(found.reason.removeprefix(f"[{kind.code}] "), hint="See the reason.")


def fail_to_split(answer):
    raise ValueError("a\nb")


def undecided(tmp_path, monkeypatch):
    from factcheck.cli import check, main

    checker = FAKES["fact_checker"](judge=lambda *_: None)
    monkeypatch.setattr(check, "checker_from", lambda args: checker)
    (tmp_path / "answer.txt").write_text("One.")
    arguments = ["check", str(tmp_path / "answer.txt"), "--fail-on", "contradicted"]
    check.run(main.build_parser("check").parse_args(arguments))


def throw(error):
    raise error


RAISED = {
    # Bases are raised by nothing of our own; a plugin may raise one.
    **{
        base: lambda base=base: throw(base("what\n and which.", hint="How to mend."))
        for base in (FactcheckError, UserError, StageError, RetrievalError)
    },
    PluginError: lambda: throw(PluginError("what.", plugin="p", hint="How.")),
    ConfigError: lambda: load_settings(None, {"k": 0}),
    UnknownNameError: lambda: parse_policy("contradict", default_threshold=0.5),
    MissingExtraError: lambda: register(hooks()).create("judge", "mine"),
    InputError: lambda: read_text("/nowhere/answer.txt"),
    PromptError: lambda: parse_prompt("judge.md", "", "here"),
    PluginLoadError: lambda: register(SimpleNamespace()),
    PluginConflictError: lambda: register(hooks(), times=2),
    PluginIncompatibleError: lambda: register(hooks(FACTCHECK_PLUGIN_API=(99, 0))),
    PluginContractError: lambda: check_passages(None, 1, "mine"),
    DecomposeError: lambda: FAKES["fact_checker"](decomposer=fail_to_split).check("One."),
    TransientError: lambda: ask("timeout"),
    RateLimitedError: lambda: ask("rate_limited"),
    PermanentError: lambda: ask("error"),
    JudgeError: lambda: blamed(JudgeError),
    CheckerError: lambda: blamed(CheckerError),
}
ROW = '{"_id": "x", "title": "", "text": "Aspirin thins the blood."}\n'
WITH_FOLDER = {
    CorpusError: lambda folder: open_folder(folder, ""),
    HashMismatchError: lambda folder: open_folder(folder, ROW, passages=1, sha256="0" * 64),
    OutputError: lambda folder: (folder.write_text(""), prepare_folder(folder)),
}


def cause(kind, tmp_path, monkeypatch):
    if kind is RunError:
        undecided(tmp_path, monkeypatch)
    elif kind in WITH_FOLDER:
        WITH_FOLDER[kind](tmp_path / "corpus")
    else:
        RAISED[kind]()


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_each_error_is_raised_and_prints_on_one_line_with_its_code(kind, tmp_path, monkeypatch):
    with pytest.raises(kind) as caught:
        cause(kind, tmp_path, monkeypatch)
    assert type(caught.value) is kind
    shown = str(caught.value)
    assert shown.startswith(f"[{kind.code}] ")
    assert shown.splitlines() == [shown]
    assert caught.value.message in shown
    assert shown.endswith(caught.value.hint)


@pytest.mark.parametrize("kind", [k for k in TREE if issubclass(k, UserError)], ids=lambda kind: kind.__name__)
def test_a_mistake_of_the_user_says_how_to_mend_it(kind, tmp_path, monkeypatch):
    with pytest.raises(kind) as caught:
        cause(kind, tmp_path, monkeypatch)
    assert caught.value.hint.strip()


def test_the_tree_that_is_drawn_is_the_tree_that_there_is():
    drawn, parents = {}, {}
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("├─", "  ").replace("└─", "  ").replace("│", " ").split()
        if not words or not words[0].endswith("Error"):
            continue
        depth = line.index(words[0]) // 3
        parents[depth] = words[0]
        drawn[words[0]] = (parents.get(depth - 1), words[1] if len(words) > 1 else "")
    assert drawn.keys() == {kind.__name__ for kind in TREE}
    for kind in TREE:
        parent, code = drawn[kind.__name__]
        assert parent in (None, kind.__base__.__name__)
        assert code in ("", kind.code, "F1..")


def test_codes_are_unique_and_every_class_has_a_docstring():
    codes = [kind.code for kind in TREE]
    assert len(set(codes)) == len(codes)
    assert all(inspect.getdoc(kind) for kind in TREE)


def test_every_class_is_among_those_that_are_raised_above():
    assert set(TREE) <= {*RAISED, *WITH_FOLDER, RunError}
    assert {StageError, RetrievalError, UserError, FactcheckError, RunError} <= set(TREE)


def test_an_unknown_name_names_the_nearest_and_all_that_are_known():
    error = UnknownNameError("judge", "evidenc", ["llm", "evidence"])
    assert str(error) == "[F111] no judge named 'evidenc'. Did you mean 'evidence'? Known: evidence, llm."
    assert "Did you mean" not in str(UnknownNameError("judge", "zzz", ["evidence"]))
    assert str(UnknownNameError("judge", "x", [])) == "[F111] no judge named 'x'. No judge is known."
    assert error.name == "evidenc"


def test_errors_carry_what_a_program_needs():
    assert RateLimitedError("slow down.", retry_after=2.5).retry_after == 2.5
    assert RateLimitedError("slow down.").retry_after is None
    assert PluginLoadError("broken.", plugin="p").plugin == "p"
    error = MissingExtraError("retriever 'bm25'", "rank-bm25", "local")
    assert (error.package, error.extra) == ("rank-bm25", "local")
    assert str(error).endswith("Run: pip install 'factcheck[local]'")


def test_white_space_of_every_kind_is_folded():
    error = FactcheckError("a\r\nb\u2028c\x85d\te", hint="f\n\ng")
    assert str(error) == "[F000] a b c d e f g"
