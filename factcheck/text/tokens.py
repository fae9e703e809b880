"""Clinical tokens: quantities, units and codes stay whole, and each has one normal form however it was typed.

A norm is folded and respelt (``factcheck.text.spelling``) and stemmed. A unit has one norm for all its spellings (µg,
μg, mcg, microgram) and shares it with no other unit. A comparator belongs to its number ("< 30" and "<30" give ``<30``,
"30" gives ``30``), the ends of a range form one token (``5-10``), a code loses its hyphens ("COVID-19" gives
``covid19``), and the words two to twelve give digits.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from factcheck.errors import MissingExtraError
from factcheck.text.spelling import fold, respell


class Token(NamedTuple):
    """Hold one token; ``text`` is the literal slice ``[start:end]`` of the source, in code points."""

    text: str
    start: int
    end: int
    norm: str


class _Piece(NamedTuple):
    """Hold a token of a chunk; ``parts`` are further norms under which it can be found."""

    start: int
    end: int
    norm: str
    stop: bool = False
    parts: tuple[str, ...] = ()


# Norm of a unit -> its forms, folded and without spaces.
_UNIT_FORMS = {
    "kg": "kg kilogram kilograms kilogramme kilogrammes", "g": "g gm gms gram grams gramme grammes",
    "mg": "mg mgs milligram milligrams milligramme milligrammes", "ng": "ng nanogram nanograms",
    "mcg": "mcg mcgs μg ug microgram micrograms microgramme microgrammes", "pg": "pg picogram picograms",
    "lb": "lb lbs pound pounds", "oz": "oz ounce ounces", "l": "l litre litres liter liters", "fl": "fl",
    "dl": "dl decilitre decilitres deciliter deciliters",
    "ml": "ml mls cc millilitre millilitres milliliter milliliters",
    "mcl": "mcl μl ul microlitre microlitres microliter microliters", "mol": "mol", "mmol": "mmol millimole millimoles",
    "mcmol": "mcmol μmol umol micromol micromole micromoles", "nmol": "nmol nanomole nanomoles",
    "pmol": "pmol picomole picomoles", "meq": "meq", "mosm": "mosm mosmol", "unit": "u unit units",
    "iu": "iu internationalunit internationalunits", "miu": "miu", "mciu": "μiu uiu μu", "mmhg": "mmhg",
    "cmh2o": "cmh2o", "kpa": "kpa", "bpm": "bpm beatsperminute", "kcal": "kcal", "kj": "kj", "gy": "gy", "m": "m",
    "nm": "nm", "mcm": "μm um mcm",
    "cm": "cm centimetre centimetres centimeter centimeters", "mm": "mm millimetre millimetres millimeter millimeters",
    "m2": "m2 m^2", "cm2": "cm2 cm^2", "mm2": "mm2 mm^2", "mm3": "mm3 mm^3", "%": "% percent",
    "°c": "°c degreec degreesc degreecelsius degreescelsius degreescentigrade celsius",
    "°f": "°f degreef degreesf degreefahrenheit degreesfahrenheit fahrenheit", "hour": "h hr hrs hour hours",
    "min": "min mins minute minutes", "day": "d day days", "week": "wk wks week weeks", "month": "mo month months",
    "year": "y yr yrs year years", "dose": "dose doses", "cell": "cell cells", "copi": "copies", "beat": "beat beats",
    "breath": "breath breaths",
}  # fmt: skip
_UNITS = {form: norm for norm, forms in _UNIT_FORMS.items() for form in forms.split()}
_TIMES = frozenset({"hour", "min", "day", "week", "month", "year", "dose"})
# Units that are meant wherever their forms stand, number or none. "Gram" is not among them, because of the stain.
_EVERYWHERE = frozenset(
    {"kg", "mg", "mcg", "ng", "l", "dl", "ml", "mcl", "mmol", "mcmol", "nmol", "pmol", "mmhg", "mm", "cm", "%"}
)
_UNIT_WORDS = {form: norm for form, norm in _UNITS.items() if norm in _EVERYWHERE and len(form) > 1}
_UNIT_WORDS |= {"minute": "min", "minutes": "min", "mins": "min", "hr": "hour", "hrs": "hour"}
_COUNTING = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(_COUNTING, start=2)}
_FRACTIONS = {
    "¼": ".25", "½": ".5", "¾": ".75", "⅓": ".333", "⅔": ".667", "⅛": ".125", "⅜": ".375", "⅝": ".625", "⅞": ".875",
}  # fmt: skip
_COMPARATORS = {"≤": "<=", "≦": "<=", "⩽": "<=", "=<": "<=", "≥": ">=", "≧": ">=", "⩾": ">=", "=>": ">="}

# Words without a subject of their own. Negations, quantifiers and words of order or time are not among them.
_STOP_WORDS = (
    "a an the and or of in on at to for with by from as into onto upon about than that this these those there here it "
    "its is are was were be been being am do does did doing done has have had having will would shall should may might "
    "must can could which who whom whose what how he she they them his her hers their theirs we us our ours you your "
    "yours i me my mine him itself themselves also such so then very just too eg ie etc"
)
_STOP = frozenset(_STOP_WORDS.split())
_CAPITAL_NAMES = frozenset({"AS", "OR", "US", "WHO"})
# After these a hyphen and a number count something: "type-2" is "type 2", whereas "COVID-19" is a name.
_COUNTED_WORDS = (
    "age arm class day dose grade group level line month part phase score stage step tier type week year zone"
)
_COUNTED = frozenset(_COUNTED_WORDS.split())
_SHORT_PART = 5
_LONG_NUMBER = 4
_LONGEST_COMPOUND = 3
_RATE_FACTORS = 3

_GAP = "[ \t\u00a0\u2000-\u200a\u202f]"
_ALNUM = r"[^\W_]"
_HYPHEN = r"\-\u2010\u2011\u2013"
_RUN = rf"{_ALNUM}+(?:[\u0300-\u036f]+{_ALNUM}*)*"
_DOTTED = r"[A-Za-z](?:\.[A-Za-z])+(?![A-Za-z])\.?"
_FILTRATION = rf"(?i:ml/min(?:ute)?(?:/|\s+per\s+)1\.73{_GAP}?m(?:²|2|\^2))(?!{_ALNUM})"
_WORD = rf"(?=[^\W\d_]){_RUN}(?:[{_HYPHEN}'’ʼ/&]{_RUN})*"
_DIGIT_CODE = rf"\d\d?[-\u2010\u2011](?i:HT\d?[A-Z]?|FU|ASA|MP|OH)(?!{_ALNUM})"
_DATE = rf"(?:\d{{4}}-\d\d-\d\d|\d\d?/\d\d?/\d{{4}}|\d+(?:\.\d+){{2,}})(?!{_ALNUM})"
_FRACTION = f"[{''.join(_FRACTIONS)}]"
_NUMBER = (
    r"(?:\d{1,3}(?:[,\u2009\u202f]\d{3}){1,5}(?!\d)(?:[.·]\d+)?"
    rf"|\d+(?:[.·]\d+)?{_FRACTION}?|(?<![\w.])\.\d+|{_FRACTION})"
)
_SPACED_UNITS = (
    r"international\s+units?",
    r"degrees?\s+(?:celsius|centigrade|fahrenheit|[cf])",
    r"per\s+cent",
    r"mm\s+hg",
    r"cm\s+h2o",
    r"beats\s+per\s+minute",
)
_LONG_UNITS = "|".join(
    [*_SPACED_UNITS, *(re.escape(form) for form in sorted(_UNITS, key=len, reverse=True) if len(form) > 1)]
)
_UNIT = (
    rf"(?:(?:(?i:{_LONG_UNITS})|[cm]?m[²³]|[µμ](?:IU|mol|[glLmU])|[ghdmylLuU](?!\.[A-Za-z])|[°º˚]{_GAP}?[CF]"
    rf"|(?:[x×*]{_GAP}?)?10(?:[\^*]\d\d?|[⁰¹²³⁴-⁹]+))(?!{_ALNUM})|%|[℃℉])"
)
_PER = rf"(?:{_GAP}?/{_GAP}?|\s+per\s+)(?:{_NUMBER}{_GAP}?)?{_UNIT}"
_TO = rf"(?:{_GAP}?[-\u2010-\u2013−~]{_GAP}?|\u2014|\s+to\s+)"
_QUANTITY = (
    rf"(?:(?P<comparator>[<>]=?|=[<>]|[≤≦⩽≥≧⩾]){_GAP}?)?(?P<low>(?:(?<![\w)\]%°])[-−])?{_NUMBER})"
    rf"(?:{_TO}(?P<high>[-−]?{_NUMBER})|(?P<ratio>[/:])(?P<other>{_NUMBER}))?"
    rf"(?:(?:{_GAP}?|-)(?P<unit>{_UNIT}(?:{_PER})*|(?:{_PER})+)|(?!{_ALNUM})(?![-.,:/·]\d))"
)
_QUANTITY_RE = re.compile(_QUANTITY)
_DOTTED_RE = re.compile(_DOTTED)
_DATE_RE = re.compile(_DATE)
_YEAR_RE = re.compile(r"(?<!\d)\d{4}(?!\d)")
_UNNAMED = re.sub(r"\(\?P<\w+>", "(?:", _QUANTITY)
_CHUNKS = "|".join([_DOTTED, _FILTRATION, _WORD, _DIGIT_CODE, _DATE, _UNNAMED, _RUN])
# Most chunks are plain words, and most characters between chunks begin none: seen first, they halve the time.
_PLAIN = rf"[A-Za-z]+(?![\w\u0300-\u036f{_HYPHEN}.'’ʼ/&])"
_CHUNK_RE = re.compile(rf"{_PLAIN}|(?=[\w<>=≤≦⩽≥≧⩾.\-−])(?:{_CHUNKS})")
_PER_RE = re.compile(r"\s*/\s*|(?:^|\s+)per\s+(?!cent)")
_POWER_RE = re.compile(r"[x×*]?10(?:[\^*]|(?=[⁰¹²³⁴-⁹]))(.+)")
_NUMBER_RE = re.compile(_NUMBER)
_NOT_RE = re.compile(r"(?:n['’ʼ]t|^cannot)$")
_SUFFIX_RE = re.compile(r"['’ʼ](?:s|d|m|ll|re|ve)$")
_APOSTROPHE_RE = re.compile("['’ʼ]")
_SLASH_RE = re.compile("[^/]+")
_BETWEEN_HYPHENS_RE = re.compile(f"[^{_HYPHEN}]+")


def tokenize(text: str) -> list[Token]:
    """Return the tokens of ``text`` in order, without overlap, stop words included.

    Raises MissingExtraError if PyStemmer is not installed.
    """
    found = []
    for chunk in _CHUNK_RE.finditer(text):
        base = chunk.start()
        for piece in _pieces(chunk[0]):
            start, end = base + piece.start, base + piece.end
            found.append(Token(text[start:end], start, end, piece.norm))
    return found


def terms(text: str) -> list[str]:
    """Return what to index or search for: norms in order without stop words, compounds also by their parts.

    A hyphenated word is found by its parts and as one word; a range, a ratio and a number with a comparator also by
    their bare numbers; a unit of three factors also by its first two. Raises MissingExtraError without PyStemmer.
    """
    found: list[str] = []
    for chunk in _CHUNK_RE.findall(text):
        found.extend(_chunk_terms(chunk))
    return found


@lru_cache(maxsize=1 << 16)
def _chunk_terms(chunk: str) -> tuple[str, ...]:
    found: list[str] = []
    for piece in _pieces(chunk):
        if not piece.stop:
            found.append(piece.norm)
        found += piece.parts
    return tuple(found)


@lru_cache(maxsize=1 << 15)
def _pieces(chunk: str) -> tuple[_Piece, ...]:
    if chunk.isalpha():
        return (_word(chunk, 0),)
    if not chunk[0].isalpha() and (quantity := _QUANTITY_RE.fullmatch(chunk)):
        return tuple(_quantity(quantity))
    if _DOTTED_RE.fullmatch(chunk):
        norm = chunk.replace(".", "").lower()
        return (_Piece(0, len(chunk), norm, stop=norm in {"eg", "ie"}),)
    if _DATE_RE.fullmatch(chunk):
        return (_Piece(0, len(chunk), chunk, parts=tuple(_YEAR_RE.findall(chunk))),)
    if chunk.lower() == "w/o":
        return (_Piece(0, len(chunk), "without"),)
    if "/" in chunk:
        if (unit := _unit(chunk)) and unit.partition("/")[0] not in _TIMES:
            return (_unit_piece(0, len(chunk), unit),)
        return tuple(piece for start, part in _split(chunk, _SLASH_RE) for piece in _compound(part, start))
    return tuple(_compound(chunk, 0))


def _quantity(found: re.Match[str]) -> Iterator[_Piece]:
    number = _number(found["low"])
    last = "high" if found["high"] else "other" if found["other"] else "low"
    parts: tuple[str, ...] = ()
    if last != "low":
        parts = (number, _number(found[last]))
        number = (found["ratio"] or "-").join(parts)
    if comparator := found["comparator"]:
        parts = parts or (number,)
        number = _COMPARATORS.get(comparator, comparator) + number
    yield _Piece(0, found.end(last), number, parts=parts)
    if found["unit"]:
        yield _unit_piece(found.start("unit"), found.end("unit"), _unit(found["unit"]) or fold(found["unit"]))


def _number(text: str) -> str:
    """Return a decimal number without signs of grouping, needless zeros or other scripts' digits."""
    sign = "-" if text[0] in "-−" else ""
    digits = "".join(
        str(unicodedata.decimal(c)) if c.isdecimal() else _FRACTIONS.get(c, c) for c in text.replace("·", ".")
    )
    whole, _, part = re.sub(r"[^\d.]", "", digits).partition(".")
    whole = whole.lstrip("0") or "0"
    part = part.rstrip("0")
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"


def _unit(text: str) -> str | None:
    """Return the norm of a unit with its denominators, None if some factor is no unit."""
    norms = []
    for factor in _PER_RE.split(text):
        number = _NUMBER_RE.match(factor)
        name = re.sub(r"\s+", "", factor[number.end() :] if number else factor)
        name = re.sub("[º˚]", "°", name)
        if power := _POWER_RE.fullmatch(re.sub(r"\s+", "", factor)):
            norms.append(f"10^{fold(power[1])}")
        elif (norm := _UNITS.get(fold(name))) is not None:
            amount = _number(number[0]) if number else ""
            norms.append("day" if (amount, norm) == ("24", "hour") else amount + norm)
        elif factor:
            return None
        else:
            norms.append("")
    return "/".join(norms)


def _unit_piece(start: int, end: int, unit: str) -> _Piece:
    factors = unit.split("/")
    return _Piece(start, end, unit, parts=("/".join(factors[:2]),) if len(factors) == _RATE_FACTORS else ())


def _split(text: str, part: re.Pattern[str]) -> list[tuple[int, str]]:
    return [(found.start(), found[0]) for found in part.finditer(text)]


def _compound(text: str, offset: int) -> Iterator[_Piece]:
    """Take apart what hyphens join: words stay words, and short parts around a number make one code."""
    words = _split(text, _BETWEEN_HYPHENS_RE)
    folded = [fold(word) for _, word in words]
    pieces = []
    for start, end in _groups(folded):
        at, word = words[start]
        if end - start == 1:
            pieces.append(_word(word, offset + at))
            continue
        codes = folded[start:end]
        named = tuple(_norm(code) for code in codes if len(code) > 2 and not code.isdecimal())
        last_at, last = words[end - 1]
        pieces.append(_Piece(offset + at, offset + last_at + len(last), "".join(codes), parts=named))
    if 1 < len(pieces) == len(words) <= _LONGEST_COMPOUND and all(word.isalpha() for word in folded):
        pieces[0] = pieces[0]._replace(parts=(_norm("".join(folded)),))
    yield from pieces


def _groups(words: list[str]) -> Iterator[tuple[int, int]]:
    """Yield index ranges: a run of short parts that contains a number is one group, every other part is its own."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and _is_short(words[end]):
            end += 1
        run = words[start:end]
        if len(run) > 1 and any(c.isdigit() for c in "".join(run)) and _COUNTED.isdisjoint(run):
            yield start, end
        else:
            end = max(end, start + 1)
            yield from ((single, single + 1) for single in range(start, end))
        start = end


def _is_short(word: str) -> bool:
    if word.isdecimal():
        return len(word) < _LONG_NUMBER
    return len(word) <= _SHORT_PART or any(c.isdigit() for c in word)


def _word(word: str, start: int) -> _Piece:
    folded = fold(word)
    if _NOT_RE.search(folded):
        return _Piece(start, start + len(word), "not")
    bare = _APOSTROPHE_RE.sub("", _SUFFIX_RE.sub("", folded))
    stop = bare in _STOP and word not in _CAPITAL_NAMES
    return _Piece(start, start + len(word), _norm(bare), stop=stop)


def _norm(word: str) -> str:
    """Return the norm of a folded word."""
    if known := _NUMBER_WORDS.get(word) or _UNIT_WORDS.get(word):
        return known
    if word.isdecimal():
        return _number(word)
    if len(word) < 3 or not word.isalpha():
        return word.replace("μ", "mu")
    return _stemmer()(respell(word.replace("μ", "mu")))


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    try:
        from Stemmer import Stemmer
    except ImportError as error:
        raise MissingExtraError("clinical tokenisation", "PyStemmer", "local") from error
    stemmer = Stemmer("english")
    lock = threading.Lock()

    def stem(word: str) -> str:
        # A stemmer has internal state and must not be used by two threads at once.
        with lock:
            return str(stemmer.stemWord(word))

    return stem
