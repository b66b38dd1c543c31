"""Sources: live capture and import are one, every quote is its span, recalled memory is not learnt again.

Comes in: a setting with real sessions. Goes out: figures, and what broke a rule in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from ....protocol import event
from ....protocol.event import AnyEvent, Origin, Said, SessionEnded, ToolCalled
from ....protocol.record import Record
from ....protocol.reply import Recalled
from ...importers import claude_code
from ...python.client import Client
from ..figure import Figure, at_most
from ..home import empty_home, running, settle
from ..part import Part, Setting
from ..sessions import SAMPLE, deliver, large_session, read, records

NAMED = 10


# --- live, then imported -------------------------------------------------------------------------------------------
def live_then_import(setting: Setting) -> Part:
    """A session captured live, turn by turn, then its transcript imported: no new record, no new evidence (W13)."""
    paths = [SAMPLE] if setting.quick else [SAMPLE, large_session(setting)]
    sessions = [session for path in paths for session in claude_code.read(path).sessions]
    with empty_home() as (where, environment), running(where, environment) as client:
        for session in sessions:
            origin = msgspec.structs.replace(session.origin, live=True)
            for each in session.events:
                client.capture(origin, [each])
        settle(client)
        before = _evidence(client)
        seq = client.status().journal_seq
        taken = deliver(client, sessions)
        settle(client)
        after = _evidence(client)
        grown = client.status().journal_seq - seq
    new = {id: count for id, count in after.items() if id not in before}
    restated = sum(max(0, count - before.get(id, 0)) for id, count in after.items() if id in before)
    figures = (
        Figure(name="records that the import added", value=len(new), target=at_most(0), samples=len(before)),
        Figure(name="evidence that it added", value=restated, target=at_most(0), samples=sum(before.values())),
        Figure(name="  captures taken twice", value=taken, target=at_most(0)),
        Figure(name="  operations of the import", value=grown, target=at_most(0)),
    )
    return Part(figures=figures, shows_not="hooks that name a turn otherwise than its transcript does")


def _evidence(client: Client) -> dict[str, int]:
    return {each.id: len(each.provenance.evidence) for each in records(client)}


# --- quotes --------------------------------------------------------------------------------------------------------
def quotes(setting: Setting) -> Part:
    """Every record's quote against the archive's span, by the daemon and once more by the transcript (P-5)."""
    found = read(setting)
    words = {(each.origin.document, one.turn): event.text(one) for each in found.sessions for one in each.events}
    broken: list[str] = []
    compared = number = 0
    with empty_home() as (where, environment), running(where, environment) as client:
        deliver(client, found.sessions)
        settle(client)
        for record in records(client):
            number += 1
            if client.why(record.id).quote_holds is not True:
                broken.append(f"the archive does not say: {record.provenance.quote}")
            said = _said(record, words)
            compared += said is not None
            if said is not None and not said.startswith(record.provenance.quote):
                broken.append(f"the transcript does not say: {record.provenance.quote}")
    figures = (
        Figure(name="quotes that are not their span", value=len(broken), target=at_most(0), samples=number),
        Figure(name="  compared with the transcript too", value=compared, samples=number),
    )
    notes = (*broken[:NAMED], *(f"left out: {why}" for why in found.left_out))
    return Part(figures=figures, notes=notes, shows_not="a quote that is verbatim and still misleads")


def _said(record: Record, words: dict[tuple[str, str], str]) -> str | None:
    """The transcript's own words at the record's span; None where the door took a secret out of that turn."""
    span = record.provenance.spans[0]
    text = words.get((span.document, span.turn))
    if text is None or "[redacted:" in record.provenance.quote:
        return None
    said = text[span.start : span.end]
    return said if said or not text else None


# --- what was recalled comes back ------------------------------------------------------------------------------------
FACT = "We decided to keep the ledger in SQLite, because one file is easy to back up."
PARAPHRASE = "Right, SQLite it is for the ledger, since a single file is simple to save."
_AT = "2026-03-0{day}T1{hour}:00:00+01:00"


def _forms(told: Recalled, context: str, fact: str) -> Iterator[tuple[str, AnyEvent]]:
    """Each way in which an agent's context comes back into what a host captures."""
    lines = "\n".join(f"- {hit.record.description}" for hit in told.hits) or f"- {fact}"
    at = _AT.format(day=5, hour=1)

    def said(name: str, text: str) -> tuple[str, AnyEvent]:
        return name, Said(turn=name, at=at, role="assistant", text=text)

    yield said("fenced", f'<memd-context rev="1">\n{context}\n</memd-context>')
    yield said("unfenced", context)
    yield said("one line of it", f"- {fact}")
    yield said("quoted", "\n".join(f"> {line}" for line in lines.splitlines()))
    yield said("wrapped", "\n".join(fact[n : n + 40] for n in range(0, len(fact), 40)))
    yield said("escaped as JSON", json.dumps({"memories": [hit.record.content for hit in told.hits] or [fact]}))
    yield said("in a code block", f"```text\n{lines}\n```")
    yield "in a tool's result", ToolCalled(turn="tool", at=at, name="memd_recall", arguments=lines, outcome="ok")
    yield said("in a summary", f"This session is being continued. Summary:\n1. Key facts:\n{lines}")


def echoes(setting: Setting) -> Part:
    """What a session was told and says again, in nine forms and as the user's paraphrase: nothing is learnt (W9)."""
    learnt: list[str] = []
    restated: list[str] = []
    with empty_home() as (where, environment), running(where, environment) as client:
        first = Origin(host="bench", session="first")
        client.capture(first, [Said(turn="1", at=_AT.format(day=4, hour=0), role="user", text=FACT)])
        settle(client)
        known = _evidence(client)
        user = Said(turn="paraphrase", at=_AT.format(day=5, hour=2), role="user", text=PARAPHRASE)
        told = client.recall("where is the ledger kept")
        names = [name for name, _ in _forms(told, "", FACT)]
        for number, name in enumerate([*names, "the user's paraphrase"]):
            setting.tell(f"write/echoes: {name}")
            origin = Origin(host="bench", session=f"echo {name}")
            told = client.recall("where is the ledger kept", document=origin.document)
            profile = client.profile(document=origin.document).text
            context = profile + "\n" + "\n".join(hit.record.description for hit in told.hits)
            each = [*(event for _, event in _forms(told, context, FACT)), user][number]
            client.capture(origin, [each, SessionEnded(turn="session-end", at=_AT.format(day=5, hour=3))])
            settle(client)
            now = _evidence(client)
            learnt += [name for id in now if id not in known]
            restated += [name for id, count in now.items() if count > known.get(id, count)]
            known = now
    figures = (
        Figure(name="records learnt from what was recalled", value=len(learnt), target=at_most(0), samples=10),
        Figure(name="evidence won from it", value=len(restated), target=at_most(0), samples=10),
    )
    notes = [f"learnt: {name}" for name in learnt] + [f"counted as evidence: {name}" for name in restated]
    return Part(
        figures=figures, notes=tuple(notes), shows_not="a host that rewrites what it was given in its own words"
    )
