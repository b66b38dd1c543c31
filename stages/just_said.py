"""What the user says of themselves in a turn that no model has read yet: it counts in the profile at once (W1).

Word rules alone, so that a question does not wait for a model. They are stricter than the stages, which replace these
lines a moment later: a clause counts only in the first person, with strong cue words of a preference or an identity.
"""

from __future__ import annotations

from collections.abc import Iterator

from .clauses import split
from .cues import count_words, noise, weights
from .reports import is_first_person, is_reported
from .words import is_english

LONGEST = 1500
"""Characters of a turn that is read; a longer one is mostly pasted."""

CUED = 0.5
"""Weight of the cue words from which a clause states a preference or an identity."""

TYPES = ("identity", "preference")


def said_of_self(turn: str) -> Iterator[tuple[str, str]]:
    """Yield the type and the words of each clause in which a user states a preference, or who they are."""
    if len(turn) > LONGEST:
        return
    for clause in split(turn).clauses:
        words = clause.text
        if count_words(words) < 3 or clause.heading or not is_english(words) or not is_first_person(words):
            continue
        cued = weights(words, "user")
        type_ = max(TYPES, key=lambda name: cued.get(name, 0.0))
        if cued.get(type_, 0.0) >= CUED and not noise(words, "user") and not is_reported(words):
            yield type_, words
