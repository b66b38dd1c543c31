"""The check of every captured event: limits, valid Unicode; removes injected memory, and through the gate secrets and
private spans."""

from __future__ import annotations

import logging
import re

from ...protocol.errors import InvalidRequest, MemdError, TooLarge
from ...protocol.event import AnyEvent, Captured, Noted, Origin, Reworded, text, with_text
from ...protocol.instant import LONGEST_TIME, SHORTEST_TIME, checked
from ...protocol.private import PLACEHOLDER, event_without_private
from ...protocol.record import PLAYBOOK_HOST, TEAM
from ...protocol.secret_gate import SecretGate
from ...protocol.text_limits import TEXT_LIMIT, check_event

log = logging.getLogger("memd.capture")
_INJECTED = re.compile(r"<memd-context\b[^>]{0,200}>.*?(?:</memd-context>|\Z)", re.DOTALL)

LEAST = 2
"""Letters and digits that a statement has at least."""

RESERVED = frozenset({"memd", TEAM, PLAYBOOK_HOST})
"""Hosts that only memd names: its own documents, and those of other authors: shared lines and patches."""

NAME_LIMIT = 512
PATH_LIMIT = 4096


def host_of(document: str) -> str:
    """Return the host in a document's id."""
    return document.partition(":")[0]


def check_host(origin: Origin) -> None:
    """Raise InvalidRequest if a client names a host that only memd may name."""
    if (host := host_of(origin.document)) in RESERVED:
        raise InvalidRequest(f"the host {host!r} is reserved for memd", hint="name your tool as the host")


def admit(gate: SecretGate, origin: Origin, event: AnyEvent) -> Captured:
    """Return the capture of an event of an origin that has passed the gate. Raises NaiveTime, TooLarge or
    InvalidRequest."""
    if not event.turn or len(event.turn) > NAME_LIMIT:
        raise InvalidRequest("a turn id must have 1 to 512 characters", hint="use the host's own id of the turn")
    if not origin.host or len(origin.document) > NAME_LIMIT:
        raise InvalidRequest("an origin must name a host and a session of at most 512 characters each")
    if len(origin.cwd) > PATH_LIMIT:
        raise InvalidRequest(f"the folder's path has {len(origin.cwd):,} characters", hint=f"at most {PATH_LIMIT:,}")
    checked(event.at)
    event = event_without_private(event)
    if not SHORTEST_TIME <= len(event.at) <= LONGEST_TIME:
        raise InvalidRequest(
            f"{event.at[:60]!r} is not an RFC 3339 time", hint="use the form 2026-03-04T18:30:00+01:00"
        )
    words = text(event)
    if len(words) > TEXT_LIMIT:
        raise TooLarge(
            f"the text has {len(words):,} characters",
            hint=f"split the text: a turn may have at most {TEXT_LIMIT:,} characters",
        )
    check_event(event)
    try:
        words.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the text is not valid Unicode: {error.reason}", hint="remove lone surrogates") from error
    if "<memd-context" in words:
        event = with_text(event, _INJECTED.sub("", words))
    event, secrets = gate.of(origin.document).event(event)
    if isinstance(event, Noted | Reworded) and not event.text.replace(PLACEHOLDER, "").strip():
        raise InvalidRequest(
            "there is nothing to remember", hint="the text is empty, private, or only memd's own context"
        )
    if isinstance(event, Noted | Reworded) and sum(map(str.isalnum, event.text)) < LEAST:
        raise InvalidRequest(
            f"{event.text.strip()!r} is no statement", hint='tell what memd should know: "I prefer tabs."'
        )
    return Captured(
        document=origin.document,
        event=event,
        live=origin.live,
        redacted=secrets,
    )


def bug(error: BaseException, doing: str = "committing") -> MemdError:
    """Log an unexpected error; return the error for the client."""
    log.error("internal error while %s", doing, exc_info=error)
    return MemdError(
        f"memd failed on this request: {type(error).__name__}", hint="the daemon's log has details: `memd logs`"
    )
