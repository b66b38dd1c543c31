"""Live capture and import agree (W13), every quote is its span (P-5), recalled memory is not learnt again (W9)."""

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
from ..measurement import BenchOptions, Figure, PartResult, zero_figure
from ..session_data import SAMPLE, deliver, large_session, read, records
from ..temporary_daemon import settle, temporary_daemon

NAMED = 10


def _evidence(client: Client) -> dict[str, int]:
    return {record.id: len(record.provenance.evidence) for record in records(client)}


# --- live, then imported ---------------------------------------------------------------------------------------------
def live_then_import(options: BenchOptions) -> PartResult:
    """A session captured live, turn by turn, then its transcript imported: no new record, no new evidence."""
    paths = [SAMPLE] if options.quick else [SAMPLE, large_session(options)]
    sessions = [session for path in paths for session in claude_code.read(path).sessions]
    with temporary_daemon() as client:
        for session in sessions:
            origin = msgspec.structs.replace(session.origin, live=True)
            for turn in session.events:
                client.capture(origin, [turn])
        settle(client)
        before = _evidence(client)
        seq = client.status().journal_seq
        accepted = deliver(client, sessions)
        settle(client)
        after = _evidence(client)
        grown = client.status().journal_seq - seq
    restated = sum(max(0, after[id] - count) for id, count in before.items() if id in after)
    figures = (
        zero_figure("records that the import added", len(after.keys() - before.keys()), len(before)),
        zero_figure("evidence that it added", restated, sum(before.values())),
        zero_figure("  captures taken twice", accepted),
        zero_figure("  operations of the import", grown),
    )
    return PartResult(figures, shows_not="hooks that give a turn another id than its transcript does")


# --- quotes ----------------------------------------------------------------------------------------------------------
def quotes(options: BenchOptions) -> PartResult:
    """Every record's quote compared with the archive's span by the daemon, and with the transcript's here."""
    real = read(options)
    turns = {
        (session.origin.document, turn.turn): event.text(turn) for session in real.sessions for turn in session.events
    }
    broken: list[str] = []
    compared = total = 0
    with temporary_daemon() as client:
        deliver(client, real.sessions)
        settle(client)
        for record in records(client):
            total += 1
            quote = record.provenance.quote
            if client.why(record.id).quote_holds is not True:
                broken.append(f"not in the archive: {quote}")
            span_text = _span_text(record, turns)
            compared += span_text is not None
            if span_text is not None and not span_text.startswith(quote):
                broken.append(f"not in the transcript: {quote}")
    figures = (
        zero_figure("quotes that are not their span", len(broken), total),
        Figure("  compared with the transcript too", compared, samples=total),
    )
    notes = (*broken[:NAMED], *(f"left out: {reason}" for reason in real.left_out))
    return PartResult(figures, notes=notes, shows_not="a quote that is verbatim and still misleads")


def _span_text(record: Record, turns: dict[tuple[str, str], str]) -> str | None:
    """The transcript's text at the record's span; None where a secret was redacted from the turn."""
    span = record.provenance.spans[0]
    text = turns.get((span.document, span.turn))
    if text is None or "[redacted:" in record.provenance.quote:
        return None
    span_text = text[span.start : span.end]
    return span_text if span_text or not text else None


# --- recalled memory that is captured again --------------------------------------------------------------------------
FACT = "We decided to keep the ledger in SQLite, because one file is easy to back up."
PARAPHRASE = "Right, SQLite it is for the ledger, since a single file is simple to save."
QUESTION = "where is the ledger kept"
_AT = "2026-03-0{day}T1{hour}:00:00+01:00"


def _forms(answer: Recalled, context: str) -> Iterator[tuple[str, AnyEvent]]:
    """Each form in which an agent's context can reappear in an event that its host captures."""
    lines = "\n".join(f"- {hit.record.description}" for hit in answer.hits) or f"- {FACT}"
    at = _AT.format(day=5, hour=1)

    def said(name: str, text: str) -> tuple[str, AnyEvent]:
        return name, Said(turn=name, at=at, role="assistant", text=text)

    yield said("fenced", f'<memd-context rev="1">\n{context}\n</memd-context>')
    yield said("unfenced", context)
    yield said("one line of it", f"- {FACT}")
    yield said("quoted", "\n".join(f"> {line}" for line in lines.splitlines()))
    yield said("wrapped", "\n".join(FACT[n : n + 40] for n in range(0, len(FACT), 40)))
    yield said("escaped as JSON", json.dumps({"memories": [hit.record.content for hit in answer.hits] or [FACT]}))
    yield said("in a code block", f"```text\n{lines}\n```")
    yield "in a tool's result", ToolCalled(turn="tool", at=at, name="memd_recall", arguments=lines, outcome="ok")
    yield said("in a summary", f"This session is being continued. Summary:\n1. Key facts:\n{lines}")
    paraphrase_at = _AT.format(day=5, hour=2)
    yield "the user's paraphrase", Said(turn="paraphrase", at=paraphrase_at, role="user", text=PARAPHRASE)


def echoes(options: BenchOptions) -> PartResult:
    """Recalled memory that a session repeats, in nine forms and as the user's paraphrase: nothing is learnt from it."""
    learnt, restated = list[str](), list[str]()
    with temporary_daemon() as client:
        first = Origin(host="bench", session="first")
        client.capture(first, [Said(turn="1", at=_AT.format(day=4, hour=0), role="user", text=FACT)])
        settle(client)
        known = _evidence(client)
        names = [name for name, _ in _forms(client.recall(QUESTION), "")]
        for name in names:
            options.progress(f"write/echoes: {name}")
            origin = Origin(host="bench", session=f"echo {name}")
            answer = client.recall(QUESTION, document=origin.document)
            profile = client.profile(document=origin.document).text
            context = profile + "\n" + "\n".join(hit.record.description for hit in answer.hits)
            echo = dict(_forms(answer, context))[name]
            client.capture(origin, [echo, SessionEnded(turn="session-end", at=_AT.format(day=5, hour=3))])
            settle(client)
            now = _evidence(client)
            learnt += [name for id in now if id not in known]
            restated += [name for id, count in now.items() if count > known.get(id, count)]
            known = now
    figures = (
        zero_figure("records learnt from what was recalled", len(learnt), len(names)),
        zero_figure("evidence won from it", len(restated), len(names)),
    )
    notes = [f"learnt: {name}" for name in learnt] + [f"counted as evidence: {name}" for name in restated]
    return PartResult(figures, notes=tuple(notes), shows_not="a host that rewrites what it was given in its own words")
