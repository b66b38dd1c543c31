"""What each surface may send: every surface with every request of the protocol (G1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest

from memd.clients.mcp import tools
from memd.clients.mcp.calls import Calls
from memd.clients.python import Client
from memd.daemon.projections.stores import Stores
from memd.daemon.server.startup import Daemon
from memd.daemon.services.access.passes import Passes
from memd.daemon.services.access.roles import AGENT_READS, AGENT_WRITES, MAY_SEND, Roles
from memd.daemon.services.service import Reader
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol import wire
from memd.protocol.corrections import Confirm, Correct, Decide, Pin, ProposeForget, Reopen
from memd.protocol.errors import Denied, InvalidRequest
from memd.protocol.event import Origin
from memd.protocol.governance import PublishPlaybook, SendPatch, TakePatches, TrustPi
from memd.protocol.ingestion import SummariseDocument
from memd.protocol.operation import PiTrusted, PolicySet
from memd.protocol.policy import AcceptPolicy, CheckPolicy, GetPolicy
from memd.protocol.recall import Feedback
from memd.protocol.reflection import Reflect
from memd.protocol.request import Forget, MoveRecords, Remember, Request, Stop, UseModel
from memd.protocol.request_fields import Surface
from memd.protocol.session import HandOver
from memd.protocol.settings import PutSetting
from memd.protocol.share import JudgeAuthor, OpenShare, TakePartition
from tests.conftest import RunningDaemon
from tests.daemon.test_dispatch import NAMES, REQUESTS, Recorded, daemon, example

__all__ = ["daemon"]

SURFACES: tuple[Surface, ...] = get_args(Surface)
OF_THE_USER: tuple[type[Request], ...] = (
    *(Decide, Reopen, Pin, Confirm, Correct, PutSetting, AcceptPolicy, GetPolicy, CheckPolicy, TakePatches, TrustPi),
    *(SendPatch, PublishPlaybook, Forget, MoveRecords, OpenShare, TakePartition, JudgeAuthor, UseModel, Stop),
)
"""What no agent, no hook and no pass may send, whatever else changes."""

TOKEN_S = 600
TEXT = "The gate opens at noon."


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("request_type", REQUESTS, ids=NAMES)
def test_a_handler_runs_only_for_a_surface_that_may_send_its_request_G1(
    daemon: Daemon, request_type: type[Request], surface: Surface
) -> None:
    recorded = Recorded(daemon)
    request = msgspec.structs.replace(example(request_type), surface=surface)
    if surface == "user" or request_type in MAY_SEND[surface]:
        recorded.send(request)
        assert recorded.handled == [request]
    else:
        with pytest.raises(Denied, match="may not send"):
            recorded.send(request)
        assert recorded.handled == []


@pytest.mark.parametrize("request_type", OF_THE_USER, ids=[each.__name__ for each in OF_THE_USER])
def test_only_the_user_decides_G1(daemon: Daemon, request_type: type[Request]) -> None:
    now = real_world().now
    passes = Passes(daemon._places.state / "pass.key", daemon._places.config / "pass_keys", now)
    token = passes.sign(Reader("g", "reviewer", (), (), now() + TOKEN_S * 10**6))
    for surface, carried in (("mcp", ""), ("hook", ""), ("user", token), ("mcp", token), ("hook", token)):
        recorded = Recorded(daemon)
        with pytest.raises(Denied):
            recorded.send(msgspec.structs.replace(example(request_type, carried), surface=surface))
        assert recorded.handled == [], surface


def test_the_table_names_every_surface_but_the_user_and_only_requests_that_exist() -> None:
    assert set(MAY_SEND) == set(SURFACES) - {"user"}
    assert all(allowed <= set(REQUESTS) for allowed in MAY_SEND.values())
    assert (
        AGENT_READS.isdisjoint(AGENT_WRITES)
        and {request for request in MAY_SEND["mcp"] if request not in AGENT_READS} == AGENT_WRITES
    )


def test_an_older_client_is_the_user_and_an_unknown_surface_is_no_request() -> None:
    assert wire.decode_request(b'{"request":"status"}').surface == "user"
    with pytest.raises(InvalidRequest):
        wire.decode_request(b'{"request":"status","surface":"panel"}')


# --- agents that only read -------------------------------------------------------------------------------------------
WRITES = {
    Remember: lambda: Remember(text=TEXT, turn="t", at="2026-01-01T00:00:00Z", origin=Origin(host="h", session="s")),
    ProposeForget: lambda: ProposeForget(ids=("id1",), by="mcp"),
    Feedback: lambda: Feedback(used=("id1",)),
    HandOver: lambda: HandOver(document="h:s", at="2026-01-01T00:00:00Z"),
    Reflect: lambda: Reflect(document="h:s", at="2026-01-01T00:00:00Z"),
    SummariseDocument: lambda: SummariseDocument(document="h:s"),
}


@dataclass
class Strict:
    """A daemon with a project where agents only read, and a client of an agent's tools."""

    daemon: RunningDaemon
    folder: Path
    pool: str = ""
    ids: dict[str, str] = field(default_factory=dict[str, str])

    def calls(self, client: Client) -> Calls:
        return Calls(client, str(self.folder))


@pytest.fixture
def strict(daemon_home: RunningDaemon, tmp_path: Path) -> Strict:
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / ".memd-id").write_text("orchard-0001\n")
    with daemon_home.client() as client:
        origin = Origin(host="cli", session="s", cwd=str(folder))
        said = Remember(text="The orchard deploys on Tuesdays.", turn="1", at="2026-01-01T00:00:00Z", origin=origin)
        kept = client.remember(said).record
        daemon_home.settle()
        pool = client.get(kept.id).pool
    daemon_home.terminate()
    stores = Stores(daemon_home.places.data, real_world(), registry.info())
    text = "version: 1\nlayers: {L3: {write_policy: capturer_only}}\n"
    stores.commit([PiTrusted(pool=pool), PolicySet(pool=pool, digest="x", text=text)])
    stores.close()
    (folder / ".pi").mkdir()
    (folder / ".pi" / "pi.config.yaml").write_text(text)
    daemon_home.start()
    return Strict(daemon_home, folder, pool, {"kept": kept.id})


@pytest.fixture
def daemon_home(home: dict[str, str]) -> Iterator[RunningDaemon]:
    running = RunningDaemon(home)
    running.start()
    yield running
    if running.process is not None and running.process.poll() is None:
        running.terminate()


def test_where_agents_only_read_a_tool_refuses_to_write_and_says_why_G1(strict: Strict) -> None:
    with Client(strict.daemon.places, 20_000, surface="mcp") as client:
        calls = strict.calls(client)
        assert strict.pool.startswith("project/")
        for attempt in (
            lambda: calls.remember(tools.RememberArguments(text=TEXT)),
            lambda: calls.remember(tools.RememberArguments(text=TEXT, pool="personal")),
            lambda: calls.forget(tools.ForgetArguments(ids=[strict.ids["kept"]])),
            lambda: calls.feedback(tools.FeedbackArguments(recall="", used=[strict.ids["kept"]])),
        ):
            with pytest.raises(Denied, match="agents only read the memory of orchard"):
                attempt()
        result, _ = calls.recall(tools.RecallArguments(query="When does the orchard deploy?"))
        assert result.memories, "it still reads"
        elsewhere = Calls(client, str(strict.folder.parent)).remember(tools.RememberArguments(text=TEXT))[0]
        assert elsewhere.id, "another folder has another policy"
    with strict.daemon.client() as user:
        origin = Origin(host="cli", session="s", cwd=str(strict.folder))
        assert user.remember(Remember(text=TEXT, turn="2", at="2026-01-01T00:00:00Z", origin=origin)).record.id


def test_the_spool_is_no_way_around_the_policy_G1(strict: Strict) -> None:
    strict.daemon.terminate()
    with Client(strict.daemon.places, 20_000, surface="mcp") as client:
        waiting = strict.calls(client).remember(tools.RememberArguments(text=TEXT))[0]
        assert waiting.kept
    spooled = b"".join(file.read_bytes() for file in strict.daemon.places.spool.iterdir())
    assert b"mcp" in spooled
    strict.daemon.start()
    strict.daemon.settle()
    with strict.daemon.client() as user:
        assert TEXT not in json.dumps([record.content for record in user.list(limit=500).records])


def test_a_write_concerns_the_pools_of_its_folder_session_and_records_G1(tmp_path: Path) -> None:
    asked: list[str] = []
    record = SimpleNamespace(pool="of the record")
    session = SimpleNamespace(opened=SimpleNamespace(project="of the session"))
    stores: Any = SimpleNamespace(
        records=SimpleNamespace(named=lambda id: record), sources=SimpleNamespace(session=lambda name: session)
    )
    policy: Any = SimpleNamespace(has_reading_agents=True, reading_agents=lambda pool: bool(asked.append(pool)))
    roles = Roles(stores, policy, lambda pool: pool, lambda cwd, repository: ("of the folder",))
    for request in AGENT_WRITES:
        asked.clear()
        make = WRITES.get(request)
        roles.check(msgspec.structs.replace(make() if make else example(request), surface="mcp"))
        assert set(asked) & {"of the record", "of the session", "of the folder"}, request
