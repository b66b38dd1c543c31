"""A statement of each type lies in the pool of its subject, said in a project's folder (P1)."""

from pathlib import Path
from typing import Any

import pytest

from memd.protocol.event import Origin, Said

AT = "2026-03-04T18:30:00+01:00"
MINE = {
    "identity": "I am a backend engineer and I live in Zurich.",
    "preference": "I prefer short answers without lists.",
    "decision": "I decided to learn Polish this winter.",
    "convention": "I always write my notes in the morning.",
    "lesson": "I learned that I work badly after lunch.",
    "commitment": "I will call my sister on Sunday.",
    "event": "I ran my first marathon in October.",
    "procedure": "To relax I first take a walk and then make tea.",
    "fact": "My daughter is called Ida.",
}
PROJECTS = {
    "decision": "We decided to use SQLite for the orchard cache.",
    "convention": "All commits in orchard are squashed before the merge.",
    "lesson": "The orchard importer was slow because it parsed each file twice.",
    "commitment": "We still have to migrate the orchard users table.",
    "event": "We released orchard 2.0 on Friday.",
    "procedure": "To build orchard run make bootstrap, then make all.",
    "fact": "The orchard API listens on port 8443.",
    "purpose": "Orchard is a service that tracks fruit deliveries.",
    "open question": "We have not decided yet whether orchard needs a queue.",
}


@pytest.fixture(scope="module")
def pools(shared_daemon: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The pools of each statement, captured in one session of a project each."""
    folder: Path = tmp_path_factory.mktemp("orchard")
    (folder / ".memd-id").write_text("orchard-0001\n")
    found: dict[str, set[str]] = {}
    with shared_daemon.client() as client:
        for number, words in enumerate((*MINE.values(), *PROJECTS.values())):
            origin = Origin(host="test", session=str(number), cwd=str(folder))
            client.capture(origin, [Said(turn="1", at=AT, role="user", text=words)])
        shared_daemon.settle(120)
        for number, words in enumerate((*MINE.values(), *PROJECTS.values())):
            found[words] = {record.pool for record in client.list(document=f"test:{number}").records}
    return found


MISTAKEN = pytest.mark.xfail(strict=True, reason="a lesson about oneself is taken for one of the project's")


@pytest.mark.parametrize("type", [pytest.param(type, marks=[MISTAKEN] * (type == "lesson")) for type in MINE])
def test_what_is_about_the_user_is_personal_P1(pools: dict[str, set[str]], type: str) -> None:
    assert pools[MINE[type]] <= {"personal"}


@pytest.mark.parametrize("type", PROJECTS)
def test_what_is_about_the_project_is_the_projects_P1(pools: dict[str, set[str]], type: str) -> None:
    assert all(pool.startswith("project/") for pool in pools[PROJECTS[type]])


def test_most_statements_are_kept_P1(pools: dict[str, set[str]]) -> None:
    kept = [words for words, of in pools.items() if of]
    assert len(kept) >= len(pools) * 3 // 4, sorted(set(pools) - set(kept))
