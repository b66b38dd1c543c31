"""The pools that a question from a folder reads, resolved by the evidence that the folder shows."""

from __future__ import annotations

from ....protocol.event import Repository
from ....stages.batch import PERSONAL
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from .identity import READ_S, Identity
from .repo_probe import RepoEvidence

FOLDERS = 256
"""Most folders whose pools are kept."""


class FolderPools:
    """Resolves folders to pools; a result holds while the folder shows the same and no operation is applied.

    Invariants: the user's own pool comes before the project's; outside a project only the user's own pool is read, and
    the folder's unbound pool; a project that the user left is not read.
    """

    def __init__(self, identity: Identity, stores: Stores, directory: PoolDirectory) -> None:
        self._identity, self._stores, self._directory = identity, stores, directory
        self._known: dict[str, tuple[RepoEvidence, int, tuple[str, ...]]] = {}

    def of(self, cwd: str, repository: Repository | None) -> tuple[str, ...]:
        """Return the pools of a folder, or of a client's repository hint."""
        if not cwd and repository is None:
            return (PERSONAL,)
        if repository is not None:
            return self._resolve(cwd, repository)
        evidence, seq = self._identity.sight(cwd), self._stores.tables.applied_seq
        known = self._known.get(cwd)
        if known is None or known[:2] != (evidence, seq):
            if len(self._known) >= FOLDERS:
                self._known.clear()
            known = self._known[cwd] = (evidence, seq, self._resolve(cwd, None))
        return known[2]

    def _resolve(self, cwd: str, repository: Repository | None) -> tuple[str, ...]:
        pool = self._identity.place(cwd, repository, wait_s=READ_S).pool
        if pool == PERSONAL or self._stores.sources.pool(pool) is None or self._directory.is_left(pool):
            return (PERSONAL,)
        return (PERSONAL, pool)
