"""`remember` with a named pool, and what its answer says about the pool (P1, W11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memd.clients.python import Client
from memd.clients.python.client import remembering
from memd.protocol.errors import InvalidRequest, MemdError, NotFound
from memd.protocol.event import Captured, Noted, Origin
from memd.protocol.request import Remember
from memd.protocol.secret_gate import KEY_BYTES, SecretGate
from tests.conftest import RunningDaemon

AT = "2026-03-04T18:30:00+01:00"


@pytest.fixture(scope="module")
def folders(shared_daemon: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Two projects with one record each, and a folder without a project."""
    made: dict[str, Path] = {}
    root = tmp_path_factory.mktemp("folders")
    with shared_daemon.client() as client:
        for name in ("orchard", "cellar", "plain"):
            made[name] = root / name
            made[name].mkdir()
            if name != "plain":
                (made[name] / ".memd-id").write_text(f"{name}-0001\n")
                client.remember(f"The {name} was painted in spring.", cwd=str(made[name]))
    shared_daemon.settle()
    yield made


def pool_of(client: Client, folder: Path) -> str:
    return client.why_scope(str(folder)).pool


def test_a_named_pool_overrules_the_subject_at_once_and_for_good_P1(
    shared_daemon: RunningDaemon, folders: dict[str, Path]
) -> None:
    with shared_daemon.client() as client:
        orchard, cellar = (pool_of(client, folders[name]) for name in ("orchard", "cellar"))
        wanted = {
            "The lexer needs a table of names.": ("personal", "personal"),
            "I like short functions in Go.": ("project", orchard),
            "I always read the last page first.": ("cellar", cellar),
            "My sister grows pears.": (cellar.partition("/")[2][:6], cellar),
        }
        replies = {
            text: client.remember(text, cwd=str(folders["orchard"]), pool=pool) for text, (pool, _) in wanted.items()
        }
        shared_daemon.settle()
        for text, (_, pool) in wanted.items():
            reply, record = replies[text], client.get(replies[text].record.id)
            assert not reply.pool_open and reply.record.pool == record.pool == pool
            assert record.placed and record.status == "active" and record.content == text


def test_the_same_words_may_lie_in_each_pool_that_the_user_names_P1(
    shared_daemon: RunningDaemon, folders: dict[str, Path]
) -> None:
    with shared_daemon.client() as client:
        replies = [
            client.remember("The gate opens at dawn.", cwd=str(folders["orchard"]), pool=pool)
            for pool in ("project", "personal", "cellar")
        ]
        shared_daemon.settle()
        assert [client.get(reply.record.id).status for reply in replies] == ["active"] * 3


def test_the_answer_names_the_final_pool_or_says_that_it_is_open_W11(
    shared_daemon: RunningDaemon, folders: dict[str, Path]
) -> None:
    with shared_daemon.client() as client:
        orchard = pool_of(client, folders["orchard"])
        about_me = client.remember("I prefer the window seat on trains.", cwd=str(folders["orchard"]))
        about_work = client.remember("The nightly build writes to the green disk.", cwd=str(folders["orchard"]))
        nowhere = client.remember("I prefer the quiet car on trains.")
        agents = client.remember("The build needs ninja.", cwd=str(folders["orchard"]), role="assistant")
        assert about_me.pool_open and about_work.pool_open
        assert not nowhere.pool_open and nowhere.record.pool == "personal"
        assert not agents.pool_open and agents.record.pool == orchard
        shared_daemon.settle()
        final = [client.get(reply.record.id).pool for reply in (about_me, about_work, nowhere, agents)]
        assert final == ["personal", orchard, "personal", orchard]


@pytest.mark.parametrize(
    ("pool", "folder", "problem"),
    [
        ("project", "plain", InvalidRequest),
        ("project", "", InvalidRequest),
        ("plain", "orchard", InvalidRequest),
        ("nosuchpool", "orchard", NotFound),
    ],
)
def test_a_pool_that_cannot_be_written_is_refused_with_a_next_step_and_nothing_is_kept_P1(
    shared_daemon: RunningDaemon, folders: dict[str, Path], pool: str, folder: str, problem: type[MemdError]
) -> None:
    cwd = str(folders[folder]) if folder else ""
    with shared_daemon.client() as client:
        if pool == "plain":  # opens the folder's own pool
            client.remember("A heron stands on the roof.", cwd=str(folders["plain"]))
        with pytest.raises(problem) as refused:
            client.remember(f"The {pool} xylophone of {folder} is new.", cwd=cwd, pool=pool)
        assert refused.value.hint
        assert not any("xylophone" in record.content for record in client.list(limit=200).records)


def test_an_event_that_names_a_pool_is_checked_like_the_request_P1(
    shared_daemon: RunningDaemon, folders: dict[str, Path]
) -> None:
    origin = Origin(host="one", session="noted", cwd=str(folders["orchard"]))
    events = tuple(Noted(turn=pool, at=AT, text="The lamp is tall.", pool=pool) for pool in ("nosuchpool", "cellar"))
    with shared_daemon.client() as client:
        taken = client.capture(origin, events)
        assert taken.accepted == 1 and [refusal.problem.code for refusal in taken.refused] == ["not_found"]


@pytest.mark.parametrize("covered", ["pool", "none"])
def test_a_pass_writes_nowhere_and_gets_one_answer_for_every_pool_A1(
    shared_daemon: RunningDaemon, folders: dict[str, Path], covered: str
) -> None:
    with shared_daemon.client() as owner:
        orchard, cellar = (pool_of(owner, folders[name]) for name in ("orchard", "cellar"))
        token = owner.grant("reviewer", pools=[orchard] if covered == "pool" else [], for_s=3600).token
        shared_daemon.settle()
        before = owner.list(limit=500).total
        answers: set[bytes] = set()
        with Client(shared_daemon.places, 20_000, token) as reader:
            for pool in ("", "personal", "project", orchard, cellar, "cellar", "project/ffff", "nosuchpool"):
                with pytest.raises(MemdError) as refused:
                    reader.ask(remembering("x y z", cwd=str(folders["orchard"]), pool=pool), object)
                error = refused.value
                answers.add(msgspec.json.encode([error.code, error.message, error.hint]))
        assert len(answers) == 1 and b"read-only" in answers.pop()
        assert owner.list(limit=500).total == before


def test_a_text_that_was_handed_to_another_pool_is_out_of_reach_of_its_folders_pass_A1(
    shared_daemon: RunningDaemon, folders: dict[str, Path]
) -> None:
    with shared_daemon.client() as owner:
        orchard, cellar = (pool_of(owner, folders[name]) for name in ("orchard", "cellar"))
        id = owner.remember("The zeppelin code is 4711.", cwd=str(folders["orchard"]), pool=cellar).record.id
        shared_daemon.settle()
        tokens = {name: owner.grant(name, pools=[pool], for_s=3600).token for name, pool in
                  (("orchard", orchard), ("cellar", cellar))}  # fmt: skip
    seen: dict[str, str] = {}
    for name, token in tokens.items():
        with Client(shared_daemon.places, 20_000, token) as reader:
            seen[name] = repr(reader.recall("zeppelin code", cwd=str(folders[name]), limit=20))
    assert id in seen["cellar"] and "4711" not in seen["orchard"]


def test_an_older_archive_and_an_older_client_name_no_pool_P1() -> None:
    old = b'{"captured":"captured","document":"cli:x","event":{"event":"noted","turn":"t","at":"%s","text":"x"}}'
    content = (old % AT.encode()).replace(b'"captured":"captured"', b'"type":"captured"')
    event = msgspec.json.decode(content, type=Captured).event
    assert isinstance(event, Noted) and event.pool == ""
    assert b"pool" not in msgspec.json.encode(event)
    assert b"pool" not in msgspec.json.encode(remembering("x"))


def test_a_spooled_request_keeps_its_pool_W10() -> None:
    origin = Origin(host="cli", session="x")
    request = Remember(text="I use tabs.", turn="t", at=AT, origin=origin, pool="garden")
    gate = SecretGate(lambda words: (words.replace("hunter2", "[secret]"), ()), b"k" * KEY_BYTES)
    assert gate.spooled(request) == request
