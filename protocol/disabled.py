"""Whether memd is switched off for this user or this process (W14): then nothing is captured, recalled or shown.

Comes in: an environment and the places. Goes out: why, or "". Invariants: one look at a variable and at a file; clients
and daemon ask the same question; `MEMD_DISABLED=0` does not switch on what the file switched off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from .places import Places

VARIABLE, FILE = "MEMD_DISABLED", "disabled"
_NO = frozenset({"", "0", "false", "no", "off"})


def why_disabled(environment: Mapping[str, str], places: Places) -> str:
    """What switches memd off, as a user would undo it; "" while it is on."""
    value = environment.get(VARIABLE, "")
    if value.strip().lower() not in _NO:
        return f"{VARIABLE}={value}"
    file = os.path.join(places.config, FILE)  # as text: this is asked for each arrival at the door
    return file if os.path.exists(file) else ""  # a folder of another user's says nothing
