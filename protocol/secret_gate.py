"""The one place where secrets leave a message: every text of every field passes it before memd uses or writes it (W5).

Invariants: the walk follows the types, so a new field or request is covered; a field that no table names is free text.
Free text is redacted in place. An identifier keeps its shape: each part with a secret becomes `redacted-` and a keyed
hash of it, the same for the same part in one home, so that turns, sessions and folders stay distinct and can be looked
up. A name or path that the user chooses is refused, because memd would use another one than the user meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from functools import cache, lru_cache
from typing import Literal, Protocol, TypeVar

import msgspec

from .access import Grant
from .errors import InvalidRequest, MemdError
from .event import AnyEvent, Noted, Origin, text, with_text
from .message_texts import fields_with_text, rewritten
from .private import event_without_private, without_private
from .redact import redact as short
from .remote import UseRemote
from .request import Backup, Backups, Capture, Forget, PreviewForget, Remember, UseModel
from .request_fields import Request
from .scope import OpenAgent
from .settings import PutSetting

KEY_FILE = "placeholder.key"
"""Name of the file in the state folder with the key of the placeholders."""

KEY_BYTES = 32

IDENTIFIERS = frozenset(
    "after agent author by cwd document folder host id ids key name names path pool pools recall record relates_to "
    "remote rev root root_commit roots session source sources superseded_by supersedes turn".split()
)
"""Fields whose text is compared with other texts; all other text is free."""

REFUSED: Mapping[type, frozenset[str]] = {
    Backup: frozenset({"to"}),
    Backups: frozenset({"folder"}),
    Grant: frozenset({"subject"}),
    OpenAgent: frozenset({"agent", "prompt"}),
    PutSetting: frozenset({"name", "value"}),
    UseModel: frozenset({"folder"}),
    UseRemote: frozenset({"provider", "model"}),
}
"""Names and paths that the user chooses."""

KEPT: Mapping[type, frozenset[str]] = {Forget: frozenset({"query"}), PreviewForget: frozenset({"query"})}
"""A secret can be forgotten by its own words; memd keeps them in memory only. The pass of a request is kept too."""

Redact = Callable[[str], tuple[str, tuple[str, ...]]]
"""Returns a text without its secrets, and the names of the rules that matched."""

T = TypeVar("T")


class SessionMemory(Protocol):
    """Secrets that were found since the process started, as far as they are known in a session."""

    @property
    def version(self) -> int:
        """Grows with each new one."""
        ...

    def redact(self, text: str, /) -> tuple[str, tuple[str, ...]]:
        """Return a text without its secrets and the known ones, and the names of the rules; learn those found."""
        ...

    def holds(self, text: str, least: int = 0, /) -> bool:
        """Return whether a known secret of so many bytes at least stands in a text."""
        ...


class SecretMemory(SessionMemory, Protocol):
    """Secrets that were found since the process started."""

    def of(self, session: str, /) -> SessionMemory:
        """Return those that are known in a session."""
        ...


_REMEMBERED = 256
"""Most characters of an identifier whose result is remembered."""

_SHORTEST_LISTED = 16
"""Fewest characters of a secret that the short list finds without a word before it."""

_KNOWN_IN_NAMES = 12
"""Fewest bytes of a known secret that is looked for in identifiers: a shorter one may be the name of a project too."""

_PLACEHOLDER = re.compile(r"redacted-[0-9a-f]{12}")
_SEPARATOR = re.compile(r"([/:])")
_AUTHORITY = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r".{,5}|[0-9]{4}-[0-9T:.+Z-]{,36}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
"""A few characters, a time, a UUID: too short or too regular to hold a secret and what announces it."""

_HOST = re.compile(r"(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d*)?", re.IGNORECASE)


class SecretGate:
    """Removes the secrets of messages. Any thread may call it."""

    def __init__(self, redact: Redact, key: bytes, known: SecretMemory | None = None) -> None:
        """`key`: of this home, `KEY_BYTES` long; `known`: finds secrets again in texts that do not announce them."""
        self._rules, self._key, self._memory = redact, key, known
        self._known: SessionMemory | None = known
        self._cached_identifier = lru_cache(4096)(self._identifier)
        self._cached_origin = lru_cache(256)(self._origin)

    def without_memory(self) -> SecretGate:
        """Return a gate of the same home that neither learns secrets nor uses those that are known."""
        return SecretGate(self._rules, self._key)

    def of(self, session: str) -> SecretGate:
        """Return this gate for a session: it also knows the secrets that were found there."""
        if self._memory is None or not session:
            return self
        gate = copy(self)
        gate._known = self._memory.of(session)
        return gate

    def text(self, words: str) -> str:
        """Return free text with secrets and private spans replaced."""
        return short(self._without_secrets(without_private(words))[0])[0] if words else words

    def identifier(self, words: str) -> str:
        """Return an identifier; each part with a secret is replaced by its placeholder."""
        if not words:
            return words
        return (self._cached_identifier if len(words) <= _REMEMBERED else self._identifier)(words, self._version)

    def request(self, request: T) -> T:
        """Return a request, or any other message, without secrets; the same object if it has none. Raises
        InvalidRequest for a name or path of the user's choice that contains a secret."""
        return rewritten(request, self._changed)

    def origin(self, origin: Origin) -> Origin:
        """Return the origin of captures without secrets. Host and session are judged together, as their document."""
        size = len(origin.session) + len(origin.cwd) + len(origin.title)
        is_large = origin.repository or size > _REMEMBERED
        return (self._origin if is_large else self._cached_origin)(origin, self._version)

    @property
    def _version(self) -> int:
        return self._known.version if self._known else 0

    def _origin(self, origin: Origin, version: int) -> Origin:
        document = self.identifier(origin.document)
        if document != origin.document:
            host, _, session = document.partition(":")
            origin = msgspec.structs.replace(origin, host=host, session=session)
        return rewritten(origin, self._changed)

    def envelope(self, request: Capture | Remember) -> Capture | Remember:
        """Return a capture request with a clean origin; its events are not read yet."""
        origin = self.origin(request.origin)
        return request if origin is request.origin else msgspec.structs.replace(request, origin=origin)

    def event(self, event: AnyEvent) -> tuple[AnyEvent, tuple[str, ...]]:
        """Return an event without secrets, and the names of the rules that matched in its text. Its private spans are
        removed before (`event_without_private`)."""
        words = text(event)
        if self._is_clean(event, words):
            return event, ()
        clean, rules = self._without_secrets(words) if words else (words, ())
        if clean != words:
            event = with_text(event, clean)

        def change(owner: type, name: str, value: str) -> str:
            return value if value is clean else self._changed(owner, name, value)

        return rewritten(event, change), rules

    def spooled(self, request: Capture | Remember) -> Capture | Remember:
        """Return a capture request without secrets, as a client stores it."""
        request = self.envelope(request)
        if isinstance(request, Capture):
            return msgspec.structs.replace(request, events=tuple(map(self._spooled_event, request.events)))
        noted = Noted(turn=request.turn, at=request.at, text=request.text, role=request.role, pool=request.pool)
        spooled = self._spooled_event(noted)
        pool = getattr(spooled, "pool", "")
        return msgspec.structs.replace(request, turn=spooled.turn, text=text(spooled), pool=pool)

    def _is_clean(self, event: AnyEvent, words: str) -> bool:
        """Whether one scan of all texts of an event finds nothing; a capture costs half as much as with one scan each.
        What it finds may stand between two texts."""
        fields = [getattr(event, name) for name in fields_with_text(type(event))]
        names = [
            value for value in fields if value is not words and not (type(value) is str and _PLAIN.fullmatch(value))
        ]
        for name in names:
            if type(name) is not str or "private" in name.lower() or (len(name) >= _SHORTEST_LISTED and short(name)[1]):
                return False
        parts = [_SEPARATOR.sub("\n", name) for name in names if "/" in name or ":" in name]
        together = "\n".join((*names, *parts, words))
        return not (self._redact(together)[1] or (self._known and self._known.holds(together)))

    def _spooled_event(self, event: AnyEvent) -> AnyEvent:
        return self.event(event_without_private(event))[0]

    def error(self, error: MemdError) -> MemdError:
        """Return an error whose message and hint quote no secret."""
        texts = (words.encode(errors="replace").decode() for words in (error.message, error.hint))
        message, hint = (short(self._without_secrets(words)[0])[0] for words in texts)
        return error if (message, hint) == (error.message, error.hint) else type(error)(message, hint=hint)

    def keyed_name(self, words: str) -> str:
        """Return a keyed hash of a text: the same for the same text in one home; it reveals no words."""
        from hashlib import blake2b  # as in `_placeholder`

        return blake2b(words.encode("utf-8", "replace"), key=self._key, digest_size=10).hexdigest()

    # --- fields ------------------------------------------------------------------------------------------------------
    def _changed(self, owner: type, name: str, words: str) -> str:
        if not words or _PLAIN.fullmatch(words):
            return words
        treatment = _treatment(owner, name)
        if treatment == "text":
            return self.text(words)
        if treatment == "identifier":
            return self.identifier(without_userinfo(words) if name == "remote" else words)
        if treatment == "refused" and self.identifier(words) != words:
            raise InvalidRequest(f"`{name}` contains a secret", hint="choose a name or path without the secret")
        return words

    def _without_secrets(self, words: str) -> tuple[str, tuple[str, ...]]:
        """Return free text without secrets. The text of one field, so that memd learns no value from two beside each
        other."""
        return self._redact(words, self._known.redact if self._known else self._rules)

    def _redact(self, words: str, rules: Redact | None = None) -> tuple[str, tuple[str, ...]]:
        try:
            return (rules or self._rules)(words)
        except UnicodeEncodeError as error:
            raise InvalidRequest("a text is not valid Unicode", hint="remove lone surrogates") from error

    def _identifier(self, words: str, version: int) -> str:
        pieces = _SEPARATOR.split(words)
        if len(pieces) == 1:
            return self._part(words)
        clean = "".join(map(self._part, pieces))
        if self._is_secret(clean):  # only the parts together show that there is a secret
            return self._part(pieces[0]) + pieces[1] + self._placeholder("".join(pieces[2:]))
        return clean

    def _part(self, part: str) -> str:
        return self._placeholder(part) if len(part) > 1 and self._is_secret(part) else part

    def _is_secret(self, part: str) -> bool:
        """Whether a part of an identifier holds a secret. The short list also finds one between hyphens, where the full
        rules expect text."""
        if self._redact(part)[1] or (len(part) >= _SHORTEST_LISTED and short(part)[1]):
            return True
        return bool(self._known) and not _PLAIN.fullmatch(part) and self._known.holds(part, _KNOWN_IN_NAMES)

    def _placeholder(self, part: str) -> str:
        from hashlib import blake2b  # it loads OpenSSL, which costs a client 3 ms

        if not part or _PLACEHOLDER.fullmatch(part):
            return part
        return f"redacted-{blake2b(part.encode('utf-8', 'replace'), key=self._key, digest_size=6).hexdigest()}"


@cache
def _treatment(owner: type, name: str) -> Literal["text", "identifier", "refused", "kept"]:
    if name in REFUSED.get(owner, ()):
        return "refused"
    if name in KEPT.get(owner, ()) or (name in ("token", "surface") and issubclass(owner, Request)):
        return "kept"
    return "identifier" if name in IDENTIFIERS else "text"


def without_userinfo(remote: str) -> str:
    """Return the URL of a remote without user and password, of which any may contain `@`, `:` or `/`."""
    url = _AUTHORITY.fullmatch(remote.strip())
    if url is None or "@" not in url["rest"]:
        return remote
    if _HOST.fullmatch(url["rest"].partition("/")[0]):  # the `@` belongs to the path
        return remote
    return url["scheme"] + url["rest"].rpartition("@")[2]
