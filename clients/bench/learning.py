"""What memd learns from real sessions, by the measures of the corpus of sessions with hand-written gold.

The corpus has its own scorer (`score.py`), which imports each session into an empty home, asks its questions, and
grades. This part runs it, and adds what it does not tell: tiers, people, lengths and volume, each with an interval.
No session is measured with a model that was fitted on it or on another session of its repository.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from ...protocol.errors import Unavailable
from ...protocol.event import Said, ToolCalled
from ..importers.transcript import CapturedSession
from .corpus import (
    SCORER,
    corpus_folder,
    load_scorer,
    models_without,
    person,
    read_session,
    repository,
    session_names,
)
from .measurement import BenchOptions, Figure, PartResult, at_least, at_most, bootstrapped_figure, share
from .read.plain_search import PlainSearch

NAMED_KINDS = ("preference", "correction", "procedure")
WHOLE, PARTLY = 0.6, 0.3
"""Shares of a quote's words from which the scorer counts it as held whole, or partly."""
MORE_NOTED = 12
"""Noted records more than believed ones, for 100 typed or final turns."""
FIRST = 5
LONGEST_MEDIAN, LONGEST = 30, 80

Graded = Mapping[str, Any]
"""What the scorer writes of one session."""


def learn(options: BenchOptions) -> PartResult:
    """Real sessions with gold lists: what is kept, believed, wrongly kept, in which pool, and answered next week."""
    folder, only = corpus_folder(options), session_names(options)
    scorer = load_scorer(folder)
    with TemporaryDirectory(prefix="memd-bench-") as name:
        out = Path(name)
        for session in only:
            options.progress(f"learn: {session}")
            _run(folder, out, session)
            _keep(out, session)
        raw = {session: json.loads((out / f"{session}.raw").read_bytes()) for session in only}
    graded = {session: scorer.grade("dev", session, raw[session]) for session in only}
    sessions = {session: read_session(folder, scorer, session) for session in only}
    turns = sum(_turns(session) for session in sessions.values())
    gold = {session: scorer.gold("dev", session) for session in only}
    figures = (
        *_items(graded),
        *_records(graded, raw, turns),
        *_answers(graded),
        *_plainly_answered(sessions, gold, graded),
    )
    notes = [f"{session}: whole {_whole(one)} of {len(one['items'])}" for session, one in graded.items()]
    return PartResult(figures, notes=tuple(notes), shows_not="meaning: the scorer compares words")


def _run(folder: Path, out: Path, session: str) -> None:
    environment = {**os.environ, **models_without(repository(session))}
    program = Path(sys.executable).with_name("memd")
    options = ["--half", "dev", "--only", session, "--out", str(out), "--memd", str(program), "--nice", "0"]
    command = [sys.executable, str(folder / SCORER), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise Unavailable(f"the scorer failed on {session}", hint=done.stderr.strip()[-300:])


def _keep(out: Path, session: str) -> None:
    (out / f"{session}.raw").write_bytes((out / "dev" / session / "raw.json").read_bytes())


def _turns(sessions: Iterable[CapturedSession]) -> int:
    """Turns of a session that the user typed, and messages with which the agent ended its work on one."""
    number = 0
    for session in sessions:
        spoken = [event for event in session.events if isinstance(event, Said | ToolCalled)]
        for event, after in zip(spoken, [*spoken[1:], None], strict=True):
            is_last = after is None or (isinstance(after, Said) and after.role == "user")
            number += isinstance(event, Said) and (event.role == "user" or is_last)
    return number


def _whole(graded: Graded) -> int:
    return sum(item["got"] == "whole" for item in graded["items"])


def _items(graded: Mapping[str, Graded]) -> Iterator[Figure]:
    items = [item for one in graded.values() for item in one["items"]]

    def whole(name: str, of: Callable[[Graded], bool], bound: float | None = None) -> Figure:
        chosen = [item["got"] == "whole" for item in items if of(item)]
        return share(name, sum(chosen), len(chosen), at_least(bound) if bound else None)

    yield whole("gold kept whole", lambda _: True, 0.55)
    touched = sum(item["got"] != "no" for item in items)
    yield share("  whole or partly", touched, len(items), at_least(0.72))
    yield share("  whole, by believed records", sum(item["sure"] for item in items), len(items), at_least(0.35))
    for kind in sorted({item["kind"] for item in items}):
        yield whole(f"  {kind}", lambda item, kind=kind: item["kind"] == kind, 0.4 if kind in NAMED_KINDS else None)
    yield whole("  the user's", lambda item: item["whose"] == "user", 0.4)
    yield whole("  of two turns", lambda item: bool(item["two"]), 0.4)
    for name in sorted({person(session) for session in graded}):
        own = [item for session, one in graded.items() if person(session) == name for item in one["items"]]
        yield share(f"  {name}", sum(item["got"] == "whole" for item in own), len(own))


def _records(graded: Mapping[str, Graded], raw: Mapping[str, Graded], turns: int) -> Iterator[Figure]:
    """What the records are worth by tier, and that coverage is not bought by volume."""
    unmatched = {(name, record["id"]) for name, one in graded.items() for record in one["unmatched"]}
    live = [(name, record) for name, one in raw.items() for record in one["records"] if _is_live(record)]
    noted = [(name, record) for name, record in live if record["status"] == "quarantined"]
    believed = [(name, record) for name, record in live if record["status"] != "quarantined"]
    for name, tier, target in (("believed", believed, at_least(0.45)), ("noted", noted, None)):
        matching = sum((session, record["id"]) not in unmatched for session, record in tier)
        yield share(f"{name} records that match gold wholly or partly", matching, len(tier), target)
    more = (len(noted) - len(believed)) * 100 / max(1, turns)
    yield Figure("  noted more than believed, for 100 turns", more, samples=turns, target=at_most(MORE_NOTED))
    lengths = [len(str(record.get("content") or "").split()) for _, record in live] or [0]
    yield Figure("  words of a record, median", median(lengths), samples=len(live), target=at_most(LONGEST_MEDIAN))
    yield Figure("  words of a record, most", max(lengths), samples=len(live), target=at_most(LONGEST))
    yield from _wrong(graded.values())


def _is_live(record: Graded) -> bool:
    source: Graded = record["provenance"]
    return record["status"] not in ("retired", "archived", "hidden") and source["author"] != "memd"


def _wrong(graded: Iterable[Graded]) -> Iterator[Figure]:
    every = list(graded)
    refused = [clause["kept"] for one in every for clause in one["must_not"]]
    claims = [claim["believed"] for one in every for claim in one["claims"]]
    pools = [item["pool_ok"] for one in every for item in one["items"] if item["pool_ok"] is not None]
    yield share("clauses kept that must not be", sum(refused), len(refused), at_most(3 / 68))
    yield share("refuted or replaced claims believed", sum(claims), len(claims), at_most(1 / 15))
    yield share("gold in the right pool", sum(pools), len(pools), at_least(0.95))


def _plainly_answered(
    sessions: Mapping[str, Sequence[CapturedSession]],
    gold: Mapping[str, Sequence[Graded]],
    graded: Mapping[str, Graded],
) -> Iterator[Figure]:
    """How often plain BM25 finds an answer, in whole turns: of the user and in all; and how much more often memd does,
    question by question."""
    asked = {(session, ask["question"]): ask for session, one in graded.items() for ask in one["questions"]}
    for name, roles in (("the user's turns", ("user",)), ("all turns", ("user", "assistant"))):
        places: list[int] = []
        ours: list[Graded] = []
        for session, captured in sessions.items():
            said = [event for one in captured for event in one.events if isinstance(event, Said)]
            texts = [event.text for event in said if event.role in roles]
            search = PlainSearch(texts)
            for item in gold[session]:
                if item["type"] == "question":
                    found = [texts[place] for place in search.find(item["question"], FIRST)]
                    right = (rank for rank, text in enumerate(found) if re.search(item["answer_regex"], text))
                    places.append(next(right, FIRST))
                    ours.append(asked[session, item["question"]])
        firsts = [bool(ask["at1"]) - (place == 0) for ask, place in zip(ours, places, strict=True)]
        fives = [bool(ask["at5"]) - (place < FIRST) for ask, place in zip(ours, places, strict=True)]
        yield share(f"  by the first turn, BM25 over {name}", places.count(0), len(places))
        yield bootstrapped_figure(f"    more often by memd's first hit than over {name}", firsts)
        yield share("    by the first five", sum(place < FIRST for place in places), len(places))
        yield bootstrapped_figure(f"    more often by memd's first five than over {name}", fives)


def _answers(graded: Mapping[str, Graded]) -> Iterator[Figure]:
    asked: Sequence[Graded] = [ask for one in graded.values() for ask in one["questions"]]
    unknown = [not ask["hits"] for one in graded.values() for ask in one["unanswerable"]]
    yield share("questions answered by the first hit", sum(ask["at1"] for ask in asked), len(asked), at_least(0.50))
    yield share("  by the first five", sum(ask["at5"] for ask in asked), len(asked), at_least(0.78))
    answered = [ask for ask in asked if ask["at5"]]
    by_record = sum(_is_by_record(ask) for ask in answered)
    yield share("  of these by a record", by_record, len(answered), at_least(0.50))
    yield share("silent on the unanswerable", sum(unknown), len(unknown), at_least(0.70))
    yield share("  on the answerable", sum(not ask["hits"] for ask in asked), len(asked), at_most(0.08))


def _is_by_record(ask: Graded) -> bool:
    hits: list[Graded] = ask["hits"][:5]
    return any(bool(hit["record"]) and re.search(ask["answer_regex"], hit["text"]) is not None for hit in hits)
