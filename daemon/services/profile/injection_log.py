"""Decides when a session gets the profile, and keeps the exact texts that each session received (Q1, Q13, W9).

Invariants: a revision counts after the hook reported that it printed it; a report of a text that was never offered
counts for nothing; the texts of the newest sessions are in small files of the state folder, and serving needs none.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.profile import Injection, Injections, ListInjected, Printed, PrintNoted, Profile, ProfileText
from .last_time import HEADING

SESSIONS = 200
"""Most sessions with texts on disk, and most with state in memory."""

TEXTS = 20
"""Most profiles of one session, and most texts that its prompts recalled; the newest stay."""

NOTHING = "nothing is known yet"
WHY = {
    "start": "the session starts",
    "resume": "the session goes on",
    "clear": "its context was cleared",
    "compact": "its context was compacted",
}
CONCERNS = "it concerns the prompt"
_OF_SESSIONS = HEADING.encode()
"""Begins words that are a part of what a session said, so that no piece need be in them whole."""


class SessionContext(NamedTuple):
    """The records that stand in a session's context on a turn, the turn's prompt, and the records that the session
    never received before."""

    document: str
    prompt: str
    ids: tuple[str, ...]
    fresh: tuple[str, ...] = ()


class _SessionInjections(msgspec.Struct):
    """The last offers to a session, and the texts that it received, newest last."""

    offered: Injection | None = None
    recalled: Injection | None = None
    prompt: str = ""
    given: list[Injection] = []
    current: str = ""
    """The revision in the session's context, "" for none."""
    present: dict[str, None] = {}
    """The records in the session's context, in order."""
    received: set[str] = set()
    """The records that the session ever received."""
    fresh: dict[str, None] = {}
    """Those that it received since `context` was called last."""

    def enter(self, text: Injection) -> None:
        """Add a printed text to the context, and to the texts that the session received."""
        last = next((old for old in reversed(self.given) if bool(old.asked_at) == bool(text.asked_at)), None)
        if last is not None and last.rev == text.rev and not text.asked_at:
            self.given.remove(last)
            text = msgspec.structs.replace(last, at=text.at, why=text.why, times=last.times + 1)
        self.given.append(text)
        same = [old for old in self.given if bool(old.asked_at) == bool(text.asked_at)]
        for old in same[:-TEXTS]:
            self.given.remove(old)
        self.present.update(dict.fromkeys(text.ids))
        self.fresh.update(dict.fromkeys(id for id in text.ids if id not in self.received))
        self.received.update(text.ids)


_files = msgspec.json.Decoder(list[Injection])


class InjectionLog:
    """Texts by session. The fast lane offers them; the slow lane takes reports and lists them."""

    def __init__(self, folder: Path, now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._folder, self._now = folder, now
        self._sessions: dict[str, _SessionInjections] = {}
        self._lock = threading.Lock()

    def begin(self, request: Profile) -> SessionContext:
        """Return what stands in a session's context before a request is answered."""
        if not request.document:
            return SessionContext("", request.prompt, ())
        with self._lock:
            session = self._session(request.document)
            if request.trigger != "turn" or request.delivery == "per_turn":
                session.present.clear()  # the host's context no longer contains what was printed before
            if request.trigger != "turn":
                session.current = ""
            session.prompt = request.prompt
            return SessionContext(request.document, request.prompt, tuple(session.present))

    def offer(self, request: Profile, profile: ProfileText) -> ProfileText:
        """Return the profile with `due`: whether the hook should print it now, and why. What a prompt recalled is due
        in any case."""
        if not request.document:
            return profile if profile.text else msgspec.structs.replace(profile, due=False, why=NOTHING)
        self.begin(request)
        with self._lock:
            session = self._session(request.document)
            why = _why(request, profile.rev, session.current) if profile.text else ""
            session.offered = session.recalled = None
            if profile.text:
                session.offered = Injection(
                    document=request.document,
                    at="",
                    rev=profile.rev,
                    why=why or "the session asked again",
                    text=profile.text,
                    ids=profile.ids,
                    tokens=profile.tokens,
                )
            if lines := profile.recalled:
                session.recalled = Injection(
                    document=request.document,
                    at="",
                    rev=lines.rev,
                    why=CONCERNS,
                    text=lines.text,
                    ids=lines.ids,
                    tokens=lines.tokens,
                    asked_at=from_micros(self._now()),
                )
        reason = why or ("the session already has this revision" if profile.text else NOTHING)
        return msgspec.structs.replace(profile, due=bool(why), why=reason)

    def printed(self, request: Printed) -> PrintNoted:
        """Record that a hook printed revisions, if they were offered."""
        with self._lock:
            session = self._session(request.document)
            named = ((request.rev, session.offered), (request.recall, session.recalled))
            texts = [text for rev, text in named if rev and text is not None and text.rev == rev]
            if not texts or len(texts) < bool(request.rev) + bool(request.recall):
                return PrintNoted(known=False)
            session.current = request.rev or session.current
            at = from_micros(self._now())
            for text in texts:
                session.enter(msgspec.structs.replace(text, at=at))
            self._write(request.document, session.given)
        return PrintNoted(known=True)

    def context(self, document: str) -> SessionContext:
        """Return what stands in a session's context now. A record is fresh in the first answer that has it."""
        with self._lock:
            session = self._session(document)
            fresh, session.fresh = tuple(session.fresh), {}
            return SessionContext(document, session.prompt, tuple(session.present), fresh)

    def list(self, request: ListInjected) -> Injections:
        """List the texts, newest first. Raises NotFound, InvalidRequest for a name of several sessions."""
        with self._lock:
            texts = [text for path in self._paths() for text in self._read(path)]
        if wanted := request.session.strip():
            name = _named(wanted, sorted({text.document for text in texts}))
            texts = [text for text in texts if text.document == name]
        texts.sort(key=lambda text: text.at, reverse=True)
        return Injections(injections=tuple(texts[: max(1, request.limit)]), total=len(texts))

    def forget(self, pieces: Sequence[bytes] = ()) -> None:
        """Delete every file that contains one of these pieces or words of sessions, or all files (T10). Profiles are
        then due again."""
        with self._lock:
            self._sessions.clear()
            for path in self._folder.glob("*"):
                content = path.read_bytes()
                if not pieces or _OF_SESSIONS in content or any(piece in content for piece in pieces):
                    path.unlink(missing_ok=True)

    # --- sessions ----------------------------------------------------------------------------------------------------
    def _session(self, document: str) -> _SessionInjections:
        session = self._sessions.pop(document, None)
        if session is None:
            session = _restored(self._read(self._path(document)))
            while len(self._sessions) >= SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        self._sessions[document] = session  # the newest last
        return session

    def _path(self, document: str) -> Path:
        return self._folder / f"{blake2b(document.encode(), digest_size=16).hexdigest()}.json"

    def _paths(self) -> list[Path]:
        return list(self._folder.glob("*.json"))

    @staticmethod
    def _read(path: Path) -> list[Injection]:
        try:
            return _files.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):  # missing or damaged: the profile is due again
            return []

    def _write(self, document: str, given: Sequence[Injection]) -> None:
        path = self._path(document)
        fresh = not path.exists()
        with contextlib.suppress(OSError):  # a full disk: the texts are only in memory
            self._folder.mkdir(mode=0o700, exist_ok=True)
            coming = path.with_suffix(".new")  # atomic; after a power failure the profile is due once more
            coming.write_bytes(msgspec.json.encode(given))
            coming.replace(path)
        if fresh:
            paths = sorted(self._paths(), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in paths[SESSIONS:]:
                old.unlink(missing_ok=True)


def _restored(given: list[Injection]) -> _SessionInjections:
    """Return the state of a session that received these texts, of which the ones before its last start are gone."""
    current = next((text.rev for text in reversed(given) if not text.asked_at), "")
    received = {id for text in given for id in text.ids}
    start = max((place for place, text in enumerate(given) if text.why in WHY.values()), default=0)
    present = dict.fromkeys(id for text in given[start:] for id in text.ids)
    return _SessionInjections(given=given, current=current, present=present, received=received)


def without_delivery(profile: ProfileText) -> ProfileText:
    """Return a profile for the holder of a pass, which neither reads nor changes what a session received."""
    why = "memd keeps no delivery state for a pass" if profile.text else NOTHING
    return msgspec.structs.replace(profile, due=bool(profile.text), why=why)


def _why(request: Profile, rev: str, current: str) -> str:
    """Return why the profile is due now; "" if it is not."""
    if request.delivery == "per_turn":
        return "this host keeps the profile for one turn only"
    if request.trigger != "turn":
        return WHY[request.trigger]
    if not current:
        return "the session has no profile yet"
    return "" if rev == current else "the profile changed"


def _named(wanted: str, documents: Sequence[str]) -> str:
    """Return the document with that name or prefix. Raises NotFound, InvalidRequest."""
    names = [document for document in documents if wanted in (document, document.partition(":")[2])]
    names = names or [
        document
        for document in documents
        if document.startswith(wanted) or document.partition(":")[2].startswith(wanted)
    ]
    if not names:
        raise NotFound(f"session {wanted!r} received no profile", hint="`memd injected` lists the sessions that did")
    if len(names) > 1:
        few = ", ".join(names[:5])
        raise InvalidRequest(f"{len(names)} sessions match {wanted!r}", hint=f"give one in full: {few}")
    return names[0]
