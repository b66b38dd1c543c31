"""The export as a file: JSON lines, each tagged, from which an empty home can be filled again (P-25).

Comes in: records with their history, and the sessions and pools they name. Goes out: lines of JSON, and the other way.
Invariants: the first line says what the file is and which version wrote it; ids, keys, statuses, world times and system
times are the record's own fields; a shareable export holds no quote (quotes never leave).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .errors import InvalidRequest
from .operation import PoolOpened, SessionOpened
from .record import Record
from .redact import redact
from .reply import Change, ExportedRecord

FORMAT = 1
"""Version of the lines; a file of a later version is refused."""


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="line"):
    """Base of the lines."""


class ExportHead(ExportLine, tag="memd_export", frozen=True, kw_only=True):
    """The first line: form, version, when, and whether the quotes were left out."""

    format: int
    memd: str
    at: str
    shareable: bool = False


class PoolLine(ExportLine, tag="pool", frozen=True, kw_only=True):
    """A pool that records lie in."""

    pool: PoolOpened


class SessionLine(ExportLine, tag="session", frozen=True, kw_only=True):
    """A document that records come from, and the project pool it feeds."""

    session: SessionOpened


class RecordLine(ExportLine, tag="record", frozen=True, kw_only=True):
    """A record and what happened to it, in order."""

    record: Record
    changes: tuple[Change, ...] = ()


class EndLine(ExportLine, tag="end", frozen=True, kw_only=True):
    """The last line: how many records there must have been; without it the file was cut off."""

    records: int


AnyLine = ExportHead | PoolLine | SessionLine | RecordLine | EndLine
Form = Literal["jsonl", "md"]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


def encode_line(line: AnyLine) -> bytes:
    """One line of JSON, its newline included."""
    return _encoder.encode(line) + b"\n"


def decode_line(raw: bytes) -> AnyLine:
    """The line in `raw`. Raises InvalidRequest, saying what is wrong with it."""
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"this line is not part of an export: {error}") from error


def leaving(exported: ExportedRecord, shareable: bool) -> ExportedRecord:
    """A record as it may leave, scanned for secrets once more (P-18); shareable: no quote and no decision either."""
    record = exported.record
    provenance = record.provenance
    quote = "" if shareable else redact(provenance.quote)[0]
    left = msgspec.structs.replace(
        record,
        content=redact(record.content)[0],
        description=redact(record.description)[0],
        value=redact(record.value)[0],
        provenance=msgspec.structs.replace(provenance, quote=quote),
    )
    changes = exported.changes
    if shareable:
        changes = tuple(msgspec.structs.replace(change, decision=None) for change in changes)
    return ExportedRecord(record=left, changes=changes)
