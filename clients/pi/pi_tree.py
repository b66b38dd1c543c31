"""Reads the patches of a `.pi` folder from the committed tree of a repository's default branch, by libgit2 (G2).

Invariants: only committed content of the default branch counts, and only while HEAD is on that branch; nothing is
written; a link, a folder or a submodule in place of a patch file is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import InvalidRequest, NotFound
from ...protocol.governance import TreeFile
from .pi_apply_patch import PATCH_BYTES, PATCH_FILE

if TYPE_CHECKING:
    import pygit2

LONGEST_WALK = 20_000
"""Most commits that are looked at for the author of a patch file."""

_GONE_BYTES = 400
_COMMON = ("main", "master", "trunk")
_GONE = re.compile(rb'\s*\{\s*"gone"\s*:\s*"[^"]*"\s*\}\s*')


class CommittedPatches(msgspec.Struct, frozen=True, kw_only=True):
    """The patch files of a tree, blob by name of patch. `gone`: names of files of which only a hash is left;
    `unread`: files that are not read, and why; `why_not`: why nothing may be taken from this checkout."""

    branch: str = ""
    commit: str = ""
    blobs: dict[str, str] = {}
    gone: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    why_not: str = ""

    @property
    def present(self) -> tuple[str, ...]:
        """The names of the patches that the tree states."""
        return tuple(sorted(set(self.blobs) - set(self.gone)))


class PiRepository:
    """A repository with a `.pi` folder in `top`, which is "" for its own top. `folder`: where its files are, None in a
    bare repository."""

    def __init__(self, repository: pygit2.Repository, folder: Path | None, top: str = "") -> None:
        self._repository, self.folder, self.top = repository, folder, top

    @property
    def is_bare(self) -> bool:
        """Whether it has no working tree."""
        return self.folder is None

    def user_name(self) -> str:
        """Return git's `user.name`, "" without one."""
        try:
            return self._repository.config["user.name"] or ""
        except KeyError:
            return ""

    # --- branch ------------------------------------------------------------------------------------------------------
    def default_branch(self) -> str:
        """Return the name of the default branch, "" if nothing tells it."""
        names = set(self._repository.branches.local)
        for remote in sorted(self._remotes(), key=lambda name: (name != "origin", name)):
            head = self._repository.references.get(f"refs/remotes/{remote}/HEAD")
            if head is not None and isinstance(head.target, str):
                return head.target.removeprefix(f"refs/remotes/{remote}/")
            names.update(name for name in _COMMON if f"refs/remotes/{remote}/{name}" in self._repository.references)
        known = next((name for name in _COMMON if name in names), "")
        return known or (next(iter(names)) if len(names) == 1 else "")

    def _remotes(self) -> Iterator[str]:
        return (remote.name for remote in self._repository.remotes if remote.name)

    def why_not(self, branch: str = "") -> tuple[str, str]:
        """Return the branch whose tree counts, and why nothing may be taken from this checkout, "" if it may."""
        wanted = branch or self.default_branch()
        if self._repository.head_is_unborn:
            return wanted, "it has no commit yet"
        if not wanted:
            return "", "nothing tells which branch is the default one: name it with --branch"
        if self.is_bare and f"refs/heads/{wanted}" in self._repository.references:
            return wanted, ""
        if self._repository.head_is_detached:
            return wanted, f"HEAD is detached, and memd reads patches only on {wanted}"
        here = self._repository.head.shorthand
        if here != wanted:
            return wanted, f"you are on {here}, and memd reads patches only on {wanted}"
        return wanted, ""

    # --- tree --------------------------------------------------------------------------------------------------------
    def committed(self, branch: str = "") -> CommittedPatches:
        """Return the patch files of the default branch's tree. Raises InvalidRequest."""
        name, why_not = self.why_not(branch)
        if why_not:
            return CommittedPatches(branch=name, why_not=why_not)
        import pygit2

        commit = self._repository.references[f"refs/heads/{name}"].peel(pygit2.Commit)
        blobs: dict[str, str] = {}
        gone: list[str] = []
        unread: list[tuple[str, str]] = []
        for entry in self._patches(commit) or ():
            file = entry.name or ""
            if not file.endswith(".json"):
                continue
            if why := self._why_unread(entry):
                unread.append((file, why))
                continue
            patch = file.removesuffix(".json")
            blobs[patch] = str(entry.id)
            if isinstance(entry, pygit2.Blob) and entry.size <= _GONE_BYTES and _GONE.fullmatch(entry.data):
                gone.append(patch)
        return CommittedPatches(
            branch=name, commit=str(commit.id), blobs=blobs, gone=tuple(sorted(gone)), unread=tuple(unread)
        )

    def _why_unread(self, entry: pygit2.Object) -> str:
        import pygit2

        modes = (pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.BLOB_EXECUTABLE)
        if not isinstance(entry, pygit2.Blob) or entry.filemode not in modes:
            return "it is a link, a folder or a submodule"
        if not PATCH_FILE.fullmatch(entry.name or ""):
            return "its name is not patch_YYYYMMDD_….json"
        try:
            size = entry.size
        except (KeyError, pygit2.GitError):
            return "this clone does not have its content: `git fetch --refetch`"
        return f"it has {size:,} bytes, more than {PATCH_BYTES:,}" if size > PATCH_BYTES else ""

    def data(self, blob: str) -> bytes:
        """Return the content of a blob."""
        import pygit2

        return self._repository[pygit2.Oid(hex=blob)].peel(pygit2.Blob).data

    def blob_at_head(self, file: str) -> str:
        """Return the blob of a file of `.pi` in HEAD, "" if it has none."""
        import pygit2

        try:
            return str(self._repository.head.peel(pygit2.Commit).tree[f"{self._prefix}.pi/{file}"].id)
        except (KeyError, pygit2.GitError):
            return ""

    @property
    def _prefix(self) -> str:
        return f"{self.top}/" if self.top else ""

    def _patches(self, commit: pygit2.Commit) -> pygit2.Tree | None:
        import pygit2

        try:
            tree = commit.tree[f"{self._prefix}.pi/patches"]
        except KeyError:
            return None
        return tree if isinstance(tree, pygit2.Tree) else None

    # --- history -----------------------------------------------------------------------------------------------------
    def files(self, committed: CommittedPatches, names: Collection[str]) -> list[TreeFile]:
        """Return patch files of a tree, each with the commit that brought it and that commit's author; both are "" if
        this clone has too short a history."""
        brought = self._brought(committed, names) if names else {}
        files: list[TreeFile] = []
        for name in sorted(names):
            blob = committed.blobs[name]
            files.append(TreeFile(blob, *brought.get(name, ("", "")), self.data(blob)))
        return files

    def _brought(self, committed: CommittedPatches, names: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return commit and author of each file, looked for from the newest commit on."""
        wanted = {name: committed.blobs[name] for name in names}
        found: dict[str, tuple[str, str]] = {}
        for commit, here, before in self._changes(committed.commit):
            if before is None:  # the history of a shallow clone ends here: it does not tell who brought what is there
                continue
            for name, blob in wanted.items():
                if name not in found and here.get(name) == blob and all(old.get(name) != blob for old in before):
                    found[name] = (str(commit.id), commit.author.name)
            if len(found) == len(wanted):
                break
        return found

    def ever_stated(self) -> Iterator[bytes]:
        """Yield each content that a patch file had before in the history of HEAD, newest first."""
        if self._repository.head_is_unborn:
            return
        seen: set[str] = set()
        for _, _, before in self._changes(str(self._repository.head.target)):
            for blob in (blob for old in before or () for blob in old.values()):
                if blob not in seen:
                    seen.add(blob)
                    yield self.data(blob)

    def first_blobs(self) -> dict[str, str]:
        """Return the first blob that each patch file had in the history of HEAD."""
        first: dict[str, str] = {}
        if not self._repository.head_is_unborn:
            for _, here, _ in self._changes(str(self._repository.head.target)):
                first.update(here)
        return first

    def _changes(self, commit: str) -> Iterator[tuple[pygit2.Commit, dict[str, str], list[dict[str, str]] | None]]:
        """Yield the commits that change the folder of patches, with its files there and in each parent; None for the
        parents that a shallow clone does not have."""
        import pygit2

        known: dict[str, dict[str, str]] = {}

        def listed(tree: pygit2.Tree | None) -> dict[str, str]:
            if tree is None:
                return {}
            return known.setdefault(
                str(tree.id), {(entry.name or "").removesuffix(".json"): str(entry.id) for entry in tree}
            )

        boundary = self._shallow()
        order = pygit2.enums.SortMode.TOPOLOGICAL
        for number, at in enumerate(self._repository.walk(pygit2.Oid(hex=commit), order)):
            if number >= LONGEST_WALK:
                return
            here = self._patches(at)
            if str(at.id) in boundary:
                yield at, listed(here), None
                continue
            before = [self._patches(parent) for parent in at.parents]
            if all((tree and tree.id) != (here and here.id) for tree in before):
                yield at, listed(here), [listed(tree) for tree in before]

    def _shallow(self) -> set[str]:
        """Return the commits at which the history of a shallow clone ends."""
        path = Path(self._repository.path)
        try:
            common = (path / "commondir").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            common = "."
        try:
            return set((path / common / "shallow").read_text(encoding="ascii").split())
        except (OSError, UnicodeDecodeError):
            return set()


def find_repository(folder: str) -> PiRepository:
    """Return the repository of a folder, with the nearest `.pi` at or above the folder, else at its top. Raises
    NotFound, InvalidRequest."""
    return _opened(folder, _with_nearest)


def repository_at(folder: str) -> PiRepository:
    """Return the repository of a folder whose own `.pi` counts. Raises NotFound, InvalidRequest."""
    return _opened(folder, _with_own)


def _opened(folder: str, choose: Callable[[pygit2.Repository, Path], PiRepository]) -> PiRepository:
    import pygit2  # imports in 100 ms

    try:
        path = pygit2.discover_repository(folder)
        if not path:
            hint = "a .pi folder lives in one: `git init`, or go to a repository"
            raise NotFound(f"{folder} is in no git repository", hint=hint)
        return choose(pygit2.Repository(path), Path(folder).resolve())
    except (KeyError, OSError, ValueError, pygit2.GitError) as error:
        raise InvalidRequest(f"git cannot read the repository of {folder}: {error}", hint="`git status`") from error


def _with_nearest(repository: pygit2.Repository, folder: Path) -> PiRepository:
    if not repository.workdir:
        return PiRepository(repository, None)
    top = Path(repository.workdir).resolve()
    for parent in (folder, *folder.parents):
        if has_pi(parent) and parent.is_relative_to(top):
            return _inside(repository, top, parent)
        if parent == top:
            break
    return PiRepository(repository, top)


def _with_own(repository: pygit2.Repository, folder: Path) -> PiRepository:
    if not repository.workdir:
        raise InvalidRequest("a bare repository has no files", hint="go to a clone of it")
    return _inside(repository, Path(repository.workdir).resolve(), folder)


def _inside(repository: pygit2.Repository, top: Path, folder: Path) -> PiRepository:
    below = folder.relative_to(top).as_posix()
    return PiRepository(repository, folder, "" if below == "." else below)


def nearest_pi(folder: Path) -> Path | None:
    """Return the nearest folder at or above one that has a `.pi`, not above its repository; None without one. It needs
    no git."""
    for parent in (folder, *folder.parents):
        if has_pi(parent):
            return parent
        if (parent / ".git").exists():
            break
    return None


def has_pi(folder: Path) -> bool:
    """Whether a folder has a `.pi` of memd. The pi agent also uses that name: its folder has neither of these."""
    return (folder / ".pi" / "patches").is_dir() or (folder / ".pi" / "pi.config.yaml").is_file()
