"""What a person changed in a file that patches make, as the operations of a patch that says the same (G2).

Invariants: a record's statement never changes in place: another wording is a new record that supersedes the old one;
what only the order or the spaces of a file differ in is no change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from ...protocol.errors import InvalidRequest
from .pi_apply_patch import TARGETS, MalformedPatch, check_record, read_json

_CHANGING = frozenset("status confidence updated_at review supersedes superseded_by".split())
"""Fields that operations change."""

_MERGE_MARKS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")

REMOVED = "removed by hand from the file of the playbook"
DEPRECATED = "deprecated by hand in the file of the playbook"


class FileLines(NamedTuple):
    """The records of a file by id. `wrong`: lines that are no records, and why; `repeated`: ids of several lines that
    differ."""

    records: dict[str, list[dict[str, Any]]]
    wrong: list[str]

    @property
    def repeated(self) -> list[str]:
        """The ids of several lines that differ."""
        return sorted(id for id, records in self.records.items() if len(records) > 1)


def read_lines(data: bytes) -> FileLines:
    """Return the records of a file of the playbook. Marks of an unfinished merge are no lines."""
    lines = FileLines({}, [])
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or line.startswith(_MERGE_MARKS):
            continue
        try:
            record = read_json(line)
            check_record(record)
        except MalformedPatch as error:
            lines.wrong.append(f"line {number}: {error}")
        else:
            known = lines.records.setdefault(record["id"], [])
            if record not in known:
                known.append(record)
    return lines


def words_of(record: dict[str, Any]) -> str:
    """Return what of a record no operation changes, as a text that can be compared."""
    fixed = {key: value for key, value in record.items() if key not in _CHANGING}
    review = {key: value for key, value in record["review"].items() if key != "next_review"}
    return json.dumps({**fixed, "review": review}, sort_keys=True)


def changes(
    current: bytes,
    made: dict[str, dict[str, Any]],
    layer: str,
    day: str,
    committed: bytes = b"",
    stated_before: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return the operations that say what a person changed in a file.

    `made`: what the patches of now make; `committed`: the file at HEAD. A standing or a review that is as in there
    is of older patches, and so is a record that `stated_before`, the words that patches of the history had, names: no
    person changed that. Nor does a line that only is missing in a file which is older than its patch.
    """
    lines = read_lines(current)
    before = read_lines(committed).records
    ops: list[dict[str, Any]] = []
    for id, records in sorted(lines.records.items()):
        for record in records:
            if id in made and words_of(record) == words_of(made[id]):
                ops += [] if record in before.get(id, ()) else _of_state(record, made[id], day)
            elif words_of(record) not in stated_before:
                ops += _of_words(record, id in made, layer, day)
    ops += [
        {"op": "deprecate", "id": id, "reason": REMOVED}
        for id, record in sorted(made.items())
        if id not in lines.records and id in before and record["status"] == "active"
    ]
    return ops


def must_be_clear(current: bytes, layer: str) -> None:
    """Raise InvalidRequest for a file with lines that are no records, or with different lines of one record."""
    lines = read_lines(current)
    if wrong := [*lines.wrong, *(f"{id} has lines that differ" for id in lines.repeated)]:
        hint = "mend these lines, or throw all changes of the file away: `memd pi sync --force`"
        raise InvalidRequest(f"{TARGETS[layer]}: {'; '.join(wrong[:5])}", hint=hint)


def _of_words(record: dict[str, Any], is_known: bool, layer: str, day: str) -> Iterator[dict[str, Any]]:
    if not is_known:
        yield {"op": "add", "target": TARGETS[layer], "record": record}
        return
    successor = {**record, "supersedes": [record["id"]], "superseded_by": [], "status": "active"}
    successor |= {"created_at": day, "updated_at": day}
    successor["id"] = f"mem_{day.replace('-', '')}_{_hash(words_of(successor))}"
    yield {"op": "add", "target": TARGETS[layer], "record": successor}
    yield {"op": "supersede", "from": record["id"], "to": successor["id"]}


def _of_state(record: dict[str, Any], known: dict[str, Any], day: str) -> Iterator[dict[str, Any]]:
    status = record.get("status", "active")
    successors = [id for id in record.get("superseded_by", []) if id not in known["superseded_by"]]
    if status == "superseded" and successors:
        yield from ({"op": "supersede", "from": record["id"], "to": id} for id in successors)
    elif status != "active" and known["status"] == "active":
        yield {"op": "deprecate", "id": record["id"], "reason": DEPRECATED}
    confidence = round(float(record["confidence"]), 2)
    next_review = record["review"].get("next_review", "")
    changed: dict[str, Any] = {}
    if confidence != known["confidence"]:
        changed["confidence"] = confidence
    if next_review and next_review != known["review"].get("next_review", ""):
        changed["next_review"] = next_review
    if changed:
        yield {"op": "review", "id": record["id"], "at": day, **changed}


def _hash(words: str) -> str:
    return blake2b(words.encode(), digest_size=4).hexdigest()
