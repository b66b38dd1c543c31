"""Ten years of use read back: 100,000 records, a sleep a day, a million counts.

Comes in: a setting. Goes out: seconds of a core. Invariant: nothing of the daemon is imported; the home is filled and
replayed by its own offline commands.
"""

from __future__ import annotations

import msgspec

from .figure import Figure, at_most
from .home import empty_home
from .offline import offline
from .part import Part, Setting


class Replayed(msgspec.Struct, frozen=True):
    """What the daemon's `replay` command says: seconds of a core."""

    operations: int
    chain_s: float
    tables_s: float
    keywords_s: float
    vectors_s: float


def ten_years(setting: Setting) -> Part:
    """Ten years of sleeps and counts over 100,000 records, replayed into every projection."""
    part = 10 if setting.quick else 1
    records, sleeps, counts = 100_000 // part, 3_650 // part, 1_000_000 // part
    with empty_home({}) as (_, environment):
        setting.tell(f"living ten years with {records:,} records")
        offline(environment, "fill-years", str(records), str(sleeps), str(counts))
        setting.tell("replaying them")
        told = msgspec.json.decode(offline(environment, "replay"), type=Replayed)
    seconds = told.chain_s + told.tables_s + told.keywords_s + told.vectors_s
    name = f"{sleeps:,} sleeps, {counts:,} counts replayed"
    return Part(
        figures=(
            Figure(name=name, value=seconds, unit="s", samples=told.operations, target=at_most(60)),
            Figure(name="read, decode, chain", value=told.chain_s, unit="s", samples=told.operations),
            Figure(name="tables, counters among them", value=told.tables_s, unit="s", samples=told.operations),
            Figure(name="keywords", value=told.keywords_s, unit="s", samples=told.operations),
            Figure(name="vectors", value=told.vectors_s, unit="s", samples=told.operations),
        ),
        shows_not="a cold page cache; vectors are read, not made",
    )
