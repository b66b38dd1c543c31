"""Find secrets by what announces them: a key's name, a flag, a command, a URL, a phrase (W5, P-18).

What follows is a secret whatever its characters, from four on, unless it is a placeholder, a variable, a type or a word
that documentation uses; after a phrase in prose it must not look like a word. Standard library only, because thin
clients use it too; `announced_words.py` has the words. `between` looks at one place, `announced` at a whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from . import announced_words as words

LEAST, MOST = 4, 4_096
"""Characters of a secret."""
BEFORE, BEHIND = 240, 1_200
"""Characters around a clue that are looked at."""
FEW = 3
"""Words of a clause, other than those of its announcement, that a record needs more than."""
PHRASE = 120
"""Characters of a phrase between a name and its value."""


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


class _Value(NamedTuple):
    start: int
    end: int
    quoted: bool


# --- tables ----------------------------------------------------------------------------------------------------------
def _listed(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in text.split())


_KINDS = {noun.replace("_", " "): kind for kind, nouns in words.NOUNS.items() for noun in nouns.split()}
_SHORT, _GLUED, _KEY_HEADS = (_listed(text) for text in (words.SHORT_NOUNS, words.GLUED_HEADS, words.KEY_HEADS))
_NOT_HEADS, _LISTED, _TECHNICAL = (_listed(text) for text in (words.NOT_HEADS, words.LISTED, words.TECHNICAL))
_LINKS, _ADVERBS = _listed(words.LINKS), _listed(words.ADVERBS)
_COOKIE_ATTRIBUTES = _listed(words.COOKIE_ATTRIBUTES)


def _any_of(text: str) -> str:
    """An expression for any word of a list, the longest first."""
    found = sorted(_listed(text), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", r"[ _]") for word in found)


NOUN = _any_of(" ".join(words.NOUNS.values()))
FORM_CLUES = tuple(dict.fromkeys(clue.replace("_", " ") for _, clues, _ in words.FORMS for clue in clues.split()))
_PORT = ":5432:"
_PORTS = re.compile(r":(?:\d{2,5}|\*):")
CLUES = _any_of(" ".join([*words.NOUNS.values(), *(clue.replace(" ", "_") for clue in FORM_CLUES if clue != _PORT)]))


@cache
def _clue() -> re.Pattern[str]:
    """Any place at which `_at` must look."""
    return re.compile(rf"{CLUES}|:(?:\d{{2,5}}|\*):")


def prepare() -> None:
    """Compile what each search needs."""
    _clue()
    _forms()


def probe() -> str:
    """An expression, to be searched in any case, that matches around each clue: in the dialect that `re`, RE2 and
    JavaScript share."""
    nouns = _listed(" ".join(words.NOUNS.values()))
    heads = "|".join(sorted(_KEY_HEADS, key=len, reverse=True))
    parts = [rf"(?:{heads})[_ -]?key(?:[^a-z),.;}}\]]|$)", r"_key[\"'`]?\s?[=:]", "[?&]key="]
    for clue in sorted(nouns | set(FORM_CLUES), key=lambda word: (-len(word), word)):
        plain = re.escape(clue).replace("\\ ", "[ _]")
        if clue not in nouns and len(clue) < 4:
            plain = rf"\b{plain}\b"
        parts.append(words.PROBES.get(clue, plain))
    return "|".join(part for part in parts if part)


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not text[start - 1 : start].isalnum() and not text[end : end + 1].isalpha()


@cache
def _forms() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    forms: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, clues, pattern in words.FORMS:
        compiled = re.compile(pattern.replace("{}", words.ARGUMENT), re.IGNORECASE if kind == "login" else 0)
        for clue in clues.split():
            forms.setdefault(clue.replace("_", " "), []).append((kind, compiled))
    return forms


_FLAGS = re.IGNORECASE
_NOUN = re.compile(NOUN)
_HEAD_BACKWARDS = re.compile(r"[\w.$-]*")
_PREVIOUS_BACKWARDS = re.compile(r"[ \t\"'`-]{1,3}([^\W\d_]+)")
_TAIL = re.compile(rf"(?:[_.-]?(?:{_any_of(words.TAILS)}|\d{{1,4}})(?![^\W\d_]))*", _FLAGS)
_GOES_ON = re.compile(r"\w|[-.]\w")
_CLE_TAIL = re.compile(rf"[ -](?:{_any_of(words.KEY_TAILS)})\b", _FLAGS)
_HUMP = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+|\d+")
_DISGUISED = str.maketrans("@$013", "asoie")
_LETTERS = re.compile(r"[^\W\d_]+")

_CLOSERS = r"(?:\\{0,8}[\"'`]|\]|\)|\*{1,2}|[_}?]|&quot;|</(?:b|strong|code|em)>){0,5}"
_TYPE = rf"(?:\s?:\s?(?:&\s?)?(?:'static\s)?(?:Optional\[)?(?:{_any_of(words.TYPES)})(?:\])?(?:\s?\|\s?\w+)?(?=\s?=))?"
_CLOSED = re.compile(rf"{_CLOSERS}[ \t]*")
_ASSIGN = re.compile(
    rf"{_CLOSERS}{_TYPE}(?P<gap>[ \t]*)(?P<mark>=>|->|:=|\?=|!==?|={{1,3}}|:{{1,2}}=?|→|—|–|<<<)(?!=)(?P<space>[ \t]*)"
    rf"(?:(?:{_any_of('N b f r u L @ $')})(?=[\"'])|\*{{1,2}}\s?)?",
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
_SPACE = re.compile(r"[ \t]+(?:\()?|[ \t]*\((?=[^\s()]+\))")
_WORD = re.compile(r"\S+")
_REDACTED = re.compile(r"\[redacted:[\w-]{1,60}\]")
_LITTLE = frozenset(_LETTERS.findall(" ".join((words.LINKS, words.ADVERBS, words.OWNERS, *words.NOUNS.values()))))
_PROMISING = re.compile(r"\d|[a-z][A-Z]|[!@#$%^&*+~][A-Za-z0-9]")
"""What each text with a value that is no word contains."""
_BREAK = re.compile(r"[\"'`)]?[.;!?|{}<>][\"'`)]?\Z|\|")
_NEXT_LINE = re.compile(
    r"[\"'`*]{0,2}[?:]?[\"'`*”»]{0,2}[ \t]*\r?\n\s{0,20}(?:[>|-]\s)?[\"'`]?(?=\S+[\"'`]?[ \t]*(?:\r?\n|\Z))"
)
_VALUE_FIRST = re.compile(
    rf"(?:^|[\n.,;:!?(\"'`]\s?[\"'`]?)(?P<u>[^\s\"'`]{{4,100}})[\"'`]?[ \t]+(?:{_any_of(words.VALUE_FIRST)})[ \t]+"
    rf"(?:{_any_of(words.OWNERS)})[ \t]+(?:[\w-]+[ \t]+){{0,3}}\Z",
    _FLAGS,
)
_OWNED = re.compile(rf"[ \t](?:{_any_of(words.OWNERS)})[ \t]+(?:[\w-]+[ \t]+){{0,3}}\Z", _FLAGS)
_LITERAL_LINE = re.compile(
    r"(?:^|[\s;&|])(?:ENV|ARG|setenv|set[ ]-\w+|machine\b.*|default[ ]login\b.*|login[ ]\S+|requirepass|masterauth)\s+\Z"
)
_SCHEME = re.compile(
    rf"{_CLOSERS}\s*[:=,]\s*f?[\"'`]?(?:(?:Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|Negotiate|JWT|OAuth|SSWS)\s+)?",
    _FLAGS,
)
_COOKIE = re.compile(rf"{_CLOSERS}\s*[:=,]\s*[\"'`]?", _FLAGS)
_COOKIE_PAIR = re.compile(r"([\w.$-]+)=([^;\s\"'`,]*)(?:;\s?|$)?")
_QUERY = re.compile(r"(?:=|%3D)", _FLAGS)

_QUOTE = re.compile(r"(\\{0,8})([\"'`])|&quot;|[«“„‘]\s?")
_NOT_OPENED = (*" \t\n+.,;)}]", "")
"""Characters behind a quote that closes a text, not one that opens a value."""
_CLOSING = {"«": "»", "“": "”", "„": "“", "‘": "’"}
_BARE = re.compile(r"[^\s\"'`<>«»“”|]+(?:['\"`][^\s\"'`<>,;)\]}]+)*")
_STOP = re.compile(r"&(?=[\w.-]+=|amp;)|\\+[nrt\"'\\]|[,;](?=$|[\w.-]+\s?[=:]|[\"'{\[])|;|&quot;|%26")
_REST = re.compile(r"[ \t]*(?:[,;)\]}]*[ \t]*(?:\\+[nr\"']|\r?\n|\Z|#|//|--|/\*|\\$)|[,;|&)\]}\"'`<>])")


# --- values ----------------------------------------------------------------------------------------------------------
_PLACEHOLDER = re.compile(
    r"[\W_xX0]*|<.*>?|\[.*\]?|\{.*|%[\w.]+%|#\{.*|@[\w.]+@|__\w+__|\$[A-Za-z_({\[].*|\$\d?|[!&*][A-Za-z].*|.*(?:\$\{|\{\{|\$\(|<%|\.\.\.|…|#{4}|x{4}|X{4}|\*{3}|••).*|%s|"
    r".*(?:1234567890|0123456789|abcdefg|a1b2c3).*|12345678\d?|\[?redacted.*|"
    r"(?:your|my|some|insert|enter|replace|change|put|add|the|example|sample|dummy|fake|placeholder)[-_ ][^\d]*|(.)\1*|.*_here|.*EXAMPLE(?:KEY)?|[u]?int\d+\w*|float\d+\w*",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$]\w*)*!?(?:\(.*|\[.*)|[A-Za-z_]\w*(?:(?:->|::|\?\.)[A-Za-z_]\w*)+|"
    r"(?:new|await|typeof|lambda|function)\b.*|\(.*|\w+=>.*|@\w+"
)
_PATHS = re.compile(
    rf"(?:~|\.{{1,2}}|[A-Z]:)?[\\/](?:[\w.@-]+[\\/]?)+|[a-z][a-z0-9+.-]*://.*|(?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:{_any_of(words.FILE_ENDINGS)})",
    re.IGNORECASE,
)
_IN_PROSE_NO_SECRET = re.compile(
    r"[\W\d_]+(?:[a-z]{1,2}|[A-Z]|[KMGT]B)?|v?\d+(?:\.\w+)+|\d+-?(?:st|nd|rd|th|bits?|bytes?|days?|hours?|mins?|minutes?|secs?|seconds?|weeks?|years?|characters?|chars?|digits?|fold|factor|way|[KMGT]i?B|[kmg]bps|rpm|fps|dpi)|\d+-[a-z]+|\d{4}-\d\d-\d\dT?.*|0x[0-9a-fA-F]+|(?:\d+[hms]){1,3}|[A-Z]{2,5}|"
    r"[^\W\d_]+['’][^\W\d_]{1,3}|[\w.+-]+@[\w-]+(?:\.\w+)+|[A-Z]{1,3}&[A-Z]{1,3}|#\d+|[A-Z]+-\d+|[A-Za-z]{1,3}-?\d{1,3}|"
    r"[\w-]+\(\w*\)|.*[(\[{=].*|[A-Za-z*./-]+\.[a-z]{1,5}",
)


def _wordlike(text: str) -> bool:
    """Whether letters and what joins them can be words: vowels in each, few changes of case, no digits."""
    if re.search(r"\d|[^\w\s.,:;/'’?!()-]", text):
        return False
    humps = [hump for hump in _HUMP.findall(text)]
    letters = sum(map(len, humps))
    if (
        not humps
        or letters < (3 if len(humps) > 2 else 2.6) * len(humps)
        or any(len(hump) < 2 and hump not in "aI" for hump in humps)
        or re.search(r"[A-Z]{2,}[a-z]{1,2}[A-Z]", text)
    ):
        return all(hump.lower() in _LISTED for hump in humps)
    return all(hump.lower() in _LISTED or _is_word(hump.lower()) for hump in humps)


def _is_word(hump: str) -> bool:
    return bool(re.search(r"[aeiouyà-ɏ]", hump)) and not re.search(r"[^aeiouyà-ɏ]{5}|(.)\1\1|q[^uà-ɏ]", hump)


def _is_listed(text: str) -> bool:
    """Whether `text` consists of words of documentation and code, perhaps with a number at the end."""
    bare = re.sub(r"(?<=[A-Za-z])[\d]{1,3}!?$", "", text)
    humps = _HUMP.findall(bare.translate(_DISGUISED) if re.search(r"[A-Za-z][@$013]", bare) else bare)
    if not humps or re.search(r"[^\w\s.,:;/'’?!()*&\[\]<>=+#-]", bare.translate(_DISGUISED)):
        return False
    return bare.lower() in _LISTED or all(_is_joined(hump.lower()) for hump in humps)


def _is_joined(hump: str) -> bool:
    """Whether a run of letters is a listed word, or several without a gap: `mypassword`."""
    reached = {0}
    for end in range(1, len(hump) + 1 if len(hump) <= 40 else 1):
        if any(hump[start:end] in _LISTED for start in reached if end - start > 1 or start == end - 1 == 0):
            reached.add(end)
    return len(hump) in reached




def _is_exempt(text: str, quoted: bool) -> bool:
    """Whether a value is no secret wherever it stands."""
    if not LEAST <= len(text) <= MOST or (len(text) >= 16 and max(map(text.count, set(text))) > len(text) * 0.6):
        return True
    text = text.strip("\"'")
    if _PLACEHOLDER.fullmatch(text) or text.lower() in _TECHNICAL or _is_listed(text) or _PATHS.fullmatch(text):
        return True
    return not quoted and bool(_CODE.fullmatch(text))


def _is_secretish(text: str, is_password: bool = False) -> bool:
    """Whether no word, number, name of a technique or file looks like this: what a secret in prose must be. A password
    may be a word with a number."""
    if text.lower() in _TECHNICAL or _IN_PROSE_NO_SECRET.fullmatch(text) or _wordlike(text):
        return False
    parts = [part for part in re.split(r"[-_/.,:]", text) if part]
    if is_password and text[0].isalpha() and text[-1].isdigit() and not _is_listed(parts[0]):
        return True
    return not all(
        part.lower() in _TECHNICAL
        or part.isdigit()
        or (len(part) > 1 and (_wordlike(part) or (len(part) < 4 and part.isalpha())))
        for part in parts
    )


# --- where a value ends ----------------------------------------------------------------------------------------------
def _value(text: str, start: int) -> _Value | None:
    """The value that begins at `start`, in quotes or without."""
    opening = _QUOTE.match(text, start)
    if not opening:
        return _bare(text, start)
    mark = opening[0].strip()
    if text[opening.end() : opening.end() + 1] in _NOT_OPENED:
        return None
    closing = _CLOSING.get(mark, mark)
    line = text.find("\n", opening.end())
    end = text.find(closing, opening.end(), line if line >= 0 else len(text))
    while end > 0 and not opening[1] and text[end - 1] == "\\" and mark in "\"'":
        end = text.find(closing, end + 1, line if line >= 0 else len(text))
    if end < 0:
        return _bare(text, opening.end())
    stop = len(text[opening.end() : end].rstrip(" »”"))
    return _Value(opening.end(), opening.end() + stop, True)


def _bare(text: str, start: int) -> _Value | None:
    match = _BARE.match(text, start)
    if not match:
        return None
    end = match.end()
    if stop := _STOP.search(text, start + 1, end):
        end = stop.start()
    return _Value(start, _trimmed(text, start, end), False)


def _trimmed(text: str, start: int, end: int) -> int:
    """The end without the punctuation and the brackets of the sentence around the value."""
    while end > start:
        last = text[end - 1]
        if last in ".,;:?*\\" or (
            last in ")]}" and text.count(last, start, end) > text.count("([{"[")]}".index(last)], start, end)
        ):
            end -= 1
        else:
            break
    return end


# --- names -----------------------------------------------------------------------------------------------------------
def _key(text: str, start: int, word: str) -> _Key | None:
    """The name whose noun begins at `start`, if it means a secret."""
    noun, word = text[start : start + len(word)], word.replace("_", " ")
    kind, before = _KINDS[word], text[max(0, start - 60) : start]
    backwards = _HEAD_BACKWARDS.match(before[::-1])
    head = backwards[0][::-1] if backwards else ""
    humps = [hump.lower() for hump in _HUMP.findall(head)]
    if not _begins(head, noun, word, humps):
        return None
    if not set(humps[-2:]).isdisjoint(_NOT_HEADS) and not head.startswith("--"):
        return None
    end = start + len(noun)
    if kind in ("key", "clé"):
        end = _key_end(text, kind, before, head, humps, end)
        kind = "key"
    if end < 0:
        return None
    tail = _TAIL.match(text, end)
    end = tail.end() if tail else end
    if _GOES_ON.match(text, end) and text[end : end + 2] not in ("__",):
        return None
    flag = bool(re.match(r"-{1,2}[A-Za-z]", head + noun)) and head.startswith("-")
    loud = (head + noun).isupper() and "_" in head
    return _Key(kind, start - len(head), end, flag, loud)


def _begins(head: str, noun: str, word: str, humps: list[str]) -> bool:
    """Whether the noun begins a word of its name, or follows one that such names are glued from."""
    if len(word) < 4 and len(head) > 20:
        return False
    if not head or not head[-1].isalpha() or (noun[0].isupper() and head[-1].islower()):
        return True
    return (word not in _SHORT and len(word) > 3) or humps[-1] in _GLUED


def _key_end(text: str, kind: str, before: str, head: str, humps: list[str], end: int) -> int:
    """The end of a name with `key`, or -1 if it is no secret key."""
    if kind == "clé":
        tail = _CLE_TAIL.match(text, end)
        return tail.end() if tail else -1
    if not humps:
        previous = _PREVIOUS_BACKWARDS.match(before[::-1])
        humps = [previous[1][::-1].lower()] if previous else (["api"] if before.endswith(("?", "&")) else [])
    if not humps or humps[-1] not in _KEY_HEADS:
        return end if head.isupper() and head.endswith("_") and humps and humps[-1] not in _NOT_HEADS else -1
    return end


# --- places ----------------------------------------------------------------------------------------------------------
def announced(text: str) -> list[AnnouncedSecret]:
    """Every announced secret in `text`, in order, none inside another one."""
    return merged(hit for start, clue in sorted(_places(text).items()) for hit in _at(text, start, clue))


def names_only_a_secret(text: str) -> bool:
    """Whether a clause with a placeholder says little more than that there is a secret: "My password is [redacted:…]"."""
    rest = _REDACTED.sub(" ", text)
    if rest == text:
        return False
    named = [word.lower() for word in _LETTERS.findall(rest) if len(word) > 2]
    return sum(word not in _LISTED and word not in _LITTLE for word in named) <= FEW


def _places(text: str) -> dict[int, str]:
    """Where a clue stands, and the longest that does. Looking for each word is faster than one expression for all."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    places: dict[int, str] = {}
    for clue in words.CLUES:
        start = lowered.find(clue)
        is_short = len(clue) < 4 and clue not in _KINDS
        while start >= 0:
            if not is_short or _stands_alone(lowered, start, start + len(clue)):
                places[start] = clue
            start = lowered.find(clue, start + 1)
    if text.count(":") >= 4:
        places.update((match.start(), match[0]) for match in _PORTS.finditer(text))
    return places


def between(text: str, start: int, end: int) -> Iterator[AnnouncedSecret]:
    """The secrets that the clues within a match of `probe` announce; they may overlap."""
    lowered = text[start:end].lower()
    if len(lowered) != end - start:
        lowered = text[start:end]
    for clue in _clue().finditer(lowered):
        yield from _at(text, start + clue.start(), clue[0])


def merged(hits: Iterator[AnnouncedSecret]) -> list[AnnouncedSecret]:
    """In order; those that overlap as one, under the first one's kind."""
    result: list[AnnouncedSecret] = []
    for hit in sorted(hits):
        if result and hit.start < result[-1].end:
            result[-1] = result[-1]._replace(end=max(result[-1].end, hit.end))
        else:
            result.append(hit)
    return result


def _at(text: str, start: int, clue: str) -> Iterator[AnnouncedSecret]:
    forms = _forms().get(_PORT if clue[0] == clue[-1] == ":" else clue.replace("_", " "))
    if forms and (text[start].isupper() or not (clue[0].isalpha() and text[start - 1 : start].isalnum())):
        yield from _in_forms(text, start, forms)
    noun = _NOUN.match(clue)
    if noun and (key := _key(text, start, noun[0])):
        yield from _after(text, key)


def _in_forms(text: str, start: int, forms: list[tuple[str, re.Pattern[str]]]) -> Iterator[AnnouncedSecret]:
    first = max(text.rfind("\n", 0, start) + 1, start - BEFORE)
    last = text.find("\n", start)
    last = min(last if last >= 0 else len(text), start + BEHIND)
    for kind, form in forms:
        if kind == "login":
            first, last = start, min(last, start + 120)
        for match in form.finditer(text, first, last):
            group = next(name for name in ("s", "t", "u") if match.groupdict().get(name) is not None)
            begin, end = match.span(group)
            if group == "u":
                end = _trimmed(text, begin, _cut(text, begin, end)) if kind != "webhook" else end
            value = text[begin:end]
            if kind == "login" and (not _is_secretish(value) or _is_exempt(value, False)):
                continue
            if _is_exempt(value, False) or _is_own_name(match, value) or re.match(r"\d{1,5}(?:/|$)", value):
                continue
            yield AnnouncedSecret(begin, end, "password" if kind == "login" else kind)


def _cut(text: str, start: int, end: int) -> int:
    stop = re.compile(r"\\+[nrt\"'\\]|[;|](?=\s|$)|`").search(text, start, end)
    return stop.start() if stop else end


def _is_own_name(match: re.Match[str], value: str) -> bool:
    """Whether user and password are one word, as in local set-ups."""
    return f"{value}:{value}@" in match[0]


def _after(text: str, key: _Key) -> Iterator[AnnouncedSecret]:
    if key.kind in ("authorization", "bearer", "cookie", "signature"):
        yield from _special(text, key)
        return
    closers = _CLOSED.match(text, key.end)
    next_character = text[closers.end() : closers.end() + 1] if closers else ""
    for reader in _READERS.get(next_character, _IN_WORDS):
        if (found := reader(text, key)) is not None:
            if hit := _judged(text, key, *found):
                yield hit
            if hit or reader not in _DOUBTFUL:
                return


def _judged(text: str, key: _Key, value: _Value, loose: bool) -> AnnouncedSecret | None:
    said = text[value.start : value.end]
    if _is_exempt(said, value.quoted) or text.startswith(("...", "…"), value.end):
        return None
    if " " in said:
        return AnnouncedSecret(value.start, value.end, key.kind) if _is_passphrase(said, key) and not loose else None
    if (
        loose
        and not _is_secretish(said, key.kind == "password")
        and not (key.kind == "password" and re.fullmatch(r"\d{4,12}", said))
    ):
        return None
    if not loose and key.kind != "password" and (said.isdigit() or _wordlike(said)):
        return None
    return AnnouncedSecret(value.start, value.end, key.kind)


def _is_passphrase(said: str, key: _Key) -> bool:
    """Whether several words in quotes can be a secret: none is of documentation, or one is no word."""
    parts = said.split()
    return (
        key.kind == "password"
        and len(parts) >= 3
        and not any(part.strip(".,!?:").lower() in _LISTED for part in parts)
        and len(parts) <= 8
    )


Found = tuple[_Value, bool] | None


def _assigned(text: str, key: _Key) -> Found:
    match = _ASSIGN.match(text, key.end)
    if not match:
        return None
    value = _value(text, match.end())
    if not value or value.quoted:
        return value and (value, False)
    said = text[value.start : value.end]
    if not match["gap"] and match["mark"] == "=" and not match["space"]:
        return value, _wordlike(said) and not key.loud and not _REST.match(text, value.end)
    if _REST.match(text, value.end) and not (match["gap"] and _wordlike(said)):
        spaced, ends = bool(match["space"]), text[value.end : value.end + 1]
        code = _wordlike(said) and not key.loud and (ends in ",;)" if ends else False)
        upper = spaced and _wordlike(said) and not said.islower()
        return value, code or upper
    return value, True


def _flagged(text: str, key: _Key) -> Found:
    if not key.flag:
        return None
    match = re.compile(r"\\?[\"']?,?[ \t]+(?!-)").match(text, key.end)
    value = _value(text, match.end()) if match else None
    return value and (value, False)


def _called(text: str, key: _Key) -> Found:
    match = _CALL.match(text, key.end) or _COMMA.match(text, key.end)
    value = _value(text, match.end()) if match else None
    if not match or not value or ("(" not in match[0] and _IS_NAME.match(text, value.end)):
        return None
    return value, "(" not in match[0] and _wordlike(text[value.start : value.end])


def _tagged(text: str, key: _Key) -> Found:
    opened = text[key.head - 1 : key.head] in ("<", ":", '"', "'", ".")
    if opened and (tag := _TAG.match(text, key.end)):
        return _Value(*tag.span("u"), True), False
    match = _PAIR.match(text, key.end) or _TABLE.match(text, key.end)
    value = _value(text, match.end()) if match else None
    return value and (value, False)


def _spaced(text: str, key: _Key) -> Found:
    if not _PROMISING.search(text, key.end, key.end + PHRASE):
        return None
    match = _SPACE.match(text, key.end)
    value = _value(text, match.end()) if match else None
    if not value:
        return None
    line = text[max(text.rfind("\n", 0, key.head) + 1, key.head - BEFORE) : key.head]
    strict = value.quoted and key.kind == "password" and not _wordlike(text[value.start : value.end])
    strict = strict or _LITERAL_LINE.search(line) or text[key.head : key.end].lower() in ("requirepass", "masterauth")
    return value, not strict


def _linked(text: str, key: _Key) -> Found:
    """The value behind a word such as `is`, some words after the name, in one sentence."""
    if not _PROMISING.search(text, key.end, key.end + PHRASE):
        return None
    is_linked = False
    for word in _WORD.finditer(text, key.end, min(len(text), key.end + PHRASE)):
        if is_linked and word[0] not in _ADVERBS:
            value = _value_in_prose(text, word)
            if value and _is_secretish(text[value.start : value.end], key.kind == "password"):
                return value, True
            is_linked = False
        if _BREAK.search(word[0]) or (is_linked and "\n" in text[key.end : word.start()]):
            return None
        is_linked = is_linked or word[0].strip(",:").lower() in _LINKS or word[0] == ":"
    return None


def _value_in_prose(text: str, word: re.Match[str]) -> _Value | None:
    opening = len(word[0]) - len(word[0].lstrip("\"'`«“„(*"))
    return _bare(text, word.start() + opening)


def _on_the_next_line(text: str, key: _Key) -> Found:
    match = _NEXT_LINE.match(text, key.end)
    value = _bare(text, match.end()) if match else None
    is_asked = bool(match) and ("?" in match[0] or ":" in match[0] or text[key.head - 1 : key.head] in ("", "\n"))
    return value and is_asked and (value, True) or None


def _in_column(text: str, key: _Key) -> Found:
    """The first value below the heading of a table's column."""
    start, end = text.rfind("\n", 0, key.head) + 1, text.find("\n", key.end)
    column = text.count("|", start, key.head)
    rows = text[end : end + BEHIND].split("\n")[1:3] if end > 0 and column and key.kind == "password" else []
    if len(rows) < 2 or not re.fullmatch(r"[\s|:-]+", rows[0]):
        return None
    cells = rows[1].split("|")
    cell = cells[column].strip(" `*\t") if len(cells) > column else ""
    place = text.find(cell, end + len(rows[0]) + 1)
    return (_Value(place, place + len(cell), True), False) if cell and " " not in cell else None


def _before(text: str, key: _Key) -> Found:
    first = max(0, key.head - PHRASE)
    if not _PROMISING.search(text, first, key.head) or not _OWNED.search(text, max(0, key.head - 40), key.head):
        return None
    begin = max(text.rfind("\n", 0, key.head) + 1, key.head - BEFORE)
    match = _VALUE_FIRST.search(text[begin : key.head])
    return (_Value(begin + match.start("u"), begin + match.end("u"), False), True) if match else None


_DOUBTFUL = (_spaced, _linked, _called)
"""Readers whose value may be another word of the sentence; the value of the others decides."""
_IN_WORDS = (_flagged, _tagged, _spaced, _linked, _before)
_READERS = {
    **dict.fromkeys("=!-→—<", (_assigned, _tagged, _linked)),
    ":": (_assigned, _on_the_next_line, _linked),
    "?": (_assigned, _on_the_next_line),
    "–": (_assigned,),
    "(": (_called, _spaced),
    ",": (_called, _flagged, _tagged, _linked, _before),
    "|": (_tagged, _in_column),
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
    value = _bare(text, match.end()) if match else None
    if not value:
        return
    said = text[value.start : value.end]
    is_value = _is_secretish(said) if key.kind == "bearer" else not _wordlike(said)
    if not _is_exempt(said, False) and is_value and "(" not in said:
        yield AnnouncedSecret(value.start, value.end, "signature" if key.kind == "signature" else "token")


def _cookies(text: str, key: _Key) -> Iterator[AnnouncedSecret]:
    match = _COOKIE.match(text, key.end)
    at = match.end() if match else -1
    while at >= 0 and (pair := _COOKIE_PAIR.match(text, at)):
        name, said = pair[1].lower(), pair[2]
        if name not in _COOKIE_ATTRIBUTES and not _is_exempt(said, False) and _is_secretish(said):
            yield AnnouncedSecret(*pair.span(2), "cookie")
        at = pair.end()
