"""Split running text into sentences by rule, with offsets.

The rules know abbreviations, initials, decimals, ellipses, closing quotes and brackets, citations that follow the
stop, and the full stops of Chinese, Japanese, Arabic, Urdu and Hindi. They look at a bounded window on either side of
a stop, so the time is linear in the length of the text and a change in one sentence moves no boundary of another.
"""

from __future__ import annotations

import re

from factcheck.text.lexicon import words

# Abbreviations that introduce what follows them: never the end of a sentence.
_NEVER = words(
    "dr mr mrs ms prof st vs e.g i.e eg ie cf viz ca approx fig figs eq eqs ref refs vol pp ch sect nos esp "
    "incl excl gov rev sen a.k.a"
)
# Abbreviations that end a sentence only if a word follows that commonly begins one.
_BEFORE_STARTER = words(
    "u.s u.k e.u u.n d.c al i.v i.m s.c p.o sp spp subsp var jr sr ph.d m.d resp temp conc inj dept gen mt ft"
)
# Abbreviations that end a sentence if a capital follows.
_BEFORE_CAPITAL = words(
    "etc q.i.d b.i.d t.i.d q.d q.o.d o.d p.r.n h.s a.c p.c a.m p.m inc ltd co max min tab tabs cap caps susp "
    "soln hr hrs wk wks yr yrs mo mos sec secs mins jan feb mar apr jun jul aug sept sep oct nov dec"
)
_ABBREVIATIONS = _NEVER | _BEFORE_STARTER | _BEFORE_CAPITAL
# These are abbreviations only in front of a number.
_NUMBERED = words("no p")

_STARTERS = words(
    "the a an this that these those it its he she they we you i there here if when while for in on at with "
    "without after before during as although because since but and or however also both all most some any "
    "many few each every no not do does never always avoid take give use start stop check keep call see ask "
    "tell go get make consider continue apply offer add try patients people children adults women men side "
    "symptoms what how why who which where your his her their our once until unless then by from to under "
    "over between among despite other"
)
# Words before a single letter that make it an initial and not a name such as "vitamin C".
_BEFORE_INITIAL = words("by and with from of to as or in")

_WIDE = "。！？｡؟۔।॥።"
_SCAN = re.compile(rf"[.!?…{_WIDE}]+|[()\[\]（）【】]|[\n\r\x0b\x0c\x85\u2028\u2029]\s*")
_NEWLINE = re.compile(r"\r\n|[\n\r\x0b\x0c\x85\u2028]")
_CLOSERS = re.compile(r"[\"'”’»›)\]}」』）】》〉〕*_]*")
_MARKS = re.compile(r"(?:\s?\[\^?\d{1,3}(?:\s?[,–-]\s?\d{1,3}){0,20}\]|[¹²³⁰⁴-⁹]){1,20}")
_CITATION = re.compile(
    r"\s[(\[](?=[^()\[\]]{0,200}(?:PMID|doi|et al|\b(?:19|20)\d\d\b))"
    r"[^()\[\]]{0,200}(?:\([^()]{0,80}\)[^()\[\]]{0,80}){0,3}[)\]]\.?"
)
_CLOSING_BRACKET = re.compile(r"[)\]）】]")
_BULLET = re.compile(r"[-•*–·▪]\s")
_LEADING = re.compile(r"(?:\s|[-•*–·▪](?=\s))*")
_SKIPPED = re.compile(r"[\"'“‘«‹(\[「『（【《*_¿¡]*")
# The year and volume of a journal citation: "N Engl J Med. 2022;388:9-21".
_YEAR = re.compile(r"(?:19|20)\d\d\s?[;:]")
_WORD = re.compile(r"[\w'’-]{1,40}")
_LABEL = re.compile(r"[^\s:.!?][^:.!?\n]{0,40}:\s")
_NUMBERED_LINE = re.compile(r"\d{1,2}\s?[-–.)]\s?[A-Z]")
_DOTTED = re.compile(r"(?:[a-z]\.)+[a-z]", re.IGNORECASE)

_WINDOW = 40
_BRACKET_REACH = 300
# A line of this length may have been wrapped by an editor; a shorter or a longer one was ended by its author.
_WRAPPED = range(55, 101)


def split_sentences(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the sentences of ``text[start:end]`` as spans into ``text``, in order.

    Offsets are code points, end exclusive; spans are not empty, do not overlap, and have no white space or bullet at
    their edges. Everything but white space and bullets lies in some span. A blank line always ends a sentence, a
    single line break only where the line was not wrapped. A semicolon never does.
    """
    stop = len(text) if end is None else min(end, len(text))
    spans: list[tuple[int, int]] = []
    begin = line = done = start
    depth = 0
    refused = -1
    for match in _SCAN.finditer(text, start, stop):
        if match.start() < done:
            continue
        mark = match.group()
        if mark in "([（【":
            depth += 1
            continue
        if mark in ")]）】":
            depth = max(0, depth - 1)
            continue
        if mark.isspace():
            after, edge = match.end(), match.start()
            while edge > line and text[edge - 1].isspace():
                edge -= 1
            ends = _line_ends(text, line, edge, match, stop, refused=refused == edge)
            line = after
        else:
            after, closed = _tail(text, match.end(), stop)
            if depth - closed > 0 and _CLOSING_BRACKET.search(text, after, min(stop, after + _BRACKET_REACH)):
                ends = False
            else:
                ends = _stop_ends(text, begin, match, after, stop)
            if not ends:
                refused = after
                continue
            done = after
        if ends:
            _append(spans, text, begin, after)
            begin, depth = after, 0
    _append(spans, text, begin, stop)
    return spans


def _append(spans: list[tuple[int, int]], text: str, begin: int, end: int) -> None:
    leading = _LEADING.match(text, begin, end)
    begin = leading.end() if leading else begin
    while end > begin and text[end - 1].isspace():
        end -= 1
    if begin < end:
        spans.append((begin, end))


def _tail(text: str, position: int, stop: int) -> tuple[int, int]:
    """Return where a sentence ends whose stop ends at ``position``, and how many brackets it closes after the stop."""
    closers = _CLOSERS.match(text, position, stop)
    after = closers.end() if closers else position
    closed = sum(text.count(mark, position, after) for mark in ")]）】")
    for pattern in (_MARKS, _CITATION):
        match = pattern.match(text, after, stop)
        if match and (match.end() == stop or text[match.end()].isspace()):
            after = match.end()
    return after, closed


def _line_ends(text: str, line: int, edge: int, match: re.Match[str], stop: int, *, refused: bool) -> bool:
    """Tell whether line breaks end a sentence; ``text[line:edge]`` is the line before them."""
    breaks = match.group()
    if match.end() >= stop or "\u2029" in breaks or len(_NEWLINE.findall(breaks)) > 1:
        return True
    before = text[edge - 1] if edge > line else ""
    if before in ("", ":", "："):
        return True
    if refused or before in ",;—–-，、；":
        return False
    if _BULLET.match(text, match.end(), stop):
        return True
    first = _first(text, match.end(), stop)
    if "\u2028" in breaks:
        return not first.islower()
    if edge - line in _WRAPPED:
        return False
    begins = first.isalpha() and not first.islower()
    return begins or any(pattern.match(text, match.end(), stop) for pattern in (_LABEL, _NUMBERED_LINE))


def _stop_ends(text: str, begin: int, match: re.Match[str], after: int, stop: int) -> bool:
    """Tell whether the stop that ``match`` found ends the sentence that starts at ``begin``."""
    mark = match.group()
    if after >= stop:
        return True
    following = after
    while following < stop and text[following].isspace():
        following += 1
    if following >= stop:
        return True
    closed = text[match.end() : after].strip("*_") != ""
    if any(char in _WIDE for char in mark):
        return following > after or not (closed and text[after].isalpha())
    head = text[max(begin, match.start() - _WINDOW) : match.start()]
    words = head.split()
    word = words[-1].lstrip("\"'“‘«([*_") if words and not head[-1].isspace() else ""
    first = _first(text, following, stop)
    if following == after:
        return _glued(text, word, mark, after, stop)
    if "!" in mark or "?" in mark:
        return not (closed and first.islower())
    if mark != ".":
        return first.isupper()
    if _BULLET.match(text, following, stop):
        return True
    if (closed and first.islower()) or _YEAR.match(text, following, stop):
        return False
    return _period_ends(words, word, first, _next_word(text, following, stop), at_start=len(words) == 1)


def _period_ends(words: list[str], word: str, first: str, following: str, *, at_start: bool) -> bool:
    """Decide for one full stop followed by white space; ``word`` stands before it, ``following`` after it."""
    low = word.lower()
    number = low.rstrip(")")
    if number.isdigit() and len(number) <= 3 and (at_start or (len(words) > 1 and words[-2][-1] in ":;")):
        return False
    if low in _NEVER:
        return False
    if first.isdigit():
        return low not in _ABBREVIATIONS and low not in _NUMBERED
    if first.islower() and not any(char.isupper() for char in following):
        return len(low) >= 4 and word.isalpha() and word.islower() and low not in _ABBREVIATIONS
    if low in _BEFORE_CAPITAL:
        return True
    if len(word) == 1 and word.isupper():
        previous = words[-2] if len(words) > 1 else ""
        named = previous.isalpha() and previous.islower() and previous not in _BEFORE_INITIAL
        return named or following.lower() in _STARTERS
    if low in _BEFORE_STARTER or _DOTTED.fullmatch(word):
        return following.lower() in _STARTERS
    return True


def _glued(text: str, word: str, mark: str, after: int, stop: int) -> bool:
    """Tell whether a stop without white space behind it ends a sentence, as in "with food.Avoid alcohol"."""
    plain = len(word) >= 3 and word.isalpha() and (word.islower() or word.istitle())
    match = _WORD.match(text, after, stop)
    following = match.group() if match else ""
    return plain and mark[0] in ".!?" and len(following) >= 2 and following.istitle() and text[after - 1] not in "'’"


def _first(text: str, position: int, stop: int) -> str:
    skipped = _SKIPPED.match(text, position, stop)
    position = skipped.end() if skipped else position
    return text[position] if position < stop else ""


def _next_word(text: str, position: int, stop: int) -> str:
    skipped = _SKIPPED.match(text, position, stop)
    match = _WORD.match(text, skipped.end() if skipped else position, stop)
    return match.group() if match else ""
