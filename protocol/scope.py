"""Replies about pools of folders and projects: `scope_why`, `scope_bind`, `scope_move` and `leave` (P3, P4)."""

from __future__ import annotations

import msgspec


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
    """Reply to `scope_move`: record ids. `there`: were in the pool before; `unkeyed` as in `Bound`."""

    pool: str
    title: str
    moved: tuple[str, ...]
    there: tuple[str, ...] = ()
    unkeyed: tuple[str, ...] = ()


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `leave`: the project, its number of live records, and whether it is left now."""

    pool: str
    title: str
    records: int
    left: bool
