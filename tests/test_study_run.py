import json
import os
import runpy
import stat
from pathlib import Path

import anyio
import pytest

pytest.importorskip("numpy")

from factcheck.errors import ConfigError, InputError, OutputError, UserError
from factcheck.study import run as study_run
from factcheck.study.pairs import read_pairs
from factcheck.study.run import StudyOptions, run_study

FakeChecker = runpy.run_path(str(Path(__file__).with_name("study_fakes.py")))["FakeChecker"]
ONE_BY_ONE = StudyOptions(assume_tied=True, resamples=100, jobs=1)
ASSUMED = StudyOptions(assume_tied=True, resamples=100)
FILES = ("report.json", "report.md", "claims.jsonl")


def rows(n=6):
    return [
        {
            "id": f"p{i}",
            "question": f"question {i // 2}",
            "error_type": f"F{i % 3}",
            "original": f"All is well. Take {i} mg. SHAKY end.",
            "injected": f"All is well. Take {'WRONG ' if i % 3 else ''}{i}0 mg. SHAKY end.",
        }
        for i in range(n)
    ]


@pytest.fixture
def write(tmp_path):
    def write(data=None):
        path = tmp_path / "pairs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in (rows() if data is None else data)), encoding="utf-8")
        return read_pairs(path)

    return write


def outputs(out):
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["cost"].pop("seconds") > 0
    return report, (out / "claims.jsonl").read_bytes()


def resume(**changes):
    return StudyOptions(**{"assume_tied": True, "resamples": 100, "resume": True, **changes})


def test_files_and_figures(write, tmp_path):
    out = tmp_path / "new" / "out"
    ticks = []
    report = run_study(FakeChecker(), write(), out, ASSUMED, on_pair=lambda done, total: ticks.append((done, total)))
    assert ticks == [(i, 6) for i in range(7)]
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "progress.jsonl"])
    written, claims = outputs(out)
    assert written["n_pairs"] == 6
    assert written["n_questions"] == 3
    assert (report.overall.identified.k, report.overall.recovered.k) == (6, 4)
    assert report.controls.no_evidence.recovered.k == 0
    assert report.controls.no_evidence.recovered.n == 6
    assert report.controls.shuffled_evidence.recovered.k == 0
    lines = [json.loads(line) for line in claims.splitlines()]
    assert [(line["pair"], line["side"]) for line in lines] == [
        (f"p{i}", side) for i in range(6) for side in ("original", "injected") for _ in range(3)
    ]
    assert set(lines[0]) == {
        "pair",
        "side",
        "claim",
        "key",
        "text",
        "span",
        "kind",
        "in_edit",
        "label",
        "risk",
        "coverage",
        "flagged",
        "reason",
        "quotes",
    }
    by_id = {row["id"]: row for row in rows()}
    for line in lines:
        start, end = line["span"]
        assert by_id[line["pair"]][line["side"]][start:end] == line["text"]
    assert sum(line["label"] == "contradicted" for line in lines) == written["accounting"]["contradicted"]
    assert len(lines) == written["accounting"]["extracted"]


def test_the_order_of_finishing_makes_no_difference(write, tmp_path):
    delays = {f"p{i}/{side}": 0.02 * (6 - i) for i in range(6) for side in ("original", "injected")}
    run_study(FakeChecker(), write(), tmp_path / "a", ASSUMED)
    run_study(FakeChecker(delays=delays), write(), tmp_path / "b", ASSUMED)
    assert outputs(tmp_path / "a") == outputs(tmp_path / "b")
    kept = [json.loads(line) for line in (tmp_path / "b/progress.jsonl").read_text(encoding="utf-8").splitlines()]
    finished = [row["content"]["pair"] for row in kept if row["kind"] == "pair"]
    assert finished != sorted(finished)


@pytest.mark.parametrize("jobs", [1, 3])
def test_no_more_than_jobs_at_a_time(write, tmp_path, jobs):
    class Counting(FakeChecker):
        now = most = 0

        async def acheck(self, answer):
            self.now += 1
            self.most = max(self.most, self.now)
            await anyio.sleep(0.001)
            report = await super().acheck(answer)
            self.now -= 1
            return report

    checker = Counting()
    run_study(checker, write(), tmp_path / "out", StudyOptions(assume_tied=True, resamples=10, jobs=jobs))
    assert checker.most == jobs


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("kept", [1, 5, 11])
def test_resume_gives_what_an_uninterrupted_run_gives(write, tmp_path, kept, jobs):
    run_study(FakeChecker(), write(), tmp_path / "whole", ASSUMED)
    out = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        run_study(FakeChecker(stop_after=kept), write(), out, StudyOptions(assume_tied=True, jobs=jobs))
    assert not (out / "report.json").exists()
    before = (out / "progress.jsonl").read_text(encoding="utf-8").count('"kind": "pair"')
    checker = FakeChecker()
    run_study(checker, write(), out, resume())
    assert len(checker.checked) == 2 * (6 - before)
    assert outputs(out) == outputs(tmp_path / "whole")


def test_every_cut_of_the_progress_file_can_be_resumed(write, tmp_path):
    out, file = tmp_path / "out", write(rows(2))
    run_study(FakeChecker(), file, out, ASSUMED)
    expected, data = outputs(out), (out / "progress.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    cuts = {
        0,
        1,
        *ends,
        *(end - 1 for end in ends),
        *(end - 10 for end in ends),
        *(min(end + 5, len(data)) for end in ends),
    }
    for cut in sorted(cuts):
        (out / "progress.jsonl").write_bytes(data[:cut])
        checker = FakeChecker()
        run_study(checker, file, out, resume(force=cut < ends[0], resume=cut >= ends[0]))
        assert outputs(out) == expected
        # The header and the two pairs are the first three lines; a finished run needs nothing but its figures.
        assert len(checker.checked) == 2 * sum(cut < end for end in ends[1:3])
        if cut >= ends[-2]:
            assert checker.judged == 0


def test_a_damaged_line_in_the_middle_is_named(write, tmp_path):
    out, file = tmp_path / "out", write()
    run_study(FakeChecker(), file, out, ASSUMED)
    lines = (out / "progress.jsonl").read_bytes().split(b"\n")
    lines[2] = lines[2][:50]
    (out / "progress.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(OutputError, match=r"line 3 of .*progress.jsonl' is damaged"):
        run_study(FakeChecker(), file, out, resume())
    (out / "progress.jsonl").write_bytes(b"something else\n")
    with pytest.raises(OutputError, match="line 1 of"):
        run_study(FakeChecker(), file, out, ASSUMED)
    run_study(FakeChecker(), file, out, StudyOptions(assume_tied=True, resamples=100, force=True))


def test_resume_refuses_another_run_and_says_what_differs(write, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_study(FakeChecker(stop_after=4), write(), out, ONE_BY_ONE)
    kept = (out / "progress.jsonl").read_bytes()
    for checker, data, reason in (
        (FakeChecker(policy="unsupported"), None, r"the policy \(contradicted, now unsupported\)"),
        (FakeChecker(seed=3), None, r"the seed \(0, now 3\)"),
        (FakeChecker(judge="other"), None, "the judge 'fake', the judge 'other'"),
        (FakeChecker(), rows(3), "the pairs"),
    ):
        with pytest.raises(OutputError, match=f"what differs: {reason}"):
            run_study(checker, write(data), out, resume())
        assert checker.checked == []
    assert (out / "progress.jsonl").read_bytes() == kept


def test_an_unfinished_run_is_not_lost(write, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        run_study(FakeChecker(stop_after=4), write(), out, ONE_BY_ONE)
    kept = (out / "progress.jsonl").read_bytes()
    for checker in (FakeChecker(), FakeChecker(policy="unsupported")):
        with pytest.raises(OutputError, match=r"unfinished run with 2 pairs done.*--resume"):
            run_study(checker, write(), out, ASSUMED)
    assert (out / "progress.jsonl").read_bytes() == kept
    run_study(FakeChecker(), write(), out, StudyOptions(assume_tied=True, resamples=100, force=True))


def test_a_finished_run_is_replaced_only_by_the_same_run(write, tmp_path):
    out = tmp_path / "out"
    run_study(FakeChecker(), write(), out, ASSUMED)
    before = outputs(out)
    again = FakeChecker()
    run_study(again, write(), out, ASSUMED)
    assert outputs(out) == before
    assert len(again.checked) == 12
    with pytest.raises(OutputError, match=r"the report of another run; what differs: the policy"):
        run_study(FakeChecker(policy="unsupported"), write(), out, ASSUMED)
    assert outputs(out) == before
    forced = StudyOptions(assume_tied=True, resamples=100, force=True)
    assert run_study(FakeChecker(policy="unsupported"), write(), out, forced).policy == "unsupported"
    (out / "progress.jsonl").unlink()
    with pytest.raises(OutputError, match="holds a report and no progress file"):
        run_study(FakeChecker(), write(), out, ASSUMED)


def test_resume_of_a_finished_run_checks_nothing(write, tmp_path):
    out = tmp_path / "out"
    run_study(FakeChecker(), write(), out, ASSUMED)
    before, checker = outputs(out), FakeChecker()
    run_study(checker, write(), out, resume())
    assert (checker.checked, checker.judged) == ([], 0)
    assert outputs(out) == before


def test_pairs_that_cannot_be_checked_are_counted_and_tried_again(write, tmp_path):
    data = rows()
    data[1]["injected"] += " EXPLODE"
    data[4]["original"] += " EXPLODE"
    out, file = tmp_path / "out", write(data)
    report = run_study(FakeChecker(), file, out, ASSUMED)
    assert [error.pair for error in report.errors] == ["p1", "p4"]
    assert "cannot split p1/injected" in report.errors[0].error
    assert report.n_pairs == 6
    assert (report.overall.identified.k, report.overall.identified.n) == (4, 6)
    assert (report.overall.recovered.k, report.overall.recovered.n) == (2, 6)
    assert report.overall.false_positive_answer.n == 6
    assert report.accounting.extracted == 4 * 6
    assert any("2 pairs could not be checked" in warning for warning in report.warnings)
    assert "Not checked: p1: [F310]" in (out / "report.md").read_text(encoding="utf-8").replace("\\", "")
    mended = FakeChecker(explode=False)
    report = run_study(mended, file, out, resume())
    assert sorted(set(mended.checked)) == ["p1/injected", "p1/original", "p4/injected", "p4/original"]
    assert report.errors == ()
    run_study(FakeChecker(explode=False), file, tmp_path / "whole", ASSUMED)
    assert outputs(out) == outputs(tmp_path / "whole")


def test_other_failures_stop_the_run_and_keep_what_was_done(write, tmp_path):
    class Failing(FakeChecker):
        async def acheck(self, answer):
            if answer.id.startswith("p3"):
                raise ConfigError("no such thing.")
            return await super().acheck(answer)

    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="no such thing"):
        run_study(Failing(), write(), out, StudyOptions(assume_tied=True, jobs=1))
    assert (out / "progress.jsonl").read_text(encoding="utf-8").count('"kind": "pair"') == 3


def test_pairs_without_scores_are_not_taken_for_tied(write, tmp_path):
    with pytest.raises(UserError, match=r"6 of 6 pairs have no rubric scores.*--assume-tied"):
        run_study(FakeChecker(), write(), tmp_path / "out", StudyOptions())
    assert not (tmp_path / "out").exists()


def test_scored_pairs(write, tmp_path):
    data = rows()
    for i, row in enumerate(data):
        row["rubric_scores"] = {"original": 5, "injected": 5 if i < 4 else 3 + 4 * (i - 4)}
    report = run_study(FakeChecker(), write(data), tmp_path / "out", StudyOptions(resamples=100))
    assert (report.n_pairs, report.n_questions, report.input.n_read) == (4, 2, 6)
    assert (report.overall.recovered.k, report.overall.recovered.n) == (2, 4)
    effect = report.rubric
    assert (effect.before.win, effect.before.tie, effect.before.loss) == (1, 4, 1)
    assert (effect.after.win, effect.after.tie, effect.after.loss) == (3, 2, 1)
    assert (effect.recovered.k, effect.recovered.n, effect.broken.k) == (2, 4, 0)
    assert report.accounting.extracted == 36
    del data[5]["rubric_scores"]
    with pytest.raises(InputError, match="1 of 6 pairs have no rubric scores"):
        run_study(FakeChecker(), write(data), tmp_path / "mixed", StudyOptions())
    report = run_study(FakeChecker(), write(data), tmp_path / "mixed", ASSUMED)
    assert (report.n_pairs, report.rubric.before.win, report.rubric.before.tie) == (5, 1, 4)


def test_one_question_has_no_shuffled_evidence_and_no_bootstrap(write, tmp_path):
    data = [{**row, "question": "the same"} for row in rows()]
    report = run_study(FakeChecker(), write(data), tmp_path / "out", ASSUMED)
    control = json.loads((tmp_path / "out/report.json").read_text(encoding="utf-8"))["controls"]["shuffled_evidence"]
    assert (control["recovered"], control["false_positive_matched"]) == (None, None)
    assert report.controls.no_evidence.recovered.n == 6
    assert report.overall.risk_auroc.ci is None


def test_odd_answers_do_not_break_the_run(write, tmp_path):
    big = ("Take 5 mg of it every day" + ", and then again" * 30 + ". ") * 2000
    assert len(big) > 1_000_000
    data = [
        {"id": "empty-original", "question": "q1", "original": "", "injected": "All WRONG."},
        {"id": "empty-injected", "question": "q2", "original": "All is well.", "injected": ""},
        {"id": "no claims", "question": "q3", "original": " ... ", "injected": " !!! "},
        {"id": "big", "question": "q4" * 5000, "original": big, "injected": big + "It is WRONG."},
        {"id": "new\nline/../\u202e", "question": "", "original": "a.", "injected": "b."},
    ]
    report = run_study(FakeChecker(), write(data), tmp_path / "out", ASSUMED)
    assert report.errors == ()
    assert report.overall.identified.k == 3
    assert report.accounting.extracted > 4000


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_without_permission_is_refused_before_any_work(write, tmp_path):
    out = tmp_path / "out"
    out.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    checker = FakeChecker()
    with pytest.raises(OutputError, match="cannot write into the folder"):
        run_study(checker, write(), out, ASSUMED)
    assert checker.checked == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_in_place_of_the_folder_is_refused_before_any_work(write, tmp_path, place):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    checker = FakeChecker()
    with pytest.raises(OutputError, match="cannot write into the folder"):
        run_study(checker, write(), tmp_path / place, ASSUMED)
    assert checker.checked == []


def test_a_full_disk_leaves_the_old_report_whole(write, tmp_path, monkeypatch):
    out = tmp_path / "out"
    run_study(FakeChecker(), write(), out, ASSUMED)
    before = {name: (out / name).read_bytes() for name in FILES}

    def fail(file):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(study_run.os, "fsync", fail)
        with pytest.raises(OutputError, match="No space left"):
            study_run.write_atomically(out / "report.json", "new")
    assert {name: (out / name).read_bytes() for name in FILES} == before
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "progress.jsonl"])


def test_without_the_extra_nothing_is_begun(write, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    checker = FakeChecker()
    with pytest.raises(ConfigError, match=r"factcheck\[local\]"):
        run_study(checker, write(), tmp_path / "out", ASSUMED)
    assert checker.checked == []
