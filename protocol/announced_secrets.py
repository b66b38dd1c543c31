"""Find secrets by what announces them: a key's name, a flag, a command, a URL, a phrase (W5, P-18).

What follows is a secret whatever its characters, from four on, unless it is a placeholder, a variable, a type or a word
that documentation uses; after a phrase in prose it must not look like a word. Standard library only, so that a client
loads it fast; `announced_words.py` has the words. `Announcements` looks at places, `announced` at a whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from . import announced_forms as forms
from . import announced_words as words
from .announced_tables import cells_below, may_head_column
from .announced_values import (
    Value,
    any_of,
    bare_at,
    is_exempt,
    is_phrase,
    is_secretish,
    is_wordlike,
    listed,
    trimmed,
    value_at,
)

BEFORE, BEHIND = 240, 1_200
"""Characters around a clue that are looked at."""
FEW = 3
"""Words of a clause, other than those of its announcement, that a record needs more than."""
NEAR = 12
"""Words between a value and the name behind it."""
PHRASE = 120
"""Characters of a phrase between a name and its value."""


LOGIN = "login"
"""The kind of a form with a user's name and a password in prose."""
_AMBIGUOUS = ("pass", "pin")
"""Headings of columns that often hold other values."""
_PIN = "pin"
"""Announces digits alone: a board has pins, and a version is pinned."""
_COLUMNS = ("password", "key", "secret", "token")
KINDS = ("password", "key", "secret", "token", "cookie", "signature", "webhook")


class AnnouncedSecret(NamedTuple):
    """A secret's place in characters, and its kind."""

    start: int
    end: int
    kind: str


class _Key(NamedTuple):
    """A name that announces a secret. `head`: the start of the whole name; `flag`: it is a command's option; `loud`: an
    environment variable's name."""

    kind: str
    head: int
    end: int
    flag: bool
    loud: bool


# --- tables ----------------------------------------------------------------------------------------------------------
_KINDS = {noun.replace("_", " "): kind for kind, nouns in words.NOUNS.items() for noun in nouns.split()}
_SHORT, _GLUED, _KEY_HEADS = (listed(text) for text in (words.SHORT_NOUNS, words.GLUED_HEADS, words.KEY_HEADS))
_NOT_HEADS, _LISTED = listed(words.NOT_HEADS), listed(words.LISTED)
_LINKS, _ADVERBS = listed(words.LINKS), listed(words.ADVERBS)
_INTRODUCING = listed(f"{words.OWNERS} {words.PURPOSES} (")
_COOKIE_ATTRIBUTES = listed(words.COOKIE_ATTRIBUTES)


NOUN = any_of(" ".join(words.NOUNS.values()))
FORM_CLUES = tuple(
    dict.fromkeys(
        clue.replace("_", " ")
        for clues in (*(clues for _, clues, _ in forms.FORMS), *forms.COMMAND_CLUES)
        for clue in clues.split()
    )
)
_PORT = ":5432:"
_PORTS = re.compile(r":(?:\d{2,5}|\*):")
CLUES = any_of(" ".join([*words.NOUNS.values(), *(clue.replace(" ", "_") for clue in FORM_CLUES if clue != _PORT)]))


@cache
def _clue() -> re.Pattern[str]:
    """Any place at which `at` must look, also within another clue: the command `SSHPASS` ends with a noun."""
    return re.compile(rf"(?=({CLUES}|:(?:\d{{2,5}}|\*):))")


def prepare() -> None:
    """Compile what each search needs."""
    _clue()
    for kind, command, argument, _ in (row for rows in _rows().values() for row in rows if not row[1]):
        _form(kind, command, argument)


def probes() -> tuple[str, ...]:
    """Expressions, to be searched in any case, of which one matches around each clue: in the dialect that `re` and
    Hyperscan share."""
    nouns = listed(" ".join(words.NOUNS.values()))
    heads = "|".join(words.PROBED_HEADS.split())
    joint = r"[._$ \t\"'`-]"
    parts = [
        rf"(?:{heads}){joint}{{0,4}}key(?:[^a-z),.;}}\]]|,\w|\)\s?[vs]|$)",
        rf"(?:(?:{any_of(words.KEY_HEADS)}){joint}{{0,4}}|[?&]|(?-i:[^a-z]_))"
        rf"key(?:(?:[_.-]?(?:{any_of(words.TAILS)}|\d{{1,4}}))?[\"'`\])]{{0,3}}\s?[=:(]|(?-i:_[A-Z])|[_-]for[_-]|,\w)",
        rf"(?:{heads})_key, ",
        "-key[= ]",
    ]
    for clue in sorted(nouns | set(FORM_CLUES), key=lambda word: (-len(word), word)):
        plain = re.escape(clue).replace("\\ ", "[ _]")
        if clue not in nouns and len(clue) < 4:
            plain = rf"\b{plain}\b"
        parts.append(forms.PROBES.get(clue, plain))
    return tuple(part for part in parts if part)


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not text[start - 1 : start].isalnum() and not text[end : end + 1].isalpha()


class _Form(NamedTuple):
    """What holds a secret. `command`: what stands before the arguments in which `secret` is looked for; `skipped`: the
    arguments before those in question, behind the command; `is_one`: only the first."""

    kind: str
    secret: re.Pattern[str]
    command: re.Pattern[str] | None = None
    skipped: re.Pattern[str] | None = None
    is_one: bool = False


@cache
def _rows() -> dict[str, list[tuple[str, str, str, str]]]:
    """Kind, command, expression or argument, and the option that stands in the arguments, of the forms of each clue."""
    rows: dict[str, list[tuple[str, str, str, str]]] = {}
    commands = zip(forms.COMMANDS, forms.COMMAND_CLUES, strict=True)
    table = [(kind, clues, "", (pattern,)) for kind, clues, pattern in forms.FORMS]
    table += [(kind, clues, command, tuple(arguments.split())) for (kind, command, arguments, _), clues in commands]
    for kind, clues, command, arguments in table:
        for clue in clues.split():
            rows.setdefault(clue.replace("_", " "), []).extend(
                (kind, command, argument, _option(argument) if command else "") for argument in arguments
            )
    return rows


def _option(argument: str) -> str:
    described = _PLACE.fullmatch(argument)
    return (described and described["option"]) or ""


@cache
def _form(kind: str, command: str, argument: str) -> _Form:
    if not command:
        pattern = argument.replace("{}", _argument(False))
        return _Form(kind, re.compile(pattern, re.IGNORECASE if kind == LOGIN else 0))
    described = _PLACE.fullmatch(argument)
    assert described, argument
    option, number, sign = described["option"] or "", int(described["number"] or 0), described["sign"]
    value, before = _argument(bool(described["strict"])), re.compile(_command(command))
    if number:
        skipped = re.compile(_OPTIONS + rf"(?:\s+{_ANY_ARGUMENT}{_OPTIONS})" * (number - 1))
        return _Form(kind, re.compile(rf"\s+(?!-){value}"), before, skipped, not described["strict"])
    if sign:
        value = rf"[\"']?(?:[^\s{sign}\"'$/]|/(?!/)){{1,80}}{sign}{value}"
    gap = r"[\s=]*" if described["joined"] else r"(?:\s+|=)(?!-)"
    return _Form(kind, re.compile(rf"\s{re.escape(option)}{gap}{value}" if option else rf"\s(?!-){value}"), before)


def _argument(strict: bool) -> str:
    """An argument of a command, in quotes or without. The names of the groups of a strict one are `w` and behind."""
    double, single, bare = "wxy" if strict else "stu"
    return rf"""(?:\\?"(?P<{double}>[^"\\\n]+)|\\?'(?P<{single}>[^'\n]+)|(?P<{bare}>[^\s"'`|;<>\\]+))"""


def _command(words: str) -> str:
    """An expression for the words of a command, of which a first `*` stands for any program."""
    alternatives = [re.escape(word).replace(r"\|", "|").replace(r"\*", r"[\w./:@-]*") for word in words.split()]
    parts = [f"(?:{word})(?![\\w-])" for word in alternatives[words.startswith("* ") :]]
    return rf"(?<![\w-]){_OTHER_WORDS.join(parts)}"


@cache
def _meaning(clue: str) -> tuple[str, str]:
    """The name of the forms that a clue belongs to, and the noun that it begins with; "" for none."""
    name, noun = clue.replace("_", " "), _NOUN.match(clue)
    return name if name in _rows() else "", noun[0] if noun else ""


_FLAGS = re.IGNORECASE
_PLACE = re.compile(r"(?P<option>-{1,2}[A-Za-z][\w-]*)?(?P<number>\d)?(?P<joined>\+)?(?P<sign>[=:%,])?(?P<strict>\?)?")
_OTHER_WORDS = r"\s+(?:[^\s|;&]+\s+){0,4}?"
_OPTIONS = r"(?:\s+-{1,2}[A-Za-z][\w-]*(?:=\S+|\s+https?://\S+)?)*"
_ANY_ARGUMENT = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'|;-][^\s\"'|;]*)"
_ARGUMENTS = re.compile(r"(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|\\\r?\n|[^|;&\n]|&(?!&))*")
_FORM_STOP = re.compile(r"\\+[nrt\"'\\]|[;|](?=\s|$)|`")
_PORT_NUMBER = re.compile(r"\d{1,5}(?:/|$)")
_NOUN = re.compile(NOUN)
_HEAD_BACKWARDS = re.compile(r"[\w.$-]*")
_PREVIOUS_BACKWARDS = re.compile(r"[ \t\"'`-]{1,3}([^\W\d_]+)")
_JOINT = r"(?:[_.-]|(?-i:(?<=[a-z])(?=[A-Z])))"
_TAIL = re.compile(
    rf"(?:(?:[_.-]?(?:{any_of(words.TAILS)}|\d{{1,4}})|{_JOINT}(?:{any_of(words.SERVICES)})"
    rf"|{_JOINT}(?:{any_of(words.FOR)}){_JOINT}[a-z]+)(?![^\W\d_]))*",
    _FLAGS,
)
_FLAG = re.compile(r"-{1,2}[A-Za-z]")
_GOES_ON = re.compile(r"\w|[-.]\w")
_CLE_TAIL = re.compile(rf"[ -](?:{any_of(words.KEY_TAILS)})\b", _FLAGS)
_HUMP = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
_LETTERS = re.compile(r"[^\W\d_]+")

_CLOSERS = r"(?:\\{0,8}[\"'`]|\]|\)|\*{1,2}|[_}?]|&quot;|</(?:b|strong|code|em)>){0,5}"
_TYPE = rf"(?:\s?:\s?(?:&\s?)?(?:'static\s)?(?:Optional\[)?(?:{any_of(words.TYPES)})(?:\])?(?:\s?\|\s?\w+)?(?=\s?=))?"
_CLOSED = re.compile(rf"{_CLOSERS}[ \t]*")
_ASSIGN = re.compile(
    rf"{_CLOSERS}{_TYPE}(?P<gap>[ \t]*)(?P<mark>=>|->|:=|\?=|!==?|={{1,3}}|:{{1,2}}=?|→|—|–|<<<)(?!=)(?P<space>[ \t]*)"
    rf"(?:(?:{any_of('N b f r u L @ $')})(?=[\"'])|\*{{1,2}}\s?"
    rf"|(?:new\s)?(?:{any_of(words.WRAPPERS)})\(\s?(?=[\"']))?",
    _FLAGS,
)
_CALL = re.compile(rf"{_CLOSERS}\(\s*N?(?=\\*[\"'`])")
_COMMA = re.compile(r"\\{0,8}[\"'`]\]?\s*,\s*(?=\\*[\"'`])")
_IS_NAME = re.compile(r"\\*[\"'`]\s*[:=]")
_TAG = re.compile(r"\\?[\"']?\s*>\s*(?P<u>[^<>\n]{4,400}?)\s*<")
_PAIR = re.compile(
    r"\\*[\"'`]?(?:[\s,;/-]*(?:</\w+>\s*<\w+>|\\*[\"'`]?(?:value|val|content|string|default)\\*[\"'`]?\s*[:=>]{1,2}\s*))",
    _FLAGS,
)
_TABLE = re.compile(rf"{_CLOSERS}[ \t]+\|[ \t]+(?=[^|\n]*\|)")
_RECORD = re.compile(r"[ \t]+\|[ \t]+(?=\S+[ \t]*$)", re.MULTILINE)
_SPACE = re.compile(r"\??[ \t]+(?:\()?|[ \t]*\((?=[^\s()]+\))")
_WORD = re.compile(r"\S+")
_COLON = re.compile(r"(?<!\S)[^\W\d_]*:(?!\S)")
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]+(?=\s)")
_DIGITS = re.compile(r"\d{4,12}")
_REDACTED = re.compile(r"\[redacted:[\w-]{1,60}\]")
_LITTLE = frozenset(_LETTERS.findall(" ".join((words.LINKS, words.ADVERBS, words.OWNERS, *words.NOUNS.values()))))
_PROMISING = re.compile(r"[\dA-Z!@#$%^&*+~](?:(?<=\d)|(?<=[a-z][A-Z])|(?<=[!@#$%^&*+~])[A-Za-z0-9])")
"""What each text with a value that is no word contains. `re` finds a first character of one class six times as fast as
alternatives."""
_BESIDE = re.compile(r"[^\x21\x23-\x26\x28-\x39\x3b\x3c\x3e-\x5f\x61-\x7e\n。！？；，、]{1,24}(?P<u>[!-~]{4,})")
_PHRASE_END = re.compile(r"[.;!?|{}<>](?:[\"'`)]?(?!\S)|(?<=\|)\S*)")
_TITLE = re.compile(r"(?:[\W\d_]*|(?:[A-Z][\w.-]*\s+){0,2})")
_NEXT_LINE = re.compile(
    r"[\"'`*]{0,2}[?:：]?[\"'`*”»]{0,2}(?: [#=]+)?[ \t]*\r?\n(?P<line>[=~_*^-]{3,}[ \t]*\r?\n)?(?:\s{0,20}```\w*\r?\n)?"
    r"\s{0,20}(?:[>|*-]\s)?[\"'`]?(?=\S{1,400}[\"'`]?[ \t]*(?:\r?\n|\Z))"
)
_NAMED = rf"(?:(?:{any_of(words.OWNERS)})[ \t]+)?(?:[\w-]+[ \t]+){{0,3}}"
_USE = rf"(?:.*\b)?(?:{any_of(words.USES)})[ \t]+[\"'`“«]?"
_VALUE_FIRST = tuple(
    (re.compile(before, _FLAGS | re.DOTALL), re.compile(rf"[\"'`”»]?{behind}{_NAMED}", _FLAGS))
    for before, behind in (
        (
            rf"|.*[\n.,;:!?(\"'`]\s?[\"'`“«]?|[\"'`“«]|{_USE}",
            rf"[ \t]+(?:{any_of(words.VALUE_FIRST)})(?:[ \t]+(?:{any_of(words.ADVERBS_FIRST)}))?[ \t]+",
        ),
        (
            _USE,
            rf"[ \t]+(?:[a-z]+[ \t]+){{0,3}}?(?:{any_of(words.PURPOSES)})[ \t]+"
            r"(?:it[ \t]+\w+[ \t]+(?:\w+[ \t]+)?for[ \t]+)?",
        ),
        (rf".*\b(?:{any_of(words.APPOSED)})[ \t]+[\"'`“«]?", r"(?:,[ \t]*|[ \t]+[—–-][ \t]+|[ \t]*\([ \t]*)"),
        (r".*", rf"[ \t]*[,;:—–-][ \t]*(?:{any_of(words.THAT_IS)})[ \t]+"),
    )
)
"""What stands before a value, and between it and the name that it stands before."""
_LITERAL_LINE = re.compile(
    r"(?:^|[\s;&|])(?:ENV|ARG|setenv|set[ ]-\w+|machine\b.*|default[ ]login\b.*|login[ ]\S+)\s+\Z"
)
_SCHEME = re.compile(
    rf"{_CLOSERS}\s*[:=,]\s*f?[\"'`]?(?:(?:Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|Negotiate|JWT|OAuth|SSWS)\s+)?",
    _FLAGS,
)
_COOKIE = re.compile(rf"{_CLOSERS}\s*[:=,]\s*[\"'`]?", _FLAGS)
_COOKIE_PAIR = re.compile(r"([\w.$-]+)=([^;\s\"'`,]*)(?:;\s?|$)?")
_QUERY = re.compile(r"(?:=|%3D)", _FLAGS)

_REST = re.compile(r"[ \t]*(?:[,;)\]}]*[ \t]*(?:\\+[nr\"']|\r?\n|\Z|#|//|--|/\*|\\$)|[,;|&)\]}\"'`<>])")


# --- names -----------------------------------------------------------------------------------------------------------
def _key(text: str, start: int, word: str) -> _Key | None:
    """The name whose noun begins at `start`, if it means a secret."""
    noun, word = text[start : start + len(word)], word.replace("_", " ")
    kind, before = _KINDS[word], text[max(0, start - 60) : start][::-1]
    backwards = _HEAD_BACKWARDS.match(before)
    head = backwards[0][::-1] if backwards else ""
    humps = [hump.lower() for hump in _HUMP.findall(head)] if head else []
    if not _begins(head, noun, word, humps):
        return None
    if not _NOT_HEADS.isdisjoint(humps[-2:]) and not head.startswith("--"):
        return None
    end = start + len(noun)
    if kind in ("key", "clé"):
        end = _key_end(text, kind, before, head, humps, end)
        kind = "key"
    if end < 0:
        return None
    if _has_no_case(noun):
        return _Key(kind, start, end, False, False)
    if (following := text[end : end + 1]).isalnum() or following in ("_", "-", "."):
        tail = _TAIL.match(text, end)
        end = tail.end() if tail else end
        if _GOES_ON.match(text, end) and text[end : end + 2] != "__":
            return None
    flag = head.startswith("-") and bool(_FLAG.match(head + noun))
    loud = "_" in head and (head + noun).isupper()
    return _Key(kind, start - len(head), end, flag, loud)


def _has_no_case(noun: str) -> bool:
    """Whether a noun is of a script without capitals, which has no spaces between words or adds syllables to a noun."""
    return not noun[0].isascii() and noun[0].upper() == noun[0].lower()


def _begins(head: str, noun: str, word: str, humps: list[str]) -> bool:
    """Whether the noun begins a word of its name, or follows one that such names are glued from."""
    if len(word) < 4 and len(head) > 20:
        return False
    if not head or not head[-1].isalpha() or _has_no_case(noun) or (noun[0].isupper() and head[-1].islower()):
        return True
    return (word not in _SHORT and len(word) > 3) or humps[-1] in _GLUED


def _key_end(text: str, kind: str, backwards: str, head: str, humps: list[str], end: int) -> int:
    """The end of a name with `key`, or -1 if it is no secret key. `backwards`: the text before the noun, reversed."""
    if kind == "clé":
        tail = _CLE_TAIL.match(text, end)
        return tail.end() if tail else -1
    if not humps:
        previous = _PREVIOUS_BACKWARDS.match(backwards)
        humps = [previous[1][::-1].lower()] if previous else (["api"] if backwards.startswith(("?", "&")) else [])
    if not humps or humps[-1] not in _KEY_HEADS:
        return end if head.isupper() and head.endswith("_") and humps and humps[-1] not in _NOT_HEADS else -1
    return end


# --- places ----------------------------------------------------------------------------------------------------------
def announced(text: str) -> list[AnnouncedSecret]:
    """Every announced secret in `text`, in order, none inside another one."""
    announcements = Announcements(text)
    hits = (hit for start, clue in sorted(_places(text).items()) for hit in announcements.at(start, clue))
    return merged(hits)


def names_only_a_secret(text: str) -> bool:
    """Whether a clause with a placeholder says little more than that there is a secret: "My key is [redacted:key]"."""
    rest = _REDACTED.sub(" ", text)
    if rest == text:
        return False
    named = [word.lower() for word in _LETTERS.findall(rest) if len(word) > 2]
    return sum(word not in _LISTED and word not in _LITTLE for word in named) <= FEW


@cache
def _by_shortest() -> dict[str, list[str]]:
    """The clues that contain no other one, each with itself and those that contain it: a text without it has none."""
    groups: dict[str, list[str]] = {}
    for clue in forms.CLUES:
        groups.setdefault(next((shortest for shortest in groups if shortest in clue), clue), []).append(clue)
    return groups


def _places(text: str) -> dict[int, str]:
    """Where a clue stands, and the longest that does. Looking for each word is faster than one expression for all."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    places: dict[int, str] = {}
    present = [clue for shortest, clues in _by_shortest().items() if shortest in lowered for clue in clues]
    for clue in sorted(present, key=len):
        start = lowered.find(clue)
        is_short = len(clue) < 4 and clue.isalnum() and clue not in _KINDS
        while start >= 0:
            if not is_short or _stands_alone(lowered, start, start + len(clue)):
                places[start] = clue
            start = lowered.find(clue, start + 1)
    if text.count(":") >= 4:
        places.update((match.start(), match[0]) for match in _PORTS.finditer(text))
    return places


class Announcements:
    """The search of one text, from its beginning to its end. No line is searched twice for the same forms."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._searched: dict[str, int] = {}
        self._last = AnnouncedSecret(0, 0, "")
        self._table = (0, 0)

    def between(self, start: int, end: int) -> Iterator[AnnouncedSecret]:
        """Yield the secrets that the clues within matches of `probes` announce; they may overlap."""
        lowered = self._text[start:end].lower()
        if len(lowered) != end - start:
            lowered = self._text[start:end]
        for clue in _clue().finditer(lowered):
            yield from self.at(start + clue.start(), clue[1])

    def at(self, start: int, clue: str) -> Iterator[AnnouncedSecret]:
        """Yield the secrets that a clue, in lower case, announces."""
        if self._last.start <= start < self._last.end:
            return
        name, noun = (_PORT, "") if clue[0] == clue[-1] == ":" else _meaning(clue)
        if name:
            begins_word = not (clue[0].isalpha() and self._text[start - 1 : start].isalnum())
            if begins_word or self._text[start].isupper():
                yield from self._remembered(self._in_forms(start, name))
        if not noun or self._is_plain_prose(start, start + len(noun)):
            return
        if key := _key(self._text, start, noun):
            yield from self._remembered(_after(self._text, key))
            if key.kind in _COLUMNS and may_head_column(self._text, key.end):
                yield from self._remembered(self._in_table(key))

    def _remembered(self, hits: Iterable[AnnouncedSecret]) -> Iterator[AnnouncedSecret]:
        for hit in hits:
            self._last = hit
            yield hit

    def _in_table(self, key: _Key) -> Iterator[AnnouncedSecret]:
        """Yield the values below a name that heads a table's column. A row is never a head of the rows below it."""
        heading, end = self._table
        if heading < key.head < end and "\n" in self._text[heading : key.head]:
            return
        is_doubtful = self._text[key.head : key.end].lower() in _AMBIGUOUS
        for start, end, ruled in cells_below(self._text, key.head, key.end):
            self._table = (key.head, end)
            value = Value(start, trimmed(self._text, start, end), False)
            if hit := _judged(self._text, key, value, is_doubtful or not ruled):
                yield hit

    def _is_plain_prose(self, start: int, end: int) -> bool:
        """Whether a noun stands among words alone: no digit, sign or change of case is near."""
        if not (self._text[end : end + 1] == " " and self._text[end + 1 : end + 2].isalpha()):
            return False
        return not _is_promising(self._text, max(0, start - PHRASE), end + PHRASE)

    def _in_forms(self, start: int, name: str) -> Iterator[AnnouncedSecret]:
        if start < self._searched.get(name, 0):
            return
        last = self._text.find("\n", start, start + BEHIND)
        while last > 0 and self._text[last - 1] == "\\":
            last = self._text.find("\n", last + 1, start + BEHIND)
        last = last if last >= 0 else min(len(self._text), start + BEHIND)
        first = max(_line_start(self._text, start), self._searched.get(name, 0))
        self._searched[name] = last
        for kind, command, argument, option in _rows()[name]:
            span = (start, min(last, start + PHRASE)) if kind == LOGIN else (first, last)
            if self._text.find(option, *span) < 0 or (kind == LOGIN and not _is_promising(self._text, *span)):
                continue
            for match in _matches(self._text, _form(kind, command, argument), *span):
                yield from _of_form(self._text, kind, match)


def _matches(text: str, form: _Form, start: int, end: int) -> Iterator[re.Match[str]]:
    if not form.command:
        yield from form.secret.finditer(text, start, end)
        return
    taken = start
    for command in form.command.finditer(text, start, end):
        if command.start() < taken:
            continue
        arguments = _ARGUMENTS.match(text, command.end(), end)
        first, last = command.end(), arguments.end() if arguments else command.end()
        if form.skipped:
            skipped = form.skipped.match(text, first, last)
            first = skipped.end() if skipped else last
        else:
            taken = last  # its arguments hold all that those of a command within them do
        matches = form.secret.finditer(text, first, last)
        yield from islice(matches, 1) if form.is_one else matches


def _of_form(text: str, kind: str, match: re.Match[str]) -> Iterator[AnnouncedSecret]:
    group = match.lastgroup or ""
    begin, end = match.span(group)
    if kind == "cookie":
        yield from _cookie_pairs(text, begin)
        return
    if group in "uwy" and kind != "webhook":
        stop = _FORM_STOP.search(text, begin, end)
        end = trimmed(text, begin, stop.start() if stop else end)
    said = text[begin:end]
    is_own_name = f"{said}:{said}@" in match[0]
    if is_exempt(said, False) or is_own_name or _PORT_NUMBER.match(said):
        return
    if (kind == LOGIN or group in "wxy") and not is_secretish(said, kind == "password"):
        return
    yield AnnouncedSecret(begin, end, "password" if kind == LOGIN else kind)


def merged(hits: Iterator[AnnouncedSecret]) -> list[AnnouncedSecret]:
    """In order; those that overlap as one, under the first one's kind."""
    result: list[AnnouncedSecret] = []
    for hit in sorted(hits):
        if result and hit.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(result[-1].end, hit.end))
        else:
            result.append(hit)
    return result


def _after(text: str, key: _Key) -> Iterable[AnnouncedSecret]:
    if key.kind in ("authorization", "bearer", "cookie", "signature"):
        return _special(text, key)
    if _has_no_case(last := text[key.end - 1]) and last.isalpha() and (found := _beside(text, key)):
        hit = _judged(text, key, *found)
        return (hit,) if hit else ()
    closers = _CLOSED.match(text, key.end)
    next_character = text[closers.end() : closers.end() + 1] if closers else ""
    for reader in _READERS.get(next_character, _IN_WORDS):
        if (found := reader(text, key)) is not None:
            hit = _judged(text, key, *found)
            if hit or reader not in _DOUBTFUL:
                return (hit,) if hit else ()
    return ()


def _judged(text: str, key: _Key, value: Value, loose: bool) -> AnnouncedSecret | None:
    said, is_password = text[value.start : value.end], key.kind == "password"
    if not said.isdigit() and not key.flag and text[key.head : key.end].lower() == _PIN:
        return None
    if " " in said:
        is_value = is_password and not loose and is_phrase(said)
    elif loose:
        is_value = is_secretish(said, is_password) or (is_password and bool(_DIGITS.fullmatch(said)))
    else:
        is_value = is_password or not (said.isdigit() or is_wordlike(said))
    if not is_value or is_exempt(said, value.quoted) or text.startswith(("...", "…"), value.end):
        return None
    return AnnouncedSecret(value.start, value.end, key.kind)


Found = tuple[Value, bool] | None


def _assigned(text: str, key: _Key) -> Found:
    match = _ASSIGN.match(text, key.end)
    if not match:
        return None
    value = value_at(text, match.end())
    if not value or value.quoted:
        return value and (value, False)
    said = text[value.start : value.end]
    if not match["gap"] and match["mark"] == "=" and not match["space"]:
        return value, is_wordlike(said) and not key.loud and not _REST.match(text, value.end)
    if _REST.match(text, value.end) and not (match["gap"] and is_wordlike(said)):
        spaced, ends = bool(match["space"]), text[value.end : value.end + 1]
        code = is_wordlike(said) and not key.loud and (ends in ",;)" if ends else False)
        upper = spaced and is_wordlike(said) and not said.islower()
        return value, code or upper
    return value, True


def _flagged(text: str, key: _Key) -> Found:
    if not key.flag:
        return None
    match = re.compile(r"\\?[\"']?,?[ \t]+(?!-)").match(text, key.end)
    value = value_at(text, match.end()) if match else None
    return value and (value, False)


def _called(text: str, key: _Key) -> Found:
    match = _CALL.match(text, key.end) or _COMMA.match(text, key.end)
    value = value_at(text, match.end()) if match else None
    if not match or not value or ("(" not in match[0] and _IS_NAME.match(text, value.end)):
        return None
    return value, "(" not in match[0] and is_wordlike(text[value.start : value.end])


def _tagged(text: str, key: _Key) -> Found:
    opened = text[key.head - 1 : key.head] in ("<", ":", '"', "'", ".")
    if opened and (tag := _TAG.match(text, key.end)):
        return Value(*tag.span("u"), True), False
    match = _PAIR.match(text, key.end) or _TABLE.match(text, key.end)
    if not match and text[key.head - 1 : key.head] in ("", "\n"):
        match = _RECORD.match(text, key.end)
    value = value_at(text, match.end()) if match else None
    return value and (value, False)


def _spaced(text: str, key: _Key) -> Found:
    match = _SPACE.match(text, key.end)
    if not match or not _is_promising(text, key.end, key.end + PHRASE):
        return None
    word = _PLAIN_WORD.match(text, match.end())
    if word and key.kind != "password" and is_wordlike(word[0]):
        return None
    value = value_at(text, match.end())
    if not value:
        return None
    line = text[_line_start(text, key.head) : key.head]
    strict = value.quoted and key.kind == "password" and not is_wordlike(text[value.start : value.end])
    strict = strict or _LITERAL_LINE.search(line) or text[key.head : key.end].lower() in ("requirepass", "masterauth")
    return value, not strict


def _linked(text: str, key: _Key) -> Found:
    """The value behind a word such as `is`, some words after the name, in one sentence."""
    if (following := text[key.end : key.end + 1]) == "(":
        return None
    begin = key.end + (following == "?")
    last = key.end + PHRASE
    if not _is_promising(text, begin, last):
        return None
    end = _PHRASE_END.search(text, begin, last)
    last = end.end() if end else last
    said = text[begin:last].lower()
    if _LINKS.isdisjoint(said.replace(",", " ").split()) and not (": " in said and _COLON.search(said)):
        return None
    is_linked = False
    for word in _WORD.finditer(text, begin, last):
        said = word[0]
        if is_linked and said not in _ADVERBS:
            value = _value_in_prose(text, word)
            shown = text[value.start : value.end] if value else ""
            if value and is_secretish(shown, key.kind == "password") and not is_exempt(shown, False):
                return value, True
            is_linked = False
        if is_linked and "\n" in text[begin : word.start()]:
            return None
        is_linked = is_linked or said.strip(",").lower() in _LINKS or (said[-1] == ":" and bool(_COLON.match(said)))
    return None


def _beside(text: str, key: _Key) -> Found:
    """The first run of ASCII behind a noun of a script without capitals, in one sentence."""
    match = _BESIDE.match(text, key.end)
    return (Value(match.start("u"), trimmed(text, *match.span("u")), False), True) if match else None


def _value_in_prose(text: str, word: re.Match[str]) -> Value | None:
    opening = len(word[0]) - len(word[0].lstrip("\"'`«“„(*"))
    return bare_at(text, word.start() + opening)


def _on_the_next_line(text: str, key: _Key) -> Found:
    match = _NEXT_LINE.match(text, key.end)
    value = bare_at(text, match.end()) if match else None
    if not match or not value:
        return None
    line = text[_line_start(text, key.head) : key.head]
    is_heading = match["line"] or line.startswith(("#", "=")) or _TITLE.fullmatch(line)
    return (value, True) if is_heading or "?" in match[0] or ":" in match[0] else None


def _is_promising(text: str, start: int, end: int) -> bool:
    """Whether there may be a value that is no word between these two."""
    return bool(_PROMISING.search(text[start:end]))


def _line_start(text: str, at: int) -> int:
    """The start of the line, at most `BEFORE` characters back."""
    first = max(0, at - BEFORE)
    return max(first, text.rfind("\n", first, at) + 1)


def _before(text: str, key: _Key) -> Found:
    """The last word before the name that can be no word, in one of the phrases of `_VALUE_FIRST`."""
    near = max(0, key.head - 40)
    if _INTRODUCING.isdisjoint(text[near : key.head].lower().replace("(", " ( ").split()):
        return None
    begin = _line_start(text, key.head)
    if not _is_promising(text, begin, key.head):
        return None
    for word in reversed(list(_WORD.finditer(text, begin, key.head))[-NEAR:]):
        value = _value_in_prose(text, word) if _PROMISING.search(word[0]) else None
        if value and is_secretish(said := text[value.start : value.end], True) and not is_exempt(said, False):
            before, behind = text[begin : value.start], text[value.end : key.head]
            is_named = any(first.fullmatch(before) and last.fullmatch(behind) for first, last in _VALUE_FIRST)
            return (value, True) if is_named else None
    return None


_DOUBTFUL = (_spaced, _linked, _called)
"""Readers whose value may be another word of the sentence; the value of the others decides."""
_IN_WORDS = (_flagged, _tagged, _spaced, _linked, _before)
_READERS = {
    "=": (_assigned, _tagged, _on_the_next_line, _linked),
    **dict.fromkeys("!-→—<", (_assigned, _tagged, _linked)),
    ":": (_assigned, _on_the_next_line, _linked),
    "?": (_assigned, _on_the_next_line),
    "–": (_assigned,),
    "(": (_called, _spaced, _linked),
    ",": (_called, _flagged, _tagged, _linked, _before),
    "|": (_tagged,),
    ">": (_tagged,),
    "/": (_tagged,),
    **dict.fromkeys(("\n", "\r"), (_on_the_next_line, _tagged, _linked, _before)),
    **dict.fromkeys(".;)}]+", (_before,)),
    "": (_before,),
}
"""Which readers to try, by the first character behind a name and what closes it."""


def _special(text: str, key: _Key) -> Iterator[AnnouncedSecret]:
    """Headers, cookies and the signatures of URLs."""
    if key.kind == "cookie":
        yield from _cookies(text, key)
        return
    if key.kind == "signature":
        match = _QUERY.match(text, key.end) if text[key.head - 1 : key.head] in ("?", "&", ";") else None
    elif key.kind == "bearer":
        match = re.compile(r"[ \t]+").match(text, key.end)
    else:
        match = _SCHEME.match(text, key.end)
    value = bare_at(text, match.end()) if match else None
    if not value:
        return
    said = text[value.start : value.end]
    is_value = is_secretish(said) if key.kind == "bearer" else not is_wordlike(said)
    if not is_exempt(said, False) and is_value and "(" not in said:
        yield AnnouncedSecret(value.start, value.end, "signature" if key.kind == "signature" else "token")


def _cookies(text: str, key: _Key) -> Iterator[AnnouncedSecret]:
    if match := _COOKIE.match(text, key.end):
        yield from _cookie_pairs(text, match.end())


def _cookie_pairs(text: str, at: int) -> Iterator[AnnouncedSecret]:
    while pair := _COOKIE_PAIR.match(text, at):
        name, said = pair[1].lower(), pair[2]
        if name not in _COOKIE_ATTRIBUTES and not is_exempt(said, False) and is_secretish(said):
            yield AnnouncedSecret(*pair.span(2), "cookie")
        at = pair.end()
