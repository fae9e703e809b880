"""Tell headings, introductions and lead-ins from statements, and which of them say something of the matter."""

from __future__ import annotations

import re
from itertools import pairwise

from factcheck.text import lexicon
from factcheck.text.blocks import Block
from factcheck.text.inline import Visible
from factcheck.text.kinds import classify
from factcheck.text.subjects import is_command, names

_WORD = re.compile(r"[A-Za-z][\w'’/-]*")
COLON_LABEL = re.compile(r"[^\W\d_][^.:!?;,\n\u2028\u2029]{0,58}[:：]\s+(?=\S)")
_DASH_LABEL = re.compile(r"[^\W\d_][\w /'’-]{0,40}?\s[–—-]\s+(?=\S)")
_AFTER_STRONG = re.compile(r"\s*(?:[:：]\s*|[–—-]\s+)")
# Below such a heading each item is a work that is cited, and is kept whole.
CITES = re.compile(
    r"(?:\w+ )?(?:references?|bibliography|sources|citations|further reading)(?: \(.*\))?", re.IGNORECASE
)
_HEADING_LIMIT = 120
# Ranks of headings without a level of their own, below the six of Markdown.
STRONG_RANK, _PLAIN_RANK = 7, 8
_RELATIVE = lexicon.words("that which who what to")
_ASKING = lexicon.words("what who how why when where which whether is are can should does")


def is_stock(label: str) -> bool:
    """Tell whether a heading or introduction is made of stock words alone: "In the meantime", "Key points"."""
    words = [match.group().lower().removesuffix("'s").removesuffix("’s") for match in _WORD.finditer(label)]
    return all(word in lexicon.STOCK for word in words) and not any(char.isdigit() or _foreign(char) for char in label)


def _foreign(char: str) -> bool:
    return char.isalpha() and not char.isascii()


def renames(heading: str) -> bool:
    """Tell whether a heading names a new subject, so that the one before it no longer holds."""
    words = [match.group().lower() for match in _WORD.finditer(heading)]
    if names(heading):
        return True
    if not words or len(words) > 3 or words[0] in lexicon.NO_SUBJECT or words[0] in lexicon.PREPOSITIONS:
        return False
    return not any(word in lexicon.SECTION_WORDS or word in lexicon.STOCK for word in words)


def is_incomplete(label: str) -> bool:
    """Tell whether a heading or introduction needs what follows to say anything: "Avoid if", "The following"."""
    words = [match.group().lower() for match in _WORD.finditer(label)]
    return not words or words[-1] in lexicon.INCOMPLETE or not {"following", "below"}.isdisjoint(words)


def states_something(label: str) -> bool:
    """Tell whether a heading or introduction is a sentence that can be true or false."""
    words = [match.group().lower() for match in _WORD.finditer(label)]
    if len(words) < 3 or is_incomplete(label):
        return False
    first = words[0]
    if first in _ASKING or (first == "do" and words[1] != "not"):
        return False
    if first in lexicon.IMPERATIVES:
        return words[1] not in lexicon.PREPOSITIONS and words[1] not in ("and", "or")
    if first in lexicon.PREPOSITIONS and ", " not in label:
        return False
    verbs = lexicon.AUXILIARIES | lexicon.PLAIN_VERBS
    return any(word in verbs and before not in _RELATIVE for before, word in pairwise(words))


def heading_rank(block: Block, visible: Visible, following: Block | None) -> int:
    """Return the rank of a paragraph that serves as a heading, 0 if it does not."""
    text = visible.text.strip()
    if (
        block.kind != "paragraph"
        or block.level
        or following is None
        or len(text) > _HEADING_LIMIT
        or text[-1] in ".!。！"
    ):
        return 0
    if visible.strong and not has_words(visible.text[visible.strong :]):
        return STRONG_RANK
    words = text.split()
    if (
        len(block.lines) > 1
        or not text[0].isupper()
        or not text[-1].isalpha()
        or len(words) > 5
        or words[0] in ("Yes", "No")
    ):
        return 0
    said = any(char.isdigit() for char in text) or states_something(text) or classify(text) != "statement"
    return 0 if said else _PLAIN_RANK


def lead_in(visible: Visible) -> int:
    """Return where the body starts behind a lead-in such as "**Oxygen:** " or "Preferred: ", 0 if there is none."""
    text = visible.text
    if visible.strong and has_words(text[visible.strong :]):
        label = text[: visible.strong].rstrip()
        after = _AFTER_STRONG.match(text, visible.strong)
        if len(label) <= 80 and (after or label[-1:] in (":", "：", ".")):
            stated = label.endswith(".") and (states_something(label) or is_command(label))
            return 0 if stated else (after.end() if after else visible.strong)
        return 0
    for pattern in (COLON_LABEL, _DASH_LABEL):
        match = pattern.match(text)
        if match and len(match.group().split()) <= 7 and not states_something(match.group()):
            return match.end()
    return 0


def has_words(text: str) -> bool:
    """Tell whether ``text`` has a letter or digit."""
    return any(char.isalnum() for char in text)
