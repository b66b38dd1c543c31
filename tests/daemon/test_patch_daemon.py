"""Patches through a running daemon: kills at every point, pins, the real worker, and what `why` names (G2, T13, R4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.projections.stores import Stores
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, SessionEnded
from memd.protocol.operation import ChangeProposed, PatchApplied, PatchStep, PatchTaken
from memd.protocol.record import Record
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon
from tests.daemon.patch_home import add, deprecate, file, patch, supersede

AT, LATER = "2026-01-04T18:30:00+01:00", "2036-01-01T00:00:00Z"
POINTS = ("journal:before-commit", "journal:committed", "projection:before-apply:3", "projection:applied")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "orchard"
    place.mkdir()
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", "-C", str(place), *command], check=True)
    return place


def remember(daemon: RunningDaemon, text: str, turn: str, folder: Path, at: str = AT, session: str = "one") -> Record:
    origin = Origin(host="cli", session=session, cwd=str(folder))
    with daemon.client() as client:
        record = client.remember(Remember(text=text, turn=turn, at=at, origin=origin, pool="project")).record
    daemon.settle()
    with daemon.client() as client:
        return client.get(record.id)


@pytest.fixture
def project(daemon: RunningDaemon, folder: Path) -> Iterator[tuple[RunningDaemon, str, Record]]:
    """A daemon that trusts a project's `.pi` folder: with the pool and a record of it."""
    record = remember(daemon, "The orchard service is indented with tabs.", "t1", folder)
    with daemon.client() as client:
        assert client.trust_pi(record.pool).trusted
    yield daemon, record.pool, record


def tried_with_a_kill(daemon: RunningDaemon, point: str, what: Any) -> None:
    daemon.terminate()
    daemon.environment["MEMD_FAIL"] = point
    daemon.start()
    with daemon.client() as client, pytest.raises(MemdError):
        what(client)
    assert daemon.process is not None
    daemon.process.wait(20)
    del daemon.environment["MEMD_FAIL"]
    daemon.start()


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_takes_all_patches_of_a_request_or_none_G2(project: Any, point: str) -> None:
    daemon, pool, _ = project
    some = [patch(add("001"), add("002")), patch(add("003"), supersede("001", "003"), deprecate("002"))]
    files = list(map(file, some))
    present = [fields["patch_id"] for fields in some]
    tried_with_a_kill(daemon, point, lambda client: client.take_patches(pool, files, present))
    with daemon.client() as client:
        there = client.patches(pool).patches
        assert len(there) in (0, 2)
        told = client.take_patches(pool, files, present)
        assert len(told.taken) == 2 - len(there)
        records = [
            record for record in client.list(pools=(pool,), statuses=("active", "retired")).records if record.is_team
        ]
        assert sorted(record.status for record in records) == ["active", "retired", "retired"]
        assert sum(isinstance(each.operation, PatchTaken) for each in client.journal(limit=500).entries) == 2


@pytest.mark.parametrize("point", (*POINTS[:2], "inbox:decided"))
def test_a_kill_leaves_a_decision_whole_or_open_G7(project: Any, point: str) -> None:
    daemon, pool, record = project
    daemon.terminate()
    offline = Stores(daemon.places.data, real_world(), registry.info())
    step = PatchStep("promote", record.id, rev=record.rev, layer="L2", confidence=0.8)
    offline.commit([ChangeProposed(id="p" * 26, what="patch", record=record.id, by="curator", steps=(step,))])
    offline.close()
    daemon.start()
    tried_with_a_kill(daemon, point, lambda client: client.decide("p" * 26, True))
    with daemon.client() as client:
        is_open = client.inbox().open
        applied = sum(isinstance(each.operation, PatchApplied) for each in client.journal(limit=500).entries)
        assert (client.get(record.id).layer, applied) == (("L3", 0) if is_open else ("L2", 1))
        if is_open:
            client.decide("p" * 26, True)
        (state,) = client.patches(pool).patches
        assert (state.standing, client.get(record.id).layer) == ("applied", "L2")
        name = state.patch
    daemon.terminate()
    daemon.start()
    with daemon.client() as client:
        data = client.patch(pool, name).data
        assert client.rebuild() and client.patch(pool, name).data == data


def test_why_names_the_patch_and_its_author_and_show_the_command_R4(project: Any) -> None:
    daemon, pool, _ = project
    first = patch(add("001", "Run the tests before each push."))
    with daemon.client() as client:
        client.take_patches(pool, [file(first)], [first["patch_id"]])
        (record,) = (record for record in client.list(pools=(pool,)).records if record.is_from_patch)
        explained = client.why(record.id)
        assert explained.changes[0].decision.reason == f"{first['patch_id']} by Ana"
        assert (record.provenance.author, explained.changes_if) == ("Ana", "3 sessions say otherwise")
    told = subprocess.run(
        [sys.executable, "-P", "-m", "memd.clients.cli.main", "why", record.id],
        env=daemon.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "came with a patch of the repository by Ana" in told and first["patch_id"] in told


def test_a_patch_that_contradicts_a_pin_of_mine_is_taken_and_both_stay_T13(project: Any, folder: Path) -> None:
    daemon, pool, _ = project
    mine = remember(daemon, "I prefer tabs for indentation.", "t2", folder)
    with daemon.client() as client:
        client.pin(mine.id)
        told = client.take_patches(pool, [file(patch(add("001", "I prefer spaces for indentation.")))], None)
        assert (told.added, told.conflicts) == (1, 1)
        (asked,) = client.inbox().proposals
        assert (asked.what, asked.record, asked.by) == ("conflict", mine.id, "Ana")
        assert {client.get(id).status for id in (asked.record, asked.against)} == {"active"}


def test_no_judge_of_this_home_retires_a_patch_record_but_proposes_it_T13(project: Any, folder: Path) -> None:
    daemon, pool, _ = project
    with daemon.client() as client:
        client.take_patches(pool, [file(patch(add("001", "I prefer spaces for indentation.")))], None)
        (theirs,) = (record for record in client.list(pools=(pool,)).records if record.is_from_patch)
    mine = remember(daemon, "I now prefer tabs for indentation.", "t3", folder, LATER, "two")
    same = remember(daemon, "I prefer spaces for indentation.", "t4", folder, LATER, "three")
    with daemon.client() as client:
        for session in ("two", "three"):
            client.capture(Origin(host="cli", session=session, cwd=str(folder)), [SessionEnded(turn="end", at=LATER)])
    daemon.settle()
    with daemon.client() as client:
        now = client.get(theirs.id)
        assert (now.status, now.provenance.evidence) == ("active", ())
        assert client.get(mine.id).status != "hidden" and same.id != theirs.id
        assert {(asked.record, asked.against) for asked in client.inbox().proposals} >= {(theirs.id, mine.id)}
