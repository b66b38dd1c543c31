"""The MCP server: official clients over both generations of the protocol, and a daemon that comes and goes (U2, U8)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client as McpClient
from mcp import StdioServerParameters, stdio_client

from memd.clients.mcp.server import Server
from memd.clients.mcp.tools import TOOLS, URI
from memd.clients.python import Client
from memd.protocol.errors import NotFound
from memd.protocol.event import Origin, Said
from memd.protocol.places import Places
from tests.conftest import RunningDaemon

COMMAND = [sys.executable, "-P", "-m", "memd.clients.mcp"]
AGREED = {"auto": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One daemon for the tests of this file that leave it as it is."""
    folder = tmp_path_factory.mktemp("home")
    folder.chmod(0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    with daemon.client() as client:
        client.remember("I prefer tabs over spaces.")
    daemon.settle()  # what is refined under a test's eyes is not the same twice
    yield daemon
    daemon.terminate()


def talk(
    environment: dict[str, str], work: Callable[[McpClient], Awaitable[Any]], mode: str = "auto", *arguments: str
) -> Any:
    """Runs `work` with the official client, connected to a server of its own."""

    async def run() -> Any:
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *arguments], env=environment, cwd="/")
        async with McpClient(stdio_client(server), mode=mode) as client:
            assert client.protocol_version == AGREED[mode]
            return await work(client)

    return asyncio.run(run())


def call(environment: dict[str, str], name: str, mode: str = "auto", **given: Any) -> tuple[bool, str, Any]:
    """One call of a tool: whether it failed, its text, its structured value."""

    async def work(client: McpClient) -> tuple[bool, str, Any]:
        told = await client.call_tool(name, given)
        return told.is_error, told.content[0].text, told.structured_content  # type: ignore[union-attr]

    return talk(environment, work, mode)


@pytest.mark.parametrize("mode", AGREED)
def test_six_tools_at_most_each_says_when_to_use_it_P24(running: RunningDaemon, mode: str) -> None:
    async def work(client: McpClient) -> Any:
        return (await client.list_tools()).tools, (await client.list_resources()).resources

    tools, resources = talk(running.environment, work, mode)
    assert 0 < len(tools) <= 6
    assert all(tool.name.startswith("memory_") and "se it" in tool.description for tool in tools)
    assert {tool.name for tool in tools if tool.annotations.read_only_hint} == {
        "memory_recall",
        "memory_history",
        "memory_profile",
    }
    assert all(tool.output_schema["type"] == "object" for tool in tools)
    assert [resource.uri for resource in resources] == [URI]
    size = len(json.dumps([tool.listed() for tool in TOOLS]))
    assert size < 14_000, "every word is paid for in every context"


@pytest.mark.parametrize("mode", AGREED)
def test_the_answers_are_those_of_the_library_U8(running: RunningDaemon, mode: str) -> None:
    with running.client() as client:
        wanted = client.recall("tabs or spaces", cwd="/", limit=8)
        profile = client.profile(cwd="/")
    failed, text, value = call(running.environment, "memory_recall", mode, query="tabs or spaces")
    assert not failed and "tabs over spaces" in text and "not instructions" in text
    assert [each["id"] for each in value["memories"]] == [hit.record.id for hit in wanted.hits]
    assert call(running.environment, "memory_profile", mode) == (
        False,
        profile.text,
        {"text": profile.text, "rev": profile.rev, "ids": list(profile.ids), "searched": list(profile.scope)},
    )
    _, text, past = call(running.environment, "memory_history", mode, id=wanted.hits[0].record.id)
    assert past["memory"]["id"] == wanted.hits[0].record.id and "added" in text

    async def read(client: McpClient) -> Any:
        return (await client.read_resource(URI)).contents[0].text  # type: ignore[union-attr]

    assert talk(running.environment, read, mode) == profile.text


def test_in_depth_an_answer_holds_what_lies_around_Q3(running: RunningDaemon) -> None:
    with running.client() as client:
        old = client.remember("The lighthouse rotates clockwise.").record
        client.correct(old.id, "The lighthouse rotates anticlockwise.")
    _, text, value = call(running.environment, "memory_recall", query="lighthouse", deep=True)
    found = next(each for each in value["memories"] if "anticlockwise" in each["text"])
    assert found["said_around"][0] in text and "anticlockwise" in found["said_around"][0]
    assert found["changes"][0] in text and "rotates clockwise" in found["changes"][0]


def test_an_agent_hands_its_session_over_and_reads_where_the_project_stands_C1(running: RunningDaemon) -> None:
    origin = Origin(host="claude-code", session="handing", cwd="/tmp")
    asked = Said(turn="1", at="2026-11-02T09:00:00Z", role="user", text="Please mend the gates in gates/hinge.py.")
    again = Said(turn="2", at="2026-11-02T09:01:00Z", role="user", text="And now please oil them all, too.")
    with running.client() as client:
        client.capture(origin, [asked, again])
    named = {**running.environment, "MEMD_SESSION": origin.document}
    handed = {"open": ["oil gates/hinge.py"], "done": ["gates/latch.py is mended"]}
    failed, text, value = call(named, "memory_remember", handover=handed, cwd="/tmp")
    assert not failed and value["status"] == "handed over" and "gates/latch.py" in value["refused"][0]
    assert "1 of 2 lines, 1 verified" in text
    failed, text, _ = call(named, "memory_profile", part="state", cwd="/tmp")
    assert not failed and "oil gates/hinge.py" in text and text.startswith("<memd-context>")
    failed, text, _ = call(named, "memory_profile", part="sessions", cwd="/tmp")
    assert not failed and "asked: Please mend the gates" in text and "latch" not in text
    assert call(named, "memory_remember", handover=handed, text="x", cwd="/tmp")[0], "one of both"
    assert call(named, "memory_remember", cwd="/tmp")[0]
    assert call(running.environment, "memory_remember", handover=handed, cwd="/nowhere")[0], "no session is known"


def test_what_an_agent_remembers_is_its_own_word_and_quarantined_W11(running: RunningDaemon) -> None:
    told = call(running.environment, "memory_remember", text="The quokka build needs ninja.", cwd="/tmp")
    assert told[2]["status"] == "quarantined"
    with running.client() as client:
        record = client.get(told[2]["id"])
        assert (record.provenance.trust, record.provenance.source) == ("assistant", "mcp:/tmp")
        assert "quokka" not in client.profile(cwd="/tmp").text


def test_what_is_remembered_belongs_to_the_session_that_calls_W11(running: RunningDaemon, tmp_path: Path) -> None:
    one, folder = "claude-code:0b1c-one", str(tmp_path)
    with running.client() as client:
        told = call({**running.environment, "MEMD_SESSION": one}, "memory_remember", text="The emu build needs make.")
        assert client.get(told[2]["id"]).provenance.source == one
        said = [Said(turn="1", at="2026-03-04T18:30:00+01:00", role="user", text="Hello.")]
        client.capture(Origin(host="codex", session="two", cwd=folder), said)
        client.capture(Origin(host="claude-code", session="three", cwd=folder), said)

        def source(program: str, text: str) -> str:
            server = Server(client, folder)
            hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": program}}
            answer(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            params = {"name": "memory_remember", "arguments": {"text": text}}
            told = answer(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
            return client.get(told["result"]["structuredContent"]["id"]).provenance.source

        assert source("codex-mcp-client", "The emu build needs cmake.") == "codex:two"
        assert source("Claude-Code", "The emu build needs bazel.") == "claude-code:three"
        assert source("cursor-vscode", "The emu build needs meson.") == f"mcp:{folder}"
        client.capture(
            Origin(host="codex", session="four", cwd=folder), said
        )  # now nobody knows which of the two it is
        assert source("codex-mcp-client", "The emu build needs scons.") == f"mcp:{folder}"


def test_an_agent_saves_into_its_own_memory_and_its_use_confirms_it_P5_T8(running: RunningDaemon) -> None:
    heron = "The heron parser tests take four minutes."
    failed, text, _ = call(running.environment, "memory_remember", text=heron, agent="reviewer", cwd="/tmp")
    assert failed and "has no memory of its own" in text
    with running.client() as client:
        client.open_agent("reviewer", perspectives=["speed"])
        told = call(running.environment, "memory_remember", text=heron, agent="reviewer", cwd="/tmp")
        running.settle()
        record = client.get(told[2]["id"])
        assert (record.pool, record.status, record.provenance.trust) == ("agent/reviewer", "quarantined", "assistant")
        asked: dict[str, Any] = {"query": "how long do the heron parser tests take", "agent": "reviewer"}
        found = call(running.environment, "memory_recall", **asked, perspective="speed")[2]
        assert record.id in {memory["id"] for memory in found["memories"]}
        assert "heron" in call(running.environment, "memory_history", id=record.id)[1]
        call(running.environment, "memory_feedback", recall=found["recall"], used=[record.id])
        assert client.get(record.id).status == "active"
        assert not call(running.environment, "memory_profile", agent="reviewer")[0]
        assert call(running.environment, "memory_profile", agent="nobody")[0]


def test_an_agent_may_name_the_pool_and_learns_where_its_statement_lies_P1(
    running: RunningDaemon, tmp_path: Path
) -> None:
    (tmp_path / ".memd-id").write_text("quokka-0001\n")
    texts = {
        "": "The quokka lives on Rottnest.",
        "personal": "The user likes quokkas.",
        "project": "Quokkas need shade.",
    }
    told = {
        pool: call(running.environment, "memory_remember", text=text, cwd=str(tmp_path), pool=pool)[2]
        for pool, text in texts.items()
    }
    with running.client() as client:
        project = client.why_scope(str(tmp_path)).pool
        assert [told[pool]["pool"] for pool in texts] == [project, "personal", project]
        running.settle()
        assert [client.get(told[pool]["id"]).pool for pool in texts] == [project, "personal", project]
    refused = call(running.environment, "memory_remember", text="I use tabs.", cwd="/tmp", pool="project")
    assert "belongs to no project" in repr(refused)


def test_an_agent_hides_and_proposes_and_the_user_decides_G1_T10(running: RunningDaemon) -> None:
    with running.client() as client:
        gone, kept, back = (
            client.remember(text).record.id
            for text in ("I keep an axolotl.", "I prefer the pinned wombat.", "I keep a numbat.")
        )
        client.pin(kept)
        _, text, value = call(running.environment, "memory_forget", ids=[gone, kept, back], reason="wrong")
        assert (value["hidden"], len(value["proposed"])) == ([gone, back], 3)
        assert kept in text and "memd inbox" in text
        for id in (gone, back):
            with pytest.raises(NotFound):
                client.get(id)
            assert id not in {hit.record.id for hit in client.recall("axolotl numbat").hits}
        assert client.get(kept).status != "hidden"
        waiting = {each.record: each for each in client.inbox().proposals}
        assert waiting[gone].line.endswith("an axolotl.") and waiting[gone].by == "mcp: wrong"
        client.decide(waiting[back].id, accept=False)
        assert client.get(back).content == "I keep a numbat."
        again = call(running.environment, "memory_forget", ids=[back])[2]
        assert again["hidden"] == [], "the user decided that it stays"
        assert client.get(back)
        job = client.decide(waiting[gone].id, accept=True).job
        assert job is not None
        while (job := client.job(job.id)).state == "running":
            time.sleep(0.05)
        assert job.state == "done", job
    home = Path(running.environment["MEMD_HOME"])
    assert not [each for each in home.rglob("*") if each.is_file() and b"axolotl" in each.read_bytes()]


def test_what_became_of_an_answer_is_told_T3(running: RunningDaemon) -> None:
    recalled = call(running.environment, "memory_recall", query="tabs or spaces")[2]
    ids = [each["id"] for each in recalled["memories"]]
    failed, text, value = call(running.environment, "memory_feedback", recall=recalled["recall"], used=ids)
    assert (failed, value["memories"]) == (False, len(ids)), text
    failed, text, _ = call(running.environment, "memory_feedback", recall=recalled["recall"])
    assert failed and "no memory is rated" in text


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("memory_forget", {"query": "everything"}, "never a query"),
        ("memory_forget", {"ids": []}, "length >= 1"),
        ("memory_forget", {}, "never a query"),
        ("memory_recall", {"query": ""}, "length >= 1"),
        ("memory_recall", {"query": "x", "cwd": "relative"}, "absolute path"),
        ("memory_recall", {"query": "x", "as_of": "yesterday"}, "not a time"),
        ("memory_history", {"id": "zzzzzzzz"}, "no record"),
        ("memory_remember", {"text": "x", "trust": "user"}, "unknown field `trust`"),
    ],
)
def test_a_wrong_call_is_told_so_that_a_model_can_mend_it(
    running: RunningDaemon, name: str, given: dict[str, Any], reason: str
) -> None:
    failed, text, value = call(running.environment, name, **given)
    assert failed and reason in text and value is None


def test_a_read_only_server_changes_nothing(running: RunningDaemon) -> None:
    async def work(client: McpClient) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(Exception, match="no tool 'memory_forget'"):
            await client.call_tool("memory_forget", {"ids": ["7q3hjwch"]})
        return names

    names = talk(running.environment, work, "auto", "--read-only")
    assert not {"memory_remember", "memory_forget", "memory_feedback"} & set(names)


def test_a_daemon_that_goes_and_comes_back_within_one_connection(home: dict[str, str]) -> None:
    daemon = RunningDaemon(home)

    async def work(client: McpClient) -> None:
        async def told(name: str, **given: Any) -> tuple[bool, str]:
            found = await client.call_tool(name, given)
            return found.is_error, found.content[0].text  # type: ignore[union-attr]

        assert await told("memory_recall", query="x") == (
            True,
            "the daemon is not running. start it: `memd up`.",
        )
        kept = await client.call_tool("memory_remember", {"text": "The lamp is on."})
        assert (kept.is_error, kept.structured_content["kept"]) == (False, True)  # type: ignore[index]
        await asyncio.to_thread(daemon.start)
        assert not (await told("memory_recall", query="lamp"))[0]
        await asyncio.to_thread(daemon.kill)
        assert (await told("memory_profile"))[0]
        await asyncio.to_thread(daemon.start)
        assert not (await told("memory_profile"))[0]
        daemon.halt()
        try:
            failed, text = await told("memory_recall", query="lamp")
        finally:
            daemon.go_on()
        assert failed and "no answer within 3,000 ms" in text
        assert not (await told("memory_recall", query="lamp"))[0], "a late answer is nobody's"

    talk(home, work)
    with daemon.client() as client:
        end = time.monotonic() + 90
        while not client.list().records and time.monotonic() < end:
            client.drain()  # does nothing while another process delivers; what that leaves stays for the next
            time.sleep(0.1)
        assert "lamp" in client.list().records[0].content
    daemon.terminate()


def test_disabled_memory_shows_no_tool_W14(running: RunningDaemon) -> None:
    async def work(client: McpClient) -> Any:
        return (await client.list_tools()).tools, (await client.list_resources()).resources

    assert talk({**running.environment, "MEMD_DISABLED": "1"}, work) == ([], [])


def test_servers_end_with_their_hosts_and_leave_nothing_P1(running: RunningDaemon, memd: Any) -> None:
    """Ended or killed, by `memd mcp` as hosts start it: no process and no descriptor of the daemon stays."""
    assert running.process is not None
    descriptors = Path(f"/proc/{running.process.pid}/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list descriptors")
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    line = json.dumps({**request, "params": {"name": "memory_profile", "arguments": {}}}).encode() + b"\n"
    running.settle()

    def sockets() -> int:
        with contextlib.suppress(OSError):  # one was closed just now
            return sum(os.readlink(each).startswith("socket:") for each in descriptors.iterdir())
        return sockets()

    before = sockets()
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "mcp"]
    for round in range(4):
        servers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=running.environment)
            for _ in range(5)
        ]
        for server in servers:
            assert server.stdin and server.stdout
            server.stdin.write(line)
            server.stdin.flush()
            assert b'"isError":false' in server.stdout.readline()
            if round % 2:
                server.kill()
            server.stdin.close()
        assert {server.wait(20) for server in servers} == ({-9} if round % 2 else {0})
        for server in servers:
            assert server.stdout
            server.stdout.close()
    end = time.monotonic() + 90
    while sockets() > before:
        assert time.monotonic() < end
        time.sleep(0.05)


# --- the wire -------------------------------------------------------------------------------------------------------
@pytest.fixture
def server(here: Places) -> Iterator[Server]:
    """A server of which no daemon runs."""
    with Client(here) as client:
        yield Server(client, "/")


def answer(server: Server, message: object) -> Any:
    told = server.answer(json.dumps(message).encode())
    return json.loads(told) if told else None


def test_each_generation_is_agreed_on_in_its_own_way(server: Server) -> None:
    def begin(version: str) -> Any:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        return answer(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})["result"]

    assert [begin(each)["protocolVersion"] for each in ("2024-11-05", "2025-06-18", "2099-01-01")] == [
        "2024-11-05",
        "2025-06-18",
        "2025-11-25",
    ]
    assert answer(server, {"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    listed = answer(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})["result"]
    assert set(listed) == {"tools"}, "older hosts refuse what they do not know"
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    modern = answer(server, {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": meta})["result"]
    assert (modern["resultType"], modern["cacheScope"], modern["ttlMs"]) == ("complete", "private", 0)
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}}
    error = answer(server, {"jsonrpc": "2.0", "id": 4, "method": "server/discover", "params": meta})["error"]
    assert error["code"] == -32022 and "2026-07-28" in error["data"]["supported"]


def test_every_wrong_message_is_answered_with_what_is_wrong(server: Server) -> None:
    assert json.loads(server.answer(b"{"))["error"]["code"] == -32700
    assert answer(server, 7)["error"]["code"] == -32600
    assert answer(server, {"jsonrpc": "2.0", "id": 1})["error"]["code"] == -32600
    assert answer(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/fly"})["error"]["code"] == -32601
    assert answer(server, {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []})["error"]["code"] == -32602
    wrong = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search"}}
    assert "memory_recall" in answer(server, wrong)["error"]["message"]
    wrong = {"jsonrpc": "2.0", "id": "a", "method": "resources/read", "params": {"uri": "memory://else"}}
    assert answer(server, wrong)["error"]["code"] == -32002
    assert answer(server, {"jsonrpc": "2.0", "id": 9, "result": {}}) is None
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"}]
    assert answer(server, batch) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(["tools/call", "tools/list", "initialize", "server/discover", "resources/read", "ping"])
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers(), "method": METHODS},
    optional={"params": st.fixed_dictionaries({}, optional={
        "name": st.sampled_from([tool.name for tool in TOOLS]), "arguments": JSON, "_meta": JSON, "uri": JSON})},
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(message=MESSAGES | JSON)
def test_whatever_is_sent_is_answered_once_and_the_server_goes_on(message: Any, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.getbasetemp() / "nobody"
    places = Places(data=folder, state=folder, config=folder, run=folder)
    with Client(places) as client:
        told = answer(Server(client, "/"), message)
        if isinstance(message, dict) and "id" in message and "method" in message:
            assert told["id"] == message["id"] and ("result" in told) != ("error" in told)
            assert told.get("error", {}).get("code") != -32603 or "daemon" in told["error"]["message"]
        assert "result" in answer(Server(client, "/"), {"jsonrpc": "2.0", "id": 1, "method": "ping"})


# --- clients in other languages --------------------------------------------------------------------------------------
NODE = """
import {Client} from "@modelcontextprotocol/sdk/client/index.js";
import {StdioClientTransport} from "@modelcontextprotocol/sdk/client/stdio.js";
const [command, ...args] = process.argv.slice(2);
const client = new Client({name: "test", version: "1"});
await client.connect(new StdioClientTransport({command, args, env: process.env}));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const told = await client.callTool({name: "memory_recall", arguments: {query: "tabs or spaces"}});
console.log(JSON.stringify({tools, told}));
await client.close();
"""


def node_modules() -> Path | None:
    """The folder of node packages that NODE_PATH names, if the SDK is in it: it is not ours to install."""
    folder = Path(os.environ.get("NODE_PATH") or "/nowhere")
    return folder if (folder / "@modelcontextprotocol/sdk").is_dir() else None


@pytest.mark.skipif(not shutil.which("node") or not node_modules(), reason="NODE_PATH has no @modelcontextprotocol/sdk")
def test_the_official_typescript_client(running: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(node_modules() or "")
    (tmp_path / "try.mjs").write_text(NODE)
    command = ["node", str(tmp_path / "try.mjs"), *COMMAND]
    done = subprocess.run(command, env=running.environment, capture_output=True, text=True, timeout=60, check=True)
    told = json.loads(done.stdout)
    assert told["tools"] == [tool.name for tool in TOOLS]
    assert "tabs over spaces" in told["told"]["content"][0]["text"]


@pytest.mark.skipif(not node_modules(), reason="NODE_PATH has no @modelcontextprotocol/inspector")
def test_the_inspectors_command_line(running: RunningDaemon) -> None:
    inspector = (node_modules() or Path()) / ".bin/mcp-inspector"
    if not inspector.exists():
        pytest.skip("NODE_PATH has no @modelcontextprotocol/inspector")
    beside = str(Path(sys.executable).with_name("memd"))
    command = [str(inspector), "--cli", beside, "mcp", "--method", "tools/call", "--tool-name", "memory_recall"]
    command += ["--tool-arg", "query=tabs or spaces"]
    done = subprocess.run(command, env=running.environment, capture_output=True, text=True, timeout=60, check=True)
    assert "tabs over spaces" in json.loads(done.stdout)["content"][0]["text"]
