"""Belief is the set of adds less that of invalidations: no order and no split of pulls changes it (H2)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.protocol.record import LIVE
from memd.protocol.shared_lines import AddLine, InvLine, decode_shared
from tests.conftest import EXAMPLES
from tests.daemon.shared_authors import Author
from tests.daemon.sharing_home import SharingHome

ORDERS = 3
HISTORIES = 50 * EXAMPLES


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


def play(home: SharingHome, pool: str, story: History, random: Random) -> dict[str, Any]:
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


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SharingHome]]:
    """One home for each order."""
    made = [SharingHome(tmp_path_factory.mktemp("order") / "home") for _ in range(ORDERS)]
    yield made
    for home in made:
        home.close()


def test_any_order_and_split_of_pulls_gives_the_same_beliefs_H2(homes: list[SharingHome]) -> None:
    live = 0
    for seed in range(HISTORIES):
        story = history(seed + 1)
        pool = f"project/h{seed}"
        beliefs = [play(home, pool, story, Random(f"{seed} {number}")) for number, home in enumerate(homes)]
        for number, other in enumerate(beliefs[1:], 1):
            differing = {
                name: (state, other.get(name)) for name, state in beliefs[0].items() if other.get(name) != state
            }
            assert beliefs[0] == other, (seed, number, differing)
        for name, (status, ended) in expected(story).items():
            assert beliefs[0][name][0] == status, (seed, name)
            assert status != "retired" or beliefs[0][name][1] == ended, (seed, name)
        live += sum(state[0] in LIVE for state in beliefs[0].values())
    assert live > HISTORIES


LINES = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["add", "inv"]), st.integers(0, 2), st.integers(0, 5)), max_size=24
)


@settings(max_examples=2_000, deadline=None)
@given(LINES, st.randoms(use_true_random=False))
def test_the_model_of_belief_needs_no_order_H2(lines: list[tuple[int, str, int, int]], random: Any) -> None:
    numbers = [0, 0, 0]
    events: list[tuple[str, tuple[int, int], tuple[int, int]]] = []
    for author, what, other, number in lines:
        events.append((what, (author, numbers[author]), (other, number)))
        numbers[author] += 1
    outcomes: set[frozenset[tuple[int, int]]] = set()
    for _ in range(5):
        order = list(events)
        random.shuffle(order)
        added, invalid, believed = set[tuple[int, int]](), set[tuple[int, int]](), set[tuple[int, int]]()
        for what, place, ref in order:
            if what == "add":
                added.add(place)
                if place not in invalid:
                    believed.add(place)
            else:
                invalid.add(ref)
                believed.discard(ref)
        assert believed == added - invalid
        outcomes.add(frozenset(believed))
    assert len(outcomes) == 1
