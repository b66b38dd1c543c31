"""Skills: procedures that sessions repeated with success, as drafts of files for agents (K1).

Invariants: a draft is made at each request from what was captured, and nothing is stored; what documents, the results
of tools or an agent's words say is in no draft; a draft says nothing that no round of its evidence had.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .request_fields import ScopedRequest

SkillForm = Literal["skill", "line"]
"""`skill`: a file of its own; `line`: a line for AGENTS.md, where no words of the user tell when it is wanted."""

RoundEnd = Literal["good", "unknown"]


class ListSkills(ScopedRequest, tag="skills", frozen=True, kw_only=True):
    """Return drafts of the pools in scope, of all projects for `everywhere`; `name`: of that name or beginning of an id
    alone. `known`: also those that the project's own instructions spell out."""

    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    everywhere: bool = False
    known: bool = False


class SkillStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step. `text`: a command with placeholders, or what was edited; `rounds`: how many had it; `own`: it names
    something of the project; `risk`: why it is left out of the file, "" if it is in."""

    text: str
    rounds: int
    own: bool = False
    risk: str = ""


class SkillRound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One time that it was done: the session, its first turn, and how it ended, as far as checks, commits and the user
    tell."""

    document: str
    turn: str
    day: str
    end: RoundEnd = "unknown"


class SkillDraft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A draft. `asks`: the user's turns that asked for it; `agree`: the share of rounds that keep the order;
    `pitfalls`: steps that failed and what helped; `stated_in`: the project's files that spell it out; `refused`:
    why it is no proposal, "" if it is one; `text`: the file or the line, "" if it is refused."""

    id: str
    pool: str
    name: str
    form: SkillForm
    steps: tuple[SkillStep, ...]
    rounds: tuple[SkillRound, ...]
    agree: float
    sessions: int
    days: int
    asks: tuple[str, ...] = ()
    pitfalls: tuple[str, ...] = ()
    stated_in: tuple[str, ...] = ()
    refused: str = ""
    text: str = ""


class SkillList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `skills`: drafts, those of most rounds first. `sessions`, `units`: how many were read."""

    skills: tuple[SkillDraft, ...]
    sessions: int = 0
    units: int = 0
