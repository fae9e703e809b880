"""Parse XML that came over the network: no entity is expanded, nothing outside the text is read, depth is bounded."""

from __future__ import annotations

import html
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from factcheck.errors import PermanentError

DEPTH_LIMIT = 200


class _Refused(Exception):
    """A construct that a reply of these services has no use for."""


def parse_xml(text: str, *, provider: str, root: str) -> ET.Element:
    """Return the root element; raises PermanentError if the text is not well formed or its root is not ``root``.

    Declared entities are refused, because nested ones grow without bound; the named characters of HTML are resolved.
    """
    try:
        element = _parse(text)
    except (expat.ExpatError, UnicodeError, _Refused) as error:
        raise PermanentError(
            f"the reply of {provider} is no XML that can be read: {error}.", hint="Try again later, or check base_url."
        ) from None
    if element.tag != root:
        raise PermanentError(
            f"the reply of {provider} is '{element.tag}', not '{root}' as documented.", hint="Check base_url."
        )
    return element


def _parse(text: str) -> ET.Element:
    builder = ET.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    depth = 0

    def refuse(*_: object) -> NoReturn:
        raise _Refused("it declares an entity")

    def skipped(name: str, is_parameter: bool) -> None:
        if is_parameter:
            return
        character = html.unescape(f"&{name};")
        if character.startswith("&"):
            raise _Refused(f"it uses the unknown entity '{name[:40]}'")
        builder.data(character)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEPTH_LIMIT:
            raise _Refused(f"it is nested deeper than {DEPTH_LIMIT} elements")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.SkippedEntityHandler = skipped
    parser.Parse(text, True)
    return builder.close()


def markup_of(element: ET.Element | None) -> str:
    """Return what an element holds with the tags inside it as text, "" for None: what ``plain_text`` takes."""
    return "" if element is None else "".join(_pieces(element))


def _pieces(element: ET.Element) -> Iterator[str]:
    yield html.escape(element.text or "", quote=False)
    for child in element:
        yield f"<{child.tag}>"
        yield from _pieces(child)
        yield f"</{child.tag}>"
        yield html.escape(child.tail or "", quote=False)
