"""A hub's lease: until when what others share may be read here (A1, A3, H3), with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.daemon.services.sharing.arrivals import WITHHELD
from memd.daemon.services.sharing.leases import Leases
from memd.protocol.errors import InvalidRequest
from memd.protocol.share import CloseShare, NoteLease, OpenShare
from memd.protocol.shared_lines import ShareMark
from tests.daemon.shared_authors import Author
from tests.daemon.shared_home import HOUR, POOL, SharedHome, added, record

HUB, MARKED = "hub+https://hub.example.org/orchard", "hub/1/orchard"
AUDIENCE = ShareMark(remote=MARKED)


class LeasedHome(SharedHome):
    """A home that shares a project through a hub."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.found()
        self.leases = Leases(self.core, self.writer)
        self.own.open(OpenShare(pool=POOL, address=HUB, mark=MARKED, name="Ada"))

    def lease(self, hours: float = 1, *withheld: Author) -> None:
        """Note a lease from now on."""
        until = int(self.now + hours * HOUR) if hours else 0
        names = tuple(author.partition for author in withheld)
        self.leases.note(NoteLease(pool=POOL, subject="ada", until=until, withheld=names))

    def after(self, hours: float) -> None:
        """Let time pass, and ask something."""
        self.now += int(hours * HOUR)
        self.leases.check()

    def author(self, seed: int, *texts: str) -> Author:
        """An author whose lines come."""
        author = Author(seed, f"author {seed}", AUDIENCE)
        for text in texts:
            author.add(text, said="2026-02-01")
        self.pull(author)
        return author


@pytest.fixture
def home(tmp_path: Path) -> Iterator[LeasedHome]:
    made = LeasedHome(tmp_path / "home")
    yield made
    made.settled()
    made.close()


def test_what_others_share_is_hidden_once_the_lease_has_ended_and_back_with_a_new_one_A1(home: LeasedHome) -> None:
    home.commit(*added(record(1)))
    home.lease(1)
    bert = home.author(2, "The press runs on Tuesdays.")
    home.after(0.5)
    assert home.state(bert, 0) == "quarantined"
    home.after(1)
    assert home.state(bert, 0) == "hidden"
    own = home.stores.records.get(record(1).id)
    assert own is not None and own.status == "active"
    home.lease(1)
    assert home.state(bert, 0) == "quarantined"


def test_the_users_word_about_an_author_outlives_a_lease_A1(home: LeasedHome) -> None:
    home.lease(1)
    bert, carl = home.author(2, "The press runs on Tuesdays."), home.author(3, "The kettle leaks.")
    home.judge(bert.name, "trusted")
    home.judge(carl.name, "muted")
    home.after(2)
    assert (home.state(bert, 0), home.state(carl, 0)) == ("hidden", "hidden")
    home.judge(carl.name, "trusted")
    assert home.state(carl, 0) == "hidden"
    home.lease(1)
    assert (home.state(bert, 0), home.state(carl, 0)) == ("active", "active")


def test_an_author_whom_the_hub_withholds_is_hidden_and_his_retractions_do_not_count_A3(home: LeasedHome) -> None:
    home.lease(10)
    bert, carl = home.author(2, "The press runs on Tuesdays."), Author(3, "carl", AUDIENCE)
    carl.add("The press runs on Fridays.", said="2026-02-01")
    carl.invalidate(f"{bert.partition}/0")
    home.pull(carl)
    home.judge("carl", "trusted")
    assert home.state(bert, 0) == "retired"
    home.lease(10, carl)
    assert (home.state(bert, 0), home.state(carl, 0)) == ("quarantined", "hidden")
    assert home.pull(carl)[-1].problem == WITHHELD
    home.lease(10)
    assert (home.state(bert, 0), home.state(carl, 0)) == ("retired", "active")


def test_nothing_new_is_written_while_a_lease_holds_A1(home: LeasedHome) -> None:
    home.lease(10)
    home.author(2, "The press runs on Tuesdays.")
    before = home.stores.journal.last
    for _ in range(3):
        home.after(1)
    assert home.stores.journal.last == before
    home.after(10)
    after = home.stores.journal.last
    home.after(1)
    assert before < after == home.stores.journal.last


def test_a_share_that_git_carries_has_no_lease_A1(home: LeasedHome, tmp_path: Path) -> None:
    other = SharedHome(tmp_path / "git")
    other.found()
    other.share()
    with pytest.raises(InvalidRequest):
        Leases(other.core, other.writer).note(NoteLease(pool=POOL, until=1))
    other.close()


def test_a_project_that_left_the_hub_reads_nothing_of_it_A1(home: LeasedHome) -> None:
    home.lease(10)
    bert = home.author(2, "The press runs on Tuesdays.")
    home.own.close(CloseShare(pool=POOL))
    home.lease(0)
    home.after(0)
    assert home.state(bert, 0) == "hidden"


def test_an_author_whose_words_the_user_undid_stays_hidden_A1(home: LeasedHome) -> None:
    home.lease(1)
    bert = home.author(2, "The press runs on Tuesdays.")
    home.judge(bert.name, "muted")
    home.after(2)
    home.lease(1)
    assert home.state(bert, 0) == "hidden"
