"""The context package: all of L1, the playbook by tag and project, and recent records, for `context.md` (Q11, R9).

Invariants: it only reads; unconfirmed lines are marked; flagged, retired and hidden records are left out; every record
is from the scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile

from ....protocol.instant import day, from_micros, micros
from ....protocol.profile import ContextPackage, GetContext, Selected
from ....protocol.record import LIVE, Layer, Record
from ....stages.batch import PERSONAL
from ...projections.records import Records
from ..service import Permits
from .hot import ALONE, INTRO
from .profile_lines import ProfileLines, dated, is_clean, is_imposed

RECENT = 2_000
"""Most records of L3 in one package (R9)."""

DAY = 86_400_000_000
OWN_TAGS = 12
"""Most frequent tags of a project's recent records, used if the request names no tags."""

HEADINGS: dict[Layer, str] = {"L1": "Identity (L1)", "L2": "Playbook (L2)", "L3": "Recent (L3)"}


class ContextPackager:
    """Builds context packages."""

    def __init__(
        self,
        records: Records,
        held: Callable[[Iterable[str]], list[str]],
        lines: ProfileLines,
        boost: Callable[[Record], float],
        now: Callable[[], int],
    ) -> None:
        """`held`: ids of pinned, L1 and L2 records; `boost`: the factor of a record's tags; `now`: microseconds."""
        self._records, self._held, self._lines, self._boost, self._now = records, held, lines, boost, now

    def package(
        self, request: GetContext, scope: Sequence[str], permits: Permits | None, then: Sequence[Record] | None = None
    ) -> ContextPackage:
        """Return the package. `then`: the live records of another time, instead of those of now."""
        if then is None:
            start = self._now() - request.days * DAY
            held = self._visible(self._records.many(self._held(scope)).values(), permits)
            recent = [record for pool in scope for record in self._since(pool, start, permits)]
        else:
            start = min(self._now(), *map(micros, filter(None, (request.as_of, request.believed_at))))
            start -= request.days * DAY
            held = self._visible((record for record in then if record.held), permits)
            recent = self._visible((record for record in then if _is_since(record, start)), permits)
        first = [record for record in held if record.layer == "L1"]
        named = {tag.lower() for tag in request.tags}
        tags = named or _own_tags(recent)
        whole = () if named else scope
        playbook = [record for record in held if record.layer == "L2"]
        second = [record for record in playbook if record.pool in whole or not tags.isdisjoint(record.tags)]
        recent.sort(key=lambda record: (-self._salience(record), -micros(record.provenance.said_at), record.id))
        chosen = [
            *((record, "L1 is always included") for record in self._in_order(first)),
            *((record, _why_second(record, tags)) for record in self._in_order(second)),
            *((record, f"of the last {request.days} days") for record in recent[:RECENT]),
        ]
        text = self._text([record for record, _ in chosen], scope, start)
        return ContextPackage(
            context=text,
            selected=tuple(Selected(record=record, salience=self._salience(record), why=why) for record, why in chosen),
            scope=tuple(scope),
            tokens=self._lines.count(text) if text else 0,
            left_out=max(0, len(recent) - RECENT),
            note=ALONE if all(pool == PERSONAL for pool in scope) else "",
        )

    def _salience(self, record: Record) -> float:
        return round(min(1.0, record.signal.importance * record.confidence * self._boost(record)), 4)

    def _in_order(self, records: Iterable[Record]) -> list[Record]:
        return sorted(records, key=lambda record: (-self._salience(record), record.learned_at, record.id))

    def _visible(self, records: Iterable[Record], permits: Permits | None) -> list[Record]:
        return [
            record
            for record in records
            if record.status in LIVE
            and not record.flags
            and (permits is None or permits(record))
            and is_clean(record.description)
            and not is_imposed(record)
        ]

    def _since(self, pool: str, start: int, permits: Permits | None) -> Iterator[Record]:
        """Yield L3 records of a pool that were said since `start`; nothing is said after it is learned."""
        learnt_since = takewhile(lambda record: record.learned_at >= start, self._records.in_pool(pool))
        yield from self._visible(filter(lambda record: _is_since(record, start), learnt_since), permits)

    def _text(self, records: Sequence[Record], scope: Sequence[str], start: int) -> str:
        if not records:
            return ""
        alone = all(pool == PERSONAL for pool in scope)
        lines = ["<memd-context>", "# Context", "", INTRO, *([ALONE] if alone else [])]
        for layer, heading in HEADINGS.items():
            rows = [dated(record) for record in records if record.layer == layer]
            since = f", since {day(from_micros(start))}" if layer == "L3" else ""
            lines += ["", f"## {heading}{since}", *rows] if rows else []
        return "\n".join([*lines, "</memd-context>", ""])


def _is_since(record: Record, start: int) -> bool:
    """Whether a record of L3 was said since a time, by somebody."""
    is_said = record.layer == "L3" and record.provenance.trust != "tool"
    return is_said and micros(record.provenance.said_at) >= start


def _own_tags(records: Sequence[Record]) -> set[str]:
    counted = Counter(tag for record in records if record.pool != PERSONAL for tag in record.tags[1:])
    return {tag for tag, _ in counted.most_common(OWN_TAGS)}


def _why_second(record: Record, tags: set[str]) -> str:
    shared = sorted(tags.intersection(record.tags))
    return f"tagged {', '.join(shared)}" if shared else "the playbook of this pool"
