"""`memd scan`: what is stored already, looked at with the rules of today (W5, P-18).

Comes in: the stores. Goes out: how many captures and which records hold what the rules take for a secret, by rule and
by session. Invariants: nothing is changed; no word of a secret leaves this module, only the rule's name; it reads
beside the door and ends when memd stops.
"""

from __future__ import annotations

from collections import Counter

from ..protocol.errors import Stopping
from ..protocol.event import text
from ..protocol.record import Record
from ..protocol.reply import JobState
from ..stages.secrets.scan import VERSION, find
from .jobs import Jobs, Progress, Report
from .store.archive import decode
from .stores import Stores

EVERY = 256
"""Entries between two looks at whether memd stops, and two words on how far it is."""


def check_secrets(stores: Stores, jobs: Jobs) -> JobState:
    """Start to look at every capture and every record. Raises Unavailable beside another job, Stopping."""

    def work(progress: Progress) -> Report:
        rules: Counter[str] = Counter()
        sessions: Counter[str] = Counter()
        captures = hit = 0
        total = stores.archive.last
        for entry in stores.archive.log.read():
            if entry.seq % EVERY == 0:
                _tell(jobs, progress, entry.seq, total)
            captured = decode(entry)
            if captured is None:
                continue
            captures += 1
            if found := find(text(captured.event)):
                hit += 1
                sessions[captured.document] += 1
                rules.update(each.rule for each in found)
        records = 0
        holding: list[str] = []
        for record in stores.records.everything():
            records += 1
            if records % EVERY == 0:
                _tell(jobs, progress, total, total)
            if found := {each.rule for words in _words(record) for each in find(words)}:
                holding.append(record.id)
                rules.update(found)
        progress(total, total, "done")
        return {
            "rules_version": VERSION,
            "checked_captures": captures,
            "checked_records": records,
            "captures": hit,
            "records": sorted(holding),
            "sessions": [name for name, _ in sessions.most_common()],
            "rules": [f"{rule} {count}" for rule, count in rules.most_common()],
        }

    return jobs.start("scan", work)


def _tell(jobs: Jobs, progress: Progress, done: int, total: int) -> None:
    if jobs.stopping.is_set():
        raise Stopping("memd is stopping", hint="scan again when it is up")
    progress(done, total, "captures" if done < total else "records")


def _words(record: Record) -> tuple[str, ...]:
    learnings = record.learnings.values()
    return (record.content, record.description, record.value, record.provenance.quote, *learnings)
