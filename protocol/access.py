"""Requests and replies about passes, and about sources that the user revoked (A1, A3).

Invariants: a pass only restricts its holder; nothing here contains captured text.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .request_fields import Names, Request


class Grant(Request, tag="grant", frozen=True, kw_only=True):
    """Sign a pass (A1): `subject` may read records of these pools that rest only on these sources; empty means all.
    With `back` and only sources, lift their revocation."""

    subject: str = ""
    pools: Names = ()
    sources: Names = ()
    for_s: Annotated[float, msgspec.Meta(ge=1, le=1e9)] = 30 * 86_400.0
    back: bool = False


class GrantState(msgspec.Struct, frozen=True, kw_only=True):
    """A pass in the journal. Times are RFC 3339, "" for never."""

    id: str
    subject: str
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    granted_at: str = ""
    expires_at: str = ""
    revoked_at: str = ""


class PassGranted(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `grant`: `token` is an EdDSA JWT that memd does not store; `shown`: records shown again."""

    token: str = ""
    grant: GrantState | None = None
    shown: int = 0


class Revoke(Request, tag="revoke", frozen=True, kw_only=True):
    """Revoke exactly one: a pass by its `id` or an unambiguous prefix, or a `source` (a host, a session, its document),
    which hides all records derived from it (A3)."""

    id: str = ""
    source: str = ""


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `revoke`: the void passes, or the hidden documents with the number of hidden and reactivated records."""

    grants: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    hidden: int = 0
    believed_again: int = 0


class ListGrants(Request, tag="grants", frozen=True, kw_only=True):
    """List passes, newest first, and revoked sources."""


class RevokedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source whose records memd hides."""

    source: str
    at: str


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `grants`."""

    grants: tuple[GrantState, ...]
    sources: tuple[RevokedSource, ...] = ()
