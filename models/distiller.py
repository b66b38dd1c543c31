"""Read a clause: its type, modality and salience, and the words that name subject and value (W4)."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .network import Head, ranked, softmax

Speaker = Literal["user", "assistant", "other"]
Telling = Literal["identity", "preference", "decision", "convention", "lesson", "commitment", "event", "procedure"]
Idle = Literal["instruction", "question", "smalltalk", "noise"]
Type = Telling | Idle
Modality = Literal["stated", "negated", "conditional", "asked", "hypothetical", "quoted", "retracted"]
Tag = Literal["subject", "attribute", "value", "time"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)
IDLE: tuple[Idle, ...] = get_args(Idle)  # Types of a clause that nobody looks for later
TYPES: tuple[Type, ...] = (*get_args(Telling), *IDLE)
MODALITIES: tuple[Modality, ...] = get_args(Modality)
TAGS: tuple[Tag, ...] = get_args(Tag)
LONGEST = 128  # Tokens of a clause that count


class Marked(NamedTuple):
    """Words of the clause that play a part in it: `clause[start:end]`."""

    tag: Tag
    start: int
    end: int


class ClauseReading(NamedTuple):
    """One reading. Probabilities by label, from the most likely on; `salience` in [0, 3], `pooled` 384 numbers."""

    types: dict[Type, float]
    modalities: dict[Modality, float]
    salience: float
    marked: tuple[Marked, ...]
    pooled: NDArray[np.float32]
    clause: str = ""

    @property
    def type(self) -> Type:
        """The most likely type."""
        return next(iter(self.types))

    def words(self, tag: Tag) -> str:
        """The words of the clause with this tag, or ""."""
        return next((self.clause[mark.start : mark.end] for mark in self.marked if mark.tag == tag), "")

    @property
    def modality(self) -> Modality:
        """The most likely modality."""
        return next(iter(self.modalities))


class Distiller(Head):
    """The network. A clause takes about 3 ms on one thread."""

    HEAD = "distiller"

    def read(self, clause: str, speaker: Speaker) -> ClauseReading:
        """What `clause` says, as `speaker`'s words. A clause counts up to its 128th token."""
        who = self.tokens.ids(f"{speaker}:")[1:-1]
        encoded = self.tokens.encode(clause)
        ids = [encoded.ids[0], *who, *encoded.ids[1:]][:LONGEST]
        offsets = [(0, 0)] * (1 + len(who)) + encoded.offsets[1:][: LONGEST - 1 - len(who)]
        types, modalities, salience, tags, pooled = self._read((ids, [SPEAKERS.index(speaker)] * len(ids)))
        return ClauseReading(
            types=ranked(TYPES, types),
            modalities=ranked(MODALITIES, modalities),
            salience=float(softmax(salience) @ np.arange(len(salience), dtype=np.float32)),
            marked=_marked(softmax(tags), offsets),
            pooled=pooled,
            clause=clause,
        )


def _marked(tags: NDArray[np.float32], offsets: list[tuple[int, int]]) -> tuple[Marked, ...]:
    """For each tag the run of tokens that carries most of it, if there is one."""
    best = [int(tag) if offset[1] else 0 for tag, offset in zip(tags.argmax(axis=1), offsets, strict=True)]
    runs: dict[int, list[tuple[float, int, int]]] = {}
    for number, group in groupby(range(len(best)), key=lambda at: best[at]):
        run = list(group)
        weight = float(tags[run[0] : run[-1] + 1, number].sum())
        runs.setdefault(number, []).append((weight, offsets[run[0]][0], offsets[run[-1]][1]))
    return tuple(Marked(name, *max(runs[number])[1:]) for number, name in enumerate(TAGS, 1) if number in runs)
