"""Reads a folder's project evidence through libgit2: root commit, remote, checkout and id file (P3, P-17).

Invariants: a caller waits no longer than it asks for, and a slow probe goes on and its result is kept; libgit2 (0.1 s,
20 MB) is loaded by the first probe, or after the start if projects exist; the history is followed by first parents from
the default branch, so that all branches and worktrees of a repository give the same root commit; a shallow clone gives
none. User, password, port, protocol and `.git` of a remote never matter.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

_SCP = re.compile(r"^(?:[^@/:]+@)?(?P<host>\[[^\]]+\]|[\w.-]{2,}):(?P<path>.+)$")
"""`git@host:owner/name`; a host of one letter is a Windows drive."""

_SAME_HOST = {
    "altssh.bitbucket.org": "bitbucket.org",
    "altssh.gitlab.com": "gitlab.com",
    "ssh.github.com": "github.com",
}
"""Names under which hosts serve ssh on the https port."""


def canonical_remote(url: str) -> str:
    """Return `host/owner/name` in lower case for any form of a remote's URL; "" for a local path."""
    url = url.strip()
    if "://" in url:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme.lower() == "file":
            return ""
    else:
        match = _SCP.match(url)
        if match is None or url.startswith((".", "/", "~")):
            return ""
        host, path = match["host"].strip("[]").lower(), match["path"]
    path = re.sub(r"/{2,}", "/", unquote(path)).strip("/").removesuffix(".git").strip("/")
    return f"{_SAME_HOST.get(host, host)}/{path}".lower() if host and path else ""


if TYPE_CHECKING:
    import pygit2

KNOWN = 1024
"""Most folders in the cache."""

FRESH_S = 2.0
"""Seconds for which a probe's result counts."""

RUNNING = 8
"""Most probes at the same time, because a disk may not answer."""

LONGEST_HISTORY = 100_000
"""Most first parents that are followed (about 1.5 s, once for a checkout) before the root commit counts as unknown."""

ID_FILE = ".memd-id"
"""The file that names the project of a folder without git in one line; `memd scope bind --new` creates it."""

_ID = re.compile(r"[0-9a-z][0-9a-z-]{7,63}")
_MAIN = ("main", "master", "trunk")


class RepoEvidence(NamedTuple):
    """What a folder shows of its project.

    `repository`: root commit and canonical remote, each "" if unknown, `checkout` and `folder` (its working tree);
    `folder`: there is no repository, perhaps an `id` in `folder`; `unseen`: nothing can be read, with the reason `why`.
    """

    state: Literal["repository", "folder", "unseen"]
    root_commit: str = ""
    remote: str = ""
    checkout: str = ""
    folder: str = ""
    id: str = ""
    why: str = ""


SLOW = RepoEvidence("unseen", why="reading the repository takes too long")
"""The evidence of a folder while its first probe runs."""


class RepoProbe:
    """Probes folders in threads. `roots` gives the known root commits of a checkout: one that still exists
    saves walking its history. `clean` removes secrets from each name of the evidence."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        roots: Callable[[str], tuple[str, ...]],
        clean: Callable[[str], str] = lambda words: words,
    ) -> None:
        self._monotonic, self._roots, self._clean = monotonic, roots, clean
        self._seen: dict[str, tuple[float, RepoEvidence]] = {}
        self._walked: dict[str, str] = {}
        self._looking: dict[str, tuple[float, threading.Event]] = {}
        self._lock = threading.Lock()

    def probe(self, folder: str, wait_s: float, *, anew: bool = False) -> RepoEvidence:
        """Return a folder's evidence. If its probe takes longer than `wait_s` seconds, return the evidence of the probe
        before, or `SLOW` if there was none. `anew`: ignore the cache."""
        seen = self._seen.get(folder)
        if not anew and seen is not None and self._monotonic() - seen[0] < FRESH_S:
            return seen[1]
        if started := self._start(folder):
            begin, done = started  # who asks again about a slow disk does not wait again
            done.wait(max(0.0, wait_s - (self._monotonic() - begin)))
        seen = self._seen.get(folder)
        return seen[1] if seen is not None else SLOW

    def prepare(self) -> None:
        """Load libgit2 in a thread; its import blocks the interpreter for some 0.1 s."""
        threading.Thread(target=importlib.import_module, args=("pygit2",), name="libgit2", daemon=True).start()

    def _start(self, folder: str) -> tuple[float, threading.Event] | None:
        with self._lock:
            if folder in self._looking:
                return self._looking[folder]
            if len(self._looking) >= RUNNING:
                return None
            started = self._looking[folder] = self._monotonic(), threading.Event()
        threading.Thread(target=self._run, args=(folder, started[1]), name="identity", daemon=True).start()
        return started

    def _run(self, folder: str, done: threading.Event) -> None:
        try:
            self._keep(folder, self._monotonic(), self._read(folder))
        finally:
            with self._lock:
                del self._looking[folder]
            done.set()

    def _keep(self, folder: str, at: float, probed: RepoEvidence) -> None:
        with self._lock:
            if len(self._seen) >= KNOWN:
                self._seen.clear()
            self._seen[folder] = (at, RepoEvidence(probed.state, *map(self._clean, probed[1:])))

    def _read(self, folder: str) -> RepoEvidence:
        try:
            if not Path(folder).is_dir():
                return RepoEvidence("unseen", why="there is no such folder on this machine")
            import pygit2  # imports in 100 ms, so only when the first folder needs it
        except (OSError, ValueError) as error:
            return RepoEvidence("unseen", why=f"it can't be read: {getattr(error, 'strerror', None) or error}")
        try:
            path = pygit2.discover_repository(folder)
            return self._of_repository(folder, pygit2.Repository(path)) if path else _plain(folder)
        except (OSError, ValueError, KeyError, pygit2.GitError) as error:
            return RepoEvidence("unseen", why=f"git can't read it: {error}")

    def _of_repository(self, folder: str, repository: pygit2.Repository) -> RepoEvidence:
        checkout = _checkout(repository)
        workdir = str(Path(repository.workdir)) if repository.workdir else checkout
        name, remote = _remote(repository)
        probed = RepoEvidence("repository", "", remote, checkout, workdir, _plain(folder, workdir).id)
        if repository.is_shallow or Path(checkout, "shallow").exists():
            return probed._replace(why="a shallow clone does not show its root commit")
        root = self._known_root(checkout, repository)
        if not root:
            if folder not in self._seen and remote:  # enough for a caller that cannot wait for a long walk
                self._keep(
                    folder, self._monotonic() - FRESH_S, probed._replace(why="memd is still reading its history")
                )
            root = _root_commit(repository, name)
            self._walked[checkout] = root
        why = "" if root else "it has no commit yet, or too long a history"
        return probed._replace(root_commit=root, why=why)

    def _known_root(self, checkout: str, repository: pygit2.Repository) -> str:
        for root in (self._walked.get(checkout, ""), *self._roots(checkout)):
            if root and root in repository:
                return root
        return ""


def _plain(folder: str, top: str = "") -> RepoEvidence:
    """Return the evidence of the nearest id file at or above a folder, not above `top`."""
    for parent in (Path(folder), *Path(folder).parents):
        try:
            with (parent / ID_FILE).open(encoding="ascii") as file:
                id = file.read(100).strip()
        except (OSError, ValueError):
            id = ""
        if _ID.fullmatch(id):
            return RepoEvidence("folder", folder=str(parent), id=id)
        if str(parent) == top:
            break
    return RepoEvidence("folder", folder=folder, why="it is not a git repository")


def _checkout(repository: pygit2.Repository) -> str:
    """Return the folder with the history, which a worktree shares with its repository."""
    path = Path(repository.path)
    try:
        common = (path / "commondir").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return str(path)
    return str((path / common).resolve())


def _remote(repository: pygit2.Repository) -> tuple[str, str]:
    """Return name and canonical form of the remote: `origin`, else the first by name that has a host."""
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
    """Return the first commit of the default branch, "" if there is none within `LONGEST_HISTORY`."""
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
