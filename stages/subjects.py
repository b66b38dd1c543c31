"""Name the subject of a clause, and retell the clause with that subject in one line of the clause's own words: only
pronouns of the speaker and the verb behind them change. Negation and modality stay as they were."""

from __future__ import annotations

import re
from itertools import pairwise

from .cues import plain
from .rules import any_of, table, words
from .words import STOP, tokens

FEW = 2  # Words that may stand before a setting and name nothing: "Good." and the like
LIMIT, SHORTEST = 200, 70  # Characters of a description, and of one that a whole sentence is enough for
_MARKS = re.compile(r"\*\*|__(?!\w+_)|(?<!\w)(?:\*|_(?![A-Za-z0-9]+_[A-Za-z0-9]))(?=\w)|(?<=\w)[*_](?!\w)")
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:https?:|[\w./-]*[./#])[^()\s]*\)")
_DATA = table("subjects")
_LEAD = re.compile("^(?:" + any_of(_DATA["leads"]).pattern + "){1,3}", re.IGNORECASE)
_INTENT = re.compile(r"(?<=[.!?] )" + _DATA["intent"] + r"[^.!?]*(?:[.!?](?=\S)[^.!?]*)*[.!?]*$", re.IGNORECASE)
_TAIL = re.compile("(?:" + any_of(_DATA["tails"]).pattern + r")(?=[.!?…]*$)", re.IGNORECASE)
_OATH = re.compile(_DATA["oaths"])
# Words that stand as somebody else wrote them: code and quotations.
_VERBATIM = re.compile(r"`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)'[^'\n]{2,80}'(?!\w)")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
MOST_PIECES = 1000
_PLACEHOLDERS = 0xE000  # The first character for private use: none of them is a part of a word
_NAMED = re.compile(r"\w*[\d._/]\w*|[a-z]+[A-Z]")
_I = re.compile(
    r"(?<![\w/])(?<!Part )(?<!Phase )(?<!Type )(?<!Class )(?<!Stage )"
    r"I(?P<tail>'m|'ve|'d|'ll| am| have| do| was)?\b(?=[\s,.;:!?]|$)"
)
_IM = re.compile(r"\b[Ii](?=(?:m|ve)\s)(?P<tail>m|ve)")
_INVERTED = re.compile(
    r"\b(?:(?P<am>am)|(?P<be>have|do)|was|did|had|can|could|will|would|shall|should|must|may|might) $", re.I
)
_LOWER_I = re.compile(r"(?:(?<=^)|(?<=[\s(\"]))i(?=(?:'m|'ve|'d|'ll)?[\s,])")
_ADVERB = re.compile(
    r"(?:\s+(?:now|also|always|usually|often|really|never|generally|normally|typically|mostly|mainly|only|still|just|"
    r"strongly|actually|currently|personally|rarely|sometimes|definitely|even|both|last|first|once|much|\w+ly))*\s+",
    re.IGNORECASE,
)
_VERB = re.compile(r"[A-Za-z]+(?:'t)?")
_PAST = words("subjects", "past")
_FIXED = words("subjects", "fixed")
_IRREGULAR = {"am": "is", "are": "is", "aren't": "isn't", "were": "was", "weren't": "wasn't", "have": "has"} | {
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
    "dont": "doesn't",
    "go": "goes",
}
_TAILS = {"'m": " is", "'ve": " has", "'d": " would", "'ll": " will"} | {
    f" {verb}": f" {third}" for verb, third in (("am", "is"), ("have", "has"), ("do", "does"), ("was", "was"))
}
_LATER_TAILS = {"'m": " are", " am": " are", " was": " were", "'ve": " have"}
_OWN = {"myself": "themselves", "mine": "the user's", "my": "the user's", "me": "the user"}
_LATER_OWN = _OWN | {"mine": "their", "my": "their", "me": "them"}
_MY = re.compile(
    r"(?<![\w./@~$-])(?:myself|mine|my|me)\b(?![-./@_]\w)|(?:^|(?<=[.!?] ))M(?:yself|ine|y|e)\b(?![-./@_]\w)"
)
_WE = re.compile(r"\b(?P<we>[Ww]e)(?P<tail>'re|'ve|'ll|'d)?(?=\s)(?!\s+(?:all|both|each)\b)")
_WE_TAILS = {"'re": " is", "'ve": " has", "'ll": " will", "'d": "'d"}
_OUR = re.compile(r"(?:(?<![\w./-])our|(?:^|(?<=[.!?] ))Our)\b(?!s|[-./_]\w)")
_ENDS = re.compile(r"(?<![.!?])[.!?](?=\s)")
_FINDING = re.compile(_DATA["finding"], re.IGNORECASE)
_DETERMINERS = frozenset({"the", "my", "our", "a", "an", "his", "her", "their"})
_DANGLING = re.compile(
    r"(?!this is an? (?:\w+ )?(?:limitation|restriction|bug|quirk|requirement|default|convention) (?:of|in|with|for) )"
    r"(?!it (?:turn(?:s|ed) out|seems|appears|follows)(?: that)?\b|it(?:'s| is| was) (?:not )?\w+ that\b)"
    r"(?:it|this|that|they|these|those)\b(?:'s|'re)?\s+(?!\w+\s+(?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`")
_THEM = re.compile(r"\b(?:them|those)\b(?! (?:that|who|which|of)\b)", re.IGNORECASE)
_SEVERAL = re.compile(
    r"\b(?!(?:is|this|has|was|as|its|does|always|us)\b)[a-z][a-z-]+s\b|,|\band\b|\bor\b|\bpeople\b|\bdata\b",
    re.IGNORECASE,
)
_POINTED = re.compile(
    r"\b(?:requires?|needs?|uses?|blocks?|lacks?|supports?|calls?|of|for|with|by|from|to|via)\W{1,3}"
    r"(?:this|these|those) "
    r"(?!(?:project|repo\w*|codebase|app|application|package|workspace|machine|team|kind|sort|week|month|year|time)\b)"
    r"(?P<what>[a-z]+)",
    re.IGNORECASE,
)
_LEANING = re.compile("^(?:" + any_of(_DATA["leaning"]).pattern + ")", re.IGNORECASE)
_UNOWNED = re.compile(_DATA["unowned"], re.IGNORECASE)
_FOLLOWING = re.compile(_DATA["following"], re.IGNORECASE)
_TICKET = re.compile(_DATA["ticket"], re.IGNORECASE)
_RELATIVES = sorted(words("subjects", "relatives"))
_RELATIVE = re.compile(r"\bmy (?:\w+ ){0,2}(?P<who>" + "|".join(_RELATIVES) + r")\b(?!'s)", re.IGNORECASE)
_KIN = re.compile(r"^(?:" + "|".join(_RELATIVES) + r")\b", re.IGNORECASE)
_PERSON = re.compile(
    r"^(?!It |She |He |They |This |That |There |We |You )(?P<who>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\s+(?:\w+ly )?"
    rf"(?:{_DATA['person_verbs']})\b"
)
_SHE = re.compile(r"(?:she|he|her|his)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]{2,}\b|^[A-Z][a-z]{2,}(?= (?:[a-z]+s|[a-z]+ed|is|has|told|said)\b)")


def subject(clause: str, trust: str, project: bool) -> str:
    """Who or what the clause is about: `user`, `project`, or a relative or name in lower case."""
    text = _LEAD.sub("", plain(clause).strip())
    if trust == "user":
        head = text[:60]
        if hit := _RELATIVE.match(head):
            return hit["who"].lower()
        if hit := _KIN.match(text):
            return hit.group().lower()
        if hit := _PERSON.match(text):
            return hit["who"].split()[0].lower()
        if _I.search(text) or _LOWER_I.search(text) or re.search(r"\b(?:my|me|mine|myself)\b", text, re.I):
            return "user"
        return "project" if project or re.search(r"\b(?:we|our|us)\b", text, re.I) else "user"
    return "project"


def description(clause: str, trust: str, before: str, context: str = "") -> str:
    """The clause in one line with its subject named, at most `LIMIT` characters. `before`: the words before it in its
    turn; `context`: the heading above it, put behind it where there is room."""
    text, verbatim = _without_verbatim(" ".join(unmarked(untitled(plain(clause))).split()))
    text = _without_talk(text)
    if trust == "user":
        text = _third_person(_IM.sub(r"I'\g<tail>", text))
    else:
        text = _of_the_project(_FINDING.sub("", unintended(text), count=1))
        if trust == "assistant":
            text = _of_the_agent(text)
            if not context and len(before.split()) <= FEW:
                text = _UNOWNED.sub(lambda hit: f"In the project, the {hit['what'].lower()} ", text, count=1)
    text = _with_verbatim(text, verbatim)
    text = text if _NAMED.match(text) else text[:1].upper() + text[1:]
    topic = _topic(before) if _DANGLING.match(text) and len(text) < 120 else ""
    if trust == "user" and _SHE.match(text):
        names = [hit.group() for hit in _NAME.finditer(before)]
        topic = names[-1] if names else ""
    if topic and topic.lower() not in text.lower():
        text = f"{text.rstrip('.')} ({topic})"
    if context and len(text) + len(context) + 3 <= LIMIT and not _said(context, text):
        text = f"{text.rstrip('.')} ({context})"
    return cut(text)


def _without_verbatim(text: str) -> tuple[str, list[str]]:
    """`text` with a placeholder of one character for each piece of code or quotation, and these pieces."""
    if _PRIVATE.search(text):
        return text, []
    pieces = _VERBATIM.findall(text)[:MOST_PIECES]
    numbers = iter(range(MOST_PIECES))
    return _VERBATIM.sub(lambda hit: chr(_PLACEHOLDERS + next(numbers)), text, count=MOST_PIECES), pieces


def _with_verbatim(text: str, pieces: list[str]) -> str:
    return text.translate({_PLACEHOLDERS + number: piece for number, piece in enumerate(pieces)})


def _without_talk(text: str) -> str:
    """`text` without what leads in, the courtesy behind it, oaths and whom it addresses; three words stay at least."""
    for pattern in (_LEAD, _TAIL, _OATH):
        shorter = pattern.sub("", text)
        text = shorter if len(shorter.split()) >= 3 else text
    return text


def _of_the_agent(text: str) -> str:
    """`text` with the agent named where it speaks of itself."""
    parts: list[str] = []
    at = 0
    for hit in _I.finditer(text):
        is_first = not text[: hit.start()].strip() or text[: hit.start()].rstrip()[-1:] in ".!?"
        parts += text[at : hit.start()], "The agent" if is_first else "the agent"
        at = hit.end()
        if tail := hit["tail"]:
            parts.append(_TAILS[tail])
        else:
            at = _inflect(text, at, parts)
    parts.append(text[at:])
    own = {"myself": "itself", "mine": "its own", "my": "the agent's", "me": "the agent"}
    return _MY.sub(lambda hit: own[hit[0].lower()], "".join(parts))


def _said(context: str, text: str) -> bool:
    named = (token for token in tokens(context) if token.kind == "word" and token.text.lower() not in STOP)
    return {token.stem for token in named} <= {token.stem for token in tokens(text)}


def unmarked(text: str) -> str:
    """`text` without Markdown's emphasis and the targets of its links; what stands in code is left as it is."""
    parts = _LINK.sub(r"\1", text).split("`")
    return "`".join(part if at % 2 else _MARKS.sub("", part) for at, part in enumerate(parts))


def unintended(clause: str) -> str:
    """A finding without the sentence behind it that says what its speaker means to do about it."""
    return _INTENT.sub("", clause).rstrip()


def untitled(clause: str) -> str:
    """The clause without the name of a task in front of it."""
    return clause[hit.end() :] if (hit := _TICKET.match(clause)) else clause


def dangling(clause: str) -> bool:
    """Whether the clause begins with words that only what stands before it explains: a pronoun, or "Fixed by …"."""
    text = _LEAD.sub("", plain(clause).strip())
    return _DANGLING.match(text) is not None or _LEANING.match(text) is not None


def unnamed(clause: str) -> bool:
    """Whether the clause speaks of "them", or of "this binary", and names nothing before that could be meant."""
    text = _CODE.sub("", plain(clause))
    hit, pointed = _THEM.search(text), _POINTED.search(text)
    if pointed and pointed["what"].lower().rstrip("s") not in text[: pointed.start()].lower():
        return True
    return hit is not None and _SEVERAL.search(text, 0, hit.start()) is None


def follows(clause: str) -> bool:
    """Whether the clause draws a conclusion from the one before it, or limits it."""
    return _FOLLOWING.match(plain(clause).strip()) is not None


def _third_person(text: str) -> str:
    text = _LOWER_I.sub("I", text)
    parts: list[str] = []
    at, named = 0, False
    for hit in _I.finditer(text):
        if hit.start() < at:
            continue
        ahead = _INVERTED.search(text, 0, hit.start())
        if ahead and not named and (ahead["am"] or ahead["be"]):
            parts += text[at : ahead.start()], "is " if ahead["am"] else _third(ahead["be"]) + " ", "the user"
        else:
            parts += text[at : hit.start()], "they" if named else "the user"
        at = hit.end()
        if ahead:
            named = True
            continue
        if tail := hit["tail"]:
            parts.append(_LATER_TAILS.get(tail, tail) if named else _TAILS[tail])
        elif not named:
            at = _inflect(text, at, parts)
        named = True
    parts.append(text[at:])
    own = _LATER_OWN if named else _OWN
    return _MY.sub(lambda hit: own[hit[0].lower()], "".join(parts))


def _inflect(text: str, at: int, parts: list[str]) -> int:
    """Bring the verb behind `at` into the third person; where the text goes on."""
    gap = _ADVERB.match(text, at)
    verb = _VERB.match(text, gap.end()) if gap else None
    if not verb:
        return at
    parts += text[at : verb.start()], _third(verb.group())
    return verb.end()


def _third(verb: str) -> str:
    low = verb.lower()
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    is_past = low in _PAST or (low.endswith("ed") and low != "need")
    if is_past or low in _FIXED or (low in STOP and low not in {"like", "make", "get"}):
        return verb
    if low.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def _of_the_project(text: str) -> str:
    hit = _WE.search(text)
    if not hit:
        return _OUR.sub("the project's", text)
    parts = [text[: hit.start()], "The project" if hit["we"] == "We" else "the project", _WE_TAILS.get(hit["tail"], "")]
    at = hit.end() if hit["tail"] else _inflect(text, hit.end(), parts)
    return _OUR.sub("its", "".join(parts) + text[at:])


def _topic(before: str) -> str:
    """The topic of the sentence before: its first name in code, else its first noun with an article or owner."""
    all_tokens = tokens(before)
    if code := next((token.text.strip("`") for token in all_tokens if token.kind == "code"), None):
        return code
    for determiner, token in pairwise(all_tokens):
        named = determiner.text.lower() in _DETERMINERS and token.kind == "word" and token.text.lower() not in STOP
        if named and len(token.text) > 3:
            return token.text
    return ""


def cut(text: str) -> str:
    """Cut `text` behind a sentence, else at a word: half a sentence may say what the whole takes back."""
    if len(text) <= LIMIT:
        return text
    ends = [hit.end() for hit in _ENDS.finditer(text, SHORTEST, LIMIT - 1) if text.count("`", 0, hit.end()) % 2 == 0]
    return text[: ends[-1]] + " …" if ends else text[: LIMIT - 1].rsplit(" ", 1)[0].rstrip(",;:—– ") + "…"
