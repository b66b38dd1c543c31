"""How many of a turn's new lines are gone within three turns, and which agent gets a task (O2)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.clients.importers import claude_code, codex, edit_history, pi, session_reader
from memd.clients.importers.edit_history import changes
from memd.clients.importers.transcript import Transcript
from memd.protocol.event import Settled, ToolCalled
from memd.protocol.tool_calls import delegation
from tests.clients.growing import check_reading_on

FIRST, SECOND, THIRD = "count = total(items)", "print(count, items)", "return count + spare"


class ClaudeFile:
    """A session file that a test writes line by line."""

    def __init__(self, path: Path) -> None:
        self.path, self._lines = path, list[dict[str, Any]]()

    def user(self, text: str = "And now the next part, please.") -> None:
        self._add("user", text)

    def call(self, name: str, is_error: bool = False, noted: Any = None, **arguments: Any) -> None:
        id = f"call{len(self._lines)}"
        self._add("assistant", [{"type": "tool_use", "id": id, "name": name, "input": arguments}])
        result = {"type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": "done"}
        self._add("user", [result], **({"toolUseResult": noted} if noted else {}))

    def edit(self, old: str, new: str, path: str = "/p/a.py", **more: Any) -> None:
        self.call("Edit", file_path=path, old_string=old, new_string=new, **more)

    def _add(self, role: str, content: Any, **more: Any) -> None:
        number = len(self._lines)
        at = f"2026-05-11T{8 + number // 60:02}:{number % 60:02}:00Z"
        line = {"type": role, "uuid": f"u{number}", "sessionId": "s1", "timestamp": at, "cwd": "/p"}
        self._lines.append({**line, "message": {"role": role, "content": content}, **more})

    def read(self) -> Transcript:
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self._lines))
        return claude_code.read(self.path)

    def numbers(self) -> list[tuple[int, int, int]]:
        """Lines, lost ones, and turns that followed, of each turn with edits."""
        return [(event.lines, event.lost, event.followed) for event in settled(self.read())]


def settled(transcript: Transcript) -> list[Settled]:
    (session,) = transcript.sessions
    return [event for event in session.events if isinstance(event, Settled)]


@pytest.fixture
def file(tmp_path: Path) -> ClaudeFile:
    return ClaudeFile(tmp_path / "s1.jsonl")


def test_lines_that_a_later_turn_takes_away_are_lost_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", f"{FIRST}\n{SECOND}\n{THIRD}\n}}\n")
    file.user()
    file.edit(f"{SECOND}\n{THIRD}", "nothing of that here")
    assert file.numbers() == [(3, 2, 1), (1, 0, 0)]


def test_a_turn_that_takes_its_own_lines_back_lost_none_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", f"{FIRST}\n{SECOND}")
    file.edit(SECOND, "")
    assert file.numbers() == [(1, 0, 0)]


def test_only_the_next_three_turns_count_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", FIRST)
    for _ in range(3):
        file.user()
    assert file.numbers() == [(1, 0, 3)]
    file.user()
    file.edit(FIRST, "")
    assert file.numbers()[0] == (1, 0, 3)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (FIRST, f"{FIRST}  # of the last week", 0),  # it grew
        (FIRST, "count = total(lines)", 1),
        (f"{FIRST}\n{SECOND}", f"{SECOND}\n{FIRST}", 0),  # other order
    ],
)
def test_a_line_that_only_grew_or_moved_is_not_lost_O2(file: ClaudeFile, old: str, new: str, lost: int) -> None:
    file.user()
    file.edit("", f"{FIRST}\n{SECOND}")
    file.user()
    file.edit(old, new)
    assert file.numbers()[0] == (2, lost, 1)


def test_a_line_that_moves_to_another_file_is_not_lost_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", FIRST)
    file.user()
    file.edit(FIRST, "")
    file.edit("", FIRST, path="/p/b.py")
    assert file.numbers()[0] == (1, 0, 1)


def test_a_file_that_is_written_anew_loses_what_it_lacks_O2(file: ClaudeFile) -> None:
    file.user()
    file.call("Write", file_path="/p/a.py", content=f"{FIRST}\n{SECOND}\n")
    file.user()
    file.call("Write", file_path="/p/a.py", content=f"{FIRST}\n{THIRD}\n")
    assert file.numbers() == [(2, 1, 1), (1, 0, 0)]


def test_an_edit_that_failed_changes_nothing_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", FIRST)
    file.user()
    file.edit(FIRST, "", is_error=True)
    assert file.numbers() == [(1, 0, 1)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit", {"path": "a", "oldText": FIRST, "newText": SECOND}),
        ("replace", {"file_path": "a", "old_string": FIRST, "new_string": SECOND}),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": FIRST, "new_string": SECOND}]}),
        ("shell", {"command": ["apply_patch", f"*** Begin Patch\n*** Update File: a\n@@\n-{FIRST}\n+{SECOND}\n"]}),
    ],
)
def test_each_hosts_edits_are_read_O2(name: str, arguments: dict[str, Any]) -> None:
    found = [change for change in changes(name, json.dumps(arguments)) if change.before]
    assert [(change.path, list(change.before), list(change.after)) for change in found] == [("a", [FIRST], [SECOND])]


def test_a_patch_as_plain_text_is_read_too_O2() -> None:
    found = changes("apply_patch", f"*** Begin Patch\n*** Add File: b\n+{FIRST}\n*** End Patch")
    assert [(change.path, list(change.after)) for change in found if change.after] == [("b", [FIRST])]


@pytest.mark.parametrize("arguments", ["", "null", "[1]", '{"edits": [1]}', '{"edits": {"a": 1}}', "*** Begin Patch"])
def test_arguments_of_another_form_are_no_edit_O2(arguments: str) -> None:
    assert not [change for change in changes("edit", arguments) if change.before or change.after]


def called_agent(file: ClaudeFile, *edits: tuple[str, str], folder: str = "s1/subagents") -> None:
    """A call of a subagent, whose own file has these edits."""
    place = file.path.parent / folder / "agent-a1.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    for number, (old, new) in enumerate(edits):
        told = {
            "sessionId": "s1",
            "agentId": "a1",
            "isSidechain": True,
            "cwd": "/p",
            "timestamp": "2026-05-11T08:00:00Z",
        }
        given = {"file_path": "/p/a.py", "old_string": old, "new_string": new}
        use = {"type": "tool_use", "id": f"e{number}", "name": "Edit", "input": given}
        result = {"type": "tool_result", "tool_use_id": f"e{number}", "content": "done"}
        for role, block in (("assistant", use), ("user", result)):
            message = {"role": role, "content": [block]}
            lines.append({**told, "type": role, "uuid": f"{role}{number}", "message": message})
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    file.call("Task", noted={"agentId": "a1"}, description="Do it", prompt="Do all of it", subagent_type="builder")


@pytest.mark.parametrize("folder", ["s1/subagents", "."])
def test_the_lines_of_a_called_agent_are_its_own_O2(file: ClaudeFile, folder: str) -> None:
    file.user()
    called_agent(file, ("", f"{FIRST}\n{SECOND}\n{THIRD}"), (THIRD, ""), folder=folder)
    file.edit(SECOND, "the caller wrote another line")
    file.user()
    found = {event.of: (event.lines, event.lost, event.followed) for event in settled(file.read())}
    assert found == {"call1": (2, 1, 1), "u0": (1, 0, 1)}


def test_reading_on_tells_the_same_of_a_called_agent_W13(file: ClaudeFile, tmp_path: Path) -> None:
    file.user()
    called_agent(file, ("", f"{FIRST}\n{SECOND}"))
    for old in (FIRST, SECOND, "nothing", "more"):
        file.user()
        file.edit(old, "")
    file.read()
    growing = tmp_path / "growing"
    (growing / "s1" / "subagents").mkdir(parents=True)
    agent = "s1/subagents/agent-a1.jsonl"
    (growing / agent).write_bytes((tmp_path / agent).read_bytes())
    check_reading_on(claude_code.read, file.path, growing / "s1.jsonl")


def test_no_word_of_an_edit_is_in_the_numbers_O2(file: ClaudeFile) -> None:
    file.user()
    file.edit("", FIRST)
    assert "total" not in str(settled(file.read()))


STEPS = st.lists(
    st.one_of(
        st.just(None), st.tuples(st.sampled_from([FIRST, SECOND, THIRD, ""]), st.sampled_from([FIRST, SECOND, ""]))
    ),
    min_size=4,
    max_size=24,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS)
def test_reading_on_tells_the_same_numbers_W13(steps: list[Any], tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "s1.jsonl")
    file.user()
    for step in steps:
        file.user() if step is None else file.edit(*step)
    for numbers in settled(file.read()):
        assert 0 <= numbers.lost <= numbers.lines
    place = tmp_path / "growing"
    place.mkdir(exist_ok=True)
    check_reading_on(claude_code.read, file.path, place / "s1.jsonl")


def test_reading_on_with_a_small_window_tells_the_same_W13(
    file: ClaudeFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (edit_history, session_reader):
        monkeypatch.setattr(module, "EDITS_WINDOW", 3000)
    for number in range(20):
        file.user()
        file.edit(f"{FIRST} {number - 2}", f"{FIRST} {number}\n{SECOND} {number}")
    file.read()
    (tmp_path / "growing").mkdir()
    check_reading_on(claude_code.read, file.path, tmp_path / "growing" / "s1.jsonl")


def test_the_name_of_the_called_agent_survives_the_cut_O2(file: ClaudeFile) -> None:
    file.user()
    file.call("Task", description="Find it", prompt="look " * 200, subagent_type="Explore")
    (session,) = file.read().sessions
    (call,) = [event for event in session.events if isinstance(event, ToolCalled)]
    given_to = delegation(call)
    assert given_to is not None and given_to.agent == "Explore" and given_to.task.startswith("Find it look")
    assert len(call.arguments) <= 200


@pytest.mark.parametrize(
    ("name", "arguments", "agent"),
    [
        ("Task", '{"description":"d","prompt":"p"}', "general-purpose"),
        ("subagent", '{"agent":"scout","task":"p"}', "scout"),
        ("spawn_agent", '{"agent_type":"explorer","message":"p"}', "explorer"),
        ("delegate_to_agent", '{"agent_name":"investigator","objective":"p"}', "investigator"),
        ("Bash", '{"agent":"scout","task":"p"}', None),
        ("subagent", '{"task":"p"}', None),
    ],
)
def test_each_host_names_its_agents_O2(name: str, arguments: str, agent: str | None) -> None:
    given_to = delegation(ToolCalled(turn="t", at="2026-05-11T08:00:00Z", name=name, arguments=arguments))
    assert (given_to.agent if given_to else None) == agent


def test_a_codex_subagent_has_the_name_of_its_role_P5(tmp_path: Path) -> None:
    at = "2026-05-11T08:00:00Z"
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "x", "depth": 1, "agent_role": "explorer"}}}
    lines = [
        {"timestamp": at, "type": "session_meta", "payload": {"id": "s", "timestamp": at, "source": source}},
        {
            "timestamp": at,
            "type": "response_item",
            "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
        },
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [session.origin.agent for session in codex.read(path).sessions] == ["explorer"]


SESSIONS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sessions"


@pytest.mark.parametrize("path", sorted(SESSIONS.glob("pi/*.jsonl")), ids=lambda path: path.name[:24])
def test_real_files_give_possible_numbers_O2(path: Path) -> None:
    for session in pi.read(path).sessions:
        for event in session.events:
            assert not isinstance(event, Settled) or 0 <= event.lost <= event.lines
