"""`memd curate`, the weekly job and the request, in a real daemon (G1, G3, G4)."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from memd.stages.same_rules import ALIKE, MOST_PAIRS, SamePair, ToldStatement, near_pairs

from .curated import AGAIN, PUSH, Orchard, reader
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
        assert "would propose 1 change" in dry.stdout and "you said so on 2026-03-01 and 2026-03-02" in dry.stdout, (
            dry.stdout
        )
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
            reader=lambda: nullcontext(reader()),
        )
        for _ in range(24 * 8):
            service.look()
            orchard.now += 3_600_000_000
        assert len(looked) == (2 if quiet else 0) and len(orchard.waiting()) == (1 if quiet else 0)
    finally:
        orchard.close()


def told_by(number: int, words: str = "", pool: str = "project/a", *, is_user: bool = True) -> ToldStatement:
    return ToldStatement(
        words=words or str(number), turn="", before="", family=f"s{number}", is_user=is_user, pool=pool
    )


def test_ten_thousand_records_cost_one_exact_search_and_a_minute_of_the_model_at_most_G3() -> None:
    chance = np.random.default_rng(7)
    rows = chance.normal(size=(10_000, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1::100] = rows[::100]
    near = near_pairs([told_by(number) for number in range(len(rows))], rows)
    assert len(near) == MOST_PAIRS == len(set(near)), "the nearest of all"
    assert {(place, place + 1) for place in range(0, len(rows), 100)} <= set(near)
    records = [record(number) for number in range(len(rows))]
    equal = [SamePair(place, place + 1, 1.0) for place in range(0, len(rows), 100)]
    clusters = list(stars(records, equal))
    assert sorted(len(cluster) for cluster in clusters)[-100:] == [2] * 100
    assert sum(map(len, clusters)) == len(records)


statements = st.lists(
    st.builds(
        told_by, st.integers(0, 5), pool=st.sampled_from(["personal", "project/a", "project/b"]), is_user=st.booleans()
    ),
    max_size=12,
)


@given(statements, st.integers(0, 99))
def test_statements_of_one_conversation_or_of_two_projects_are_never_compared_G3(
    told: list[ToldStatement], seed: int
) -> None:
    rows = np.random.default_rng(seed).normal(size=(len(told), 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    for first, second in near_pairs(told, rows):
        one, other = told[first], told[second]
        assert first < second and one.family != other.family
        assert one.pool == other.pool or "personal" in (one.pool, other.pool)
        assert (one.is_user and other.is_user) or float(rows[first] @ rows[second]) >= ALIKE


def test_a_member_that_most_others_do_not_agree_with_stays_out_of_a_cluster_G3() -> None:
    records = [record(number, content=f"rule {number}") for number in range(4)]
    sure = [SamePair(0, 1, 0.99), SamePair(0, 2, 0.98), SamePair(1, 2, 0.99), SamePair(0, 3, 0.9)]
    apart = [SamePair(1, 3, 0.1), SamePair(2, 3, 0.2)]
    assert sorted(map(len, stars(records, [*sure, *apart]))) == [1, 3]
    assert sorted(map(len, stars(records, sure))) == [4]
