"""Requests and replies about the patches of a project's playbook (G2, G5): the daemon decides and renders, a client
reads and writes the files of the repository.

Invariants: only the user sends these requests; a request names one pool by its name, title or unambiguous prefix.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .patch_file import PATCH_BYTES
from .request_fields import Request

PatchPool = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
PatchName = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
TAKEN_PATCHES = 200
"""Most patch files of one request."""


class ListPatches(Request, tag="patches", frozen=True, kw_only=True):
    """List the patches of a pool, by day."""

    pool: PatchPool


class GetPatch(Request, tag="patch", frozen=True, kw_only=True):
    """Return a patch of this home as a file, by its name or an unambiguous prefix; or the patch that a proposal would
    become."""

    pool: PatchPool
    patch: PatchName


class SendPatch(Request, tag="send_patch", frozen=True, kw_only=True):
    """Turn a proposal into a patch file that others decide, for example by a pull request. It changes no record here
    until it comes back in the committed tree."""

    pool: PatchPool
    proposal: PatchName


class PublishPlaybook(Request, tag="publish_playbook", frozen=True, kw_only=True):
    """Make one patch of the playbook's records that no patch states yet, so that the files have all of the playbook."""

    pool: PatchPool
    dry_run: bool = False


class TreeFile(msgspec.Struct, frozen=True, array_like=True):
    """A patch file of a committed tree: its blob, the commit that brought it, that commit's author, its bytes."""

    blob: str
    commit: str
    author: str
    data: Annotated[bytes, msgspec.Meta(max_length=PATCH_BYTES)]


class TakePatches(Request, tag="take_patches", frozen=True, kw_only=True):
    """Take the new patches of a committed tree. `present`: the names of all patches there, so that reverted ones go,
    None if the request has only a part of them; `by_user`: the user adopts the change of a file by hand, which no tree
    has yet. Raises InvalidRequest for a project that the user does not trust; `dry_run` reports also then."""

    pool: PatchPool
    files: Annotated[tuple[TreeFile, ...], msgspec.Meta(max_length=TAKEN_PATCHES)] = ()
    present: tuple[str, ...] | None = None
    by_user: bool = False
    dry_run: bool = False


class TrustPi(Request, tag="trust_pi", frozen=True, kw_only=True):
    """Let memd read a project's `.pi` folder, or take that back: then what came from there is hidden."""

    pool: PatchPool
    trusted: bool = True


# --- replies ---------------------------------------------------------------------------------------------------------
class PatchState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A patch. `standing`: `proposed` (in the inbox), `sent` (for others to decide), `applied` here, `taken` from the
    repository, `gone` (reverted there). `lines`: what it changes, one line an operation; `in_tree`: the repository has
    it; `file_needed`: the client has to write its file."""

    patch: str
    standing: Literal["proposed", "sent", "applied", "taken", "gone"]
    day: str = ""
    at: str = ""
    generated_by: str = ""
    author: str = ""
    commit: str = ""
    in_tree: bool = False
    file_needed: bool = False
    lines: tuple[str, ...] = ()
    proposal: str = ""


class PatchList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `patches`. `trusted`: memd reads the project's `.pi` folder."""

    pool: str
    title: str = ""
    trusted: bool = False
    patches: tuple[PatchState, ...] = ()


class PatchBytes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `patch`, `send_patch` and `publish_playbook`: a patch file. `data` is empty if there is nothing to
    publish; `left_out`: seed ids or records that may not leave, and why."""

    patch: str
    data: bytes = b""
    standing: str = ""
    left_out: tuple[tuple[str, str], ...] = ()


class PatchesTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `take_patches`. `taken`, `known`, `gone`, `back`: names of patches; `added`, `retired`: numbers of
    records; `refused`: a patch or a seed id and why memd did not take it; `conflicts`: proposals in the inbox."""

    taken: tuple[str, ...] = ()
    known: int = 0
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    added: int = 0
    retired: int = 0
    refused: tuple[tuple[str, str], ...] = ()
    conflicts: int = 0
    lines: tuple[str, ...] = ()
    dry_run: bool = False
