"""Whose memory is it: one pool for a project however it is checked out, another for another (P3, P-17).

Comes in: nothing but git. Goes out: figures, and the cases that went wrong. Invariant: every case has a machine of its
own, so that none leans on what another one showed; sessions are opened through the socket, as hooks and imports do.
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
from ..figure import Figure, at_most
from ..home import empty_home, running
from ..part import Part, Setting

AT = "2026-03-04T10:00:00+01:00"
ADA, EVE = "git@example.org:ada/orchard.git", "https://example.org/eve/orchard"


class Machine:
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
        """What git prints. Raises Refused."""
        who = ["user.name=A", "user.email=a@example.org", "init.defaultBranch=main", "protocol.file.allow=always"]
        settings = [part for each in who for part in ("-c", each)]
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *settings, *arguments], check=True, capture_output=True, text=True
            )
        except FileNotFoundError as error:
            raise Refused("git is not installed", hint="these cases need it") from error
        return done.stdout.strip()

    def clone(self, name: str, remote: str, *options: str) -> Path:
        """A clone with that remote, or with none."""
        self.git(self.folder, "clone", *options, f"file://{self.repository}", name)
        self.git(
            self.folder / name, *(("remote", "set-url", "origin", remote) if remote else ("remote", "remove", "origin"))
        )
        return self.folder / name

    def pool(self, folder: Path | str, hint: Repository | None = None) -> str:
        """The pool of a new session there."""
        self._sessions += 1
        origin = Origin(host="bench", session=f"s{self._sessions}", cwd=str(folder), repository=hint)
        return self._client.capture(origin, [Said(turn="1", at=AT, role="user", text="hello")]).pool


# --- each case gives the pools that must be one, and those that must not be among them -------------------------------
Case = Callable[[Machine], tuple[list[str], list[str]]]


def _worktree(machine: Machine) -> tuple[list[str], list[str]]:
    machine.git(machine.repository, "worktree", "add", str(machine.folder / "tree"))
    return [machine.pool(machine.repository), machine.pool(machine.folder / "tree")], []


def _second_clone(machine: Machine) -> tuple[list[str], list[str]]:
    second = machine.clone("second", "https://example.org/Ada/orchard")
    return [machine.pool(machine.repository), machine.pool(second)], []


def _fork(machine: Machine) -> tuple[list[str], list[str]]:
    fork = machine.clone("fork", EVE)
    return [machine.pool(machine.repository)], [machine.pool(fork)]


def _fork_first(machine: Machine) -> tuple[list[str], list[str]]:
    other = machine.pool(machine.clone("fork", EVE))
    return [machine.pool(machine.repository)], [other]


def _renamed(machine: Machine) -> tuple[list[str], list[str]]:
    pools = [machine.pool(machine.repository)]
    machine.git(machine.repository, "remote", "set-url", "origin", "git@example.org:ada/garden.git")
    pools.append(machine.pool(machine.repository))
    moved = machine.repository.rename(machine.folder / "garden")
    return [*pools, machine.pool(moved)], []


def _shallow(machine: Machine) -> tuple[list[str], list[str]]:
    shallow = machine.clone("shallow", ADA, "--depth=1")
    return [machine.pool(machine.repository), machine.pool(shallow)], []


def _shallow_completed(machine: Machine) -> tuple[list[str], list[str]]:
    shallow = machine.clone("shallow", ADA, "--depth=1")
    pools = [machine.pool(shallow)]
    machine.git(shallow, "fetch", "--unshallow", f"file://{machine.repository}")
    return [*pools, machine.pool(shallow), machine.pool(machine.repository)], []


def _remote_later(machine: Machine) -> tuple[list[str], list[str]]:
    machine.git(machine.repository, "remote", "remove", "origin")
    pools = [machine.pool(machine.repository)]
    machine.git(machine.repository, "remote", "add", "origin", ADA)
    pools.append(machine.pool(machine.repository))
    return [*pools, machine.pool(machine.clone("second", ADA))], [machine.pool(machine.clone("fork", EVE))]


def _deleted(machine: Machine) -> tuple[list[str], list[str]]:
    pools = [machine.pool(machine.repository)]
    shutil.rmtree(machine.repository)
    return [*pools, machine.pool(machine.repository / "src")], [machine.pool(machine.folder / "never")]


def _container(machine: Machine) -> tuple[list[str], list[str]]:
    root = machine.git(machine.repository, "rev-list", "--max-parents=0", "HEAD")
    hint = Repository(root="/inside/orchard", root_commit=root, remote="https://example.org/ada/orchard")
    inside = machine.pool("/inside/orchard", hint)
    return [machine.pool(machine.repository), inside], [machine.pool("/inside/orchard")]


def _nowhere(machine: Machine) -> tuple[list[str], list[str]]:
    plain = machine.folder / "plain"
    plain.mkdir()
    return [machine.pool(plain), machine.pool(plain)], [machine.pool(machine.repository), machine.pool(machine.folder)]


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


def identity(setting: Setting) -> Part:
    """Worktree, clone, fork, rename, shallow clone, late remote, deleted folder, container: each the right pool."""
    wrong: list[str] = []
    for name, case in CASES.items():
        setting.tell(f"write/identity: {name}")
        with (
            TemporaryDirectory(prefix="memd-bench-") as folder,
            empty_home() as (where, environment),
            running(where, environment) as client,
        ):
            same, others = case(Machine(client, Path(folder)))
            if len(set(same)) != 1 or set(same) & set(others) or "" in same:
                wrong.append(f"{name}: one project has {', '.join(same)}; others {', '.join(others) or 'none'}")
    figure = Figure(name="cases with a wrong pool", value=len(wrong), target=at_most(0), samples=len(CASES))
    return Part(figures=(figure,), notes=tuple(wrong), shows_not="submodules, and repositories that share no commit")
