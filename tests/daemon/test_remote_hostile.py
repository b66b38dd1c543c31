"""A remote model, its settings and its clock at their worst (W4): a real server, a real child process."""

import json
import shutil
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from memd.daemon.projections.stores import Stores
from memd.daemon.services.remote.budget import local_day
from memd.daemon.services.remote.call_messages import CallAnswer, RemoteTask
from memd.daemon.services.remote.call_process import CallProcess
from memd.daemon.services.remote.child import HttpCall
from memd.daemon.services.remote.dialects import content_of, statements_of
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import InvalidRequest, MemdError
from memd.protocol.operation import RemoteReserved, RemoteSettled
from tests.conftest import RunningDaemon
from tests.daemon.remote_server import (
    Behaviour,
    ModelServer,
    answered,
    bomb,
    endless,
    good,
    slow,
    statement,
)
from tests.daemon.test_remote import BEARING, LEDGER, QUICK, SQUEAK, Orchard, Served, finished, wait

KEY = "topsecretkeyfortests"
CLOVES = "The clove barrel in /srv/cloves/list.txt is meant for Ottilie alone."

Started = Callable[..., Orchard]


@pytest.fixture
def started(home: dict[str, str], tmp_path: Path) -> Iterator[Started]:
    """Orchards with settings of `[remote]`, as TOML."""
    daemons: list[RunningDaemon] = []

    def start(**rules: str) -> Orchard:
        table = ", ".join(
            f"{name} = {value}" for name, value in {"every_s": "0.1", "deadline_s": "10", **rules}.items()
        )
        daemons.append(RunningDaemon({**home, **QUICK, "MEMD_REMOTE": f"{{{table}}}"}))
        daemons[-1].start()
        return Orchard(daemons[-1], tmp_path / "orchard")

    yield start
    for daemon in daemons:
        if daemon.process is not None and daemon.process.poll() is None:
            daemon.terminate()


@pytest.fixture
def served() -> Iterator[Served]:
    servers: list[ModelServer] = []

    def serve(*behaviours: Behaviour, **options: Any) -> ModelServer:
        servers.append(ModelServer(*behaviours, **options))
        return servers[-1]

    yield serve
    for server in servers:
        server.close()


def called(server: ModelServer, **task: Any) -> CallAnswer:
    """The outcome of a call in this process."""
    fields = {"url": server.url, "dialect": "openai", "body": "{}", "deadline_s": 2.0, **task}
    return HttpCall(RemoteTask(**fields), time.monotonic).answer()


# --- answers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (endless(0.1), "timed out"),
        (endless(0, bytes(1 << 16)), "dropped"),
        (bomb, "taken"),
        (answered(b"[" * 100_000), "taken"),
        (answered(b'{"choices": [{"message": {"content": "\\ud800"}}]}'), "taken"),
        (answered(b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": Infinity}}'), "taken"),
    ],
    ids=["never ends", "too long", "gzip", "deep", "half a character", "endless count"],
)
def test_no_answer_takes_more_than_its_time_and_its_memory_W4(
    served: Served, behaviour: Behaviour, outcome: str
) -> None:
    begin = time.monotonic()
    answer = called(served(behaviour))
    assert (answer.outcome, len(answer.content) <= 1) == (outcome, True)
    assert answer.tokens == 0 and statements_of(answer.content) is None
    assert outcome != "timed out" or time.monotonic() - begin >= 2


def test_deep_lists_and_long_numbers_in_what_a_model_wrote_are_no_statements_W4() -> None:
    for content in ("[" * 500_000, '{"statements": ' * 90_000, '{"statements": [%s]}' % ("9" * 100_000), "\ud800"):
        read = statements_of(content)
        assert read is None or read[0] == []
    nested = b'{"choices": [{"message": {"content": ' + b"[" * 100_000
    assert content_of("openai", nested) == ("", 0)


def test_the_process_ends_a_server_that_sends_its_head_byte_by_byte_W4(served: Served) -> None:
    def drip(body: dict[str, Any]) -> Any:
        time.sleep(20)
        return 200, {}, b""

    call = CallProcess()
    task = RemoteTask(url=served(drip).url, dialect="openai", body="{}", connect_s=0.5, deadline_s=0.5)
    assert call.call(task, lambda: "").outcome == "timed out"
    call.end(for_good=True)
    assert call.call(task, lambda: "").outcome == "unsent"


def test_what_forbids_a_call_is_asked_when_the_process_is_ready_W4(served: Served) -> None:
    server = served(good())
    call = CallProcess()
    task = RemoteTask(url=server.url, dialect="openai", body="{}")
    assert call.call(task, lambda: "forgotten") == CallAnswer(outcome="unsent", problem="forgotten")
    assert not server.requests


# --- the key ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", [f"{KEY}\nx-evil: 1", f"{KEY} x", f"{KEY}\r\n\r\nGET /", f"{KEY}\0", f"{KEY}é"])
def test_a_key_with_line_breaks_is_not_sent_and_not_shown_W4(served: Served, tmp_path: Path, key: str) -> None:
    server, file = served(good()), tmp_path / "key"
    file.touch(0o600)
    file.write_bytes(key.encode())
    answer = called(server, key_file=str(file))
    assert (answer.outcome, server.requests) == ("unsent", [])
    assert KEY not in answer.problem


def processes() -> dict[Path, bytes]:
    """The command lines and environments of the user's processes."""
    texts: dict[Path, bytes] = {}
    for path in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
        try:
            texts[path] = path.read_bytes()
        except OSError:
            continue
    return texts


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are listed below /proc")
def test_the_key_is_in_no_process_list_log_status_backup_or_export_W4(
    started: Started, served: Served, tmp_path: Path
) -> None:
    server = served(slow(2.0))
    orchard = started()
    orchard.session("one", LEDGER)
    orchard.use(server)
    file = orchard.daemon.places.remote_key(server.host)
    file.parent.mkdir(mode=0o700)
    file.touch(0o600)
    file.write_text(f"{KEY}\n")
    orchard.consent()
    wait(lambda: server.at_once == 1)
    assert KEY.encode() in server.requests[0]
    listed = processes()
    assert any(b"remote.child" in text for text in listed.values())
    assert not [path for path, text in listed.items() if KEY.encode() in text]
    orchard.ended()
    program = [str(Path(sys.executable).with_name("memd"))]
    outputs = [
        subprocess.run([*program, *arguments], env=orchard.daemon.environment, capture_output=True, check=False).stdout
        for arguments in (
            ["status", "--json"],
            ["remote", "status", "--json"],
            ["backup", "--to", str(tmp_path / "backup")],
            ["export", "-o", str(tmp_path / "export.jsonl")],
        )
    ]
    assert all(outputs) and not [output for output in outputs if KEY.encode() in output]
    orchard.daemon.terminate()
    folders = [
        tmp_path / "backup",
        tmp_path / "export.jsonl",
        orchard.daemon.places.data,
        orchard.daemon.places.log.parent,
    ]
    files = [path for folder in folders for path in [folder, *folder.rglob("*")] if path.is_file()]
    assert files and not [path for path in files if path != file and KEY.encode() in path.read_bytes()]


# --- TLS --------------------------------------------------------------------------------------------------------------
def secure(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_an_unknown_certificate_is_refused_and_that_of_a_named_authority_taken_W4(
    started: Started, served: Served, tmp_path: Path
) -> None:
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    server = served(good(statement(SQUEAK)), tls=secure(authority, "127.0.0.1"))
    orchard = started()
    orchard.session("one", LEDGER, SQUEAK)
    orchard.use(server)
    orchard.consent()
    call = orchard.ended()[-1]
    with orchard.daemon.client() as client:
        summary = client.status().remote
    assert (call.outcome, call.tokens, server.requests) == ("unsent", 0, [])
    assert summary is not None and "a certificate that memd does not trust" in summary.state

    orchard.daemon.terminate()
    orchard.daemon.environment["MEMD_REMOTE"] = json.dumps({"x": str(file)}).replace(
        '{"x":', "{every_s = 0.1, ca_file ="
    )
    orchard.daemon.start()
    wait(lambda: "taken" in {call.outcome for call in orchard.calls()})
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize("name", ["elsewhere.example.org", "127.0.0.2"])
def test_a_certificate_of_another_server_is_refused_W4(served: Served, tmp_path: Path, name: str) -> None:
    authority, file = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    answer = called(served(good(), tls=secure(authority, name)), ca_file=str(file))
    assert answer.outcome == "unsent" and "does not trust" in answer.problem


def test_a_file_of_authorities_that_is_none_sends_nothing_W4(served: Served, tmp_path: Path) -> None:
    server = served(good())
    for words in (None, "no certificate"):
        file = tmp_path / f"{words}.pem"
        if words:
            file.write_text(words)
        answer = called(server, ca_file=str(file))
        assert (answer.outcome, server.requests) == ("unsent", []) and "ca_file" in answer.problem


# --- the choice -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "changed",
    [
        {"url": "http://192.0.2.7/v1"},
        {"url": "https://api.openai.com/v1", "provider": "openai", "trusted": True},
        {"model": "tiny\r\nx-evil: 1"},
        {"model": ""},
        {"provider": "ollama\nremote:evil"},
        {"dialect": "morse"},
        {"url": 7},
        None,
    ],
)
def test_a_choice_that_was_edited_to_nonsense_is_none_W4(
    started: Started, served: Served, changed: dict[str, Any] | None
) -> None:
    server = served(good())
    orchard = started()
    orchard.use(server)
    file = orchard.daemon.places.config / "remote.json"
    choice = json.loads(file.read_text())
    file.write_text("{" if changed is None else json.dumps({**choice, **changed}))
    with orchard.daemon.client() as client:
        assert client.remote().summary is None
        with pytest.raises(InvalidRequest):
            client.consent_remote("personal")
        client.use_remote(server.url, "tiny-1")
        assert client.remote().summary is not None


def test_a_models_name_has_no_line_break_W4(started: Started, served: Served) -> None:
    server, orchard = served(good()), started()
    for model in ("tiny\r\nx-evil: 1", " ", "\u202e"):
        with orchard.daemon.client() as client, pytest.raises(MemdError):
            client.use_remote(server.url, model)


# --- the day ----------------------------------------------------------------------------------------------------------
def test_a_server_that_counts_more_than_was_asked_ends_the_day_W4(started: Started, served: Served) -> None:
    server = served(good(statement(SQUEAK), tokens=10**9))
    orchard = started(daily_tokens="1000000")
    for name in ("one", "two", "three"):
        orchard.session(name, LEDGER, f"{SQUEAK} Noted in {name}.")
    orchard.use(server)
    orchard.consent()
    (call,) = orchard.ended()
    orchard.rest()
    assert call.tokens == 10**9 and len(server.requests) == 1
    orchard.daemon.kill()
    orchard.daemon.start()
    orchard.rest()
    with orchard.daemon.client() as client:
        summary = client.status().remote
    assert summary is not None and "do not suffice" in summary.state and len(server.requests) == 1


def test_tokens_count_for_the_day_of_their_reservation_whatever_the_clock_does_W4(tmp_path: Path) -> None:
    stores = Stores(tmp_path, real_world(), registry.info())
    before = int(datetime(2026, 3, 4, 23, 59, 50, tzinfo=UTC).astimezone().timestamp() * 1e6)
    days = [local_day(before), local_day(before + 86_400_000_000), local_day(before)]
    assert days[0] == days[2] < days[1]
    for number, day in enumerate(days):
        stores.commit(
            [RemoteReserved(id=f"{number}", day=day, tokens=100, reader="remote:a/b", document="a:b", sent=1, upto=1)]
        )
    stores.commit(
        [RemoteSettled(id="0", outcome="taken", tokens=250), RemoteSettled(id="1", outcome="refused", tokens=0)]
    )
    assert [stores.remote.day(day).tokens for day in days[:2]] == [350, 0]
    stores.close()
    shutil.rmtree(tmp_path / "projections")
    again = Stores(tmp_path, real_world(), registry.info())
    assert [again.remote.day(day).tokens for day in days[:2]] == [350, 0]
    again.close()


# --- what changes during a call ---------------------------------------------------------------------------------------
def test_words_that_are_forgotten_during_a_call_do_not_come_back_W4(started: Started, served: Served) -> None:
    go = threading.Event()

    def reply(body: dict[str, Any]) -> Any:
        go.wait(30)
        return good(statement(CLOVES), statement(LEDGER))(body)

    server = served(reply)
    orchard = started(deadline_s="40")
    orchard.session("one", LEDGER, SQUEAK, CLOVES)
    orchard.use(server)
    orchard.consent()
    wait(lambda: server.at_once == 1)
    with orchard.daemon.client() as client:
        finished(client, client.forget(query="/srv/cloves/list.txt"))
    go.set()
    orchard.ended()
    assert not [record for record in orchard.learnt() if "clove" in record.content]
    orchard.daemon.terminate()
    files = [path for path in orchard.daemon.places.data.rglob("*") if path.is_file()]
    assert not [path for path in files if b"clove barrel" in path.read_bytes()]


def test_an_answer_after_the_consents_end_brings_nothing_W4(started: Started, served: Served) -> None:
    server, orchard = served(slow(3.0), good(statement(LEDGER))), started()
    orchard.session("one", LEDGER)
    orchard.use(server)
    orchard.consent(days=1.5 / 86_400)
    (call,) = orchard.ended()
    assert (call.outcome, call.pointed, orchard.learnt()) == ("dropped", 0, [])


def test_a_consent_of_a_pool_that_joined_another_is_withdrawn_with_it_W4(
    started: Started, served: Served, tmp_path: Path
) -> None:
    server, orchard = served(good()), started()
    orchard.session("one", LEDGER)
    orchard.use(server)
    orchard.consent()
    orchard.ended()
    other = tmp_path / "vineyard"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    orchard.session("two", BEARING, cwd=str(other))
    with orchard.daemon.client() as client:
        new = next(pool.pool for pool in client.pools().pools if pool.title == "vineyard")
        client.bind_scope(str(orchard.folder), new, join=True)
    orchard.rest()
    assert len(server.requests) == 1, "the consent was for the pool that is no more"
    state = orchard.consent(new, withdraw=True)
    assert not [consent for consent in state.consents if consent.holds]


def test_a_part_that_the_server_refuses_does_not_hold_up_the_others_W4(started: Started, served: Served) -> None:
    def reply(body: dict[str, Any]) -> Any:
        if "stem leaf" in body["messages"][1]["content"]:
            return 413, {}, b"{}"
        return good(statement(LEDGER))(body)

    server, orchard = served(reply), started()
    orchard.session("one", LEDGER)
    orchard.session("long", "stem leaf root bark " * 300)
    orchard.use(server)
    orchard.consent()
    orchard.ended(3)
    orchard.use(server)  # ends the pause after three failures
    wait(lambda: "taken" in {call.outcome for call in orchard.calls()})
    assert [call.outcome for call in orchard.calls()] == ["taken", *["refused"] * 3]


def test_a_second_daemon_on_the_same_home_does_not_start_W4(started: Started, served: Served) -> None:
    server, orchard = served(slow(1.0)), started()
    orchard.session("one", LEDGER)
    orchard.use(server)
    orchard.consent()
    wait(lambda: server.at_once == 1)
    second = subprocess.run(
        [sys.executable, "-m", "memd.daemon"], env=orchard.daemon.environment, capture_output=True, check=False
    )
    assert second.returncode != 0
    orchard.ended()
    orchard.rest()
    assert server.most_at_once == 1 and len(server.requests) == 1
