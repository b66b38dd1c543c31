"""What every request has, and the shapes that several share.

Invariants: unknown fields are refused (a typo must not be a silent no-op); `rid` comes back in the reply.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

PROTOCOL = 1
"""Version of requests and replies. A daemon answers any request whose `v` is not above its own."""

Many = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=64)]


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True,
              tag_field="request"):  # fmt: skip
    """Base: protocol version, the number that the reply carries back, and the pass of who asks under one (A1)."""

    v: int = PROTOCOL
    rid: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    token: Annotated[str, msgspec.Meta(max_length=4096)] = msgspec.field(default="", name="pass")
