"""Small stores of beliefs, each with questions: what must come back, and what must not.

`samples/beliefs/` holds the cases of two authors in twelve classes. A developer of memd reads only those of the half
`open`. Beliefs are told by `remember`; one that replaces another one is a `correct` of it. Each case has pools of its
own for the project, the person and another project; a question is asked as a user asks, records and turns together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

import msgspec

from ....protocol.event import Origin
from ....protocol.operation import PoolOpened
from ....protocol.recall import Heard, Hit, Recall, Recalled
from ....protocol.request import ImportRecords, Remember
from ...python.client import Client
from ..measurement import BenchOptions, Figure, PartResult, at_least, mean_figure, share
from ..temporary_daemon import settle, temporary_daemon
from .conversations import SAMPLES, await_vectors

Half = Literal["open", "held"]
HALVES: tuple[Half, ...] = get_args(Half)
Place = Literal["project", "personal", "other"]
LIMIT = 5
SHOWN = 40


class ToldBelief(msgspec.Struct, frozen=True):
    """A statement. `replaces`: the id of the earlier one that it corrects."""

    id: str
    text: str
    pool: Place
    replaces: str = ""


class BeliefQuestion(msgspec.Struct, frozen=True, rename={"unwanted": "not"}):
    """A question. `want`: ids that must be among the answers, none if memd should stay silent; `unwanted`: ids that
    must not; `most`: a fair number of answers, otherwise `LIMIT`, and none where memd should stay silent; `first`:
    whether the first of `want` must be the first answer."""

    ask: str
    origin: Place = msgspec.field(name="from", default="project")
    want: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    most: int | None = None
    first: bool = False


class BeliefCase(msgspec.Struct, frozen=True, rename={"kind": "class"}):
    name: str
    kind: str
    beliefs: tuple[ToldBelief, ...]
    questions: tuple[BeliefQuestion, ...]


class AnsweredQuestion(msgspec.Struct, frozen=True):
    """A question, and the ids of the beliefs of its answer, the best first."""

    half: Half
    case: BeliefCase
    question: BeliefQuestion
    ids: tuple[str, ...]

    @property
    def right(self) -> int:
        return len(set(self.question.want).intersection(self.ids))

    @property
    def is_passed(self) -> bool:
        """Whether all that is wanted came, nothing unwanted, not too much, and the right one first where asked for."""
        want = self.question.want
        is_first = not self.question.first or self.ids[:1] == want[:1]
        most = self.question.most if self.question.most is not None else LIMIT * bool(want)
        return (
            self.right == len(want)
            and is_first
            and len(self.ids) <= most
            and not set(self.ids) & set(self.question.unwanted)
        )


def cases(half: Half) -> tuple[BeliefCase, ...]:
    """The cases of one half."""
    text = (SAMPLES / "beliefs" / f"{half}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, tuple[BeliefCase, ...]])["case"]


def beliefs(options: BenchOptions) -> PartResult:
    """Sixty small stores of beliefs: precision and recall of their questions, and those that pass in every respect."""
    answered: list[AnsweredQuestion] = []
    for half in HALVES:
        options.progress(f"read/beliefs: {half}")
        chosen = cases(half)
        answered += _answered(half, chosen[:5] if options.quick else chosen)
    missed = [_described(one) for one in answered if one.half == "open" and not one.is_passed]
    return PartResult(
        (*_figures(answered, "held"), *_figures(answered, "open")),
        notes=tuple(missed[:SHOWN]),
        shows_not="large stores, and beliefs that memd finds in sessions by itself",
    )


def _figures(answered: Sequence[AnsweredQuestion], half: Half) -> Iterator[Figure]:
    own = [one for one in answered if one.half == half]
    target = half == "held"
    precision = [one.right / len(one.ids) for one in own if one.ids]
    recall = [one.right / len(one.question.want) for one in own if one.question.want]
    yield mean_figure(f"precision, half {half}", precision, at_least(0.70) if target else None)
    yield mean_figure(f"recall, half {half}", recall, at_least(0.85) if target else None)
    yield share(f"questions passed, half {half}", sum(one.is_passed for one in own), len(own))
    for kind in sorted({one.case.kind for one in own}):
        of_kind = [one.is_passed for one in own if one.case.kind == kind]
        yield share(f"  {kind}", sum(of_kind), len(of_kind))


def _described(one: AnsweredQuestion) -> str:
    question = one.question
    return (
        f"{one.case.kind}, {one.case.name}: {question.ask} → {one.ids}; want {question.want}, not {question.unwanted}"
    )


def _answered(half: Half, chosen: Sequence[BeliefCase]) -> Iterator[AnsweredQuestion]:
    """Tell the beliefs of all cases to one daemon, then ask their questions."""
    with temporary_daemon() as client:
        pools = [_pool(case, place) for case in chosen for place in get_args(Place)]
        client.import_records(
            ImportRecords(records=(), pools=tuple(PoolOpened(pool=pool, title=pool) for pool in pools))
        )
        begin = datetime.now(UTC) - timedelta(days=30)
        ids = {case.name: _tell(client, case, begin) for case in chosen}
        settle(client)
        await_vectors(client)
        for case in chosen:
            for question in case.questions:
                yield AnsweredQuestion(half, case, question, _ids(client, case, question, ids[case.name]))


def _pool(case: BeliefCase, place: Place) -> str:
    return f"project/{case.name}-{place}"


def _tell(client: Client, case: BeliefCase, begin: datetime) -> dict[str, str]:
    """Store each belief, an hour after the one before. Return the beliefs' ids by the ids of their records and by their
    turns."""
    stored: dict[str, str] = {}
    told: dict[str, str] = {}
    for number, belief in enumerate(case.beliefs):
        if belief.replaces:
            settle(client)
            stored[belief.id] = client.correct(stored[belief.replaces], belief.text).record.id
        else:
            turn, at = f"{case.name}:{belief.id}", (begin + timedelta(hours=number)).isoformat()
            origin = Origin(host="bench", session=turn)
            wish = Remember(text=belief.text, turn=turn, at=at, origin=origin, pool=_pool(case, belief.pool))
            stored[belief.id] = client.remember(wish).record.id
            told[turn] = belief.id
        told[stored[belief.id]] = belief.id
    return told


def _ids(client: Client, case: BeliefCase, question: BeliefQuestion, told: dict[str, str]) -> tuple[str, ...]:
    """Return the ids of the beliefs of an answer in its order, each once."""
    places: tuple[Place, ...] = ("personal",) if question.origin == "personal" else (question.origin, "personal")
    pools = tuple(_pool(case, place) for place in places)
    answer = client.ask(Recall(query=question.ask, pools=pools, limit=LIMIT), Recalled)
    scored = sorted((*answer.hits, *answer.turns), key=lambda result: -result.score)
    return tuple(dict.fromkeys(_belief(result, told) for result in scored))


def _belief(result: Hit | Heard, told: dict[str, str]) -> str:
    if isinstance(result, Heard):
        return told.get(result.turn, result.turn)
    turns = (span.turn for span in result.record.provenance.spans)
    return next((told[name] for name in (result.record.id, *turns) if name in told), result.record.id)
