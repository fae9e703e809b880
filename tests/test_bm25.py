"""The retriever bm25: contract, arithmetic against two references, several corpora, threads."""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
import threading
import time
from collections import Counter

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rank_bm25")
pytest.importorskip("Stemmer")

import rank_bm25
from factcheck_bm25.index import Bm25Index
from factcheck_bm25.retriever import Bm25Retriever
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from factcheck.corpus import CorpusPassage
from factcheck.errors import ConfigError, CorpusError, MissingExtraError, UnknownNameError
from factcheck.schema import Query

WORDS = "abcdefg"
DOCUMENTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9), min_size=1, max_size=12)
QUERIES = st.lists(st.sampled_from(WORDS + "z"), max_size=6)


class PlainLucene(rank_bm25.BM25Okapi):
    """rank-bm25 as it is, with the idf of Lucene and nothing else."""

    def _calc_idf(self, nd):
        n_documents = self.corpus_size
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (n_documents - n + 0.5) / (n + 0.5))


def reference_scores(documents, query, k1, b):
    """Okapi BM25 written out, without either library."""
    size = len(documents)
    average = sum(map(len, documents)) / size
    scores = []
    for document in documents:
        counts = Counter(document)
        score = 0.0
        for term in query:
            n = sum(term in other for other in documents)
            idf = math.log(1 + (size - n + 0.5) / (n + 0.5))
            tf = counts[term]
            if tf:
                score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(document) / average))
        scores.append(score)
    return scores


# rank-bm25 divides zero by zero where k1 is 0, and where b is 1 and a document is empty.
@given(DOCUMENTS, QUERIES, st.floats(0.01, 3), st.floats(0, 0.99))
def test_scores_equal_plain_rank_bm25_to_the_last_bit(documents, query, k1, b):
    assume(any(documents))
    index = Bm25Index(iter(documents), k1=k1, b=b)
    plain = PlainLucene(documents, k1=k1, b=b).get_scores(query)
    assert index.get_scores(query).tolist() == plain.tolist()
    positions = list(range(len(documents)))[::2]
    assert index.get_batch_scores(query, positions) == plain[positions].tolist()


@given(DOCUMENTS, QUERIES, st.floats(0, 3), st.floats(0, 1), st.integers(1, 15))
def test_ranking_equals_a_reference(documents, query, k1, b, k):
    index = Bm25Index(iter(documents), k1=k1, b=b)
    found = index.top(query, k)
    scores = reference_scores(documents, query, k1, b) if any(documents) else [0.0] * len(documents)
    positive = [position for position, score in enumerate(scores) if score > 0]
    assert positive == [position for position, document in enumerate(documents) if set(document) & set(query)]
    assert len(found) == min(k, len(positive))
    assert [score for _, score in found] == pytest.approx(sorted(scores, reverse=True)[: len(found)])
    for position, score in found:
        assert score == pytest.approx(scores[position])
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))


def test_golden_scores():
    # Two documents of two terms, k1 = 1.2, b = 0.75: the idf of a term in one of two is ln 2, in both ln 1.2.
    index = Bm25Index(iter([["a", "b"], ["a", "c"]]), k1=1.2, b=0.75)
    assert index.get_scores(["b"]).tolist() == pytest.approx([math.log(2), 0.0])
    assert index.get_scores(["a"]).tolist() == pytest.approx([math.log(1.2)] * 2)
    assert index.get_scores(["b", "b"]).tolist() == pytest.approx([2 * math.log(2), 0.0])


def test_plain_okapi_would_miss_the_only_match():
    documents = [["gout", "colchicine"], ["asthma", "salbutamol"]]
    assert rank_bm25.BM25Okapi(documents).get_scores(["gout"]).tolist() == [0.0, 0.0]
    assert Bm25Index(iter(documents), k1=1.2, b=0.75).top(["gout"], 5)[0][0] == 0


def test_empty_indexes():
    assert Bm25Index(iter([]), k1=1.2, b=0.75).top(["a"], 5) == []
    nothing = Bm25Index(iter([[], []]), k1=1.2, b=0.75)
    assert nothing.top(["a"], 5) == []
    assert nothing.get_scores(["a"]).tolist() == [0.0, 0.0]


def test_an_error_while_documents_are_read_is_not_taken_for_an_empty_index():
    def documents():
        yield ["a"]
        raise ZeroDivisionError("in the tokeniser")

    with pytest.raises(ZeroDivisionError, match="tokeniser"):
        Bm25Index(documents(), k1=1.2, b=0.75)


class IndexMachine(RuleBasedStateMachine):
    """Documents come and go; each word always finds exactly the documents that hold it."""

    def __init__(self):
        super().__init__()
        self.documents: dict[str, list[str]] = {}
        self.count = 0

    @rule(words=st.lists(st.sampled_from(["gout", "asthma", "rash", "5 mg", "5 µg", "<30"]), min_size=1, max_size=4))
    def put(self, words):
        self.count += 1
        self.documents[f"d{self.count}"] = words

    @rule()
    def drop(self):
        if self.documents:
            self.documents.popitem()

    @invariant()
    def finds_exactly_the_holders(self):
        texts = [CorpusPassage(id=i, doc_id=i, text=". ".join(words)) for i, words in self.documents.items()]
        retriever = Bm25Retriever.over(texts)
        for word in ("gout", "asthma", "rash"):
            found = {passage.id for passage in retriever.retrieve(ask(word), 100)}
            assert found == {i for i, words in self.documents.items() if word in words}


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)


def ask(text):
    return Query(id="q", claim_id="c", text=text)


def over(*texts, **kwargs):
    return Bm25Retriever.over(
        [CorpusPassage(id=f"p{i}", doc_id=f"p{i}", text=text) for i, text in enumerate(texts)], **kwargs
    )


def write(folder, *rows, name=None):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"_id": id, "title": "", "text": text}) for id, text in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    (folder / "corpus.jsonl").write_bytes(data)
    if name:
        manifest = {"schema": "factcheck.corpus/1", "name": name, "passages": len(rows)}
        manifest["sha256"] = hashlib.sha256(data).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return str(folder)


def test_passages_are_complete_and_ordered():
    texts = ["warfarin raises bleeding", "warfarin warfarin", "nothing of the kind"]
    found = over(*texts, corpus="mine").retrieve(ask("warfarin bleeding"), 5)
    assert [p.id for p in found] == ["p0", "p1"]
    assert [p.rank for p in found] == [1, 2]
    assert found[0].score > found[1].score > 0
    assert (found[0].text, found[0].corpus, found[0].doc_id) == (texts[0], "mine", "p0")


def test_ties_go_by_id_and_k_is_kept():
    texts = ["same words here"] * 12
    found = over(*texts).retrieve(ask("words"), 3)
    assert [p.id for p in found] == ["p0", "p1", "p10"]
    assert over(*texts).retrieve(ask("words"), 0) == []


@pytest.mark.parametrize("text", ["qwxzv", "the of and", "?!", "\ud800".encode("utf-8", "replace").decode()])
def test_no_shared_term_finds_nothing(text):
    assert over("warfarin", "5 mg").retrieve(ask(text), 5) == []


def test_units_and_comparators_rank():
    retriever = over("a dose of 5 g", "a dose of 5 µg", "egfr <30", "egfr >30")
    assert retriever.retrieve(ask("5 micrograms"), 1)[0].id == "p1"
    assert retriever.retrieve(ask("eGFR < 30"), 1)[0].id == "p2"
    assert retriever.retrieve(ask("eGFR > 30"), 1)[0].id == "p3"


def test_the_title_is_searched_and_counts():
    passages = [
        CorpusPassage(id="a", doc_id="a", title="Gout", text="Colchicine is given early."),
        CorpusPassage(id="b", doc_id="b", title="", text="Gout is treated early."),
    ]
    retriever = Bm25Retriever.over(passages)
    assert [p.id for p in retriever.retrieve(ask("gout"), 5)] == ["a", "b"]
    untitled = Bm25Retriever.over(passages, Bm25Retriever.Settings(title_weight=0))
    assert [p.id for p in untitled.retrieve(ask("gout"), 5)] == ["b"]


def test_corpora_are_one_index_and_ids_collide_only_where_they_do(tmp_path):
    one = write(tmp_path / "one", ("a", "warfarin and aspirin"), ("b", "warfarin alone"), name="first")
    two = write(tmp_path / "two", ("a", "aspirin alone"), ("c", "colchicine"), name="second")
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=(one, two)))
    found = {(p.id, p.corpus) for p in retriever.retrieve(ask("warfarin aspirin colchicine"), 9)}
    assert found == {("first:a", "first"), ("b", "first"), ("second:a", "second"), ("c", "second")}
    together = Bm25Retriever.over(
        [
            CorpusPassage(id=str(i), doc_id="d", text=text)
            for i, text in enumerate(["warfarin and aspirin", "warfarin alone", "aspirin alone", "colchicine"])
        ]
    )
    scores = [p.score for p in retriever.retrieve(ask("warfarin"), 9)]
    assert scores == [p.score for p in together.retrieve(ask("warfarin"), 9)]
    assert len(retriever.corpus_sha256) == 2


def test_corpora_of_one_name_are_told_apart_by_their_hash(tmp_path):
    one = write(tmp_path / "x" / "corpus", ("a", "warfarin"))
    two = write(tmp_path / "y" / "corpus", ("a", "warfarin too"))
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=(one, two)))
    found = retriever.retrieve(ask("warfarin"), 9)
    assert {p.corpus for p in found} == {f"corpus@{sha[:8]}" for sha in retriever.corpus_sha256}
    assert len({p.id for p in found}) == 2


def test_a_corpus_named_twice_is_searched_once(tmp_path):
    one = write(tmp_path / "one", ("a", "warfarin"))
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=(one, one)))
    assert [p.id for p in retriever.retrieve(ask("warfarin"), 9)] == ["a"]


def test_equal_corpora_under_two_paths_are_refused(tmp_path):
    one = write(tmp_path / "x" / "c", ("a", "warfarin"))
    two = write(tmp_path / "y" / "c", ("a", "warfarin"))
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=(one, two)))
    with pytest.raises(CorpusError, match="used twice"):
        retriever.retrieve(ask("warfarin"), 9)


def test_the_fingerprint_names_settings_and_hash(tmp_path):
    one = write(tmp_path / "one", ("a", "warfarin"), name="first")
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_text())
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=(one,)))
    assert retriever.corpus_sha256 == (manifest["sha256"],)
    assert retriever.version
    assert over("warfarin").corpus_sha256 != over("warfarin!").corpus_sha256
    with pytest.raises(ValueError, match="k2"):
        Bm25Retriever.Settings(k2=1)
    with pytest.raises(ValueError, match="b"):
        Bm25Retriever.Settings(b=1.5)


def test_making_it_touches_nothing_and_errors_come_at_first_use():
    with pytest.raises(ConfigError, match="no corpus"):
        Bm25Retriever().retrieve(ask("x"), 1)
    assert Bm25Retriever().corpus_sha256 == ()
    retriever = Bm25Retriever(Bm25Retriever.Settings(corpora=("clinical-strater",)))
    with pytest.raises(UnknownNameError):
        retriever.retrieve(ask("x"), 1)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rank_bm25", None)
    monkeypatch.delitem(sys.modules, "factcheck_bm25.index")
    with pytest.raises(MissingExtraError, match=r"rank_bm25.*factcheck\[local\]"):
        over("warfarin").retrieve(ask("warfarin"), 1)


def test_threads_share_one_index_and_get_equal_results(monkeypatch):
    retriever = over(*(f"word{i % 7} drug{i}" for i in range(200)))
    expected = over(*(f"word{i % 7} drug{i}" for i in range(200))).retrieve(ask("word3 drug10"), 20)
    builds = []
    build = Bm25Retriever._build
    monkeypatch.setattr(Bm25Retriever, "_build", lambda self: builds.append(1) or build(self))
    barrier = threading.Barrier(8)
    results = []

    def work():
        barrier.wait()
        results.append(retriever.retrieve(ask("word3 drug10"), 20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
    assert len(builds) == 1


def test_warming_up_does_the_work_of_the_first_query(monkeypatch):
    retriever = over("warfarin")
    retriever.warm_up()
    monkeypatch.setattr(Bm25Retriever, "_build", None)
    assert retriever.retrieve(ask("warfarin"), 1)
    monkeypatch.undo()
    with pytest.raises(ConfigError):
        Bm25Retriever().warm_up()


def test_callers_cannot_change_what_the_next_one_gets():
    retriever = over("warfarin")
    retriever.retrieve(ask("warfarin"), 1).clear()
    assert retriever.retrieve(ask("warfarin"), 1)


def test_equal_results_whatever_the_order_of_the_documents():
    rng = random.Random(3)
    texts = {
        f"id{i}": " ".join(rng.choices(["gout", "rash", "asthma", "dose", "pain", "fever"], k=6)) for i in range(60)
    }
    passages = [CorpusPassage(id=i, doc_id=i, text=text) for i, text in texts.items()]
    first = Bm25Retriever.over(passages).retrieve(ask("gout fever"), 30)
    rng.shuffle(passages)
    assert Bm25Retriever.over(passages).retrieve(ask("gout fever"), 30) == first


def test_much_faster_than_rank_bm25_on_the_same_tokens():
    rng = random.Random(5)
    vocabulary = [f"t{i}" for i in range(5000)]
    weights = [1 / (i + 1) for i in range(5000)]
    documents = [rng.choices(vocabulary, weights, k=60) for _ in range(8000)]
    queries = [rng.choices(vocabulary, weights, k=12) for _ in range(4)]
    plain, index = PlainLucene(documents, k1=1.2, b=0.75), Bm25Index(documents, k1=1.2, b=0.75)

    def seconds(answer):
        started = time.process_time()
        for query in queries:
            answer(query)
        return time.process_time() - started

    for query in queries:
        assert index.get_scores(query).tolist() == plain.get_scores(query).tolist()
    # The share is far smaller on larger corpora; see docs/corpora.md.
    assert seconds(lambda query: index.top(query, 10)) * 10 < seconds(plain.get_scores)
