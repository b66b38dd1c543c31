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


def a_worktree(case: GitCase) -> Pools:
    case.git(case.repository, "worktree", "add", str(case.folder / "tree"))
    return [case.pool(), case.pool(case.folder / "tree")], []


def a_second_clone_over_https(case: GitCase) -> Pools:
    second = case.clone("second", "https://example.org/Ada/orchard")
    return [case.pool(), case.pool(second)], []


def a_fork(case: GitCase) -> Pools:
    fork = case.clone("fork", EVE)
    return [case.pool()], [case.pool(fork)]


def a_fork_that_is_seen_first(case: GitCase) -> Pools:
    other = case.pool(case.clone("fork", EVE))
    return [case.pool()], [other]


def a_renamed_remote_and_folder(case: GitCase) -> Pools:
    pools = [case.pool()]
    case.git(case.repository, "remote", "set-url", "origin", "git@example.org:ada/garden.git")
    pools.append(case.pool())
    moved = case.repository.rename(case.folder / "garden")
    return [*pools, case.pool(moved)], []


def a_shallow_clone(case: GitCase) -> Pools:
    shallow = case.clone("shallow", ADA, "--depth=1")
    return [case.pool(), case.pool(shallow)], []


def a_completed_shallow_clone(case: GitCase) -> Pools:
    shallow = case.clone("shallow", ADA, "--depth=1")
    pools = [case.pool(shallow)]
    case.git(shallow, "fetch", "--unshallow", f"file://{case.repository}")
    return [*pools, case.pool(shallow), case.pool()], []


def a_remote_that_is_added_later(case: GitCase) -> Pools:
    case.git(case.repository, "remote", "remove", "origin")
    pools = [case.pool()]
    case.git(case.repository, "remote", "add", "origin", ADA)
    pools.append(case.pool())
    return [*pools, case.pool(case.clone("second", ADA))], [case.pool(case.clone("fork", EVE))]


def a_deleted_folder(case: GitCase) -> Pools:
    pools = [case.pool()]
    shutil.rmtree(case.repository)
    return [*pools, case.pool(case.repository / "src")], [case.pool(case.folder / "never")]


def a_container_path_with_a_hint(case: GitCase) -> Pools:
    root = case.git(case.repository, "rev-list", "--max-parents=0", "HEAD")
    hint = Repository(root="/inside/orchard", root_commit=root, remote="https://example.org/ada/orchard")
    inside = case.pool("/inside/orchard", hint)
    return [case.pool(), inside], [case.pool("/inside/orchard")]


def a_folder_without_git(case: GitCase) -> Pools:
    plain = case.folder / "plain"
    plain.mkdir()
    return [case.pool(plain), case.pool(plain)], [case.pool(), case.pool(case.folder)]


CASES: tuple[Callable[[GitCase], Pools], ...] = (
    a_worktree,
    a_second_clone_over_https,
    a_fork,
    a_fork_that_is_seen_first,
    a_renamed_remote_and_folder,
    a_shallow_clone,
    a_completed_shallow_clone,
    a_remote_that_is_added_later,
    a_deleted_folder,
    a_container_path_with_a_hint,
    a_folder_without_git,
)


def identity(options: BenchOptions) -> PartResult:
    """Worktree, clone, fork, rename, shallow clone, late remote, deleted folder, container: each the right pool."""
    wrong: list[str] = []
    for case in CASES:
        name = case.__name__.replace("_", " ")
        options.progress(f"write/identity: {name}")
        with TemporaryDirectory(prefix="memd-bench-") as folder, temporary_daemon() as client:
            same, others = case(GitCase(client, Path(folder)))
        if len(set(same)) != 1 or set(same) & set(others) or "" in same:
            wrong.append(f"{name}: one project has {', '.join(same)}; others {', '.join(others) or 'none'}")
    figure = zero_figure("cases with a wrong pool", len(wrong), len(CASES))
    return PartResult((figure,), notes=tuple(wrong), shows_not="submodules, and repositories that share no commit")
