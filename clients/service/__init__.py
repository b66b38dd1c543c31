"""memd as a service of its user's service manager: systemd on Linux, launchd on macOS (U1).

A service belongs to one home, whose data folder its file names. It is never installed for root or system-wide.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...protocol.places import Places
from .service_file import ServiceState, program

if TYPE_CHECKING:
    from .launchd import Launchd
    from .systemd import Systemd

__all__ = ["ServiceState", "is_ours", "program", "service"]


def service(places: Places, environment: Mapping[str, str]) -> Systemd | Launchd:
    """Return the service of this home under this system's manager."""
    if sys.platform == "darwin":
        from .launchd import Launchd

        return Launchd(places, environment)
    from .systemd import Systemd

    return Systemd(places, environment)


def is_ours(installed: Systemd | Launchd, places: Places) -> bool:
    """Whether a service of this home is installed."""
    first = installed.files()[0].path
    try:
        return str(places.data) in first.read_text(encoding="utf-8")
    except OSError:
        return False
