"""`memd agent why`, `judge` and `rank`, and the tool that ranks (O1, O2)."""

from __future__ import annotations

from typing import Any

from mcp import Client as McpClient

from memd.protocol.event import Origin, Said
from tests.clients.test_mcp import talk
from tests.conftest import RunningDaemon
from tests.daemon.test_outcomes import lines

BUTTON = "Move the button of the login page to the left."
SLOW = "find out why the SQL query of the invoices list is slow"


def prepare(daemon: RunningDaemon) -> None:
    with daemon.client() as client:
        client.open_agent("dba", role="tunes slow SQL queries and writes migrations of the database")
        client.open_agent("painter", role="builds pages, buttons and forms of the user interface")
        turn = Said(turn="u0", at="2026-05-11T08:00:00Z", role="user", text=BUTTON)
        client.capture(Origin(host="claude-code", session="one", live=False), [turn, lines(0, 30)])


def test_the_user_asks_why_and_judges_O2(daemon: RunningDaemon, memd: Any) -> None:
    prepare(daemon)
    why = memd("agent", "why", "claude-code")
    assert why.code == 0 and all(words in why.text for words in (BUTTON, "claude-code:one:u0", "+0.5"))
    judging = memd("agent", "judge", "claude-code", "claude-code:one:u0", "--outcome", "redo", "--json")
    (outcome,) = judging.json["data"]["outcomes"]
    assert (outcome["outcome"], outcome["by"], outcome["weight"]) == ("redo", "user", -2.0)
    back = memd("agent", "judge", "claude-code", "one", "--take-back")
    assert back.code == 0 and "kept as it was" in back.text


def test_a_wrong_request_is_told_with_a_hint_O2(daemon: RunningDaemon, memd: Any) -> None:
    prepare(daemon)
    neither = memd("agent", "judge", "claude-code", "one")
    assert neither.code == 2 and "--outcome, or --take-back" in neither.errors
    nobody = memd("agent", "why", "nobody")
    assert nobody.code and "memd agent rank" in nobody.errors
    other = memd("agent", "judge", "dba", "one", "--outcome", "minor")
    assert other.code and "memd agent why dba" in other.errors


def test_a_ranking_says_what_it_rests_on_O1(daemon: RunningDaemon, memd: Any) -> None:
    prepare(daemon)
    ranking = memd("agent", "rank", SLOW)
    first = ranking.text.splitlines()[0]
    assert "dba" in first and "by role only" in first and "80 %" in first
    assert "painter" not in memd("agent", "rank", SLOW, "--agents", "dba,claude-code").text


def test_a_host_gets_the_tool_only_where_it_asks_for_it_O1(daemon: RunningDaemon) -> None:
    prepare(daemon)

    async def listed(client: McpClient) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    async def ranks(client: McpClient) -> Any:
        return (await client.call_tool("memory_rank_agents", {"task": SLOW})).structured_content

    assert "memory_rank_agents" not in talk(daemon.environment, listed)
    assert "memory_rank_agents" in talk(daemon.environment, listed, "auto", "--tools", "rank")
    agents = talk(daemon.environment, ranks, "auto", "--tools", "rank")["agents"]
    assert agents[0]["agent"] == "dba" and agents[0]["by_role"]
