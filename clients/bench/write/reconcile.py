"""What is said later counts: a change retires what it contradicts, a second thing stays beside the first (T1, W6, P-8).

Comes in: pairs, those of the data (`reconcile/*.json`) besides the authored ones that come with memd. Goes out: shares
with intervals, and each pair that ended wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ....protocol import request
from ....protocol.errors import StoreError
from ....protocol.event import Origin
from ...python.client import Client
from ..figure import Figure, at_least, at_most, share
from ..home import empty_home, running, settle
from ..part import Part, Setting

PAIRS = Path(__file__).parents[1] / "samples" / "contradictions.json"
OLD, NEW = "2026-03-01T09:00:00+01:00", "2026-04-12T09:00:00+02:00"
NAMED = 15


class Pair(msgspec.Struct, frozen=True):
    """Two statements, the second one later; a word to ask for it; `keep` is the shape of those that both hold."""

    shape: str
    old: str
    new: str
    word: str = ""


def pairs(path: Path) -> list[Pair]:
    """The pairs of a file. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Pair])
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path} holds no pairs: {error}", hint="a list of {shape, old, new, word}") from error


def reconcile(setting: Setting) -> Part:
    """Authored pairs, said one after the other: the old one retired or both kept, and never the old one recalled."""
    figures: list[Figure] = []
    notes: list[str] = []
    more = sorted((setting.data / "reconcile").glob("*.json")) if setting.data else []
    for path in (PAIRS, *more):
        setting.tell(f"write/reconcile: {path.stem}")
        found, wrong = _outcome(pairs(path), "" if path == PAIRS else f", {path.stem}")
        figures += found
        notes += wrong[:NAMED]
    shows_not = "statements in long sessions, where what is meant stands in other sentences"
    return Part(figures=tuple(figures), notes=tuple(notes), shows_not=shows_not)


def _outcome(found: Sequence[Pair], where_from: str) -> tuple[list[Figure], list[str]]:
    changes = [number for number, pair in enumerate(found) if pair.shape != "keep"]
    keeps = [number for number, pair in enumerate(found) if pair.shape == "keep"]
    wrong: list[str] = []
    with empty_home() as (where, environment), running(where, environment) as client:
        ids = {(n, "old"): _remember(client, f"old{n}", pair.old, OLD) for n, pair in enumerate(found)}
        settle(client)
        ids |= {(n, "new"): _remember(client, f"new{n}", pair.new, NEW) for n, pair in enumerate(found)}
        settle(client)
        retired, kept, outranked = 0, 0, 0
        for n, pair in enumerate(found):
            old, new = client.get(ids[n, "old"]), client.get(ids[n, "new"])
            is_replaced = (old.status, new.status, old.superseded_by) == ("retired", "active", new.id)
            is_kept = (old.status, new.status) == ("active", "active")
            retired += n in changes and is_replaced
            kept += n in keeps and is_kept
            if not (is_kept if n in keeps else is_replaced):
                wrong.append(f"{pair.shape}: {pair.old} | {pair.new} → {old.status}, {new.status}")
            if n in changes:
                hits = [hit.record.id for hit in client.recall(f"{pair.old} {pair.word}").hits]
                outranked += old.id in hits and (new.id not in hits or hits.index(old.id) < hits.index(new.id))
    return [
        share(f"changes that retire the old{where_from}", retired, len(changes), at_least(0.85)),
        share(f"second things kept beside the first{where_from}", kept, len(keeps), at_least(0.9)),
        Figure(name=f"old ones recalled above the new{where_from}", value=outranked, target=at_most(0),
               samples=len(changes)),
    ], wrong  # fmt: skip


def _remember(client: Client, turn: str, text: str, at: str) -> str:
    origin = Origin(host="bench", session="pairs")
    return client.remember(request.Remember(text=text, turn=turn, at=at, origin=origin)).record.id
