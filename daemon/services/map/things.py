"""The things that a record names or is about, and which of their names are but common words (R8, U4).

A thing is an end of a relation, another name of a thing, the subject of a key, a span of code, an identifier, or a
proper name. Invariants: a record with flags names nothing, so an injected text makes no topic; a name at the start of a
sentence counts only if another record has it within one, because any word there begins with a capital.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....protocol.record import Record
from ....stages.words import STOP, stem
from ...projections.graph import edge
from ...projections.lines import HUBS

LONGEST = 40
"""Most characters of a name."""

_CODE = re.compile(r"`([^`\n]{2,40})`")
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|\w[_./:]+\w|\w\d|\d\w|#")
_NAME = re.compile(r"[A-Z][\w+#-]*\w(?: [A-Z][\w+#-]*\w){0,2}")
_PLAIN = re.compile(r"[A-Za-z]?[a-z]+")
_LOWER = re.compile(r"(?<![\w./#@_:'’-])[a-z]{2,}(?![\w/#@_:-]|\.\w)")
_DETERMINED = re.compile(
    r"\b(?:an?|each|every|any|another|the|this|that|its?|their|your|my|our|no) ([a-z]+)(?: ([a-z]+))?"
)
_SENTENCE_END = ".!?:;“”\"'(–—-•\n"


class Things(NamedTuple):
    """Names as they are written, without repetition. `leading`: words that begin a sentence and may be names; `given`:
    the certain ones that are an end of a relation, another name of a thing, or the subject of a key."""

    certain: tuple[str, ...]
    leading: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


def things_of(record: Record) -> Things:
    """Return the things that a record names."""
    if record.flags:
        return Things(())
    relation = edge(record)
    if relation is not None:
        ends = _once(name for name in (relation.subject, relation.object) if name.casefold() not in HUBS)
        return Things(ends, given=ends)
    given = list(record.aliases)
    if record.key and record.kind == "fact":
        given.append(record.key.rpartition(".")[2])
    certain = [*record.aliases, *_CODE.findall(record.description), *given[len(record.aliases) :]]
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
    return Things(_once(certain), _once(leading), _once(given))


class LowerCaseWords:
    """The words of English records that are in lower case outside code. They tell a common word from a name: a common
    word is used in several forms, or stands alone behind an article."""

    def __init__(self) -> None:
        self._words: Counter[str] = Counter()
        self._alone: Counter[str] = Counter()

    def read(self, record: Record) -> None:
        """Count the words of a record."""
        if record.language != "en":
            return
        text = _CODE.sub(" ` ", record.description)
        self._words.update(_LOWER.findall(text))
        self._alone.update(word for word, after in _DETERMINED.findall(text) if not after or after in STOP)

    def common(self, named: Iterable[tuple[str, int]]) -> Iterator[str]:
        """Yield the names that are common words; of each name comes the number of records that have it. It is one if
        the texts have it at least as often in lower case, in several forms or alone behind an article."""
        forms: dict[str, list[str]] = {}
        for word in self._words:
            forms.setdefault(stem(word), []).append(word)
        for name, records in named:
            if not _PLAIN.fullmatch(name):
                continue
            found = forms.get(stem(name), [])
            is_word = len(found) > 1 or any(self._alone[word] for word in found)
            if is_word and sum(self._words[word] for word in found) >= records:
                yield name


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
    return 2 <= len(name) <= LONGEST and name.casefold() not in STOP and any(map(str.isalpha, name))
