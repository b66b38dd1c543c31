"""A disk that forgets what was not synced: rebuilt from a recording, cut off anywhere.

Comes in: the records of `recorder.c`. Goes out: folders as they may look after a power cut. Rules: a write is safe once
its file was synced after it (or the file was open with O_DSYNC); a name is safe once its folder was synced after it was
made, moved or removed; all the rest may be there, or not, or half: in any order, torn at 512 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

HEAD = struct.Struct("<cQQII")
SECTOR = 512


class Call(NamedTuple):
    """One recorded call; `end` is where its record ends in the trace."""

    kind: str
    inode: int
    offset: int
    one: bytes
    two: bytes
    end: int


def read_trace(trace: bytes) -> Iterator[Call]:
    """The calls of a recording, in order."""
    at = 0
    while at + HEAD.size <= len(trace):
        kind, inode, offset, n, m = HEAD.unpack_from(trace, at)
        at += HEAD.size
        one, two = trace[at : at + n], trace[at + n : at + n + m]
        at += n + m
        yield Call(kind.decode(), inode, offset, one, two, at)


@dataclass(eq=False)
class File:
    """Bytes on the disk, and what waits: (offset, data) for a write, (size, None) for a truncation."""

    safe: bytearray = field(default_factory=bytearray)
    waiting: list[tuple[int, bytes | None]] = field(default_factory=list)


@dataclass(eq=False)
class Folder:
    """Names as programs see them, and as they are on the disk."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    safe: dict[str, File | Folder] = field(default_factory=dict)


class Naming(NamedTuple):
    """A change of names that waits: in each folder, which name then stands for what (None: for nothing)."""

    entries: tuple[tuple[Folder, str, File | Folder | None], ...]


def put(content: bytearray, offset: int, data: bytes | None) -> None:
    """Apply a write or, without data, a truncation."""
    size = offset + len(data or b"")
    if len(content) < size:
        content.extend(bytes(size - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset:size] = data


class Disk:
    """The folder `root` of a recording."""

    def __init__(self, root: str) -> None:
        self._root, self._top = root, Folder()
        self._files: dict[int, File] = {}
        self._waiting: list[Naming] = []

    def _find(self, path: str) -> tuple[Folder, str]:
        folder = self._top
        *parents, name = path.removeprefix(self._root).strip("/").split("/")
        for parent in parents:
            found = folder.now[parent]
            assert isinstance(found, Folder), path
            folder = found
        return folder, name

    def _name(self, *entries: tuple[Folder, str, File | Folder | None]) -> None:
        for folder, name, what in entries:
            if what is None:
                folder.now.pop(name, None)
            else:
                folder.now[name] = what
        self._waiting.append(Naming(entries))

    def apply(self, call: Call) -> None:
        """Take in the next call of the recording."""
        path, other = call.one.decode(errors="replace"), call.two.decode(errors="replace")
        match call.kind:
            case "m" if path != self._root:
                self._name((*self._find(path), Folder()))
            case "c":
                self._files[call.inode] = File()
                self._name((*self._find(path), self._files[call.inode]))
            case "u" | "d":
                self._name((*self._find(path), None))
            case "r":
                source, target = self._find(path), self._find(other)
                self._name((*source, None), (*target, source[0].now[source[1]]))
            case "l":
                source = self._find(path)
                self._name((*self._find(other), source[0].now[source[1]]))
            case "w":
                self._files[call.inode].waiting.append((call.offset, call.one))
            case "W":
                put(self._files[call.inode].safe, call.offset, call.one)
            case "t":
                self._files[call.inode].waiting.append((call.offset, None))
            case "s":
                self._sync(path, call.inode)
            case _:
                pass

    def _sync(self, path: str, inode: int) -> None:
        folder: File | Folder | None = self._top
        for name in path.removeprefix(self._root).strip("/").split("/"):
            if name and isinstance(folder, Folder):
                folder = folder.now.get(name)
        if not isinstance(folder, Folder):  # a file, whose folder may be gone while it is open
            file = self._files[inode]
            for offset, data in file.waiting:
                put(file.safe, offset, data)
            file.waiting.clear()
            return
        for naming in [each for each in self._waiting if any(entry[0] is folder for entry in each.entries)]:
            self._waiting.remove(naming)
            for where, name, what in naming.entries:
                _enter(where.safe, name, what)

    def cut(self, chance: Random, into: Path) -> None:
        """The power goes now: write what may be found afterwards into a new folder."""
        kept = chance.choice((0.0, 0.1, 0.5, 0.5, 0.9, 1.0))
        tables: dict[Folder, dict[str, File | Folder]] = {}
        for naming in self._waiting:
            if chance.random() < kept:
                for folder, name, what in naming.entries:
                    _enter(tables.setdefault(folder, dict(folder.safe)), name, what)
        self._write(self._top, into, tables, chance, kept)

    def write(self, into: Path) -> None:
        """Nothing happens: write what programs see."""
        for naming in self._waiting:
            for folder, name, what in naming.entries:
                _enter(folder.safe, name, what)
        self._waiting.clear()
        for file in self._files.values():
            for offset, data in file.waiting:
                put(file.safe, offset, data)
            file.waiting.clear()
        self._write(self._top, into, {}, Random(0), 1.0)

    def _write(
        self, folder: Folder, into: Path, tables: dict[Folder, dict[str, File | Folder]], chance: Random, kept: float
    ) -> None:
        into.mkdir(mode=0o700)
        for name, what in tables.get(folder, folder.safe).items():
            if isinstance(what, Folder):
                self._write(what, into / name, tables, chance, kept)
                continue
            content = bytearray(what.safe)
            waiting = [each for each in what.waiting if chance.random() < kept]
            chance.shuffle(waiting)
            for offset, data in waiting:
                for at, part in _torn(offset, data, chance):
                    put(content, at, part)
            (into / name).write_bytes(content)


def _enter(names: dict[str, File | Folder], name: str, what: File | Folder | None) -> None:
    if what is None:
        names.pop(name, None)
    else:
        names[name] = what


def _torn(offset: int, data: bytes | None, chance: Random) -> Iterator[tuple[int, bytes | None]]:
    """A write as it may arrive: whole, or some of its sectors."""
    if data is None or chance.random() < 0.6:
        yield offset, data
        return
    for start in range(0, len(data), SECTOR):
        if chance.random() < 0.5:
            yield offset + start, data[start : start + SECTOR]
