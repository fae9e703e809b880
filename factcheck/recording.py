"""Record what a stage returned, and return it again where the ledger holds it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from factcheck.ledger import Ledger, Maker
from factcheck.retrieve import Recorded
from factcheck.schema import Fingerprint, Model, Query, Retrieval
from factcheck.source_tree import version

M = TypeVar("M", bound=Model)


def identity(*parts: Fingerprint, **bounds: Any) -> Maker:
    """Return what a recorded result depends on besides its input: components, bounds, and the version of factcheck."""
    return Maker({"factcheck": version(), "components": [part.model_dump(mode="json") for part in parts], **bounds})


async def recorded(
    ledger: Ledger | None,
    kind: str,
    maker: object,
    given: object,
    compute: Callable[[], Awaitable[M]],
    model: type[M],
    *,
    good: Callable[[M], bool],
    dump: Callable[[M], Any] = lambda result: result.model_dump(mode="json"),
    load: Callable[[Any], M] | None = None,
) -> M:
    """Return the result under kind, maker and input, computing it if there is none; it is stored if it is ``good``.

    ``dump`` and ``load`` turn it into JSON and back, where that is not the JSON of the model.
    In a replay nothing is computed: a result that is missing raises ReplayMissError.
    """
    if ledger is None:
        return await compute()
    made: list[tuple[M, Any]] = []

    async def flagged() -> dict[str, Any]:
        result = await compute()
        dumped = dump(result)
        made.append((result, dumped))
        return {"status": "ok" if good(result) else "failed", "value": dumped}

    found = await ledger.remember(kind, maker, given, flagged, stage=kind)
    if made and made[0][1] == found["value"]:
        return made[0][0]
    return load(found["value"]) if load is not None else model.model_validate(found["value"])


def recorded_retrieval(ledger: Ledger, fingerprint: Fingerprint) -> Recorded:
    """Return the recorder for the queries of one retriever."""
    maker = identity(fingerprint)

    async def obtain(query: Query, k: int, ask: Callable[[], Awaitable[Retrieval]]) -> Retrieval:
        given = {"query": query.text, "k": k}
        return await recorded(ledger, "retrieval", maker, given, ask, Retrieval, good=lambda r: r.status == "ok")

    return obtain
