"""Sessions of aider, SpecStory, opencode, Cline, Roo Code and Cursor: the user's words alone are the user's (W5), and
importing again adds nothing (W13)."""

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers import aider, cline, cursor, opencode, specstory
from memd.clients.importers.agent_files import IMPORTABLE, find, reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.clients.importers.transcript import CapturedSession, Transcript
from memd.protocol.errors import StoreError
from memd.protocol.event import Said, ToolCalled
from tests.clients.growing import check_reading_on

DATA = Path(__file__).parents[1] / "data" / "sessions"
SHORT, RUN = "I prefer short functions.", "Always run the tests with -x."


def said(session: CapturedSession, role: str = "user") -> list[str]:
    return [event.text for event in session.events if isinstance(event, Said) and event.role == role]


def calls(session: CapturedSession) -> list[tuple[str, str]]:
    return [(event.name, event.outcome) for event in session.events if isinstance(event, ToolCalled)]


def only(transcript: Transcript) -> CapturedSession:
    assert transcript.account.is_complete
    (session,) = transcript.sessions
    return session


# --- aider ----------------------------------------------------------------------------------------------------------
def history(folder: Path) -> Path:
    path = folder / "orchard" / ".aider.chat.history.md"
    path.parent.mkdir()
    shutil.copyfile(DATA / "aider.chat.history.md", path)
    return path


def test_each_start_of_aider_is_a_session_of_its_folder(tmp_path: Path) -> None:
    first, second = aider.read(history(tmp_path)).sessions
    assert first.origin.cwd == str(tmp_path / "orchard")
    assert said(first) == [f"{SHORT}\nWhich database do we use?", RUN]
    assert said(first, "assistant")[0].startswith("We use sqlite because it needs no server.\n\n#### Files")
    assert "SEARCH" not in said(first, "assistant")[0] and "new()" not in said(first, "assistant")[0]
    assert said(first, "assistant")[1:] == ["They run with -x."]
    assert calls(first) == [("edit", "ok")]
    assert (said(second), said(second, "assistant")) == (["What is next?"], ["The release."])


def test_aiders_own_output_is_no_ones_word_W5(tmp_path: Path) -> None:
    words = [text for session in aider.read(history(tmp_path)).sessions for text in said(session, "assistant")]
    for output in ("no functions", "long functions", "bad lint", "second paragraph", "Tokens", "3 passed"):
        assert not any(output in text for text in words)


def test_aiders_input_history_tells_when_the_user_typed(tmp_path: Path) -> None:
    path = history(tmp_path)
    path.with_name(".aider.input.history").write_text(
        f"\n# 2026-03-04 10:00:07.5\n+{SHORT}\n+Which database do we use?\n\n# 2026-03-04 10:02:00\n+{RUN}\n"
    )
    times = [event.at for event in aider.read(path).sessions[0].events if isinstance(event, Said)]
    assert times == sorted(times)
    assert times[0].startswith("2026-03-04T10:00:07.5")


def test_a_history_of_aider_that_grows_gives_the_same_turns_W13(tmp_path: Path) -> None:
    path = history(tmp_path)
    content = path.read_text()
    path.write_text("".join(content.replace("2026-03-0", f"2026-0{month}-0") for month in (3, 4, 5, 6)))
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    whole = {(event.turn, event.at) for session in aider.read(path).sessions for event in session.events}
    assert len(whole) > 20
    known: dict[Any, Any] = {}
    mark, written, before = None, path.read_bytes(), 0
    for cut in (300, 900, 1500, 2200, len(written)):
        copy.write_bytes(written[:cut])
        found = aider.read(copy, "", mark)
        mark, before = found.mark, max(before, found.account.before)
        known.update({(session.origin.session, event.turn): event for session in found.sessions for event in
                      session.events})  # fmt: skip
    expected = {(session.origin.session, event.turn): event for session in aider.read(copy).sessions for event in
                session.events}  # fmt: skip
    assert known == expected
    assert before > 10


# --- SpecStory ------------------------------------------------------------------------------------------------------
@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder without any agent."""
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    specstory.forget_listings()
    return tmp_path / "ada"


def saved(folder: Path) -> Path:
    path = folder / "orchard" / ".specstory" / "history" / "2026-03-04_10-00-00Z-i-prefer-short.md"
    path.parent.mkdir(parents=True)
    shutil.copyfile(DATA / "specstory.md", path)
    return path


def test_a_session_of_specstory_has_the_users_words_alone_W5(nobody: Path, tmp_path: Path) -> None:
    session = only(specstory.read(saved(tmp_path)))
    assert session.origin.document == "specstory:5c7d5c23-0691-4467-b98e-0fb865b4a639"
    assert session.origin.cwd == str(tmp_path / "orchard")
    assert said(session) == [f"{SHORT}\n\nThey are easy to name.", RUN]
    assert said(session, "assistant")[0] == "I look at the parser."
    assert said(session, "assistant")[1].startswith("We use sqlite because it needs no server:\n\n```markdown")
    assert len(said(session, "assistant")) == 2
    assert calls(session) == [("Bash", "unknown")]
    assert next(event.at for event in session.events if isinstance(event, Said)) == "2026-03-04T10:00:00+00:00"


def test_a_session_that_its_agent_still_has_is_left_to_that_agent(nobody: Path, tmp_path: Path) -> None:
    path = saved(tmp_path)
    own = nobody / ".claude/projects/-home-ada-orchard/5c7d5c23-0691-4467-b98e-0fb865b4a639.jsonl"
    own.parent.mkdir(parents=True)
    own.touch()
    specstory.forget_listings()
    found = specstory.read(path)
    assert found.sessions == ()
    assert "session that Claude Code has on this machine" in found.account.noise


def test_a_session_that_git_has_from_another_author_is_left_out_W5(nobody: Path, tmp_path: Path) -> None:
    path = saved(tmp_path)
    top = tmp_path / "orchard"

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(top), *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.email", "ada@example.org")
    assert len(specstory.read(path).sessions) == 1
    git("add", ".")
    git("-c", "user.name=Bo", "-c", "user.email=bo@example.org", "commit", "-qm", "notes")
    assert specstory.read(path).sessions == ()
    git("-c", "user.name=Ada", "commit", "-q", "--amend", "--reset-author", "-m", "notes")
    assert len(specstory.read(path).sessions) == 1


@pytest.mark.parametrize(
    ("header", "role"),
    [("_**User**_", "user"), ("_**Assistant (claude-4.5-sonnet-thinking)**_", "assistant"),
     ("_**Agent (model claude-4.5-opus, mode Agent)**_", "assistant"), ("_**User (2025-10-01 23:30Z)**_", "user"),
     ("_**User (2025-10-01 23:30:07-0700)**_", "user")],
)  # fmt: skip
def test_roles_of_all_versions_of_specstory_are_known(nobody: Path, tmp_path: Path, header: str, role: str) -> None:
    path = tmp_path / "2025-10-01_23-30Z-notes.md"
    path.write_text(f"<!-- Generated by SpecStory -->\n\n# Notes (2025-10-01 23:30Z)\n\n{header}\n\n{SHORT}\n\n---\n")
    assert said(only(specstory.read(path)), role) == [SHORT]


def test_markdown_that_is_not_specstorys_has_no_messages(nobody: Path, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text(f"# Notes\n\n{SHORT}\n")
    assert specstory.read(path).sessions == ()


# --- opencode -------------------------------------------------------------------------------------------------------
def messages_of_opencode() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """A session's messages, each with its parts, as version 1.18.33 writes them."""
    ls = {"status": "completed", "input": {"command": "ls"}, "output": "I prefer long functions.\n", "title": "ls"}
    return [
        ({"role": "user", "time": {"created": 1772618400000}},
         [{"type": "text", "text": f'"{SHORT}"'}, {"type": "text", "text": "A file.", "synthetic": True}]),
        ({"role": "assistant", "time": {"created": 1772618401000}},
         [{"type": "step-start"}, {"type": "reasoning", "text": "I prefer thoughts."},
          {"type": "tool", "tool": "bash", "callID": "call_1", "state": ls}]),
        ({"role": "assistant", "time": {"created": 1772618402000}, "error": {"name": "MessageAbortedError"}},
         [{"type": "text", "text": "We use sqlite because it needs no server."}]),
        ({"role": "user", "time": {"created": 1772618403000}}, [{"type": "text", "text": RUN}]),
    ]  # fmt: skip


def database(path: Path, *, journal: str = "delete") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.executescript(
        f"""PRAGMA journal_mode={journal};
        CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, agent text,
          time_created integer, time_updated integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);"""
    )
    return connection


def add_session(connection: sqlite3.Connection, name: str, parent: str | None = None, updated: int = 5) -> None:
    row = (name, parent, "/home/ada/orchard", "Short functions", "explore" if parent else "build", 1, updated)
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for number, (message, parts) in enumerate(messages_of_opencode(), 1):
        message_id = f"msg_{name}_{number}"
        created = message["time"]["created"]
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (message_id, name, created, json.dumps(message)))
        for place, part in enumerate(parts):
            row = (f"prt_{name}_{number}{place}", message_id, name, json.dumps(part))
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    connection.commit()


def folder_of_opencode(storage: Path, name: str) -> Path:
    """The same session in the files of earlier versions."""
    session = {"id": name, "directory": "/home/ada/orchard", "title": "Short functions", "time": {"created": 1}}
    files = {f"session/global/{name}.json": session}
    for number, (message, parts) in enumerate(messages_of_opencode(), 1):
        files[f"message/{name}/msg_{name}_{number}.json"] = message
        for place, part in enumerate(parts):
            files[f"part/msg_{name}_{number}/prt_{name}_{number}{place}.json"] = part
    for path, content in files.items():
        (storage / path).parent.mkdir(parents=True, exist_ok=True)
        (storage / path).write_text(json.dumps(content))
    return storage / f"session/global/{name}.json"


def test_a_session_of_opencode_has_the_users_words_alone_W5(tmp_path: Path) -> None:
    with database(tmp_path / "opencode.db") as connection:
        add_session(connection, "ses_1")
    session = only(opencode.read(tmp_path / "opencode.db"))
    assert session.origin.document == "opencode:ses_1"
    assert (session.origin.cwd, session.origin.title) == ("/home/ada/orchard", "Short functions")
    assert said(session) == [SHORT, RUN]
    assert said(session, "assistant") == ["We use sqlite because it needs no server."]
    assert calls(session) == [("bash", "ok")]
    assert "interrupted" in [type(event).__name__.lower() for event in session.events]


def test_files_of_earlier_versions_of_opencode_give_the_same_turns_W13(tmp_path: Path) -> None:
    with database(tmp_path / "opencode.db") as connection:
        add_session(connection, "ses_1")
    path = folder_of_opencode(tmp_path / "storage", "ses_1")
    assert only(opencode.read(path)) == only(opencode.read(tmp_path / "opencode.db"))


def test_what_an_agent_of_opencode_asks_its_subagent_is_not_the_users_word_W5(tmp_path: Path) -> None:
    with database(tmp_path / "opencode.db") as connection:
        add_session(connection, "ses_1")
        add_session(connection, "ses_2", parent="ses_1")
    own, subagent = opencode.read(tmp_path / "opencode.db").sessions
    assert (own.origin.agent, subagent.origin.agent) == ("", "explore")
    assert subagent.origin.session == "ses_1/ses_2"
    assert said(subagent) == []


def test_a_database_that_its_program_has_open_is_read_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "store" / "opencode.db"
    path.parent.mkdir()
    writer = database(path, journal="wal")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    add_session(writer, "ses_1")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert "opencode.db-wal" in before
    assert said(only(opencode.read(path))) == [SHORT, RUN]
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    writer.close()
    path.parent.chmod(0o500)
    assert said(only(opencode.read(path))) == [SHORT, RUN]
    assert sorted(file.name for file in path.parent.iterdir()) == ["opencode.db"]
    path.parent.chmod(0o700)


def test_damage_in_a_store_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with database(path) as connection:
        add_session(connection, "ses_1")
        connection.execute("UPDATE message SET data = '{' WHERE id = 'msg_ses_1_1'")
        connection.execute("UPDATE part SET data = 'x' WHERE id = 'prt_ses_1_30'")
    found = opencode.read(path)
    assert len(found.account.malformed) == 2 and found.account.is_complete
    assert said(found.sessions[0]) == [RUN]
    path.write_bytes(b"SQLite format 3\x00" + b"\x01" * 5000)
    with pytest.raises(StoreError, match="no database that can be read"):
        opencode.read(path)


# --- Cline and Roo Code ---------------------------------------------------------------------------------------------
def test_a_session_of_cline_has_the_users_words_alone_W5(tmp_path: Path) -> None:
    path = tmp_path / "1772618400000_ab12c" / "1772618400000_ab12c.messages.json"
    path.parent.mkdir()
    shutil.copyfile(DATA / "cline.messages.json", path)
    manifest = {"cwd": "/home/ada/orchard", "metadata": {"title": "Short functions"}}
    path.with_name("1772618400000_ab12c.json").write_text(json.dumps(manifest))
    session = only(cline.read(path))
    assert session.origin.document == "cline:1772618400000_ab12c"
    assert (session.origin.cwd, session.origin.title) == ("/home/ada/orchard", "Short functions")
    assert said(session) == [SHORT, RUN]
    assert said(session, "assistant") == ["I look at the files.", "We use sqlite because it needs no server."]
    assert calls(session) == [("run_commands", "ok")]
    teammate = path.with_name("helper__1.messages.json")
    teammate.write_text(path.read_text().replace('"lead"', '"subagent"'))
    other = only(cline.read(teammate))
    assert (other.origin.session, other.origin.agent) == ("1772618400000_ab12c/helper__1", "subagent")
    assert said(other) == []


@pytest.mark.parametrize(("extension", "host"), [("saoudrizwan.claude-dev", "cline"),
                                                 ("rooveterinaryinc.roo-cline", "roo-code")])  # fmt: skip
def test_a_task_of_the_extension_has_the_users_words_alone_W5(tmp_path: Path, extension: str, host: str) -> None:
    folder = tmp_path / extension / "tasks" / "1772618400000"
    shutil.copytree(DATA / "tasks" / "1772618400000", folder)
    session = only(cline.read(folder / "ui_messages.json"))
    assert session.origin.document == f"{host}:1772618400000"
    assert session.origin.cwd == "/home/ada/orchard"
    assert said(session) == [SHORT, "sqlite, it needs no server"]
    assert said(session, "assistant") == ["I look at the files.", "Which database?", "The parser uses sqlite."]
    assert [name for name, _ in calls(session)] == ["execute_command", "readFile"]


# --- Cursor ---------------------------------------------------------------------------------------------------------
def transcript_of_cursor(home: Path, name: str = "c1") -> Path:
    path = home / ".cursor" / "projects" / "home-ada-orchard" / "agent-transcripts" / name / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    shutil.copyfile(DATA / "cursor.jsonl", path)
    return path


def test_a_transcript_of_cursor_has_the_users_words_alone_W5(tmp_path: Path) -> None:
    path = transcript_of_cursor(tmp_path)
    trust = {"trustedAt": "2026-03-04T10:00:00Z", "workspacePath": "/home/ada/orchard"}
    (path.parents[2] / ".workspace-trusted").write_text(json.dumps(trust))
    session = only(cursor.read(path))
    assert session.origin.document == "cursor:c1"
    assert session.origin.cwd == "/home/ada/orchard"
    assert said(session) == [SHORT, RUN]
    assert len(said(session, "assistant")) == 3
    assert calls(session) == [("Shell", "unknown")]


def test_a_transcript_of_cursor_that_grows_gives_the_same_turns_W13(tmp_path: Path) -> None:
    path = transcript_of_cursor(tmp_path)
    os.utime(path, (1772618400, 1772618400))
    place = path.with_name("grown") / path.name
    place.parent.mkdir()

    def read(found: Path, cwd: str, mark: Any) -> Transcript:
        os.utime(found, (1772618400, 1772618400))
        return cursor.read(found, cwd, mark)

    check_reading_on(read, path, place)


def test_a_transcript_of_a_subagent_of_cursor_has_no_words_of_the_user_W5(tmp_path: Path) -> None:
    path = transcript_of_cursor(tmp_path)
    child = path.parent / "subagents" / "c2.jsonl"
    child.parent.mkdir()
    shutil.copyfile(path, child)
    session = only(cursor.read(child))
    assert session.origin.session == "c1/c2"
    assert said(session) == []


def test_a_transcript_of_earlier_versions_of_cursor_is_read(tmp_path: Path) -> None:
    path = tmp_path / "agent-transcripts" / "c1.txt"
    path.parent.mkdir()
    path.write_text(
        f"user:\n<user_query>\n{SHORT}\n</user_query>\n\nassistant:\n[Thinking] I prefer thoughts.\n\n"
        "I look at the parser.\n[Tool call] Read\n  path: a.py\n\n[Tool result] Read\nI prefer long functions.\n\n"
        "assistant:\nAll short now.\n\nuser:\nwithout a mark\n"
    )
    session = only(cursor.read(path))
    assert said(session) == [SHORT]
    assert said(session, "assistant") == ["I look at the parser.", "All short now."]
    assert calls(session) == [("Read", "unknown")]


def test_the_folder_of_a_transcript_is_found_by_its_name(tmp_path: Path) -> None:
    for name in ("a-b/c_d", "work/dp-2.0", "x/y-z", "x-y/z"):
        (tmp_path / name).mkdir(parents=True)
    assert cursor.folder_of_name("a-b-c-d", str(tmp_path)) == str(tmp_path / "a-b/c_d")
    assert cursor.folder_of_name("work-dp-2-0", str(tmp_path)) == str(tmp_path / "work/dp-2.0")
    assert cursor.folder_of_name("x-y-z", str(tmp_path)) == ""


def state_of_cursor(home: Path) -> Path:
    path = home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    path.parent.mkdir(parents=True)
    tool = {
        "name": "run_terminal_cmd",
        "status": "completed",
        "rawArgs": '{"command": "ls"}',
        "result": '{"output":"x"}',
    }
    bubbles = {
        "b1": {"type": 1, "bubbleId": "b1", "text": SHORT, "createdAt": "2026-03-04T10:00:00.000Z"},
        "b2": {"type": 2, "bubbleId": "b2", "text": "", "toolFormerData": tool},
        "b3": {"type": 2, "bubbleId": "b3", "text": "We use sqlite because it needs no server."},
    }
    composer: dict[str, Any] = {
        "composerId": "c1", "name": "Short functions", "createdAt": 1772618400000, "lastUpdatedAt": 1772618500000,
        "fullConversationHeadersOnly": [{"bubbleId": name, "type": 1} for name in (*bubbles, "gone")],
        "workspaceIdentifier": {"uri": {"fsPath": "/home/ada/orchard"}},
    }  # fmt: skip
    old = {"composerId": "c0", "createdAt": 1772600000000, "conversation": [dict(bubbles["b1"], bubbleId="b0")]}
    rows = {f"bubbleId:c1:{name}": bubble for name, bubble in bubbles.items()}
    rows |= {"composerData:c1": composer, "composerData:c0": old, "composerData:empty": {"createdAt": 1}}
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        connection.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", [(k, json.dumps(v)) for k, v in rows.items()])
        connection.execute("INSERT INTO cursorDiskKV VALUES ('composerData:bad', '{')")
        connection.execute("INSERT INTO cursorDiskKV VALUES ('composerData:none', NULL)")
    return path


def test_the_database_of_cursor_is_read_without_what_has_a_transcript(tmp_path: Path) -> None:
    path = state_of_cursor(tmp_path)
    found = cursor.read(path)
    old, new = found.sessions
    assert [old.origin.session, new.origin.session] == ["c0", "c1"]
    assert said(old) == said(new) == [SHORT]
    assert (new.origin.cwd, new.origin.title) == ("/home/ada/orchard", "Short functions")
    assert calls(new) == [("run_terminal_cmd", "ok")]
    assert len(found.account.malformed) == 1
    transcript_of_cursor(tmp_path)
    found = cursor.read(path)
    assert [session.origin.session for session in found.sessions] == ["c0"]
    assert found.account.noise["conversation with a transcript"] == 1


# --- all of them by the command ---------------------------------------------------------------------------------------
@pytest.fixture
def machine(home: dict[str, str], tmp_path: Path) -> Path:
    """A user's home folder in which these programs left something; nothing of it is in the memory."""
    folder = tmp_path / "ada"
    share = folder / ".local" / "share" / "opencode"
    share.mkdir(parents=True)
    with database(share / "opencode.db") as connection:
        add_session(connection, "ses_1")
    (share / "snapshot" / "objects").mkdir(parents=True)
    (share / "snapshot" / "HEAD").touch()
    (share / "snapshot" / "session" / "global").mkdir(parents=True)
    (share / "snapshot" / "session" / "global" / "ses_9.json").touch()
    tasks = folder / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"
    shutil.copytree(DATA / "tasks", tasks)
    session = folder / ".cline/data/sessions/s1/s1.messages.json"
    session.parent.mkdir(parents=True)
    shutil.copyfile(DATA / "cline.messages.json", session)
    state_of_cursor(folder)
    transcript_of_cursor(folder, "c7")
    history(folder)
    saved_in = folder / "orchard" / ".specstory" / "history"
    saved_in.mkdir(parents=True)
    shutil.copyfile(DATA / "specstory.md", saved_in / "2026-03-04_10-00-00Z-notes.md")
    for variable in ("XDG_DATA_HOME", "CLINE_DIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        home.pop(variable, None)
    home["HOME"] = str(folder)
    return folder


NEW = ("opencode", "cline", "cursor", "aider", "specstory")


def test_all_are_listed_and_a_second_import_changes_nothing_W13(
    memd: Any, daemon: Any, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(machine / "orchard")
    chosen = [word for name in NEW for word in ("--agent", name)]
    listed = memd("import", *chosen, "--json").data["agents"]
    assert {each["agent"]: len(each["files"]) for each in listed} == {
        "opencode": 1, "cline": 2, "cursor": 2, "aider": 1, "specstory": 1}  # fmt: skip
    assert {each["agent"]: (each["sessions"], each["projects"]) for each in listed} == {
        "opencode": (1, 1), "cline": (2, 0), "cursor": (6, 1), "aider": (1, 1), "specstory": (1, 1)}  # fmt: skip
    assert "opencode: 1 session file" in (text := memd("import", *chosen).text)
    assert "to import: 1 session, 1 project, about" in text
    first = memd("import", *chosen, "--yes", "--no-wait", "--json").data
    for file in first["files"]:
        assert sum(sent["accepted"] for sent in file["sessions"]) > 0, file
    listed = memd("import", *chosen, "--json").data["agents"]
    assert {file["state"] for each in listed for file in each["files"]} == {"imported"}
    cursors = Cursors(daemon.places.state)
    with daemon.client() as client:
        for name in NEW:
            agent = IMPORTABLE[name]
            roots = [machine / "orchard"] if name in ("aider", "specstory") else agent.places({"HOME": str(machine)})
            for path in find(roots, agent.patterns, agent.example):
                for whole in (False, True):
                    if whole:
                        cursors.ignore([path])
                    again = hand_over(client, ImportSource(name, path, reader(name, path, "", cursors)), cursors)
                    assert sum(sent.accepted + sent.changed + len(sent.refused) for sent in again.sessions) == 0, path


def test_of_a_grown_database_only_changed_sessions_are_read_W13(memd: Any, daemon: Any, machine: Path) -> None:
    path = machine / ".local/share/opencode/opencode.db"
    memd("import", "opencode", str(path), "--no-wait")
    with sqlite3.connect(path) as connection:
        add_session(connection, "ses_2", updated=9)
    (file,) = memd("import", "opencode", str(path), "--no-wait", "--json").data["files"]
    assert {sent["document"]: (sent["accepted"], sent["changed"]) for sent in file["sessions"]} == {
        "opencode:ses_1": (0, 0),
        "opencode:ses_2": (7, 0),
    }
    (file,) = memd("import", "opencode", str(path), "--no-wait", "--json").data["files"]
    assert [sent["document"] for sent in file["sessions"]] == ["opencode:ses_2"]
    assert sum(sent["accepted"] + sent["changed"] for sent in file["sessions"]) == 0
