"""`grant`, `revoke`, `grants`: the user's say over who reads what (A1, A3).

Comes in: requests. Goes out: a pass, or what is no longer shown. Invariants: a pass is told once and kept nowhere; what
a revoked source led to leaves every read with the one commit that says so, and comes back the same way; on the
committer's thread, but for the list.
"""

from __future__ import annotations

from ....protocol.access import Grant, Grants, GrantState, ListGrants, PassGranted, Revocation, Revoke
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.instant import from_micros
from ....protocol.operation import Granted, Revoked
from ....protocol.reply import AnyData
from ...projections.stores import Stores
from ...world import World
from ..corrections.undo import SessionUndo
from ..service import Reader
from .access import ReadScope
from .passes import Passes, check_source, covers

AnyGranting = Grant | Revoke | ListGrants
ID_BYTES = 8


class PassGranting:
    """Grants and revocations of one home."""

    def __init__(self, stores: Stores, access: ReadScope, passes: Passes, undoing: SessionUndo, world: World) -> None:
        self._stores, self._access, self._passes = stores, access, passes
        self._undoing, self._world = undoing, world

    def answer(self, request: AnyGranting) -> AnyData:
        """Any of these requests."""
        match request:
            case Grant():
                return self._back(request) if request.back else self._grant(request)
            case Revoke():
                return self._revoke(request)
            case ListGrants():
                return Grants(grants=tuple(self._stores.grants.all()), sources=self._stores.grants.sources())

    def _grant(self, request: Grant) -> PassGranted:
        subject = request.subject.strip()
        if not subject:
            raise InvalidRequest("a pass for whom?", hint="`memd grant NAME`: an agent, a tool, a person")
        expires_at = self._world.now() // 1_000_000 * 1_000_000 + int(request.for_s * 1e6)
        reader = Reader(
            grant=self._world.token(ID_BYTES).hex(),
            subject=subject,
            pools=tuple(dict.fromkeys(self._access.named(pool) for pool in request.pools)),
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

    def _back(self, request: Grant) -> PassGranted:
        if request.subject or request.pools or not request.sources:
            raise InvalidRequest("show what again?", hint="name revoked sources and nothing else")
        revoked = {each.source for each in self._stores.grants.sources()}
        if unknown := [source for source in request.sources if source not in revoked]:
            raise NotFound(f"{', '.join(unknown)} is not revoked", hint="`memd grants` lists what is")
        documents = self._documents(request.sources)
        self._stores.commit([Granted(sources=request.sources)])
        return PassGranted(shown=self._undoing.show_revoked(documents))

    def _revoke(self, request: Revoke) -> Revocation:
        if bool(request.id) == bool(request.source):
            raise InvalidRequest("revoke what?", hint="the id of a grant, or a source: `memd grants` lists both")
        if request.id:
            grant = self._found(request.id)
            if not grant.revoked_at:
                self._stores.commit([Revoked(grants=(grant.id,))])
            return Revocation(grants=(grant.id,))
        sources = self._named(check_source(request.source))
        documents = self._documents(sources)
        hidden, again = self._undoing.hide_source(documents, Revoked(sources=sources))
        return Revocation(documents=documents, hidden=hidden, believed_again=again)

    def _found(self, id: str) -> GrantState:
        found = [each for each in self._stores.grants.all() if each.id.startswith(id.strip().lower())]
        if len(found) != 1:
            raise NotFound(f"{'several grants start with' if found else 'no grant'} {id!r}", hint="see `memd grants`")
        return found[0]

    def _named(self, name: str) -> tuple[str, ...]:
        """The source of that name: as it stands, or the document of a session that is named without its host."""
        known = self._stores.sources.sessions()
        if any(covers(name, document) for document in known):
            return (name,)
        found = sorted(each for each in known if each.partition(":")[2] == name)
        if len(found) != 1:
            what = f"several sessions are named {name!r}" if found else f"nothing came from {name!r}"
            raise NotFound(what, hint="name a host (`claude-code`), or a session as `memd show ID` names it")
        return tuple(found)

    def _documents(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        known = self._stores.sources.sessions()
        return tuple(sorted(each for each in known if any(covers(source, each) for source in sources)))
