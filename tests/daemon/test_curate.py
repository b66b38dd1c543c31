"""`memd curate`, the weekly job and the request, in a real daemon (G1, G3, G4)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memd.daemon.config import Config
from memd.daemon.services.core import core_of
from memd.daemon.services.curation.clusters import stars
from memd.daemon.services.curation.curation_service import CurationService
from memd.protocol.curation import Curate, Curation
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, Said
from memd.protocol.operation import ChangeProposed
from memd.protocol.places import places
from memd.protocol.request import Remember

from .curated import AGAIN, PUSH, Orchard
from .living import record


def memd(daemon: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memd.clients.cli.main", *arguments]
    return subprocess.run(command, env=daemon.environment, capture_output=True, text=True, check=False, timeout=60)


def said(client: Any, session: str, day: str, text: str, role: Any = "user") -> None:
    origin = Origin(host="pi", session=session, live=False)
    client.capture(origin, [Said(turn="1", at=f"{day}T10:00:00Z", role=role, text=text)])


def proposed(client: Any) -> list[ChangeProposed]:
    operations = [entry.operation for entry in client.journal(limit=1000).entries]
    return [operation for operation in operations if isinstance(operation, ChangeProposed)]


def test_what_the_user_says_in_two_sessions_waits_in_the_inbox_after_curate_G3(daemon: Any) -> None:
    words = ("I prefer tabs over spaces in all of my Makefiles.", "I always prefer tabs over spaces in my Makefiles.")
    with daemon.client() as client:
        for number, text in enumerate(words):
            said(client, f"s{number}", f"2026-03-0{number + 1}", text)
        daemon.settle()
        dry = memd(daemon, "curate", "--dry-run")
        assert "would propose 1 change" in dry.stdout and "you on 2026-03-01, 2026-03-02" in dry.stdout, dry.stdout
        assert not proposed(client)
        made = json.loads(memd(daemon, "curate", "--json", "--project", "personal").stdout)["data"]
        (proposal,) = made["proposals"]
        assert proposal["statement"] in words and proposal["layer"] == "L2"
        (waiting,) = proposed(client)
        assert (waiting.id, waiting.what, waiting.by) == (proposal["id"], "patch", "curator")
        assert client.get(proposal["record"]).layer == "L3", "only proposed"
        assert "to decide: memd inbox" in memd(daemon, "curate").stdout
        client.decide(waiting.id, True)
        promoted = client.get(proposal["record"])
        assert (promoted.layer, promoted.confidence) == ("L2", 0.95), "the user accepted it"


def test_a_project_that_does_not_exist_is_an_error_with_a_hint_G3(daemon: Any) -> None:
    run = memd(daemon, "curate", "--project", "nowhere")
    assert run.returncode != 0 and "nowhere" in run.stderr


def test_the_holder_of_a_pass_may_not_curate_A1(daemon: Any) -> None:
    with daemon.client() as client:
        client.remember(
            Remember(text=PUSH, turn="1", at="2026-01-01T00:00:00Z", origin=Origin(host="cli", session="s"))
        )
        token = client.grant("a tool", pools=("personal",)).token
        with pytest.raises(MemdError, match="pass"):
            client.ask(Curate(token=token), Curation)


@pytest.mark.parametrize("quiet", [True, False])
def test_the_job_runs_once_a_week_on_a_quiet_machine_only_G3(tmp_path: Path, quiet: bool) -> None:
    orchard = Orchard(tmp_path)
    try:
        orchard.tell("pi:a", 1)
        orchard.tell("pi:b", 2, AGAIN)
        core = core_of(orchard.stores, places({"MEMD_HOME": str(tmp_path)}, os.getuid()), Config, orchard.world)
        looked: list[int] = []

        def against() -> dict[str, tuple[str, ...]]:
            looked.append(orchard.now)
            return {}

        service = CurationService(
            core,
            orchard.writer,
            given=lambda captures: {},
            at_head=lambda file: None,
            against=against,
            is_quiet=lambda: quiet,
        )
        for _ in range(24 * 8):
            service.look()
            orchard.now += 3_600_000_000
        assert len(looked) == (2 if quiet else 0) and len(orchard.waiting()) == (1 if quiet else 0)
    finally:
        orchard.close()


def test_ten_thousand_records_cost_at_most_one_exact_search_each_G3() -> None:
    chance = np.random.default_rng(7)
    rows = chance.normal(size=(10_000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1::100] = rows[::100]
    read: list[int] = []

    def stored(marks: Any) -> Any:
        read.append(len(marks))
        return range(len(marks)), rows

    records = [record(number) for number in range(len(rows))]
    clusters = list(stars(records, stored, lambda older, newer, cosine: False))
    assert read == [len(rows)], "each vector is read once"
    assert sorted(len(cluster) for cluster in clusters)[-100:] == [2] * 100
    assert sum(map(len, clusters)) == len(records)
