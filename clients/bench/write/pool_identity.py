"""Pool identity: one pool for a project however it is checked out, another pool for another project (P3, P-17).

Each case has a daemon of its own, so that none depends on repositories that another case showed. Sessions are opened
through the socket, as hooks and imports do.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ....protocol.errors import Refused
from ....protocol.event import Origin, Repository, Said
from ...python.client import Client
from ..measurement import BenchOptions, PartResult, zero_figure
from ..temporary_daemon import temporary_daemon

AT = "2026-03-04T10:00:00+01:00"
ADA, EVE = "git@example.org:ada/orchard.git", "https://example.org/eve/orchard"


class GitCase:
    """A daemon, and a repository `orchard` of two commits with Ada's remote."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client, self.folder = client, folder
        self._sessions = 0
        self.repository = folder / "orchard"
        self.repository.mkdir()
        self.git(self.repository, "init")
        for name in ("first", "second"):
            self.git(self.repository, "commit", "--allow-empty", "-m", name)
        self.git(self.repository, "remote", "add", "origin", ADA)

    def git(self, folder: Path, *arguments: str) -> str:
        """Run git and return its output. Raises Refused if git is not installed."""
        user = ["user.name=A", "user.email=a@example.org", "init.defaultBranch=main", "protocol.file.allow=always"]
        settings = [part for setting in user for part in ("-c", setting)]
        command = ["git", "-C", str(folder), *settings, *arguments]
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError as error:
            raise Refused("git is not installed", hint="these cases need it") from error

    def clone(self, name: str, remote: str, *options: str) -> Path:
        """A clone with that remote."""
        self.git(self.folder, "clone", *options, f"file://{self.repository}", name)
        self.git(self.folder / name, "remote", "set-url", "origin", remote)
        return self.folder / name

    def pool(self, folder: Path | str | None = None, hint: Repository | None = None) -> str:
        """The pool of a new session in a folder, by default in the repository."""
        self._sessions += 1
        cwd = str(folder or self.repository)
        origin = Origin(host="bench", session=f"s{self._sessions}", cwd=cwd, repository=hint)
        return self._client.capture(origin, [Said(turn="1", at=AT, role="user", text="hello")]).pool


Pools = tuple[list[str], list[str]]
"""The pools that must be one, and those that must not be among them."""

Case = Callable[[GitCase], Pools]


def _worktree(case: GitCase) -> Pools:
    case.git(case.repository, "worktree", "add", str(case.folder / "tree"))
    return [case.pool(), case.pool(case.folder / "tree")], []


def _second_clone(case: GitCase) -> Pools:
    second = case.clone("second", "https://example.org/Ada/orchard")
    return [case.pool(), case.pool(second)], []


def _fork(case: GitCase) -> Pools:
    fork = case.clone("fork", EVE)
    return [case.pool()], [case.pool(fork)]


def _fork_first(case: GitCase) -> Pools:
    other = case.pool(case.clone("fork", EVE))
    return [case.pool()], [other]


def _renamed(case: GitCase) -> Pools:
    pools = [case.pool()]
    case.git(case.repository, "remote", "set-url", "origin", "git@example.org:ada/garden.git")
    pools.append(case.pool())
    moved = case.repository.rename(case.folder / "garden")
    return [*pools, case.pool(moved)], []


def _shallow(case: GitCase) -> Pools:
    shallow = case.clone("shallow", ADA, "--depth=1")
    return [case.pool(), case.pool(shallow)], []


def _shallow_completed(case: GitCase) -> Pools:
    shallow = case.clone("shallow", ADA, "--depth=1")
    pools = [case.pool(shallow)]
    case.git(shallow, "fetch", "--unshallow", f"file://{case.repository}")
    return [*pools, case.pool(shallow), case.pool()], []


def _remote_later(case: GitCase) -> Pools:
    case.git(case.repository, "remote", "remove", "origin")
    pools = [case.pool()]
    case.git(case.repository, "remote", "add", "origin", ADA)
    pools.append(case.pool())
    return [*pools, case.pool(case.clone("second", ADA))], [case.pool(case.clone("fork", EVE))]


def _deleted(case: GitCase) -> Pools:
    pools = [case.pool()]
    shutil.rmtree(case.repository)
    return [*pools, case.pool(case.repository / "src")], [case.pool(case.folder / "never")]


def _container(case: GitCase) -> Pools:
    root = case.git(case.repository, "rev-list", "--max-parents=0", "HEAD")
    hint = Repository(root="/inside/orchard", root_commit=root, remote="https://example.org/ada/orchard")
    inside = case.pool("/inside/orchard", hint)
    return [case.pool(), inside], [case.pool("/inside/orchard")]


def _nowhere(case: GitCase) -> Pools:
    plain = case.folder / "plain"
    plain.mkdir()
    return [case.pool(plain), case.pool(plain)], [case.pool(), case.pool(case.folder)]


CASES: dict[str, Case] = {
    "a worktree": _worktree,
    "a second clone, over https": _second_clone,
    "a fork is another project": _fork,
    "a fork that is seen first": _fork_first,
    "a renamed remote, a moved folder": _renamed,
    "a shallow clone": _shallow,
    "a shallow clone, completed": _shallow_completed,
    "no remote, added later": _remote_later,
    "a deleted folder": _deleted,
    "a container's path with a hint": _container,
    "a folder without git": _nowhere,
}


def identity(options: BenchOptions) -> PartResult:
    """Worktree, clone, fork, rename, shallow clone, late remote, deleted folder, container: each the right pool."""
    wrong: list[str] = []
    for name, case in CASES.items():
        options.progress(f"write/identity: {name}")
        with TemporaryDirectory(prefix="memd-bench-") as folder, temporary_daemon() as client:
            same, others = case(GitCase(client, Path(folder)))
        if len(set(same)) != 1 or set(same) & set(others) or "" in same:
            wrong.append(f"{name}: one project has {', '.join(same)}; others {', '.join(others) or 'none'}")
    figure = zero_figure("cases with a wrong pool", len(wrong), len(CASES))
    return PartResult(
        figures=(figure,), notes=tuple(wrong), shows_not="submodules, and repositories that share no commit"
    )
