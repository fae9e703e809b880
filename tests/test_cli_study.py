import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from factcheck.cli import main as cli
from factcheck.cli import study as command

FAKES = Path(__file__).with_name("study_fakes.py")
FakeChecker = runpy.run_path(str(FAKES))["FakeChecker"]
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [
        {
            "id": f"p{i}",
            "question": f"question {i}",
            "error_type": f"F{i % 3}",
            "original": f"All is well. Take {i} mg.",
            "injected": f"All is well. Take {'WRONG ' if i % 3 else ''}{i}0 mg.",
        }
        for i in range(9)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def study(monkeypatch, capsys, pairs, tmp_path):
    def study(*options, checker=None):
        monkeypatch.setattr(
            command,
            "checker_from",
            lambda args, usual_ledger: checker or FakeChecker(policy=args.policy or "contradicted"),
        )
        status = cli.main(["study", str(pairs), "--out", str(tmp_path / "out"), "--resamples", "50", *options])
        return status, *capsys.readouterr()

    return study


def test_text_output(study, tmp_path):
    status, out, err = study("--assume-tied")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("9 tied pairs on 9 questions from pairs.jsonl, policy contradicted.")
    for start in (
        "F0 ",
        "F1 ",
        "F2 ",
        "overall ",
        "contradicted ",
        "unsupported ",
        "risk ",
        "no evidence ",
        "evidence of",
    ):
        assert any(line.startswith(start) for line in lines), start
    assert "66.7 (35.4–87.9)" in next(line for line in lines if line.startswith("overall"))
    assert any(line.startswith("Warning: Only 9 tied pairs, fewer than 30") for line in lines)
    assert lines[-1] == "An evaluation aid, not medical advice."
    assert (
        (tmp_path / "out/report.md").read_text(encoding="utf-8").startswith("# Study of matched pairs\n\n9 tied pairs")
    )


def test_json_output_is_the_report(study, tmp_path):
    status, out, _ = study("--assume-tied", "--format", "json")
    assert status == 0
    assert out == (tmp_path / "out/report.json").read_text(encoding="utf-8")
    assert json.loads(out)["schema"] == "factcheck.study/1"


def test_policy_is_that_of_the_pipeline(study):
    _, out, _ = study("--assume-tied", "--format", "json", "--policy", "risk>=0.95")
    report = json.loads(out)
    assert report["policy"] == "risk>=0.95"
    assert report["overall"]["recovered"]["k"] == 0
    assert report["policies"]["contradicted"]["recovered"]["k"] == 6


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "9 of 9 pairs have no rubric scores"),
        (("--assume-tied", "--out", "/dev/null/x"), "cannot write into the folder"),
    ],
)
def test_mistakes_are_one_line_and_build_no_pipeline(study, monkeypatch, options, reason):
    checker = FakeChecker()
    status, out, err = study(*options, checker=checker)
    assert (status, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1
    assert checker.checked == []


def test_broken_line(study, pairs):
    with pairs.open("a", encoding="utf-8") as file:
        file.write('{"id": "half\n')
    status, _, err = study("--assume-tied")
    assert status == 2
    assert f"{pairs}, line 10: the line is not valid JSON" in err
    status, out, _ = study("--assume-tied", "--skip-invalid")
    assert status == 0
    assert "Skipped line 10: the line is not valid JSON" in out
    assert "9 tied pairs" in out
    assert "Warning: 1 lines of the pairs could not be used and were skipped." in out


def test_second_run_in_the_same_folder(study):
    assert study("--assume-tied")[0] == 0
    assert study("--assume-tied")[0] == 0
    status, _, err = study("--assume-tied", "--policy", "unsupported")
    assert status == 2
    assert "what differs: the policy (contradicted, now unsupported)" in err
    assert study("--assume-tied", "--policy", "unsupported", "--force")[0] == 0
    with pytest.raises(SystemExit) as caught:
        study("--assume-tied", "--resume", "--force")
    assert caught.value.code == 2


@pytest.mark.parametrize("option", ["--resamples", "--jobs"])
@pytest.mark.parametrize("value", ["0", "-3", "x", "1.5"])
def test_numbers_must_be_positive(study, option, value):
    with pytest.raises(SystemExit) as caught:
        study("--assume-tied", option, value)
    assert caught.value.code == 2


def test_interrupt_keeps_what_was_done_and_says_how_to_go_on(study, tmp_path):
    status, out, err = study("--assume-tied", "--jobs", "1", checker=FakeChecker(stop_after=6))
    assert (status, out) == (3, "")
    assert "interrupted after 3 of 9 pairs" in err
    assert "--resume" in err
    assert err.count("\n") == 1
    checker = FakeChecker()
    assert study("--assume-tied", "--resume", checker=checker)[0] == 0
    assert len(checker.checked) == 12


@pytest.mark.parametrize("installed", [True, False])
def test_progress_bar_only_on_a_terminal(study, monkeypatch, capsys, installed):
    made = []

    class Bar:
        def __init__(self, **settings):
            self.n = settings["initial"]
            made.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    class Module:
        tqdm = Bar

    monkeypatch.setitem(sys.modules, "tqdm", Module if installed else None)
    assert study("--assume-tied")[0] == 0
    assert made == []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert study("--assume-tied")[0] == 0
    assert [(bar.n, bar.closed) for bar in made] == ([(9, True)] if installed else [])


SCRIPT = """
import runpy, sys
from factcheck.cli import main as cli, study
fakes = runpy.run_path(sys.argv[1])
delays = {f"p{i}/injected": 0.2 for i in range(9)}
study.checker_from = lambda args, usual_ledger: fakes["FakeChecker"](delays=delays)
raise SystemExit(cli.main(sys.argv[2:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_process_can_be_resumed(study, pairs, tmp_path, number):
    out = tmp_path / "stopped"
    arguments = [
        str(FAKES),
        "study",
        str(pairs),
        "--out",
        str(out),
        "--assume-tied",
        "--resamples",
        "50",
        "--jobs",
        "2",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], env=environment, stderr=subprocess.PIPE, text=True
    )
    progress = out / "progress.jsonl"
    limit = time.monotonic() + 60
    while not progress.exists() or progress.read_bytes().count(b'"kind": "pair"') < 2:
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (3 if number == signal.SIGINT else -number)
    assert ("--resume" in err) == (number == signal.SIGINT)
    assert "Traceback" not in err
    kept = progress.read_bytes().count(b'"kind": "pair"')
    assert 2 <= kept < 9
    assert not (out / "report.json").exists()
    again = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments, "--resume"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert study("--assume-tied")[0] == 0
    whole = tmp_path / "out"
    assert (out / "claims.jsonl").read_bytes() == (whole / "claims.jsonl").read_bytes()
    reports = [json.loads((folder / "report.json").read_text(encoding="utf-8")) for folder in (out, whole)]
    for report in reports:
        del report["cost"]["seconds"]
    assert reports[0] == reports[1]


@pytest.mark.shared
def test_the_pipeline_gives_equal_bytes_whatever_the_hash_seed(tmp_path):
    pytest.importorskip("rank_bm25")
    source = SHARED / "data/pairs/clinical_dev.jsonl"
    if not source.exists():
        pytest.skip("the development pairs do not lie beside the project")
    everything = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    # In all the evidence together two sentences are equally close to a claim of this pair, but for rounding.
    chosen = [pair for pair in everything if pair["id"] in ("A-F3-01", "A-F1-01")]
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    documents = [
        {
            "_id": f"{pair['id']}-{i}",
            "title": item["title"],
            "text": item["text"],
            "metadata": {"source": item["source"]},
        }
        for pair in everything
        for i, item in enumerate(pair["evidence"])
    ]
    pairs = tmp_path / "pairs.jsonl"
    for path, rows in ((corpus / "corpus.jsonl", documents), (pairs, chosen)):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = []
    for seed, jobs in (("1", "1"), ("8", "4")):
        out = tmp_path / seed
        subprocess.run(
            [
                *(sys.executable, "-m", "factcheck", "study", str(pairs), "--corpus", str(corpus)),
                *("--out", str(out), "--assume-tied", "--jobs", jobs),
            ],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
                "PYTHONHASHSEED": seed,
            },
            capture_output=True,
            check=True,
        )
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
        assert report["n_pairs"] == len(chosen)
        assert report["accounting"]["error"] == 0
        del report["cost"]["seconds"]
        found.append((report, (out / "claims.jsonl").read_bytes()))
    assert found[0] == found[1]
