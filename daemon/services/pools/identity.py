"""Project identity: which pool a folder's project memory lies in (P3, P-17).

Comes in: a folder or a client's hint. Goes out: a pool, in words why, and the names by which it shall be found from now
on. Invariants: every clone and worktree of a repository gives the same pool, a fork (the same root commit, another
remote) another; a pool's identity is decided once, what is seen later adds names; two pools that are there already are
never joined here, only by the user; nothing here writes: who opens a session writes the names down.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ....protocol.event import Repository
from ....stages.batch import PERSONAL
from ...projections.aliases import Alias, Aliases, of_checkout, of_file, of_folder, of_repository, parts_of
from .remote import canonical_remote
from .repo_probe import RepoEvidence, RepoProbe

READ_S = 0.02
"""How long a question waits for a look at its folder; then what the folder was last counts."""

WRITE_S = 2.0
"""How long the opening of a session waits, and the user who asks for the scope: they look anew."""


class PoolIdentity(NamedTuple):
    """A pool (`personal` where there is no project), a title for people, the root folder ("" unknown), why it is this
    one, names that are new, and whether the user said so."""

    pool: str
    title: str
    root: str
    evidence: str
    names: tuple[str, ...]
    sight: RepoEvidence
    bound: bool = False


def mark(*parts: str) -> str:
    """The name that a pool has for good, of what was known when it was opened."""
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def is_project(pool: str) -> bool:
    """Whether a pool is a known project's."""
    return pool.startswith("project/")


def names_of(sight: RepoEvidence, cwd: str) -> tuple[str, ...]:
    """Every name that a sight gives, the strongest first."""
    names: list[str] = []
    if sight.root_commit or sight.remote:
        names.append(of_repository(sight.root_commit, sight.remote))
    elif sight.id:
        names.append(of_file(sight.id))
    if sight.checkout:
        names.append(of_checkout(sight.checkout))
    if folder := sight.folder or ("" if sight.root_commit or sight.remote else cwd):
        names.append(of_folder(folder))
    return tuple(names)


class Identity:
    """Resolves folders and hints against the names that are known."""

    def __init__(self, aliases: Aliases, monotonic: Callable[[], float]) -> None:
        self._aliases = aliases
        self._sights = RepoProbe(monotonic, self._roots)

    def prepare(self) -> None:
        """Load libgit2 beside everything else, where there are projects to ask for: no question has to wait for it."""
        self._sights.prepare()

    def _roots(self, checkout: str) -> tuple[str, ...]:
        alias = self._aliases.get(of_checkout(checkout))
        return tuple(root for root, _ in self._repositories(alias.pool) if root) if alias else ()

    def sight(self, cwd: str) -> RepoEvidence:
        """What a folder shows, as a question has it: at once, or within `READ_S`."""
        return self._sights.look(cwd, READ_S)

    def place(
        self, cwd: str, hint: Repository | None = None, *, host: str = "", wait_s: float = WRITE_S
    ) -> PoolIdentity:
        """The place of a folder, or of a hint of a client whose files the daemon can't see; `host` tells the folders
        of several machines apart where nothing else is known."""
        if hint is not None and (hint.root_commit or hint.remote):
            remote = canonical_remote(hint.remote)
            sight = RepoEvidence(
                "repository", hint.root_commit.strip().lower(), remote, why="the client sent this repository"
            )
            if sight.root_commit or sight.remote:
                return self._settled(self._of_repository(sight), hint.root or cwd)
        folder = cwd or (hint.root if hint else "")
        if not folder:
            return PoolIdentity(
                PERSONAL, "", "", "no folder was named", (), RepoEvidence("unseen", why="no folder was named")
            )
        sight = self._sights.look(folder, wait_s, anew=wait_s > READ_S)
        if sight.root_commit or sight.remote:
            return self._settled(self._of_repository(sight), folder)
        if sight.id:
            return self._settled(self._of_file(sight), folder)
        return self._settled(self._of_folder(sight, folder, host), folder)

    def _settled(self, place: PoolIdentity, cwd: str) -> PoolIdentity:
        """With the names that do not lead there yet, and at the end of the way from pool to pool."""
        names = tuple(name for name in place.names if self._leads(name) != place.pool)
        pool = self._aliases.home(place.pool)
        title = place.title or Path(place.root or cwd).name or cwd
        evidence = f"{place.evidence}; you joined that pool into this one" if pool != place.pool else place.evidence
        return place._replace(pool=pool, title=title, names=names, evidence=evidence)

    def _leads(self, name: str) -> str:
        alias = self._aliases.get(name)
        return alias.pool if alias else ""

    # --- repositories ------------------------------------------------------------------------------------------------
    def _of_repository(self, sight: RepoEvidence) -> PoolIdentity:
        title = sight.remote.rsplit("/", 1)[-1] if sight.remote else Path(sight.folder).name
        shown = _shown(sight)
        for alias, why in (
            (self._aliases.get(of_repository(sight.root_commit, sight.remote)), shown),
            (self._same_checkout(sight), f"this checkout belonged to that project before; now it has {shown}"),
            (self._bound_folder(sight), shown),
            (self._same_file(sight), f"its id file says {sight.id!r}; it has {shown}"),
        ):
            if alias is not None:
                names = names_of(sight, "")
                bound = alias.by == "user"
                why = f"{why}; you bound it" if bound else why
                return PoolIdentity(alias.pool, title, sight.folder, why, names, sight, bound)
        pool = self._completed(sight)
        if pool:
            why = f"{shown}, which only one known project has"
        else:
            pool, why = f"project/{mark(sight.root_commit, sight.remote)}", shown
        return PoolIdentity(pool, title, sight.folder, why, names_of(sight, ""), sight)

    def _same_checkout(self, sight: RepoEvidence) -> Alias | None:
        """The checkout as it was seen before, if it still holds the same history: its remote was added or renamed."""
        alias = self._aliases.get(of_checkout(sight.checkout)) if sight.checkout else None
        if alias is None:
            return None
        known = self._repositories(alias.pool)
        same = any(
            (sight.root_commit and root == sight.root_commit) or (sight.remote and remote == sight.remote)
            for root, remote in known
        )
        return alias if same or not known else None

    def _bound_folder(self, sight: RepoEvidence) -> Alias | None:
        """The user's word on a folder that became a repository since."""
        alias = self._aliases.get(of_folder(sight.folder)) if sight.folder else None
        return alias if alias is not None and alias.by == "user" else None

    def _same_file(self, sight: RepoEvidence) -> Alias | None:
        """The id file of a folder that became a repository since; a fork carries it too, and is another project."""
        alias = self._aliases.get(of_file(sight.id)) if sight.id else None
        if alias is None:
            return None
        remotes = {remote for _, remote in self._repositories(alias.pool) if remote}
        return alias if not remotes or not sight.remote or sight.remote in remotes else None

    def _completed(self, sight: RepoEvidence) -> str:
        """The one pool that knows half of what is seen here, and whose other half is not known yet; "" if none."""
        pools: set[str] = set()
        for alias in self._aliases.of_root(sight.root_commit):
            if not sight.remote or not any(remote for _, remote in self._repositories(alias.pool)):
                pools.add(alias.pool)
        for alias in self._aliases.of_remote(sight.remote):
            if not sight.root_commit or not any(root for root, _ in self._repositories(alias.pool)):
                pools.add(alias.pool)
        pools.discard(PERSONAL)
        return pools.pop() if len(pools) == 1 else ""

    def _repositories(self, pool: str) -> list[tuple[str, str]]:
        found = (parts_of(alias.name) for alias in self._aliases.of_pool(pool))
        return [pair for pair in found if any(pair)]

    def alike(self, place: PoolIdentity) -> list[tuple[str, str]]:
        """Other pools that share a root commit or a remote with a place, each with what they share."""
        found: dict[str, str] = {}
        roots, remotes = self._aliases.of_root(place.sight.root_commit), self._aliases.of_remote(place.sight.remote)
        shared = [(alias, "same root commit, different remote") for alias in roots]
        shared += [(alias, "same remote, different root commit") for alias in remotes]
        for alias, what in shared:
            pool = self._aliases.home(alias.pool)
            if pool != place.pool:
                found.setdefault(pool, what)
        return list(found.items())

    # --- folders without git -----------------------------------------------------------------------------------------
    def _of_file(self, sight: RepoEvidence) -> PoolIdentity:
        alias = self._aliases.get(of_file(sight.id))
        pool = alias.pool if alias else f"project/{mark('id', sight.id)}"
        why = f"the id file in {sight.folder} says {sight.id}"
        bound = alias is not None and alias.by == "user"
        return PoolIdentity(pool, Path(sight.folder).name, sight.folder, why, names_of(sight, ""), sight, bound)

    def _of_folder(self, sight: RepoEvidence, folder: str, host: str) -> PoolIdentity:
        known = self._remembered(folder)
        if known is None:
            why = f"{sight.why}, and nothing is known of it"
            names = (of_folder(folder),)
            return PoolIdentity(f"unbound/{mark(host, folder)}", "", folder, why, names, sight)
        alias, where = known
        what = "you bound it" if alias.by == "user" else "the folder belonged to this project before"
        why = f"{sight.why}; {'' if where == folder else f'of {where}: '}{what}"
        if alias.pool.startswith("unbound/"):
            why = f"{sight.why}, and nothing is known of it"
        return PoolIdentity(alias.pool, "", where, why, (), sight, alias.by == "user")

    def _remembered(self, folder: str) -> tuple[Alias, str] | None:
        """The nearest folder at or above this one that is known; an unbound one counts for itself alone."""
        for each in (folder, *map(str, Path(folder).parents)):
            alias = self._aliases.get(of_folder(each))
            if alias is not None and (each == folder or not alias.pool.startswith("unbound/")):
                return alias, each
        return None


def _shown(sight: RepoEvidence) -> str:
    parts = (
        f"root commit {sight.root_commit[:12]}" if sight.root_commit else "",
        f"remote {sight.remote}" if sight.remote else "",
    )
    shown = " and ".join(part for part in parts if part)
    return f"{shown} ({sight.why})" if sight.why else shown
