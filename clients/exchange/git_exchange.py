"""Partitions of one shared project in a private bare repository, and their way to and from a remote (H1, H2).

Refs: `refs/memd/v1/<own>`: what this home wrote; `refs/memd/new/<p>`: partitions as fetched; `refs/memd/taken/<p>`:
those that the daemon took, and the own one as the remote has it. Invariants: the repository can be lost, the next push
and pull make it again; only one process uses it at a time; nothing of a remote is read before its size is known;
reading is libgit2's, which fetches nothing.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...protocol.errors import RemoteRefusal
from ...protocol.exchange import SharedTree, StaleRemote, Where
from ...protocol.share import SegmentData
from ...protocol.shared_lines import (
    HEAD_BYTES,
    LINE_BYTES,
    MOST_LINES,
    SEGMENT,
    MalformedShare,
    ShareHead,
    decode_head,
    is_partition,
    line_hash,
    segment_hash,
    segments_of,
    split_segment,
)
from ..python.folder import make_private, write_whole
from .exclusive_folder import exclusive, storing
from .git_transport import REMOTE, GitTransport

if TYPE_CHECKING:
    import pygit2

ROOT = "refs/memd/"
SEGMENT_BYTES = SEGMENT * (LINE_BYTES + 1)
MOST_SEGMENTS = segments_of(MOST_LINES)
TREE_BYTES = MOST_SEGMENTS * 48
COMMIT_BYTES = 64 * 1024
FILTER = "--filter=blob:limit=2m"
HOST_WORDS = 200
"""Most characters of a host's own words in an error."""

LOOSE_OBJECTS = 1_000
"""Loose objects from which the repository is packed."""

MANY_SEGMENTS = 8
"""Segments of a push from which git does not look for similar objects: over large new ones it takes a minute."""

_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
\thooksPath = /dev/null
[gc]
\tauto = 0
[fetch]
\tfsckObjects = true
"""
_RACE = re.compile(r"cannot lock ref|failed to update ref|reference already exists|incorrect old value", re.I)


class SeenPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that the remote at an address has had."""

    address: str
    partitions: tuple[str, ...] = ()


class GitExchange:
    """The private repository `folder` and the remote at `address`."""

    def __init__(self, folder: Path, checkout: Path | None, address: str, *, interactive: bool = False) -> None:
        self.folder, self._address = folder, address
        self.is_interactive = interactive
        self._git = GitTransport(folder, address, checkout, interactive=interactive)
        self._repository: pygit2.Repository | None = None

    # --- the repository ----------------------------------------------------------------------------------------------
    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Open the repository for this process alone, and make it if it is missing or damaged. Raises Unavailable,
        StoreError, StorageFull."""
        with exclusive(self.folder) as descriptor:
            self._git.kept_open = (descriptor,)  # a git that outlives this process keeps the lock
            try:
                with _storing(self.folder):
                    self._open()
                yield
            finally:
                self._git.kept_open = ()
                self._repository = None

    def _open(self) -> None:
        import pygit2

        try:
            self._settle_config()
            self._repository = pygit2.Repository(str(self.folder), pygit2.enums.RepositoryOpenFlag.BARE)
            for lock in [*self.folder.glob("*.lock"), *(self.folder / "refs").rglob("*.lock")]:
                lock.unlink()  # of a process that was killed: this one has the repository for itself
            for where in ("v1", "taken"):
                for partition in self.partitions(where):
                    self.tree(where, partition)
        except (pygit2.GitError, FileNotFoundError, MalformedShare, KeyError, ValueError):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700)
            self._repository = pygit2.init_repository(str(self.folder), bare=True)
            shutil.rmtree(self.folder / "hooks", ignore_errors=True)
            self._settle_config()

    def _settle_config(self) -> None:
        """Write the settings again: a fetch with a filter makes of the repository one that fetches while it reads."""
        file = self.folder / "config"
        if not file.exists() or file.read_bytes() != _CONFIG:
            write_whole(file, _CONFIG)
        for mark in (self.folder / "objects/pack").glob("*.promisor"):
            mark.unlink()  # with it, objects that nothing refers to would stay for ever

    @property
    def _repo(self) -> pygit2.Repository:
        assert self._repository is not None, "inside of exclusive()"
        return self._repository

    # --- refs --------------------------------------------------------------------------------------------------------
    def partitions(self, where: Where) -> list[str]:
        """Return the names of the partitions that have a ref there."""
        prefix = f"{ROOT}{where}/"
        names = (name.removeprefix(prefix) for name in self._repo.references if name.startswith(prefix))
        return sorted(filter(is_partition, names))

    def commit(self, where: Where, partition: str) -> str:
        """Return the id of a partition's commit there, "" for none."""
        reference = self._repo.references.get(f"{ROOT}{where}/{partition}")
        return str(reference.target) if reference else ""

    def _point(self, where: Where, partition: str, commit: str) -> None:
        with _storing(self.folder):
            self._repo.references.create(f"{ROOT}{where}/{partition}", commit, force=True)

    def _drop(self, where: Where, partition: str) -> None:
        if self.commit(where, partition):
            self._repo.references.delete(f"{ROOT}{where}/{partition}")

    # --- reading -----------------------------------------------------------------------------------------------------
    def tree(self, where: Where, partition: str) -> SharedTree | None:
        """Return a partition, None if it has no ref there. Raises MalformedShare."""
        commit = self.commit(where, partition)
        return self._tree(commit) if commit else None

    def _tree(self, commit: str) -> SharedTree:
        import pygit2

        self._check_size(commit, "commit", COMMIT_BYTES)
        entries = self._entries(str(self._repo[commit].peel(pygit2.Commit).tree_id))
        if not {"head.json"} <= entries.keys() <= {"head.json", "ops"}:
            raise MalformedShare("there are other files than those of a partition")
        self._check_size(entries["head.json"], "blob", HEAD_BYTES)
        head = self._data(entries["head.json"])
        blobs = self._entries(entries["ops"]) if "ops" in entries else {}
        if sorted(blobs) != [_segment_file(number) for number in range(len(blobs))]:
            raise MalformedShare("the segments are not numbered one after the other")
        for blob in blobs.values():
            self._check_size(blob, "blob", SEGMENT_BYTES)
        return SharedTree(commit=commit, head=head, blobs=tuple(blobs[name] for name in sorted(blobs)))

    def _entries(self, tree: str) -> dict[str, str]:
        """Return names and ids of a tree's entries. Raises MalformedShare."""
        import pygit2

        self._check_size(tree, "tree", TREE_BYTES)
        return {str(entry.name): str(entry.id) for entry in self._repo[tree].peel(pygit2.Tree)}

    def _check_size(self, name: str, kind: str, limit: int) -> None:
        """Check an object by its header, before it is read. Raises MalformedShare."""
        import pygit2

        kinds = {"blob": 3, "tree": 2, "commit": 1}
        try:
            found, size = self._repo.odb.read_header(pygit2.Oid(hex=name))
        except KeyError as error:
            raise MalformedShare(f"a {kind} was not fetched: it is too large, or the remote lost it") from error
        if int(found) != kinds[kind]:
            raise MalformedShare(f"there is another object in place of a {kind}")
        if size > limit:
            raise MalformedShare(f"a {kind} has {size:,} bytes: {limit:,} are allowed")

    def hashes(self, partition: str, tree: SharedTree) -> tuple[bytes, ...]:
        """Return the hashes of a partition's segments; only segments are read that were not before. Raises
        MalformedShare."""
        file = self.folder / "segment_hashes" / f"{partition}.json"
        known: dict[str, str] = {}
        with suppress(OSError, msgspec.MsgspecError):
            known = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
        found = {blob: known.get(blob) or _hash(self._data(blob)).hex() for blob in tree.blobs}
        if found != known:
            with _storing(self.folder):
                make_private(file.parent)
                write_whole(file, msgspec.json.encode(found))
        return tuple(bytes.fromhex(found[blob]) for blob in tree.blobs)

    def _data(self, blob: str) -> bytes:
        import pygit2

        return self._repo[blob].peel(pygit2.Blob).data

    def segment(self, tree: SharedTree, number: int) -> SegmentData:
        """Return a segment of a partition."""
        return SegmentData(number, self._data(tree.blobs[number]))

    def changed(self, partition: str, tree: SharedTree) -> list[int]:
        """Return the numbers of the segments that differ from those that the daemon took."""
        taken = self.tree("taken", partition)
        before = taken.blobs if taken else ()
        return [number for number, blob in enumerate(tree.blobs) if before[number : number + 1] != (blob,)]

    # --- fetching ----------------------------------------------------------------------------------------------------
    def fetch(self) -> dict[str, str]:
        """Fetch the partitions that changed at the remote, and return those that can't be read, each with the reason.
        Asking for the remote's refs first costs less than a fetch that brings nothing, and a refused partition is not
        fetched again. Raises RemoteUnreachable, RemoteRefusal, StorageFull."""
        remote, known = self.remote_refs(), self._refused()
        refused = {name: known[name] for name, commit in remote.items() if known.get(name, ("",))[0] == commit}
        for partition in {*self.partitions("new")} - remote.keys():
            self._drop("new", partition)
        present = {name: self.commit("new", name) for name in remote}
        wanted = {name: commit for name, commit in remote.items() if name not in refused and present[name] != commit}
        if wanted:
            refused |= self._fetch_readable(wanted)
        self._refuse(refused)
        return {name: why for name, (_, why) in refused.items()}

    def _fetch_readable(self, wanted: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Fetch partitions, each alone if they can't be fetched together: a broken one keeps none of the others away.
        Return those that can't be fetched or read, each with its commit and the reason."""
        refused: dict[str, tuple[str, str]] = {}
        try:
            self._fetch(*wanted)
        except RemoteRefusal:
            for partition, commit in wanted.items():
                try:
                    self._fetch(partition)
                except RemoteRefusal as error:
                    refused[partition] = (commit, error.message)
        for partition in wanted.keys() - refused.keys():
            try:
                self.tree("new", partition)
            except MalformedShare as error:
                refused[partition] = (self.commit("new", partition), str(error))
        for partition in refused:
            self._drop("new", partition)
        return refused

    def _fetch(self, *partitions: str) -> None:
        """Run `git fetch`, without the filter for a host that refuses it."""
        import pygit2

        command = ["fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
        specs = [f"+{ROOT}v1/{partition}:{ROOT}new/{partition}" for partition in partitions]
        try:
            code, _, errors = self._git.attempt(*command, FILTER, REMOTE, *specs)
            if code and "filter" in errors:
                code, _, errors = self._git.attempt(*command, REMOTE, *specs)
            if code:
                raise self._git.failure(errors)
        finally:
            with _storing(self.folder):
                self._settle_config()
                self._repository = pygit2.Repository(str(self.folder), pygit2.enums.RepositoryOpenFlag.BARE)

    def fetch_one(self, partition: str) -> tuple[str, SharedTree | None]:
        """Fetch one partition; return the remote's commit, "" for none, and its tree, None for one that can't be
        read. Raises RemoteUnreachable, RemoteRefusal."""
        commit = self.remote_refs().get(partition, "")
        if not commit:
            self._drop("new", partition)
            return "", None
        try:
            self._fetch(partition)
            return commit, self.tree("new", partition)
        except (RemoteRefusal, MalformedShare):
            self._drop("new", partition)
            return commit, None

    def _refused(self) -> dict[str, tuple[str, str]]:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode((self.folder / "refused.json").read_bytes(), type=dict[str, tuple[str, str]])
        return {}

    def _refuse(self, refused: dict[str, tuple[str, str]]) -> None:
        if refused != self._refused():
            with _storing(self.folder):
                write_whole(self.folder / "refused.json", msgspec.json.encode(refused))

    def take(self, partition: str) -> None:
        """Note that the daemon has what was fetched."""
        self._point("taken", partition, self.commit("new", partition))

    # --- writing -----------------------------------------------------------------------------------------------------
    def write(self, head: bytes, segments: Mapping[int, bytes]) -> str:
        """Write the own partition, with the segments that changed, and return the commit. The same partition gives the
        same commit. A new epoch has no parent, so that the commits with the forgotten lines are not kept."""
        decoded = decode_head(head)
        before = self.tree("v1", decoded.partition)
        if before and not segments and _same(before.decoded, decoded):
            return before.commit
        with _storing(self.folder):
            blobs = list(before.blobs if before else ())[: segments_of(decoded.count)]
            for number, data in sorted(segments.items()):
                blobs[number : number + 1] = [str(self._repo.create_blob(data))]
            is_next = before is not None and before.decoded.epoch == decoded.epoch
            commit = self._commit(decoded, head, blobs, [before.commit] if before and is_next else [])
        self._point("v1", decoded.partition, commit)
        return commit

    def _commit(self, decoded: ShareHead, head: bytes, blobs: Sequence[str], parents: list[str]) -> str:
        import pygit2

        tree = self._repo.TreeBuilder()
        tree.insert("head.json", self._repo.create_blob(head), pygit2.enums.FileMode.BLOB)
        if blobs:
            folder = self._repo.TreeBuilder()
            for number, blob in enumerate(blobs):
                folder.insert(_segment_file(number), pygit2.Oid(hex=blob), pygit2.enums.FileMode.BLOB)
            tree.insert("ops", folder.write(), pygit2.enums.FileMode.TREE)
        name = "".join(c for c in decoded.name if c.isprintable() and c not in "<>").strip(" .,:;\"'") or "memd"
        author = pygit2.Signature(name, f"{decoded.partition}@memd.invalid", decoded.at // 1_000_000, 0)
        message = f"{decoded.count} lines, epoch {decoded.epoch}\n"
        return str(self._repo.create_commit(None, author, author, message, tree.write(), parents))

    # --- pushing -----------------------------------------------------------------------------------------------------
    def remote_refs(self) -> dict[str, str]:
        """Return the remote's partitions, each with its commit. Raises RemoteUnreachable, RemoteRefusal."""
        lines = self._git.run("ls-remote", REMOTE, f"{ROOT}v1/*").splitlines()
        refs = (line.partition("\t") for line in lines)
        found = {name.removeprefix(f"{ROOT}v1/"): commit for commit, _, name in refs}
        remote = {name: commit for name, commit in found.items() if is_partition(name)}
        self._note_seen(remote)
        return remote

    def _seen(self) -> set[str]:
        """Return the partitions that the remote has had."""
        with suppress(OSError, msgspec.MsgspecError):
            seen = msgspec.json.decode((self.folder / "seen.json").read_bytes(), type=SeenPartitions)
            return {*seen.partitions} if seen.address == self._address else set()
        return set()

    def _note_seen(self, remote: Mapping[str, str]) -> None:
        before = self._seen()
        if seen := remote.keys() - before:
            noted = SeenPartitions(address=self._address, partitions=tuple(sorted(before | seen)))
            with _storing(self.folder):
                write_whole(self.folder / "seen.json", msgspec.json.encode(noted))

    def push(self, partition: str, *, over: str | None = None, many: bool = False) -> dict[str, str]:
        """Push the own partition over the commit that the remote had last (`over`, "" for none), and return the
        remote's partitions as read back. Raises StaleRemote, RemoteUnreachable, RemoteRefusal."""
        commit = self.commit("v1", partition)
        known = self.commit("taken", partition) if over is None else over
        if known != commit or over is not None:
            self._send({partition: (commit, known)}, many=many)
        remote = self.remote_refs()
        if remote.get(partition) != commit:
            if known == commit:
                raise StaleRemote
            raise RemoteRefusal(
                f"{self._git.shown} took the push, and does not have {ROOT}v1/{partition} all the same",
                hint="name another repository: memd share on --remote URL",
            )
        self._point("taken", partition, commit)
        self._point("new", partition, commit)  # an earlier epoch must not stay
        return remote

    def _send(self, commits: Mapping[str, tuple[str, str]], *, many: bool = False) -> None:
        """Push commits to partitions, each over the commit that the remote has. Raises StaleRemote, RemoteRefusal."""
        leases = [f"--force-with-lease={ROOT}v1/{name}:{known}" for name, (_, known) in commits.items()]
        specs = [f"{commit}:{ROOT}v1/{name}" for name, (commit, _) in commits.items()]
        quick = ["-c", "pack.window=0"] if many else []
        command = [*quick, "push", "--porcelain", "--progress", "--no-verify", "--recurse-submodules=no"]
        code, output, errors = self._git.attempt(*command, *leases, REMOTE, *specs)
        if not code:
            return
        answers = [line.split("\t", 2)[-1] for line in output.splitlines() if line.startswith("!")]
        if answers and all(answer.startswith("[rejected]") or _RACE.search(answer) for answer in answers):
            raise StaleRemote
        if answers:
            reason = "".join(filter(str.isprintable, answers[0]))
            raise RemoteRefusal(
                f"{self._git.shown} refused {ROOT}v1: {reason}{_host_words(errors)}",
                hint="the host may take branches and tags only: memd share on --remote URL names another repository",
            )
        raise self._git.failure(errors)

    def restore(self, remote: Mapping[str, str]) -> tuple[str, ...]:
        """Push partitions that the remote lost, or of which it has an earlier state, as the daemon took them; return
        their names. Nobody can change them: their authors signed them. What this remote never had stays here: its
        author shared it elsewhere, perhaps with fewer people."""
        lost: dict[str, tuple[str, str]] = {}
        for partition in sorted({*self.partitions("taken")} & self._seen()):
            commit = remote.get(partition, "")
            tree = self.tree("taken", partition)
            if tree and tree.commit != commit and (not commit or self._is_earlier(commit, tree)):
                decoded = tree.decoded
                lost[partition] = (self._commit(decoded, tree.head, tree.blobs, []), commit)
        if lost:
            with suppress(StaleRemote):
                self._send(lost)
        return tuple(lost)

    def _is_earlier(self, commit: str, tree: SharedTree) -> bool:
        """Whether a commit of the remote is in the repository and has an earlier state of a partition."""
        import pygit2

        if pygit2.Oid(hex=commit) not in self._repo.odb:
            return False
        try:
            there, here = self._tree(commit).decoded, tree.decoded
        except MalformedShare:
            return False
        return there.partition == here.partition and (there.epoch, there.count) < (here.epoch, here.count)

    # --- tidying -----------------------------------------------------------------------------------------------------
    def collect(self, *, forgotten: bool = False) -> None:
        """Pack the repository if it has many loose objects, or if lines were forgotten: their bytes go now."""
        if not (forgotten or self._loose() > LOOSE_OBJECTS):
            return
        code, _, errors = self._git.attempt("gc", "--quiet", "--prune=now")
        if code and "space left" not in errors:
            self._cut_history()  # of a partition whose earlier commits have blobs that were not fetched
            code, _, errors = self._git.attempt("gc", "--quiet", "--prune=now")
        if code:
            raise self._git.failure(errors)
        with _storing(self.folder):
            self._open()

    def remove(self) -> None:
        """Remove the repository. Inside of `exclusive`, whose file stays."""
        self._repository = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _cut_history(self) -> None:
        """Keep of the others' partitions only what the daemon took, without earlier commits."""
        for partition in self.partitions("new"):
            self._drop("new", partition)
        for partition in self.partitions("taken"):
            tree = self.tree("taken", partition)
            if tree and not self.commit("v1", partition):
                self._point("taken", partition, self._commit(tree.decoded, tree.head, tree.blobs, []))

    def _loose(self) -> int:
        return sum(len(os.listdir(folder)) for folder in (self.folder / "objects").glob("??"))


def exchange_folder(share: Path, pool: str) -> Path:
    """Return the private repository of a shared project."""
    return share / f"{blake2b(pool.encode(), digest_size=10).hexdigest()}.git"


def _segment_file(number: int) -> str:
    return f"{number:06}.jsonl"


def _host_words(errors: str) -> str:
    """Return what the host says for its refusal, in brackets; "" for nothing."""
    lines = (line.removeprefix("remote:").strip() for line in errors.splitlines() if line.startswith("remote:"))
    words = "".join(filter(str.isprintable, " ".join(filter(None, lines))))[:HOST_WORDS]
    return f" ({words})" if words else ""


def _hash(data: bytes) -> bytes:
    try:
        return segment_hash(map(line_hash, split_segment(data)))
    except ValueError as error:
        raise MalformedShare("a segment has a line that is not one") from error


def _same(one: ShareHead, other: ShareHead) -> bool:
    """Whether two heads say the same, whenever they were signed."""
    replace = msgspec.structs.replace
    return replace(one, at=0, signature="") == replace(other, at=0, signature="")


def _storing(folder: Path) -> AbstractContextManager[None]:
    """Turn errors of writing into those that the user can act on: libgit2 does not say why it could not write. Raises
    StorageFull, StoreError."""
    import pygit2

    return storing(folder, pygit2.GitError, least_free=2 * SEGMENT_BYTES)
