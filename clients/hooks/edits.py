"""Changes to another program's configuration: shown before they are made, and taken back byte by byte.

Comes in: files as they should be. Goes out: diffs, changed files, a record of what was there. Invariants: a file is
written whole or not at all, with its mode and through a link to it; the first bytes that memd met are kept until
they are restored; where the user changed a file meanwhile only memd's own entries leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ..python.folder import make_private
from .program import replace

_CHANGED = "changed by the user"

Without = Callable[[Path, bytes], bytes | None]
"""A file's content without memd's entries; None if nothing is left of it."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is and as it should be; None where there is none."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_change(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was there before the first change: `backup` names the copy, "" where there was no file; `written` is a hash
    of what memd wrote last, if nobody else wrote in between; `folders` were made for it."""

    path: str
    backup: str
    written: str
    folders: tuple[str, ...] = ()


class Ledger:
    """The record of one host's changes, in a private folder."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder, self._host = folder, host
        self._place = folder / f"{host}.json"

    @property
    def kept(self) -> dict[str, Kept]:
        """What is recorded, by path; empty where nothing was ever changed."""
        try:
            found = msgspec.json.decode(self._place.read_bytes(), type=list[Kept])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self._place} can't be read: {error}", hint="restore the file from its backup by hand"
            ) from error
        return {each.path: each for each in found}

    def apply(self, edits: Iterable[Edit]) -> None:
        """Makes the changes, each after what it replaces was kept. Raises StoreError, Refused."""
        kept = self.kept
        make_private(self._folder)
        for edit in edits:
            if not edit.is_change or edit.after is None:
                continue
            path = edit.path.resolve()
            known = kept.get(str(path))
            if known is None:
                backup = self._backup(path, edit.before)
                folders = tuple(str(each) for each in path.parents if not each.exists())
                known = Kept(path=str(path), backup=backup, written="", folders=folders)
            is_ours = not known.written or (edit.before is not None and known.written == _digest(edit.before))
            written = _digest(edit.after) if is_ours else _CHANGED
            kept[str(path)] = msgspec.structs.replace(known, written=written)
            self._keep(kept)
            _write(path, edit.after)

    def _backup(self, path: Path, before: bytes | None) -> str:
        if before is None:
            return ""
        mark = blake2b(bytes(path), digest_size=4).hexdigest()
        place = self._folder / f"{self._host}.{mark}.{path.name}"
        replace(place, before)
        return str(place)

    def _keep(self, kept: dict[str, Kept]) -> None:
        replace(self._place, msgspec.json.format(msgspec.json.encode(list(kept.values()))))

    def restoring(self, without: Without) -> list[Edit]:
        """What would put everything back as it was."""
        edits: list[Edit] = []
        for each in self.kept.values():
            path = Path(each.path)
            now = read(path)
            if now is None or _digest(now) == each.written:
                before = read(Path(each.backup)) if each.backup else None
                after = before if now is not None else None
            else:  # the user's own changes since then stay
                after = without(path, now)
            edits.append(Edit(path=path, before=now, after=after))
        return edits

    def restore(self, edits: Iterable[Edit]) -> None:
        """Puts it back, and forgets the record. Raises StoreError."""
        kept = self.kept
        for edit in edits:
            if edit.after is not None:
                if edit.is_change:
                    _write(edit.path, edit.after)
                continue
            edit.path.unlink(missing_ok=True)
            for folder in kept[str(edit.path)].folders:
                if not any(Path(folder).iterdir()):
                    Path(folder).rmdir()
        for each in kept.values():
            if each.backup:
                Path(each.backup).unlink(missing_ok=True)
        self._place.unlink(missing_ok=True)


def read(path: Path) -> bytes | None:
    """A file's content, None if there is none. Raises StoreError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="see its mode and owner") from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, content, path.stat().st_mode & 0o777 if path.exists() else 0o600)
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}", hint="see its mode and owner") from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def diff(edit: Edit) -> Iterator[str]:
    """A change as a unified diff."""
    import difflib

    before = (edit.before or b"").decode(errors="replace").splitlines()
    after = (edit.after or b"").decode(errors="replace").splitlines()
    name = str(edit.path)
    old, new = (name if side is not None else "/dev/null" for side in (edit.before, edit.after))
    yield from difflib.unified_diff(before, after, old, new, lineterm="")
