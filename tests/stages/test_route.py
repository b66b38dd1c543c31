"""Route: kind, pool, key; edges have a small vocabulary, and each relation a reader (R1, R8, P-17)."""

from collections.abc import Callable

import pytest

from memd.protocol.event import Noted, Said, Wrote
from memd.stages.batch import Batch
from memd.stages.keys import edge_key, exact_key
from memd.stages.rules import table

Distil = Callable[..., Batch]
AT = "2026-03-10T09:00:00+01:00"


@pytest.mark.parametrize(
    ("clause", "key", "value"),
    [
        ("I prefer tabs.", "user.prefers.indentation", "tabs"),
        ("I now prefer spaces, actually", "user.prefers.indentation", "spaces"),
        ("I prefer tabs for indentation", "user.prefers.indentation", "tabs"),
        ("I now prefer spaces for indenting.", "user.prefers.indentation", "spaces"),
        ("I prefer tabs in Go", "user.prefers.indentation.go", "tabs"),
        ("My favourite editor is Helix now.", "user.prefers.editor", "helix"),
        ("We use pnpm.", "project.uses.package-manager", "pnpm"),
        ("We switched from npm to yarn last week.", "project.uses.package-manager", "yarn"),
        ("I moved to Lisbon last spring.", "user.lives_in", "lisbon"),
        ("My sister lives in Krakow.", "sister.lives_in", "krakow"),
        ("The rate limit is 100 requests per minute.", "project.number.rate-limit", "100 requests per minute"),
        ("My rent is 900 pounds.", "user.number.rent", "900 pounds"),
        ("We raised the timeout to 45 seconds.", "project.number.timeout", "45 seconds"),
        ("Our standup is at 9:30.", "project.number.standup", "9:30"),
        ("The service is called Orion.", "project.name.service", "orion"),
        ("We renamed the service to Vega.", "project.name.service", "vega"),
        ("The deploy script lives in scripts/deploy.sh.", "project.place.deploy-script", "scripts/deploy.sh"),
        ("I am vegan now.", "user.diet", "vegan"),
        ("My time zone is UTC+2.", "user.time-zone", "utc+2"),
    ],
)
def test_an_exact_key_names_subject_and_attribute_R1(clause: str, key: str, value: str) -> None:
    found = exact_key(clause)
    assert found is not None
    assert (found.key, found.value) == (key, value)


@pytest.mark.parametrize(
    "clause",
    [
        "I also prefer tabs.",
        "I don't prefer tabs.",
        "I no longer use vim.",
        "Ana said I prefer tabs.",
        "If we use pnpm, it is faster.",
        "I use Slack and Teams.",
        "We use TypeScript for the frontend and Go for the backend.",
        "We use Python.",
        "I moved to the kitchen.",
        "I prefer dark roast.",
    ],
)
def test_no_key_where_it_would_retire_too_much_P8(clause: str) -> None:
    assert exact_key(clause) is None


def test_every_relation_of_the_vocabulary_names_its_reader_R8() -> None:
    relations = table("relations")
    assert {"prefers", "works_on", "decided", "uses", "switched_from"} <= set(relations) and len(relations) <= 10
    assert all(len(relation["read_by"]) > 20 and relation["patterns"] for relation in relations.values())


def test_an_edge_is_subject_predicate_object() -> None:
    assert edge_key("I love jazz.", "user") == "user prefers jazz"
    assert edge_key("I don't love jazz.", "user") == ""


@pytest.mark.parametrize(
    ("event", "pool"),
    [
        (Said(turn="t", at=AT, role="user", text="I prefer tabs over spaces."), "personal"),
        (Said(turn="t", at=AT, role="user", text="My wife takes her coffee black."), "personal"),
        (Said(turn="t", at=AT, role="user", text="We decided to use Postgres instead of MySQL."), "project/x"),
        (Said(turn="t", at=AT, role="user", text="The rate limit is 100 requests per minute."), "project/x"),
        (Said(turn="t", at=AT, role="assistant", text="Root cause: the pool was never closed."), "project/x"),
        (Wrote(turn="t", at=AT, text="Root cause: the pool was never closed, so it leaked."), "project/x"),
        (Noted(turn="t", at=AT, text="I prefer tabs over spaces."), "personal"),
        (Noted(turn="t", at=AT, text="The staging server is in Dublin."), "project/x"),
    ],
)
def test_only_statements_about_the_project_lie_in_its_pool_P17(distil: Distil, event: Said, pool: str) -> None:
    (with_project,) = distil(event, project="project/x").candidates
    (without,) = distil(event).candidates
    assert (with_project.pool, without.pool) == (pool, "personal")


def test_only_the_users_words_give_keys_P19(distil: Distil) -> None:
    event = Said(turn="t", at=AT, role="assistant", text="The rate limit is 100 requests per minute by default.")
    (candidate,) = distil(event, project="project/x").candidates
    assert (candidate.kind, candidate.key) == ("note", "")
