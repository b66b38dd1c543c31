"""The governance service: patches of a project's playbook out and in (G2, G5).

Invariants: the daemon reads and writes no file of a repository, a client does; only the user sends these requests.
"""

from __future__ import annotations

from typing import NoReturn

from ....protocol.errors import InvalidRequest
from ....protocol.governance import GetPatch, ListPatches, PublishPlaybook, SendPatch, TakePatches, TrustPi
from ....protocol.request_fields import Request
from ..core import Core
from ..service import Handlers, Service, owner
from ..write_thread import Writer


class GovernanceService(Service):
    """Patches and policies."""

    name = "governance"

    def __init__(self, core: Core, writer: Writer) -> None:
        self._stores, self._directory, self._world, self._writer = core.stores, core.directory, core.world, writer

    @property
    def handlers(self) -> Handlers:
        return {
            ListPatches: owner("slow", self._later),
            GetPatch: owner("slow", self._later),
            SendPatch: owner("slow", self._later),
            PublishPlaybook: owner("slow", self._later),
            TakePatches: owner("slow", self._later),
            TrustPi: owner("slow", self._later),
        }

    def _later(self, request: Request) -> NoReturn:
        raise InvalidRequest("this version does not have it yet", hint="memd status")
