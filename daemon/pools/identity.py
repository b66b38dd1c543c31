"""Project identity: which pool a folder's project memory lies in (P3).

Comes in: a folder, perhaps a hint of the client. Goes out: a pool name with the evidence for it. Invariants: every
clone and worktree of a repository gives the same pool, a fork (another remote) another; what can't be resolved is
`unbound/…` and can be bound later; no folder at all gives no project.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.event import Origin, Repository

if TYPE_CHECKING:
    import pygit2

_SCP = re.compile(r"^(?:[\w.-]+@)?(?P<host>[\w.-]+):(?P<path>[^/].*)$")
KNOWN = 1024
"""Folders remembered at most."""

_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)$", re.IGNORECASE)


class Project(NamedTuple):
    """A pool name, a title for people, the root folder ("" unknown), and why it is this one."""

    pool: str
    title: str
    root: str
    evidence: str


def canonical_remote(url: str) -> str:
    """`host/owner/name` in lower case of any form of a remote's URL; "" for a local path or nothing."""
    match = _URL.match(url.strip()) or _SCP.match(url.strip())
    if not match:
        return ""
    path = match["path"].strip("/").removesuffix(".git").strip("/")
    return f"{match['host']}/{path}".lower() if path else ""


def _mark(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


class Identity:
    """Resolves folders, remembering what it found: the walk to a repository's root commit is done once."""

    def __init__(self) -> None:
        self._known: dict[str, Project] = {}

    def project(self, origin: Origin) -> Project | None:
        """The project of an origin, None without a folder."""
        if not origin.cwd and origin.repository is None:
            return None
        if origin.repository is not None and (origin.repository.root_commit or origin.repository.remote):
            return _of_repository(origin.repository)
        return self.of_folder(origin.cwd) or _unbound(origin.host, origin.cwd)

    def of_folder(self, folder: str) -> Project | None:
        """The project of a folder on this machine, None where there is no repository."""
        if folder in self._known:
            return self._known[folder]
        found = _look(folder)
        if found is not None:  # what is no repository today may be one tomorrow
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[folder] = found
        return found


def _unbound(host: str, folder: str) -> Project | None:
    if not folder:
        return None
    title = Path(folder).name or folder
    return Project(f"unbound/{_mark(host, folder)}", title, folder, "the folder is no repository on this machine")


def _of_repository(repository: Repository) -> Project:
    remote = canonical_remote(repository.remote)
    title = remote.rsplit("/", 1)[-1] if remote else Path(repository.root).name
    what = " and ".join(
        part
        for part in (
            f"root commit {repository.root_commit[:12]}" if repository.root_commit else "",
            f"remote {remote}" if remote else "",
        )
        if part
    )
    return Project(f"project/{_mark(repository.root_commit, remote)}", title, repository.root, what)


def _look(folder: str) -> Project | None:
    """The project of a folder, None where there is none that git can read: such a folder is only unbound."""
    try:
        if not folder or not Path(folder).is_dir():
            return None
        import pygit2  # 100 ms of import, wanted by the first folder only
    except (OSError, ValueError):
        return None
    try:
        found = pygit2.discover_repository(folder)
        return _of_repository(_read(pygit2.Repository(found))) if found else None
    except (OSError, ValueError, KeyError, StopIteration, pygit2.GitError):
        return None


def _read(repository: pygit2.Repository) -> Repository:
    """Root commit and remote. Raises ValueError where there is neither: such a repository is nothing yet."""
    remotes = {remote.name: remote.url or "" for remote in repository.remotes if remote.name}
    remote = remotes.get("origin") or next(iter(remotes.values()), "")
    commit = ""
    if not repository.head_is_unborn:
        from pygit2.enums import SortMode

        order = SortMode.TOPOLOGICAL | SortMode.REVERSE
        commit = str(next(iter(repository.walk(repository.head.target, order))).id)
    if not commit and not canonical_remote(remote):
        raise ValueError("no commit and no remote")
    return Repository(root=str(Path(repository.workdir or repository.path)), root_commit=commit, remote=remote)
