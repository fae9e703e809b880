"""Fold a word to one spelling: case, compatibility forms, accents, Greek letters, British and American English.

The folded form serves comparison only and need not be a word. What matters is that both spellings of a word share it,
and that no other word does.
"""

from __future__ import annotations

import re
import unicodedata

_LETTERS = str.maketrans(
    {
        "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i",
        "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
        "κ": "kappa", "λ": "lambda", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
    }
)  # fmt: skip
_MARKS = re.compile("[\u0300-\u036f]+")

# Parts of words that are British wherever they occur.
_PARTS = {
    "aem": "em", "aesth": "esth", "aetio": "etio", "amoeb": "ameb", "archaeo": "archeo", "caec": "cec",
    "caerul": "cerul", "caesar": "cesar", "coeliac": "celiac", "faec": "fec", "foet": "fet", "gynaec": "gynec",
    "homoeo": "homeo", "laevo": "levo", "leuco": "leuko", "manoeuv": "maneuv", "naev": "nev", "oedem": "edem",
    "oesoph": "esoph", "oestr": "estr", "paed": "ped", "palaeo": "paleo", "phaeo": "pheo", "pnoe": "pne",
    "praevi": "previ", "rrhoe": "rrhe", "sulph": "sulf", "tranquill": "tranquil",
}  # fmt: skip
_PART = re.compile("|".join(_PARTS))
_OUR = re.compile(r"^((?:dis|mal|un)?(?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|rum|sav|tum|vap))our")
_RE = re.compile(r"(calib|cent|fib|goit|lit|met|theat|tit)re(s|d)?$")
_ENCE = re.compile(r"^(def|lic|off)ence(s|d)?$")
_LL = re.compile(r"^(cancel|channel|counsel|label|level|model|signal|travel)l(ed|ing|er|ers|or|ors)$")
_ISE = re.compile(r"^([a-z]*[b-df-hj-np-tv-z])is(e|ed|es|er|ers|ing|able|ation|ations)$")
# What stands before "is" in words that are never written with a z.
_ALWAYS_S = frozenset(
    {
        "adv", "circumc", "compr", "comprom", "conc", "dem", "desp", "dev", "enterpr", "exc", "exerc", "expert",
        "franch", "improv", "inc", "likew", "merchand", "otherw", "parad", "prec", "prem", "prom", "rev", "superv",
        "surpr", "telev", "treat",
    }
)  # fmt: skip
_LYZE = re.compile(r"(?<=ly)z(?=(?:e|ed|es|er|ers|ing)$)")
_SIS = re.compile(r"(?<=[a-z]{3})sis$")
_SUFFIX = {None: "", "s": "s", "d": "ed"}
_WHOLE = {
    "ageing": "aging", "aluminium": "aluminum", "caesium": "cesium", "enrolment": "enrollment",
    "fulfilment": "fulfillment", "grey": "gray", "judgement": "judgment", "mould": "mold", "moulds": "molds",
    "mouldy": "moldy", "practise": "practice", "practised": "practiced", "practises": "practices",
    "practising": "practicing", "programme": "program", "programmes": "programs", "sceptical": "skeptical",
    "thesis": "thesis",
}  # fmt: skip


def fold(text: str) -> str:
    """Return ``text`` in lower case and compatibility form, without accents, with Greek letters except μ by name."""
    if text.isascii():
        return text.lower()
    # Apart and together again, because compatibility forms of one letter may carry the accent in either way.
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", bare).translate(_LETTERS)


def respell(word: str) -> str:
    """Return the American spelling of a folded word where the difference is systematic, else the word itself.

    ``-ise`` becomes ``-ize`` and ``-our`` ``-or`` where the word has both forms; ``-lyze`` becomes ``-lyse`` and
    ``-sis`` ``-se``, so that analyse, analyze, analysis and its plural share a form.
    """
    if word in _WHOLE:
        return _WHOLE[word]
    word = _PART.sub(lambda part: _PARTS[part[0]], word)
    word = _OUR.sub(r"\1or", word)
    word = _RE.sub(lambda found: f"{found[1]}er{_SUFFIX[found[2]]}", word)
    word = _ENCE.sub(r"\1ense\2", word)
    word = _LL.sub(r"\1\2", word)
    word = _LYZE.sub("s", word)
    if (found := _ISE.match(word)) and found[1] not in _ALWAYS_S and len(found[1]) > 2:
        return f"{found[1]}iz{found[2]}"
    return _SIS.sub("se", word)
