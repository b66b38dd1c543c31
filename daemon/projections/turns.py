"""The keyword index of captured turns, for deep recall and the simple method (Q4).

Invariants: a turn is found at once, because a search first indexes earlier captures; of a rewritten turn only the
newest version is found; a forgotten turn is dropped at once, and its terms leave the files at the next rebuild.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ...protocol.event import Captured, Noted, Ran, Reworded, Said, Wrote, text
from ..storage.archive import Archive, decode
from .terms import TermDocument, TermIndex

GROUP = 256
AT_ONCE = 4096
"""Captures that a search indexes at most before it answers."""


def text_of(seq: int, captured: Captured) -> TermDocument | None:
    """Return the document of a turn in the index; None for events without text."""
    if not isinstance(captured.event, Said | Noted | Reworded | Wrote | Ran):
        return None
    return TermDocument(str(seq), captured.document, True, text(captured.event))


class TurnIndex(TermIndex):
    """The index over the archive, in groups by document."""

    name = "turns"

    def __init__(self, folder: Path, archive: Archive) -> None:
        self._archive = archive
        self._catching = threading.Lock()
        super().__init__(folder)

    @property
    def applied_seq(self) -> int:
        """The archive seq of the last capture applied, tail included."""
        return self.applied

    def apply(self, captures: Sequence[tuple[int, Captured | None]]) -> None:
        """Index captures, in order; None for a removed payload."""
        texts: list[tuple[TermDocument, int]] = []
        drops: list[str] = []
        for number, (seq, captured) in enumerate(captures, self.applied + 1):
            if seq != number:
                raise AssertionError(f"{self.name} has applied {number - 1}, got {seq}")
            if captured is None:
                continue
            if captured.replaces:
                drops.append(str(captured.replaces))
            if (document := text_of(seq, captured)) is not None:
                texts.append((document, seq))
        if captures:
            gone = set(drops)
            self.put([pair for pair in texts if pair[0].id not in gone], drops, captures[-1][0])

    def catch_up(self, most: int | None = None, progress: Callable[[int], None] | None = None) -> None:
        """Index new captures, at most `most`."""
        with self._catching:
            taken = 0
            while (most is None or taken < most) and self.applied < self._archive.last:
                entries = self._archive.log.slice(self.applied, GROUP)
                if not entries:
                    return
                self.apply([(entry.seq, decode(entry)) for entry in entries])
                taken += len(entries)
                if progress:
                    progress(self.applied)

    def find(
        self, query: str, limit: int, *, documents: Sequence[str] | None = None
    ) -> tuple[dict[int, float], dict[str, float]]:
        """Return at most `limit` turns of these documents (None: of all) by archive seq, the best first, each with its
        share of the highest score that the question can reach; and the weight of each term of the question."""
        with suppress(ValueError):  # a full disk ended the writer: search the earlier turns until it is reopened
            self.catch_up(AT_ONCE)
        found = self.search(query, documents, limit)
        return {int(id): score / found.possible for id, score in found.by_id.items()}, found.weights

    def replace(self, move: Callable[[], None]) -> None:
        """Replace the index while no thread indexes captures."""
        with self._catching:
            super().replace(move)

    def mask(self, seqs: Iterable[int]) -> None:
        """Drop forgotten or expired turns at once (T10)."""
        with self._catching:
            self.put((), [str(seq) for seq in seqs], self.applied)
