"""The gate: whatever a client sends, in any field of any request, no secret reaches a file of the home (W5, P-18)."""

import base64
import itertools
import os
import random
import string
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
import zmq

from memd.clients.mcp.calls import Calls
from memd.clients.mcp.tools import RememberArguments
from memd.clients.python import Client
from memd.clients.python.spool_writer import Spool
from memd.daemon.server.log_format import CleanFormatter
from memd.protocol.block import plain
from memd.protocol.errors import InvalidRequest, MemdError
from memd.protocol.event import (
    AnyEvent,
    Noted,
    Origin,
    Ran,
    Repository,
    Said,
    SessionEnded,
    SessionStarted,
    ToolCalled,
    Wrote,
)
from memd.protocol.message_texts import rewritten
from memd.protocol.record import Provenance, Record, Span
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import AnyRequest, Capture, ImportRecords, Remember, Request, Stop
from memd.protocol.secret_gate import SecretGate, without_userinfo
from memd.protocol.wire import encode_request, problem
from memd.stages.secrets.scan import redact
from tests.conftest import RunningDaemon

AT = "2026-03-10T09:00:00+01:00"
GATE = SecretGate(redact, bytes(32))
ALPHANUMERIC = string.ascii_letters + string.digits
"""Secrets are built of parts, so that no scanner takes this file for a leak."""

FORMS: tuple[Callable[[Callable[[int], str]], str], ...] = (
    lambda part: "gh" + "p_" + part(36),
    lambda part: "gh" + "s_" + part(36),
    lambda part: "github" + f"_pat_{part(22)}_{part(59)}",
    lambda part: "gl" + "pat-" + part(20),
    lambda part: "sk" + "_live_" + part(24),
    lambda part: "AI" + "za" + part(35),
    lambda part: "np" + "m_" + part(36),
    lambda part: "py" + "pi-AgEIcHlwaS5vcmc" + part(60),
    lambda part: "sk" + f"-ant-api03-{part(93)}AA",
    lambda part: "AK" + "IA" + "".join(c for c in part(400).upper() if c in string.ascii_uppercase + "234567")[:16],
)


def secrets(count: int, seed: int) -> list[str]:
    """Secrets of the public forms, in turn."""
    chance = random.Random(seed)
    forms = itertools.cycle(FORMS)
    return [next(forms)(lambda n: "".join(chance.choices(ALPHANUMERIC, k=n))) for _ in range(count)]


def written_forms(secret: str) -> Iterator[bytes]:
    """The bytes of a secret: raw, UTF-16, hexadecimal, and base64 at each of its three offsets."""
    raw = secret.encode()
    yield from (raw, secret.encode("utf-16-le"), secret.encode("utf-16-be"), raw.hex().encode())
    for offset in range(3):
        yield base64.b64encode(bytes(offset) + raw)[4 * (offset > 0) : -4]


def files_with(folder: Path, wanted: list[str]) -> list[str]:
    """Every file below a folder that holds one of these secrets in any form, also inside of a block of a log."""
    forms = [(secret, form) for secret in wanted for form in written_forms(secret)]
    contents = [(path, plain(path.read_bytes())) for path in folder.rglob("*") if path.is_file()]
    return [f"{path}: {secret}" for path, content in contents for secret, form in forms if form in content]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon whose temporary folder is below that of the test, too."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    variables = {"MEMD_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    daemon = RunningDaemon({**os.environ, **variables})
    daemon.start()
    yield daemon
    if daemon.process is not None and daemon.process.poll() is None:
        daemon.terminate()


# --- every text of every request ---------------------------------------------------------------------------------
SIMPLE = {
    "at": AT, "said_at": AT, "learned_at": AT, "pool": "personal", "host": "h", "session": "s", "document": "h:s",
    "id": "0123456789abcdefghjkmnpqrs", "root": "/nowhere", "cwd": "/nowhere", "subject": "ci", "agent": "bot",
    "text": "The lamp stands in the hall.", "content": "The lamp stands in the hall.", "name": "idle_s",
    "query": "lamp in the hall", "turn": "t", "folder": "/nowhere", "kind": "added", "source": "h:s",
}  # fmt: skip
"""Values of fields that let the rest of a request reach its handler; other texts are empty."""


def full(hint: Any, name: str = "") -> Any:
    """Return a value of a type in which each list has an item and each text is `?NAME`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return full(arguments[0], name)
    if origin in (Union, types.UnionType):
        return full(next(kind for kind in arguments if kind is not type(None)), name)
    if origin is Literal:
        return arguments[0]
    if origin is tuple:
        return (full(arguments[0], name),)
    if origin is dict:
        return {full(arguments[0], name): full(arguments[1], name)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = msgspec.structs.fields(hint)
        return hint(**{field.name: full(field.type, field.name) for field in fields if field.name not in ("v", "rid")})
    return f"?{name}" if hint is str else {int: 1, float: 1.5, bool: False, bytes: b""}[hint]


def variants(request: Any) -> Iterator[Callable[[str], Any]]:
    """Yield, for each text of a request, the function that puts a secret there and simple values elsewhere."""
    count = itertools.count()
    rewritten(request, lambda owner, name, words: f"{next(count)}" if words.startswith("?") else words)
    for chosen in range(next(count)):

        def variant(secret: str, chosen: int = chosen) -> Any:
            numbers = itertools.count()

            def change(owner: type, name: str, words: str) -> str:
                if not words.startswith("?"):
                    return words
                if next(numbers) == chosen:
                    return secret
                value = SIMPLE.get(name, "") if name != "token" else ""
                return f"{value}{secret[-9:]}" if name == "turn" else value

            return rewritten(request, change)

        yield variant


def filled_requests() -> Iterator[Any]:
    """Yield each request with every text filled; a capture once for each kind of event."""
    for kind in get_args(AnyRequest):
        if kind is Capture:
            for event in get_args(AnyEvent):
                yield Capture(origin=full(Origin), events=(full(event),))
        elif kind is not Stop:
            yield full(kind)


@pytest.mark.slow
def test_no_text_of_any_request_reaches_a_file_of_the_home_P18(running: RunningDaemon, tmp_path: Path) -> None:
    requests = list(filled_requests())
    makers = [maker for request in requests for maker in variants(request)]
    assert {type(request) for request in requests} == {*get_args(AnyRequest)} - {Stop} and len(makers) > 250
    given = secrets(len(makers), seed=1)
    answers: list[str] = []
    with running.client() as client:
        for maker, secret in zip(makers, given, strict=True):
            message = maker(secret)
            if getattr(message, "token", "") == secret:
                continue  # a pass is a secret itself, and never stored
            try:
                answers.append(str(client.ask(message, msgspec.Raw)))
            except MemdError as error:
                answers.append(f"{error.message} {error.hint}")
    said = "\n".join(answers)
    assert [secret for secret in given if secret in said] == []
    running.terminate()
    assert files_with(tmp_path, given) == []


def test_a_field_that_nobody_named_is_covered_P18() -> None:
    class Later(Request, tag="later", frozen=True, kw_only=True):
        """A request of a later version."""

        remarks: dict[str, tuple[str, ...]]

    (secret,) = secrets(1, seed=2)
    clean = GATE.request(Later(remarks={secret: (f"it is {secret}", "fine")}))
    assert secret not in str(clean) and "fine" in str(clean)


# --- identifiers -------------------------------------------------------------------------------------------------
def test_an_identifier_keeps_its_shape_and_the_same_secret_gives_the_same_name_P18() -> None:
    first, second = secrets(2, seed=3)
    one, again, other = (GATE.identifier(f"/home/me/{secret}/src") for secret in (first, first, second))
    assert one == again != other and one.startswith("/home/me/redacted-") and one.endswith("/src")
    assert GATE.identifier(one) == one, "a name that memd gave out leads to the same thing"
    assert SecretGate(redact, bytes([1] * 32)).identifier(first) != GATE.identifier(first), "another home, another name"
    origin = GATE.origin(Origin(host="pi", session=first))
    assert origin.document == GATE.identifier(f"pi:{first}") and origin.host == "pi"


@pytest.mark.parametrize("secret", secrets(len(FORMS), seed=4))
def test_a_secret_is_found_in_any_part_of_an_identifier_P18(secret: str) -> None:
    for name in (secret, f"t-{secret}", f"{secret}:12", f"a/{secret}/b", f"h:{secret}", f"https://host/{secret}.git"):
        assert secret not in GATE.identifier(name), name


@pytest.mark.parametrize(
    ("remote", "stored"),
    [
        ("https://user:token@host.org/me/it.git", "https://host.org/me/it.git"),
        ("https://token@host.org:8443/me/it", "https://host.org:8443/me/it"),
        ("https://user:to@ken:x@host.org/me", "https://host.org/me"),
        ("https://user:to/ken@host.org/me", "https://host.org/me"),
        ("ssh://git:pw@host.org/me/it", "ssh://host.org/me/it"),
        ("git@host.org:me/it.git", "git@host.org:me/it.git"),
        ("https://host.org/@scope/it", "https://host.org/@scope/it"),
        ("/srv/git/it.git", "/srv/git/it.git"),
    ],
)
def test_a_remote_is_stored_without_user_and_password_P18(remote: str, stored: str) -> None:
    assert without_userinfo(remote) == stored
    origin = GATE.origin(Origin(host="h", session="s", repository=Repository(remote=remote)))
    assert origin.repository is not None and origin.repository.remote == stored


def test_an_error_is_bounded_and_shows_no_control_characters_P18() -> None:
    (secret,) = secrets(1, seed=5)
    shown = problem(GATE.error(InvalidRequest(f"no {secret}\x1b[2J\r\u202e" + "x" * 100_000, hint=secret)))
    assert secret not in str(shown) and len(shown.message) <= 500
    assert not set("\x1b\r\u202e") & set(shown.message)


def test_a_log_line_quotes_no_message_of_an_error_P18() -> None:
    words = "/".join(("words", "of", "a", "request"))
    try:
        try:
            raise KeyError(words)
        except KeyError as cause:
            raise ValueError(words) from cause
    except ValueError as error:
        told = CleanFormatter().formatException((ValueError, error, error.__traceback__))
    assert told.index("KeyError") < told.rindex("ValueError") and "test_secret_gate" in told and words not in told


# --- sixty secrets, by all ways in -------------------------------------------------------------------------------
class Ways:
    """The ways by which a text reaches memd. Each takes one secret and a number that no other call has."""

    def __init__(self, running: RunningDaemon, client: Client, folder: Path) -> None:
        self.running, self.client, self.folder = running, client, folder
        self.record = client.remember("The lamp stands in the hall.").record.id

    def _event(self, event: AnyEvent, **origin: Any) -> None:
        self.client.capture(Origin(**{"host": "h", "session": "ways", **origin}), [event])

    def said(self, secret: str, n: int) -> None:
        self._event(Said(turn=f"s{n}", at=AT, role="user", text=f"Use {secret} for it."))

    def answered(self, secret: str, n: int) -> None:
        self._event(Said(turn=f"a{n}", at=AT, role="assistant", text=f"I used {secret} for it."))

    def noted(self, secret: str, n: int) -> None:
        self._event(Noted(turn=f"n{n}", at=AT, text=f"It is {secret} here."))

    def wrote(self, secret: str, n: int) -> None:
        self._event(Wrote(turn=f"w{n}", at=AT, text=f"Set {secret} there."))

    def author(self, secret: str, n: int) -> None:
        self._event(Wrote(turn=f"wa{n}", at=AT, text="A change.", author=f"Ann <{secret}@host.org>"))

    def path(self, secret: str, n: int) -> None:
        self._event(Wrote(turn=f"wp{n}", at=AT, text="A change.", path=f"/srv/{secret}/notes.md"))

    def tool(self, secret: str, n: int) -> None:
        self._event(ToolCalled(turn=f"tc{n}", at=AT, name=secret, arguments=f"--with {secret}"))

    def command(self, secret: str, n: int) -> None:
        self._event(Ran(turn=f"r{n}", at=AT, command=f"deploy {secret}"))

    def reasons(self, secret: str, n: int) -> None:
        origin = {"session": f"ended{n}"}
        self._event(SessionStarted(turn="b", at=AT, reason=secret), **origin)
        self._event(SessionEnded(turn="e", at=AT, reason=secret), **origin)

    def turn(self, secret: str, n: int) -> None:
        self._event(Said(turn=f"{secret}-{n}", at=AT, role="user", text="Fine."))

    def session(self, secret: str, n: int) -> None:
        self._event(Said(turn="1", at=AT, role="user", text="Fine."), session=secret)

    def origin(self, secret: str, n: int) -> None:
        names = {"agent": secret, "cwd": f"/srv/{secret}", "title": f"With {secret}"}
        self._event(Said(turn="1", at=AT, role="user", text="Fine."), session=f"o{n}", **names)

    def repository(self, secret: str, n: int) -> None:
        hint = Repository(root=f"/srv/{secret}", remote=f"https://me:{secret}@host.org/me/it{n}", root_commit=secret)
        self._event(Said(turn="1", at=AT, role="user", text="Fine."), session=f"g{n}", repository=hint)

    def remember(self, secret: str, n: int) -> None:
        shown = self.client.remember(f"The key is {secret} today.").record
        assert secret not in str(shown), "the acknowledgement shows what is stored"

    def edit(self, secret: str, n: int) -> None:
        self.client.edit(self.record, f"The lamp {n} has {secret} on it.")

    def scope(self, secret: str, n: int) -> None:
        self.client.bind_scope(str(self.folder / f"{n}"), title=f"Orchard {secret}")

    def agent(self, secret: str, n: int) -> None:
        self.client.open_agent("bot", role=f"uses {secret}", perspectives=[secret[:40]])
        with pytest.raises(InvalidRequest):
            self.client.open_agent(secret[:64])

    def grant(self, secret: str, n: int) -> None:
        with pytest.raises(InvalidRequest):
            self.client.grant(secret, pools=["personal"])

    def pause(self, secret: str, n: int) -> None:
        self.client.pause(f"/srv/{secret}")

    def setting(self, secret: str, n: int) -> None:
        for name, value in (("ignored_folders", f'["/srv/{secret}"]'), (secret, "1")):
            with pytest.raises(InvalidRequest):
                self.client.put_setting(name, value)

    def delivery(self, secret: str, n: int) -> None:
        document = f"pi:{secret}"
        self.client.recall(f"lamp {secret}", document=document, agent=secret)
        shown = self.client.profile(document=document)
        self.client.printed(document, shown.rev)

    def proposal(self, secret: str, n: int) -> None:
        self.client.propose_forget([self.record], by=secret)

    def imported(self, secret: str, n: int) -> None:
        span = Span(f"h:{secret}", secret, 0, 5)
        source = Provenance(author=secret, source=f"h:{secret}", trust="user", spans=(span,), quote=secret, said_at=AT)
        record = Record(
            id=f"{n:026}", pool="personal", kind="note", content=secret, description=secret, provenance=source,
            key=secret, value=secret, tags=("note", secret), learnings={secret: secret},
        )  # fmt: skip
        self.client.import_records(ImportRecords(records=(ExportedRecord(record=record),)))

    def tool_call(self, secret: str, n: int) -> None:
        _, told = Calls(self.client, "/").call(RememberArguments(text=f"The key {n} is {secret}."))
        assert secret not in told

    def errors(self, secret: str, n: int) -> None:
        for call in (self.client.get, self.client.session, self.client.why, self.client.job):
            with pytest.raises(MemdError) as error:
                call(f"none/{secret}")
            assert secret not in error.value.message + error.value.hint

    def unreadable(self, secret: str, n: int) -> None:
        context = zmq.Context()
        with context.socket(zmq.DEALER) as dealer:
            dealer.connect(f"ipc://{self.running.places.socket}")
            for body in (
                f'{{"request": "{secret}"}}', f'{{"request": "get", "id": "x", "{secret}": 1}}',
                f'{{"request": "list", "limit": "{secret}"}}', secret,
            ):  # fmt: skip
                dealer.send(body.encode())
                assert dealer.poll(20_000) and secret.encode() not in dealer.recv()
        context.term()

    def spool(self, secret: str, n: int) -> None:
        event = Said(turn=f"{secret}/{n}", at=AT, role="user", text=f"Take {secret}.")
        origin = Origin(host="h", session=secret, cwd=f"/srv/{secret}", title=secret)
        Spool(self.running.places.spool, f"way{n}").append(Capture(origin=origin, events=(event,)))

    def lines(self, secret: str, n: int) -> None:
        folder = self.running.places.spool
        folder.mkdir(mode=0o700, exist_ok=True)
        late = Capture(origin=Origin(host="h", session=f"l{n}"), events=(Ran(turn=secret, at=AT, command=secret),))
        naive = Remember(text=secret, turn=secret, at="2026-03-10T09:00:00", origin=Origin(host="h", session="l"))
        rows = [encode_request(late, "json"), encode_request(naive, "json"), f'{{"broken": "{secret}'.encode()]
        ended = 10_000_000 + n  # above the largest process id: memd waits while the shell of a file runs
        (folder / f"bash-{ended}-x.lines").write_bytes(b"\n".join(rows) + b"\n")


WAYS = [name for name, value in vars(Ways).items() if callable(value) and not name.startswith("_")]


@pytest.mark.slow
def test_sixty_secrets_by_all_ways_in_leave_no_byte_in_any_file_P18(running: RunningDaemon, tmp_path: Path) -> None:
    assert len(WAYS) >= 25
    given = secrets(60, seed=7)
    with running.client() as client:
        ways = Ways(running, client, tmp_path)
        for number, (name, secret) in enumerate(itertools.product(WAYS, given)):
            getattr(ways, name)(secret, number)
        with tempfile.TemporaryDirectory() as outside:
            for number, secret in enumerate(given):
                Path(outside, f"{secret}.md").write_text(f"# Notes {number}\n\nWe keep {secret} for the orchard.\n")
            said = memd(running, "import", "markdown", outside)
            said += memd(running, "remember", " and ".join(given)) + memd(running, "show", given[0])
            said += memd(running, "config", "set", given[1], given[2]) + memd(running, "pause", "--folder", given[3])
        end = time.monotonic() + 60
        while left := list(running.places.spool.glob("*.lines*")):
            assert time.monotonic() < end, left
            time.sleep(0.05)
        shown = f"{client.status()} {client.sessions(limit=5000)} {client.grants()} {client.pools()}"
    assert [secret for secret in given if secret in shown] == []
    running.terminate()
    assert files_with(tmp_path, given) == []


def memd(running: RunningDaemon, *arguments: str) -> str:
    """What a command prints; it may fail."""
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", *arguments]
    done = subprocess.run(command, env=running.environment, check=False, capture_output=True, text=True, cwd="/")
    return done.stdout + done.stderr
