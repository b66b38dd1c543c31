"""Forked and resumed files: a host copies the turns of a session into another file; what they say was said once (W13,
G4, T11, T8)."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memd.clients.bench import session_data
from memd.clients.importers.agent_files import reader
from memd.clients.importers.cursors import Cursors
from memd.clients.importers.transcript import CapturedSession
from memd.protocol.event import Origin, Said, ToolCalled

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
REAL = [path for path in sorted(SHARED.glob("sessions/claude-code/*.jsonl")) if path.stat().st_size < 1_000_000][:3]
ID = "7d1d2f60-0000-4000-8000-000000000000"
NEW = "We decided to move the pear table to DuckDB, because the growers query it offline."


def fork(path: Path, folder: Path, *, renamed: bool = False) -> Path:
    """A file of another session with the turns of one, and a turn more, as older versions of Claude Code write it.
    `renamed`: the turns have new ids, as in some resumed files; calls of tools keep theirs."""
    lines: list[dict[str, Any]] = []
    for line in path.read_text().split("\n"):
        with suppress(json.JSONDecodeError):  # the sample's last line is cut off
            lines.append(json.loads(line))
    last = next(line for line in reversed(lines) if line.get("type") == "user" and line.get("timestamp"))
    more = {
        **last,
        "uuid": "00000000-0000-4000-8000-00000000000f",
        "timestamp": "2027-01-01T09:00:00.000Z",
        "isMeta": False,
        "isSidechain": False,
        "toolUseResult": None,
        "message": {"role": "user", "content": NEW},
    }
    if renamed:
        lines = [{**line, "uuid": f"new-{line['uuid']}"} if line.get("uuid") else line for line in lines]
    copied = folder / f"{ID}.jsonl"
    copied.write_text("".join(json.dumps({**line, "sessionId": ID}) + "\n" for line in [*lines, more]))
    return copied


def session(path: Path, folder: Path) -> CapturedSession:
    return reader("claude-code", path, str(folder), Cursors(folder), dry_run=True)(None).sessions[0]


@pytest.mark.parametrize("renamed", [False, True], ids=["the same ids", "new ids"])
@pytest.mark.parametrize("is_fork_first", [False, True], ids=["the original first", "the fork first"])
@pytest.mark.parametrize("path", [session_data.SAMPLE, *REAL], ids=lambda path: str(path)[-20:])
def test_what_a_fork_repeats_is_no_second_evidence_and_what_is_new_is_learnt_G4(
    daemon: Any, tmp_path: Path, path: Path, is_fork_first: bool, renamed: bool
) -> None:
    both = [session(path, tmp_path), session(fork(path, tmp_path, renamed=renamed), tmp_path)]
    if renamed and not any(isinstance(event, ToolCalled) for event in both[0].events):
        pytest.skip("nothing in it keeps its name")
    if is_fork_first:
        both.reverse()
    with daemon.client() as client:
        session_data.deliver(client, both[:1])
        daemon.settle()
        alone = {record.id: len(record.provenance.evidence) for record in session_data.records(client)}
        session_data.deliver(client, both[1:])
        daemon.settle()
        records = {record.id: record for record in session_data.records(client)}
        more = [id for id, count in alone.items() if len(records[id].provenance.evidence) > count]
        assert more == [], "a copy is no evidence"
        assert any("DuckDB" in record.content for record in records.values())
        new = [record.content for id, record in records.items() if id not in alone]
        assert all("DuckDB" in content or "pear" in content for content in new), new
        assert client.session(both[1].origin.document).family == (both[0].origin.document,)


def test_sessions_whose_turns_only_have_like_names_are_no_family(daemon: Any) -> None:
    """Codex names turns by their line."""
    with daemon.client() as client:
        for number in range(2):
            origin = Origin(host="codex", session=f"s{number}", live=False)
            text = "I prefer tabs over spaces in every language."
            client.capture(origin, [Said(turn="user-3", at=f"2026-11-0{number + 1}T09:00:00Z", role="user", text=text)])
        daemon.settle()
        assert client.session("codex:s1").family == ()
        (record,) = client.list().records
        assert [item.span.document for item in record.provenance.evidence] == ["codex:s1"]


def test_every_member_of_a_family_knows_the_others(daemon: Any) -> None:
    with daemon.client() as client:
        said = Said(turn="a", at="2026-11-01T09:00:00Z", role="user", text="Good morning, the pears again.")
        for name in ("one", "two", "three"):
            client.capture(Origin(host="pi", session=name, live=False), [said])
        assert set(client.session("pi:three").family) == {"pi:one", "pi:two"}
        assert set(client.session("pi:one").family) == {"pi:two", "pi:three"}
