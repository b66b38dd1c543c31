"""Reads of the past against an oracle that keeps every state it ever had (R3, Q12, T1)."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.projections.folded import TableSet
from memd.daemon.projections.timeline import Timeline
from memd.daemon.storage.journal import JournalLog
from memd.daemon.world import World
from memd.protocol.errors import NaiveTime
from memd.protocol.fading import Archived, Restored
from memd.protocol.instant import from_micros, micros
from memd.protocol.operation import Added, AnyOperation, Decision, Invalidated, Merged, Retirement, Updated
from memd.protocol.record import LIVE, Evidence, Provenance, Record, Span
from tests.conftest import EXAMPLES

WHY = Decision(action="add", reason="a test")
POOLS = ("personal", "project/a", "project/b")
KEYS = ("", "user.editor", "user.shell")
SECOND = 1_000_000
HISTORIES = 300 if EXAMPLES == 1 else 1000
"""1,000 in the runs that try every property longer."""


def day(number: int) -> str:
    """A day of world time, written now in one zone, now in another."""
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return moment.astimezone(timezone(timedelta(hours=number % 3 * 5))).isoformat()


def record(number: int, words: int, pool: int, key: int, begin: int, end: int, status: Any) -> Record:
    provenance = Provenance(
        author="user", source="h:s", trust="user", spans=(Span("h:s", str(number), 0, 1),), quote="q", said_at=day(0)
    )
    return Record(
        id=f"id{number}",
        pool=POOLS[pool],
        kind="fact",
        content=f"version {words}",
        description=f"version {words}",
        key=KEYS[key],
        valid_from=day(begin) if begin >= 0 else "",
        valid_to=day(end) if end >= 0 else "",
        status=status,
        provenance=provenance,
    )


IDS, DAYS = st.integers(0, 5), st.integers(-1, 12)
STATUSES = st.sampled_from(["active"] * 6 + ["provisional", "quarantined", "archived", "retired", "hidden"])
RECORDS = st.builds(record, IDS, st.integers(0, 99), st.integers(0, 2), st.integers(0, 2), DAYS, DAYS, STATUSES)
RETIRES = st.lists(st.builds(Retirement, IDS.map(lambda n: f"id{n}"), DAYS.map(day), st.just("late")), max_size=2)
EVIDENCE = Evidence(kind="restated", span=Span("h:s", "e", 0, 1), trust="user", at=day(0))
OPERATIONS: st.SearchStrategy[AnyOperation] = st.one_of(
    st.builds(Added, record=RECORDS, retires=RETIRES.map(tuple), decision=st.just(WHY)),
    st.builds(Updated, record=RECORDS, retires=RETIRES.map(tuple), decision=st.just(WHY)),
    st.builds(Invalidated, id=IDS.map(lambda n: f"id{n}"), valid_to=DAYS.map(day), reason=st.just("wrong")),
    st.builds(Archived, pool=st.just("personal"), ids=IDS.map(lambda n: (f"id{n}",))),
    st.builds(Restored, ids=IDS.map(lambda n: (f"id{n}",))),
    st.builds(Merged, id=IDS.map(lambda n: f"id{n}"), evidence=st.just(EVIDENCE), decision=st.just(WHY)),
)

State = dict[str, dict[str, Any]]


def step(state: State, operation: AnyOperation, seq: int) -> State:
    """The oracle's own idea of what an operation does."""
    state = {id: dict(row) for id, row in state.items()}

    def retire(id: str, until: str) -> None:
        if id in state and state[id]["status"] != "retired":
            state[id].update(status="retired", end=until)

    match operation:
        case Added() | Updated():
            new = operation.record
            for each in operation.retires:
                if each.id != new.id:
                    retire(each.id, each.valid_to)
            state[new.id] = {
                "words": new.content,
                "pool": new.pool,
                "key": new.key,
                "status": new.status,
                "begin": new.valid_from,
                "end": new.valid_to,
                "first": state.get(new.id, {}).get("first", seq),
            }
        case Invalidated():
            retire(operation.id, operation.valid_to)
        case Archived() | Restored():
            was, becomes = (LIVE, "archived") if isinstance(operation, Archived) else ({"archived"}, "active")
            for id in operation.ids:
                if id in state and state[id]["status"] in was:
                    state[id]["status"] = becomes
        case _:
            pass
    return state


def holds(row: dict[str, Any], moment: int | None) -> bool:
    if moment is None:
        return True
    begins = not row["begin"] or micros(row["begin"]) <= moment
    ends = micros(row["end"]) <= moment if row["end"] else row["status"] == "retired"
    return begins and not ends


def expected(states: list[State], seq: int, pool: str, key: str, moment: int | None) -> dict[str, str]:
    hidden_now = {id for id, row in states[-1].items() if row["status"] == "hidden"}
    return {
        id: row["words"]
        for id, row in states[seq].items()
        if id not in hidden_now
        and row["status"] != "hidden"
        and row["pool"] == pool
        and (not key or row["key"] == key)
        and holds(row, moment)
    }


class Past:
    """A journal, its tables, and the oracle's states after each operation."""

    def __init__(self, folder: Path, operations: list[AnyOperation], ticks: list[int]) -> None:
        clock = iter([1_800_000_000 * SECOND + tick * SECOND for tick in ticks] + [0] * len(operations))
        world = World(now=lambda: next(clock), monotonic=lambda: 0.0, token=bytes)
        self.journal = JournalLog(folder / "journal", world)
        self.folded = TableSet(folder / "tables")
        self.states: list[State] = [{}]
        self.times: list[int] = [0]
        entries = self.journal.commit(operations)
        for entry in entries:
            self.states.append(step(self.states[-1], entry.operation, entry.seq))
            self.times.append(entry.at)
        self.folded.tables.apply(entries)
        self.timeline = Timeline(self.folded.records, self.folded.sources, self.journal)

    def close(self) -> None:
        self.folded.close()
        self.journal.close()


@pytest.mark.slow
@settings(max_examples=HISTORIES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(OPERATIONS, min_size=1, max_size=14),
    st.lists(st.integers(0, 30), max_size=14),
    st.lists(st.tuples(st.integers(0, 14), DAYS), min_size=1, max_size=4),
)
def test_random_histories_with_late_corrections_read_as_an_oracle_remembers_them_Q12(
    tmp_path_factory: Any, operations: list[AnyOperation], ticks: list[int], questions: list[tuple[int, int]]
) -> None:
    past = Past(tmp_path_factory.mktemp("past"), operations, ticks)
    for number, world_day in questions:
        seq = min(number, len(operations))
        for as_of in ("", day(world_day)):
            view = past.timeline.view(as_of, from_micros(past.times[seq]))
            assert view is not None and view.seq == seq
            moment = micros(as_of) if as_of else None
            for pool in POOLS:
                for key in KEYS:
                    found = {each.id: each.content for each in view.pool(pool, key)}
                    assert found == expected(past.states, seq, pool, key, moment)
            shown = view.many([f"id{n}" for n in range(6)])
            for pool in POOLS:
                wanted = expected(past.states, seq, pool, "", moment)
                if not as_of:
                    wanted = {id: words for id, words in wanted.items() if past.states[seq][id]["status"] in LIVE}
                assert {id: each.content for id, each in shown.items() if each.pool == pool} == wanted
    past.close()


def test_system_time_goes_by_seq_even_when_the_clock_was_set_back_R3(tmp_path: Path) -> None:
    first = [Added(record=record(n, n, 0, 0, 0, -1, "active"), decision=WHY) for n in range(5)]
    past = Past(tmp_path, list(first), [10, 20, 5, 1, 30])
    assert [past.timeline.seq_at(at) for at in past.times] == [0, 1, 2, 3, 4, 5]
    assert past.timeline.seq_at(past.times[2] - 1) == 1
    assert past.timeline.seq_at(past.times[5] + 99) == 5
    past.close()


def test_a_late_correction_changes_what_was_true_and_not_what_was_believed_T1(tmp_path: Path) -> None:
    old = record(1, 1, 0, 1, 0, -1, "active")
    new = record(2, 2, 0, 1, 3, -1, "active")
    late = Added(record=new, retires=(Retirement("id1", day(3), "moved on day 3, said later"),), decision=WHY)
    past = Past(tmp_path, [Added(record=old, decision=WHY), late], [1, 100])
    before, now = past.times[1], past.times[2]

    def told(as_of: str, at: int) -> list[str]:
        view = past.timeline.view(as_of, from_micros(at))
        assert view is not None
        return [each.id for each in view.pool("personal", "user.editor")]

    assert told(day(5), before) == ["id1"], "believed then of day 5"
    assert told(day(5), now) == ["id2"], "known now of day 5"
    assert told(day(2), now) == ["id1"], "known now of day 2"
    past.close()


def test_a_time_without_an_offset_is_refused_P21(tmp_path: Path) -> None:
    past = Past(tmp_path, [Added(record=record(1, 1, 0, 0, 0, -1, "active"), decision=WHY)], [1])
    with pytest.raises(NaiveTime):
        past.timeline.view("2026-03-01T00:00:00", "")
    past.close()


def test_recall_list_and_get_answer_of_another_time_Q12(daemon: Any) -> None:
    with daemon.client() as client:
        kept = client.remember("The crane on pier four is painted blue.").record
        between = from_micros(kept.learned_at)
        edited = client.edit(kept.id, "The crane on pier four is painted red.").record
        assert client.get(kept.id).content == edited.content
        assert client.get(kept.id, believed_at=between).content == kept.content
        assert [each.content for each in client.list(believed_at=between).records] == [kept.content]
        hits = client.recall("crane pier", believed_at=between).hits
        assert [hit.record.content for hit in hits] == [kept.content]
        assert client.list(believed_at=from_micros(kept.learned_at - 1)).records == ()
        assert client.list(as_of="2000-01-01T00:00:00Z").records == ()
        assert [each.id for each in client.list(since=between, key="").records] == [kept.id]
        assert client.list(until=between).records == ()
