"""Class a sentence as a statement, advice to seek care, a question, a greeting or a personal statement.

The tables are conservative: what may be wrong about medicine is a statement, also where it speaks to the reader ("Your
description fits BPPV best") or follows a greeting in the same sentence.
"""

from __future__ import annotations

import re

from factcheck.schema import ClaimKind
from factcheck.text.subjects import mentions, names

_QUESTION_MARKS = ("?", "？", "؟", "⁇", "⁈")
_TRAILING = "\"'”’»)]}」』）】*_!⁉ "
_PAIRS = {'"': '"', "“": "”", "'": "'", "‘": "’", "(": ")", "[": "]", "「": "」", "『": "』", "（": "）", "«": "»"}
_GREETING_LIMIT = 240

_NAME = r"(?:there|everyone|all|again|doctor|friend|sir|madam|(?-i:[A-Z][\w.'’-]*))"
_TAIL = r"(?: [\w'’-]+)"
_FEELING = (
    r"(?:worr\w+|concern\w*|frustrat\w+|anxi\w+|scar[ey]\w*|stress\w*|difficult|hard|upset\w*|tough|frighten\w+|"
    r"distress\w*|"
    r"unpleasant|miserable|exhausting|painful|overwhelm\w+)"
)
_I_SEE = r"i (?:completely |fully |really |can )*(?:understand|appreciate|imagine|hear|know|see) (?:that |how |why )*"
_I_AM = r"(?:i|we)(?:['’]m|['’]re| am| are)"
_GREETINGS = (
    rf"(?:hi|hello|hey|greetings|dear|good (?:morning|afternoon|evening|day|night))(?: {_NAME}){{0,3}}",
    r"bye|goodbye|take (?:good )?care(?: of yourself)?|stay (?:safe|well|strong)|be well|all the best",
    rf"(?:good|best of) luck(?: (?:with|to|and){_TAIL}{{1,6}})?",
    rf"(?:(?:best|kind|warm|with (?:best|kind|warm)) )?(?:regards|wishes)(?: {_NAME}){{0,3}}",
    rf"(?:yours )?(?:sincerely|faithfully|truly|respectfully)(?: yours)?(?: {_NAME}){{0,3}}",
    rf"(?:thanks|thank you|many thanks)(?! to\b){_TAIL}{{0,14}}",
    r"you(?:['’]re| are) (?:very |most )?welcome|no problem|my pleasure",
    rf"(?:{_I_AM} )?(?:(?:so|very|really|truly|terribly|deeply) )*sorry{_TAIL}{{0,14}}",
    rf"(?:my|our) (?:\w+ )?(?:sympathies|condolences|apologies){_TAIL}{{0,8}}",
    rf"{_I_SEE}(?:(?:this|that|it|you|your){_TAIL}{{0,6}}? )?{_FEELING}(?: (?:this|that|it|you|for)){_TAIL}{{0,4}}",
    rf"{_I_SEE}(?:this|that|it|you|your){_TAIL}{{0,6}}? {_FEELING}",
    rf"(?:that|this|it) (?:must (?:be|feel)|sounds)(?: (?:really|very|so|quite|incredibly|like)){{0,3}} {_FEELING}"
    r"(?: for \w+)?",
    rf"{_I_AM} (?:so |very |really )?(?:glad|happy|pleased|delighted|here){_TAIL}{{0,12}}",
    r"(?:i |we )?(?:really |sincerely |do |just )?hope (?:that )?(?:all|this|these|it|that|you|your|he|she|they|"
    r"everything)"
    rf"{_TAIL}{{1,12}}",
    rf"(?:i )?wish(?:ing)? (?:you|him|her|them|your){_TAIL}{{1,12}}",
    r"(?:that(?:['’]s| is) )?(?:a |an )?(?:very |really )?(?:great|good|excellent|important|interesting|"
    r"common) question"
    rf"{_TAIL}{{0,6}}",
    r"well done|congratulations(?: on your \w+)?|get well soon|of course|sure thing|sure|certainly|absolutely|"
    r"understood",
    rf"(?:of course|sure|certainly|absolutely) i(?: can|['’]d be (?:happy|glad) to| would be (?:happy|"
    rf"glad) to) help{_TAIL}{{0,6}}",
    rf"(?:happy|glad) to help{_TAIL}{{0,4}}",
    r"(?:please )?(?:feel free|don['’]t hesitate|do not hesitate) to (?:ask|reach out|message|write|contact me|"
    r"let me know)"
    rf"{_TAIL}{{0,12}}",
    rf"(?:please )?let me know(?: (?:if|how|what|whether|when){_TAIL}{{1,14}})?",
    r"if you have (?:any )?(?:more |other |further |additional )?questions (?:please )?(?:feel free to ask|"
    r"let me know|just ask)"
    rf"{_TAIL}{{0,4}}",
    r"(?:here(?:['’]s| is| are)|below (?:is|are)) (?:\w+ ){0,4}(?:answer|information|overview|summary|guide|"
    r"breakdown|points|tips)"
    rf"{_TAIL}{{0,6}}",
)
_PHRASE = f"(?:{'|'.join(_GREETINGS)})"
_GREETING = re.compile(rf"{_PHRASE}(?: (?:and )?{_PHRASE}){{0,3}}", re.IGNORECASE)
# A greeting that names what the reader told: "I'm sorry to hear that your son has asthma".
_TOLD = re.compile(rf"(?:{_I_AM} )?(?:(?:so|very|really|truly|terribly) )*sorry to hear\b", re.IGNORECASE)
# A greeting with one of these says something more.
_MORE = re.compile(
    r"\b(?:should|must(?! be\b)|need|needs|because|so that|therefore|means|safe|dose|tablets?|which|however|but|"
    r"normal|"
    r"benign|harmless|cannot|can['’]t|caused|causes|definitely|diagnos\w+)\b",
    re.IGNORECASE,
)

_MONTH = "(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_TIME = (
    r"(?:yesterday|last \w+|this morning|earlier \w+|(?:\w+ ){0,3}ago|since \w+|in (?:19|20)\d\d|"
    rf"(?:on|in) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:on|in) (?:\d{{1,2}} )?{_MONTH}(?: \d{{1,4}})?|"
    r"at your (?:last|recent|previous) \w+)"
)
_RECORD = (
    r"(?:scans?|x-?rays?|mri|ct|ultrasound|blood tests?|bloods|blood work|labs?|lab results|tests?|test results?|"
    r"results?|ecg|"
    r"ekg|biopsy|mammogram|colonoscopy|endoscopy|smear|swab|urine test|reports?|records?|chart|appointment|"
    r"consultation|visit|"
    r"check-?up|operation|surgery|procedure|screening|echocardiogram|echo)"
)
_RECORDS = re.compile(
    r"(?:according to your (?:records?|chart|notes),? )?(?:your|his|her) (?:(?:most recent|\w+|follow-up) ){0,2}"
    rf"{_RECORD}(?: (?:from|of|on|at|in)?(?: ?{_TIME}))?"
    rf" (?:was|were|has been|have been|came back|come back|showed|did not show|didn['’]t show|went|"
    rf"looked){_TAIL}{{0,10}}",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"(?:as )?you (?:have |already |also )*(?:told|said|mentioned|reported|noted|described|wrote|asked|explained|"
    r"stated)"
    r"(?: [\w'’/-]+){0,20}"
    r"|(?:you|he|she) (?:were|was|had|have been|has been|underwent|saw|visited|started)(?: [\w'’/-]+){0,12}"
    rf" {_TIME}(?: [\w'’/-]+){{0,3}}",
    re.IGNORECASE,
)
# These turn the reader's history into a statement about medicine.
_INFERENCE = re.compile(
    r"[,;:—–]|\b(?:which|because|so|therefore|means?|should|must|may|might|could|indicat\w+|suggest\w*|prove\w*|"
    r"confirm\w*|"
    r"is|are|safe|due|caus\w+|rules?|ruled)\b",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"(?:(?:please )?(?:note|remember|be aware) that |unfortunately,? |as an? (?:ai|assistant|"
    r"language model)[\w ]{0,20},? )?"
    r"(?:"
    rf"{_I_AM} (?:only |just )?(?:not )?(?:an? )?(?:ai|artificial|language model|doctor|physician|clinician|"
    r"medical professional|nurse|virtual|chatbot|your doctor|able to|unable to|in a position)\b"
    r"|i (?:cannot|can['’]t|can not|could not|am unable to|do not|don['’]t|have not|haven['’]t|did not|"
    r"didn['’]t) (?:\w+ly )?"
    r"(?:examined?|diagnose|prescribe|(?:have )?access|provide (?:a |medical|personal|individual)|"
    r"give (?:you )?(?:a |medical|personal|individual)|"
    r"(?:see|view|look at|read|seen|met|know|interpret|verify|feel|hear|replace) (?:you|your|him|her|his|the|what|"
    r"how))\b"
    r"|(?:this|the|all|my) (?:(?:above|answer|reply|response|information|overview|summary|content|here|provided) ){0,3}"
    r"(?:is|are|does) (?:\w+ ){0,3}?(?:not (?:an? )?(?:substitute|medical advice|replace|intended)|"
    r"(?:for|as) (?:\w+ ){0,2}(?:educational|informational|information))\b"
    r")",
    re.IGNORECASE,
)
_SELF_MORE = re.compile(r"[;:—–]|, (?:but|so|and|however|because)\b|\b(?:should|must|safe|unsafe)\b|\d", re.IGNORECASE)

_CARER = (
    r"(?:doctors?|gp|physicians?|clinicians?|nurses?|midwife|midwives|pharmacists?|specialists?|dentists?|"
    r"pa?ediatricians?|"
    r"(?:gyna?e|obste|cardio|neuro|dermato|rheumato|uro|onco|psych|endocrino|ophthalmo|gastroentero)\w+|optician|"
    r"optometrist|"
    r"therapist|health ?care (?:provider|professional|team|worker)s?|care team|your (?:\w+ )?team|"
    r"(?:maternity|emergency|urgent care|medical|eye) (?:unit|team|service)s?|emergency(?: \w+)?|a\s?&\s?e|casualty|er|"
    r"ambulance|hospital|clinic|surgery|practice|urgent care|poison\w* \w+|helpline|hotline|appointment|"
    r"routine visit|review|"
    r"(?:urgent|medical|prompt|immediate|emergency|professional|same-day) (?:\w+ )?(?:help|care|attention|advice|"
    r"review|"
    r"assessment)|someone (?:promptly|urgently|who)|(?<![\d.,])(?:999|911|112|111))"
)
_SEEK = re.compile(
    r"(?:^|[,;:]\s|\b(?:please|then|and|or|so|should|must|to|also|either|otherwise|now|immediately|always|can)\s)"
    r"(?:(?:immediately|promptly|urgently|please) )?"
    r"(?:call|phone|ring|dial|contact|see|visit|consult|go|seek|get|book|arrange|make|speak|talk|tell|ask|return|"
    r"attend|head|"
    r"take (?:him|her|them|yourself|the \w+)|check with|let|discuss \w+ with|report (?:\w+ ){0,6}to)"
    rf"\b[^.;]{{0,60}}?\b{_CARER}\b",
    re.IGNORECASE,
)
_NEEDS_CARE = re.compile(
    r"(?<!\bnot )(?<!n['’]t )\bneeds? (?:to be (?:seen|assessed|reviewed|checked)|(?:an? )?"
    r"(?:same-day|emergency|urgent|immediate|prompt|medical) (?:\w+ ){0,2}(?:care|check|review|assessment|attention|"
    r"treatment|"
    r"help|visit))|\bgo straight away\b",
    re.IGNORECASE,
)


def classify(text: str) -> ClaimKind:
    """Return the kind of one sentence; a blank one is a statement."""
    sentence = " ".join(text.split())
    if _is_question(sentence):
        return "question"
    bare = sentence.rstrip(_TRAILING + ".…。,;:").lstrip("\"'“‘«([*_")
    if len(bare) <= _GREETING_LIMIT and _is_greeting(bare):
        return "greeting"
    if _is_personal(bare):
        return "personal"
    if _SEEK.search(bare) or _NEEDS_CARE.search(bare):
        return "care_advice"
    return "statement"


def _is_question(sentence: str) -> bool:
    if sentence.endswith(_QUESTION_MARKS) or sentence.startswith("¿"):
        return True
    bare = sentence.rstrip(_TRAILING)
    if not bare.endswith(_QUESTION_MARKS):
        return False
    # 'Ask "is it safe?"' is no question, '"Is it safe?"' is one.
    closer = sentence[len(bare) :].strip()[:1]
    return _PAIRS.get(sentence[0], "") == closer or closer in "!*_⁉"


def _is_greeting(bare: str) -> bool:
    plain = " ".join(re.sub(r"[,!.]\s", " ", bare).split())
    if not _GREETING.fullmatch(plain) or _MORE.search(plain):
        return False
    if _TOLD.match(plain):
        return not any(mention.sort in ("drug", "class") for mention in mentions(plain))
    return not names(plain) and not any(char.isdigit() for char in plain)


def _is_personal(bare: str) -> bool:
    if _SELF.match(bare):
        return not _SELF_MORE.search(bare) and not names(bare)
    if _RECORDS.fullmatch(bare):
        return not _INFERENCE.search(bare) and not names(bare)
    return _HISTORY.fullmatch(bare) is not None and not _INFERENCE.search(bare)
