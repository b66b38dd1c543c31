"""Every number of time, strength and forgetting, in one place: the table `[forgetting]` of `memd.toml` (T2-T12).

Goes out: a frozen value; the defaults are the sources'. Invariants: a number that changes what was counted or slept
travels in the operation, so another rule never changes the past; the file is read again when it changed.
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
    """Days after which a record's recency has halved, by volatility (T2): months, a season, weeks."""

    stable: Days = 365.0
    semi: Days = 90.0
    situational: Days = 21.0


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What time does to records. Levels are 0 to 5; a day is an active day of the pool, unless it says calendar day."""

    off: tuple[str, ...] = ()
    """Pools in which nothing fades, or `*` for all (T9)."""
    daily_loss: Six = (0.05, 0.03, 0.02, 0.01, 0.005, 0.002)
    """The share of its strength that an unused record loses a day, by level (T5)."""
    level_uses: SixCounts = LEVEL_USES
    """Uses from which a record stands on each level (T5)."""
    use: Amount = 0.1
    """Strength that a use adds (T3)."""
    perspective_use: Amount = 0.15
    """Strength under its perspective that a use adds (T3)."""
    impact_share: Amount = 0.2
    """The share of its impact that strength gains (T4)."""
    helpful: Amount = 2.0
    success: Amount = 1.5
    prevented: Amount = 2.0
    """Impact of a record that was helpful, was used in a task that succeeded, or kept an error away (T4)."""
    floor: Annotated[float, Meta(gt=0, le=1)] = 0.1
    """Below it in strength and under every perspective a record is archived (T6)."""
    never: tuple[Kind, ...] = ("procedure", "persona")
    """Kinds that do not fade by time (T9)."""
    weights: SixCounts = (1, 2, 4, 8, 16, 32)
    """What a record weighs, by level (T6)."""
    capacity: Number = 100_000
    """Weight that a personal or project pool holds; past it the least used are archived (T6)."""
    agent_capacity: Number = 10_000
    """The same of an agent's pool."""
    share_a_run: Share = 0.05
    """At most this share of a pool is archived a sleep, and one record at least (T6)."""
    episodes: Annotated[int, Meta(ge=2, le=1000)] = 3
    episode_sessions: Annotated[int, Meta(ge=1, le=1000)] = 2
    """So many records that say the same of different times, from so many sessions, get one successor (T11)."""
    episode_alike: Share = 0.8
    """So alike are the vectors of such records at least (T11)."""
    restored_strength: Amount = 0.5
    restored_levels_down: Annotated[int, Meta(ge=0, le=5)] = 2
    """What comes back from the archive starts with this strength, so many levels lower (T7)."""
    first_session: bool = True
    """Records of a pool's first live session are quarantined until they are used (T8)."""
    old_import_days: Days = 90.0
    """So are those of imports that were said so many calendar days ago; 0 = none (T8)."""
    rare_tag: Share = 0.02
    """A tag that at most this share of a pool bears shows that a record was used (T3)."""
    same: Share = 0.6
    """So similar must an answer be to a record to have used it (T3)."""
    half_lives: HalfLives = HalfLives()
    """How recency halves, in calendar days (T2)."""
    review_days: Days = 180.0
    """A situational record is to be looked at again after so many calendar days; a semi-stable one after twice as many
    (T12)."""
    overdue_confidence: Share = 0.9
    """What is left of a record's confidence when its review is overdue, once a cadence (T12)."""
    change_sessions: Number = 3
    """A preference, a convention, a principle or what is held on to is doubted once so many sessions, on different
    days, say otherwise; 0 = never. One whose own condition names a number goes by that (T12)."""
    changed_confidence: Share = 0.5
    """What is left of its confidence then, until somebody confirms it (T12)."""

    def is_off(self, pool: str) -> bool:
        """Whether nothing fades in a pool."""
        return pool in self.off or "*" in self.off

    def capacity_of(self, pool: str) -> int:
        """The weight that a pool holds."""
        return self.agent_capacity if pool.startswith("agent/") else self.capacity

    def retention(self, days: float) -> tuple[float, ...]:
        """What is left after so many days, by level: r^days with r = 1 - the daily loss (T6)."""
        return tuple((1 - loss) ** days for loss in self.daily_loss)


UseOutcome = Literal["", "helpful", "success", "prevented"]
