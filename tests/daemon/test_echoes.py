"""Recalled text fed back through the real daemon, in every wrapping: no record, no evidence (W9, P-6)."""

import json
import textwrap
import time
from pathlib import Path
from typing import Any

import msgspec

from memd.clients.python import Client
from memd.daemon.projections.folded import open_tables
from memd.daemon.services.profile.echo_ledger import EchoLedger
from memd.daemon.storage.archive import Archive
from memd.daemon.world import real_world
from memd.protocol.event import AnyEvent, Captured, Noted, Origin, Said, ToolCalled
from memd.protocol.instant import from_micros
from memd.protocol.profile import Profile, ProfileText
from memd.protocol.record import Record, Signal
from memd.protocol.reply import Recalled
from memd.protocol.request import Recall

FACTS = (
    "I prefer the marimba editor for all of my Python code.",
    "We always deploy the orchard service on Tuesdays, because the ferry is late on Mondays.",
    "Never push directly to the main branch of the orchard.",
)
HOME = Origin(host="test", session="first")


def now(after_s: float = 0.0) -> str:
    return from_micros(int((time.time() + after_s) * 1_000_000))


def believed(client: Client) -> dict[str, Record]:
    """The records without their signals: to use what was told is no new statement."""
    page = client.list(limit=500, statuses=("provisional", "active", "quarantined"))
    return {record.id: msgspec.structs.replace(record, signal=Signal()) for record in page.records}


def told(client: Client, document: str) -> tuple[ProfileText, Recalled]:
    profile = client.ask(Profile(document=document), ProfileText)
    recalled = client.ask(Recall(query="which editor, when do we deploy the orchard", document=document), Recalled)
    return profile, recalled


def fed_back(profile: str, lines: list[str]) -> list[AnyEvent]:
    """Everything that an agent, a host or a user may do with a text that was put into the context."""
    whole, line = "\n".join(lines), lines[0]
    texts = {
        "fenced": f"<memd-context rev='7'>\n{whole}\n</memd-context>\nThanks.",
        "unclosed": f"<memd-context rev='7'>\n{whole}",
        "profile": profile,
        "unfenced": whole,
        "bullets": "\n".join(f"- {each} [2026-03-10]" for each in lines),
        "line": line,
        "part": lines[1].partition(",")[0],
        "quoted": "\n".join(f"> {each}" for each in lines),
        "said": f"As I recall from memory: “{line}”",
        "wrapped": "\n".join(textwrap.wrap(whole, 32)),
        "escaped": json.dumps({"memory": whole}),
        "dumped": json.dumps(lines),
        "code": f"```\n{whole}\n```",
        "inline": f"`{line}`",
        "summary": f"This session is being continued from a previous conversation.\n\n{whole}",
        "table": "| memory |\n|---|\n" + "\n".join(f"| {each} |" for each in lines),
    }
    events: list[AnyEvent] = []
    for name, text in texts.items():
        for role in ("user", "assistant"):
            events.append(Said(turn=f"{name}-{role}", at=now(), role=role, text=text))
    events.append(ToolCalled(turn="tool", at=now(), name="memory_recall", arguments=json.dumps({"query": whole})))
    return events


def test_what_was_recalled_is_never_learnt_again_in_any_wrapping_W9(daemon: Any) -> None:
    where = Origin(host="test", session="second")
    with daemon.client() as client:
        client.capture(HOME, [Noted(turn=str(at), at=now(), text=text) for at, text in enumerate(FACTS)])
        daemon.settle(180)
        before = believed(client)
        assert len(before) == len(FACTS)
        profile, recalled = told(client, where.document)
        assert recalled.hits
        for each in FACTS:  # so that all of them were told
            client.ask(Recall(query=each, document=where.document), Recalled)
        lines = [record.description for record in before.values()]
        client.capture(where, fed_back(profile.text, lines) + fed_back(profile.text, list(FACTS)))
        daemon.settle(240)
        assert believed(client) == before, "an echo became a record, or evidence for one"
    daemon.terminate()
    assert (daemon.places.state / "given.json").is_file()
    assert "marimba" not in (daemon.places.state / "given.json").read_text()
    daemon.start()
    with daemon.client() as client:
        again = Said(turn="again", at=now(), role="user", text="I prefer the marimba editor for all my Python code.")
        mine = Said(turn="mine", at=now(), role="user", text="I prefer the ukulele editor for my Rust code.")
        client.capture(where, [again, mine])
        daemon.settle(180)
        after = believed(client)
        assert {id: record for id, record in after.items() if id in before} == before, "a restart forgot what was told"
        assert [record.content for id, record in after.items() if id not in before] == [mine.text]
        elsewhere = Origin(host="test", session="third")
        said = Said(turn="1", at=now(-9 * 3600), role="user", text=FACTS[0])
        client.capture(elsewhere, [said])
        daemon.settle(180)
        (record,) = [each for each in believed(client).values() if each.content == FACTS[0]]
        assert len(record.provenance.evidence) == 1, "who was not told and says it confirms it"


def test_what_nobody_in_particular_was_told_comes_back_from_anybody_for_a_while_W9(tmp_path: Path, daemon: Any) -> None:
    with daemon.client() as client:
        id = client.remember("The ferry to the orchard leaves at noon.").record.id
    daemon.terminate()
    folded = open_tables(daemon.places.data / "projections" / "tables")
    archive = Archive(daemon.places.data / "archive", real_world())
    given = EchoLedger(tmp_path, folded.records, archive, lambda: 1_800_000_000_000_000)

    def said(hours: float, document: str = "test:x") -> Captured:
        at = from_micros(1_800_000_000_000_000 + int(hours * 3_600_000_000))
        return Captured(document=document, event=Said(turn="1", at=at, role="user", text="anything"))

    given.note("", [id])
    assert "test:x" in given.to([said(1)]) and given.to([said(1)])["test:x"].ids == ()
    assert given.to([said(7)]) == {} and given.to([said(-7)]) == {}
    given.note("test:y", [id] * 3)
    given.save()
    again = EchoLedger(tmp_path, folded.records, archive, lambda: 0)
    assert again.to([said(99, "test:y")])["test:y"].ids == (id,)
    again.note("test:z", [f"id{number}" for number in range(400)])
    assert len(again.to([said(99, "test:z")])["test:z"].ids) == 300
    for number in range(400):
        again.note(f"test:{number}", [id])
    assert again.to([said(99, "test:y")]) == {}, "bounded: the oldest sessions go first"
    (tmp_path / "given.json").write_bytes(b"\xff{")
    assert EchoLedger(tmp_path, folded.records, archive, lambda: 0).to([said(0)]) == {}
    folded.close()
    archive.close()
