"""The work of each pool's sessions, and the procedures in it (K1, K2).

Invariant: a session that is hidden, or that the caller may not hear, counts nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from ....protocol.record import LIVE
from ....protocol.repository_folder import repository_folder
from ....stages.batch import PERSONAL
from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ..service import Caller
from .instructions import instructions, names_step
from .mining import Procedure, procedures
from .project_files import known_words
from .rendering import RenderedProcedure, draft
from .request_words import is_quote, quotable, repeats, trigger_words
from .shown_words import Known
from .steps import SubCommands
from .units import SessionEvents, WorkUnit, first_said, work_units

HOSTS = frozenset(("claude-code", "codex", "pi", "gemini-cli"))
"""Hosts whose calls are the work of a person's agents. Documents and exports are not; a shell has no requests that
divide its work."""

SESSIONS = 400
"""Newest sessions of a project that are read."""


_NEVER = re.compile(
    r"\b(?:never|must not|do not|don.t|mustn.t|no longer|forbidden|nie|niemals|jamais|nunca)\b"
    r"(?!\s+(?:skip|forget|omit|miss|leave)\b)",
    re.IGNORECASE,
)


class PoolWork:
    """The newest sessions of a pool, oldest first."""

    def __init__(self, stores: Stores, pool: str, sessions: Sequence[SessionEntry]) -> None:
        self._stores, self.pool, self.sessions = stores, pool, sessions

    @cached_property
    def units(self) -> list[WorkUnit]:
        """The pieces of work, oldest first."""
        return list(work_units(self._read()))

    @cached_property
    def subs(self) -> SubCommands:
        """Tells which words of the pool's commands are sub-commands."""
        return SubCommands(unit.steps for unit in self.units)

    def named(self) -> Iterator[WorkUnit]:
        """Yield the pieces of work with their steps by sub-commands."""
        for unit in self.units:
            yield unit._replace(steps=tuple(map(self.subs.named, unit.steps)))

    def _read(self) -> Iterator[SessionEvents]:
        for entry in self.sessions:
            document = entry.opened.document
            yield SessionEvents(document, [captured.event for captured in self._stores.archive.turns(document)])

    @cached_property
    def root(self) -> Path | None:
        """The repository of the newest session with a folder, None without one."""
        newest = reversed(self.sessions)
        folder = next((Path(entry.opened.origin.cwd) for entry in newest if entry.opened.origin.cwd), None)
        return folder and repository_folder(folder)

    @cached_property
    def known(self) -> Known:
        """Whether the project's own files have a word."""
        return known_words(self.root)

    @cached_property
    def texts(self) -> dict[str, str]:
        """What the project tells its agents, by path."""
        return instructions(self.root) if self.root else {}

    @cached_property
    def procedures(self) -> list[Procedure]:
        """The procedures that the units repeat."""
        return procedures(self.units)

    def draft(self, procedure: Procedure) -> RenderedProcedure:
        """Return a procedure in words."""
        _, others = self.asks({round.unit.turns[0] for round in procedure.rounds})
        foreign = frozenset[str]().union(*(unit.foreign for unit in self.units))
        return draft(procedure, others, self.known, foreign, first_said(self.units))

    def asks(self, turns: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the requests that began the units of these first turns, and those that began the others."""
        units = [unit for unit in self.units if unit.asks]
        inside = [unit.asks[0].text for unit in units if unit.turns[0] in turns]
        return inside, [unit.asks[0].text for unit in units if unit.turns[0] not in turns]

    def requests(self, turns: Collection[str], unseen: Collection[str] = ()) -> tuple[str, ...]:
        """Return what a description may quote of the requests that began the units of these first turns. `unseen`: of
        units that decide nothing here."""
        inside, _ = self.asks(turns)
        _, others = self.asks({*turns, *unseen})
        return quotable(inside, trigger_words(inside, others))

    def repeats_private(self, text: str) -> bool:
        """Whether a text has words of a request of a private session."""
        private = self._private
        asks = (ask.text for unit in self.units if unit.document in private for ask in unit.asks)
        return any(repeats(text, ask) for ask in asks)

    @cached_property
    def _private(self) -> frozenset[str]:
        """The sessions that are private."""
        return frozenset(each.opened.document for each in self.sessions if each.opened.origin.visibility == "private")

    @property
    def is_whole(self) -> bool:
        """Whether all sessions of the pool are read."""
        return len(self.sessions) < SESSIONS

    def has_asked(self, quote: str, *, in_private: bool = True) -> bool:
        """Whether a session has the request that a description quotes, without `in_private` one that is not private."""
        asks = (ask for unit in self.units if in_private or unit.document not in self._private for ask in unit.asks)
        return any(is_quote(quote, ask.text) for ask in asks)

    def forbidden(self, procedure: Procedure) -> str:
        """Return the rule of the user or the playbook that forbids a step of a procedure, "" for none (K4)."""
        held = self._stores.records.many(self._stores.inbox.held((self.pool, PERSONAL))).values()
        rules = [record.content for record in held if record.status in LIVE and _NEVER.search(record.content)]
        names = [step.name for step in procedure.steps if not step.name.startswith("edit ")]
        return next((rule for rule in rules if any(_forbids(rule, name) for name in names)), "")


def _forbids(rule: str, name: str) -> bool:
    """Whether a rule names a step; a step of one word, which may be a word of English, only in backticks."""
    return names_step(name, rule.replace("`", "")) if " " in name or "/" in name else f"`{name}`" in rule


def pool_works(stores: Stores, caller: Caller) -> dict[str, PoolWork]:
    """Return the work of each pool in which the caller may hear a session."""
    found: dict[str, list[SessionEntry]] = {}
    newest = sorted(stores.sources.all_sessions(), key=lambda entry: entry.opened.at, reverse=True)
    for entry in newest:
        document = entry.opened.document
        is_work = entry.opened.origin.host in HOSTS and not stores.forgotten.hiding(document)
        if is_work and (caller.hears is None or caller.hears(document)):
            found.setdefault(entry.opened.project or PERSONAL, []).append(entry)
    return {
        pool: PoolWork(stores, pool, list(reversed(list(islice(entries, SESSIONS))))) for pool, entries in found.items()
    }
