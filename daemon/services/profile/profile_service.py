"""The profile service: the profile text, what a prompt recalls beside it, the context package, and the log of the texts
that agents received."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from ....protocol.errors import Denied
from ....protocol.profile import (
    ContextPackage,
    GetContext,
    Injections,
    ListInjected,
    Printed,
    PrintNoted,
    Profile,
    ProfileText,
)
from ....protocol.record import Record
from ...config import Config
from ...forgetting_rules import Rules
from ...projections.timeline import View
from ..core import Core
from ..pass_limits import limited
from ..service import Caller, Handler, Handlers, Lane, Permits, Reader, Service, owner
from .agent_files import stated
from .assumed import AssumedCards
from .context_package import ContextPackager, ContextPolicy
from .echo_ledger import EchoLedger
from .hot import ProfileCache, render
from .injected_prompts import with_prompts
from .injection_log import InjectionLog, without_delivery
from .just_said import JustSaid
from .last_time import LastSessions, LastTimeSection
from .past import PastCaptures, PastCards, is_past
from .profile_lines import ProfileLines
from .prompt_lines import PromptLines, PromptSearch


class InjectionListener(Protocol):
    """Counts what hooks give to agents (T3)."""

    def injected(self, ids: Iterable[str]) -> None:
        """Count records that a hook printed into a session."""
        ...

    def in_context(self, document: str, prompt: str, ids: Sequence[str]) -> None:
        """Follow whether a session, whose context has these records, uses them in its answer to a prompt."""
        ...


class ProfilePolicy(ContextPolicy, Protocol):
    """What policies decide about profiles and context packages."""

    def boosts(self, pool: str) -> Mapping[str, float]:
        """Return the factors of tags in a pool."""
        ...


def _lane(request: Profile) -> Lane:
    return "slow" if is_past(request) or request.assuming else "fast"


class ProfileService(Service):
    """Renders profiles in advance and serves them from memory."""

    name = "profile"

    def __init__(
        self,
        core: Core,
        *,
        pieces: Callable[[str], int],
        permits: Callable[[Reader], Permits | None],
        echoes: EchoLedger,
        search: PromptSearch,
        listener: InjectionListener,
        last_sessions: LastSessions,
        policy: ProfilePolicy,
    ) -> None:
        """`pieces`: word pieces of a text for the searching model; `permits`: the records that a reader may see."""
        stores, state, world, config = core.stores, core.places.state, core.world, core.config
        self._stores, self._activity, self._config = stores, core.activity, config
        self.injections = InjectionLog(state / "injected", world.now)
        self._echoes, self._listener, self._policy = echoes, listener, policy

        def rules() -> Rules:
            return config().forgetting

        self._rules, self._timeline, self._title = rules, core.timeline, core.directory.title
        lines = ProfileLines(stores.profile, stores.archive, pieces, self._boost, stores.counters.signals, rules)
        self._count = lines.count
        self._cache = ProfileCache(stores.profile, lines, core.directory.title, permits)
        self._just_said = JustSaid(stores, lines.count)
        self._last_time = LastTimeSection(last_sessions, lines.count)
        self._scheduler, self._is_prepared = core.scheduler, False
        core.captures.subscribe(lambda _: self._prepare())  # a home in use
        self._prompts = PromptLines(search, lines.count)
        self._packager = ContextPackager(
            stores.records, stores.inbox.held, lines, self._boost, world.now, policy, self._cwd_of
        )

    @property
    def handlers(self) -> Handlers:
        return {
            Profile: Handler(_lane, self.profile, under_pass=True, scoped=True),
            GetContext: Handler("slow", self.context, under_pass=True, scoped=True),
            Printed: Handler("slow", self.printed, under_pass=True),
            ListInjected: owner("slow", self.injected),
        }

    def start(self) -> None:
        self._cache.start()

    def _prepare(self) -> None:
        """Prepare in the background what the first profile after a capture needs."""
        if not self._is_prepared:
            self._is_prepared = True
            self._scheduler.soon(self._just_said.prepare, "just said")

    def reload(self, config: Config) -> None:
        self._cache.clear()

    def render_again(self) -> None:
        """Follow a changed policy."""
        self._cache.clear()

    def close(self) -> None:
        self._echoes.save()

    def profile(self, request: Profile, caller: Caller) -> ProfileText:
        """Return the profile of now, or of another time. Raises NaiveTime, InvalidRequest."""
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        if view is not None:
            return self._past(request, view, caller)
        if request.assuming:
            return self._assumed(request, caller)
        pending = self._stores.pending if caller.is_owner else 0
        budget = self._last_time.budget(request, caller)
        read = stated(request.document, request.cwd)
        rendered = self._cache.profile(caller.scope, budget, pending, caller.reader, read)
        if not caller.is_owner:
            return without_delivery(self._with_recalled(request, rendered, caller, ()))
        before = self.injections.begin(request)
        if before.ids:
            self._listener.in_context(before.document, before.prompt, before.ids)
        rendered = self._last_time.added(rendered, request, caller)
        rendered = self._just_said.added(rendered, caller, request.document, request.budget_tokens)
        answer = self._with_recalled(request, rendered, caller, before.ids)
        given = (*rendered.ids, *(answer.recalled.ids if answer.recalled else ()))
        self._echoes.note(request.document, given)
        self._activity.note("profiled", f"{len(given)} lines, {rendered.tokens} tokens")
        return self.injections.offer(request, answer)

    def _assumed(self, request: Profile, caller: Caller) -> ProfileText:
        if not caller.is_owner:
            raise Denied("only the owner previews a change")
        cards = AssumedCards(self._stores.profile, request.assuming)
        stores = self._stores
        lines = ProfileLines(cards, stores.archive, self._count, self._boost, stores.counters.signals, self._rules)
        text = render(lines, self._title, caller.scope, request.budget_tokens, None)
        return replace(text, due=False, why="memd prints no preview into a session")

    def _past(self, request: Profile, view: View, caller: Caller) -> ProfileText:
        captures = PastCaptures(self._stores.archive, request)
        lines = ProfileLines(PastCards(view), captures, self._count, self._boost, view.signals, self._rules)
        text = render(lines, self._title, caller.scope, request.budget_tokens, None)
        return replace(text, due=False, why="memd prints no profile of another time into a session")

    def _with_recalled(
        self, request: Profile, rendered: ProfileText, caller: Caller, present: Sequence[str]
    ) -> ProfileText:
        """Return a profile with what the request's prompt recalls (Q13), unless the user switched this off."""
        if self._config().hook.recall == "off":
            return rendered
        recalled = self._prompts.recalled(request, caller, frozenset((*rendered.ids, *present)))
        return replace(rendered, recalled=recalled) if recalled else rendered

    def context(self, request: GetContext, caller: Caller) -> ContextPackage:
        """Return the context package of a scope (Q11)."""
        view = self._timeline.view(request.as_of, request.believed_at, caller.permits)
        then = [record for pool in caller.scope for record in view.live(pool)] if view else None
        package = self._packager.package(request, caller.scope, caller.permits, then)
        records = self._stores.records
        selected = tuple(replace(row, record=limited(row.record, caller, records)) for row in package.selected)
        return replace(package, selected=selected)

    def printed(self, request: Printed, caller: Caller) -> PrintNoted:
        if not caller.is_owner:  # memd keeps no delivery state for a pass
            return PrintNoted(known=False)
        noted = self.injections.printed(request)
        if noted.known:
            context = self.injections.context(request.document)
            self._listener.injected(context.fresh)
            self._listener.in_context(context.document, context.prompt, context.ids)
            self._activity.note("injected", request.document)
        return noted

    def injected(self, request: ListInjected) -> Injections:
        """List the texts that agents received, with the prompts that recalled some. Raises NotFound, InvalidRequest."""
        return with_prompts(self.injections.list(request), self._stores.archive)

    def _cwd_of(self, document: str) -> str:
        session = self._stores.sources.session(document)
        return session.opened.origin.cwd if session else ""

    def _boost(self, record: Record) -> float:
        boosts = self._policy.boosts(record.pool)
        return max((boosts[tag] for tag in record.tags if tag in boosts), default=1.0)
