"""Link an answer of the user to the question of the agent that it answers: together they say what neither says alone.

The answer is linked if the host says which question it answers, or if it is short and the agent's last words before it
are a question. A model decides whether it is worth keeping: an answer to "Which database?" is, one to "Shall I go on?"
is not (`models/recipes/train_answers.py`). Both turns belong to one session.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from ..models.distiller import ClauseReading
from ..protocol.event import Said
from ..protocol.record import QUOTE_LIMIT, Span
from . import other_languages
from .batch import AgentText, Item
from .clauses import Clause, split
from .linear_model import LinearModel, path, read_probabilities
from .selection import Tier
from .words import is_english

MOST_WORDS = 12
"""Words of an answer that only its place links to a question."""

MOST_CHARACTERS = 300
"""Characters of a question, and of an answer."""


PROPOSED, APPROVED, BOTH = 0.4, 0.3, 0.3
"""The least probability of a proposal of the agent, of its approval by the user, and of both, in another language."""

MOST_APPROVING = 8
"""Words of a clause that approves."""


class Approval(NamedTuple):
    """A clause of the user that approves a proposal of the agent; `proposed`: its probability."""

    clause: Clause
    proposal: Question
    proposed: float


class Question(NamedTuple):
    """A question of the agent. `is_stated`: the host says that the turn answers it."""

    span: Span
    text: str
    is_stated: bool


class Answers(LinearModel, frozen=True):
    """The model, and the least probability of each tier."""

    believed: float
    noted: float

    def tier(self, probability: float, question: Question) -> Tier:
        """Return the tier of an answer; one that only its place links to the question is noted at most, if it is as
        good as one that is believed otherwise."""
        if probability >= self.believed:
            return "believed" if question.is_stated else "noted"
        return "noted" if probability >= self.noted and question.is_stated else ""


def question(item: Item, agent: Sequence[AgentText]) -> Question | None:
    """Return the question that a user's turn answers, or None. `agent`: what the agent of its session wrote."""
    event = item.captured.event
    if not isinstance(event, Said) or event.role != "user" or not 0 < len(event.text.strip()) <= MOST_CHARACTERS:
        return None
    before = [told for told in agent if told.seq < item.seq]
    if event.answers:
        told = next((told for told in before if told.turn == event.answers), None)
    else:
        told = before[-1] if before and len(event.text.split()) <= MOST_WORDS and "\n" not in event.text else None
    clauses = split(told.text, ()).clauses if told else ()
    if told is None or not clauses or "?" not in clauses[-1].text[-3:]:
        return None
    asked = clauses[-1]
    if len(asked.text) > MOST_CHARACTERS or not is_english(asked.text):
        return None
    span = Span(item.captured.document, told.turn, asked.start, asked.end)
    return Question(span, told.text[asked.start : asked.end], bool(event.answers))


def approval(item: Item, agent: Sequence[AgentText]) -> Approval | None:
    """Return the approval with which a user's turn in another language begins, and the proposal in the agent's last
    words before it that the user most likely means. Return None without an approval or a proposal."""
    event = item.captured.event
    before = [told for told in agent if told.seq < item.seq]
    if not isinstance(event, Said) or event.role != "user" or not before:
        return None
    told = before[-1]
    if not other_languages.is_read(other_languages.language(told.text)):
        return None
    clause = next(iter(split(event.text, ()).clauses), None)
    if clause is None or len(clause.text.split()) > MOST_APPROVING:
        return None
    approved = max(other_languages.read(words, "user").contents["approval"] for words in _fronts(clause.text))
    if approved < APPROVED:
        return None
    parts = [part for part in split(told.text, ()).clauses if len(part.text) <= MOST_CHARACTERS]
    likely = [other_languages.read(part.text, "assistant").contents["decision"] for part in parts]
    if not likely or max(likely) < max(PROPOSED, BOTH / approved):
        return None
    part = parts[likely.index(max(likely))]
    span = Span(item.captured.document, told.turn, part.start, part.end)
    return Approval(clause, Question(span, part.text, is_stated=False), max(likely))


def _fronts(words: str) -> tuple[str, ...]:
    """The words of a clause, and in a script without spaces, where spaces part its phrases, the first two phrases."""
    phrases = words.split()
    return (words, " ".join(phrases[:2]), phrases[0]) if other_languages.is_unspaced(words) else (words,)


def features(asked: ClauseReading, answered: ClauseReading, question: str, answer: str) -> list[float]:
    """Return the features of an answer: what the distiller reads in it and in the question, and their lengths."""
    lengths = (math.log1p(len(answer.split())), math.log1p(len(question.split())), float("?" in answer[-3:]))
    return [*read_probabilities(asked), *read_probabilities(answered), *lengths]


def joined(question: str, answer: str) -> str:
    """Return a question and its answer in one line."""
    return f"{' '.join(question.split())} → {' '.join(answer.split())}"[: 2 * QUOTE_LIMIT]


@cache
def answers() -> Answers:
    """Return the package's model."""
    return msgspec.json.decode(path("answers").read_bytes(), type=Answers)
