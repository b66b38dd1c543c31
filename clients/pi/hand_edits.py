"""What a person changed in a file that patches make, as the operations of a patch that says the same (G2).

Invariants: a record's statement never changes in place: another wording is a new record that supersedes the old one;
what only the order or the spaces of a file differ in is no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from ...protocol.errors import InvalidRequest
from .pi_apply_patch import TARGETS, Malformed, check_record, line_of, read_json

_CHANGING = frozenset("status confidence updated_at review supersedes superseded_by".split())
"""Fields that operations change."""

REMOVED = "removed by hand from the file of the playbook"


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
    """Return the records of a file of the playbook."""
    lines = FileLines({}, [])
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = read_json(line)
            check_record(record)
        except Malformed as error:
            lines.wrong.append(f"line {number}: {error}")
        else:
            known = lines.records.setdefault(record["id"], [])
            if record not in known:
                known.append(record)
    return lines


def lost(current: bytes, made: dict[str, dict[str, Any]], stated_before: Iterable[str] = ()) -> list[str]:
    """Return the ids of records whose words a new file would lose: no patch has them, nor had one of `stated_before`,
    statements that patches had. Lines that are no records count for nothing: a merge leaves such ones."""
    before = set(stated_before)
    return sorted(
        id
        for id, records in read_lines(current).records.items()
        for record in records
        if words_of(record) not in before and (id not in made or words_of(made[id]) != words_of(record))
    )


def words_of(record: dict[str, Any]) -> str:
    """Return what of a record no operation changes, as a text that can be compared."""
    fixed = {key: value for key, value in record.items() if key not in _CHANGING}
    review = {key: value for key, value in record["review"].items() if key != "next_review" and value}
    return line_of({**fixed, "review": dict(sorted(review.items()))}).decode()


def operations(current: bytes, made: dict[str, dict[str, Any]], layer: str, day: str) -> list[dict[str, Any]]:
    """Return the operations that turn what patches make into a file as a person changed it. Raises InvalidRequest."""
    lines = read_lines(current)
    if lines.wrong or lines.repeated:
        wrong = [*lines.wrong, *(f"{id} has lines that differ" for id in lines.repeated)]
        hint = "mend these lines, or throw all changes of the file away: `memd pi sync --force`"
        raise InvalidRequest(f"{TARGETS[layer]}: {'; '.join(wrong[:5])}", hint=hint)
    ops: list[dict[str, Any]] = []
    for id, (record, *_) in sorted(lines.records.items()):
        ops += _of_record(record, made.get(id), layer, day)
    ops += [
        {"op": "deprecate", "id": id, "reason": REMOVED}
        for id, record in sorted(made.items())
        if id not in lines.records and record["status"] == "active"
    ]
    return ops


def _of_record(record: dict[str, Any], known: dict[str, Any] | None, layer: str, day: str) -> Iterator[dict[str, Any]]:
    if known is None:
        yield {"op": "add", "target": TARGETS[layer], "record": record}
    elif words_of(record) != words_of(known):
        successor = {**record, "supersedes": [record["id"]], "superseded_by": [], "status": "active"}
        successor |= {"created_at": day, "updated_at": day}
        successor["id"] = f"mem_{day.replace('-', '')}_{_hash(words_of(successor))}"
        yield {"op": "add", "target": TARGETS[layer], "record": successor}
        yield {"op": "supersede", "from": record["id"], "to": successor["id"]}
    else:
        yield from _of_standing(record, known)
        yield from _of_review(record, known, day)


def _of_standing(record: dict[str, Any], known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    status = record.get("status", "active")
    if status == known["status"]:
        return
    if status == "active":
        hint = "add it as a record with an id of its own: what was retired stays retired"
        raise InvalidRequest(f"{record['id']} was {known['status']}, and the file has it active", hint=hint)
    if status == "superseded":
        successors = [id for id in record.get("superseded_by", []) if id not in known["superseded_by"]]
        if not successors:
            hint = "name its successor in superseded_by, or make it deprecated"
            raise InvalidRequest(f"{record['id']} is superseded by nothing", hint=hint)
        yield from ({"op": "supersede", "from": record["id"], "to": id} for id in successors)
    elif known["status"] == "active":
        yield {"op": "deprecate", "id": record["id"], "reason": "deprecated by hand in the file of the playbook"}


def _of_review(record: dict[str, Any], known: dict[str, Any], day: str) -> Iterator[dict[str, Any]]:
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
