"""Changes to another program's configuration, which can be shown before and reverted later.

Invariants: a file is written whole or not at all, with its mode and through a link to it; the original has a backup
until it is restored; of a file that the user changed meanwhile, only memd's own entries are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ...protocol.errors import StoreError
from ..python.folder import make_private, write_whole

_CHANGED = "changed by the user"

Without = Callable[[Path, bytes, bytes | None], bytes | None]
"""Returns a file's content without memd's entries, by its path, its content, and the content that it had before memd;
None, of a file that memd made, if nothing else is in it."""


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A file's content before and after; None for no file."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_change(self) -> bool:
        """Whether the content differs."""
        return self.before != self.after


class ChangedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that memd changed. `backup`: the copy of the original, "" for no file; `written`: a hash of memd's last
    content, or `_CHANGED` if the user changed it in between; `folders`: those that memd made for it."""

    path: str
    backup: str
    written: str
    folders: tuple[str, ...] = ()


class EditLog:
    """The record of the changes in one host, in a private folder."""

    def __init__(self, folder: Path, host: str) -> None:
        self._folder, self._host = folder, host
        self._place = folder / f"{host}.json"

    @property
    def files(self) -> dict[str, ChangedFile]:
        """The changed files by path. Raises StoreError."""
        try:
            files = msgspec.json.decode(self._place.read_bytes(), type=list[ChangedFile])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self._place} can't be read: {error}", hint="restore the file from its backup by hand"
            ) from error
        return {file.path: file for file in files}

    def apply(self, edits: Iterable[FileEdit]) -> None:
        """Make the changes, each after its backup. Raises StoreError, Refused."""
        files = self.files
        make_private(self._folder)
        for edit in edits:
            if not edit.is_change or edit.after is None:
                continue
            path = edit.path.resolve()
            known = files.get(str(path))
            if known is None:
                backup = self._backup(path, edit.before)
                folders = tuple(str(parent) for parent in path.parents if not parent.exists())
                known = ChangedFile(path=str(path), backup=backup, written="", folders=folders)
            is_ours = not known.written or (edit.before is not None and known.written == _digest(edit.before))
            written = _digest(edit.after) if is_ours else _CHANGED
            files[str(path)] = msgspec.structs.replace(known, written=written)
            write_whole(self._place, msgspec.json.format(msgspec.json.encode(list(files.values()))))
            _write(path, edit.after)

    def _backup(self, path: Path, before: bytes | None) -> str:
        if before is None:
            return ""
        from hashlib import blake2b

        mark = blake2b(bytes(path), digest_size=4).hexdigest()
        place = self._folder / f"{self._host}.{mark}.{path.name}"
        write_whole(place, before)
        return str(place)

    def restoring(self, without: Without) -> list[FileEdit]:
        """Return the edits that revert all changes."""
        edits: list[FileEdit] = []
        for file in self.files.values():
            path = Path(file.path)
            now, before = read(path), read(Path(file.backup)) if file.backup else None
            if now is None:
                after = None
            elif _digest(now) == file.written:
                after = before
            else:  # keep the user's later changes
                after = without(path, now, before)
            edits.append(FileEdit(path=path, before=now, after=after))
        return edits

    def restore(self, edits: Iterable[FileEdit]) -> None:
        """Make the reverting edits, and delete the record. Raises StoreError."""
        files = self.files
        for edit in edits:
            if edit.after is not None:
                if edit.is_change:
                    _write(edit.path, edit.after)
                continue
            edit.path.unlink(missing_ok=True)
        folders = {folder for file in files.values() for folder in file.folders}
        for folder in sorted(map(Path, folders), reverse=True):  # the inner ones first
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        for file in files.values():
            if file.backup:
                Path(file.backup).unlink(missing_ok=True)
        self._place.unlink(missing_ok=True)


def read(path: Path) -> bytes | None:
    """Return a file's content, None for no file. Raises StoreError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}", hint="check its mode and owner") from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, path.stat().st_mode & 0o777 if path.exists() else 0o600)
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}", hint="check its mode and owner") from error


def _digest(content: bytes) -> str:
    from hashlib import blake2b  # it loads OpenSSL, which costs `memd status` 3 ms

    return blake2b(content, digest_size=16).hexdigest()


def diff(edit: FileEdit) -> Iterator[str]:
    """Yield the lines of a unified diff."""
    import difflib

    before = (edit.before or b"").decode(errors="replace").splitlines()
    after = (edit.after or b"").decode(errors="replace").splitlines()
    name = str(edit.path)
    old, new = (name if side is not None else "/dev/null" for side in (edit.before, edit.after))
    yield from difflib.unified_diff(before, after, old, new, lineterm="")
