"""The distiller: takes captures through the worker and commits the resulting operations, in order.

Invariants: the cursor is committed with the operations of its batch, so a kill loses and doubles nothing; a stale
proposal is judged again at most three times, then added with `needs_review`; a capture that fails after its retries
becomes a dead letter.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

import msgspec
import numpy as np

from ....protocol.dead_letters import DeadLetter
from ....protocol.errors import JournalCorrupt
from ....protocol.event import Captured, Reflected, Said, Wrote, text
from ....protocol.ingestion import SUMMARY
from ....protocol.operation import Added, AnyOperation, Distilled, Failure, Retried, Updated
from ....protocol.record import Record
from ....stages.batch import PERSONAL, AgentText, Candidate, Given, Item, Known, Proposal
from ...config import Config
from ...projections.placement import agent_pool
from ...projections.stores import Stores
from ...storage.archive import Archive
from ..write_thread import Writer
from . import pin_conflicts
from .copied_turns import CopiedTurns
from .lesson_cues import taught
from .proposals import operations_of, stale
from .reembedding import EmbeddingModels
from .worker_messages import Conflicts, DistilItems, Distillate, Embedded, EmbedTexts, JudgeCandidates, Judged
from .worker_process import TaskCrashed, WorkerDied, WorkerProcess, WorkerUnusable

NEIGHBOURS = 8
ROUNDS = 3
DEATHS = 4
"""A worker may be killed from outside; the same captures are to blame when it died of them this often."""

HELD_S = 1.0
"""Interval between checks whether a pause of all folders, or a job that users wait for, still holds."""

Closing = Callable[[Distillate], AnyOperation]
"""Returns the operation that ends a batch: the cursor, or the state of a dead letter."""

PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
BATCH_CHARACTERS = 256 * 1024
READ_TURNS = 4096
"""Turns of a session in which the words that a reader points at are searched for what the agent wrote first."""

AGENT_TURNS = 96
"""Turns before a user's turn in which its words and its question are searched: more than a batch has."""

log = logging.getLogger("memd.distiller")


class DistillationLoop:
    """The thread between archive and journal."""

    def __init__(
        self,
        stores: Stores,
        writer: Writer,
        worker: WorkerProcess,
        models: EmbeddingModels,
        config: Callable[[], Config],
        *,
        given: Callable[[Iterable[Captured]], dict[str, Given]],
        judge: Callable[[], Callable[[Record], Record]],
        paused: Callable[[], bool],
        held: Callable[[], bool],
        tell: Callable[[str, str], None],
    ) -> None:
        """`given`: texts that each session received from memd; `judge`: marks new records as on probation; `paused`:
        whether distillation is paused; `held`: whether it waits for models that a user waits for; `tell`: tells
        clients an event."""
        self._tell = tell
        self._stores, self._writer, self._worker, self._models, self._config = stores, writer, worker, models, config
        self._given, self._judge_of, self._paused, self._held = given, judge, paused, held
        self._dead_letters: queue.SimpleQueue[tuple[DeadLetter, Future[str]]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="distiller", daemon=True)
        self.trouble = ""
        self._alone = 0
        self._died_at, self._deaths = 0, 0
        self._cut_by = 0

    def start(self) -> None:
        """Start the thread; it begins with pending captures."""
        self._wake.set()
        self._thread.start()

    def wake(self) -> None:
        """Distil pending captures soon."""
        self._wake.set()

    def retry(self, letter: DeadLetter) -> Future[str]:
        """Retry a dead letter soon: the result is the new failure or "". Raises WorkerUnusable in the future."""
        future: Future[str] = Future()
        self._dead_letters.put((letter, future))
        self._wake.set()
        return future

    def stop(self) -> None:
        """End at once; the next start distils uncommitted captures."""
        self._stopping.set()
        self._wake.set()
        self._worker.end(for_good=True)
        self._thread.join()

    def _loop(self) -> None:
        pause_s = PAUSE_S
        while not self._stopping.is_set():
            if not self._wake.wait(self._config().worker_idle_s):
                self._worker.end()
                self._wake.wait()
            self._wake.clear()
            self._retry_dead_letters()
            if self._paused() or self._held():
                self._worker.end()
                self._wake.wait(HELD_S)
                self._wake.set()
                continue
            try:
                while not (self._stopping.is_set() or self._paused() or self._held()) and self._work():
                    self._retry_dead_letters()
                self.trouble, pause_s = "", PAUSE_S
            except (WorkerDied, WorkerUnusable) as error:
                pause_s = self._pause(f"the worker failed: {error}", pause_s)
            except Exception as error:
                log.exception("distilling failed")
                pause_s = self._pause(f"distilling failed: {type(error).__name__}", pause_s)

    def _work(self) -> bool:
        return self._distil_some() or self._embed_some() or self._advance()

    def _retry_dead_letters(self) -> None:
        while not self._stopping.is_set() and not self._dead_letters.empty():
            letter, future = self._dead_letters.get()
            try:
                future.set_result(self._retry(letter))
            except Exception as error:  # the caller of `result` gets it
                future.set_exception(error)

    def _retry(self, letter: DeadLetter) -> str:
        """Distil one capture again, alone; commit the result and the state of the dead letter together."""
        failed: Failure | None = None

        def closing(distillate: Distillate) -> AnyOperation:
            nonlocal failed
            failed = next(iter(distillate.batch.failures), None)
            return self._retried(letter, failed)

        for again in (True, False):
            try:
                if items := self._items_of(letter):
                    self._distil(items, closing)
                    return failed.error if failed else ""
                break
            except (WorkerDied, JournalCorrupt) as error:
                if again and isinstance(error, WorkerDied) and not isinstance(error, TaskCrashed):
                    continue  # the first death may have another cause
                failed = Failure(letter.id, letter.document, letter.turn, "worker", str(error)[:300])
                break
        operation = self._retried(letter, failed)
        self._writer.run(lambda: self._stores.commit([operation])).result()
        return failed.error if failed else ""

    def _retried(self, letter: DeadLetter, failed: Failure | None) -> Retried:
        return Retried(archive_seq=letter.id, document=letter.document, turn=letter.turn, failed=failed)

    def _items_of(self, letter: DeadLetter) -> list[Item]:
        """Return the capture of a dead letter; none if its text is gone or a later version of the turn replaced it."""
        archive = self._stores.archive
        self._cut_by = archive.cut_by
        for seq, captured in archive.after(letter.id - 1, 1):
            if seq == letter.id == archive.seq_of(captured.document, captured.event.turn):
                return [self._item(seq, captured)]
        return []

    def _pause(self, trouble: str, pause_s: float) -> float:
        """Record the problem and wait; return the next pause. Captures stay in the archive."""
        if not self._stopping.is_set():
            self.trouble = trouble
            log.error("%s; retrying in %.0f s", trouble, pause_s)
            self._stopping.wait(pause_s)
            self._wake.set()
        return min(pause_s * 2, LONGEST_PAUSE_S)

    def _next_items(self) -> tuple[list[Item], int]:
        """Return the next items, one alone while searching for the capture that kills the worker."""
        self._cut_by = self._stores.archive.cut_by
        cursor = self._stores.sources.progress().archive_seq
        most = 1 if self._alone else self._config().batch_captures
        items: list[Item] = []
        copies = CopiedTurns(self._stores.sources, self._stores.archive)
        size, upto = 0, min(cursor + most, self._stores.archive.last)
        for seq, captured in self._stores.archive.after(cursor, most):
            is_taken = not copies.has(seq, captured) and not self._is_replaced(seq, captured)
            items += [self._item(seq, captured)] if is_taken else []
            upto = seq
            size += len(getattr(captured.event, "text", ""))
            if size > BATCH_CHARACTERS:
                break
        return items, upto

    def _is_replaced(self, seq: int, captured: Captured) -> bool:
        """Whether a later version of the turn came before this one was distilled: only that one is the source's word
        (W13)."""
        return self._stores.archive.seq_of(captured.document, captured.event.turn) > seq

    def _item(self, seq: int, captured: Captured) -> Item:
        """Add the document's project as decided when it was opened ("" for the user's own pool) and its agent's own
        pool."""
        session = self._stores.sources.session(captured.document)
        home = self._stores.aliases.home(session.opened.project) if session and session.opened.project else ""
        agent = agent_pool(session.opened.origin.agent) if session else ""
        known = agent if agent and self._stores.sources.pool(agent) is not None else ""
        project = "" if home == PERSONAL else home
        return Item(seq=seq, captured=captured, project=project, agent=known, quoted=self._quoted(seq, captured))

    def _quoted(self, seq: int, captured: Captured) -> tuple[tuple[int, Captured], ...]:
        """Return the captures that a reader of the session points at; without forgotten ones, and those that a host
        rewrote since, in which the places are of other words."""
        if not isinstance(captured.event, Reflected):
            return ()
        turns = dict.fromkeys(quote.turn for statement in captured.event.statements for quote in statement.quotes)
        found = (self._stores.archive.find(captured.document, turn) for turn in turns)
        return tuple((place, quoted) for place, quoted in found if quoted is not None and place < seq)

    def _distil_some(self) -> bool:
        try:
            items, upto = self._next_items()
        except JournalCorrupt as error:
            return self._unreadable(error)
        if not items:
            return self._pass_over(upto)
        try:
            self._distil(items, lambda distillate: _cursor(items, upto, distillate))
        except WorkerDied as error:
            if self._stopping.is_set() or not self._is_to_blame(items[0].seq, error):
                raise
            if len(items) > 1:
                self._alone, self._deaths = len(items), 0
                return True
            self._set_aside(upto, items[0].captured.document, items[0].captured.event.turn, error)
        self._alone = max(0, self._alone - len(items))
        return True

    def _is_to_blame(self, seq: int, error: WorkerDied) -> bool:
        """Return whether the captures from `seq` on crash the worker, by its report or by repeated deaths."""
        self._deaths = self._deaths + 1 if self._died_at == seq else 1
        self._died_at = seq
        return isinstance(error, TaskCrashed) or self._deaths >= DEATHS

    def _unreadable(self, error: JournalCorrupt) -> bool:
        if self._alone == 0:
            self._alone = self._config().batch_captures
            return True
        self._alone -= 1
        self._set_aside(self._stores.sources.progress().archive_seq + 1, "", "", error)
        return True

    def _set_aside(self, seq: int, document: str, turn: str, error: Exception) -> None:
        """Skip one capture that can't be distilled, and list it as a dead letter."""
        log.error("capture %d failed and is now a dead letter: %s", seq, type(error).__name__)
        self._tell("failed", f"{document} {turn}: {type(error).__name__}")
        failure = Failure(seq, document, turn, "worker", str(error)[:300])
        cursor = Distilled(archive_seq=seq, captures=1, candidates=0, failed=(failure,))
        self._writer.run(lambda: self._stores.commit([cursor])).result()

    def _distil(self, items: Sequence[Item], closing: Closing) -> None:
        documents = Counter(item.captured.document for item in items)
        for document, captures in documents.items():
            self._tell("distilling", f"{document}, captures: {captures}")
        self._worker.load(self._models.searching.folder)
        given = self._given(item.captured for item in items)
        task = DistilItems(items=tuple(items), given=given, agent=_agent_texts(self._stores.archive, items))
        distillate = self._worker.ask(task, Distillate)
        end = closing(distillate)
        for rounds in range(1, ROUNDS + 1):
            proposals = self._judge(distillate, rounds)
            conflicts = self._find_conflicts(items, proposals)
            if not self._commit(items, proposals, (end, conflicts), final=rounds == ROUNDS):
                break
        for failure in distillate.batch.failures:
            self._tell("failed", f"{failure.document} {failure.turn}: {failure.stage}: {failure.error}")
        found = Counter(candidate.item.captured.document for candidate in distillate.batch.candidates)
        for document in documents:
            self._tell("distilled", f"{document}, candidates: {found[document]}")

    def _find_conflicts(self, items: Sequence[Item], proposals: Sequence[Proposal]) -> Conflicts:
        """Return conflicts between pinned records and the sessions that end here."""
        question = pin_conflicts.question(self._stores, items, proposals)
        return self._worker.ask(question, Conflicts) if question else Conflicts(found=())

    def _pass_over(self, upto: int) -> bool:
        """Advance the cursor over captures that were forgotten before they were distilled."""
        if upto <= self._stores.sources.progress().archive_seq:
            return False
        cursor = Distilled(archive_seq=upto, captures=0, candidates=0)
        self._writer.run(lambda: self._stores.commit([cursor])).result()
        return True

    def _judge(self, distillate: Distillate, rounds: int) -> tuple[Proposal, ...]:
        if not distillate.ids:
            return ()
        known = {
            id: tuple(self._neighbours(id, candidate))
            for id, candidate in zip(distillate.ids, distillate.batch.candidates, strict=True)
        }
        proposals = self._worker.ask(JudgeCandidates(known=known), Judged).proposals
        return tuple(
            msgspec.structs.replace(p, decision=msgspec.structs.replace(p.decision, rounds=rounds)) for p in proposals
        )

    def _neighbours(self, id: str, candidate: Candidate) -> list[Known]:
        """Return the known records near a candidate: itself, the holder of its key, the nearest by vector."""
        pools = tuple(dict.fromkeys(pool for pool in (candidate.pool, PERSONAL, candidate.item.project) if pool))
        similar: dict[str, float] = {id: 1.0}
        if candidate.key and (holder := self._stores.records.holding_key(candidate.pool, candidate.key)):
            similar.setdefault(holder, 0.0)
        vector = np.frombuffer(candidate.vector, np.float32)
        if len(vector):
            for near, cosine in self._stores.vectors.nearest(vector, pools, NEIGHBOURS):
                similar[near] = max(cosine, similar.get(near, -1.0))
        records = self._stores.records.many(similar)
        stated = {near: record for near, record in records.items() if SUMMARY not in record.tags}
        return [Known(record=record, similarity=similar[near]) for near, record in stated.items()]

    def _commit(
        self,
        items: Sequence[Item],
        proposals: Sequence[Proposal],
        end: tuple[AnyOperation, Conflicts],
        *,
        final: bool,
    ) -> list[str]:
        """Commit the batch with its end and its conflicts, all or nothing; return the ids of stale proposals. A batch
        is dropped if a turn of it was forgotten, redacted or replaced meanwhile, and is read and distilled again."""
        vectors = [(p.record.description, p.vector) for p in proposals if p.vector]

        def work() -> list[str]:
            read = [place for item in items for place in ((item.seq, item.captured), *item.quoted)]
            turns = ((captured.document, captured.event.turn) for _, captured in read)
            if self._stores.forgotten.among(turns) or self._stores.archive.cut_by != self._cut_by:
                return []
            if any(self._is_replaced(seq, captured) for seq, captured in read):
                return []
            again = stale(self._stores, proposals)
            if again and not final:
                return again
            standing = [_unsure(p) if p.record.id in again else p for p in proposals]
            spared = [pin_conflicts.spare(self._stores, p) for p in standing]
            judge = self._judge_of()
            operations: list[AnyOperation] = operations_of(
                self._stores, [p for p, _ in spared], lambda record: taught(self._stores, judge(record))
            )
            coming = [operation.record.id for operation in operations if isinstance(operation, Added | Updated)]
            conflicts = [conflict for p, pairs in spared for conflict in (*p.conflicts, *pairs)] + list(end[1].found)
            self._stores.vector_store.put(vectors)
            self._stores.commit([*operations, *pin_conflicts.proposed(self._stores, conflicts, coming), end[0]])
            return []

        return self._writer.run(work).result()

    def _embed_some(self) -> bool:
        """Embed records without a vector of the current model."""
        missing = self._stores.vectors.missing(256)
        if not missing:
            return False
        texts = tuple(text for _, text in missing)
        self._worker.load(self._models.searching.folder)
        vectors = self._worker.ask(EmbedTexts(texts=texts), Embedded).vectors
        filled = [(id, text, raw) for (id, text), raw in zip(missing, vectors, strict=True)]
        self._writer.run(lambda: self._stores.vectors.fill(filled)).result()
        return True

    def _advance(self) -> bool:
        """Embed for the next model until there is something to distil; each switch loads a model."""
        went = False
        while not self._stopping.is_set() and not self._wake.is_set() and self._models.advance(self._worker):
            went = True
        return went

    @property
    def worker_state(self) -> str:
        """`running`, `idle` without a process, `paused`, or the problem."""
        return self.trouble or ("paused" if self._paused() else "running" if self._worker.alive else "idle")


def _agent_texts(archive: Archive, items: Sequence[Item]) -> dict[str, tuple[AgentText, ...]]:
    """Return what the agents of these sessions wrote before and between the user's turns here, and before the end of a
    session that left something open, by document."""
    asked: dict[str, str] = {}
    for item in items:
        event = item.captured.event
        is_users = isinstance(event, Said) and event.role == "user"
        if is_users or (isinstance(event, Wrote) and event.form == "open"):
            asked[item.captured.document] = event.turn  # the last one
    texts = {document: archive.around(document, turn, AGENT_TURNS, 0) for document, turn in asked.items()}
    texts |= {item.captured.document: _before(archive, item) for item in items if item.quoted}
    return {
        document: tuple(
            AgentText(seq, text(captured.event), captured.event.turn)
            for seq, captured in before
            if _is_agents(captured)
        )
        for document, before in texts.items()
    }


def _before(archive: Archive, item: Item) -> list[tuple[int, Captured]]:
    """Return the captures of a session before the last one that its reader points at."""
    _, last = max(item.quoted, key=lambda row: row[0])
    return archive.around(item.captured.document, last.event.turn, READ_TURNS, 0)


def _is_agents(captured: Captured) -> bool:
    return isinstance(captured.event, Said) and captured.event.role == "assistant"


def _cursor(items: Sequence[Item], upto: int, distillate: Distillate) -> Distilled:
    """Return the cursor after these items."""
    rejected = Counter(f"{rejection.stage}: {rejection.reason}" for rejection in distillate.batch.rejections)
    return Distilled(
        archive_seq=upto,
        captures=len(items),
        candidates=len(distillate.batch.candidates),
        rejected=dict(rejected),
        failed=distillate.batch.failures,
    )


def _unsure(proposal: Proposal) -> Proposal:
    """Mark a proposal whose neighbours kept changing for review; it retires nothing."""
    record = msgspec.structs.replace(proposal.record, needs_review=True)
    decision = msgspec.structs.replace(proposal.decision, reason=f"{proposal.decision.reason}; its neighbours changed")
    return msgspec.structs.replace(proposal, record=record, decision=decision, retires=())
