"""Forgetting by query: the words go from every stored text, not from what was said alone (T10)."""

from pathlib import Path
from typing import Any

import pytest

from memd.daemon.services.forgetting.forgotten_names import NameSearch
from memd.protocol.errors import Forgotten
from memd.protocol.event import AnyEvent, Origin, Ran, Repository, Said, SessionEnded, SessionStarted, Wrote
from memd.protocol.message_texts import texts_of
from memd.protocol.operation import (
    AliasAdded,
    ChangeProposed,
    Distilled,
    Failure,
    FeedbackGiven,
    Granted,
    Hidden,
    PoolOpened,
    Redacted,
    RemoteReserved,
    SessionClosed,
    SessionOpened,
    Turns,
)
from memd.protocol.request import Remember
from tests.daemon.test_forget import ended, files_with, verified

AT = "2026-03-10T09:00:00+01:00"
WORD = "zanzibarine"


def said(turn: str, text: str = "The cherry job runs at noon.") -> Said:
    return Said(turn=turn, at=AT, role="user", text=text)


PLAIN = Origin(host="h", session="plain")
PLACES: dict[str, tuple[Origin, AnyEvent]] = {
    "path": (PLAIN, Wrote(turn="p1", at=AT, text="The cherry job moved.", path=f"/srv/{WORD}/a.md")),
    "author": (PLAIN, Wrote(turn="p2", at=AT, text="The cherry job stayed.", author=f"{WORD.title()} Doe")),
    "turn": (PLAIN, said(f"{WORD}/3", "The cherry job waits.")),
    "command": (PLAIN, Ran(turn="p4", at=AT, command=f"cd {WORD.upper()} && make")),
    "start reason": (PLAIN, SessionStarted(turn="p5", at=AT, reason=f"as {WORD} asked")),
    "session": (Origin(host="h", session=f"{WORD}-session"), said("1", "The cherry job failed.")),
    "title": (Origin(host="h", session="titled", title=f"Plans of {WORD}"), said("1", "The cherry job is red.")),
    "folder": (Origin(host="h", session="placed", cwd=f"/srv/{WORD}/src"), said("1", "The cherry job is blue.")),
    "agent": (Origin(host="h", session="agent", agent=f"{WORD}-bot"), said("1", "The cherry job is green.")),
    "remote": (
        Origin(host="h", session="cloned", repository=Repository(remote=f"https://a.org/{WORD}/it", root=f"/{WORD}")),
        said("1", "The cherry job is grey."),
    ),
    "end reason": (Origin(host="h", session="ended"), SessionEnded(turn="9", at=AT, reason=f"{WORD} closed it")),
}  # fmt: skip


def test_the_words_of_a_query_go_from_every_stored_text_T10(daemon: Any, tmp_path: Path) -> None:
    with daemon.client() as client:
        kept = client.remember("I prefer tabs over spaces.").record.id
        for origin, event in PLACES.values():
            client.capture(origin, [event])
        client.capture(PLAIN, [said("stays", "The apple job stays.")])
        client.grant(f"{WORD} laptop", pools=["personal"])
        client.propose_forget([kept], by=f"{WORD}-agent")
        client.open_agent("helper", role=f"reviews {WORD}", perspectives=[f"{WORD} costs"])
        client.bind_scope(str(tmp_path), title=f"The {WORD} orchard")
        client.recall("apple", document=f"h:{WORD}-session")
        client.pause(f"/srv/{WORD}")
        client.resume(f"/srv/{WORD}")
    daemon.settle()
    assert files_with(daemon, WORD)
    with daemon.client() as client:
        plan = client.preview_forget(query=WORD)
        assert plan.captures >= 6 and plan.names >= 8
        report = ended(client, client.forget(query=WORD))
        assert (report["captures"], report["names"], report["left"]) == (plan.captures, plan.names, [])
        sessions = {session.document: session for session in client.sessions(limit=100).sessions}
        assert f"h:{WORD}-session" not in sessions
        assert {"h:titled", "h:placed", "h:agent", "h:cloned"} <= sessions.keys()
        assert (sessions["h:titled"].title, sessions["h:placed"].cwd, sessions["h:agent"].agent) == ("", "", "")
        assert client.recall("apple job").hits or client.recall("apple job").turns
        assert client.preview_forget(query=WORD).names == 0
        for origin, event in (PLACES["turn"], PLACES["session"]):  # their names are gone, and yet they stay forgotten
            assert client.capture(origin, [event]).forgotten == 1
        with pytest.raises(Forgotten):
            client.ask(Remember(text="Again.", turn="1", at=AT, origin=PLACES["session"][0]), object)
    assert files_with(daemon, WORD) == []
    daemon.terminate()
    assert files_with(daemon, WORD) == []
    verified(daemon)
    daemon.start()
    with daemon.client() as client:
        assert client.get(kept).status in ("active", "provisional")
        origin, event = PLACES["turn"]
        assert client.capture(origin, [event]).forgotten == 1


SHORT = "bad"


@pytest.mark.parametrize("name", ["0bad5c7e-1111-4222-8333-44badc0ffee0", "msg_01xfbadyjgaa", "toolubad"])
def test_a_short_word_is_not_found_within_a_random_name_T10(name: str) -> None:
    search = NameSearch(SHORT)
    assert not search.turn((f"h:{name}", name)) and search.turn(("h:s", f"a-{SHORT}-turn"))
    assert not NameSearch("claude-code").document("claude-code:1"), "the name of a program is in every session"


OPERATIONS = (
    PoolOpened(pool="project/x", title=WORD, roots=(f"/{WORD}",), evidence=WORD, role=WORD, perspectives=(WORD,)),
    AliasAdded(pool="project/x", names=(f"folder:/{WORD}", "folder:/other"), evidence=WORD),
    SessionOpened(
        document="h:s",
        origin=Origin(
            host="h", session="s", cwd=WORD, agent=WORD, title=WORD,
            repository=Repository(root=WORD, root_commit=WORD, remote=WORD),
        ),
        project="",
        at=AT,
    ),
    SessionClosed(document="h:s", at=AT, reason=WORD),
    Granted(grant="g", subject=WORD, sources=(f"h:{WORD}", "h:s")),
    ChangeProposed(id="i", what="forget", record="r", document=f"h:{WORD}", by=WORD, label=WORD, reason=WORD),
    Distilled(archive_seq=1, captures=1, candidates=0, failed=(Failure(1, f"h:{WORD}", WORD, "scan", WORD),)),
    FeedbackGiven(agent=WORD),
    Hidden(documents=(f"h:{WORD}", "h:s"), before=(), after=()),
    RemoteReserved(
        id="c", day=20260131, tokens=9, reader="remote:a/b", document=f"h:{WORD}", sent=1, upto=1
    ),
    Redacted(turns=(Turns(f"h:{WORD}", ("1",)), Turns("h:s", (WORD, "2"))), sessions=(f"h:{WORD}",)),
)  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: type(operation).__name__)
def test_no_text_of_an_operation_keeps_the_words_T10(operation: Any) -> None:
    search = NameSearch(WORD)
    left = search.without(operation)
    assert [words for _, words in texts_of(left) if WORD in words] == []
    assert search.without(left) == left and NameSearch("").without(operation) is operation
    if isinstance(left, Redacted):
        assert left.turns == (Turns("h:s", ("2",)),) and len(left.marks) == 3
