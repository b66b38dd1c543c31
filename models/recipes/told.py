"""What developers say again: the lines of `data/told_*.jsonl` and `data/again_*.jsonl`.

A line is a developer: `who`, `rules`, and what he `said`: `turn`, the part of it that counts (`states`), what the agent
said `before`, the `records` that memd made of it (their descriptions), the place of the `rule` that it states (-1 for
none), `near`: the same number for sayings that sound alike, and `lasting`: whether it is something that an agent should
follow from now on, where that is known.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from labelled import DATA

OVERLAP = 0.6  # Share of common words from which a record states what its saying states
_WORD = re.compile(r"\w+")


class Saying(NamedTuple):
    """`stating`: the descriptions of the records that state what the saying states; `other`: of its other records."""

    states: str
    turn: str
    before: str
    rule: int
    near: int
    lasting: bool | None
    stating: tuple[str, ...]
    other: tuple[str, ...]


def developers() -> Iterator[tuple[str, list[Saying]]]:
    """Yield the name of each developer, a file and a line, with the sayings."""
    for file in (*sorted(DATA.glob("told_*.jsonl")), *sorted(DATA.glob("again_*.jsonl"))):
        for line, text in enumerate(file.read_text(encoding="utf-8").splitlines()):
            yield f"{file.stem} {line}", [_saying(said) for said in json.loads(text)["said"]]


def _saying(said: dict[str, Any]) -> Saying:
    rule = said["rule"]
    stating = tuple(record for record in said["records"] if _states(record, said["states"]))
    other = tuple(record for record in said["records"] if record not in stating)
    lasting = True if rule >= 0 else said.get("lasting")
    return Saying(said["states"], said["turn"], said["before"], rule, said.get("near", rule), lasting, stating, other)


def _states(record: str, statement: str) -> bool:
    """Whether a record has most of the words of a statement, or a statement those of the record."""
    words, others = (set(_WORD.findall(text.lower())) for text in (record, statement))
    return len(words & others) >= OVERLAP * min(len(words), len(others))


def author(name: str) -> str:
    """Return who wrote a developer: the name of the file."""
    return name.split(maxsplit=1)[0]
