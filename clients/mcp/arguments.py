"""What each tool takes and gives back: the schemas that hosts are shown are made from these.

Invariants: an unknown argument is refused, so that a typo is no silent no-op; every description says what a model needs
in order to fill it in.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

IDS_LIMIT = 20

Cwd = Annotated[
    str,
    Meta(
        description="Absolute path of the folder you work in: it decides which project's memory is meant. "
        "By default the folder in which this server was started."
    ),
]
Id = Annotated[str, Meta(min_length=4, max_length=64, description="A memory's id, or the beginning of it.")]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=IDS_LIMIT, description="Ids of memories.")]
SomeIds = Annotated[list[Id], Meta(max_length=IDS_LIMIT)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a tool takes."""


class Recall(Arguments, frozen=True, kw_only=True):
    """Of memory_recall."""

    query: Annotated[str, Meta(min_length=1, max_length=2000, description="A question, or words of what you look for.")]
    cwd: Cwd = ""
    limit: Annotated[int, Meta(ge=1, le=50, description="At most this many memories.")] = 8
    as_of: Annotated[
        str, Meta(description="What was true then: RFC 3339 with an offset, such as 2026-03-01T00:00:00Z.")
    ] = ""
    deep: Annotated[
        bool,
        Meta(
            description="Also what was said around each, how it changed, what is linked or archived. For when the "
            "plain answer does not suffice."
        ),
    ] = False


class Remember(Arguments, frozen=True, kw_only=True):
    """Of memory_remember."""

    text: Annotated[
        str,
        Meta(
            min_length=1, max_length=4000, description="One self-contained statement, with its reason where it has one."
        ),
    ]
    cwd: Cwd = ""


class Forget(Arguments, frozen=True, kw_only=True):
    """Of memory_forget."""

    ids: Ids
    reason: Annotated[str, Meta(max_length=200, description="Why, in a few words: the user reads it.")] = ""


class History(Arguments, frozen=True, kw_only=True):
    """Of memory_history."""

    id: Id


class Profile(Arguments, frozen=True, kw_only=True):
    """Of memory_profile."""

    cwd: Cwd = ""


class Feedback(Arguments, frozen=True, kw_only=True):
    """Of memory_feedback."""

    recall: Annotated[str, Meta(max_length=64, description="`recall` of the answer that this is about.")] = ""
    used: Annotated[SomeIds, Meta(description="Memories that your answer or your work rests on.")] = []
    helpful: Annotated[SomeIds, Meta(description="Those that saved an error or a question.")] = []
    wrong: Annotated[SomeIds, Meta(description="Those that turned out to be wrong, or misled you.")] = []


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory: the statement, the words it rests on, whose they are. `status` quarantined: unconfirmed as yet.
    In depth `said_around` are the turns it comes from, and `changes` what was believed when."""

    id: str
    text: str
    quote: str
    said_by: str
    said_at: str
    status: str
    pool: str
    source: str
    score: float = 0.0
    said_around: list[str] = []
    changes: list[str] = []


class Turn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Words of a session as they were said, not distilled into a memory (yet)."""

    text: str
    said_by: str
    said_at: str
    source: str
    score: float
    said_around: list[str] = []


class Recalled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What memory_recall gives back; `abstained`: memd would not vouch for anything, `reason` says why. `recall` names
    this answer for memory_feedback. `linked`: in depth, what is one or two steps away from the memories."""

    memories: list[Memory]
    turns: list[Turn]
    abstained: bool
    reason: str
    searched: list[str]
    left_out: int
    pending: int
    recall: str = ""
    note: str = ""
    linked: list[Memory] = []


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What memory_remember gives back; `kept`: it waits on this machine until memd runs again."""

    id: str
    status: str
    kept: bool
    note: str


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What memory_forget gives back: what no read shows any more, what is only proposed, and who decides."""

    hidden: list[str]
    proposed: list[str]
    note: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a memory."""

    at: str
    what: str
    reason: str


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What memory_history gives back; times of the world are RFC 3339, "" where open."""

    memory: Memory
    true_from: str
    true_until: str
    changes: list[Changed]
    replaced: list[Memory]
    replaced_by: list[Memory]
    said_around: list[str]


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What memory_feedback gives back: of how many memories it was noted, and what is to be said about it."""

    memories: int
    note: str


class ProfileText(msgspec.Struct, frozen=True, kw_only=True):
    """What memory_profile gives back: the text, its revision, the memories it rests on."""

    text: str
    rev: str
    ids: list[str]
    searched: list[str]


def schema(of: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a type as one object, what it refers to beside it. Its own docstring is the reader's, not a
    model's."""
    (_,), parts = msgspec.json.schema_components([of], ref_template="#/$defs/{name}")
    whole = dict(cast("dict[str, Any]", parts.pop(of.__name__)))
    for part in (whole, *parts.values()):
        part.pop("title", None)
        if part is whole:
            part.pop("description", None)
    return {**whole, "$defs": parts} if parts else whole
