"""The spool: requests that wait on this machine while the daemon can't be reached (W10), as length, CRC-32 and body; or
as a JSON line each, for clients in other languages.

Invariants: a request is on the disk, without secrets and `<private>` spans (P-18), when `append` returns, and stays
until the daemon acknowledged it; a torn tail is cut off, other unreadable bytes are moved aside; several processes may
append and drain at once; a second delivery is harmless, because turns are idempotent.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ...protocol import errors, request, wire
from ...protocol.event import Ran
from ...protocol.frames import HEAD, framed, frames
from .folder import client_gate, make_private

SPOOL_LIMIT = 16 * 1024 * 1024  # bytes of one spool file
LINES = ".lines"
SpooledRequest = request.Capture | request.Remember


class SpoolReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A request was spooled: the reason, and the number of requests that wait now."""

    reason: str
    waiting: int


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of a `drain` that were delivered, refused and moved aside, or left, and the reason for leaving them."""

    delivered: int = 0
    rejected: int = 0
    left: int = 0
    reason: str = ""


class Spool:
    """One file in a folder of mode 0700. Raises StorageFull, StoreError, and Refused for another user's folder."""

    def __init__(self, folder: Path, name: str = "python") -> None:
        self._folder = folder
        self.path = folder / f"{name}.spool"
        self.rejected = folder / f"{name}.rejected"
        self._lock = folder / f"{name}.lock"
        self._drain_lock = folder / f"{name}.drain"

    def append(self, message: SpooledRequest, reason: str = "") -> SpoolReceipt:
        """Append a request without its secrets, and sync. Raises TooLarge when the spool is full."""
        frame = framed(wire.encode_request(client_gate(self._folder.parent).spooled(message)))
        with _usable(self.path):
            make_private(self._folder)
            with _locked(self._lock), _open(self.path) as file:
                bodies, end = self._settle(file)
                if end + len(frame) > SPOOL_LIMIT:
                    raise _is_full(self.path, end)
                _write(file, end, frame)
            _sync_folder(self._folder)
        return SpoolReceipt(reason=reason, waiting=len(bodies) + 1)

    def waiting(self) -> int:
        """Return the number of requests that wait."""
        return len(frames(self._content())[0])

    def drain(self, send: Callable[[SpooledRequest], object]) -> Drained:
        """Send the requests in order and remove the acknowledged ones, up to the first that can't be delivered now. An
        invalid request moves to the `.rejected` file. While another process drains, this does nothing."""
        if not self._content():
            return Drained()
        with _usable(self.path), _locked(self._drain_lock, wait=False) as alone:
            if not alone:
                return Drained(left=self.waiting(), reason="another process is delivering them")
            return self._drain(send)

    def _drain(self, send: Callable[[SpooledRequest], object]) -> Drained:
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
        """Remove the first `size` bytes; requests that were appended meanwhile stay."""
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
        """Return the whole frames and their end. Bytes behind it are cut off, and moved aside unless they are torn."""
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
        except OSError:  # missing, or unreadable to this user: no request of this user waits
            return b""


def append_lines(path: Path, content: bytes, command_limit: int = 0) -> int:
    """Append requests, one on each line of `content`, to a file of JSON lines without their secrets, and sync; return
    their number. `command_limit`: characters of a shell's command that are kept, 0 for all. Raises InvalidRequest,
    TooLarge, StorageFull, StoreError."""
    if path.suffix != LINES:
        raise errors.InvalidRequest(f"the name of a spool of lines ends in {LINES}", hint="see docs/PROTOCOL.md")
    gate = client_gate(path.parent.parent)
    requests = [_request(line) for line in content.decode(errors="replace").encode().split(b"\n") if line.strip()]
    clean = [_with_shorter_commands(gate.spooled(message), command_limit) for message in requests]
    lines = b"".join(wire.encode_request(message, "json") + b"\n" for message in clean)
    with _usable(path), _open(path, os.O_APPEND) as file:
        if os.fstat(file).st_size + len(lines) > SPOOL_LIMIT:
            raise _is_full(path, os.fstat(file).st_size)
        if os.write(file, lines) < len(lines):  # one write, so that lines of several processes do not mix
            raise errors.StorageFull("the spool can't be written", hint="free some disk space")
        os.fsync(file)
    return len(requests)


def _request(body: bytes) -> SpooledRequest:
    message = wire.decode_request(body)
    if not isinstance(message, SpooledRequest) or message.token:
        raise errors.InvalidRequest("a spool holds `capture` and `remember`, without a pass", hint="start the daemon")
    return message


def _with_shorter_commands(message: SpooledRequest, limit: int) -> SpooledRequest:
    if not limit or not isinstance(message, request.Capture):
        return message
    events = (
        msgspec.structs.replace(event, command=event.command[:limit]) if isinstance(event, Ran) else event
        for event in message.events
    )
    return msgspec.structs.replace(message, events=tuple(events))


def _is_full(path: Path, size: int) -> errors.TooLarge:
    return errors.TooLarge(f"the spool is full: {size:,} bytes wait in {path}", hint="start the daemon: `memd up`")


def _is_torn(rest: bytes) -> bool:
    """Whether `rest` is the beginning of a frame whose writer died before `append` returned."""
    return len(rest) < HEAD.size or len(rest) - HEAD.size < HEAD.unpack_from(rest)[0] or not any(rest)


def _try(send: Callable[[SpooledRequest], object], body: bytes) -> errors.MemdError | None:
    try:
        message = wire.decode_request(body)
        if not isinstance(message, SpooledRequest):
            return errors.InvalidRequest(f"a spool can't hold a {type(message).__name__}")
        send(message)
    except (errors.Forgotten, errors.Withheld):  # it must neither wait nor be kept in `.rejected`
        return None
    except errors.MemdError as error:
        return error
    return None


def _is_poisoned(error: errors.MemdError) -> bool:
    """Whether sending again can't help. A later daemon may know a request that is unknown now."""
    return isinstance(error, errors.InvalidRequest) and not isinstance(error, errors.UnknownRequest)


@contextmanager
def _usable(path: Path) -> Generator[None]:
    """Raise a StoreError for an OSError."""
    try:
        yield
    except OSError as error:
        raise errors.StoreError(
            f"the spool {path} can't be used: {error.strerror}", hint="see its mode and owner"
        ) from error


@contextmanager
def _open(path: Path, flags: int = 0) -> Generator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def _locked(path: Path, wait: bool = True) -> Generator[bool]:
    """Hold the lock file `path`, and yield whether this does. It is not the spool itself, which is renamed."""
    with _open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def _write(file: int, at: int, content: bytes) -> None:
    """Write and sync, all or nothing. Raises StorageFull."""
    written = 0
    try:
        while written < len(content):
            written += os.pwrite(file, content[written:], at + written)
        os.fsync(file)
    except OSError as error:
        os.ftruncate(file, at)
        raise errors.StorageFull(
            f"the spool can't be written: {error.strerror}", hint="free some disk space"
        ) from error


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
