"""What would mend a placed skill's file: without steps that are gone, or with a better description (K2).

Invariant: a reason has counts, and no word of a session.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from .pool_work import PoolWork
from .skill_description import quoted_asks, with_asks
from .skill_file import FileStep, SkillFile, without_steps
from .skill_use import MISSED


class Mending(NamedTuple):
    """`why` a skill's file should be changed, "" for no reason; `text`: of the file then, "" where only the user can
    write it."""

    why: str = ""
    text: str = ""


def without_gone(file: SkillFile, gone: Sequence[FileStep]) -> str:
    """Return a skill's text without the steps that are gone, "" if none is left or none is gone."""
    return without_steps(file.text, gone) if 0 < len(gone) < len(file.steps) else ""


def mended(file: SkillFile, missed: Collection[str], work: PoolWork, is_own: bool) -> Mending:
    """Return what mends a description. `missed`: first turns of the work that did the steps, of a skill that nobody
    ever called and that was not changed yet; empty for others; `is_own`: memd wrote the file as it is."""
    quoted = quoted_asks(file.text)
    lost = [ask for ask in quoted if not work.has_asked(ask)] if work.is_whole and is_own else []
    if lost:
        kept = [ask for ask in quoted if ask not in lost]
        why = f"it quotes {len(lost)} of your requests that no session has any more"
        return Mending(why, with_asks(file.text, kept) if kept else "")
    asks = work.requests(missed) if len(missed) >= MISSED and quoted else ()
    if asks and {*asks} != {*quoted}:
        return Mending(f"its steps were done {len(missed)} times without it", with_asks(file.text, asks))
    return Mending()
