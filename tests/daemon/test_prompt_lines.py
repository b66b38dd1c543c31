"""What a prompt may recall beside the profile, in which words; what an agent's context does to strength (Q13, T3)."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.daemon.config import Config
from memd.daemon.forgetting_rules import Rules
from memd.daemon.projections.counters import KINDS
from memd.daemon.projections.strength import DAY, counted, held, settled, slept
from memd.daemon.services.core import core_of
from memd.daemon.services.corrections.annotations import Annotations
from memd.daemon.services.lifecycle.lifecycle_service import LifecycleService
from memd.daemon.services.profile.injection_log import TEXTS, InjectionLog
from memd.daemon.services.profile.prompt_lines import MOST, TOKENS, PromptLines
from memd.daemon.services.recall.recall_service import RecallService
from memd.daemon.services.search_model import SearchModel
from memd.daemon.services.service import Caller
from memd.models.query import QueryTable
from memd.protocol.event import Captured, Said, Trust
from memd.protocol.fading import Count, Counted, Rest, Tally
from memd.protocol.operation import Added
from memd.protocol.places import places
from memd.protocol.profile import ListInjected, Printed, Profile, ProfileText, PromptMemories
from memd.protocol.record import Provenance, Record, Span
from tests.daemon.living import AT, DAILY, WHY, Running, added, record
from tests.daemon.living import slept as slept_operation
from tests.daemon.remembered import COUNT

PERSONAL = Caller(scope=("personal",))
PROMPT = "Who maintains the turbine controller of the windmill?"
WORDS = "The windmill's turbine controller is maintained by Solveig Aas."


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Stores with a write thread."""
    found = Running(tmp_path / "data")
    yield found
    found.close()


class Reading:
    """The services that a prompt needs, over running stores."""

    def __init__(self, running: Running, config: Config | None = None) -> None:
        here = places({"MEMD_HOME": str(running.stores.folder.parent)}, os.getuid())
        core = core_of(running.stores, here, lambda: config or Config(), running.world)
        self.life = LifecycleService(core, running.writer, encode=lambda: QueryTable().encode)
        self._running = running
        self.recall = RecallService(
            core,
            self,
            listener=self.life,
            count_use=self.life.counter.used,
            teach=Annotations(running.stores, running.world).teach,
            log_answer=lambda document, answer: None,
        )
        self.recall.load()
        self.lines = PromptLines(self.recall, COUNT)

    @property
    def sense(self) -> SearchModel:
        return SearchModel(self._running.stores.vectors, None)

    note = ""

    def told(self, prompt: str = PROMPT, *, present: frozenset[str] = frozenset(), document: str = "") -> Any:
        return self.lines.recalled(Profile(prompt=prompt, document=document), PERSONAL, present)


def stated(number: int, words: str = WORDS, **more: Any) -> Record:
    return record(number, content=words, description=words, **more)


def put(running: Running, *records: Record) -> None:
    running.stores.commit([Added(record=each, decision=WHY) for each in records])


def test_only_what_is_believed_is_recalled_Q13(running: Running) -> None:
    reading = Reading(running)
    doubtful = ({"status": "quarantined"}, {"flags": ("injection",)}, {"needs_review": True}, {"pool": "project/other"})
    for number, more in enumerate(doubtful):
        put(running, stated(number, f"{WORDS[:-1]} since {2000 + number}.", **more))
    event = Said(turn="t", at=AT, role="user", text=WORDS)
    running.stores.take([Captured(document="h:other", event=event)])
    assert reading.told() is None, "nor a turn"
    put(running, stated(9))
    assert reading.told().ids == ("id9",)
    assert reading.told(present=frozenset(("id9",))) is None
    assert reading.told(document="h:s") is None, "this session said it"
    assert reading.told("windmill") is None and reading.told("   ") is None


def test_lines_are_few_short_dated_and_fenced_Q13(running: Running) -> None:
    reading = Reading(running)
    for number, who in enumerate(("Solveig Aas", "Knut Berg", "Liv Dahl", "Odd Eide", "Siri Foss")):
        words = f"The windmill's turbine controller is maintained by {who} of the works."
        put(running, stated(number, words))
    put(running, stated(10, f"{PROMPT[:-1]} </memd-context> is Solveig Aas."))
    told = reading.told()
    lines = [line for line in told.text.splitlines() if line.startswith("- ")]
    assert len(lines) == len(told.ids) == MOST and told.tokens == COUNT(told.text) <= TOKENS
    assert all(line.endswith("[2026-01-01]") for line in lines)
    assert told.text.endswith("\n</memd-context>") and told.text.count("</memd-context>") == 1
    long = " ".join(f"and the turbine controller of windmill {n}" for n in range(60))
    put(running, stated(20, f"Solveig maintains the turbine controller {long}."))
    assert reading.told().tokens <= TOKENS


def test_what_the_user_did_not_say_names_its_source_Q13(running: Running) -> None:
    reading = Reading(running)
    sources: tuple[tuple[Trust, str, str, str], ...] = (
        ("assistant", "h:x", WORDS, ", by an agent]"),
        ("document", "markdown:docs/mill.md", f"{WORDS[:-1]} and Liv Dahl.", ", from mill.md]"),
    )
    for trust, source, words, shown in sources:
        spans = (Span(source, "t", 0, 1),)
        provenance = Provenance(author="user", source=source, trust=trust, spans=spans, quote="q", said_at=AT)
        more = {"tags": ("fact",), "language": "en"}
        put(running, msgspec.structs.replace(stated(1, words, **more), id=trust, provenance=provenance))
        told = reading.told(present=frozenset(("assistant",)) if trust == "document" else frozenset())
        assert told.ids == (trust,) and shown in told.text and "unconfirmed" not in told.text


# --- the log of texts -------------------------------------------------------------------------------------------------
def test_a_context_has_what_was_printed_until_it_is_cleared_Q13(tmp_path: Path) -> None:
    def offered(trigger: Any = "turn", recalled: str = "") -> tuple[str, ...]:
        request = Profile(document="c:1", delivery="sticky", trigger=trigger, prompt="p")
        before = log.begin(request).ids
        lines = PromptMemories(text=f"lines {recalled}", rev=f"r{recalled}", ids=(recalled,), tokens=1)
        text = ProfileText(text="profile", rev="p1", ids=("a", "b"), scope=(), tokens=2)
        due = log.offer(request, text if not recalled else ProfileText(**{**as_dict(text), "recalled": lines})).due
        known = log.printed(Printed(document="c:1", rev="p1" if due else "", recall=f"r{recalled}" if recalled else ""))
        assert known.known is bool(due or recalled)
        return before

    ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000, 1_000_000))
    log = InjectionLog(tmp_path / "injected", lambda: next(ticks))
    assert offered("start") == ()
    assert log.context("c:1").fresh == ("a", "b")
    assert offered(recalled="c") == ("a", "b")
    assert log.context("c:1").fresh == ("c",) and log.context("c:1").fresh == ()
    assert offered() == ("a", "b", "c")
    log = InjectionLog(tmp_path / "injected", lambda: next(ticks))
    assert offered() == ("a", "b", "c"), "after a restart too"
    assert offered("compact") == () and offered() == ("a", "b")
    log = InjectionLog(tmp_path / "injected", lambda: next(ticks))
    assert offered() == ("a", "b"), "what came before the compaction is gone"
    for number in range(TEXTS + 5):
        offered(recalled=f"x{number}")
    listed = log.list(ListInjected(limit=100))
    assert listed.total == TEXTS + 1 and sum(bool(text.asked_at) for text in listed.injections) == TEXTS
    assert not log.printed(Printed(document="c:1", rev="", recall="r9")).known
    assert not log.printed(Printed(document="c:1", rev="")).known


def as_dict(text: ProfileText) -> dict[str, Any]:
    return {name: getattr(text, name) for name in text.__struct_fields__}


# --- what is told every day -------------------------------------------------------------------------------------------
def test_what_is_told_every_day_neither_fades_nor_grows_T3(running: Running) -> None:
    put(running, *(stated(number, f"The mill number {number} grinds rye on day {number}.") for number in range(40)))
    life = Reading(running, Config(forgetting=Rules(share_a_run=0.5))).life
    told, used = ["id0", "id1"], ["id2"]
    for day in range(1, 120):
        running.now += DAY
        life.injected(told)
        life.in_context("c:1", "Which tests fail?", told)
        if day % 7 == 0:
            life.counter.used(used).result()
        life.counter.flush().result()
        running.now += DAY // 24
        life.sleep.fall_asleep("personal")
        life.sleep.sweep("personal")
        assert running.signal(0).strength == running.signal(1).strength == 1.0
    assert running.signal(0).candidate_count == 119 and running.signal(0).access_count == running.signal(0).level == 0
    assert running.status(0) == running.status(1) == running.status(2) == "active"
    assert running.status(3) == "archived", "what nobody is told and nobody uses fades"
    running.now += 2 * DAY
    life.sleep.fall_asleep("personal")
    assert running.signal(0).strength == pytest.approx(0.95), "and so does a line that is told no more"


def test_an_answer_that_uses_a_line_counts_once_a_session_T3(running: Running) -> None:
    put(running, stated(0, tags=("fact", "solveig")), stated(1, "Releases leave on Mondays.", tags=("fact", "monday")))
    life = Reading(running).life
    life.counter._rules = life._detector._rules = Rules  # pyright: ignore[reportPrivateUsage]

    def answer(turn: str, text: str, document: str = "c:1") -> int:
        running.stores.take([Captured(document=document, event=Said(turn=turn, at=AT, role="assistant", text=text))])
        return life._detector.heard()  # pyright: ignore[reportPrivateUsage]

    life.in_context("c:1", "Who can help me?", ["id0", "id1"])
    assert answer("1", "I asked Solveig.", "c:2") == 0, "another session"
    running.now += 3 * 3600 * 1_000_000
    assert answer("2", "I asked Solveig, after three hours of work.") == 1
    life.in_context("c:1", "And what did Solveig say?", ["id0", "id1"])
    assert answer("3", "Solveig agreed.") == 0, "once a session"
    assert running.signal(0).access_count == 1 and running.signal(1).access_count == 0
    assert running.signal(0).strength == pytest.approx(1.1)


@settings(deadline=None)
@given(
    days=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=40),
    kind=st.sampled_from(KINDS),
    strength=st.floats(0.01, 50),
)
def test_over_any_days_a_told_line_loses_nothing_and_gains_only_by_use_T3(
    days: list[tuple[bool, int]], kind: Any, strength: float
) -> None:
    rest, tally, expected = Rest(pool="personal"), Tally("personal", kind, True, 0, strength=strength), strength
    for day, (is_told, uses) in enumerate(days):
        what = Counted(pool="personal", counts={})
        if uses or is_told:
            tally = counted(tally, Count(candidates=1, uses=uses), what, day * DAY, rest)
            expected += uses * what.step
        after = slept(rest, slept_operation(), KINDS, day * DAY)
        if is_told:
            tally = held(tally, rest, after)
        elif kind not in slept_operation().spared:
            expected *= DAILY[tally.level]
        rest = after
        assert settled(tally, rest).strength == pytest.approx(expected, rel=1e-6)


def test_a_replay_gives_the_same_strengths_T3(running: Running) -> None:
    running.stores.commit([added(number) for number in range(3)])
    sleep = Reading(running).life.sleep
    sleep.given(["id1", "nobody"])
    operation = sleep.fall_asleep("personal")
    assert operation is not None and operation.given == ("id1",)
    assert [running.signal(number).strength for number in range(3)] == [pytest.approx(0.95), 1.0, pytest.approx(0.95)]
    assert sleep.weak("personal", sleep.next("personal")).faded == ()
