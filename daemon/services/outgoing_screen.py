"""Applies today's secret and injection rules to everything that memd shows (W5, P-18).

A record may be older than a rule. Invariants: no model runs and nothing is written (`memd scan` changes the stores); an
answer without findings is returned unchanged; the verdict on a text is cached while memd runs.
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
from ...stages.secrets.scan import find
from ..storage.cuts import replaced

CACHED = 16_384
"""Texts with a cached verdict: a text costs 50 µs the first time, a fifth of a microsecond later."""

SUSPECT = 0.5
"""Factor on the score of a record in which the scan finds an injection (T8)."""

secrets_in = lru_cache(CACHED)(find)


class Shown(NamedTuple):
    """A record as memd may show it, and the kinds of secrets and injections newly found in it."""

    record: Record
    seen: tuple[str, ...] = ()


@lru_cache(CACHED)
def flags_in(words: str, material: bool = True) -> tuple[str, ...]:
    """Return the flags that the scan stage would give a text; `material`: the text is not the user's own."""
    from ...stages.scan import flags_of  # late: its expressions take long to compile at the start

    return flags_of(words, material=material)


def without_secrets(words: str) -> str:
    """Replace secrets by placeholders."""
    secrets = secrets_in(words)
    cuts = tuple(Cut(0, secret.start, secret.end, secret.rule) for secret in secrets)
    return replaced(words, cuts) if secrets else words


def shown(record: Record) -> Shown:
    """Return a record as memd may show it: the same object if the rules find nothing."""
    provenance = record.provenance
    texts = dict.fromkeys((record.content, record.description, provenance.quote, record.value, record.key))
    if record.learnings or record.artifacts:
        texts.update(dict.fromkeys(record.learnings.values()))
        texts.update(dict.fromkeys(words for each in record.artifacts for words in (each.ref, each.note, each.anchor)))
    seen = tuple(dict.fromkeys(secret.rule for words in texts for secret in secrets_in(words)))
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
        aliases=tuple(name for name in record.aliases if not secrets_in(name)),
        learnings={name: without_secrets(words) for name, words in record.learnings.items()},
        artifacts=tuple(
            msgspec.structs.replace(
                each,
                ref=without_secrets(each.ref),
                note=without_secrets(each.note),
                anchor=without_secrets(each.anchor),
                root=without_secrets(each.root),
            )
            for each in record.artifacts
        ),
        provenance=msgspec.structs.replace(provenance, quote=without_secrets(provenance.quote)),
        flags=(*record.flags, *flags),
        status="quarantined" if flags and record.status == "active" else record.status,
    )
    return Shown(clean, (*seen, *flags))


def screened(answer: Recalled) -> Recalled:
    """Return an answer as memd may send it; `filtered` also counts the changed texts, `screened` has the kinds."""
    kinds: Counter[str] = Counter()
    before = (*answer.principles, *answer.hits)
    hits: list[Hit] = []
    for hit in before:
        record, seen = shown(hit.record)
        if seen:
            kinds.update(seen)
            parts, score = hit.parts, hit.score
            if record.status != hit.record.status:
                parts, score = {**parts, "quarantined": SUSPECT}, round(score * SUSPECT, 4)
            hit = msgspec.structs.replace(hit, record=record, score=score, parts=parts)
        hits.append(hit)
    changed = sum(hit is not old for hit, old in zip(hits, before, strict=True))
    principles = len(answer.principles)
    nearest = answer.nearest
    turns = tuple(map(_flagged, answer.turns))
    kinds.update(flag for turn, old in zip(turns, answer.turns, strict=True) if turn is not old for flag in turn.flags)
    changed += sum(turn is not old for turn, old in zip(turns, answer.turns, strict=True))
    linked = tuple(msgspec.structs.replace(link, record=shown(link.record).record) for link in answer.linked)
    beside = (*(turn.quote for turn in answer.turns), nearest.description if nearest else "", *_deep_words(answer))
    for words in beside:
        if secrets := secrets_in(words):
            changed += 1
            kinds.update(secret.rule for secret in secrets)
    if not changed and linked == answer.linked:
        return answer
    return msgspec.structs.replace(
        answer,
        hits=tuple(_clean_hit(hit) for hit in sorted(hits[principles:], key=lambda hit: -hit.score)),
        linked=linked,
        principles=tuple(hits[:principles]),
        turns=tuple(_clean_turn(turn) for turn in sorted(turns, key=lambda turn: -turn.score)),
        nearest=nearest and msgspec.structs.replace(nearest, description=without_secrets(nearest.description)),
        filtered=answer.filtered + changed,
        screened=dict(kinds),
    )


def _deep_words(answer: Recalled) -> Iterator[str]:
    """Yield the transcripts and histories of a deep answer."""
    for result in (*answer.hits, *answer.turns):
        yield from (line.text for line in result.lines)
    for hit in answer.hits:
        yield from (state.text for state in hit.history)


def _clean_lines(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    return tuple(msgspec.structs.replace(line, text=without_secrets(line.text)) for line in lines)


def _clean_hit(hit: Hit) -> Hit:
    history = tuple(msgspec.structs.replace(state, text=without_secrets(state.text)) for state in hit.history)
    return msgspec.structs.replace(hit, lines=_clean_lines(hit.lines), history=history)


def _flagged(turn: Heard) -> Heard:
    """Return a turn with the marks of an injection, unless the user said it: the same object if the rules find none."""
    flags = () if turn.trust == "user" else tuple(flag for flag in flags_in(turn.quote) if flag not in turn.flags)
    if not flags:
        return turn
    return msgspec.structs.replace(turn, flags=(*turn.flags, *flags), score=round(turn.score * SUSPECT, 4))


def _clean_turn(turn: Heard) -> Heard:
    return msgspec.structs.replace(turn, quote=without_secrets(turn.quote), lines=_clean_lines(turn.lines))
