"""What a reader of a session proposes: statements with the words that they rest on (W4)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .event import QUOTES, STATEMENTS, HandoverTexts, StatementType
from .instant import Instant
from .request_fields import Request

Quote = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Reason = Literal["not found", "too short", "not prose", "private"]
"""Why a statement is refused: a quote is not in the session, has too few words to tell where it stands, stands in a
call of a tool or its output, or holds what memd left out."""


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement worth remembering: its type and the verbatim words that say it, with the question or the proposal
    before them if they answer one. `about`: whom the user speaks about, "" where memd decides."""

    type: StatementType
    quotes: Annotated[tuple[Quote, ...], msgspec.Meta(min_length=1, max_length=QUOTES)]
    about: Literal["", "user", "project"] = ""


class Reflect(Request, tag="reflect", frozen=True, kw_only=True):
    """Take what the agent of a session found worth remembering in it (W4). `document`: the session, as `host:id`;
    `title`: what the session was about; `open`: what it leaves open. Nothing that the session does not say is taken."""

    document: str
    at: Instant
    title: Annotated[str, msgspec.Meta(max_length=160)] = ""
    statements: Annotated[tuple[Statement, ...], msgspec.Meta(max_length=STATEMENTS)] = ()
    open: HandoverTexts = ()


class RefusedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that was not taken: its number from 0, and the reason."""

    number: int
    reason: Reason


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `reflect`. `taken`: statements whose words the session has; memd's own stages decide about them. `open`:
    items that are left open; `refused_open`: those that name what the session does not have."""

    taken: int
    refused: tuple[RefusedStatement, ...] = ()
    open: int = 0
    refused_open: tuple[str, ...] = ()
