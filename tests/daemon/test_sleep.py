"""Sleep: what a year does to memory at four paces, what is archived, what comes back (T2, T5-T9, T12)."""

import os
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memd.daemon.config import Config
from memd.daemon.forgetting_rules import Rules
from memd.daemon.projections.counters import KINDS
from memd.daemon.projections.salience import recency, salience
from memd.daemon.projections.strength import DAY, pace, share_of_day, slept
from memd.daemon.projections.timeline import Timeline
from memd.daemon.server.dispatch import table_of
from memd.daemon.services.core import core_of
from memd.daemon.services.corrections.corrections_service import CorrectionsService
from memd.daemon.services.lifecycle.lifecycle_service import LifecycleService
from memd.daemon.services.lifecycle.review import due_at
from memd.daemon.services.lifecycle.sleep import Sleep
from memd.daemon.services.links.evidence_links import linked
from memd.daemon.services.records.records_service import RecordsService
from memd.daemon.services.service import Caller, Handler
from memd.protocol.corrections import Correct, RecordList, Restore
from memd.protocol.decay import FadingList, ListFading, PutToSleep, Slumbered
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Captured, Noted, Origin, Said
from memd.protocol.fading import Archived, Count, Counted, Rest, Slept
from memd.protocol.history import GetHistory, GetTimeline
from memd.protocol.instant import from_micros
from memd.protocol.operation import Added, SessionClosed, SessionOpened
from memd.protocol.places import places
from memd.protocol.record import Record, Signal, Span
from tests.daemon.living import AT, WHY, Running, added, record, used

PERSONAL = "personal"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Stores with a write thread."""
    found = Running(tmp_path / "data")
    yield found
    found.close()


def sleep_of(running: Running, rules: Rules) -> Sleep:
    return Sleep(running.stores, running.writer, lambda: rules, running.world.now)


def year(tasks_by_day: list[int]) -> tuple[Rest, list[float]]:
    """A pool after these days, and the logarithm of what a level-0 note had left after each."""
    rest, left, rules = Rest(pool=PERSONAL), list[float](), Rules()
    for day, tasks in enumerate(tasks_by_day):
        for task in range(tasks):
            at = (20_000 + day) * DAY + task * (DAY // (tasks + 1))
            days = share_of_day(rest, at)
            operation = Slept(pool=PERSONAL, tasks_per_day=pace(rest, at), days=days, retention=rules.retention(days))
            rest = slept(rest, operation, KINDS, at)
        left.append(rest.decay["note"][0] if rest.decay else 0.0)
    return rest, left


def at_work(tasks: int) -> list[int]:
    """A year of working days with two months of holiday in it."""
    return [tasks if day % 7 < 5 and not 180 <= day < 240 else 0 for day in range(365)]


@pytest.mark.parametrize("tasks", [1, 10, 100, 500])
def test_an_active_day_costs_the_same_at_every_pace_T6(tasks: int) -> None:
    rest, left = year(at_work(tasks))
    active = sum(1 for each in at_work(tasks) if each)
    for level, loss in enumerate((0.05, 0.03, 0.02, 0.01, 0.005, 0.002)):
        daily = 1 - exp(rest.decay["note"][level] / active)
        assert daily == pytest.approx(loss, rel=0.01)
    assert rest.decay.get("procedure") is None, "procedures do not fade by time (T9)"
    assert left[179] == left[239], "two months of holiday cost nothing"


def test_uneven_days_cost_as_much_as_even_ones_T6() -> None:
    chance = np.random.default_rng(11)
    for mean in (1, 10, 100):
        days = [max(1, int(n)) for n in chance.poisson(mean, 250)]
        rest, _ = year(days)
        assert rest.decay["note"][0] / 250 == pytest.approx(np.log(0.95), rel=0.1)


def test_a_day_that_is_suddenly_busy_costs_two_days_at_most_T6() -> None:
    _, left = year([1] * 20 + [200])
    assert left[-1] - left[-2] == pytest.approx(2 * np.log(0.95), rel=0.01)
    _, first = year([300])
    assert first[0] == pytest.approx(np.log(0.95), rel=0.01), "and the first day of all its own"


def test_a_year_through_the_committer_T6_T7(running: Running) -> None:
    stores, sleep = running.stores, sleep_of(running, Rules(share_a_run=0.5))
    stores.commit([*(added(n) for n in range(6)), added(6, kind="persona"), added(7, pinned=True)])
    archived_on = 0
    for day in range(1, 120):
        running.now += DAY
        if 60 <= day < 80:  # a holiday
            continue
        if day % 7 == 0:
            stores.commit([used(1)])
        sleep.fall_asleep(PERSONAL)
        sleep.sweep(PERSONAL)
        if not archived_on and running.status(0) == "archived":
            archived_on = day
    assert 44 <= archived_on <= 46, "never used: after about 45 active days"
    assert running.status(1) == "active", "used weekly: it stays"
    assert running.status(6) == running.status(7) == "active", "what is held, and a persona, stay"
    back = life_of(running).answer(Restore(ids=("id0",)))
    assert [each.id for each in back.records] == ["id0"]
    assert running.signal(0).strength == 0.5 and running.status(0) == "active"


def test_no_run_archives_more_than_its_share_and_weight_stays_under_the_cap_T6(running: Running) -> None:
    rules = Rules(share_a_run=0.1, capacity=100)
    stores, sleep = running.stores, sleep_of(running, rules)
    stores.commit([added(n) for n in range(40)])
    stores.commit([used(n, 15) for n in range(20)])  # level 2, each weighs 4: 80, with 20 light ones 100
    assert sleep.sweep(PERSONAL).pruned == ()
    stores.commit([added(n) for n in range(100, 104)])
    assert [len(sleep.sweep(PERSONAL).pruned) for _ in range(2)] == [4, 0]
    assert {running.status(n) for n in range(20)} == {"active"}, "the lightest go first"
    for _ in range(60):
        running.now += DAY
        sleep.fall_asleep(PERSONAL)
    live = 40
    while gone := sleep.sweep(PERSONAL).faded:
        assert len(gone) <= max(1, live // 10)
        live -= len(gone)
    assert live == 20


def test_nothing_fades_where_forgetting_is_off_T9(running: Running) -> None:
    sleep = sleep_of(running, Rules(off=(PERSONAL,)))
    running.stores.commit([added(0)])
    last = running.stores.journal.last
    assert sleep.fall_asleep(PERSONAL) is None and sleep.sweep(PERSONAL).faded == ()
    assert running.stores.journal.last == last


def test_what_is_used_after_it_was_found_weak_stays_T6(running: Running) -> None:
    stores, sleep = running.stores, sleep_of(running, Rules())
    stores.commit([added(0), added(1)])
    for _ in range(60):
        running.now += DAY
        sleep.fall_asleep(PERSONAL)
    weak = sleep.weak(PERSONAL)
    stores.commit([used(int(weak.faded[0][2:]))])
    running.writer.run(lambda: sleep.archive(PERSONAL, weak.faded, "faded")).result()
    assert stores.records.tally()[PERSONAL] == {"active": 2}


def test_strengths_are_all_of_before_or_all_of_after_a_sleep_T6(running: Running) -> None:
    stores, sleep = running.stores, sleep_of(running, Rules())
    stores.commit([added(n, pool=PERSONAL) for n in range(50)])
    records = list(stores.records.everything())
    seen: set[float] = set()
    futures = []
    for _ in range(30):
        running.now += DAY
        futures.append(running.writer.run(lambda: sleep.fall_asleep(PERSONAL)))
        strengths = {each.strength for each in stores.counters.signals(records).values()}
        assert len(strengths) == 1
        seen |= strengths
    for future in futures:
        future.result()
    assert len({each.strength for each in stores.counters.signals(records).values()}) == 1


# --- tasks -----------------------------------------------------------------------------------------------------------
class Life(LifecycleService):
    """The services of time over the same stores, asked as the user of the home."""

    def __init__(self, running: Running, rules: Rules) -> None:
        home = places({"MEMD_HOME": str(running.stores.folder)}, os.getuid())
        core = core_of(running.stores, home, lambda: Config(forgetting=rules), running.world)
        super().__init__(core, running.writer, encode=lambda: None)
        self.corrections = CorrectionsService(
            core, running.writer, reactivate=self.reactivate, distil=lambda: None, link=linked
        )
        self.records = RecordsService(
            core.stores, core.directory, core.timeline, lambda record: "", lambda record: "", lambda: None
        )

    def answer(self, request: Any) -> Any:
        """What the dispatch table answers; a scope names its pools."""
        table = table_of([self, self.corrections, self.records])
        handler = table[type(request)]
        assert isinstance(handler, Handler)
        return handler.function(request, Caller(scope=getattr(request, "pools", ())))


def life_of(running: Running, rules: Rules | None = None) -> Life:
    return Life(running, rules or Rules())


def session(name: str, *, live: bool = True, project: str = "", host: str = "claude-code") -> SessionOpened:
    origin = Origin(host=host, session=name, live=live)
    return SessionOpened(document=origin.document, origin=origin, project=project, at=AT)


def sleeps(running: Running) -> list[str]:
    running.writer.run(lambda: None).result()
    operations = (entry.operation for entry in running.stores.journal.read())
    return [each.pool for each in operations if isinstance(each, Slept)]


def end(running: Running, life: Life, *names: str) -> None:
    running.stores.commit([SessionClosed(document=name, at=AT) for name in names])
    life.ended(names)
    running.writer.run(lambda: None).result()


def test_a_task_is_a_live_session_and_sessions_that_overlap_sleep_once_T6(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([session("old", live=False), session("note", host="cli"), added(0)])
    end(running, life, "claude-code:old", "cli:note")
    assert sleeps(running) == [], "neither an import nor a remember is a task"
    stores.commit([session("a", project="project/a"), session("b", project="project/b"), session("c")])
    end(running, life, "claude-code:a")
    assert sleeps(running) == ["project/a"], "the user's own pool is still at work"
    end(running, life, "claude-code:c")
    assert sleeps(running) == ["project/a"]
    end(running, life, "claude-code:b")
    assert sleeps(running) == ["project/a", PERSONAL, "project/b"]


def test_importing_300_old_sessions_archives_nothing_T6(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([added(n) for n in range(300)])
    stores.commit([session(f"s{n}", live=False) for n in range(300)])
    end(running, life, *(f"claude-code:s{n}" for n in range(300)))
    assert sleeps(running) == [] and stores.records.tally()[PERSONAL] == {"active": 300}


# --- probation, salience, review -------------------------------------------------------------------------------------
def said(running: Running, document: str, number: int, at: str, **more: Any) -> Record:
    """A record that rests on a captured turn of that document."""
    event = Said(turn=f"t{number}", at=at, role="user", text="x")
    running.stores.take([Captured(document=document, event=event)])
    made = record(number, **more)
    spans = (Span(document, f"t{number}", 0, 1),)
    provenance = replace(made.provenance, source=document, spans=spans, quote="x", said_at=at)
    return replace(made, provenance=provenance)


def test_a_first_session_and_old_imports_prove_themselves_first_T8(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    now, long_ago = from_micros(running.now), from_micros(running.now - 91 * DAY)
    later = replace(session("next"), at=now)
    stores.commit([session("first"), session("old", live=False), later])

    def judged(document: str, at: str, **more: Any) -> str:
        return life.judge()(said(running, document, 1, at, **more)).status

    assert judged("claude-code:first", now) == "quarantined"
    assert judged("claude-code:next", now) == "active", "a later session"
    assert judged("claude-code:old", now) == "active", "imported, but said lately"
    assert judged("claude-code:old", long_ago) == "quarantined"
    assert judged("claude-code:first", now, pinned=True) == "active"
    assert judged("claude-code:first", now, supersedes=("id2",)) == "active", "it corrects another"
    asked = Captured(document="claude-code:first", event=Noted(turn="t9", at=now, text="x"))
    stores.take([asked])
    explicit = said(running, "claude-code:first", 2, now)
    spans = (Span("claude-code:first", "t9", 0, 1),)
    explicit = replace(explicit, provenance=replace(explicit.provenance, spans=spans))
    assert life.judge()(explicit).status == "active", "asked to remember it"


def test_salience_halves_by_volatility_and_grows_with_use_T2(running: Running) -> None:
    rules, now = Rules(), running.now
    old = record(0, volatility="situational", learned_at=now)
    old = replace(old, provenance=replace(old.provenance, said_at=from_micros(now - 21 * DAY)))
    assert recency(old, Signal(), now, rules) == pytest.approx(0.5)
    assert recency(replace(old, volatility="stable"), Signal(), now, rules) > 0.95
    assert recency(old, Signal(last_access=now), now, rules) == 1.0, "its last use counts as well as its age"
    assert recency(replace(old, kind="procedure"), Signal(), now, rules) == 1.0, "kinds that never fade (T9)"
    assert recency(old, Signal(), now, Rules(off=("*",))) == 1.0
    often = Signal(access_count=20, importance=0.5)
    assert salience(old, often, now, rules) > salience(old, Signal(), now, rules)
    assert salience(old, Signal(importance=0.9), now, rules) > salience(old, Signal(importance=0.2), now, rules)
    assert salience(old, often, now, rules, 0.5) == pytest.approx(salience(old, often, now, rules) / 2)


def test_what_is_overdue_is_believed_a_little_less_T12(running: Running) -> None:
    stores, life, rules = running.stores, life_of(running), Rules()
    at = from_micros(running.now)
    made = [
        said(running, "h:s", 0, at, volatility="situational", confidence=0.8),
        said(running, "h:s", 1, at, volatility="stable", confidence=0.8),
        said(running, "h:s", 2, at, volatility="situational", confidence=0.8, pinned=True),
    ]
    stores.commit([Added(record=each, decision=WHY) for each in made])
    assert life.review.run() == 0
    running.now += 31 * DAY
    assert [each.id for each in life.review.overdue({PERSONAL})] == ["id0"] and not [*life.review.overdue(())]
    assert life.review.run() == 1 and life.review.run() == 0, "once a cadence"
    assert not [*life.review.overdue({PERSONAL})], "it was looked at"
    found = stores.records.get("id0")
    assert found is not None and found.confidence == pytest.approx(0.72) and found.review is not None
    assert due_at(found, Signal(), rules) > running.now
    assert due_at(found, Signal(last_access=running.now + 90 * DAY), rules) == running.now + 120 * DAY, (
        "a use puts it off"
    )


# --- requests --------------------------------------------------------------------------------------------------------
def test_fading_sleep_and_restore_answer_T9_T7(running: Running) -> None:
    stores, life = running.stores, life_of(running, Rules(share_a_run=1.0))
    stores.commit([added(0), added(1), added(2, kind="persona"), added(3, status="quarantined")])
    stores.commit([used(1, 9)])
    told = life.answer(ListFading(pools=(PERSONAL,)))
    assert isinstance(told, FadingList)
    assert [(each.record.id, round(each.days_left)) for each in told.records] == [
        ("id0", 45), ("id3", 45), ("id1", 97)
    ]  # fmt: skip
    for _ in range(44):
        running.now += DAY
        life.sleep.fall_asleep(PERSONAL)
    running.now += DAY
    preview = life.answer(PutToSleep(dry_run=True))
    assert isinstance(preview, Slumbered) and preview.pools[0].faded == 2
    assert stores.records.tally()[PERSONAL] == {"active": 3, "quarantined": 1}
    done = life.answer(PutToSleep())
    assert isinstance(done, Slumbered) and done.pools[0].faded == 2
    assert running.status(0) == running.status(3) == "archived"
    back = running.writer.run(lambda: life.answer(Restore(ids=("id0", "id3")))).result()
    assert isinstance(back, RecordList) and len(back.records) == 2
    assert running.status(0) == "active" and running.status(3) == "quarantined", "as it was before"
    with pytest.raises(InvalidRequest):
        life.answer(Restore(ids=("id0",)))


@pytest.mark.parametrize("days", [1, 30, 44, 45, 46, 96, 97, 98])
def test_the_forecast_is_what_as_many_real_sleeps_archive_T9(running: Running, days: int) -> None:
    life = life_of(running, Rules(share_a_run=1.0))
    running.stores.commit([*(added(number) for number in range(6)), added(6, kind="persona"), used(1, 9), used(2, 3)])
    told = life.answer(ListFading(pools=(PERSONAL,), after_days=days))
    assert sum(each.records for each in told.histogram) == told.total - 1 == 6 and len(told.histogram) <= 60
    assert told.retention == tuple(round(share, 4) for share in Rules().retention(days))
    forecast = {each.record.id for each in told.records}
    assert told.gone == len(forecast)
    for _ in range(days):
        running.now += DAY
        life.sleep.fall_asleep(PERSONAL)
    life.sleep.sweep(PERSONAL)
    assert forecast == {f"id{number}" for number in range(7) if running.status(number) == "archived"}


def test_an_archived_fact_does_not_push_out_the_one_that_took_its_key_T7(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([added(0, key="user.editor"), Archived(pool=PERSONAL, ids=("id0",))])
    stores.commit([added(1, key="user.editor")])
    assert life.reactivate(["id0", "id1"], "recalled") == ()


def test_a_correction_retires_and_leaves_both_timelines_T1(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([added(0, valid_from=AT, learnings={"reviewer": "The wrong one."})])
    before = stores.journal.last
    running.now += DAY
    told = life.answer(Correct(id="id0", text="The right one.", at=from_micros(running.now)))
    assert told.record.supersedes == ("id0",) and told.record.valid_from == AT and running.status(0) == "retired"
    assert told.record.learnings == {}, "what was learnt of the wrong one"
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    assert [each.id for each in timeline.records_at(PERSONAL, before)] == ["id0"], "believed then"
    view = timeline.view("2026-06-01T00:00:00Z", "")
    assert view is not None and [each.id for each in view.pool(PERSONAL)] == [told.record.id], "known now of then"
    assert [each.id for each in life.answer(GetTimeline(subject="right one", pools=(PERSONAL,))).records] == [
        told.record.id
    ]
    history = life.answer(GetHistory(id="id0"))
    assert [each.kind for each in history.versions] == ["added", "retired"]
    assert history.versions[1].why == "corrected by the user"
    with pytest.raises(InvalidRequest):
        life.answer(Correct(id="id0", text="Again.", at=from_micros(running.now)))


def test_a_correction_of_what_was_right_once_ends_it_there_T1(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([added(0, valid_from=AT)])
    until = "2026-03-01T00:00:00Z"
    told = life.answer(Correct(id="id0", text="Since March.", at=from_micros(running.now), since=until))
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    for as_of, id in (("2026-02-01T00:00:00Z", "id0"), ("2026-04-01T00:00:00Z", told.record.id)):
        view = timeline.view(as_of, "")
        assert view is not None and [each.id for each in view.pool(PERSONAL)] == [id]


# --- personality -----------------------------------------------------------------------------------------------------
def test_two_agents_with_other_work_rank_the_same_base_in_their_own_way_P5(running: Running) -> None:
    stores = running.stores
    chance = np.random.default_rng(5)
    number, pools = 40, ("agent/buyer", "agent/tester", "agent/twin")
    for place, pool in enumerate(pools):
        stores.commit([added(100 * place + n, pool=pool) for n in range(number)])
    work = [
        [int(n) for n in chance.integers(0, number // 2, 200)],
        [int(n) for n in chance.integers(number // 2 - 10, number - 10, 200)],
    ]
    for place, pool in enumerate(pools):
        perspective = "cost" if place != 1 else "risk"
        for start in range(0, 200, 20):
            for n in work[1 if place == 1 else 0][start : start + 20]:
                count = Counted(pool=pool, counts={f"id{100 * place + n}": Count(uses=1)}, perspective=perspective)
                stores.commit([count])
            stores.commit([Slept(pool=pool, tasks_per_day=1.0, days=1.0, retention=Rules().retention(1.0))])

    def strengths(place: int, items: range) -> list[float]:
        signals = (running.signal(100 * place + n) for n in items)
        return [each.strength + sum(each.strength_by.values()) for each in signals]

    own, neutral = range(number - 10), range(number - 10, number)
    assert _spearman(strengths(0, own), strengths(1, own)) <= 0.9
    assert strengths(0, neutral) == strengths(1, neutral), "what neither works on stands the same with both"
    assert strengths(0, range(number)) == strengths(2, range(number)), "the same history, the same memory"


def _spearman(one: list[float], other: list[float]) -> float:
    ranks = [np.argsort(np.argsort(each)) for each in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def test_a_correction_decides_an_open_question_T1(running: Running) -> None:
    stores, life = running.stores, life_of(running)
    stores.commit([added(0, valid_from=AT, tags=("open question", "parser"))])
    running.now += DAY
    now = from_micros(running.now)
    told = life.answer(Correct(id="id0", text="We keep the parser.", at=now))
    question = stores.records.get("id0")
    assert told.record.type == "decision" and told.record.valid_from == now
    assert question is not None and (question.status, question.valid_to) == ("retired", now)
