"""The export file: tagged JSON lines that can be imported into an empty data folder (P-25).

Invariants: the first line has the format and version; records keep all their fields, except in a shareable export,
which has only records that may leave, without quotes and without what was noted about them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .errors import InvalidRequest
from .operation import PoolOpened, SessionOpened
from .record import Record, typed
from .redact import redact
from .reply import Change, ExportedRecord

FORMAT = 1
"""Version of the lines. memd rejects a file of a later version."""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line"):
    """Base of the lines."""


class ExportHead(ExportLine, tag="memd_export", frozen=True, kw_only=True):
    """The first line. `shareable`: only records that may leave, without quotes."""

    format: int
    memd: str
    at: str
    shareable: bool = False


class PoolLine(ExportLine, tag="pool", frozen=True, kw_only=True):
    """A pool of the records."""

    pool: PoolOpened


class SessionLine(ExportLine, tag="session", frozen=True, kw_only=True):
    """A document that records come from."""

    session: SessionOpened


class RecordLine(ExportLine, tag="record", frozen=True, kw_only=True):
    """A record and its changes in order."""

    record: Record
    changes: tuple[Change, ...] = ()


class EndLine(ExportLine, tag="end", frozen=True, kw_only=True):
    """The last line, with the number of records; a file without it is truncated."""

    records: int


AnyLine = ExportHead | PoolLine | SessionLine | RecordLine | EndLine
Form = Literal["jsonl", "md"]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


def encode_line(line: AnyLine) -> bytes:
    """Encode a line as JSON with its newline."""
    return _encoder.encode(typed(line)) + b"\n"


def decode_line(raw: bytes) -> AnyLine:
    """Decode a line. Raises InvalidRequest."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"this line is not part of an export: {error}") from error


def leaving(exported: ExportedRecord, shareable: bool) -> ExportedRecord:
    """Redact a record for export (P-18). A shareable one also loses its quote, its learnings and proofs, and the
    reasons of its changes, which may speak of other records."""
    record = exported.record
    provenance = record.provenance
    quote = "" if shareable else redact(provenance.quote)[0]
    outgoing = msgspec.structs.replace(
        record,
        content=redact(record.content)[0],
        description=redact(record.description)[0],
        value=redact(record.value)[0],
        provenance=msgspec.structs.replace(provenance, quote=quote),
    )
    changes = exported.changes
    if shareable:
        outgoing = msgspec.structs.replace(outgoing, learnings={}, relates_to=(), artifacts=())
        changes = tuple(msgspec.structs.replace(change, by="", decision=None, reason="") for change in changes)
    return ExportedRecord(record=outgoing, changes=changes)


def leaving_session(opened: SessionOpened) -> SessionOpened:
    """Return a session of a shareable export: an import needs its name and pool, nobody its title and `cwd`."""
    origin = msgspec.structs.replace(opened.origin, cwd="", repository=None, title="")
    return msgspec.structs.replace(opened, origin=origin)


def leaving_pool(opened: PoolOpened) -> PoolOpened:
    """Return a pool of a shareable export, without the folders by which memd knows it."""
    return PoolOpened(pool=opened.pool, title=opened.title)
