"""The status service: what memd last did, what waits, what failed; and the request to stop."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

from .... import __version__
from ....protocol.instant import from_micros
from ....protocol.pauses import Pauses
from ....protocol.remote import RemoteSummary
from ....protocol.reply import Done, Outcome, Reembedding, StatusText
from ....protocol.request import PROTOCOL, GetStatus, ListActivity, Stop
from ....stages.batch import PERSONAL
from ...projections.stores import Stores
from ..activity import EVENTS, Activity
from ..service import Handlers, Service, owner


class ModelStatus(Protocol):
    """The embedding models, as far as the status shows them."""

    @property
    def reembedding(self) -> Reembedding | None:
        """How far the change to another model is; None without one."""
        ...

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong with the models."""
        ...

    @property
    def searching_id(self) -> str:
        """The id of the model that searches."""
        ...


class PauseStatus(Protocol):
    """The pauses, as far as the status shows them."""

    ignored: tuple[str, ...]

    def state(self) -> Pauses:
        """The pauses that hold now."""
        ...


class StatusSources(NamedTuple):
    """What the status asks beside the stores; `worker`: the state of the distiller, `settings_problem`: "" for none;
    `remote`: the remote model, None while it is off; `policy_problems`: policy files that memd does not take, or that
    wait for the user."""

    models: ModelStatus
    pauses: PauseStatus
    worker: Callable[[], str]
    settings_problem: Callable[[], str]
    remote: Callable[[], RemoteSummary | None]
    policy_problems: Callable[[], tuple[str, ...]]


class StatusService(Service):
    """Answers `status` and `stop`."""

    name = "status"

    def __init__(
        self, stores: Stores, activity: Activity, sources: StatusSources, started_at: int, stop: Callable[[], None]
    ) -> None:
        """`started_at`: microseconds; `stop`: asks the daemon to end."""
        self._stores, self._activity, self._sources = stores, activity, sources
        self._started_at, self._stop = started_at, stop

    @property
    def handlers(self) -> Handlers:
        activity = self._activity
        return {
            GetStatus: owner("fast", self.status),
            ListActivity: owner(
                "slow",
                lambda request: activity.after(request.after, min(max(1, request.limit), EVENTS)),
                is_ready=lambda request: activity.last != request.after,
            ),
            Stop: owner("fast", self.request_stop),
        }

    def request_stop(self, request: Stop) -> Done:
        self._stop()
        return Done(pending=self._stores.pending)

    def status(self, request: GetStatus) -> StatusText:
        """Return the state of the daemon (U6)."""
        stores, (models, pauses, worker, settings_problem, remote, policy_problems) = self._stores, self._sources
        progress = stores.sources.progress()
        tally = stores.records.tally()
        counts: Counter[str] = Counter()
        for statuses in tally.values():
            counts.update(statuses)
        failed = (f"{row.document} {row.turn}: {row.stage}: {row.reason}" for row in stores.dead_letters.newest())
        last = self._activity.outcomes
        if progress.last_at:
            outcome = f"captures processed in total: {progress.captures:,}"
            last["distilled"] = Outcome(at=from_micros(progress.last_at), what=outcome)
        return StatusText(
            version=__version__,
            protocol=PROTOCOL,
            pid=os.getpid(),
            started_at=from_micros(self._started_at),
            data_dir=str(stores.folder),
            model=models.searching_id,
            reembedding=models.reembedding,
            journal_seq=stores.journal.last,
            archive_seq=stores.archive.last,
            pending=stores.pending,
            unembedded=stores.vectors.waiting,
            worker=worker(),
            records=dict(counts),
            pools=len({PERSONAL, *tally}),
            last=last,
            failures=tuple(failed),
            size_bytes=stores.size_bytes(),
            troubles=(*stores.troubles, *models.troubles, *filter(None, [settings_problem()]), *policy_problems()),
            pauses=pauses.state().pauses,
            ignored=pauses.ignored,
            inbox=stores.inbox.open(),
            hosts={host: from_micros(at) for host, at in self._activity.hosts},
            sessions_open=len(stores.open_sessions.documents()),
            is_removed=not stores.are_in_place,
            remote=remote(),
        )
