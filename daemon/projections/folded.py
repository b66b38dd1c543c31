"""The list of folds and record indexes, and one opened set of their tables.

Live tables, the fresh tables of a rebuild and those that `verify` compares with are the same class.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ...protocol.errors import JournalCorrupt
from ..storage.lmdb_environment import Environment
from .aliases import Aliases
from .counters import Counters, FeedbackCounts
from .courses import CourseTable
from .dead_letters import DeadLetterTable
from .forgotten import ForgottenTable
from .grants import GrantTable
from .graph import EdgeTable, edge_rows
from .inbox import InboxTable, held_rows
from .lines import line_rows
from .outcomes import OutcomeTable
from .patches import PatchTable
from .profile import card_rows
from .projection import Tables
from .records import Index, Records, cited_rows, key_rows, recent_rows
from .remote_calls import RemoteTable
from .sharing import SharingTable
from .skills import SkillTable
from .sources import OpenSessions, SourceTable
from .vectors import shelved_rows

INDEXES: Mapping[str, Index] = {
    "recent": recent_rows,
    "cited": cited_rows,
    "keys": key_rows,
    "edges": edge_rows,
    "cards": card_rows,
    "shelved": shelved_rows,
    "held": held_rows,
    "lines": line_rows,
}
"""The tables whose rows follow from each record alone, whatever its revision, evidence, confidence and review."""

FOLDS = (
    *(Records, SourceTable, ForgottenTable, Aliases, FeedbackCounts, DeadLetterTable),
    *(OpenSessions, InboxTable, GrantTable, RemoteTable, SharingTable, PatchTable),
    *(SkillTable, CourseTable, OutcomeTable),
    Counters,
)
DATABASES = ("meta", *(name for fold in FOLDS for name in fold.databases), *INDEXES)


class TableSet:
    """One set of tables, opened."""

    def __init__(
        self,
        folder: Path,
        *,
        readonly: bool = False,
        alone: bool = False,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """`readonly`, `alone` and `on_full`: as for `Environment`. Empties tables of another layout."""
        environment = Environment(folder, DATABASES, durable=False, readonly=readonly, alone=alone, on_full=on_full)
        self.records = Records(environment, INDEXES)
        self.graph = EdgeTable(environment)
        self.sources = SourceTable(environment)
        self.forgotten = ForgottenTable(environment)
        self.aliases = Aliases(environment)
        self.dead_letters = DeadLetterTable(environment)
        self.open_sessions = OpenSessions(environment)
        self.inbox = InboxTable(environment)
        self.counters = Counters(environment, self.records)
        self.grants = GrantTable(environment)
        self.remote = RemoteTable(environment)
        self.sharing = SharingTable(environment)
        self.patches = PatchTable(environment)
        self.skills = SkillTable(environment)
        self.courses = CourseTable(environment)
        self.outcomes = OutcomeTable(environment)
        self.feedback_counts = FeedbackCounts(environment)
        others = (self.feedback_counts, self.dead_letters, self.open_sessions, self.inbox, self.grants, self.remote)
        folds = (self.records, self.sources, self.forgotten, self.aliases, *others)
        folds = (*folds, self.sharing, self.patches, self.skills, self.courses, self.outcomes, self.counters)
        self.tables = Tables(environment, folds, readonly=readonly)

    def close(self) -> None:
        """Close the tables."""
        self.tables.close()


def open_tables(folder: Path, on_full: Callable[[], None] = lambda: None) -> TableSet:
    """Open the tables of a folder; delete damaged ones, which a replay makes again."""
    try:
        return TableSet(folder, on_full=on_full)
    except JournalCorrupt:
        shutil.rmtree(folder)
        return TableSet(folder, on_full=on_full)
