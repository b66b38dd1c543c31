"""The profile service: the profile text, the context package, and the log of the texts that agents received."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ....protocol.profile import (
    ContextPackage,
    GetContext,
    ListInjected,
    Printed,
    PrintNoted,
    Profile,
    ProfileText,
)
from ....protocol.record import Record
from ...config import Config
from ...projections.salience import salience
from ..core import Core
from ..pass_limits import limited
from ..service import Caller, Handler, Handlers, Permits, Reader, Service, owner
from .context_package import ContextPackager
from .echo_ledger import EchoLedger
from .hot import ProfileCache
from .injection_log import InjectionLog, without_delivery
from .profile_lines import ProfileLines


class ProfileService(Service):
    """Renders profiles in advance and serves them from memory."""

    name = "profile"

    def __init__(
        self,
        core: Core,
        *,
        pieces: Callable[[str], int],
        permits: Callable[[Reader], Permits | None],
    ) -> None:
        """`pieces`: word pieces of a text for the searching model; `permits`: the records that a reader may see."""
        stores, state, world, config = core.stores, core.places.state, core.world, core.config
        self._stores, self._activity, self._config = stores, core.activity, config
        self.injections = InjectionLog(state / "injected", world.now)
        self.echoes = EchoLedger(state, stores.records, stores.archive, world.now, stores.changed.set)

        def weights(records: Sequence[Record], now: int) -> Mapping[str, float]:
            signals = stores.counters.signals(records)
            return {record.id: salience(record, signals[record.id], now, config().forgetting) for record in records}

        lines = ProfileLines(stores.profile, stores.archive, pieces, self._boost, weights)
        self._cache = ProfileCache(stores.profile, lines, core.directory.title, permits)
        self._packager = ContextPackager(stores.records, stores.inbox.held, lines, self._boost, world.now)

    @property
    def handlers(self) -> Handlers:
        return {
            Profile: Handler("fast", self.profile, under_pass=True, scoped=True),
            GetContext: Handler("slow", self.context, under_pass=True, scoped=True),
            Printed: Handler("slow", self.printed, under_pass=True),
            ListInjected: owner("slow", self.injections.list),
        }

    def start(self) -> None:
        self._cache.start()

    def reload(self, config: Config) -> None:
        self._cache.clear()

    def close(self) -> None:
        self.echoes.save()

    def profile(self, request: Profile, caller: Caller) -> ProfileText:
        pending = self._stores.pending if caller.is_owner else 0
        rendered = self._cache.profile(caller.scope, request.budget_tokens, pending, caller.reader)
        if not caller.is_owner:
            return without_delivery(rendered)
        self.echoes.note(request.document, rendered.ids)
        self._activity.note("profiled", f"{len(rendered.ids)} lines, {rendered.tokens} tokens")
        return self.injections.offer(request, rendered)

    def context(self, request: GetContext, caller: Caller) -> ContextPackage:
        """Return the context package of a scope (Q11)."""
        package = self._packager.package(request, caller.scope, caller.permits)
        records = self._stores.records
        selected = tuple(replace(row, record=limited(row.record, caller, records)) for row in package.selected)
        return replace(package, selected=selected)

    def printed(self, request: Printed, caller: Caller) -> PrintNoted:
        if not caller.is_owner:  # memd keeps no delivery state for a pass
            return PrintNoted(known=False)
        noted = self.injections.printed(request)
        if noted.known:
            self._activity.note("injected", request.document)
        return noted

    def _boost(self, record: Record) -> float:
        boosts = self._config().tag_boost
        return max((boosts[tag] for tag in record.tags if tag in boosts), default=1.0)
