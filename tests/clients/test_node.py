"""The client for Node against a real daemon: calls, errors, deadlines, the spool, secrets (U7, W10, W14, P-18)."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from memd.clients.bench.write.secret_matrix import cases
from memd.clients.node import FOLDER
from memd.clients.node.generated_files import generated_files
from memd.clients.python.folder import client_gate
from memd.protocol.event import Origin, Ran, Said, ToolCalled, Wrote
from memd.protocol.places import places
from memd.protocol.private import without_private
from memd.protocol.redact import redact
from memd.protocol.request import AnyRequest, Capture, Remember
from memd.protocol.secret_gate import KEY_BYTES, KEY_FILE
from memd.protocol.wire import decode_request, encode_request
from tests.protocol.test_redact import SECRETS

AT = "2026-03-04T18:30:00+01:00"
NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="there is no node on this machine")
HEAD = f"""
import {{ Client, MemdError }} from {json.dumps(str(FOLDER / "client.js"))};
const client = new Client(globalThis.options ?? {{}});
const refused = async (work) => {{ try {{ await work(); return "" }} catch (error) {{ return error.code }} }};
globalThis.folder = {json.dumps(FOLDER.as_uri() + "/")};
const say = (value) => console.log(JSON.stringify(value));
"""


@pytest.fixture
def node(home: dict[str, str]) -> Callable[..., Any]:
    """Runs a module; what it said, as JSON."""

    def run(code: str, **changes: str) -> Any:
        done = subprocess.run(
            [NODE, "--input-type=module", "-"],
            input=HEAD + code,
            env={**home, "PATH": f"{Path(sys.executable).parent}:{home['PATH']}", **changes},
            cwd="/tmp",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_generated_files_are_those_of_the_protocol_P18_U8() -> None:
    for name, content in generated_files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == content, "run `python -m memd.clients.node`"


@needs_node
def test_each_request_has_exactly_one_method_U8(node: Callable[..., Any]) -> None:
    methods = node("""
        const { METHODS } = await import(new URL("requests.js", globalThis.folder));
        const names = Object.getOwnPropertyNames(Client.prototype).filter((name) => !Object.hasOwn(METHODS, name));
        say({ requests: Object.values(METHODS).map((row) => row[0]), names,
              present: Object.keys(METHODS).every((name) => typeof Client.prototype[name] === "function") });
    """)
    assert sorted(methods["requests"]) == sorted(str(each.__struct_config__.tag) for each in AnyRequest.__args__)
    assert methods["present"]
    assert set(methods["names"]) == {"constructor", "disabled", "close", "ask", "captureOrSpool", "rememberOrSpool"}


@needs_node
def test_many_calls_at_once_and_the_process_ends_by_itself_U7(daemon: Any, node: Callable[..., Any]) -> None:
    told = node("""
        const texts = [...Array(20).keys()].map((n) => `The lamp${n} is in room${n}.`);
        const kept = await Promise.all(texts.map((text) => client.remember(text)));
        const found = await Promise.all(kept.map((each) => client.get(each.record.id)));
        const long = await refused(() => client.capture({ host: "h", session: "s" }, [{ event: "said", turn: "1",
            at: "2026-03-04T18:30:00+01:00", role: "user", text: "x".repeat(5_000_000) }]));
        const hits = (await client.recall("where is lamp7")).hits;
        say({ texts: found.map((each) => each.content), hit: hits[0].record.content,
              profile: (await client.profile()).text.includes("lamp"),
              missing: await refused(() => client.get("nothing")),
              wrong: await refused(() => client.ask("recal")), long, pid: (await client.status()).pid });
    """)
    assert told["texts"] == [f"The lamp{n} is in room{n}." for n in range(20)]
    assert told["hit"] == "The lamp7 is in room7." and told["profile"] and told["pid"] == daemon.process.pid
    assert (told["missing"], told["wrong"], told["long"]) == ("not_found", "unknown_request", "too_large")


@needs_node
def test_while_the_daemon_is_down_it_spools_and_the_daemon_takes_it_W10(
    home: dict[str, str], node: Callable[..., Any]
) -> None:
    from tests.conftest import RunningDaemon

    secret = SECRETS["github-token"]
    told = node(f"""
        const kept = await client.rememberOrSpool("The lamp is in the attic; {secret} <private>and mine</private>");
        say({{ kept, down: await refused(() => client.status()) }});
    """)
    assert told["kept"]["spooled"] and told["down"] == "daemon_down"
    (file,) = (Path(home["MEMD_HOME"]) / "state" / "spool").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and file.suffix == ".lines"
    assert secret not in file.read_text() and "mine" not in file.read_text()
    running = RunningDaemon({**home, "MEMD_SPOOL_S": "0.1"})
    running.start()
    try:
        with running.client() as client:
            end = time.monotonic() + 90
            while not (records := client.list().records) and time.monotonic() < end:
                time.sleep(0.1)
            assert records[0].content == "The lamp is in the attic; [redacted:github-token] [private]"
        for _ in range(400):
            if not file.exists():  # its process is gone, so is its file
                break
            node("say(1)")
        assert not file.exists()
    finally:
        running.terminate()


@needs_node
def test_a_stopped_daemon_costs_the_deadline_and_the_capture_is_kept(daemon: Any, node: Callable[..., Any]) -> None:
    daemon.halt()
    try:
        told = node("""
            client.deadlineMs = 200;
            const at = "2026-03-04T18:30:00+01:00";
            const event = { event: "said", turn: "1", at, role: "user", text: "I use vim." };
            const began = performance.now();
            const late = await refused(() => client.recall("x"));
            const took = performance.now() - began;
            say({ late, took, kept: await client.captureOrSpool({ host: "h", session: "s" }, [event]) });
        """)
    finally:
        daemon.go_on()
    assert told["late"] == "deadline_exceeded" and 190 < told["took"] < 5000
    assert told["kept"]["spooled"]


@needs_node
def test_disabled_it_does_nothing_W14(home: dict[str, str], node: Callable[..., Any]) -> None:
    told = node("say([await client.recall('x'), await refused(() => client.remember('x'))])", MEMD_DISABLED="1")
    assert told[0]["abstained"] and told[1] == "disabled"
    assert list(Path(home["MEMD_HOME"]).iterdir()) == []


def spooled(home: dict[str, str], node: Callable[..., Any], requests: Sequence[Capture | Remember]) -> list[Any]:
    """The requests as the client stores them while the daemon is down."""
    sent = [json.loads(encode_request(each, "json")) for each in requests]
    waits = node(f"""
        const sent = {json.dumps(sent)};
        say(await Promise.all(sent.map((each) => each.request === "capture"
            ? client.captureOrSpool(each.origin, each.events) : client.rememberOrSpool(each.text, each.origin))));
    """)
    assert all(each["spooled"] for each in waits)
    (file,) = places(home, os.getuid()).spool.iterdir()
    return [decode_request(line) for line in file.read_bytes().splitlines()]


def said(texts: Iterable[str]) -> Capture:
    events = [Said(turn=str(number), at=AT, role="user", text=text) for number, text in enumerate(texts)]
    return Capture(origin=Origin(host="h", session="s"), events=tuple(events))


@needs_node
def test_a_spool_holds_no_secret_that_the_python_client_takes_out_P18(
    home: dict[str, str], node: Callable[..., Any]
) -> None:
    texts = [f"a {secret} b" for secret in SECRETS.values()] + [case.text for case in cases()]
    texts += ["the token budget is 500", "bearer " + "a" * 30, "token: ${TOKEN}"]
    texts += ["a <private>b <PRIVATE>c</private> d</private> e", "x <private/> y", "open <private> z", "</private> a"]
    assert len(texts) > 2000
    (capture,) = spooled(home, node, [said(texts)])
    assert [event.text for event in capture.events] == [redact(without_private(text))[0] for text in texts]


@needs_node
def test_no_field_of_a_spooled_request_holds_a_secret_P18(home: dict[str, str], node: Callable[..., Any]) -> None:
    state = places(home, os.getuid()).state
    state.mkdir(mode=0o700)
    (state / KEY_FILE).write_bytes(b"k" * KEY_BYTES)
    secret, other = SECRETS["github-token"], SECRETS["aws-access-key"]
    origin = Origin(host="h", session=f"s/{secret}", cwd=f"/src/{secret}/x", title=f"Use {secret}", agent=other)
    events = (
        ToolCalled(turn=secret, at=AT, name="Bash", arguments=f'{{"command": "mysql -phunter2horse {other}"}}'),
        Ran(turn="2", at=AT, command="export DB_PASSWORD=hunter2horse"),
        Wrote(turn="3", at=AT, path=f"/src/{secret}", text="password: hunter2horse"),
    )
    requests = [Capture(origin=origin, events=events), said(["one"]), said(["two"])]
    told = spooled(home, node, requests)
    assert told == [client_gate(state).spooled(request) for request in requests]
    kept = "".join(file.read_text() for file in (state / "spool").iterdir())
    assert not any(each in kept for each in (secret, other, "hunter2horse"))


@needs_node
def test_without_memd_nothing_is_spooled_and_the_caller_is_told_P18(
    home: dict[str, str], node: Callable[..., Any]
) -> None:
    told = node("""
        const other = new Client({ program: "/nowhere/memd" });
        say([await refused(() => other.rememberOrSpool("one")), await refused(() => other.captureOrSpool({}, []))]);
    """)
    assert told == ["unavailable", "unavailable"]
    assert list(places(home, os.getuid()).spool.iterdir()) == []
    assert node("say(await refused(() => client.captureOrSpool({ host: 1 }, [])))") == "invalid_request"


def test_what_is_exported_has_a_type_U7() -> None:
    types = (FOLDER / "client.d.ts").read_text(encoding="utf-8")
    code = (FOLDER / "client.js").read_text(encoding="utf-8")
    for name in ("Client", "MemdError", "now", "places", "program"):
        assert name in types and name in code


@needs_node
def test_a_pass_in_the_environment_is_used_and_spools_nothing_A1(
    daemon: Any, home: dict[str, str], node: Callable[..., Any]
) -> None:
    with daemon.client() as client:
        token = client.grant("ci", pools=["personal"]).token
    code = """
    const read = await refused(() => client.recall("tabs"));
    const write = await refused(() => client.rememberOrSpool("I prefer tabs."));
    client.close(); say([read, write]);
    """
    assert node(code, MEMD_PASS=token) == ["", "denied"]
    assert node(code, MEMD_PASS="") == ["denied", "denied"]
    daemon.terminate()
    assert node(code, MEMD_PASS=token)[1] == "daemon_down"
    assert not list(places(home, os.getuid()).spool.glob("*.lines"))
