"""What a folder shows of its project, through libgit2 (P3, P-17).

Comes in: a folder of this machine. Goes out: root commit, remote, checkout, id file, or why none of them can be seen.
Invariants: nobody waits longer than he says, however slow the disk: a look goes on by itself and its result is kept;
libgit2 (0.1 s, 20 MB) is loaded by the first look, or once the daemon is up where there are projects; a history is
followed by first parents from the default branch, so that every branch and worktree of a repository shows the same root
commit; a shallow one shows none.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from .remote import canonical_remote

if TYPE_CHECKING:
    import pygit2

KNOWN = 1024
"""Folders remembered at most."""

FRESH_S = 2.0
"""How long a look counts: a remote that was renamed, a folder that became a repository are seen after that."""

LOOKING = 8
"""Looks that may hang at the same time, on disks that do not answer."""

LONGEST_HISTORY = 100_000
"""First parents followed at most: about 1.5 s, once for a checkout. Beyond, the root commit counts as unknown."""

ID_FILE = ".memd-id"
"""The file that says which project a folder without git is: one line, made by `memd scope bind --new`."""

_ID = re.compile(r"[0-9a-z][0-9a-z-]{7,63}")
_MAIN = ("main", "master", "trunk")


class RepoEvidence(NamedTuple):
    """`repository`: root commit and canonical remote, each "" if unknown, `checkout` and `folder` (its working tree);
    `folder`: there is no repository, perhaps an `id` in `folder`; `unseen`: `why` not."""

    state: Literal["repository", "folder", "unseen"]
    root_commit: str = ""
    remote: str = ""
    checkout: str = ""
    folder: str = ""
    id: str = ""
    why: str = ""


class RepoProbe:
    """Looks at folders. `roots` gives the root commits that are known of a checkout: one that is still there saves the
    walk through its history."""

    def __init__(self, monotonic: Callable[[], float], roots: Callable[[str], tuple[str, ...]]) -> None:
        self._monotonic, self._roots = monotonic, roots
        self._seen: dict[str, tuple[float, RepoEvidence]] = {}
        self._walked: dict[str, str] = {}
        self._looking: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def look(self, folder: str, wait_s: float, *, anew: bool = False) -> RepoEvidence:
        """What a folder shows, or showed last if that takes longer than `wait_s`; `anew`: not what was kept of it."""
        seen = self._seen.get(folder)
        if not anew and seen is not None and self._monotonic() - seen[0] < FRESH_S:
            return seen[1]
        done = self._start(folder)
        if done is not None:
            done.wait(wait_s)
        seen = self._seen.get(folder)
        return seen[1] if seen is not None else RepoEvidence("unseen", why="reading the repository takes too long")

    def prepare(self) -> None:
        """Load libgit2 in a thread of its own: its import keeps the interpreter for itself, some 0.1 s."""
        threading.Thread(target=importlib.import_module, args=("pygit2",), name="libgit2", daemon=True).start()

    def _start(self, folder: str) -> threading.Event | None:
        with self._lock:
            if folder in self._looking:
                return self._looking[folder]
            if len(self._looking) >= LOOKING:
                return None
            done = self._looking[folder] = threading.Event()
        threading.Thread(target=self._run, args=(folder, done), name="identity", daemon=True).start()
        return done

    def _run(self, folder: str, done: threading.Event) -> None:
        try:
            self._keep(folder, self._monotonic(), self._look(folder))
        finally:
            with self._lock:
                del self._looking[folder]
            done.set()

    def _keep(self, folder: str, at: float, sight: RepoEvidence) -> None:
        with self._lock:
            if len(self._seen) >= KNOWN:
                self._seen.clear()
            self._seen[folder] = (at, sight)

    def _look(self, folder: str) -> RepoEvidence:
        try:
            if not Path(folder).is_dir():
                return RepoEvidence("unseen", why="there is no such folder on this machine")
            import pygit2  # 100 ms of import, wanted by the first folder only
        except (OSError, ValueError) as error:
            return RepoEvidence("unseen", why=f"it can't be read: {getattr(error, 'strerror', None) or error}")
        try:
            found = pygit2.discover_repository(folder)
            if not found:
                return _plain(folder)
            return self._of_repository(folder, pygit2.Repository(found))
        except (OSError, ValueError, KeyError, pygit2.GitError) as error:
            return RepoEvidence("unseen", why=f"git can't read it: {error}")

    def _of_repository(self, folder: str, repository: pygit2.Repository) -> RepoEvidence:
        checkout = _checkout(repository)
        workdir = str(Path(repository.workdir)) if repository.workdir else checkout
        name, remote = _remote(repository)
        sight = RepoEvidence("repository", "", remote, checkout, workdir, _plain(folder, workdir).id)
        if repository.is_shallow or Path(checkout, "shallow").exists():
            return sight._replace(why="a shallow clone does not show its root commit")
        root = self._known_root(checkout, repository)
        if not root:
            if folder not in self._seen and remote:  # good enough for whoever can't wait for a long walk
                self._keep(folder, self._monotonic() - FRESH_S, sight._replace(why="memd is still reading its history"))
            root = _root_commit(repository, name)
            self._walked[checkout] = root
        why = "" if root else "it has no commit yet, or too long a history"
        return sight._replace(root_commit=root, why=why)

    def _known_root(self, checkout: str, repository: pygit2.Repository) -> str:
        for root in (self._walked.get(checkout, ""), *self._roots(checkout)):
            if root and root in repository:
                return root
        return ""


def _plain(folder: str, top: str = "") -> RepoEvidence:
    """The nearest id file at or above a folder, not above `top`."""
    for each in (Path(folder), *Path(folder).parents):
        try:
            with (each / ID_FILE).open(encoding="ascii") as file:
                id = file.read(100).strip()
        except (OSError, ValueError):
            id = ""
        if _ID.fullmatch(id):
            return RepoEvidence("folder", folder=str(each), id=id)
        if str(each) == top:
            break
    return RepoEvidence("folder", folder=folder, why="it is not a git repository")


def _checkout(repository: pygit2.Repository) -> str:
    """The folder that holds the history: of a worktree, its repository's."""
    path = Path(repository.path)
    try:
        common = (path / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return str(path)
    return str((path / common).resolve())


def _remote(repository: pygit2.Repository) -> tuple[str, str]:
    """Name and canonical form of the remote that counts: `origin`, else the first that names a host."""
    urls = {remote.name or "": canonical_remote(remote.url or "") for remote in repository.remotes}
    for name in ("origin", *sorted(urls)):
        if urls.get(name):
            return name, urls[name]
    return "", ""


def _branches(remote: str) -> Iterator[str]:
    if remote:
        yield from (f"refs/remotes/{remote}/{name}" for name in ("HEAD", *_MAIN))
    yield from (f"refs/heads/{name}" for name in _MAIN)
    yield "HEAD"


def _root_commit(repository: pygit2.Repository, remote: str) -> str:
    """The first commit of the default branch, "" where there is none within reach."""
    import pygit2

    for name in _branches(remote):
        try:
            commit = repository.references[name].peel(pygit2.Commit)
        except (KeyError, pygit2.GitError):
            continue
        for _ in range(LONGEST_HISTORY):
            if not commit.parent_ids:
                return str(commit.id)
            commit = repository[commit.parent_ids[0]].peel(pygit2.Commit)
        return ""
    return ""
