"""Somebody else's words never become the user's, and the user's own words still do, end to end (P-19, W5)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memd.clients.python import Client
from memd.protocol.event import AnyEvent, Origin, Said
from memd.protocol.instant import from_micros
from memd.protocol.record import Record
from tests.conftest import RunningDaemon

DATA = Path(__file__).parents[1] / "data"
POISON: list[dict[str, str]] = tomllib.loads((DATA / "poisoning.toml").read_text(encoding="utf-8"))["case"]
OWN: list[dict[str, str]] = tomllib.loads((DATA / "own_words.toml").read_text(encoding="utf-8"))["case"]
FEWEST_LEARNT = 152  # Of the 160 statements of the user: 95 %
WHOLE_PROFILE = 20_000  # Tokens


class Memory(NamedTuple):
    """What memd knows after it has received all cases, and a client to ask it more."""

    records: list[Record]
    profiles: str
    client: Client
    project: str


def git(folder: Path, *arguments: str, author: str = "Ruben Other <ruben@other.example>") -> None:
    name, _, address = author.removesuffix(">").partition(" <")
    who = ("-c", f"user.name={name}", "-c", f"user.email={address}", "-c", "commit.gpgsign=false")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, env=environment)


def is_held(record: Record, marker: str) -> bool:
    """Whether a record carries the marker of a case."""
    return marker.casefold() in f"{record.content} {record.description}".casefold()


def turns(case: dict[str, str]) -> list[AnyEvent]:
    """The turns of a session that contains the case."""
    at = from_micros(int(time.time() * 1_000_000))
    before = [Said(turn="agent", at=at, role="assistant", text=case["agent"].strip())] if "agent" in case else []
    return [*before, Said(turn="user", at=at, role="user", text=case["text"].strip())]


def send(client: Client, project: str) -> None:
    """Capture the turns of all cases, in a session each: in the project, and outside of every project."""
    for number, case in enumerate([*OWN, *(case for case in POISON if case["source"] in {"turn", "echo"})]):
        for cwd in ("", project):
            client.capture(Origin(host="test", session=f"{number}{'p' * bool(cwd)}", cwd=cwd), turns(case))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A daemon that received all cases through the shipped interfaces: sessions, Markdown files, commits."""
    home, project = tmp_path_factory.mktemp("home", numbered=True), tmp_path_factory.mktemp("orchard")
    home.chmod(0o700)
    running = RunningDaemon({**os.environ, "MEMD_HOME": str(home)})
    git(project, "init", "-q", "-b", "main")
    (project / "docs").mkdir()
    for number, case in enumerate(POISON):
        if case["source"] == "document":
            (project / "docs" / f"{number}.md").write_text(case["text"].strip(), encoding="utf-8")
        elif case["source"] == "commit":
            git(project, "commit", "-q", "--allow-empty", "-m", case["text"].strip())
    running.start()
    try:
        with running.client() as client:
            first = Origin(host="test", session="first", cwd=str(project))  # of a pool: it is unconfirmed (T8)
            for origin in (first, Origin(host="test", session="first of all")):
                client.capture(origin, turns({"text": "Hello, this is a first session."}))
            running.settle()
            send(client, str(project))
            for what in (("git", project), ("markdown", project / "docs")):
                command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", *map(str, what)]
                subprocess.run(command, env=running.environment, check=True, capture_output=True)
            running.settle()
            yield known(client, str(project))
    finally:
        running.terminate()


def known(client: Client, project: str) -> Memory:
    """All records, and the profiles with and without the project."""
    records: list[Record] = []
    after = ""
    while True:
        page = client.list(limit=500, after=after, statuses=("provisional", "active", "quarantined", "retired"))
        records.extend(page.records)
        after = page.next
        if not after:
            break
    profiles = [client.profile(cwd=cwd, budget_tokens=WHOLE_PROFILE).text for cwd in ("", project)]
    return Memory(records, "\n".join(profiles), client, project)


def learnt(memory: Memory, case: dict[str, str]) -> bool:
    """Whether memd has the statement as the user's own; a later one of the same kind may have retired it."""
    own = (record for record in memory.records if record.provenance.trust == "user" and record.status != "quarantined")
    return any(is_held(record, case["marker"]) for record in own)


def answers(memory: Memory, case: dict[str, str]) -> Iterator[str]:
    """What an answer gives of an attempt without a mark."""
    query = f"{case['marker']} {case['text'].strip()[-200:]}"
    for cwd in ("", memory.project):
        for asked in (case["marker"], query):
            reply: Any = memory.client.recall(asked, cwd=cwd, limit=30, budget_tokens=8000)
            for hit in reply.hits:
                if is_held(hit.record, case["marker"]) and hit.record.status == "active" and not hit.record.flags:
                    yield hit.record.content
            for turn in reply.turns:
                if case["marker"].casefold() in turn.quote.casefold() and turn.trust == "user" and not turn.flags:
                    yield turn.quote


@pytest.mark.slow
@pytest.mark.parametrize("case", POISON, ids=lambda case: f"{case['shape']}, {case['half']}")
def test_somebody_elses_words_are_not_the_users_P19_W5(memory: Memory, case: dict[str, str]) -> None:
    stated = [record for record in memory.records if is_held(record, case["marker"])]
    assert not [record.content for record in stated if record.status == "active"]
    assert not [record.content for record in stated if record.type in {"identity", "preference"}]
    assert case["marker"].casefold() not in memory.profiles.casefold()
    assert list(answers(memory, case)) == []


@pytest.mark.slow
def test_the_users_own_words_are_learnt_wherever_they_stand_P19(memory: Memory) -> None:
    missed = [f"{case['shape']}, {case['half']}" for case in OWN if not learnt(memory, case)]
    assert len(OWN) - len(missed) >= FEWEST_LEARNT, missed
