"""Belief is the set of adds less that of invalidations: no order and no split of pulls changes it (H2)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from memd.protocol.record import LIVE
from memd.protocol.shared_lines import AddLine, InvLine, decode_shared
from tests.conftest import EXAMPLES
from tests.daemon.shared_authors import Author
from tests.daemon.shared_home import ARRIVAL, SharedHome

ORDERS = 5
HISTORIES = 25 * EXAMPLES
"""Histories of every run of the tests; 2,000 with `MEMD_EXAMPLES=80`."""

OF_ONE_HOME = 50
"""Histories that the stores of one home take, each in a project of its own and by authors of its own."""


class History(NamedTuple):
    """Authors with all their lines, and what the user thinks of them in the end."""

    authors: tuple[Author, ...]
    standings: tuple[str, ...]


def history(seed: int) -> History:
    """A random history of three authors."""
    random = Random(seed)
    authors = tuple(Author(1_000 * seed + number, f"A{number}") for number in range(3))
    for _ in range(random.randint(4, 16)):
        author, other = random.choice(authors), random.choice(authors)
        moment = random.randint(1, 30)
        if random.random() < 0.6:
            key = random.choice(["", "", "app.port", "app.host"])
            since = random.choice(["", "2026-10-01", "2026-10-02"])
            until = random.choice(["", "2027-10-01"])
            value = random.choice("123") if key else ""
            number = len(author.lines)
            author.add(
                f"The fact {number} of {author.name}.",
                kind="fact" if key else "note",
                key=key,
                value=value,
                l=moment,
                **({"since": since} if since else {}),
                until=until,
            )
        else:
            until = random.choice(["", "2026-11-01", "2026-11-02"])
            author.invalidate(f"{other.partition}/{random.randrange(6)}", l=moment, until=until)
    for author in authors:
        author.lamport = 30
    return History(authors, tuple(random.choice(["new", "trusted", "muted"]) for _ in authors))


def until(author: Author, count: int) -> Author:
    """An author as he was after so many lines."""
    copy = Author(0, author.name)
    copy.key, copy.partition, copy.lamport = author.key, author.partition, author.lamport
    copy.lines = author.lines[:count]
    return copy


def play(home: SharedHome, pool: str, story: History, random: Random) -> dict[str, Any]:
    """Pull in a random order, in random parts, while the user changes his mind; return what is believed then."""
    home.open(pool, partition=pool[-1] * 24)
    counts = {author.name: 0 for author in story.authors}
    while any(counts[author.name] < len(author.lines) for author in story.authors):
        author = random.choice(story.authors)
        counts[author.name] = min(len(author.lines), counts[author.name] + random.randint(1, 5))
        home.pull(until(author, counts[author.name]), pool=pool)
        if counts[author.name] and random.random() < 0.3:
            home.judge(author.name, random.choice(["new", "trusted", "muted"]), pool)  # type: ignore[arg-type]
    for author, standing in zip(story.authors, story.standings, strict=True):
        if author.lines:
            home.judge(author.name, standing, pool)  # type: ignore[arg-type]
    beliefs: dict[str, Any] = {}
    for author in story.authors:
        for number in range(len(author.lines)):
            if record := home.shared(author, number, pool):
                is_live = record.status in LIVE
                marks = (record.needs_review, record.key) if is_live else ()
                beliefs[f"{author.name}/{number}"] = (record.status, record.valid_to, marks)
    return beliefs


def expected(story: History) -> dict[str, tuple[str, str]]:
    """The state of each record and until when it holds, by the rule alone: an author invalidates the own lines, and a
    trusted one also those of others."""
    lines = {
        author.partition: [decode_shared(raw, number) for number, raw in enumerate(author.lines)]
        for author in story.authors
    }
    standings = {author.partition: standing for author, standing in zip(story.authors, story.standings, strict=True)}
    states: dict[str, tuple[str, str]] = {}
    for author in story.authors:
        own = author.partition
        for number, line in enumerate(lines[own]):
            if not isinstance(line, AddLine):
                continue
            ends = [
                (other.l, partition, other.n, other.until)
                for partition, said in lines.items()
                if standings[partition] != "muted" and (partition == own or standings[partition] == "trusted")
                for other in said
                if isinstance(other, InvLine) and other.id == f"{own}/{number}"
            ]
            if standings[own] == "muted":
                state = "hidden", ""
            elif ends:
                state = "retired", min(ends)[-1]
            else:
                state = "active" if standings[own] == "trusted" else "quarantined", ""
            states[f"{author.name}/{number}"] = state
    return states


@contextmanager
def homes_of(folder: Path) -> Generator[list[SharedHome]]:
    """One home for each order."""
    made = [SharedHome(folder / f"order {number}", ARRIVAL) for number in range(ORDERS)]
    try:
        yield made
    finally:
        for home in made:
            home.close()


@pytest.mark.parametrize("start", range(0, HISTORIES, OF_ONE_HOME))
def test_any_order_and_split_of_pulls_gives_the_same_beliefs_H2(tmp_path: Path, start: int) -> None:
    live, seeds = 0, range(start, min(start + OF_ONE_HOME, HISTORIES))
    with homes_of(tmp_path) as homes:
        for seed in seeds:
            story = history(seed + 1)
            pool = f"project/h{seed}"
            first, *others = [play(home, pool, story, Random(f"{seed} {n}")) for n, home in enumerate(homes)]
            for number, other in enumerate(others, 1):
                differing = {
                    name: (state, other.get(name)) for name, state in first.items() if other.get(name) != state
                }
                assert first == other, (seed, number, differing)
            for name, (status, ended) in expected(story).items():
                assert first[name][0] == status, (seed, name)
                assert status != "retired" or first[name][1] == ended, (seed, name)
            live += sum(state[0] in LIVE for state in first.values())
    assert live > len(seeds)
