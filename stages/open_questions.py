"""Open questions: what somebody says is undecided, or leaves for a later decision, and the decision that closes it.

Undecided is not a decision: "we still need to decide whether …", "not sure yet if …". A task that is only to be done is
a commitment.
"""

from __future__ import annotations

from functools import cache
from re import Pattern

from ..protocol.record import OPEN_QUESTION, Record
from .rules import any_of, table
from .words import NEGATIONS, STOP, tokens

DECIDING = frozenset({"decision", "convention", "preference"})
"""Types of a statement that may answer an open question."""

FEWEST, SHARED, NEAR = 2, 0.5, 0.5
"""Stems of the question that its answer holds at least, their share of all, and the least cosine of both."""

_TALK = frozenset(
    "decid decis open question undecid unclear sure know agre settl yet still later whether todo tbd want need team "
    "option choos choic pend point either issu determin defer postpon leav discuss unresolv clarifi left "
    "one two".split()
)


def is_undecided(clause: str) -> bool:
    """Whether a clause states what is not decided; a question to the agent, or an answered one, does not."""
    undecided, settled = _patterns()
    words = clause.replace("’", "'").replace("**", "")
    return undecided.search(words) is not None and settled.search(words) is None and len(_things(words)) >= FEWEST


def decides(answer: Record, question: Record, cosine: float) -> bool:
    """Whether a statement settles an open question: it decides, and is about the same thing."""
    if question.type != OPEN_QUESTION or answer.type not in DECIDING or cosine < NEAR:
        return False
    asked, told = _things(question.content), _things(answer.content)
    common = len(asked & told)
    return common >= min(FEWEST, len(asked)) > 0 and common >= SHARED * len(asked)


def _things(words: str) -> frozenset[str]:
    return frozenset(
        token.stem
        for token in tokens(words)
        if token.kind != "mark" and token.text.lower() not in STOP | NEGATIONS and token.stem not in _TALK
    )


@cache
def _patterns() -> tuple[Pattern[str], Pattern[str]]:
    rules = table("open_questions")
    return any_of(rules["undecided"]), any_of(rules["settled"])
