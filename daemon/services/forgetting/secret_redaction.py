"""The plan of `memd scan --yes`: records and operations after secrets are cut out of captures.

Nothing is written here. Each span into a cut turn moves with its words, so a quote still equals its span in the
archive; all other text stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ....protocol.event import text
from ....protocol.operation import (
    Added,
    AnyOperation,
    Cut,
    Decision,
    Merged,
    Rebased,
    SessionOpened,
    Step,
    Updated,
)
from ....protocol.record import QUOTE_LIMIT, Evidence, Record, Span
from ...projections.stores import Stores
from ...storage.archive import decode
from ...storage.cuts import joined, moved, placeholder, replaced
from ..provenance_rebase import Turn, cited
from .forget_closure import Loss
from .secret_audit import SecretFindings, words_of_record

REASON = "a secret was redacted"
FRAGMENT = 4
"""Fewest characters at which a part of a secret is recognised."""

LONG = 8
"""The same at the end of a shortened text."""


class _CutTurn(msgspec.Struct, frozen=True):
    """A turn before and after its cuts."""

    before: str
    after: str
    cuts: tuple[Cut, ...]


def plan_redaction(stores: Stores, findings: SecretFindings) -> Loss:
    """Return the changes to everything that contains a secret. On the write thread."""
    for entry in stores.journal.read(findings.journal_upto):  # committed since the audit
        findings.seen(entry)
    _cut_for_records(stores, findings)
    plan = _SecretRemoval(stores, findings)
    loss = Loss(
        cuts=tuple(cut for seq in sorted(findings.cuts) for cut in findings.cuts[seq]), texts=set(findings.words)
    )
    seqs = set(findings.entries)
    decision = Decision(action="update", reason=REASON, steps=(Step("scan", REASON),))
    for record in stores.records.everything():
        if not plan.concerns(record):
            continue
        seqs.update(stores.sources.history(record.id))
        if (clean := plan.record(record)) != record:
            changed = msgspec.structs.replace(clean, rev=record.rev + 1)
            loss.after.append(Updated(record=changed, decision=decision))
            loss.changed.append(record.id)
    _list_entries(stores, plan, loss, seqs, findings.redactions)
    return loss


def _cut_for_records(stores: Stores, findings: SecretFindings) -> None:
    """Add cuts for secrets that a rule finds in a quote but not in its turn, so that the quote stays equal to its
    span."""
    for record in stores.records.many(findings.records).values():
        for span in record.provenance.spans[:1]:
            seq, said = stores.archive.seq_of(span.document, span.turn), stores.archive.span(span)
            is_quoted = bool(seq and said and said.startswith(record.provenance.quote))
            secrets = findings.known.of(span.document).find(said) if is_quoted and said else ()
            more = [Cut(seq, span.start + secret.start, span.start + secret.end, secret.rule) for secret in secrets]
            if more and said:
                findings.cuts[seq] = joined((*findings.cuts.get(seq, ()), *more))
                findings.words.update((said[secret.start : secret.end], secret.rule) for secret in secrets)


class _SecretRemoval:
    """Redacts a record and every operation that ever stated it in the same way."""

    def __init__(self, stores: Stores, findings: SecretFindings) -> None:
        self._known = findings.known
        self._turns: dict[Turn, _CutTurn] = {}
        self._distinct = findings.distinct()
        self._entries_of = findings.records
        for seq, cuts in findings.cuts.items():
            entry = stores.archive.log.get(seq)
            captured = decode(entry) if entry else None
            if captured and stores.archive.seq_of(captured.document, captured.event.turn) == seq:
                words = text(captured.event)
                self._turns[captured.document, captured.event.turn] = _CutTurn(words, replaced(words, cuts), cuts)

    def concerns(self, record: Record) -> bool:
        """Return whether a record, or an earlier revision, may contain a secret or cite a cut turn."""
        if record.id in self._entries_of or not self._turns.keys().isdisjoint(cited(record)):
            return True
        return any(secret in words for secret in self._distinct for words in words_of_record(record))

    def operation(self, change: AnyOperation) -> AnyOperation:
        """Return the operation without secrets."""
        match change:
            case Added() | Updated():
                decision = self._decision(change.decision, self._secrets(change.record))
                return msgspec.structs.replace(change, record=self.record(change.record), decision=decision)
            case Rebased():
                return msgspec.structs.replace(change, record=self.record(change.record))
            case Merged():
                evidence = self._evidence(change.evidence)
                return msgspec.structs.replace(
                    change, evidence=evidence, decision=self._decision(change.decision, self._distinct)
                )
            case SessionOpened():
                title = self._without(change.origin.title, self._distinct)
                return msgspec.structs.replace(change, origin=msgspec.structs.replace(change.origin, title=title))
            case _:
                return change

    def record(self, record: Record) -> Record:
        """Return the record without secrets, its spans moved with their words."""
        secrets, provenance = self._secrets(record), record.provenance
        content, quote, spans = self._quoted(record, secrets)
        return msgspec.structs.replace(
            record,
            content=content,
            description=self._without(record.description, secrets),
            key=self._without(record.key, secrets),
            value=self._without(record.value, secrets),
            tags=tuple(tag for tag in record.tags if not self._is_part(tag, secrets)),
            aliases=tuple(name for name in record.aliases if not self._is_part(name, secrets)),
            learnings={name: self._without(words, secrets) for name, words in record.learnings.items()},
            artifacts=tuple(
                msgspec.structs.replace(
                    each,
                    ref=self._without(each.ref, secrets),
                    note=self._without(each.note, secrets),
                    anchor=self._without(each.anchor, secrets),
                    root=self._without(each.root, secrets),
                )
                for each in record.artifacts
            ),
            provenance=msgspec.structs.replace(
                provenance,
                quote=quote,
                spans=spans,
                evidence=tuple(self._evidence(evidence) for evidence in provenance.evidence),
            ),
        )

    def _quoted(self, record: Record, secrets: Mapping[str, str]) -> tuple[str, str, tuple[Span, ...]]:
        """Return content, quote and spans: verbatim where the turn exists, else without secrets."""
        provenance = record.provenance
        quote, old = provenance.quote, provenance.spans
        spans = tuple(self._span(span) for span in old)
        content = self._without(record.content, secrets)
        turn = self._turns.get((old[0].document, old[0].turn)) if old else None
        if turn is None or not turn.before[old[0].start : old[0].end].startswith(quote):
            return content, self._without(quote, secrets), spans
        whole = turn.before[old[0].start : old[0].end] == quote
        said = turn.after[spans[0].start : spans[0].end]
        for first, last in ((old[0], old[0]), (old[0], old[-1])):
            if last.turn == first.turn and turn.before[first.start : last.end] == record.content:
                content = turn.after[slice(*moved(first.start, last.end, turn.cuts))]
        if whole and len(said) > QUOTE_LIMIT:  # a placeholder may be longer than the secret
            cut = spans[0].start + QUOTE_LIMIT
            follows = len(old) > 1 and old[1].start == old[0].end and old[1].turn == old[0].turn
            second = (msgspec.structs.replace(spans[1], start=cut),) if follows else spans[1:2]
            spans = (msgspec.structs.replace(spans[0], end=cut), *second, *spans[2:])
        return content, said[:QUOTE_LIMIT], spans

    def _span(self, span: Span) -> Span:
        turn = self._turns.get((span.document, span.turn))
        if turn is None:
            return span
        start, end = moved(span.start, span.end, turn.cuts)
        return Span(span.document, span.turn, start, end)

    def _evidence(self, evidence: Evidence) -> Evidence:
        return msgspec.structs.replace(evidence, span=self._span(evidence.span))

    def _secrets(self, record: Record) -> dict[str, str]:
        """Return the secrets that a record may contain: those of its turns, whole or as far as its spans reach."""
        secrets = dict(self._distinct)
        for span in record.provenance.spans:
            turn = self._turns.get((span.document, span.turn))
            for cut in turn.cuts if turn else ():
                start, end = max(cut.start, span.start), min(cut.end, span.end)
                if turn and end - start >= FRAGMENT:
                    secrets[turn.before[cut.start : cut.end]] = secrets[turn.before[start:end]] = cut.rule
        return secrets

    def _decision(self, decision: Decision, secrets: Mapping[str, str]) -> Decision:
        steps = tuple(Step(step.stage, self._without(step.what, secrets)) for step in decision.steps)
        return msgspec.structs.replace(decision, reason=self._without(decision.reason, secrets), steps=steps)

    def _without(self, words: str, secrets: Mapping[str, str]) -> str:
        """Return `words` without these secrets, however they are spaced, and without those that the rules find."""
        clean, _ = self._known.redact(words)
        for secret, rule in sorted(secrets.items(), key=lambda pair: -len(pair[0])):
            mark = placeholder(Cut(0, 0, 0, rule))
            spaced = r"\s+".join(map(re.escape, secret.split()))
            clean = re.sub(spaced, lambda _, mark=mark: mark, clean, flags=re.IGNORECASE)
            line = " ".join(secret.split())
            for size in range(min(len(line) - 1, len(clean)), LONG - 1, -1):
                if clean.endswith(line[:size]):
                    clean = clean[:-size] + mark
                    break
        return clean

    def _is_part(self, tag: str, secrets: Mapping[str, str]) -> bool:
        """Return whether a keyword is part of a secret."""
        is_found = bool(self._known.find(tag))
        return is_found or (len(tag) >= FRAGMENT and any(tag.casefold() in secret.casefold() for secret in secrets))


# --- what stands in for the entries that change ------------------------------------------------------------------
def _list_entries(stores: Stores, plan: _SecretRemoval, loss: Loss, seqs: set[int], redactions: Sequence[int]) -> None:
    replacements: dict[int, AnyOperation] = {}
    for seq in seqs:
        entry = stores.journal.get(seq)
        if entry is None or (clean := plan.operation(entry.operation)) == entry.operation:
            continue
        replacements[seq] = clean
        if isinstance(clean, SessionOpened):
            loss.reopen(stores, clean)
    loss.set_replacements(replacements, filter(None, map(stores.journal.get, redactions)))
