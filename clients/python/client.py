"""The Python client: one method for each request, over one socket, with a deadline.

Comes in: a wish. Goes out: the daemon's typed reply, or the error it raised, rebuilt. Invariants: nothing of the daemon
is imported; a call ends by its deadline; a reply that comes too late is never taken for another request's; a client is
used by one thread at a time. `capture_or_spool` and `remember_or_spool` put what they can't deliver into the spool.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

import msgspec

from ...protocol import reply, request, scope, wire
from ...protocol.errors import DaemonDown, DeadlineExceeded, InvalidRequest, MemdError, Unavailable
from ...protocol.event import AnyEvent, Origin
from ...protocol.places import Places, why_disabled
from ...protocol.places import places as places_of
from ...protocol.record import Kind, Record, Status
from .asking import AskingRequests
from .giving import GivingRequests
from .lifetime import LifetimeRequests
from .running import RunningRequests, nothing
from .spool import Drained, Spool, Spooled, Waiting
from .zmtp import Connection, Deadline

T = TypeVar("T")

QUICK_MS, OTHER_MS = 2_000, 10_000
"""Deadline of a request, connecting included: of one that memd answers from memory, and of any other."""


class Client(RunningRequests, GivingRequests, AskingRequests, LifetimeRequests):
    """A connection that is made when it is first needed, and made again when the daemon was restarted."""

    def __init__(
        self, places: Places | None = None, deadline_ms: float | None = None, token: str | None = None
    ) -> None:
        """`token`: the access pass to ask under (A1), by default the one in `MEMD_PASS`."""
        self.places = places or places_here()
        self._token = os.environ.get("MEMD_PASS", "") if token is None else token
        self._deadline_ms = deadline_ms
        self._connection: Connection | None = None
        self._rid = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up; the next request connects again."""
        if self._connection:
            self._connection.close()
            self._connection = None

    # --- writes --------------------------------------------------------------------------------------------------
    def capture(self, origin: Origin, events: Sequence[AnyEvent]) -> reply.Taken:
        """Hands events to the archive. They are durable when this returns (W1)."""
        return self.ask(request.Capture(origin=origin, events=tuple(events)), reply.Taken)

    def remember(self, wish: request.Remember | str, *, cwd: str = "", host: str = "python") -> reply.Remembered:
        """Remembers a text; the record can be recalled when this returns (W2)."""
        return self.ask(remembering(wish, cwd=cwd, host=host), reply.Remembered)

    def edit(self, id: str, text: str) -> reply.Remembered:
        """Puts a record into other words; the id stays."""
        return self.ask(request.Edit(id=id, text=text, at=now()), reply.Remembered)

    def distil(self) -> reply.Done:
        """Asks for what is pending to be distilled now."""
        return self.ask(request.Distil(), reply.Done)

    def stop(self) -> reply.Done:
        """Asks the daemon to finish what it acknowledged and to end."""
        return self.ask(request.Stop(), reply.Done)

    # --- writes that may wait for the daemon (W10) -----------------------------------------------------------------
    def capture_or_spool(self, origin: Origin, events: Sequence[AnyEvent]) -> reply.Taken | Spooled:
        """`capture`, or the spool when the daemon can't be reached in time. Raises TooLarge when the spool is full."""
        wish = request.Capture(origin=origin, events=tuple(events))
        return self._or_spool(wish, reply.Taken)

    def remember_or_spool(
        self, wish: request.Remember | str, *, cwd: str = "", host: str = "python"
    ) -> reply.Remembered | Spooled:
        """`remember`, or the spool when the daemon can't be reached in time. Raises TooLarge when the spool is full."""
        return self._or_spool(remembering(wish, cwd=cwd, host=host), reply.Remembered)

    def _or_spool(self, wish: Waiting, data: type[T]) -> T | Spooled:
        try:
            return self.ask(wish, data)
        except Unavailable as error:
            return self.spool.append(wish, reason=error.message)

    @property
    def disabled(self) -> str:
        """What switches memd off, "" while it is on (W14)."""
        return why_disabled(os.environ, self.places)

    @property
    def spool(self) -> Spool:
        """What waits on this machine until the daemon is reached."""
        return Spool(self.places.spool)

    def drain(self) -> Drained:
        """Delivers what waits in the spool, in order; stops at the first request that can't be delivered now."""
        return Drained() if self.disabled else self.spool.drain(self._deliver)

    def _deliver(self, wish: Waiting) -> reply.Taken | reply.Remembered:
        if not isinstance(wish, request.Capture):
            return self.ask(wish, reply.Remembered)
        taken = self.ask(wish, reply.Taken)
        if taken.refused:  # nobody else would ever hear of it: the spool keeps such a request aside
            first = taken.refused[0].problem
            raise InvalidRequest(f"{len(taken.refused)} events refused: {first.message}", hint=first.hint)
        return taken

    # --- reads -------------------------------------------------------------------------------------------------------
    def get(self, id: str, *, as_of: str = "", believed_at: str = "") -> Record:
        """One record by its id, or by an unambiguous beginning of it; as it stood then (Q12). Raises NotFound."""
        return self.ask(request.Get(id=id, as_of=as_of, believed_at=believed_at), Record)

    def list(
        self,
        *,
        pools: Sequence[str] = (),
        kinds: Sequence[Kind] = (),
        statuses: Sequence[Status] = (),
        type: str = "",
        document: str = "",
        key: str = "",
        since: str = "",
        until: str = "",
        as_of: str = "",
        believed_at: str = "",
        after: str = "",
        limit: int = 50,
    ) -> reply.Page:
        """A page of records, newest first."""
        wish = request.List(
            pools=tuple(pools),
            kinds=tuple(kinds),
            statuses=tuple(statuses),
            type=type,
            document=document,
            key=key,
            since=since,
            until=until,
            as_of=as_of,
            believed_at=believed_at,
            after=after,
            limit=limit,
        )
        return self.ask(wish, reply.Page)

    def why(self, id: str) -> reply.Explained:
        """The whole way of a record, from the captured line to each decision (R4)."""
        return self.ask(request.Why(id=id), reply.Explained)

    def journal(self, after: int = 0, limit: int = 100) -> reply.Journaled:
        """Operations after `after`, in order (W8)."""
        return self.ask(request.Journal(after=after, limit=limit), reply.Journaled)

    def pools(self) -> reply.PoolList:
        """Every pool and what lies in it."""
        return self.ask(request.Pools(), reply.PoolList)

    def status(self) -> reply.StatusText:
        """What the daemon last did, what waits, what failed (U6)."""
        return self.ask(request.GetStatus(), reply.StatusText)

    def job(self, id: str) -> reply.JobState:
        """How far a long piece of work has come."""
        return self.ask(request.GetJob(id=id), reply.JobState)

    def verify(self) -> reply.JobState:
        """Starts the check of everything that is stored."""
        return self.ask(request.Verify(), reply.JobState)

    def rebuild(self, name: str = "all") -> reply.JobState:
        """Starts making a projection anew, or all of them (U3)."""
        return self.ask(request.Rebuild(name=name), reply.JobState)

    def models(self) -> reply.ModelList:
        """The models there are, and how far the way to another one is (P-14)."""
        return self.ask(request.ListModels(), reply.ModelList)

    def use_model(self, folder: str = "default") -> reply.JobState:
        """Starts to check the model in an absolute path, or the package's own, and to choose it (P-14)."""
        return self.ask(request.UseModel(folder=folder), reply.JobState)

    # --- which pool is whose -------------------------------------------------------------------------------------
    def why_scope(self, cwd: str) -> scope.Scope:
        """The pool of a folder, and by which evidence (P3)."""
        return self.ask(request.WhyScope(cwd=cwd), scope.Scope)

    def bind_scope(self, cwd: str, pool: str = "", *, title: str = "", join: bool = False) -> scope.Bound:
        """Says which pool a folder belongs to; without one, to a new one of its own. Raises NotFound."""
        return self.ask(request.BindScope(cwd=cwd, at=now(), pool=pool, title=title, join=join), scope.Bound)

    def move_records(self, ids: Sequence[str], pool: str) -> scope.RecordsMoved:
        """Puts records into another pool, all or none. Raises NotFound."""
        return self.ask(request.MoveRecords(ids=tuple(ids), pool=pool), scope.RecordsMoved)

    def leave(self, cwd: str = "", *, pool: str = "", back: bool = False) -> scope.Left:
        """Leaves a project, or comes back to it (P4). Raises NotFound."""
        return self.ask(request.LeaveProject(at=now(), cwd=cwd, pool=pool, back=back), scope.Left)

    # --- what should not be there any more -----------------------------------------------------------------------
    def preview_forget(
        self, ids: Sequence[str] = (), *, query: str = "", session: str = "", source: str = "", letter: int = 0
    ) -> reply.ForgetPlan:
        """What `forget` would take. Raises InvalidRequest without exactly one scope."""
        wish = request.PreviewForget(ids=tuple(ids), query=query, session=session, source=source, letter=letter)
        return self.ask(wish, reply.ForgetPlan)

    def forget(
        self, ids: Sequence[str] = (), *, query: str = "", session: str = "", source: str = "", letter: int = 0
    ) -> reply.JobState:
        """Starts to forget for good (T10). Raises InvalidRequest without exactly one scope."""
        wish = request.Forget(ids=tuple(ids), query=query, session=session, source=source, letter=letter)
        return self.ask(wish, reply.JobState)

    def undo(self, names: Sequence[str]) -> reply.JobState:
        """Starts to take sessions back, reversibly."""
        return self.ask(request.Undo(names=tuple(names)), reply.JobState)

    def redo(self, names: Sequence[str]) -> reply.JobState:
        """Starts to bring back what `undo` took."""
        return self.ask(request.Redo(names=tuple(names)), reply.JobState)

    def compact(self) -> reply.JobState:
        """Starts to give the disk back what nothing needs any more (P-20)."""
        return self.ask(request.Compact(), reply.JobState)

    def scan(self, *, dry_run: bool = True) -> reply.JobState:
        """Starts to look at what is stored with the rules for secrets of today; without `dry_run` each becomes a
        placeholder, for good (P-18)."""
        return self.ask(request.ScanSecrets(dry_run=dry_run), reply.JobState)

    # --- keeping -------------------------------------------------------------------------------------------------
    def backup(self, to: str = "", keep: int = 0) -> reply.JobState:
        """Starts a backup into an absolute path, or memd's own folder, where the newest `keep` stay."""
        return self.ask(request.Backup(to=to, keep=keep), reply.JobState)

    def backups(self, folder: str = "") -> reply.BackupList:
        """The finished backups in a folder, by default memd's own."""
        return self.ask(request.Backups(folder=folder), reply.BackupList)

    def expire(self, dry_run: bool = False) -> reply.JobState:
        """Starts the archive's retention (T10)."""
        return self.ask(request.Expire(dry_run=dry_run), reply.JobState)

    def disk_usage(self) -> reply.DiskUse:
        """Bytes on disk by part."""
        return self.ask(request.DiskUsage(), reply.DiskUse)

    def export(self, pools: Sequence[str] = (), after: str = "", limit: int = 200) -> reply.ExportPage:
        """A page of records with their history (P-25)."""
        return self.ask(request.Export(pools=tuple(pools), after=after, limit=limit), reply.ExportPage)

    def import_records(self, wish: request.ImportRecords) -> reply.RecordsImported:
        """Brings exported records in; they are durable when this returns."""
        return self.ask(wish, reply.RecordsImported)

    # --- the exchange -------------------------------------------------------------------------------------------
    def ask(self, wish: request.Request, data: type[T]) -> T:
        """Sends any request and waits for its reply. Raises DaemonDown, DeadlineExceeded, or the daemon's own error.

        While memd is disabled nothing is sent (W14): what captures or recalls gets an empty answer, anything else
        raises Disabled.
        """
        if why := why_disabled(os.environ, self.places):
            return nothing(wish, data, why)
        self._rid += 1
        body = encoded(msgspec.structs.replace(wish, rid=self._rid, token=wish.token or self._token))
        deadline = Deadline(self._deadline_ms or (QUICK_MS if request.is_quick(wish) else OTHER_MS))
        connection = self._connected(deadline)
        try:
            connection.send(body, deadline)
        except MemdError:
            self.close()
            raise
        try:
            return self._reply(connection, deadline, data)
        except DeadlineExceeded:
            raise
        except Unavailable:
            self.close()
            raise

    def _reply(self, connection: Connection, deadline: Deadline, data: type[T]) -> T:
        while True:
            body = connection.receive(deadline)
            # 0 is the answer to bytes that the daemon could not read, so it is ours; any other number is a late reply.
            if wire.head(body)[0] in (self._rid, 0):
                return wire.decode_reply(body, data)[1]

    def _connected(self, deadline: Deadline) -> Connection:
        if self._connection and self._connection.is_closed_by_peer():
            self.close()
        if not self._connection:
            self._connection = Connection(socket_path(self.places), deadline)
        return self._connection


def places_here() -> Places:
    """The places of this process's environment."""
    return places_of(os.environ, os.getuid())


def socket_path(places: Places) -> Path:
    """Where the daemon listens: what the socket file names, if that is there, else the usual place."""
    try:
        named = Path(places.socket_file.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return places.socket
    return named if named.is_absolute() and named.exists() else places.socket


def encoded(wish: request.Request) -> bytes:
    """Bytes of a request. Raises InvalidRequest, TooLarge."""
    try:
        return wire.encode_request(wish)
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the text is not valid Unicode: {error.reason}", hint="send it as UTF-8") from error


def now() -> str:
    """This moment as RFC 3339 text with the local offset."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def remembering(
    wish: request.Remember | str, *, cwd: str = "", host: str = "python", role: Literal["user", "assistant"] = "user"
) -> request.Remember:
    """A Remember of a text said now; one that is a request already stays as it is.

    The session is the folder, because a session belongs to one project for good.
    """
    if isinstance(wish, request.Remember):
        return wish
    origin = Origin(host=host, session=cwd or "anywhere", cwd=cwd)
    return request.Remember(text=wish, turn=str(uuid.uuid4()), at=now(), origin=origin, role=role)


__all__ = [
    "Client",
    "DaemonDown",
    "DeadlineExceeded",
    "Drained",
    "Spooled",
    "now",
    "places_here",
    "remembering",
    "socket_path",
]
