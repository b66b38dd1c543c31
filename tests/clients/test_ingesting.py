"""`memd ingest` and the MCP tool `memory_ingest`, as a user and a host run them (W12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.cli.ingest import decided
from memd.clients.cli.integrate import TOOLS_ON_REQUEST
from memd.clients.ingest.negotiation import Choice, Cost, Negotiation
from memd.clients.mcp.tools import ON_REQUEST, TOOLS
from tests.clients.conftest import Told
from tests.clients.test_mcp import talk
from tests.conftest import RunningDaemon

NOTES = """# Orchard

## Water

We decided to water the pears before sunrise, because the heat spoils the roots.

## Frost

Never prune a quince in a frost, since the wood splits.
"""
PUMPS = "\n".join(f"- [{'bug' if n % 2 else 'idea'}] Pump number {n} stands at gate {n}." for n in range(22))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / "notes.md").write_text(NOTES)
    (folder / "pumps.md").write_text(PUMPS)
    return folder


def test_a_file_is_taken_in_and_a_pointer_opens_its_words_W12(
    daemon: RunningDaemon, memd: Callable[..., Told], notes: Path
) -> None:
    told = memd("ingest", str(notes / "notes.md"))
    assert told.code == 0, told.errors
    assert "2 passages, 2 new" in told.text and "[§1]" in told.text and "[§2]" in told.text
    opened = memd("show", "§2", "--json").json["data"]
    assert (opened["number"], opened["total"]) == (2, 2), "of the newest summary of the folder"
    taken = memd("ingest", str(notes / "notes.md"), "--json").json["data"]["documents"][0]
    assert (taken["written"], taken["sent"]["accepted"], taken["sent"]["duplicate"]) == (0, 0, 2)
    detail = memd("show", f"{taken['id'][:8]}§2")
    assert detail.code == 0 and "»Never prune a quince in a frost, since the wood splits.«" in detail.text
    assert "[§1]" in memd("show", taken["id"]).text


def test_many_items_end_with_code_6_and_take_nothing_W12(
    daemon: RunningDaemon, memd: Callable[..., Told], notes: Path
) -> None:
    told = memd("ingest", str(notes / "pumps.md"))
    assert told.code == 6
    assert "22 items (list entries); nothing was taken yet" in told.text and "idea 11, bug 11" in told.text
    envelope = memd("ingest", str(notes / "pumps.md"), "--json")
    assert envelope.code == 6 and envelope.json["ok"]
    asked = envelope.json["data"]["negotiate"]
    assert (asked["items"], asked["kinds"], asked["options"]) == (
        22,
        {"idea": 11, "bug": 11},
        ["choose", "top", "all", "by_category"],
    )
    with daemon.client() as client:
        assert client.sessions().total == 0
    chosen = memd("ingest", str(notes / "pumps.md"), "--choose", "1,3-4", "--json")
    assert chosen.code == 0 and chosen.json["data"]["documents"][0]["details"] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("missing.md",), 4, "there is no missing.md"),
        (("notes.md", "--choose", "1", "--all"), 2, "several decisions at once"),
        (("notes.md", "pumps.md", "--choose", "1"), 2, "one file at a time"),
        (("pumps.md", "--choose", "99"), 2, "names no item"),
        (("pumps.md", "--category", "nothing"), 2, "there is no category"),
        ((".",), 2, "is a folder"),
    ],
)
def test_what_can_not_be_taken_is_told_W12(
    daemon: RunningDaemon, memd: Callable[..., Told], notes: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    named = [str(notes / word) if word.endswith((".md", ".")) else word for word in arguments]
    told = memd("ingest", *named)
    assert told.code == code and words.replace("missing.md", str(notes / "missing.md")) in " ".join(told.errors.split())


def test_standard_input_is_a_file_too_W12(daemon: RunningDaemon, memd: Callable[..., Told]) -> None:
    told = memd("ingest", "-", input="We decided to sell the plums in Kassel, because the market is large.\n")
    assert told.code == 0 and "market is large. [§1]" in told.text


def test_what_a_user_types_is_a_choice_W12() -> None:
    asked = Negotiation(file="a", items=30, of="rows", kinds={"bug": 30}, options=(), cost=Cost(parts=30, tokens=9))
    assert decided("none", asked) is None and decided("", asked) is None
    assert decided("all", asked) == Choice(all=True)
    assert decided("1, 4-9", asked) == Choice(choose="1, 4-9")
    assert decided("top 10", asked) == Choice(top=10)
    assert decided("categories", asked) == Choice(by_category=True)
    assert decided("bug", asked) == Choice(categories=("bug",))


# --- MCP --------------------------------------------------------------------------------------------------------------
def test_the_tool_is_listed_on_request_only_W12_P24(daemon: RunningDaemon) -> None:
    async def names(client: Any) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    usual = talk(daemon.environment, names)
    assert len(usual) == len(TOOLS) == 6 and "memory_ingest" not in usual
    assert talk(daemon.environment, names, "auto", "--tools", "ingest") == [*usual, "memory_ingest"]
    assert "memory_ingest" not in talk(daemon.environment, names, "auto", "--tools", "ingest", "--read-only")
    assert sorted(ON_REQUEST) == sorted(TOOLS_ON_REQUEST)


def test_an_agent_takes_a_file_in_decides_and_reads_a_passage_W12(daemon: RunningDaemon, notes: Path) -> None:
    async def work(client: Any) -> list[Any]:
        async def call(**arguments: Any) -> Any:
            told = await client.call_tool("memory_ingest", {"cwd": str(notes), **arguments})
            return told.is_error, told.content[0].text, told.structured_content

        taken = await call(path=str(notes / "notes.md"))
        id = taken[2]["documents"][0]["id"]
        return [
            taken,
            await call(passage=f"{id[:8]}§1"),
            await call(path=str(notes / "pumps.md")),
            await call(path=str(notes / "pumps.md"), categories=["bug"]),
            await call(text=PUMPS, title="Pumps", choose="1"),
            await call(path="notes.md"),
            await call(),
        ]

    taken, passage, asked, bugs, text, relative, nothing = talk(daemon.environment, work, "auto", "--tools", "ingest")
    assert "[§2]" in taken[2]["documents"][0]["summary"] and "<memd-context>" in taken[1]
    assert "before sunrise" in passage[2]["passage"]
    assert asked[2]["negotiate"]["kinds"] == {"idea": 11, "bug": 11} and "22 items" in asked[1]
    assert (bugs[2]["documents"][0]["details"], bugs[2]["documents"][0]["category"]) == (11, "bug")
    assert text[2]["documents"][0]["details"] == 1
    assert relative[0] and nothing[0]
    assert json.dumps(taken[2])


def test_an_agent_points_at_words_of_an_ingested_document_W12_W4(daemon: RunningDaemon, notes: Path) -> None:
    async def work(client: Any) -> list[Any]:
        async def call(tool: str, **arguments: Any) -> Any:
            told = await client.call_tool(tool, {"cwd": str(notes), **arguments})
            return told.is_error, told.content[0].text, told.structured_content

        document = (await call("memory_ingest", path=str(notes / "notes.md")))[2]["documents"][0]["document"]
        quoted = [
            {"type": "lesson", "quotes": ["the wood splits"]},
            {"type": "lesson", "quotes": ["the wood never splits"]},
        ]
        return [
            await call("memory_reflect", document=document, statements=quoted),
            await call("memory_reflect", document="claude-code:another", statements=quoted),
            await call("memory_ingest", path=str(notes / "notes.md")),
        ]

    pointed, other, again = talk(daemon.environment, work, "auto", "--tools", "ingest", "--tools", "reflect")
    assert (pointed[2]["taken"], [refused["number"] for refused in pointed[2]["refused"]]) == (1, [2])
    assert other[0] and "no document that memory_ingest took in" in other[1]
    assert "the wood splits [§" in again[2]["documents"][0]["summary"]
