"""One suite for all projections: replay equals live, from anywhere; deleted is rebuilt equal; a hole is refused (U3).

Each projection is driven through the same steps over every operation that there is; what it holds is compared whole.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.daemon.projections.folded import TableSet
from memd.daemon.projections.keywords import Keywords
from memd.daemon.projections.profile import PARTS, ProfileCards
from memd.daemon.projections.terms import contents
from memd.daemon.projections.turns import TurnIndex
from memd.daemon.projections.vector_store import VectorStore
from memd.daemon.projections.vectors import VectorIndexes
from memd.daemon.storage.archive import Archive, decode
from memd.daemon.storage.journal import JournalLog
from memd.daemon.world import real_world
from memd.protocol import fading as f
from memd.protocol import operation as o
from memd.protocol.event import Captured, Noted, Origin, Said, ToolCalled, Wrote
from memd.protocol.fading import Sample
from memd.protocol.record import Evidence, Provenance, Record, Signal, Span
from tests.conftest import EXAMPLES

AT = "2026-01-01T00:00:00Z"
WHY = o.Decision(action="add", reason="a test")
POOLS = ("personal", "project/a")
DIMENSION = 8


def record(number: int, words: int, pool: str, kind: Any, key: str, status: Any, importance: int, tag: str) -> Record:
    document = "team:p1" if number % 4 == 3 else "h:s"
    spans = (Span(document, str(number), 0, 5), Span("h:t", str(words), 0, 5))[: 1 + words % 2]
    provenance = Provenance(author="user", source=document, trust="user", spans=spans, quote="quote", said_at=AT)
    return Record(
        id=f"id{number}",
        pool=pool,
        kind=kind,
        content=f"statement number{number} version{words}",
        description=f"description version{words}",
        key=key,
        status=status,
        tags=(tag,),
        signal=Signal(importance=importance / 4),
        provenance=provenance,
    )


NUMBERS = st.integers(0, 7)
IDS = NUMBERS.map(lambda number: f"id{number}")
STATUSES = st.sampled_from(["active", "active", "provisional", "quarantined", "archived", "hidden", "retired"])
RECORDS = st.builds(
    record,
    NUMBERS,
    st.integers(0, 9),
    st.sampled_from(POOLS),
    st.sampled_from(["note", "fact", "edge"]),
    st.sampled_from(["", "user uses vim", "the team uses git", "user.editor"]),
    STATUSES,
    st.integers(0, 4),
    st.sampled_from(["preference", "decision", "note"]),
)
RETIRES = st.lists(st.builds(o.Retirement, IDS, st.just(AT), st.just("old")), max_size=2).map(tuple)
SHIFTS = st.lists(st.builds(o.Shift, IDS, STATUSES, st.just(AT)), max_size=2).map(tuple)
EVIDENCE = Evidence(kind="restated", span=Span("h:s", "e", 0, 1), trust="user", at=AT)
DOCUMENTS = st.sampled_from(["h:s", "h:t"])
TURN = st.sampled_from("123")
SOURCES = st.sampled_from([(), ("h",), ("h:s",)])
PROPOSALS = st.sampled_from(["p1", "p2"])
LINE_NAMES = st.sampled_from(["p1/0", "p2/1", "o1/2"])
MARKS = st.lists(st.tuples(IDS, st.booleans()), max_size=2).map(tuple)
TURNS = st.lists(st.builds(o.Turns, DOCUMENTS, st.just(("1", "2"))), max_size=1).map(tuple)
PATCHES = st.sampled_from(["patch_20260210_a", "patch_20260210_b"])
DAYS = st.sampled_from(["2026-02-10", "2026-02-11"])
STEPS = st.lists(
    st.builds(o.PatchStep, st.sampled_from(["add", "promote", "supersede", "deprecate"]), IDS), max_size=3
).map(tuple)
EVERY: dict[type, st.SearchStrategy[Any]] = {
    o.Added: st.builds(o.Added, record=RECORDS, retires=RETIRES, decision=st.just(WHY)),
    o.Updated: st.builds(o.Updated, record=RECORDS, retires=RETIRES, decision=st.just(WHY)),
    o.Merged: st.builds(o.Merged, id=IDS, evidence=st.just(EVIDENCE), decision=st.just(WHY)),
    o.Invalidated: st.builds(o.Invalidated, id=IDS, valid_to=st.just(AT), reason=st.just("wrong")),
    o.PoolOpened: st.builds(o.PoolOpened, pool=st.sampled_from(POOLS)),
    o.AliasAdded: st.builds(
        o.AliasAdded,
        pool=st.sampled_from(POOLS),
        names=st.lists(st.sampled_from(["repository:a@h/x", "folder:/a", "pool:project/b"]), max_size=2).map(tuple),
    ),
    o.Moved: st.builds(
        o.Moved,
        ids=st.lists(IDS, max_size=2, unique=True).map(tuple),
        pool=st.sampled_from(POOLS),
        reason=st.just("asked"),
        unkeyed=st.lists(IDS, max_size=1).map(tuple),
    ),
    o.SessionOpened: st.builds(
        o.SessionOpened,
        document=DOCUMENTS,
        origin=st.just(Origin(host="h", session="s")),
        project=st.sampled_from(["", "project/a"]),
        at=st.just(AT),
    ),
    o.SessionClosed: st.builds(o.SessionClosed, document=DOCUMENTS, at=st.just(AT)),
    o.Distilled: st.builds(
        o.Distilled,
        archive_seq=st.integers(0, 9),
        captures=st.integers(0, 9),
        candidates=st.integers(0, 9),
        rejected=st.just({"noise": 1}),
        failed=st.lists(
            st.builds(o.Failure, NUMBERS, DOCUMENTS, TURN, st.just("route"), st.just("bad")), max_size=2
        ).map(tuple),
    ),
    o.SessionResumed: st.builds(o.SessionResumed, document=DOCUMENTS, at=st.just(AT)),
    o.Retried: st.builds(
        o.Retried,
        archive_seq=NUMBERS,
        document=DOCUMENTS,
        turn=TURN,
        failed=st.none() | st.builds(o.Failure, NUMBERS, DOCUMENTS, TURN, st.just("route"), st.just("worse")),
    ),
    o.Pinned: st.builds(
        o.Pinned,
        id=IDS,
        pinned=st.booleans(),
        layer=st.sampled_from(["", "L1", "L2", "L3"]),
        principle=st.sampled_from([None, True, False]),
    ),
    o.Granted: st.builds(o.Granted, grant=st.sampled_from(["", "g1"]), subject=st.just("s"), sources=SOURCES),
    o.Revoked: st.builds(o.Revoked, grants=st.sampled_from([(), ("g1",), ("g2",)]), sources=SOURCES),
    o.ChangeProposed: st.builds(
        o.ChangeProposed, id=PROPOSALS, what=st.sampled_from(["forget", "conflict"]), record=IDS, against=IDS
    ),
    o.ChangeDecided: st.builds(o.ChangeDecided, id=PROPOSALS, accepted=st.booleans()),
    o.ChangeReopened: st.builds(o.ChangeReopened, id=PROPOSALS, after=SHIFTS),
    o.FeedbackGiven: st.builds(
        o.FeedbackGiven,
        agent=st.sampled_from(["", "critic"]),
        used=st.lists(IDS, max_size=2).map(tuple),
        samples=st.lists(st.builds(Sample, IDS, st.just((0.5,) * 9), st.booleans()), max_size=3).map(tuple),
    ),
    o.Redacted: st.builds(o.Redacted, records=st.lists(IDS, max_size=2).map(tuple), turns=TURNS),
    o.Purged: st.builds(o.Purged, redacted=st.integers(1, 9)),
    o.Erased: st.builds(o.Erased, ids=st.lists(IDS, max_size=2).map(tuple), retires=RETIRES),
    o.Rebased: st.builds(o.Rebased, record=RECORDS),
    o.RecordJudged: st.builds(
        o.RecordJudged,
        id=IDS,
        verdict=st.sampled_from(["right", "wrong", "undone"]),
        at=st.just(AT),
        before=st.builds(o.Shift, IDS, STATUSES, st.just(AT)),
        after=st.builds(o.Shift, IDS, STATUSES, st.just(AT)),
    ),
    o.Hidden: st.builds(o.Hidden, documents=st.just(("h:s",)), before=SHIFTS, after=SHIFTS),
    o.Unhidden: st.builds(o.Unhidden, hidden=st.integers(1, 9), documents=st.just(("h:s",)), after=SHIFTS),
    f.Counted: st.builds(
        f.Counted,
        pool=st.sampled_from(POOLS),
        counts=st.dictionaries(
            IDS,
            st.builds(f.Count, st.integers(0, 3), st.integers(0, 40), st.integers(0, 9), st.sampled_from([0.0, 2.0])),
            max_size=3,
        ),
        perspective=st.sampled_from(["", "cost", "risk"]),
    ),
    f.Slept: st.builds(
        f.Slept,
        pool=st.sampled_from(POOLS),
        tasks_per_day=st.just(1.0),
        days=st.sampled_from([0.5, 1.0]),
        retention=st.sampled_from([(0.95, 0.97, 0.98, 0.99, 0.995, 0.998), (0.1,) * 6]),
        spared=st.sampled_from([(), ("procedure", "persona", "fact")]),
    ),
    f.Archived: st.builds(f.Archived, pool=st.sampled_from(POOLS), ids=st.lists(IDS, max_size=3).map(tuple)),
    f.Restored: st.builds(
        f.Restored, ids=st.lists(IDS, max_size=3).map(tuple), quarantined=st.lists(IDS, max_size=1).map(tuple)
    ),
    f.Released: st.builds(f.Released, ids=st.lists(IDS, max_size=2).map(tuple)),
    f.Reviewed: st.builds(f.Reviewed, id=IDS, confidence=st.sampled_from([0.2, 0.9]), next=st.just(AT)),
    f.Folded: st.just(f.Folded()),
    o.RemoteConsented: st.builds(
        o.RemoteConsented,
        pool=st.sampled_from(POOLS),
        provider=st.just("ollama"),
        url=st.sampled_from(["http://127.0.0.1:1/v1", "https://a.example/v1"]),
        family=st.just("qwen"),
        until=st.sampled_from(["", AT]),
    ),
    o.RemoteReserved: st.builds(
        o.RemoteReserved,
        id=st.sampled_from(["c1", "c2", "c3"]),
        day=st.sampled_from([20260131, 20260201]),
        tokens=NUMBERS,
        reader=st.sampled_from(["remote:a/b", "remote:a/c"]),
        document=DOCUMENTS,
        sent=NUMBERS,
        upto=NUMBERS,
    ),
    o.RemoteSettled: st.builds(
        o.RemoteSettled,
        id=st.sampled_from(["c1", "c2", "c4"]),
        outcome=st.sampled_from(["taken", "dropped", "refused", "timed out", "unknown"]),
        tokens=NUMBERS,
        pointed=st.integers(0, 3),
    ),
    o.ShareOpened: st.builds(
        o.ShareOpened, pool=st.just("project/a"), partition=st.sampled_from(["o1", "o2"]), new_sessions=st.booleans()
    ),
    o.ShareClosed: st.builds(o.ShareClosed, pool=st.just("project/a"), withdraw=st.booleans()),
    o.ShareChosen: st.builds(
        o.ShareChosen, pool=st.just("project/a"), ids=st.lists(IDS, max_size=2).map(tuple), keep=st.booleans()
    ),
    o.Offered: st.builds(
        o.Offered,
        pool=st.just("project/a"),
        partition=st.sampled_from(["o1", "o2"]),
        n=NUMBERS,
        what=st.sampled_from(["add", "inv"]),
        id=IDS,
        ref=LINE_NAMES,
        lamport=NUMBERS,
        at=NUMBERS,
        blind=st.just(b"b"),
        hash=st.just(b"h"),
    ),
    o.Delivered: st.builds(
        o.Delivered, pool=st.just("project/a"), partition=st.just("o1"), epoch=NUMBERS, count=NUMBERS
    ),
    o.Arrived: st.builds(
        o.Arrived,
        pool=st.just("project/a"),
        partition=st.sampled_from(["p1", "p2"]),
        name=st.sampled_from(["Ada", "Bert"]),
        epoch=NUMBERS,
        count=NUMBERS,
        lamport=NUMBERS,
        segments=st.just(((0, b"hash"),)),
        lines=st.lists(
            st.builds(o.ArrivedLine, NUMBERS, NUMBERS, st.sampled_from(["add", "inv", "other"]), LINE_NAMES), max_size=3
        ).map(tuple),
        gone=st.lists(NUMBERS, max_size=2).map(tuple),
        refused=st.sampled_from([(), ((3, "why"),)]),
        problem=st.sampled_from(["", "", "changed"]),
        after=SHIFTS,
        review=MARKS,
    ),
    o.AuthorJudged: st.builds(
        o.AuthorJudged,
        pool=st.just("project/a"),
        partition=st.sampled_from(["p1", "p2"]),
        standing=st.sampled_from(["new", "trusted", "muted"]),
        withheld=st.booleans(),
        after=SHIFTS,
        review=MARKS,
    ),
    o.ShareLeased: st.builds(
        o.ShareLeased,
        pool=st.just("project/a"),
        until=st.sampled_from([0, 10**15, 10**17]),
        withheld=st.sampled_from([(), ("p1",)]),
    ),
    o.PatchApplied: st.builds(
        o.PatchApplied,
        pool=st.just("project/a"),
        patch=PATCHES,
        day=DAYS,
        generated_by=st.just("curator"),
        steps=STEPS,
        names=st.sampled_from([(), (("mem_20260210_001", "r1"),)]),
        sent=st.booleans(),
    ),
    o.PatchTaken: st.builds(
        o.PatchTaken,
        pool=st.just("project/a"),
        patch=PATCHES,
        blob=st.sampled_from(["b1", "b2"]),
        day=DAYS,
        steps=STEPS,
        after=SHIFTS,
    ),
    o.PatchGone: st.builds(o.PatchGone, pool=st.just("project/a"), patch=PATCHES, after=SHIFTS),
    o.PiTrusted: st.builds(o.PiTrusted, pool=st.just("project/a"), trusted=st.booleans()),
    o.PolicySet: st.builds(
        o.PolicySet, pool=st.just("project/a"), digest=st.just("d"), text=st.sampled_from(["", "version: 1"])
    ),
    o.SkillRevised: st.builds(
        o.SkillRevised,
        record=st.sampled_from(["r1", "r2"]),
        sha=st.sampled_from(["", "a"]),
        by=st.sampled_from(["placed", "user"]),
        own=st.sampled_from([(), ("a", "b")]),
    ),
    o.CourseOpened: st.builds(
        o.CourseOpened,
        pool=st.just("agent/a"),
        document=DOCUMENTS,
        sections=st.sampled_from([(), (o.CoursePart(0, "1"), o.CoursePart(1, "2"))]),
        questions=st.sampled_from([(), (o.CoursePart(0, "3"), o.CoursePart(1, "4"))]),
    ),
    o.CourseAsked: st.builds(
        o.CourseAsked,
        document=DOCUMENTS,
        test=st.sampled_from(["before", "after", "review"]),
        answers=st.sampled_from([(), (o.CourseAnswer("3", True, 1), o.CourseAnswer("4", False, 0))]),
    ),
    o.CourseClosed: st.builds(o.CourseClosed, document=DOCUMENTS),
    o.TasksJudged: st.builds(
        o.TasksJudged,
        archive_seq=st.integers(0, 9),
        document=st.sampled_from(["", "h:s", "h:t"]),
        tasks=st.lists(
            st.builds(
                o.JudgedTask,
                agent=st.sampled_from(["a", "b"]),
                turn=st.sampled_from("1234"),
                at=st.integers(0, 3),
                outcome=st.sampled_from(["as_is", "redo"]),
            ),
            max_size=3,
        ).map(tuple),
    ),
    o.TaskRated: st.builds(
        o.TaskRated,
        agent=st.sampled_from(["a", "b"]),
        document=st.sampled_from(["h:s", "h:t"]),
        turn=st.sampled_from("1234"),
        at=st.integers(0, 3),
        outcome=st.sampled_from(["", "minor", "failed"]),
    ),
    o.Checkpoint: st.builds(o.Checkpoint, journal_seq=st.integers(0, 9)),
    o.Unknown: st.builds(o.Unknown, name=st.just("of a later version")),
}
OPERATIONS = st.one_of(*EVERY.values())

CAPTURES = st.builds(
    Captured,
    document=DOCUMENTS,
    event=st.one_of(
        st.builds(
            Said, turn=st.sampled_from("1234"), at=st.just(AT), role=st.just("user"), text=st.sampled_from(["a b", "c"])
        ),
        st.builds(Noted, turn=st.sampled_from("12"), at=st.just(AT), text=st.sampled_from(["note d", "note e"])),
        st.builds(Wrote, turn=st.sampled_from("56"), at=st.just(AT), text=st.sampled_from(["wrote f", "wrote g"])),
        st.builds(ToolCalled, turn=st.sampled_from("78"), at=st.just(AT), name=st.just("grep")),
    ),
)


def test_the_suite_knows_every_operation() -> None:
    assert set(EVERY) == set(get_args(o.AnyOperation)), "give the new operation a strategy here"


class Seam:
    """What the suite needs of a projection: its log, an open one, its contents, its folder if it has one."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = JournalLog(folder / "journal", real_world())
        self.archive = Archive(folder / "archive", real_world())
        self.rows = TableSet(folder / "rows")
        self.place = folder / "place"
        self.store = VectorStore(folder / "vectors", "m", DIMENSION, real_world())
        random = np.random.default_rng(3)
        rows = random.standard_normal((5, DIMENSION)).astype(np.float32)
        self.store.put((f"description version{n}", row.tobytes()) for n, row in enumerate(rows))

    def write(self, operations: list[Any]) -> list[Any]:
        """Into the log, and the rows that other projections look at."""
        entries = self.journal.commit(operations)
        self.rows.tables.apply(entries)
        return entries

    def entries(self, after: int) -> list[Any]:
        return self.journal.slice(after, 1000)

    def open(self) -> Any:
        raise NotImplementedError

    def contents(self, projection: Any) -> object:
        raise NotImplementedError

    def close(self, projection: Any) -> None:
        projection.close()


class TheTables(Seam):
    name = "tables"

    def open(self) -> Any:
        return TableSet(self.place).tables

    def contents(self, projection: Any) -> object:
        with projection.environment.read() as transaction:
            return {
                name: list(transaction.cursor(projection.environment.db(name)).iternext())
                for name in projection.environment.handles
            }


class TheKeywords(Seam):
    name = "keywords"

    def open(self) -> Any:
        return Keywords(self.place, self.rows.records)

    def contents(self, projection: Any) -> object:
        words = [projection.search(f"version{n} number{n}", list(POOLS), 50, past=True)[0].keys() for n in range(8)]
        projection.commit()
        after = [projection.search(f"version{n} number{n}", list(POOLS), 50, past=True)[0].keys() for n in range(8)]
        assert words == after, "the tail and the index do not find the same"
        return dict(contents(self.place))


class TheTurns(Seam):
    name = "turns"

    def write(self, operations: list[Any]) -> list[Any]:
        before = self.archive.last
        self.archive.take(operations)
        return self.entries(before)

    def entries(self, after: int) -> list[Any]:
        return [(entry.seq, decode(entry)) for entry in self.archive.log.slice(after, 1000)]

    def open(self) -> Any:
        return TurnIndex(self.place, self.archive)

    def contents(self, projection: Any) -> object:
        found = [sorted(projection.find(word, 50)[0]) for word in ("a", "c", "note", "wrote", "grep")]
        projection.commit()
        assert found == [sorted(projection.find(word, 50)[0]) for word in ("a", "c", "note", "wrote", "grep")]
        return dict(contents(self.place))


class TheVectors(Seam):
    name = "vectors"

    def open(self) -> Any:
        return VectorIndexes(self.store, self.rows.records, self.rows.tables.applied_seq)

    def contents(self, projection: Any) -> object:
        probe = np.ones(DIMENSION, np.float32)
        near = {pool: {id: round(cosine, 4) for id, cosine in projection.nearest(probe, [pool], 99)} for pool in POOLS}
        return near, sorted(projection.missing(99))

    def close(self, projection: Any) -> None:
        """It lives in memory."""


class TheProfile(TheVectors):
    name = "profile"

    def open(self) -> Any:
        return ProfileCards(self.rows.records, self.rows.tables.applied_seq)

    def contents(self, projection: Any) -> object:
        return {
            (pool, part): {card.id: card for card in projection.cards(pool, part)} for pool in POOLS for part in PARTS
        }


SEAMS = {seam.name: seam for seam in (TheTables, TheKeywords, TheTurns, TheVectors, TheProfile)}


@pytest.fixture(params=list(SEAMS))
def seam(request: Any, tmp_path_factory: Any) -> Iterator[Any]:
    """A maker of fresh seams of one projection."""
    yield lambda: SEAMS[request.param](tmp_path_factory.mktemp(request.param))


def steps_of(seam: Seam) -> Any:
    return st.lists(CAPTURES if seam.name == "turns" else OPERATIONS, max_size=12)


@settings(
    max_examples=15 * EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_replay_from_nothing_and_from_any_applied_seq_equals_live_U3(seam: Any, data: Any) -> None:
    each: Seam = seam()
    live = each.open()
    first, second = data.draw(steps_of(each)), data.draw(steps_of(each))
    for step in first:
        live.apply(each.write([step]))
        each.contents(live)  # whatever it caches is now there, and must be kept in step
    each.close(live)
    if each.name not in ("vectors", "profile"):
        live = each.open()  # again, from the seq that it stored
    stored = live.applied_seq
    if second:
        live.apply(each.write(second))
    held = each.contents(live)
    each.close(live)
    again = each.open()
    assert again.applied_seq == live.applied_seq >= stored
    assert each.contents(again) == held, "opened anew from what it stored"
    each.close(again)
    shutil.rmtree(each.place, ignore_errors=True)
    fresh = each.open()
    if fresh.applied_seq < live.applied_seq:
        fresh.apply(each.entries(fresh.applied_seq))
    assert each.contents(fresh) == held, "deleted and replayed"
    each.close(fresh)


def one(each: Seam, number: int) -> Any:
    if each.name == "turns":
        return Captured(document="h:s", event=Said(turn=str(number), at=AT, role="user", text=f"words {number}"))
    return o.Added(record=record(number, 1, "personal", "note", "", "active", 2, "note"), decision=WHY)


def test_a_hole_and_a_repetition_are_refused_U3(seam: Any) -> None:
    each: Seam = seam()
    projection = each.open()
    entries = [entry for number in range(4) for entry in each.write([one(each, number)])]
    for wrong in (entries[1:2], [entries[0], entries[2]], [entries[0], entries[0]]):
        with pytest.raises(AssertionError):
            projection.apply(wrong)
    projection.apply(entries)
    with pytest.raises(AssertionError):
        projection.apply(entries[3:])
    assert projection.applied_seq == 4
    each.close(projection)


def test_the_profile_takes_the_next_best_when_one_of_a_full_pool_leaves(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("memd.daemon.projections.profile.CARDS", 3)
    each = TheProfile(tmp_path)
    live = each.open()
    added = [
        o.Added(record=record(n, 1, "personal", "note", "", "active", n % 5, "preference"), decision=WHY)
        for n in range(7)
    ]
    live.apply(each.write(list(added)))
    assert {card.id for card in live.cards("personal", "static")} == {"id4", "id3", "id2"}
    live.apply(each.write([o.Invalidated(id="id3", valid_to=AT, reason="wrong")]))
    assert {card.id for card in live.cards("personal", "static")} == {"id4", "id2", "id6"}
    assert each.contents(live) == each.contents(each.open())
