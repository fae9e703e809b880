"""The retriever ``web/pubmed``: abstracts of PubMed through the E-utilities of NCBI."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr

from factcheck.net import Net
from factcheck_web.base import Hit, KeySettings, Rate, WebRetriever, find_key
from factcheck_web.eutils import ARTICLE_URL, BASE_URL, PROVIDER, Article, Eutils
from factcheck_web.texts import content_words

WORDS = 24


class PubmedRetriever(WebRetriever):
    """Find abstracts, best match first; retracted articles and records without an abstract are left out."""

    name = "web/pubmed"
    provider = PROVIDER
    host = "pubmed.ncbi.nlm.nih.gov"
    query_chars = 1000
    query_words = 200

    class Settings(KeySettings):
        """Set whom NCBI may write to (``email``), and a search term that every article must meet (``restrict``).

        A key is not needed; with one NCBI allows more requests. ``restrict`` is in PubMed's own syntax, as in
        "systematic[sb]".
        """

        base_url: str = Field(default=BASE_URL, pattern=r"^https?://[^\s?#]+$")
        key_env: str = "NCBI_API_KEY"
        email: SecretStr | None = None
        restrict: str = Field(default="", max_length=500)
        retracted: bool = False

    def __init__(self, settings: Any = None, *, net: Net | None = None) -> None:
        super().__init__(settings, net=net)
        self._eutils = Eutils(self.net, self.settings.base_url, email=self.settings.email, key=self.key)

    def rate_limit(self) -> Rate:
        """Return the limit of NCBI, 3 a second and 10 with a key, less what ``web/citations`` may use beside it."""
        return Rate(per_second=8.0, burst=2) if self.key is not None else Rate(per_second=2.0)

    async def search(self, text: str, k: int) -> list[Hit]:
        """Return the hits: articles that hold all words of the query, or any of them if none holds all."""

        async def ask(words: list[str], some: bool) -> list[Hit]:
            pmids = await self._eutils.search(self._term(words, some=some), k)
            articles = await self._eutils.articles(pmids)
            return [_hit(article) for article in articles if self.settings.retracted or not article.retracted]

        return await self.relaxed(content_words(text, limit=WORDS), ask)

    def _term(self, words: list[str], *, some: bool) -> str:
        parts = [f"({(' OR ' if some else ' ').join(words)})", "AND hasabstract"]
        if self.settings.restrict:
            parts.append(f"AND ({self.settings.restrict})")
        if not self.settings.retracted:
            parts.append("NOT retracted publication[pt]")
        return " ".join(parts)

    def _find_key(self) -> SecretStr | None:
        return find_key(self.settings, self.name, needed=False)


def _hit(article: Article) -> Hit:
    return Hit(
        id=f"pmid:{article.pmid}",
        doc_id=f"pmid:{article.pmid}",
        text=article.abstract,
        title=article.title if not article.retracted else f"Retracted: {article.title}",
        url=f"{ARTICLE_URL}{article.pmid}/",
        source=article.journal or "PubMed",
        published=article.published,
    )
