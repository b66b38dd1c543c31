"""What is forgotten is in no file and no git object of anybody who pulls, and a secret never was in one (T10, W5)."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.protocol.block import plain
from tests.clients.test_share_command import WAIT_S, Person, ada, flat, git, objects_of, person, remote

__all__ = ["ada", "person", "remote"]

RARE = "xylofon"
LEDGER = f"We keep the {RARE} ledger of the orchard service in SQLite."
PRESS = "The press of the orchard service starts at six in the morning."
GHP = "ghp_" + "8Hk2LmQ9xT4vB7nR1sW6yZ3cD5fG0jKpA1bC"


def home_of(one: Person) -> Path:
    return Path(one.environment["MEMD_HOME"])


def private(one: Person) -> Path:
    """The private repository of the only shared project."""
    [repository] = (home_of(one) / "data" / "share").glob("*.git")
    return repository


def with_words(words: str, *people: Person) -> list[str]:
    """The files, and the private repositories by their objects, that have the words in any case."""
    needle = words.encode().lower()
    found = [
        str(path)
        for one in people
        for path in home_of(one).rglob("*")
        if path.is_file() and needle in plain(path.read_bytes()).lower()
    ]
    return found + [str(private(one)) for one in people if needle in objects_of(private(one)).lower()]


def forget(one: Person, id: str) -> None:
    with one.client() as client:
        state = client.forget([id])
        while state.state == "running":
            time.sleep(0.02)
            state = client.job(state.id)
        assert state.problem is None, state.problem


@pytest.mark.parametrize("first", ["pull", "pull --dry-run"], ids=["taken", "only looked at"])
def test_what_an_author_forgets_is_in_no_byte_of_anybody_who_pulls_T10(
    ada: Person, person: Callable[[str], Person], remote: Path, first: str
) -> None:
    bert = person("Bert")
    ledger, press = ada.remember(LEDGER), ada.remember(PRESS)
    bert.remember("The cellar door of the orchard sticks in the winter.")
    for one in (ada, bert):
        one.shared("on", "--yes")
    ada.shared("review", "--accept", ledger, "--accept", press)
    ada.shared("push")
    bert.shared(*first.split())
    assert with_words(RARE, ada) and str(private(bert)) in with_words(RARE, bert)
    assert RARE.encode() in objects_of(remote), "the search finds what is there"

    forget(ada, ledger)
    assert "1 forgotten" in flat(ada.shared("push").text)
    bert.shared("pull")
    end = time.monotonic() + WAIT_S
    while with_words(RARE, bert) and time.monotonic() < end:
        time.sleep(0.2)  # a job of the daemon removes the bytes
    assert with_words(RARE, ada, bert) == []
    assert bert.statements().get(PRESS) == "quarantined" and LEDGER not in bert.statements()
    subprocess.run(["git", "-C", str(remote), "gc", "-q", "--prune=now"], check=True)
    assert RARE.encode() not in objects_of(remote)
    assert b"six in the morning" in objects_of(remote), "what was not forgotten is still there"
    git(remote, "fsck", "--strict")
    assert "nothing new from others" in bert.shared("pull").text and with_words(RARE, bert) == []


def test_a_planted_secret_is_in_no_object_of_any_repository_W5(
    ada: Person, person: Callable[[str], Person], remote: Path
) -> None:
    bert = person("Bert")
    told = ada.remember(f"The deploy token of the orchard service is {GHP}, and it deploys on Tuesdays.")
    ledger, press = ada.remember(LEDGER), ada.remember(PRESS)
    with ada.client() as client:
        client.edit(press, f"The press starts at six, its key is {GHP}.")
    ada.shared("on", "--yes", "--name", f"Ada {GHP}")
    bert.remember("The cellar door of the orchard sticks in the winter.")
    bert.shared("on", "--yes")
    ada.shared("review", "--accept", told, "--accept", ledger, "--accept", press)
    ada.shared("push")
    bert.shared("pull")
    [taken] = [record for record in statements_of(bert) if RARE in record]
    bert.shared("wrong", statements_of(bert)[taken], "--why", f"the ledger moved, the new key is {GHP}")
    bert.shared("push")
    ada.shared("pull")
    assert RARE.encode() in objects_of(private(bert))
    for repository in (remote, private(ada), private(bert)):
        assert GHP.encode() not in objects_of(repository), repository
    assert with_words(GHP, ada, bert) == []


def statements_of(one: Person) -> dict[str, str]:
    """The statements of a person's records, each with its id."""
    with one.client() as client:
        return {record.description: record.id for record in client.list(limit=100).records}
