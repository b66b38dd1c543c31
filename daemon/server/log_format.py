"""The form of the daemon's log lines, which quote no unknown input (P-18).

A line passes the secret rules and has no control characters; a traceback names the types of its errors and, of a system
error, the reason, but not their messages, which may quote a request.
"""

from __future__ import annotations

import logging
import re
import traceback
from types import TracebackType

from ...protocol.redact import redact as short
from ...stages.secrets.scan import redact

LINE_CHARACTERS = 2000
"""Maximum characters of a line without its traceback."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class CleanFormatter(logging.Formatter):
    """Formats a record as one line without secrets, and a traceback without the messages of its errors."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().formatMessage(record)
        if record.args:
            line = short(redact(line.encode(errors="replace").decode())[0])[0]
        return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", line)[:LINE_CHARACTERS]

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """Return the traceback, the cause before its consequence."""
        parts: list[str] = []
        error: BaseException | None = ei[1]
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            reason = f": {error.strerror}" if isinstance(error, OSError) else ""
            parts.append(f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__qualname__}{reason}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(("Traceback (most recent call last):", "\nwhich led to:\n".join(reversed(parts))))
