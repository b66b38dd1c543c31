"""Project identity: by repository, not by path (P3, P-17). Real repositories, real tables."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.daemon.projections.folded import TableSet
from memd.daemon.services.pools.identity import Identity, PoolIdentity
from memd.daemon.services.pools.repo_probe import ID_FILE, RepoProbe, canonical_remote
from memd.protocol.event import Repository
from memd.protocol.operation import AliasAdded
from memd.protocol.reply import Logged

ADA = "git@example.org:ada/orchard.git"
EVE = "https://example.org/eve/orchard"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/Ada/Orchard.git",
        "http://example.org/ada/orchard",
        "git@example.org:ada/orchard.git",
        "git@example.org:/ada/orchard",
        "example.org:ada/orchard",
        "ssh://git@example.org:22/ada/orchard",
        "git+ssh://git@EXAMPLE.org/ada//orchard.git/",
        "git://example.org/ada/orchard.git",
        "https://user:token@example.org/ada/orchard/",
        "https://example.org:8443/ada/%6Frchard",
    ],
)
def test_any_form_of_a_remote_is_the_same_name_P3(url: str) -> None:
    assert canonical_remote(url) == "example.org/ada/orchard"


@pytest.mark.parametrize(
    "url", ["/srv/git/orchard", "../orchard", "~/orchard", "file:///srv/orchard", r"C:\orchard", "http://[x/y", ""]
)
def test_a_local_path_is_no_remote_P3(url: str) -> None:
    assert canonical_remote(url) == ""


def test_ssh_on_the_port_of_https_is_the_same_host_P3() -> None:
    assert canonical_remote("ssh://git@ssh.github.com:443/ada/orchard.git") == "github.com/ada/orchard"


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    who += ["-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Machine:
    """An identity over real tables; a session writes down what it shows, as the write thread does."""

    def __init__(self, folder: Path) -> None:
        self.folded = TableSet(folder)
        self.clock = 0.0
        self.identity = Identity(self.folded.aliases, self._now)

    def _now(self) -> float:
        return self.clock

    def place(self, folder: Path | str, hint: Repository | None = None) -> PoolIdentity:
        self.clock += 10  # every look is a new one
        return self.identity.place(str(folder), hint, wait_s=20)

    def session(self, folder: Path | str, hint: Repository | None = None) -> str:
        place = self.place(folder, hint)
        if place.names:
            self.write(AliasAdded(pool=place.pool, names=place.names, evidence=place.evidence))
        return place.pool

    def write(self, operation: AliasAdded) -> None:
        seq = self.folded.tables.applied_seq + 1
        self.folded.tables.apply([Logged(seq=seq, at=seq, operation=operation)])


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path / "tables")
    yield found
    found.folded.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[], Machine]]:
    """Machines that know nothing yet."""
    made: list[Machine] = []

    def make() -> Machine:
        made.append(Machine(tmp_path / f"fresh-{len(made)}"))
        return made[-1]

    yield make
    for each in made:
        each.folded.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "commit", "--allow-empty", "-m", "second")
    return folder


def clone(repository: Path, name: str, url: str, *options: str) -> Path:
    folder = repository.parent / name
    git(repository.parent, "clone", *options, f"file://{repository}", name)
    git(folder, "remote", "set-url", "origin", url) if url else git(folder, "remote", "remove", "origin")
    return folder


# --- the same for every clone and worktree, different for a fork -------------------------------------------------
def test_a_worktree_and_a_subfolder_share_the_pool_P3_P17(machine: Machine, repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "tree"))
    (repository / "src").mkdir()
    pool = machine.session(repository)
    assert pool.startswith("project/")
    assert machine.session(tmp_path / "tree") == machine.session(repository / "src") == pool


def test_a_worktree_of_a_branch_without_history_shares_the_pool_P3(
    machine: Machine, fresh: Callable[[], Machine], repository: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "--detach", str(tmp_path / "pages"))
    git(tmp_path / "pages", "checkout", "--orphan", "pages")
    git(tmp_path / "pages", "commit", "--allow-empty", "-m", "another root")
    assert machine.session(tmp_path / "pages") == machine.session(repository)
    assert fresh().session(repository) == machine.session(repository)


def test_a_second_clone_shares_the_pool_and_a_fork_does_not_P3(
    machine: Machine, fresh: Callable[[], Machine], repository: Path
) -> None:
    git(repository, "remote", "add", "origin", ADA)
    second, fork = clone(repository, "second", "https://example.org/ada/orchard"), clone(repository, "fork", EVE)
    pool = machine.session(repository)
    assert machine.session(second) == pool != machine.session(fork)
    assert fresh().session(second) == pool  # on another machine, too
    assert machine.identity.alike(machine.place(fork)) == [(pool, "same root commit, different remote")]


def test_a_fork_is_the_same_once_the_user_says_so_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    fork = clone(repository, "fork", EVE)
    pool = machine.session(repository)
    root = machine.place(fork).probed.root_commit
    name = f"repository:{root}@example.org/eve/orchard"
    machine.write(AliasAdded(pool=pool, names=(name,), by="user"))
    assert machine.session(fork) == pool == machine.session(clone(repository, "another", EVE))
    assert "you bound it" in machine.place(fork).evidence


# --- decided once, extended by what is seen later ----------------------------------------------------------------
def test_a_renamed_remote_keeps_the_pool_for_every_clone_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    second = clone(repository, "second", ADA)
    pool = machine.session(repository)
    git(repository, "remote", "set-url", "origin", "git@example.org:ada/garden.git")
    assert "belonged to that project before" in machine.place(repository).evidence
    assert machine.session(repository) == pool
    assert machine.session(second) == pool  # still under the old name
    assert machine.session(clone(repository, "third", "https://example.org/ada/garden")) == pool


def test_no_remote_and_a_remote_added_later_is_one_pool_P3(machine: Machine, repository: Path, tmp_path: Path) -> None:
    pool = machine.session(repository)
    git(repository, "remote", "add", "origin", ADA)
    assert machine.session(repository) == pool
    assert machine.session(clone(repository, "second", ADA)) == pool
    assert machine.session(clone(repository, "fork", EVE)) != pool


def test_the_clone_may_be_seen_before_the_remote_in_the_first_checkout_P3(machine: Machine, repository: Path) -> None:
    pool = machine.session(repository)
    assert machine.session(clone(repository, "second", ADA)) == pool
    assert machine.session(clone(repository, "fork", EVE)) != pool


def test_a_clone_without_a_remote_is_the_one_project_with_its_root_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    pool = machine.session(repository)
    bare = clone(repository, "bare", "")
    assert machine.session(bare) == pool
    machine.session(clone(repository, "fork", EVE))
    assert machine.session(bare) == pool  # decided once: a second candidate changes nothing


def test_a_shallow_clone_does_not_know_its_root_and_joins_by_remote_P3(
    machine: Machine, fresh: Callable[[], Machine], repository: Path
) -> None:
    git(repository, "remote", "add", "origin", ADA)
    shallow = clone(repository, "shallow", ADA, "--depth=1")
    assert machine.place(shallow).probed.root_commit == ""
    assert machine.session(shallow) == machine.session(repository)
    other = fresh()  # the full one is seen first
    assert other.session(repository) == other.session(shallow)


def test_a_shallow_clone_that_is_completed_keeps_its_pool_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    shallow = clone(repository, "shallow", ADA, "--depth=1")
    pool = machine.session(shallow)
    git(shallow, "fetch", "--unshallow", f"file://{repository}")
    assert machine.place(shallow).probed.root_commit == git(repository, "rev-list", "--max-parents=0", "HEAD")
    assert machine.session(shallow) == pool


def test_a_deleted_folder_is_what_it_was_P3(machine: Machine, repository: Path) -> None:
    (repository / "src").mkdir()
    pool = machine.session(repository)
    shutil.rmtree(repository)
    place = machine.place(repository / "src" / "deep")
    assert place.pool == pool
    assert "no such folder" in place.evidence and "before" in place.evidence


def test_another_repository_in_the_same_place_is_another_project_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    pool = machine.session(repository)
    shutil.rmtree(repository)
    repository.mkdir()
    git(repository, "init")
    git(repository, "commit", "--allow-empty", "-m", "something else")
    git(repository, "remote", "add", "origin", "git@example.org:ada/else.git")
    assert machine.session(repository) != pool


def test_two_pools_that_are_there_are_not_joined_by_what_is_seen_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    fork = clone(repository, "fork", EVE)
    pools = machine.session(repository), machine.session(fork)
    git(repository, "remote", "set-url", "origin", EVE)
    assert machine.session(repository) == pools[1]  # now it is a clone of the fork, and says so
    git(repository, "remote", "set-url", "origin", ADA)
    assert (machine.session(repository), machine.session(fork)) == pools


# --- no git, and nothing to be seen ------------------------------------------------------------------------------
def test_an_id_file_is_an_identity_wherever_the_folder_lies_P3(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / ID_FILE).write_text("0123456789abcdef\n")
    pool = machine.session(tmp_path / "notes" / "deep")
    assert pool.startswith("project/")
    shutil.copytree(tmp_path / "notes", tmp_path / "copy")
    assert machine.session(tmp_path / "copy") == pool
    git(tmp_path / "notes", "init")
    git(tmp_path / "notes", "commit", "--allow-empty", "-m", "first")
    assert machine.session(tmp_path / "notes") == pool


@pytest.mark.parametrize("words", ["", "short", "../../etc/passwd", "UPPER-CASE-ID", "x" * 90, "\xff\xfe"])
def test_an_id_file_that_says_nothing_is_none_P3(machine: Machine, tmp_path: Path, words: str) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / ID_FILE).write_text(words, encoding="latin-1")
    assert machine.place(tmp_path / "notes").pool.startswith("unbound/")


def test_what_can_not_be_resolved_is_unbound_and_stable_P3(machine: Machine, tmp_path: Path) -> None:
    gone = machine.session(tmp_path / "gone")
    assert gone.startswith("unbound/")
    assert machine.session(tmp_path / "gone") == gone != machine.session(tmp_path / "other")
    assert machine.session(tmp_path / "gone" / "below") != gone  # an unbound folder speaks for itself alone
    assert machine.place("").pool == "personal"


def test_a_bound_folder_speaks_for_all_below_it_and_stays_when_it_becomes_a_repository_P3(
    machine: Machine, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    machine.session(notes)
    machine.write(AliasAdded(pool="project/x", names=(f"folder:{notes}",), by="user"))
    assert machine.session(notes / "deep") == machine.session(notes) == "project/x"
    git(notes, "init")
    git(notes, "commit", "--allow-empty", "-m", "first")
    assert machine.session(notes) == "project/x"


def test_a_hint_counts_where_the_daemon_can_not_look_P3(machine: Machine, repository: Path) -> None:
    git(repository, "remote", "add", "origin", ADA)
    pool = machine.session(repository)
    root = git(repository, "rev-list", "--max-parents=0", "HEAD")
    hint = Repository(root="/inside/a/container", root_commit=root, remote="https://example.org/ada/orchard")
    assert machine.session("/inside/a/container", hint) == pool
    shallow = Repository(root="/inside/a/container", remote=ADA)
    assert machine.session("/inside/a/container", shallow) == pool
    assert machine.session("/inside/a/container") != pool  # another container may have that path
    other = Repository(root="/work", root_commit="ab" * 20, remote=EVE)
    found = machine.place("/work", other)
    assert found.pool not in (pool, "personal") and found.title == "orchard"


def test_a_repository_without_commit_or_remote_is_only_a_folder_P3(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    git(tmp_path / "new", "init")
    assert machine.session(tmp_path / "new").startswith("unbound/")


# --- the cost ----------------------------------------------------------------------------------------------------
def test_libgit2_is_loaded_by_the_first_look_alone_P3() -> None:
    code = "import sys, memd.daemon.server.startup; print('pygit2' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "False"


def test_a_look_that_takes_long_keeps_nobody_and_is_taken_up_later_P3(tmp_path: Path, repository: Path) -> None:
    going = threading.Event()

    def slow(_: str) -> tuple[str, ...]:
        going.wait(20)
        return ()

    probe = RepoProbe(time.monotonic, slow)
    assert probe.probe(str(repository), 0.02).state == "unseen"
    going.set()
    assert probe.probe(str(repository), 20).root_commit


def test_a_known_checkout_is_not_walked_again_P3(machine: Machine, repository: Path) -> None:
    root = machine.place(repository).probed.root_commit
    machine.session(repository)
    probe = RepoProbe(time.monotonic, lambda _: ("ff" * 20, root))
    assert probe.probe(str(repository), 20).root_commit == root
