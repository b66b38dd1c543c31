"""Pages of a list: what is asked for, where a page begins, and a page of the past (Q12).

Comes in: a `list` request. Goes out: a filter, a cursor, a page. Invariant: pure; a cursor that is none is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.errors import InvalidRequest
from ....protocol.instant import micros
from ....protocol.record import Record
from ....protocol.reply import Page
from ....protocol.request import List
from ...projections.timeline import View
from ..service import Permits


def filtering(request: List, permits: Permits | None) -> Permits:
    """What a list asks for, of what its asker may see. Raises NaiveTime, InvalidRequest."""
    since = micros(request.since) if request.since else 0
    until = micros(request.until) if request.until else None

    def wanted(record: Record) -> bool:
        return (
            (not request.kinds or record.kind in request.kinds)
            and (record.status in request.statuses if request.statuses else record.status != "hidden")
            and (not request.type or record.type == request.type)
            and (not request.document or record.provenance.source == request.document)
            and (not request.key or record.key == request.key)
            and since <= record.learned_at
            and (until is None or record.learned_at < until)
            and (permits is None or permits(record))
        )

    return wanted


def past_page(
    view: View, pools: Sequence[str], start: int, before: tuple[int, str] | None, request: List, wanted: Permits
) -> Page:
    """A page of records as they stood; `total` counts all that match."""
    found, cursor, total, more = list[Record](), "", 0, False
    for number, pool in enumerate(pools):
        for record in filter(wanted, view.pool(pool, request.key)):
            total += 1
            mark = (record.learned_at, record.id)
            if number < start or (number == start and before and mark >= before):
                continue
            if len(found) == max(1, request.limit):
                more = True
                continue
            found.append(record)
            cursor = f"{number}:{record.learned_at}:{record.id}"
    return Page(records=tuple(found), next=cursor if more else "", total=total)


def total_of(tally: dict[str, dict[str, int]], pools: list[str]) -> int:
    return sum(count for pool in pools for count in tally.get(pool, {}).values())


def cursor_of(after: str, pools: list[str]) -> tuple[int, tuple[int, str] | None]:
    if not after:
        return 0, None
    try:
        number, learned_at, id = after.split(":")
        start = int(number)
        if not 0 <= start < len(pools):
            raise ValueError(after)
        return start, (int(learned_at), id)
    except ValueError as error:
        raise InvalidRequest(
            f"{after!r} is not a page cursor", hint="pass the `next` value of the previous page unchanged"
        ) from error
