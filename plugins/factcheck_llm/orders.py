"""The patterns by which text that gives orders to a model is known; they read folded text (``factcheck_llm.disguise``).

They ask for two things at once, such as a verb of neglect and "previous instructions", because medical text is full of
instructions and of claims that are supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SEP = r"[^\w\n.!?]{1,12}"
_GAP = rf"(?:{_SEP}\w{{1,40}})"
_NEGLECT = (
    r"(?<!not )(?<!n't )(?<!n’t )(?<!never )\b(?:ignor(?:e|es|ed|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass|"
    r"overrule|neglect|discard|(?:do not|don['’]?t|stop|no longer) (?:follow|obey|heed)(?:ing)?)\b"
)
_NEGLECTED = (
    "ignor|disregard|forget|overrid|bypass|overrul|neglect|discard|obey| heed|not follow|'t follow|’t follow|dont follow|"
    "stop follow|longer follow"
)
_EARLIER = (
    r"(?:previous(?:ly)?|prior|above|preceding|earlier|foregoing|system|initial|original|existing|developer|safety|"
    r"hidden|aforementioned)"
)
_ORDERS = r"(?:instruction|prompt|guideline|directive|command|message|direction|rule|constraint|programming|task)s?"
_LABEL = (
    r"(?:supported|supports|contradicted|contradicts|conflicting|not[_ ]enough[_ ](?:evidence|info\w*)|"
    r"not[_ ]checkable)"
)
_LABELS = "support|contradict|conflicting|not enough|not_enough|checkable"
_APPROVED = rf"(?:{_LABEL}|true|correct|verified|accurate|factual|valid|safe|not[_ ]supported|false|incorrect)"
_MODEL = (
    r"(?:a\.?i\.?|llms?|(?:large )?language models?|chat ?bots?|gpt|fact[- ]?check(?:er|ing)s?|graders?|evaluators?|"
    r"ai assistants?)"
)
_CLAIMS = r"(?:claim|statement|answer|sentence|item|response|assertion|passage|criterion)s?"
_TAG_NAMES = (
    r"(?:passages?|evidence|claims?|context|question|sentence|before|after|known|asked|items?|documents?|sources?|"
    r"user[_-]?input|system|assistant|user|human|developer|instructions?|prompt|"
    r"tool[_-]?(?:results?|response|calls?)?|function(?:s|_results?)?|search[_-]?results?)"
)

# Kind; words of which the text must hold one, because looking for them is far cheaper than the pattern; the pattern.
_RULES: tuple[tuple[str, str, str], ...] = (
    ("override", _NEGLECTED, rf"{_NEGLECT}{_GAP}{{0,3}}?{_SEP}{_EARLIER}{_GAP}{{0,2}}?{_SEP}{_ORDERS}\b"),
    (
        "override",
        _NEGLECTED,
        rf"{_NEGLECT}{_GAP}{{0,3}}?{_SEP}{_ORDERS}{_GAP}{{0,2}}?{_SEP}(?:above|before|earlier|previously|so far|"
        r"you (?:were|have been|had been) given|you received)\b",
    ),
    (
        "override",
        _NEGLECTED,
        rf"{_NEGLECT}{_SEP}(?:all|every|any|your)(?: of)?(?: (?:the|these|those|your|my|other))?{_SEP}"
        r"(?:instruction|prompt|directive|command|rule|constraint|programming|training)s?\b"
        r"(?! (?:from|of|by|on|in|given by|about) )",
    ),
    (
        "override",
        _NEGLECTED,
        rf"{_NEGLECT}{_SEP}(?:everything|anything|all|what(?:ever)?){_GAP}{{0,4}}?{_SEP}(?:above|previously|so far|"
        r"you(?:'ve| have| were)? (?:been )?(?:told|read|said|given)|(?:said|came|written|stated) (?:before|earlier))\b",
    ),
    (
        "override",
        _NEGLECTED,
        rf"{_NEGLECT}{_SEP}(?:the |all |any |every )?(?:other |retrieved |remaining )?"
        r"(?:passages|evidence above|context above)\b",
    ),
    (
        "override",
        "instruction|prompt|directive|order",
        r"\b(?:new|real|actual|secret|override|overriding|hidden)[ _-](?:system )?"
        r"(?:instruction|prompt|directive|order)s?[^\w\n]{0,3}:",
    ),
    (
        "override",
        "system|mode|jailbreak",
        r"\b(?:system[ _-](?:prompt|override|instructions?)|(?:developer|debug|god|jailbreak|dan|unrestricted)[ _-]mode|"
        r"jailbreak\w{0,10})\b",
    ),
    (
        "override",
        "ignorier|missacht|vergiss|vergessen",
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergessen sie)(?:\W+\w+){0,4}?\W+"
        r"(?:vorherig|bisherig|vorig|obig|alle|fruher)\w*(?:\W+\w+){0,2}?\W+"
        r"(?:anweisung|instruktion|vorgabe|regel|befehl)\w*",
    ),
    (
        "override",
        "ignor|oubli|compte",
        r"\b(?:ignor\w+|oubli\w+|ne tenez pas compte)(?:\W+\w+){0,4}?\W+(?:instructions?|consignes?|regles?)"
        r"(?:\W+\w+){0,2}?\W+(?:precedent|anterieur|ci-dessus)\w*",
    ),
    (
        "override",
        "ignor|olvid|esquec|dimentic",
        r"\b(?:ignor\w+|olvid\w+|esquec\w+|dimentic\w+)(?:\W+\w+){0,4}?\W+(?:instruc\w+|istruzion\w+|indica\w+)"
        r"(?:\W+\w+){0,2}?\W+(?:anterior|previ|precedent|acima|arriba)\w*",
    ),
    (
        "override",
        "игнорир|забуд|обращаи",
        r"(?:игнорир|забуд|не обращаи)\w*(?:\W+\w+){0,4}?\W+(?:инструкци|указани|правил|команд)\w*",
    ),
    (
        "override",
        "忽|无视|無視|忘|理会",
        r"(?:忽略|无视|忽視|無視|忘记|忘記|不要理会)[^。！？\n]{0,12}(?:指令|指示|说明|說明|提示|规则|規則|命令)"
        r"|(?:指示|命令|プロンプト|ルール)[^。\n]{0,8}無視",
    ),
    ("override", "무시", r"(?:지시|명령|지침)[^.\n]{0,10}무시"),
    ("override", "تجاهل|انس", r"(?:تجاهل|انس)\w*[^.\n]{0,30}(?:التعليمات|الأوامر|الاوامر|القواعد)"),
    (
        "role marker",
        "system|developer|assistant|admin|root|human|user|moderator",
        r"(?:^|(?<=[\n\r.!?>\]}\"'”*`]))[\s#*>_\[(-]{0,12}(?:system|developer|assistant|admin(?:istrator)?|root|human|"
        r"user|moderator)(?: (?:prompt|message|note|notice|override|update|instruction))?\s{0,3}[\])*_]{0,3}\s{0,3}:",
    ),
    (
        "role marker",
        "<|[inst|[/inst|##|role",
        r"<\|[a-z_]{2,30}\|?>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|"
        r"^\s{0,3}#{2,4}\s{0,3}(?:instructions?|system|response|human|assistant|user|new task)\s{0,3}:?\s{0,3}$|"
        r"\{\s{0,3}[\"']role[\"']\s{0,3}:",
    ),
    ("tag", "<", rf"<\s{{0,3}}/\s{{0,3}}{_TAG_NAMES}\b[^<>]{{0,60}}>"),
    (
        "tag",
        "<",
        r"<\s{0,3}(?:system|instructions?|assistant|developer|prompt|important|admin|tool_\w{1,20}|function_\w{1,20})\b"
        r"[^<>]{0,60}>",
    ),
    (
        "verdict",
        "label|verdict|stance|rating|final|judg|assessment|classification",
        r"[\"'“”`]?\b(?:label|verdict|stance|rating|final[ _](?:answer|label|verdict|rating)|judge?ment|assessment|"
        rf"classification)[\"'“”`]?\s{{0,3}}(?::|=|->|→)\s{{0,3}}[\"'“”`\[{{(*]{{0,3}}\s{{0,3}}{_APPROVED}\b",
    ),
    (
        "verdict",
        "claims|stances|quotes|queries|items|enough",
        r"[\"'](?:claims|stances|quotes|queries|items)[\"']\s{0,3}:\s{0,3}\[|"
        r"[\"']enough[\"']\s{0,3}:\s{0,3}(?:true|false)",
    ),
    ("verdict", "[", rf"\[\[?\s{{0,3}}(?:{_APPROVED})\s{{0,3}}\]?\]"),
    (
        "verdict",
        _LABELS,
        rf"\b(?:answer|reply|respond|output|return|print|write|say|emit|conclude)\b(?:{_SEP}(?:only|with|that|it|is|the|"
        rf"word|label|just|always|simply|exactly|json|verdict|as|single|token|are|all|claims?)){{0,6}}{_SEP}{_LABEL}\b",
    ),
    (
        "verdict",
        "claim|statement|answer|sentence|item|response|assertion|passage|criterion",
        r"\b(?:mark|label|rate|classify|judge|grade|score|treat|count|accept|report|flag|set|regard|call|declare|deem)\b"
        rf"{_GAP}{{0,2}}?{_SEP}(?:this|the|that|these|all|every|each|any|following){_GAP}{{0,3}}?{_SEP}{_CLAIMS}"
        rf"(?:{_SEP}(?:as|to|to be|=|is|are|above|below|here)){{0,2}}{_SEP}{_APPROVED}\b",
    ),
    (
        "verdict",
        "verdict|label|answer|rating|judgment|judgement|decision",
        r"\b(?:final|official|real|new|only possible)[^\w\n.!?]{1,4}(?:verdict|label|answer|rating|judge?ment|decision)"
        rf"\s{{0,3}}(?:is|:|=|should be|must be)[^\w\n.!?]{{0,4}}(?:\w{{1,20}}{_SEP}){{0,2}}?{_APPROVED}\b",
    ),
    (
        "verdict",
        "claim|statement|answer",
        rf"\b(?:all|every|each|any|these|this|the following){_SEP}(?:\w{{1,40}}{_SEP}){{0,2}}?"
        rf"(?:claim|statement|answer)s?{_GAP}{{0,3}}?{_SEP}(?:has been|have been|must be|should be|shall be|is to be|"
        rf"are to be|is hereby|are hereby){_SEP}(?:\w{{1,40}}{_SEP}){{0,2}}?(?:verified|pre-?verified|pre-?approved|"
        r"supported|fact[- ]?checked|labell?ed|marked|rated|accepted)\b",
    ),
    (
        "address",
        "you are|you're|act as|pretend|roleplay|behave as",
        r"\b(?:you are|you're|act as|pretend (?:to be|you are)|roleplay as|behave as)"
        r"(?: (?:now|an?|the|no longer|actually|helpful|strict|automated|expert)){0,4}"
        rf" (?:{_MODEL}|dan|helpful assistant)\b",
    ),
    (
        "address",
        " ai|llm|language model|chatbot|chat bot|gpt|fact check|fact-check|factcheck|grader|evaluator|judge|annotator|"
        "crawler|scraper|model",
        r"\b(?:notes?|messages?|memo|instructions?|attention|reminder|notice)\W{1,3}(?:to|for)\W{1,3}"
        r"(?:(?:all|any|the|automated|reading|reviewing)\W{1,3}){0,3}"
        rf"(?:{_MODEL}|judges?|annotators?|crawlers?|scrapers?|ai agents?|models?)\b",
    ),
    (
        "address",
        " ai|llm|language model|chatbot|chat bot|gpt|fact check|fact-check|factcheck|grader|evaluator|judge|assistant|model",
        rf"\b(?:dear|hello|hi|hey|attention)[\s,:]{{1,3}}(?:{_MODEL}|judge|assistant|model)\b",
    ),
    (
        "address",
        "you are|you're|as an ai",
        rf"\b(?:if|when|since|as|because) you(?:'re| are) (?:an? )?(?:{_MODEL}|bot|machine|automated)\b"
        r"|\bas an ai (?:language )?model\b",
    ),
    (
        "silence",
        "empty|no claim|no quer|no stance|no list|no array|no json|no search|zero",
        rf"\b(?:return|output|produce|list|extract|report|write|give|emit){_SEP}(?:no|zero|an empty list of|an empty|"
        rf"empty){_SEP}(?:claims?|queries|query|stances?|list|array|json|search(?:es)?)\b",
    ),
    (
        "silence",
        "fact-check|factcheck|verif|extract|judg|search",
        rf"\b(?:do not|don'?t|never|skip|stop|without|no need to){_SEP}(?:fact-?check|verif|extract|judg|search)"
        rf"(?:y|e|ing|ying)?\b{_GAP}{{0,2}}?{_SEP}(?:{_CLAIMS}|text|anything|further)\b",
    ),
    (
        "silence",
        "enough|search",
        r"\bset [\"'“]?enough[\"'”]? to true\b|"
        r"\bno (?:further|more) search(?:es)? (?:is|are) (?:needed|necessary|required)\b",
    ),
    (
        "secret",
        "prompt|above|your |api|environment variable",
        r"\b(?:reveal|print|repeat|show|leak|output|disclose|display|send|append|include)"
        rf"(?:{_SEP}(?:me|us|the|your|all|full|entire|every|of|contents)){{0,5}}{_SEP}(?:system prompt|prompt above|"
        r"instructions above|your (?:instructions|rules|prompt)|api[ _-]?keys?|environment variables)\b",
    ),
    (
        "secret",
        "http",
        r"!\[[^\]\n]{0,80}\]\(\s{0,3}https?://[^)\s]{1,300}[?&][^)\s]{0,200}=[^)\s]{0,300}\)|"
        r"https?://\S{1,200}[?&]\w{1,30}=(?:\{|%7b|\[)",
    ),
    (
        "hidden text",
        "<!--",
        r"<!--[^>]{0,300}?(?:instruct|verdict|supported|fact-?check|\bjudge|prompt|assistant|\ba\.?i\b)",
    ),
    ("hidden text", "]:|] :", r"^\s{0,3}\[(?://|comment|_|#)\]\s{0,3}:\s{0,3}(?:#|<>|<#>)\s{0,3}[(\"']"),
    (
        "hidden text",
        "style",
        r"style\s{0,3}=\s{0,3}[\"'][^\"'>]{0,200}(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|"
        r"font-size\s{0,3}:\s{0,3}0|opacity\s{0,3}:\s{0,3}0(?![.\d])|"
        r"color\s{0,3}:\s{0,3}(?:white|#fff(?:fff)?\b|transparent))",
    ),
)

# The gist of them without word limits, for letters set apart ("i g n o r e").
TIGHT = re.compile(
    r"(?:ignore|disregard|forget|override)(?:all|any|the|your|my|of)*(?:previous|prior|above|earlier|system)*"
    r"(?:instruction|prompt|rule|direction|command)"
    r"|(?:answer|reply|respond|return|output|label|verdict)(?:with|only|is|it|as|the|claim|this)*"
    r"(?:supported|contradicted|notcheckable)"
)


class _Rule(NamedTuple):
    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


PATTERNS = tuple(
    _Rule(kind, tuple(words.split("|")), re.compile(pattern, re.MULTILINE)) for kind, words, pattern in _RULES
)


def matches(folded: str, kinds: frozenset[str] | None = None) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each match in folded text, of ``kinds`` alone if they are given."""
    for rule in PATTERNS:
        if (kinds is None or rule.kind in kinds) and any(word in folded for word in rule.words):
            for match in rule.pattern.finditer(folded):
                yield rule.kind, match.start(), match.end()
