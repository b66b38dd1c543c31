"""The pools service: which pool a folder belongs to and reads, and `memd scope`, `memd leave` and agents (P1-P5).

Invariants: a pool and the pointer of its project are opened before the session that feeds them; `why` writes nothing; a
record changes pools only by a `moved` operation and keeps its id, and loses its key if a live record there has it; a
binding or leaving can be reversed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.event import VISIBILITIES, Origin, Repository, Visibility
from ....protocol.instant import checked
from ....protocol.operation import (
    Added,
    AliasAdded,
    AnyOperation,
    Decision,
    Moved,
    PoolOpened,
    SessionOpened,
    ShareClosed,
    Updated,
)
from ....protocol.record import LIVE, Record, Signal, learning_order, record_id
from ....protocol.reply import PoolList, PoolSummary
from ....protocol.request import BindScope, LeaveProject, MoveRecords, Pools, WhyScope
from ....protocol.scope import (
    LONGEST_NAME,
    Agent,
    Bound,
    Left,
    OpenAgent,
    RecordsMoved,
    Scope,
    concern_name,
    plain_concern,
)
from ....stages.batch import PERSONAL
from ...projections import project_pointer
from ...projections.aliases import of_folder, of_pool
from ...projections.placement import agent_pool, visible_to
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from ...world import World
from ..service import Handlers, Service, owner
from .identity import READ_S, Identity, PoolIdentity, is_project, names_of
from .repo_probe import RepoEvidence

PROJECT = "project"
"""Stands for the project of the folder, where a client names a pool to write to."""


class PoolOpening:
    """Opens pools on the write thread."""

    def __init__(self, stores: Stores, identity: Identity, directory: PoolDirectory) -> None:
        self._stores, self._identity, self._directory = stores, identity, directory

    def pool(self, origin: Origin, at: str) -> str:
        """Return the project pool of an origin, opened if it is new; "" for the personal pool."""
        if not origin.cwd and origin.repository is None:
            return ""
        place = self._identity.place(origin.cwd, origin.repository)
        self.open(place, at)
        return "" if place.pool == PERSONAL else place.pool

    def named(self, pool: str, origin: Origin, at: str) -> str:
        """Return the full name of a pool to write to; the project of an origin is opened if it is new.

        Raises NotFound for an unknown pool, InvalidRequest where the origin has no project.
        """
        if pool != PROJECT:
            return self._directory.writable(pool)
        place = self._identity.place(origin.cwd, origin.repository)
        if not is_project(place.pool):
            raise InvalidRequest(
                f"{origin.cwd or 'this request'} belongs to no project",
                hint="name a project's folder (--cwd) or its pool (--pool); `memd scope bind --new` makes a project",
            )
        self.open(place, at)
        return place.pool

    def open(self, place: PoolIdentity, at: str) -> None:
        """Write a new pool, and the new names that lead to it."""
        operations: list[AnyOperation] = []
        new = place.pool != PERSONAL and self._stores.sources.pool(place.pool) is None
        if new:
            roots = (place.root,) if place.root else ()
            operations.append(PoolOpened(pool=place.pool, title=place.title, roots=roots, evidence=place.evidence))
        if place.names:
            operations.append(AliasAdded(pool=place.pool, names=place.names, evidence=place.evidence))
        if operations:
            self._stores.commit(operations)
        if new and is_project(place.pool):
            self.point(place.pool, place.title, place.probed.remote, at)

    def point(self, pool: str, title: str, remote: str, at: str) -> None:
        """Open the pointer of a project, unless it was opened before."""
        if self._stores.records.get(project_pointer.pointer_id(pool)) is not None:
            return
        self._stores.take([project_pointer.seen(pool, title, at)])
        operations: list[AnyOperation] = []
        if self._stores.sources.session(project_pointer.DOCUMENT) is None:
            host, session = project_pointer.DOCUMENT.split(":")
            origin = Origin(host=host, session=session, live=False)
            operations.append(SessionOpened(document=project_pointer.DOCUMENT, origin=origin, project="", at=at))
        self._stores.commit([*operations, project_pointer.opened(pool, title, remote, at)])


FOLDERS = 256
"""Most folders in the cache."""


class FolderPools:
    """Resolves folders to the pools that a question reads, cached until the evidence or the stores change.

    Invariants: the personal pool comes before the project's; outside a project only the personal pool is read, and the
    folder's unbound pool; a project that the user left is not read.
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
        evidence, seq = self._identity.probe(cwd), self._stores.tables.applied_seq
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


GROUP = 500
"""Most records that one operation moves."""


class PoolsService(Service):
    """Shows and changes which folder belongs to which pool."""

    name = "pools"

    def __init__(
        self,
        stores: Stores,
        identity: Identity,
        directory: PoolDirectory,
        folder_pools: FolderPools,
        world: World,
        distil: Callable[[], None],
    ) -> None:
        """`distil`: processes captures soon; the pointer of a project is one."""
        self._stores, self._identity, self._directory = stores, identity, directory
        self._folder_pools, self._world, self._distil = folder_pools, world, distil
        self._opening = PoolOpening(stores, identity, directory)

    @property
    def handlers(self) -> Handlers:
        return {
            Pools: owner("fast", self.list),
            WhyScope: owner("slow", self.why),
            BindScope: owner("write", self.bind),
            MoveRecords: owner("write", self.move),
            LeaveProject: owner("write", self.leave),
            OpenAgent: owner("write", self.open_agent),
        }

    def start(self) -> None:
        """Load libgit2 in the background if projects exist."""
        if self._stores.sources.pools():
            self._identity.prepare()

    def list(self, request: Pools) -> PoolList:
        tally = self._stores.records.tally()
        mine = PoolSummary(pool=PERSONAL, title="you", counts=tally.get(PERSONAL, {}))
        others = (
            PoolSummary(
                pool=opened.pool,
                title=opened.title,
                counts=tally.get(opened.pool, {}),
                role=opened.role,
                perspectives=opened.perspectives,
            )
            for opened in self._stores.sources.pools()
            if opened.pool != PERSONAL
        )
        return PoolList(pools=(mine, *others))

    def open_agent(self, request: OpenAgent) -> Agent:
        """Open an agent's pool, or change its role and perspectives (P5). Raises InvalidRequest for a bad name."""
        pool = agent_pool(request.agent)
        known = self._stores.sources.pool(pool)
        role = request.role or (known.role if known else "")
        concerns = {concern_name(concern): plain_concern(concern) for concern in request.perspectives}
        if "" in concerns or any(len(name) > LONGEST_NAME for name in concerns):
            raise InvalidRequest(
                f"a perspective has a name of 1 to {LONGEST_NAME} characters",
                hint='write it as "security" or "security: cve, token"',
            )
        perspectives = tuple(concerns.values()) or (known.perspectives if known else ())
        opened = PoolOpened(
            pool=pool,
            title=request.agent,
            evidence="you opened it",
            role=role,
            perspectives=perspectives,
            prompt=request.prompt or (known.prompt if known else ""),
        )
        if opened != known:
            self._stores.commit([opened])
        return Agent(pool=pool, role=role, perspectives=perspectives, new=known is None, has_prompt=bool(opened.prompt))

    def why(self, request: WhyScope) -> Scope:
        """Return the pool of a folder with the evidence. Raises InvalidRequest without a folder."""
        place = self._place(request)
        pool = self._stores.sources.pool(place.pool)
        return Scope(
            folder=request.cwd,
            pool=place.pool,
            title=self._directory.title(place.pool) or place.title,
            evidence=place.evidence,
            reads=self._folder_pools.of(request.cwd, request.repository),
            seen=place.probed.state,
            root_commit=place.probed.root_commit,
            remote=place.probed.remote,
            names=tuple(alias.name for alias in self._stores.aliases.of_pool(place.pool) if place.pool != PERSONAL),
            alike=tuple(self._identity.alike(place)),
            records=self._live(place.pool),
            left=self._directory.is_left(place.pool),
            is_open=pool is not None or place.pool == PERSONAL,
            bound=place.bound,
        )

    def _place(self, request: WhyScope | BindScope | LeaveProject) -> PoolIdentity:
        if not request.cwd and request.repository is None:
            raise InvalidRequest("no folder was named", hint="send `cwd`, or a `repository` hint")
        return self._identity.place(request.cwd, request.repository)

    def _live(self, pool: str) -> int:
        counts = self._stores.records.tally().get(pool, {})
        return sum(number for status, number in counts.items() if status in LIVE)

    # --- binding -----------------------------------------------------------------------------------------------------
    def bind(self, request: BindScope) -> Bound:
        """Bind a folder's names to a pool. Raises NotFound for an unknown pool, InvalidRequest, NaiveTime."""
        checked(request.at)
        place = self._place(request)
        pool = self._target(request, place)
        names = names_of(place.probed, request.cwd)
        joins = place.pool != pool and (place.pool.startswith("unbound/") or (request.join and is_project(place.pool)))
        if joins and self._stores.sources.pool(place.pool) is not None:
            names = (*names, of_pool(place.pool))
        self._stores.commit(list(self._leading(names, pool, place)))
        moved, unkeyed = self._bring(self._records_of(place.pool), pool, "its pool was bound") if joins else ([], [])
        stays = 0 if joins or place.pool in (pool, PERSONAL) else self._live(place.pool)
        self._distil()
        return Bound(
            folder=request.cwd,
            pool=pool,
            title=self._directory.title(pool),
            was=place.pool,
            names=names,
            moved=len(moved),
            unkeyed=tuple(unkeyed),
            stays=stays,
        )

    def _target(self, request: BindScope, place: PoolIdentity) -> str:
        """Return the pool to bind to, opened if it is new."""
        if request.pool:
            return self._directory.named(request.pool)
        own = place.probed.state == "folder" and place.probed.id and self._stores.sources.pool(place.pool) is None
        pool = place.pool if own and is_project(place.pool) else f"project/{self._world.token(8).hex()}"
        title = request.title or place.title or Path(request.cwd).name
        roots = (place.root or request.cwd,)
        self._stores.commit([PoolOpened(pool=pool, title=title, roots=roots, evidence="you bound a folder to it")])
        self._opening.point(pool, title, place.probed.remote, request.at)
        return pool

    def _leading(self, names: Sequence[str], pool: str, place: PoolIdentity) -> Iterable[AnyOperation]:
        """Yield the aliases, bound by the user except for a repository's folder, which may get another one."""
        beside = of_folder(place.probed.folder) if place.probed.state == "repository" else ""
        given = tuple(name for name in names if name != beside)
        if self._stores.aliases.home(pool) != pool:  # it was joined to another pool and becomes independent again
            given = (*given, of_pool(pool))
        yield AliasAdded(pool=pool, names=given, evidence=f"you bound {place.root or 'it'} to it", by="user")
        if beside in names:
            yield AliasAdded(pool=pool, names=(beside,), evidence=f"you bound {place.root} to it")

    # --- moving ------------------------------------------------------------------------------------------------------
    def move(self, request: MoveRecords) -> RecordsMoved:
        """Move or copy records into another pool, or change who may see them. Raises NotFound for an unknown id or
        pool, InvalidRequest."""
        if not request.ids:
            raise InvalidRequest("no record was named", hint="`memd list` shows ids")
        if bool(request.pool) == bool(request.visibility):
            raise InvalidRequest("name a pool or a visibility", hint="memd scope move ID... POOL")
        records = [self._find(id) for id in dict.fromkeys(request.ids)]
        if request.visibility:
            return self._show(records, request.visibility, request.dry_run)
        pool = self._directory.writable(request.pool)
        if request.copy:
            return self._copy(records, pool, request.dry_run)
        there = tuple(record.id for record in records if record.pool == pool)
        going = [record for record in records if record.pool != pool]
        moved, unkeyed = self._bring(going, pool, "you moved it", dry_run=request.dry_run)
        return RecordsMoved(
            pool=pool,
            title=self._directory.title(pool),
            moved=tuple(moved),
            there=there,
            unkeyed=tuple(unkeyed),
            dry_run=request.dry_run,
        )

    def _copy(self, records: Sequence[Record], pool: str, dry_run: bool) -> RecordsMoved:
        """Add copies to a pool, each with the record that it comes from (R9). A copy has no key that a record of the
        pool holds."""
        there: list[str] = []
        copies: list[Record] = []
        for record in records:
            self._require_live(record)
            id = record_id(pool, "copy", record.id, 0, 0)
            if record.pool == pool or self._stores.records.get(id) is not None:
                there.append(record.id)
                continue
            is_free = record.key and not self._stores.records.holding_key(pool, record.key)
            copies.append(
                replace(
                    record if is_project(pool) else visible_to(record, "private"),
                    id=id,
                    pool=pool,
                    copy_of=record.id,
                    placed=True,
                    pinned=False,
                    layer="L3",
                    rev=1,
                    key=record.key if is_free else "",
                    learned_at=0,
                    supersedes=(),
                    relates_to=(),
                    signal=Signal(importance=record.signal.importance),
                )
            )
        decision = Decision(action="add", reason="the user copied it from another pool")
        if copies and not dry_run:
            self._stores.commit([Added(record=copy, decision=decision) for copy in copies])
        return RecordsMoved(
            pool=pool,
            title=self._directory.title(pool),
            moved=tuple(copy.copy_of for copy in copies),
            there=tuple(there),
            copies=tuple(copy.id for copy in copies),
            unkeyed=tuple(copy.id for copy in copies if self._stores.records.named(copy.copy_of).key != copy.key),
            dry_run=dry_run,
        )

    def _show(self, records: Sequence[Record], visibility: Visibility, dry_run: bool) -> RecordsMoved:
        """Change who may see records, and record it in their history (P7)."""
        changed: list[AnyOperation] = []
        there: list[str] = []
        for record in records:
            self._require_live(record)
            before = record.provenance.visibility
            steps = VISIBILITIES.index(visibility) - VISIBILITIES.index(before)
            if not steps:
                there.append(record.id)
                continue
            if steps > 1:
                raise InvalidRequest(f"{record.id[:8]} is {before}", hint=f"make it {VISIBILITIES[1]} first")
            if steps > 0 and not is_project(record.pool):
                raise InvalidRequest(
                    f"{record.id[:8]} is not in a project, so it stays private",
                    hint="`memd scope move ID POOL` moves it into a project first",
                )
            after = replace(visible_to(record, visibility), rev=record.rev + 1, placed=True)
            why = f"the user made it {visibility}, from {before}"
            changed.append(Updated(record=after, decision=Decision(action="update", reason=why)))
        if changed and not dry_run:
            self._stores.commit(changed)
        moved = tuple(record.id for record in records if record.id not in there)
        return RecordsMoved(pool="", title="", visibility=visibility, moved=moved, there=tuple(there), dry_run=dry_run)

    def _require_live(self, record: Record) -> None:
        if record.status not in LIVE:
            raise InvalidRequest(f"{record.id[:8]} is {record.status}", hint="`memd list` shows live records")

    def _find(self, id: str) -> Record:
        try:
            record = self._stores.records.named(id)
        except NotFound as error:
            raise NotFound(f"{error.message}; memd moved no record", hint=error.hint) from error
        if record.id == project_pointer.pointer_id(record.key.rsplit(" ", 1)[-1]):
            raise InvalidRequest(
                "this record says which projects you work on", hint="`memd leave` ends your work on a project"
            )
        return record

    def _records_of(self, pool: str) -> list[Record]:
        return [record for record in self._stores.records.everything() if record.pool == pool]

    def _bring(
        self, records: Sequence[Record], pool: str, reason: str, *, dry_run: bool = False
    ) -> tuple[list[str], list[str]]:
        """Move records, all or none; return all ids, and those of records that lose their key. `dry_run`: move none."""
        taken: set[str] = set()
        unkeyed: list[str] = []
        newest_first = sorted(records, key=learning_order, reverse=True)
        for record in newest_first:
            if not record.key or record.status not in LIVE:
                continue
            if record.key in taken or self._stores.records.holding_key(pool, record.key):
                unkeyed.append(record.id)
            taken.add(record.key)
        ids = [record.id for record in records]
        groups = (ids[start : start + GROUP] for start in range(0, len(ids), GROUP))
        bare = set(unkeyed)
        alone = Decision(action="update", reason="it leaves its project, so only the user sees it")
        operations: list[AnyOperation] = [
            Updated(record=replace(visible_to(record, "private"), rev=record.rev + 1), decision=alone)
            for record in records
            if record.provenance.visibility != "private" and not is_project(pool)
        ]
        operations += [
            Moved(ids=tuple(group), pool=pool, reason=reason, unkeyed=tuple(id for id in group if id in bare))
            for group in groups
        ]
        if operations and not dry_run:
            self._stores.commit(operations)
        return ids, unkeyed

    # --- leaving -----------------------------------------------------------------------------------------------------
    def leave(self, request: LeaveProject) -> Left:
        """Close or reopen the pointer to a project; closing it also ends its sharing. Raises NotFound for an unknown
        project, InvalidRequest, NaiveTime."""
        checked(request.at)
        pool = self._directory.named(request.pool) if request.pool else self._place(request).pool
        opened = self._stores.sources.pool(pool)
        if opened is None or not is_project(pool):
            where = request.pool or request.cwd
            raise NotFound(
                f"{where} is not a known project", hint="`memd scope why` shows what memd knows about the folder"
            )
        self._opening.point(pool, opened.title, "", request.at)  # a project of an older memd may have no pointer
        left = self._directory.is_left(pool)
        edge = self._stores.records.get(project_pointer.pointer_id(pool))
        assert edge is not None
        share = None if request.back else self._stores.sharing.share(self._stores.aliases.home(pool))
        operations: list[AnyOperation] = []
        if request.back and left:
            operations.append(project_pointer.returned(edge, request.at))
        elif not request.back and not left:
            operations.append(project_pointer.left(pool, request.at))
        if share is not None and share.is_open:
            operations.append(ShareClosed(pool=share.opened.pool))
        if operations:
            self._stores.commit(operations)
        self._distil()
        ended = bool(operations) and isinstance(operations[-1], ShareClosed)
        return Left(pool=pool, title=opened.title, records=self._live(pool), left=not request.back, unshared=ended)
