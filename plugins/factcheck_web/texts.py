"""Text on its way out and in: queries without operators, markup removed from what came back, dates in one form."""

from __future__ import annotations

import html
import re
import unicodedata
from datetime import datetime
from email.utils import parsedate_to_datetime

from factcheck.text.lexicon import words as lexicon

# Prefixes by which one search service or another reads a word as a command. A claim is data: an answer that says
# "site:example.com" must not choose where its own evidence comes from.
_COMMANDS = (
    "site inurl allinurl intitle allintitle intext allintext inanchor allinanchor filetype ext cache related link info "
    "define before after source lang loc location inbody inpage url host area range"
)
_COMMAND = re.compile(rf"\b({'|'.join(_COMMANDS.split())})\s*:+", re.IGNORECASE)
_SIGNS = re.compile(r"[\"“”„«»()\[\]{}*|^~\\]+")
_LEADING = re.compile(r"(?<!\S)[-+!:&@]+(?=\S)")
_OPERATOR = re.compile(r"(?<!\S)(?:AND|OR|NOT|NEAR|ADJ|TO|AROUND)(?!\S)")

_WORD = re.compile(r"[^\W_]+(?:[-\u2010\u2011][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b")
_EMPTY_WORDS = lexicon(
    "a an the and or of in on at to for with by from as into onto upon about than that this these those there here "
    "it its is are was were be been being am do does did have has had will would shall should may might must can "
    "could which who whom whose what when where why how he she they we you i his her their our your my me him them "
    "us if then so such very more most less least no not nor only also every each any all some per within over "
    "under up take takes taken taking give given giving use used using need needs"
)

_BLOCK = (
    r"</?(?:p|div|li|ul|ol|h[1-6]|tr|td|th|table|br|hr|section|article|blockquote|dl|dt|dd|pre|caption|thead|tbody|"
    r"jats:p|jats:title|jats:sec|jats:list|jats:list-item|abstract|abstracttext)\b[^<>]*>"
)
_INLINE = (
    r"</?(?:b|i|u|s|em|strong|span|a|sup|sub|small|big|font|mark|code|q|cite|abbr|acronym|tt|var|kbd|samp|ins|del|bdi|"
    r"img|wbr|scp|bold|italic|underline|sc|inline-formula|mml:[\w-]+|math|m[inosru][\w-]*|msup|msub|"
    r"jats:[\w-]+)\b[^<>]*>"
)
_BLOCKS = re.compile(_BLOCK, re.IGNORECASE)
_INLINES = re.compile(_INLINE, re.IGNORECASE)
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>")
# 10<sup>9</sup> without its tags would read 109.
_POWER = re.compile(r"(?<=\d)<(sup|jats:sup)\b[^<>]*>\s*(?=[-−–+]?\d)", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\f\v]+")
_LINES = re.compile(r" *\n\s*")

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_ISO = re.compile(r"(?P<y>\d{4})(?:-(?P<m>\d\d)(?:-(?P<d>\d\d))?)?(?=$|T|\s\d\d:)")
_COMPACT = re.compile(r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)")
_MONTH_FIRST = re.compile(r"(?P<name>[A-Za-z]{3,9})\.? (?P<d>\d{1,2}),? (?P<y>\d{4})")
_DAY_FIRST = re.compile(r"(?P<d>\d{1,2}) (?P<name>[A-Za-z]{3,9})\.? (?P<y>\d{4})")
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})(?: (?P<name>[A-Za-z]{3,9})(?:[ -].*?)?(?P<d>\d{1,2})?)?")


def search_query(text: str, *, chars: int, words: int = 1000) -> str:
    """Return a text as a plain query: no operators, commands, quotes or control characters; cut between words."""
    visible = "".join(" " if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") else char for char in text)
    visible = _COMMAND.sub(r"\1 ", visible)
    visible = _LEADING.sub("", _SIGNS.sub(" ", visible))
    visible = _OPERATOR.sub(lambda match: match[0].lower(), visible)
    kept: list[str] = []
    size = -1
    for word in visible.split()[:words]:
        size += 1 + len(word)
        if size > chars:
            break
        kept.append(word)
    return " ".join(kept) if kept else "".join(visible.split())[:chars]


def content_words(text: str, *, limit: int) -> list[str]:
    """Return the distinct words of a text that say what it is about, in lower case and in order.

    Words without a subject of their own, single letters and bare numbers are left out: a database that demands every
    word finds nothing for a whole sentence, and a value that is claimed must not be demanded of the evidence.
    """
    whole = _POSSESSIVE.sub("", unicodedata.normalize("NFC", text))
    folded = (word.casefold() for word in _WORD.findall(whole))
    named = (word for word in folded if len(word) > 1 and word not in _EMPTY_WORDS and not word[0].isdigit())
    return list(dict.fromkeys(word for word in named if len(word) <= 60))[:limit]


def plain_text(markup: str) -> str:
    """Return the text of an HTML or JATS fragment: tags gone, entities resolved, blocks on lines of their own.

    Only known tags count as tags, so that "eGFR <30 and >15" stays; a power keeps its sign, as in 10^9.
    """
    text = _POWER.sub("^", _CDATA.sub("", _without_comments(markup)))
    text = _INLINES.sub("", _BLOCKS.sub("\n", text))
    text = html.unescape(text).replace("\u00a0", " ")
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _without_comments(markup: str) -> str:
    # A regular expression would look for the end of each comment that has none through all the rest.
    kept = []
    at = 0
    while (start := markup.find("<!--", at)) >= 0 and (end := markup.find("-->", start + 4)) >= 0:
        kept.append(markup[at:start])
        at = end + 3
    return "".join(kept) + markup[at:]


def one_line(text: str) -> str:
    """Return a text with every run of white space as one space."""
    return " ".join(text.split())


def iso_date(text: str) -> str:
    """Return a date as YYYY, YYYY-MM or YYYY-MM-DD, "" for what is none, relative ("3 days ago") or impossible.

    >>> [iso_date(text) for text in ("Jan 5, 2024", "20231101", "2019 Mar-Apr", "3 days ago")]
    ['2024-01-05', '2023-11-01', '2019-03', '']
    """
    text = one_line(text)
    for pattern, whole in (
        (_ISO, False),
        (_COMPACT, True),
        (_MONTH_FIRST, True),
        (_DAY_FIRST, True),
        (_YEAR_FIRST, True),
    ):
        match = pattern.fullmatch(text) if whole else pattern.match(text)
        if match:
            return _date(match.groupdict())
    try:
        return parsedate_to_datetime(text).date().isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _date(parts: dict[str, str | None]) -> str:
    year, day, month = int(parts["y"] or 0), parts.get("d"), parts.get("m")
    number = int(month) if month else _MONTHS.get((parts.get("name") or "")[:3].lower(), 0)
    if not number:
        return str(year) if 1500 <= year <= 2200 else ""
    try:
        date = datetime(year, number, int(day or 1)).date()
    except ValueError:
        return ""
    return date.isoformat() if day else date.isoformat()[:7]
