"""Session files that no honest program wrote: each line is taken, noise or malformed (P-12)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.importers import aider, claude_code, cline, codex, cursor, gemini, markdown, pi, specstory
from memd.daemon.services.admission import admit
from memd.protocol.errors import MemdError
from memd.protocol.request import Capture
from memd.protocol.secret_gate import KEY_BYTES, SecretGate
from memd.protocol.wire import decode_request, encode_request
from tests.hostile import encoded, mutations

DATA = Path(__file__).parents[1] / "data" / "sessions"
SAMPLE = Path(__file__).parents[2] / "clients" / "cli" / "sample" / "session.jsonl"
(CODEX,) = DATA.glob("rollout-*.jsonl")
FILES: dict[str, tuple[Any, Path]] = {
    "claude-code": (claude_code, SAMPLE),
    "codex": (codex, CODEX),
    "pi": (pi, DATA / "pi.jsonl"),
    "gemini lines": (gemini, DATA / "gemini.jsonl"),
    "gemini": (gemini, DATA / "gemini.json"),
    "cursor": (cursor, DATA / "cursor.jsonl"),
    "cline": (cline, DATA / "cline.messages.json"),
}
TEXTS: dict[str, tuple[Any, Path]] = {
    "aider": (aider, DATA / "aider.chat.history.md"),
    "roo": (cline, DATA / "tasks" / "1772618400000" / "ui_messages.json"),
    "specstory": (specstory, DATA / "specstory.md"),
}
GATE = SecretGate(lambda text: (text, ()), bytes(KEY_BYTES))


def loaded(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def is_taken_or_refused(transcript: Any) -> None:
    """Send each event as an import would; the daemon's checks admit or refuse it."""
    assert transcript.account.is_complete
    for session in transcript.sessions:
        for event in session.events:
            try:
                request = decode_request(encode_request(Capture(origin=session.origin, events=(event,))))
                assert isinstance(request, Capture)
                admit(GATE, request.origin, request.events[0])
            except (MemdError, UnicodeEncodeError, OverflowError):
                pass


@pytest.mark.parametrize("agent", FILES)
def test_a_line_with_a_value_of_any_kind_stops_no_import_P12(agent: str, tmp_path: Path) -> None:
    module, source = FILES[agent]
    content = source.read_text()
    is_whole = source.suffix == ".json"
    rows = [content] if is_whole else content[: content.rfind("\n")].splitlines()
    lines = list(filter(None, map(loaded, rows)))
    kinds = {(line.get("type"), json.dumps(sorted(line))): line for line in lines}
    for number, line in enumerate(kinds.values()):
        changed = [encoded(document) for _, document in mutations(line)]
        if is_whole:
            for document in changed:
                (tmp_path / source.name).write_text(document)
                is_taken_or_refused(module.read(tmp_path / source.name))
            continue
        file = tmp_path / f"{number}-{source.name}"
        file.write_text("\n".join([*rows, *changed]) + "\n")
        transcript = module.read(file)
        assert transcript.account.lines == len(rows) + len(changed)
        is_taken_or_refused(transcript)


@pytest.mark.parametrize("agent", FILES | TEXTS)
@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=400), cut=st.integers(0, 4000))
def test_bytes_of_any_kind_stop_no_import_P12(agent: str, content: bytes, cut: int, tmp_path_factory: Any) -> None:
    module, source = (FILES | TEXTS)[agent]
    file = tmp_path_factory.getbasetemp() / source.name
    file.write_bytes(source.read_bytes()[:cut] + content)
    is_taken_or_refused(module.read(file))


@pytest.mark.parametrize("time", [-(2**40), 0, 2**34 - 1, 2**40, 2**62])
def test_a_file_of_any_age_is_imported_P12(time: int, tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_text("I prefer tabs.\n")
    os.utime(file, (0, time))
    (session,) = markdown.read(file, bytes(32), {}).sessions
    admit(GATE, session.origin, session.events[0])


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=400) | st.text("#-*>`|=~[]()<!&1. \t\n\r\0a\u2028é", max_size=200).map(str.encode))
def test_Markdown_of_any_kind_stops_no_import_P12(content: bytes, tmp_path_factory: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "notes.md"
    file.write_bytes(content)
    is_taken_or_refused(markdown.read(file, bytes(32), {}))
