"""Read text as a model may read it: invisible signs gone, entities, look-alikes and digits in words folded, offsets kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

# Letters of other scripts that look like the Latin one behind them (pairs, after case folding), and small capitals.
_PAIRS = (
    "аa вb еe ёe кk мm нh оo рp сc тt уy хx іi їi јj ѕs һh ԁd ԛq ѡw ѵv ɡg αa βb εe ηn ιi κk νv οo ρp τt υu χx ωw "
    "օo ոn սu հh զq ցg ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz ıi ƚl ǀl"
)
_LOOKALIKES = str.maketrans({pair[0]: pair[1] for pair in _PAIRS.split()})
_DIGITS = str.maketrans("01345789@$", "oieastbgas")
_ENTITY = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(lt|gt|amp|quot|apos|nbsp));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_BREAKS = r"\s.,;:!?()\[\]{}<>\"'“”"
# A word, up to 60 signs of it, that has a sign beyond ASCII, or digits among its letters.
_ODD_WORD = re.compile(
    rf"(?<![^{_BREAKS}])(?=[^{_BREAKS}]{{0,59}}[^\x00-\x7f{_BREAKS}]|[a-z@$]{{0,59}}[0-9][0-9@$]{{0,9}}[a-z]|[a-z]{{1,59}}[@$])"
    rf"[^{_BREAKS}]{{2,60}}"
)
_LATIN = re.compile(r"[a-z]+(?:[-’'][a-z]+)*")
# Combining marks of the European scripts; those of others are part of their letters.
_ACCENTS = re.compile("[\u0300-\u036f\u0483-\u0489\u20d0-\u20ff]")
_TAGS = range(0xE0020, 0xE007F)
_FILLERS = "\u034f\u115f\u1160\u3164\uffa0"


class Plain(NamedTuple):
    """Hold folded text; its character ``i`` comes from ``source[starts[i]:ends[i]]``."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the source from which the non-empty ``text[start:end]`` comes."""
        return self.starts[start], self.ends[end - 1]


def plain(text: str) -> Plain:
    """Fold ``text`` to lower case without disguise; linear in its length."""
    odd = {char for char in set(text) if char >= "\x7f" or (char < " " and not char.isspace())}
    if "&" not in text and all(len(_folded(char)) == 1 for char in odd):
        folded = text.lower() if not odd else text.translate({ord(char): _folded(char) for char in set(text)})
        return Plain(_undisguised(folded), range(len(text)), range(1, len(text) + 1))
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    entity = _ENTITY.search(text)
    at = 0
    while at < len(text):
        end, char = at + 1, text[at]
        if entity is not None and entity.start() == at:
            end, char = entity.end(), _decoded(entity)
            entity = _ENTITY.search(text, end)
        for folded_char in _folded(char):
            chars.append(folded_char)
            starts.append(at)
            ends.append(end)
        at = end
    return Plain(_undisguised("".join(chars)), starts, ends)


def squeezed(text: str) -> str:
    """Return the letters of ``text`` alone, folded: what is left however it is written and spaced."""
    return text.translate({ord(char): _letters(char) for char in set(text)})


@lru_cache(maxsize=8192)
def _letters(char: str) -> str:
    return "".join(letter for letter in _folded(char).translate(_LOOKALIKES) if letter.isalpha())


@lru_cache(maxsize=8192)
def _folded(char: str) -> str:
    """Return what a character becomes: nothing for an invisible one, several letters for a ligature."""
    code = ord(char)
    if code in _TAGS:
        return chr(code - 0xE0000).lower()
    category = unicodedata.category(char)
    if char in _FILLERS or (category in ("Cf", "Cc", "Cs", "Co", "Cn") and not char.isspace()):
        return ""
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:  # variation selectors
        return ""
    decomposed = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", char).casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def _decoded(entity: re.Match[str]) -> str:
    if entity[3]:
        return _NAMED[entity[3]]
    code = int(entity[1], 16) if entity[1] else int(entity[2])
    return chr(code) if code <= 0x10FFFF else " "


def _undisguised(text: str) -> str:
    """Fold the words that are Latin but for look-alikes or digits, letter by letter, so that no offset moves."""

    def fold(match: re.Match[str]) -> str:
        word = match.group().translate(_LOOKALIKES)
        letters = word.translate(_DIGITS)
        return letters if _LATIN.fullmatch(letters) else word if word.isascii() else match.group()

    return _ODD_WORD.sub(fold, text)
