"""The governance service: patches of a project's playbook out and in (G2, G5).

Invariants: the daemon reads and writes no file of a repository, a client does; only the user sends these requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

from ....protocol.curation import Thresholds
from ....protocol.errors import InvalidRequest, NotFound
from ....protocol.governance import (
    GetPatch,
    ListPatches,
    PatchBytes,
    PatchesTaken,
    PatchList,
    PatchState,
    PublishPlaybook,
    SendPatch,
    TakePatches,
    TrustPi,
)
from ....protocol.instant import from_micros
from ....protocol.operation import AnyOperation, ChangeProposed, PatchApplied, PatchStep, PiTrusted
from ....protocol.patch_file import PATCH_OPERATIONS, file_hash
from ....protocol.record import LIVE, Record, learning_order
from ....protocol.shared_lines import parts_of
from ....stages.batch import PERSONAL
from ...projections.inbox import PendingProposal
from ...projections.patches import PatchEntry, records_of
from ...projections.placement import PROJECT
from ..core import Core
from ..playbook_belief import ADDS, PlaybookBelief, believed, playbook_document
from ..service import Handlers, Service, owner
from ..write_thread import Writer
from .patch_decisions import PatchDecisions
from .patch_rendering import PatchGate, file_of, frozen, lines_of, rendered
from .patch_taking import Contradictions, PatchTaking
from .record_changes import RecordChanges

PUBLISHER = "memd"
"""Author of the patch of records that no patch states."""

REVOKED = "you revoked the patches of this repository as a source"
UNDONE = "you undid the patches of this repository"
FORGOTTEN = "you forgot the patches of this repository"


class GovernanceService(Service):
    """Patches and policies. On the slow lane: rendering and checking take long, and only commits need the write
    thread."""

    name = "governance"

    def __init__(
        self,
        core: Core,
        writer: Writer,
        *,
        why_not_exported: Callable[[Record], str],
        contradictions: Contradictions = lambda records: [],
        thresholds: Callable[[str], Thresholds] = lambda pool: Thresholds(),
    ) -> None:
        """`why_not_exported`: tells why a record may not leave this home, "" if it may; `contradictions`: finds what
        new records contradict of the user's pins; `thresholds`: the rules of a pool, whose caps count."""
        self._stores, self._directory, self._world, self._writer = core.stores, core.directory, core.world, writer
        self._gate, self._contradictions = PatchGate(why_not_exported), contradictions
        self._thresholds = thresholds
        self.decisions = PatchDecisions(core.stores, self._gate, core.world.now, thresholds)

    @property
    def handlers(self) -> Handlers:
        return {
            ListPatches: owner("slow", self.list),
            GetPatch: owner("slow", self.get),
            SendPatch: owner("slow", self.send),
            PublishPlaybook: owner("slow", self.publish),
            TakePatches: owner("slow", self.take),
            TrustPi: owner("slow", self.trust),
        }

    # --- reads ---------------------------------------------------------------------------------------------------
    def list(self, request: ListPatches) -> PatchList:
        """List the patches of a pool, by day, and those that wait in the inbox. Raises NotFound."""
        return self._listed(self._directory.named(request.pool))

    def _listed(self, pool: str) -> PatchList:
        states = [self._state(entry) for entry in self._stores.patches.all(pool)]
        states += [self._waiting(pending) for pending in self._proposals(pool)]
        return PatchList(
            pool=pool,
            title=self._directory.title(pool),
            trusted=self._stores.patches.policy(pool).trusted,
            patches=tuple(states),
        )

    def _proposals(self, pool: str) -> Sequence[PendingProposal]:
        """Return the patches of a pool that wait for the user, oldest first."""
        waiting = [pending for pending in self._stores.inbox.list() if pending.what.what == "patch"]
        return [pending for pending in reversed(waiting) if self._is_in(pending.what, pool)]

    def _is_in(self, proposal: ChangeProposed, pool: str) -> bool:
        if not self.decisions.stands(proposal):
            return False
        records = self._stores.records.many(records_of(proposal.steps)).values()
        return bool(self.decisions.name(self._pending(proposal.id))) and all(record.pool == pool for record in records)

    def _pending(self, id: str) -> PendingProposal:
        pending = self._stores.inbox.get(id)
        if pending is None:
            raise NotFound(f"no proposal {id!r}", hint="`memd inbox` lists them")
        return pending

    def _state(self, entry: PatchEntry) -> PatchState:
        in_tree = bool(entry.blob) and entry.standing == "taken"
        return PatchState(
            patch=entry.patch,
            standing=entry.standing,
            day=entry.day,
            at=from_micros(entry.at),
            generated_by=entry.generated_by,
            author=entry.author,
            commit=entry.commit,
            in_tree=in_tree,
            file_needed=entry.is_own and entry.standing != "gone" and (not in_tree or entry.forgotten),
            lines=lines_of(self._stores, entry.steps),
            proposal=entry.proposal,
        )

    def _waiting(self, pending: PendingProposal) -> PatchState:
        proposal = pending.what
        at = from_micros(pending.at)
        return PatchState(
            patch=self.decisions.name(pending),
            standing="proposed",
            day=at[:10],
            at=at,
            generated_by=proposal.by,
            lines=tuple(change.line for change in self.decisions.changes(proposal)),
            proposal=proposal.id,
        )

    def get(self, request: GetPatch) -> PatchBytes:
        """Return a patch of this home as a file, or the one that a proposal would become. Raises NotFound."""
        pool, name = self._directory.named(request.pool), request.patch.strip().lower()
        entries = [entry for entry in self._stores.patches.all(pool) if entry.patch.startswith(name)]
        if len(entries) == 1:
            return self._file(entries[0])
        if not entries and (proposed := self._proposed(pool, name)) is not None:
            made = self.decisions.rendered(proposed)
            return PatchBytes(patch=made.id, data=made.data, standing="proposed")
        problem = "several patches start with" if entries else "no patch"
        raise NotFound(f"{problem} {request.patch!r}", hint="`memd patch list` shows their names")

    def _proposed(self, pool: str, name: str) -> PendingProposal | None:
        matching = [
            pending
            for pending in self._proposals(pool)
            if pending.what.id.startswith(name) or self.decisions.name(pending).startswith(name)
        ]
        return matching[0] if len(matching) == 1 else None

    def _file(self, entry: PatchEntry) -> PatchBytes:
        if not entry.is_own:
            raise NotFound(
                f"{entry.patch} came with the repository, which has its file",
                hint=f"`git show HEAD:.pi/patches/{entry.patch}.json`",
            )
        return PatchBytes(patch=entry.patch, data=file_of(self._stores, entry), standing=entry.standing)

    # --- out -----------------------------------------------------------------------------------------------------
    def send(self, request: SendPatch) -> PatchBytes:
        """Turn a proposal into a patch file that others decide. Raises NotFound, InvalidRequest."""
        pool, name = self._directory.named(request.pool), request.proposal.strip().lower()
        pending = self._proposed(pool, name)
        if pending is None:
            raise NotFound(
                f"no patch waits here as {request.proposal!r}", hint="`memd patch list` shows those that wait"
            )

        def work() -> PatchEntry | None:
            now = self._pending(pending.what.id)
            if now.state != "open":
                raise InvalidRequest(f"someone decided {now.what.id[:8]} in the meantime", hint="`memd inbox --all`")
            operations = self.decisions.accepted(now, sent=True)
            self._stores.commit(operations)
            sent = next(operation for operation in operations if isinstance(operation, PatchApplied))
            return self._stores.patches.get(sent.pool, sent.patch)

        entry = self._writer.run(work).result()
        assert entry is not None
        return self._file(entry)

    def publish(self, request: PublishPlaybook) -> PatchBytes:
        """Make one patch of the playbook's records that no patch states yet. Raises NotFound, InvalidRequest."""
        pool = self._directory.named(request.pool)
        if pool != PERSONAL and not pool.startswith(PROJECT):
            raise InvalidRequest("only a project and your personal memory have a playbook in files", hint="memd pools")
        if request.dry_run:
            return self._published(pool, commit=False)
        return self._writer.run(lambda: self._published(pool, commit=True)).result()

    def _published(self, pool: str, *, commit: bool) -> PatchBytes:
        today = from_micros(self._world.now())[:10]
        steps: list[PatchStep] = []
        left_out: list[tuple[str, str]] = []
        for record in self._unstated(pool):
            step = PatchStep("add", record.id, rev=record.rev, layer=record.layer, confidence=record.confidence)
            why = self._gate.why_not(record, step, pool, today)
            if not why and len(steps) >= PATCH_OPERATIONS:
                why = f"a patch has at most {PATCH_OPERATIONS:,} records: publish once more"
            if why:
                left_out.append((record.id, why))
            else:
                steps.append(step)
        if not steps:
            return PatchBytes(patch="", left_out=tuple(left_out))
        made = rendered(self._stores, pool, steps, PUBLISHER, today)
        if commit:
            applied = PatchApplied(
                pool=pool,
                patch=made.id,
                day=today,
                generated_by=PUBLISHER,
                steps=frozen(self._stores, steps),
                names=made.names,
                hash=file_hash(made.data),
            )
            self._stores.commit([applied])
        return PatchBytes(patch=made.id, data=made.data, standing="applied" if commit else "", left_out=tuple(left_out))

    def _unstated(self, pool: str) -> Sequence[Record]:
        """Return the records of a playbook that no patch states: neither one that counts, nor one that is sent."""
        entries = [
            entry for entry in self._stores.patches.all(pool) if entry.standing != "gone" and not entry.forgotten
        ]
        stated = {step.id for entry in entries for step in entry.steps if step.op in ADDS}
        layers = ("L1", "L2") if pool == PERSONAL else ("L2",)
        held = self._stores.records.many(self._stores.inbox.held([pool])).values()
        missing = (record for record in held if record.layer in layers and record.id not in stated)
        return sorted((record for record in missing if record.status in LIVE), key=learning_order)

    # --- in ------------------------------------------------------------------------------------------------------
    def take(self, request: TakePatches) -> PatchesTaken:
        """Take the new patches of a committed tree. Raises NotFound, InvalidRequest."""
        pool = self._directory.named(request.pool)
        mark = self._mark(pool)
        if not request.dry_run:
            self._check(pool, playbook_document(mark))
        most = self._thresholds(pool).playbook.most
        taking = PatchTaking(self._stores, pool, mark, request, self._world.now(), most)
        first = taking.built()
        contradictions = self._contradictions(first.fresh) if first.fresh else []
        if request.dry_run:
            first.contradicting(contradictions)
            return first.reply(dry_run=True)

        def work() -> PatchesTaken:
            taken = taking.built()
            taken.contradicting(contradictions)
            if operations := taken.operations():
                self._stores.commit(operations)
            return taken.reply(dry_run=False)

        return self._writer.run(work).result()

    def _check(self, pool: str, document: str) -> None:
        """Raise InvalidRequest for a repository whose patches the user does not want."""
        if not self._stores.patches.policy(pool).trusted:
            raise InvalidRequest(
                f"you do not trust the .pi folder of {self._directory.title(pool) or pool}",
                hint="`memd pi trust` shows what would come, and asks",
            )
        host = document.partition(":")[0]
        if {host, document} & {entry.source for entry in self._stores.grants.sources()}:
            raise InvalidRequest(REVOKED, hint=f"memd grant --back --source {document}")
        if self._stores.forgotten.names(document):
            raise InvalidRequest(FORGOTTEN, hint="`memd remember` takes a statement anew")
        if self._stores.forgotten.hiding(document):
            raise InvalidRequest(UNDONE, hint=f"memd redo {document}")

    def _mark(self, pool: str) -> str:
        """Return the mark of a pool's repository, the same in every home: that of the first patches that came, or one
        that follows from its root commit and remote. Raises InvalidRequest for a pool without a repository."""
        pools = self._stores.aliases.joined(pool)
        names = sorted({alias.name for each in pools for alias in self._stores.aliases.of_pool(each)}, key=_by_parts)
        marks = [mark_of(name) for name in names if any(parts_of(name))]
        for mark in marks:
            session = self._stores.sources.session(playbook_document(mark))
            if session is not None and session.opened.project == pool:
                return mark
        if not marks or not pool.startswith(PROJECT):
            raise InvalidRequest(
                f"{self._directory.title(pool) or pool} is no project with a git repository",
                hint="patches come with a repository that has a first commit",
            )
        return marks[0]

    def trust(self, request: TrustPi) -> PatchList:
        """Let memd read a project's `.pi` folder, or take that back. Raises NotFound, InvalidRequest."""
        pool = self._directory.named(request.pool)
        self._mark(pool)
        self._writer.run(lambda: self._trust(pool, request.trusted)).result()
        return self._listed(pool)

    def _trust(self, pool: str, trusted: bool) -> None:
        if self._stores.patches.policy(pool).trusted == trusted:
            return
        before, after = (PlaybookBelief(self._stores, pool, trusted=each) for each in (not trusted, trusted))
        authors = {entry.patch: entry.author for entry in before.entries}
        changes = RecordChanges(self._stores, self._world.now(), authors)
        changes.move(believed(before.counted()), believed(after.counted()))
        shifts = tuple(changes.after[id] for id in sorted(changes.after))
        operations: list[AnyOperation] = [PiTrusted(pool=pool, trusted=trusted, after=shifts)]
        self._stores.commit([*operations, *changes.operations, *changes.conflicts])


def _by_parts(name: str) -> tuple[int, str]:
    return -sum(map(bool, parts_of(name))), name


def mark_of(repository: str) -> str:
    """Return the mark of a repository's name."""
    return blake2b(repository.encode(), digest_size=8).hexdigest()
