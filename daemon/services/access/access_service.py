"""The access service: `grant`, `revoke` and `grants` decide who may read what (A1, A3).

Invariants: a pass is shown once and stored nowhere; one commit hides everything from a revoked source from all reads,
and one commit shows it again.
"""

from __future__ import annotations

from typing import Protocol

from ....protocol.access import Grant, Grants, GrantState, ListGrants, PassGranted, Revocation, Revoke
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.operation import Granted, Revoked
from ...projections.pool_directory import PoolDirectory
from ...projections.stores import Stores
from ...world import World
from ..service import Handlers, Reader, Service, owner
from .passes import Passes, check_source, covers

ID_BYTES = 8
ID_SHOWN = 64
"""Most characters of a wrong id that an error repeats: somebody may send the pass itself, which is a secret."""


class RevocationEffects(Protocol):
    """Hides the records of a revoked source, and shows them again."""

    def hide_source(self, documents: tuple[str, ...], revoked: Revoked) -> tuple[int, int]:
        """Commit `revoked` with what it hides; return how many records are hidden, and how many are active again."""
        ...

    def show_revoked(self, documents: tuple[str, ...]) -> int:
        """Show what revoking these documents hid; return how many records."""
        ...


class AccessService(Service):
    """Grants and revocations of one home."""

    name = "access"

    def __init__(
        self, stores: Stores, passes: Passes, directory: PoolDirectory, effects: RevocationEffects, world: World
    ) -> None:
        self._stores, self._passes, self._directory = stores, passes, directory
        self._effects, self._world = effects, world

    @property
    def handlers(self) -> Handlers:
        return {
            Grant: owner("write", self.grant),
            Revoke: owner("write", self.revoke),
            ListGrants: owner("slow", self.list),
        }

    def start(self) -> None:
        """Load the libraries that verify passes, in the background."""
        self._passes.prepare()

    def grant(self, request: Grant) -> PassGranted:
        """Sign a pass, or show revoked sources again. Raises InvalidRequest, NotFound, Denied."""
        return self._show_again(request) if request.back else self._grant(request)

    def list(self, request: ListGrants) -> Grants:
        return Grants(grants=tuple(self._stores.grants.all()), sources=self._stores.grants.sources())

    def _grant(self, request: Grant) -> PassGranted:
        subject = request.subject.strip()
        if not subject:
            raise InvalidRequest("the pass has no holder", hint="`memd grant NAME`: an agent, a tool, a person")
        expires_at = self._world.now() // 1_000_000 * 1_000_000 + int(request.for_s * 1e6)
        reader = Reader(
            grant=self._world.token(ID_BYTES).hex(),
            subject=subject,
            pools=tuple(dict.fromkeys(self._directory.named(pool) for pool in request.pools)),
            sources=tuple(dict.fromkeys(check_source(source) for source in request.sources)),
            expires_at=expires_at,
        )
        token = self._passes.sign(reader)
        made = Granted(
            grant=reader.grant,
            subject=reader.subject,
            pools=reader.pools,
            sources=reader.sources,
            expires_at=from_micros(expires_at),
        )
        self._stores.commit([made])
        return PassGranted(token=token, grant=self._stores.grants.get(reader.grant))

    def _show_again(self, request: Grant) -> PassGranted:
        if request.subject or request.pools or not request.sources:
            raise InvalidRequest("no revoked source was named", hint="name only revoked sources")
        revoked = {entry.source for entry in self._stores.grants.sources()}
        if unknown := [source for source in request.sources if source not in revoked]:
            raise NotFound(f"{', '.join(unknown)} is not revoked", hint="`memd grants` lists revoked sources")
        documents = self._documents(request.sources)
        self._stores.commit([Granted(sources=request.sources)])
        return PassGranted(shown=self._effects.show_revoked(documents))

    def revoke(self, request: Revoke) -> Revocation:
        """Revoke a grant or a source. Raises InvalidRequest, NotFound."""
        if bool(request.id) == bool(request.source):
            raise InvalidRequest(
                "no pass or source was named", hint="give the id of a pass or a source; `memd grants` lists both"
            )
        if request.id:
            grant = self._grant_of(request.id)
            if not grant.revoked_at:
                self._stores.commit([Revoked(grants=(grant.id,))])
            return Revocation(grants=(grant.id,))
        sources = self._named(check_source(request.source))
        documents = self._documents(sources)
        hidden, again = self._effects.hide_source(documents, Revoked(sources=sources))
        return Revocation(documents=documents, hidden=hidden, believed_again=again)

    def _grant_of(self, id: str) -> GrantState:
        grants = [grant for grant in self._stores.grants.all() if grant.id.startswith(id.strip().lower())]
        if len(grants) > 1:
            raise NotFound(
                f"several passes start with {id!r}", hint="give more characters; `memd grants` lists the ids"
            )
        if not grants:
            raise NotFound(
                f"memd issued no pass with this id{'' if len(id) > ID_SHOWN else f': {id!r}'}",
                hint="`memd grants` lists the passes that memd issued. memd cannot revoke the pass of another issuer: "
                f"delete the issuer's public key from {self._passes.trusted}, which ends all its passes at once",
            )
        return grants[0]

    def _named(self, name: str) -> tuple[str, ...]:
        """Return the source of that name, or the document of a session that is named without its host."""
        known = self._stores.sources.sessions()
        if any(covers(name, document) for document in known):
            return (name,)
        documents = sorted(document for document in known if document.partition(":")[2] == name)
        if len(documents) != 1:
            problem = f"several sessions are named {name!r}" if documents else f"memd has no captures from {name!r}"
            raise NotFound(problem, hint="name a host (`claude-code`), or a session as `memd show ID` names it")
        return tuple(documents)

    def _documents(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        known = self._stores.sources.sessions()
        return tuple(sorted(name for name in known if any(covers(source, name) for source in sources)))
