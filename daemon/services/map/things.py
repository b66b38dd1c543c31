"""The things that a record names or is about (R8, U4).

A thing is an end of a relation, another name of a thing, the subject of a key, a span of code, an identifier, or a
proper name. Invariants: a record with flags names nothing, so an injected text makes no topic; a name at the start of a
sentence counts only if another record has it within one, because any word there begins with a capital.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ....protocol.record import Record
from ....stages.words import STOP
from ...projections.graph import edge
from ...projections.lines import HUBS

LONGEST = 40
"""Most characters of a name."""

_CODE = re.compile(r"`([^`\n]{2,40})`")
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|\w[_./:]+\w|\w\d|\d\w|#")
_NAME = re.compile(r"[A-Z][\w+#-]*\w(?: [A-Z][\w+#-]*\w){0,2}")
_SENTENCE_END = ".!?:;“”\"'(–—-•\n"


class Things(NamedTuple):
    """Names as they are written, without repetition. `leading`: words that begin a sentence and may be names."""

    certain: tuple[str, ...]
    leading: tuple[str, ...] = ()


def things_of(record: Record) -> Things:
    """Return the things that a record names."""
    if record.flags:
        return Things(())
    relation = edge(record)
    if relation is not None:
        return Things(_once(name for name in (relation.subject, relation.object) if name.casefold() not in HUBS))
    certain = [*record.aliases, *_CODE.findall(record.description)]
    if record.key and record.kind == "fact":
        certain.append(record.key.rpartition(".")[2])
    certain += (tag for tag in record.tags[1:] if _IDENTIFIER.search(tag))
    leading: list[str] = []
    if record.language == "en":
        text = record.description
        for match in _NAME.finditer(text):
            if _begins_sentence(text, match.start()):
                first, _, others = match[0].partition(" ")
                leading += dict.fromkeys((match[0], first, others))
            else:
                certain.append(match[0])
    return Things(_once(certain), _once(leading))


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 3) : at].rstrip(" ")
    return not before or before[-1] in _SENTENCE_END


def _once(names: Iterator[str] | list[str]) -> tuple[str, ...]:
    """Return the names that may be of things, each once in any case."""
    named: dict[str, str] = {}
    for name in names:
        if _is_name(name):
            named.setdefault(folded(name), name)
    return tuple(named.values())


def folded(name: str) -> str:
    """Return what two spellings of a thing's name have in common."""
    return " ".join(name.casefold().replace("-", " ").split())


def _is_name(name: str) -> bool:
    return 2 <= len(name) <= LONGEST and name.casefold() not in STOP and not name.isdigit()
