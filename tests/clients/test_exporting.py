"""Export and import: the same ids, statuses, keys and both timelines; quotes stay where they must (P-25)."""

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.clients.cli.export import markdown
from memd.clients.importers.memd_export import ExportFile
from memd.daemon.projections.stores import Stores
from memd.daemon.services.records.importing import import_records
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import InvalidRequest
from memd.protocol.event import Origin
from memd.protocol.export import EndLine, ExportHead, RecordLine, SessionLine, decode_line, encode_line, leaving
from memd.protocol.operation import Added, Decision, Invalidated, Retirement, SessionOpened
from memd.protocol.record import Evidence, Provenance, Record, Span, record_id
from memd.protocol.reply import ExportedRecord
from memd.protocol.request import ImportRecords
from memd.protocol.secret_gate import SecretGate
from memd.stages.secrets.scan import redact

AT = "2026-01-01T00:00:00+02:00"
WHY = Decision(action="add", reason="a test")
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40).filter(str.strip)


POOLS = ("personal", "project/x1", "unbound/y")
SESSIONS = tuple(
    SessionOpened(document=f"h:{pool}", origin=Origin(host="h", session=pool), project=pool, at=AT) for pool in POOLS
)


def record(number: int, words: str = "", **more: Any) -> Record:
    span = Span(f"h:{more.get('pool', 'personal')}", str(number), 0, 5)
    text = words or f"statement {number}"
    provenance = Provenance(author="user", source="h:s", trust="user", spans=(span,), quote=text, said_at=AT)
    id = record_id("personal", "h:s", str(number), 0, 0)
    more = {"pool": "personal", "content": text, "description": text, "provenance": provenance, **more}
    return Record(id=id, kind="note", **more)


@st.composite
def histories(draw: Any) -> list[Any]:
    """Operations that add records with any words, keys, pools and statuses, and retire some of them."""
    operations: list[Any] = []
    for number in range(draw(st.integers(1, 8))):
        pool = draw(st.sampled_from(POOLS))
        evidence = Evidence(kind="restated", span=Span(f"h:{pool}", f"e{number}", 0, 1), trust="user", at=AT)
        made = record(
            number,
            draw(WORDS),
            pool=pool,
            status=draw(st.sampled_from(["active", "provisional", "quarantined", "hidden", "archived", "retired"])),
            key=draw(st.sampled_from(["", f"k{number}"])),
            valid_from=draw(st.sampled_from(["", AT])),
            tags=("decision",),
        )
        provenance = msgspec.structs.replace(made.provenance, evidence=(evidence,) * draw(st.integers(0, 2)))
        made = msgspec.structs.replace(made, provenance=provenance)
        retires = (Retirement(operations[-1].record.id, AT, "new"),) if number and draw(st.booleans()) else ()
        operations.append(Added(record=made, retires=retires, decision=WHY))
    last = operations[-1].record.id
    return [
        *SESSIONS,
        *operations,
        *([Invalidated(id=last, valid_to=AT, reason="wrong")] if draw(st.booleans()) else []),
    ]


def everything(stores: Stores) -> dict[str, Record]:
    return {each.id: each for each in stores.records.everything()}


@settings(max_examples=15, deadline=None)
@given(histories())
def test_a_round_trip_keeps_every_field_and_twice_changes_nothing_P25(
    tmp_path_factory: Any, history: list[Any]
) -> None:
    here = Stores(tmp_path_factory.mktemp("here"), real_world(), registry.info())
    for operation in history:
        here.commit([operation])
    there = Stores(tmp_path_factory.mktemp("there"), real_world(), registry.info())
    records = tuple(ExportedRecord(record=each) for each in everything(here).values())
    wish = ImportRecords(records=records, sessions=SESSIONS)
    told = import_records(there, wish)
    assert (told.added, told.refused) == (len(everything(here)), ())
    assert everything(there) == everything(here)
    for each in everything(here).values():
        assert (
            there.records.holding_key(each.pool, each.key) == here.records.holding_key(each.pool, each.key)
            or not each.key
        )
    last = there.journal.last
    again = import_records(there, wish)
    assert (again.added, again.known, there.journal.last) == (0, len(wish.records), last)
    here.close()
    there.close()


def test_a_record_that_is_here_stays_and_its_key_is_not_taken_P7(tmp_path: Path) -> None:
    stores = Stores(tmp_path / "s", real_world(), registry.info())
    stores.commit([Added(record=record(1, "mine", key="k"), decision=WHY)])
    theirs = (record(1, "theirs", key="k"), record(2, "other", key="k"), record(3, "third", key="k"))
    told = import_records(stores, ImportRecords(records=tuple(ExportedRecord(record=each) for each in theirs)))
    assert (told.added, told.known, told.differing) == (2, 0, 1)
    found = everything(stores)
    assert found[theirs[0].id].content == "mine" and stores.records.holding_key("personal", "k") == theirs[0].id
    assert found[theirs[1].id].needs_review and not found[theirs[2].id].key
    stores.close()


def test_what_memd_can_not_have_written_is_refused_one_by_one(tmp_path: Path) -> None:
    stores = Stores(tmp_path / "s", real_world(), registry.info())
    good = record(1, "my token is ghp_" + "k7Qz2VtR9wXb4LmN8pYc3HsD6fGj1AaE5uTi")
    bad = [
        msgspec.structs.replace(good, id="../../etc"),
        record(2, pool="somewhere else"),
        record(3, valid_from="2026-01-01T00:00:00"),
        record(4, provenance=msgspec.structs.replace(good.provenance, spans=())),
        record(5, provenance=msgspec.structs.replace(good.provenance, said_at="")),
    ]
    wish = ImportRecords(records=tuple(ExportedRecord(record=each) for each in (*bad, good)))
    told = import_records(stores, SecretGate(redact, bytes(32)).request(wish))  # as the dispatcher does
    assert told.added == 1 and [refusal.turn for refusal in told.refused] == [each.id for each in bad]
    assert "ghp_" not in str(everything(stores)), "a secret came in with an import"
    stores.close()


def test_a_shareable_export_holds_no_quote_and_a_line_comes_back_as_it_was() -> None:
    exported = ExportedRecord(record=record(1, "the quote"))
    assert leaving(exported, shareable=False) == exported
    assert leaving(exported, shareable=True).record.provenance.quote == ""
    text = "\n".join(markdown([ExportedRecord(record=record(2, "# <b>not</b> a heading"))]))
    assert "\\# \\<b\\>" in text and "2026-01-01" in text and "## personal" in text
    line = decode_line(b'{"line":"end","records":3}')
    assert encode_line(line) == b'{"line":"end","records":3}\n'


def test_a_file_that_is_no_export_or_cut_off_is_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b'{"type":"user"}\n')
    with pytest.raises(InvalidRequest, match="not a memd export"):
        ExportFile(file)
    file.write_bytes(b'{"line":"memd_export","format":99,"memd":"9.0","at":""}\n')
    with pytest.raises(InvalidRequest, match=r"9\.0|99"):
        ExportFile(file)
    file.write_bytes(b'{"line":"memd_export","format":1,"memd":"0.1","at":""}\n{"line":"rec')
    cut = ExportFile(file)
    assert list(cut.requests()) == [] and [bad.line for bad in cut.malformed] == [2] and not cut.is_whole


def test_the_commands_carry_a_memory_to_another_home_P25(memd: Any, daemon: Any, tmp_path: Path) -> None:
    for text in ("I prefer tabs for indentation.", "We deploy on Tuesdays.", "The lamp stands in room 4."):
        memd("remember", text)
    daemon.settle()
    file, again = tmp_path / "m.jsonl", tmp_path / "again.jsonl"
    count = len(memd("list", "--json").data["records"])  # and the edge to this folder's project, if it has one
    assert count >= 3
    assert memd("export", "-o", str(file), "--json").data["records"] == count
    assert file.stat().st_mode & 0o077 == 0
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert memd("up", MEMD_HOME=str(other)).code == 0
    try:
        told = memd("import", "memd", str(file), "--json", MEMD_HOME=str(other)).data
        assert (told["added"], told["known"], told["is_whole"]) == (count, 0, True)
        assert memd("import", "memd", str(file), "--json", MEMD_HOME=str(other)).data["known"] == count
        assert memd("export", "-o", str(again), MEMD_HOME=str(other)).code == 0
        records = [[line for line in f.read_bytes().splitlines() if b'"record"' in line] for f in (file, again)]
        there = [sorted(str(msgspec.json.decode(line)["record"]) for line in lines) for lines in records]
        assert there[0] == there[1]
        lamp = next(line for line in records[0] if b"lamp" in line)
        id = msgspec.json.decode(lamp)["record"]["id"]
        why = memd("why", id, MEMD_HOME=str(other))
        text = " ".join(why.text.split())
        assert "imported from an export" in text and "no longer has the source" in text
    finally:
        memd("down", MEMD_HOME=str(other))
    assert "Tuesdays" in memd("export", "--format", "md").text


def test_a_shareable_export_tells_what_stayed_and_can_be_imported_A2_P25(
    memd: Any, daemon: Any, tmp_path: Path
) -> None:
    folder, file = tmp_path / "orchard", tmp_path / "shareable.jsonl"
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", *identity, "-C", str(folder), "commit", "-q", "--allow-empty", "-m", "plant"], check=True)
    with daemon.client() as client:
        client.remember("I prefer tabs for indentation.", pool="personal")
        for text in ("We deploy the orchard service on Tuesdays.", "The lamp of the orchard stands in room 4."):
            client.remember(text, cwd=str(folder), pool="project")
    daemon.settle()
    told = memd("export", "--shareable", "-o", str(file), "--json").data
    reason = "it is not in a project"
    assert told["records"] == 2 and set(told["stayed"]) == {reason}
    stayed = told["stayed"][reason]
    words = memd("export", "--shareable", "-o", str(file)).text
    assert "wrote 2 records" in words and f"{stayed} record" in words and f"{stayed}: {reason}" in words
    shown = memd("export", "--shareable")
    assert '"quote":""' in shown.text and '"line":"end","records":2' in shown.text and "tabs" not in shown.text
    assert f"{stayed}: {reason}" in shown.errors
    assert "tabs" not in memd("export", "--shareable", "--format", "md").text
    assert memd("export", "-o", str(tmp_path / "all.jsonl"), "--json").data["stayed"] == {}
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert memd("up", MEMD_HOME=str(other)).code == 0
    try:
        told = memd("import", "memd", str(file), "--json", MEMD_HOME=str(other)).data
        assert (told["added"], told["refused"], told["is_whole"]) == (2, [], True)
        records = memd("list", "--json", MEMD_HOME=str(other)).data["records"]
        assert {record["pool"].partition("/")[0] for record in records} == {"project"}
        assert memd("import", "memd", str(file), "--json", MEMD_HOME=str(other)).data["known"] == 2
    finally:
        memd("down", MEMD_HOME=str(other))


def test_a_record_too_large_is_named_and_the_others_are_imported_P25(memd: Any, daemon: Any, tmp_path: Path) -> None:
    huge = "we keep the whole log here " * 150_000
    lines = [ExportHead(format=1, memd="0.1.0", at=AT), *(SessionLine(session=session) for session in SESSIONS)]
    records = [record(number, f"the lamp stands in room {number}") for number in range(9)]
    records[3] = msgspec.structs.replace(records[3], content=huge)  # too large for a request beside other records
    records[5] = msgspec.structs.replace(records[5], content=huge, description=huge)  # too large for any request
    content = b"".join(encode_line(line) for line in (*lines, *(RecordLine(record=each) for each in records)))
    content += b'{"line":"record","record":"' + b"x" * 6_000_000 + b'"}\n' + encode_line(EndLine(records=10))
    file = tmp_path / "hostile.jsonl"
    file.write_bytes(content)
    told = memd("import", "memd", str(file), "--json")
    assert told.code == 0 and told.data["added"] == 7
    named = " ".join(refusal["reason"] for refusal in told.data["refused"])
    assert len(told.data["refused"]) == 1 and records[3].id in named
    assert [bad["line"] for bad in told.data["malformed"]] == [10, 14]
    assert told.data["is_whole"]


@pytest.mark.parametrize("form", ["jsonl", "md"])
def test_nothing_is_written_when_nothing_is_exported_P25(memd: Any, daemon: Any, form: str) -> None:
    with daemon.client() as client:
        client.remember("I prefer tabs.")
    told = memd("export", "--format", form, "--pool", "nope")
    assert (told.code, told.text) == (4, "")
    daemon.terminate()
    told = memd("export", "--format", form)
    assert (told.code, told.text) == (3, "")
