"""Turns that a host copied into the file of a forked or resumed session: they were distilled where they were said."""

from __future__ import annotations

from ....protocol.event import Captured, text
from ...projections.sources import SourceTable
from ...storage.archive import Archive


class CopiedTurns:
    """Finds the copies in one batch of captures."""

    def __init__(self, sources: SourceTable, archive: Archive) -> None:
        self._sources, self._archive = sources, archive
        self._relatives: dict[str, list[str]] = {}

    def has(self, seq: int, captured: Captured) -> bool:
        """Whether an earlier capture of another session of the family has this turn: the same name, time and words."""
        document, event = captured.document, captured.event
        if not text(event):
            return False
        if document not in self._relatives:
            session = self._sources.session(document)
            is_copy = session is not None and session.opened.family
            self._relatives[document] = self._sources.relatives(document) if is_copy else []
        for other in self._archive.holders(self._relatives[document], event.turn):
            place, earlier = self._archive.find(other, event.turn)
            if place < seq and earlier is not None and earlier.event == event:
                return True
        return False
