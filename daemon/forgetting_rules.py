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
    """Pools without decay, or `*` for all (T9)."""
    daily_loss: Six = (0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
    """The share of its strength that an unused record loses a day, by level (T5)."""
    level_uses: SixCounts = LEVEL_USES
    """Uses from which a record has each level (T5)."""
    use: Amount = 0.1
    """Strength that a use adds (T3)."""
    perspective_use: Amount = 0.15
    """Strength under its perspective that a use adds (T3)."""
    impact_share: Amount = 0.2
    """The share of its impact that strength gains (T4)."""
    helpful: Amount = 2.0
    success: Amount = 1.5
    prevented: Amount = 2.0
    """Impact of a record that was helpful, was used in a successful task, or prevented an error (T4)."""
    floor: Annotated[float, Meta(gt=0, le=1)] = 0.1
    """memd archives a record whose strengths, also by perspective, are all below this (T6)."""
    never: tuple[Kind, ...] = ("procedure", "persona")
    """Kinds that do not fade by time (T9)."""
    weights: SixCounts = (1, 2, 4, 8, 16, 32)
    """What a record weighs, by level (T6)."""
    capacity: Number = 100_000
    """Largest weight of a personal or project pool; above it memd archives the least used records (T6)."""
    agent_capacity: Number = 10_000
    """The same of an agent's pool."""
    share_a_run: Share = 0.05
    """The largest share of a pool that a sleep archives; at least one record (T6)."""
    episodes: Annotated[int, Meta(ge=2, le=1000)] = 3
    episode_sessions: Annotated[int, Meta(ge=1, le=1000)] = 2
    """This many records that state the same at different times, from this many sessions, get one successor (T11)."""
    episode_alike: Share = 0.8
    """Smallest cosine of such records (T11)."""
    restored_strength: Amount = 0.5
    restored_levels_down: Annotated[int, Meta(ge=0, le=5)] = 2
    """Strength of a restored record, and by how many levels it is lower (T7)."""
    first_session: bool = True
    """Records of a pool's first live session are quarantined until they are used (T8)."""
    old_import_days: Days = 90.0
    """So are imported records whose statement is this many calendar days old; 0 = none (T8)."""
    rare_tag: Share = 0.02
    """An answer with a tag that at most this share of a pool has used the record (T3)."""
    same: Share = 0.6
    """Cosine from which an answer used a record (T3)."""
    half_lives: HalfLives = HalfLives()
    """Half-lives of recency, in calendar days (T2)."""
    review_days: Days = 30.0
    """Calendar days after which a situational or semi-stable record is reviewed (T12)."""
    stable_review_days: Days = 120.0
    """The same of a stable record."""
    overdue_confidence: Share = 0.9
    """Factor on a record's confidence when its review is overdue, once per period (T12)."""
    change_sessions: Number = 3
    """memd doubts a preference, convention, principle or pinned record that this many sessions on different days
    contradict; 0 = never. A number in the record's own condition takes precedence (T12)."""
    changed_confidence: Share = 0.5
    """Factor on its confidence then, until someone confirms it (T12)."""

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
