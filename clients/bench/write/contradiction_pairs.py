"""Contradictions: a later statement retires the one it contradicts, and stays beside one it does not (T1, W6, P-8)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....protocol import request
from ....protocol.errors import StoreError
from ....protocol.event import Origin
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, at_least, share, zero_figure
from ..temporary_daemon import settle, temporary_daemon

PAIRS = Path(__file__).parents[1] / "samples" / "contradictions.json"
OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"
NAMED = 15


class StatementPair(msgspec.Struct, frozen=True):
    """Two statements, the second one later, and a word to ask for it. With the shape `keep` both hold."""

    shape: str
    old: str
    new: str
    word: str = ""


def pairs(path: Path) -> list[StatementPair]:
    """The pairs of a file. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[StatementPair])
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} holds no pairs: {error}", hint="a list of {shape, old, new, word}") from error


def reconcile(options: BenchOptions) -> PartResult:
    """Authored pairs, said one after the other: the old one retired or both kept, and never the old one recalled."""
    figures: list[Figure] = []
    notes: list[str] = []
    more = sorted((options.data / "reconcile").glob("*.json")) if options.data else []
    for path in (PAIRS, *more):
        options.progress(f"write/reconcile: {path.stem}")
        of_file, wrong = _outcome(pairs(path), "" if path == PAIRS else f", {path.stem}")
        figures += of_file
        notes += wrong[:NAMED]
    shows_not = "statements in long sessions, whose meaning depends on other sentences"
    return PartResult(figures=tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _outcome(pairs: Sequence[StatementPair], suffix: str) -> tuple[list[Figure], list[str]]:
    """The figures of these pairs, and a line for each pair with the wrong outcome."""
    changes = sum(pair.shape != "keep" for pair in pairs)
    wrong: list[str] = []
    retired = kept = outranked = 0
    with temporary_daemon() as client:
        old_ids = [_remember(client, f"old{n}", pair.old, OLD) for n, pair in enumerate(pairs)]
        settle(client)
        new_ids = [_remember(client, f"new{n}", pair.new, NEW) for n, pair in enumerate(pairs)]
        settle(client)
        for pair, old_id, new_id in zip(pairs, old_ids, new_ids, strict=True):
            old, new = client.get(old_id), client.get(new_id)
            if pair.shape == "keep":
                is_right = (old.status, new.status) == ("active", "active")
                kept += is_right
            else:
                is_right = (old.status, new.status, old.superseded_by) == ("retired", "active", new.id)
                retired += is_right
                hits = [hit.record.id for hit in client.recall(f"{pair.old} {pair.word}").hits]
                outranked += old.id in hits and (new.id not in hits or hits.index(old.id) < hits.index(new.id))
            if not is_right:
                wrong.append(f"{pair.shape}: {pair.old} | {pair.new} → {old.status}, {new.status}")
    return [
        share(f"changes that retire the old{suffix}", retired, changes, at_least(0.85)),
        share(f"second things kept beside the first{suffix}", kept, len(pairs) - changes, at_least(0.9)),
        zero_figure(f"old ones recalled above the new{suffix}", outranked, changes),
    ], wrong


def _remember(client: Client, turn: str, text: str, at: str) -> str:
    origin = Origin(host="bench", session="pairs")
    return client.remember(request.Remember(text=text, turn=turn, at=at, origin=origin)).record.id
