"""Pins and principles: the user's own promotion, its caps, and what it outlasts (R9, Q8, T8)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memd.daemon.projections.stores import Stores
from memd.daemon.services.corrections.corrections_service import CAPS, pinned
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import InvalidRequest
from memd.protocol.operation import Moved, Pinned, Updated
from memd.protocol.record import PRINCIPLE
from tests.daemon.remembered import COUNT, ORCHARD, PERSONAL, WHY, added, hot_of, record


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    found = Stores(tmp_path, real_world(), registry.info())
    yield found
    found.close()


def test_a_pin_promotes_to_L1_or_L2_and_stands_first_R9(stores: Stores) -> None:
    stores.commit(added(*(record(n, importance=0.9) for n in range(30)), record(40, "event", importance=0.1)))
    stores.commit(added(record(41, "lesson", ORCHARD, trust="assistant", status="quarantined")))
    promoted = pinned(stores, stores.records.get("id40"), True)  # type: ignore[arg-type]
    assert (promoted.record.layer, promoted.record.pinned, promoted.record.rev) == ("L1", True, 2)
    assert pinned(stores, promoted.record, True).duplicate
    project = pinned(stores, stores.records.get("id41"), True).record  # type: ignore[arg-type]
    assert (project.layer, project.status) == ("L2", "active"), "the user's own word takes it out of quarantine"
    told = hot_of(stores).profile((PERSONAL, ORCHARD), 300, 0)
    lines = told.text[: told.static_characters].splitlines()
    assert lines[2] == "## Pinned by the user" and promoted.record.description in lines[3]
    assert any(project.description in line and "unconfirmed" not in line for line in lines)
    back = pinned(stores, promoted.record, False).record
    assert (back.layer, back.pinned) == ("L3", False)
    assert "Pinned" not in hot_of(stores).profile((PERSONAL,), 300, 0).text


def test_a_full_layer_and_a_flagged_record_are_refused_with_a_way_out_R9(stores: Stores) -> None:
    stores.commit(added(*(record(n) for n in range(CAPS["L1"] + 1))))
    stores.commit([Pinned(id=f"id{n}", pinned=True, layer="L1") for n in range(CAPS["L1"])])
    last = stores.records.get(f"id{CAPS['L1']}")
    assert last is not None
    with pytest.raises(InvalidRequest) as caught:
        pinned(stores, last, True)
    assert "full: it holds 40 of at most 40" in caught.value.message and "memd unpin" in caught.value.hint
    stores.commit([Pinned(id="id3", pinned=False, layer="L3")])
    assert pinned(stores, last, True).record.layer == "L1"
    stores.commit(added(record(99, flags=("injection",)), record(98, status="archived")))
    for id, hint in (("id99", "memd edit"), ("id98", "active records")):
        with pytest.raises(InvalidRequest) as caught:
            pinned(stores, stores.records.get(id), True)  # type: ignore[arg-type]
        assert hint in caught.value.hint


def test_principles_stand_first_within_a_fifth_and_only_the_user_makes_them_Q8(stores: Stores) -> None:
    words = "In principle we keep the lantern on the third shelf."
    captured = msgspec.structs.replace(record(90, "convention", words=words), tags=("convention", "principle"))
    stores.commit(added(*(record(n) for n in range(30)), captured))
    assert PRINCIPLE not in stores.records.get("id90").tags, "a keyword of captured text is none"  # type: ignore[union-attr]
    for n in range(20):
        told = pinned(stores, stores.records.get(f"id{n}"), True, principle=True)  # type: ignore[arg-type]
        assert PRINCIPLE in told.record.tags
    with pytest.raises(InvalidRequest, match="20 principles"):
        pinned(stores, stores.records.get("id20"), True, principle=True)  # type: ignore[arg-type]
    again = pinned(stores, stores.records.get("id3"), True)  # type: ignore[arg-type]
    assert again.duplicate and PRINCIPLE in again.record.tags
    stores.commit([Updated(record=record(3, rev=9), decision=WHY)])
    assert PRINCIPLE in stores.records.get("id3").tags, "a revision keeps it"  # type: ignore[union-attr]
    told = hot_of(stores).profile((PERSONAL,), 500, 0)
    lines = told.text.splitlines()
    at = lines.index("## Principles")
    section = lines[at : next(n for n in range(at + 1, len(lines)) if lines[n].startswith(("##", "</")))]
    assert at == 3 and len(section) >= 3 and COUNT("\n".join(section)) <= 0.2 * 500
    assert any(line.startswith("## P") and line != "## Principles" for line in lines), "and leave room for the rest"
    back = pinned(stores, stores.records.get("id3"), False).record  # type: ignore[arg-type]
    assert PRINCIPLE not in back.tags and back.layer == "L3"


def test_a_pin_outlasts_revisions_and_L1_stays_personal_R9(stores: Stores) -> None:
    stores.commit(added(record(1)))
    stores.commit([Pinned(id="id1", pinned=True, layer="L1")])
    stores.commit([Updated(record=record(1, rev=3), decision=WHY)])
    found = stores.records.get("id1")
    assert found is not None and (found.layer, found.pinned) == ("L1", True)
    stores.commit([Moved(ids=("id1",), pool=ORCHARD, reason="asked")])
    found = stores.records.get("id1")
    assert found is not None and (found.layer, found.pool) == ("L2", ORCHARD)
