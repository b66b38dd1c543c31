"""Places at which a test may kill the daemon: `MEMD_FAIL=name`, or `name:3` for the third time.

Comes in: the variable, once, at start. Goes out: SIGKILL at that place, so that nothing is tidied up. Invariants: a
name that is not listed here is refused, so no test passes because its place is gone; without the variable a place
costs one comparison.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading

from ..protocol.errors import BadConfig

NAMES = (
    "archive:appended",  # captures are durable, nobody was told, their operations are not written
    "journal:before-commit",  # the group stands in an open transaction
    "journal:committed",  # operations are durable, no projection has seen them
    "projection:before-apply",  # reached once for each projection
    "projection:applied",
    "keywords:before-commit",
    "keywords:committed",  # the index is on the disk, its mark is not
    "marker:written",  # the mark of a running daemon is on the disk, nothing is opened
    "compact:copied",  # a compact copy is on the disk, the live file is still the old one
    "compact:closed",  # the environment is closed, the copy has not its name yet
    "compact:renamed",  # it has, but the name is not synced
    "renew:tables",  # fresh tables are in place, the indexes are still the old ones
    "renew:keywords",
    "renew:turns",
    "forget:redacted",  # what is forgotten is named, no byte of it is gone
    "forget:journal-erased",  # the words are out of the journal, but not of its file
    "forget:archive-erased",
    "forget:archive-cut",  # where a secret stood in a capture a placeholder stands, but not in its file
    "forget:logs-compacted",
    "forget:projections-renewed",
    "forget:vectors-swept",
    "forget:spools-scrubbed",
    "forget:copies-dropped",
    "forget:purged",  # all is done and said to be done, the client was not told
    "migration:snapshot",  # the copy of the old layout is half made
    "migration:marked",  # the copy is complete and named in the mark, but has not its name yet
    "migration:begun",  # the copy is complete, the layout not touched
    "migration:done",  # the new layout stands, its number is not written
    "migration:written",  # its number is written, the mark of the migration is still there
    "restore:planned",  # the backup's stores lie beside the present ones, the plan is on the disk
    "restore:moved",  # a present store is moved aside, the backup's not in its place; reached once for each
    "restore:placed",  # both are in place and counted, projections and the plan are still there
    "model:embedded",  # a batch of the coming model's vectors is on the disk
    "model:swapped",  # the coming model searches, nothing says so yet
    "inbox:decided",  # the user's word on a proposal is on the disk, nobody was told
    "close:synced",  # a clean stop has brought everything to the disk, the mark is still there
)
"""Every name, in the order of the code's way; whoever adds a place adds it here."""

_armed = ""
_nth = 0
_reached = itertools.count(1)


def arm(text: str) -> None:
    """Honour the variable's value; "" changes nothing. Raises BadConfig for a name that does not exist."""
    global _armed, _nth
    name, _, nth = text.rpartition(":")
    if not nth.isdigit():
        name, nth = text, "1"
    if name and name not in NAMES:
        raise BadConfig(f"unknown fail point {name!r}", hint=f"there are: {', '.join(NAMES)}")
    _armed, _nth = name, int(nth)


def reach(name: str) -> None:
    """Die here if this is the armed place and its time has come."""
    if _armed and name == _armed and next(_reached) == _nth:
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
