"""LoCoMo through the real pipeline: what of a conversation becomes records, and whether those that answer are found.

Comes in: the data folder. Goes out: the share of evidence turns that records rest on, records a turn, and evidence
recall among the first ten records within a budget. Invariants: each of the two who talk has a memory of their own, in
which they are the user and the other is who answers; a question goes to whom it names, who is "the user" there, and to
both where it names both or none; turns that no record rests on are not found by their transcript here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ....protocol.event import Origin, Said
from ....protocol.recall import Hit, Recall, Recalled, RecallOptions
from ....protocol.record import Record
from ...python.client import Client
from ..figure import Figure, at_least, at_most, share
from ..home import settle
from ..part import Part, Setting
from ..sessions import records
from .fitting import recall_at, reciprocal_rank
from .store import bench_daemon, embedded
from .talks import ANSWERABLE, Talk, conversations

FIRST = 10
BUDGET = 1500
GROUP = 200
LATELY = {"MEMD_SIMPLE_BELOW_SESSIONS": "0"}
GONE = frozenset({"retired", "hidden"})


class Kept(NamedTuple):
    """Of one conversation: turns, live records, evidence turns of answerable questions, those that a record rests on;
    and of each question with covered evidence, recall, reciprocal rank, and recall with the floor off."""

    turns: int
    records: int
    evidence: int
    covered: int
    found: list[float]
    places: list[float]
    unfloored: list[float]


def pipeline(setting: Setting) -> Part:
    """LoCoMo, captured turn by turn and distilled: evidence that became records, and that is found among them."""
    talks = conversations(setting)
    kept: list[Kept] = []
    for number, talk in enumerate(talks[:1] if setting.quick else talks, 1):
        setting.tell(f"read/pipeline: conversation {number} of {len(talks)}")
        kept.append(_kept(talk))
    turns, made = sum(each.turns for each in kept), sum(each.records for each in kept)
    found = [value for each in kept for value in each.found]
    places = [value for each in kept for value in each.places]
    unfloored = [value for each in kept for value in each.unfloored]
    name = f"recall@{FIRST} of covered, {BUDGET} tokens"
    return Part(
        figures=(
            share("evidence turns covered", sum(k.covered for k in kept), sum(k.evidence for k in kept), at_least(0.6)),
            Figure(name="records a turn", value=made / turns, samples=turns, target=at_most(0.45)),
            Figure(name=name, value=sum(found) / max(1, len(found)), samples=len(found), target=at_least(0.75)),
            Figure(name=f"{name}, floor off", value=sum(unfloored) / max(1, len(unfloored)), samples=len(unfloored)),
            Figure(name="MRR of covered", value=sum(places) / max(1, len(places)), samples=len(places)),
        ),
        shows_not="whether a record says what its turn meant; questions of category 5, which have no answer",
    )


def _kept(talk: Talk) -> Kept:
    wanted = {turn for asked in talk.questions if asked.category in ANSWERABLE for turn in asked.evidence}
    with ExitStack() as stack:
        memories: dict[str, Client] = {}
        for speaker in dict.fromkeys(note.author for note in talk.notes):
            memories[speaker] = client = stack.enter_context(bench_daemon(LATELY))
            _tell(client, talk, speaker)
        live = [each for client in memories.values() for each in records(client) if each.status not in GONE]
        covered = {turn for each in live for turn in _turns(each)} & wanted
        found: list[float] = []
        places: list[float] = []
        unfloored: list[float] = []
        for asked in talk.questions:
            if asked.category in ANSWERABLE and (evidence := asked.evidence & covered):
                names = list(dict.fromkeys(_answered(memories, asked.text)))
                found.append(recall_at(names, evidence, len(names)))
                places.append(reciprocal_rank(names, evidence))
                names = list(dict.fromkeys(_answered(memories, asked.text, RecallOptions(floor=0.0))))
                unfloored.append(recall_at(names, evidence, len(names)))
    return Kept(len(talk.notes), len(live), len(wanted), len(covered), found, places, unfloored)


def _tell(client: Client, talk: Talk, user: str) -> None:
    """The whole conversation as `user` has it, distilled."""
    by_session: dict[str, list[Said]] = {}
    for note in talk.notes:
        words = note.text.removeprefix(f"{note.author}: ")
        role = "user" if note.author == user else "assistant"
        by_session.setdefault(note.talk, []).append(Said(turn=note.name, at=note.at, role=role, text=words))
    for session, events in by_session.items():
        origin = Origin(host="bench", session=session, live=False)
        for start in range(0, len(events), GROUP):
            client.capture(origin, events[start : start + GROUP])
    settle(client)
    embedded(client)


def _turns(record: Record) -> list[str]:
    evidence = [each.span.turn for each in record.provenance.evidence]
    return [*(span.turn for span in record.provenance.spans), *evidence]


def _answered(memories: dict[str, Client], question: str, options: RecallOptions | None = None) -> Iterator[str]:
    """The turns that the first ten records of an answer rest on, in order."""
    named = [speaker for speaker in memories if speaker in question]
    hits: list[Hit] = []
    for speaker in named if len(named) == 1 else memories:
        text = re.sub(rf"\b{re.escape(speaker)}\b", "the user", question)
        wish = Recall(query=text, pools=("personal",), limit=FIRST, budget_tokens=BUDGET, options=options)
        hits += memories[speaker].ask(wish, Recalled).hits
    for hit in _best(hits):
        yield from _turns(hit.record)


def _best(hits: Sequence[Hit]) -> list[Hit]:
    """The first ten of both memories, within the budget as the daemon counts it."""
    kept: list[Hit] = []
    left = BUDGET
    for hit in sorted(hits, key=lambda each: -each.score)[:FIRST]:
        left -= round(len(hit.record.description + hit.record.provenance.quote) / 3.3)
        if left >= 0:
            kept.append(hit)
    return kept
