"""The rules of today on everything that goes out: what an older memd believed may hold what it did not know (W5, P-18).

Comes in: an answer. Goes out: the same, secrets replaced by placeholders, what speaks to an agent marked as the scan
stage would mark it now, and how often what was seen. Invariants: no model; nothing is written, `memd scan` does that;
an answer in which nothing is seen is passed on as it is; words are judged once and remembered, as long as memd runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ...protocol.operation import Cut
from ...protocol.record import Record
from ...protocol.reply import Heard, Hit, Line, Recalled
from ...stages.secrets.scan import SecretSpan, find
from ..storage.cuts import replaced

REMEMBERED = 16_384
"""Texts whose verdict is remembered: 50 µs the first time, a fifth of a microsecond from then on."""

SUSPECT = 0.5
"""The share of its score that a record keeps in which the scan sees an injection (T8)."""

secrets_in = lru_cache(REMEMBERED)(find)


class Shown(NamedTuple):
    """A record as it may be shown, and the kinds of what was taken out of it or newly seen in it."""

    record: Record
    seen: tuple[str, ...] = ()


@lru_cache(REMEMBERED)
def flags_in(words: str, material: bool = True) -> tuple[str, ...]:
    """What the scan stage would mark words with; `material`: somebody else's, not the user's own."""
    from ...stages.scan import flags_of  # here, for the daemon's start: its expressions take long to compile

    return flags_of(words, material=material)


def without_secrets(words: str) -> str:
    """`words` with placeholders for what today's rules see in them."""
    seen = secrets_in(words)
    return replaced(words, _cuts(seen)) if seen else words


def _cuts(seen: tuple[SecretSpan, ...]) -> tuple[Cut, ...]:
    return tuple(Cut(0, each.start, each.end, each.rule) for each in seen)


def shown(record: Record) -> Shown:
    """A record as today's rules let it out: the very same where they see nothing."""
    provenance = record.provenance
    texts = dict.fromkeys((record.content, record.description, provenance.quote, record.value, record.key))
    if record.learnings:
        texts.update(dict.fromkeys(record.learnings.values()))
    seen = tuple(dict.fromkeys(each.rule for words in texts for each in secrets_in(words)))
    flags = () if provenance.trust == "user" else tuple(f for f in flags_in(record.content) if f not in record.flags)
    if not seen and not flags:
        return Shown(record)
    clean = msgspec.structs.replace(
        record,
        content=without_secrets(record.content),
        description=without_secrets(record.description),
        value=without_secrets(record.value),
        key=without_secrets(record.key),
        tags=tuple(tag for tag in record.tags if not secrets_in(tag)),
        learnings={name: without_secrets(words) for name, words in record.learnings.items()},
        provenance=msgspec.structs.replace(provenance, quote=without_secrets(provenance.quote)),
        flags=(*record.flags, *flags),
        status="quarantined" if flags and record.status == "active" else record.status,
    )
    return Shown(clean, (*seen, *flags))


def screened(answer: Recalled) -> Recalled:
    """An answer as it may go out; `filtered` counts what is shown only in part, `screened` says why."""
    kinds: Counter[str] = Counter()
    given = (*answer.principles, *answer.hits)
    hits: list[Hit] = []
    for hit in given:
        record, seen = shown(hit.record)
        if seen:
            kinds.update(seen)
            parts, score = hit.parts, hit.score
            if record.status != hit.record.status:
                parts, score = {**parts, "quarantined": SUSPECT}, round(score * SUSPECT, 4)
            hit = msgspec.structs.replace(hit, record=record, score=score, parts=parts)
        hits.append(hit)
    changed = sum(hit is not before for hit, before in zip(hits, given, strict=True))
    always = len(answer.principles)
    turns = tuple(map(_heard, answer.turns))
    nearest = answer.nearest
    linked = tuple(msgspec.structs.replace(each, record=shown(each.record).record) for each in answer.linked)
    beside = (*(turn.quote for turn in answer.turns), nearest.description if nearest else "", *_deep_words(answer))
    for words in beside:
        if seen := secrets_in(words):
            changed += 1
            kinds.update(each.rule for each in seen)
    if not changed and linked == answer.linked:
        return answer
    return msgspec.structs.replace(
        answer,
        hits=tuple(_around(hit) for hit in sorted(hits[always:], key=lambda hit: -hit.score)),
        linked=linked,
        principles=tuple(hits[:always]),
        turns=turns,
        nearest=nearest and msgspec.structs.replace(nearest, description=without_secrets(nearest.description)),
        filtered=answer.filtered + changed,
        screened=dict(kinds),
    )


def _deep_words(answer: Recalled) -> Iterator[str]:
    """What stands around hits and turns, where depth was asked for."""
    for each in (*answer.hits, *answer.turns):
        yield from (line.text for line in each.lines)
    for hit in answer.hits:
        yield from (state.text for state in hit.history)


def _lines(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    return tuple(msgspec.structs.replace(line, text=without_secrets(line.text)) for line in lines)


def _around(hit: Hit) -> Hit:
    history = tuple(msgspec.structs.replace(state, text=without_secrets(state.text)) for state in hit.history)
    return msgspec.structs.replace(hit, lines=_lines(hit.lines), history=history)


def _heard(turn: Heard) -> Heard:
    return msgspec.structs.replace(turn, quote=without_secrets(turn.quote), lines=_lines(turn.lines))
