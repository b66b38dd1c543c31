"""What each session was given: when the profile is due there, what it got, and that all of it can be forgotten (Q1)."""

import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from memd.daemon.services.profile.injection_log import SESSIONS, TEXTS, InjectionLog
from memd.protocol.errors import InvalidRequest, NotFound
from memd.protocol.profile import Delivery, ListInjected, Printed, Profile, ProfileText, Trigger

DOCUMENT = "claude-code:4d56"


def clock() -> Callable[[], int]:
    ticks = count(1_700_000_000_000_000, 1_000_000)
    return lambda: next(ticks)


def text(rev: str) -> ProfileText:
    words = f"<memd-context>\nrevision {rev}\n</memd-context>"
    return ProfileText(text=words, rev=rev, ids=("a",), scope=("personal",), tokens=9)


@pytest.fixture
def deliveries(tmp_path: Path) -> InjectionLog:
    return InjectionLog(tmp_path / "injected", clock())


def offered(
    each: InjectionLog,
    rev: str,
    trigger: Trigger = "turn",
    delivery: Delivery = "sticky",
    document: str = DOCUMENT,
) -> tuple[bool, str]:
    told = each.offer(Profile(document=document, trigger=trigger, delivery=delivery), text(rev))
    return told.due, told.why


def printed(each: InjectionLog, rev: str, document: str = DOCUMENT) -> bool:
    return each.printed(Printed(document=document, rev=rev)).known


def test_a_sticky_host_prints_a_revision_once_and_again_when_its_context_is_new_Q1(deliveries: InjectionLog) -> None:
    assert offered(deliveries, "r1") == (True, "the session has no profile yet")
    assert offered(deliveries, "r1")[0], "it counts once the hook says that it printed it"
    assert printed(deliveries, "r1")
    assert offered(deliveries, "r1") == (False, "the session already has this revision")
    assert offered(deliveries, "r2") == (True, "the profile changed")
    assert printed(deliveries, "r2") and not offered(deliveries, "r2")[0]
    for trigger in ("start", "resume", "clear", "compact"):
        due, why = offered(deliveries, "r2", trigger)
        assert (due and "session" in why) or "context" in why
        assert offered(deliveries, "r2")[0], f"due until it is printed after {trigger}"
        assert printed(deliveries, "r2") and not offered(deliveries, "r2")[0]


def test_a_host_that_keeps_nothing_gets_it_every_turn_Q1(deliveries: InjectionLog) -> None:
    for _ in range(3):
        assert offered(deliveries, "r1", delivery="per_turn") == (True, "this host keeps the profile for one turn only")
        assert printed(deliveries, "r1")
    (kept,) = deliveries.list(ListInjected()).injections
    assert (kept.times, kept.rev, kept.text) == (3, "r1", text("r1").text)


def test_a_report_of_what_was_never_offered_counts_for_nothing_Q1(deliveries: InjectionLog) -> None:
    assert not printed(deliveries, "r1")
    offered(deliveries, "r1")
    assert not printed(deliveries, "r9") and not printed(deliveries, "r1", "claude-code:other")
    assert offered(deliveries, "r1")[0] and deliveries.list(ListInjected()).total == 0


def test_nothing_is_due_where_nothing_is_known_or_nobody_names_a_session_Q1(deliveries: InjectionLog) -> None:
    empty = ProfileText(text="", rev="", ids=(), scope=("personal",), tokens=0)
    told = deliveries.offer(Profile(document=DOCUMENT, delivery="sticky", trigger="start"), empty)
    assert (told.due, told.why) == (False, "nothing is known yet")
    assert deliveries.offer(Profile(), text("r1")) == text("r1")


def test_what_was_given_outlasts_the_daemon_Q1(deliveries: InjectionLog, tmp_path: Path) -> None:
    offered(deliveries, "r1", "start")
    printed(deliveries, "r1")
    again = InjectionLog(tmp_path / "injected", clock())
    assert not offered(again, "r1")[0], "it still stands in the session's context"
    (kept,) = again.list(ListInjected(session="4d56")).injections
    assert (kept.document, kept.why, kept.ids, kept.tokens) == (DOCUMENT, "the session starts", ("a",), 9)
    modes = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (tmp_path / "injected").parent.rglob("injected")}
    assert modes == {0}


def test_texts_are_found_by_session_and_bounded_Q1(deliveries: InjectionLog, tmp_path: Path) -> None:
    for n in range(TEXTS + 5):
        offered(deliveries, f"r{n}")
        printed(deliveries, f"r{n}")
    found = deliveries.list(ListInjected(session="claude-code:4d", limit=3))
    assert [each.rev for each in found.injections] == [f"r{TEXTS + 4 - n}" for n in range(3)]
    assert found.total == TEXTS
    offered(deliveries, "x", document="claude-code:4d57")
    printed(deliveries, "x", "claude-code:4d57")
    with pytest.raises(InvalidRequest):
        deliveries.list(ListInjected(session="4d"))
    with pytest.raises(NotFound):
        deliveries.list(ListInjected(session="zz"))
    for n in range(SESSIONS + 5):
        offered(deliveries, "r", document=f"pi:{n}")
        printed(deliveries, "r", f"pi:{n}")
    assert len(list((tmp_path / "injected").iterdir())) <= SESSIONS


def test_a_forgotten_word_is_gone_from_what_was_given_T10(deliveries: InjectionLog, tmp_path: Path) -> None:
    for rev, document in (("secret", DOCUMENT), ("plain", "pi:1")):
        offered(deliveries, rev, document=document)
        printed(deliveries, rev, document)
    offered(deliveries, "secret 2")
    deliveries.forget([b"revision secret"])
    assert [each.rev for each in deliveries.list(ListInjected()).injections] == ["plain"]
    assert not printed(deliveries, "secret 2"), "what was only offered is not written either"
    assert offered(deliveries, "r3") == (True, "the session has no profile yet")
    deliveries.forget()
    assert list((tmp_path / "injected").iterdir()) == []


def test_a_damaged_file_only_makes_it_due_again_Q1(deliveries: InjectionLog, tmp_path: Path) -> None:
    offered(deliveries, "r1")
    printed(deliveries, "r1")
    for path in (tmp_path / "injected").iterdir():
        path.write_bytes(b"\xff{")
    again = InjectionLog(tmp_path / "injected", clock())
    assert offered(again, "r1")[0] and again.list(ListInjected()).total == 0
