"""Does forgetting help? Two memories live through the same half year, one of them with sleep, and answer the same
questions (T6, issue 7's claim).

Comes in: an empty home. Goes out: for each subject, the share of its answers that are still true; the share of seldom
used, true facts that are found. Invariants: both memories get the same words, the same uses, the same questions; no
statement tells which other one it replaces, so nothing but use says what is stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..daemon.forgetting_rules import Rules
from ..daemon.projections.stores import Stores
from ..daemon.projections.strength import DAY
from ..daemon.services.lifecycle.sleep import Sleep
from ..daemon.services.recall.feedback import RecentAnswers
from ..daemon.services.recall.warm import SearchIndexes, WarmRecall
from ..daemon.services.search_model import SearchModel
from ..daemon.services.write_thread import NoCaptures, WriteThread
from ..daemon.world import World
from ..models import registry
from ..protocol.fading import Count, Counted
from ..protocol.instant import from_micros
from ..protocol.operation import Added, Decision
from ..protocol.places import Places
from ..protocol.record import Provenance, Record, Span, record_id
from ..protocol.request import Recall

SUBJECTS, VALUES, SELDOM = 150, 4, 100
"""Subjects whose statement changes so many times, and facts that are needed once a month."""

DAYS = 180
POOL = "personal"
_THINGS = "gateway parser scheduler importer mailer archive ledger printer crawler monitor".split()
_PLACES = "berlin oslo lyon porto turin ghent delft graz brno cork lund nantes bergen vigo malmo".split()
_VALUES = "copper silver amber violet crimson cobalt".split()
WHY = Decision(action="add", reason="measured")


class Life:
    """One memory that lives through the days."""

    def __init__(self, folder: Path, world: World, rules: Rules) -> None:
        self.day = 0
        self._now = world.now()
        later = World(now=lambda: self._now + self.day * DAY, monotonic=world.monotonic, token=world.token)
        self.stores = Stores(folder, later, registry.info())
        self.writer = WriteThread(NoCaptures(), world.monotonic)
        self.writer.start()
        self.sleep = Sleep(self.stores, self.writer, lambda: rules, later.now)
        self._warm = WarmRecall(
            SearchIndexes(self.stores.records, self.stores.keywords, self.stores.lines, self.stores.counters),
            lambda: SearchModel(self.stores.vectors, None),
            lambda: 0.22,
            RecentAnswers(later),
            lambda agent: None,
            later,
        )

    def learn(self, name: str, text: str) -> str:
        """One statement of the user's; its id."""
        span = Span("bench:s", name, 0, len(text))
        at = from_micros(self._now + self.day * DAY)
        provenance = Provenance(author="user", source="bench:s", trust="user", spans=(span,), quote=text, said_at=at)
        id = record_id(POOL, span.document, name, 0, 0)
        record = Record(
            id=id, pool=POOL, kind="note", content=text, description=text, provenance=provenance, tags=("fact",)
        )
        self.stores.commit([Added(record=record, decision=WHY)])
        return id

    def use(self, ids: Sequence[str]) -> None:
        """These were used in an answer."""
        if ids:
            self.stores.commit([Counted(pool=POOL, counts={id: Count(1, 1) for id in ids})])

    def ask(self, question: str) -> list[str]:
        """The ids of the answer."""
        hits = self._warm.recall(Recall(query=question, limit=5), [POOL], 0).hits
        return [hit.record.id for hit in hits]

    def close(self) -> None:
        """End it."""
        self.writer.stop()
        self.stores.close()


def forgetting_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`measure-forgetting`: precision by subject and recall of seldom used facts, with forgetting on and off."""
    told: dict[str, object] = {}
    for name, rules in (("on", Rules()), ("off", Rules(off=("*",)))):
        places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        life = Life(places.data / name, world, rules)
        told[f"precision_{name}"], told[f"recall_{name}"] = _lived(life)
        told[f"live_{name}"] = life.stores.records.tally().get(POOL, {}).get("active", 0)
        life.close()
    return told


def _subject(number: int) -> str:
    return f"{_THINGS[number % len(_THINGS)]} {_PLACES[number // len(_THINGS) % len(_PLACES)]} number{number}"


def _lived(life: Life) -> tuple[list[float], list[float]]:
    chance = np.random.default_rng(23)
    changes = [sorted(chance.choice(DAYS - 20, VALUES, replace=False).tolist()) for _ in range(SUBJECTS)]
    true: dict[int, str] = {}
    seldom = {
        n: life.learn(f"seldom{n}", f"The key of cupboard{n} hangs on hook{n * 7} downstairs.") for n in range(SELDOM)
    }
    for life.day in range(DAYS):
        for number, days in enumerate(changes):
            if life.day in days:
                value = _VALUES[days.index(life.day)]
                text = f"The {_subject(number)} runs in the {value} cluster."
                true[number] = life.learn(f"subject{number}.{life.day}", text)
        # an open subject comes up every ten days or so, a seldom one once a month; half of the days are worked
        if life.day % 2 == 0:
            asked = [id for id in true.values() if chance.random() < 0.2]
            life.use([*asked, *(id for n, id in seldom.items() if (life.day // 2 + n) % 15 == 0)])
            life.sleep.fall_asleep(POOL)
            life.sleep.sweep(POOL)
    return list(_precisions(life, true)), [float(id in life.ask(f"key of cupboard{n}")) for n, id in seldom.items()]


def _precisions(life: Life, true: Mapping[int, str]) -> Iterator[float]:
    for number, id in true.items():
        found = life.ask(f"which cluster does the {_subject(number)} run in")
        about = [each for each in found if _is_about(life, each, number)]
        yield (about.count(id) / len(about)) if about else 0.0


def _is_about(life: Life, id: str, number: int) -> bool:
    record = life.stores.records.get(id)
    return record is not None and f"number{number} " in record.content
