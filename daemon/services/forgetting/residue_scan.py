"""The proof of permanent deletion: searches every byte of the data and state folders for forgotten text.

Long texts are searched by pieces, as UTF-8 and as JSON, in NFC and NFD, and inside anything that looks like a block of
a log. Log files are wiped in place.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from unicodedata import normalize

import msgspec

from ....protocol.block import within

PIECE = 64
SHORTEST = 8
MOST = 96
"""Most pieces of a form to search for, evenly chosen, so that a search of 100 MB takes seconds."""

TOGETHER = 4 << 20


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The extent of a search, and the pieces that each file contains."""

    files: int
    size_bytes: int
    pieces: int
    found: dict[str, tuple[bytes, ...]]


def pieces_of(texts: Iterable[str]) -> list[bytes]:
    """Return the byte strings to search for: as stored, and in the other normal form of Unicode."""
    stored = sorted(texts, key=len)
    others = [form for words in stored for name in ("NFC", "NFD") if (form := normalize(name, words)) != words]
    return list(dict.fromkeys((*_pieces(stored), *_pieces(others))))


def _pieces(texts: Iterable[str]) -> list[bytes]:
    """Take short texts whole, of long ones the beginning and the middle."""
    pieces: dict[bytes, None] = {}
    for words in texts:
        for form in dict.fromkeys((words, json.dumps(words)[1:-1], json.dumps(words, ensure_ascii=False)[1:-1])):
            raw = form.strip().encode("utf-8", "surrogatepass")
            middle = len(raw) // 2
            for piece in (raw[:PIECE], raw[middle : middle + PIECE]) if len(raw) > 2 * PIECE else (raw,):
                if len(piece) >= SHORTEST:
                    pieces[piece] = None
    step = -(-len(pieces) // MOST) or 1
    return list(pieces)[::step]


def search(folders: Sequence[Path], pieces: Sequence[bytes]) -> Searched:
    """Search every file below these folders."""
    files, size = 0, 0
    pieces_by_path: dict[str, tuple[bytes, ...]] = {}
    for path in sorted({path for folder in folders for path in folder.rglob("*")}):
        if path.is_symlink() or not path.is_file() or not (length := path.stat().st_size):
            continue
        files, size = files + 1, size + length
        if held := _held(path, pieces):
            pieces_by_path[str(path)] = held
    return Searched(files=files, size_bytes=size, pieces=len(pieces), found=pieces_by_path)


def _held(path: Path, pieces: Sequence[bytes]) -> tuple[bytes, ...]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            present = {piece for piece in pieces if view.find(piece) >= 0}
            for words in _within(view):
                present.update(piece for piece in pieces if piece in words)
            return tuple(piece for piece in pieces if piece in present)
    except (OSError, ValueError):  # gone meanwhile, or empty by now
        return ()


def _within(view: mmap.mmap) -> Iterator[bytes]:
    """Yield the contents of blocks in a file, some megabytes at a time."""
    said, size = list[bytes](), 0
    for words in within(view):
        said.append(words)
        size += len(words)
        if size > TOGETHER:
            yield b"\0".join(said)
            said, size = [], 0
    yield b"\0".join(said)


def wipe(path: Path, pieces: Sequence[bytes]) -> int:
    """Overwrite these pieces in a text file in place, so that its writers go on; return their number."""
    count = 0
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        for piece in pieces:
            at = view.find(piece)
            while at >= 0:
                view[at : at + len(piece)] = b"*" * len(piece)
                count += 1
                at = view.find(piece, at + len(piece))
        view.flush()
    return count
