"""Carries patches between a repository's `.pi` folder and the daemon, which decides what counts (G2).

Invariants: only the committed tree of the default branch goes in; a file of the working tree that a person changed
stays; what a killed run left undone, the next one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b, sha1
from pathlib import Path
from typing import Any

import msgspec

from ...protocol.errors import NotFound
from ...protocol.governance import TAKEN_PATCHES, PatchesTaken, PatchList, TreeFile
from ...protocol.places import Places
from ..python.client import Client
from ..python.folder import make_private, write_whole
from . import hand_edits, pi_apply_patch
from .pi_apply_patch import TARGETS, MalformedPatch
from .pi_files import Fate, PiFolder, is_as_written, is_edited, read_state, regenerate, write_patch_file
from .pi_tree import CommittedPatches, PiRepository

PERSONAL_POOL = "personal"
_MOST_BYTES = 3_000_000
"""Bytes of patch files in one request; the wire takes 4 MiB."""


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did. `why_not`: why it took nothing; `written`: patch files that it wrote; `differing`: those that
    stay because they have other content; `removed`: those that the user took back before a commit; `made`: files made
    from patches; `by_hand`: operations that say what a person changed in such a file, which stays; `unclear`: its lines
    that are no records, for which it stays too; `malformed`, `unread`, `problems`: of patch files."""

    pool: str = ""
    branch: str = ""
    trusted: bool = False
    why_not: str = ""
    in_tree: int = 0
    taken: PatchesTaken | None = None
    written: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    by_hand: tuple[dict[str, Any], ...] = ()
    unclear: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    dry_run: bool = False


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `memd pi check` found. `stale`: files that are not what the patches make; `edited`: patches that were
    changed after they were made or taken; `by_hand` and `unclear`: as in SyncReport; `problems` alone fail no check."""

    stale: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    by_hand: tuple[dict[str, Any], ...] = ()
    unclear: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    patches: int = 0
    records: int = 0

    @property
    def is_fine(self) -> bool:
        """Whether the check passes."""
        return not (self.stale or self.malformed or self.edited)


# --- in ---------------------------------------------------------------------------------------------------------------
def take(
    client: Client, repository: PiRepository, listed: PatchList, committed: CommittedPatches, *, dry_run: bool = False
) -> PatchesTaken | None:
    """Give the daemon the patches of a tree that it has not seen, and return what it did; None if there is nothing new.
    Raises InvalidRequest."""
    in_tree = {patch.patch for patch in listed.patches if patch.in_tree}
    sent = SentBlobs(client.places, listed.pool)
    blobs = {name: committed.blobs[name] for name in committed.present}
    known = sent.read()
    new = [name for name in committed.present if name not in in_tree or known.get(name) != blobs[name]]
    if not new and in_tree <= set(blobs):
        return None
    unseen = [name for name in new if name not in in_tree]
    files = {file.blob: file for file in repository.files(committed, unseen)}
    wanted = [
        files.get(blobs[name], TreeFile(blobs[name], committed.commit, "", repository.data(blobs[name])))
        for name in new
    ]
    replies = [
        client.take_patches(listed.pool, batch, committed.present if is_last else None, dry_run=dry_run)
        for batch, is_last in _batches(wanted)
    ]
    taken = _together(replies)
    if not dry_run:
        refused = {name for name, _ in taken.refused}
        sent.write({name: blob for name, blob in blobs.items() if name not in refused})
    return taken


def _batches(files: Sequence[TreeFile]) -> Iterator[tuple[list[TreeFile], bool]]:
    """Yield files in portions that a request may have, and whether it is the last portion."""
    batch: list[TreeFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) >= TAKEN_PATCHES or size + len(file.data) > _MOST_BYTES):
            yield batch, False
            batch, size = [], 0
        batch.append(file)
        size += len(file.data)
    yield batch, True


def _together(replies: Sequence[PatchesTaken]) -> PatchesTaken:
    return PatchesTaken(
        taken=tuple(name for reply in replies for name in reply.taken),
        known=sum(reply.known for reply in replies),
        gone=tuple(name for reply in replies for name in reply.gone),
        back=tuple(name for reply in replies for name in reply.back),
        added=sum(reply.added for reply in replies),
        retired=sum(reply.retired for reply in replies),
        refused=tuple(refusal for reply in replies for refusal in reply.refused),
        conflicts=sum(reply.conflicts for reply in replies),
        lines=tuple(line for reply in replies for line in reply.lines),
        dry_run=any(reply.dry_run for reply in replies),
    )


class SentBlobs:
    """The blobs of patch files that the daemon has seen, in a file of the home. Without it, all are sent once more."""

    def __init__(self, places: Places, pool: str) -> None:
        self._path = places.state / "pi" / f"{blake2b(pool.encode(), digest_size=12).hexdigest()}.json"

    def read(self) -> dict[str, str]:
        """Return blob by name of patch."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError):
            return {}

    def write(self, blobs: dict[str, str]) -> None:
        """Remember them."""
        make_private(self._path.parent)
        write_whole(self._path, msgspec.json.encode(blobs))


# --- out --------------------------------------------------------------------------------------------------------------
def sync(
    client: Client,
    repository: PiRepository,
    pool: str,
    branch: str = "",
    *,
    dry_run: bool = False,
    force: bool = False,
    take_only: bool = False,
    day: str = "",
) -> SyncReport:
    """Take what the tree has, write the patch files that it lacks, and make the files of the playbook anew. `force`:
    also over what a person changed there; `take_only`: writes no file. Raises MemdError."""
    listed = known_patches(client, pool)
    committed = repository.committed(branch)
    why_not = committed.why_not
    if listed.pool == PERSONAL_POOL:
        why_not = "your own memory goes into this folder, and nothing of it comes back"
    elif not why_not and not listed.trusted:
        why_not = "you have not trusted this .pi folder: `memd pi trust` shows what would come"
    taken = None
    if not why_not or (dry_run and not committed.why_not and listed.pool != PERSONAL_POOL):
        with suppress(NotFound):  # a project that memd does not know yet: `memd pi trust` shows its files
            taken = take(client, repository, listed, committed, dry_run=dry_run)
        listed = listed if taken is None or dry_run else client.patches(pool)
    report = SyncReport(
        pool=listed.pool,
        branch=committed.branch,
        trusted=listed.trusted,
        why_not=why_not,
        in_tree=len(committed.present),
        taken=taken,
        unread=committed.unread,
        dry_run=dry_run,
    )
    if repository.folder is None or take_only:
        return report
    return _with_files(report, client, repository, listed, dry_run=dry_run, force=force, day=day)


def known_patches(client: Client, pool: str) -> PatchList:
    """Return the patches of a pool; none of a project for which memd captured nothing yet."""
    try:
        return client.patches(pool)
    except NotFound:
        return PatchList(pool=pool)


def _with_files(
    report: SyncReport,
    client: Client,
    repository: PiRepository,
    listed: PatchList,
    *,
    dry_run: bool,
    force: bool,
    day: str,
) -> SyncReport:
    """Write the files of the working tree, and return the report with what became of them."""
    assert repository.folder is not None
    folder = repository.folder / ".pi"
    fates = {
        patch.patch: _write_own(client, listed.pool, folder, patch.patch, dry_run=dry_run)
        for patch in listed.patches
        if patch.file_needed and patch.standing != "sent"  # one that is sent belongs to a branch of its own
    }
    removed = _remove_undone(repository, folder, listed, dry_run=dry_run)
    state = read_state(folder)
    stale = state.stale()
    by_hand = {} if force else {layer: by_person(repository, state, layer, day) for layer in stale}
    unclear = {} if force else {layer: unclear_lines(state, layer) for layer in stale}
    layers = [layer for layer in stale if not by_hand.get(layer) and not unclear.get(layer)]
    made = [TARGETS[layer] for layer in layers] if dry_run else regenerate(state, layers)
    return msgspec.structs.replace(
        report,
        written=tuple(name for name, fate in fates.items() if fate in ("made", "updated")),
        differing=tuple(name for name, fate in fates.items() if fate == "yours"),
        removed=tuple(removed),
        made=tuple(made) if not state.malformed else (),
        by_hand=tuple(operation for operations in by_hand.values() for operation in operations),
        unclear=tuple(line for lines in unclear.values() for line in lines),
        malformed=tuple(state.malformed),
        problems=tuple(state.folded.problems),
    )


def _write_own(client: Client, pool: str, folder: Path, patch: str, *, dry_run: bool) -> Fate:
    """Write the file of a patch of this home, and return what became of it."""
    if dry_run:
        return "unchanged" if (folder / "patches" / f"{patch}.json").exists() else "made"
    return write_patch_file(folder, patch, client.patch(pool, patch).data)


def _remove_undone(repository: PiRepository, folder: Path, listed: PatchList, *, dry_run: bool) -> list[str]:
    """Remove the files of patches that the user took back before they were committed, and return their names."""
    removed: list[str] = []
    for patch in listed.patches:
        path = folder / "patches" / f"{patch.patch}.json"
        if patch.standing == "gone" and path.is_file() and not repository.blob_at_head(f"patches/{path.name}"):
            removed.append(patch.patch)
            if not dry_run:
                path.unlink()
    return removed


# --- hand edits -------------------------------------------------------------------------------------------------------
def by_person(repository: PiRepository, state: PiFolder, layer: str, day: str) -> list[dict[str, Any]]:
    """Return the operations that say what a person changed in the file of a layer."""
    if is_as_written(state, layer):
        return []
    head = repository.blob_at_head(f"memory/{Path(TARGETS[layer]).name}")
    committed = repository.data(head) if head else b""
    current, made = state.current(layer), state.folded.records[layer]
    ops = hand_edits.changes(current, made, layer, day, committed)
    if any(operation["op"] == "add" for operation in ops):  # perhaps of a patch that was reverted
        ops = hand_edits.changes(current, made, layer, day, committed, _stated_before(repository))
    return ops


def unclear_lines(state: PiFolder, layer: str) -> list[str]:
    """Return the lines of a layer's file that are no records, each with its file and what is wrong."""
    if is_as_written(state, layer):
        return []
    return [f"{TARGETS[layer]}, {line}" for line in hand_edits.read_lines(state.current(layer)).wrong]


def _stated_before(repository: PiRepository) -> set[str]:
    words: set[str] = set()
    for data in repository.ever_stated():
        try:
            patch = pi_apply_patch.read(data)
        except MalformedPatch:
            continue
        words.update(hand_edits.words_of(operation["record"]) for operation in _adds(patch))
    return words


def _adds(patch: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for operation in patch.get("ops", ()) if operation.get("op") in ("add", "promote")]


def check(repository: PiRepository, day: str = "") -> CheckReport:
    """Return what is wrong with the `.pi` folder of a working tree; it needs no daemon."""
    assert repository.folder is not None
    state = read_state(repository.folder / ".pi")
    first = repository.first_blobs()
    edited: list[str] = []
    for name in (patch["patch_id"] for patch in state.patches if patch):
        data = (state.folder / "patches" / f"{name}.json").read_bytes()
        before = first.get(name, "")
        if is_edited(pi_apply_patch.read(data)) or (
            before not in ("", blob_of(data)) and _is_patch(repository, before)
        ):
            edited.append(name)
    stale = state.stale()
    return CheckReport(
        stale=tuple(TARGETS[layer] for layer in stale),
        malformed=tuple(state.malformed),
        edited=tuple(edited),
        by_hand=tuple(operation for layer in stale for operation in by_person(repository, state, layer, day)),
        unclear=tuple(line for layer in stale for line in unclear_lines(state, layer)),
        problems=tuple(state.folded.problems),
        patches=len(state.patches),
        records=sum(len(state.folded.records[layer]) for layer in state.layers),
    )


def _is_patch(repository: PiRepository, blob: str) -> bool:
    try:
        return bool(pi_apply_patch.read(repository.data(blob)))
    except MalformedPatch:
        return False


def blob_of(data: bytes) -> str:
    """Return the name that git gives a file's content."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
