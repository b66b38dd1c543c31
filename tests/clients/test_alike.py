"""Every client asks alike: the same question with the same options has the same answer (U8, Q9)."""

import asyncio
import inspect
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import msgspec
import pytest

from memd.clients.cli import recall as cli
from memd.clients.mcp.server import Server
from memd.clients.mcp.tools import RecallArguments
from memd.clients.node import FOLDER
from memd.clients.python import AsyncClient
from memd.clients.python.client import now
from memd.protocol.event import Origin, Said
from memd.protocol.recall import LIMIT, Recall
from memd.protocol.record import TYPES
from tests.clients.conftest import memd_in
from tests.conftest import RunningDaemon, new_home

NODE = shutil.which("node") or ""
QUESTION = "Which lighthouse keeper trims the lamp?"
AT = "2026-03-04T18:30:00+01:00"
Answer = list[tuple[str, float]]
"""The texts of records and turns with their scores, best first."""


class Asked:
    """A daemon with memories, and moments between them."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon = daemon
        with daemon.client() as client:
            for number in range(7):
                client.remember(f"The lighthouse keeper number {number} trims the lamp at {number + 4}.", cwd="/")
            client.remember("We decided that the lighthouse keeper trims the lamp at dusk.", cwd="/")
            client.remember("The lighthouse keeper must never trim a burning lamp.", cwd="/")
            client.open_agent("critic")
            client.remember("The lighthouse lamp of the critic needs no keeper.", pool="agent/critic")
            daemon.settle()
            time.sleep(0.05)
            self.before = now()
            time.sleep(0.05)
            turns = [f"The keeper of lighthouse {number}, does she trim the lamp?" for number in range(5)]
            said = [Said(turn=str(number), at=AT, role="user", text=text) for number, text in enumerate(turns)]
            client.capture(Origin(host="t", session="s", cwd="/"), said)
            client.remember("The lighthouse keeper trims the lamp with new scissors.", cwd="/")
            daemon.settle()
            found = client.recall(QUESTION, cwd="/", perspective="sailor")
            client.feedback(found.recall, used=[found.hits[-1].record.id])
        daemon.terminate()  # an index scores turns a little differently until it has committed them
        daemon.start()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """One home for all options."""
    running = RunningDaemon(new_home(tmp_path_factory))
    running.start()
    yield Asked(running)
    running.terminate()


def _python(daemon: RunningDaemon, options: Mapping[str, Any]) -> Answer:
    with daemon.client() as client:
        reply = client.recall(QUESTION, cwd="/", **options)
    return _ordered([(hit.record.id, hit.score) for hit in reply.hits], [(t.quote, t.score) for t in reply.turns])


def _asynchronous(daemon: RunningDaemon, options: Mapping[str, Any]) -> Answer:
    async def ask() -> Answer:
        async with AsyncClient(daemon.places, deadline_ms=20_000) as client:
            reply = await client.recall(QUESTION, cwd="/", **options)
        return _ordered([(hit.record.id, hit.score) for hit in reply.hits], [(t.quote, t.score) for t in reply.turns])

    return asyncio.run(ask())


FLAGS = {"types": "--type", "pools": "--pool", "budget_tokens": "--budget"}
"""Options of the command line with another name than the request's field."""


def _command_line(daemon: RunningDaemon, options: Mapping[str, Any]) -> Answer:
    words: list[str] = []
    for name, value in options.items():
        flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
        values = cast("list[str]", value) if isinstance(value, list) else [value]
        words += [flag] if value is True else [word for each in values for word in (flag, str(each))]
    return _from_json(memd_in(daemon.environment)("recall", QUESTION, "--cwd", "/", "--json", *words).data)


def _node(daemon: RunningDaemon, options: Mapping[str, Any]) -> Answer:
    code = f"""
        import {{ Client }} from {json.dumps(str(FOLDER / "client.js"))};
        const options = {json.dumps({"cwd": "/", **options})};
        console.log(JSON.stringify(await new Client().recall({json.dumps(QUESTION)}, options)));
    """
    command = [NODE, "--input-type=module", "-"]
    told = subprocess.run(
        command, input=code, env=daemon.environment, capture_output=True, text=True, timeout=60, check=True
    )
    return _from_json(json.loads(told.stdout))


def _mcp(daemon: RunningDaemon, options: Mapping[str, Any]) -> Answer:
    result = _tool(daemon, options)
    assert not result["isError"], result
    found = result["structuredContent"]
    records = [(each["id"], each["score"]) for each in found["memories"]]
    return _ordered(records, [(each["text"], each["score"]) for each in found["turns"]])


def _tool(daemon: RunningDaemon, options: Mapping[str, Any]) -> Any:
    params = {"name": "memory_recall", "arguments": {"query": QUESTION, **options}}
    with daemon.client() as client:
        told = Server(client, "/").answer(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        )
    assert told is not None
    return json.loads(told)["result"]


def _from_json(found: Any) -> Answer:
    assert all(hit["record"]["type"] == hit["record"]["tags"][0] for hit in found["hits"])
    records = [(hit["record"]["id"], hit["score"]) for hit in found["hits"]]
    return _ordered(records, [(turn["quote"], turn["score"]) for turn in found["turns"]])


def _ordered(records: Answer, turns: Answer) -> Answer:
    return [(name, round(score, 3)) for name, score in (*records, *turns)]


CLIENTS: dict[str, Callable[[RunningDaemon, Mapping[str, Any]], Answer]] = {
    "asyncio": _asynchronous,
    "command line": _command_line,
    "mcp": _mcp,
    **({"node": _node} if NODE else {}),
}
OPTIONS: dict[str, Any] = {
    "limit": 3,
    "budget_tokens": 60,
    "threshold": 0.8,
    "types": ["decision", "convention"],
    "pools": ["personal"],
    "agent": "critic",
    "perspective": "sailor",
    "by_chance": True,
    "as_of": "2020-01-01T00:00:00Z",
    "believed_at": "",
    "deep": True,
}
"""Each option with a value; that of `believed_at` is the moment before the last memories."""


WIDE = {"limit": 50, "budget_tokens": 10_000}
"""With these, a choice by chance draws all."""

SAME = {"perspective", "by_chance", "deep"}
"""Options that give the same records and turns here."""


def test_without_options_the_answer_is_the_same_in_each_client_U8(asked: Asked) -> None:
    wanted = _python(asked.daemon, {})
    assert len(wanted) == LIMIT < len(_python(asked.daemon, WIDE))
    for client, ask in CLIENTS.items():
        assert ask(asked.daemon, {}) == wanted, client


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_question_has_the_same_answer_in_each_client_U8_Q9(name: str, asked: Asked) -> None:
    options = {**WIDE, name: OPTIONS[name] or asked.before}
    wanted = _python(asked.daemon, options)
    assert (wanted == _python(asked.daemon, WIDE)) == (name in SAME)
    for client, ask in CLIENTS.items():
        assert ask(asked.daemon, options) == wanted, client


def test_an_unknown_type_is_refused_with_the_types_U8(asked: Asked) -> None:
    told = memd_in(asked.daemon.environment)("recall", QUESTION, "--type", "decison")
    tool = _tool(asked.daemon, {"types": ["decison"]})
    listed = memd_in(asked.daemon.environment)("list", "--type", "decison")
    for text in (told.errors, listed.errors, tool["content"][0]["text"]):
        assert "'decison' is not a type" in text and all(name in text for name in TYPES)
    assert told.code and listed.code and tool["isError"]


def test_an_agent_without_a_memory_of_its_own_is_told_U8(asked: Asked) -> None:
    told = memd_in(asked.daemon.environment)("recall", QUESTION, "--agent", "nobody")
    assert "'nobody' has no memory" in told.errors
    assert "'nobody' has no memory" in _tool(asked.daemon, {"agent": "nobody"})["content"][0]["text"]


def test_the_defaults_are_those_of_the_request_U8() -> None:
    defaults = {field.name: field.default for field in msgspec.structs.fields(Recall)}
    arguments = msgspec.structs.asdict(RecallArguments(query="x"))
    assert set(OPTIONS) < arguments.keys() < defaults.keys()
    for name in OPTIONS:
        value = arguments[name]
        assert (tuple(value) if isinstance(value, list) else value) == defaults[name], name
    shown = {name: parameter.default for name, parameter in inspect.signature(cli.recall).parameters.items()}
    for name in OPTIONS:
        option = FLAGS.get(name, name).removeprefix("--")
        assert (shown[option] or defaults[name]) == defaults[name] and bool(shown[option]) == bool(defaults[name]), name
