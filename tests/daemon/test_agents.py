"""Agents: a role, perspectives and a memory of their own (P5)."""

from typing import Any

import pytest

from memd.clients.python import Client
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said, SessionEnded

AT = "2026-03-10T09:00:00+01:00"
TOLD = "We chose the northern depot for spare rotors, because the southern one floods every spring."
MINE = "I prefer phone calls over e-mail for urgent orders."


def said_by(client: Client, agent: str, lines: list[str], role: Any = "assistant") -> None:
    origin = Origin(host="test", session=f"work-{agent}-{role}", agent=agent)
    events = [Said(turn=str(n), at=AT, role=role, text=line) for n, line in enumerate(lines)]
    client.capture(origin, [*events, SessionEnded(turn="session-end", at=AT)])


def test_an_agent_keeps_what_it_says_itself_and_nobody_else_reads_it_P5(daemon: Any) -> None:
    with daemon.client() as client:
        opened = client.open_agent("buyer", role="buys parts", perspectives=["cost", "delivery"])
        assert (opened.pool, opened.new) == ("agent/buyer", True)
        client.open_agent("tester")
        said_by(client, "buyer", [TOLD])
        said_by(client, "buyer", [MINE], "user")
        daemon.settle(90)
        pools = {record.content: record.pool for record in client.list(limit=50).records}
        assert pools == {TOLD: "agent/buyer", MINE: "personal"}
        asked = "where are the spare rotors kept"
        assert [hit.record.content for hit in client.recall(asked, agent="buyer").hits] == [TOLD]
        assert not client.recall(asked).hits and not client.recall(asked, agent="tester").hits
        changed = client.open_agent("buyer", perspectives=["quality"])
        assert (changed.new, changed.role, changed.perspectives) == (False, "buys parts", ("quality",))
        (listed,) = [each for each in client.pools().pools if each.pool == "agent/buyer"]
        assert (listed.role, listed.perspectives, listed.counts) == ("buys parts", ("quality",), {"quarantined": 1})
        with pytest.raises(InvalidRequest):
            client.open_agent("no/name")


def test_an_agent_that_nobody_opened_has_no_pool_P5(daemon: Any) -> None:
    with daemon.client() as client:
        said_by(client, "stranger", [TOLD])
        daemon.settle(90)
        assert [record.pool for record in client.list(limit=50).records] == ["personal"]
