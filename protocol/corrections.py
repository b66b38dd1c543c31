"""Requests and replies about the user's corrections: correct, restore, pin, and the inbox of proposals (T1, T7, T13).

Invariant: none of them destroys data, except an accepted proposal to forget; corrected records stay in the history.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .instant import Instant
from .record import Record, Span, Status
from .request_fields import Many, Names, Request
from .scope import Perspective


class Correct(Request, tag="correct", frozen=True, kw_only=True):
    """Replace a wrong record by `text` (T1). `since`: the record was right until then; "" if it never was. `dry_run`,
    in each request that has it: only report what would change."""

    id: str
    text: str
    at: Instant
    since: str = ""
    dry_run: bool = False


class Confirm(Request, tag="confirm", frozen=True, kw_only=True):
    """Say that records are right, which believes them, or with `right` false that they are wrong, which retires them
    without a replacement; `undo` takes the last of both back (T1, T8). `dry_run`: only report what would change."""

    ids: Names
    right: bool = True
    undo: bool = False
    dry_run: bool = False


class JudgedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a decision changes: its status before and after, "" once it is deleted."""

    id: str
    description: str
    before: Status
    after: Status | Literal[""]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `confirm`."""

    records: tuple[JudgedRecord, ...]
    dry_run: bool = False


class Restore(Request, tag="restore", frozen=True, kw_only=True):
    """Make archived records active again, by id or unambiguous prefix (T7)."""

    ids: Names


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `restore` and `timeline`. `left`: number of records that were not archived, or are over the limit."""

    records: tuple[Record, ...]
    left: int = 0


class Pin(Request, tag="pin", frozen=True, kw_only=True):
    """Pin or unpin a record. A pinned record becomes L1, or L2 of its project (R9); a statement that
    contradicts it becomes a proposal (T13). A `principle` is also part of every answer (Q8). `playbook`: L2
    of the personal pool as well, for what holds in every project."""

    id: str
    pinned: bool = True
    principle: bool = False
    playbook: bool = False
    dry_run: bool = False


Words = Annotated[str, msgspec.Meta(max_length=500)]


class SetPersona(Request, tag="set_persona", frozen=True, kw_only=True):
    """Set a persona block of the user, or of an agent with a memory of its own (R1): who they are, or the tone. `add`:
    add the text to the block; an empty text removes the block."""

    block: Literal["identity", "tone"]
    text: Words
    at: Instant
    agent: str = ""
    add: bool = False


class PlanReview(Request, tag="plan_review", frozen=True, kw_only=True):
    """Set when the user wants to look at a record again, and what would change it (R5); an omitted field stays.
    `every_days`: 0 for the default of its kind. `change_condition`: memd counts one such as "3 sessions" or "2
    projects", and keeps other words for the reader; "" for the default."""

    id: str
    every_days: Annotated[int, msgspec.Meta(ge=0, le=3650)] | None = None
    change_condition: Words | None = None


class Learn(Request, tag="learn", frozen=True, kw_only=True):
    """Set what a record teaches under a perspective of an agent (R7); "" removes it."""

    id: str
    perspective: Perspective
    text: Words


class AddEvidence(Request, tag="add_evidence", frozen=True, kw_only=True):
    """Add artifacts to a record as evidence, or remove them (R5). A `ref` is an address with http, a commit's hash, or
    else the absolute path of a file."""

    id: str
    refs: Names
    note: Words = ""
    remove: bool = False


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
    """Decide the proposal `id`, and those of `ids`, by id or unambiguous prefix: all of them, or none if one of them
    can't be decided so. Accepted deletions start one `forget` job; a call that accepts some has no other kind."""

    id: str = ""
    ids: Names = ()
    accept: bool
    dry_run: bool = False


class Reopen(Request, tag="reopen", frozen=True, kw_only=True):
    """Take the decision on a proposal back, by id or unambiguous prefix: it is open again, and its records are as
    before the decision. An accepted deletion has no way back, nor has a replacement whose records changed since."""

    id: str


class PlaybookChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one operation of a patch changes. `old`: the statement that is replaced, retired or reviewed; `new`: the one
    that joins the playbook, "" for a forgotten one; `confidence`: of the new one; `proof`: what proves it, why the old
    one goes, or the days of its review."""

    op: Literal["add", "promote", "supersede", "deprecate", "review"]
    old: str = ""
    new: str = ""
    confidence: float = 0.0
    proof: str = ""

    @property
    def line(self) -> str:
        """The change in one line."""
        old, new = (f"“{words}”" if words else "(forgotten)" for words in (self.old, self.new))
        match self.op:
            case "add" | "promote":
                parts = (f"add {new}", f"confidence {self.confidence:.2f}", self.proof)
            case "supersede":
                parts = (f"replace {old}", f"by {new}")
            case "deprecate":
                parts = (f"retire {old}", self.proof)
            case "review":
                parts = (f"review {old}", self.proof)
        return " · ".join(filter(None, parts))


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal to forget `record`, to replace it by `against` (`conflict`), to merge it into that (`duplicate`), or
    to change the playbook (`patch`, of that name; `changes`: of its operations, in order), to write the draft `record`
    as a skill's file (`skill`), or to change or retire the skill of `record` (`skill_edit`, `skill_retire`).
    `line` and `against_line`: texts of the two, "" for a missing record; `evidence` and `against_evidence`: the
    captured words that they rest on; `label` and `reason`: from the rule that found it; `if_nothing`: what happens as
    long as the user decides nothing, "" unless the proposal is open."""

    id: str
    what: Literal["forget", "conflict", "duplicate", "patch", "skill", "skill_edit", "skill_retire"]
    record: str
    line: str
    state: Literal["open", "accepted", "rejected", "moot"]
    by: str = ""
    against: str = ""
    against_line: str = ""
    label: str = ""
    reason: str = ""
    at: int = 0
    evidence: tuple[Span, ...] = ()
    against_evidence: tuple[Span, ...] = ()
    if_nothing: str = ""
    patch: str = ""
    changes: tuple[PlaybookChange, ...] = ()


class Inbox(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `inbox`: proposals, newest first. `open`: number of open ones."""

    proposals: tuple[Waiting, ...]
    open: int
