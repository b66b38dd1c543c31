"""The roles of senders: one table of what each may send (G1).

A request names the surface that it comes from; a pass restricts further (`Handler.under_pass`). The socket belongs to
the user, so a surface names itself: the table keeps an agent's tools and hooks to their work, and does not stop a
program of the user's from calling itself the user.
Invariants: no surface but the user decides, pins, trusts, changes a setting or accepts a policy; where a project's
policy says that agents only read, no tool of an agent writes, neither directly nor through the spool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from ....protocol.agent_outcomes import RankAgents
from ....protocol.corrections import ProposeForget
from ....protocol.errors import Denied
from ....protocol.event import Repository
from ....protocol.ingestion import GetDetail, ListTopics, SummariseDocument, WeighItems
from ....protocol.profile import GetContext, Printed, Profile
from ....protocol.recall import Feedback, Recall
from ....protocol.reflection import AskReflection, Reflect
from ....protocol.request import Capture, Distil, Get, GetJob, GetStatus, List, Pools, Remember, Why
from ....protocol.request_fields import Request, Surface
from ....protocol.session import FindSessions, GetSession, GetSummary, HandOver, ListSessions
from ....protocol.settings import ListSettings
from ....protocol.skills import ListSkills
from ....protocol.state import GetState
from ...projections.stores import Stores

AGENT_READS: frozenset[type[Request]] = frozenset({
    Recall, Profile, GetContext, Get, List, Why, Pools, GetState, GetStatus, GetJob, ListSessions, GetSession,
    GetSummary, FindSessions, GetDetail, ListTopics, WeighItems, ListSkills, RankAgents,
})  # fmt: skip

AGENT_WRITES: frozenset[type[Request]] = frozenset({
    Remember, Capture, HandOver, Reflect, Feedback, ProposeForget, SummariseDocument,
})  # fmt: skip
"""What a project's policy can take from an agent. Each only adds, rates or proposes: nothing that the user confirmed
changes by it."""

MAY_SEND: Mapping[Surface, frozenset[type[Request]]] = {
    "mcp": AGENT_READS | AGENT_WRITES,
    "hook": frozenset({
        Profile, Printed, AskReflection, Capture, Remember, Distil, List, Pools, GetStatus, GetSession, ListSessions,
        ListSettings,
    }),
}  # fmt: skip
"""What each surface may send. The user may send every request."""

WHO: Mapping[Surface, str] = {"mcp": "an agent's tool", "hook": "a hook"}


class AgentPolicy(Protocol):
    """The part of the policies that concerns agents."""

    @property
    def has_reading_agents(self) -> bool:
        """Whether agents only read in any pool."""
        ...

    def reading_agents(self, pool: str) -> bool:
        """Whether agents only read in a pool."""
        ...


class Roles:
    """Checks requests against the table. Any thread may call it."""

    def __init__(
        self,
        stores: Stores,
        policy: AgentPolicy,
        named: Callable[[str], str],
        folder_scope: Callable[[str, Repository | None], tuple[str, ...]],
    ) -> None:
        """`named`: the full name of a pool; `folder_scope`: the pools that a question from a folder reads."""
        self._stores, self._policy, self._named, self._folder_scope = stores, policy, named, folder_scope

    def check(self, request: Request) -> None:
        """Raise Denied for a request that its surface may not send."""
        if request.surface == "user":
            return
        if type(request) not in MAY_SEND[request.surface]:
            raise Denied(
                f"{WHO[request.surface]} may not send `{request.__struct_config__.tag}`",
                hint="only the user does: on the command line or in the panel",
            )
        if request.surface == "mcp" and type(request) in AGENT_WRITES and self._policy.has_reading_agents:
            self._check_policy(request)

    def _check_policy(self, request: Request) -> None:
        for pool in self._pools(request):
            if self._policy.reading_agents(pool):
                opened = self._stores.sources.pool(pool)
                title = (opened.title if opened else "") or pool
                raise Denied(
                    f"agents only read the memory of {title}: by its policy only memd's own capture writes there "
                    "(layers.L3.write_policy)",
                    hint="tell the user, who can use `memd remember` or change .pi/pi.config.yaml",
                )

    def _pools(self, request: Any) -> Iterator[str]:
        """Yield the pools that a write of an agent concerns: of its folder, its session, its records."""
        if origin := getattr(request, "origin", None):
            yield from self._folder_scope(origin.cwd, origin.repository)
        if (named := getattr(request, "pool", "")) and named != "project":
            yield self._named(named)
        session = self._stores.sources.session(getattr(request, "document", ""))
        if session is not None:
            yield session.opened.project
        ids = [id for name in ("ids", "used", "helpful", "wrong") for id in getattr(request, name, ())]
        for id in (*ids, *(getattr(request, "learned", None) or ())):
            yield self._stores.records.named(id).pool
