"""Agents: identities with a role, perspectives and a memory of their own (P5).

Comes in: the user's word. Goes out: the agent as it stands. Invariant: an agent's pool is opened by the user alone;
what a session's agent says of itself is kept there from then on.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .intent import Request

Name = Annotated[str, msgspec.Meta(pattern=r"^[\w.@-]{1,64}$")]
Perspective = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Perspectives = Annotated[tuple[Perspective, ...], msgspec.Meta(max_length=12)]


class OpenAgent(Request, tag="open_agent", frozen=True, kw_only=True):
    """Give an agent a memory of its own, `agent/NAME`, or change its role and its perspectives (P5).

    `agent` is the name that its sessions carry in their origin; about five perspectives say what it cares about.
    """

    agent: Name
    role: Annotated[str, msgspec.Meta(max_length=200)] = ""
    perspectives: Perspectives = ()


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Of an `open_agent`: the agent as it stands; `new`: its pool was opened now."""

    pool: str
    role: str
    perspectives: tuple[str, ...]
    new: bool
