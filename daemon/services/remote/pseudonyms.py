"""Pseudonyms for what names a person or a machine in a text that leaves memd (W4).

Invariants: one thing has one pseudonym in a call; the table stays in the daemon, which puts the words back into the
quotes of the answer.
"""

from __future__ import annotations

import ipaddress
import os
import pwd
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ....protocol.record import Record

REPOSITORY = "‹repository›"
SHORTEST = 3
"""Fewest characters of a login, host or name that is replaced."""

_LOGINS = frozenset("root user admin ubuntu debian runner home dev test guest vagrant docker".split())
"""Logins that name nobody and are words of the text."""

_NOBODY = frozenset(
    "A An And But He Her His I If In It Its My No Not Our She So That The Their There They This We What Who You".split()
)
"""Words with a capital that begin a sentence."""

_ROLES = frozenset("user assistant tool document".split())
_TOKEN = re.compile(r"‹(?:path|user|host|mail|ip|name)-\d+›|" + re.escape(REPOSITORY))
_SEGMENT = r"[^\s\"'`<>|:;,()\[\]{}*?\\/‹›]+"
_POSIX = (
    rf"(?:(?<![\w./~›-])/{_SEGMENT}(?:/{_SEGMENT})+|(?:(?<![\w./~›-])~|\$HOME\b|\${{HOME}}|file://)(?:/{_SEGMENT})+)/?"
)
_WINDOWS = r"(?:(?<!\w)[A-Za-z]:|\\\\[\w.-]+)\\(?:[^\s\"'`<>|:;,()\[\]{}*?\\/]+\\?)+"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_IPV4 = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)"
_IPV6 = r"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{4,39}(?![\w:])"
_HOMES = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[/\\]([^\s/\\\"'`]+)")
_RELATION = re.compile(
    r"\b(?:colleague|coworker|co-worker|teammate|boss|manager|lead|wife|husband|partner|friend|brother|sister|mother|"
    r"father|son|daughter|neighbou?r|flatmate|roommate|client|customer|named|called)\b,?(?: is| are)? "
    r"([A-Z]\w+(?: [A-Z]\w+)?)"
)
_OWNER = re.compile(
    r"^([A-Z]\w+(?: [A-Z]\w+)?) (?:owns|maintains|reviews|leads|manages|wrote|works|lives|handles|approves)"
)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What names the user in texts: folders of the repository, the home folder, logins, host names, people."""

    roots: tuple[str, ...] = ()
    home: str = ""
    logins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    people: tuple[str, ...] = ()


def surroundings_of(roots: Iterable[str], records: Iterable[Record], said: Iterable[str]) -> Surroundings:
    """Return what this machine, the folders of a pool, its records and the texts of the session name."""
    home, logins, people = str(Path.home()), set[str](), set[str]()
    try:
        account = pwd.getpwuid(os.getuid())
        logins.add(account.pw_name)
        people.add(account.pw_gecos.partition(",")[0].strip())
    except KeyError:
        pass
    host = os.uname().nodename
    for record in records:
        people |= people_in(record)
    people |= {match[1] for words in said for match in _RELATION.finditer(words)} - _NOBODY
    return Surroundings(
        roots=tuple(
            sorted({root.rstrip("/") for root in roots if root.count("/") > 1} - {home}, key=len, reverse=True)
        ),
        home=home,
        logins=tuple(sorted({*logins, Path(home).name})),
        hosts=tuple(dict.fromkeys((host, host.partition(".")[0]))),
        people=tuple(sorted(filter(None, people))),
    )


def people_in(record: Record) -> set[str]:
    """Return the people that a record names: its author, the subject of an edge, who owns something, relations."""
    author, words = record.provenance.author, record.content
    people = set[str]() if author in _ROLES else {author.partition("<")[0].strip()}
    people |= {match[1] for match in _RELATION.finditer(words)}
    if owner := _OWNER.match(words):
        people.add(owner[1])
    if record.kind == "edge" and (subject := record.key.partition(" ")[0].replace("-", " ")):
        place = words.casefold().find(subject)
        name = words[place : place + len(subject)] if place >= 0 else ""
        people |= {name} if name.istitle() else set()
    return {name for name in people if name and name[0].isupper()} - _NOBODY


class Pseudonyms:
    """The table of one call."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._tokens: dict[tuple[str, str], str] = {}
        self._words: dict[str, str] = {}
        self._pattern = _pattern(around)

    def hide(self, words: str) -> str:
        """Return a text with pseudonyms."""
        for login in dict.fromkeys(_HOMES.findall(words)):
            if login.casefold() not in map(str.casefold, self._around.logins):
                logins = (*self._around.logins, login)
                self._around = msgspec.structs.replace(self._around, logins=logins)
                self._pattern = _pattern(self._around)
        return self._pattern.sub(self._hidden, words)

    def show(self, words: str) -> str:
        """Return a text with the words in place of the pseudonyms."""
        return _TOKEN.sub(lambda token: self._words.get(token[0], token[0]), words)

    def _hidden(self, match: re.Match[str]) -> str:
        kind, words = match.lastgroup or "", match[0]
        if kind == "root":
            self._words[REPOSITORY] = words
            return REPOSITORY
        if (kind in ("ip4", "ip6") and not _is_address(words)) or (kind == "path" and _is_plain(words)):
            return words
        tail = ""
        if kind in ("path", "windows"):
            bare = words.rstrip(".!…")
            words, tail = bare, words[len(bare) :]
        name = {"windows": "path", "ip4": "ip", "ip6": "ip"}.get(kind, kind)
        key = (name, words.casefold() if name in ("name", "user", "host") else words)
        if key not in self._tokens:
            number = sum(other == name for other, _ in self._tokens) + 1
            self._tokens[key] = f"‹{name}-{number}›"
            self._words[self._tokens[key]] = words
        return self._tokens[key] + tail


def _pattern(around: Surroundings) -> re.Pattern[str]:
    groups = [f"(?P<mail>{_MAIL})", f"(?P<windows>{_WINDOWS})"]
    if around.roots:
        groups.append(rf"(?P<root>(?<![\w./])(?:{_any(around.roots)})(?![\w.-]))")
    groups.append(f"(?P<path>{_POSIX}{f'|{re.escape(around.home)}' if around.home.count('/') > 1 else ''})")
    groups += [f"(?P<ip4>{_IPV4})", f"(?P<ip6>{_IPV6})"]
    hosts = [host for host in around.hosts if len(host) >= SHORTEST and host != "localhost"]
    logins = [name for name in around.logins if len(name) >= SHORTEST and name.casefold() not in _LOGINS]
    for kind, names in (("host", hosts), ("user", logins)):
        if names:
            groups.append(rf"(?P<{kind}>(?<!\w)(?i:{_any(names)})(?!\w))")
    if names := _spellings(around.people):
        groups.append(rf"(?P<name>(?<!\w)(?:{_any(names)})(?!\w))")
    return re.compile("|".join(groups))


def _any(names: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def _spellings(people: Iterable[str]) -> list[str]:
    """Return the names of people in whole and in parts, in capitals too; a name in small letters may be a word."""
    parts = {part for name in people for part in (name, *name.split()) if len(part) >= SHORTEST and part[0].isupper()}
    return sorted({spelling for part in parts for spelling in (part, part.upper())})


def _is_address(words: str) -> bool:
    try:
        address = ipaddress.ip_address(words)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_plain(words: str) -> bool:
    """Whether a path names nothing of this machine: a device, or a page of a manual."""
    return words.startswith(("/dev/", "/proc/self"))
