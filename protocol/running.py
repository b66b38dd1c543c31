"""Requests and replies about memd's own running: pauses, captures that failed, what waits for the user's word.

Comes in: a wish of the user, or of an agent (`propose_forget` alone). Goes out: how things stand afterwards. Invariant:
nothing here carries captured words but the lines of records that the user is asked about.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .intent import Many, Names, Request

Skip = Literal["", "paused", "ignored", "disabled"]
"""Why nothing is taken: a pause, a folder that the configuration ignores, memd switched off."""


class Pause(Request, tag="pause", frozen=True, kw_only=True):
    """Capture nothing from now on (P-2): everywhere, or of an absolute `folder` and below; for a while, or until
    `resume` (0). What was said meanwhile is not taken later either."""

    folder: str = ""
    for_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0


class Resume(Request, tag="resume", frozen=True, kw_only=True):
    """End the pause of this folder, or the one that holds everywhere."""

    folder: str = ""


class PauseState(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that holds now: where ("" is everywhere), since when, until when ("" is until `resume`)."""

    folder: str
    since: str
    until: str = ""


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Of `pause` and `resume`: the pauses that hold now; `ended` says that one was."""

    pauses: tuple[PauseState, ...]
    ended: bool = False


class ListLetters(Request, tag="dead_letters", frozen=True, kw_only=True):
    """Captures that could not be distilled, newest first (P-12)."""

    limit: Many = 50


class Retry(Request, tag="retry", frozen=True, kw_only=True):
    """Try failed captures again, a job: these, by their numbers, or all of them (P-12)."""

    ids: Annotated[tuple[Many, ...], msgspec.Meta(max_length=1000)] = ()
    all: bool = False


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A capture that failed: its number (the archive's seq), its turn, the stage and the reason of the last attempt,
    how many attempts there were, and when the last was (microseconds)."""

    id: int
    document: str
    turn: str
    stage: str
    reason: str
    attempts: int = 1
    at: int = 0


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """Of `dead_letters`."""

    letters: tuple[DeadLetter, ...]
    total: int


class ProposeForget(Request, tag="propose_forget", frozen=True, kw_only=True):
    """An agent asks for records to be forgotten for good: the user decides (`decide`). With `hide` no read shows them
    until then, but for those that the user holds on to, and those that they decided to keep before."""

    ids: Names
    by: str = ""
    hide: bool = False


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """Of `propose_forget`: the proposals that wait now, and how many of them were there before; the records that are
    hidden now, and those that are shown all the same."""

    ids: tuple[str, ...]
    known: int = 0
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


class ListInbox(Request, tag="inbox", frozen=True, kw_only=True):
    """What waits for the user's word (T13, G7); with `all` also what was decided or has no object any more."""

    all: bool = False
    limit: Many = 50


class Decide(Request, tag="decide", frozen=True, kw_only=True):
    """The user's word on a proposal, by its id or the beginning of it. An accepted deletion is a job of `forget`."""

    id: str
    accept: bool


class Pin(Request, tag="pin", frozen=True, kw_only=True):
    """Hold on to a record: it becomes L1, or its project's L2 (R9); no statement retires it by itself, what contradicts
    it becomes a proposal (T13). A `principle` stands in every answer besides (Q8)."""

    id: str
    pinned: bool = True
    principle: bool = False


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal: forget `record`, or believe `against` instead of it (`conflict`). `line` and `against_line` are what
    they say, "" once a record is gone; `label` and `reason` are the rule that found the conflict."""

    id: str
    what: Literal["forget", "conflict"]
    record: str
    line: str
    state: Literal["open", "accepted", "rejected", "moot"]
    by: str = ""
    against: str = ""
    against_line: str = ""
    label: str = ""
    reason: str = ""
    at: int = 0


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """Of `inbox`: proposals, newest first; how many are open."""

    proposals: tuple[Waiting, ...]
    open: int
