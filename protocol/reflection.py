"""What a reader of a session proposes: statements with the words that they rest on (W4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from .event import LEARNINGS, QUOTES, STATEMENTS, HandoverTexts, StatementType
from .instant import Instant
from .request_fields import Request
from .scope import Perspective

Quote = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Quotes = Annotated[tuple[Quote, ...], msgspec.Meta(min_length=1, max_length=QUOTES)]
Reason = Literal["not found", "too short", "not prose", "private", "hidden", "no perspective", "not its words"]
"""Why a statement or a learning is refused: a quote is not in the session, has too few words to tell where it stands,
stands in a call of a tool or its output, holds what memd left out, or holds words that the user hid. A learning also:
the session's agent does not have its perspective, or its text names what the session does not have, or gives orders."""


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement worth remembering: its type and the verbatim words that say it, with the question or the proposal
    before them if they answer one. `about`: whom the user speaks about, "" where memd decides."""

    type: StatementType
    quotes: Quotes
    about: Literal["", "user", "project"] = ""


class ReflectedLearning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the agent of a session learnt under one of its perspectives, in its own words, and the verbatim words of
    the session that it learnt it from."""

    perspective: Perspective
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    quotes: Quotes


class Reflect(Request, tag="reflect", frozen=True, kw_only=True):
    """Take what the agent of a session found worth remembering in it (W4). `document`: the session, as `host:id`;
    `title`: what the session was about; `open`: what it leaves open; `learnings`: of an agent with perspectives.
    Nothing that the session does not say is taken."""

    document: str
    at: Instant
    title: Annotated[str, msgspec.Meta(max_length=160)] = ""
    statements: Annotated[tuple[Statement, ...], msgspec.Meta(max_length=STATEMENTS)] = ()
    open: HandoverTexts = ()
    learnings: Annotated[tuple[ReflectedLearning, ...], msgspec.Meta(max_length=LEARNINGS)] = ()


class AskReflection(Request, tag="ask_reflection", frozen=True, kw_only=True):
    """Ask whether the agent of a session should reflect now (W4). `document`: the session, as `host:id`; `now`: note
    that it is asked, and return the question, which memd does once a session."""

    document: str
    now: bool = False


class ReflectionQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `ask_reflection`. `due`: whether the agent should be asked; `why`: why it should not; `text`: with `now`
    the question; `tokens`: of the question, estimated."""

    due: bool = False
    text: str = ""
    why: str = ""
    tokens: int = 0


class ReflectionCost(msgspec.Struct, frozen=True, kw_only=True):
    """The reflections of a session: how often its agent was asked, how often a reader answered, the statements that
    memd took, and the estimated tokens of the question and of the answers."""

    asked: int = 0
    answered: int = 0
    statements: int = 0
    question_tokens: int = 0
    answer_tokens: int = 0


class RefusedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement or a learning that was not taken: its number from 0, and the reason."""

    number: int
    reason: Reason


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `reflect`. `taken`: statements whose words the session has; memd's own stages decide about them. `open`:
    items that are left open. `refused_open`, `refused_title`: items and a title that name what the session does not
    have, or tell an agent what to do. `learnings`: how many are kept, each for the record that its quotes become.
    `tokens`: of the answer, estimated."""

    taken: int
    refused: tuple[RefusedStatement, ...] = ()
    learnings: int = 0
    refused_learnings: tuple[RefusedStatement, ...] = ()
    open: int = 0
    refused_open: tuple[str, ...] = ()
    refused_title: str = ""
    tokens: int = 0


_REFUSALS: dict[Reason, str] = {
    "not found": "the session does not have a quote of it: quote verbatim, or leave it out",
    "too short": "its quotes are too short to tell where they stand: add the question or the sentence before",
    "not prose": "its words stand in a tool call or a tool's output",
    "hidden": "the user does not want these words remembered",
    "private": "its words are private or secret",
    "no perspective": "the agent of the session has no such perspective",
    "not its words": "its text names what the session does not have, or gives orders",
}


def reflection_lines(reflection: Reflection, statements: int) -> Iterator[str]:
    """Yield what memd took of a reflection with so many statements, and each refusal with its reason."""
    confirmed = ", unconfirmed until memd or the user confirms them" if reflection.taken else ""
    yield f"Taken: {reflection.taken} of {statements} statements{confirmed}."
    for refused in reflection.refused:
        yield f"Statement {refused.number + 1} is refused: {_REFUSALS[refused.reason]}."
    if reflection.learnings:
        yield f"Learnings kept: {reflection.learnings}."
    for refused in reflection.refused_learnings:
        yield f"Learning {refused.number + 1} is refused: {_REFUSALS[refused.reason]}."
    if reflection.open:
        yield "1 open item is kept." if reflection.open == 1 else f"{reflection.open} open items are kept."
    for line in reflection.refused_open:
        yield f"The open item {line!r} is refused: it names what the session does not have, or gives orders."
    if reflection.refused_title:
        yield "The title is refused: it names what the session does not have, or gives orders."
