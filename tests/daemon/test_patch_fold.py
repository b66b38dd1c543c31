"""The daemon's playbook of a project is what the script of a `.pi` folder makes of the same patches (G2, G5)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from memd.protocol.governance import TakePatches, TrustPi
from memd.protocol.operation import AliasAdded, PoolOpened
from memd.protocol.shared_lines import of_repository
from tests.daemon.patch_home import PatchHome, add, deprecate, file, patch, review, supersede

SETS, SOME = 1_000, 100
NAMES = tuple(f"{number:03}" for number in range(1, 9))
DAYS = tuple(f"2026-02-{day}" for day in range(10, 16))


def operation(random: Random) -> dict[str, Any]:
    name, other = random.choice(NAMES), random.choice(NAMES)
    match random.choice(("add", "add", "add", "promote", "supersede", "deprecate", "review", "later")):
        case "add":
            return add(name, random.choice(("Tabs.", "Spaces.", "")), confidence=random.choice((0.5, 0.85)))
        case "promote":
            record = add(name, status=random.choice(("active", "active", "deprecated")))["record"]
            return {"op": "promote", "id": record["id"], "record": record}
        case "supersede":
            return supersede(name, other)
        case "deprecate":
            return deprecate(name, random.choice(("", "it moved")))
        case "review":
            return review(
                name, random.choice(DAYS), random.choice((None, 0.3, 0.95)), random.choice(("", "2027-01-01"))
            )
        case _:
            return {"op": "merge", "ids": [name, other]}


def patches(random: Random) -> list[dict[str, Any]]:
    made = [
        patch(*(operation(random) for _ in range(random.randint(1, 5))), day=random.choice(DAYS))
        for _ in range(random.randint(1, 8))
    ]
    return list({fields["patch_id"]: fields for fields in made}.values())


def folded(some: list[dict[str, Any]]) -> dict[str, Any]:
    """The playbook that the script makes, as far as a home has it."""
    script = pytest.importorskip("memd.clients.pi.pi_apply_patch")
    records = script.fold(some).records["L2"].values()
    return {
        record["id"]: (
            record["status"] == "active",
            bool(record["superseded_by"]),
            record["statement"],
            record["confidence"],
            record["review"]["next_review"],
        )
        for record in records
    }


def believed(home: PatchHome, pool: str) -> dict[str, Any]:
    records = [record for record in home.stores.records.in_pool(pool) if record.is_from_patch]
    return {
        record.provenance.spans[0].turn: (
            record.status == "active",
            bool(record.superseded_by),
            record.content,
            record.confidence,
            record.review.next[:10] if record.review else "",
        )
        for record in records
        if record.status != "hidden"
    }


def compare(home: PatchHome, seed: int) -> None:
    random, pool = Random(seed), f"project/p{seed}"
    name = of_repository(f"{seed:040x}", "example.org/p")
    home.stores.commit([PoolOpened(pool=pool, title=f"p{seed}"), AliasAdded(pool=pool, names=(name,))])
    home.governance.trust(TrustPi(pool=pool))
    some = patches(random)
    order = random.sample(some, len(some))
    cut = random.randint(0, len(order))
    for part in (order[:cut], order[cut:]):
        home.governance.take(TakePatches(pool=pool, files=tuple(map(file, part))))
    assert believed(home, pool) == folded(some), seed


def test_the_script_and_the_daemon_make_the_same_playbook_G5(tmp_path: Any) -> None:
    folded([])
    home = PatchHome(tmp_path / "home")
    for seed in range(SOME):
        compare(home, seed)
    home.close()


@pytest.mark.slow
def test_the_script_and_the_daemon_make_the_same_playbook_of_a_thousand_sets_G5(tmp_path: Any) -> None:
    folded([])
    home = PatchHome(tmp_path / "home")
    for seed in range(SOME, SETS):
        compare(home, seed)
    home.close()
