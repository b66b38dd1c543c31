"""What the hook program leaves in its folder: sessions that grew, and turns that went on without memory.

Comes in: the state folder. Goes out: notes to follow, counts for `memd status`. Invariants: a note stays until
somebody carried it out; what a line of another version says is passed over.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")
DAY_S = 86_400.0


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A session's file grew: of which agent, in which folder it works, whether the session ended."""

    agent: str
    path: str
    cwd: str = ""
    ended: bool = False


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that went on without memory: when (seconds since 1970), at which host and event, why."""

    at: float
    agent: str
    event: str
    reason: str


class SkipCount(msgspec.Struct, frozen=True, kw_only=True):
    """Turns of the last day without memory, by reason, and the last of them."""

    total: int
    reasons: dict[str, int]
    last: Skipped


_notes, _skips = msgspec.json.Decoder(Note), msgspec.json.Decoder(Skipped)


def folder(state: Path) -> Path:
    """Where the hook program is installed, with what it leaves."""
    return state / "hooks"


def has_notes(state: Path) -> bool:
    """Whether a session is to be read on."""
    return any((folder(state) / name).exists() for name in ("queue", "queue.taken"))


def take_notes(state: Path) -> tuple[list[Note], int]:
    """The sessions to be read on, each as it was noted last, and how many bytes say so. They count as taken until
    `drop_notes`: whoever takes them and does not come to that leaves them to the next one."""
    queue, taken = folder(state) / "queue", folder(state) / "queue.taken"
    if not taken.exists():
        with suppress(FileNotFoundError):
            queue.rename(taken)
    try:
        content = taken.read_bytes()
    except OSError:
        return [], 0
    return list({note.path: note for note in _decoded(_notes, content)}.values()), len(content)


def drop_notes(state: Path, size: int) -> None:
    """What was taken is carried out, unless a hook that was just writing made the file longer."""
    taken = folder(state) / "queue.taken"
    with suppress(FileNotFoundError):
        if taken.stat().st_size == size:
            taken.unlink()


def skipped(state: Path, now_s: float) -> SkipCount | None:
    """What the last day's turns went on without, None if nothing (U6, P-3)."""
    found: list[Skipped] = []
    with suppress(OSError):
        found = [each for each in _decoded(_skips, (folder(state) / "skips").read_bytes()) if each.at > now_s - DAY_S]
    if not found:
        return None
    return SkipCount(
        total=len(found), reasons=dict(Counter(each.reason for each in found).most_common()), last=found[-1]
    )


def _decoded(decoder: msgspec.json.Decoder[T], content: bytes) -> list[T]:
    lines: list[T] = []
    for line in content.splitlines():
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            lines.append(decoder.decode(line))
    return lines
