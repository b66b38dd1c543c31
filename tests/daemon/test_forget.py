"""Forgetting: no byte is left, everything else is as it was, and what a kill cut off is finished (T10, P-10)."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import msgspec
import pytest

from memd.clients.importers.claude_code import read
from memd.clients.python import Client
from memd.daemon.world import real_world
from memd.protocol.block import plain
from memd.protocol.errors import Forgotten, InvalidRequest, MemdError, NotFound
from memd.protocol.event import Noted, Origin, Said
from memd.protocol.frames import framed
from memd.protocol.record import Record
from memd.protocol.reply import JobState
from memd.protocol.request import Remember
from tests.conftest import FAULT_ROUNDS, DaemonOfCopy, RunningDaemon, new_home

ORIGIN = Origin(host="cli", session="here")
SAMPLE = Path(__file__).parents[2] / "clients" / "cli" / "sample" / "session.jsonl"
AT = "2026-01-01T00:00:00Z"
NAMES = ("journal", "archive", "projections", "vectors", "backups")


def said(text: str, turn: str, origin: Origin = ORIGIN) -> Remember:
    return Remember(text=text, turn=turn, at=f"2026-01-01T00:00:{int(turn[-2:]):02}Z", origin=origin)


def ended(client: Client, state: JobState) -> dict[str, Any]:
    while state.state == "running":
        time.sleep(0.02)
        state = client.job(state.id)
    assert state.problem is None, state.problem
    return dict(state.report)


def files_with(daemon: Any, words: str) -> list[str]:
    """Every file of this home, the daemon's log included, that holds these words in any case."""
    home = Path(daemon.environment["MEMD_HOME"])
    needle = words.encode().lower()
    return [str(path) for path in home.rglob("*") if path.is_file() and needle in plain(path.read_bytes()).lower()]


def believed(client: Client) -> dict[str, Record]:
    return {record.id: record for record in client.list(limit=500).records}


def others(client: Client, *gone: str) -> list[tuple[str, str, str, str, str]]:
    return sorted(
        (each.id, each.status, each.description, each.key, each.superseded_by)
        for each in believed(client).values()
        if each.id not in gone
    )


def verified(daemon: Any) -> None:
    """The chains hold, headers and what is left of the payloads. The daemon is down."""
    from memd.daemon.storage.archive import Archive
    from memd.daemon.storage.journal import JournalLog

    for kind, name in ((JournalLog, "journal"), (Archive, "archive")):
        store = kind(daemon.places.data / name, real_world())
        assert store.log.verify() == store.log.last
        store.close()


SENTENCES = {
    "xylofon": "I prefer the xylofon editor for Python.",
    "tuesdays": "We deploy the orchard service on Tuesdays.",
    "tabs": "I prefer tabs for indentation.",
    "quokka": "The quokka cluster runs in Lisbon.",
}
"""What the daemon knows, by a word of each."""


def tell(daemon: RunningDaemon) -> dict[str, str]:
    """Tell the sentences; return the ids of their records by word."""
    with daemon.client() as client:
        kept = {
            word: client.remember(said(text, f"t{number:02}")).record.id
            for number, (word, text) in enumerate(SENTENCES.items(), 1)
        }
    daemon.settle()
    return kept


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The home of an ended daemon that knows the sentences, and the ids of their records."""
    daemon = RunningDaemon(new_home(tmp_path_factory))
    daemon.start()
    kept = tell(daemon)
    assert daemon.terminate() == 0
    return Path(daemon.environment["MEMD_HOME"]), kept


@pytest.fixture
def told(
    taught: tuple[Path, dict[str, str]], daemon_of_copy: DaemonOfCopy
) -> Iterator[tuple[Any, Client, dict[str, Record]]]:
    """A daemon that knows the sentences since its last start."""
    folder, ids = taught
    daemon = daemon_of_copy(folder)
    daemon.start()
    with daemon.client() as client:
        yield daemon, client, {word: client.get(id) for word, id in ids.items()}


def test_no_byte_is_left_of_a_forgotten_record_and_others_are_untouched_T10(daemon: Any) -> None:
    gone = tell(daemon)["xylofon"]
    with daemon.client() as client:
        before = others(client, gone)
        report = ended(client, client.forget([gone]))
        assert (report["records"], report["captures"], report["left"]) == (1, 1, [])
        assert files_with(daemon, "xylofon") == []
        assert others(client) == before
        assert client.recall("which editor do I prefer").hits == () or gone not in {
            hit.record.id for hit in client.recall("which editor do I prefer").hits
        }
        with pytest.raises(NotFound):
            client.get(gone)
    daemon.terminate()
    assert files_with(daemon, "xylofon") == []
    verified(daemon)
    daemon.start()
    with daemon.client() as fresh:
        assert others(fresh) == before


def test_a_forgotten_turn_is_never_taken_again_a_new_turn_is_learnt_T10(told: Any) -> None:
    daemon, client, kept = told
    gone = kept["xylofon"].id
    ended(client, client.forget([gone]))
    with pytest.raises(Forgotten):
        client.remember(said("I prefer the xylofon editor for Python.", "t01"))
    taken = client.capture(ORIGIN, [Noted(turn="t01", at="2026-01-01T00:00:01Z", text="I like the xylofon.")])
    assert (taken.accepted, taken.duplicate, taken.changed, taken.forgotten) == (0, 0, 0, 1)
    assert files_with(daemon, "xylofon") == []
    again = client.remember(said("I prefer the xylofon editor for Python.", "t09")).record
    assert again.id != gone and client.get(again.id).status in ("provisional", "active")
    daemon.settle()
    assert again.id in believed(client)


def test_edited_and_restated_words_go_with_their_record_T10(told: Any) -> None:
    daemon, client, kept = told
    gone = kept["xylofon"].id
    client.edit(gone, "I prefer the vuvuzela editor for Python.")
    client.remember(said("I prefer the vuvuzela editor for Python.", "t07"))
    daemon.settle()
    before = others(client, gone)
    ended(client, client.forget([gone]))
    assert files_with(daemon, "xylofon") == [] and files_with(daemon, "vuvuzela") == []
    assert [each for each in others(client) if each in before] == others(client)


def test_what_a_forgotten_record_had_replaced_stays_replaced_T10(told: Any) -> None:
    daemon, client, kept = told
    old = kept["tabs"].id
    new = client.remember(said("I prefer spaces for indentation.", "t08")).record.id
    daemon.settle()
    assert client.get(old).status == "retired" and client.get(old).superseded_by == new
    row = client.get(old)
    ended(client, client.forget([new]))
    assert client.get(old) == row
    assert files_with(daemon, "spaces for indentation") == []
    assert [change.kind for change in client.why(old).changes][-1] == "erased"
    daemon.terminate()
    for name in ("projections", "vectors"):
        subprocess.run(["rm", "-r", str(daemon.places.data / name)], check=True)
    daemon.start()
    with daemon.client() as fresh:
        assert fresh.get(old) == row, "replay from what is left believes something else"


def test_a_record_that_others_vouch_for_stays_on_what_is_left_T10(daemon: Any) -> None:
    text = "I always prefer the marimba editor for Python code."
    with daemon.client() as client:
        for number, session in enumerate(("first", "second"), 1):
            turn = Said(turn=f"t{number}", at=f"2026-01-0{number}T00:00:00Z", role="user", text=text)
            client.capture(Origin(host="cli", session=session), [turn])
            daemon.settle()
        (record,) = believed(client).values()
        assert record.provenance.source == "cli:first" and len(record.provenance.evidence) == 1
        plan = client.preview_forget(session="first")
        assert (plan.record_count, plan.captures, plan.records[0].why) == (0, 1, "loses a source")
        report = ended(client, client.forget(session="first"))
        assert (report["records"], report["rebased"], report["left"]) == (0, 1, [])
        row = client.get(record.id)
        assert row.provenance.evidence == () and row.provenance.source == "cli:second"
        assert (row.content, row.description, row.status) == (text, record.description, "active")
        assert client.why(record.id).quote_holds
    daemon.terminate()
    subprocess.run(["rm", "-r", str(daemon.places.data / "projections")], check=True)
    daemon.start()
    with daemon.client() as client:
        assert client.get(record.id) == row
        assert ended(client, client.forget([record.id]))["left"] == []
    assert files_with(daemon, "marimba") == []


def test_what_was_edited_or_corrected_does_not_name_a_forgotten_session_T10(daemon: Any) -> None:
    turns = ("I prefer the marimba editor for Python.", "We deploy the orchard service on Tuesdays.")
    origin = Origin(host="cli", session="the-gone-one")
    events = [Said(turn=f"t{n}", at=AT, role="user", text=text) for n, text in enumerate(turns, 1)]
    with daemon.client() as client:
        client.capture(origin, events)
        daemon.settle()
        first, second = sorted(believed(client).values(), key=lambda each: each.provenance.spans[0].turn)
        edited = client.edit(first.id, "I prefer the vuvuzela editor for Python.").record
        corrected = client.correct(second.id, "We deploy the orchard service on Thursdays.").record
        daemon.settle()
        ended(client, client.forget(session="the-gone-one"))
        rows = [client.get(each.id) for each in (edited, corrected)]
        assert [row.provenance.source for row in rows] == [f"memd:edits/{first.id}", f"memd:corrections/{second.id}"]
        for row in rows:
            for told in (row, client.why(row.id), client.history(row.id)):
                assert b"the-gone-one" not in msgspec.json.encode(told)
        daemon.terminate()
    subprocess.run(["rm", "-r", str(daemon.places.data / "projections")], check=True)
    daemon.start()
    with daemon.client() as client:
        assert [client.get(row.id) for row in rows] == rows


def test_a_session_is_forgotten_whole_also_after_it_is_imported_again_T10(daemon: Any) -> None:
    (session, *_) = read(SAMPLE).sessions
    with daemon.client() as client:
        client.remember(said("The ferry leaves at noon.", "t01"))
        client.capture(session.origin, session.events)
        daemon.settle()
        keeps = others(client, *(r.id for r in believed(client).values() if r.provenance.source != "cli:here"))
        words = max((each.text for each in session.events if isinstance(each, Said)), key=len)[:60]
        assert files_with(daemon, words)
        report = ended(client, client.forget(session=session.origin.document))
        assert report["left"] == [] and report["captures"] == len(session.events)
        taken = client.capture(session.origin, session.events)
        assert (taken.accepted, taken.forgotten) == (0, len(session.events))
        daemon.settle()
        assert others(client) == keeps
        for event in session.events:
            if isinstance(event, Said) and len(event.text) > 40:
                assert files_with(daemon, event.text[:60]) == []


def test_a_query_takes_every_turn_that_holds_the_words_T10(told: Any) -> None:
    daemon, client, kept = told
    client.capture(ORIGIN, [Said(turn="t20", at="2026-01-01T00:00:20Z", role="assistant", text="A QUOKKA? Sure.")])
    before = others(client, kept["quokka"].id)
    plan = client.preview_forget(query="quokka")
    assert plan.record_count == 1 and plan.captures == 2 and files_with(daemon, "quokka")
    assert ended(client, client.forget(query="quokka"))["left"] == []
    assert files_with(daemon, "quokka") == []
    daemon.settle()
    assert others(client) == before and client.status().pending == 0


def test_the_profile_that_a_host_reads_from_a_file_is_emptied_T10(told: Any) -> None:
    daemon, client, kept = told
    given = daemon.places.hooks / "aider.md"
    given.parent.mkdir(parents=True, exist_ok=True)
    given.write_text("- I prefer the xylofon editor …\n- My bicycle is yellow.\n")
    assert ended(client, client.forget([kept["xylofon"].id]))["left"] == []
    assert given.read_bytes() == b""


@pytest.mark.parametrize(("stored", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_query_finds_the_words_however_their_accents_are_written_T10(told: Any, stored: Any, asked: Any) -> None:
    daemon, client, _ = told
    words = "I always meet friends at the Caf\u00e9 Zorba."
    before = others(client)
    client.remember(said(normalize(stored, words), "t40"))
    daemon.settle()
    other = daemon.places.state / "other.log"  # a program may have written them in the other form
    other.write_text(f"heard: {normalize(asked, words)}\n")
    query = normalize(asked, "CAF\u00c9 zorba")
    assert client.preview_forget(query=query).record_count == 1
    report = ended(client, client.forget(query=query))
    assert (report["records"], report["captures"], report["left"]) == (1, 1, [])
    assert others(client) == before and files_with(daemon, "zorba") == [] and "heard" in other.read_text()


def test_a_spool_that_holds_the_words_is_cleaned_T10(told: Any) -> None:
    daemon, client, kept = told
    client.spool.append(said("I prefer the xylofon editor for Python.", "t01"))
    client.spool.append(said("My bicycle is yellow.", "t30"))
    client.spool.append(said("Again: I prefer the xylofon editor for Python.", "t31"))
    assert files_with(daemon, "xylofon editor")
    assert ended(client, client.forget([kept["xylofon"].id]))["left"] == []
    assert files_with(daemon, "xylofon") == []
    assert client.spool.waiting() == 1 and client.drain().delivered == 1
    assert files_with(daemon, "bicycle is yellow")


DAMAGED_REQUESTS = {
    "JSON": b'{"request": "captured", "text": "my Xylofon Editor"}\n',
    "torn and escaped": b'{"request": "capture", "text": "my xylofon\\n\\u0065ditor", "torn',
    "MessagePack": framed(b"\x82\xa7request\xa4none\xa4text\xb1my xylofon editor."),
    "torn frame": b"\0\0\0\xff xylofon editor",
}


@pytest.mark.parametrize("damaged", DAMAGED_REQUESTS.values(), ids=DAMAGED_REQUESTS)
def test_a_damaged_request_that_holds_the_words_of_a_query_is_removed_T10(told: Any, damaged: bytes) -> None:
    daemon, client, _ = told
    is_json = damaged.startswith(b"{")
    other = b'{"request": "none", "text": "my bicycle"}\n' if is_json else framed(b"\xc1 my bicycle")
    rejected = daemon.places.spool / "h.rejected"
    rejected.write_bytes(other + damaged)
    assert client.preview_forget(query="xylofon editor").spooled == 1
    report = ended(client, client.forget(query="xylofon editor"))
    assert (report["records"], report["discarded"], report["left"]) == (1, 1, [])
    assert files_with(daemon, "xylofon") == [] and rejected.read_bytes() == other
    rejected.write_bytes(other + damaged)  # the text is nowhere else
    report = ended(client, client.forget(query="xylofon editor"))
    assert (report["records"], report["discarded"], report["left"]) == (0, 1, []) and report["searched_files"]
    assert rejected.read_bytes() == other


def test_backups_that_hold_the_words_are_replaced_T10(told: Any) -> None:
    daemon, client, kept = told
    ended(client, client.backup())
    held = [each.name for each in client.backups().backups]
    report = ended(client, client.forget([kept["xylofon"].id]))
    assert report["backups_dropped"] == held and report["left"] == []
    (fresh,) = client.backups().backups
    assert fresh.name == report["backup_written"]
    assert files_with(daemon, "xylofon") == []


def test_a_restore_of_what_memd_could_not_reach_brings_nothing_back_T10(told: Any, tmp_path: Path) -> None:
    daemon, client, kept = told
    elsewhere = tmp_path / "stick"
    ended(client, client.backup(str(elsewhere)))
    before = others(client, kept["xylofon"].id)
    ended(client, client.forget([kept["xylofon"].id]))
    daemon.terminate()
    restored = subprocess.run(
        [sys.executable, "-m", "memd.daemon", "restore-backup", "--from", str(elsewhere)],
        env=daemon.environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert restored.returncode == 0, restored.stderr
    assert files_with(daemon, "xylofon")
    daemon.start()
    assert files_with(daemon, "xylofon") == []
    with daemon.client() as fresh:
        assert others(fresh) == before
        with pytest.raises(Forgotten):
            fresh.remember(said("I prefer the xylofon editor for Python.", "t01"))


def test_forgetting_needs_a_scope_P10(told: Any) -> None:
    _, client, kept = told
    for scope in ({}, {"query": "x", "session": "cli:here"}, {"query": "ab"}):
        with pytest.raises(InvalidRequest):
            client.preview_forget(**scope)
    with pytest.raises(NotFound):
        client.preview_forget(session="nowhere")
    with pytest.raises(InvalidRequest):
        client.forget()
    assert len(believed(client)) == len(kept)


def test_the_command_previews_and_asks_before_it_forgets_P10(told: Any) -> None:
    daemon, client, kept = told
    gone = kept["xylofon"].id

    def memd(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memd.clients.cli.main", *arguments]
        return subprocess.run(
            command, env=daemon.environment, stdin=subprocess.DEVNULL, check=False, capture_output=True, text=True
        )

    dry = memd("forget", gone[:8], "--dry-run")
    assert dry.returncode == 0 and "1 record" in dry.stdout and "xylofon" in dry.stdout
    assert memd("forget", gone[:8]).returncode == 7 and gone in believed(client)
    assert memd("forget", "--yes").returncode == 2
    done = memd("forget", gone[:8], "--yes")
    assert done.returncode == 0 and "no copy remains" in done.stdout, done.stderr
    assert gone not in believed(client)


def test_a_batch_in_flight_does_not_bring_it_back_T10(daemon: Any) -> None:
    turns = [
        Said(turn=f"u{number:02}", at="2026-01-01T00:00:00Z", role="user", text=f"I prefer the tool{number}qqz kit.")
        for number in range(40)
    ]
    with daemon.client() as client:
        client.capture(ORIGIN, turns)
        client.distil()
        for number in (3, 17, 39):
            report = ended(client, client.forget(query=f"tool{number}qqz"))
            assert report["left"] == []
        daemon.settle()
        for number in (3, 17, 39):
            assert files_with(daemon, f"tool{number}qqz") == []
        words = " ".join(each.content for each in believed(client).values())
        assert "tool4qqz" in words and "tool38qqz" in words


PLACES = [
    "forget:redacted",
    "forget:journal-erased",
    "forget:archive-erased",
    "compact:copied",
    "compact:closed",
    "compact:renamed",
    "compact:closed:2",
    "forget:logs-compacted",
    "renew:tables",
    "renew:keywords",
    "renew:turns",
    "forget:projections-renewed",
    "compact:renamed:3",
    "forget:vectors-swept",
    "forget:spools-scrubbed",
    "forget:copies-dropped",
    "forget:purged",
]


class ForgettingCase(NamedTuple):
    """The home of an ended daemon with a backup and a spool; the id to delete, and the other records."""

    folder: Path
    gone: str
    others: list[tuple[str, str, str, str, str]]


@pytest.fixture(scope="module")
def forgetting_case(tmp_path_factory: pytest.TempPathFactory) -> ForgettingCase:
    daemon = RunningDaemon(new_home(tmp_path_factory))
    daemon.start()
    with daemon.client() as client:
        gone = client.remember(said("I prefer the xylofon editor for Python.", "t01")).record.id
        client.remember(said("We deploy the orchard service on Tuesdays.", "t02"))
        daemon.settle()
        ended(client, client.backup())
        rest = others(client, gone)
        client.spool.append(said("I prefer the xylofon editor for Python.", "t01"))
    assert daemon.terminate() == 0
    return ForgettingCase(Path(daemon.environment["MEMD_HOME"]), gone, rest)


@pytest.mark.parametrize("round_", range(FAULT_ROUNDS))
@pytest.mark.parametrize("place", PLACES)
def test_sigkill_at_any_step_is_finished_by_the_next_start_T10(
    forgetting_case: ForgettingCase,
    daemon_of_copy: DaemonOfCopy,
    place: str,
    round_: int,
) -> None:
    daemon = daemon_of_copy(forgetting_case.folder)
    daemon.environment["MEMD_FAIL"] = place
    daemon.start()
    with daemon.client() as client, pytest.raises(MemdError):
        ended(client, client.forget([forgetting_case.gone]))
    assert daemon.process is not None and daemon.process.wait(20) == -9
    del daemon.environment["MEMD_FAIL"]
    daemon.start()
    assert files_with(daemon, "xylofon") == []
    with daemon.client() as client:
        assert others(client) == forgetting_case.others
        with pytest.raises(Forgotten):
            client.remember(said("I prefer the xylofon editor for Python.", "t01"))
        assert client.remember(said("The kettle is copper.", "t05")).record.content == "The kettle is copper."
    daemon.terminate()
    verified(daemon)
