"""Commands that a tool's result had before the agent ran them (K1), in the sessions of each host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memd.clients.importers import claude_code, codex, gemini, pi
from memd.clients.importers.command_sources import WINDOW
from memd.clients.importers.transcript import Mark, Transcript
from memd.protocol.event import ToolCalled
from tests.clients.growing import check_reading_on

FOLDER = "/home/ada/orchard"
Read = Callable[[Path, str, Mark | None], Transcript]


class Doing(NamedTuple):
    """A turn of the user, or a call with its result; `arguments` of a call without a tool's name are a command."""

    text: str = ""
    arguments: Any = ""
    result: str = ""
    tool: str = ""


def ran(command: str, result: str = "done") -> Doing:
    return Doing(arguments=command, result=result)


PAGE = "# Set up\n\nFirst run `./scripts/open.sh all`. Then: ./scripts/seed.sh --all.\n\n    git status\n"
DOINGS = (
    Doing(text="Set it up, with ./scripts/seed.sh --all at the end."),
    ran("curl -s https://orchard.example/setup", PAGE),
    ran("cat README.md", "Use <code>./scripts/bundle.sh --fast</code>, or ./scripts/bundle.sh --faster"),
    ran("head -40 /srv/other/README.md", "make -j4 pack-everything\n"),
    ran("./scripts/open.sh   all"),
    ran("cd web && FAST=1 ./scripts/bundle.sh --fast | tail -3"),
    ran("make -j4 pack-everything"),
    ran("./scripts/seed.sh --all"),
    ran("git status", "./scripts/open.sh all-doors"),
    ran("./scripts/own.sh --first", "+ ./scripts/own.sh --first"),
    ran("./scripts/own.sh --first"),
    ran("./scripts/bundle.sh --fas"),
    ran("./scripts/open.sh all"),
)
MARKS = ["", "", "", "page", "file", "outside", "", "", "", "", "", "page"]


def at(number: int) -> str:
    return f"2026-03-04T{10 + number // 60}:{number % 60:02}:00.000Z"


# --- the files of the hosts -------------------------------------------------------------------------------------------
def claude_lines(doings: Sequence[Doing], session: str = "s") -> Iterator[object]:
    def line(number: int, kind: str, content: object) -> object:
        return {
            "type": kind,
            "uuid": f"{session}-{number}",
            "sessionId": session,
            "cwd": FOLDER,
            "timestamp": at(number),
            "message": {"role": kind, "content": content},
        }

    for number, doing in enumerate(doings):
        if doing.text:
            yield line(3 * number, "user", doing.text)
            continue
        given = doing.arguments if doing.tool else {"command": doing.arguments}
        call = {"type": "tool_use", "id": f"{session}-c{number}", "name": doing.tool or "Bash", "input": given}
        yield line(3 * number, "assistant", [call])
        yield line(
            3 * number + 1,
            "user",
            [{"type": "tool_result", "tool_use_id": f"{session}-c{number}", "content": doing.result}],
        )
        yield line(3 * number + 2, "assistant", "I see.")


def codex_lines(doings: Sequence[Doing]) -> Iterator[object]:
    def line(number: int, kind: str, **payload: object) -> object:
        return {"timestamp": at(number), "type": kind, "payload": payload}

    yield line(0, "session_meta", id="s", cwd=FOLDER)
    for number, doing in enumerate(doings):
        if doing.text:
            yield line(number, "event_msg", type="user_message", message=doing.text)
            continue
        call = f"c{number}"
        given = json.dumps({"command": ["bash", "-lc", doing.arguments]})
        yield line(number, "response_item", type="function_call", name="shell", arguments=given, call_id=call)
        output = json.dumps({"output": doing.result, "metadata": {"exit_code": 0}})
        yield line(number, "response_item", type="function_call_output", call_id=call, output=output)


def gemini_messages(doings: Sequence[Doing]) -> Iterator[Any]:
    for number, doing in enumerate(doings):
        message = {"id": f"m{number}", "timestamp": at(number), "type": "gemini", "content": doing.text}
        if doing.text:
            yield {**message, "type": "user"}
            continue
        call = {"id": f"c{number}", "name": "run_shell_command", "args": {"command": doing.arguments}}
        result = [{"functionResponse": {"id": f"c{number}", "response": {"output": doing.result}}}]
        yield {**message, "toolCalls": [{**call, "status": "executing"}]}
        yield {**message, "toolCalls": [{**call, "status": "success", "result": result}]}


def gemini_lines(doings: Sequence[Doing]) -> Iterator[object]:
    yield {"sessionId": "s", "startTime": at(0)}
    yield from gemini_messages(doings)


def pi_lines(doings: Sequence[Doing]) -> Iterator[object]:
    def line(number: int, **message: object) -> object:
        stamp = 1772618400000 + number
        return {
            "type": "message",
            "id": f"e{number}",
            "timestamp": at(number),
            "message": {**message, "timestamp": stamp},
        }

    yield {"type": "session", "version": 3, "id": "s", "timestamp": at(0), "cwd": FOLDER}
    for number, doing in enumerate(doings):
        if doing.text:
            yield line(2 * number, role="user", content=doing.text)
            continue
        call = {"type": "toolCall", "id": f"c{number}", "name": "bash", "arguments": {"command": doing.arguments}}
        yield line(2 * number, role="assistant", content=[call])
        result = [{"type": "text", "text": doing.result}]
        yield line(2 * number + 1, role="toolResult", toolCallId=f"c{number}", content=result, isError=False)


def written(lines: Iterator[object], path: Path) -> Path:
    (path.parent / ".project_root").write_text(FOLDER, encoding="utf-8")  # Gemini CLI's lines name no folder
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


HOSTS = [
    (claude_code.read, claude_lines),
    (codex.read, codex_lines),
    (gemini.read, gemini_lines),
    (pi.read, pi_lines),
]
NAMES = ("claude-code", "codex", "gemini-cli", "pi")


def calls(transcript: Transcript) -> list[ToolCalled]:
    return [event for session in transcript.sessions for event in session.events if isinstance(event, ToolCalled)]


# --- each host --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("read", "lines"), HOSTS, ids=NAMES)
def test_a_command_is_marked_by_what_said_it_first_K1(read: Read, lines: Any, tmp_path: Path) -> None:
    found = read(written(lines(DOINGS), tmp_path / "one.jsonl"), "", None)
    assert [call.said_by for call in calls(found)] == MARKS
    assert "Set up" not in repr(found), "no output leaves the reader"


def test_a_file_of_one_object_is_marked_alike_K1(tmp_path: Path) -> None:
    path = written(iter([{"sessionId": "s", "messages": list(gemini_messages(DOINGS))}]), tmp_path / "session-1.json")
    assert [call.said_by for call in calls(gemini.read(path))] == MARKS


@pytest.mark.parametrize(("read", "lines"), HOSTS, ids=NAMES)
def test_reading_on_marks_what_reading_the_whole_file_marks_W13(read: Read, lines: Any, tmp_path: Path) -> None:
    path = written(lines(DOINGS), tmp_path / "one.jsonl")
    check_reading_on(read, path, tmp_path / "growing.jsonl")
    whole = path.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(whole)):
        place = tmp_path / "cut.jsonl"
        place.write_bytes(b"".join(whole[:cut]))
        mark = read(place, "", None).mark
        place.write_bytes(b"".join(whole))
        rest = calls(read(place, "", mark))
        assert [call.said_by for call in rest] == MARKS[len(MARKS) - len(rest) :]


def test_what_lies_further_back_than_the_window_is_forgotten_K1(tmp_path: Path) -> None:
    def lines(blanks: int) -> Iterator[object]:
        said, runs = ran("curl -s https://orchard.example/setup", PAGE), ran("./scripts/open.sh all")
        yield from claude_lines([Doing(text="go"), said])
        yield from ({"type": "progress", "timestamp": at(9), "data": "x" * (WINDOW // 4)} for _ in range(blanks))
        yield from list(claude_lines([Doing(text="go"), said, runs]))[4:]

    for blanks, mark in ((3, "page"), (4, "")):
        path = written(lines(blanks), tmp_path / f"{blanks}.jsonl")
        beginning = tmp_path / f"cut-{blanks}.jsonl"
        beginning.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
        for found in (claude_code.read(path), claude_code.read(path, "", claude_code.read(beginning).mark)):
            assert calls(found)[-1].said_by == mark


# --- who speaks -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tool", "arguments", "mark"),
    [
        ("WebFetch", {"url": "https://orchard.example/setup", "prompt": "how?"}, "page"),
        ("mcp__context7__get-library-docs", {"name": "orchard"}, "page"),
        ("mcp__memd__recall", {"query": "open"}, "file"),
        ("Bash", {"command": "gh issue view 12 --comments"}, "page"),
        ("Bash", {"command": "cd web; wget -qO- orchard.example"}, "page"),
        ("Bash", {"command": "curl -s localhost:8080/help"}, "file"),
        ("Read", {"file_path": f"{FOLDER}/README.md"}, "file"),
        ("Read", {"file_path": "docs/release.md"}, "file"),
        ("Read", {"file_path": f"{FOLDER}-2/README.md"}, "outside"),
        ("Read", {"file_path": f"{FOLDER}/node_modules/pear/README.md"}, "outside"),
        ("Bash", {"command": "cd /tmp/clone && cat README.md"}, "outside"),
        ("Bash", {"command": "cat ../../bob/notes.md"}, "outside"),
        ("Bash", {"command": f"cd {FOLDER}/web && cat ../README.md"}, "file"),
        ("Bash", {"command": "/usr/bin/make help"}, "file"),
        ("Grep", {"pattern": "scripts", "path": FOLDER}, "file"),
        ("Task", {"prompt": "How is it set up?"}, "file"),
    ],
)
def test_a_mark_tells_who_spoke_K1(tool: str, arguments: object, mark: str, tmp_path: Path) -> None:
    doings = [
        Doing(text="Set it up."),
        Doing(tool=tool, arguments=arguments, result=PAGE),
        ran("./scripts/open.sh all"),
    ]
    found = claude_code.read(written(claude_lines(doings), tmp_path / "one.jsonl"))
    assert [call.said_by for call in calls(found)] == ["", mark]


def test_what_the_agent_wrote_itself_is_no_document_K1(tmp_path: Path) -> None:
    wrote = {"file_path": f"{FOLDER}/README.md", "content": "Run\n./scripts/open.sh all\n"}
    read = ran("cat README.md", "./scripts/open.sh all")
    doings = [Doing(text="go"), Doing(tool="Write", arguments=wrote, result="ok"), read, ran("./scripts/open.sh all")]
    found = claude_code.read(written(claude_lines(doings), tmp_path / "one.jsonl"))
    assert [call.said_by for call in calls(found)] == ["", "", ""]
    page = Doing(tool="WebFetch", arguments={"url": "https://orchard.example"}, result=PAGE)
    found = claude_code.read(written(claude_lines([doings[0], page, *doings[1:]]), tmp_path / "two.jsonl"))
    assert [call.said_by for call in calls(found)][-1] == "page", "a page that the agent copied said it first"
