"""Two records that say the same become one with the sources of both; memd only proposes it where the user holds one
(T12)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from memd.daemon.forgetting_rules import Rules
from memd.daemon.services.lifecycle.duplicates import Duplicates
from memd.models.trunk import Trunk
from memd.protocol.event import Origin
from memd.protocol.operation import Added
from memd.protocol.record import Record, Span
from memd.protocol.request import Remember
from tests.daemon.living import AT, WHY, Running, record

SAID = "The staging database runs on port 6543."
AGAIN = "the staging database runs on port 6543"
OTHER = "The staging database runs on port 7654."
MORE = "The staging database runs on port 6543 behind pgbouncer, because it drops idle connections."


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Stores with a write thread."""
    found = Running(tmp_path / "data")
    yield found
    found.close()


def said(number: int, text: str, trust: Any = "user", **more: Any) -> Record:
    made = record(number, content=text, description=text, **{"tags": ("fact",), **more})
    spans = (Span(f"h:s{number}", f"t{number}", 0, len(text)),)
    source = replace(made.provenance, source=f"h:s{number}", spans=spans, quote=text, said_at=AT, trust=trust)
    return replace(made, provenance=source)


def shared(record: Record) -> Record:
    return replace(record, provenance=replace(record.provenance, visibility="shared"))


def run(running: Running, *records: Record) -> int:
    texts = list({each.description for each in records})
    rows = np.asarray(Trunk().embed(texts), np.float32)
    running.stores.vector_store.put((text, row.tobytes()) for text, row in zip(texts, rows, strict=True))
    running.stores.commit([Added(record=each, decision=WHY) for each in records])
    return Duplicates(running.stores, running.writer, Rules).run("personal")


def test_duplicates_become_one_with_both_sources_and_once_T12(running: Running) -> None:
    assert run(running, said(0, SAID), said(1, AGAIN), said(2, OTHER), said(3, "Ada works in Leuven.")) == 1
    kept, gone = running.stores.records.get("id0"), running.stores.records.get("id1")
    assert kept is not None and gone is not None
    assert (kept.status, gone.status, gone.superseded_by, kept.content) == ("active", "retired", "id0", SAID)
    assert [item.span.document for item in kept.provenance.evidence] == ["h:s1"]
    assert {running.status(2), running.status(3)} == {"active"}
    assert Duplicates(running.stores, running.writer, Rules).run("personal") == 0


def test_the_users_words_and_belief_outlive_those_of_an_agent_T12(running: Running) -> None:
    assert run(running, said(0, SAID, "assistant", status="quarantined"), said(1, AGAIN)) == 1
    assert (running.status(0), running.status(1)) == ("retired", "active")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (said(0, SAID), said(1, OTHER)),
        (said(0, SAID), said(1, AGAIN, pool="project/x")),
        (said(0, SAID, tags=("event",)), said(1, AGAIN, tags=("event",))),
        (said(0, SAID), replace(said(1, AGAIN), needs_review=True)),
        (said(0, SAID), shared(said(1, AGAIN))),
        (said(0, SAID), replace(said(1, AGAIN), status="retired")),
        (said(0, "I never deploy on Fridays."), said(1, "I deploy on Fridays.")),
    ],
    ids=["another value", "another pool", "an event", "in doubt", "of another visibility", "retired", "denied"],
)
def test_what_says_something_else_stays_T12(running: Running, first: Record, second: Record) -> None:
    assert run(running, first, second) == 0
    assert running.status(0) == "active"


@pytest.mark.parametrize("change", [{"pinned": True}, {"layer": "L2"}, {"layer": "L1"}])
def test_of_what_the_user_holds_a_merge_is_only_proposed_and_once_T12(running: Running, change: dict[str, Any]) -> None:
    held = replace(said(1, AGAIN), **change)
    assert run(running, said(0, SAID), held) == 1
    assert {running.status(0), running.status(1)} == {"active"}
    (pending,) = running.stores.inbox.list()
    assert (pending.what.what, pending.what.record, pending.what.against) == ("duplicate", "id0", "id1")
    assert Duplicates(running.stores, running.writer, Rules).run("personal") == 0


def test_the_user_accepts_or_rejects_a_merge_T12(daemon: Any) -> None:
    ids: list[str] = []
    with daemon.client() as client:
        for number, text in enumerate((SAID, "Deploys go to Hetzner.")):
            origin = Origin(host="cli", session=f"s{number}")
            ids.append(client.remember(Remember(text=text, turn="1", at=AT, origin=origin)).record.id)
        daemon.settle()
        client.pin(ids[0])
        client.pin(ids[1])
        later = Origin(host="cli", session="later")
        other = client.remember(Remember(text=MORE, turn="2", at="2026-02-01T00:00:00Z", origin=later)).record.id
        daemon.settle()
        client.edit(other, SAID)
        client.sleep(pools=("personal",))
        (waiting,) = client.inbox().proposals
        assert (waiting.what, {waiting.record, waiting.against}) == ("duplicate", {ids[0], other})
        client.decide(waiting.id, True)
        kept, gone = client.get(waiting.against), client.get(waiting.record)
        assert (kept.status, gone.status, gone.superseded_by) == ("active", "retired", kept.id)
        assert kept.pinned, "the one that the user holds stays"
        client.sleep(pools=("personal",))
        assert client.inbox().open == 0
