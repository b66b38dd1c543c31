"""Finds sessions by the words of their titles and turns (C2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...projections.sources import SessionEntry
from ...projections.stores import Stores
from ...projections.tokens import TermTokens
from ...storage.archive import decode
from .reading import cut
from .transcript import shown_words

TURNS = 200
"""Turns that are read, the best by their words."""


class FoundDocument(NamedTuple):
    """A session with its score in [0, 1], and the best line of its best turn."""

    document: str
    score: float
    line: str = ""
    turn: str = ""


class SessionSearch:
    """Searches the turns' index and the titles. Not for two threads at once."""

    def __init__(self, stores: Stores) -> None:
        self._stores, self._tokens = stores, TermTokens()

    def find(
        self, words: str, sessions: Mapping[str, SessionEntry], hears: Callable[[str], bool] | None
    ) -> list[FoundDocument]:
        """Return the sessions that have some of these words, best first."""
        documents = [document for document in sessions if hears is None or hears(document)]
        shares, weights = self._stores.turns.find(words, TURNS, documents=documents)
        found = self._by_title(documents, sessions, weights or dict.fromkeys(self._tokens.query(words), 1.0))
        for seq, share in shares.items():
            entry = self._stores.archive.log.get(seq)
            captured = decode(entry) if entry else None
            if captured is None:
                continue
            text = shown_words(captured, self._stores.records)
            line, covered = self._best_line(text.splitlines(), weights)
            before = found.get(captured.document)
            if covered and (before is None or share > before.score or not before.line):
                score = max(share, before.score if before else 0.0)
                found[captured.document] = FoundDocument(captured.document, score, cut(line), captured.event.turn)
        return sorted(found.values(), key=lambda row: (-row.score, row.document))

    def _by_title(
        self, documents: Sequence[str], sessions: Mapping[str, SessionEntry], weights: Mapping[str, float]
    ) -> dict[str, FoundDocument]:
        """Return the sessions whose titles have some of the terms."""
        total = sum(weights.values())
        titled = {document: title for document in documents if (title := sessions[document].opened.origin.title)}
        shares = {document: self._share(title, weights) / total for document, title in titled.items()} if total else {}
        return {document: FoundDocument(document, share) for document, share in shares.items() if share}

    def _best_line(self, lines: Sequence[str], weights: Mapping[str, float]) -> tuple[str, float]:
        shares = [(self._share(line, weights), -number) for number, line in enumerate(lines)]
        share, number = max(shares, default=(0.0, 0))
        return (lines[-number], share) if share else ("", 0.0)

    def _share(self, words: str, weights: Mapping[str, float]) -> float:
        terms = frozenset(self._tokens.document(words, "en"))
        return sum(weight for term, weight in weights.items() if term in terms)
