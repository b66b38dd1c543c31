"""LoCoMo through the whole pipeline: the turns that become records, and whether the records that answer are found.

Each of the two speakers has a memory in which they are the user and the other one is the assistant. A question goes to
the memory of the speaker it names, with "the user" for the name, and to both if it names both or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import msgspec

from ....protocol.event import Origin, Said
from ....protocol.recall import Hit, Recall, Recalled, RecallOptions
from ....protocol.record import Record
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, at_least, at_most, mean_figure, share
from ..session_data import records
from ..temporary_daemon import settle, temporary_daemon
from .conversations import ANSWERABLE, WITH_OPTIONS, Conversation, await_vectors, locomo
from .ranking import recall_at, reciprocal_rank

FIRST = 10
BUDGET = 1500
GROUP = 200
SETTINGS = {**WITH_OPTIONS, "MEMD_SIMPLE_BELOW_SESSIONS": "0"}
GONE = frozenset({"retired", "hidden"})


class PipelineScore(msgspec.Struct):
    """Sums over conversations: turns, live records, evidence turns of answerable questions, those that a record rests
    on; for each question with covered evidence its recall, reciprocal rank, and recall with the floor off."""

    turns: int = 0
    records: int = 0
    evidence: int = 0
    covered: int = 0
    recalls: list[float] = []
    ranks: list[float] = []
    unfloored: list[float] = []


def pipeline(options: BenchOptions) -> PartResult:
    """LoCoMo, captured turn by turn and distilled: evidence that became records, and that is found among them."""
    conversations = locomo(options)
    score = PipelineScore()
    for number, conversation in enumerate(conversations[:1] if options.quick else conversations, 1):
        options.progress(f"read/pipeline: conversation {number} of {len(conversations)}")
        _add(score, conversation)
    name = f"recall@{FIRST} of covered, {BUDGET} tokens"
    return PartResult(
        (
            share("evidence turns covered", score.covered, score.evidence, at_least(0.6)),
            Figure("records a turn", score.records / score.turns, samples=score.turns, target=at_most(0.45)),
            mean_figure(name, score.recalls, at_least(0.75)),
            mean_figure(f"{name}, floor off", score.unfloored),
            mean_figure("MRR of covered", score.ranks),
        ),
        shows_not="whether a record means what its turn meant; questions of category 5, which have no answer",
    )


def _add(score: PipelineScore, conversation: Conversation) -> None:
    answerable = [question for question in conversation.questions if question.category in ANSWERABLE]
    wanted = {turn for question in answerable for turn in question.evidence}
    with ExitStack() as stack:
        memories: dict[str, Client] = {}
        for speaker in dict.fromkeys(note.author for note in conversation.notes):
            memories[speaker] = client = stack.enter_context(temporary_daemon(SETTINGS))
            capture(client, conversation, speaker)
        live = [item for client in memories.values() for item in records(client) if item.status not in GONE]
        covered = {turn for record in live for turn in turns_of(record)} & wanted
        for question in answerable:
            if evidence := question.evidence & covered:
                names = list(dict.fromkeys(_answering_turns(memories, question.text)))
                score.recalls.append(recall_at(names, evidence, len(names)))
                score.ranks.append(reciprocal_rank(names, evidence))
                names = list(dict.fromkeys(_answering_turns(memories, question.text, RecallOptions(floor=0.0))))
                score.unfloored.append(recall_at(names, evidence, len(names)))
    score.turns += len(conversation.notes)
    score.records += len(live)
    score.evidence += len(wanted)
    score.covered += len(covered)


def capture(client: Client, conversation: Conversation, user: str) -> None:
    """Capture a conversation with one speaker as the user, and wait until it is distilled."""
    by_session: dict[str, list[Said]] = {}
    for note in conversation.notes:
        text = note.text.removeprefix(f"{note.author}: ")
        role = "user" if note.author == user else "assistant"
        by_session.setdefault(note.session, []).append(Said(turn=note.name, at=note.at, role=role, text=text))
    for session, events in by_session.items():
        origin = Origin(host="bench", session=session, live=False)
        for start in range(0, len(events), GROUP):
            client.capture(origin, events[start : start + GROUP])
    settle(client)
    await_vectors(client)


def turns_of(record: Record) -> list[str]:
    """Return the turns that a record rests on."""
    evidence = [item.span.turn for item in record.provenance.evidence]
    return [*(span.turn for span in record.provenance.spans), *evidence]


def _answering_turns(memories: dict[str, Client], question: str, options: RecallOptions | None = None) -> Iterator[str]:
    """The turns that the first ten records of an answer rest on, in order."""
    named = [speaker for speaker in memories if speaker in question]
    hits: list[Hit] = []
    for speaker in named if len(named) == 1 else memories:
        text = re.sub(rf"\b{re.escape(speaker)}\b", "the user", question)
        wish = Recall(query=text, pools=("personal",), limit=FIRST, budget_tokens=BUDGET, options=options)
        hits += memories[speaker].ask(wish, Recalled).hits
    for hit in _best(hits):
        yield from turns_of(hit.record)


def _best(hits: Sequence[Hit]) -> list[Hit]:
    """The first ten of both memories, within the token budget as the daemon estimates it."""
    best: list[Hit] = []
    left = BUDGET
    for hit in sorted(hits, key=lambda hit: -hit.score)[:FIRST]:
        left -= round(len(hit.record.description + hit.record.provenance.quote) / 3.3)
        if left >= 0:
            best.append(hit)
    return best
