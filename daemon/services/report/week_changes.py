"""What the journal says of a week: read once from the week's first operation to its last, never from all records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ....protocol.fading import Archived, Counted, Reviewed
from ....protocol.operation import Invalidated, PatchApplied, PatchGone, PatchTaken, RecordJudged, Redacted, Updated
from ....protocol.reply import Logged
from ...storage.ports import EventLog

KINDS = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        *(Updated, Invalidated, RecordJudged, Redacted, Archived, Counted, Reviewed),
        *(PatchApplied, PatchTaken, PatchGone),
    )
)
"""Kinds of operations that a report reads."""

ACCEPTED = "the user accepted"
"""Beginning of the reason of a replacement that the user decided in the inbox."""


class Replacement(NamedTuple):
    """A record that another one replaced; `accepted`: the user decided so in the inbox."""

    old: str
    new: str
    accepted: bool


class Uses(NamedTuple):
    """How often an answer used a record in the week, and how often an agent got it without a use."""

    used: int = 0
    given: int = 0


class WeekChanges:
    """The operations of a week, by what they changed; each list in order."""

    def __init__(self, entries: Iterable[Logged]) -> None:
        self.patches: list[PatchApplied | PatchTaken | PatchGone] = []
        self.replaced: list[Replacement] = []
        self.retired: list[Invalidated] = []
        self.judged: dict[str, RecordJudged] = {}
        self.reviewed: dict[str, Reviewed] = {}
        self.archived: dict[str, None] = {}
        self.uses: dict[str, Uses] = {}
        self.secrets = self.deleted = 0
        for entry in entries:
            self._take(entry)

    def _take(self, entry: Logged) -> None:
        match entry.operation:
            case PatchApplied() | PatchTaken() | PatchGone() as patch:
                self.patches.append(patch)
            case Updated() as updated:
                accepted = updated.decision.reason.startswith(ACCEPTED)
                self.replaced += [Replacement(old.id, updated.record.id, accepted) for old in updated.retires]
            case Invalidated() as retired:
                self.retired.append(retired)
            case RecordJudged() as judged:
                self.judged[judged.id] = judged
            case Reviewed() as reviewed:
                self.reviewed[reviewed.id] = reviewed
            case Archived(ids=ids, why=why):
                self.archived |= dict.fromkeys(ids if why != "consolidated" else ())
            case Counted() as counted:
                self._count(counted)
            case Redacted() as redacted:
                self.secrets += len(redacted.cuts)
                self.deleted += len(redacted.records)
            case _:
                pass

    def _count(self, counted: Counted) -> None:
        for id, count in counted.counts.items():
            before = self.uses.get(id, Uses())
            self.uses[id] = Uses(before.used + count.uses, before.given + count.candidates)


def operations_between(journal: EventLog, since: int, until: int) -> Iterator[Logged]:
    """Yield the operations of `KINDS` that were committed in a period, in microseconds."""
    return journal.of_kinds(KINDS, journal.seq_at(since - 1), journal.seq_at(until - 1))
