"""Find quotes in a session: the step that every reader but memd's own model must pass (W4).

Invariants: a statement is taken only if each of its quotes stands in a turn of the session that a person, an agent or a
document wrote; a reader's own characters are never kept, only the place of the archive's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ....protocol.event import Captured, Pointed, Pointer, Said, Wrote, text, trust
from ....protocol.private import PLACEHOLDER
from ....protocol.reflection import Reason, Statement

LEAST_WORDS, LEAST_CHARACTERS = 3, 12
"""Least of a quote that tells by itself where it stands. A shorter one needs a longer one before it."""

_SAME = str.maketrans(dict.fromkeys("‘’‚‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—―−", "-"))
_AROUND = re.compile(r"^(?:\.{3}|[\"' ])+|(?:\.{3}|[\"' ])+$")
_REDACTED = re.compile(r"\[redacted[^\]]*\]|" + re.escape(PLACEHOLDER))


class QuotePlace(NamedTuple):
    """Characters `start:end` of the text of a turn: number `at` of the session's turns."""

    at: int
    start: int
    end: int


@lru_cache(4096)
def _fold(character: str) -> str:
    """Return what a character is in the search: "" for one that has no width, " " for a blank."""
    if unicodedata.category(character) == "Cf":
        return ""
    words = unicodedata.normalize("NFKD", character.translate(_SAME)).casefold()
    return " " if words.isspace() else words


class FoldedText:
    """A text for the search: blanks, quotation marks, dashes, case and how an accent is written do not count."""

    def __init__(self, words: str) -> None:
        characters: list[str] = []
        self._places: list[int] = []
        for place, character in enumerate(words):
            for letter in _fold(character):
                if letter != " " or (characters and characters[-1] != " "):
                    characters.append(letter)
                    self._places.append(place)
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
    return _AROUND.sub("", " ".join("".join(map(_fold, quote)).split()))


class SessionQuotes:
    """The turns of one session, in order, or those of them that the reader was given."""

    def __init__(self, captures: Sequence[Captured]) -> None:
        self._captures = captures
        self._output: list[FoldedText] | None = None
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
        if self._output is None:
            self._output = [FoldedText(text(event)) for event in others]
        return any(next(output.find(quote), None) is not None for output in self._output)

    def _words(self, place: QuotePlace) -> str:
        return text(self._captures[place.at].event)[place.start : place.end]


def _is_distinct(quote: str) -> bool:
    quote = unicodedata.normalize("NFC", quote)
    is_spaced = len(quote.split()) >= LEAST_WORDS and len(quote) >= LEAST_CHARACTERS
    return is_spaced or (len(quote) >= LEAST_CHARACTERS // 2 and any(unicodedata.category(c) == "Lo" for c in quote))


def _is_whole(words: str, start: int, end: int) -> bool:
    """Whether characters of a text begin and end between two words, as far as their script divides words."""
    before, after = words[start - 1 : start], words[end : end + 1]
    begins = not (_is_of_word(before) and _is_of_word(words[start]))
    ends = not (_is_of_word(after) and _is_of_word(words[end - 1]))
    return begins and ends and not unicodedata.combining(after or " ")


def _is_of_word(character: str) -> bool:
    return character.isalnum() and unicodedata.category(character) != "Lo"
