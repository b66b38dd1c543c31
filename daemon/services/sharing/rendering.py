"""The bytes of the own lines (H1, W7): rendered from the revision of the record that was offered.

Invariants: the same operation and the same revision give the same bytes in every version of memd; no quote, span, name
of a document, neighbour, decision, learning or use of a record is rendered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....protocol.errors import StoreError
from ....protocol.instant import day
from ....protocol.operation import Offered
from ....protocol.record import Record
from ....protocol.shared_lines import (
    MOST_LINES,
    PARTITION_CHARACTERS,
    SEGMENT,
    AddLine,
    GoneLine,
    InvLine,
    SharedKind,
    encode_shared,
    line_hash,
    line_name,
    segment_hash,
)
from ...projections.stores import Stores
from ..record_history import versions
from ..statements import MARKS

KINDS: dict[str, SharedKind] = {"fact": "fact", "note": "note", "edge": "edge"}
"""Kinds of records that can be shared."""

_LONGEST: dict[str, Any] = {
    "n": MOST_LINES,
    "l": 10**15,
    "at": 10**16,
    "b": "0" * 32,
    "of": (line_name("a" * PARTITION_CHARACTERS, MOST_LINES),),
}
_UNNUMBERED: dict[str, Any] = {"n": 0, "l": 0, "at": 0, "b": ""}


def shared_text(record: Record) -> str:
    """Return the words that are shared: the description where it has all of the clause, with its subject named."""
    whole = " ".join(record.content.split()) in record.description
    return record.description if whole else record.content


def texts_of(record: Record) -> tuple[str, ...]:
    """Return every text of a record that is rendered, and its description and its content."""
    texts = (record.content, record.description, record.key, record.value, *record.tags, record.valid_from)
    return (*texts, record.valid_to, record.language)


def add_line(record: Record, **fields: Any) -> AddLine:
    """Return the line that adds a record. `fields`: its number, times, blind and the lines that it puts right."""
    return AddLine(
        kind=KINDS[record.kind],
        text=shared_text(record),
        type=record.type,
        key=record.key,
        value=record.value,
        tags=tuple(tag for tag in record.tags[1:] if tag not in MARKS),
        lang=record.language,
        since=record.valid_from,
        until=record.valid_to,
        said=day(record.provenance.said_at),
        conf=record.confidence,
        vol=record.volatility,
        **fields,
    )


def bytes_of(record: Record) -> int:
    """Return the most bytes that the line of a record may take."""
    return len(encode_shared(add_line(record, **_LONGEST)))


def preview(record: Record, of: tuple[str, ...] = ()) -> str:
    """Return the line of a record but for number, times and blind."""
    return encode_shared(add_line(record, **_UNNUMBERED, of=of)).decode()


def preview_inv(ref: str, until: str, why: str = "") -> str:
    """Return the line that invalidates another one but for number, times and blind."""
    return encode_shared(InvLine(**_UNNUMBERED, id=ref, until=until, why=why)).decode()


def says_the_same(before: Record, after: Record) -> bool:
    """Whether two revisions are shared in the same words. Their confidence, which grows with use, does not count."""
    return preview(before) == preview(msgspec.structs.replace(after, confidence=before.confidence))


def rendered(offered: Offered, record: Record | None) -> bytes:
    """Return the bytes of an own line. `record`: the revision that an `add` was offered from."""
    fields: dict[str, Any] = {"n": offered.n, "l": offered.lamport, "at": offered.at, "b": offered.blind.hex()}
    if offered.what == "inv":
        return encode_shared(InvLine(**fields, id=offered.ref, until=offered.until, why=offered.why))
    assert record is not None
    return encode_shared(add_line(record, **fields, of=offered.of))


def gone(offered: Offered) -> bytes:
    """Return the bytes that take the place of a line that was forgotten."""
    return encode_shared(GoneLine(gone=offered.hash.hex()))


def revision(stores: Stores, offered: Offered) -> Record | None:
    """Return the revision of a record that a line was offered from, None if the journal has forgotten its words.

    Raises StoreError if the journal has the words, and they give other bytes than those that were offered.
    """
    record = stores.records.get(offered.id)
    if record is None or (record.rev == offered.rev and _is_offered(offered, record)):
        return record
    for _, version in versions(stores, offered.id):
        if version is not None and version.rev == offered.rev and _is_offered(offered, version):
            return version
    if any(_has_no_payload(stores, seq) for seq in stores.sources.history(offered.id)):
        return None
    raise _other_bytes(offered)


def is_gone(stores: Stores, offered: Offered) -> bool:
    """Whether the words of a line are forgotten. Raises StoreError as `revision`."""
    return offered.what == "add" and revision(stores, offered) is None


def line_bytes(stores: Stores, offered: Offered) -> bytes:
    """Return the bytes of an own line as they are now. Raises StoreError if they are not those that were offered."""
    if offered.what == "inv":
        raw = rendered(offered, None)
        if line_hash(raw) != offered.hash:
            raise _other_bytes(offered)
        return raw
    record = revision(stores, offered)
    return gone(offered) if record is None else rendered(offered, record)


def segment_hashes(lines: Sequence[Offered]) -> list[bytes]:
    """Return the hashes of the segments of a partition's lines."""
    starts = range(0, len(lines), SEGMENT)
    return [segment_hash(offered.hash for offered in lines[start : start + SEGMENT]) for start in starts]


def _is_offered(offered: Offered, version: Record) -> bool:
    return version.kind in KINDS and line_hash(rendered(offered, version)) == offered.hash


def _has_no_payload(stores: Stores, seq: int) -> bool:
    entry = stores.journal.log.get(seq)
    return entry is None or entry.payload is None


def _other_bytes(offered: Offered) -> StoreError:
    return StoreError(
        f"line {offered.n} of {offered.partition} would have other bytes than those that were offered",
        hint="`memd verify` checks the journal; nothing is shared until the line is right again",
    )
