"""Commands for when no daemon runs: `python -m memd.daemon NAME …`.

A command prints one JSON object, or its error and hint on standard error. A command that writes takes the lock of the
data folder first. Reading a damaged store may kill the process: LMDB maps pages without checking them.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ...protocol.errors import MemdError, StoreError, UnknownRequest
from ...protocol.places import Places
from ...protocol.wire import problem
from ..failpoint import arm
from ..world import World

Command = Callable[[Places, World, Sequence[str]], Mapping[str, object]]

COMMANDS: dict[str, tuple[str, str]] = {
    "check-backup": ("daemon.storage.backup", "check_command"),
    "list-backups": ("daemon.storage.backup", "list_command"),
    "read-tips": ("daemon.storage.backup", "tips_command"),
    "read-redactions": ("daemon.storage.tombstone_carryover", "redactions_command"),
    "restore-backup": ("daemon.storage.restore", "restore_command"),
    "verify": ("daemon.services.maintenance_process", "verify_command"),
    "check-installation": ("daemon.server.offline", "installation_command"),
    "check-model": ("daemon.services.distillation.model_selection", "check_command"),
    "use-model": ("daemon.services.distillation.model_selection", "use_command"),
    "list-models": ("daemon.services.distillation.model_selection", "list_command"),
    "settings": ("daemon.services.settings.settings_service", "list_command"),
    "put-setting": ("daemon.services.settings.settings_service", "put_command"),
}
"""Module below `memd` and function of each command; imported when it is run."""


def run(
    name: str,
    arguments: Sequence[str],
    places: Places,
    world: World,
    commands: Mapping[str, tuple[str, str]] = COMMANDS,
) -> int:
    """Run one command of a table and print its report; return the exit code."""
    try:
        arm(os.environ.get("MEMD_FAIL", ""))
        if name not in commands:
            raise UnknownRequest(f"unknown offline command {name!r}", hint=f"there are: {', '.join(commands)}")
        module, function = commands[name]
        command: Command = getattr(importlib.import_module(f"...{module}", __package__), function)
        report = command(places, world, arguments)
    except MemdError as error:
        print(f"memd: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(
            f"memd: {error}\nhint: check that memd can write {places.data} and that the disk has free space",
            file=sys.stderr,
        )
        return StoreError.exit_code
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    return 0


def installation_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`check-installation`: print `{"settings": …}` or `{"problem": …}`, then check the model, all in one process.

    The line of the settings comes first, because a broken model library may end the process. Raises ModelMissing.
    """
    from ..services.distillation.model_selection import check_command
    from ..services.settings.settings_service import list_command

    try:
        checked: Mapping[str, object] = {"settings": list_command(places, world, ())}
    except MemdError as error:
        checked = {"problem": problem(error)}
    print(msgspec.json.encode(checked).decode(), flush=True)
    return check_command(places, world, ())
