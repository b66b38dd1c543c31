"""Identify a model by its manifest, and verify its files. A model's id changes with its trunk's bytes, so a stored
vector is never compared with one of another space. Importing this module loads no model library."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from ..protocol.errors import ModelMissing

WEIGHTS = Path(__file__).resolve().parent / "weights"
MANIFEST = "manifest.json"


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest. `files` maps a file's name to its sha256 (hex); `trunk`, `tokenizer`, `queries` name files.
    `heads`: by name, the files of the networks that read with the trunk's weights (`distiller`, `pair`, `injection`,
    `same_rule`). `languages`: codes of those that its vectors tell the sense of; `*` for a model of many. `probes`: the
    cosines that the maker measured between the three sentences of `models/probes.py`, if any."""

    name: str
    version: str
    dimension: int
    max_tokens: int
    trunk: str
    tokenizer: str
    queries: str | None = None
    heads: dict[str, str] = {}
    licence: str
    source: str
    files: dict[str, str]
    probes: tuple[float, float, float] | None = None
    languages: tuple[str, ...] = ("en",)

    @property
    def sha256(self) -> str:
        """Hash of the trunk, 64 hex digits."""
        return self.files[self.trunk]

    @property
    def id(self) -> str:
        """The name kept beside every vector: `minilm-l6-int8@` and the first 12 digits of the trunk's hash."""
        return f"{self.name}@{self.sha256[:12]}"

    def read_by(self, names: Iterable[str]) -> str:
        """The trunk's id with these heads, each with the first 8 digits of its hash: what read a text (R4)."""
        return "+".join((self.id, *(f"{name}@{self.files[self.heads[name]][:8]}" for name in names)))


def remedy(folder: Path) -> str:
    """What to do about a folder whose files are not what they should be."""
    if folder == WEIGHTS:
        return "install memd again: the package brings its model files with it"
    return "a model's folder contains manifest.json and its files; `memd model use default` selects memd's own model"


def info(folder: Path = WEIGHTS) -> ModelInfo:
    """The manifest of `folder`. Raises `ModelMissing` where it is absent or does not decode."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ModelInfo)
    except OSError as error:
        raise ModelMissing(f"{path} can't be read: {error.strerror}", hint=remedy(folder)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ModelMissing(f"{path} is no manifest: {error}", hint=remedy(folder)) from error
    unlisted = {manifest.trunk, manifest.tokenizer, manifest.queries, *manifest.heads.values()} - {
        None,
        *manifest.files,
    }
    if unlisted:
        raise ModelMissing(f"{path} gives no hash for {', '.join(sorted(map(str, unlisted)))}", hint=remedy(folder))
    return manifest


def verify(folder: Path = WEIGHTS, names: Iterable[str] | None = None) -> list[str]:
    """One line for each file of `folder`, or of `names`, that is not the manifest's, byte for byte; 35 MB take some 40
    ms. Raises `ModelMissing` where the manifest can't be read."""
    files = info(folder).files
    problems: list[str] = []
    for name in sorted(files if names is None else names):
        try:
            status = (folder / name).stat()
            digest = _digest(folder / name, status.st_mtime_ns, status.st_size)
            if digest != files[name]:
                problems.append(f"{name}: sha256 is {digest[:12]}…, the manifest says {files[name][:12]}…")
        except OSError as error:
            problems.append(f"{name}: missing ({error.strerror})")
    return problems


@cache
def _digest(path: Path, changed_ns: int, size_bytes: int) -> str:
    """The sha256 of a file, read once for all networks of a process: each head needs the trunk's file too."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require(folder: Path, names: Iterable[str]) -> None:
    """Raise `ModelMissing` unless every one of `names` in `folder` is the file that the manifest describes."""
    problems = verify(folder, names)
    if problems:
        raise ModelMissing(f"model files in {folder}: {'; '.join(problems)}", hint=remedy(folder))
