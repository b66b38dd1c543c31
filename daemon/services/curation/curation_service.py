"""The curation service: runs the curator and the maintainer each week, or when the user asks (G1, G3, G4).

Invariants: a run writes proposals only, and that old ones lapsed; at most `MOST` proposals of both roles wait or were
made within a week; a dry run writes nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from ....protocol.curation import ROLES, Curate, CuratedProposal, Curation, Thresholds
from ....protocol.errors import MemdError
from ....protocol.operation import AnyOperation, ChangeDecided
from ....stages.same_rules import RuleReader
from ...projections.inbox import PendingProposal
from ...projections.strength import DAY
from ..core import Core
from ..outgoing_screen import without_secrets
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .curator import Curator, Earlier, RoleProposal, ThresholdsOf, curated_pools, held_in
from .instances import AtHead, EvidenceCounter, GivenTo
from .maintainer import Contradictions, Maintainer

MOST = 5
"""Proposals that wait at most, and that are made in a week."""

WEEK, LAPSE = 7 * DAY, 30 * DAY
WEEK_S, LOOK_S = 7 * 86_400.0, 3_600.0

log = logging.getLogger("memd.curation")


def seed_thresholds(pool: str) -> Thresholds:
    """Return the default rules of promotion."""
    return Thresholds()


class CurationService(Service):
    """Proposes changes of playbooks."""

    name = "curation"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        *,
        given: GivenTo,
        at_head: AtHead,
        against: Contradictions,
        is_quiet: Callable[[], bool],
        reader: Callable[[], AbstractContextManager[RuleReader]],
        thresholds: ThresholdsOf = seed_thresholds,
    ) -> None:
        """`given`: what memd gave to sessions; `at_head`: a file as its branch has it; `against`: statements against
        beliefs; `is_quiet`: whether the machine is idle and on power; `reader`: opens the models that read rules;
        `thresholds`: the rules of a pool."""
        self._stores, self._directory, self._world, self._scheduler = (
            core.stores,
            core.directory,
            core.world,
            core.scheduler,
        )
        self._writer, self._given, self._at_head, self._against = writer, given, at_head, against
        self._is_quiet, self._reader, self._thresholds = is_quiet, reader, thresholds
        self._ran_at = -WEEK_S

    @property
    def handlers(self) -> Handlers:
        """Only the user may ask; a proposal is written on the write thread."""
        return {Curate: owner("slow", self.curate)}

    def start(self) -> None:
        """Run once a week, while the machine is idle and on power."""
        self._scheduler.every(LOOK_S, self.look, "curation")

    def look(self) -> None:
        """Run if a week has passed since the last run and the machine is idle and on power."""
        if self._world.monotonic() - self._ran_at < WEEK_S or not self._is_quiet():
            return
        self._ran_at = self._world.monotonic()
        try:
            made = self.curate(Curate()).proposals
        except MemdError as error:  # a full disk or a stop; the next week tries again
            log.info("could not curate: %s", error.message)
            return
        if made:
            log.info("proposed %d changes of playbooks", len(made))

    def curate(self, request: Curate) -> Curation:
        """Propose what playbooks should take in, merge, review or give up. Raises NotFound, Unavailable."""
        pools = curated_pools(self._stores, self._directory.is_left)
        if request.pool:
            pools = [self._directory.named(request.pool)]
        known = [pending for pending in self._stores.inbox.list(decided=True) if pending.what.by in ROLES]
        lapsed = [pending for pending in known if pending.state == "open" and self._age(pending) >= LAPSE]
        counter = EvidenceCounter(self._stores, self._given, self._at_head)
        maintainer = Maintainer(
            self._stores, self._against, self._thresholds, self._world.now(), self._stores.inbox.list()
        )
        with self._reader() as reader:
            curator = Curator(self._stores, counter, self._thresholds, self._world.now(), Earlier(known), reader)
            found = [*maintainer.proposals(pools), *sorted(curator.proposals(pools), key=_worth)]
        left_out = Counter(curator.left_out)
        fresh = [proposal for proposal in found if self._stores.inbox.get(proposal.operation.id) is None]
        left_out["decided before, or it waits in the inbox already"] += len(found) - len(fresh)
        counted = [pending for pending in known if pending not in lapsed]
        room = max(0, MOST - sum(pending.state == "open" or self._age(pending) < WEEK for pending in counted))
        left_out[f"more than {MOST} in a week"] += len(fresh) - len(fresh[:room])
        made, waiting = fresh[:room], sum(pending.state == "open" for pending in counted)
        if not request.dry_run:
            made = self._writer.run(lambda: self._commit(made, lapsed)).result()
            waiting += len(made)
        return Curation(
            proposals=tuple(self._shown(proposal.told) for proposal in made),
            left_out=tuple((why, count) for why, count in left_out.most_common() if count),
            read=curator.read,
            open=waiting,
            lapsed=len(lapsed),
            notes=tuple(self._notes(pools)),
            dry_run=request.dry_run,
        )

    def _age(self, pending: PendingProposal) -> int:
        return self._world.now() - pending.at

    def _commit(self, made: Sequence[RoleProposal], lapsed: Sequence[PendingProposal]) -> list[RoleProposal]:
        """Commit the proposals whose records have not changed, and the lapse of old ones. On the write thread."""
        standing = [proposal for proposal in made if self._stands(proposal)]
        open_still = {pending.what.id for pending in self._stores.inbox.list()}
        operations: list[AnyOperation] = [
            ChangeDecided(id=pending.what.id, accepted=False, lapsed=True)
            for pending in lapsed
            if pending.what.id in open_still
        ]
        operations += [proposal.operation for proposal in standing]
        if operations:
            self._stores.commit(operations)
        return standing

    def _stands(self, proposal: RoleProposal) -> bool:
        now = self._stores.records.many(record.id for record in proposal.records)
        is_known = self._stores.inbox.get(proposal.operation.id) is not None
        return not is_known and all(now.get(record.id) == record for record in proposal.records)

    def _shown(self, told: CuratedProposal) -> CuratedProposal:
        return replace(
            told,
            title=self._directory.title(told.pool),
            statement=without_secrets(told.statement),
            against_statement=without_secrets(told.against_statement),
            let_go_statement=without_secrets(told.let_go_statement),
        )

    def _notes(self, pools: Sequence[str]) -> list[str]:
        """Return what is full."""
        notes: list[str] = []
        for pool in pools:
            most = self._thresholds(pool)
            held = held_in(self._stores, pool)
            name = self._directory.title(pool) or pool
            for layer in ("L1", "L2"):
                if (count := sum(record.layer == layer for record in held)) >= most.of(layer).most:
                    notes.append(f"{layer} of {name} is full: {count} of {most.of(layer).most} records")
            live = sum(
                self._stores.records.tally().get(pool, {}).get(status, 0) for status in ("active", "quarantined")
            )
            if live - len(held) > most.project_most:
                notes.append(
                    f"{name} has {live - len(held):,} records outside of its playbook, more than {most.project_most:,}"
                )
        return notes


def _worth(proposal: RoleProposal) -> tuple[float, str]:
    """Return the order of proposals: the most certain ones first."""
    return -proposal.told.confidence, proposal.operation.id
