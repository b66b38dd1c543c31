"""`memd` as a user meets it: with a real daemon, in a home of its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.clients.bench.measurement import BenchOptions
from memd.clients.cli.application import LazyGroup
from memd.clients.cli.bench import part_lines
from memd.clients.cli.commands import ALIASES, COMMANDS, PANELS, help_text
from memd.clients.importers import claude_code
from memd.clients.importers.transcript import batches
from memd.protocol.event import Origin, Said

SAMPLE = Path(claude_code.__file__ or "").parents[1] / "cli" / "sample" / "session.jsonl"


def events_of_the_sample() -> int:
    return sum(len(session.events) for session in claude_code.read(SAMPLE).sessions)


# --- without a daemon -------------------------------------------------------------------------------------------
def test_without_a_daemon_a_read_says_so_and_what_to_do(memd: Any) -> None:
    told = memd("status")
    assert (told.code, told.text) == (3, "")
    assert told.errors == "memd: the daemon is not running\nhint: start it: `memd up`\n"


def test_an_error_is_one_json_object_with_json(memd: Any) -> None:
    told = memd("status", "--json")
    assert told.code == 3
    assert told.json["ok"] is False
    assert told.json["command"] == "status"
    assert told.json["error"]["code"] == "daemon_down"
    assert "memd up" in told.json["error"]["hint"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("recal", "x"), "No such command 'recal'", "did you mean `memd recall`?"),
        (("recall",), "Missing argument", "memd recall --help"),
        (("recall", "x", "--limit", "many"), "limit", "memd recall --help"),
        (("list", "--kind", "fakt"), "'fakt' is not a kind", "fact, note"),
        (("remember", "  "), "nothing to remember", "memd remember"),
        (("import", "claude-code", "/nonexistent.jsonl"), "no /nonexistent.jsonl", ".claude/projects"),
        (("bench", "nothing"), "no measurement 'nothing'", "latency"),
    ],
)
def test_wrong_arguments_are_told_with_a_hint(memd: Any, arguments: tuple[str, ...], message: str, hint: str) -> None:
    told = memd(*arguments)
    assert told.code in {2, 4}
    assert message in told.errors
    assert hint in told.errors
    error = memd(*arguments, "--json").json["error"]
    assert (error["message"], error["hint"]) == tuple(told.errors.strip()[6:].split("\nhint: "))


ONE_OF = {"import": "git", "model": "use", "scope": "why", "service": "install", "config": "set", "session": "show"}
ONE_OF |= {"shell": "init", "maintain": "sleep", "persona": "set", "remote": "status", "share": "on", "pi": "init"}
ONE_OF |= {"patch": "list", "policy": "show", "skill": "list", "hub": "join"}
PRINTS_CODE = {"shell", "completion", "man", "mcp"}
"""What another program reads as it is: a shell, man, an MCP host."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(memd: Any, name: str) -> None:
    told = memd(name, "--help")
    assert told.code == 0
    if name in ONE_OF:
        told = memd(name, ONE_OF[name], "--help")
    assert f"memd {name}" in told.text
    assert "Example" in told.text
    assert ("--json" in told.text) == (name not in PRINTS_CODE)


def test_help_lists_every_command(memd: Any) -> None:
    told = memd("--help")
    assert [name for name in COMMANDS if f"\n  {name} " not in told.text] == []
    assert [panel for panel in PANELS if f"\n\n{panel}\n" not in told.text] == []
    assert [line for line in told.text.splitlines() if len(line) > 80 or line.endswith("…")] == []
    assert told.text == help_text() + "\n" == memd("-h").text
    assert memd().text == told.text
    assert memd("--version").text.startswith("memd 0.")


@pytest.mark.parametrize(("name", "about"), [(n, each[1]) for panel in PANELS.values() for n, each in panel.items()])
def test_each_line_of_the_help_is_the_first_sentence_of_the_command(name: str, about: str) -> None:
    command = LazyGroup(name="memd").get_command(None, name)
    assert command is not None and (command.help or "").startswith(about)


@pytest.mark.parametrize("name", ONE_OF)
def test_the_help_of_a_group_cuts_no_description(memd: Any, name: str) -> None:
    assert [line for line in memd(name, "--help").text.splitlines()[1:] if line.endswith("...")] == []


@pytest.mark.parametrize("name", ALIASES)
def test_a_former_command_name_works_and_is_not_listed(memd: Any, name: str) -> None:
    told = memd(name, "--help")
    assert (told.code, f"memd {name}" in told.text) == (0, True)
    assert f"\n  {name} " not in memd("--help").text and name not in COMMANDS


def test_help_imports_no_library_and_no_command(memd: Any) -> None:
    names = [line.rpartition("|")[2].strip() for line in memd(PYTHONPROFILEIMPORTTIME="1").errors.splitlines()]
    assert [name for name in names if name.startswith(("typer", "msgspec", "rich", "memd.protocol"))] == []


def test_status_imports_nothing_heavy(memd: Any) -> None:
    """U1: `memd status` starts within 250 ms because of what it leaves alone."""
    told = memd("status", PYTHONPROFILEIMPORTTIME="1")
    names = [line.rpartition("|")[2].strip() for line in told.errors.splitlines()]
    heavy = ("zmq", "rich", "numpy", "lmdb", "onnxruntime", "tantivy", "memd.daemon", "memd.models", "memd.stages")
    assert [name for name in names if name.startswith(heavy)] == []
    assert "memd.clients.python.client" in names
    assert not set(names) & {"memd.clients.bench.temporary_daemon", "memd.clients.importers.transcript"}


def test_a_dry_run_needs_no_daemon_and_accounts_for_every_line(memd: Any) -> None:
    told = memd("import", "claude-code", str(SAMPLE), "--dry-run", "--json")
    (file,) = told.data["files"]
    account = file["account"]
    assert account["lines"] == account["taken"] + sum(account["noise"].values()) + len(account["malformed"])
    assert account["lines"] == len(SAMPLE.read_bytes().splitlines())
    text = memd("import", "claude-code", str(SAMPLE), "--dry-run").text
    assert f"{account['lines']} lines: {account['taken']} used" in text
    assert f"line {account['malformed'][0]['line']}:" in text


# --- the daemon's life ------------------------------------------------------------------------------------------
def test_up_and_down_do_what_they_say_and_twice_is_fine(memd: Any) -> None:
    assert memd("down", "--json").data["was_running"] is False
    first = memd("up", "--json")
    try:
        assert first.data["was_running"] is False
        second = memd("up")
        assert (second.code, f"already running (pid {first.data['pid']}" in second.text) == (0, True)
        assert memd("status", "--json").data["pid"] == first.data["pid"]
    finally:
        down = memd("down", "--json")
    assert down.data == {"was_running": True, "pid": first.data["pid"]}
    assert memd("down").text == "memd was not running\n"
    assert memd("status").code == 3


def test_starting_it_twice_at_once_gives_one(memd: Any, home: dict[str, str]) -> None:
    """P-26."""
    command = [sys.executable, "-m", "memd.clients.cli.main", "up"]
    started = [subprocess.Popen(command, env=home, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        told = [process.communicate(timeout=60)[0] for process in started]
        assert [process.returncode for process in started] == [0, 0, 0]
        pid = memd("status", "--json").data["pid"]
        assert [f"(pid {pid}" in text for text in told] == [True, True, True]
    finally:
        memd("down")


def test_a_daemon_that_can_not_start_says_why(memd: Any, home: dict[str, str]) -> None:
    folder = Path(home["MEMD_HOME"])
    (folder / "data").mkdir(mode=0o755)
    (folder / "data").chmod(0o755)
    told = memd("up", "--json")
    assert told.code == 7
    assert told.json["error"]["code"] == "refused"
    assert "other users can enter" in told.json["error"]["message"]
    assert "chmod 700" in told.json["error"]["hint"]


def test_a_relative_home_is_the_same_for_both(memd: Any, home: dict[str, str], tmp_path: Path) -> None:
    relative = os.path.relpath(home["MEMD_HOME"])
    try:
        assert memd("up", MEMD_HOME=relative).code == 0
        assert memd("status").code == 0
    finally:
        memd("down")


def test_what_was_said_while_it_was_down_arrives(memd: Any) -> None:
    """W10, as `memd remember` does it."""
    told = memd("remember", "We deploy on Tuesdays.", "--json")
    assert (told.code, told.data["waiting"]) == (0, 1)
    assert "spooled" in memd("remember", "I prefer tabs.").text
    try:
        up = memd("up")
        assert "delivered 2 requests spooled while the daemon was down" in up.errors
        records = memd("list", "--json").data["records"]
        said = {each["provenance"]["quote"] for each in records if each["kind"] != "edge"}
        assert said == {"We deploy on Tuesdays.", "I prefer tabs."}
    finally:
        memd("down")


# --- reads and writes ---------------------------------------------------------------------------------------------
def test_what_is_remembered_is_found_by_every_read(memd: Any, daemon: Any) -> None:
    record = memd("remember", "I prefer tabs for indentation.", "--json").data["record"]
    id = record["id"]
    (hit,) = memd("recall", "indentation", "--json").data["hits"]
    assert hit["record"]["id"] == id
    text = memd("recall", "indentation").text
    assert "“I prefer tabs for indentation.”" in text
    assert id[:8] in text
    assert f"cli:{os.getcwd()}" in text
    assert "you, " in text
    assert "▶ user " in memd("recall", "indentation", "--deep").text
    (deep,) = memd("recall", "indentation", "--deep", "--json").data["hits"]
    assert [line["text"] for line in deep["lines"]] == ["I prefer tabs for indentation."]
    assert memd("profile", "--json").data["ids"] == [id]
    assert "tabs" in memd("profile").text
    assert [each["id"] for each in memd("list", "--json").data["records"] if each["kind"] != "edge"] == [id]
    assert memd("list").text.startswith(id[:8])
    assert memd("show", id[:8], "--json").data["id"] == id
    assert id in memd("show", id[:6]).text
    why = memd("why", id[:8])
    assert "»I prefer tabs for indentation.«" in why.text
    assert "added, revision 1" in why.text
    assert memd("why", id, "--json").data["quote_holds"] is True
    assert "added" in memd("tail").text
    kinds = [entry["operation"]["kind"] for entry in memd("tail", "--after", "0", "--json").data["entries"]]
    assert "added" in kinds
    assert "personal" in memd("pools").text
    assert memd("status", "--json").data["journal_seq"] >= len(kinds)


def test_the_text_of_an_answer_has_the_principles_and_the_parts_of_each_score_Q8_Q9(memd: Any, daemon: Any) -> None:
    rule = memd("remember", "Never move the lighthouse.", "--json").data["record"]
    memd("remember", "The lamp of the lighthouse is green.")
    assert memd("pin", rule["id"], "--principle").code == 0
    with daemon.client() as client:
        said = Said(turn="1", at="2026-03-04T09:00:00Z", role="user", text="Is the lighthouse lamp new, or green?")
        client.capture(Origin(host="t", session="s", cwd=os.getcwd()), [said])
    daemon.settle()
    for words in ("green lighthouse lamp", "zebra xylophone"):
        assert f"Principles:\n  Never move the lighthouse. · {rule['id'][:8]}" in memd("recall", words).text
    plain, explained = (memd("recall", "green lighthouse lamp", *more).text for more in ((), ("--explain",)))
    assert "in the transcript" in explained and explained.count("score parts:") == 2
    turn = " ".join(explained[explained.index("in the transcript") :].split())
    assert all(f"{part} 0." in turn or f"{part} 1." in turn for part in ("passage", "words", "writer"))
    assert "score parts" not in plain


def test_each_record_in_json_has_its_type_U8(memd: Any, daemon: Any, tmp_path: Path) -> None:
    id = memd("remember", "We decided to move the lighthouse.", "--json").data["record"]["id"]
    daemon.settle()
    memd("pin", id, "--principle")
    new = memd("correct", id, "We decided to move the green lighthouse.", "--json").data["record"]["id"]
    for words in (
        *(("recall", "lighthouse", "--all"), ("recall", "lighthouse", "--deep"), ("list",), ("show", id), ("why", id)),
        *(("show", id, "--history"), ("timeline", "lighthouse"), ("maintain", "unused", "--least", "1")),
        *(
            ("maintain", "fading"),
            ("tail", "--after", "0"),
            ("edit", new, "We decided to move the lighthouse at last."),
        ),
    ):
        told = memd(*words, "--json")
        assert told.code == 0, (words, told.text)
        records = list(_records(told.data))
        assert records or words[0] == "maintain", words
        assert all(each["type"] == (each["tags"] or ["note"])[0] for each in records), words
    out = tmp_path / "memory.jsonl"
    assert memd("export", "-o", str(out)).code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    exported = [line["record"] for line in lines if line["line"] == "record"]
    assert {each["type"] for each in exported} >= {"decision"}
    assert all(each["type"] == each["tags"][0] for each in exported)
    assert memd("import", "memd", str(out)).code == 0


def _records(value: Any) -> Iterator[dict[str, Any]]:
    """The records anywhere in a value."""
    inside: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if isinstance(value, dict) and "provenance" in value:
        yield value
    for each in inside:
        yield from _records(each)


def test_an_edit_keeps_the_id(memd: Any, daemon: Any) -> None:
    id = memd("remember", "I prefer tabs for indentation.", "--json").data["record"]["id"]
    edited = memd("edit", id[:8], "-", "--json", input="I prefer two spaces for indentation.\n").data["record"]
    assert (edited["id"], edited["content"]) == (id, "I prefer two spaces for indentation.")
    assert "revision 2" in memd("why", id).text


def test_standard_input_is_remembered(memd: Any, daemon: Any) -> None:
    told = memd("remember", "-", "--json", input="We use SQLite,\nbecause it is one file.\n")
    assert told.data["record"]["content"] == "We use SQLite,\nbecause it is one file."


def test_nothing_relevant_is_said_to_be_so(memd: Any, daemon: Any) -> None:
    memd("remember", "I prefer tabs for indentation.")
    told = memd("recall", "quarterly revenue of the bakery")
    assert told.code == 0
    assert "No relevant memory found." in told.text


def test_a_record_that_is_not_there(memd: Any, daemon: Any) -> None:
    for command in ("show", "why"):
        told = memd(command, "zzzz")
        assert (told.code, "no record 'zzzz'" in told.errors) == (4, True)


def test_captured_text_can_not_steer_a_terminal(memd: Any, daemon: Any) -> None:
    memd("remember", "A title \x1b]0;owned\x07 and \x1b[31mred\x1b[0m and \u202eesrever words.")
    for command in (("recall", "title red words"), ("list",), ("profile",), ("tail",)):
        text = memd(*command).text
        assert "title" in text or command == ("profile",)  # which leaves out what hides how it reads
        assert not set("\x1b\x07\u202e") & set(text), command


def test_text_that_is_no_unicode_is_refused(memd: Any, daemon: Any) -> None:
    told = memd("remember", os.fsdecode(b"caf\xe9"))
    assert (told.code, "not valid Unicode" in told.errors) == (2, True)


def test_a_reader_that_has_seen_enough_is_no_error(memd: Any, daemon: Any, home: dict[str, str]) -> None:
    memd("remember", "word " * 1000)
    command = f"{sys.executable} -m memd.clients.cli.main tail --after 0 --limit 500 --json; echo $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | true"], env=home, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr.strip() == "0"


def test_an_interruption_is_exit_130_and_no_traceback(memd: Any, daemon: Any, home: dict[str, str]) -> None:
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a background shell ignores it
    start = "import sys; sys.argv = ['memd', 'tail', '-f']; from memd.clients.cli.main import main; main()"
    command = [sys.executable, "-c", f"{listen}; {start}"]
    with subprocess.Popen(command, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        memd("remember", "Something to wait for.")
        assert process.stdout
        assert any("Something to wait for" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
    assert (process.returncode, errors.strip()) == (130, "")


# --- import -------------------------------------------------------------------------------------------------------
def test_the_same_file_twice_changes_nothing(memd: Any, daemon: Any) -> None:
    """W13."""
    first = memd("import", "claude-code", str(SAMPLE), "--json").data
    (sent,) = first["files"][0]["sessions"]
    assert (sent["accepted"], sent["duplicate"], sent["changed"]) == (events_of_the_sample(), 0, 0)
    assert first["pending"] == 0
    assert sum(first["led_to"].values()) >= 5
    before = memd("status", "--json").data
    for whole in ((), ("--whole",)):
        second = memd("import", "claude-code", str(SAMPLE), *whole, "--json").data
        (sent,) = second["files"][0]["sessions"]
        assert (sent["accepted"], sent["changed"]) == (0, 0)
        assert (sent["duplicate"] == events_of_the_sample()) == bool(whole)
    after = memd("status", "--json").data
    assert (after["journal_seq"], after["archive_seq"]) == (before["journal_seq"], before["archive_seq"])


def test_an_import_that_was_cut_off_is_run_again(memd: Any, daemon: Any) -> None:
    """P-12: SIGKILL in the middle loses nothing and doubles nothing."""
    (session,) = claude_code.read(SAMPLE).sessions
    first, *_ = batches(session.events, most=20)
    with daemon.client() as client:
        assert client.capture(session.origin, first).accepted == 20
    daemon.kill()
    assert memd("import", "claude-code", str(SAMPLE)).code == 3
    daemon.start()
    (sent,) = memd("import", "claude-code", str(SAMPLE), "--json").data["files"][0]["sessions"]
    assert (sent["accepted"], sent["duplicate"]) == (len(session.events) - 20, 20)


def test_the_report_says_what_it_led_to_and_how_to_ask(memd: Any, daemon: Any) -> None:
    told = memd("import", "claude-code", str(SAMPLE))
    assert f"{events_of_the_sample()} accepted, 0 known, 0" in told.text
    pool = told.text.rstrip().rpartition("--pool ")[2]
    assert told.text.count("new records") == 1
    (hit, *_) = memd("recall", "why do we stay on SQLite", "--pool", pool, "--json").data["hits"]
    assert "SQLite" in hit["record"]["provenance"]["quote"]


def test_commits_are_imported(memd: Any, daemon: Any, tmp_path: Path) -> None:
    repository = tmp_path / "orchard"
    repository.mkdir()
    for command in (
        ["init", "-q"],
        ["-c", "user.name=Ada", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "We chose SQLite."],
    ):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    told = memd("import", "git", str(repository), "--no-wait", "--json").data
    (sent,) = told["files"][0]["sessions"]
    assert sent["accepted"] == 1
    assert sent["pool"].startswith("project/")


# --- demo and bench -------------------------------------------------------------------------------------------------
@pytest.fixture
def temporary() -> Any:
    """A temporary directory with a short name, as sockets want one."""
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        yield Path(folder)


@pytest.mark.slow
def test_the_demo_shows_what_it_promises_and_leaves_nothing(memd: Any, temporary: Path) -> None:
    told = memd("demo", "--json", TMPDIR=str(temporary))
    data = told.data
    assert data["seconds"] < 30
    assert len(data["recalls"]) == 3
    for question, answer in data["recalls"].items():
        assert answer["hits"], question
        assert answer["hits"][0]["record"]["provenance"]["quote"]
    correction = data["correction"]
    assert (correction["old"]["status"], correction["new"]["status"]) == ("retired", "active")
    assert [each["id"] for each in correction["why"]["replaced"]] == [correction["old"]["id"]]
    assert data["profile"]["ids"]
    assert list(temporary.iterdir()) == []
    assert memd("status").code == 3


@pytest.mark.slow
def test_the_demo_fits_a_terminal_and_can_be_kept(memd: Any, temporary: Path) -> None:
    told = memd("demo", "--keep", TMPDIR=str(temporary))
    assert told.code == 0, told.errors
    assert [line for line in told.text.splitlines() if len(line) > 80 and str(temporary) not in line] == []
    (folder,) = temporary.iterdir()
    assert str(folder) in told.text
    try:
        assert memd("up", MEMD_HOME=str(folder)).code == 0
        assert len(memd("list", "--json", MEMD_HOME=str(folder)).data["records"]) > 5
    finally:
        memd("down", MEMD_HOME=str(folder))


@pytest.mark.slow
def test_a_demo_that_is_told_to_end_leaves_nothing(home: dict[str, str], temporary: Path) -> None:
    command = [sys.executable, "-m", "memd.clients.cli.main", "demo"]
    environment = {**home, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert any("import" in line for line in process.stdout)
        process.terminate()
        process.stdout.read()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_bench_measures_beside_a_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    from memd.clients.bench import latency, runner

    monkeypatch.setattr(latency, "ROUNDS", 10)
    parts = list(runner.run(runner.chosen(["latency"]), BenchOptions()))
    assert [part.name for part in parts] == ["recall", "profile", "remember", "connect"]
    assert all(figure.value > 0 and figure.floor > 0 for part in parts for figure in part.figures)
    assert [figure.samples for figure in parts[-1].figures] == [5, 5]
    assert parts[-1].what.startswith("The smallest request")
    assert "connect p50" in "\n".join(part_lines(parts[-1]))
