"""Requests and replies about the current state of a project: what is open, decided, watched, and what the last sessions
did (C1)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .instant import Instant
from .request_fields import Names, ScopedRequest

Section = Literal["open", "decisions", "watch", "sessions"]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class GetState(ScopedRequest, tag="state", frozen=True, kw_only=True):
    """Return the current state of a folder's project, of the only pool in `pools`, or of an agent's own memory (C1)."""

    agent: str = ""


class Rewording(msgspec.Struct, frozen=True, array_like=True):
    """The new words of an item."""

    id: str
    text: Words


class ChangeState(ScopedRequest, tag="change_state", frozen=True, kw_only=True):
    """Change the current state by the user's word: add open items or items to watch, close some, reword some. `if_rev`:
    the revision that the user saw; another one refuses the change, "" does not."""

    at: Instant
    agent: str = ""
    add: Annotated[tuple[Words, ...], msgspec.Meta(max_length=64)] = ()
    watch: Annotated[tuple[Words, ...], msgspec.Meta(max_length=64)] = ()
    close: Names = ()
    reword: Annotated[tuple[Rewording, ...], msgspec.Meta(max_length=64)] = ()
    if_rev: str = ""


class StateItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a state. `by`: who says so: the user, the agent's plan or hand-over, a request that was not answered, a
    check that failed, a record, or a session itself. `document`, `turn`: where, "" for the user's own lines. `since`:
    when the item was first told. `note`: what is left to say of it, such as `failed`."""

    id: str
    section: Section
    text: str
    by: Literal["user", "plan", "request", "check", "handover", "record", "session"]
    at: str
    since: str = ""
    document: str = ""
    turn: str = ""
    note: str = ""


class CurrentState(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `state` and `change_state`. `rev`: the revision of the lines that the user can change; `title`: of the
    pool; `hidden`: items that found no place, by section."""

    pool: str
    title: str
    rev: str
    items: tuple[StateItem, ...]
    hidden: dict[str, int] = {}
