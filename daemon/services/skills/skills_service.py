"""Drafts of skills: procedures that a project's sessions repeated with success (K1).

Invariants: nothing is written, neither in the journal nor in a file; only sessions count that memd captured or imported
from a host of agents; a session that is hidden, or that the caller may not hear, counts nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ....protocol.repository_folder import repository_folder
from ....protocol.skills import ListSkills, SkillDraft, SkillList, SkillRound, SkillStep
from ....stages.batch import PERSONAL
from ...projections.records import digest
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Caller, Handler, Handlers, Service
from .instructions import instructions, stated_in
from .mining import Procedure, procedures
from .project_files import known_words
from .rendering import RenderedProcedure, draft
from .skill_text import skill_text, why_refused
from .units import SessionEvents, WorkUnit, work_units

HOSTS = frozenset(("claude-code", "codex", "pi", "gemini-cli"))
"""Hosts whose calls are the work of a person's agents. Documents and exports are not; a shell has no requests that
divide its work."""

SESSIONS = 400
"""Newest sessions of a project that are read."""


class SkillsService(Service):
    """Finds procedures on the slow lane."""

    name = "skills"

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def handlers(self) -> Handlers:
        return {ListSkills: Handler("slow", self.list, scoped=True)}

    def list(self, request: ListSkills, caller: Caller) -> SkillList:
        """Return drafts. Raises NotFound for a pool that does not exist."""
        wanted = request.name.strip().lower()
        by_pool = _by_pool(self._stores, caller)
        pools = sorted(by_pool) if request.everywhere else [pool for pool in caller.scope if pool in by_pool]
        found: list[SkillDraft] = []
        units = 0
        for pool in pools:
            work = list(work_units(self._read(by_pool[pool])))
            units += len(work)
            found += _drafts(pool, work, _folder(by_pool[pool]))
        kept = [each for each in found if request.known or not each.stated_in]
        kept = [each for each in kept if not wanted or wanted in (each.name, each.id[: len(wanted)])]
        kept.sort(key=lambda each: (bool(each.stated_in), bool(each.refused), -len(each.rounds), each.id))
        return SkillList(skills=tuple(kept), sessions=sum(len(by_pool[pool]) for pool in pools), units=units)

    def _read(self, sessions: Sequence[SessionEntry]) -> Iterator[SessionEvents]:
        for entry in sessions:
            document = entry.opened.document
            yield SessionEvents(document, [captured.event for captured in self._stores.archive.turns(document)])


def _by_pool(stores: Stores, caller: Caller) -> dict[str, list[SessionEntry]]:
    """Return the newest sessions of each pool that the caller may hear, oldest first."""
    found: dict[str, list[SessionEntry]] = {}
    newest = sorted(stores.sources.all_sessions(), key=lambda entry: entry.opened.at, reverse=True)
    for entry in newest:
        document = entry.opened.document
        is_work = entry.opened.origin.host in HOSTS and not stores.forgotten.hiding(document)
        if is_work and (caller.hears is None or caller.hears(document)):
            found.setdefault(entry.opened.project or PERSONAL, []).append(entry)
    return {pool: list(reversed(list(islice(entries, SESSIONS)))) for pool, entries in found.items()}


def _folder(sessions: Sequence[SessionEntry]) -> Path | None:
    """Return the repository of the newest session with a folder, None without one."""
    folder = next((Path(entry.opened.origin.cwd) for entry in reversed(sessions) if entry.opened.origin.cwd), None)
    return folder and repository_folder(folder)


def _drafts(pool: str, units: Sequence[WorkUnit], root: Path | None) -> Iterator[SkillDraft]:
    texts, known = instructions(root) if root else {}, known_words(root)
    foreign = frozenset[str]().union(*(unit.foreign for unit in units))
    for procedure in procedures(units):
        done = {round.unit.turns[0] for round in procedure.rounds}
        others = [unit.asks[0].text for unit in units if unit.asks and unit.turns[0] not in done]
        words = draft(procedure, others, known, foreign)
        yield _draft(pool, procedure, words, tuple(stated_in(procedure.own, texts)))


def _draft(pool: str, procedure: Procedure, words: RenderedProcedure, stated: tuple[str, ...]) -> SkillDraft:
    id = digest(" ".join((pool, *sorted(procedure.own)))).hex()[:26]
    good = sum(each.unit.end == "good" for each in procedure.rounds)
    told = f"{len(procedure.rounds)} times in {procedure.sessions} sessions on {procedure.days} days; {good} known good"
    text = skill_text(words, id, told)
    refused = why_refused(words, text)
    own = procedure.own
    return SkillDraft(
        id=id,
        pool=pool,
        name=words.name,
        form=words.form,
        steps=tuple(
            SkillStep(text=step.text, rounds=step.rounds, own=source.name in own, risk=step.risk)
            for step, source in zip(words.steps, procedure.steps, strict=True)
        ),
        rounds=tuple(
            SkillRound(
                document=each.unit.document,
                turn=each.unit.turns[0],
                day=each.unit.day,
                end="good" if each.unit.end == "good" else "unknown",
            )
            for each in procedure.rounds
        ),
        agree=round(procedure.agree, 3),
        sessions=procedure.sessions,
        days=procedure.days,
        asks=words.asks,
        pitfalls=words.pitfalls,
        stated_in=stated,
        refused=refused,
        text="" if refused else text,
    )
