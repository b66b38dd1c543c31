"""`selected_memory.json`: the records of a context package as files of a `.pi` folder have them (Q11).

Invariant: it names no session and quotes nobody; evidence is its kind and its day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ...protocol.instant import day, from_micros
from ...protocol.patch_file import STATEMENT, SeedEvidence, SeedRecord, SeedReview, SeedScope, Stability, seed_id
from ...protocol.profile import Selected
from ...protocol.record import Record, Volatility

_STABILITY: dict[Volatility, Stability] = {"stable": "stable", "semi": "semi-stable", "situational": "volatile"}
_TOLD_BY = {"user": "user", "document": "artifact"}
_FROM_FILES = "pi:"
_DOMAIN = "domain:"


class SelectedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record with its salience and why it was selected."""

    record: SeedRecord
    salience: float
    why: str


def selected_memory(selected: Sequence[Selected]) -> list[SelectedRecord]:
    """Return the content of the file."""
    names = {row.record.id: _name(row.record) for row in selected}
    return [
        SelectedRecord(record=_seed_record(row.record, names), salience=row.salience, why=row.why) for row in selected
    ]


def _name(record: Record) -> str:
    """Return the name that a record has in files: its own, if it came from one."""
    if record.provenance.source.startswith(_FROM_FILES) and record.provenance.spans:
        return record.provenance.spans[0].turn
    return seed_id(record.id, _learned_on(record))


def _learned_on(record: Record) -> str:
    return day(from_micros(record.learned_at)) if record.learned_at else day(record.provenance.said_at)


def _seed_record(record: Record, names: dict[str, str]) -> SeedRecord:
    last = max((day(item.at) for item in record.provenance.evidence), default="")
    return SeedRecord(
        id=names[record.id],
        layer=record.layer,
        scope=SeedScope(type=_scope(record)),
        tags=record.tags,
        statement=record.description[:STATEMENT],
        evidence=tuple(_evidence(record)),
        confidence=round(record.confidence, 2),
        stability=_STABILITY[record.volatility],
        created_at=_learned_on(record),
        updated_at=max(_learned_on(record), last),
        review=_review(record),
        status="active",
        supersedes=tuple(_known(record.supersedes, names)),
        superseded_by=tuple(_known([record.superseded_by], names)),
    )


def _scope(record: Record) -> str:
    if any(tag.startswith(_DOMAIN) for tag in record.tags):
        return "domain"
    return "global" if record.pool == "personal" else "project"


def _evidence(record: Record) -> Iterator[SeedEvidence]:
    told = record.provenance
    yield SeedEvidence(type=_TOLD_BY.get(told.trust, "session"), ref=day(told.said_at))
    for item in told.evidence:
        yield SeedEvidence(type=_TOLD_BY.get(item.trust, "session"), ref=day(item.at), note=item.kind)
    for artifact in record.artifacts:
        yield SeedEvidence(
            type="commit" if artifact.type == "commit" else "artifact", ref=artifact.ref, note=artifact.note
        )


def _review(record: Record) -> SeedReview:
    if record.review is None:
        return SeedReview()
    return SeedReview(
        cadence_days=record.review.cadence_days,
        next_review=day(record.review.next) if record.review.next else "",
        change_condition=record.review.change_condition,
    )


def _known(ids: Iterable[str], names: dict[str, str]) -> Iterator[str]:
    return (names[id] for id in ids if id in names)
