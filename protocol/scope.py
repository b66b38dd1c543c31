"""Replies about the pools of folders and projects (P3, P4), and agents with a pool of their own (P5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from .errors import NotFound
from .event import Visibility
from .request_fields import Request

Name = Annotated[str, msgspec.Meta(pattern=r"^[\w.@-]{1,64}$")]
NAME_RULE = "an agent's name has 1 to 64 letters, digits or characters of _ . @ - and no space"
"""The pattern of `Name` in words. No other field of a request has a pattern."""

LONGEST_NAME = 40
"""Characters of a perspective's name."""

PROMPT_LIMIT = 200_000
"""Characters of an agent's system prompt."""

Perspective = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
Concern = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Concerns = Annotated[tuple[Concern, ...], msgspec.Meta(max_length=12)]


_KEYWORDS = re.compile(r"([^:\[\]]*):(.*)", re.DOTALL)
"""A name and its keywords; the colon of a redacted secret begins none."""


def concern_name(concern: str) -> str:
    """Return the perspective of a concern such as "security: cve, auth, token"."""
    match = _KEYWORDS.fullmatch(concern)
    return (match[1] if match else concern).strip()


def concern_keywords(concern: str) -> tuple[str, ...]:
    """Return the keywords of a concern, each once."""
    match = _KEYWORDS.fullmatch(concern)
    words = match[2].split(",") if match else ()
    return tuple(dict.fromkeys(word.strip() for word in words if word.strip()))


def plain_concern(concern: str) -> str:
    """Return a concern in its usual form."""
    name, keywords = concern_name(concern), concern_keywords(concern)
    return f"{name}: {', '.join(keywords)}" if keywords else name


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `scope_why`: the pool of a folder, with the evidence in words.

    `reads`: pools that a question from the folder searches. `seen`: what memd found there (`repository`, `folder`,
    `unseen`). `names`: the names that lead to the pool. `alike`: other pools that share half of the evidence, each with
    the shared evidence. `left`: the user left the project. `is_open`: memd captured something for it. `bound`: the
    user chose the pool.
    """

    folder: str
    pool: str
    title: str
    evidence: str
    reads: tuple[str, ...]
    seen: str
    root_commit: str = ""
    remote: str = ""
    names: tuple[str, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()
    records: int = 0
    left: bool = False
    is_open: bool = False
    bound: bool = False


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `scope_bind`. `was`: the pool before; `moved`: records that came from there, `stays`: records still
    there; `unkeyed`: moved records that lost their key, because a record of `pool` holds it."""

    folder: str
    pool: str
    title: str
    was: str
    names: tuple[str, ...]
    moved: int = 0
    unkeyed: tuple[str, ...] = ()
    stays: int = 0


class RecordsMoved(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `scope_move`: record ids. `there`: were in the pool before; `unkeyed` as in `Bound`;
    `copies`: of the `moved` ones, which stay; `visibility`: who may see them now; `dry_run`: nothing changed."""

    pool: str
    title: str
    moved: tuple[str, ...]
    there: tuple[str, ...] = ()
    unkeyed: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    visibility: Visibility | Literal[""] = ""
    dry_run: bool = False


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `leave`: the project, its number of live records, and whether it is left now. `unshared`: leaving ended
    its sharing, which a return does not begin again."""

    pool: str
    title: str
    records: int
    left: bool
    unshared: bool = False


class OpenAgent(Request, tag="open_agent", frozen=True, kw_only=True):
    """Open the pool `agent/NAME` of an agent, or change its role and perspectives (P5). `agent` is the name in the
    origin of its sessions; perspectives are its concerns, typically about five, each with keywords if it has any:
    "security: cve, auth, token". A recall under the perspective also searches them (Q7). `prompt`: the agent's system
    prompt, which memd keeps and returns verbatim (O5); "" keeps the one that it has."""

    agent: Name
    role: Annotated[str, msgspec.Meta(max_length=200)] = ""
    perspectives: Concerns = ()
    prompt: Annotated[str, msgspec.Meta(max_length=PROMPT_LIMIT)] = ""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `open_agent`. `new`: this request opened the pool; `has_prompt`: memd keeps a system prompt of it."""

    pool: str
    role: str
    perspectives: tuple[str, ...]
    new: bool
    has_prompt: bool = False


def check_agent(agent: str, pools: Sequence[str], searched: Iterable[str]) -> None:
    """Raise NotFound if the agent's own memory is not among the pools that exist or were searched."""
    if agent and not pools and f"agent/{agent}" not in searched:
        raise NotFound(f"agent {agent!r} has no memory of its own", hint="`memd agent` lists the agents that have one")
