"""Project identity: maps a folder, or a client's repository hint, to the pool of its project (P3, P-17).

Invariants: all clones and worktrees of a repository give the same pool, a fork (same root commit, other remote) gives
another; a pool's identity is decided once, and later evidence adds names; only the user joins existing pools; nothing
is written here, because opening a session writes the new names.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ....protocol.errors import Unavailable
from ....protocol.event import Repository
from ....protocol.shared_lines import of_repository, parts_of
from ....stages.batch import PERSONAL
from ...projections.aliases import Alias, Aliases, of_checkout, of_file, of_folder
from .repo_probe import SLOW, RepoEvidence, RepoProbe, canonical_remote

READ_S = 0.02
"""Seconds that a question waits for the probe of its folder, before it uses the last result."""

WRITE_S = 2.0
"""Seconds that the opening of a session and `memd scope` wait for a new probe."""


class PoolIdentity(NamedTuple):
    """The pool of a folder (`personal` without a project) with the reason.

    `root`: the root folder, "" if unknown; `names`: new names; `bound`: the user bound the folder to the pool.
    """

    pool: str
    title: str
    root: str
    evidence: str
    names: tuple[str, ...]
    probed: RepoEvidence
    bound: bool = False


def mark(*parts: str) -> str:
    """Return a pool's permanent name, from what was known when it was opened."""
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def is_project(pool: str) -> bool:
    """Whether a pool belongs to a known project."""
    return pool.startswith("project/")


def names_of(probed: RepoEvidence, cwd: str) -> tuple[str, ...]:
    """Return the names that the evidence gives, the strongest first."""
    names: list[str] = []
    if probed.root_commit or probed.remote:
        names.append(of_repository(probed.root_commit, probed.remote))
    elif probed.id:
        names.append(of_file(probed.id))
    if probed.checkout:
        names.append(of_checkout(probed.checkout))
    if folder := probed.folder or ("" if probed.root_commit or probed.remote else cwd):
        names.append(of_folder(folder))
    return tuple(names)


class Identity:
    """Resolves folders and hints against the known names."""

    def __init__(
        self, aliases: Aliases, monotonic: Callable[[], float], clean: Callable[[str], str] = lambda words: words
    ) -> None:
        """`clean`: removes secrets from the names that a repository gives."""
        self._aliases = aliases
        self._probe = RepoProbe(monotonic, self._roots, clean)

    def prepare(self) -> None:
        """Load libgit2 in the background, so that no question waits for it."""
        self._probe.prepare()

    def _roots(self, checkout: str) -> tuple[str, ...]:
        alias = self._aliases.get(of_checkout(checkout))
        return tuple(root for root, _ in self._repositories(alias.pool) if root) if alias else ()

    def probe(self, cwd: str, wait_s: float = READ_S) -> RepoEvidence:
        """Return a folder's evidence, at once or within so many seconds."""
        return self._probe.probe(cwd, wait_s)

    def place(self, cwd: str, hint: Repository | None = None, *, wait_s: float = WRITE_S) -> PoolIdentity:
        """Return the identity of a folder, or of the hint of a client on another machine.

        Raises Unavailable where a slow disk does not show the folder's project within `WRITE_S`: what is written
        meanwhile would lie in the wrong pool for ever. A question (`READ_S`) gets the personal pool.
        """
        if hint is not None and (hint.root_commit or hint.remote):
            remote = canonical_remote(hint.remote)
            probed = RepoEvidence(
                "repository", hint.root_commit.strip().lower(), remote, why="the client sent this repository"
            )
            if probed.root_commit or probed.remote:
                return self._settled(self._of_repository(probed), hint.root or cwd)
        folder = cwd or (hint.root if hint else "")
        if not folder:
            return PoolIdentity(
                PERSONAL, "", "", "no folder was named", (), RepoEvidence("unseen", why="no folder was named")
            )
        probed = self._probe.probe(folder, wait_s, anew=wait_s > READ_S)
        if probed is SLOW and wait_s > READ_S:
            raise Unavailable(f"memd is still reading the repository of {folder}", hint="try again in a few seconds")
        if probed.root_commit or probed.remote:
            return self._settled(self._of_repository(probed), folder)
        if probed.id:
            return self._settled(self._of_file(probed), folder)
        return self._settled(self._of_folder(probed, folder), folder)

    def _settled(self, place: PoolIdentity, cwd: str) -> PoolIdentity:
        """Keep the names that do not lead to the pool yet, and follow joined pools to the last one."""
        names = tuple(name for name in place.names if self._leads(name) != place.pool)
        pool = self._aliases.home(place.pool)
        title = place.title or Path(place.root or cwd).name or cwd
        evidence = f"{place.evidence}; you joined that pool into this one" if pool != place.pool else place.evidence
        return place._replace(pool=pool, title=title, names=names, evidence=evidence)

    def _leads(self, name: str) -> str:
        alias = self._aliases.get(name)
        return alias.pool if alias else ""

    # --- repositories ------------------------------------------------------------------------------------------------
    def _of_repository(self, probed: RepoEvidence) -> PoolIdentity:
        title = probed.remote.rsplit("/", 1)[-1] if probed.remote else Path(probed.folder).name
        shown = _shown(probed)
        for alias, why in (
            (self._aliases.get(of_repository(probed.root_commit, probed.remote)), shown),
            (self._same_checkout(probed), f"this checkout belonged to that project before; now it has {shown}"),
            (self._bound_folder(probed), shown),
            (self._same_file(probed), f"its id file says {probed.id!r}; it has {shown}"),
        ):
            if alias is not None:
                names = names_of(probed, "")
                bound = alias.by == "user"
                why = f"{why}; you bound it" if bound else why
                return PoolIdentity(alias.pool, title, probed.folder, why, names, probed, bound)
        pool = self._completed(probed)
        if pool:
            why = f"{shown}, which only one known project has"
        else:
            pool, why = f"project/{mark(probed.root_commit, probed.remote)}", shown
        return PoolIdentity(pool, title, probed.folder, why, names_of(probed, ""), probed)

    def _same_checkout(self, probed: RepoEvidence) -> Alias | None:
        """Return the alias of the checkout if its history is the same: its remote was added or renamed."""
        alias = self._aliases.get(of_checkout(probed.checkout)) if probed.checkout else None
        if alias is None:
            return None
        known = self._repositories(alias.pool)
        same = any(
            (probed.root_commit and root == probed.root_commit) or (probed.remote and remote == probed.remote)
            for root, remote in known
        )
        return alias if same or not known else None

    def _bound_folder(self, probed: RepoEvidence) -> Alias | None:
        """Return the alias of a folder that the user bound before it became a repository."""
        alias = self._aliases.get(of_folder(probed.folder)) if probed.folder else None
        return alias if alias is not None and alias.by == "user" else None

    def _same_file(self, probed: RepoEvidence) -> Alias | None:
        """Return the alias of the id file in a folder that became a repository; a fork has another pool."""
        alias = self._aliases.get(of_file(probed.id)) if probed.id else None
        if alias is None:
            return None
        remotes = {remote for _, remote in self._repositories(alias.pool) if remote}
        return alias if not remotes or not probed.remote or probed.remote in remotes else None

    def _completed(self, probed: RepoEvidence) -> str:
        """Return the only pool that has the root commit or the remote and lacks the other, "" if there is not one."""
        pools: set[str] = set()
        for alias in self._aliases.of_root(probed.root_commit):
            if not probed.remote or not any(remote for _, remote in self._repositories(alias.pool)):
                pools.add(alias.pool)
        for alias in self._aliases.of_remote(probed.remote):
            if not probed.root_commit or not any(root for root, _ in self._repositories(alias.pool)):
                pools.add(alias.pool)
        pools.discard(PERSONAL)
        return pools.pop() if len(pools) == 1 else ""

    def _repositories(self, pool: str) -> list[tuple[str, str]]:
        pairs = (parts_of(alias.name) for alias in self._aliases.of_pool(pool))
        return [pair for pair in pairs if any(pair)]

    def alike(self, place: PoolIdentity) -> list[tuple[str, str]]:
        """Return other pools that share a root commit or a remote, each with the reason."""
        pools: dict[str, str] = {}
        roots, remotes = self._aliases.of_root(place.probed.root_commit), self._aliases.of_remote(place.probed.remote)
        shared = [(alias, "same root commit, different remote") for alias in roots]
        shared += [(alias, "same remote, different root commit") for alias in remotes]
        for alias, why in shared:
            pool = self._aliases.home(alias.pool)
            if pool != place.pool:
                pools.setdefault(pool, why)
        return list(pools.items())

    # --- folders without git -----------------------------------------------------------------------------------------
    def _of_file(self, probed: RepoEvidence) -> PoolIdentity:
        alias = self._aliases.get(of_file(probed.id))
        pool = alias.pool if alias else f"project/{mark('id', probed.id)}"
        why = f"the id file in {probed.folder} says {probed.id}"
        bound = alias is not None and alias.by == "user"
        return PoolIdentity(pool, Path(probed.folder).name, probed.folder, why, names_of(probed, ""), probed, bound)

    def _of_folder(self, probed: RepoEvidence, folder: str) -> PoolIdentity:
        known = self._remembered(folder)
        if known is None:
            why = f"{probed.why}, and no project is assigned to it"
            names = (of_folder(folder),)
            return PoolIdentity(f"unbound/{mark(folder)}", "", folder, why, names, probed)
        alias, where = known
        binding = "you bound it" if alias.by == "user" else "the folder belonged to this project before"
        why = f"{probed.why}; {'' if where == folder else f'of {where}: '}{binding}"
        if alias.pool.startswith("unbound/"):
            why = f"{probed.why}, and no project is assigned to it"
        return PoolIdentity(alias.pool, "", where, why, (), probed, alias.by == "user")

    def _remembered(self, folder: str) -> tuple[Alias, str] | None:
        """Return the nearest known folder at or above this one; an unbound pool is not inherited."""
        for parent in (folder, *map(str, Path(folder).parents)):
            alias = self._aliases.get(of_folder(parent))
            if alias is not None and (parent == folder or not alias.pool.startswith("unbound/")):
                return alias, parent
        return None


def _shown(probed: RepoEvidence) -> str:
    parts = (
        f"root commit {probed.root_commit[:12]}" if probed.root_commit else "",
        f"remote {probed.remote}" if probed.remote else "",
    )
    shown = " and ".join(part for part in parts if part)
    return f"{shown} ({probed.why})" if probed.why else shown
