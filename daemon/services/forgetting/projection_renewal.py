"""Rebuilds projections in place at start, so that no file of theirs contains forgotten text.

A kill leaves the old projection or the new one, each whole. While memd serves, `memd rebuild` does this in a child.
"""

from __future__ import annotations

import shutil

from ...failpoint import reach
from ...projections.folded import TableSet
from ...projections.keywords import Keywords, text_of
from ...projections.stores import Stores
from ...projections.turns import TurnIndex
from ...storage.folder_swap import fresh_folder, promote

GROUP = 500
NAMES = ("tables", "keywords", "turns")


def renew(stores: Stores) -> None:
    """Build the tables and the keyword indexes again, and swap each in when it is complete."""
    place, last = stores.projections_folder, stores.journal.last
    folder = fresh_folder(place)
    folded = TableSet(folder / "tables")
    while group := stores.journal.slice(folded.tables.applied_seq, GROUP):
        folded.tables.apply(group)
    folded.close()
    stores.tables.replace(lambda: promote(place, "tables"))
    reach("renew:tables")
    keywords = Keywords(folder / "keywords", stores.records, stores.keywords.around)
    everything = stores.records.everything()
    keywords.put(((text_of(record, keywords.around), last) for record in everything), (), last)
    keywords.close()
    stores.keywords.replace(lambda: promote(place, "keywords"))
    reach("renew:keywords")
    turns = TurnIndex(folder / "turns", stores.archive)
    turns.catch_up()
    turns.close()
    stores.turns.replace(lambda: promote(place, "turns"))
    reach("renew:turns")
    shutil.rmtree(folder, ignore_errors=True)
