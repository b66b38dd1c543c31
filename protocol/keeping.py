"""Replies about backups and disk usage (P-20)."""

from __future__ import annotations

import msgspec


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A finished backup: `layout` is the layout version of its stores, `current` whether this memd writes that layout.

    The copy that a migration makes is a backup too: its `version` is "", a seq that was not counted is -1.
    """

    name: str
    at: str
    version: str
    journal_seq: int
    archive_seq: int
    size_bytes: int
    layout: int = 0
    current: bool = True


class BackupList(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `backups`: the finished backups in a folder, oldest first."""

    folder: str
    backups: tuple[BackupInfo, ...]


class DiskPart(msgspec.Struct, frozen=True, kw_only=True):
    """Disk usage of one part of memd. `freed_by`: the command that frees `free_bytes`, "" for none."""

    name: str
    size_bytes: int
    free_bytes: int = 0
    freed_by: str = ""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """Reply to `du`: each file of the data and state folders is in exactly one part."""

    parts: tuple[DiskPart, ...]
    total_bytes: int
