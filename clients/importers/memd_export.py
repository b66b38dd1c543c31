"""Files of `memd export --format jsonl`, as `ImportRecords` requests for another memory (P-25).

Invariant: a file that is not an export, or of a later version, is refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.export import FORMAT, EndLine, ExportHead, PoolLine, RecordLine, SessionLine, decode_line
from ...protocol.operation import PoolOpened, SessionOpened
from ...protocol.reply import ExportedRecord, Problem, RecordsImported, Refusal
from ...protocol.request import ImportRecords
from ...protocol.wire import BODY_LIMIT
from ..python.client import Client
from .transcript import BATCH_BYTES, BATCH_EVENTS, Malformed


class ExportFile:
    """An export, which `requests` reads once; `malformed`, `records` and `is_whole` are complete afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.malformed: list[Malformed] = []
        self.records = 0
        self.is_whole = False
        try:
            with path.open("rb") as stream:
                first = stream.readline(BODY_LIMIT)
            self.size_bytes = path.stat().st_size
        except OSError as error:
            raise InvalidRequest(f"{path}: {error.strerror}", hint="name a file of `memd export`") from error
        try:
            head = decode_line(first)
        except MemdError:
            head = None
        if not isinstance(head, ExportHead):
            raise InvalidRequest(f"{path} is not a memd export", hint="make one: `memd export --format jsonl -o FILE`")
        if head.format > FORMAT:
            raise InvalidRequest(f"{path} has format {head.format}", hint=f"it takes memd {head.memd} or later")
        self.head = head

    def requests(self) -> Iterator[tuple[ImportRecords, int]]:
        """Yield the requests in order, each with the bytes of the file read so far."""
        pools, sessions, records = dict[str, PoolOpened](), dict[str, SessionOpened](), list[ExportedRecord]()
        size = done = 0
        with self.path.open("rb") as stream:
            for number, (raw, length) in enumerate(_lines(stream), 1):
                done += length
                if length > len(raw):
                    self.malformed.append(Malformed(number, f"a line of {length:,} bytes; at most {BODY_LIMIT:,}"))
                    continue
                try:
                    line = decode_line(raw)
                except MemdError as error:
                    self.malformed.append(Malformed(number, error.message))
                    continue
                if records and (size + len(raw) > BATCH_BYTES or len(records) == BATCH_EVENTS):
                    yield _request(records, pools, sessions), done
                    records, size = [], 0
                match line:
                    case PoolLine():
                        pools[line.pool.pool] = line.pool
                    case SessionLine():
                        sessions[line.session.document] = line.session
                    case RecordLine():
                        records.append(ExportedRecord(record=line.record, changes=line.changes))
                        self.records += 1
                        size += len(raw)
                    case EndLine():
                        self.is_whole = line.records == self.records + len(self.malformed)
                    case ExportHead():
                        pass
        if records:
            yield _request(records, pools, sessions), done


def _lines(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield each line, as far as a request has room for it, and its length in bytes."""
    while raw := stream.readline(BODY_LIMIT):
        length = len(raw)
        while raw[-1:] != b"\n" and (rest := stream.readline(BODY_LIMIT)):
            length += len(rest)
            if rest.endswith(b"\n"):
                break
        yield raw, length


def import_in_parts(client: Client, request: ImportRecords) -> RecordsImported:
    """Send a request, in parts if it is refused: a record that is too large for a message stops no other. Raises the
    errors of `import_records` but InvalidRequest."""
    try:
        return client.import_records(request)
    except InvalidRequest as error:
        records = request.records
        if len(records) == 1:
            refusal = Refusal(records[0].record.id, Problem(error.code, error.message, error.hint))
            return RecordsImported(added=0, known=0, differing=0, refused=(refusal,))
    middle = len(records) // 2
    named = {pool.pool: pool for pool in request.pools}, {session.document: session for session in request.sessions}
    first, second = (
        import_in_parts(client, _request(list(part), *named)) for part in (records[:middle], records[middle:])
    )
    return RecordsImported(
        added=first.added + second.added,
        known=first.known + second.known,
        differing=first.differing + second.differing,
        refused=(*first.refused, *second.refused),
    )


def _request(
    records: list[ExportedRecord], pools: dict[str, PoolOpened], sessions: dict[str, SessionOpened]
) -> ImportRecords:
    """Return a request with the records and the pools and sessions that they name, as far as the file has them."""
    named = {exported.record.pool for exported in records}
    documents = {span.document for exported in records for span in exported.record.provenance.spans}
    named.update(session.project for document in documents if (session := sessions.get(document)))
    return ImportRecords(
        records=tuple(records),
        pools=tuple(pool for name, pool in pools.items() if name in named),
        sessions=tuple(session for name, session in sessions.items() if name in documents),
    )


class RecordImport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `import memd`: records in the file by outcome, and lines that could not be read."""

    path: str
    records: int
    added: int
    known: int
    differing: int
    refused: tuple[Malformed, ...]
    malformed: tuple[Malformed, ...]
    is_whole: bool
