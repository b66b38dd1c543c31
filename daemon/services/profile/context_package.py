"""The context package: all of L1, the playbook by tag and project, and what is recent, for `context.md` (Q11, R9).

Comes in: a scope, tags, a number of days. Goes out: text and the records in it. Invariants: reads only; what is
quarantined is marked, what is flagged, retired or hidden is not there; every record of the package is of the scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ....protocol.instant import day, from_micros, micros
from ....protocol.profile import ContextPackage, GetContext, Selected
from ....protocol.record import LIVE, Layer, Record
from ....stages.batch import PERSONAL
from ...projections.records import Records
from ..service import Permits
from .hot import ALONE, INTRO
from .profile_lines import ProfileLines, is_clean

CAP = 2_000
"""Records of L3 in one package, at most (R9)."""

SLICE = 500
DAY = 86_400_000_000
OWN_TAGS = 12
"""The commonest tags of a project's recent records speak for it where nobody names any."""

HEADINGS: dict[Layer, str] = {"L1": "Identity (L1)", "L2": "Playbook (L2)", "L3": "Recent (L3)"}


class ContextPackager:
    """Puts a package together. `boost`: how much the tags of a record count."""

    def __init__(
        self,
        records: Records,
        held: Callable[[Iterable[str]], list[str]],
        lines: ProfileLines,
        boost: Callable[[Record], float],
        now: Callable[[], int],
    ) -> None:
        """`held`: ids of what is pinned or of L1 or L2 in these pools; `now`: microseconds."""
        self._records, self._held, self._lines, self._boost, self._now = records, held, lines, boost, now

    def package(self, request: GetContext, scope: Sequence[str], permits: Permits | None) -> ContextPackage:
        """The package of a scope."""
        start = self._now() - request.days * DAY
        seen = self._visible(self._records.many(self._held(scope)).values(), permits)
        first = [each for each in seen if each.layer == "L1"]
        recent = [each for pool in scope for each in self._since(pool, start, permits)]
        tags = set(request.tags) or _own_tags(recent)
        second = [each for each in seen if each.layer == "L2" and (each.pool != PERSONAL or _fits(each, tags, scope))]
        recent.sort(key=lambda each: (-self._salience(each), -micros(each.provenance.said_at), each.id))
        chosen = [
            *((each, "L1 is always included") for each in self._in_order(first)),
            *((each, _why_second(each, tags)) for each in self._in_order(second)),
            *((each, f"of the last {request.days} days") for each in recent[:CAP]),
        ]
        text = self._text([each for each, _ in chosen], scope, start)
        return ContextPackage(
            context=text,
            selected=tuple(Selected(record=each, salience=self._salience(each), why=why) for each, why in chosen),
            scope=tuple(scope),
            tokens=self._lines.count(text) if text else 0,
            left_out=max(0, len(recent) - CAP),
            note=ALONE if all(pool == PERSONAL for pool in scope) else "",
        )

    def _salience(self, record: Record) -> float:
        return round(min(1.0, record.signal.importance * record.confidence * self._boost(record)), 4)

    def _in_order(self, records: Iterable[Record]) -> list[Record]:
        return sorted(records, key=lambda each: (-self._salience(each), each.learned_at, each.id))

    def _visible(self, records: Iterable[Record], permits: Permits | None) -> list[Record]:
        return [
            each
            for each in records
            if each.status in LIVE
            and not each.flags
            and (permits is None or permits(each))
            and is_clean(each.description)
        ]

    def _since(self, pool: str, start: int, permits: Permits | None) -> Iterator[Record]:
        """L3 of a pool that was said since `start`; what was learnt before can't have been said after."""
        before: tuple[int, str] | None = None
        while group := self._records.recent(pool, before, SLICE):
            last = group[-1]
            before = (last.learned_at, last.id)
            fresh = (each for each in group if each.layer == "L3" and each.provenance.trust != "tool")
            yield from self._visible((each for each in fresh if micros(each.provenance.said_at) >= start), permits)
            if last.learned_at < start:
                return

    def _text(self, records: Sequence[Record], scope: Sequence[str], start: int) -> str:
        if not records:
            return ""
        alone = all(pool == PERSONAL for pool in scope)
        lines = ["<memd-context>", "# Context", "", INTRO, *([ALONE] if alone else [])]
        for layer, heading in HEADINGS.items():
            found = [each for each in records if each.layer == layer]
            since = f", since {day(from_micros(start))}" if layer == "L3" else ""
            lines += ["", f"## {heading}{since}", *(self._lines.dated(each) for each in found)] if found else []
        return "\n".join([*lines, "</memd-context>", ""])


def _own_tags(records: Sequence[Record]) -> set[str]:
    counted = Counter(tag for each in records if each.pool != PERSONAL for tag in each.tags[1:])
    return {tag for tag, _ in counted.most_common(OWN_TAGS)}


def _fits(record: Record, tags: set[str], scope: Sequence[str]) -> bool:
    """Whether a line of the user's own playbook is for here: everywhere outside of a project, else by its tags."""
    return len(scope) == 1 or bool(tags.intersection(record.tags))


def _why_second(record: Record, tags: set[str]) -> str:
    shared = sorted(tags.intersection(record.tags))
    return f"tagged {', '.join(shared)}" if shared else "the playbook of this pool"
