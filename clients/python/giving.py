"""The client's methods for what agents are given: the profile, the context package, and passes that limit what is read.

Comes in: a wish. Goes out: the daemon's typed reply, or its error. Invariant: one method a request, as in `client.py`,
whose `Client` these belong to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from ...protocol import access, intent, profile

T = TypeVar("T")


class GivingRequests(ABC):
    """A part of `Client`, which sends what these ask."""

    @abstractmethod
    def ask(self, wish: intent.Request, data: type[T]) -> T:
        """The reply to a request."""

    def profile(
        self,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        budget_tokens: int = 500,
        agent: str = "",
        document: str = "",
        delivery: profile.Delivery = "per_turn",
        trigger: profile.Trigger = "turn",
    ) -> profile.ProfileText:
        """The profile of the user, inside a project if `cwd` lies in one (Q1); `due` says whether to print it now."""
        wish = profile.Profile(
            cwd=cwd,
            pools=tuple(pools),
            budget_tokens=budget_tokens,
            agent=agent,
            document=document,
            delivery=delivery,
            trigger=trigger,
        )
        return self.ask(wish, profile.ProfileText)

    def printed(self, document: str, rev: str) -> profile.PrintNoted:
        """Reports that a revision of the profile was printed into a session."""
        return self.ask(profile.Printed(document=document, rev=rev), profile.PrintNoted)

    def injected(self, session: str = "", limit: int = 20) -> profile.Injections:
        """The exact texts that agents were given, newest first, and why. Raises NotFound."""
        return self.ask(profile.ListInjected(session=session, limit=limit), profile.Injections)

    def context(
        self, *, cwd: str = "", pools: Sequence[str] = (), agent: str = "", tags: Sequence[str] = (), days: int = 14
    ) -> profile.ContextPackage:
        """L1 in full, L2 by tag and project, L3 of the last `days` (Q11)."""
        wish = profile.GetContext(cwd=cwd, pools=tuple(pools), agent=agent, tags=tuple(tags), days=days)
        return self.ask(wish, profile.ContextPackage)

    def grant(
        self, subject: str, *, pools: Sequence[str] = (), sources: Sequence[str] = (), for_s: float = 30 * 86_400.0
    ) -> access.PassGranted:
        """Signs a pass (A1). Raises NotFound for an unknown pool."""
        wish = access.Grant(subject=subject, pools=tuple(pools), sources=tuple(sources), for_s=for_s)
        return self.ask(wish, access.PassGranted)

    def grant_back(self, sources: Sequence[str]) -> access.PassGranted:
        """Shows again what was revoked of these sources. Raises NotFound."""
        return self.ask(access.Grant(sources=tuple(sources), back=True), access.PassGranted)

    def revoke(self, id: str = "", *, source: str = "") -> access.Revocation:
        """Voids a pass, or hides all that was derived from a source (A3). Raises NotFound."""
        return self.ask(access.Revoke(id=id, source=source), access.Revocation)

    def grants(self) -> access.Grants:
        """Every grant, and the sources that are revoked."""
        return self.ask(access.ListGrants(), access.Grants)
