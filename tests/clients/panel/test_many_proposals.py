"""The inbox with more open proposals than one answer of the daemon has (G7, U4)."""

from collections.abc import Iterator

from memd.clients.panel.disputes import MOST
from memd.clients.panel.screens.inbox_screen import PAGE
from memd.protocol.record import Provenance, Record, Span, record_id
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import ImportRecords
from tests.clients.panel.conftest import SAID_AT, Opened, RunningPanel, needs_browser
from tests.conftest import RunningDaemon

pytestmark = needs_browser

PROPOSALS = MOST + 2 * PAGE + 3
ANSWER_BYTES = 64_000


def statements(number: int) -> Iterator[Record]:
    """Records of some hundred characters, each of another thing."""
    for n in range(number):
        text = f"The crate number {n} stands in shed {n % 7}, " + "because the other shed has no room left, " * 5
        span = Span("bench:crates", f"{n}", 0, len(text))
        source = Provenance(
            author="user", source="bench:crates", trust="user", spans=(span,), quote=text, said_at=SAID_AT
        )
        id = record_id("personal", "bench:crates", f"{n}", 0, 0)
        yield Record(id=id, pool="personal", kind="note", content=text, description=text, provenance=source)


def test_more_than_a_thousand_proposals_are_paged_in_small_answers_G7_U4(
    daemon: RunningDaemon, panel: RunningPanel, opened: Opened
) -> None:
    records = list(statements(PROPOSALS))
    ids = [record.id for record in records]
    with daemon.client() as client:
        for start in range(0, PROPOSALS, 500):
            exported = tuple(ExportedRecord(record=record) for record in records[start : start + 500])
            client.import_records(ImportRecords(records=exported))
        for start in range(0, PROPOSALS, 64):
            client.propose_forget(ids[start : start + 64], "an agent")
    tab = opened().go("/inbox")
    assert tab.text("h1") == f"{PROPOSALS:,} things only you decide"
    shown: list[str] = []
    for _ in range(3):
        cards = tab.find(".ask").evaluate_all("all => all.map(card => card.id)")
        assert len(cards) == PAGE and not set(cards) & set(shown)
        shown += cards
        tab.find("text=Newer ones").click()
        tab.find(f"#{cards[0]}").wait_for(state="detached")
    assert tab.find("text=The oldest again").count() == 1
    sizes = {path: size for path, size in tab.sizes.items() if path.startswith("/inbox")}
    assert len(sizes) == 4 and max(sizes.values()) <= ANSWER_BYTES, sizes
    assert tab.complaints == []
