"""Records from other authors' lines (H2).

Pure: no store, no clock. Invariants: the id, the pool and the source follow from the place of the line, never from what
it says; a record of another author is a document's word of layer L3, without a pin and without a type that speaks for
the user; no text has characters that a terminal acts on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import category

from ....protocol.errors import MemdError
from ....protocol.ingestion import SUMMARY
from ....protocol.instant import checked, from_micros, micros
from ....protocol.record import CONSOLIDATED, PRINCIPLE, QUOTE_LIMIT, TYPES, Provenance, Record, Span, Status
from ....protocol.share import Standing
from ....protocol.shared_lines import (
    AddLine,
    AnySharedLine,
    InvLine,
    MalformedShare,
    decode_shared,
    parse_line_name,
    shown_name,
)
from ..outgoing_screen import flags_in, secrets_in
from ..shared_belief import document_of, shared_id
from ..statements import line as one_line

SPEAKING = frozenset({"identity", "preference", "procedure", "persona", PRINCIPLE})
"""Types that speak for the user, or tell an agent what to do: a line with one of these becomes a note."""

_MARKS = frozenset({PRINCIPLE, CONSOLIDATED, SUMMARY, *SPEAKING, *TYPES})
_TAGS, _WORD, _KEY, _WHY = 16, 64, 200, 500
_DAY = 86_400_000_000
_FORBIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of the text after them."""

STATUSES: dict[Standing, Status] = {"new": "quarantined", "trusted": "active", "muted": "hidden"}
"""The state of a record by the standing of its author."""

CLOCK = "said later than it came"
"""Flag of a line that names a day in the future."""


class ReadLine(NamedTuple):
    """A line at its place, or why memd does not take it."""

    n: int
    line: AnySharedLine | None
    why_not: str = ""


def read_line(raw: bytes, number: int, lamport: int) -> ReadLine:
    """Read and check one line. `lamport`: that of the head."""
    try:
        line = decode_shared(raw, number)
        if isinstance(line, AddLine | InvLine):
            _check(line, lamport)
    except MalformedShare as error:
        return ReadLine(number, None, str(error))
    except (MemdError, ValueError, OverflowError):
        return ReadLine(number, None, f"line {number} cannot be read")
    for words in _texts(line):
        if secrets := secrets_in(words):
            return ReadLine(
                number, None, f"line {number} has a secret ({secrets[0].rule}): its author should forget it"
            )
    if isinstance(line, AddLine):
        _flags(line)  # the verdicts are cached here, so that the write thread does not wait for them
    return ReadLine(number, line)


def author_name(name: str, partition: str) -> str:
    """Return an author's name as memd shows it; the beginning of the partition for one that is no name."""
    try:
        shown = shown_name(name)
    except MemdError:
        return partition[:8]
    return partition[:8] if secrets_in(shown) or flags_in(shown) else shown


def record_of(line: AddLine, pool: str, partition: str, author: str, now: int, supersedes: tuple[str, ...]) -> Record:
    """Return the record of a line, not yet with the status of its author. `now`: when it came, in microseconds."""
    document, number = document_of(partition), str(line.n)
    said, flags = _said(line.said, now)
    return Record(
        id=shared_id(pool, partition, line.n),
        pool=pool,
        kind=line.kind,
        content=line.text,
        description=one_line(line.text),
        key=line.key,
        value=line.value,
        tags=_tags(line),
        language=line.lang if line.lang.isalpha() and len(line.lang) <= 8 else "en",
        valid_from=_instant(line.since),
        valid_to=_instant(line.until),
        confidence=line.conf,
        volatility=line.vol,
        supersedes=supersedes,
        flags=tuple(dict.fromkeys((*_flags(line), *flags))),
        provenance=Provenance(
            author=author,
            source=document,
            trust="document",
            spans=(Span(document, number, 0, len(line.text)),),
            quote=line.text[:QUOTE_LIMIT],
            said_at=said,
            visibility="shared",
        ),
    )


def status_of(record: Record, standing: Standing) -> Status:
    """Return the state of a record that no line invalidates."""
    return "quarantined" if record.flags and standing == "trusted" else STATUSES[standing]


def _flags(line: AddLine) -> tuple[str, ...]:
    return (*flags_in(line.text), *flags_in(f"{line.key} {line.value}"))


def _tags(line: AddLine) -> tuple[str, ...]:
    first = line.type if line.type in TYPES and line.type not in SPEAKING else "note"
    return tuple(dict.fromkeys((first, *(tag for tag in line.tags if tag and tag.casefold() not in _MARKS))))


def _said(day: str, now: int) -> tuple[str, tuple[str, ...]]:
    """Return when a line was said, no later than now, and a flag if it names a later day. Days begin at different times
    on Earth."""
    said = _instant(day)
    if not said or micros(said) > now + _DAY:
        return from_micros(now), (CLOCK,) if said else ()
    return (said if micros(said) <= now else from_micros(now)), ()


def _instant(text: str) -> str:
    """Return a day or a time of a line as RFC 3339. Raises InvalidRequest, NaiveTime."""
    return checked(f"{text}T00:00:00Z" if len(text) == 10 else text) if text else ""


# --- checks ----------------------------------------------------------------------------------------------------------
def _texts(line: AnySharedLine) -> Iterator[str]:
    match line:
        case AddLine():
            yield from (line.text, line.key, line.value, *line.tags, f"{line.key}={line.value}")
        case InvLine():
            yield line.why
        case _:
            pass


def _check(line: AddLine | InvLine, lamport: int) -> None:
    """Raise MalformedShare, InvalidRequest or NaiveTime for values that no memd writes."""
    numbers = 0 <= line.l <= lamport and 0 <= line.at < 2**53 and len(line.b) <= 64
    if not numbers:
        raise MalformedShare(f"line {line.n} has impossible numbers")
    if isinstance(line, InvLine):
        _instant(line.until)
        parse_line_name(line.id)
        fits = _is_plain(line.why) and len(line.why) <= _WHY
    else:
        for time in (line.since, line.until, line.said):
            _instant(time)
        for name in line.of:
            parse_line_name(name)
        fits = _fits(line)
    if not fits:
        raise MalformedShare(f"line {line.n} has text that memd does not take")


def _fits(line: AddLine) -> bool:
    short = (line.type, line.lang, *line.tags)
    return (
        bool(line.text.strip())
        and _is_plain(line.text, "\n\t")
        and all(map(_is_plain, (line.key, line.value, *short)))
        and all(len(word) <= _WORD for word in short)
        and len(line.key) <= _KEY
        and len(line.tags) <= _TAGS
        and len(line.of) <= _TAGS
        and math.isfinite(line.conf)
        and 0 <= line.conf <= 1
    )


def _is_plain(words: str, allowed: str = "") -> bool:
    """Whether a text has only characters that show something, and those `allowed`."""
    return words.isprintable() or all(  # a printable text has no such character: 0.1 µs instead of 10
        character in allowed or (category(character) not in _FORBIDDEN and character not in _TURNING)
        for character in words
    )
