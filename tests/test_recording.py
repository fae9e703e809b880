"""Recorded stages: what a ledger gives back is what was made, nothing that failed is kept, and a replay makes nothing."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from factcheck.errors import PluginContractError, TransientError
from factcheck.hookspecs import hookimpl
from factcheck.ledger_errors import ReplayMissError
from factcheck.pipeline import FactChecker
from factcheck.schema import Answer

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
passages, plainly, labels, by_line = (FAKES[name] for name in ("passages", "plainly", "labels", "by_line"))


class Counted:
    """Build checkers of counted functions on one ledger."""

    def __init__(self, path, **roles):
        self.path, self.roles, self.calls = path, roles, []

    def __call__(self, *, replay=False, **settings):
        def judge(subject, shown, findings):
            self.calls.append(("judge", subject.text))
            return plainly(subject, shown, findings)

        def retrieve(asked, k):
            self.calls.append(("retrieve", asked.text))
            return passages(asked.text)

        def decompose(answer):
            self.calls.append(("decompose", answer.id))
            return by_line(answer)

        roles = {"judge": judge, "retriever": retrieve, "decomposer": decompose, **self.roles}
        return FAKES["fact_checker"](settings={"ledger": self.path, "replay": replay, **settings}, **roles)


@pytest.fixture
def counted(tmp_path):
    return lambda **roles: Counted(tmp_path / "l.sqlite", **roles)


ANSWER = Answer(id="a", text="one\ntwo\none", meta={"model": "m"})


def test_a_second_run_asks_nothing_and_gives_the_same_bytes(counted):
    build = counted()
    with build() as first, build() as second:
        report = first.check(ANSWER)
        asked = list(build.calls)
        assert second.check(ANSWER).model_dump_json() == report.model_dump_json()
    assert build.calls == asked
    assert sorted(asked) == [
        ("decompose", "a"),
        *(("judge", text) for text in ("one", "two")),
        *(("retrieve", text) for text in ("one", "two")),
    ]


def test_a_replay_needs_no_component_and_misses_aloud(counted):
    build = counted()
    with build() as checker:
        report = checker.check(ANSWER)
    build.calls.clear()
    with build(replay=True) as checker:
        assert checker.check(ANSWER).model_dump_json() == report.model_dump_json()
        with pytest.raises(ReplayMissError, match="does not hold the 'decompose' entry"):
            checker.check(Answer(id="b", text="three"))
    assert build.calls == []


@pytest.mark.parametrize("change", [{"k": 3}, {"checkers": ("t/c",)}])
def test_a_change_of_what_a_verdict_hangs_on_is_a_miss(counted, change):
    build = counted(checker={"c": lambda subject, shown: []})
    with build(checkers=()) as checker:
        checker.check(ANSWER)
    with build(replay=True, **{"checkers": (), **change}) as checker, pytest.raises(ReplayMissError, match="'claim'"):
        checker.check(ANSWER)


def test_a_change_of_policy_is_none(counted):
    build = counted()
    with build() as checker:
        before = checker.check(ANSWER)
    with build(replay=True, policy="unsupported") as checker:
        assert checker.check(ANSWER).verdicts == before.verdicts


@pytest.mark.parametrize("role", ["judge", "retriever", "query_writer"])
def test_a_failure_is_tried_again_and_only_that(counted, role):
    broken = [True]

    def failing(*arguments):
        if broken and "two" in str(arguments[0]):
            raise TransientError("down.")
        return {
            "judge": plainly,
            "retriever": lambda asked, k: passages(asked.text),
            "query_writer": lambda subject: [subject.text],
        }[role](*arguments)

    build = counted(**{role: failing})
    with build() as checker:
        assert labels(checker.check(ANSWER)) == ["supported", "error", "supported"]
    with build(replay=True) as checker, pytest.raises(ReplayMissError):
        checker.check(ANSWER)
    broken.clear()
    build.calls.clear()
    with build() as checker:
        assert labels(checker.check(ANSWER)) == ["supported"] * 3
    assert ("judge", "one") not in build.calls
    assert ("decompose", "a") not in build.calls


def test_evidence_that_is_given_is_recorded_too(counted):
    build = counted()
    subject, shown = FAKES["claim"]("one"), FAKES["evidence"]("one")
    with build() as checker:
        first = anyio.run(checker.ajudge, [subject], [shown])
    with build(replay=True) as checker:
        assert anyio.run(checker.ajudge, [subject], [shown]) == first
        other = subject.model_copy(update={"id": "z"})
        moved = shown.model_copy(update={"claim_id": "z"})
        judged, _ = anyio.run(checker.ajudge, [other], [moved])
        assert judged[0].claim_id == "z"
        with pytest.raises(ReplayMissError, match="'judgement'"):
            anyio.run(checker.ajudge, [subject], [FAKES["evidence"]("other")])
    assert build.calls == [("judge", "one")]


def test_claims_with_equal_text_from_another_answer_are_found_again(counted):
    build = counted()
    with build() as checker:
        checker.check(ANSWER)
    build.calls.clear()
    with build() as checker:
        report = checker.check(Answer(id="other", text="two\nnew"))
    assert build.calls == [("decompose", "other"), ("retrieve", "new"), ("judge", "new")]
    assert [query.id for query in report.queries] == ["other.c1.q1", "other.c2.q1"]


def test_text_that_no_file_can_hold_is_recorded_all_the_same(counted):
    build = counted(retriever=lambda asked, k: passages("half \ud800 a pair"))
    with build() as checker:
        report = checker.check(ANSWER)
    with build(replay=True) as checker:
        assert checker.check(ANSWER) == report


class Searching:
    """Judge after a search of its own."""

    version = "1"

    def __init__(self, spoil=None, retrievers=()):
        self.spoil, self.retrievers, self.search = spoil or (lambda gathered: gathered), retrievers, None

    def connect(self, host):
        self.search = host.search(self.retrievers)

    async def gather(self, subject, shown, queries):
        asked = FAKES["query"](f"more on {subject.text}", id=f"{subject.id}.s1", claim_id=subject.id)
        found = await self.search(asked, 2)
        own = [p.model_copy(update={"id": "more", "rank": len(shown.passages) + 1}) for p in found[0].passages]
        evidence = shown.model_copy(update={"passages": (*shown.passages, *own)})
        return self.spoil(SimpleNamespace(queries=(asked,), retrievals=tuple(found), evidence=evidence))

    def judge(self, subject, shown, findings):
        return plainly(subject, shown, findings)


def searching(spoil=None, retrievers=(), library=None, **settings):
    loaded = FAKES["plugins_of"]()

    @hookimpl
    def factcheck_register_judges(register):
        register("s", lambda: Searching(spoil, retrievers))

    @hookimpl
    def factcheck_register_retrievers(register):
        register("s/library", lambda: library)

    hooks = {"factcheck_register_judges": factcheck_register_judges}
    if library is not None:
        hooks["factcheck_register_retrievers"] = factcheck_register_retrievers
    loaded.register(SimpleNamespace(**hooks), "s")
    chosen = {"decomposer": "t", "query_writer": "t", "retrievers": ("t",), "corpora": (), "judge": "s", **settings}
    return FactChecker(plugins=loaded, **chosen)


def test_what_a_judge_searches_for_itself_is_in_the_report():
    report = searching().check(Answer(id="a", text="one"))
    assert labels(report) == ["supported"]
    assert [query.text for query in report.queries] == ["one", "more on one"]
    assert [r.query_id for r in report.retrievals] == ["a.c1.q1", "a.c1.q2"]
    assert [p.text for p in report.evidence[0].passages] == ["one", "more on one"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"retrievals": ()}, "a passage that no search found"),
        ({"queries": ()}, "answers no query"),
        ({"evidence": FAKES["evidence"]("one", claim_id="z.c9")}, "name another claim"),
        ({"evidence": None}, "returned a NoneType"),
        ({"queries": (FAKES["query"]("again"),)}, "an id twice"),
    ],
)
def test_what_it_did_not_find_is_no_evidence(change, rule):
    def spoil(gathered):
        for name, value in change.items():
            setattr(gathered, name, value)
        return gathered

    report = searching(spoil).check(Answer(id="a", text="one"))
    assert labels(report) == ["error"]
    assert rule in report.verdicts[0].reason
    assert PluginContractError.code in report.verdicts[0].reason


def test_a_retriever_that_only_a_judge_asks_is_part_of_the_run(tmp_path):
    def run(corpus, *, replay=False):
        library = SimpleNamespace(
            retrieve=lambda asked, k: passages(f"from {corpus}"),
            version="1",
            corpus_sha256=(corpus,),
            warm_up=lambda: warmed.append(corpus),
        )
        with searching(None, ("s/library",), library, ledger=tmp_path / "l.sqlite", replay=replay) as checker:
            report = checker.check(Answer(id="a", text="one"))
            return report, [part.name for part in checker.manifest.components if part.role == "retriever"]

    warmed = []
    first, names = run("old")
    assert names == ["t", "s/library"]
    assert warmed == ["old"]
    assert [p.text for p in first.evidence[0].passages] == ["one", "from old"]
    assert run("old", replay=True)[0] == first
    assert [p.text for p in run("new")[0].evidence[0].passages] == ["one", "from new"]
