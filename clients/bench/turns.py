"""Captures for a measurement: as many as wanted, in the words and the lengths of the sample session.

Comes in: a seed. Goes out: events, the same for the same seed, no two alike.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from ...protocol import event
from ...protocol.event import AnyEvent, Said, ToolCalled
from ...protocol.instant import from_micros
from ..importers import claude_code

_BEGIN = 1_767_225_600_000_000


def sample_events() -> list[AnyEvent]:
    """The events of the session that comes with memd."""
    transcript = claude_code.read(Path(__file__).parents[1] / "cli" / "sample" / "session.jsonl")
    return [each for session in transcript.sessions for each in session.events if event.text(each)]


def turns(seed: int = 7) -> Iterator[AnyEvent]:
    """Events without an end: sentences of the sample in new order, each with a number, in messages of usual length."""
    chance = random.Random(seed)
    samples = sample_events()
    sentences = [part for each in samples for part in re.split(r"(?<=[.!?])\s+", event.text(each)) if len(part) > 20]
    number = 0
    while True:
        like = chance.choice(samples)
        number += 1
        at = from_micros(_BEGIN + number * 7_000_000)
        turn = f"{chance.getrandbits(128):032x}"
        if isinstance(like, ToolCalled):
            arguments = f"{like.arguments[:180]} {number}"
            yield ToolCalled(turn=turn, at=at, name=like.name, arguments=arguments, outcome=like.outcome)
            continue
        wanted, words = len(event.text(like)), [f"Step {number}:"]
        while sum(map(len, words)) < wanted:
            words.append(chance.choice(sentences))
        role = like.role if isinstance(like, Said) else "assistant"
        yield Said(turn=turn, at=at, role=role, text=" ".join(words))
