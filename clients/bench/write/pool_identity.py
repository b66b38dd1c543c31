"""Pool identity: one pool for a project however it is checked out, another pool for another project (P3, P-17)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ....protocol.errors import Refused
from ....protocol.event import Origin, Repository, Said
from ...python.client import Client
from ..measurement import BenchOptions, PartResult, zero_figure
from ..temporary_daemon import temporary_daemon

AT = "2026-03-04T10:00:00+01:00"
ADA, EVE = "git@example.org:ada/orchard.git", "https://example.org/eve/orchard"

Pools = tuple[list[str], list[str]]
"""The pools that must be one, and those that must not be among them."""


class GitCase:
    """A daemon, and a repository `orchard` of two commits with Ada's remote; a method named `a_…` is a case."""

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

    def a_worktree(self) -> Pools:
        self.git(self.repository, "worktree", "add", str(self.folder / "tree"))
        return [self.pool(), self.pool(self.folder / "tree")], []

    def a_second_clone_over_https(self) -> Pools:
        return [self.pool(), self.pool(self.clone("second", "https://example.org/Ada/orchard"))], []

    def a_fork(self) -> Pools:
        return [self.pool()], [self.pool(self.clone("fork", EVE))]

    def a_fork_that_is_seen_first(self) -> Pools:
        others = [self.pool(self.clone("fork", EVE))]
        return [self.pool()], others

    def a_renamed_remote_and_folder(self) -> Pools:
        pools = [self.pool()]
        self.git(self.repository, "remote", "set-url", "origin", "git@example.org:ada/garden.git")
        pools.append(self.pool())
        return [*pools, self.pool(self.repository.rename(self.folder / "garden"))], []

    def a_shallow_clone(self) -> Pools:
        return [self.pool(), self.pool(self.clone("shallow", ADA, "--depth=1"))], []

    def a_completed_shallow_clone(self) -> Pools:
        shallow = self.clone("shallow", ADA, "--depth=1")
        pools = [self.pool(shallow)]
        self.git(shallow, "fetch", "--unshallow", f"file://{self.repository}")
        return [*pools, self.pool(shallow), self.pool()], []

    def a_remote_that_is_added_later(self) -> Pools:
        self.git(self.repository, "remote", "remove", "origin")
        pools = [self.pool()]
        self.git(self.repository, "remote", "add", "origin", ADA)
        pools.append(self.pool())
        return [*pools, self.pool(self.clone("second", ADA))], [self.pool(self.clone("fork", EVE))]

    def a_deleted_folder(self) -> Pools:
        pools = [self.pool()]
        shutil.rmtree(self.repository)
        return [*pools, self.pool(self.repository / "src")], [self.pool(self.folder / "never")]

    def a_container_path_with_a_hint(self) -> Pools:
        root = self.git(self.repository, "rev-list", "--max-parents=0", "HEAD")
        hint = Repository(root="/inside/orchard", root_commit=root, remote="https://example.org/ada/orchard")
        inside = self.pool("/inside/orchard", hint)
        return [self.pool(), inside], [self.pool("/inside/orchard")]

    def a_folder_without_git(self) -> Pools:
        plain = self.folder / "plain"
        plain.mkdir()
        return [self.pool(plain), self.pool(plain)], [self.pool(), self.pool(self.folder)]


def identity(options: BenchOptions) -> PartResult:
    """Worktree, clone, fork, rename, shallow clone, late remote, deleted folder, container: each the right pool."""
    wrong: list[str] = []
    cases = [name for name in vars(GitCase) if name.startswith("a_")]
    for case in cases:
        name = case.replace("_", " ")
        options.progress(f"write/identity: {name}")
        with TemporaryDirectory(prefix="memd-bench-") as folder, temporary_daemon() as client:
            same, others = getattr(GitCase(client, Path(folder)), case)()
        if len(set(same)) != 1 or set(same) & set(others) or "" in same:
            wrong.append(f"{name}: one project has {', '.join(same)}; others {', '.join(others) or 'none'}")
    figure = zero_figure("cases with a wrong pool", len(wrong), len(cases))
    return PartResult((figure,), notes=tuple(wrong), shows_not="submodules, and repositories that share no commit")
