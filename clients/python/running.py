"""The client's methods for memd's own running: pauses, failed captures, what waits for the user's word.

Comes in: a wish. Goes out: the daemon's typed reply, or its error. Invariant: one method a request, as in `client.py`,
whose `Client` these belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from ...protocol import intent, reply, request, running, scope, session, settings
from ...protocol.errors import Disabled

T = TypeVar("T")


class RunningRequests(ABC):
    """A part of `Client`, which sends what these ask."""

    @abstractmethod
    def ask(self, wish: intent.Request, data: type[T]) -> T:
        """The reply to a request."""

    def open_agent(self, name: str, *, role: str = "", perspectives: Sequence[str] = ()) -> scope.Agent:
        """Gives an agent a memory of its own, or another role and other perspectives (P5). Raises InvalidRequest."""
        return self.ask(scope.OpenAgent(agent=name, role=role, perspectives=tuple(perspectives)), scope.Agent)

    def pause(self, folder: str = "", for_s: float = 0) -> running.Pauses:
        """Captures nothing from now on (P-2): everywhere, or of an absolute folder and below; for a while, or until
        `resume`."""
        return self.ask(running.Pause(folder=folder, for_s=for_s), running.Pauses)

    def resume(self, folder: str = "") -> running.Pauses:
        """Ends the pause of this folder, or the one that holds everywhere. Raises NotFound."""
        return self.ask(running.Resume(folder=folder), running.Pauses)

    def dead_letters(self, limit: int = 50) -> running.DeadLetters:
        """The captures that could not be distilled (P-12)."""
        return self.ask(running.ListLetters(limit=limit), running.DeadLetters)

    def retry(self, ids: Sequence[int] = (), *, all: bool = False) -> reply.JobState:
        """Starts to try these again, or all of them (P-12). Raises NotFound, InvalidRequest."""
        return self.ask(running.Retry(ids=tuple(ids), all=all), reply.JobState)

    def propose_forget(self, ids: Sequence[str], by: str = "", *, hide: bool = False) -> running.Proposed:
        """What an agent may ask for: that the user forgets these records; with `hide` no read shows them until the user
        decides. Raises NotFound."""
        return self.ask(running.ProposeForget(ids=tuple(ids), by=by, hide=hide), running.Proposed)

    def inbox(self, *, all: bool = False, limit: int = 50) -> running.Inbox:
        """What waits for the user's word (T13)."""
        return self.ask(running.ListInbox(all=all, limit=limit), running.Inbox)

    def decide(self, id: str, accept: bool) -> reply.Decided:
        """The user's word on a proposal; an accepted deletion is a job. Raises NotFound, InvalidRequest."""
        return self.ask(running.Decide(id=id, accept=accept), reply.Decided)

    def pin(self, id: str, pinned: bool = True, *, principle: bool = False) -> reply.Remembered:
        """Holds on to a record, or lets go of it: while held it stands first in the profile, and no statement retires
        it by itself (R9, T13); a principle is in every answer (Q8). Raises InvalidRequest where its layer is full."""
        return self.ask(running.Pin(id=id, pinned=pinned, principle=principle), reply.Remembered)

    def sessions(self, host: str = "", *, is_open: bool = False, limit: int = 20) -> session.SessionPage:
        """Sessions, the one that began last first; of one host, or those that go on."""
        return self.ask(session.ListSessions(host=host, is_open=is_open, limit=limit), session.SessionPage)

    def session(self, id: str) -> session.SessionOutcome:
        """What a session held and what came of it. Raises NotFound."""
        return self.ask(session.GetSession(id=id), session.SessionOutcome)

    def settings(self) -> settings.SettingList:
        """Every setting, its value and where that comes from (U6)."""
        return self.ask(settings.ListSettings(), settings.SettingList)

    def put_setting(self, name: str, value: str | None) -> settings.SettingList:
        """Writes a setting into memd.toml, or takes it out, and has it followed. Raises BadConfig."""
        return self.ask(settings.PutSetting(name=name, value=value), settings.SettingList)


def nothing(wish: intent.Request, data: type[T], why: str) -> T:
    """What a disabled memd answers. Raises Disabled where there is nothing to say."""
    empty: object = None
    match wish:
        case request.Capture():
            skipped = len(wish.events)
            empty = reply.Taken(
                accepted=0, duplicate=0, changed=0, refused=(), pool="", pending=0, skipped=skipped, why="disabled"
            )
        case request.Recall():
            empty = reply.Recalled(hits=(), scope=(), abstained=True, reason=f"memd is disabled by {why}")
        case request.Profile():
            empty = reply.ProfileText(text="", rev="", ids=(), scope=(), tokens=0)
        case _:
            pass
    if isinstance(empty, data):
        return empty
    raise Disabled(f"memd is disabled by {why}", hint="unset the variable, or remove the file")
