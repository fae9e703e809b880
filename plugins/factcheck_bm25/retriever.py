"""The retriever ``bm25``: BM25 over the clinical tokens of one or more corpora."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from pydantic import Field

from factcheck.corpus import Corpus, CorpusPassage, corpus_of, open_corpus
from factcheck.errors import ConfigError, CorpusError, MissingExtraError
from factcheck.schema import Model, Passage, Query
from factcheck.text.tokens import terms

if TYPE_CHECKING:
    from factcheck_bm25.index import Bm25Index


class Text(Protocol):
    """Describe a document to index that lies in memory."""

    @property
    def id(self) -> str:
        """Return an id that no other document has."""

    @property
    def title(self) -> str:
        """Return the title, which is searched too."""

    @property
    def text(self) -> str:
        """Return the text; not blank."""


class _Entry(NamedTuple):
    id: str
    corpus: str
    passage: CorpusPassage


SMALL = 5_000


class _Built(NamedTuple):
    entries: list[_Entry]
    index: Bm25Index


class Bm25Retriever:
    """Find the passages that share terms with a query, best first by BM25; ties in the order of their ids.

    Several corpora make one index, so that a term is as rare as it is in all of them. A passage id that several corpora
    use is prefixed with the name of the corpus and a colon; others stay as they are. The index is made at the first
    query, and errors of the corpora are raised then, as CorpusError or UnknownNameError.
    """

    version = "1"

    class Settings(Model):
        """Name the corpora, and set how far repetition (``k1``), length (``b``) and title of a passage count.

        ``title_weight`` is how often the title is read before the text; 0 leaves it out.
        """

        corpora: tuple[str, ...] = ()
        k1: float = Field(default=1.2, ge=0.0)
        b: float = Field(default=0.75, ge=0.0, le=1.0)
        title_weight: int = Field(default=2, ge=0, le=10)

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or self.Settings()
        self._lock = threading.Lock()
        self._opened: tuple[Corpus, ...] | None = None
        self._built: _Built | None = None

    @classmethod
    def over(cls, documents: Iterable[Text], settings: Settings | None = None, *, corpus: str = "documents") -> Self:
        """Return a retriever over documents in memory instead of the corpora of its settings; there may be none."""
        retriever = cls(settings)
        retriever._opened = (corpus_of(map(_passage, documents), name=corpus),)
        return retriever

    @property
    def corpus_sha256(self) -> tuple[str, ...]:
        """Return the hashes of the corpora, in the order of the settings."""
        with self._lock:
            return tuple(corpus.sha256 for corpus in self._corpora())

    def retrieve(self, query: Query, k: int) -> list[Passage]:
        """Return at most ``k`` passages with a score above zero; none if no passage shares a term with the query.

        Raises ConfigError if no corpus was named, MissingExtraError without the extra ``local``.
        """
        entries, index = self._ready()
        found = []
        for rank, (position, score) in enumerate(index.top(terms(query.text), k), start=1):
            entry = entries[position]
            passage = entry.passage
            found.append(
                Passage(
                    id=entry.id,
                    doc_id=passage.doc_id,
                    corpus=entry.corpus,
                    title=passage.title,
                    text=passage.text,
                    source=passage.source,
                    url=passage.url,
                    published=passage.published,
                    score=score,
                    rank=rank,
                )
            )
        return found

    @property
    def quick(self) -> bool:
        """Tell whether a query takes less than half a millisecond: the index is there, and small."""
        built = self._built
        return built is not None and len(built.entries) <= SMALL

    def warm_up(self) -> None:
        """Open the corpora and make the index now, about a second for 4,000 passages; raises as ``retrieve`` does."""
        self._ready()

    def _ready(self) -> _Built:
        with self._lock:
            if self._built is None:
                self._built = self._build()
            return self._built

    def _corpora(self) -> tuple[Corpus, ...]:
        if self._opened is None:
            # A corpus that is named twice is searched once.
            self._opened = tuple(open_corpus(name) for name in dict.fromkeys(self.settings.corpora))
        return self._opened

    def _build(self) -> _Built:
        corpora = self._corpora()
        if not corpora:
            raise ConfigError("retriever 'bm25' has no corpus to search.", hint="Name one: --corpus NAME|DIR")
        try:
            from factcheck_bm25.index import Bm25Index
        except ImportError as error:
            raise MissingExtraError("retriever 'bm25'", error.name or "rank_bm25", "local") from error
        # In the order of ids, so that the index breaks ties by id.
        entries = sorted(_entries(corpora), key=lambda entry: entry.id)
        weight = self.settings.title_weight
        documents = (terms(entry.passage.title) * weight + terms(entry.passage.text) for entry in entries)
        return _Built(entries, Bm25Index(documents, k1=self.settings.k1, b=self.settings.b))


def _passage(item: Text) -> CorpusPassage:
    if isinstance(item, CorpusPassage):
        return item
    return CorpusPassage(id=item.id, doc_id=getattr(item, "doc_id", item.id), title=item.title, text=item.text)


def _entries(corpora: Sequence[Corpus]) -> list[_Entry]:
    """Return the passages of all corpora under ids that no two of them share."""
    names = Counter(corpus.name for corpus in corpora)
    labels = [c.name if names[c.name] == 1 else f"{c.name}@{c.sha256[:8]}" for c in corpora]
    used = Counter(passage.id for corpus in corpora for passage in corpus.passages())
    entries = [
        _Entry(passage.id if used[passage.id] == 1 else f"{label}:{passage.id}", label, passage)
        for label, corpus in zip(labels, corpora, strict=True)
        for passage in corpus.passages()
    ]
    taken = Counter(entry.id for entry in entries)
    if clash := next((id for id, n in taken.items() if n > 1), None):
        raise CorpusError(
            f"the passage id '{clash}' is used twice in the corpora {', '.join(labels)}.",
            hint="Give each corpus a name of its own in its manifest, and name each corpus once.",
        )
    return entries
