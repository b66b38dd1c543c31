"""What each session was given: whether the profile is due there, and the exact texts it got, and why (Q1, W9).

Comes in: offers of the profile, and the hooks' reports that they printed them. Goes out: `due` with a reason, and the
texts. Invariants: a revision counts once it was reported; a report of something that was never offered counts for
nothing; the texts lie in small files of the state folder, of the newest sessions only, and none is needed to serve.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.profile import Injection, Injections, ListInjected, Printed, PrintNoted, Profile, ProfileText

SESSIONS = 200
"""Sessions whose texts are kept, and whose state is in memory."""

TEXTS = 20
"""Texts kept of one session, the newest."""

WHY = {
    "start": "the session starts",
    "resume": "the session goes on",
    "clear": "its context was cleared",
    "compact": "its context was compacted",
}


class _SessionInjections(msgspec.Struct):
    """A session: what it was offered last, what it was given, newest last."""

    offered: Injection | None = None
    given: list[Injection] = []
    current: str = ""
    """The revision that stands in its context, "" where none does."""


_files = msgspec.json.Decoder(list[Injection])


class InjectionLog:
    """Sessions and what they were given. The door offers; the slow lane takes reports and lists."""

    def __init__(self, folder: Path, now: Callable[[], int]) -> None:
        """`now`: microseconds."""
        self._folder, self._now = folder, now
        self._sessions: dict[str, _SessionInjections] = {}
        self._lock = threading.Lock()

    def offer(self, request: Profile, told: ProfileText) -> ProfileText:
        """The profile with the word whether it is to be printed now."""
        if not told.text:
            return msgspec.structs.replace(told, due=False, why="nothing is known yet")
        if not request.document:
            return told
        with self._lock:
            session = self._session(request.document)
            if request.trigger != "turn":
                session.current = ""  # whatever was printed before is gone from the host's context
            why = _why(request, told.rev, session.current)
            session.offered = Injection(
                document=request.document,
                at="",
                rev=told.rev,
                why=why or "the session asked again",
                text=told.text,
                ids=told.ids,
                tokens=told.tokens,
            )
        return msgspec.structs.replace(told, due=bool(why), why=why or "the session already has this revision")

    def printed(self, request: Printed) -> PrintNoted:
        """A hook printed a revision: it counts from now on, if it was offered."""
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
        """What was given, newest first. Raises NotFound, InvalidRequest for a name of several sessions."""
        with self._lock:
            kept = list(self._kept())
        if wanted := request.session.strip():
            name = _named(wanted, sorted({each.document for each in kept}))
            kept = [each for each in kept if each.document == name]
        found = sorted(kept, key=lambda each: each.at, reverse=True)
        return Injections(injections=tuple(found[: max(1, request.limit)]), total=len(found))

    def forget(self, pieces: Sequence[bytes] = ()) -> None:
        """Drop every text that holds one of these, or all of them where none is named (T10). They are due again."""
        with self._lock:
            self._sessions.clear()
            for path in self._folder.glob("*"):
                held = path.read_bytes()
                if not pieces or any(piece in held for piece in pieces):
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

    def _kept(self) -> Iterator[Injection]:
        for path in self._paths():
            yield from self._read(path)

    @staticmethod
    def _read(path: Path) -> list[Injection]:
        try:
            return _files.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):  # never there, or damaged: it is due again
            return []

    def _write(self, document: str, given: Sequence[Injection]) -> None:
        path = self._path(document)
        fresh = not path.exists()
        with contextlib.suppress(OSError):  # a full disk: what was given is then in memory alone
            self._folder.mkdir(mode=0o700, exist_ok=True)
            coming = path.with_suffix(".new")  # whole or not at all; after a power cut it is only due once more
            coming.write_bytes(msgspec.json.encode(given))
            coming.replace(path)
        if fresh:
            paths = sorted(self._paths(), key=lambda each: each.stat().st_mtime_ns, reverse=True)
            for old in paths[SESSIONS:]:
                old.unlink(missing_ok=True)


def _why(request: Profile, rev: str, current: str) -> str:
    """Why it is to be printed now; "" if it is not."""
    if request.delivery == "per_turn":
        return "this host keeps the profile for one turn only"
    if request.trigger != "turn":
        return WHY[request.trigger]
    if not current:
        return "the session has no profile yet"
    return "" if rev == current else "the profile changed"


def _named(wanted: str, documents: Sequence[str]) -> str:
    """The document of that name, or whose name begins so. Raises NotFound, InvalidRequest."""
    names = [each for each in documents if wanted in (each, each.partition(":")[2])]
    names = names or [
        each for each in documents if each.startswith(wanted) or each.partition(":")[2].startswith(wanted)
    ]
    if not names:
        raise NotFound(f"session {wanted!r} received no profile", hint="`memd injected` lists the sessions that did")
    if len(names) > 1:
        few = ", ".join(names[:5])
        raise InvalidRequest(f"{len(names)} sessions match {wanted!r}", hint=f"give one in full: {few}")
    return names[0]
