"""A question's time as a filter over when a record was said or held, given up where nothing of then answers (Q2, Q12).

Comes in: a period, candidates with their own match. Goes out: what of them an answer is held to. Invariants: a filter
never turns an answer into none, and never gives up a good match for a poor one of the right day: the time narrows only
where something of then answers nearly as well as the best of all; so a time that was misread costs little.
"""

from __future__ import annotations

from typing import NamedTuple

from ....protocol.instant import micros
from ....protocol.record import Record
from ...projections.lines import ConversationOrder
from .evidence import Matches
from .time_expression import TimePeriod

NEARLY = 0.6
"""Of the best match of any time, what one of the right time must reach."""

WIDER = 8
"""So many times the candidates are taken where a time is named: it may be long ago."""


class TimeFilter(NamedTuple):
    """What was said or began in a period; with `held` also what had begun before and was still so."""

    period: TimePeriod
    held: bool

    def _fits(self, said: int, began: int, ended: int, *, lasts: bool = True) -> bool:
        if self.period.holds(began) or self.period.told(said):
            return True
        return self.held and lasts and began < self.period.end and (not ended or ended > self.period.start)

    def has(self, record: Record) -> bool:
        """Whether a record belongs to that time. What happened does not last."""
        said = micros(record.provenance.said_at)
        began = micros(record.valid_from) if record.valid_from else said
        ended = micros(record.valid_to) if record.valid_to else 0
        return self._fits(said, began, ended, lasts=record.type != "event")

    def may_have(self, id: str, lines: ConversationOrder) -> bool:
        """The same without reading the record, as far as that goes: what is not live is looked at when it is read."""
        card = lines.get(id)
        return card is None or self._fits(card.row.at, card.row.since, 0)


def during(period: TimePeriod | None, found: Matches, lines: ConversationOrder, floor: float) -> TimeFilter | None:
    """The narrowest time that still answers, or None."""
    if period is None or not period.past or not found.places:
        return None
    enough = max(NEARLY * float(found.direct.max()), floor)
    for held in (False, True):
        tier = TimeFilter(period, held)
        if any(
            direct >= enough and lines.get(id) is not None and tier.may_have(id, lines)
            for id, direct in zip(found.places, found.direct.tolist(), strict=True)
        ):
            return tier
    return None
