"""Reads what `memd export --format jsonl` wrote: requests that bring it into another memory, line by line (P-25).

Comes in: a file. Goes out: `ImportRecords` requests that fit the socket, each with the pools and sessions its records
name, and an account of the lines. Invariants: a file that is no export, or of a later version, is refused before
anything is sent; a line that can't be read is listed with its number; a file that was cut off is said to be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from ...protocol.export import FORMAT, EndLine, ExportHead, PoolLine, RecordLine, SessionLine, decode_line
from ...protocol.operation import PoolOpened, SessionOpened
from ...protocol.reply import ExportedRecord
from ...protocol.request import ImportRecords
from .transcript import BATCH_BYTES, BATCH_EVENTS, Malformed


class ExportFile:
    """An export, read once from beginning to end by `requests`; the account is complete afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.malformed: list[Malformed] = []
        self.records = 0
        self.is_whole = False
        try:
            with path.open("rb") as stream:
                first = stream.readline()
            self.size_bytes = path.stat().st_size
        except OSError as error:
            raise InvalidRequest(f"{path}: {error.strerror}", hint="name a file that `memd export` wrote") from error
        try:
            head = decode_line(first)
        except MemdError:
            head = None
        if not isinstance(head, ExportHead):
            raise InvalidRequest(f"{path} is no export of memd", hint="`memd export --format jsonl -o FILE` writes one")
        if head.format > FORMAT:
            raise InvalidRequest(f"{path} has format {head.format}", hint=f"it takes memd {head.memd} or later")
        self.head = head

    def requests(self) -> Iterator[tuple[ImportRecords, int]]:
        """The requests in order, each with the bytes of the file read so far."""
        pools: dict[str, PoolOpened] = {}
        sessions: dict[str, SessionOpened] = {}
        records: list[ExportedRecord] = []
        size = done = 0
        with self.path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                done += len(raw)
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


def _request(
    records: list[ExportedRecord], pools: dict[str, PoolOpened], sessions: dict[str, SessionOpened]
) -> ImportRecords:
    """Records with the pools and sessions they name; one that the file does not tell is left out."""
    named = {each.record.pool for each in records}
    documents = {span.document for each in records for span in each.record.provenance.spans}
    named.update(session.project for document in documents if (session := sessions.get(document)))
    return ImportRecords(
        records=tuple(records),
        pools=tuple(pool for name, pool in pools.items() if name in named),
        sessions=tuple(session for name, session in sessions.items() if name in documents),
    )


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import memd`: records in the file, what became of them, lines that could not be read."""

    path: str
    records: int
    added: int
    known: int
    differing: int
    refused: tuple[Malformed, ...]
    malformed: tuple[Malformed, ...]
    is_whole: bool
