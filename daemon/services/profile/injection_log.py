"""Decides when a session gets the profile, and keeps the exact texts that each session received (Q1, W9).

Invariants: a revision counts after the hook reported that it printed it; a report of a text that was never offered
counts for nothing; the texts of the newest sessions are in small files of the state folder, and serving needs none.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.profile import Injection, Injections, ListInjected, Printed, PrintNoted, Profile, ProfileText

SESSIONS = 200
"""Most sessions with texts on disk, and most with state in memory."""

TEXTS = 20
"""Most texts of one session; the newest stay."""

NOTHING = "nothing is known yet"
WHY = {
    "start": "the session starts",
    "resume": "the session goes on",
    "clear": "its context was cleared",
    "compact": "its context was compacted",
}


class _SessionInjections(msgspec.Struct):
    """The last offer to a session, and the texts that it received, newest last."""

    offered: Injection | None = None
    given: list[Injection] = []
    current: str = ""
    """The revision in the session's context, "" for none."""


_files = msgspec.json.Decoder(list[Injection])


class InjectionLog:
    """Texts by session. The fast lane offers them; the slow lane takes reports and lists them."""

    def __init__(self, folder: Path, now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._folder, self._now = folder, now
        self._sessions: dict[str, _SessionInjections] = {}
        self._lock = threading.Lock()

    def offer(self, request: Profile, profile: ProfileText) -> ProfileText:
        """Return the profile with `due`: whether the hook should print it now, and why."""
        if not profile.text:
            return msgspec.structs.replace(profile, due=False, why=NOTHING)
        if not request.document:
            return profile
        with self._lock:
            session = self._session(request.document)
            if request.trigger != "turn":
                session.current = ""  # the host's context no longer contains what was printed before
            why = _why(request, profile.rev, session.current)
            session.offered = Injection(
                document=request.document,
                at="",
                rev=profile.rev,
                why=why or "the session asked again",
                text=profile.text,
                ids=profile.ids,
                tokens=profile.tokens,
            )
        return msgspec.structs.replace(profile, due=bool(why), why=why or "the session already has this revision")

    def printed(self, request: Printed) -> PrintNoted:
        """Record that a hook printed a revision, if it was offered."""
        with self._lock:
            session = self._session(request.document)
            offered = session.offered
            if offered is None or offered.rev != request.rev:
                return PrintNoted(known=False)
            session.current = request.rev
            at, last = from_micros(self._now()), session.given[-1] if session.given else None
            if last is not None and last.rev == offered.rev:
                session.given[-1] = msgspec.structs.replace(last, at=at, why=offered.why, times=last.times + 1)
            else:
                session.given.append(msgspec.structs.replace(offered, at=at))
                del session.given[:-TEXTS]
            self._write(request.document, session.given)
        return PrintNoted(known=True)

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
        """Delete every file that contains one of these pieces, or all files (T10). Profiles are then due again."""
        with self._lock:
            self._sessions.clear()
            for path in self._folder.glob("*"):
                content = path.read_bytes()
                if not pieces or any(piece in content for piece in pieces):
                    path.unlink(missing_ok=True)

    # --- sessions ----------------------------------------------------------------------------------------------------
    def _session(self, document: str) -> _SessionInjections:
        session = self._sessions.pop(document, None)
        if session is None:
            session = _SessionInjections(given=self._read(self._path(document)))
            session.current = session.given[-1].rev if session.given else ""
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
