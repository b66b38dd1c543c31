"""What a running daemon does with other authors' records: its judges leave them, and reads name the author (W7)."""

from pathlib import Path
from typing import Any

import pytest

from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin, Said
from memd.protocol.record import Record
from memd.protocol.request import Remember
from memd.protocol.shared_lines import InvLine, decode_shared
from tests.conftest import RunningDaemon
from tests.daemon.shared_authors import Author
from tests.daemon.shared_home import ARRIVAL, POOL, SharedHome

OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"
SAID = (
    "The staging database runs on port 6543.",
    "Deploys of the app go out on Tuesdays only.",
    "I now use Postgres for the orchard.",
)
DENIED = (
    "The staging database runs on port 7654.",
    "Deploys of the app go out on Fridays only.",
    "The staging database runs on port 6543.",
)


@pytest.fixture
def prepared(home: dict[str, str], tmp_path: Path) -> Any:
    """A daemon in a home that has taken Ada's lines, whom the user trusts; its folder is a checkout of the project."""
    folder = Path(home["MEMD_HOME"])
    stores = SharedHome(folder, ARRIVAL)
    stores.open()
    ada = Author(1, "Ada")
    for text in SAID:
        ada.add(text, type="fact", said="2026-02-01")
    stores.pull(ada)
    stores.judge("Ada", "trusted")
    ids = [record.id for number in range(len(SAID)) if (record := stores.shared(ada, number))]
    stores.close()
    running = RunningDaemon(home)
    running.start()
    yield running, ids
    running.terminate()


def remembered(daemon: RunningDaemon, text: str, turn: str, at: str) -> Record:
    with daemon.client() as client:
        wish = Remember(text=text, turn=turn, at=at, origin=Origin(host="cli", session="mine"), pool=POOL)
        return client.remember(wish).record


def test_no_judge_retires_a_shared_record_or_one_of_this_home_for_it_W7(prepared: Any) -> None:
    daemon, ids = prepared
    daemon.settle()
    mine = [remembered(daemon, text, f"t{number}", NEW) for number, text in enumerate(DENIED)]
    daemon.settle()
    with daemon.client() as client:
        theirs = [client.get(id) for id in ids]
        assert [(each.status, each.rev) for each in theirs] == [("active", 2)] * 3, "the trust is revision 2"
        kept = [client.get(each.id) for each in mine]
        assert not {each.superseded_by for each in kept} & set(ids)
        assert all(not set(each.supersedes) & set(ids) for each in kept)
        assert kept[1].status == "active"
        asked = {(proposal.record, proposal.against) for proposal in client.inbox().proposals}
        assert asked == {(ids[1], mine[1].id)}, "the first statement does not stand beside the third"
        hit = next(
            hit for hit in client.recall("deploys of the app on Tuesdays", pools=[POOL]).hits if hit.record.id == ids[1]
        )
        assert hit.record.provenance.author == "Ada"
        why = client.why(ids[1])
        assert (why.session, why.project) == (theirs[1].provenance.source, POOL)
        assert why.changes[0].decision is not None and why.changes[0].decision.reason == "shared by Ada"


@pytest.mark.parametrize("accept", [True, False])
def test_the_user_decides_whether_the_own_statement_replaces_a_shared_record_W7(prepared: Any, accept: bool) -> None:
    daemon, ids = prepared
    daemon.settle()
    mine = remembered(daemon, DENIED[1], "t1", NEW)
    daemon.settle()
    with daemon.client() as client:
        (asked,) = client.inbox().proposals
        assert (asked.what, asked.record, asked.against) == ("conflict", ids[1], mine.id)
        assert client.share_outbox(POOL).items == ()
        client.decide(asked.id, accept)
        theirs = client.get(ids[1])
        assert client.get(mine.id).status == "active" and client.inbox().open == 0
        lines = [decode_shared(item.line.encode(), 0) for item in client.share_outbox(POOL).items]
        if accept:
            assert (theirs.status, theirs.superseded_by) == ("retired", mine.id)
            (line,) = lines
            assert isinstance(line, InvLine) and (line.id, line.why) == (f"{Author(1).partition}/1", "")
        else:
            assert theirs.status == "active" and lines == []


def test_a_shared_record_is_in_no_static_profile_W7(prepared: Any) -> None:
    daemon, _ = prepared
    daemon.settle()
    with daemon.client() as client:
        assert "Postgres for the orchard" not in str(client.profile(pools=[POOL]))


@pytest.mark.parametrize("host", ["team", "memd"])
def test_no_tool_captures_as_another_author_or_as_memd_H2(prepared: Any, host: str) -> None:
    daemon, _ = prepared
    with daemon.client() as client:
        said = Said(turn="0", at=NEW, role="user", text="I am Ada.")
        with pytest.raises(InvalidRequest, match="reserved"):
            client.capture(Origin(host=host, session=Author(1).partition), [said])
        with pytest.raises(InvalidRequest, match="reserved"):
            client.remember(Remember(text="I am Ada.", turn="1", at=NEW, origin=Origin(host=host, session="x")))
