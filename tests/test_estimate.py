"""Dry runs: nothing is asked or written, and what is estimated is what a well-behaved server then sees."""

import json
import runpy
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

import factcheck.plugins
from factcheck.cli import estimate as command
from factcheck.cli import main as cli
from factcheck.config import Settings
from factcheck.errors import ConfigError
from factcheck.estimate import sample as sampling
from factcheck.estimate.rehearsal import CLAIMS_A_SENTENCE, PASSAGE_LENGTH, Line, Load, Rehearsal, Work
from factcheck.hookspecs import hookimpl
from factcheck.llm.budget import estimated_tokens
from factcheck.llm.prices import Price
from factcheck.plugins import Plugins
from factcheck.schema import Passage

HERE = Path(__file__)
MODELS = runpy.run_path(str(HERE.with_name("llm_stage_fakes.py")))
MISBEHAVING = runpy.run_path(str(HERE.with_name("misbehaving.py")))
chat, status, answering = (MISBEHAVING[name] for name in ("chat", "status", "answering"))
PATH = "/v1/chat/completions"
TEXT = (
    "Adults should take no more than 4 g of paracetamol in 24 hours. Wait at least 4 hours between doses. "
    "Stop at once if a rash appears. Thank you for asking. See a doctor if fever lasts longer than 3 days."
)
SENTENCES, CLAIMS = 5, 4
FACTS = [
    f"Fact {number}. Adults take no more than 4 g of paracetamol a day. " + "It is often well tolerated. " * number * 9
    for number in range(1, 7)
]


class Local:
    """Find facts that depend on the query, as a retriever with a corpus does."""

    version, corpus_sha256 = "1", ("0" * 64,)

    def retrieve(self, query, k):
        return [
            Passage(
                id=f"{query.text} {rank}",
                doc_id="d",
                corpus="facts",
                title="Facts",
                text=f"{text} This is about: {query.text}",
                score=1 / rank,
                rank=rank,
            )
            for rank, text in enumerate(FACTS[:k], start=1)
        ]


class Still(Local):
    """Find the same for whatever is asked."""

    def retrieve(self, query, k):
        return super().retrieve(SimpleNamespace(text="anything"), k)


class Web(Local):
    """Fail if it is asked, as a retriever of the network must not be."""

    corpus_sha256, network = (), True
    asked = 0

    def retrieve(self, query, k):
        Web.asked += 1
        raise AssertionError("the network was asked")


class Unmarked(Web):
    network = False


class Word(BaseModel):
    word: str = ""


class Secretive:
    """Ask a model through the host without saying what reply to reckon with."""

    version = "1"

    def connect(self, host):
        self.client, self.model = host.client("judge")

    async def judge(self, claim, evidence, findings):
        messages = [{"role": "user", "content": "x" * 400}]
        await self.client.structured(messages, schema={"type": "object"}, stage="judge", model=Word)


class Alone(Secretive):
    """Have a model of its own."""

    model = "hidden-1"
    connect = None

    def __getattribute__(self, name):
        if name == "connect":
            raise AttributeError(name)
        return super().__getattribute__(name)


class Online(Secretive):
    network = True


def extra():
    loaded = Plugins()

    @hookimpl
    def factcheck_register_retrievers(register):
        for name, kind in (("local", Local), ("still", Still), ("web", Web), ("unmarked", Unmarked)):
            register(f"t/{name}", kind)

    @hookimpl
    def factcheck_register_judges(register):
        for name, kind in (("secretive", Secretive), ("alone", Alone), ("online", Online)):
            register(f"t/{name}", kind)

    hooks = (factcheck_register_retrievers, factcheck_register_judges)
    loaded.register(SimpleNamespace(**{hook.__name__: hook for hook in hooks}), "t")
    return loaded


@pytest.fixture(scope="module")
def server():
    with MISBEHAVING["Server"]() as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(server, tmp_path, monkeypatch):
    server.reset()
    Web.asked = 0
    monkeypatch.chdir(tmp_path)
    for name in ("FACTCHECK_CONFIG", "FACTCHECK_PLUGINS", "FACTCHECK_STRICT_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    for module in (factcheck.plugins, command):
        monkeypatch.setattr(module, "Plugins", lambda blocked: extra())
    (tmp_path / "answer.md").write_text(TEXT, encoding="utf-8")
    (tmp_path / "factcheck.toml").write_text(
        f"""
        retrievers = ["t/local"]
        checkers = []
        judge = "llm"
        [models.default]
        base_url = "{server.url}/v1"
        model = "scripted-1"
        price = [1.0, 10.0]
        """,
        encoding="utf-8",
    )


@pytest.fixture
def run(capsys):
    def run(*arguments, status=0):
        assert cli.main([str(argument) for argument in arguments]) == status, capsys.readouterr()
        return capsys.readouterr().out

    return run


@pytest.fixture
def dry(run, server):
    """Run the command dry and return its JSON, sure that nothing was asked."""

    def dry(*arguments, status=0):
        before = len(server.seen)
        out = run(*arguments, "--dry-run", "--format", "json", status=status)
        assert len(server.seen) == before
        assert Web.asked == 0
        return json.loads(out)

    return dry


def brain(prompt, turn):
    parts = MODELS["parts_of"](prompt)
    if "sentence" in parts:
        text = parts["sentence"].text
        return {"claims": [{"text": text, "kind": "greeting" if text.startswith("Thank") else "statement"}]}
    if "known" in parts:
        searches = len(parts["asked"].parts)
        return {"missing": "more", "enough": False, "query": f"paracetamol dose adults {searches}"}
    if "claim" in parts and "passages" not in parts:
        return {"queries": [" ".join(parts["claim"].text.split()[:8]), "paracetamol adults", "paracetamol maximum"]}
    return MODELS["literal_judge"](prompt, turn)


def think(seen):
    messages = seen.json()["messages"]
    turns = [message["content"] for message in messages if message["role"] == "user"]
    return chat(json.dumps(brain(turns[0], len(turns))))


def sent(server):
    """Return what the estimator counts for the requests that the server saw."""
    bodies = [seen.json()["messages"] for seen in server.seen]
    return sum(estimated_tokens("".join(message["content"] for message in body)) + 4 * len(body) for body in bodies)


def calls(found):
    return {stage["stage"]: stage["expected"]["calls"] for stage in found["stages"]}


class TestCheck:
    def test_calls_and_input_are_those_of_the_run(self, dry, run, server):
        found = dry("check", "answer.md")
        server.script(PATH, answering(think))
        real = json.loads(run("check", "answer.md", "--format", "json"))
        assert found["expected"]["calls"] == real["usage"]["stages"]["judge"]["calls"] == server.count(PATH) == CLAIMS
        assert found["expected"]["tokens_in"] == sent(server)
        assert found["sample"] == {
            "unit": "answer",
            "taken": 1,
            "total": 1,
            "scale": 1.0,
            "seed": 0,
            "claims": SENTENCES,
            "open": [],
        }

    @pytest.mark.parametrize(
        "options",
        [
            ("--query-writer", "llm/neutral"),
            ("--judge", "safe"),
            ("--query-writer", "llm/neutral", "--judge", "safe", "-k", "3"),
        ],
    )
    def test_other_stages_too(self, dry, run, server, options):
        found = dry("check", "answer.md", *options)
        server.script(PATH, answering(think))
        run("check", "answer.md", *options)
        expected = found["expected"]
        # A real search that brings nothing new ends the steps early; the estimate takes all of them.
        assert expected["calls"] >= server.count(PATH)
        if "safe" not in options:
            assert expected["calls"] == server.count(PATH)
            assert expected["tokens_in"] == pytest.approx(sent(server), rel=0.25)

    def test_a_judge_that_searches_takes_every_step(self, dry):
        found = dry("check", "answer.md", "--judge", "safe", "--retriever", "t/still")
        assert calls(found) == {"search": 5 * CLAIMS, "judge": CLAIMS}
        assert found["searches"] == {}

    def test_claims_in_one_call(self, dry, run, server, tmp_path):
        with (tmp_path / "factcheck.toml").open("a", encoding="utf-8") as file:
            file.write('[plugins."llm"]\nbatch = 4\nbatch_wait = 1.0\n')
        found = dry("check", "answer.md")
        server.script(PATH, answering(think))
        run("check", "answer.md")
        assert found["expected"]["calls"] == server.count(PATH) == 1
        assert found["expected"]["tokens_in"] == sent(server)

    def test_a_model_makes_more_claims_than_sentences(self, dry, run, server):
        plain = dry("check", "answer.md")["expected"]
        found = dry("check", "answer.md", "--decomposer", "llm/atomic")
        stages = {stage["stage"]: stage["expected"] for stage in found["stages"]}
        assert list(stages) == ["decomposer", "judge"]
        assert stages["decomposer"]["calls"] == SENTENCES
        assert stages["judge"]["calls"] == 7 >= CLAIMS * CLAIMS_A_SENTENCE
        assert stages["judge"]["tokens_in"] == pytest.approx(plain["tokens_in"] * CLAIMS_A_SENTENCE, abs=1)
        assert any("HealthBench" in line for line in found["assumed"])
        server.script(PATH, answering(think))
        run("check", "answer.md", "--decomposer", "llm/atomic")
        assert server.count(PATH) == SENTENCES + CLAIMS

    def test_dollars_and_the_upper_figure(self, dry):
        found = dry("check", "answer.md")
        low, high = found["expected"], found["upper"]
        assert low["usd"] == pytest.approx((low["tokens_in"] + 10 * low["tokens_out"]) / 1e6)
        assert (high["calls"], high["tokens_out"]) == (2 * low["calls"], 2 * low["tokens_out"])
        # The second time the first reply and what is wrong with it are sent too.
        assert high["tokens_in"] > 2 * low["tokens_in"] + low["tokens_out"]
        assert found["prices"] == [
            {
                "model": "scripted-1",
                "tokens_in": 1.0,
                "tokens_out": 10.0,
                "date": "",
                "source": "the settings of the model",
            }
        ]

    def test_the_price_list_is_named_with_date_and_source(self, dry, run, tmp_path):
        entry = {"pattern": "listed-*", "in": 3.0, "out": 5.0, "date": "2026-01-02", "source": "https://example.org/p"}
        (tmp_path / "prices.json").write_text(json.dumps({"models": [entry]}), encoding="utf-8")
        options = ("check", "answer.md", "--model", "judge=listed-1", "--prices", "prices.json")
        found = dry(*options)
        assert found["prices"][0]["date"] == "2026-01-02"
        assert found["expected"]["usd"] > 0
        assert "listed-1 3 in, 5 out, dollars per million tokens (2026-01-02, https://example.org/p)" in run(
            *options, "--dry-run"
        )

    def test_a_price_that_is_not_known(self, dry, run):
        options = ("check", "answer.md", "--model", "judge=nobody-knows", "--max-usd", "1")
        found = dry(*options)
        assert (found["expected"]["usd"], found["upper"]["usd"]) == (None, None)
        assert found["budget"] == [{"name": "max_usd", "bound": 1.0, "within": "not_known"}]
        text = run(*options, "--dry-run")
        assert "Give it in the settings" in text
        assert "a run would be refused" in text

    @pytest.mark.parametrize(
        ("bound", "within"),
        [
            (("--max-calls", CLAIMS * 2), "yes"),
            (("--max-calls", CLAIMS), "estimate_only"),
            (("--max-calls", CLAIMS - 1), "no"),
            (("--max-usd", "0.000001"), "no"),
            (("--max-usd", "100"), "yes"),
            (("--max-tokens", 1), "no"),
            (("--deadline", "60"), "not_known"),
        ],
    )
    def test_whether_it_is_within_the_budget(self, dry, bound, within):
        (found,) = dry("check", "answer.md", *bound)["budget"]
        assert found["within"] == within

    def test_searches_over_the_network_are_counted_and_not_made(self, dry):
        found = dry("check", "answer.md", "--retriever", "t/web", "--retriever", "t/unmarked")
        # Two for each claim: as it stands, and without its values; one claim has none.
        assert found["searches"]["t/web"] == found["searches"]["t/unmarked"] >= CLAIMS
        per_call = found["expected"]["tokens_in"] / found["expected"]["calls"]
        assert per_call > 8 * PASSAGE_LENGTH / 4
        assert found["sample"]["open"] == []
        # Eight passages and three more a step: the fifth step finds the twenty that the judge takes at most.
        safe = dry("check", "answer.md", "--retriever", "t/web", "--judge", "safe")
        assert calls(safe)["search"] == 5 * CLAIMS
        assert safe["searches"]["t/web"] == found["searches"]["t/web"] + 4 * CLAIMS

    def test_a_stage_that_says_nothing_of_its_replies(self, dry):
        found = dry("check", "answer.md", "--judge", "t/secretive")
        assert calls(found) == {"judge": CLAIMS}
        assert found["expected"]["tokens_in"] == CLAIMS * 104
        assert len(found["sample"]["open"]) == CLAIMS
        assert "an estimate cannot know" in found["sample"]["open"][0]

    @pytest.mark.parametrize("options", [("--judge", "t/alone"), ("--judge", "t/online"), ("--replay",)])
    def test_what_cannot_be_estimated_is_refused(self, run, options):
        assert run("check", "answer.md", "--dry-run", *options, status=2) == ""

    def test_the_same_holds_for_the_judges_of_a_panel(self):
        table = {"panel": {"judges": ["llm", "t/online"]}}
        models = {"default": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
        fields = {"retrievers": ["t/local"], "checkers": [], "judge": "panel", "plugins": table, "models": models}
        with pytest.raises(ConfigError, match="'t/online'"):
            Rehearsal.from_settings(Settings.model_validate(fields), plugins=extra())

    def test_without_a_model_there_is_no_call(self, dry, run):
        pytest.importorskip("pint")
        pytest.importorskip("Stemmer")
        (Path("factcheck.toml")).write_text('retrievers = ["t/local"]\ncheckers = []\n', encoding="utf-8")
        assert dry("check", "answer.md")["stages"] == []
        assert "No model would be called." in run("check", "answer.md", "--dry-run")


class TestLedger:
    def test_what_it_holds_costs_nothing_and_it_is_left_alone(self, dry, run, server, tmp_path):
        path = tmp_path / "kept" / "l.sqlite"
        options = ("check", "answer.md", "--ledger", path)
        new = dry(*options)
        assert not path.parent.exists()
        assert (new["ledger"]["exists"], new["ledger"]["claims"], new["expected"]["calls"]) == (False, 0, CLAIMS)
        server.script(PATH, answering(think))
        run(*options)
        before, names = path.read_bytes(), sorted(path.parent.iterdir())
        found = dry(*options)
        assert found["expected"] == {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0}
        assert (found["ledger"]["claims"], found["ledger"]["distinct_claims"]) == (CLAIMS, CLAIMS)
        Path("answer.md").write_text(f"{TEXT} Do not drink alcohol with it.", encoding="utf-8")
        assert dry(*options)["expected"]["calls"] == 1
        assert f"holds {CLAIMS} of the {CLAIMS + 1} distinct claims" in run(*options, "--dry-run")
        assert (path.read_bytes(), sorted(path.parent.iterdir())) == (before, names)

    def test_claims_that_a_model_made_are_known_from_it(self, dry, run, server, tmp_path):
        options = ("check", "answer.md", "--decomposer", "llm/atomic", "--ledger", tmp_path / "l.sqlite")
        server.script(PATH, answering(think))
        run(*options)
        found = dry(*options, "-k", "2")  # claims are judged anew, and how many there are is no guess
        assert calls(found) == {"judge": CLAIMS}
        assert found["ledger"]["answers"] == 1


class TestStudy:
    @pytest.fixture(autouse=True)
    def _pairs(self, tmp_path):
        pytest.importorskip("numpy")
        rows = []
        for number in range(8):
            more = " ".join(f"Take {number + step} tablets on day {step}." for step in range(number))
            original = f"{TEXT} {more} Do not exceed {number + 3} g of it."
            injected = original.replace(f"exceed {number + 3} g", f"exceed {number + 30} g")
            question = f"How much is safe in case {number % 5}?"
            row = {"id": f"p{number}", "question": question, "original": original, "injected": injected}
            rows.append({**row, "rubric_scores": {"original": 1, "injected": int(number != 3)}})
        (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    COMMAND = ("study", "pairs.jsonl", "--out", "out")

    def test_with_all_pairs_calls_and_input_are_those_of_the_run(self, dry, run, server):
        found = dry(*self.COMMAND, "--sample", "8")
        assert not Path("out").exists()
        server.script(PATH, answering(think))
        run(*self.COMMAND, "--resamples", "10")
        report = json.loads(Path("out/report.json").read_text(encoding="utf-8"))
        assert report["cost"]["model_calls"] == server.count(PATH)
        assert found["expected"]["calls"] == server.count(PATH)
        assert found["expected"]["tokens_in"] == pytest.approx(sent(server), rel=0.25)
        assert found["sample"]["scale"] == 1.0

    def test_a_sentence_that_both_texts_have_is_split_once(self, dry, run, server):
        found = dry(*self.COMMAND, "--sample", "8", "--decomposer", "llm/atomic")
        server.script(PATH, answering(think))
        run(*self.COMMAND, "--resamples", "10", "--decomposer", "llm/atomic")
        prompts = [seen.json()["messages"][0]["content"] for seen in server.seen]
        assert calls(found)["decomposer"] == sum("<sentence-" in prompt for prompt in prompts)

    def test_a_sample_stands_for_all(self, dry, run):
        whole = dry(*self.COMMAND, "--sample", "8")["expected"]
        found = dry(*self.COMMAND)
        assert (found["sample"]["taken"], found["sample"]["total"]) == (5, 8)
        assert found["sample"]["scale"] > 1
        for name in ("calls", "tokens_in", "tokens_out"):
            assert found["expected"][name] == pytest.approx(whole[name], rel=0.25), name
        assert dry(*self.COMMAND) == found
        assert dry(*self.COMMAND, "--seed", "3") != found
        text = run(*self.COMMAND, "--dry-run")
        assert "Estimate for 8 pairs, from 5 drawn with seed 0" in text
        assert not Path("out").exists()

    def test_what_is_left_of_a_run_that_was_recorded(self, dry, run, server):
        server.script(PATH, answering(think))
        run(*self.COMMAND, "--resamples", "10")
        names = Counter(path.name for path in Path("out").iterdir())
        found = dry(*self.COMMAND, "--sample", "8")
        # But for controls, which borrow their evidence from another pair here.
        assert found["ledger"]["claims"] == found["ledger"]["distinct_claims"] > 0
        assert found["expected"]["calls"] <= 16
        assert Counter(path.name for path in Path("out").iterdir()) == names

    def test_pairs_without_scores_are_refused_as_in_a_run(self, run, tmp_path):
        row = {"id": "p", "question": "", "original": "Take 1 g.", "injected": "Take 9 g."}
        (tmp_path / "pairs.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        assert run(*self.COMMAND, "--dry-run", status=2) == ""


class TestWork:
    def test_the_decomposer_is_given_the_same_whatever_it_makes(self):
        one, two = Line("decomposer", "m", Price(1, 1)), Line("judge", "m", Price(1, 1))
        work = Work({one: Load(2, 100, 10, 130), two: Load(3, 30, 3, 40)}, {"web": 4})
        assert work.splits
        assert not Work({two: Load()}).splits
        grown = work.with_claims(2.0)
        assert grown.loads[one] == Load(2, 100, 20, 130)
        assert grown.loads[two] == Load(6, 60, 6, 80)
        assert grown.searches == {"web": 8}

    def test_sums_keep_what_only_one_side_has(self):
        one, two = Line("a", "m", None), Line("b", "m", None)
        total = Work({one: Load(1, 2, 3, 4)}, {"x": 1}).plus(Work({two: Load(1), one: Load(1, 1, 1, 1)}, {"y": 2}))
        assert total == Work({one: Load(2, 3, 4, 5), two: Load(1)}, {"x": 1, "y": 2})

    def test_equal_sentences_count_once(self):
        pair = SimpleNamespace(question="q", original="One is. Two is.", injected="One is. Three is.")
        assert sampling.distinct_text([pair, pair]) == len("One is.Two is.Three is.")


def test_the_core_is_enough():
    code = (
        "import sys, factcheck.cli.estimate; print(sorted({'numpy', 'pint', 'rank_bm25', 'tqdm'} & set(sys.modules)))"
    )
    done = __import__("subprocess").run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
