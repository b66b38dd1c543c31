"""Proposes drafts as skills, and placed skills to change or retire; tells what was rejected (K1, K2).

Invariants: at most `MOST` proposals of a pool wait, and one is new in a week; what the user rejected, deleted or
retired comes back only with twice the rounds and a third of its own steps new; a proposal has digests, no words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ....protocol.operation import ChangeProposed
from ....protocol.skills import SKILL_COMMANDS, PlacedSkill, SkillDraft
from ...projections.inbox import PendingProposal, proposal_id
from ...projections.records import digest
from ...projections.stores import Stores
from ...projections.strength import DAY

MOST, WEEK = 3, 7 * DAY
"""Proposals of a pool that wait at most, and the time in which one is made."""

SAME, TWICE, NEW = 0.5, 2, 1 / 3
"""Share of own steps from which two procedures are one; how many times the rounds, and which share of new own steps,
bring a rejected one back."""

SKILL, BY = "skill", "memd"


class OwnSteps(NamedTuple):
    """The digests of a procedure's own steps, and how often it was done."""

    own: frozenset[str]
    rounds: int


class FoundProposal(NamedTuple):
    """A proposal, and its name and reason in words."""

    operation: ChangeProposed
    name: str
    reason: str


def own_digests(pool: str, own: Iterable[str]) -> tuple[str, ...]:
    """Return digests of own steps, which tell two procedures apart and cannot be read."""
    return tuple(sorted(digest(f"{pool} {name}").hex()[:16] for name in own))


def is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of own steps are one procedure."""
    return len(one & other) >= SAME * max(1, min(len(one), len(other)))


class SkillProposer:
    """Decides what is proposed. Reads only."""

    def __init__(self, stores: Stores, now: int) -> None:
        self._stores, self._now = stores, now
        self._known = [each for each in stores.inbox.list(decided=True) if each.what.what in SKILL_COMMANDS]
        self.left_out = Counter[str]()

    def proposals(
        self, drafts: Mapping[str, Sequence[tuple[SkillDraft, frozenset[str]]]], placed: Sequence[PlacedSkill]
    ) -> Iterator[FoundProposal]:
        """Yield what to propose. `drafts`: of each pool, with the names of their own steps, the best ones first."""
        for pool, made in drafts.items():
            room = self._room(pool, [frozenset(own_digests(pool, own)) for _, own in made])
            for draft, own in made:
                if why := self._why_not(draft, own):
                    self.left_out[why] += 1
                elif room <= 0:
                    self.left_out[f"more than {MOST} of a project wait, or one was new this week"] += 1
                else:
                    room -= 1
                    yield _of_draft(draft, own)
        for skill in placed:
            if (skill.retire or skill.mend) and not self._is_known(_placed_id(skill)):
                yield _of_placed(skill)

    def _room(self, pool: str, current: Sequence[frozenset[str]]) -> int:
        """Return how many drafts may be proposed; a proposal whose draft is gone does not count as waiting."""
        of_pool = [each for each in self._known if each.what.pool == pool and each.what.what == SKILL]
        open_ones = [frozenset(each.what.own) for each in of_pool if each.state == "open"]
        waiting = sum(any(is_same(own, other) for other in current) for own in open_ones)
        is_new = any(self._now - each.at < WEEK for each in of_pool)
        return 0 if is_new or waiting >= MOST else 1

    def _is_known(self, id: str) -> bool:
        return self._stores.inbox.get(id) is not None

    def _why_not(self, draft: SkillDraft, own: frozenset[str]) -> str:
        if draft.form != "skill":
            return "no words of yours tell when it is wanted"
        if draft.refused:
            return "memd makes no file of it"
        coming = OwnSteps(frozenset(own_digests(draft.pool, own)), len(draft.rounds))
        if any(is_same(coming.own, frozenset(each.what.own)) for each in self._of(draft.pool, "open")):
            return "it waits in the inbox"
        if any(is_same(coming.own, each.own) for each in self._in_place(draft.pool)):
            return "it is placed"
        if is_rejected(coming, self.rejected(draft.pool)):
            return "you rejected it, or took it away"
        if draft.stated_in:
            return "the project's files say it already"
        return ""

    def _of(self, pool: str, state: str) -> list[PendingProposal]:
        return [
            each for each in self._known if each.what.what == SKILL and each.what.pool == pool and each.state == state
        ]

    def _states(self, pool: str) -> Iterator[tuple[OwnSteps, bool]]:
        """Yield what was placed of a pool's drafts, and whether it is in place."""
        records = self._stores.records.many(self._stores.skills.ids())
        for id, record in records.items():
            placed = self._stores.skills.states(id)[0].what
            if placed.pool == pool:
                yield OwnSteps(frozenset(placed.own), placed.rounds), record.status != "retired"

    def _in_place(self, pool: str) -> list[OwnSteps]:
        return [own for own, is_there in self._states(pool) if is_there]

    def rejected(self, pool: str) -> list[OwnSteps]:
        """Return the own steps of what the user rejected, deleted or retired."""
        proposals = [OwnSteps(frozenset(each.what.own), each.what.rounds) for each in self._of(pool, "rejected")]
        return [*proposals, *(own for own, is_there in self._states(pool) if not is_there)]


def is_rejected(coming: OwnSteps, rejected: Iterable[OwnSteps]) -> bool:
    """Whether a draft is one that the user rejected, without enough that is new."""
    for each in rejected:
        is_more = coming.rounds >= TWICE * each.rounds and len(coming.own - each.own) >= NEW * len(coming.own)
        if is_same(coming.own, each.own) and not is_more:
            return True
    return False


def _of_draft(draft: SkillDraft, own: frozenset[str]) -> FoundProposal:
    rounds = len(draft.rounds)
    reason = f"done {rounds} times in {draft.sessions} sessions on {draft.days} days"
    operation = ChangeProposed(
        id=proposal_id(f"skill:{draft.id}", str(rounds)),
        what="skill",
        record=draft.id,
        by=BY,
        label=SKILL,
        reason=reason,
        pool=draft.pool,
        own=own_digests(draft.pool, own),
        rounds=rounds,
    )
    return FoundProposal(operation, draft.name, reason)


def _placed_id(skill: PlacedSkill) -> str:
    last = skill.revisions[-1].sha if skill.revisions else ""
    return proposal_id(f"{'retire' if skill.retire else 'mend'}:{skill.id}", last)


def _of_placed(skill: PlacedSkill) -> FoundProposal:
    reason = skill.retire or skill.mend
    operation = ChangeProposed(
        id=_placed_id(skill),
        what="skill_retire" if skill.retire else "skill_edit",
        record=skill.id,
        by=BY,
        label=SKILL,
        reason=reason,
        pool=skill.pool,
    )
    return FoundProposal(operation, skill.name, reason)
