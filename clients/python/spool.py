"""The spool: requests that wait on this machine while the daemon can't be reached (W10).

Comes in: Capture and Remember requests. Goes out: the same, in order, each until the daemon acknowledged it. A frame is
length, CRC-32 and body. Invariants: a request is on the disk when `append` returns; secrets and `<private>` spans are
taken out before it is written (P-18); nothing is removed before its acknowledgement; a torn tail is cut off, and
anything else that does not read is moved aside, never skipped quietly; several processes may append and drain at once;
a delivery that was acknowledged twice is harmless, because turns are idempotent.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...protocol import event, request, wire
from ...protocol.errors import (
    Forgotten,
    InvalidRequest,
    MemdError,
    StorageFull,
    StoreError,
    TooLarge,
    UnknownRequest,
    Withheld,
)
from ...protocol.frames import HEAD, framed, frames
from ...protocol.private import event_without_private, without_private
from ...protocol.redact import redact
from .folder import make_private

SPOOL_LIMIT = 16 * 1024 * 1024
"""Bytes of one spool file."""

Waiting = request.Capture | request.Remember


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """A request was put into the spool: why, and how many requests wait there now."""

    reason: str
    waiting: int


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `drain`: how many were delivered, how many were refused and moved aside, how many wait still, and why."""

    delivered: int = 0
    rejected: int = 0
    left: int = 0
    reason: str = ""


class Spool:
    """One file in a folder of mode 0700. Raises StorageFull when the disk refuses, Refused when it is not ours."""

    def __init__(self, folder: Path, name: str = "python") -> None:
        self._folder = folder
        self.path = folder / f"{name}.spool"
        self.rejected = folder / f"{name}.rejected"
        self._lock = folder / f"{name}.lock"
        self._drain_lock = folder / f"{name}.drain"

    def append(self, wish: Waiting, reason: str = "") -> Spooled:
        """Puts a request at the end, secrets out, synced. Raises TooLarge when the spool is full."""
        frame = framed(wire.encode_request(_without_secrets(wish)))
        with _usable(self.path):
            make_private(self._folder)
            with _locked(self._lock), _open(self.path) as file:
                bodies, end = self._settle(file)
                if end + len(frame) > SPOOL_LIMIT:
                    raise TooLarge(
                        f"the spool is full: {end:,} bytes wait in {self.path}", hint="let memd take them: `memd up`"
                    )
                _write(file, end, frame)
            _sync_folder(self._folder)
        return Spooled(reason=reason, waiting=len(bodies) + 1)

    def waiting(self) -> int:
        """How many requests wait."""
        return len(frames(self._content())[0])

    def drain(self, send: Callable[[Waiting], object]) -> Drained:
        """Sends what waits, in order, and removes what was acknowledged.

        Stops at the first request that can't be delivered now. One that the daemon finds invalid is moved to the
        `.rejected` file, so that it does not block the rest. When another process is draining, this leaves it to that.
        """
        if not self._content():
            return Drained()
        with _usable(self.path), _locked(self._drain_lock, wait=False) as alone:
            if not alone:
                return Drained(left=self.waiting(), reason="another process is delivering them")
            return self._drain(send)

    def _drain(self, send: Callable[[Waiting], object]) -> Drained:
        with _locked(self._lock), _open(self.path) as file:
            bodies, _ = self._settle(file)
        delivered, rejected, done, reason = 0, 0, 0, ""
        try:
            for body in bodies:
                problem = _try(send, body)
                if problem and not _is_poisoned(problem):
                    reason = problem.message
                    break
                if problem:
                    self._set_aside(framed(body))
                    rejected += 1
                else:
                    delivered += 1
                done += HEAD.size + len(body)
        finally:
            self._remove(done)
        left = len(bodies) - delivered - rejected
        return Drained(delivered=delivered, rejected=rejected, left=left, reason=reason)

    def _remove(self, size: int) -> None:
        """Takes the first `size` bytes away: what was appended meanwhile stays."""
        if not size:
            return
        with _locked(self._lock):
            rest = self._content()[size:]
            if not rest:
                with _open(self.path) as file:
                    os.ftruncate(file, 0)
                    os.fsync(file)
                return
            fresh = self.path.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            with _open(fresh) as file:
                _write(file, 0, rest)
            fresh.rename(self.path)
            _sync_folder(self._folder)

    def _settle(self, file: int) -> tuple[list[bytes], int]:
        """The whole frames and where they end; what follows them is cut off, or moved aside if it was whole once."""
        content = self._content()
        bodies, end = frames(content)
        if end < len(content):
            if not _is_torn(content[end:]):
                self._set_aside(content[end:])
            os.ftruncate(file, end)
            os.fsync(file)
        return bodies, end

    def _set_aside(self, content: bytes) -> None:
        with _open(self.rejected) as file:
            size = os.fstat(file).st_size
            if size + len(content) > SPOOL_LIMIT:
                os.ftruncate(file, 0)
                size = 0
            _write(file, size, content)

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError:  # not there, or not ours to read: nothing of ours waits
            return b""


def _is_torn(rest: bytes) -> bool:
    """Whether `rest` is the beginning of a frame whose writer died: `append` never returned, so nobody relies on it."""
    return len(rest) < HEAD.size or len(rest) - HEAD.size < HEAD.unpack_from(rest)[0] or not any(rest)


def _try(send: Callable[[Waiting], object], body: bytes) -> MemdError | None:
    try:
        wish = wire.decode_request(body)
        if not isinstance(wish, Waiting):
            return InvalidRequest(f"a {type(wish).__name__} has no business in a spool")
        send(wish)
    except (Forgotten, Withheld):  # it must not wait any longer, nor be kept aside
        return None
    except MemdError as error:
        return error
    return None


def _is_poisoned(error: MemdError) -> bool:
    """Whether sending again can't help. An unknown request may be known to the daemon's next version."""
    return isinstance(error, InvalidRequest) and not isinstance(error, UnknownRequest)


def _without_secrets(wish: Waiting) -> Waiting:
    if isinstance(wish, request.Remember):
        return msgspec.structs.replace(wish, text=redact(without_private(wish.text))[0])
    return msgspec.structs.replace(wish, events=tuple(_event_without_secrets(each) for each in wish.events))


def _event_without_secrets(one: event.AnyEvent) -> event.AnyEvent:
    one = event_without_private(one)
    if isinstance(one, event.ToolCalled):
        return msgspec.structs.replace(one, arguments=redact(one.arguments)[0])
    words = event.text(one)
    return event.with_text(one, redact(words)[0]) if words else one


@contextmanager
def _usable(path: Path) -> Generator[None]:
    """Tells what the system refused as a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"the spool {path} can't be used: {error.strerror}", hint="see its mode and owner") from error


@contextmanager
def _open(path: Path) -> Generator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _locked(path: Path, wait: bool = True) -> Generator[bool]:
    """Holds the lock of `path`, and says whether it does. It lies beside the spool, which is renamed now and then."""
    with _open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _write(file: int, at: int, content: bytes) -> None:
    """Writes and syncs, all or nothing. Raises StorageFull."""
    written = 0
    try:
        while written < len(content):
            written += os.pwrite(file, content[written:], at + written)
        os.fsync(file)
    except OSError as error:
        os.ftruncate(file, at)
        raise StorageFull(f"the spool can't be written: {error.strerror}", hint="make room on the disk") from error


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
