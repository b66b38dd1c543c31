"""The tables of one folder with everything that reads them: one place that says which folds and indexes there are.

Comes in: a folder. Goes out: records, keys, graph, sources and their tables. Invariants: live tables, a rebuild's fresh
ones and those that `verify` compares with are this same object; tables of another layout are emptied, to be replayed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from ...protocol.errors import JournalCorrupt
from .aliases import Aliases
from .counters import Counters
from .dead_letters import DeadLetterTable
from .forgotten import ForgottenTable
from .grants import GrantTable
from .graph import EdgeTable, edge_rows
from .inbox import InboxTable, held_rows
from .keys import Keys, key_rows
from .lessons import FeedbackCounts
from .lines import line_rows
from .profile import card_rows
from .projection import Tables
from .records import Index, Records, cited_rows, recent_rows
from .sources import SourceTable
from .unfinished import OpenSessions
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


class TableSet:
    """One set of tables, opened."""

    def __init__(self, folder: Path, *, readonly: bool = False, alone: bool = False) -> None:
        """`readonly` and `alone`: as for `Environment`."""
        self.records = Records(INDEXES)
        self.keys = Keys(self.records)
        self.graph = EdgeTable(self.records)
        self.sources = SourceTable(self.records)
        self.forgotten = ForgottenTable(self.records)
        self.aliases = Aliases(self.records)
        self.letters = DeadLetterTable(self.records)
        self.unfinished = OpenSessions(self.records)
        self.inbox = InboxTable(self.records)
        self.counters = Counters(self.records)
        self.grants = GrantTable(self.records)
        self.lessons = FeedbackCounts(self.records)
        running = (self.lessons, self.letters, self.unfinished, self.inbox, self.grants)
        folds = (self.records, self.sources, self.forgotten, self.aliases, *running, self.counters)
        self.tables = Tables(folder, folds, readonly=readonly, alone=alone)
        self.records.attach(self.tables.environment)

    def close(self) -> None:
        """Close the tables."""
        self.tables.close()


def open_folded(folder: Path) -> TableSet:
    """The tables of a folder; those that can't be opened are thrown away, the journal has it all."""
    try:
        return TableSet(folder)
    except JournalCorrupt:
        shutil.rmtree(folder)
        return TableSet(folder)
