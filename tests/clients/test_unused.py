"""Records that stand in many answers and that nobody uses (Q9)."""

from collections.abc import Callable
from typing import Any

from memd.clients.cli.doctor import OFTEN
from tests.conftest import RunningDaemon


def test_doctor_reports_a_record_that_many_answers_contain_and_nobody_uses_Q9_T14(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    record = memd("remember", "--personal", "I always sign release tags with the cello key.", "--wait", "--json")
    id = record.data["record"]["id"]

    def findings() -> list[str]:
        rows = memd("doctor", "--json").data["findings"]
        return [row["message"] for row in rows if row["name"] == "records"]

    with daemon.client() as client:
        for _ in range(OFTEN):
            assert [hit.record.id for hit in client.recall("Which key signs release tags?").hits] == [id]
        assert findings() == []
        client.recall("Which key signs release tags?")
        assert findings() == ["1 record was returned more than 50 times, and never used"]
        client.feedback(used=[id])
    assert findings() == []
