"""Make memory/L2.playbooks.jsonl of a .pi folder from its patches; in a personal folder L1.identity.jsonl as well.

    python3 .pi/tools/pi_apply_patch.py            writes the files anew
    python3 .pi/tools/pi_apply_patch.py --check    writes nothing, and exits with 1 if a file is not what patches make

It needs nothing but Python 3.9. The same patches give the same bytes, in any order: a record is added once (the first
patch by date and name counts, a second one is listed), superseding and deprecating only add, the last review counts.
An operation of a later version is named and skipped. A patch that cannot be read is named, and nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

TARGETS = {"L1": ".pi/memory/L1.identity.jsonl", "L2": ".pi/memory/L2.playbooks.jsonl"}
PERSONAL = "personal"
KEYS = (
    "id layer scope tags statement evidence confidence stability created_at updated_at review status supersedes "
    "superseded_by"
).split()
PATCH_BYTES = 1_000_000
PATCH_FILE = re.compile(r"patch_[0-9]{8}_[0-9a-z]{3,26}\.json")

_ID = re.compile(r"mem_[0-9]{8}_[0-9a-z]{3,26}")
_PATCH = re.compile(r"patch_[0-9]{8}_[0-9a-z]{3,26}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class MalformedPatch(ValueError):
    """A file is no patch, or a line no record; the text says what is wrong."""


class FoldedPatches(NamedTuple):
    """What patches make. `records`: by layer and id; `problems`: what the fold left out, one line each."""

    records: dict[str, dict[str, dict[str, Any]]]
    problems: list[str]

    def file(self, layer: str) -> bytes:
        """Return the file of a layer."""
        records = self.records[layer]
        return b"".join(line_of(records[name]) for name in sorted(records))


def line_of(record: dict[str, Any]) -> bytes:
    """Return a record as a line of a file."""
    ordered = {key: record[key] for key in KEYS if key in record}
    ordered.update((key, value) for key, value in record.items() if key not in ordered)
    return json.dumps(ordered, ensure_ascii=False, allow_nan=False).encode() + b"\n"


# --- reading ----------------------------------------------------------------------------------------------------------
def read_json(data: bytes) -> Any:
    """Return the value of a JSON text that can be written again. Raises MalformedPatch."""
    try:
        value = json.loads(data.decode("utf-8"))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise MalformedPatch(f"not JSON: {error or 'nested too deep'}") from error
    return value


def read(data: bytes) -> dict[str, Any]:
    """Return the patch of a file, or {} for one of which only the hash is left. Raises MalformedPatch."""
    _must(len(data) <= PATCH_BYTES, f"more than {PATCH_BYTES:,} bytes")
    patch = read_json(data)
    _must(isinstance(patch, dict), "not an object")
    if set(patch) == {"gone"}:
        _must(isinstance(patch["gone"], str), "gone is not a text")
        return {}
    _matches(patch, "patch_id", _PATCH)
    _matches(patch, "created_at", _DAY)
    _text(patch, "generated_by", 80, "")
    for number, operation in enumerate(_listed(patch, "ops", 1_000), 1):
        try:
            _check_operation(operation)
        except MalformedPatch as error:
            raise MalformedPatch(f"operation {number}: {error}") from error
    return patch


def _check_operation(operation: Any) -> None:
    _must(isinstance(operation, dict), "not an object")
    name = operation.get("op")
    if name == "add":
        _text(operation, "target", 1_000)
    if name in ("add", "promote"):
        check_record(operation.get("record"))
    if name in ("promote", "deprecate", "review"):
        _matches(operation, "id", _ID)
    if name == "deprecate":
        _text(operation, "reason", 500, "")
    elif name == "supersede":
        _matches(operation, "from", _ID)
        _matches(operation, "to", _ID)
    elif name == "review":
        _matches(operation, "at", _DAY)
        _text(operation, "next_review", 1_000, "")
        if operation.get("confidence") is not None:
            _share(operation)


def check_record(record: Any) -> None:
    """Raise MalformedPatch if a value is not a record."""
    _must(isinstance(record, dict), "record is not an object")
    _matches(record, "id", _ID)
    _must(record.get("layer") in ("L1", "L2", "L3"), "layer is not L1, L2 or L3")
    _must(isinstance(record.get("scope"), dict) and isinstance(record["scope"].get("type"), str), "scope has no type")
    _texts(record, "tags", 50)
    _text(record, "statement", 1_000)
    _must(record["statement"] != "", "statement is empty")
    for item in _listed(record, "evidence", 100):
        _must(isinstance(item, dict), "evidence is not a list of objects")
        _text(item, "type", PATCH_BYTES)
        _text(item, "ref", PATCH_BYTES)
        _text(item, "note", PATCH_BYTES, "")
    _share(record)
    _must(record.get("stability") in ("stable", "semi-stable", "volatile"), "stability is unknown")
    _matches(record, "created_at", _DAY)
    _matches(record, "updated_at", _DAY)
    _check_review(record.get("review"))
    _must(record.get("status", "active") in ("active", "superseded", "deprecated"), "status is unknown")
    for key in ("supersedes", "superseded_by"):
        _texts(record, key, PATCH_BYTES, [])
        _must(all(_ID.fullmatch(name) for name in record.get(key, [])), f"{key} has a wrong id")


def _check_review(review: Any) -> None:
    _must(isinstance(review, dict), "review is not an object")
    days = review.get("cadence_days", 0)
    _must(type(days) is int and 0 <= days <= 36_500, "cadence_days is not a number of days")
    _text(review, "next_review", PATCH_BYTES, "")
    _text(review, "change_condition", 500, "")


def _must(condition: bool, complaint: str) -> None:
    if not condition:
        raise MalformedPatch(complaint)


def _text(fields: dict[str, Any], key: str, most: int, default: str | None = None) -> None:
    value = fields.get(key, default)
    _must(isinstance(value, str) and len(value) <= most, f"{key} is not a text of at most {most:,} characters")


def _texts(fields: dict[str, Any], key: str, most: int, default: Any = None) -> None:
    _must(all(isinstance(item, str) for item in _listed(fields, key, most, default)), f"{key} is not a list of texts")


def _listed(fields: dict[str, Any], key: str, most: int, default: Any = None) -> Any:
    value: Any = fields.get(key, default)
    _must(type(value) is list and len(value) <= most, f"{key} is not a list of at most {most:,}")
    return value


def _matches(fields: dict[str, Any], key: str, pattern: re.Pattern[str]) -> None:
    value = fields.get(key)
    _must(isinstance(value, str) and pattern.fullmatch(value) is not None, f"{key} does not match {pattern.pattern}")


def _share(fields: dict[str, Any]) -> None:
    value: Any = fields.get("confidence")
    is_number = type(value) in (int, float)
    _must(is_number and 0 <= value <= 1, "confidence is not a number from 0 to 1")


# --- fold -------------------------------------------------------------------------------------------------------------
def fold(patches: list[dict[str, Any]]) -> FoldedPatches:
    """Return what patches make, in any order and if some come twice."""
    unique = {json.dumps(patch, sort_keys=True): patch for patch in patches if patch}
    ordered = sorted(unique.items(), key=lambda item: (item[1]["created_at"], item[1]["patch_id"], item[0]))
    steps = [(patch, operation) for _, patch in ordered for operation in patch["ops"]]
    problems = [
        f"{patch['patch_id']}: this version does not know the operation {str(operation.get('op'))!r}"
        for patch, operation in steps
        if operation.get("op") not in ("add", "promote", "supersede", "deprecate", "review")
    ]
    folded = FoldedPatches({layer: {} for layer in TARGETS}, problems)
    for patch, operation in steps:
        if operation.get("op") in ("add", "promote"):
            _add(folded, patch, operation)
    known = {name: record for records in folded.records.values() for name, record in records.items()}
    for patch, operation in steps:
        if operation.get("op") in ("supersede", "deprecate"):
            _retire(known, patch, operation, problems)
    reviews = [(operation["at"], at) for at, (_, operation) in enumerate(steps) if operation.get("op") == "review"]
    for _, at in sorted(reviews):
        _review(known, *steps[at], problems)
    return folded


def _add(folded: FoldedPatches, patch: dict[str, Any], operation: dict[str, Any]) -> None:
    target = operation.get("target", TARGETS["L2"])
    layer = next((layer for layer, file in TARGETS.items() if file == target), "")
    record = json.loads(json.dumps(operation["record"]))
    if not layer:
        folded.problems.append(f"{patch['patch_id']}: no file {target!r} is made from patches")
    elif any(record["id"] in records for records in folded.records.values()):
        folded.problems.append(f"{patch['patch_id']}: an earlier patch has added {record['id']}")
    else:
        record["confidence"] = round(float(record["confidence"]), 2)
        for key in ("supersedes", "superseded_by"):
            record.setdefault(key, [])
        record.setdefault("status", "active")
        folded.records[layer][record["id"]] = record


def _retire(
    known: dict[str, dict[str, Any]], patch: dict[str, Any], operation: dict[str, Any], problems: list[str]
) -> None:
    is_followed = operation["op"] == "supersede"
    old, new = operation["from" if is_followed else "id"], operation["to"] if is_followed else ""
    if old == new:
        problems.append(f"{patch['patch_id']}: {old} cannot supersede itself")
        return
    problems += [f"{patch['patch_id']}: no patch adds {name}" for name in (old, new) if name and name not in known]
    if record := known.get(old):
        if is_followed:
            record["superseded_by"] = sorted({*record["superseded_by"], new})
            record["status"] = "superseded"
        elif record["status"] == "active":
            record["status"] = "deprecated"
        record["updated_at"] = max(record["updated_at"], patch["created_at"])
    if is_followed and (record := known.get(new)):
        record["supersedes"] = sorted({*record["supersedes"], old})


def _review(
    known: dict[str, dict[str, Any]], patch: dict[str, Any], operation: dict[str, Any], problems: list[str]
) -> None:
    record = known.get(operation["id"])
    if record is None:
        problems.append(f"{patch['patch_id']}: no patch adds {operation['id']}")
        return
    if operation.get("confidence") is not None:
        record["confidence"] = round(float(operation["confidence"]), 2)
    if operation.get("next_review"):
        record["review"]["next_review"] = operation["next_review"]
    record["updated_at"] = max(record["updated_at"], operation["at"])


# --- files ------------------------------------------------------------------------------------------------------------
def read_patches(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the patches of a .pi folder, and what is wrong with those that cannot be read."""
    patches: list[dict[str, Any]] = []
    wrong: list[str] = []
    for path in sorted((folder / "patches").glob("*.json")):
        try:
            patch = read(path.read_bytes())
            _must(not path.is_symlink(), "it is a link")
            _must(PATCH_FILE.fullmatch(path.name) is not None, "its name is not patch_YYYYMMDD_….json")
            _must(not patch or patch["patch_id"] == path.stem, f"its patch_id is {patch.get('patch_id')}")
        except (OSError, MalformedPatch) as error:
            wrong.append(f"patches/{path.name}: {error}")
        else:
            patches.append(patch)
    return patches, wrong


def layers_of(folder: Path) -> list[str]:
    """Return the layers whose files a .pi folder has: a project's has no L1."""
    return ["L1", "L2"] if (folder / PERSONAL).exists() else ["L2"]


def write(path: Path, content: bytes) -> None:
    """Replace a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def main(arguments: list[str], folder: Path) -> int:
    """Write or check the files, and return the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    patches, wrong = read_patches(folder)
    folded = fold(patches)
    for line in (*wrong, *folded.problems):
        print(line, file=sys.stderr)
    if wrong:
        print("nothing is written: mend these patches, or restore them from git", file=sys.stderr)
        return 1
    code = 0
    for layer in layers_of(folder):
        path = folder.parent / TARGETS[layer]
        content = folded.file(layer)
        if (path.read_bytes() if path.exists() else b"") == content:
            continue
        if arguments:
            code = 1
            print(f"{TARGETS[layer]} is not what the patches make: run this without --check", file=sys.stderr)
        else:
            write(path, content)
            print(f"wrote {TARGETS[layer]}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent.parent))
