"""The limit of each text of a request: memd redacts and reads every text, so a long one would delay other clients."""

from __future__ import annotations

from collections.abc import Mapping

from .corrections import Correct
from .errors import TooLarge
from .event import Committed, Event, Noted, Ran, Returned, Reworded, Said, SentPart, Taught, ToolCalled, Wrote
from .message_texts import rewritten
from .request import Capture, Edit, ImportRecords, Recall, Remember
from .request_fields import Request
from .scope import OpenAgent
from .settings import PutSetting

TEXT_LIMIT = 512 * 1024
"""Maximum characters of a text that memd stores, such as a turn."""

FIELD_LIMIT = 4096
"""Maximum characters of any other text: a question, a name, a path."""

QUESTION_LIMIT = 4 * FIELD_LIMIT
"""Maximum characters of a question with its keywords and scope."""

CONTENT: Mapping[type, frozenset[str]] = {
    Correct: frozenset({"text"}),
    Edit: frozenset({"text"}),
    Committed: frozenset({"subject"}),
    Noted: frozenset({"text"}),
    OpenAgent: frozenset({"prompt"}),
    PutSetting: frozenset({"value"}),
    Ran: frozenset({"command"}),
    Remember: frozenset({"text"}),
    Returned: frozenset({"text"}),
    Reworded: frozenset({"text"}),
    Said: frozenset({"text"}),
    SentPart: frozenset({"text"}),
    Taught: frozenset({"text"}),
    ToolCalled: frozenset({"name", "arguments"}),
    Wrote: frozenset({"text"}),
}
"""Fields whose text memd stores. The limit of an event's text applies to that event alone (`services/admission.py`)."""

_HINT = "shorten it; docs/PROTOCOL.md lists the limits"


def check_texts(request: Request) -> None:
    """Raise TooLarge for a text over its limit, and for a question with many keywords. Events and
    imported records are not read: each is checked where it is taken."""
    if isinstance(request, Capture):
        _check(request.origin, FIELD_LIMIT)
    elif not isinstance(request, ImportRecords):
        total = _check(request, FIELD_LIMIT)
        if isinstance(request, Recall) and total > QUESTION_LIMIT:
            raise TooLarge(f"the question has {total:,} characters in all, at most {QUESTION_LIMIT:,}", hint=_HINT)


def check_event(event: Event) -> None:
    """Raise TooLarge for a field of an event over its limit."""
    _check(event, FIELD_LIMIT)


def _check(message: object, limit: int) -> int:
    """Return the number of characters in all texts. Raises TooLarge."""
    total = 0

    def measured(owner: type, name: str, words: str) -> str:
        nonlocal total
        total += len(words)
        most = TEXT_LIMIT if name in CONTENT.get(owner, ()) else limit
        if len(words) > most:
            raise TooLarge(f"`{name}` has {len(words):,} characters, at most {most:,}", hint=_HINT)
        return words

    rewritten(message, measured)
    return total
