"""Compares two memories after the same half year, one of them with sleep (T6): for each subject the share of answers
that are still true, and the share of found facts among seldom used true ones.

Invariants: both memories get the same statements, uses and questions; no statement names the one it replaces, so only
use tells which is stale.
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
"""Subjects, changes of each subject's statement, and facts that are used once a month."""

DAYS = 180
POOL = "personal"
_THINGS = "gateway parser scheduler importer mailer archive ledger printer crawler monitor".split()
_PLACES = "berlin oslo lyon porto turin ghent delft graz brno cork lund nantes bergen vigo malmo".split()
_VALUES = "copper silver amber violet crimson cobalt".split()
WHY = Decision(action="add", reason="measured")


class Life:
    """One memory over the days."""

    def __init__(self, folder: Path, world: World, rules: Rules) -> None:
        self._day = 0
        self._now = world.now()
        later = World(now=lambda: self._now + self._day * DAY, monotonic=world.monotonic, token=world.token)
        self.stores = Stores(folder, later, registry.info())
        self.writer = WriteThread(NoCaptures(), world.monotonic)
        self.writer.start()
        self.sleep = Sleep(self.stores, self.writer, lambda: rules, later.now)
        self._warm = WarmRecall(
            SearchIndexes(
                self.stores.records,
                self.stores.keywords,
                self.stores.lines,
                self.stores.counters,
                self.stores.profile,
            ),
            lambda: SearchModel(self.stores.vectors, None),
            lambda: 0.22,
            RecentAnswers(later),
            lambda agent: None,
            later,
        )

    def start_day(self, day: int) -> None:
        """Set the clock to a day."""
        self._day = day

    def learn(self, name: str, text: str) -> str:
        """Add a statement of the user and return its id."""
        span = Span("bench:s", name, 0, len(text))
        at = from_micros(self._now + self._day * DAY)
        provenance = Provenance(author="user", source="bench:s", trust="user", spans=(span,), quote=text, said_at=at)
        id = record_id(POOL, span.document, name, 0, 0)
        record = Record(
            id=id, pool=POOL, kind="note", content=text, description=text, provenance=provenance, tags=("fact",)
        )
        self.stores.commit([Added(record=record, decision=WHY)])
        return id

    def use(self, ids: Sequence[str]) -> None:
        """Count these records as used in an answer."""
        if ids:
            self.stores.commit([Counted(pool=POOL, counts={id: Count(1, 1) for id in ids})])

    def ask(self, question: str) -> list[str]:
        """Return the ids of the answer."""
        hits = self._warm.recall(Recall(query=question, limit=5), [POOL], 0).hits
        return [hit.record.id for hit in hits]

    def close(self) -> None:
        """Stop the write thread and close the stores."""
        self.writer.stop()
        self.stores.close()


def forgetting_command(places: Places, world: World, arguments: Sequence[str]) -> Mapping[str, object]:
    """`measure-forgetting`: precision by subject and recall of seldom used facts, with forgetting on and off."""
    report: dict[str, object] = {}
    for name, rules in (("on", Rules()), ("off", Rules(off=("*",)))):
        places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        life = Life(places.data / name, world, rules)
        report[f"precision_{name}"], report[f"recall_{name}"] = _lived(life)
        report[f"live_{name}"] = life.stores.records.tally().get(POOL, {}).get("active", 0)
        life.close()
    return report


def _subject(number: int) -> str:
    return f"{_THINGS[number % len(_THINGS)]} {_PLACES[number // len(_THINGS) % len(_PLACES)]} number{number}"


def _lived(life: Life) -> tuple[list[float], list[float]]:
    chance = np.random.default_rng(23)
    changes = [sorted(chance.choice(DAYS - 20, VALUES, replace=False).tolist()) for _ in range(SUBJECTS)]
    true: dict[int, str] = {}
    seldom = {
        n: life.learn(f"seldom{n}", f"The key of cupboard{n} hangs on hook{n * 7} downstairs.") for n in range(SELDOM)
    }
    for day in range(DAYS):
        life.start_day(day)
        for number, days in enumerate(changes):
            if day in days:
                value = _VALUES[days.index(day)]
                text = f"The {_subject(number)} runs in the {value} cluster."
                true[number] = life.learn(f"subject{number}.{day}", text)
        # an open subject comes up every ten days or so, a seldom one once a month; half of the days are worked
        if day % 2 == 0:
            asked = [id for id in true.values() if chance.random() < 0.2]
            life.use([*asked, *(id for n, id in seldom.items() if (day // 2 + n) % 15 == 0)])
            life.sleep.fall_asleep(POOL)
            life.sleep.sweep(POOL)
    return list(_precisions(life, true)), [float(id in life.ask(f"key of cupboard{n}")) for n, id in seldom.items()]


def _precisions(life: Life, true: Mapping[int, str]) -> Iterator[float]:
    for number, id in true.items():
        answer = life.ask(f"which cluster does the {_subject(number)} run in")
        about = [hit for hit in answer if _is_about(life, hit, number)]
        yield (about.count(id) / len(about)) if about else 0.0


def _is_about(life: Life, id: str, number: int) -> bool:
    record = life.stores.records.get(id)
    return record is not None and f"number{number} " in record.content
