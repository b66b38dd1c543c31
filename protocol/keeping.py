"""Replies about what lies on the disk: backups, and who takes how many bytes (P-20).

Comes in: what the daemon found. Goes out: frozen values. Invariant: sizes are bytes.
"""

from __future__ import annotations

import msgspec


class BackupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A finished backup: when, by which version, the last operation and capture in it, bytes on disk, the layout of its
    stores and whether that is today's. What a migration kept is one too: by no version, -1 for what was not counted."""

    name: str
    at: str
    version: str
    journal_seq: int
    archive_seq: int
    size_bytes: int
    layout: int = 0
    current: bool = True


class BackupList(msgspec.Struct, frozen=True, kw_only=True):
    """Of `backups`: the finished ones in a folder, oldest first."""

    folder: str
    backups: tuple[BackupInfo, ...]


class DiskPart(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of one part of memd on disk, how many of them can be freed, and what does it ("" where nothing should)."""

    name: str
    size_bytes: int
    free_bytes: int = 0
    freed_by: str = ""


class DiskUse(msgspec.Struct, frozen=True, kw_only=True):
    """Of `du`: every file of the data and state folders is in exactly one part."""

    parts: tuple[DiskPart, ...]
    total_bytes: int
