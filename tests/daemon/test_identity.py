"""Project identity: by repository, not by path (P3, P-17)."""

import subprocess
from pathlib import Path

import pytest

from memd.daemon.pools.identity import Identity, canonical_remote
from memd.protocol.event import Origin, Repository


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/Ada/Orchard.git",
        "http://example.org/ada/orchard",
        "git@example.org:ada/orchard.git",
        "ssh://git@example.org:22/ada/orchard",
        "https://user:token@example.org/ada/orchard/",
    ],
)
def test_any_form_of_a_remote_is_the_same_name_P3(url: str) -> None:
    assert canonical_remote(url) == "example.org/ada/orchard"


def test_a_local_path_is_no_remote() -> None:
    assert canonical_remote("/srv/git/orchard") == canonical_remote("../orchard") == canonical_remote("") == ""


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def pool(folder: Path) -> str:
    found = Identity().project(Origin(host="h", session="s", cwd=str(folder)))
    assert found is not None
    return found.pool


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "commit", "--allow-empty", "-m", "second")
    return folder


def test_a_worktree_and_a_subfolder_share_the_pool_P3_P17(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", str(tmp_path / "tree"))
    (repository / "src").mkdir()
    assert pool(repository) == pool(tmp_path / "tree") == pool(repository / "src")
    assert pool(repository).startswith("project/")


def test_a_clone_shares_the_pool_and_a_fork_does_not_P3(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "git@example.org:ada/orchard.git")
    for name, url in (("clone", "https://example.org/ada/orchard"), ("fork", "https://example.org/eve/orchard")):
        git(tmp_path, "clone", str(repository), name)
        git(tmp_path / name, "remote", "set-url", "origin", url)
    assert pool(tmp_path / "clone") == pool(repository) != pool(tmp_path / "fork")


def test_what_can_not_be_resolved_is_unbound_and_stable_P3(tmp_path: Path) -> None:
    assert pool(tmp_path / "gone") == pool(tmp_path / "gone") != pool(tmp_path / "other")
    assert pool(tmp_path / "gone").startswith("unbound/")
    assert Identity().project(Origin(host="h", session="s")) is None


def test_a_hint_counts_where_the_daemon_can_not_look_P3(repository: Path) -> None:
    hint = Repository(root="/inside/a/container", root_commit="ab" * 20, remote="git@example.org:ada/orchard.git")
    found = Identity().project(Origin(host="h", session="s", cwd="/inside/a/container", repository=hint))
    assert found is not None and found.pool.startswith("project/") and found.title == "orchard"
