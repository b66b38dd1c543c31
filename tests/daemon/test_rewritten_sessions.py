"""A session's file that changed: a rewritten one retires what its removed turns alone say; a file that was cut off or
rotated retires nothing (W13)."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.delivery import ImportSource, hand_over
from memd.protocol.event import Origin
from memd.protocol.record import LIVE
from memd.protocol.request import Remember

SAYS = (
    "Good morning, let's continue with the orchard service.",
    "We decided to keep the harvest table in SQLite because one process writes it.",
    "Always run `make test` before a commit, because the hooks do not.",
    "We decided to deploy the orchard service to Hetzner, because the growers pay for it.",
    "Thanks, that is all for now.",
)
Lines = list[dict[str, Any]]


class SessionFile:
    """A session's file and the memory it is imported into."""

    def __init__(self, daemon: Any, folder: Path) -> None:
        self.daemon, self.path = daemon, folder / "5b1d2f60-0000-4000-8000-000000000000.jsonl"
        self.cursors, self.cwd = Cursors(daemon.places.state), str(folder)

    def lines(self, texts: Sequence[str], first: int = 0) -> Lines:
        """The user's turns; turn N is said in minute N."""
        return [
            {
                "type": "user",
                "uuid": f"00000000-0000-4000-8000-{number:012}",
                "sessionId": self.path.stem,
                "cwd": self.cwd,
                "isSidechain": False,
                "timestamp": f"2026-11-02T09:{number:02}:00.000Z",
                "message": {"role": "user", "content": text},
            }
            for number, text in enumerate(texts, first)
        ]

    def put(self, lines: Lines, end: str = "") -> int:
        """Write these lines, import them and wait until they are distilled; the number of vanished turns."""
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end)
        read = reader("claude-code", self.path, "", self.cursors)
        with self.daemon.client() as client:
            sent = hand_over(client, ImportSource("claude-code", self.path, read), self.cursors).sessions
        self.daemon.settle()
        return sum(session.vanished for session in sent)

    def retired(self) -> set[str]:
        """The subjects of the retired records."""
        with self.daemon.client() as client:
            records = client.list(document=f"claude-code:{self.path.stem}", limit=100).records
        assert len(records) >= 3, records
        retired = " ".join(record.content for record in records if record.status == "retired")
        return {word for word in ("SQLite", "make test", "Hetzner") if word in retired}


@pytest.fixture
def session(daemon: Any, tmp_path: Path) -> SessionFile:
    file = SessionFile(daemon, tmp_path)
    assert file.put(file.lines(SAYS)) == 0
    assert file.retired() == set()
    return file


def test_what_a_removed_turn_alone_said_is_retired_and_comes_back_with_it_W13(session: SessionFile) -> None:
    whole = session.lines(SAYS)
    assert session.put(whole[:1] + whole[2:]) == 1
    assert session.retired() == {"SQLite"}
    assert session.put(whole[:1] + whole[2:]) == 0
    assert session.put(whole) == 0
    assert session.retired() == set()


def test_a_last_turn_that_another_replaced_is_retired_W13(session: SessionFile) -> None:
    kept = session.lines(SAYS)[:3]
    assert session.put(kept + session.lines(["We go on with the pear table.", "Fine."], 10)) == 1
    assert session.retired() == {"Hetzner"}


def cut_off(session: SessionFile, lines: Lines) -> int:
    return session.put(lines[:2])


def cut_off_within_a_line(session: SessionFile, lines: Lines) -> int:
    return session.put(lines[:3], json.dumps(lines[3])[:90])


def rotated(session: SessionFile, lines: Lines) -> int:
    return session.put([*lines[3:], *session.lines(["Now the pears: where is their table?"], 20)])


def replaced_by_later_turns(session: SessionFile, lines: Lines) -> int:
    return session.put(session.lines(["Where is the pear table?", "Fine."], 30))


def emptied(session: SessionFile, lines: Lines) -> int:
    return session.put([])


def with_a_damaged_line(session: SessionFile, lines: Lines) -> int:
    session.path.write_text("")
    damaged = [*lines[:1], {**lines[1], "message": 7}, *lines[2:]]
    return session.put(damaged)


@pytest.mark.parametrize(
    "change", [cut_off, cut_off_within_a_line, rotated, replaced_by_later_turns, emptied, with_a_damaged_line]
)
def test_a_file_that_lost_its_begin_or_its_end_retires_nothing_W13(
    session: SessionFile, change: Callable[[SessionFile, Lines], int]
) -> None:
    assert change(session, session.lines(SAYS)) == 0
    assert session.retired() == set()


def test_a_remembered_text_of_the_session_is_in_no_file_and_stays_W13_W11(session: SessionFile) -> None:
    origin = Origin(host="claude-code", session=session.path.stem, cwd=session.cwd)
    text = "The pear table lies in DuckDB."
    with session.daemon.client() as client:
        note = Remember(text=text, turn="a-note", at="2026-11-02T09:02:30Z", origin=origin)
        id = client.remember(note).record.id
    session.daemon.settle()
    whole = session.lines(SAYS)
    assert session.put(whole[:1] + whole[2:]) == 1
    with session.daemon.client() as client:
        assert client.get(id).status in LIVE
