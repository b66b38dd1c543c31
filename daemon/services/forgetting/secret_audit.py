"""`memd scan`: finds secrets in stored captures and operations with the current rules, and those that are known.

Nothing is changed; reports contain the names of rules, never the secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from ....protocol.errors import Stopping
from ....protocol.event import text
from ....protocol.operation import Added, AnyOperation, Cut, Decision, Merged, Rebased, Redacted, SessionOpened, Updated
from ....protocol.record import Record
from ....protocol.reply import Logged
from ....stages.secrets.known import KnownSecrets
from ....stages.secrets.scan import VERSION
from ...projections.stores import Stores
from ...storage.archive import decode
from ...storage.cuts import joined
from ..jobs import Jobs, Progress, Report

EVERY = 256
"""Entries between two checks for a stop and two progress reports."""

DISTINCT = 12
"""Fewest characters of a secret with letters and digits that memd searches for in any context."""

Tell = Callable[[int, str], None]


class SecretFindings(msgspec.Struct, kw_only=True):
    """Places of secrets: cuts by capture, seqs of operations up to `journal_upto`, and the secrets with their rules.
    `known` finds them."""

    known: KnownSecrets
    cuts: dict[int, tuple[Cut, ...]] = {}
    entries: set[int] = set()
    redactions: list[int] = []
    records: set[str] = set()
    words: dict[str, str] = {}
    sessions: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    captures: int = 0
    journal_upto: int = 0

    def __bool__(self) -> bool:
        return bool(self.cuts or self.entries)

    def distinct(self) -> dict[str, str]:
        """Return the unmistakable secrets, with their rules."""
        return {words: rule for words, rule in self.words.items() if _is_distinct(words)}

    def seen(self, entry: Logged) -> None:
        """Audit one operation."""
        self.journal_upto = entry.seq
        operation = entry.operation
        if isinstance(operation, Redacted):
            self.redactions.append(entry.seq)
        known = self.known.of(_session_of(operation))
        held = [(words, secret) for words in words_of(operation) for secret in known.find(words)]
        if held:
            self.entries.add(entry.seq)
            self.words.update((words[secret.start : secret.end], secret.rule) for words, secret in held)
            if isinstance(operation, Added | Updated | Rebased):
                self.records.add(operation.record.id)

    def report(self, records: int, holding: Iterable[str]) -> dict[str, str | int | float | list[str]]:
        """Return the report for the user."""
        return {
            "rules_version": VERSION,
            "checked_captures": self.captures,
            "checked_records": records,
            "captures": len(self.cuts),
            "records": sorted(holding),
            "sessions": [name for name, _ in self.sessions.most_common()],
            "rules": [f"{rule} {count}" for rule, count in self.rules.most_common()],
        }


def audit(stores: Stores, jobs: Jobs, progress: Progress, known: KnownSecrets) -> tuple[SecretFindings, Report]:
    """Audit every capture and every operation. Raises Stopping."""
    findings = SecretFindings(known=known)
    total = stores.archive.last + stores.journal.last

    def tell(done: int, detail: str) -> None:
        if done % EVERY == 0:
            if jobs.stopping.is_set():
                raise Stopping("memd is stopping", hint="scan again when memd runs")
            progress(done, total, detail)

    _audit_captures(stores, findings, tell)
    for entry in stores.journal.read():
        tell(stores.archive.last + entry.seq, "records")
        findings.seen(entry)
    if wanted := findings.distinct():
        _find_same_secrets(stores, wanted, findings, tell)
    checked, holding = 0, set[str]()
    for record in stores.records.everything():
        checked += 1
        if record.id in findings.records and (rules := _rules_in(record, known)):
            holding.add(record.id)
            findings.rules.update(rules)
    findings.records = holding
    progress(total, total, "scanned everything")
    return findings, findings.report(checked, holding)


def _audit_captures(stores: Stores, findings: SecretFindings, tell: Tell) -> None:
    for entry in stores.archive.log.read():
        tell(entry.seq, "captures")
        captured = decode(entry)
        if captured is None:
            continue
        findings.captures += 1
        words = text(captured.event)
        if secrets := findings.known.of(captured.document).find(words):
            findings.cuts[entry.seq] = tuple(
                Cut(entry.seq, secret.start, secret.end, secret.rule) for secret in secrets
            )
            findings.sessions[captured.document] += 1
            findings.rules.update(secret.rule for secret in secrets)
            findings.words.update((words[secret.start : secret.end], secret.rule) for secret in secrets)


def _find_same_secrets(stores: Stores, wanted: dict[str, str], findings: SecretFindings, tell: Tell) -> None:
    """Find the same secrets where no rule recognises them."""
    for entry in stores.archive.log.read():
        tell(entry.seq, "searching for the same secrets elsewhere")
        captured = decode(entry)
        words = text(captured.event) if captured else ""
        if captured and (
            more := [cut for secret, rule in wanted.items() for cut in _places(entry.seq, words, secret, rule)]
        ):
            if entry.seq not in findings.cuts:
                findings.sessions[captured.document] += 1
            findings.cuts[entry.seq] = joined((*findings.cuts.get(entry.seq, ()), *more))
    for entry in stores.journal.read():
        tell(entry.seq, "searching for the same secrets elsewhere")
        if any(secret in words for words in words_of(entry.operation) for secret in wanted):
            findings.entries.add(entry.seq)


def _places(seq: int, words: str, secret: str, rule: str) -> Iterator[Cut]:
    at = words.find(secret)
    while at >= 0:
        yield Cut(seq, at, at + len(secret), rule)
        at = words.find(secret, at + len(secret))


def _is_distinct(words: str) -> bool:
    return len(words) >= DISTINCT and any(map(str.isalpha, words)) and any(map(str.isdigit, words))


def _session_of(operation: AnyOperation) -> str:
    return operation.record.provenance.source if isinstance(operation, Added | Updated | Rebased) else ""


def _rules_in(record: Record, known: KnownSecrets) -> set[str]:
    of_session = known.of(record.provenance.source)
    return {secret.rule for words in words_of_record(record) for secret in of_session.find(words)}


def words_of_record(record: Record) -> tuple[str, ...]:
    """Return every text of a record that came from a source."""
    artifacts = (words for artifact in record.artifacts for words in (artifact.ref, artifact.note, artifact.anchor))
    return (
        record.content,
        record.description,
        record.key,
        record.value,
        record.provenance.quote,
        *record.tags,
        *record.aliases,
        *record.learnings.values(),
        *artifacts,
    )


def words_of(operation: AnyOperation) -> Iterator[str]:
    """Yield every text of an operation that came from a source."""
    match operation:
        case Added() | Updated():
            yield from words_of_record(operation.record)
            yield from _told(operation.decision)
        case Rebased():
            yield from words_of_record(operation.record)
        case Merged():
            yield from _told(operation.decision)
        case SessionOpened():
            yield operation.origin.title
        case _:
            pass


def _told(decision: Decision) -> Iterator[str]:
    yield decision.reason
    yield from (step.what for step in decision.steps)
