"""What a profile said at another time: at every seq of a journal it is what the profile was then (Q1, Q12)."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from memd.clients.python import Client
from memd.daemon.projections.stores import Stores
from memd.daemon.projections.timeline import Timeline
from memd.daemon.services.profile.hot import render
from memd.daemon.services.profile.past import PastCaptures, PastCards
from memd.daemon.services.profile.profile_lines import ProfileLines
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.event import Captured, Origin, Said
from memd.protocol.fading import Archived, Count, Counted, Released, Restored
from memd.protocol.instant import from_micros
from memd.protocol.operation import AnyOperation, Invalidated, Moved, Pinned, Updated
from memd.protocol.profile import Profile, ProfileLine, ProfileText
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon
from tests.daemon.remembered import AT, COUNT, ORCHARD, PERSONAL, THINGS, TYPES, WHY, added, record

SCOPE = (PERSONAL, ORCHARD)
STATUSES: tuple[Any, ...] = ("active", "active", "active", "quarantined", "provisional")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    found = Stores(tmp_path, real_world(), registry.info())
    yield found
    found.close()


def title(pool: str) -> str:
    return pool.rpartition("/")[2]


def now(stores: Stores, budget: int = 600) -> ProfileText:
    """The profile of now, without a cache."""
    lines = ProfileLines(stores.profile, stores.archive, COUNT, signals=stores.counters.signals)
    return render(lines, title, SCOPE, budget, None)


def then(stores: Stores, budget: int = 600, as_of: str = "", believed_at: str = "") -> ProfileText:
    timeline = Timeline(stores.records, stores.sources, stores.journal)
    view = timeline.view(as_of, believed_at)
    assert view is not None
    captures = PastCaptures(stores.archive, Profile(as_of=as_of, believed_at=believed_at))
    lines = ProfileLines(PastCards(view), captures, COUNT, signals=view.signals)
    return render(lines, title, SCOPE, budget, None)


def operation(random: Random, number: int) -> AnyOperation:
    """One of the operations that change a profile."""
    id = f"id{random.randrange(max(1, number))}"
    pool = random.choice(SCOPE)
    match random.randrange(18):
        case 0:
            return Invalidated(id=id, valid_to=AT, reason="wrong")
        case 1:
            return Pinned(id=id, pinned=random.random() < 0.6, layer=random.choice(("L2", "L3")))
        case 2 | 3:
            uses, given = random.choice(((0, 30), (2, 0), (9, 3)))
            return Counted(pool=pool, counts={id: Count(candidates=given, uses=uses)})
        case 4:
            return Archived(pool=pool, ids=(id,))
        case 5:
            return Restored(ids=(id,))
        case 6:
            return Released(ids=(id,))
        case 7:
            return Moved(ids=(id,), pool=pool, reason="a test")
        case 8:
            new = record(random.randrange(max(1, number)), random.choice(TYPES), pool, words=f"We keep word{number}.")
            return Updated(record=new, decision=WHY)
        case _:
            thing = THINGS[random.randrange(12)]
            new = record(
                number,
                random.choice(TYPES),
                pool,
                words=f"I'll move the {thing} of room{number} to shelf{number * 3} next.",
                status=random.choice(STATUSES),
                importance=random.random(),
                said_at=f"2026-03-{1 + number % 27:02d}T10:00:00Z",
            )
            return added(new)[0]


@pytest.mark.parametrize("seed", range(4))
def test_at_every_seq_it_is_what_the_profile_was_Q12(stores: Stores, seed: int) -> None:
    random, told = Random(seed), list[tuple[str, ProfileText]]()
    for number in range(90):
        if random.random() < 0.2:
            thing = THINGS[random.randrange(12)]
            done = f"I moved the {thing} of room{random.randrange(90)}, it is done."
            said = Said(turn=f"said{number}", at="2026-04-01T10:00:00Z", role="user", text=done)
            stores.take([Captured(document="h:s", event=said)])
        entries = stores.commit([operation(random, number)])
        told.append((from_micros(entries[-1].at), now(stores)))
    assert len({text.text for _, text in told}) > 20, "the profile did change"
    for at, text in told:
        past = then(stores, believed_at=at)
        assert (past.text, past.lines, past.rev) == (text.text, text.lines, text.rev), at


def test_a_turn_that_memd_did_not_have_yet_closes_nothing_Q12(stores: Stores) -> None:
    words = "I'll move the violin of room7 to shelf9 next week."
    promise = record(1, "commitment", ORCHARD, words=words)
    stores.take([Captured(document="h:s", event=Said(turn="t1", at=AT, role="user", text=words))])
    entries = stores.commit(added(promise))
    assert "violin" in now(stores).text
    done = Said(turn="t2", at="2026-05-01T10:00:00Z", role="user", text="I moved the violin of room7 to shelf9, done.")
    stores.take([Captured(document="h:s", event=done)])
    assert "violin" not in now(stores).text
    assert "violin" in then(stores, believed_at=from_micros(entries[-1].at)).text
    assert "violin" in then(stores, as_of="2026-04-01T00:00:00Z").text
    assert "violin" not in then(stores, as_of="2026-06-01T00:00:00Z").text


def test_what_was_true_then_though_it_is_retired_now_Q12(stores: Stores) -> None:
    old = record(1, "preference", words="I use the copper kettle in the mornings.", valid_from="2026-01-01T00:00:00Z")
    stores.commit(added(old))
    stores.commit([Invalidated(id="id1", valid_to="2026-03-01T00:00:00Z", reason="replaced")])
    new = record(2, "preference", words="I use the steel kettle in the mornings.", valid_from="2026-03-01T00:00:00Z")
    stores.commit(added(new))
    assert "steel" in now(stores).text and "copper" not in now(stores).text
    february, april = (then(stores, as_of=f"2026-0{month}-01T00:00:00Z").text for month in (2, 4))
    assert "copper" in february and "steel" not in february
    assert "steel" in april and "copper" not in april
    assert then(stores, as_of="2025-12-01T00:00:00Z").text == ""


# --- through a running daemon -----------------------------------------------------------------------------------------
def last_at(client: Client) -> str:
    """The time of the last operation."""
    last = client.journal(0, 1).last
    return from_micros(client.journal(last - 1, 1).entries[0].at)


def sections(lines: tuple[ProfileLine, ...]) -> list[tuple[str, str]]:
    return [(line.id, line.section) for line in lines]


def test_the_daemon_tells_what_it_told_then_and_keeps_nothing_of_it_Q12_Q1(daemon: RunningDaemon) -> None:
    texts = ("I prefer tabs in Go.", "I always deploy on Tuesdays.", "I live in Leipzig.", "I never work on Sundays.")
    with daemon.client() as client:
        told: list[tuple[str, ProfileText]] = []
        for number, text in enumerate(texts):
            origin = Origin(host="pi", session="s")
            client.remember(Remember(text=text, turn=f"t{number}", at=AT, origin=origin))
            daemon.settle()
            told.append((last_at(client), client.profile()))
        client.pin(told[-1][1].ids[0])
        told.append((last_at(client), client.profile()))
        client.correct(told[-1][1].ids[1], "I deploy on Mondays, always.")
        daemon.settle()
        told.append((last_at(client), client.profile()))
        assert len({text.text for _, text in told}) >= 5
        seq = client.journal(0, 1).last
        for at, text in told:
            past = client.profile(believed_at=at, document="pi:s", delivery="sticky", prompt="when do I deploy?")
            assert (past.text, past.lines, past.scope) == (text.text, text.lines, text.scope)
            assert sections(past.lines) == sections(text.lines)
            assert not past.due and past.recalled is None and not client.printed("pi:s", past.rev).known
            package = client.context(believed_at=at, days=3650)
            assert set(text.ids) <= {row.record.id for row in package.selected}
        assert client.journal(0, 1).last == seq and client.injected().total == 0
        assert client.profile() == told[-1][1]
        empty = client.profile(believed_at="2020-01-01T00:00:00Z")
        assert empty.text == "" and not client.context(believed_at="2020-01-01T00:00:00Z").selected


def test_a_pass_sees_the_past_of_its_pool_alone_A1_Q12(daemon: RunningDaemon, tmp_path: Path) -> None:
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / ".memd-id").write_text("orchard-0001\n")
    with daemon.client() as owner:
        for number, (text, pool) in enumerate(
            (("I prefer tabs in Go.", "personal"), ("We always deploy the orchard on Tuesdays.", "project"))
        ):
            origin = Origin(host="pi", session="s", cwd=str(folder))
            owner.remember(Remember(text=text, turn=f"t{number}", at=AT, origin=origin, pool=pool))
        daemon.settle()
        at = last_at(owner)
        whole = owner.profile(cwd=str(folder), believed_at=at)
        assert "tabs" in whole.text and "Tuesdays" in whole.text
        token = owner.grant("reviewer", pools=[whole.scope[1]], for_s=3600).token
        with Client(daemon.places, deadline_ms=20_000, token=token) as reader:
            for told in (
                reader.profile(cwd=str(folder), believed_at=at).text,
                reader.context(cwd=str(folder), believed_at=at, days=3650).context,
            ):
                assert "Tuesdays" in told and "tabs" not in told
