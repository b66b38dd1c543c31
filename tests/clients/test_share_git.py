"""Git carries partitions: pushes, pulls, what the remote does wrong, and the user's repository (H1, H2)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from memd.clients.exchange import carrying
from memd.clients.exchange.git_exchange import GitExchange
from memd.protocol.errors import (
    InvalidRequest,
    MemdError,
    RemoteRefusal,
    RemoteUnreachable,
    StorageFull,
    Unavailable,
)
from memd.protocol.share import NEW_LINES
from memd.protocol.shared_lines import SEGMENT
from tests.clients.sharing_home import POOL, SharingHome
from tests.daemon.shared_authors import Author

ROOT = Path(__file__).parents[2]
ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-C", str(folder), *ADA, *arguments], check=check, capture_output=True, text=True, env=environment
    )
    return (done.stdout or done.stderr).strip()


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the user who runs the tests out of them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """An empty bare repository."""
    folder = tmp_path / "remote.git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare")
    return folder


NewHome = Callable[[int], SharingHome]


@pytest.fixture
def home(tmp_path: Path) -> NewHome:
    return lambda seed: SharingHome(tmp_path / f"home{seed}", seed)


def refs(remote: Path) -> dict[str, str]:
    lines = git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines if line)


def ref(author: Author) -> str:
    return f"refs/memd/v1/{author.partition}"


def raw_push(author: Author, remote: Path, tmp_path: Path) -> str:
    """Push a partition over whatever the remote has, as someone with a key and git could."""
    folder = tmp_path / f"raw-{author.partition}-{len(list(tmp_path.iterdir()))}.git"
    exchange = GitExchange(folder, None, str(remote))
    with exchange.exclusive():
        segments = {segment.number: segment.data for segment in author.segments()}
        commit = exchange.write(author.head(), segments)
        known = refs(remote).get(ref(author), "")
        exchange.push(author.partition, over=known)
    return commit


# --- the way there and back ------------------------------------------------------------------------------------------
def test_lines_that_one_home_pushes_another_has_H1_H2(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("Deploys go out on Tuesdays.", "The schema is frozen.")
    done = ada.push(str(remote))
    assert (done.count, done.commit) == (2, refs(remote)[ref(ada.author)])
    assert ada.state.delivered == (ada.author.partition, 0, 2)
    (taken,) = ben.pull(str(remote)).partitions
    assert (taken.partition, taken.added) == (ada.author.partition, 2)
    assert ben.state.taken[ada.author.partition].lines == ada.author.lines
    git(remote, "fsck", "--strict")


def test_a_second_pull_asks_the_daemon_for_nothing(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    ada.push(str(remote))
    ben.pull(str(remote))
    before = ben.requests
    again = ben.pull(str(remote))
    assert (again.partitions, again.unchanged, ben.requests) == ((), 1, before)


def test_a_push_with_nothing_new_makes_no_commit(remote: Path, home: NewHome) -> None:
    ada = home(1)
    ada.say("one")
    assert ada.push(str(remote)).commit == ada.push(str(remote)).commit
    assert git(remote, "rev-list", "--count", ref(ada.author)) == "1"


def test_the_commit_names_the_author_and_never_the_users_address(remote: Path, home: NewHome) -> None:
    ada = home(1)
    ada.say("one")
    ada.push(str(remote))
    ada.say("two")
    ada.push(str(remote))
    written = git(remote, "log", "--format=%an <%ae> %cn <%ce> %at", ref(ada.author)).splitlines()
    author = f"author 1 <{ada.author.partition}@memd.invalid>"
    assert written == [f"{author} {author} 1790000000"] * 2
    assert git(remote, "ls-tree", "-r", "--name-only", ref(ada.author)).split() == ["head.json", "ops/000000.jsonl"]


def test_many_lines_go_page_by_page_and_old_segments_are_not_asked_for_again(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    for number in range(SEGMENT * 11 + 7):
        ada.author.add(f"statement {number}")
    ada.save()
    ada.push(str(remote))
    assert ben.pull(str(remote)).partitions[0].added == SEGMENT * 11 + 7
    ada.say("one more")
    asked = ada.requests
    ada.push(str(remote))
    assert ada.requests == asked + 2  # the first page has the hashes of all segments
    asked = ben.requests
    assert ben.pull(str(remote)).partitions[0].added == 1
    assert ben.requests == asked + 1
    assert ben.state.taken[ada.author.partition].lines == ada.author.lines


def test_a_flood_of_a_known_author_comes_a_part_a_pull_H2(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    ada.push(str(remote))
    ben.pull(str(remote))
    ada.say(*(f"statement {number}" for number in range(3_000)))
    ada.push(str(remote))
    first = ben.pull(str(remote)).partitions[0]
    assert NEW_LINES <= first.added < 3_000 and first.left == 3_000 - first.added
    second = ben.pull(str(remote)).partitions[0]
    assert (second.added, second.left) == (first.left, 0)
    assert ben.pull(str(remote)).partitions == ()


def test_forgotten_words_are_in_no_object_of_any_private_repository_T10(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("The vault opens with wisteria.", "The schema is frozen.")
    ada.push(str(remote))
    ben.pull(str(remote))
    assert has_words(ada.folder / "share.git", b"wisteria")
    ada.author.forget(0)
    ada.save()
    assert ada.push(str(remote)).gone == 1
    assert git(remote, "rev-list", "--count", ref(ada.author)) == "1"
    assert not has_words(ada.folder / "share.git", b"wisteria")
    assert ben.pull(str(remote)).partitions[0].forgotten == 1
    assert not has_words(ben.folder / "share.git", b"wisteria")
    assert ben.state.taken[ada.author.partition].lines == ada.author.lines


def has_words(folder: Path, words: bytes) -> bool:
    command = ["git", "--git-dir", str(folder), "cat-file", "--batch-all-objects", "--batch"]
    return words in subprocess.run(command, check=True, capture_output=True).stdout


def test_a_lost_private_repository_is_made_again_H1(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    ada.push(str(remote))
    ben.say("other")
    ben.push(str(remote))
    ada.pull(str(remote))
    for lost in ("objects", ""):
        subprocess.run(["rm", "-rf", str(ada.folder / "share.git" / lost)], check=True)
        ada.say("two")
        done = ada.push(str(remote))
        assert not done.renewed
        assert git(remote, "show", f"{ref(ada.author)}:ops/000000.jsonl").splitlines() == [
            line.decode() for line in ada.author.lines
        ]
        subprocess.run(["rm", "-rf", str(ada.folder / "share.git")], check=True)
        assert ada.pull(str(remote)).partitions[0].added == 0
    assert ada.state.taken[ben.author.partition].lines == ben.author.lines


def test_a_copied_home_gets_a_partition_of_its_own_and_nothing_is_lost_H1(
    remote: Path, home: NewHome, tmp_path: Path
) -> None:
    ada, reader = home(1), home(9)
    ada.say("one")
    ada.push(str(remote))
    subprocess.run(["cp", "-r", str(ada.folder), str(tmp_path / "copy")], check=True)
    copy = SharingHome(tmp_path / "copy", 1)
    ada.say("two of the first", "three of the first")
    ada.push(str(remote))
    copy.say("two of the copy")
    done = copy.push(str(remote))
    assert done.renewed
    assert done.partition != ada.author.partition
    reader.pull(str(remote))
    said = b"\n".join(line for known in reader.state.taken.values() for line in known.lines)
    for text in (b"one", b"two of the first", b"three of the first", b"two of the copy"):
        assert b'"text":"%s"' % text in said


# --- the remote does wrong -------------------------------------------------------------------------------------------
def test_refs_that_a_mirror_push_deleted_come_back_with_any_members_push(
    remote: Path, home: NewHome, tmp_path: Path
) -> None:
    homes = [home(seed) for seed in range(1, 5)]
    for one in homes:
        one.say(f"statement of {one.author.name}")
        one.push(str(remote))
    homes[0].pull(str(remote))
    before = refs(remote)
    assert len(before) == 4
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--bare", str(remote), str(clone))
    git(clone, "push", "-q", "--mirror", str(remote))
    assert refs(remote) == {}
    assert len(homes[0].push(str(remote)).restored) == 3
    assert set(refs(remote)) == set(before)
    reader = home(9)
    reader.pull(str(remote))
    assert {name: known.lines for name, known in reader.state.taken.items()} == {
        one.author.partition: one.author.lines for one in homes
    }
    homes[2].say("and one more")
    homes[2].push(str(remote))
    assert reader.pull(str(remote)).partitions[0].added == 1


def test_what_others_shared_never_goes_to_another_remote_H1(remote: Path, home: NewHome, tmp_path: Path) -> None:
    other = tmp_path / "other.git"
    git(tmp_path, "init", "-q", "--bare", str(other))
    ada, ben = home(1), home(2)
    ada.say("for the few who read the first remote")
    ada.push(str(remote))
    ben.pull(str(remote))
    ben.say("for all")
    assert ben.push(str(other)).restored == ()
    assert refs(other).keys() == {ref(ben.author)}
    ben.push(str(remote))
    git(remote, "update-ref", "-d", ref(ada.author))
    assert ben.push(str(remote)).restored == (ada.author.partition,), "the first remote had it"


def test_a_rolled_back_ref_is_put_right_by_its_author_and_by_others(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    old = ada.push(str(remote)).commit
    ben.pull(str(remote))
    ada.say("two")
    new = ada.push(str(remote)).commit
    ben.pull(str(remote))
    git(remote, "update-ref", ref(ada.author), old)
    assert ben.pull(str(remote)).partitions[0].problem
    ben.say("other")
    assert ben.push(str(remote)).restored == (ada.author.partition,)
    git(remote, "update-ref", ref(ada.author), old)
    assert not ada.push(str(remote)).renewed
    assert refs(remote)[ref(ada.author)] == new


@pytest.mark.parametrize("kind", ["other key", "appended", "no partition"])
def test_what_someone_else_writes_into_a_ref_its_author_overwrites(
    remote: Path, home: NewHome, tmp_path: Path, kind: str
) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    ada.push(str(remote))
    ben.pull(str(remote))
    other = Author(7)
    other.add("forged")
    commit = raw_push(other, remote, tmp_path)
    if kind == "no partition":
        commit = git(remote, "commit-tree", "-m", "x", git(remote, "mktree"))
    elif kind == "appended":
        commit = appended(remote, ref(ada.author))
    git(remote, "update-ref", ref(ada.author), commit)
    git(remote, "update-ref", "-d", ref(other))
    assert refs(remote)[ref(ada.author)] == commit
    pulled = ben.pull(str(remote))
    assert pulled.refused or pulled.partitions[0].problem
    assert ben.state.taken[ada.author.partition].lines == ada.author.lines
    ada.say("two")
    assert not ada.push(str(remote)).renewed
    assert ben.pull(str(remote)).partitions[0].added == 1


def appended(remote: Path, name: str) -> str:
    """Append a line under the head that stands there."""
    repository = pygit2.Repository(str(remote))
    tree = repository.references[name].peel(pygit2.Tree)
    data = tree["ops/000000.jsonl"].peel(pygit2.Blob).data
    ops, top = repository.TreeBuilder(), repository.TreeBuilder(tree)
    ops.insert("000000.jsonl", repository.create_blob(data + data), pygit2.enums.FileMode.BLOB)
    top.insert("ops", ops.write(), pygit2.enums.FileMode.TREE)
    mallory = pygit2.Signature("Mallory", "m@example.org")
    return str(repository.create_commit(None, mallory, mallory, "x", top.write(), []))


@pytest.mark.parametrize("filters", [True, False])
def test_a_blob_of_40_MB_is_refused_before_it_is_read_and_keeps_nobody_away(
    remote: Path, home: NewHome, tmp_path: Path, filters: bool
) -> None:
    git(remote, "config", "uploadpack.allowFilter", str(filters).lower())
    ada, ben, big = home(1), home(2), Author(7)
    ada.say("one")
    ada.push(str(remote))
    big.add("large")
    commit = raw_push(big, remote, tmp_path)
    repository = pygit2.Repository(str(remote))
    ops = repository.TreeBuilder()
    ops.insert("000000.jsonl", repository.create_blob(b"\0" * 40_000_000), pygit2.enums.FileMode.BLOB)
    top = repository.TreeBuilder(repository[commit].peel(pygit2.Tree))
    top.insert("ops", ops.write(), pygit2.enums.FileMode.TREE)
    mallory = pygit2.Signature("Mallory", "m@example.org")
    commit = str(repository.create_commit(None, mallory, mallory, "x", top.write(), []))
    git(remote, "update-ref", ref(big), commit)
    for _ in range(2):
        pulled = ben.pull(f"file://{remote}")
        assert [refused.partition for refused in pulled.refused] == [big.partition]
    assert ben.state.taken.keys() == {ada.author.partition}
    if filters:
        assert sum(file.stat().st_size for file in (ben.folder / "share.git").rglob("*")) < 500_000
    raw_push(big, remote, tmp_path)
    assert ben.pull(f"file://{remote}").refused == ()
    assert ben.state.taken[big.partition].lines == big.lines
    ben.say("own")
    ben.push(f"file://{remote}")


def test_a_large_blob_in_an_earlier_commit_does_not_keep_forgotten_words_T10(
    remote: Path, home: NewHome, tmp_path: Path
) -> None:
    git(remote, "config", "uploadpack.allowFilter", "true")
    ada, ben, big = home(1), home(2), Author(7)
    big.add("large")
    raw_push(big, remote, tmp_path)
    repository = pygit2.Repository(str(remote))
    top = repository.TreeBuilder()
    top.insert("zeros", repository.create_blob(b"\0" * 4_000_000), pygit2.enums.FileMode.BLOB)
    mallory, good = pygit2.Signature("Mallory", "m@example.org"), repository.references[ref(big)].peel(pygit2.Tree).id
    first = repository.create_commit(None, mallory, mallory, "x", top.write(), [])
    second = repository.create_commit(None, mallory, mallory, "x", good, [first])
    repository.references.create(ref(big), second, force=True)
    ada.say("The vault opens with wisteria.")
    ada.push(f"file://{remote}")
    ben.pull(f"file://{remote}")
    assert len(ben.state.taken) == 2
    ada.author.forget(0)
    ada.save()
    ada.push(f"file://{remote}")
    ben.pull(f"file://{remote}")
    assert not has_words(ben.folder / "share.git", b"wisteria")
    git(remote, "update-ref", "-d", ref(big))
    ben.say("own")
    assert ben.push(f"file://{remote}").restored == (big.partition,)


def test_an_object_that_fsck_refuses_keeps_no_other_partition_away(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    ada.push(str(remote))
    broken = b"100644 head.json\0" + bytes(20)
    tree = subprocess.run(
        ["git", "-C", str(remote), "hash-object", "--literally", "-t", "tree", "-w", "--stdin"],
        input=broken, check=True, capture_output=True, text=False,
    ).stdout.decode().strip()  # fmt: skip
    commit = git(remote, "commit-tree", "-m", "x", tree)
    name = Author(7).partition
    (remote / "refs/memd/v1" / name).write_text(commit + "\n")
    pulled = ben.pull(f"file://{remote}")
    assert [refused.partition for refused in pulled.refused] == [name]
    assert ben.state.taken.keys() == {ada.author.partition}


def test_names_that_are_no_partitions_are_left_alone(remote: Path, home: NewHome) -> None:
    ada, ben = home(1), home(2)
    ada.say("one")
    commit = ada.push(str(remote)).commit
    for name in ("x", "UPPER", "a/b/c", "x" * 200, ada.author.partition + "x"):
        git(remote, "update-ref", f"refs/memd/v1/{name}", commit)
    with (remote / "packed-refs").open("a") as file:
        file.write(f"{commit} refs/memd/v1/../x\n{commit} refs/memd/v1/..\n")
    try:
        ben.pull(f"file://{remote}")
    except RemoteRefusal:  # git itself refuses such a remote
        (remote / "packed-refs").unlink()
        ben.pull(f"file://{remote}")
    assert ben.state.taken.keys() == {ada.author.partition}
    assert not list(ben.folder.glob("**/x"))


def test_a_host_that_takes_no_such_refs_says_so_and_another_remote_is_offered(remote: Path, home: NewHome) -> None:
    (remote / "hooks").mkdir(exist_ok=True)
    hook = remote / "hooks/pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read a b name; do case $name in refs/heads/*|refs/tags/*) ;; *) exit 1;; esac; done\n"
    )
    hook.chmod(0o755)
    ada = home(1)
    ada.say("one")
    with pytest.raises(RemoteRefusal, match="pre-receive hook declined") as refused:
        ada.push(str(remote))
    assert refused.value.exit_code == 4
    assert "memd share on --remote" in refused.value.hint
    assert ada.state.delivered == ("", 0, 0)


def test_a_push_that_the_host_drops_is_no_success(remote: Path, home: NewHome) -> None:
    hook = remote / "hooks/post-receive"
    hook.write_text('#!/bin/sh\nwhile read a b name; do git update-ref -d "$name"; done\n')
    hook.chmod(0o755)
    ada = home(1)
    ada.say("one")
    with pytest.raises(RemoteRefusal, match="took the push"):
        ada.push(str(remote))
    assert ada.state.delivered == ("", 0, 0)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/x.git", "git://127.0.0.1:1/x.git", "https://no-such-host.invalid/x.git"]
)
def test_a_remote_that_cannot_be_reached_is_exit_code_3(home: NewHome, address: str) -> None:
    ada = home(1)
    ada.say("one")
    for step in (ada.push, ada.pull):
        with pytest.raises(RemoteUnreachable) as error:
            step(address)
        assert error.value.exit_code == 3
    assert ada.state.delivered == ("", 0, 0)


@pytest.mark.parametrize("address", ["", "--upload-pack=touch x", "ext::sh -c 'touch x'", "a\nb"])
def test_an_address_that_is_no_address_runs_nothing(home: NewHome, tmp_path: Path, address: str) -> None:
    ada = home(1)
    ada.say("one")
    with pytest.raises(MemdError):
        ada.push(address)
    assert not list(tmp_path.rglob("x"))


def test_a_silent_remote_is_given_up_in_the_background(home: NewHome, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("memd.clients.exchange.git_transport.SILENCE_S", 0.5)
    ada = home(1)
    ada.say("one")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RemoteUnreachable, match="did not answer"):
        ada.push(f"git://127.0.0.1:{silent.getsockname()[1]}/x.git")


def test_a_folder_that_is_no_repository_is_exit_code_4(home: NewHome, tmp_path: Path) -> None:
    ada = home(1)
    ada.say("one")
    for address in (str(tmp_path / "nothing.git"), str(tmp_path)):
        with pytest.raises(RemoteRefusal, match="does not appear to be a git repository") as error:
            ada.push(address)
        assert error.value.exit_code == 4


def test_a_missing_or_old_git_is_told_with_the_version_that_works(
    home: NewHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = home(1)
    ada.say("one")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(InvalidRequest, match="git is not installed") as error:
        ada.push("/remote.git")
    assert "2.31" in error.value.hint
    (folder / "git").write_text("#!/bin/sh\necho git version 2.30.9\nexit 128\n")
    (folder / "git").chmod(0o755)
    with pytest.raises(InvalidRequest, match=r"git 2\.30 is too old"):
        ada.push("/remote.git")


def test_a_full_disk_is_told_and_the_next_push_goes_on_P12(remote: Path, home: NewHome, tmp_path: Path) -> None:
    ada = home(1)
    for number in range(2_000):
        ada.author.add(f"statement {number} {os.urandom(400).hex()}")
    ada.save()
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "memd-full", str(small)]
    if (mounted := subprocess.run(mount, check=False, capture_output=True, text=True)).returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.strip()}")
    try:
        exchange = GitExchange(small / "share.git", None, str(remote))
        for _ in range(2):
            with pytest.raises(StorageFull):
                carrying.push(ada, POOL, exchange)
        assert ada.state.delivered == ("", 0, 0)
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        assert carrying.push(ada, POOL, exchange).count == 2_000
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    git(remote, "fsck", "--strict")


def test_two_processes_do_not_use_a_private_repository_at_once(
    remote: Path, home: NewHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memd.clients.exchange.git_exchange.LOCK_S", 0.1)
    ada = home(1)
    ada.say("one")
    with ada.exchange(str(remote)).exclusive(), pytest.raises(Unavailable, match="another memd"):
        ada.push(str(remote))
    ada.push(str(remote))


# --- many at once, and kills -----------------------------------------------------------------------------------------
def program(folder: Path, seed: int, address: str, times: int, *steps: str, kill: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.clients.sharing_home", str(folder), str(seed), address, str(times), *steps]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, carrying.KILL_POINT: kill})


@pytest.mark.parametrize("pushes", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_eight_homes_push_at_once_and_nothing_fails_H1(
    remote: Path, tmp_path: Path, home: NewHome, pushes: int
) -> None:
    running = [program(tmp_path / f"home{n}", n, str(remote), pushes, "say", "push") for n in range(8)]
    assert [one.wait() for one in running] == [0] * 8
    reader = home(99)
    reader.pull(str(remote))
    homes = [home(n) for n in range(8)]
    assert {name: known.lines for name, known in reader.state.taken.items()} == {
        one.author.partition: one.author.lines for one in homes
    }
    assert {len(one.author.lines) for one in homes} == {pushes}
    git(remote, "fsck", "--strict")


@pytest.mark.parametrize("point", carrying.POINTS)
def test_a_kill_at_any_point_changes_nothing_H1(remote: Path, tmp_path: Path, home: NewHome, point: str) -> None:
    ben = home(2)
    ben.say("other")
    ben.push(str(remote))
    folder = tmp_path / "home1"
    SharingHome(folder, 1).say("one")
    program(folder, 1, str(remote), 1, "push", "pull").wait()
    SharingHome(folder, 1).say("two")
    ben.say("more")
    ben.push(str(remote))
    assert program(folder, 1, str(remote), 1, "push", "pull", kill=point).wait() == -9
    assert program(folder, 1, str(remote), 1, "push", "pull").wait() == 0
    ada = home(1)
    assert ada.state.delivered == (ada.author.partition, 0, 2)
    assert ada.state.taken[ben.author.partition].lines == ben.author.lines
    assert git(remote, "rev-list", "--count", ref(ada.author)) == "2"
    exchange = ada.exchange(str(remote))
    with exchange.exclusive():
        assert exchange.commit("taken", ada.author.partition) == refs(remote)[ref(ada.author)]
        assert exchange.commit("taken", ben.author.partition) == refs(remote)[ref(ben.author)]


# --- the user's repository -------------------------------------------------------------------------------------------
@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The user's repository, with a worktree, hooks that would leave a trace, and work that no ref holds."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "Start")
    git(folder, "commit-tree", "-m", "dangling", "HEAD^{tree}")
    git(folder, "worktree", "add", "-q", str(tmp_path / "worktree"), "-b", "other")
    for name in (
        "pre-push",
        "post-update",
        "reference-transaction",
        "post-checkout",
        "pre-auto-gc",
        "post-index-change",
    ):
        hook = folder / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git(folder, "config", "core.hooksPath", str(folder / ".git/hooks"))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("variables", [False, True])
def test_the_users_repository_is_as_before_and_git_variables_have_no_effect_H1(
    remote: Path, home: NewHome, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: bool
) -> None:
    ada, ben = home(1), home(2)
    before = content(checkout)
    if variables:
        monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(checkout))
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
        monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(checkout / ".git/objects"))
        monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(checkout / ".git/objects"))
        monkeypatch.setenv("GIT_NAMESPACE", "elsewhere")
        monkeypatch.setenv("GIT_COMMON_DIR", str(checkout / ".git"))
    for one, other in ((ada, ben), (ben, ada)):
        one.say("statement")
        carrying.sync(one, POOL, one.exchange(str(remote), checkout))
        carrying.pull(other, POOL, other.exchange(str(remote), checkout))
    assert ben.state.taken.keys() == {ada.author.partition}
    ada.author.forget(0)
    ada.save()
    carrying.push(ada, POOL, ada.exchange(str(remote), checkout))
    assert content(checkout) == before
    assert not (tmp_path / "hook-ran").exists()
    assert not (tmp_path / "index").exists()
    assert set(refs(remote)) == {ref(ada.author), ref(ben.author)}
    assert (ada.folder / "share.git").stat().st_mode & 0o777 == 0o700
    assert not list((ada.folder / "share.git/logs").rglob("*"))


@pytest.mark.parametrize("where", ["local", "global", "include"])
def test_another_name_of_the_address_in_the_checkout_works_H1(
    remote: Path, home: NewHome, checkout: Path, tmp_path: Path, where: str
) -> None:
    setting = (f"url.{remote.parent}/.insteadOf", "work:")
    if where == "local":
        git(checkout, "config", *setting)
    elif where == "global":
        git(tmp_path, "config", "--file", str(tmp_path / ".gitconfig"), *setting)
    else:
        git(tmp_path, "config", "--file", str(tmp_path / "work.inc"), *setting)
        condition = f"includeIf.gitdir:{checkout}/.path"
        git(tmp_path, "config", "--file", str(tmp_path / ".gitconfig"), condition, str(tmp_path / "work.inc"))
    ada = home(1)
    ada.say("one")
    carrying.push(ada, POOL, ada.exchange("work:remote.git", checkout))
    assert ref(ada.author) in refs(remote)


def test_the_ssh_command_of_the_checkout_works_H1(remote: Path, home: NewHome, checkout: Path, tmp_path: Path) -> None:
    script = tmp_path / "connect"
    script.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nfor last; do :; done\neval "$last"\n')
    script.chmod(0o755)
    git(checkout, "config", "core.sshCommand", str(script))
    git(checkout, "config", "ssh.variant", "simple")
    ada = home(1)
    ada.say("one")
    carrying.push(ada, POOL, ada.exchange(f"git@host.invalid:{remote}", checkout))
    assert ref(ada.author) in refs(remote)
    assert "host.invalid" in (tmp_path / "asked").read_text()


def test_ssh_asks_nothing_in_the_background(home: NewHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\necho "git@h: Permission denied (publickey)." >&2\nexit 255\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    ada = home(1)
    ada.say("one")
    with pytest.raises(RemoteUnreachable, match="Permission denied"):
        ada.push("git@host.invalid:x.git")
    assert "BatchMode=yes" in (tmp_path / "asked").read_text()
