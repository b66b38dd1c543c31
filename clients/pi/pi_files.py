"""The files of a `.pi` folder in a working tree: what `memd pi init` writes, patches, and what they make (G2, G5).

Invariants: a file is replaced whole or not at all, and never through a link that leads out of the folder; a file that
a person changed stays, and the report says so; what patches make is the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ...protocol.errors import Refused, StoreError
from ...protocol.patch_file import OPERATIONS, PatchFields, PatchOperation, SeedRecord, patch_id, read_patch
from . import pi_apply_patch
from .layout_texts import ATTRIBUTES, CONFIG, IGNORED, PERSONAL_NOTE, POLICY, PROMPTS
from .pi_apply_patch import PERSONAL, TARGETS, FoldedPatches, MalformedPatch

SCRIPT = "tools/pi_apply_patch.py"
_OWN = (SCRIPT, "schemas/memory.schema.json", "schemas/patch.schema.json")
"""Files that no person writes: `memd pi init --update` brings them to this version's."""

Fate = Literal["made", "unchanged", "updated", "yours"]


class LaidFile(msgspec.Struct, frozen=True):
    """A file of the layout and what became of it; `yours`: it differs from memd's and stays."""

    file: str
    fate: Fate


class PiFolder(NamedTuple):
    """A `.pi` folder as its working tree has it. `malformed`: patch files that are none, and why."""

    folder: Path
    patches: list[dict[str, Any]]
    malformed: list[str]
    folded: FoldedPatches
    layers: list[str]

    @property
    def is_personal(self) -> bool:
        """Whether it holds the user's own memory, not a project's."""
        return "L1" in self.layers

    def stale(self) -> list[str]:
        """Return the layers whose file is not what the patches make."""
        return [layer for layer in self.layers if self.current(layer) != self.folded.file(layer)]

    def current(self, layer: str) -> bytes:
        """Return the file of a layer as it is. Raises StoreError."""
        return read_file(self.folder.parent / TARGETS[layer])


def layout(personal: bool) -> Iterator[tuple[str, bytes]]:
    """Yield each file that `memd pi init` writes, as a path below `.pi`."""
    yield "pi.config.yaml", CONFIG
    yield "policies/memory_policy.md", POLICY
    yield from ((f"prompts/{role}.md", text) for role, text in PROMPTS.items())
    yield "schemas/memory.schema.json", schema_file(memory_schema())
    yield "schemas/patch.schema.json", schema_file(patch_schema())
    yield SCRIPT, Path(pi_apply_patch.__file__).read_bytes()
    yield ".gitignore", IGNORED
    yield ".gitattributes", ATTRIBUTES
    yield "memory/L2.playbooks.jsonl", b""
    yield "memory/projects/.gitkeep", b""
    yield "patches/.gitkeep", b""
    if personal:
        yield PERSONAL, PERSONAL_NOTE
        yield "memory/L1.identity.jsonl", b""


def init(folder: Path, *, personal: bool = False, update: bool = False) -> list[LaidFile]:
    """Write the files of a `.pi` folder that are missing, and return what became of each. `update`: also bring memd's
    own ones to this version's. Raises Refused, StoreError."""
    laid: list[LaidFile] = []
    for file, content in layout(personal):
        path = folder / file
        check_place(folder, path)
        exists = path.exists()
        is_ours = update and file in _OWN
        if exists and (path.name in (".gitkeep",) or file.startswith("memory/") or read_file(path) == content):
            laid.append(LaidFile(file, "unchanged"))
        elif exists and not is_ours:
            laid.append(LaidFile(file, "yours"))
        else:
            write_file(folder, path, content)
            laid.append(LaidFile(file, "updated" if exists else "made"))
    return laid


def read_state(folder: Path) -> PiFolder:
    """Return a `.pi` folder as its working tree has it."""
    patches, malformed = pi_apply_patch.read_patches(folder)
    return PiFolder(folder, patches, malformed, pi_apply_patch.fold(patches), pi_apply_patch.layers_of(folder))


def regenerate(state: PiFolder, layers: Iterable[str] | None = None) -> list[str]:
    """Write what the patches make, and return the files that changed. A malformed patch leaves all as they are. Raises
    StoreError, Refused."""
    if state.malformed:
        return []
    written: list[str] = []
    for layer in state.stale() if layers is None else layers:
        content = state.folded.file(layer)
        write_file(state.folder, state.folder.parent / TARGETS[layer], content)
        write_file(state.folder, _mark(state.folder, layer), _hash(content))
        written.append(TARGETS[layer])
    return written


def is_as_written(state: PiFolder, layer: str) -> bool:
    """Whether the file of a layer is what memd last wrote in this working tree, or empty."""
    current = state.current(layer)
    return not current.strip() or read_file(_mark(state.folder, layer)) == _hash(current)


def _mark(folder: Path, layer: str) -> Path:
    return folder / "cache" / f"{layer}.written"


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).hexdigest().encode() + b"\n"


def write_patch_file(folder: Path, patch: str, data: bytes) -> Fate:
    """Write the file of a patch; one with other content stays, unless `data` tells that its content was forgotten."""
    path = folder / "patches" / f"{patch}.json"
    check_place(folder, path)
    if path.exists():
        if read_file(path) == data:
            return "unchanged"
        if not is_gone(data):
            return "yours"
    fate: Fate = "updated" if path.exists() else "made"
    write_file(folder, path, data)
    return fate


def is_gone(data: bytes) -> bool:
    """Whether a patch file has only the hash of what it was."""
    try:
        return pi_apply_patch.read(data) == {}
    except MalformedPatch:
        return False


def is_edited(patch: dict[str, Any]) -> bool:
    """Whether a patch's name is a hash of other operations than it has. A name that is no hash tells nothing."""
    tail = patch["patch_id"].rpartition("_")[2]
    is_hash = len(tail) == 8 and not set(tail) & set("ilou")
    return is_hash and patch["patch_id"] != patch_id(patch["ops"], patch["created_at"])


def patch_file(ops: list[dict[str, Any]], generated_by: str, day: str) -> tuple[str, bytes]:
    """Return name and bytes of a patch with operations as JSON values, with their unknown fields."""
    id = patch_id(ops, day)
    fields = {"patch_id": id, "ops": ops, "generated_by": generated_by, "created_at": day}
    data = msgspec.json.format(msgspec.json.encode(fields), indent=2) + b"\n"
    read_patch(data)
    return id, data


# --- schemas ----------------------------------------------------------------------------------------------------------
def memory_schema() -> dict[str, Any]:
    """Return the JSON schema of a record."""
    return _of_draft(msgspec.json.schema(SeedRecord))


def patch_schema() -> dict[str, Any]:
    """Return the JSON schema of a patch, of which an operation of a later version is a part too."""
    (fields, known), parts = msgspec.json.schema_components(
        [PatchFields, PatchOperation], ref_template="#/$defs/{name}"
    )
    later = {"type": "object", "properties": {"op": {"not": {"enum": sorted(OPERATIONS)}}}, "required": ["op"]}
    parts["PatchFields"]["properties"]["ops"]["items"] = {"anyOf": [*known["anyOf"], later]}
    return _of_draft({**fields, "$defs": parts})


def _of_draft(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_file(schema: dict[str, Any]) -> bytes:
    """Return a schema as a file."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


# --- places -----------------------------------------------------------------------------------------------------------
def check_place(folder: Path, path: Path) -> None:
    """Raise Refused if a file or a folder on its way is a link: memd would write outside of `.pi`."""
    below = [path, *path.parents]
    for part in below[: below.index(folder) + 1]:
        if part.is_symlink():
            raise Refused(f"{part} is a link, and memd writes through none", hint="put a real folder or file there")


def read_file(path: Path) -> bytes:
    """Return the content of a file, b"" if it is missing. Raises StoreError."""
    return _tried(path, "read", lambda: path.read_bytes() if path.exists() else b"")


def write_file(folder: Path, path: Path, content: bytes) -> None:
    """Replace a file of a `.pi` folder whole or not at all. Raises Refused, StoreError."""
    check_place(folder, path)
    _tried(path, "written", lambda: pi_apply_patch.write(path, content))


def _tried(path: Path, verb: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except OSError as error:
        hint = "see its owner and mode, and the free space (`df -h .`)"
        raise StoreError(f"{path} cannot be {verb}: {error.strerror or error}", hint=hint) from error
