"""The distiller: drives captures through the worker and proposals into the journal, in order, until none is pending.

Comes in: wake-ups (a session's end, idleness, an explicit remember). Goes out: operations, and the cursor that says how
far the archive is distilled. Invariants: the cursor is committed with what it produced, so a kill at any point loses
and doubles nothing; a proposal that went stale is judged again, at most three times, then added with `needs_review`; a
capture that fails after its retries is recorded and passed over, never dropped silently (P-12); at most one worker.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypedDict

import msgspec
import numpy as np

from ....protocol.errors import JournalCorrupt
from ....protocol.event import Captured
from ....protocol.operation import Added, AnyOperation, Distilled, Failure, Retried, Updated
from ....protocol.record import Record
from ....protocol.running import DeadLetter
from ....stages.batch import PERSONAL, Candidate, Given, Item, Known, Proposal
from ...config import Config
from ...projections.placement import agent_pool
from ...projections.stores import Stores
from ..write_thread import Writer
from . import pin_conflicts
from .proposals import operations_of, stale
from .reembedding import EmbeddingModels
from .worker_messages import Conflicts, DistilItems, Distillate, Embedded, EmbedTexts, JudgeCandidates, Judged
from .worker_process import TaskCrashed, WorkerDied, WorkerProcess, WorkerUnusable

NEIGHBOURS = 8
ROUNDS = 3
DEATHS = 4
"""A worker may be killed from outside; the same captures are to blame when it died of them this often."""

HELD_S = 1.0
"""While memd is paused everywhere, how often it is looked whether it still is."""

Closing = Callable[[Distillate], AnyOperation]
"""What is committed with what a batch led to: the cursor, or the word on a dead letter."""

PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
BATCH_CHARACTERS = 256 * 1024
log = logging.getLogger("memd.distiller")


class DocumentPools(TypedDict):
    """Where what a document says may lie: its project's pool and its agent's own, "" for none."""

    project: str
    agent: str


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
    ) -> None:
        """`given`: what memd told each session before; `judge`: what marks a new record as on probation; `paused`:
        whether nothing is to be distilled now."""
        self._stores, self._writer, self._worker, self._models, self._config = stores, writer, worker, models, config
        self._given, self._judge_of, self._paused = given, judge, paused
        self._letters: queue.SimpleQueue[tuple[DeadLetter, Future[str]]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="distiller", daemon=True)
        self.seconds: Counter[str] = Counter()
        self.trouble = ""
        self._alone = 0
        self._died_at, self._deaths = 0, 0
        self._cut_by = 0

    def start(self) -> None:
        """Begin; what was left pending by the last run is done first."""
        self._wake.set()
        self._thread.start()

    def wake(self) -> None:
        """Distil what is pending, soon."""
        self._wake.set()

    def retry(self, letter: DeadLetter) -> Future[str]:
        """Try a dead letter again, soon: why it stays one, "" if it is done; WorkerUnusable if there is no worker."""
        future: Future[str] = Future()
        self._letters.put((letter, future))
        self._wake.set()
        return future

    def stop(self) -> None:
        """End at once: what is not committed yet is done by the next start."""
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
            self._retry_letters()
            if self._paused():
                self._worker.end()
                self._wake.wait(HELD_S)
                self._wake.set()
                continue
            try:
                while not self._stopping.is_set() and not self._paused() and self._work():
                    self._retry_letters()
                self.trouble, pause_s = "", PAUSE_S
            except (WorkerDied, WorkerUnusable) as error:
                pause_s = self._pause(f"the worker failed: {error}", pause_s)
            except Exception as error:
                log.exception("distilling failed")
                pause_s = self._pause(f"distilling failed: {error}", pause_s)

    def _work(self) -> bool:
        return self._distil_some() or self._embed_some() or self._advance()

    def _retry_letters(self) -> None:
        while not self._stopping.is_set() and not self._letters.empty():
            letter, future = self._letters.get()
            try:
                future.set_result(self._retry(letter))
            except Exception as error:  # whoever waits for the future hears of it
                future.set_exception(error)

    def _retry(self, letter: DeadLetter) -> str:
        """Distil one capture again, alone; what comes of it and of the letter is one commit (P-12)."""
        failed: Failure | None = None

        def closing(distillate: Distillate) -> AnyOperation:
            nonlocal failed
            failed = next(iter(distillate.batch.failures), None)
            return self._retried(letter, failed)

        for again in (True, False):
            try:
                if items := self._item(letter):
                    self._distil(items, closing)
                    return failed.error if failed else ""
                break
            except (WorkerDied, JournalCorrupt) as error:
                if again and isinstance(error, WorkerDied) and not isinstance(error, TaskCrashed):
                    continue  # perhaps from outside: a second death is its own
                failed = Failure(letter.id, letter.document, letter.turn, "worker", str(error)[:300])
                break
        operation = self._retried(letter, failed)
        self._writer.run(lambda: self._stores.commit([operation])).result()
        return failed.error if failed else ""

    def _retried(self, letter: DeadLetter, failed: Failure | None) -> Retried:
        return Retried(archive_seq=letter.id, document=letter.document, turn=letter.turn, failed=failed)

    def _item(self, letter: DeadLetter) -> list[Item]:
        """The capture of a letter; none if its words are gone, or a later version of the turn took its place."""
        archive = self._stores.archive
        self._cut_by = archive.cut_by
        for seq, captured in archive.after(letter.id - 1, 1):
            if seq == letter.id == archive.seq_of(captured.document, captured.event.turn):
                return [Item(seq=seq, captured=captured, **self._places(captured.document))]
        return []

    def _pause(self, trouble: str, pause_s: float) -> float:
        """Say what is wrong, wait, and come back: nothing is lost, the captures are in the archive."""
        if not self._stopping.is_set():
            self.trouble = trouble
            log.error("%s; retrying in %.0f s", trouble, pause_s)
            self._stopping.wait(pause_s)
            self._wake.set()
        return min(pause_s * 2, LONGEST_PAUSE_S)

    def _next_items(self) -> tuple[list[Item], int]:
        """What is distilled next, one capture alone while the one that stopped a batch is looked for."""
        self._cut_by = self._stores.archive.cut_by
        cursor = self._stores.sources.progress().archive_seq
        most = 1 if self._alone else self._config().batch_captures
        items: list[Item] = []
        size, upto = 0, min(cursor + most, self._stores.archive.last)
        for seq, captured in self._stores.archive.after(cursor, most):
            items.append(Item(seq=seq, captured=captured, **self._places(captured.document)))
            upto = seq
            size += len(getattr(captured.event, "text", ""))
            if size > BATCH_CHARACTERS:
                break
        return items, upto

    def _places(self, document: str) -> DocumentPools:
        """The project that a document feeds, "" for the user's own pool: as decided when it was opened, and joined; and
        its agent's own pool, if the user opened one (P5)."""
        session = self._stores.sources.session(document)
        home = self._stores.aliases.home(session.opened.project) if session and session.opened.project else ""
        agent = agent_pool(session.opened.origin.agent) if session else ""
        known = agent if agent and self._stores.sources.pool(agent) is not None else ""
        return {"project": "" if home == PERSONAL else home, "agent": known}

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
        """Whether the captures from `seq` on stop the worker: it says so, or died of the same ones again and again."""
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
        """Pass over one capture that can't be distilled, and list it (P-12)."""
        log.error("capture %d failed and is now a dead letter: %s", seq, error)
        failure = Failure(seq, document, turn, "worker", str(error)[:300])
        cursor = Distilled(archive_seq=seq, captures=1, candidates=0, failed=(failure,))
        self._writer.run(lambda: self._stores.commit([cursor])).result()

    def _distil(self, items: Sequence[Item], closing: Closing) -> None:
        self._worker.load(self._models.searching.folder)
        given = self._given(item.captured for item in items)
        distillate = self._worker.ask(DistilItems(items=tuple(items), given=given), Distillate)
        self.seconds.update(distillate.seconds)
        end = closing(distillate)
        for rounds in range(1, ROUNDS + 1):
            proposals = self._judge(distillate, rounds)
            conflicts = self._hold(items, proposals)
            if not self._commit(items, proposals, (end, conflicts), final=rounds == ROUNDS):
                break

    def _hold(self, items: Sequence[Item], proposals: Sequence[Proposal]) -> Conflicts:
        """What the sessions that end here say against what is held on to (T13)."""
        question = pin_conflicts.question(self._stores, items, proposals)
        return self._worker.ask(question, Conflicts) if question else Conflicts(found=())

    def _pass_over(self, upto: int) -> bool:
        """Nothing is left of the captures up to `upto`: they were forgotten before they were distilled (T10)."""
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
        """What memd knows that is near a candidate: its own record, the holder of its key, the nearest by vector."""
        pools = tuple(dict.fromkeys(pool for pool in (candidate.pool, PERSONAL, candidate.item.project) if pool))
        similar: dict[str, float] = {id: 1.0}
        if candidate.key and (holder := self._stores.records.holding_key(candidate.pool, candidate.key)):
            similar.setdefault(holder, 0.0)
        vector = np.frombuffer(candidate.vector, np.float32)
        if len(vector):
            for near, cosine in self._stores.vectors.nearest(vector, pools, NEIGHBOURS):
                similar[near] = max(cosine, similar.get(near, -1.0))
        records = self._stores.records.many(similar)
        return [Known(record=record, similarity=similar[near]) for near, record in records.items()]

    def _commit(
        self,
        items: Sequence[Item],
        proposals: Sequence[Proposal],
        end: tuple[AnyOperation, Conflicts],
        *,
        final: bool,
    ) -> list[str]:
        """Commit the batch with its end and its conflicts, all or nothing; the ids to judge again, if any went stale.

        A batch is dropped if a turn of it was forgotten or a secret cut out meanwhile: it is read and distilled again
        without it (T10, P-18).
        """
        vectors = [(p.record.description, p.vector) for p in proposals if p.vector]

        def work() -> list[str]:
            turns = ((item.captured.document, item.captured.event.turn) for item in items)
            if self._stores.forgotten.among(turns) or self._stores.archive.cut_by != self._cut_by:
                return []
            again = stale(self._stores, proposals)
            if again and not final:
                return again
            standing = [_unsure(p) if p.record.id in again else p for p in proposals]
            spared = [pin_conflicts.spare(self._stores, p) for p in standing]
            operations: list[AnyOperation] = operations_of(self._stores, [p for p, _ in spared], self._judge_of())
            coming = [each.record.id for each in operations if isinstance(each, Added | Updated)]
            conflicts = [*(each for _, found in spared for each in found), *end[1].found]
            self._stores.vector_store.put(vectors)
            self._stores.commit([*operations, *pin_conflicts.proposed(self._stores, conflicts, coming), end[0]])
            return []

        return self._writer.run(work).result()

    def _embed_some(self) -> bool:
        """Give vectors to records that have none of this model's: edited ones, or all after a change of model."""
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
        """Towards another model, until there is something to distil: each change of hands loads a model."""
        went = False
        while not self._stopping.is_set() and not self._wake.is_set() and self._models.advance(self._worker):
            went = True
        return went

    @property
    def worker_state(self) -> str:
        """`running`, `idle` while there is no process, `paused`, or what is wrong."""
        return self.trouble or ("paused" if self._paused() else "running" if self._worker.alive else "idle")


def _cursor(items: Sequence[Item], upto: int, distillate: Distillate) -> Distilled:
    """The pipeline's cursor behind these items."""
    rejected = Counter(f"{rejection.stage}: {rejection.reason}" for rejection in distillate.batch.rejections)
    return Distilled(
        archive_seq=upto,
        captures=len(items),
        candidates=len(distillate.batch.candidates),
        rejected=dict(rejected),
        failed=distillate.batch.failures,
    )


def _unsure(proposal: Proposal) -> Proposal:
    """A proposal that never stood still: added beside what it may contradict, for the user to look at."""
    record = msgspec.structs.replace(proposal.record, needs_review=True)
    decision = msgspec.structs.replace(proposal.decision, reason=f"{proposal.decision.reason}; its neighbours changed")
    return msgspec.structs.replace(proposal, record=record, decision=decision, retires=())
