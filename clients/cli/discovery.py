"""What lies on this machine that could be imported: by agent, how much, from when, and what of it was imported.

Comes in: an environment, a folder, the cursors. Goes out: files with their sizes and dates, and the lines that say so.
Invariant: files are listed, never opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from ..importers.agent_files import AGENTS, MARKDOWN, find, instructions
from ..importers.cursors import Cursors
from .output import plain, styled, wrapped
from .wording import count

State = Literal["new", "grown", "imported"]


class Lying(msgspec.Struct, frozen=True, kw_only=True):
    """A file: its size, when it was last written, and whether it was imported: not, in part, or as it is."""

    path: str
    size_bytes: int
    changed_at: str
    state: State


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent left on this machine."""

    agent: str
    title: str
    folder: str
    files: tuple[Lying, ...] = ()

    def number(self, state: State) -> int:
        """Files in that state."""
        return sum(each.state == state for each in self.files)


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import` without a name."""

    agents: tuple[Found, ...]


def discover(
    environment: Mapping[str, str], cwd: Path, cursors: Cursors, only: Sequence[str] = ()
) -> tuple[Found, ...]:
    """What there is of each agent, or of those named `only`."""
    found: list[Found] = []
    for agent in AGENTS.values():
        if not only or agent.name in only:
            folder = agent.folder(environment)
            paths = find([folder], agent.patterns, agent.example) if folder.is_dir() else []
            found.append(Found(agent=agent.name, title=agent.title, folder=str(folder), files=_lying(paths, cursors)))
    if not only or MARKDOWN in only:
        paths = instructions(environment, cwd)
        title = "instructions for agents"
        found.append(Found(agent=MARKDOWN, title=title, folder=str(cwd), files=_lying(paths, cursors)))
    return tuple(found)


def _lying(paths: Sequence[Path], cursors: Cursors) -> tuple[Lying, ...]:
    files: list[Lying] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue  # it went while it was being listed
        cursor = cursors.get(path)
        state: State = "new" if cursor is None else "grown"
        if cursor and (cursor.size, cursor.mtime_ns) == (status.st_size, status.st_mtime_ns):
            state = "imported"
        changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat()
        files.append(Lying(path=str(path), size_bytes=status.st_size, changed_at=changed, state=state))
    return tuple(files)


def listed(found: Sequence[Found]) -> Iterator[str]:
    """A line or two for each agent."""
    for each in found:
        if not each.files:
            yield styled(f"{each.title}: nothing in {plain(each.folder)}", "dim")
            continue
        size = sum(file.size_bytes for file in each.files)
        days = sorted(file.changed_at[:10] for file in each.files)
        span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
        noun = "file" if each.agent == MARKDOWN else "session file"
        yield styled(each.title, "bold") + f": {count(len(each.files), noun)}, {_size(size)}, {span}"
        numbers = {
            "new": each.number("new"),
            "changed since": each.number("grown"),
            "imported": each.number("imported"),
        }
        yield "  " + ", ".join(f"{number:,} {what}" for what, number in numbers.items() if number)
        if each.agent == MARKDOWN:
            for file in each.files:
                yield from wrapped(f"{plain(file.path)} ({file.state})", "    ", "  ")
        else:
            yield from wrapped(f"memd import {each.agent} {plain(each.folder)}", "    ", "  ")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"
