"""The skills that the user placed: their files, how they are used, and what is known of them (K2).

Invariants: the daemon never changes a skill's file; its record names the file and never holds its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ....protocol.instant import micros
from ....protocol.operation import AnyOperation, Invalidated, RevisedBy, SkillRevised
from ....protocol.record import LIVE, Record
from ....protocol.skills import PlacedSkill, SkillRevision, SkillUse
from ....stages.batch import PERSONAL
from ...projections.stores import Stores
from .mending import Mending, mended, without_gone
from .pool_work import PoolWork
from .skill_file import UNREADABLE, SkillFile, gone_steps, read_skill
from .skill_use import missed, newest, rung, used, uses, why_retire

KEY = "skill."
"""A skill's record has the key `skill.NAME`."""

PLACE = (".agents", "skills", "NAME", "SKILL.md")
"""Where a skill lies in a checkout."""

SHOWN = 20
"""Newest uses that are told."""


class PlacedSkills:
    """Reads placed skills."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def records(self) -> list[Record]:
        """Return the records of the skills that are in place, by name."""
        records = self._stores.records.many(self._stores.skills.ids()).values()
        return sorted((each for each in records if each.status in LIVE), key=lambda each: (each.key, each.id))

    def told(self, record: Record, works: Mapping[str, PoolWork]) -> PlacedSkill:
        """Return a skill with its statistics. `works`: the work of the pools that count for it."""
        states = self._stores.skills.states(record.id)
        there = [each for each in states if each.what.by != "offered"]
        work = works.get(states[0].what.pool or record.pool)
        path = self.path(record, works)
        file = read_skill(path)
        history = sorted(self._uses(record, works, file, there[0].at), key=lambda use: use.at) if there else []
        real = used(history)
        revisions = [SkillRevision(sha=each.what.sha, by=each.what.by, at=each.at) for each in states]
        stands, fell = rung(history, revisions)
        gone = gone_steps(file, work.known, work.root) if work and work.root else []
        since = max([states[-1].at if not there else there[0].at, *(use.at for use in real[-1:])])
        idle = sum(micros(entry.opened.at) > since for entry in work.sessions) if work else 0
        without = missed(history, revisions)
        shas = {each.what.sha for each in there if each.what.sha}
        turns = [use.turn for use in without if len(shas) == 1]
        is_own = any(each.what.sha == file.sha and each.what.by != "user" for each in states)
        is_offered = revisions[-1].by == "offered" and revisions[-1].sha != file.sha
        is_settled = work is not None and file.text and not gone and not is_offered
        mend = mended(file, turns, work, is_own) if work and is_settled else Mending()
        return PlacedSkill(
            id=record.id,
            pool=record.pool,
            name=name_of(record),
            path=str(path),
            rung=stands,
            uses=len(real),
            good=sum(use.end == "good" for use in real),
            bad=sum(use.end == "bad" for use in real),
            without=len(history) - len(real),
            last_used=real[-1].day if real else "",
            fell=fell,
            retire="" if mend.why or is_offered else _why_retire(file, history, len(without), idle, len(gone)),
            mend=mend.why,
            better=without_gone(file, gone) or mend.text,
            offered=is_offered,
            gone=tuple(each.command for each in gone),
            revisions=tuple(revisions),
            history=newest(history, SHOWN),
        )

    def _uses(self, record: Record, works: Mapping[str, PoolWork], file: SkillFile, since: int) -> Iterator[SkillUse]:
        """Yield the uses of a skill: in its project; of one in the home in every pool without one of its name."""
        for pool, work in works.items():
            other = self._stores.records.holding_key(pool, record.key) if record.pool != pool else ""
            if record.pool == pool or (record.pool == PERSONAL and not other):
                yield from uses(work.named(), name_of(record), file.own(work.subs), since)

    def path(self, record: Record, works: Mapping[str, PoolWork]) -> Path:
        """Return where a skill's file lies: in the newest checkout of its project if the one in which it was placed is
        gone."""
        path, work = Path(record.value), works.get(record.pool)
        if path.exists() or work is None or work.root is None:
            return path
        other = work.root.joinpath(*path.parts[-len(PLACE) :])
        return other if other.exists() else path

    def changes(self, works: Mapping[str, PoolWork]) -> Iterator[AnyOperation]:
        """Yield what the files tell that memd does not know yet: other bytes, or that a file is gone."""
        for record in self.records():
            states = [each.what for each in self._stores.skills.states(record.id)]
            known: dict[str, RevisedBy] = {each.sha: each.then if each.by == "offered" else each.by for each in states}
            last = next((each.sha for each in reversed(states) if each.by != "offered"), None)
            sha = read_skill(self.path(record, works)).sha
            if sha == UNREADABLE.sha or (last is None and not sha):
                continue
            if sha != last:
                yield SkillRevised(record=record.id, sha=sha, by=known.get(sha, "user") if sha else "user")
            elif not sha:  # gone at the look before, too: no checkout in between
                yield Invalidated(id=record.id, valid_to="", reason="the user deleted the skill's file")


def _why_retire(file: SkillFile, history: Sequence[SkillUse], without: int, idle: int, gone: int) -> str:
    return why_retire(history, without, idle, gone, len(file.steps)) if file.sha else "its file is gone"


def name_of(record: Record) -> str:
    """Return the name of a skill."""
    return record.key.removeprefix(KEY)
