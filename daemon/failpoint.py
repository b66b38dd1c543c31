"""Points at which a test can kill the daemon with SIGKILL: `MEMD_FAIL=name`, or `name:3` for the third time.

Invariants: an unlisted name is an error, so no test passes because its point was removed; without the variable a point
costs one comparison.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading

from ..protocol.errors import BadConfig

NAMES = (
    "archive:appended",  # captures are durable, not acknowledged, without operations
    "journal:before-commit",  # the group is in an open transaction
    "journal:committed",  # operations are durable, no projection applied them
    "projection:before-apply",  # reached once for each projection
    "projection:applied",
    "keywords:before-commit",
    "keywords:committed",  # the index is on the disk, its mark is not yet
    "marker:written",  # the mark of a running daemon is on the disk, no store is open
    "compact:copied",  # a compact copy is on the disk, the live file is still the old one
    "compact:closed",  # the environment is closed, the copy not yet renamed
    "compact:renamed",  # the copy is renamed, the name not flushed
    "renew:tables",  # fresh tables are in place, the indexes are still the old ones
    "renew:keywords",
    "renew:turns",
    "forget:redacted",  # the closure is in the journal, no byte is removed
    "forget:journal-erased",  # the text is out of the journal, but not of its file
    "forget:archive-erased",
    "forget:archive-cut",  # secrets in captures are replaced, but still in the file
    "forget:logs-compacted",
    "forget:projections-renewed",
    "forget:vectors-swept",
    "forget:spools-scrubbed",
    "forget:copies-dropped",
    "forget:purged",  # everything is done and in the journal, the client has no reply
    "migration:snapshot",  # the copy of the old layout is incomplete
    "migration:marked",  # the copy is complete and in the mark, but not renamed
    "migration:begun",  # the copy is complete, the layout unchanged
    "migration:done",  # the stores have the new layout, its number is not written
    "migration:written",  # its number is written, the mark of the migration still exists
    "restore:planned",  # the backup's stores are copied, the plan is on the disk
    "restore:moved",  # a store is moved aside, the backup's not in place; once each
    "restore:placed",  # both are in place, projections and plan still exist
    "model:embedded",  # a batch of the next model's vectors is on the disk
    "model:swapped",  # the next model searches, its choice is not stored
    "inbox:decided",  # a decision on a proposal is on the disk, the client has no reply
    "remote:archived",  # the bytes of a call are in the archive, its tokens are not reserved
    "remote:reserved",  # its tokens are reserved, nothing is sent
    "remote:answered",  # the server answered, nothing is taken
    "remote:taken",  # its statements are in the archive, the call is not settled
    "remote:settled",  # the call is settled
    "share:offered",  # the lines that are due are in the journal, nobody has them
    "share:journalled",  # a group of another author's lines is in the journal, the next is not
    "close:synced",  # a clean stop flushed everything, the mark is unchanged
)
"""All fail points, in the order of the code."""

_armed = ""
_nth = 0
_reached = itertools.count(1)


def arm(text: str) -> None:
    """Arm the fail point in the variable's value, none for "". Raises BadConfig for an unknown name."""
    global _armed, _nth
    name, _, nth = text.rpartition(":")
    if not nth.isdigit():
        name, nth = text, "1"
    if name and name not in NAMES:
        raise BadConfig(f"unknown fail point {name!r}", hint=f"there are: {', '.join(NAMES)}")
    _armed, _nth = name, int(nth)


def reach(name: str) -> None:
    """Kill the process if this fail point is armed and its count is reached."""
    if _armed and name == _armed and next(_reached) == _nth:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
