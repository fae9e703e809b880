"""The pipeline over a run: order, sharing between claims and answers, event loops, and judging alone."""

import asyncio
import random
import runpy
import signal
import time
from collections import Counter
from pathlib import Path

import anyio
import pytest

from factcheck.errors import ConfigError, PermanentError
from factcheck.schema import Answer, AnswerReport

FAKES = runpy.run_path(str(Path(__file__).with_name("pipeline_fakes.py")))
fact_checker, claim, passages, by_line, plainly, labels, raising, eventually = (
    FAKES[n] for n in ("fact_checker", "claim", "passages", "by_line", "plainly", "labels", "raising", "eventually")
)


class TestOrder:
    LINES = tuple(f"line {i}" for i in range(25))

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
    def test_results_are_in_the_order_of_the_text_whatever_finishes_first(self, seed, is_async):
        delay = random.Random(seed)

        async def late(first, *rest):
            await anyio.sleep(delay.random() / 100)
            return plainly(first, *rest)

        def late_in_a_thread(first, *rest):
            time.sleep(delay.random() / 100)
            return plainly(first, *rest)

        async def retrieve(asked, k):
            await anyio.sleep(delay.random() / 100)
            return passages(asked.text)

        checker = fact_checker(
            judge=late if is_async else late_in_a_thread, retriever={"a": retrieve, "b": lambda q, k: passages(q.text)}
        )
        report = checker.check("\n".join(self.LINES))
        ids = [f"answer.c{i}" for i in range(1, 26)]
        assert [c.text for c in report.claims] == list(self.LINES)
        for group in (report.claims, report.evidence, report.judgements, report.verdicts, report.queries):
            assert [getattr(item, "claim_id", getattr(item, "id", "")) for item in group] == ids
        assert [p.text for e in report.evidence for p in e.passages] == list(self.LINES)
        assert [(r.query_id, r.retriever) for r in report.retrievals] == [
            (f"{i}.q1", name) for i in ids for name in ("t/a", "t/b")
        ]

    def test_two_runs_differ_in_nothing_but_seconds(self):
        def drawn(checker):
            data = checker.check("one\ntwo\none").model_dump(mode="json")
            for retrieval in data["retrievals"]:
                del retrieval["seconds"]
            return data

        assert drawn(fact_checker()) == drawn(fact_checker())

    def test_claims_are_judged_a_few_at_a_time(self):
        running = Counter()

        async def judge(subject, shown, findings):
            running["now"] += 1
            running["most"] = max(running["most"], running["now"])
            await anyio.sleep(0.005)
            running["now"] -= 1
            return plainly(subject, shown, findings)

        checker = fact_checker(judge=judge, settings={"concurrency": 6})
        checker.check_many(["\n".join(f"line {i} of {name}" for i in range(20)) for name in "abc"])
        assert running["most"] == 6

    def test_several_answers_come_in_their_order(self):
        reports = fact_checker().check_many(["one", Answer(id="b", text="two"), ""])
        assert [(r.answer.id, labels(r)) for r in reports] == [
            ("answer", ["supported"]),
            ("b", ["supported"]),
            ("answer", []),
        ]


class TestSharing:
    def counted(self, **roles):
        seen = []

        def judge(subject, shown, findings):
            seen.append(subject.id)
            return plainly(subject, shown, findings)

        return fact_checker(**{"judge": judge, **roles}), seen

    def test_equal_claims_are_judged_once_and_everything_is_bound_to_its_claim(self):
        checker, seen = self.counted(query_writer=lambda c: [c.text, c.text + "!"])
        report = checker.check("same\nother\nsame\nsame")
        assert sorted(seen) == ["answer.c1", "answer.c2"]
        assert labels(report) == ["supported"] * 4
        for number in (1, 3, 4):
            name = f"answer.c{number}"
            (shown,) = [e for e in report.evidence if e.claim_id == name]
            (judged,) = [j for j in report.judgements if j.claim_id == name]
            (verdict,) = [v for v in report.verdicts if v.claim_id == name]
            queries = [q for q in report.queries if q.claim_id == name]
            assert [(q.id, q.text) for q in queries] == [(f"{name}.q1", "same"), (f"{name}.q2", "same!")]
            found = [r for r in report.retrievals if r.query_id.startswith(f"{name}.")]
            assert [(r.query_id, r.cached, r.seconds == 0) for r in found] == [
                (f"{name}.q{i}", number > 1, number > 1) for i in (1, 2)
            ]
            assert (judged.quotes, judged.label) == (report.judgements[0].quotes, "supported")
            assert verdict.supporting[0].slices(shown.passages[0].text)
        assert AnswerReport.model_validate_json(report.model_dump_json()) == report

    def test_what_was_found_is_shared_between_answers(self):
        checker, seen = self.counted()
        first = checker.check(Answer(id="a", text="same\nold"))
        second = checker.check(Answer(id="b", text="new\nsame"))
        assert sorted(seen) == ["a.c1", "a.c2", "b.c1"]
        assert second.verdicts[1].model_copy(update={"claim_id": "a.c1"}) == first.verdicts[0]
        # A report does not hang on what was checked before it.
        assert [r.cached for r in second.retrievals] == [False, False]

    def test_it_is_shared_also_under_an_equal_id(self):
        checker, seen = self.counted()
        first, second = checker.check("same"), checker.check("same")
        assert seen == ["answer.c1"]
        assert second == first

    def test_answers_that_are_checked_at_once_share_what_is_under_way(self):
        async def slowly(subject, shown, findings):
            seen.append(subject.text)
            await anyio.sleep(0.01)
            return plainly(subject, shown, findings)

        seen = []
        reports = fact_checker(judge=slowly).check_many([Answer(id=name, text=f"same\nof {name}") for name in "abcd"])
        assert sorted(seen) == ["of a", "of b", "of c", "of d", "same"]
        assert [[v.claim_id for v in r.verdicts] for r in reports] == [[f"{n}.c1", f"{n}.c2"] for n in "abcd"]

    @pytest.mark.parametrize("change", [{"context": "children"}, {"question": "For whom?"}, {"kind": "care_advice"}])
    def test_claims_that_differ_in_what_counts_are_not_shared(self, change):
        def decompose(answer):
            first, second = by_line(answer)
            return [first, second.model_copy(update=change)]

        checker, seen = self.counted(decomposer=decompose)
        checker.check("same\nsame")
        assert sorted(seen) == ["answer.c1", "answer.c2"]

    def test_claims_that_cannot_be_checked_are_bound_too(self):
        def decompose(answer):
            return [c.model_copy(update={"kind": "greeting"}) for c in by_line(answer)]

        report = fact_checker(decomposer=decompose).check("hello\nhello")
        assert [v.claim_id for v in report.verdicts] == ["answer.c1", "answer.c2"]
        assert labels(report) == ["not_checkable"] * 2

    @pytest.mark.parametrize("role", ["judge", "retriever", "query_writer", "checker"])
    def test_failures_are_not_kept(self, role):
        calls = []
        plain = {**FAKES["PLAIN"], "checker": lambda c, e: []}

        def once(*arguments):
            calls.append(1)
            if len(calls) == 1:
                raise PermanentError("gone.")
            return plain[role](*arguments)

        checker = fact_checker(
            **{role: {"k": once} if role == "checker" else once},
            **({"judge": plainly} if role != "judge" else {}),
        )
        assert [labels(checker.check("x")) for _ in range(3)] == [["error"], ["supported"], ["supported"]]
        assert len(calls) == 2

    def test_evidence_that_is_incomplete_is_not_kept_though_it_sufficed(self):
        calls = []

        def flaky(asked, k):
            calls.append(1)
            if len(calls) == 1:
                raise PermanentError("gone.")
            return passages("second", corpus="other")

        checker = fact_checker(retriever={"a": flaky, "b": lambda q, k: passages("first")})
        texts = [[p.text for p in checker.check("x").evidence[0].passages] for _ in range(3)]
        assert texts == [["first"], ["second", "first"], ["second", "first"]]
        assert len(calls) == 2

    def test_the_memory_has_a_limit(self, monkeypatch):
        monkeypatch.setattr("factcheck.pipeline.MEMO_SIZE", 1)
        checker, seen = self.counted()
        for _ in range(2):
            checker.check("one\ntwo")
        assert sorted(Counter(seen).values()) == [1, 2]


class TestEventLoops:
    def test_one_checker_serves_several_loops(self):
        checker = fact_checker(retriever=eventually(lambda q, k: passages(q.text)))
        reports = [checker.check("one"), checker.check("two"), anyio.run(checker.acheck, "three")]
        assert [labels(report) for report in reports] == [["supported"]] * 3

    def test_several_answers_at_once_in_one_loop(self):
        checker = fact_checker(judge=eventually(plainly))

        async def all_at_once():
            return await asyncio.gather(*(checker.acheck(Answer(id=f"a{i}", text=f"line {i}")) for i in range(12)))

        assert [labels(report) for report in anyio.run(all_at_once)] == [["supported"]] * 12

    def test_check_inside_a_running_loop_says_what_to_do(self):
        async def inside():
            fact_checker().check("x")

        with pytest.raises(ConfigError, match=r"Await acheck\(\)"):
            anyio.run(inside)

    def test_a_cancelled_run_stops_at_once(self):
        async def hang(*arguments):
            await anyio.sleep(60)

        async def stop():
            with anyio.move_on_after(0.1) as scope:
                await fact_checker(judge=hang).acheck("x")
            return scope.cancelled_caught

        started = time.monotonic()
        assert anyio.run(stop)
        assert time.monotonic() - started < 5

    def test_no_report_is_drawn_behind_the_scenes(self, monkeypatch):
        # asyncio takes the repr of the main task, and with it of what that returns, where it handles interrupts.
        drawn = []
        monkeypatch.setattr(AnswerReport, "__repr__", lambda self: drawn.append(1) or "report")
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            fact_checker().check("x")
        finally:
            signal.signal(signal.SIGINT, before)
        assert not drawn


class TestJudgingAlone:
    def test_in_the_order_of_the_claims(self):
        async def judge(subject, shown, findings):
            await anyio.sleep(0.02 if subject.id == "c0" else 0)
            return plainly(subject, shown, findings)

        claims = [claim(f"line {i}", id=f"c{i}") for i in range(4)]
        shown = [FAKES["evidence"](*["x"] * (i % 2), claim_id=f"c{i}") for i in range(4)]
        judged, verdicts = anyio.run(fact_checker(judge=judge).ajudge, claims, shown)
        assert [j.claim_id for j in judged] == [v.claim_id for v in verdicts] == ["c0", "c1", "c2", "c3"]
        assert [v.label for v in verdicts] == ["not_enough_evidence", "supported"] * 2

    def test_a_failure_is_a_state_and_asks_no_retriever(self):
        asked = []
        checker = fact_checker(judge=raising(ValueError("x")), retriever=lambda q, k: asked.append(1) or [])
        judged, verdicts = anyio.run(checker.ajudge, [claim()], [FAKES["evidence"]("x")])
        assert (judged[0].status, verdicts[0].label) == ("error", "error")
        assert not asked

    def test_it_takes_one_evidence_for_each_claim(self):
        with pytest.raises(ValueError, match="shorter"):
            anyio.run(fact_checker().ajudge, [claim()], [])


class TestWarmUp:
    def test_what_a_retriever_prepares_is_outside_the_deadline_and_waited_for_by_all(self):
        ready = []

        async def prepare():
            await anyio.sleep(0.3)
            ready.append("ready")

        async def retrieve(asked, k):
            if not ready:
                await anyio.sleep(5)
            return passages(asked.text)

        checker = fact_checker(retriever=retrieve, settings={"query_deadline": 0.05})
        checker._parts.sources[0].retriever.warm_up = prepare

        async def both():
            reports = {}

            async def one(name):
                reports[name] = await checker.acheck(Answer(id=name, text=f"{name} is a line"))

            async with anyio.create_task_group() as group:
                group.start_soon(one, "a")
                group.start_soon(one, "b")
            return reports

        reports = asyncio.run(both())
        assert [labels(reports[name]) for name in "ab"] == [["supported"], ["supported"]]
        assert ready == ["ready"]

    def test_a_preparation_that_fails_leaves_the_queries_to_say_so(self):
        checker = fact_checker(retriever=raising(PermanentError("gone.")))
        checker._parts.sources[0].retriever.warm_up = raising(PermanentError("gone."))
        report = checker.check("One line.")
        assert report.accounting.error == 1
        assert "gone." in report.retrievals[0].error


def test_an_answer_of_words_without_a_claim_is_warned_of():
    report = fact_checker(decomposer=lambda answer: []).check("Aspirin cures cancer.")
    assert report.accounting.extracted == 0
    assert report.warnings == ("no claim was made of the 3 words of the answer",)
    assert fact_checker(decomposer=lambda answer: []).check(" ").warnings == ()


def test_a_retriever_that_fails_beside_one_that_works_is_warned_of():
    report = fact_checker(
        retriever={"good": lambda asked, k: passages(asked.text), "bad": raising(PermanentError("gone."))}
    ).check("one\ntwo")
    assert labels(report) == ["supported", "supported"]
    assert report.warnings == ("retriever 't/bad' failed on 2 of 2 searches: [F323] gone.",)
