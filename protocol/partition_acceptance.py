"""Whether memd takes another author's partition as it came, and which of its lines are new (H2).

Pure: no store, no clock. Invariants: a partition is refused as a whole if its head is not of this share, if it is older
than what memd has, or if a line that memd has is another one now; a line that memd has may only become gone, in a
higher epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from .share import FIRST_LINES, NEW_LINES, TAKEN_SEGMENTS, SegmentData
from .shared_lines import (
    LINE_BYTES,
    SEGMENT,
    MalformedShare,
    ShareHead,
    check_hashes,
    decode_shared,
    line_hash,
    of_repository,
    segment_hash,
    segments_of,
    split_segment,
)

MOST_EPOCH, MOST_LAMPORT = 2**31, 2**53
_GONE = b'{"gone":"'


class KnownPartition(msgspec.Struct, frozen=True):
    """What memd has of a partition. `hashes`: of its segments, the last one as far as `count` goes; `was_gone`: tells
    whether a line that memd has is gone; `seen`: the segments that memd has read in the epoch of the head; `own`: the
    lines from number 0 on that this home wrote itself, before another device went on with its key."""

    epoch: int = 0
    count: int = 0
    hashes: Sequence[bytes] = ()
    was_gone: Callable[[int], bool] = lambda number: False
    seen: Collection[int] = ()
    own: int = 0


class Accepted(NamedTuple):
    """What is new. `lines`: of the segments that came, by number; `fresh`: the lines after those that memd has;
    `gone`: lines that memd has and that became gone; `seen`: the segments read in this epoch; `is_whole`: whether these
    are all that memd has; `left`: lines that are still to be read; `wanted`: the segments to send next."""

    lines: dict[int, list[bytes]]
    fresh: list[bytes]
    gone: tuple[int, ...]
    seen: frozenset[int]
    is_whole: bool
    left: int
    wanted: tuple[int, ...]


def accept(
    known: KnownPartition,
    head: ShareHead,
    hashes: Sequence[bytes],
    segments: Sequence[SegmentData],
    marks: Collection[str],
    *,
    most: int | None = None,
) -> Accepted:
    """Return what is new in a partition whose head is verified. `marks`: the names of the project's repository; `most`:
    the most fresh lines, None for `FIRST_LINES` of an unknown partition and `NEW_LINES` of a known one. Raises
    MalformedShare with the reason for which memd refuses it."""
    _check_mark(head, marks)
    _check_numbers(known, head)
    check_hashes(hashes, head)
    lines = _lines_of(head, hashes, segments)
    _check_prefix(known, head, hashes, lines)
    gone = tuple(number for place in sorted(lines) for number in _newly_gone(known, head, place, lines[place]))
    seen = frozenset(known.seen) | lines.keys()
    unseen = [place for place in range(segments_of(known.count)) if place not in seen and head.epoch > known.epoch]
    limit = (NEW_LINES if known.count else FIRST_LINES) if most is None else most
    fresh = list(islice(_following(known.count, lines), limit))
    upto = known.count + len(fresh)
    wanted = [*unseen, *(place for place in range(upto // SEGMENT, segments_of(head.count)) if upto < head.count)]
    left = head.count - upto + sum(_lines_in(place, known.count) for place in unseen)
    return Accepted(lines, fresh, gone, seen, not unseen, left, tuple(dict.fromkeys(wanted))[:TAKEN_SEGMENTS])


def _check_mark(head: ShareHead, marks: Collection[str]) -> None:
    mark = head.share
    if not (mark.root or mark.remote) or of_repository(mark.root, mark.remote) not in marks:
        raise MalformedShare(
            "it belongs to another repository; if that is the same project under another address, `memd scope bind` "
            "in a checkout of it makes its memory one with this project's"
        )


def _check_numbers(known: KnownPartition, head: ShareHead) -> None:
    if head.epoch >= MOST_EPOCH or head.lamport >= MOST_LAMPORT or head.at < 0 or head.at >= MOST_LAMPORT:
        raise MalformedShare("the head has impossible numbers")
    if head.epoch < known.epoch or head.count < known.count:
        raise MalformedShare("the remote has an older state than memd: someone put it back")


def _lines_of(head: ShareHead, hashes: Sequence[bytes], segments: Sequence[SegmentData]) -> dict[int, list[bytes]]:
    """Return the lines of the segments that were sent, by the number of the segment."""
    lines: dict[int, list[bytes]] = {}
    for segment in segments:
        place = segment.number
        if not 0 <= place < len(hashes) or place in lines:
            raise MalformedShare("a segment came that the partition does not have")
        if len(segment.data) > SEGMENT * (LINE_BYTES + 1):
            raise MalformedShare("a segment is longer than its lines may be")
        lines[place] = split_segment(segment.data)
        if len(lines[place]) != _lines_in(place, head.count) or _hash(lines[place]) != hashes[place]:
            raise MalformedShare("a segment is not the one that the head was signed for")
    return lines


def _hash(lines: Sequence[bytes]) -> bytes:
    try:
        return segment_hash(map(line_hash, lines))
    except ValueError as error:  # the hash in a gone line is malformed
        raise MalformedShare("a gone line has no hash") from error


def _lines_in(place: int, count: int) -> int:
    """Return the number of lines in a segment of a partition of `count` lines."""
    return max(0, min(SEGMENT, count - place * SEGMENT))


def _check_prefix(
    known: KnownPartition, head: ShareHead, hashes: Sequence[bytes], lines: dict[int, list[bytes]]
) -> None:
    """Check that the lines that memd has are still the same, or gone."""
    whole, rest = divmod(known.count, SEGMENT)
    same = tuple(hashes[:whole]) == tuple(known.hashes[:whole])
    if same and rest:
        if _lines_in(whole, head.count) == rest:
            same = hashes[whole] == known.hashes[whole]
        elif whole in lines:
            same = _hash(lines[whole][:rest]) == known.hashes[whole]
    if not same:
        raise MalformedShare("lines that memd has were changed")


def _newly_gone(known: KnownPartition, head: ShareHead, place: int, lines: Sequence[bytes]) -> list[int]:
    first = place * SEGMENT
    numbers: list[int] = []
    for number, raw in enumerate(lines[: max(0, known.count - first)], first):
        is_gone = raw.startswith(_GONE)
        if number < known.own:
            continue
        if is_gone:
            decode_shared(raw, number)
        if is_gone and not known.was_gone(number):
            numbers.append(number)
        elif known.was_gone(number) and not is_gone:
            raise MalformedShare("a line that its author forgot came back")
    if numbers and head.epoch <= known.epoch:
        raise MalformedShare("lines became gone without a new epoch")
    return numbers


def _following(count: int, lines: dict[int, list[bytes]]) -> Iterator[bytes]:
    """Yield the lines from number `count` on, as long as they came."""
    place, skipped = divmod(count, SEGMENT)
    while place in lines:
        yield from lines[place][skipped:]
        place, skipped = place + 1, 0
