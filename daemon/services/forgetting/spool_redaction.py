"""Removes forgotten events from the spool files of clients.

A spool is rewritten under the locks of its clients and replaced whole. A request that the daemon can't decode stays,
unless it contains the forgotten words.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from ....protocol.errors import MemdError, Unavailable
from ....protocol.event import AnyEvent, Noted, text
from ....protocol.frames import framed
from ....protocol.request import AnyRequest, Capture, Remember
from ....protocol.wire import decode_request, encode_request, form
from ...storage.durable_files import sync
from ...storage.spool_files import LINES, bodies_in, take_lines, try_lock

TRIES, POLL_S = 300, 0.05
"""Attempts to lock a spool that a client holds, and seconds between them."""

NO_SPOOLS = frozenset({".lock", ".drain", ".new"})
Left = Callable[[str, AnyEvent], AnyEvent | None]
"""Returns the rest of a document's event; None for nothing."""


LeftOfBody = Callable[[bytes], tuple[bytes, int]]
"""Returns the rest of a request's body, and the number of removed or changed parts."""

Holds = Callable[[str], bool]
"""Tests whether a text contains forgotten words."""

_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def waiting(folder: Path) -> Iterator[tuple[str, AnyEvent]]:
    """Yield every spooled event with its document."""
    for path in _files(folder):
        for body in bodies_in(path.read_bytes())[0]:
            request = _decoded(body)
            if request is not None:
                yield from _events(request)


def unreadable(folder: Path, holds: Holds) -> int:
    """Return the number of undecodable requests and torn ends that contain forgotten words."""
    count = 0
    for path in _files(folder):
        content = path.read_bytes()
        bodies, end, _ = bodies_in(content)
        count += sum(_is_unreadable(body, holds) for body in bodies) + _in_bytes(content[end:], holds)
    return count


def discard_unreadable(folder: Path, holds: Holds) -> int:
    """Remove undecodable requests and torn ends that contain forgotten words; return their number. Raises Unavailable
    as `scrub` does."""

    def left(body: bytes) -> tuple[bytes, int]:
        return (b"", 1) if _is_unreadable(body, holds) else (body, 0)

    return _rewrite_all(folder, left, lambda rest: _in_bytes(rest, holds))


def scrub(folder: Path, allowed: Left) -> int:
    """Remove or change events in every spool as `allowed` says; return their number. Raises Unavailable while a client
    holds a spool for too long."""
    return _rewrite_all(folder, lambda body: _left(body, allowed), lambda rest: False)


def _rewrite_all(folder: Path, left: LeftOfBody, drops: Callable[[bytes], bool]) -> int:
    for path in folder.glob("*" + LINES):
        if path.stat().st_size and not (taken := path.with_name(path.name + ".taken")).exists():
            take_lines(path, taken)
    return sum(_rewrite(path, left, drops) for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_file() and path.suffix not in NO_SPOOLS)


def _rewrite(path: Path, left_of: LeftOfBody, drops: Callable[[bytes], bool]) -> int:
    with ExitStack() as locks:
        if path.suffix not in (LINES, ".taken"):
            _lock(path, locks)
        content = path.read_bytes()
        bodies, end, as_lines = bodies_in(content)
        remaining: list[bytes] = []
        count = 0
        for body in bodies:
            left, dropped = left_of(body)
            count += dropped
            remaining += [left] if left else []
        rest = content[end:]
        if drops(rest):
            count, rest = count + 1, b""
        if count:
            whole = b"".join(body + b"\n" if as_lines else framed(body) for body in remaining)
            _replace(path, whole + rest)
        return count


def _is_unreadable(body: bytes, holds: Holds) -> bool:
    return _decoded(body) is None and _in_bytes(body, holds)


def _in_bytes(content: bytes, holds: Holds) -> bool:
    """Return whether bytes contain forgotten words: as UTF-8, which is also MessagePack's form, or escaped as in
    JSON."""
    plain = content.decode("utf-8", errors="replace")
    return holds(plain) or ("\\" in plain and holds(_unescaped(plain)))


def _unescaped(words: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code, letter = escape.groups()
        return chr(int(code, 16)) if code else _ESCAPED.get(letter, letter)

    units = _ESCAPE.sub(character, words)  # two of them may be the halves of one character
    return units.encode("utf-16", "surrogatepass").decode("utf-16", errors="replace")


def _decoded(body: bytes) -> AnyRequest | None:
    try:
        return decode_request(body)
    except MemdError:
        return None


def _events(request: AnyRequest) -> Iterator[tuple[str, AnyEvent]]:
    match request:
        case Capture():
            yield from ((request.origin.document, event) for event in request.events)
        case Remember():
            yield request.origin.document, Noted(turn=request.turn, at=request.at, text=request.text, pool=request.pool)
        case _:
            pass


def _left(body: bytes, allowed: Left) -> tuple[bytes, int]:
    """Return the rest of a request, empty if nothing remains, and the number of changed events."""
    request = _decoded(body)
    if request is None:
        return body, 0
    events = [(event, allowed(document, event)) for document, event in _events(request)]
    changed = sum(after != event for event, after in events)
    remaining = tuple(after for _, after in events if after is not None)
    if not changed:
        return body, 0
    if not remaining:
        return b"", changed
    if isinstance(request, Remember):
        after = msgspec.structs.replace(request, text=text(remaining[0]))
    else:
        after = msgspec.structs.replace(request, events=remaining)
    return encode_request(after, form(body)), changed


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync(path.parent)


def _lock(path: Path, until: ExitStack) -> None:
    for _ in range(TRIES):
        with ExitStack() as locks:
            if try_lock(path, locks):
                until.push(locks.pop_all())
                return
        time.sleep(POLL_S)
    raise Unavailable(f"a client has locked {path.name}", hint="end that client, then run the command again")
