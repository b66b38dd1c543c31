"""The tree of errors: what went wrong, and what the caller must do next.

Comes in: a message and a hint. Goes out: an exception that the CLI and the door turn into
`{ok: false, error: {code, message, hint}}` and an exit code. Invariant: one class per thing the caller must do,
one exit code per branch. Programmer errors are not in this tree: they crash.
"""

from __future__ import annotations

from typing import ClassVar


class MemdError(Exception):
    """Base of everything a user may be told. `code` is stable and goes over the wire; `hint` says what to do."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


# --- the request is wrong: mend it and send again (exit 2) ---------------------------------------------------
class InvalidRequest(MemdError):
    """The body does not decode, or a field has the wrong type or value."""

    code = "invalid_request"
    exit_code = 2


class UnknownRequest(InvalidRequest):
    """The body decodes, but names a request that this daemon does not have."""

    code = "unknown_request"


class NaiveTime(InvalidRequest):
    """A time without an offset: memd would have to guess the zone (P-21)."""

    code = "naive_time"


class TooLarge(InvalidRequest):
    """A message or a text over the size limit."""

    code = "too_large"


class NotFound(InvalidRequest):
    """No record, pool or session of that name."""

    code = "not_found"
    exit_code = 4


class Forgotten(InvalidRequest):
    """A turn that the user had forgotten for good: it is not taken again, whoever sends it (T10)."""

    code = "forgotten"


class Withheld(InvalidRequest):
    """Nothing is taken here now, because the user said so: a pause, an ignored folder. Sending it again changes
    nothing, so a spool counts it as delivered."""

    code = "withheld"


class BadConfig(InvalidRequest):
    """A setting that does not exist or has a value out of range."""

    code = "bad_config"


# --- the daemon can't be reached, or not in time (exit 3) ----------------------------------------------------
class Unavailable(MemdError):
    """Try again later, or start the daemon."""

    code = "unavailable"
    exit_code = 3


class DaemonDown(Unavailable):
    """Nobody listens on the socket."""

    code = "daemon_down"


class DeadlineExceeded(Unavailable):
    """The daemon did not answer before the client's deadline."""

    code = "deadline_exceeded"


class Stopping(Unavailable):
    """The daemon is on its way down and takes no new work."""

    code = "stopping"


class AlreadyRunning(Unavailable):
    """Another daemon holds this home."""

    code = "already_running"


# --- the store needs the user (exit 5) -----------------------------------------------------------------------
class StoreError(MemdError):
    """The data directory can't be used as it is."""

    code = "store"
    exit_code = 5


class JournalLocked(StoreError):
    """Another process holds the lock on the data directory."""

    code = "journal_locked"


class JournalCorrupt(StoreError):
    """A checksum or the chain does not hold: the entry named is not what was written."""

    code = "journal_corrupt"


class StorageFull(StoreError):
    """The disk refused a write. Nothing that was acknowledged is lost; memd stays readable."""

    code = "storage_full"


class UnsupportedFormat(StoreError):
    """The data directory was written by a version that this one does not know."""

    code = "unsupported_format"


# --- the installation or the surroundings need the user (exit 6, 7) ------------------------------------------
class ModelMissing(MemdError):
    """Model weights are missing, or their hash is not the one in the manifest (P-15)."""

    code = "model_missing"
    exit_code = 6


class Refused(MemdError):
    """memd will not run like this: wrong owner, wrong modes, under sudo, on a network file system."""

    code = "refused"
    exit_code = 7


class Denied(Refused):
    """The access pass does not verify, is past its time, is revoked, or does not reach so far (A1)."""

    code = "denied"


class Disabled(MemdError):
    """memd is switched off for this user or process (W14): who hears of it does nothing, and ends well."""

    code = "disabled"
    exit_code = 0


def by_code(code: str, message: str, hint: str) -> MemdError:
    """The error of that wire code, rebuilt on the client's side; an unknown code gives a plain `MemdError`."""
    pending = [MemdError]
    while pending:
        kind = pending.pop()
        if kind.code == code:
            return kind(message, hint=hint)
        pending.extend(kind.__subclasses__())
    return MemdError(f"{code}: {message}", hint=hint)
