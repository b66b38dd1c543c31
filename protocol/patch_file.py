"""The files of a project's `.pi` folder: records of the playbook and the patches that change them (G2, G5).

A patch is one JSON file. The playbook file is the fold of all patches, so that nobody merges it by hand. Invariants: a
field or an operation of a later version stays in a file that memd writes again; the name of a patch ends in the hash of
its operations, so that the same change made twice is one file; nothing here quotes a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from .errors import InvalidRequest

PLAYBOOK = ".pi/memory/L2.playbooks.jsonl"
IDENTITY = ".pi/memory/L1.identity.jsonl"
PATCH_BYTES = 1_000_000
PATCH_OPERATIONS = 1_000
STATEMENT = 1_000
"""Most characters of a statement."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

SeedId = Annotated[str, msgspec.Meta(pattern=r"^mem_[0-9]{8}_[0-9a-z]{3,26}$")]
PatchId = Annotated[str, msgspec.Meta(pattern=r"^patch_[0-9]{8}_[0-9a-z]{3,26}$")]
Day = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
Statement = Annotated[str, msgspec.Meta(min_length=1, max_length=STATEMENT)]
Stability = Literal["stable", "semi-stable", "volatile"]


class SeedEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What proves a record. `type`: `artifact`, `commit`, `pr`, `session` (its day alone), `measurement` or `user`."""

    type: str
    ref: str
    note: str = ""


class SeedScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record applies: `global`, `project` or `domain`."""

    type: str


class SeedReview(msgspec.Struct, frozen=True, kw_only=True):
    """When a record is looked at again, and what would change it."""

    cadence_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] = 0
    next_review: str = ""
    change_condition: Annotated[str, msgspec.Meta(max_length=500)] = ""


class SeedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as its file has it, in this order of fields."""

    id: SeedId
    layer: Literal["L1", "L2", "L3"]
    scope: SeedScope
    tags: Annotated[tuple[str, ...], msgspec.Meta(max_length=50)]
    statement: Statement
    evidence: Annotated[tuple[SeedEvidence, ...], msgspec.Meta(max_length=100)]
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    stability: Stability
    created_at: Day
    updated_at: Day
    review: SeedReview
    status: Literal["active", "superseded", "deprecated"] = "active"
    supersedes: tuple[SeedId, ...] = ()
    superseded_by: tuple[SeedId, ...] = ()


class AddRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="add"):
    """Add a record to the file `target`."""

    target: str
    record: SeedRecord


class PromoteRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="promote"):
    """A record of another layer or pool becomes part of the playbook, as `record` says."""

    id: SeedId
    record: SeedRecord


class SupersedeRecord(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="supersede", rename={"old": "from"}
):
    """`to` replaces a record."""

    old: SeedId
    to: SeedId


class DeprecateRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="deprecate"):
    """A record no longer holds, and nothing replaces it."""

    id: SeedId
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""


class ReviewRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", tag="review"):
    """Someone looked at a record again at a day; the last one counts."""

    id: SeedId
    at: Day
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    next_review: str = ""


PatchOperation = AddRecord | PromoteRecord | SupersedeRecord | DeprecateRecord | ReviewRecord
OPERATIONS = frozenset({"add", "promote", "supersede", "deprecate", "review"})


class PatchFields(msgspec.Struct, frozen=True, kw_only=True):
    """A patch whose operations are not read yet."""

    patch_id: PatchId
    ops: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(max_length=PATCH_OPERATIONS)]
    generated_by: Annotated[str, msgspec.Meta(max_length=80)] = ""
    created_at: Day


class Patch(NamedTuple):
    """A patch. `operations`: those that memd knows; `unknown`: names of the others, which it keeps and skips; `fields`:
    the file as it is, with what a later version wrote."""

    id: str
    operations: tuple[PatchOperation, ...]
    unknown: tuple[str, ...]
    generated_by: str
    created_at: str
    fields: dict[str, Any]


def read_patch(data: bytes) -> Patch:
    """Return the patch of a file. Raises InvalidRequest."""
    if len(data) > PATCH_BYTES:
        raise InvalidRequest(f"the patch has {len(data):,} bytes", hint=f"a patch has at most {PATCH_BYTES:,}")
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
        patch = msgspec.convert(fields, PatchFields)
        named = [str(operation.get("op", "")) for operation in patch.ops]
        operations = tuple(
            msgspec.convert(operation, PatchOperation)
            for operation, name in zip(patch.ops, named, strict=True)
            if name in OPERATIONS
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"not a patch: {error}", hint="`memd pi check` names what is wrong in each file"
        ) from error
    unknown = tuple(name for name in named if name not in OPERATIONS)
    return Patch(patch.patch_id, operations, unknown, patch.generated_by, patch.created_at, fields)


def write_patch(operations: Sequence[PatchOperation], generated_by: str, day: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a patch of a day (such as 2026-02-10)."""
    ops = msgspec.to_builtins(list(operations))
    id = patch_id(ops, day)
    fields = {"patch_id": id, "ops": ops, "generated_by": generated_by, "created_at": day}
    return id, msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"


def file_hash(data: bytes) -> str:
    """Return the hash of a patch file, which stands in its place once a record of it is forgotten."""
    return blake2b(data, digest_size=32).hexdigest()


def gone_file(hash: str) -> bytes:
    """Return the bytes that take the place of a patch file of a forgotten record."""
    return msgspec.json.format(msgspec.json.encode({"gone": hash}), indent=2) + b"\n"


def patch_id(ops: Sequence[Any], day: str) -> str:
    """Return the name of a patch with these operations, as JSON values."""
    content = msgspec.json.encode(ops, order="sorted")
    return f"patch_{day.replace('-', '')}_{_characters(blake2b(content, digest_size=8).digest())}"


def seed_id(record: str, learned_on: str) -> str:
    """Return the name in a file of a local record that memd learnt on a day."""
    return f"mem_{learned_on.replace('-', '')}_{record[:8]}"


def _characters(digest: bytes) -> str:
    number = int.from_bytes(digest)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(35, -1, -5))
