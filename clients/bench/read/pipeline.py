"""LoCoMo through the real pipeline: what of a conversation becomes records, and whether those that answer are found.

Comes in: the data folder. Goes out: the share of evidence turns that records rest on, records a turn, and evidence
recall among the first ten records within a budget. Invariants: turns are captured as a user's own, each with its
speaker's name, and distilled as any session is; each conversation has a memory of its own; turns that no record rests
on are not found by their transcript here.
"""

from __future__ import annotations

from typing import NamedTuple

from ....protocol.event import Origin, Said
from ....protocol.recall import Recall, Recalled
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


class Kept(NamedTuple):
    """Of one conversation: turns, live records, evidence turns of answerable questions, those that a record rests on;
    and of each question with covered evidence, recall and reciprocal rank."""

    turns: int
    records: int
    evidence: int
    covered: int
    found: list[float]
    places: list[float]


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
    mean = sum(found) / max(1, len(found))
    return Part(
        figures=(
            share("evidence turns covered", sum(k.covered for k in kept), sum(k.evidence for k in kept), at_least(0.6)),
            Figure(name="records a turn", value=made / turns, samples=turns, target=at_most(0.45)),
            Figure(
                name=f"recall@{FIRST} of covered, {BUDGET} tokens",
                value=mean,
                samples=len(found),
                target=at_least(0.75),
            ),
            Figure(name="MRR of covered", value=sum(places) / max(1, len(places)), samples=len(places)),
        ),
        shows_not="whether a record says what its turn meant; questions of category 5, which have no answer",
    )


def _kept(talk: Talk) -> Kept:
    wanted = {turn for asked in talk.questions if asked.category in ANSWERABLE for turn in asked.evidence}
    with bench_daemon({"MEMD_SIMPLE_BELOW_SESSIONS": "0"}) as client:
        _tell(client, talk)
        settle(client)
        embedded(client)
        live = [each for each in records(client) if each.status not in ("retired", "hidden")]
        covered = {turn for each in live for turn in _turns(each)} & wanted
        found: list[float] = []
        places: list[float] = []
        for asked in talk.questions:
            if asked.category in ANSWERABLE and (evidence := asked.evidence & covered):
                names = _named(client, asked.text)
                found.append(recall_at(names, evidence, len(names)))
                places.append(reciprocal_rank(names, evidence))
    return Kept(len(talk.notes), len(live), len(wanted), len(covered), found, places)


def _tell(client: Client, talk: Talk) -> None:
    by_session: dict[str, list[Said]] = {}
    for note in talk.notes:
        by_session.setdefault(note.talk, []).append(Said(turn=note.name, at=note.at, role="user", text=note.text))
    for session, events in by_session.items():
        origin = Origin(host="bench", session=session, live=False)
        for start in range(0, len(events), GROUP):
            client.capture(origin, events[start : start + GROUP])


def _turns(record: Record) -> list[str]:
    evidence = [each.span.turn for each in record.provenance.evidence]
    return [*(span.turn for span in record.provenance.spans), *evidence]


def _named(client: Client, question: str) -> list[str]:
    """The turns that the first ten records of an answer rest on, in order, each once."""
    told = client.ask(Recall(query=question, pools=("personal",), limit=FIRST, budget_tokens=BUDGET), Recalled)
    return list(dict.fromkeys(turn for hit in told.hits for turn in _turns(hit.record)))
