"""A secret that memd found once is redacted wherever it is said again, without what announced it (W5, P-18)."""

import itertools
import json
import random
import shlex
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from memd.clients.python import Client
from memd.protocol.block import plain
from memd.protocol.errors import NotFound
from memd.protocol.event import AnyEvent, Noted, Origin, Ran, Said, ToolCalled, Wrote
from memd.protocol.secret_gate import SecretGate
from memd.stages.secrets.known import ALIKE, KnownSecrets
from memd.stages.secrets.scan import redact
from tests.conftest import RunningDaemon
from tests.daemon.test_secret_gate import files_with, memd
from tests.daemon.test_secrets import finished

AT = "2026-03-10T09:00:00+01:00"
ORIGIN = Origin(host="h", session="again")
NOUNS = "tulip harbor falcon maple copper lantern meadow saddle".split()

KINDS: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: "".join(chance.sample(string.ascii_letters, 6)) + f"{chance.randint(10, 99)}#",
    lambda chance: f"{chance.choice(NOUNS)}{chance.choice(NOUNS).title()}{chance.randint(100, 9999)}",
    lambda chance: f"{chance.choice(NOUNS)}-{chance.choice(NOUNS).title()}-{chance.randint(100, 9999)}",
    lambda chance: "".join(chance.choices(string.ascii_letters + string.digits, k=26)) + "7q",
    lambda chance: f'{chance.randint(10, 99)}"{chance.choice(NOUNS)}&{chance.randint(10, 9999)}$',
)
"""Secrets of one kind each; `chance` makes them new."""

RANDOM = 3
"""The kind that is drawn by chance, which is known everywhere; the others are known in their session."""

ELSEWHERE = ("in_another_session", "in_a_title", "in_an_edit", "in_an_import")
"""The ways that belong to another session, or to none."""

ANNOUNCEMENTS = ("my password: {}", "export DB_PASSWORD={}", "wifi password = {}\n", "passwort: {}", "API_SECRET={}")


def secrets(kind: int, seed: int) -> Iterator[str]:
    """Secrets of a kind that no other call gives."""
    chance = random.Random(kind * 1000 + seed)
    while True:
        yield KINDS[kind](chance)


class Again:
    """The ways to say a secret again. Each takes the secret and a number that no other call has."""

    def __init__(self, running: RunningDaemon, client: Client, folder: Path) -> None:
        self.running, self.client, self.folder = running, client, folder
        self.record = client.remember("The lamp stands in the hall.").record.id

    def _event(self, event: AnyEvent, origin: Origin = ORIGIN) -> None:
        self.client.capture(origin, [event])

    def _said(self, text: str, n: int) -> None:
        self._event(Said(turn=f"again{n}", at=AT, role="user", text=text))

    def in_prose(self, secret: str, n: int) -> None:
        self._said(f"ok, use {secret} then.", n)

    def alone(self, secret: str, n: int) -> None:
        self._said(secret, n)

    def behind_a_name(self, secret: str, n: int) -> None:
        self._said(f"admin\n{secret}", n)

    def here(self, secret: str, n: int) -> None:
        self._said(f"here: {secret}", n)

    def in_quotes(self, secret: str, n: int) -> None:
        self._said(f"I typed “{secret}” and '{secret}' and `{secret}`, twice.", n)

    def in_another_script(self, secret: str, n: int) -> None:
        self._said(f"用{secret}吧", n)

    def by_the_agent(self, secret: str, n: int) -> None:
        self._event(Said(turn=f"agent{n}", at=AT, role="assistant", text=f"I shall try {secret} there"))

    def in_another_session(self, secret: str, n: int) -> None:
        self._event(
            Said(turn="1", at=AT, role="user", text=f"it was {secret}, right?"), Origin(host="pi", session=f"{n}")
        )

    def as_an_option(self, secret: str, n: int) -> None:
        self._event(Ran(turn=f"ran{n}", at=AT, command=f"dbtool -u root -p{secret} list"))

    def in_shell_quotes(self, secret: str, n: int) -> None:
        self._event(Ran(turn=f"sh{n}", at=AT, command=f"deploy --to live {shlex.quote(secret)} now"))

    def in_a_query(self, secret: str, n: int) -> None:
        self._event(Ran(turn=f"url{n}", at=AT, command=f"curl http://host.org/login/{quote(secret, safe='')}/x"))

    def in_arguments(self, secret: str, n: int) -> None:
        body = json.dumps({"content": f"user = admin\n{secret}\nend"})
        self._event(ToolCalled(turn=f"tool{n}", at=AT, name="Write", arguments=body))

    def in_a_file(self, secret: str, n: int) -> None:
        self._event(Wrote(turn=f"file{n}", at=AT, text=f"# Notes\n\nAnn has {secret} on her desk.\n", path="notes.md"))

    def in_a_title(self, secret: str, n: int) -> None:
        origin = Origin(host="h", session=f"titled{n}", title=f"log in with {secret}")
        self._event(Said(turn="1", at=AT, role="user", text="Fine."), origin)

    def as_a_note(self, secret: str, n: int) -> None:
        self._event(Noted(turn=f"note{n}", at=AT, text=f"The gate opens with {secret} at night."))

    def in_a_recall(self, secret: str, n: int) -> None:
        self.client.recall(f"who uses {secret}?", document=ORIGIN.document)

    def in_an_edit(self, secret: str, n: int) -> None:
        self.client.edit(self.record, f"The lamp {n} opens with {secret}.")

    def in_an_import(self, secret: str, n: int) -> None:
        folder = self.folder / f"import{n}"
        folder.mkdir()
        (folder / "notes.md").write_text(f"# Notes {n}\n\nThe orchard is opened with {secret} each day.\n")
        memd(self.running, "import", "markdown", str(folder))


WAYS = [name for name, value in vars(Again).items() if callable(value) and not name.startswith("_")]


def test_a_secret_said_again_leaves_no_byte_in_any_file_P18(daemon: RunningDaemon, tmp_path: Path) -> None:
    tries = [(way, kind) for way in WAYS for kind in range(len(KINDS)) if kind == RANDOM or way not in ELSEWHERE]
    assert len(tries) >= 60
    given: list[str] = []
    outside = tmp_path / "outside"
    outside.mkdir()
    with daemon.client() as client:
        again = Again(daemon, client, outside)
        for number, (way, kind) in enumerate(tries):
            secret = next(secrets(kind, number))
            given.append(secret)
            first = ANNOUNCEMENTS[number % len(ANNOUNCEMENTS)].format(secret)
            client.capture(ORIGIN, [Said(turn=f"first{number}", at=AT, role="user", text=first)])
            client.capture(ORIGIN, [Said(turn=f"between{number}", at=AT, role="assistant", text="I see.")])
            getattr(again, way)(secret, number)
    daemon.settle()
    assert daemon.terminate() == 0
    home = Path(daemon.environment["MEMD_HOME"])
    assert files_with(home, given) == []


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_scan_finds_what_was_stored_before_it_was_announced_P18(daemon: RunningDaemon, kind: int) -> None:
    secret = next(secrets(kind, 5))
    early = (f"here: {secret} I think", "I see.", f"my password: {secret}")
    with daemon.client() as client:
        for turn, words in enumerate(early):
            client.capture(ORIGIN, [Said(turn=f"{turn}", at=AT, role="user", text=words)])
        daemon.settle()
        report = finished(client, client.scan(dry_run=False))
    assert report["cuts"] == 1
    assert daemon.terminate() == 0
    assert files_with(Path(daemon.environment["MEMD_HOME"]), [secret]) == []


HONEST = (
    ("DB_PASSWORD=postgres", "we use postgres in version 16"),
    ("password: secret", "that is a secret of the trade"),
    ("password=tangerine", "a tangerine is no orange"),
    ("my password: hunt3r", "the hunt3rs meet at noon"),
    ("the token is $API_TOKEN", "set API_TOKEN before you start"),
    ("passwort: 20240312", "released on 20240312 as planned"),
    ("password: admin", "ask the admin of the site"),
    ("token = request.headers", "look at request.headers first"),
)
"""What a text may announce as a secret, and an honest text that comes later."""


def archived(running: RunningDaemon) -> bytes:
    """Return the bytes of the archive."""
    return b"".join(plain(path.read_bytes()) for path in (running.places.data / "archive").rglob("*") if path.is_file())


@pytest.mark.parametrize(("first", "later"), HONEST)
def test_honest_words_stay_after_they_were_announced_P18(shared_daemon: RunningDaemon, first: str, later: str) -> None:
    origin = Origin(host="h", session=f"honest{HONEST.index((first, later))}")
    with shared_daemon.client() as client:
        for turn, words in enumerate((first, "I see.", later)):
            client.capture(origin, [Said(turn=f"{turn}", at=AT, role="user", text=words)])
    assert later.encode() in archived(shared_daemon)


def test_a_project_keeps_the_name_that_is_a_password_too_P18(shared_daemon: RunningDaemon, tmp_path: Path) -> None:
    folder = tmp_path / "orchard24"
    folder.mkdir()
    pools: set[str] = set()
    words = ("The lamp is green.", "password: orchard24", "We sell apples in orchard24.")
    with shared_daemon.client() as client:
        for session, said in enumerate(words):
            origin = Origin(host="h", session=f"named{session}", cwd=str(folder))
            pools.add(client.capture(origin, [Said(turn="1", at=AT, role="user", text=said)]).pool)
    assert len(pools) == 1
    assert b"apples in orchard24" in archived(shared_daemon), (
        "what one session calls a password may be a name elsewhere"
    )


NAMES = (
    "gpt-4o-mini python3.12 staging-db-01 PROJ-1234567 us-east-1 @angular/core XMLHttpRequest numpy==1.26.4 "
    "test_login2fa_ok process.env.DB_PW2 iPhone15Pro Base64StringEncoder 9fceb02d0ae598e95dc970b74767f19372d61af8 "
    "node_modules/react-dom18 v2.14.0-rc.3 sha256sum Firefox121 release/2024.11 kubectl-1.29"
).split()


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_calls_a_name_a_password_hides_it_nowhere_else_P18(name: str) -> None:
    known = KnownSecrets(bytes(32))
    gate = SecretGate(redact, bytes(32), known)
    for announced in (f"password: {name}", f"the password is {name}", f"Token: {name}"):
        gate.of("docs:1").text(announced)
    words = f"We run {name} here."
    assert gate.of("shell:2").text(words) == gate.text(words) == words


def test_a_folder_or_session_that_holds_a_long_known_secret_gets_a_placeholder_P18() -> None:
    known = KnownSecrets(bytes(32))
    gate = SecretGate(redact, bytes(32), known)
    secret = next(secrets(RANDOM, 7))
    assert gate.identifier(f"/srv/{secret}/x") == f"/srv/{secret}/x"
    assert secret not in gate.text(f"password: {secret} ")
    assert secret not in gate.identifier(f"/srv/{secret}/x"), "though it is remembered how the name was before"


@pytest.mark.parametrize(
    ("first", "later", "secret"),
    [
        ("psql postgres://app:ha%24rbor77%40x@db/live", "it is ha$rbor77@x", "ha$rbor77@x"),
        (r'{"password": "ha\"rbor77x"}', 'type ha"rbor77x there', 'ha"rbor77x'),
        ("curl -u admin:harbor77Gate https://host.org", "log in with harbor77Gate", "harbor77Gate"),
        ('password: "four brown lanterns swim"', "say four brown lanterns swim to her", "four brown lanterns swim"),
        ("password: ha&rbor77x", "<b>ha&amp;rbor77x</b>", "ha&amp;rbor77x"),
        ("password: harbor77Gate", "data:\n  it: aGFyYm9yNzdHYXRl", "aGFyYm9yNzdHYXRl"),
        ("password: harbor77Gate", r"a\nharbor77Gate\nb", "harbor77Gate"),
    ],
)
def test_a_known_secret_is_found_in_another_spelling_P18(first: str, later: str, secret: str) -> None:
    known = KnownSecrets(bytes(32)).of("s")
    assert secret in later
    assert known.redact(first)[1]
    assert secret not in known.redact(later)[0]


def test_two_texts_beside_each_other_teach_no_secret_P18() -> None:
    known = KnownSecrets(bytes(32))
    gate = SecretGate(redact, bytes(32), known).of("s")
    gate.event(ToolCalled(turn="1", at=AT, name="get_password", arguments="harbor77Gate"))
    words = "The boat harbor77Gate is blue."
    assert gate.text(words) == words


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_pass_teaches_no_secret_and_tells_of_none_P18(shared_daemon: RunningDaemon, kind: int) -> None:
    taught, known = itertools.islice(secrets(kind, 8), 2)
    origin = Origin(host="h", session=f"pass{kind}")
    with shared_daemon.client() as client:
        client.capture(origin, [Said(turn="1", at=AT, role="user", text=f"password: {known}")])
        token = client.grant("ci", pools=["personal"], for_s=600).token
        with Client(shared_daemon.places, 20_000, token) as reader:
            reader.recall(f"password: {taught}")
            with pytest.raises(NotFound) as refused:
                reader.get(known)
            assert known in str(refused.value)
        client.capture(origin, [Said(turn="2", at=AT, role="user", text=f"It is called {taught} here.")])
        client.capture(origin, [Said(turn="3", at=AT, role="user", text=f"It is not called {known}.")])
    assert f"called {taught} here".encode() in archived(shared_daemon)
    assert b"not called [redacted:" in archived(shared_daemon)


def test_the_least_recent_of_too_many_known_secrets_is_dropped_P18(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memd.stages.secrets.known.LIMIT", 40)
    monkeypatch.setattr("memd.stages.secrets.known.YOUNG", 8)
    known = KnownSecrets(bytes(32)).of("s")
    given = list(itertools.islice(secrets(3, 1), 60))
    for secret in given:
        known.redact(f"password: {secret}")
        known.redact(f"use {given[0]}")
    assert known.holds(given[0]) and known.holds(given[-1]) and not known.holds(given[1])


def test_many_secrets_with_the_same_characters_do_not_make_a_text_slow_P18(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, chance = KnownSecrets(bytes(32)), random.Random(9)
    known = memory.of("s")
    alike = ["#A1$" + "".join(chance.choices("abcdef", k=10)) for _ in range(300)]
    known.redact("".join(f"password: {secret}\n" for secret in alike))
    compared: list[bytes] = []
    plain = memory._digest
    monkeypatch.setattr(memory, "_digest", lambda words: compared.append(words) or plain(words))
    assert not known.hits(b"#A1$ tulips " * 100)
    assert len(compared) <= ALIKE * 100
    assert all(known.holds(f"use {secret} there") for secret in alike)


def test_no_text_of_a_known_secret_is_kept_P18() -> None:
    memory = KnownSecrets(bytes(32))
    known = memory.of("s")
    given = [next(secrets(kind, 3)) for kind in range(len(KINDS))]
    for secret in given:
        known.redact(f"password: {secret}")
        assert known.holds(f"use {secret} now")
    assert [secret for secret in given if secret[: len(secret) // 2 + 1] in repr(vars(memory))] == []
