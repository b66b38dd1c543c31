"""Git carries partitions between real daemons: pushes, pulls, what the remote does wrong, and the user's repository
(H1, H2)."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

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
from memd.protocol.share import FIRST_LINES, NEW_LINES, TAKEN_SEGMENTS
from memd.protocol.shared_lines import SEGMENT, verified_head
from tests.clients.sharing_members import (
    Counting,
    Member,
    SharedProject,
    author_of,
    git,
    has_words,
    own_settings,
    raw_push,
    refs,
    running_members,
)
from tests.conftest import RunningDaemon
from tests.daemon.shared_authors import Author

__all__ = ["own_settings"]


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningDaemon]]:
    """The daemons of Ada and Ben; each test has a project of its own in them."""
    with running_members(tmp_path_factory.mktemp("homes"), "Ada", "Ben") as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> SharedProject:
    """A new project."""
    return SharedProject(tmp_path)


@pytest.fixture
def remote(project: SharedProject) -> Path:
    """The bare repository of the project."""
    return project.remote


@pytest.fixture
def ada(daemons: list[RunningDaemon], project: SharedProject) -> Iterator[Member]:
    """A member of the project."""
    with Member(daemons[0], project) as member:
        yield member


@pytest.fixture
def ben(daemons: list[RunningDaemon], project: SharedProject) -> Iterator[Member]:
    """Another one."""
    with Member(daemons[1], project) as member:
        yield member


def ref(author: Author) -> str:
    return f"refs/memd/v1/{author.partition}"


# --- the way there and back ------------------------------------------------------------------------------------------
def test_lines_that_one_home_pushes_another_has_H1_H2(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("Deploys go out on Tuesdays.", "The schema is frozen.")
    done = ada.push()
    assert (done.count, done.commit) == (2, refs(remote)[ada.ref])
    assert ada.delivered() == (2, 2)
    (taken,) = ben.pull().partitions
    assert (taken.partition, taken.added) == (ada.partition, 2)
    assert ben.taken() == {ada.partition: ["Deploys go out on Tuesdays.", "The schema is frozen."]}
    git(remote, "fsck", "--strict")


def test_a_second_pull_asks_the_daemon_for_nothing(ada: Member, ben: Member) -> None:
    ada.say("one")
    ada.push()
    ben.pull()
    counting = Counting(ben)
    again = ben.pull()
    assert (again.partitions, again.unchanged, counting.requests) == ((), 1, 0)


def test_a_push_with_nothing_new_makes_no_commit(remote: Path, ada: Member) -> None:
    ada.say("one")
    assert ada.push().commit == ada.push().commit
    assert git(remote, "rev-list", "--count", ada.ref) == "1"


def test_the_commit_names_the_author_and_never_the_users_address(remote: Path, ada: Member) -> None:
    signed: list[int] = []
    for text in ("one", "two"):
        ada.say(text)
        ada.push()
        signed.append(verified_head(ada.client.prepare_share(ada.pool).head).at // 1_000_000)
    written = git(remote, "log", "--reverse", "--format=%an <%ae> %cn <%ce> %at", ada.ref).splitlines()
    name = f"Ada <{ada.partition}@memd.invalid>"
    assert written == [f"{name} {name} {at}" for at in signed]
    assert git(remote, "ls-tree", "-r", "--name-only", ada.ref).split() == ["head.json", "ops/000000.jsonl"]


def test_many_lines_go_page_by_page_and_come_a_part_a_pull_H2(ada: Member, ben: Member) -> None:
    ada.say("one")
    ada.push()
    ben.pull()
    many = SEGMENT * TAKEN_SEGMENTS + SEGMENT
    ada.say(*(f"statement {number}" for number in range(many)))
    pages, takes = Counting(ada), Counting(ben)
    assert (ada.push().added, pages.requests) == (many, 2)
    first = ben.pull().partitions[0]
    assert NEW_LINES <= first.added < many <= FIRST_LINES and first.left == many - first.added
    second = ben.pull().partitions[0]
    assert (second.added, second.left) == (first.left, 0)
    assert ben.pull().partitions == ()
    ada.say("one more")
    pages.requests = takes.requests = 0
    ada.push()
    assert pages.requests == 2, "the first page has the hashes of all segments"
    assert (ben.pull().partitions[0].added, takes.requests) == (1, 1)
    assert ben.others()[ada.partition].lines == many + 2
    assert ben.tree("taken", ada.partition) == ada.tree("v1", ada.partition)


def test_forgotten_words_are_in_no_object_of_any_private_repository_T10(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("The vault opens with wisteria.", "The schema is frozen.")
    ada.push()
    ben.pull()
    assert has_words(ada.private, b"wisteria")
    ada.forget("The vault opens with wisteria.")
    assert ada.push().gone == 1
    assert git(remote, "rev-list", "--count", ada.ref) == "1"
    assert not has_words(ada.private, b"wisteria")
    assert ben.pull().partitions[0].forgotten == 1
    assert not has_words(ben.private, b"wisteria")
    assert ben.tree("taken", ada.partition) == ada.tree("v1", ada.partition)


def test_a_lost_private_repository_is_made_again_H1(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("one")
    ada.push()
    ben.say("other")
    ben.push()
    ada.pull()
    for lost in ("objects", ""):
        subprocess.run(["rm", "-rf", str(ada.private / lost)], check=True)
        ada.say(f"two after {lost}")
        done = ada.push()
        assert not done.renewed
        assert git(remote, "show", f"{ada.ref}:ops/000000.jsonl").encode().splitlines() == ada.lines
        subprocess.run(["rm", "-rf", str(ada.private)], check=True)
        assert ada.pull().partitions[0].added == 0
    assert ada.taken() == {ben.partition: ["other"]}


# --- the remote does wrong -------------------------------------------------------------------------------------------
def test_refs_that_a_mirror_push_deleted_come_back_with_any_members_push(
    remote: Path, ada: Member, ben: Member, tmp_path: Path
) -> None:
    for one in (ada, ben):
        one.say(f"statement of {one.name}")
        one.push()
    for seed in (7, 8):
        raw_push(author_of(ada, seed, f"statement of {seed}"), remote)
    ada.pull()
    before = refs(remote)
    assert len(before) == 4
    mirror = tmp_path / "mirror"
    git(tmp_path, "clone", "-q", "--bare", str(remote), str(mirror))
    git(mirror, "push", "-q", "--mirror", str(remote))
    assert refs(remote) == {}
    assert len(ada.push().restored) == 3
    assert set(refs(remote)) == set(before)
    ben.pull()
    everything = ben.taken() | {ben.partition: ada.taken()[ben.partition]}
    assert sorted(text for [text] in everything.values()) == [f"statement of {one}" for one in (7, 8, "Ada", "Ben")]
    ben.say("and one more")
    ben.push()
    assert ada.pull().partitions[0].added == 1


def test_what_others_shared_never_goes_to_another_remote_H1(
    remote: Path, ada: Member, ben: Member, tmp_path: Path
) -> None:
    other = tmp_path / "other.git"
    git(tmp_path, "init", "-q", "--bare", str(other))
    ada.say("for the few who read the first remote")
    ada.push()
    ben.pull()
    ben.say("for all")
    assert ben.push(str(other)).restored == ()
    assert refs(other).keys() == {ben.ref}
    ben.push()
    git(remote, "update-ref", "-d", ada.ref)
    assert ben.push().restored == (ada.partition,), "the first remote had it"


def test_a_rolled_back_ref_is_put_right_by_its_author_and_by_others(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("one")
    old = ada.push().commit
    ben.pull()
    ada.say("two")
    new = ada.push().commit
    ben.pull()
    git(remote, "update-ref", ada.ref, old)
    assert ben.pull().partitions[0].problem
    ben.say("other")
    assert ben.push().restored == (ada.partition,)
    git(remote, "update-ref", ada.ref, old)
    assert not ada.push().renewed
    assert refs(remote)[ada.ref] == new


def test_a_partition_that_its_author_closed_comes_back_closed(remote: Path, ada: Member, ben: Member) -> None:
    ben.say("The vault opens with wisteria.")
    ben.push()
    ada.pull()
    ben.client.close_share(ben.pool, withdraw=True)
    assert ben.push().gone == 1
    assert ada.pull().partitions[0].closed
    git(remote, "update-ref", "-d", ben.ref)
    ada.say("one")
    assert ada.push().restored == (ben.partition,)
    head = verified_head(git(remote, "show", f"{ben.ref}:head.json").encode())
    assert (head.closed, head.epoch) == (True, 1)
    assert "wisteria" not in git(remote, "show", f"{ben.ref}:ops/000000.jsonl")


def test_a_home_that_never_saw_the_new_state_can_not_tell_that_it_is_withheld(
    remote: Path, ada: Member, ben: Member
) -> None:
    ada.say("one")
    old = ada.push().commit
    ada.say("two")
    new = ada.push().commit
    git(remote, "update-ref", ada.ref, old)
    assert not ben.pull().partitions[0].problem and ben.taken() == {ada.partition: ["one"]}
    git(remote, "update-ref", ada.ref, new)
    assert ben.pull().partitions[0].added == 1


def checkout_like(project: SharedProject, kind: str) -> Path:
    """Another checkout of the project: shallow, partial or a worktree, which knows it by the address of its origin."""
    git(project.clone, "commit", "-q", "--allow-empty", "-m", "water")
    git(project.clone, "push", "-q", "origin", "HEAD:main")
    git(project.remote, "config", "uploadpack.allowFilter", "true")
    other = project.folder / kind
    if kind == "worktree":
        git(project.clone, "worktree", "add", "-q", str(other), "-b", "other")
    else:
        option = "--depth=1" if kind == "shallow" else "--filter=blob:none"
        git(project.folder, "clone", "-q", option, "-b", "main", f"file://{project.remote}", str(other))
    for checkout in (project.clone, other):
        git(checkout, "remote", "set-url", "origin", f"https://example.org/{project.folder.name}.git")
    return other


@pytest.mark.parametrize("kind", ["partial", "worktree"])
def test_a_partial_clone_and_a_worktree_share_as_a_clone_does(
    daemons: list[RunningDaemon], project: SharedProject, kind: str
) -> None:
    other = checkout_like(project, kind)
    with Member(daemons[0], project) as ada:
        project.clone = other
        with Member(daemons[1], project) as ben:
            for one, reader in ((ada, ben), (ben, ada)):
                one.say(f"The press stands in row {one.name}.")
                one.push()
                assert not reader.pull().refused
                assert reader.taken() == {one.partition: [f"The press stands in row {one.name}."]}


def test_a_shallow_clone_whose_root_commit_is_unknown_is_told_how_to_go_on(
    daemons: list[RunningDaemon], project: SharedProject
) -> None:
    other = checkout_like(project, "shallow")
    with Member(daemons[0], project) as ada:
        ada.say("The press stands in row A.")
        ada.push()
        project.clone = other
        with Member(daemons[1], project) as ben:
            assert "memd scope bind" in ben.pull().partitions[0].problem
            git(other, "fetch", "-q", "--unshallow", f"file://{project.remote}", "main")
            ben.client.bind_scope(str(other), ben.pool)
            assert ben.pull().partitions[0].problem == ""
            assert ben.taken() == {ada.partition: ["The press stands in row A."]}


@pytest.mark.parametrize("kind", ["other key", "appended", "fork", "old words", "no partition"])
def test_what_someone_else_writes_into_a_ref_its_author_overwrites(
    remote: Path, ada: Member, ben: Member, kind: str
) -> None:
    ada.say("one")
    ada.push()
    ben.pull()
    other = author_of(ada, 7, "forged")
    commit = raw_push(other, remote)
    if kind == "no partition":
        commit = git(remote, "commit-tree", "-m", "x", git(remote, "mktree"))
    elif kind != "other key":
        commit = rewritten(remote, ada.ref, kind)
    git(remote, "update-ref", ada.ref, commit)
    git(remote, "update-ref", "-d", ref(other))
    assert refs(remote)[ada.ref] == commit
    pulled = ben.pull()
    assert pulled.refused or pulled.partitions[0].problem
    assert ben.taken() == {ada.partition: ["one"]}
    ada.say("two")
    assert not ada.push().renewed
    assert ben.pull().partitions[0].added == 1
    assert ben.taken() == {ada.partition: ["one", "two"]}


def rewritten(remote: Path, name: str, kind: str) -> str:
    """Write other lines under the head that stands there, as its next commit or without its history."""
    repository = pygit2.Repository(str(remote))
    before = repository.references[name].peel(pygit2.Commit)
    tree = before.tree
    data = tree["ops/000000.jsonl"].peel(pygit2.Blob).data
    data = data.replace(b'"one"', b'"won"') if kind == "old words" else data + data
    ops, top = repository.TreeBuilder(), repository.TreeBuilder(tree)
    ops.insert("000000.jsonl", repository.create_blob(data), pygit2.enums.FileMode.BLOB)
    top.insert("ops", ops.write(), pygit2.enums.FileMode.TREE)
    mallory = pygit2.Signature("Mallory", "m@example.org")
    parents = [] if kind == "fork" else [before.id]
    return str(repository.create_commit(None, mallory, mallory, "x", top.write(), parents))


@pytest.mark.parametrize("filters", [True, False])
def test_a_blob_of_40_MB_is_refused_before_it_is_read_and_keeps_nobody_away(
    remote: Path, ada: Member, ben: Member, filters: bool
) -> None:
    git(remote, "config", "uploadpack.allowFilter", str(filters).lower())
    ada.say("one")
    ada.push()
    big = author_of(ada, 7, "large")
    commit = raw_push(big, remote)
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
    assert ben.taken().keys() == {ada.partition}
    if filters:
        assert sum(file.stat().st_size for file in ben.private.rglob("*")) < 500_000
    raw_push(big, remote)
    assert ben.pull(f"file://{remote}").refused == ()
    assert ben.taken()[big.partition] == ["large"]
    ben.say("own")
    ben.push(f"file://{remote}")


def test_a_large_blob_in_an_earlier_commit_does_not_keep_forgotten_words_T10(
    remote: Path, ada: Member, ben: Member
) -> None:
    git(remote, "config", "uploadpack.allowFilter", "true")
    big = author_of(ada, 7, "large")
    raw_push(big, remote)
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
    assert len(ben.taken()) == 2
    ada.forget("The vault opens with wisteria.")
    ada.push(f"file://{remote}")
    ben.pull(f"file://{remote}")
    assert not has_words(ben.private, b"wisteria")
    git(remote, "update-ref", "-d", ref(big))
    ben.say("own")
    assert ben.push(f"file://{remote}").restored == (big.partition,)


def test_an_object_that_fsck_refuses_keeps_no_other_partition_away(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("one")
    ada.push()
    broken = b"100644 head.json\0" + bytes(20)
    tree = subprocess.run(
        ["git", "-C", str(remote), "hash-object", "--literally", "-t", "tree", "-w", "--stdin"],
        input=broken, check=True, capture_output=True, text=False,
    ).stdout.decode().strip()  # fmt: skip
    commit = git(remote, "commit-tree", "-m", "x", tree)
    name = author_of(ada, 7).partition
    (remote / "refs/memd/v1" / name).write_text(commit + "\n")
    pulled = ben.pull(f"file://{remote}")
    assert [refused.partition for refused in pulled.refused] == [name]
    assert ben.taken().keys() == {ada.partition}


def test_names_that_are_no_partitions_are_left_alone(remote: Path, ada: Member, ben: Member) -> None:
    ada.say("one")
    commit = ada.push().commit
    for name in ("x", "UPPER", "a/b/c", "x" * 200, ada.partition + "x"):
        git(remote, "update-ref", f"refs/memd/v1/{name}", commit)
    with (remote / "packed-refs").open("a") as file:
        file.write(f"{commit} refs/memd/v1/../x\n{commit} refs/memd/v1/..\n")
    try:
        ben.pull(f"file://{remote}")
    except RemoteRefusal:  # git itself refuses such a remote
        (remote / "packed-refs").unlink()
        ben.pull(f"file://{remote}")
    assert ben.taken().keys() == {ada.partition}
    assert not list(ben.daemon.places.data.parent.glob("**/x"))


def test_a_host_that_takes_no_such_refs_says_so_and_another_remote_is_offered(remote: Path, ada: Member) -> None:
    (remote / "hooks").mkdir(exist_ok=True)
    hook = remote / "hooks/pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read a b name; do case $name in refs/heads/*|refs/tags/*) ;; *) exit 1;; esac; done\n"
    )
    hook.chmod(0o755)
    ada.say("one")
    with pytest.raises(RemoteRefusal, match="pre-receive hook declined") as refused:
        ada.push()
    assert refused.value.exit_code == 4
    assert "memd share on --remote" in refused.value.hint
    assert ada.delivered() == (1, 0)


def test_a_push_that_the_host_drops_is_no_success(remote: Path, ada: Member) -> None:
    hook = remote / "hooks/post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\nwhile read a b name; do git update-ref -d "$name"; done\n')
    hook.chmod(0o755)
    ada.say("one")
    with pytest.raises(RemoteRefusal, match="took the push"):
        ada.push()
    assert ada.delivered() == (1, 0)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/x.git", "git://127.0.0.1:1/x.git", "https://no-such-host.invalid/x.git"]
)
def test_a_remote_that_cannot_be_reached_is_exit_code_3(ada: Member, address: str) -> None:
    ada.say("one")
    for step in (ada.push, ada.pull):
        with pytest.raises(RemoteUnreachable) as error:
            step(address)
        assert error.value.exit_code == 3
    assert ada.delivered()[1] == 0
    assert ada.push().count == 1, "the line stayed offered"


@pytest.mark.parametrize("address", ["", "--upload-pack=touch x", "ext::sh -c 'touch x'", "a\nb"])
def test_an_address_that_is_no_address_runs_nothing(ada: Member, tmp_path: Path, address: str) -> None:
    ada.say("one")
    with pytest.raises(MemdError):
        ada.push(address)
    assert not list(tmp_path.rglob("x"))


def test_a_silent_remote_is_given_up_in_the_background(ada: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memd.clients.exchange.git_transport.SILENCE_S", 0.5)
    ada.say("one")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(RemoteUnreachable, match="did not answer"):
        ada.push(f"git://127.0.0.1:{silent.getsockname()[1]}/x.git")


def test_a_folder_that_is_no_repository_is_exit_code_4(ada: Member, tmp_path: Path) -> None:
    ada.say("one")
    for address in (str(tmp_path / "nothing.git"), str(tmp_path)):
        with pytest.raises(RemoteRefusal, match="does not appear to be a git repository") as error:
            ada.push(address)
        assert error.value.exit_code == 4


def test_a_missing_or_old_git_is_told_with_the_version_that_works(
    ada: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_full_disk_is_told_and_the_next_push_goes_on_P12(remote: Path, ada: Member, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "memd-full", str(small)]
    if (mounted := subprocess.run(mount, check=False, capture_output=True, text=True)).returncode:
        pytest.skip(f"a small file system can't be mounted here: {mounted.stderr.strip()}")
    try:
        ada.say(*(words_that_no_packing_shortens(number) for number in range(40)))
        exchange = GitExchange(small / "share.git", None, str(remote))
        for _ in range(2):
            with pytest.raises(StorageFull):
                carrying.push(ada.client, ada.pool, exchange)
        assert ada.delivered() == (40, 0)
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        assert carrying.push(ada.client, ada.pool, exchange).count == 40
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    git(remote, "fsck", "--strict")


def words_that_no_packing_shortens(seed: int) -> str:
    """A statement of random words, 3,000 characters long."""
    letters = Random(seed).choices("abcdefghijklmnopqrstuvwxyz     ", k=3_000)
    return f"Statement {seed}: {''.join(letters)}".strip()


def test_two_processes_do_not_use_a_private_repository_at_once(ada: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memd.clients.exchange.exclusive_folder.LOCK_S", 0.1)
    ada.say("one")
    with ada.exchange().exclusive(), pytest.raises(Unavailable, match="another memd"):
        ada.push()
    ada.push()


# --- the user's repository -------------------------------------------------------------------------------------------
@pytest.fixture
def checkout(project: SharedProject) -> Path:
    """The user's clone, with a worktree, hooks that would leave a trace, and work that no ref holds."""
    folder = project.clone
    git(folder, "commit-tree", "-m", "dangling", "HEAD^{tree}")
    git(folder, "worktree", "add", "-q", str(project.folder / "worktree"), "-b", "other")
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
        hook.write_text(f"#!/bin/sh\ntouch {project.folder}/hook-ran\nexit 1\n")
        hook.chmod(0o755)
    git(folder, "config", "core.hooksPath", str(folder / ".git/hooks"))
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("variables", [False, True])
def test_the_users_repository_is_as_before_and_git_variables_have_no_effect_H1(
    daemons: list[RunningDaemon],
    project: SharedProject,
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: bool,
) -> None:
    before = content(checkout)
    members = [Member(daemon, project) for daemon in daemons]
    ada, ben = members
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
        carrying.sync(one.client, one.pool, one.exchange(checkout=checkout))
        other.pull(checkout=checkout)
    assert ben.taken().keys() == {ada.partition}
    ada.forget("statement")
    ada.push(checkout=checkout)
    assert content(checkout) == before
    assert not (tmp_path / "hook-ran").exists()
    assert not (tmp_path / "index").exists()
    assert set(refs(project.remote)) == {ada.ref, ben.ref}
    assert ada.private.stat().st_mode & 0o777 == 0o700
    assert not list((ada.private / "logs").rglob("*"))
    for member in members:
        member.client.close()


@pytest.mark.parametrize("where", ["local", "global", "include"])
def test_another_name_of_the_address_in_the_checkout_works_H1(
    remote: Path, ada: Member, checkout: Path, tmp_path: Path, where: str
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
    ada.say("one")
    ada.push("work:remote.git", checkout)
    assert ada.ref in refs(remote)


def test_the_ssh_command_of_the_checkout_works_H1(remote: Path, ada: Member, checkout: Path, tmp_path: Path) -> None:
    script = tmp_path / "connect"
    script.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\nfor last; do :; done\neval "$last"\n')
    script.chmod(0o755)
    git(checkout, "config", "core.sshCommand", str(script))
    git(checkout, "config", "ssh.variant", "simple")
    ada.say("one")
    ada.push(f"git@host.invalid:{remote}", checkout)
    assert ada.ref in refs(remote)
    assert "host.invalid" in (tmp_path / "asked").read_text()


def test_ssh_asks_nothing_in_the_background(ada: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\necho "git@h: Permission denied (publickey)." >&2\nexit 255\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    ada.say("one")
    with pytest.raises(RemoteUnreachable, match="Permission denied"):
        ada.push("git@host.invalid:x.git")
    assert "BatchMode=yes" in (tmp_path / "asked").read_text()
