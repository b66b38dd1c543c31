"""Turns that a host copied into the file of a forked or resumed session: they were distilled where they were said."""

from __future__ import annotations

from ....protocol.event import Captured, Said, text
from ...projections.sources import SourceTable
from ...storage.archive import Archive


class CopiedTurns:
    """Finds the copies in one batch of captures."""

    def __init__(self, sources: SourceTable, archive: Archive) -> None:
        self._sources, self._archive = sources, archive
        self._relatives: dict[str, list[str]] = {}
        self._said: dict[str, dict[tuple[str, str], list[tuple[str, str]]]] = {}

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
        return any(self._archive.seq_of(other, turn) < seq for other, turn in self._same_words(captured))

    def _same_words(self, captured: Captured) -> list[tuple[str, str]]:
        """Return the turns of the family that say the same at the same time under another name, as a host gives it to
        a copy."""
        if not isinstance(captured.event, Said):
            return []
        if captured.document not in self._said:
            known = self._said[captured.document] = {}
            for other in self._relatives[captured.document]:
                for earlier in self._archive.turns(other):
                    if isinstance(earlier.event, Said):
                        key = earlier.event.at, earlier.event.text
                        known.setdefault(key, []).append((other, earlier.event.turn))
        return self._said[captured.document].get((captured.event.at, captured.event.text), [])
