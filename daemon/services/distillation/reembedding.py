"""The change from one embedding model to another while answers go on.

Invariants:
- the table that encodes a question and the vectors that it is compared with change in one assignment;
- the old model searches with its own vectors until every record has a vector of the new one; a stop loses at most one
  batch, and the old vectors stay in case the user goes back;
- without the old model the new one searches at once; memd finds records without a vector by keywords, and answers say
  so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from ....protocol.errors import ModelMissing, StorageFull
from ....protocol.reply import JobState, ModelList, Reembedding
from ...failpoint import reach
from ...projections.stores import Stores
from ...projections.vector_store import VectorStore
from ...projections.vectors import VectorIndexes, lacking, put_standing
from ..jobs import Jobs, Progress, Report
from ..search_model import SearchModel
from ..write_thread import Writer
from .model_selection import ModelSelection, SearchableModel, check, folder_of, load_model, save_choice, states
from .worker_messages import Embedded, EmbedTexts
from .worker_process import WorkerDied, WorkerProcess, WorkerUnusable

BATCH = 64
ATTEMPTS = 3
"""Consecutive failures of the next model before it waits for the next start or choice."""

log = logging.getLogger("memd.models")


class NextModel:
    """The next model: its vectors so far, and the records without one."""

    def __init__(self, model: SearchableModel, store: VectorStore) -> None:
        self.model, self.store = model, store
        self.left: list[str] = []
        self.total = 0
        self.failures, self.problem = 0, ""

    def count(self, stores: Stores) -> None:
        """Find the records that have no vector yet."""
        self.left, self.total = lacking(self.store, stores.records)


class EmbeddingModels:
    """The models of one home. The distiller's thread advances, any thread reads, the write thread changes."""

    def __init__(self, stores: Stores, writer: Writer, data: Path, selection: ModelSelection) -> None:
        self._stores, self._writer, self._data = stores, writer, data
        self._choice, self._trouble = selection.choice, selection.trouble
        self.searching: SearchableModel = selection.searching
        self.sense = _sense(stores.vectors, selection.searching)
        self._changed = selection.choice.complete not in ("", self.searching.id) or stores.vectors.lost(BATCH)
        """The vectors of before can't be searched any more: their model or they themselves are gone."""
        self._coming: NextModel | None = None
        if selection.wanted.id != self.searching.id:
            self._coming = self._begin(selection.wanted)

    def _begin(self, model: SearchableModel) -> NextModel:
        coming = NextModel(model, self._stores.vector_store.of(model.id, model.info.dimension))
        coming.count(self._stores)
        return coming

    # --- what is told ------------------------------------------------------------------------------------------------
    @property
    def reembedding(self) -> Reembedding | None:
        """The progress of a change of model; None without one."""
        if (coming := self._coming) is not None:
            done = coming.total - len(coming.left)
            return Reembedding(model=coming.model.id, done=done, total=coming.total, problem=coming.problem)
        held, total = self._stores.vectors.counts if self._changed else (0, 0)
        if held >= total:
            return None
        return Reembedding(model=self.searching.id, done=held, total=total, by_words=True)

    @property
    def searching_id(self) -> str:
        """The id of the model that searches."""
        return self.searching.id

    def pieces(self, text: str) -> int:
        """Count the word pieces of a text, by the tokenizer of the model that searches now."""
        return self.searching.pieces(text)

    @property
    def note(self) -> str:
        """A remark for answers; "" unless memd finds records by keywords alone."""
        held, total = self._stores.vectors.counts if self._changed else (0, 0)
        if held >= total:
            return ""
        return (
            f"{held:,} of {total:,} records have a vector of the current model; memd finds the others by keywords only"
        )

    @property
    def troubles(self) -> tuple[str, ...]:
        """Problems of the models, for `memd status`."""
        problem = self._coming.problem if self._coming else ""
        return tuple(filter(None, (self._trouble, problem)))

    def list(self) -> ModelList:
        """List the models on this machine."""
        return ModelList(models=states(self._choice.wanted, self.searching), reembedding=self.reembedding)

    # --- a choice ----------------------------------------------------------------------------------------------------
    def use(self, name: str, jobs: Jobs, wake: Callable[[], None]) -> JobState:
        """Start to check and choose a model; re-embedding continues after the job. Raises InvalidRequest for a
        relative folder, Unavailable beside another job."""
        folder = folder_of(name)

        def work(progress: Progress) -> Report:
            progress(0, 1, "checking the model's files and its vectors")
            check(folder)
            model = load_model(folder)
            coming = None if model.id == self.searching.id else self._begin(model)
            self._writer.run(lambda: self._choose(model, coming)).result()
            wake()
            progress(1, 1, "done")
            left, total = (len(coming.left), coming.total) if coming else (0, self._stores.vectors.counts[1])
            log.info("chose %s: %d of %d records to embed", model.id, left, total)
            return {"id": model.id, "folder": folder, "records": total, "to_embed": left}

        return jobs.start("model", work)

    def _choose(self, model: SearchableModel, coming: NextModel | None) -> None:
        """Choose a model. On the write thread."""
        self._save(wanted=model.folder)
        self._trouble = ""
        if model.id == self.searching.id:  # the same vectors, perhaps with another table
            self._coming = None
            self.searching, self.sense = model, _sense(self._stores.vectors, model)
        else:
            self._coming = coming or self._begin(model)

    def _save(self, **changes: str) -> None:
        choice = msgspec.structs.replace(self._choice, **changes)
        if choice != self._choice:
            save_choice(self._data, choice)
            self._choice = choice

    # --- the way -----------------------------------------------------------------------------------------------------
    def advance(self, worker: WorkerProcess) -> bool:
        """Embed one batch with the next model; return whether there is more to do."""
        coming = self._coming
        if coming is None:
            self._settle()
            return False
        if coming.failures >= ATTEMPTS:
            return False
        try:
            self._step(coming, worker)
            coming.failures = 0
        except (WorkerDied, WorkerUnusable, ModelMissing) as error:
            coming.failures += 1
            log.error("embedding with %s failed: %s", coming.model.id, error)
            if coming.failures == ATTEMPTS:
                coming.problem = f"embedding with {coming.model.id} stopped: {error}; see `memd model verify`"
        return True

    def _step(self, coming: NextModel, worker: WorkerProcess) -> None:
        if not coming.left:
            coming.count(self._stores)  # records that came meanwhile
            if len(coming.left) <= BATCH:  # the rest is embedded after the change, like new records
                self._change(coming)
                return
        worker.load(coming.model.folder)
        records = self._stores.records.many(coming.left[-BATCH:])
        texts = [(id, record.description) for id, record in records.items()]
        rows = worker.ask(EmbedTexts(texts=tuple(text for _, text in texts)), Embedded).vectors
        embedded = [(id, text, raw) for (id, text), raw in zip(texts, rows, strict=True)]
        self._writer.run(lambda: put_standing(coming.store, self._stores.records, embedded)).result()
        reach("model:embedded")
        del coming.left[-BATCH:]

    def _change(self, coming: NextModel) -> None:
        """Search with the next model from now on."""
        stores, run = self._stores, self._writer.run
        seq = run(lambda: stores.tables.applied_seq).result()
        fresh = VectorIndexes(coming.store, stores.records, seq, stores.graphs)

        def finish() -> None:
            if self._coming is not coming:  # the user chose another model meanwhile
                return
            stores.catch_up(fresh)
            stores.search_in(fresh)
            self.searching, self.sense = coming.model, _sense(fresh, coming.model)
            self._coming, self._changed = None, False
            reach("model:swapped")
            log.info("switched search to model %s", coming.model.id)

        run(finish).result()

    def _settle(self) -> None:
        """Note that every record has a vector of the searching model; drop vectors older than the one before."""
        now = (self.searching.folder, self.searching.id)
        before = self._choice.complete
        if (self._choice.complete_folder, before) == now or self._stores.vectors.missing(1):
            return
        try:
            self._writer.run(lambda: self._save(complete_folder=now[0], complete=now[1])).result()
        except StorageFull as error:
            log.warning("%s", error.message)
            return
        self._changed = False
        if before:
            self._writer.run(self._stores.keep_vectors).result()


def _sense(vectors: VectorIndexes, model: SearchableModel) -> SearchModel:
    return SearchModel(vectors, model.encode, model.info.languages, model.pieces, not model.folder)
