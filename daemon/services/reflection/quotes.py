"""Find quotes in a session: the step that every reader but memd's own model must pass (W4).

Invariants: a statement is taken only if each of its quotes stands in a turn of the session that a person, an agent or a
document wrote; a reader's own characters are never kept, only the place of the archive's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....protocol.event import Captured, Pointed, Pointer, Said, Wrote, text, trust
from ....protocol.private import PLACEHOLDER
from ....protocol.reflection import Reason, Statement

LEAST_WORDS, LEAST_CHARACTERS = 3, 12
"""Least of a quote that tells by itself where it stands. A shorter one needs a longer one before it."""

_FOLDED = str.maketrans(dict.fromkeys("‘’‚‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—―−", "-"))
_REDACTED = re.compile(r"\[redacted[^\]]*\]|" + re.escape(PLACEHOLDER))


class QuotePlace(NamedTuple):
    """Characters `start:end` of the text of a turn: number `at` of the session's turns."""

    at: int
    start: int
    end: int


class FoldedText:
    """A text for the search: blanks, quotation marks, dashes and case do not count."""

    def __init__(self, words: str) -> None:
        characters: list[str] = []
        self._places: list[int] = []
        for place, character in enumerate(words):
            folded = unicodedata.normalize("NFKC", character).translate(_FOLDED).casefold()
            if not folded or folded.isspace():
                if not characters or characters[-1] == " ":
                    continue
                folded = " "
            characters.extend(folded)
            self._places.extend([place] * len(folded))
        self._words = "".join(characters)

    def find(self, quote: str) -> Iterator[tuple[int, int]]:
        """Yield where a folded quote stands: characters of the text as it was."""
        at = self._words.find(quote)
        while at >= 0:
            end = at + len(quote)
            yield self._places[at], self._places[end - 1] + 1
            at = self._words.find(quote, end)


def folded(quote: str) -> str:
    """Return a quote as `FoldedText.find` takes it."""
    words = " ".join("".join(unicodedata.normalize("NFKC", c).translate(_FOLDED).casefold() for c in quote).split())
    return words.strip("\"'… ")


class SessionQuotes:
    """The turns of one session, in order, or those of them that the reader was given."""

    def __init__(self, captures: Sequence[Captured]) -> None:
        self._captures = captures
        self._texts = [
            FoldedText(text(captured.event)) if isinstance(captured.event, Said | Wrote) else None
            for captured in captures
        ]

    def pointed(self, statement: Statement) -> Pointed | Reason:
        """Return a statement as places, or why it is refused."""
        quotes = [folded(quote) for quote in statement.quotes]
        if not any(_is_distinct(quote) for quote in quotes):
            return "too short"
        places: list[QuotePlace] = []
        for quote in sorted(quotes, key=lambda quote: (not _is_distinct(quote), quotes.index(quote))):
            found = self._place(quote, min(places) if places else None)
            if found is None:
                return "not prose" if self._is_output(quote) else "not found"
            places.append(found)
        if any(_REDACTED.search(self._words(place)) for place in places):
            return "private"
        pointers = tuple(
            Pointer(self._captures[place.at].event.turn, place.start, place.end) for place in sorted(set(places))
        )
        return Pointed(type=statement.type, quotes=pointers, about=statement.about)

    def _place(self, quote: str, anchor: QuotePlace | None) -> QuotePlace | None:
        """Return where a quote stands. Of several places the user's first one; of a short quote the nearest one at or
        after the anchor."""
        if not quote:
            return None
        found = [
            QuotePlace(at, start, end)
            for at, folded_text in enumerate(self._texts)
            if folded_text is not None
            for start, end in folded_text.find(quote)
            if _is_whole(text(self._captures[at].event), start, end)
        ]
        if _is_distinct(quote):
            return min(found, key=lambda place: (trust(self._captures[place.at].event) != "user", place), default=None)
        return min((place for place in found if anchor and place >= anchor), default=None)

    def _is_output(self, quote: str) -> bool:
        others = (c.event for c in self._captures if not isinstance(c.event, Said | Wrote))
        return any(next(FoldedText(text(event)).find(quote), None) is not None for event in others)

    def _words(self, place: QuotePlace) -> str:
        return text(self._captures[place.at].event)[place.start : place.end]


def _is_distinct(quote: str) -> bool:
    is_spaced = len(quote.split()) >= LEAST_WORDS and len(quote) >= LEAST_CHARACTERS
    return is_spaced or (not quote.isascii() and len(quote) >= LEAST_CHARACTERS // 2)


def _is_whole(words: str, start: int, end: int) -> bool:
    """Whether characters of a text begin and end between two words."""
    before, after = words[start - 1 : start], words[end : end + 1]
    starts = not (before.isascii() and before.isalnum() and words[start].isalnum())
    return starts and not (after.isascii() and after.isalnum() and words[end - 1].isalnum())
