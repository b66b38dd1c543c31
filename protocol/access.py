"""Who may read what: passes that the user grants, and sources whose memory is no longer shown (A1, A3).

Comes in: the user's word. Goes out: a signed pass, or how things stand. Invariants: memory enforces and never decides;
a pass only ever takes away from what its bearer would see; nothing here carries captured words.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from .intent import Names, Request


class Grant(Request, tag="grant", frozen=True, kw_only=True):
    """Sign a pass (A1): `subject` may read these pools (all if none is named), of what rests on these sources alone (of
    all if none is named), for so long. With `back` and sources alone: what was revoked of them is shown again."""

    subject: str = ""
    pools: Names = ()
    sources: Names = ()
    for_s: Annotated[float, msgspec.Meta(ge=1, le=1e9)] = 30 * 86_400.0
    back: bool = False


class GrantState(msgspec.Struct, frozen=True, kw_only=True):
    """A grant as the journal knows it: times are RFC 3339, "" is never."""

    id: str
    subject: str
    pools: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    granted_at: str = ""
    expires_at: str = ""
    revoked_at: str = ""


class PassGranted(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `grant`: the pass itself (an EdDSA JWT), told this once; or, with `back`, how many records are back."""

    token: str = ""
    grant: GrantState | None = None
    shown: int = 0


class Revoke(Request, tag="revoke", frozen=True, kw_only=True):
    """Exactly one: the `id` of a grant (or its beginning), whose pass is void from now on; or a `source` (a host, a
    session, its document), of which everything derived leaves every answer in one pass (A3)."""

    id: str = ""
    source: str = ""


class Revocation(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `revoke`: grants that are void now, or the documents whose memory is hidden and how many records that is."""

    grants: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    hidden: int = 0
    believed_again: int = 0


class ListGrants(Request, tag="grants", frozen=True, kw_only=True):
    """Grants, newest first, and the sources that are revoked."""


class RevokedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source of which nothing is shown, and since when."""

    source: str
    at: str


class Grants(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `grants`."""

    grants: tuple[GrantState, ...]
    sources: tuple[RevokedSource, ...] = ()
