"""What `scope_why`, `scope_bind`, `scope_move` and `leave` answer (P3, P4).

Comes in: what the daemon found or did. Goes out: frozen values, members of `reply.AnyData`. Invariant: an answer names
what did not come along.
"""

from __future__ import annotations

import msgspec


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `scope_why`: the pool of a folder, and in words why it is that one.

    `reads`: the pools that a question from there looks into. `seen`: what the folder shows (`repository`, `folder`,
    `unseen`). `names`: by which the pool is found. `alike`: other pools that share half of the evidence, each with what
    it shares. `left`: the user left that project. `is_open`: something was captured for it. `bound`: the user said so.
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
    """Of a `scope_bind`: the pool, the names that lead there now, records that came along, those that stay in `was`."""

    folder: str
    pool: str
    title: str
    was: str
    names: tuple[str, ...]
    moved: int = 0
    unkeyed: tuple[str, ...] = ()
    stays: int = 0


class RecordsMoved(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `scope_move`: records that lie there now, those that did before, those whose key was held there already."""

    pool: str
    title: str
    moved: tuple[str, ...]
    there: tuple[str, ...] = ()
    unkeyed: tuple[str, ...] = ()


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Of a `leave`: the project, how many live records it has, whether it is left now."""

    pool: str
    title: str
    records: int
    left: bool
