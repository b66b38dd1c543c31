"""Skills: procedures that sessions repeated with success, as drafts of files for agents (K1).

Invariants: a draft is made at each request from what was captured, and is not stored; what documents, the results of
tools or an agent's words say is in no draft; a draft says nothing that no round of its evidence had. The file of a
skill is the user's: memd stores where it lies and its hash, and counts how it is used (K2).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .operation import RevisedBy
from .request_fields import Request, ScopedRequest

SkillForm = Literal["skill", "line"]
"""`skill`: a file of its own; `line`: a line for AGENTS.md, where no words of the user tell when it is wanted."""

RoundEnd = Literal["good", "unknown"]
UseEnd = Literal["good", "bad", "unknown"]
UseKind = Literal["called", "read", "without"]
"""`called`: by its name; `read`: an agent read the file; `without`: its steps were done without it."""

PlacedBy = Literal["placed", "tuned", "user", "offered"]
SKILL_COMMANDS = {"skill": "place", "skill_edit": "tune", "skill_retire": "retire"}
"""By the kind of a proposal, the `memd skill` command that shows the file and decides."""

Rung = Literal["placed", "verified", "honed", "tuned"]
"""What is known of a placed skill: nothing; that it works; that it works since an edit; that held-out work agreed."""


class ListSkills(ScopedRequest, tag="skills", frozen=True, kw_only=True):
    """Return drafts of the pools in scope, of all projects for `everywhere`; `name`: of that name or beginning of an id
    alone. `known`: also those that the project's own instructions spell out."""

    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    everywhere: bool = False
    known: bool = False


class SkillStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step. `text`: a command with placeholders, or what was edited; `rounds`: how many had it; `own`: it names
    something of the project; `risk`: why it is left out of the file, "" if it is in; `document`: a document within the
    project said it before an agent ran it."""

    text: str
    rounds: int
    own: bool = False
    risk: str = ""
    document: bool = False


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
    rejected: bool = False


class SkillUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One time that a placed skill was used, or its steps were done without it, and how that work ended. `at`:
    microseconds, when the work began."""

    document: str
    turn: str
    day: str
    how: UseKind
    end: UseEnd = "unknown"
    at: int = 0


class SkillRevision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A state of a skill's file. `sha`: SHA-256, "" if it was gone; `at`: microseconds."""

    sha: str
    by: RevisedBy
    at: int


class PlacedSkill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that the user placed. `id`: of its record; `path`: of its file;
    `uses`, `good`, `bad`: since it was placed, by its name or by reading it; `without`: times that its steps were done
    without it; `fell`: why it stands a rung lower; `retire`, `mend`: why memd would retire or change it, "" for no
    reason; `better`: a text of the file that mends it, "" for none; `gone`: steps that name something that is gone;
    `offered`: the newest state lies on a branch that is not merged."""

    id: str
    pool: str
    name: str
    path: str
    rung: Rung
    uses: int = 0
    good: int = 0
    bad: int = 0
    without: int = 0
    last_used: str = ""
    fell: str = ""
    retire: str = ""
    mend: str = ""
    better: str = ""
    offered: bool = False
    gone: tuple[str, ...] = ()
    revisions: tuple[SkillRevision, ...] = ()
    history: tuple[SkillUse, ...] = ()


class PlaceSkill(ScopedRequest, tag="place_skill", frozen=True, kw_only=True):
    """Store that the user placed a draft as a file, or that a skill's file has other bytes. `name`: the draft's name or
    the beginning of its id, or a placed skill's unless `by` is `placed`; `path`: of the file, absolute; `sha`: SHA-256
    of its bytes, in hex. `offered`: the bytes lie on a branch,
    of the skill itself, or of its copy for the project; `then`: what they are when the file has them."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    sha: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    by: PlacedBy = "placed"
    then: PlacedBy = "placed"


class RetireSkill(ScopedRequest, tag="retire_skill", frozen=True, kw_only=True):
    """Store that the user took a placed skill away; `name`: its name or the beginning of its id."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ProposeSkills(Request, tag="propose_skills", frozen=True, kw_only=True):
    """Put drafts, and placed skills to retire, in the inbox, as memd does each week (K1, K2). `dry_run`: write none."""

    dry_run: bool = False


class SkillProposals(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `propose_skills`. `proposed`: name and reason of each; `left_out`: why others are not, and how many."""

    proposed: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, int], ...] = ()
    dry_run: bool = False


class TuneSkill(ScopedRequest, tag="tune_skill", frozen=True, kw_only=True):
    """Look for what mends a placed skill's file, else for edits that held-out work confirms (K3). Nothing is written.
    `read_by_others`: others have the file, so that a new description quotes only sessions that are not private."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    read_by_others: bool = False


class SkillTuning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `tune_skill`. `edits`: in words; `accepted`: whether held-out work confirms them; `why`: one sentence;
    `before`, `after`: the mean scores of the steps on held-out work, in [0, 1]; `held_out`, `sessions`: how much of it;
    `text`: the new file, "" without one; `sha`: SHA-256 of the file that it replaces; `by`: `tuned` if held-out work
    judged it, `user` if it mends what `why` says."""

    skill: PlacedSkill
    edits: tuple[str, ...] = ()
    accepted: bool = False
    why: str = ""
    before: float = 0.0
    after: float = 0.0
    held_out: int = 0
    sessions: int = 0
    text: str = ""
    sha: str = ""
    by: Literal["tuned", "user"] = "tuned"


class ShareSkill(ScopedRequest, tag="share_skill", frozen=True, kw_only=True):
    """Make the text of a placed skill that the others of its project may read (K4). Nothing is written. `description`:
    replaces the requests that it quotes, "" to keep those of sessions that are not private."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    description: Annotated[str, msgspec.Meta(max_length=400)] = ""


class SharedSkill(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reply to `share_skill`. `text`: of the file for the project; `sha`: SHA-256 of the user's own; `left_out`: what
    is not in it, in words."""

    skill: PlacedSkill
    text: str
    sha: str
    left_out: tuple[str, ...] = ()


class SkillList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `skills`: drafts, those of most rounds first, and the skills that the user placed. `sessions`, `units`:
    how many were read."""

    skills: tuple[SkillDraft, ...]
    placed: tuple[PlacedSkill, ...] = ()
    sessions: int = 0
    units: int = 0
