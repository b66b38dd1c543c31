"""A share that a hub carries: its mark, and how it changes to another audience (H3, P3)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest
from memd.protocol.operation import AliasAdded, PoolOpened
from memd.protocol.share import CloseShare, DisputeRecords, GetOutbox, NoteDelivered, OpenShare, ReviewShare
from memd.protocol.shared_lines import ShareMark, verified_head
from tests.daemon.shared_authors import MARK, Author
from tests.daemon.shared_home import POOL, SharedHome, added, identified, record, said

HUB, MARKED = "hub+https://hub.example.org/orchard", "hub.example.org/orchard"
GIT = "https://example.org/orchard/app"
AUDIENCE = ShareMark(remote=MARKED)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SharedHome]:
    made = SharedHome(tmp_path / "home")
    made.found()
    yield made
    made.settled()
    made.close()


def join(home: SharedHome, pool: str = POOL, **more: Any) -> None:
    home.own.open(OpenShare(pool=pool, address=HUB, mark=MARKED, name="Ada", **more))


def sent(home: SharedHome, pool: str = POOL) -> None:
    """Send all lines, as a client does."""
    prepared = home.prepared()
    home.own.delivered(
        NoteDelivered(pool=pool, partition=prepared.partition, epoch=prepared.epoch, count=prepared.count)
    )


def partition(home: SharedHome, pool: str = POOL) -> str:
    entry = home.stores.sharing.share(pool)
    assert entry is not None
    return entry.opened.partition


def test_heads_of_a_joined_pool_carry_the_hubs_name_of_it_H3(home: SharedHome) -> None:
    home.commit(*added(record(1)))
    join(home)
    home.choose(1)
    prepared = home.prepared()
    assert verified_head(prepared.head).share == AUDIENCE and prepared.address == HUB
    assert said(home.lines()) == [f"+{record(1).content}"]


def test_people_without_a_common_repository_share_one_pool_H3(home: SharedHome) -> None:
    join(home)
    bert = Author(2, "Bert", AUDIENCE)
    bert.add("The press runs on Tuesdays.")
    home.pull(bert)
    assert home.state(bert, 0) == "quarantined"
    partner = home.stores.sharing.partner(POOL, bert.partition)
    assert partner is not None and partner.hub == MARKED


def test_who_wrote_for_the_repository_did_not_write_for_the_hub_H3(home: SharedHome) -> None:
    ada = Author(1)
    ada.add("The press runs on Tuesdays.")
    assert ada.mark == MARK
    join(home)
    assert "belongs to another repository" in home.pull(ada)[-1].problem
    home.own.close(CloseShare(pool=POOL))
    home.share(address=GIT)
    assert not home.pull(ada)[-1].problem
    bert = Author(2, "Bert", AUDIENCE)
    bert.add("The kettle leaks.")
    assert "belongs to another repository" in home.pull(bert)[-1].problem


@pytest.mark.parametrize("names", [("id:orchard",), ()])
def test_a_project_without_a_repository_joins_a_hub_and_no_git_remote_P3(
    home: SharedHome, names: tuple[str, ...]
) -> None:
    pool = "project/cellar"
    home.commit(PoolOpened(pool=pool, title="cellar"))
    if names:
        home.commit(AliasAdded(pool=pool, names=names))
    with pytest.raises(InvalidRequest, match="git repository"):
        home.own.open(OpenShare(pool=pool, address=GIT, name="Ada"))
    join(home, pool)
    entry = home.stores.sharing.share(pool)
    assert entry is not None and entry.hub == MARKED and entry.is_open


@pytest.mark.parametrize("pool", ["personal", "unbound/f00", "agent/reviewer"])
def test_no_other_pool_joins_a_hub_A2(home: SharedHome, pool: str) -> None:
    home.commit(PoolOpened(pool=pool, title=pool))
    with pytest.raises(InvalidRequest, match="not a project"):
        join(home, pool)


@pytest.mark.parametrize(
    ("address", "mark"),
    [
        (HUB, ""),
        (HUB, "two\nlines"),
        ("hub+https://hub.example.org", MARKED),
        ("hub+https://:443/orchard", MARKED),
        ("hub+https://ada@hub.example.org/orchard", MARKED),
        ("hub+https://ada:secret@hub.example.org/orchard", MARKED),
        ("hub+http://hub.example.org/orchard", MARKED),
        (GIT, MARKED),
        ("", MARKED),
    ],
)
def test_an_address_or_a_mark_that_is_none_is_refused_H3(home: SharedHome, address: str, mark: str) -> None:
    with pytest.raises(InvalidRequest):
        home.own.open(OpenShare(pool=POOL, address=address, mark=mark, name="Ada"))
    assert home.stores.sharing.share(POOL) is None


@pytest.mark.parametrize("address", ["hub+http://127.0.0.1:8700/orchard", "hub+http://localhost:8700/orchard"])
def test_a_hub_of_this_machine_needs_no_tls_H3(home: SharedHome, address: str) -> None:
    home.own.open(OpenShare(pool=POOL, address=address, mark=MARKED, name="Ada"))
    assert partition(home)


def test_a_change_of_how_keeps_the_mark_and_the_partition_H3(home: SharedHome) -> None:
    join(home)
    before = partition(home)
    home.own.open(OpenShare(pool=POOL, name="Ada of Kent"))
    join(home)
    entry = home.stores.sharing.share(POOL)
    assert entry is not None and entry.hub == MARKED and partition(home) == before


@pytest.mark.parametrize("is_open", [True, False])
def test_lines_that_others_have_are_not_sent_to_another_audience_H3(home: SharedHome, is_open: bool) -> None:
    home.commit(*added(record(1)))
    home.share(address=GIT)
    home.choose(1)
    sent(home)
    if not is_open:
        home.own.close(CloseShare(pool=POOL))
    for dry_run in (True, False):
        with pytest.raises(InvalidRequest, match="others have the lines") as error:
            join(home, dry_run=dry_run)
        assert "withdraw" in error.value.hint


def test_another_audience_gets_a_new_partition_and_only_what_is_chosen_for_it_H3(home: SharedHome) -> None:
    home.commit(*added(record(1), record(2), record(3)))
    home.share(address=GIT, new_sessions=True)
    home.choose(1, 2, keep=(3,))
    sent(home)
    before = partition(home)
    home.own.close(CloseShare(pool=POOL, withdraw=True))
    with pytest.raises(InvalidRequest, match="not withdrawn yet"):
        join(home)
    sent(home)
    join(home)
    entry = home.stores.sharing.share(POOL)
    assert entry is not None and entry.partitions == (before, partition(home)) and before != partition(home)
    assert not entry.opened.new_sessions and not entry.whole_since, "the user said that for the others"
    assert home.own.outbox(GetOutbox(pool=POOL)).items == () and home.lines() == []
    undecided = {candidate.record.id for candidate in home.own.review(ReviewShare(pool=POOL)).candidates}
    assert undecided == {identified(1), identified(2)}, "what the user keeps, he keeps from everybody"
    home.reword(1, "The orchard service number 1 moved.")
    assert home.lines() == []
    home.choose(1)
    assert said(home.lines()) == ["+The orchard service number 1 moved."]
    assert home.stores.sharing.own_lines(before), "the earlier partition stays readable"


def test_what_nobody_has_can_go_to_another_audience_at_once_H3(home: SharedHome) -> None:
    home.commit(*added(record(1)))
    home.share(address=GIT)
    home.choose(1)
    assert home.lines()
    before = partition(home)
    join(home, dry_run=True)
    assert partition(home) == before
    join(home)
    assert partition(home) != before and home.lines() == []


def test_an_audience_learns_nothing_of_the_lines_of_another_H3(home: SharedHome) -> None:
    home.share(address=GIT)
    ada = Author(1)
    ada.add("The press runs on Tuesdays.")
    home.pull(ada)
    home.judge(ada.name, "trusted")
    shared = home.shared(ada, 0)
    assert shared is not None
    join(home)
    home.own.invalidate(POOL, f"{ada.partition}/0", why="it runs on Fridays")
    home.arrivals.dispute(DisputeRecords(ids=(shared.id,)))
    assert home.lines() == [] and home.state(ada, 0) == "retired"


@pytest.mark.parametrize("is_hub", [True, False])
def test_after_a_withdrawal_the_same_audience_gets_only_what_is_chosen_anew_H3(home: SharedHome, is_hub: bool) -> None:
    def share() -> None:
        home.own.open(OpenShare(pool=POOL, address=HUB, mark=MARKED, name="Ada", new_sessions=True)) if is_hub else (
            home.share(address=GIT, new_sessions=True)
        )

    share()
    home.commit(*added(record(1), record(2), record(3)))
    home.choose(1, 2, keep=(3,))
    assert len(home.lines()) == 2
    sent(home)
    before = home.stores.sharing.share(POOL)
    home.own.close(CloseShare(pool=POOL, withdraw=True))
    sent(home)
    share()
    entry = home.stores.sharing.share(POOL)
    assert before is not None and entry is not None
    assert entry.whole_since > before.whole_since, "sessions of before the withdrawal were shared by another word"
    assert home.lines() == [] and home.own.outbox(GetOutbox(pool=POOL)).items == ()
    undecided = {candidate.record.id for candidate in home.own.review(ReviewShare(pool=POOL)).candidates}
    assert undecided == {identified(1), identified(2)}, "what the user keeps, he keeps"
    home.choose(2)
    assert said(home.lines()) == [f"+{record(2).content}"]


def test_what_was_chosen_stays_chosen_when_sharing_only_paused_H3(home: SharedHome) -> None:
    home.commit(*added(record(1)))
    join(home)
    home.choose(1)
    home.own.close(CloseShare(pool=POOL))
    join(home)
    assert said(home.lines()) == [f"+{record(1).content}"]
