"""The changes that `memd setup` and the guided start make in a host's files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from ...protocol.errors import StoreError
from ..hooks.agent_host import HostOptions
from ..hooks.edits import FileEdit, diff
from ..hooks.hosts import Hosts, HostState


class HostChange(msgspec.Struct, frozen=True, kw_only=True):
    """The diff of each file that was, or would be, changed for a host, and the host's state afterwards."""

    host: str
    files: dict[str, list[str]]
    state: HostState


def connect(hosts: Hosts, name: str, options: HostOptions | None = None, dry_run: bool = False) -> HostChange:
    """Set memd up in a host; a dry run only shows the changes. Raises InvalidRequest, StoreError, Refused."""
    apply = None if dry_run else partial(hosts.set_up, options=options)
    try:
        return changed(hosts, name, hosts.edits(name, options), apply)
    except OSError as error:
        raise StoreError(
            f"{error.filename} can't be written: {error.strerror}", hint="check the mode and the owner of its folder"
        ) from error


def changed(
    hosts: Hosts, name: str, edits: list[FileEdit], apply: Callable[[str, list[FileEdit]], object] | None
) -> HostChange:
    """The change of a host's files; `apply` makes it, None is a dry run."""
    if apply:
        apply(name, edits)
    files = {str(edit.path): list(diff(edit)) for edit in edits if edit.is_change}
    return HostChange(host=name, files=files, state=hosts.state(name))
