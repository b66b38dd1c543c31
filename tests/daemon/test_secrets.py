"""Secrets in new captures, and `memd scan` over what is stored: named by kind, cut out to the last byte (W5, P-18)."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memd.daemon.storage.archive import Archive
from memd.daemon.storage.journal import JournalLog
from memd.daemon.world import real_world
from memd.protocol.block import plain
from memd.protocol.errors import InvalidRequest, MemdError
from memd.protocol.event import Captured, Origin, Said, ToolCalled, text
from memd.protocol.operation import Added, Decision, SessionOpened, Updated
from memd.protocol.record import LIVE, Provenance, Record, Span
from memd.protocol.reply import JobState
from tests.conftest import FAULT_ROUNDS, DaemonOfCopy, RunningDaemon, new_home

KEY = "ATBB" + "3g7gLXseCxPjJs1CQNMyEjwf1D12516D"
"""Known to the rule sets, not to the short list; in two halves, so that no scanner takes this file for a leak."""
MARK = "[redacted:bitbucket-app-password]"
AT = "2026-03-10T09:00:00+01:00"
WHERE = Origin(host="test", session="one")
WHY = Decision(action="add", reason="an older memd")


def finished(client: Any, state: JobState) -> dict[str, Any]:
    """The report of a job when it is over."""
    end = time.monotonic() + 60
    while state.state == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.state == "done", state.problem
    return dict(state.report)


def files_with(daemon: Any, words: str) -> list[str]:
    home = Path(daemon.environment["MEMD_HOME"])
    needle = words.encode()
    return [str(path) for path in home.rglob("*") if path.is_file() and needle in plain(path.read_bytes())]


def test_the_door_takes_out_what_the_first_net_does_not_know_P18(daemon: Any) -> None:
    called = ToolCalled(turn="2", at=AT, name="bash", arguments=f"git clone https://x:{KEY}@bitbucket.org/a/b")
    titled = Origin(host="test", session="two", title=f"clone with {KEY}")
    with daemon.client() as client:
        client.capture(
            WHERE, [Said(turn="1", at=AT, role="user", text=f"Clone it with {KEY} as the password."), called]
        )
        client.capture(titled, [Said(turn="1", at=AT, role="user", text="Hello there.")])
        client.remember(f"The deploy password is {KEY} on the build host.")
        report = finished(client, client.scan())
    daemon.terminate()
    assert files_with(daemon, KEY) == [] and files_with(daemon, MARK)
    assert report["checked_captures"] >= 4 and report["checked_records"] >= 1
    assert report["captures"] == 0 and report["records"] == [] and report["rules"] == []


def test_a_secret_that_two_turns_hold_together_is_not_stored_P18(daemon: Any) -> None:
    password, token = "Tr0ub4dor&Zq", "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    turns = ["My database password is", password, "the key is " + token[:20], token[20:], "And now, the weather."]
    said = [Said(turn=str(n), at=f"2026-03-10T09:00:0{n}+01:00", role="user", text=turns[n]) for n in range(len(turns))]
    with daemon.client() as client:
        client.capture(WHERE, said[:1])
        client.capture(WHERE, said[1:])
        client.distil()
        contents = [record.content for record in client.list().records]
    daemon.terminate()
    assert files_with(daemon, password) == files_with(daemon, token[20:]) == [] and files_with(daemon, "the weather")
    assert not any("password" in content for content in contents)


def test_what_the_user_names_is_scanned_too_P18(daemon: Any, tmp_path: Path) -> None:
    with daemon.client() as client:
        told = client.open_agent("bot", role=f"clones with {KEY}", perspectives=["cost", KEY])
        assert (told.role, told.perspectives) == (f"clones with {MARK}", ("cost", MARK))
        with pytest.raises(InvalidRequest, match="contains a secret") as refused:
            client.open_agent(KEY)
        assert KEY not in str(refused.value)
        assert client.bind_scope(str(tmp_path), title=f"orchard {KEY}").title == f"orchard {MARK}"
    daemon.terminate()
    assert files_with(daemon, KEY) == [] and files_with(daemon, MARK)


# --- what an older memd took -------------------------------------------------------------------------------------
TURN = f"Before. We clone the orchard with {KEY} on the build host. After it runs, the cherry job starts."


def cited(name: str, start: int, end: int, words: str) -> Record:
    quote = words[start:end]
    provenance = Provenance(
        author="user", source=WHERE.document, trust="user", quote=quote, said_at=AT,
        spans=(Span(WHERE.document, "2", start, end),),
    )  # fmt: skip
    return Record(
        id=name.ljust(26, "0"), pool="personal", kind="note", content=quote, description=" ".join(quote.split()),
        provenance=provenance, tags=("note", "orchard", KEY.lower()), value=KEY if KEY in quote else "",
    )  # fmt: skip


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    """The home that a memd left which knew no such rule, and its records: a turn, an earlier version of it, records on
    parts of it."""
    daemon = RunningDaemon(new_home(tmp_path_factory))
    daemon.start()
    assert daemon.terminate() == 0
    archive = Archive(daemon.places.data / "archive", real_world())
    journal = JournalLog(daemon.places.data / "journal", real_world())
    for words in (f"It is {KEY}, I think.", TURN):
        event = Said(turn="2", at=AT, role="user", text=words)
        archive.take([Captured(document=WHERE.document, event=event)])
    archive.take([Captured(document=WHERE.document, event=Said(turn="3", at=AT, role="user", text=f"Use x{KEY}x."))])
    begin, behind = TURN.index("We clone"), TURN.index("After")
    records = {
        "before": cited("before", 0, 7, TURN),
        "holds": cited("holds", begin, behind - 1, TURN),
        "half": cited("half", begin, TURN.index(KEY) + 20, TURN),
        "behind": cited("behind", behind, len(TURN), TURN),
    }
    where = Origin(host="test", session="one", title=f"clone with {KEY}")
    journal.commit([SessionOpened(document=WHERE.document, origin=where, project="", at=AT)])
    journal.commit([Added(record=record, decision=WHY) for record in records.values()])
    again = records["holds"]
    journal.commit([Updated(record=again, decision=WHY)])
    archive.close()
    journal.close()
    return Path(daemon.environment["MEMD_HOME"]), records


STORES = ((Archive, "archive"), (JournalLog, "journal"))


@pytest.fixture
def left(older: tuple[Path, dict[str, Record]], daemon_of_copy: DaemonOfCopy) -> tuple[Any, dict[str, Record]]:
    """A daemon whose stores hold a secret that nobody knew."""
    folder, records = older
    daemon = daemon_of_copy(folder)
    daemon.start()
    return daemon, records


def holding_quotes(daemon: Any) -> dict[str, Record]:
    """Every record, each checked against its span; the daemon is up."""
    with daemon.client() as client:
        records = {record.id: record for record in client.list(limit=500, statuses=list(LIVE)).records}
        for record in records.values():
            explained = client.why(record.id)
            assert explained.quote_holds, record
    return records


def test_scan_names_what_an_older_memd_took_without_its_words_P18(left: Any) -> None:
    daemon, _ = left
    with daemon.client() as client:
        report = finished(client, client.scan())
    assert report["captures"] == 3 and report["sessions"] == [WHERE.document]
    assert report["rules"][0].startswith("bitbucket-app-password ")
    assert KEY not in str(report) and files_with(daemon, KEY), "looking changes nothing"


def test_a_secret_found_late_is_cut_out_and_every_span_moves_with_its_words_P18(left: Any) -> None:
    daemon, before = left
    daemon.settle()
    with daemon.client() as client:
        finished(client, client.backup())
        held = [each.name for each in client.backups().backups]
        report = finished(client, client.scan(dry_run=False))
        assert report["left"] == [] and report["backups_dropped"] == held and report["backup_written"]
        assert files_with(daemon, KEY) == [] and files_with(daemon, KEY[:20]) == []
        again = finished(client, client.scan())
        assert (again["captures"], again["records"]) == (0, [])
    records = holding_quotes(daemon)
    rows = {name: records[record.id] for name, record in before.items()}
    assert rows["before"].content == before["before"].content == "Before."
    assert rows["behind"].provenance.quote == before["behind"].provenance.quote
    assert rows["behind"].provenance.spans != before["behind"].provenance.spans
    assert rows["holds"].content == before["holds"].content.replace(KEY, MARK) == rows["holds"].provenance.quote
    assert rows["half"].content.endswith(MARK) and rows["half"].provenance.quote == rows["half"].content
    for row in rows.values():
        assert row.tags == ("note", "orchard") and KEY[:8].lower() not in str(row).lower()
    with daemon.client() as client:
        said = client.capture(WHERE, [Said(turn="2", at=AT, role="user", text=TURN)])
        assert (said.duplicate, said.accepted, said.changed) == (1, 0, 0), "the transcript imported again"
        why = client.why(rows["holds"].id)
        assert [change.kind for change in why.changes] == ["added", "updated", "updated"]
        assert "secret was redacted" in why.changes[-1].decision.reason
    daemon.terminate()
    for kind, name in STORES:
        store = kind(daemon.places.data / name, real_world())
        assert store.log.verify() == store.log.last
        store.close()
    for name in ("projections", "vectors"):
        subprocess.run(["rm", "-r", str(daemon.places.data / name)], check=True)
    daemon.start()
    assert holding_quotes(daemon) == records, "replay believes something else"


def test_a_capture_in_flight_is_distilled_without_the_secret_P18(daemon: Any) -> None:
    daemon.terminate()
    archive = Archive(daemon.places.data / "archive", real_world())
    for number in range(16):
        words = f"I prefer the tool{number} kit with {KEY} for deploying the orchard."
        event = Said(turn=f"t{number}", at=AT, role="user", text=words)
        archive.take([Captured(document=WHERE.document, event=event)])
    archive.close()
    daemon.start()
    with daemon.client() as client:
        client.distil()
        assert finished(client, client.scan(dry_run=False))["left"] == []
    daemon.settle()
    assert files_with(daemon, KEY) == []
    assert any(MARK in record.content for record in holding_quotes(daemon).values())


def test_a_turn_that_was_cut_can_be_forgotten_P18_T10(left: Any) -> None:
    daemon, _ = left
    with daemon.client() as client:
        finished(client, client.scan(dry_run=False))
        assert finished(client, client.forget(query="cherry job"))["left"] == []
    assert files_with(daemon, "cherry job") == [] and files_with(daemon, "clone the orchard") == []


def test_the_command_looks_first_and_cuts_when_told_to_P18(left: Any) -> None:
    daemon, _ = left

    def memd(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memd.clients.cli.main", "scan", *arguments]
        return subprocess.run(
            command, env=daemon.environment, stdin=subprocess.DEVNULL, check=False, capture_output=True, text=True
        )

    for looked in (memd(), memd("--dry-run"), memd("--json")):
        assert looked.returncode == 0 and "bitbucket-app-password" in looked.stdout and KEY not in looked.stdout
    assert files_with(daemon, KEY)
    assert memd("--dry-run", "--yes").returncode == 2
    done = memd("--yes")
    assert done.returncode == 0 and "no copy remains" in done.stdout, done.stderr
    assert files_with(daemon, KEY) == [] and "no secrets in" in memd().stdout


PLACES = [
    "forget:redacted",
    "forget:journal-erased",
    "forget:archive-erased",
    "forget:archive-cut",
    "compact:renamed",
    "compact:closed:2",
    "forget:logs-compacted",
    "renew:tables",
    "forget:projections-renewed",
    "forget:vectors-swept",
    "forget:spools-scrubbed",
    "forget:copies-dropped",
    "forget:purged",
]


@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("place", PLACES)
def test_sigkill_at_any_step_is_finished_by_the_next_start_P18(
    older: tuple[Path, dict[str, Record]], daemon_of_copy: DaemonOfCopy, place: str, round_: int
) -> None:
    folder, before = older
    daemon = daemon_of_copy(folder)
    daemon.environment["MEMD_FAIL"] = place
    daemon.start()
    with daemon.client() as client, pytest.raises(MemdError):
        finished(client, client.scan(dry_run=False))
    assert daemon.process is not None and daemon.process.wait(20) == -9
    del daemon.environment["MEMD_FAIL"]
    daemon.start()
    assert files_with(daemon, KEY) == []
    records = holding_quotes(daemon)
    assert records[before["holds"].id].content == before["holds"].content.replace(KEY, MARK)
    daemon.terminate()
    archive = Archive(daemon.places.data / "archive", real_world())
    captured = archive.turn(WHERE.document, "2")
    assert captured and text(captured.event) == TURN.replace(KEY, MARK) and captured.redacted
    assert archive.log.verify() == archive.log.last
    archive.close()
