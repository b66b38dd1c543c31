"""Tell whether a sentence of the user reports what somebody else says, wants or prefers: then it is not the user's word
(P-19). A sentence that goes on with a statement of its own ("…, so use X") is the user's."""

from __future__ import annotations

import re

from .rules import any_of, table, words
from .turn_text import FIRSTS, WORDS
from .words import STOP

_DATA = table("speakers")


def _either(listed: str | list[str]) -> str:
    return "|".join(listed.split() if isinstance(listed, str) else listed)


_OWNERS = rf"(?:(?:{_DATA['owners']})(?:\s+|(?<=['’])))"
_NAME = r"(?-i:[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){0,2})"
_FROM = rf"(?:\s+(?:{_DATA['origins']})\s+(?:[\w'’-]+\s+){{0,2}}?[\w'’-]+|\s*\([^)]{{1,40}}\)|,[^,]{{2,40}},)?"
_PERSON = (
    rf"(?:{_OWNERS}(?:[\w'’-]+\s+){{0,3}}?(?:{_either(_DATA['persons'])})(?:e?s|e?n)?\b(?:\s+{_NAME})?{_FROM}"
    rf"|(?:{_DATA['pronouns']})\b{_FROM})"
)
_TEXT = (
    rf"(?:{_OWNERS}(?:[\w'’-]+\s+){{0,2}}?(?:{_DATA['texts']})\b{_FROM}|(?:{_OWNERS})?{_DATA['files']}{_FROM}"
    rf"|(?:{_DATA['assistants']})\b)"
)
_MANNER = rf"(?:\s+(?:{_DATA['adverbs']}))*\s+"
_US = r"(?:i|we|ich|wir|je|j|nous|yo|io|noi|eu|ik|wij)"
_LEAD_IN = (  # A phrase and its comma, or an adverbial without one, in which the user does nothing
    rf"(?:(?:(?:{_DATA['starters']})\b[^.!?:;\n]{{0,100}}?|(?:(?!\b{_US}\b)[^,.!?:;\n]){{1,80}}),\s+"
    rf"|(?:{_DATA['starters']})\b(?:(?!\b{_US}\b)[^,.!?:;\n]){{0,80}}?\s)?"
)
_FRONT = rf"^\W*(?:(?:{_DATA['fronts']})[,:]?\s+){{0,2}}{_LEAD_IN}"
_SAID, _WISHES = _either([*_DATA["said"], *_DATA["speaks"]]), _either(_DATA["wishes"])


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_SAYS = _form(rf"{_FRONT}(?:{_PERSON}|{_TEXT}){_MANNER}(?:{_SAID})\b")
_WANTS = _form(rf"{_FRONT}{_PERSON}{_MANNER}(?:{_WISHES})\b")
_NAME_SAYS = _form(rf"{_FRONT}(?P<name>{_NAME}){_FROM}{_MANNER}(?:{_SAID})\b")
_NAME_WANTS = _form(rf"{_FRONT}(?P<name>{_NAME}){_FROM}{_MANNER}(?:{_WISHES})\b")
_ANYBODY = (  # Whatever has a verb of speech behind it
    rf"(?:(?:my|our)(?!\s+(?:\w+\s+)?(?:{_DATA['own_things']})\b)|{_DATA['articles']})(?:\s+|(?<=['’]))"
    rf"(?:(?!(?:{_US}|you|that|which|who|must|should|shall|can|could|may|will|would|to|not)\b)[\w'’-]+\s+){{1,4}}?"
    rf"(?:(?:i|we) (?:{_DATA['receives']})\s+(?:\w+\s+)?)?"
)
_SAYS_ALONE = _form(rf"{_FRONT}(?:{_DATA['says_alone']})\b")
_HE_SAID = _form(
    rf"\b(?:and|but|und|et|y|e)\s+(?:{_DATA['third']})\s+(?:{_either([*_DATA['said'], *_DATA['speaks']])})\b"
)
_SPEAKS_UP = _form(rf"{_FRONT}{_ANYBODY}(?:(?:{_DATA['adverbs']})\s+)*(?:{_either(_DATA['speaks'])})(?=\W|$)")
_YOU_SAID = _form(rf"(?:{_DATA['you_said']})\b")
_YOU_SAY = _form(rf"^\W*(?:(?:{_DATA['fronts']})[,:]?\s+)?(?:{_DATA['you_said']})\b")
_HABIT = _form(
    rf"{_FRONT}{_PERSON}\s+(?:(?:{_DATA['habits']})\s+\w|(?:n[e'’]\s*)?\w+\s+(?:{_DATA['habits_behind']})\b)"
)
_MAIN_CLAUSE = _form(
    rf"^(?:(?!\b(?:{_DATA['contents']})(?=\W))[^,:\"“„«])*,\s+"
    rf"(?:(?:{_DATA['own']})\b|(?:{'|'.join(sorted(words('speakers', 'orders')))})\s)"
)
_CONDITION = _form(rf"^\W*(?:{_DATA['conditions']})\b")
_SAYS_BEHIND = _form(  # The order of German, Dutch and Spanish
    rf"{_FRONT}(?:{_DATA['says_before']})\s+"
    rf"(?:{_PERSON}|(?P<name>{_NAME}))"
)
_OF_NAME = _form(rf"{_FRONT}(?P<name>{_NAME})['’]s (?:[\w-]+ )?(?:preference|rule|favou?rite|opinion|wish|advice)\b")
_BY_MANY = _form(
    rf"{_FRONT}(?:they|others|some people|other people)\s+(?:(?:{_DATA['adverbs']})\s+)?"
    r"(?:prefer|like|want|say|think|recommend|insist)\b"
)
_SOURCED = _form(rf"{_FRONT}(?:{_DATA['sourced']})\s")
_SOURCED_BEHIND = _form(rf",\s+(?:{_DATA['sourced']})\s+[^,.!?]+[.!?]*$")
_SPEAKER = _form(rf"\b{_US}\b(?![^.!?]*\b(?:{_DATA['receives']})\b)|^\W*(?:{_DATA['possessives']})\b")
_SPEAKS = _form(rf"\b(?:{_SAID})(?:[^\S\n]+[\w'’]+){{0,3}}\s*[:,]?\s*[:\"“„«']\s*[\"“„«']?\s*{_DATA['firsts']}")
_STATEMENT = _form(  # Four words or more in quotation marks, one of them in the first person
    rf"[\"“„«](?=[^\"“”„«»]*\b(?:{_US}|{_DATA['possessives']})\b)"
    r"(?:[^\s\"“”„«»]+\s+){3,}[^\s\"“”„«»]+[\"”“»]"
)
_OTHER = _form(rf"(?:\b(?:{_PERSON}|{_TEXT}|it)|(?P<name>{_NAME}))(?:{_MANNER}|\s)(?P<verb>{_SAID})\b[^.!?]*$")
_LABELLED = _form(rf"^\W*(?:from\s+)?(?P<name>{_NAME}|{_PERSON})\s*(?:\([^)]*\))?:\s+[\"“„«']?{_DATA['firsts']}")
_NAMED_BEHIND = _form(
    rf"[,\"”»“.!?]\s*(?:said|says|wrote|writes|sagt|sagte|dit|dijo|dice|disse|diz|zei|schrieb)\s+"
    rf"(?:{_PERSON}|(?P<name>{_NAME})|(?:the|an?|some)(?: \w+){{1,5}})\W*$"
)
_ABOUT_USER = _form(rf"^[^.!?\n]{{0,60}}\b(?:about|of|on|über|sur|sobre|su) (?:{_DATA['users']})\s*:")
_USER = _form(
    rf"(?:{_FRONT}|^[^.!?\n]{{1,60}}(?::|\bthat|\bdass|\bque|\bche)\s+)(?:{_DATA['users']})"
    rf"(?:{_DATA['user_facts']}|{_MANNER}(?:{_SAID}|{_WISHES}|always|never)\b)"
)
_TOPIC = re.compile(r"\W*(?P<topic>[^:.!?\"“„«\n]{1,80}):\s+(?=\S)")
_WHOLE_QUOTE = re.compile(r"[\"“„«][^\"“”„«»]+[\"”“»]\W*")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]*[\"”“»]?")
_STATES = rf"(?!{_either(_DATA['comments'])})"
_TURNS = (
    rf"[,;.—–-]\s*(?:and\s+)?(?:{_DATA['turns']})\b,?\s+(?!(?:{_DATA['third']})\b){_STATES}\S"
    rf"|\s(?:{_DATA['turns']})\s+{_STATES}(?:{_DATA['own']}|use)\b|[;.—–]\s*{_STATES}(?:{_DATA['own']})\b"
)
_TURNS_TO_OWN, _GOES_ON = _form(_TURNS), _form(rf"{_TURNS}|[,-]\s*{_STATES}(?:{_DATA['own']})\b")
_ORDERS, _DEMANDS = words("speakers", "orders"), _form(_DATA["demands"])
_UTTERANCES = words("speakers", "utterances")
_KINDS = _UTTERANCES | words("speakers", "sources") | words("speakers", "numbered")
_SOURCES = words("speakers", "sources")
_MACHINE = words("speakers", "roles") | words("speakers", "weak_roles")
_HEAD = _form(
    rf"^\W*(?P<before>(?!(?:{_DATA['abouts']})\b)(?:(?!(?:{_DATA['tails']})\b)[\w.'’/-]+\s+){{0,6}}?)"
    r"(?P<kind>[^\W\d_]+(?:-mail)?)\b(?:\s+\w+(?:ée?|[aiu][dt][oa]))?"
    rf"(?=\s*(?:$|[(\[,#]|v?\d|(?-i:[A-Z]+-?\d)|(?:{_DATA['tails']})\b))"
)
_TAIL = _form(rf"\s*(?:[(\[,#]|v?\d|(?:{_DATA['tails']})\b)")
_NUMBER = re.compile(r"[(#\[,]|\d")
_BY = _form(rf"\b(?:from|by|von|vom|de|du|da|di|van)\s+(?:{_OWNERS}|{_NAME}|@\w)")
_POSSESSIVE = re.compile(r"\w['’]s?\s")
_OWN_TEXT = _form(
    rf"^\W*(?:[\w-]+ to your?\b|(?:{_DATA['possessives']})\s(?!.*(?:['’]s\s|\b(?:{_either(_DATA['persons'])})\b)))"
)
_OF_SOMEBODY = _form(rf"^\W*(?P<name>{_NAME})['’]s(?: [\w-]+){{1,3}}\W*$")
_ASKS = _form(rf"\b(?:{_DATA['asks']})\b|\?\s*$")
_ASSISTANT = _form(rf"\b(?:{_DATA['assistants']})$")
_ANSWERS = _form(rf"(?:\?|:)\s*(?:{_DATA['own']})\b")
_FORWARDER = (
    rf"(?:{_PERSON}|{_TEXT}|(?-i:(?!I\b)[A-ZÀ-Þ][\w'’-]+)(?: [\w'’-]+){{0,3}}"
    rf"|{_OWNERS}?{_DATA['files']}|{_OWNERS}(?:[\w'’-]+\s+){{0,3}}?(?:{_either(_DATA['sources'])})(?: [\w'’-]+){{0,3}})"
)
_FORWARDS = _form(rf"\W*(?:{_DATA['forwards'].replace('{name}', _FORWARDER)})\W*")
_PASSES_ON = _form(rf"{_FRONT}(?:{_PERSON}|{_TEXT}){_MANNER}(?:{_DATA['told']}|pasted|left|put)\b[^.!?]*$")
_FIRST_WORD = re.compile(r"[A-Za-z]+(?:['’]t)?")
_SELF = re.compile(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]yself|[Ii]ch|[Jj]e|yo|[Ii]o|[Ee]u|[Ii]k)\b")
_TOOLS = any_of(rf"(?<![\w-])(?:{names})(?![\w-])" for names in table("lexicon").values())
_TOPICS = words("speakers", "topics")
_APPROVALS = words("speakers", "approvals")
_NO_NAMES = STOP | words("speakers", "no_names")


LONGEST_LEAD = 20  # Words
SHORTEST_NAME = 3  # Letters of a name in capitals that may be a short form of a topic


def is_reported(clause: str) -> bool:
    """Whether the clause is somebody else's word: quoted, said, wanted or preferred by another one than its speaker."""
    if _WHOLE_QUOTE.fullmatch(clause.strip()) or _is_speech(clause) or names_the_user(clause):
        return True
    if said := _says(clause) or _SOURCED.search(clause):
        if _CONDITION.match(clause) and _MAIN_CLAUSE.match(clause[said.end() :]):
            return False
        is_answered = _ASKS.search(said[0]) and _ANSWERS.search(clause, said.end())
        return not is_answered and _TURNS_TO_OWN.search(_outside_quotes(clause[said.end() :])) is None
    wants = _WANTS.search(clause) or _BY_MANY.search(clause) or _HABIT.search(clause)
    wants = wants or _by_name(_NAME_WANTS, clause) or _by_name(_OF_NAME, clause)
    return wants is not None and _GOES_ON.search(_outside_quotes(clause[wants.end() :])) is None


def introduces(lead: str) -> bool:
    """Whether the words before a colon say that somebody else's follow: they name who speaks, or a text of one."""
    if _FORWARDS.fullmatch(lead.strip()):
        return True
    if (you := _YOU_SAID.search(lead)) and lead[: you.start()].strip().lower() not in _APPROVALS:
        return not _own_speech(lead[you.end() :])
    if (passed := _PASSES_ON.search(lead)) and not _own_speech(lead[passed.end() :]):
        return True
    said = _other_says(lead)
    if said is not None:
        return not _ASKS.search(said["verb"]) and not _own_speech(lead[said.end("verb") :])
    return not _ASKS.search(lead) and (_names_text(lead) or _by_name(_OF_SOMEBODY, lead) is not None)


def names_source(line: str) -> bool:
    """Whether a line that ends with a colon names a text of somebody else."""
    spoken = [word.lower() for word in WORDS.findall(line)]
    return 0 < len(spoken) <= LONGEST_LEAD and not FIRSTS.match(line) and not _SOURCES.isdisjoint(spoken)


def ends_with_speech(line: str) -> bool:
    """Whether a line names somebody else who speaks, and ends there."""
    said = _other_says(line)
    return said is not None and not line[said.end("verb") :].strip(" .:") and not _ASKS.search(said["verb"])


def _other_says(words_said: str) -> re.Match[str] | None:
    """The last part of the words, from a verb of speech with somebody else as its subject."""
    hit = _OTHER.search(words_said)
    is_approved = hit is not None and words_said[: hit.start()].strip().lower() in _APPROVALS
    return None if is_approved or (hit and hit["name"] is not None and not _is_name(hit["name"])) else hit


def _own_speech(words_said: str) -> bool:
    return _SPEAKER.search(words_said) is not None


def _says(clause: str) -> re.Match[str] | None:
    """The part of a clause that names somebody else and a verb of speech."""
    behind = _SAYS_BEHIND.search(clause)
    if behind and (behind["name"] is None or _is_name(behind["name"])):
        return behind
    hit = _SAYS.search(clause) or _by_name(_NAME_SAYS, clause)
    return (
        hit
        or _SPEAKS_UP.search(clause)
        or _YOU_SAY.search(clause)
        or _SAYS_ALONE.search(clause)
        or _HE_SAID.search(clause)
    )


def _names_text(lead: str) -> bool:
    """Whether the words are the name of one text of somebody else: its kind, and what tells it from others."""
    noun = _HEAD.match(lead)
    if noun is None or _OWN_TEXT.match(lead):
        return False
    before, kind, behind = noun["before"].split(), noun["kind"].lower(), lead[noun.end() :]
    if kind not in _KINDS:
        return False
    named = _POSSESSIVE.search(noun["before"]) is not None or _NUMBER.search(behind) is not None
    if kind in _UTTERANCES:
        return named or not behind.strip() or _TAIL.match(behind) is not None
    known = before and (_TOOLS.search(before[-1]) or _ASSISTANT.search(before[-1]) or before[-1].lower() in _MACHINE)
    return bool(named or known or _BY.search(behind))


def behind_topic(clause: str) -> str:
    """The words behind a colon before which a topic stands, and nobody who speaks; "" without one."""
    hit = _TOPIC.match(clause)
    return clause[hit.end() :] if hit and not introduces(hit["topic"]) else ""


def names_the_user(words: str) -> bool:
    """Whether the words speak of the user in the third person, as others do."""
    return (_USER.search(words) or _ABOUT_USER.search(words)) is not None


def is_order(words_said: str) -> bool:
    """Whether a sentence tells its reader what to do."""
    first = _FIRST_WORD.search(words_said)
    return (first is not None and first[0].lower() in _ORDERS) or _DEMANDS.search(words_said) is not None


def is_first_person(words_said: str) -> bool:
    """Whether a sentence speaks of its own speaker."""
    return _SELF.search(words_said) is not None


def _is_speech(clause: str) -> bool:
    """Whether somebody else's first person stands in the clause, behind a name or a verb that says who speaks."""
    labelled = _LABELLED.search(clause)
    if labelled and _is_name(labelled["name"]):
        return True
    if _NAMED_BEHIND.search(clause) or _SOURCED_BEHIND.search(clause):
        return True
    spoken = _STATEMENT.search(clause)
    if spoken is not None:
        before = clause[: spoken.start()]
        is_own = _own_speech(before) and not _other_says(before)
        rest = clause[spoken.end() :]
        return not is_own and not _TURNS_TO_OWN.search(rest) and not _ANSWERS.search(rest)
    spoken = _SPEAKS.search(clause)
    return spoken is not None and not _own_speech(clause[: spoken.start() + 1])


def _by_name(pattern: re.Pattern[str], clause: str) -> re.Match[str] | None:
    hit = pattern.search(clause)
    return hit if hit and _is_name(hit["name"]) else None


def _is_name(name: str) -> bool:
    parts = [part for part in name.split() if part.lower() not in _NO_NAMES and part.lower() not in _TOPICS]
    first = name.split(maxsplit=1)[0].lower()
    is_short = len(name) <= SHORTEST_NAME and name.isupper()  # "UI", "CI"
    is_activity = len(parts) == 1 and name.endswith("ing")  # "Learning", "Coding"
    return (
        bool(parts)
        and not (is_short or is_activity)
        and first not in _APPROVALS | _KINDS
        and not _TOOLS.search(" ".join(parts))
    )


def _outside_quotes(rest: str) -> str:
    """The rest of a sentence without quotations; behind a colon the other one speaks to its end."""
    return _QUOTED.sub(" ", rest).partition(":")[0]
