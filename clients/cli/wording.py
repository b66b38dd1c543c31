"""Records in words: when, who, where from, and the quote, the same in every command.

Comes in: records and hits. Goes out: lines for a terminal. Invariant: everything captured goes through `plain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ...protocol.recall import Heard, Hit
from ...protocol.record import STATES, Record
from ...protocol.reply import Reembedding
from .output import plain, shortened, styled, width, wrapped

SHORT_ID = 8
_WHO = {"user": "you", "assistant": "the assistant", "tool": "a tool", "document": "a document"}
_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"), (10_000, "year"))


def short(id: str) -> str:
    """The beginning of an id that a person can type; the daemon takes any that is unambiguous."""
    return id[:SHORT_ID]


def reembedding_text(told: Reembedding) -> str:
    """How far the way to another model is, and what is searched meanwhile."""
    meanwhile = "records without a vector are found by their words" if told.by_words else "the present model searches"
    if told.problem:
        return f"re-embedding stopped at {told.done:,} of {told.total:,}, {meanwhile}"
    return f"re-embedding {told.done:,} of {told.total:,} for {plain(told.model)}, {meanwhile} meanwhile"


def age(at: str | int, now: datetime | None = None) -> str:
    """How long ago a time was: "3 days ago". Takes RFC 3339 text or microseconds; "" for none."""
    if not at:
        return ""
    try:
        then = datetime.fromtimestamp(at / 1e6, UTC) if isinstance(at, int) else datetime.fromisoformat(at)
        count = int(((now or datetime.now(UTC)) - then).total_seconds())
    except (ValueError, TypeError, OverflowError, OSError):
        return plain(str(at))
    if count < 0:
        return f"on {then.date().isoformat()}"
    if count < 5:
        return "just now"
    for size, unit in _STEPS:
        if count < size:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
        count //= size
    return str(at)


def moment(at: str) -> str:
    """A time to the minute, where the user is: "2026-03-04 18:30". Takes RFC 3339 text."""
    try:
        return datetime.fromisoformat(at).astimezone().isoformat(" ", "minutes")[:16]
    except (ValueError, OverflowError):
        return plain(at)


def who(record: Record) -> str:
    """Whose word a record is."""
    if record.provenance.trust == "document" and record.provenance.author:
        return plain(record.provenance.author)
    return _WHO.get(record.provenance.trust, record.provenance.trust)


def place(record: Record) -> str:
    """Session and turn of a record's words."""
    spans = record.provenance.spans
    if not spans:
        return plain(record.provenance.source)
    return f"{plain(spans[0].document)} · turn {plain(spans[0].turn)[:13]}"


def state(status: str) -> str:
    """A status in the word that users read."""
    return STATES.get(status, status)


def badges(record: Record) -> str:
    """What a reader should know before believing a record."""
    words = [state(record.status)] if record.status not in {"active", "provisional"} else []
    words += ["needs review"] if record.needs_review else []
    return " · ".join(styled(word, "yellow") for word in words)


def facts(record: Record) -> str:
    """One line: type, whose word, how old, status."""
    parts = [plain(record.type), f"{who(record)}, {age(record.provenance.said_at)}", badges(record)]
    return " · ".join(part for part in parts if part)


def row(record: Record) -> str:
    """A record on one line of a list."""
    head = f"{short(record.id)}  {plain(record.type):<11.11} "
    mark = "" if record.status in {"active", "provisional"} else f"[{state(record.status)}] "
    text = shortened(mark + plain(record.description), max(20, width() - len(head)))
    return f"{styled(short(record.id), 'cyan')}{head[SHORT_ID:]}{styled(text, 'dim') if mark else text}"


def hit_lines(number: int, hit: Hit, explain: bool = False) -> Iterator[str]:
    """A recalled record: what, in whose very words, how sure, where from."""
    record = hit.record
    head = f"{number}. "
    indent = " " * len(head)
    description, quote = plain(record.description), plain(record.provenance.quote)
    first = f"“{quote}”" if quote == description else description
    yield from (styled(line, "bold") for line in wrapped(first, indent, head))
    if quote and quote != description:
        yield from wrapped(f"“{shortened(quote, 300)}”", indent)
    yield styled(f"{indent}{short(record.id)}", "cyan") + f" · score {hit.score:.2f} · {facts(record)}"
    yield from (styled(line, "dim") for line in wrapped(place(record), indent))
    if explain and hit.parts:
        parts = ", ".join(f"{plain(name)} {value:.3f}" for name, value in sorted(hit.parts.items()))
        yield from (styled(line, "dim") for line in wrapped(f"score parts: {parts}", indent))


def heard_lines(number: int, heard: Heard) -> Iterator[str]:
    """A turn as it was said: the very words, who said them, where."""
    head = f"{number}. "
    indent = " " * len(head)
    yield from (styled(line, "bold") for line in wrapped(f"“{shortened(plain(heard.quote), 300)}”", indent, head))
    said = f"{_WHO.get(heard.trust, heard.trust)}, {age(heard.at)}"
    yield f"{indent}in the transcript · score {heard.score:.2f} · {said}"
    where = f"{plain(heard.document)} · turn {plain(heard.turn)[:13]}"
    yield from (styled(line, "dim") for line in wrapped(where, indent))


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
