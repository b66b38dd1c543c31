"""The context package: all of L1, the playbook by tag and project, and recent records, for `context.md` (Q11, R9).

Invariants: it only reads; unconfirmed lines are marked; flagged, retired and hidden records are left out; every record
is from the scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol

from ....protocol.instant import day, from_micros, micros
from ....protocol.profile import ContextPackage, GetContext, Selected
from ....protocol.record import LIVE, PRINCIPLE, Layer, Record
from ....stages.batch import PERSONAL
from ...projections.records import Records
from ..project_lens import LocatedLens
from ..service import Permits
from .hot import ALONE, INTRO
from .profile_lines import ProfileLines, dated, is_clean, is_imposed

RECENT = 2_000
"""Most records of L3 in one package (R9)."""

DAY = 86_400_000_000
OWN_TAGS = 12
"""Most frequent tags of a project's recent records, used if the request names no tags."""

HEADINGS: dict[Layer, str] = {"L1": "Identity (L1)", "L2": "Playbook (L2)", "L3": "Recent (L3)"}


class ContextPolicy(Protocol):
    """What policies decide about a context package."""

    def window(self, scope: Sequence[str]) -> int:
        """Return the days of recent records."""
        ...

    def loads_playbook(self, pool: str) -> bool:
        """Whether a pool's whole playbook is always part of it."""
        ...

    def lens(self, cwd: str, scope: Sequence[str]) -> LocatedLens | None:
        """Return the lens of a folder on its pool (P6)."""
        ...


class Playbook(NamedTuple):
    """Which records of L2 a package has. `named`: the request named the tags; `whole`: pools without a choice."""

    tags: frozenset[str]
    named: bool
    whole: frozenset[str]
    lens: LocatedLens | None

    def why(self, record: Record) -> str:
        """Return why a record is part of it; "" if it is not."""
        if shared := sorted(self.tags.intersection(record.tags)):
            return f"tagged {', '.join(shared)}"
        if record.pool in self.whole:
            return "the playbook of this pool"
        if self.named or self.lens is None or not self.lens.tags:
            return ""
        if PRINCIPLE in record.tags:
            return "a principle is always included"
        return f"needed by {self.lens.lens.project_slug or 'this folder'}" if self.lens.needs(record) else ""


class ContextPackager:
    """Builds context packages."""

    def __init__(
        self,
        records: Records,
        held: Callable[[Iterable[str]], list[str]],
        lines: ProfileLines,
        boost: Callable[[Record], float],
        now: Callable[[], int],
        policy: ContextPolicy,
        cwd_of: Callable[[str], str] = lambda document: "",
    ) -> None:
        """`held`: ids of pinned, L1 and L2 records; `boost`: the factor of a record's tags; `now`: microseconds;
        `cwd_of`: the folder of a document's session."""
        self._records, self._held, self._lines, self._boost, self._now = records, held, lines, boost, now
        self._policy, self._cwd_of = policy, cwd_of

    def package(
        self, request: GetContext, scope: Sequence[str], permits: Permits | None, then: Sequence[Record] | None = None
    ) -> ContextPackage:
        """Return the package. `then`: the live records of another time, instead of those of now."""
        days = request.days or self._policy.window(scope)
        lens = self._policy.lens(request.cwd, scope) if request.cwd and not request.pools else None
        if then is None:
            start = self._now() - days * DAY
            held = self._visible(self._records.many(self._held(scope)).values(), permits)
            recent = [record for pool in scope for record in self._since(pool, start, permits)]
        else:
            start = min(self._now(), *map(micros, filter(None, (request.as_of, request.believed_at))))
            start -= days * DAY
            held = self._visible((record for record in then if record.held), permits)
            recent = self._visible((record for record in then if _is_since(record, start)), permits)
        first = [record for record in held if record.layer == "L1"]
        playbook = self._playbook(request, scope, lens, recent)
        second = [(record, why) for record in held if record.layer == "L2" and (why := playbook.why(record))]
        chosen = [
            *((record, "L1 is always included") for record in self._in_order(first)),
            *sorted(second, key=lambda row: self._order(row[0])),
            *self._recent(recent, lens, days),
        ]
        slug = lens.lens.project_slug if lens else ""
        text = self._text([record for record, _ in chosen], scope, start, slug)
        return ContextPackage(
            context=text,
            selected=tuple(Selected(record=record, salience=self._salience(record), why=why) for record, why in chosen),
            scope=tuple(scope),
            tokens=self._lines.count(text) if text else 0,
            left_out=max(0, len(recent) - RECENT),
            note=" ".join((ALONE,) if all(pool == PERSONAL for pool in scope) else lens.notes if lens else ()),
            project=slug,
        )

    def _playbook(
        self, request: GetContext, scope: Sequence[str], lens: LocatedLens | None, recent: Sequence[Record]
    ) -> Playbook:
        """Return the choice of L2: by the request's tags, else by the lens, else all of the scope's pools."""
        always = frozenset(pool for pool in scope if self._policy.loads_playbook(pool))
        if request.tags:
            return Playbook(frozenset(tag.lower() for tag in request.tags), True, always, None)
        if lens and lens.tags:
            return Playbook(frozenset(), False, always, lens)
        return Playbook(frozenset(_own_tags(recent)), False, frozenset(scope), lens)

    def _recent(self, records: Sequence[Record], lens: LocatedLens | None, days: int) -> Iterator[tuple[Record, str]]:
        """Yield recent records with the reason: those near the lens first, then by salience."""
        near = {record.id for record in records if lens and lens.is_near(record, self._cwd_of)}

        def order(record: Record) -> tuple[bool, float, int, str]:
            return record.id not in near, -self._salience(record), -micros(record.provenance.said_at), record.id

        for record in sorted(records, key=order)[:RECENT]:
            where = f", from {lens.lens.project_slug or 'this folder'}" if lens and record.id in near else ""
            yield record, f"of the last {days} days{where}"

    def _salience(self, record: Record) -> float:
        return round(min(1.0, record.signal.importance * record.confidence * self._boost(record)), 4)

    def _in_order(self, records: Iterable[Record]) -> list[Record]:
        return sorted(records, key=self._order)

    def _order(self, record: Record) -> tuple[float, int, str]:
        return -self._salience(record), record.learned_at, record.id

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

    def _text(self, records: Sequence[Record], scope: Sequence[str], start: int, slug: str) -> str:
        if not records:
            return ""
        alone = all(pool == PERSONAL for pool in scope)
        title = f"# Context of {slug}" if slug else "# Context"
        lines = ["<memd-context>", title, "", INTRO, *([ALONE] if alone else [])]
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
