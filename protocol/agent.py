"""Agents: identities with a role, perspectives and a pool of their own, which only the user opens (P5)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from .intent import Request

Name = Annotated[str, msgspec.Meta(pattern=r"^[\w.@-]{1,64}$")]
Perspective = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Perspectives = Annotated[tuple[Perspective, ...], msgspec.Meta(max_length=12)]


class OpenAgent(Request, tag="open_agent", frozen=True, kw_only=True):
    """Open the pool `agent/NAME` of an agent, or change its role and perspectives (P5).

    `agent` is the name in the origin of its sessions; perspectives are its concerns, typically about five.
    """

    agent: Name
    role: Annotated[str, msgspec.Meta(max_length=200)] = ""
    perspectives: Perspectives = ()


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `open_agent`. `new`: this request opened the pool."""

    pool: str
    role: str
    perspectives: tuple[str, ...]
    new: bool
