"""An export with rows that no memd wrote: each is imported or refused, and the journal can be replayed (P-25, P-12)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.clients.importers.memd_export import ExportFile, import_in_parts
from memd.protocol.event import Origin
from memd.protocol.reply import RecordsImported
from memd.protocol.request import Remember
from tests.daemon.test_forget import ended
from tests.hostile import encoded, mutations

AT = "2026-03-04T18:30:00+01:00"
RECORD_ID = "0123456789abcdefghjkmn{:04}"
FULL: dict[str, Any] = {
    "layer": "L3",
    "status": "active",
    "language": "en",
    "valid_to": "",
    "retired_at": 0,
    "learnings": {"a": "b"},
    "review": {"cadence_days": 30, "next": AT, "change_condition": "3 independent projects deviate", "against": 0},
    "supersedes": [],
    "superseded_by": "",
    "key": "",
    "flags": [],
}
"""Fields of a record that an export omits while they have their defaults."""


def full_lines(exported: list[Any]) -> dict[str, Any]:
    """Return a line of each kind with all of its fields."""
    lines = {line["line"]: line for line in exported}
    record = lines["record"]["record"]
    record.update(FULL)
    record["signal"].update(strength_by={"a": 1.0}, access_count=1, candidate_count=1, last_access=1, level=0)
    span = record["provenance"]["spans"][0]
    record["provenance"].update(evidence=[{"kind": "restated", "span": span, "trust": "user", "at": AT}], rules=1)
    lines["record"]["changes"][0]["decision"].update(neighbours=[["x", 1, 0.5, "unrelated"]], rounds=1)
    lines["session"]["session"]["origin"].update(agent="a", title="t", repository={"root": "/", "remote": "r"})
    lines["pool"]["pool"].update(role="r", perspectives=["p"])
    return lines


def hostile_rows(lines: dict[str, Any]) -> Iterator[str]:
    """Yield each line with one hostile value; a record cites the hostile session, or is in the hostile pool."""
    head = lines["memd_export"]
    yield json.dumps(head)
    number = 0
    for kind in ("record", "session", "pool"):
        for path, line in mutations(lines[kind]):
            number += 1
            record = json.loads(json.dumps(lines["record"]))
            if kind == "record":
                record = line
            elif isinstance(changed := line.get(kind), dict):
                if kind == "session":
                    changed["document"] = changed.get("document") if path[-1] == "document" else f"h:{number}"
                    record["record"]["provenance"]["spans"] = [[changed["document"], "1", 0, 5]]
                else:
                    changed["pool"] = changed.get("pool") if path[-1] == "pool" else f"project/{number}"
                    record["record"]["pool"] = changed["pool"]
                yield encoded(line)
            if isinstance(fields := record.get("record"), dict) and path != ("record", "id"):
                fields["id"] = RECORD_ID.format(number)
            yield encoded(record)
    yield json.dumps({"line": "end", "records": number})


@pytest.mark.slow
def test_each_hostile_row_is_imported_or_refused_and_the_journal_replays_P25_P12(
    shared_daemon: Any, daemon: Any, tmp_path: Path
) -> None:
    origin = Origin(host="h", session="s", cwd=str(tmp_path))
    with shared_daemon.client() as client:
        client.remember(Remember(text="I prefer tabs over spaces.", turn="1", at=AT, origin=origin))
        shared_daemon.settle()
        page = client.export()
    lines = full_lines(
        [
            {"line": "memd_export", "format": 1, "memd": "0.1.0", "at": AT},
            {"line": "pool", "pool": {"kind": "pool_opened", "pool": "project/1", "title": "t", "evidence": "e"}},
            *({"line": "session", "session": msgspec.to_builtins(row)} for row in page.sessions[:1]),
            *({"line": "record", **msgspec.to_builtins(row)} for row in page.records if row.record.provenance.quote),
        ]
    )
    file = tmp_path / "hostile.jsonl"
    file.write_text("\n".join(hostile_rows(lines)) + "\n")
    export = ExportFile(file)
    with daemon.client() as client:
        outcomes: list[RecordsImported] = [import_in_parts(client, request) for request, _ in export.requests()]
        refused = [refusal for outcome in outcomes for refusal in outcome.refused]
        assert sum(outcome.added for outcome in outcomes) > 100 and len(refused) > 100 and len(export.malformed) > 100
        assert {refusal.problem.code for refusal in refused} <= {"invalid_request", "naive_time", "too_large"}
        assert client.list(limit=500).records and client.recall("tabs").scope and client.profile().rev
        assert client.fading().records and client.timeline("tabs").records and client.sessions(limit=500).sessions
        assert client.export().records and client.context().scope
        assert ended(client, client.verify())["verdict"]
        ended(client, client.rebuild())
        ended(client, client.forget(query="prefer tabs"))
    assert daemon.terminate() == 0
    daemon.start()
    with daemon.client() as client:
        assert client.status().pid and not client.list().records
    assert "Traceback" not in daemon.places.log.read_text()
