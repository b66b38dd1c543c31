"""LoCoMo session by session: from how many sessions on the records alone answer as well as the turns do (Q4).

The first speaker of a conversation is the user. After 1, 2, 4, … sessions come the questions whose evidence these
sessions have, asked of the records alone, of records and turns together, and of plain BM25 over the turns. Each method
returns at most `FIRST` answers of at most `BUDGET` tokens together; BM25 returns whole turns without a budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ....protocol.recall import BUDGET_TOKENS as BUDGET
from ....protocol.recall import LIMIT as FIRST
from ....protocol.recall import Hit, Recall, Recalled
from ....protocol.record import TYPES
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, mean_figure
from ..temporary_daemon import temporary_daemon
from .conversations import ANSWERABLE, Conversation, SeedNote, locomo
from .locomo_pipeline import capture, turns_of
from .plain_search import PlainSearch
from .ranking import recall_at, reciprocal_rank


class MethodScores(msgspec.Struct):
    """The recall and the reciprocal rank of each question, by one method."""

    recalls: list[float] = []
    ranks: list[float] = []

    def add(self, names: Sequence[str], evidence: frozenset[str]) -> None:
        self.recalls.append(recall_at(names, evidence, FIRST))
        self.ranks.append(reciprocal_rank(names, evidence))


RECORDS, TOGETHER, PLAIN = "records alone", "records and turns", "BM25 over turns"


def crossover(options: BenchOptions) -> PartResult:
    """LoCoMo, session by session: records alone, records and turns, and plain BM25 over the turns."""
    conversations = locomo(options)
    scores: dict[tuple[int, str], MethodScores] = {}
    for number, conversation in enumerate(conversations[:1] if options.quick else conversations, 1):
        options.progress(f"read/crossover: conversation {number} of {len(conversations)}")
        _add(scores, conversation)
    return PartResult(
        tuple(_figures(scores)),
        notes=("the setting `simple_below_sessions` decides up to where memd searches turns beside records",),
        shows_not="conversations of more than 32 sessions, and sessions of coding agents",
    )


def _figures(scores: dict[tuple[int, str], MethodScores]) -> Iterator[Figure]:
    for (sessions, method), score in sorted(scores.items(), key=lambda item: item[0][0]):
        yield mean_figure(f"recall@{FIRST}, {sessions} sessions, {method}", score.recalls)
        yield mean_figure(f"MRR, {sessions} sessions, {method}", score.ranks)


def _add(scores: dict[tuple[int, str], MethodScores], conversation: Conversation) -> None:
    sessions = list(dict.fromkeys(note.session for note in conversation.notes))
    steps = [2**power for power in range(len(sessions).bit_length())]
    user, told = conversation.notes[0].author, list[SeedNote]()
    with temporary_daemon({}) as client:
        for before, step in zip((0, *steps), steps, strict=False):
            wanted = sessions[before:step]
            new = tuple(note for note in conversation.notes if note.session in wanted)
            capture(client, msgspec.structs.replace(conversation, notes=new), user)
            told += new
            plain, known = PlainSearch([note.text for note in told]), {note.name for note in told}
            for question in conversation.questions:
                if question.category in ANSWERABLE and question.evidence <= known:
                    found = [told[place].name for place in plain.find(question.text, FIRST)]
                    asked = re.sub(rf"\b{re.escape(user)}\b", "the user", question.text)
                    by_method = {
                        RECORDS: _turns(client, asked, TYPES),
                        TOGETHER: _turns(client, asked, ()),
                        PLAIN: found,
                    }
                    for method, names in by_method.items():
                        scores.setdefault((step, method), MethodScores()).add(names, question.evidence)


def _turns(client: Client, question: str, types: Iterable[str]) -> list[str]:
    """Return the turns that the results of an answer rest on, best first."""
    wish = Recall(query=question, pools=("personal",), limit=FIRST, budget_tokens=BUDGET, types=tuple(types))
    answer = client.ask(wish, Recalled)
    results = sorted((*answer.hits, *answer.turns), key=lambda result: -result.score)
    names = (turns_of(each.record) if isinstance(each, Hit) else [each.turn] for each in results)
    return list(dict.fromkeys(name for group in names for name in group))
