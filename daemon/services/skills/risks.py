"""Tells why a command is shown only with a warning, and left out of a skill's file (K1): it fetches code, overrides a
check, deletes for good, reaches other machines, publishes, or touches keys, hooks and settings."""

from __future__ import annotations

import re

from .tables import table

_RISKS = {
    reason: re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    for reason, patterns in table("shell")["risks"].items()
}


_MAY_FETCH = "may fetch a tool and run it"


def risk(command: str, is_projects: bool = False) -> str:
    """Return why a command is risky, "" if nothing in it is known to be. `is_projects`: the project's files name the
    tool that it runs."""
    reasons = (reason for reason, pattern in _RISKS.items() if pattern.search(command))
    return next((reason for reason in reasons if not (is_projects and reason == _MAY_FETCH)), "")
