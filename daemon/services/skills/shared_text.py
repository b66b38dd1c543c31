"""Makes the text of a skill that the others of its project may read (K4).

Home folders, addresses, names of machines, and values of variables become placeholders, unless the project's own files
have the word. Requests of private sessions are left out, and whatever a rule for secrets or injections finds refuses
the whole text. What has no such form, such as a customer's name, is left to the user who reads the text.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ....protocol.errors import InvalidRequest, Refused
from ..outgoing_screen import flags_in, secrets_in
from .shown_words import Known
from .skill_description import described_as, quoted_asks, with_asks, with_description

BYTES = 64 * 1024
"""Longest text that is shared."""

_WORD = r"[^\s`\"'()<>,;]"
_START = r"(?<![\w/.~<>-])"
_ENDS = "com|net|org|io|dev|app|cloud|local|internal|lan|corp|intranet"
_PRIVATE = (
    (
        "an address of the web",
        "<text>",
        re.compile(rf"\b(?:https?|ssh|git|ftp|file)://{_WORD}{{1,2000}}", re.IGNORECASE),
    ),
    (
        "a folder of a home",
        "<path>",
        re.compile(
            rf"{_START}(?:/home/|/Users/|/root(?=/)|~[\w-]{{0,32}}/|\$\{{?HOME\}}?|[A-Za-z]:[\\/]|\\\\\w){_WORD}{{0,1000}}"
        ),
    ),
    (
        "an address of a person or a machine",
        "<word>",
        re.compile(r"(?<![\w.+@/-])[\w.+-]{1,64}@[A-Za-z][\w.-]{0,200}[\w](?::[\w./~-]+)?"),
    ),
    ("an address of a machine", "<word>", re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")),
    (
        "a name of a machine",
        "<word>",
        re.compile(rf"(?<![\w./-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,6}}(?:{_ENDS})(?![\w/.-])"),
    ),
)
_VALUE = re.compile(r"(?<![\w./-])([A-Z_][A-Z0-9_]{1,60})=(?!<)(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s`\"']+)")
_OWN_LINES = re.compile(r"^(?:name|metadata): ")
_COUNTS = re.compile(r'^(metadata: \{)memd: "[^"\n]*", (?=memd-id: )', re.MULTILINE)


class SharedText(NamedTuple):
    """`text`: of the file; `left_out`: what is not in it, each kind once."""

    text: str
    left_out: tuple[str, ...]


class Requests(NamedTuple):
    """Tells of a request in a description whether a session that is not private has it, and of a text whether it
    repeats words of a private one."""

    is_shared: Callable[[str], bool]
    repeats_private: Callable[[str], bool]


def shared_text(text: str, description: str, requests: Requests, known: Known) -> SharedText:
    """Return what others may read of a skill's text. `description`: the user's own, "" to keep what may be kept;
    `known`: whether the project's files have a word. Raises InvalidRequest for a description that nobody else may read,
    Refused for a secret or words meant for an agent."""
    if len(text.encode()) > BYTES:
        raise InvalidRequest(f"the file has more than {BYTES // 1024} KiB", hint="share a shorter one")
    text, left_out = _described(_COUNTS.sub(r"\1", text.replace("\r\n", "\n")), description, requests)
    _screen(text)
    cleaner = _Cleaner(known)
    cleaned = "\n".join(line if _OWN_LINES.match(line) else cleaner.line(line) for line in text.split("\n"))
    return SharedText(cleaned, (*left_out, *dict.fromkeys(cleaner.found)))


def _described(text: str, description: str, requests: Requests) -> tuple[str, tuple[str, ...]]:
    """Return a text whose description others may read, and what is not in it."""
    left_out = ("requests of your own",)
    if description:
        changed = with_description(text, description)
        if changed is None:
            raise InvalidRequest("the file has no line `description:`", hint="write one between the two lines `---`")
        return changed, left_out if quoted_asks(text) else ()
    quoted = quoted_asks(text)
    kept = [ask for ask in quoted if requests.is_shared(ask)]
    told = described_as(text)
    if (quoted and not kept) or told is None or (not quoted and requests.repeats_private(told)):
        hint = "say with --description when an agent should use the skill"
        raise InvalidRequest("its description quotes requests of your private sessions, or can't be read", hint=hint)
    return (with_asks(text, kept), left_out) if len(kept) < len(quoted) else (text, ())


class _Cleaner:
    """Replaces what is private in lines, and collects what that was."""

    def __init__(self, known: Known) -> None:
        self._known, self.found = known, list[str]()
        own = [word for word in (str(Path.home()), platform.node().partition(".")[0]) if len(word) > 3]
        self._own = (
            re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, own))})(?![\w-])(?:/{_WORD}*)?") if own else None
        )

    def line(self, line: str) -> str:
        """Return a line without what is private."""
        for what, placeholder, pattern in _PRIVATE:
            line = pattern.sub(lambda found, told=(what, placeholder): self._told(found[0], *told), line)
        if self._own:
            line = self._own.sub(lambda found: self._told(found[0], "names of this machine", "<word>"), line)
        return _VALUE.sub(lambda found: f"{found[1]}={self._told('', 'values of variables', '<text>')}", line)

    def _told(self, word: str, what: str, placeholder: str) -> str:
        if word and self._known(word):
            return word
        self.found.append(what)
        return placeholder


def _screen(text: str) -> None:
    hint = "change the file, and share it then"
    if secrets := secrets_in(text):
        raise Refused(f"the skill may hold a secret: {secrets[0].rule}", hint=hint)
    if flags := flags_in(text):
        raise Refused(f"its words may be meant for an agent: {flags[0]}", hint=hint)
