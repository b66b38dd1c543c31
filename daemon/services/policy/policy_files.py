"""Finds and reads the policy file of a pool and the lens file of a folder, without following a link out of them.

Invariant: nothing but a regular file is opened, so that no read waits for a writer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ....protocol.errors import BadConfig
from ....protocol.policy import LENS_FILE, POLICY_BYTES, POLICY_FILE, ProjectLens
from ...projections.stores import Stores
from ..project_lens import LocatedLens
from .policy_file import converted, unknown_keys, yaml_values

DEEPEST = 64
"""Folders between a repository's root and a lens file, at most."""


class Stamp(NamedTuple):
    """A file as it was last seen; any change of its content gives another stamp."""

    path: str
    mtime_ns: int
    size: int
    inode: int


def folders(stores: Stores, pool: str) -> tuple[str, ...]:
    """Return the folders of this machine by which a pool is known: where it was opened first, then the others by
    name."""
    found: dict[str, None] = {}
    for name in stores.aliases.joined(pool):
        opened = stores.sources.pool(name)
        found.update(dict.fromkeys(opened.roots if opened else ()))
        for alias in stores.aliases.of_pool(name):
            kind, _, place = alias.name.partition(":")
            if kind == "checkout" and Path(place).name == ".git":
                found[str(Path(place).parent)] = None
            elif kind == "folder":
                found[place] = None
    return tuple(found)


def policy_stamp(places: Iterable[str]) -> Stamp | None:
    """Return the first policy file below these folders, or None."""
    for folder in places:
        path = os.path.join(folder, POLICY_FILE)
        with suppress(OSError, ValueError):
            seen = os.lstat(path)
            return Stamp(path, seen.st_mtime_ns, seen.st_size, seen.st_ino)
    return None


def content_of(path: str, folder: str) -> bytes:
    """Return the content of a file in a folder, at most one byte more than is read. Raises BadConfig."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadConfig("it is not a file", hint="remove it")
            if not Path(path).resolve().is_relative_to(Path(folder).resolve()):
                raise BadConfig("it lies outside of the repository", hint="replace the link by a folder")
            return file.read(POLICY_BYTES + 1)
    except OSError as error:
        raise BadConfig(f"it can't be read: {error.strerror}", hint="make it a readable file, not a link") from error


def located_lens(cwd: str, root: str, redact: Callable[[str], str]) -> LocatedLens | None:
    """Return the nearest lens at or above a folder, not above the root; None without one. A file that memd cannot take
    gives an empty lens with a note."""
    top = os.path.realpath(root)
    for folder in _upward(os.path.realpath(cwd), top):
        path = os.path.join(folder, LENS_FILE)
        if not os.path.lexists(path):
            continue
        try:
            values = yaml_values(content_of(path, folder), redact)
            lens = converted(values, ProjectLens)
            if any(os.path.isabs(place) or ".." in Path(place).parts for place in lens.memory_scope.L3_paths):
                raise BadConfig("memory_scope.L3_paths names a folder outside", hint="name folders of the repository")
        except BadConfig as error:
            return LocatedLens(ProjectLens(), folder, top, (f"{path}: {error.message}; memd does not use the file",))
        notes = tuple(f"{path}: {note}" for note in unknown_keys(values, ProjectLens, known=("version",)))
        return LocatedLens(lens, folder, top, notes)
    return None


def _upward(folder: str, top: str) -> Iterator[str]:
    """Yield a folder and those above it up to `top`; none outside of it."""
    if folder != top and not folder.startswith(os.path.join(top, "")):
        return
    for _ in range(DEEPEST):
        yield folder
        if folder == top:
            return
        folder = os.path.dirname(folder)
