"""The client for Node against a real daemon: calls, errors, deadlines, the spool, secrets (U7, W10, W14, P-18)."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.clients.node import FOLDER
from memd.clients.node.generated_files import generated_files
from memd.protocol.private import without_private
from memd.protocol.redact import redact
from memd.protocol.request import AnyRequest
from tests.protocol.test_redact import SECRETS

NODE = shutil.which("node") or ""
needs_node = pytest.mark.skipif(not NODE, reason="there is no node on this machine")
HEAD = f"""
import {{ Client, MemdError, redact, withoutPrivate }} from {json.dumps(str(FOLDER / "client.js"))};
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
            env={**home, **changes},
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
            end = time.monotonic() + 40
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


@needs_node
def test_it_takes_out_what_the_protocol_takes_out_P18(node: Callable[..., Any]) -> None:
    texts = [f"a {secret} b" for secret in SECRETS.values()]
    texts += [
        "DB_PASSWORD='hunter2hunter2' and postgres://ada:s3cr3t@db/x",
        "the token budget is 500",
        "bearer " + "a" * 30,
    ]
    texts += ["a <private>b <PRIVATE>c</private> d</private> e", "x <private/> y", "open <private> z", "</private> a"]
    told = node(f"say({json.dumps(texts)}.map((each) => [redact(each), withoutPrivate(each)]))")
    assert told == [[redact(each)[0], without_private(each)] for each in texts]


@needs_node
def test_it_takes_out_what_a_name_or_command_announces_P18(node: Callable[..., Any]) -> None:
    texts = ["DB_PASSWORD=*", "db: {password: '*'}", "mysql -u root -p* shop", "docker login -u ada -p * quay.example"]
    texts += ["deploy --password * --host db", "echo '*' | sudo -S apt update", "My password is *", "token: ${TOKEN}"]
    told = node(f"say({json.dumps([text.replace('*', 'hunter2horse') for text in texts])}.map(redact))")
    assert not any("hunter2horse" in text for text in told) and told[-1] == texts[-1]


def test_what_is_exported_has_a_type_U7() -> None:
    types = (FOLDER / "client.d.ts").read_text(encoding="utf-8")
    code = (FOLDER / "client.js").read_text(encoding="utf-8")
    for name in ("Client", "MemdError", "redact", "withoutPrivate", "now", "places"):
        assert name in types and name in code
