"""Secrets that a process has found, so that it finds each again where nothing announces it (W5, P-18).

Invariants: a secret is known by a keyed hash, its length, and `CLUE` of its characters at most, in memory only. Short
secrets are found between the edges of words, long ones anywhere. A word, name or number is never known, because honest
text repeats it. Only a secret that was drawn by chance is known everywhere: what may be somebody's name for something
(`staging-db-01`) is known in its own session, so that no text makes memd redact what others say elsewhere.
"""

from __future__ import annotations

import html
import json
import re
import threading
from base64 import b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote, unquote

from ...protocol.announced_values import is_exempt, is_phrase, is_secretish
from .clues import ClueSearch
from .scan import SecretSpan, find, redact

LIMIT = 10_000
"""Written forms of secrets that are known; the least recently seen is dropped."""

YOUNG = 256
"""Forms that are compiled anew with each new one; the others wait for so many, because 10,000 take 0.1 s."""

LEAST, MOST = 6, 1_024
"""Characters of a secret that is known."""

LEAST_NUMBER = 12
"""Fewest digits of a number, which may be a date, a port or an amount."""

LEAST_MIXED = 8
"""Fewest characters of words that are joined with a number."""

LEAST_PHRASE = 16
"""Fewest characters of a phrase of several words."""

ANYWHERE = 12
"""Bytes from which a secret is found inside of another word, too."""

CLUE = 4
"""Most characters of a secret that are kept as they are, to search for them; never more than half of it."""

RANDOM, TURNS, LETTERS = 16, 0.35, 5
"""Fewest characters of a piece drawn by chance, the least number of runs of one class for each of them, and the most
small letters in a row: words are longer. A generator draws .6 runs for each on average."""

SESSIONS = 64
"""Sessions in which one secret is known; the first is dropped."""

ALIKE = 8
"""Most forms with the same clue: each is looked at wherever the clue stands. Another clue of a form is taken then."""

_BESIDE = 8
_EDGE = re.compile(
    rb"(?:\A|[^A-Za-z0-9]|\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}|(?:\A|\s)-[A-Za-z])\Z"
)
"""What ends before a word: another sign, an escape, or an option of one letter."""

_LOGIN = re.compile(r"[\w.@+-]+:([^:]+)")
_NUMBERED = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]")
_ESCAPED = re.compile(r"\\(.)")
_SHELL_SIGN = re.compile(r"[^\w./:@%+=,-]")
_CLASSES = re.compile(r"([a-z]+)|([A-Z]+)|(\d+)|(\W|_)")
_JOINTS = re.compile(r"[\s./:@=,+_-]+")


class _KnownForm(NamedTuple):
    """A written form of a secret. `before`: bytes of it before the clue; `size`: of all of it."""

    clue: str
    before: int
    size: int
    digest: bytes


class _Known(NamedTuple):
    """The number of the rule that found a secret; the sessions in which it is known, None for all."""

    rule: int
    sessions: tuple[str, ...] | None


class _Forms:
    """Forms that are searched together."""

    def __init__(self, forms: Sequence[_KnownForm]) -> None:
        self.forms = forms
        self.alike: dict[str, list[_KnownForm]] = {}
        for form in forms:
            self.alike.setdefault(form.clue, []).append(form)
        self._numbered = list(self.alike.values())
        self._search = ClueSearch([(re.escape(clue),) for clue in self.alike], any_case=False) if forms else None

    def places(self, data: bytes) -> list[tuple[int, _KnownForm]]:
        """Return where a form may begin."""
        found = self._search.search(data) if self._search else None
        if not found:
            return []
        return [
            (at - form.before, form) for n, places in found.items() for form in self._numbered[n] for at, _ in places
        ]


class KnownSecrets:
    """The secrets found by one process. Any thread may call it."""

    def __init__(self, key: bytes) -> None:
        """`key`: random, of this process alone."""
        self._key, self._lock = key, threading.Lock()
        self._held: OrderedDict[bytes, _Known] = OrderedDict()
        self._searched = _Forms(()), _Forms(())
        self.version = 0

    def of(self, session: str) -> SessionSecrets:
        """Return the secrets that are known in a session."""
        return SessionSecrets(self, session)

    def learn(self, secrets: Iterable[tuple[str, int]], session: str = "") -> None:
        """Know these secrets, each found by the rule with this number, from now on."""
        forms = {
            self._digest(form.encode()): (form, _Known(rule, None if is_random(secret) else (session,)))
            for words, rule in secrets
            for secret, form in _forms_of(words)
            if session or is_random(secret)
        }
        if not forms:
            return
        with self._lock:
            old, young = self._searched[0].alike, list(self._searched[1].forms)
            alike = Counter(form.clue for form in young)
            for digest, (words, known) in forms.items():
                if digest not in self._held:
                    form = _form(words, digest, lambda clue: alike[clue] + len(old.get(clue, ())) < ALIKE)
                    if form is None:
                        continue
                    young.append(form)
                    alike[form.clue] += 1
                self._held[digest] = _joined(self._held.get(digest, known), known)
                self._held.move_to_end(digest)
            if len(young) > len(self._searched[1].forms):
                self._search_for(young)

    def redact(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return `text` without secrets, and the rules that found them; learn these."""
        return redact(text, self)

    def find(self, text: str) -> tuple[SecretSpan, ...]:
        """Return where secrets stand in `text`; learn them."""
        return find(text, self)

    def holds(self, text: str, least: int = 0, session: str = "") -> bool:
        """Return whether a known secret of so many bytes at least stands in `text`."""
        return bool(self._held) and bool(self.hits(text.encode(errors="replace"), least, session))

    def hits(self, data: bytes, least: int = 0, session: str = "") -> list[tuple[int, int, int]]:
        """Return start, end and rule's number of each secret of so many bytes at least in `data` that is known in a
        session."""
        if not self._held:
            return []
        hits: list[tuple[int, int, int]] = []
        old, young = self._searched
        for start, form in (*old.places(data), *young.places(data)):
            end = start + form.size
            if form.size < least or start < 0 or end > len(data) or not _stands_alone(data, start, end):
                continue
            if self._digest(data[start:end]) == form.digest and (rule := self._seen(form.digest, session)) is not None:
                hits.append((start, end, rule))
        return hits

    def _seen(self, digest: bytes, session: str) -> int | None:
        with self._lock:
            known = self._held.get(digest)
            if known is None or (known.sessions is not None and session not in known.sessions):
                return None
            self._held.move_to_end(digest)
            return known.rule

    def _search_for(self, young: list[_KnownForm]) -> None:
        old = self._searched[0]
        while len(self._held) > LIMIT:
            self._held.popitem(last=False)
        if len(young) > YOUNG:
            old, young = _Forms([form for form in (*old.forms, *young) if form.digest in self._held]), []
        self._searched = old, _Forms(young)
        self.version += 1

    def _digest(self, words: bytes) -> bytes:
        return blake2b(words, key=self._key, digest_size=16).digest()


class SessionSecrets(NamedTuple):
    """The secrets that are known in one session."""

    known: KnownSecrets
    session: str

    @property
    def version(self) -> int:
        """Grows with each new one."""
        return self.known.version

    def learn(self, secrets: Iterable[tuple[str, int]]) -> None:
        """Know these secrets, each found by the rule with this number, from now on."""
        self.known.learn(secrets, self.session)

    def redact(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return `text` without secrets, and the rules that found them; learn these."""
        return redact(text, self)

    def find(self, text: str) -> tuple[SecretSpan, ...]:
        """Return where secrets stand in `text`; learn them."""
        return find(text, self)

    def holds(self, text: str, least: int = 0) -> bool:
        """Return whether a known secret of so many bytes at least stands in `text`."""
        return self.known.holds(text, least, self.session)

    def hits(self, data: bytes, least: int = 0) -> list[tuple[int, int, int]]:
        """Return start, end and rule's number of each known secret in `data`, of so many bytes at least."""
        return self.known.hits(data, least, self.session)


def _joined(known: _Known, more: _Known) -> _Known:
    if known.sessions is None or more.sessions is None:
        return known._replace(sessions=None)
    return known._replace(sessions=tuple(dict.fromkeys((*known.sessions, *more.sessions)))[-SESSIONS:])


def _forms_of(words: str) -> Iterator[tuple[str, str]]:
    """Yield a secret, and the password in it, with each way to write it: plainly, escaped, encoded. Yield nothing for
    what honest text may repeat."""
    words = words.strip(" \t\r\n\"'`")
    login = _LOGIN.fullmatch(words)
    for said in {words, login[1] if login else words}:
        for secret in {said, unquote(said), html.unescape(said), _ESCAPED.sub(r"\1", said)}:
            if is_distinctive(secret):
                coded = b64encode(secret.encode(errors="replace")).decode().rstrip("=")
                quoted = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
                escaped = _SHELL_SIGN.sub(r"\\\g<0>", secret)
                forms = {secret, *quoted, escaped, quote(secret, safe=""), html.escape(secret), coded}
                yield from ((secret, form) for form in forms)


def is_distinctive(secret: str) -> bool:
    """Whether honest text does not repeat a secret: no word, name, number, placeholder or variable looks like it."""
    if not LEAST <= len(secret) <= MOST or not secret.isprintable():
        return False
    if len(secret.split()) > 1:
        return len(secret) >= LEAST_PHRASE and is_phrase(secret)
    if secret.isdigit():
        return len(secret) >= LEAST_NUMBER
    is_mixed = len(secret) >= LEAST_MIXED and bool(_NUMBERED.search(secret))
    return (is_mixed or is_secretish(secret)) and not is_exempt(secret, quoted=False)


def is_random(secret: str) -> bool:
    """Whether a secret was drawn by chance: no name, path or version of honest text looks like it. Hexadecimal digits
    are not enough, because they may name a commit."""
    return any(_is_random_piece(piece) for piece in _JOINTS.split(secret) if len(piece) >= RANDOM)


def _is_random_piece(piece: str) -> bool:
    runs = list(_CLASSES.finditer(piece))
    is_mixed = len({run.lastindex for run in runs}) >= 3 and len(runs) >= TURNS * len(piece)
    return is_mixed and all(len(run[1] or "") <= LETTERS for run in runs)


def _form(words: str, digest: bytes, is_free: Callable[[str], bool]) -> _KnownForm | None:
    """Return a form with its rarest clue of those that are free, None if it has none."""
    size = min(CLUE, len(words) // 2)
    free = (at for at in range(len(words) - size + 1) if is_free(words[at : at + size]))
    start = max(free, key=lambda at: _rarity(words[at : at + size]), default=-1)
    if start < 0:
        return None
    return _KnownForm(words[start : start + size], len(words[:start].encode()), len(words.encode()), digest)


def _rarity(words: str) -> int:
    """How few texts hold these characters: how many are no small letters, and how often their class changes."""
    return len(_CLASSES.findall(words)) + sum(not letter.islower() for letter in words)


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether a known secret is no part of a longer word, unless it is long."""
    if end - start >= ANYWHERE:
        return True
    if data[end - 1 : end].isalnum() and data[end : end + 1].isalnum():
        return False
    return not data[start : start + 1].isalnum() or bool(_EDGE.search(data[max(0, start - _BESIDE) : start]))
