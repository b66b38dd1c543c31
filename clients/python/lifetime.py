"""The client's methods for time: what fades and comes back, how a record and a subject changed, what is right.

Comes in: a wish. Goes out: the daemon's typed reply, or its error. Invariant: one method a request, as in `client.py`,
whose `Client` these belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from ...protocol import intent, lifetime, reply

T = TypeVar("T")


class LifetimeRequests(ABC):
    """A part of `Client`, which sends what these ask."""

    @abstractmethod
    def ask(self, wish: intent.Request, data: type[T]) -> T:
        """The reply to a request."""

    def sleep(self, pools: Sequence[str] = (), *, dry_run: bool = False) -> lifetime.Slumbered:
        """Ends a task by hand (T6): fades these pools, by default all, and archives what is too weak."""
        return self.ask(lifetime.PutToSleep(pools=tuple(pools), dry_run=dry_run), lifetime.Slumbered)

    def fading(self, cwd: str = "", *, pools: Sequence[str] = (), limit: int = 20) -> lifetime.FadingList:
        """What will be forgotten soon if nobody uses it (T9)."""
        return self.ask(lifetime.ListFading(cwd=cwd, pools=tuple(pools), limit=limit), lifetime.FadingList)

    def restore(self, ids: Sequence[str]) -> lifetime.RecordList:
        """Believes archived records again (T7). Raises NotFound, InvalidRequest."""
        return self.ask(lifetime.Restore(ids=tuple(ids)), lifetime.RecordList)

    def history(self, id: str) -> lifetime.History:
        """Every version of a record (T1). Raises NotFound."""
        return self.ask(lifetime.GetHistory(id=id), lifetime.History)

    def timeline(
        self, subject: str, cwd: str = "", *, pools: Sequence[str] = (), limit: int = 50
    ) -> lifetime.RecordList:
        """What was true of a subject when (T1). Raises InvalidRequest."""
        wish = lifetime.GetTimeline(subject=subject, cwd=cwd, pools=tuple(pools), limit=limit)
        return self.ask(wish, lifetime.RecordList)

    def correct(self, id: str, text: str, *, since: str = "") -> reply.Remembered:
        """Says that a record is wrong and what is right; `since`: it was right until then (T1). Raises NotFound,
        InvalidRequest."""
        at = datetime.now().astimezone().isoformat(timespec="milliseconds")
        return self.ask(lifetime.Correct(id=id, text=text, at=at, since=since), reply.Remembered)
