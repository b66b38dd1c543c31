"""The numbers of strength and forgetting: the table `[forgetting]` of `memd.toml` (T2-T12).

Invariant: an operation contains the numbers that it uses, so a changed rule never changes the past.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ..protocol.fading import LEVEL_USES
from ..protocol.record import Kind

Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=1000)]
Days = Annotated[float, Meta(ge=0, le=100_000)]
Number = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Six = Annotated[tuple[Share, ...], Meta(min_length=6, max_length=6)]
SixCounts = Annotated[tuple[Number, ...], Meta(min_length=6, max_length=6)]


class HalfLives(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Days after which a record's recency has halved, by volatility (T2)."""

    stable: Days = 365.0
    semi: Days = 90.0
    situational: Days = 21.0


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of forgetting. Levels are 0 to 5; a day is an active day of the pool unless called calendar day."""

    off: tuple[str, ...] = ()
    """Pools where nothing fades

    Pools without decay, or `*` for all (T9).
    """
    daily_loss: Six = (0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
    """Strength lost a day

    The share of its strength that an unused memory loses a day, by level (T5).
    """
    level_uses: SixCounts = LEVEL_USES
    """Uses that each level needs

    Uses from which a memory has each level (T5).
    """
    use: Amount = 0.1
    """Strength from a use

    Strength that a use adds (T3).
    """
    perspective_use: Amount = 0.15
    """Strength from a use under a perspective

    Strength under its perspective that a use adds (T3).
    """
    impact_share: Amount = 0.2
    """Strength from impact

    The share of its impact that strength gains (T4).
    """
    helpful: Amount = 2.0
    """Impact of being helpful

    Impact of a memory that was helpful (T4).
    """
    success: Amount = 1.5
    """Impact of a successful task

    Impact of a memory that was used in a successful task (T4).
    """
    prevented: Amount = 2.0
    """Impact of a prevented error

    Impact of a memory that prevented an error (T4).
    """
    floor: Annotated[float, Meta(gt=0, le=1)] = 0.1
    """Strength below which a memory is archived

    memd archives a memory whose strengths, also by perspective, are all below this (T6).
    """
    never: tuple[Kind, ...] = ("procedure", "persona")
    """Kinds that never fade

    Kinds that do not fade by time (T9).
    """
    weights: SixCounts = (1, 2, 4, 8, 16, 32)
    """Weight in the pool, by level

    What a memory weighs, by level (T6).
    """
    capacity: Number = 100_000
    """Room in a pool

    Largest weight of a personal or project pool; above it memd archives the least used memories (T6).
    """
    agent_capacity: Number = 10_000
    """Room in an agent's pool

    Largest weight of an agent's pool; above it memd archives the least used memories.
    """
    share_a_run: Share = 0.05
    """Most that one sleep archives

    The largest share of a pool that a sleep archives; at least one memory (T6).
    """
    episodes: Annotated[int, Meta(ge=2, le=1000)] = 3
    """Repetitions that become one memory

    This many memories that state the same at different times get one successor (T11).
    """
    episode_sessions: Annotated[int, Meta(ge=1, le=1000)] = 2
    """Sessions that these repetitions come from

    Memories that state the same get one successor once they come from this many sessions (T11).
    """
    episode_alike: Share = 0.8
    """How alike repetitions are

    Smallest cosine of memories that state the same (T11).
    """
    restored_strength: Amount = 0.5
    """Strength after the archive

    Strength of a restored memory (T7).
    """
    restored_levels_down: Annotated[int, Meta(ge=0, le=5)] = 2
    """Levels lost in the archive

    By how many levels a restored memory is lower (T7).
    """
    first_session: bool = True
    """Caution in a pool's first session

    Memories of a pool's first live session are quarantined until they are used (T8).
    """
    old_import_days: Days = 90.0
    """Caution with old imports

    Imported memories whose statement is this many calendar days old are quarantined until they are used; 0 = none (T8).
    """
    rare_tag: Share = 0.02
    """How rare a telling tag is

    An answer with a tag that at most this share of a pool has used the memory (T3).
    """
    same: Share = 0.6
    """How close an answer is to a memory it used

    Cosine from which an answer used a memory (T3).
    """
    half_lives: HalfLives = HalfLives()
    """Half-lives of recency

    Half-lives of recency, in calendar days (T2).
    """
    review_days: Days = 30.0
    """Time until a review

    Calendar days after which a situational or semi-stable memory is reviewed (T12).
    """
    stable_review_days: Days = 120.0
    """Time until a review of a stable memory

    Calendar days after which a stable memory is reviewed (T12).
    """
    overdue_confidence: Share = 0.9
    """Confidence after a missed review

    Factor on a memory's confidence when its review is overdue, once per period (T12).
    """
    change_sessions: Number = 3
    """Contradictions that raise a doubt

    memd doubts a preference, convention, principle or pinned memory that this many sessions on different days
    contradict; 0 = never. A number in the memory's own condition takes precedence (T12).
    """
    changed_confidence: Share = 0.5
    """Confidence under doubt

    Factor on the confidence of a memory that memd doubts, until someone confirms it (T12).
    """

    def is_off(self, pool: str) -> bool:
        """Whether a pool has no decay."""
        return pool in self.off or "*" in self.off

    def capacity_of(self, pool: str) -> int:
        """Return the largest weight of a pool."""
        return self.agent_capacity if pool.startswith("agent/") else self.capacity

    def retention(self, days: float) -> tuple[float, ...]:
        """Return the remaining share after a number of days by level: r^days with r = 1 - daily loss (T6)."""
        return tuple((1 - loss) ** days for loss in self.daily_loss)


UseOutcome = Literal["", "helpful", "success", "prevented"]
