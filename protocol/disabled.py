"""The check whether memd is disabled for this user or process (W14), by a variable or a file; the same in all programs.

Invariant: `MEMD_DISABLED=0` does not override the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from .places import Places

VARIABLE, FILE = "MEMD_DISABLED", "disabled"
_NO = frozenset({"", "0", "false", "no", "off"})


def why_disabled(environment: Mapping[str, str], places: Places) -> str:
    """Return the variable or file that disables memd, "" while it is enabled."""
    value = environment.get(VARIABLE, "")
    if value.strip().lower() not in _NO:
        return f"{VARIABLE}={value}"
    file = os.path.join(places.config, FILE)  # text, not Path: this runs for each event
    return file if os.path.exists(file) else ""  # another user's folder counts as absent
