"""All errors that memd reports: one class per next step of the user, with a stable code and an exit code.

Programmer errors are not in this tree; they crash.
"""

from __future__ import annotations

from typing import ClassVar


class MemdError(Exception):
    """Base of all errors. `code` is stable and travels on the wire, `hint` names the next step. A subclass inherits a
    code or exit code that it does not set."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init_subclass__(cls, *, code: str | None = None, exit_code: int | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            cls.code = code
            _BY_CODE[code] = cls
        if exit_code is not None:
            cls.exit_code = exit_code

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


_BY_CODE: dict[str, type[MemdError]] = {MemdError.code: MemdError}


# --- the request is wrong: correct it and send it again ------------------------------------------------------
class InvalidRequest(MemdError, code="invalid_request", exit_code=2):
    """The body does not decode, or a field has the wrong type or value."""


class UnknownRequest(InvalidRequest, code="unknown_request"):
    """The body decodes, but names a request that this daemon does not have."""


class NaiveTime(InvalidRequest, code="naive_time"):
    """A time without an offset: memd would have to guess the zone (P-21)."""


class TooLarge(InvalidRequest, code="too_large"):
    """A message or a text exceeds the size limit."""


class NotFound(InvalidRequest, code="not_found", exit_code=4):
    """No record, pool or session has that name."""


class Forgotten(InvalidRequest, code="forgotten"):
    """The user had this turn forgotten; memd never stores it again, whoever sends it (T10)."""


class Withheld(InvalidRequest, code="withheld"):
    """A pause or an ignored folder stops the capture. A retry fails too, so a spool counts the event as delivered."""


class BadConfig(InvalidRequest, code="bad_config"):
    """A setting does not exist or its value is out of range."""


# --- the daemon cannot be reached, or not in time: try again, or start it ------------------------------------
class Unavailable(MemdError, code="unavailable", exit_code=3):
    """The daemon cannot answer now."""


class DaemonDown(Unavailable, code="daemon_down"):
    """No process listens on the socket."""


class DeadlineExceeded(Unavailable, code="deadline_exceeded"):
    """The daemon did not answer before the client's deadline."""


class Stopping(Unavailable, code="stopping"):
    """The daemon is stopping and accepts no new work."""


class RemoteUnreachable(Unavailable, code="remote_unreachable"):
    """The remote that carries a shared project did not answer, or git would have to ask the user something."""


class RemoteRefusal(MemdError, code="remote_refusal", exit_code=4):
    """The remote that carries a shared project answered no: it is another repository, or it takes no such ref."""


# --- the user must repair the data folder --------------------------------------------------------------------
class StoreError(MemdError, code="store", exit_code=5):
    """The data folder cannot be used as it is."""


class JournalLocked(StoreError, code="journal_locked"):
    """Another process holds the lock on the data folder."""


class JournalCorrupt(StoreError, code="journal_corrupt"):
    """A checksum or the hash chain does not match: an entry differs from the one that was written."""


class StorageFull(StoreError, code="storage_full"):
    """The disk rejected a write. Acknowledged data is safe and reads continue."""


class UnsupportedFormat(StoreError, code="unsupported_format"):
    """A version of memd that this one does not know wrote the data folder."""


# --- the user must repair the installation or the environment ------------------------------------------------
class ModelMissing(MemdError, code="model_missing", exit_code=6):
    """Model weights are missing, or their hash differs from the manifest (P-15)."""


class Refused(MemdError, code="refused", exit_code=7):
    """memd does not run in this environment: wrong owner or modes, sudo, a network file system."""


class Denied(Refused, code="denied"):
    """The pass does not verify, has expired, is revoked, or does not allow the request (A1)."""


class Disabled(MemdError, code="disabled", exit_code=0):
    """memd is disabled for this user or process (W14): the caller does nothing and succeeds."""


def by_code(code: str, message: str, hint: str) -> MemdError:
    """Rebuild an error from its wire form; an unknown code gives a plain `MemdError`."""
    if kind := _BY_CODE.get(code):
        return kind(message, hint=hint)
    return MemdError(f"{code}: {message}", hint=hint)
