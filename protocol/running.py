"""Requests and replies about pauses, dead letters, proposals and pins.

Invariant: none contains captured text except the lines of the records in a proposal.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .intent import Many, Names, Request

Skip = Literal["", "paused", "ignored", "disabled"]
"""Why memd captures nothing: a pause, a folder in the setting `ignored_folders`, memd is disabled."""


class Pause(Request, tag="pause", frozen=True, kw_only=True):
    """Stop capturing (P-2): everywhere, or in an absolute `folder` and below; for `for_s` seconds, or until `resume`
    (0). memd does not capture turns from the pause later."""

    folder: str = ""
    for_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0


class Resume(Request, tag="resume", frozen=True, kw_only=True):
    """End the pause of this folder, or the one everywhere."""

    folder: str = ""


class PauseState(msgspec.Struct, frozen=True, kw_only=True):
    """A current pause. `folder`: "" for everywhere; `until`: "" for until `resume`."""

    folder: str
    since: str
    until: str = ""


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `pause` and `resume`: the current pauses. `ended`: the request ended one."""

    pauses: tuple[PauseState, ...]
    ended: bool = False


class ListLetters(Request, tag="dead_letters", frozen=True, kw_only=True):
    """List captures that could not be distilled, newest first (P-12)."""

    limit: Many = 50


class Retry(Request, tag="retry", frozen=True, kw_only=True):
    """Distil failed captures again, by number or all, as a job (P-12)."""

    ids: Annotated[tuple[Many, ...], msgspec.Meta(max_length=1000)] = ()
    all: bool = False


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed capture: `id` is its archive seq; `stage`, `reason` and `at` (microseconds) are of the last attempt."""

    id: int
    document: str
    turn: str
    stage: str
    reason: str
    attempts: int = 1
    at: int = 0


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `dead_letters`."""

    letters: tuple[DeadLetter, ...]
    total: int


class ProposeForget(Request, tag="propose_forget", frozen=True, kw_only=True):
    """Propose on behalf of an agent to forget records; the user decides (`decide`). With `hide` no read returns them
    until then, except records that the user pinned or decided to keep before."""

    ids: Names
    by: str = ""
    hide: bool = False


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `propose_forget`. `ids`: open proposals, `known` of them older; `hidden` and `shown`: record ids."""

    ids: tuple[str, ...]
    known: int = 0
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


class ListInbox(Request, tag="inbox", frozen=True, kw_only=True):
    """List proposals that wait for the user (T13, G7); with `all` also decided and moot ones."""

    all: bool = False
    limit: Many = 50


class Decide(Request, tag="decide", frozen=True, kw_only=True):
    """Decide a proposal, by id or unambiguous prefix. An accepted deletion starts a `forget` job."""

    id: str
    accept: bool


class Pin(Request, tag="pin", frozen=True, kw_only=True):
    """Pin or unpin a record. A pinned record becomes L1, or L2 of its project (R9); a statement that
    contradicts it becomes a proposal (T13). A `principle` is also part of every answer (Q8)."""

    id: str
    pinned: bool = True
    principle: bool = False


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal to forget `record`, or to replace it by `against` (`conflict`). `line` and `against_line`: texts of
    the two, "" for a missing record; `label` and `reason`: from the rule that found the conflict."""

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
    """Reply to `inbox`: proposals, newest first. `open`: number of open ones."""

    proposals: tuple[Waiting, ...]
    open: int
