"""Times, authors and statuses as the panel words them; each function is a filter of the templates."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ...protocol.record import LIVE, STATES, Record, Status

_AUTHORS = {"user": "you", "assistant": "the agent", "tool": "a tool", "document": "a document"}
_BELIEFS = {"active": "believed", "provisional": "unconfirmed", "retired": "no longer true", "": "gone for good"}
UNCONFIRMED: tuple[Status, ...] = ("quarantined", "provisional")
_HOSTS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini",
    "git": "git",
    "cli": "the command line",
    "panel": "this panel",
    "mcp": "an MCP client",
}
QUOTED = 400
"""Characters of a quote beside other text, at most."""

PINNED_LAYERS = frozenset({"L1", "L2"})


def moment(at: str | int) -> str:
    """Return RFC 3339 text, or microseconds since the epoch, as local time to the minute; "" for none."""
    time = _time(at)
    return f"{time:%Y-%m-%d %H:%M}" if time else str(at or "")


def day(at: str | int) -> str:
    """Return the local day of a time, "" for none."""
    time = _time(at)
    return f"{time:%Y-%m-%d}" if time else str(at or "")


def _time(at: str | int) -> datetime | None:
    if not at:
        return None
    try:
        time = datetime.fromtimestamp(at / 1e6, UTC) if isinstance(at, int) else datetime.fromisoformat(at)
        return time.astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def day_title(at: int) -> str:
    """Return the local day of a time in microseconds as a heading."""
    time = datetime.fromtimestamp(at / 1e6, UTC).astimezone()
    days = (datetime.now().astimezone().date() - time.date()).days
    return {0: "Today", 1: "Yesterday"}.get(days) or f"{time:%A}, {time.day} {time:%B %Y}"


def clock(at: int) -> str:
    """Return the local time of day of a time in microseconds."""
    return f"{datetime.fromtimestamp(at / 1e6, UTC).astimezone():%H:%M}"


def micros(at: str) -> int:
    """Return RFC 3339 text as microseconds since the epoch, 0 for none."""
    time = _time(at)
    return round(time.timestamp() * 1e6) if time else 0


def author(trust: str) -> str:
    """Return the author of a turn as a reader knows it."""
    return _AUTHORS.get(trust, trust)


def who(record: Record) -> str:
    """Return the author of a record."""
    if record.provenance.trust == "document" and record.provenance.author:
        return record.provenance.author
    return author(record.provenance.trust)


def state(status: str) -> str:
    """Return the word that users read for a status."""
    return STATES.get(status, status)


def belief(status: str) -> str:
    """Return what a status means for what memd tells; "" is that of a deleted record."""
    return _BELIEFS.get(status, state(status))


def host(document: str) -> str:
    """Return the host of a session's document, `host:session`."""
    return document.partition(":")[0]


def host_name(document: str) -> str:
    """Return the host of a session's document as a person knows it."""
    return _HOSTS.get(host(document), host(document))


def bytes_text(number: int) -> str:
    """Return a number of bytes as text in decimal units."""
    if number < 1000:
        return f"{number:,} bytes"
    return f"{number / 1000:,.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:,.1f} MB"


def short(id: str) -> str:
    """Return the prefix of an id that a person types."""
    return id[:8]


def is_pinned(record: Record) -> bool:
    """Return whether the user pinned the record, or it has a layer that stays."""
    return record.pinned or record.layer in PINNED_LAYERS


def may_hide(record: Record) -> bool:
    """Return whether the user can hide the record: it is live, and nobody pinned it or decided to keep it."""
    return record.status in LIVE and not record.held


def reader(distiller: str) -> str:
    """Return who read a record's words out of a session, by its provenance."""
    return "the local model" if not distiller or distiller.startswith("rules-") else distiller


def cut(text: str) -> str:
    """Return the beginning of a text: whole lines, or words of a long first line, and an ellipsis for the rest."""
    text = text.strip()
    if len(text) <= QUOTED:
        return text
    lines = text[: QUOTED + 1].rpartition("\n")[0].rstrip()
    return f"{lines}\n…" if lines else f"{text[:QUOTED].rpartition(' ')[0] or text[:QUOTED]} …"


def version_reason(why: str, id: str) -> str:
    """Return the reason of a version of a record, in which the record is not named as another one."""
    return "it was said again" if why.startswith(f"says what {id} says") else why


def sentence(text: str) -> str:
    """Return the first sentence of a text."""
    end = re.search(r"[.!?](?= [A-Z`])", text)
    return text[: end.end()] if end else text


FILTERS = (
    moment,
    day,
    author,
    who,
    state,
    belief,
    host,
    short,
    is_pinned,
    reader,
    day_title,
    clock,
    host_name,
    bytes_text,
    sentence,
    cut,
    version_reason,
)
