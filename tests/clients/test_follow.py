"""Live capture: a session is read on with after its turns, and importing it afterwards adds nothing (W10, W13)."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.clients.hooks import follow, notes
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import Imported, ImportSource, hand_over
from memd.protocol.errors import DaemonDown
from tests.clients.hooked import Host, stopped
from tests.clients.test_command_sources import DOINGS, claude_lines, written
from tests.conftest import RunningDaemon

SAMPLE = Path(follow.__file__).parents[1] / "cli/sample/session.jsonl"
SESSIONS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sessions"
REAL = [
    *(("claude-code", path) for path in sorted(SESSIONS.glob("claude-code/*.jsonl"))),
    *(("pi", path) for path in sorted(SESSIONS.glob("pi/*.jsonl"))),
]
STOPS = 5


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One daemon for the tests of this file that leave it as it is."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    yield daemon
    daemon.terminate()


def note(host: Host, path: Path, *, ended: bool = False, urgent: bool = False, agent: str = "claude-code") -> None:
    """What the hook program notes, without a process."""
    line = json.dumps({"agent": agent, "path": str(path), "cwd": "/", "ended": ended, "urgent": urgent}) + "\n"
    with (host.places.hooks / "queue").open("a") as file:
        file.write(line)


def imported(daemon: RunningDaemon, agent: str, path: Path) -> Imported:
    """An import of the whole file, as if none had been before."""
    cursors = Cursors(daemon.places.state)
    cursors.ignore([path])
    with daemon.client() as client:
        return hand_over(client, ImportSource(agent, path, reader(agent, path, "", cursors)), cursors)


def operations(daemon: RunningDaemon, document: str) -> list[str]:
    with daemon.client() as client:
        entries = client.journal(limit=500).entries
    return [type(e.operation).__name__ for e in entries if getattr(e.operation, "document", "") == document]


def grow(daemon: RunningDaemon, agent: str, whole: Path, place: Path) -> None:
    """A session that goes on: lines are added, hooks note it, it is read on with; then it ends."""
    host = Host(agent, daemon.environment)
    lines = whole.read_bytes().splitlines(keepends=True)
    for number in range(1, STOPS + 1):
        place.write_bytes(b"".join(lines[: len(lines) * number // STOPS]))
        note(host, place, agent=agent)
        assert follow.follow(daemon.places) == 1
    note(host, place, agent=agent, ended=True)
    assert follow.follow(daemon.places) == 1


@pytest.mark.parametrize(("agent", "whole"), [("claude-code", SAMPLE), *REAL], ids=lambda each: str(each)[-24:])
def test_importing_a_followed_session_adds_nothing_W13(
    running: RunningDaemon, tmp_path: Path, agent: str, whole: Path
) -> None:
    if not whole.exists():
        pytest.skip("the real sessions are not here")
    place = tmp_path / whole.name
    grow(running, agent, whole, place)
    for sent in imported(running, agent, place).sessions:
        assert sent.duplicate == sent.events
        assert (sent.accepted, sent.changed, sent.refused) == (0, 0, ())


def test_a_followed_session_has_the_marks_of_a_whole_reading_K1(running: RunningDaemon, tmp_path: Path) -> None:
    whole = written(claude_lines(DOINGS, "marked"), tmp_path / "marked.jsonl")
    place = tmp_path / "growing" / "marked.jsonl"
    place.parent.mkdir()
    grow(running, "claude-code", whole, place)
    (sent,) = imported(running, "claude-code", place).sessions
    assert (sent.duplicate, sent.changed) == (sent.events, 0), "a call with another mark would be a changed turn"


def test_a_followed_session_is_live_and_ends_when_its_host_says_so_W2(running: RunningDaemon, tmp_path: Path) -> None:
    place = tmp_path / "one.jsonl"
    place.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"11111111"))
    document = "claude-code:11111111-1237-4858-b550-85095d118736"
    host = Host("claude-code", running.environment)
    note(host, place)
    follow.follow(running.places)
    assert operations(running, document) == ["SessionOpened"]
    with running.client() as client:
        opened = [e.operation for e in client.journal(limit=500).entries]
        assert [each.origin.live for each in opened if getattr(each, "document", "") == document] == [True]  # type: ignore[union-attr]
    note(host, place, ended=True)
    follow.follow(running.places)
    assert operations(running, document) == ["SessionOpened", "SessionClosed"]


def test_what_a_context_holds_is_distilled_before_the_host_cuts_it_W2(home: dict[str, str], tmp_path: Path) -> None:
    """The session goes on, and the daemon waits for its end or its pause; only the hook's word makes it hurry."""
    daemon = RunningDaemon({**home, "MEMD_IDLE_S": "3600"})
    daemon.start()
    try:
        place = tmp_path / "one.jsonl"
        place.write_text(said_line(1, "user", "I prefer tabs over spaces for indentation."))
        host = Host("claude-code", daemon.environment)
        payload = {"session_id": "s", "transcript_path": str(place), "cwd": str(tmp_path)}
        host.run("Stop", json.dumps(payload).encode())
        with daemon.client() as client:
            end = time.monotonic() + 90
            while not client.status().pending and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1.0)
            assert client.status().pending
            host.run("PreCompact", json.dumps(payload).encode())
            while client.status().pending and time.monotonic() < end:
                time.sleep(0.05)
            assert [record.content for record in client.list().records]
    finally:
        daemon.terminate()


def todo_lines(number: int, **items: str) -> str:
    """The lines of a call that sets the todo list, and of its result; `items`: status by text."""
    todos = [{"content": text.replace("_", " "), "status": status, "activeForm": ""} for text, status in items.items()]
    use = {"type": "tool_use", "id": f"c{number}", "name": "TodoWrite", "input": {"todos": todos}}
    answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "Todos have been modified successfully."}
    at = f"2026-02-11T20:{number:02}:00.000Z"
    common = {"sessionId": "todo-session", "timestamp": at, "cwd": "/"}
    call = {**common, "type": "assistant", "uuid": f"a{number}", "message": {"role": "assistant", "content": [use]}}
    done = {**common, "type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": [answer]}}
    result = {"oldTodos": [], "newTodos": todos}
    return "".join(json.dumps(told) + "\n" for told in (call, {**done, "toolUseResult": result}))


def said_line(number: int, role: str, text: str) -> str:
    at = f"2026-02-11T20:{number:02}:30.000Z"
    told = {"type": role, "uuid": f"s{number}", "sessionId": "todo-session", "timestamp": at, "cwd": "/"}
    return json.dumps({**told, "message": {"role": role, "content": [{"type": "text", "text": text}]}}) + "\n"


def test_what_a_session_leaves_open_is_kept_when_it_ends_and_ends_when_it_is_done_W13(
    running: RunningDaemon, tmp_path: Path
) -> None:
    host, place = Host("claude-code", running.environment), tmp_path / "todo-session.jsonl"

    def open_items(*lines: str, ended: bool) -> list[str]:
        with place.open("a") as file:
            file.writelines(lines)
        note(host, place, ended=ended)
        follow.follow(running.places)
        with running.client() as client:
            deadline = time.monotonic() + 60
            while client.status().pending and time.monotonic() < deadline:
                time.sleep(0.1)
            records = client.list(document="claude-code:todo-session", statuses=["active", "quarantined"]).records
        assert all(record.status == "quarantined" for record in records if record.type == "commitment")
        return sorted(record.content for record in records if record.type == "commitment")

    listed = {"Port_the_receipt_importer": "completed", "Write_the_migration_guide": "in_progress"}
    begun = todo_lines(1, **listed, Benchmark_the_new_parser="pending", Delete_the_legacy_shim="pending")
    assert open_items(begun, ended=False) == []
    report = said_line(2, "assistant", "The legacy shim is deleted.")
    assert open_items(report, ended=True) == ["Benchmark the new parser", "Write the migration guide"]
    for sent in imported(running, "claude-code", place).sessions:
        assert sent.duplicate == sent.events
    listed["Write_the_migration_guide"] = "completed"
    resumed = todo_lines(3, **listed, Benchmark_the_new_parser="in_progress")
    assert open_items(resumed, ended=True) == ["Benchmark the new parser"]
    assert open_items(todo_lines(4, Benchmark_the_new_parser="completed"), ended=False) == []


def test_a_subagents_session_is_read_beside_the_one_that_started_it(running: RunningDaemon, tmp_path: Path) -> None:
    place = tmp_path / "two.jsonl"
    place.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"22222222"))
    beside = tmp_path / "two/subagents/agent-a1.jsonl"
    beside.parent.mkdir(parents=True)
    line = {
        "type": "assistant",
        "uuid": "u1",
        "sessionId": "22222222-1237-4858-b550-85095d118736",
        "isSidechain": True,
        "agentId": "a1",
        "timestamp": "2026-09-03T08:00:00Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "The cache was stale."}]},
    }
    beside.write_text(json.dumps(line) + "\n")
    host = Host("claude-code", running.environment)
    note(host, place)
    follow.follow(running.places)
    assert operations(running, "claude-code:22222222-1237-4858-b550-85095d118736/a1") == ["SessionOpened"]


def test_the_hook_starts_the_reading_itself_and_waits_for_nothing_W10(running: RunningDaemon, tmp_path: Path) -> None:
    place = tmp_path / "three.jsonl"
    place.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"33333333"))
    host = Host("claude-code", running.environment)
    assert host.call("Stop", stopped(place)) == ""
    end = time.monotonic() + 90
    while not operations(running, "claude-code:33333333-1237-4858-b550-85095d118736"):
        assert time.monotonic() < end
        host.call("Stop", stopped(place))
        time.sleep(0.3)


def test_nothing_is_lost_while_memd_is_down_W10(home: dict[str, str], tmp_path: Path, memd: Any) -> None:
    daemon = RunningDaemon(home)
    host = Host("claude-code", home)
    place = tmp_path / "session.jsonl"
    place.write_bytes(SAMPLE.read_bytes())
    assert host.call("Stop", stopped(place)) == ""
    assert host.call("SessionEnd", stopped(place, "SessionEnd", reason="other")) == ""
    assert [each.ended for each in host.noted()] == [False, True]
    with pytest.raises(DaemonDown):
        follow.follow(daemon.places)
    assert notes.has_notes(daemon.places.hooks)
    assert memd("up").code == 0
    try:
        end = time.monotonic() + 90
        while notes.has_notes(daemon.places.hooks):
            assert time.monotonic() < end
            time.sleep(0.1)
        assert not any(each.accepted for each in imported(daemon, "claude-code", place).sessions)
    finally:
        memd("down")


def test_a_reader_that_was_killed_leaves_its_notes_to_the_next(running: RunningDaemon, tmp_path: Path) -> None:
    place = tmp_path / "four.jsonl"
    place.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"44444444"))
    host = Host("claude-code", running.environment)
    note(host, place)
    assert [each.path for each in notes.take_notes(running.places.hooks)[0]] == [str(place)]  # and then it was killed
    note(host, tmp_path / "gone.jsonl")
    assert follow.follow(running.places) == 2
    assert operations(running, "claude-code:44444444-1237-4858-b550-85095d118736") == ["SessionOpened"]
    assert not notes.has_notes(running.places.hooks)


def test_a_note_of_an_agent_that_is_not_known_holds_up_no_other(
    running: RunningDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd, known = tmp_path / "odd.jsonl", tmp_path / "known.jsonl"
    odd.write_text("# Wishes\n\nWe deploy on Tuesdays.\n")
    known.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"66666666"))
    host = Host("claude-code", running.environment)
    note(host, odd, agent="of-a-later-version")
    note(host, known)
    assert follow.follow(running.places) == 2 and not notes.has_notes(running.places.hooks)
    assert "there is no agent 'of-a-later-version'" in capsys.readouterr().err
    assert operations(running, "claude-code:66666666-1237-4858-b550-85095d118736") == ["SessionOpened"]
    with running.client() as client:
        assert "markdown" not in {each.document.partition(":")[0] for each in client.sessions().sessions}


def test_several_readers_at_once_read_everything_once(running: RunningDaemon, tmp_path: Path) -> None:
    host = Host("claude-code", running.environment)
    places = [tmp_path / f"{number}.jsonl" for number in range(6)]
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(follow.follow(running.places))) for _ in range(4)]
    for number, place in enumerate(places):
        place.write_bytes(SAMPLE.read_bytes().replace(b"55ec3f1e", b"%08d" % number))
        note(host, place, ended=True)
        if number < len(threads):
            threads[number].start()
    for thread in threads:
        thread.join()
    counts.append(follow.follow(running.places))
    assert sum(counts) == len(places)
    for place in places:
        assert not any(each.accepted for each in imported(running, "claude-code", place).sessions)


def test_what_memd_printed_is_not_captured_again_P6_W9(running: RunningDaemon, tmp_path: Path) -> None:
    line = {
        "type": "user",
        "uuid": "u-injected",
        "sessionId": "inj",
        "timestamp": "2026-09-03T08:00:00Z",
        "message": {
            "role": "user",
            "content": 'Mind the lamp. <memd-context rev="r1">\nthe quokka sleeps\n</memd-context> Thanks.',
        },
    }
    place = tmp_path / "inj.jsonl"
    place.write_text(json.dumps(line) + "\n")
    host = Host("claude-code", running.environment)
    note(host, place)
    follow.follow(running.places)
    home = Path(running.environment["MEMD_HOME"])
    files = [each for each in home.rglob("*") if each.is_file()]
    assert any(b"Mind the lamp." in each.read_bytes() for each in files)
    assert not any(b"quokka" in each.read_bytes() for each in files)
