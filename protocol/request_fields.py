"""The fields of all requests, and field types that several requests share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from .event import Repository

PROTOCOL = 1
"""Protocol version. A daemon answers each request whose `v` is at most its own."""

Many = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
WaitMs = Annotated[int, msgspec.Meta(ge=0, le=60_000)]
Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=64)]

Surface = Literal["user", "mcp", "hook"]
"""What a request comes from: the user's own programs (command line, panel, scripts), the tools of an agent (MCP), or
the hooks of an agent's host (G1)."""


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
              tag_field="request"):  # fmt: skip
    """Base of all requests. An unknown field is an error, so that memd never ignores a typo. The reply repeats `rid`.
    `token`: the signed pass of a restricted reader (A1). `surface` only restricts: it names the sender's role."""

    v: int = PROTOCOL
    rid: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    token: Annotated[str, msgspec.Meta(max_length=4096)] = msgspec.field(default="", name="pass")
    surface: Surface = "user"


class ScopedRequest(Request, frozen=True, kw_only=True):
    """A request that reads some pools (P2, P8): those of the folder `cwd`, or `pools` instead. `repository`: evidence
    for a daemon that cannot read the folder."""

    cwd: str = ""
    pools: Names = ()
    repository: Repository | None = None
