"""Where the files of skills lie: one folder that most agents read, and a link where Claude Code looks (K1, K2).

Invariants: a file that memd did not write, or that was changed, is never overwritten; nothing is written through a link
that leads out of the folder that the user chose.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile

from ...protocol.errors import InvalidRequest, Refused
from ...protocol.repository_folder import repository_folder

SHARED = Path(".agents/skills")
"""Read by Codex, Gemini CLI, opencode, pi and others, in a home and in a repository."""

CLAUDE = Path(".claude")
FILE = "SKILL.md"
_MADE_FROM = re.compile(r'^metadata: .*memd-id: "(\w+)"', re.MULTILINE)


def repository_of(folder: str) -> Path:
    """Return the nearest folder with a `.git`. Raises InvalidRequest."""
    root = repository_folder(Path(folder))
    if root is None:
        hint = "run it in a checkout, or write for yourself with --personal"
        raise InvalidRequest(f"{folder} is in no repository", hint=hint)
    return root


def place_skill(root: Path, name: str, text: str) -> Iterator[Path]:
    """Write a skill below a repository or a home, and yield what was made; nothing if it is there as it would be.
    Raises Refused for a name that is taken, InvalidRequest for a file that can't be written."""
    file = _inside(root, SHARED / name) / FILE
    link = _inside(root, CLAUDE / "skills") / name
    if os.path.lexists(link) and not _is_own(link, file, text):
        raise Refused(f"the name {name} is taken in {link.parent}", hint="rename that one")
    try:
        if not _is_written(file, text):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            yield file
        if (root / CLAUDE).is_dir():
            yield from _linked(link, file)
    except OSError as error:
        raise InvalidRequest(
            f"{file} can't be written: {error.strerror}", hint="copy what `memd skill show` prints"
        ) from error


def twice_named(home: Path, root: Path) -> list[str]:
    """Return the names of skills that lie both in a home and in a repository: hosts differ in which one they take."""
    return sorted(_names(home) & _names(root)) if home.resolve() != root.resolve() else []


def _names(folder: Path) -> set[str]:
    found: set[str] = set()
    for below in (SHARED, CLAUDE / "skills"):
        with suppress(OSError):
            found |= {place.parent.name for place in (folder / below).glob(f"*/{FILE}")}
    return found


def retire_skill(file: Path, archive: Path) -> Iterator[Path]:
    """Move a skill's folder into an archive, remove the link of Claude Code to it, and yield where it is; nothing if it
    was gone. Raises InvalidRequest for a folder that can't be moved."""
    folder = file.parent
    root = folder.parent.parent.parent
    link = root / CLAUDE / "skills" / folder.name
    try:
        if link.is_symlink() and link.resolve() == folder.resolve():
            link.unlink()
        if not folder.is_dir():
            return
        archive.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = (f"{folder.name}{'' if number == 1 else f'-{number}'}" for number in count(1))
        place = next(archive / name for name in names if not os.path.lexists(archive / name))
        shutil.move(folder, place)
        yield place
    except OSError as error:
        raise InvalidRequest(f"{folder} can't be moved: {error.strerror}", hint="move it yourself") from error


def write_skill(file: Path, text: str, sha: str) -> None:
    """Replace a skill's file whose bytes have this SHA-256. Raises Refused for a file that was changed."""
    try:
        if sha256(file.read_bytes()).hexdigest() != sha:
            raise Refused(f"{file} was changed in the meantime", hint="run the same command again")
        file = file.resolve()
        with NamedTemporaryFile("w", dir=file.parent, encoding="utf-8", newline="", delete=False) as beside:
            beside.write(text)
        shutil.copymode(file, beside.name)
        Path(beside.name).replace(file)
    except OSError as error:
        raise InvalidRequest(f"{file} can't be written: {error.strerror}", hint="is it still there?") from error


def _inside(root: Path, below: Path) -> Path:
    """Return a path whose links stay below the root. Raises Refused."""
    path = root / below
    if not path.resolve().is_relative_to(root.resolve()):
        raise Refused(f"{path} leads out of {root}", hint="remove the link, or copy the draft yourself")
    return path


def _is_written(file: Path, text: str) -> bool:
    """Whether a skill is there, of the same draft. Raises Refused for another one of its name."""
    if not os.path.lexists(file.parent):
        return False
    with suppress(OSError):
        there = file.read_text(encoding="utf-8", errors="replace")
        if there == text or (_MADE_FROM.findall(text)[:1] == _MADE_FROM.findall(there)[:1] != []):
            return True
    hint = "rename that one, or copy the draft yourself: `memd skill show` prints it"
    raise Refused(f"the name {file.parent.name} is taken in {file.parent.parent}", hint=hint)


def _is_own(link: Path, file: Path, text: str) -> bool:
    """Whether a link leads to a skill, or a folder in its place has the same. Raises Refused for another one."""
    return link.resolve() == file.parent.resolve() or _is_written(link / FILE, text)


def _linked(link: Path, file: Path) -> Iterator[Path]:
    """Link to the folder of a skill, or copy it where links fail; nothing if it is there."""
    if os.path.lexists(link):
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        link.symlink_to(os.path.relpath(file.parent, link.parent), target_is_directory=True)
    except OSError:
        shutil.copytree(file.parent, link)
    yield link
