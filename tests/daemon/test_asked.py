"""Statements that people ask to remember, in nine languages, as they type them: kept, active and found (W2)."""

from __future__ import annotations

from pathlib import Path

from memd.clients.python import Client
from memd.protocol.event import Origin, Said, SessionEnded
from tests.conftest import RunningDaemon

AT = "2026-03-04T18:30:00+01:00"
ASKED = [
    line.split("\t")
    for line in (Path(__file__).parents[1] / "data" / "asked.tsv").read_text(encoding="utf-8").splitlines()
]
FOUND = 0.97
"""Share of the questions that find their record among the first five."""


def test_what_somebody_asks_to_remember_in_a_session_or_by_hand_is_active_and_found_W2(
    shared_daemon: RunningDaemon, tmp_path: Path
) -> None:
    (tmp_path / ".memd-id").write_text("asked-0001\n")
    folder = str(tmp_path)
    ids: list[list[str]] = []
    with shared_daemon.client() as client:
        for number, (_, lead, statement, _) in enumerate(ASKED):
            if number % 2:
                ids.append([client.remember(lead + statement, cwd=folder).record.id])
                continue
            origin = Origin(host="pi", session=str(number), cwd=folder)
            client.capture(origin, [Said(turn="1", at=AT, role="user", text=lead + statement)])
            client.capture(origin, [SessionEnded(turn="2", at=AT)])
            ids.append([])
        shared_daemon.settle()
        for number, own in enumerate(ids):
            own += [] if own else [record.id for record in client.list(document=f"pi:{number}").records]
        for (_, _, statement, _), own in zip(ASKED, ids, strict=True):
            assert [(client.get(id).status, client.get(id).content) for id in own] == [("active", statement)]
        found = [_finds(client, question, own, folder) for (_, _, _, question), own in zip(ASKED, ids, strict=True)]
    assert sum(found) >= FOUND * len(found), [row for row, is_found in zip(ASKED, found, strict=True) if not is_found]


def _finds(client: Client, question: str, ids: list[str], folder: str) -> bool:
    return not {hit.record.id for hit in client.recall(question, cwd=folder, limit=5).hits}.isdisjoint(ids)
