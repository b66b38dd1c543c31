"""How long an import takes: a range that holds on most machines, or one figure after an import on this machine.

`expected_s` of this module is what the rates of `overview` say. Measured until every capture was processed, relative to
it: Claude Code's sessions with much output of tools, 6.7 MB, 0.25 alone on two cores and 0.5 beside two busy programs;
sessions with much talk, 1.6 MB, 0.8; 6.3 MB on a busy machine, 0.9.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ..python.client import Client
from ..python.folder import write_whole
from .cursors import Cursors, size_of
from .delivery import Imported, ImportSource
from .overview import START_S, reading_s

FASTEST, SLOWEST = 0.25, 2.0
LEAST_S = 5.0
"""Seconds that an import must take before it counts."""
LEAST_NEW = 0.9
"""Part of an import's events that must be new to memd before it counts."""
FILE_NAME = "speed"


class ImportSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """The imports on this machine: they took `took_s` seconds; the rates say `expected_s`. Both are 0 without one."""

    expected_s: float = 0.0
    took_s: float = 0.0

    def range_s(self, expected_s: float) -> tuple[int, int]:
        """Return the fewest and the most seconds of an import, equal if memd measured one."""
        if self.expected_s:
            about = round(expected_s * self.took_s / self.expected_s)
            return about, about
        return round(expected_s * FASTEST), round(expected_s * SLOWEST)


def import_speed(folder: Path) -> ImportSpeed:
    """Return the speed in a folder of cursors."""
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=ImportSpeed)
    return ImportSpeed()


class ImportTiming:
    """Measures an import from its first file until its captures are processed. An import of files that memd knew in
    part does not count, nor one that began while other captures waited."""

    def __init__(self, client: Client, sources: Sequence[ImportSource], cursors: Cursors) -> None:
        is_new = all(source.keeps and not cursors.get(source.path) for source in sources)
        self._counts = is_new and not client.status().pending
        self._folder, self._started = cursors.folder, time.monotonic()
        self._expected_s = START_S + sum(reading_s(source.agent, size_of(source.path)) for source in sources)

    def end(self, files: Sequence[Imported], pending: int) -> None:
        """Store the measurement; `pending`: captures that memd did not process yet."""
        took_s = time.monotonic() - self._started
        outcomes = [sent for file in files for sent in file.sessions]
        accepted, events = sum(sent.accepted for sent in outcomes), sum(sent.events for sent in outcomes)
        if not self._counts or took_s < LEAST_S or pending >= accepted or accepted < events * LEAST_NEW:
            return
        took_s *= accepted / (accepted - pending)
        earlier = import_speed(self._folder)
        speed = ImportSpeed(expected_s=earlier.expected_s + self._expected_s, took_s=earlier.took_s + took_s)
        with suppress(OSError):
            write_whole(self._folder / FILE_NAME, msgspec.json.encode(speed))
