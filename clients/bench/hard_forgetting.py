"""Forgetting: a forgotten memory is in no answer and in no file, and every other memory is still found (T10, P-10).

Each statement has a word of its own, which is searched for in every file of the home, logs and backups included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...protocol import request
from ...protocol.block import plain
from ...protocol.errors import Forgotten, Unavailable
from ...protocol.event import Origin, Said
from ...protocol.recall import Recalled
from ...protocol.reply import JobState
from ..python.client import Client
from .measurement import BenchOptions, Figure, PartResult, at_least, share, zero_figure
from .session_data import is_held, records
from .temporary_daemon import empty_home, running, settle

PATIENCE_S = 300.0
NAMED = 10
AT = "2026-03-04T10:00:00+01:00"
_SYLLABLES = "ba ke lo mi nu ra se ti vo zu".split()
_THINGS = "ledger parser printer calendar gateway scheduler archive invoice catalogue mirror".split()
_PLACES = "Lisbon Oslo Riga Turin Ghent Porto Malmo Graz Basel Cork".split()


class MarkedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement and the word that occurs in it alone. `id`: its record's if it was remembered, "" if captured."""

    word: str
    text: str
    turn: str
    session: str
    id: str = ""

    @property
    def remember(self) -> request.Remember:
        return request.Remember(text=self.text, turn=self.turn, at=AT, origin=self.origin)

    @property
    def said(self) -> Said:
        return Said(turn=self.turn, at=AT, role="user", text=self.text)

    @property
    def origin(self) -> Origin:
        return Origin(host="bench", session=self.session)


def statements(count: int) -> Iterator[MarkedStatement]:
    """So many statements, in sessions of ten; their words belong to no language."""
    for n in range(count):
        word = "".join(_SYLLABLES[int(digit)] for digit in f"{n * 7919 % 100_000:05d}")
        thing, place = _THINGS[n % 10], _PLACES[n // 10 % 10]
        text = f"We decided to run the {word} {thing} in {place} because its team sits there."
        yield MarkedStatement(word=word, text=text, turn=f"t{n}", session=f"s{n // 10}")


def hard(options: BenchOptions) -> PartResult:
    """Forgotten by id, by words, by session: gone from every answer and file; every other record is found as before."""
    count = 40 if options.quick else 200
    with empty_home() as (home, environment):
        with running(home, environment) as client:
            options.progress("forget/hard: capturing")
            captured = [_captured(client, statement) for statement in statements(count)]
            settle(client)
            forgotten, others = captured[: count // 2], captured[count // 2 :]
            options.progress("forget/hard: forgetting")
            begin = time.perf_counter()
            _forget(client, forgotten)
            seconds = time.perf_counter() - begin
            returned = _returned(client, forgotten)
            found_first = sum(_is_first(client, statement) for statement in others)
            accepted_again = sum(_is_accepted(client, statement) for statement in forgotten)
        options.progress("forget/hard: after a restart")
        with running(home, environment) as client:
            _await(client, client.rebuild())
            returned_later = _returned(client, forgotten)
        left = _in_files(home.data.parent, forgotten)
    total = len(forgotten)
    figures = (
        share("forgotten that stay away", total - len(returned), total, at_least(1)),
        share("  after a restart and a rebuild", total - len(returned_later), total, at_least(1)),
        share("kept that are found first", found_first, len(others), at_least(0.95)),
        zero_figure("forgotten turns taken again", accepted_again, total),
        zero_figure("words left in files", len(left), total),
        Figure("seconds for each scope", seconds / 3, "s", samples=3),
    )
    notes = [f"came back: {text}" for text in (*returned, *returned_later)[:NAMED]]
    notes += [f"in a file: {line}" for line in left[:NAMED]]
    return PartResult(figures, notes=tuple(notes), shows_not="copies that other programs or places hold")


def _captured(client: Client, statement: MarkedStatement) -> MarkedStatement:
    """Half of the statements are remembered, half are said in a session."""
    if int(statement.turn[1:]) % 2:
        client.capture(statement.origin, [statement.said])
        return statement
    return msgspec.structs.replace(statement, id=client.remember(statement.remember).record.id)


def _forget(client: Client, statements: Sequence[MarkedStatement]) -> None:
    """Forget a third of the sessions as such, and of the other statements the remembered by id, the said by words."""
    sessions = sorted({statement.session for statement in statements})
    whole = sessions[: max(1, len(sessions) // 3)]
    rest = [statement for statement in statements if statement.session not in whole]
    for session in whole:
        _await(client, client.forget(session=f"bench:{session}"))
    if ids := [statement.id for statement in rest if statement.id]:
        _await(client, client.forget(ids))
    for statement in rest:
        if not statement.id:
            _await(client, client.forget(query=statement.word))


def _await(client: Client, job: JobState) -> None:
    """Wait for a job to end. Raises Unavailable with its problem, or when it takes too long."""
    end = time.monotonic() + PATIENCE_S
    while job.state == "running":
        if time.monotonic() > end:
            raise Unavailable(f"{job.name} has not ended after {PATIENCE_S:.0f} s")
        time.sleep(0.02)
        job = client.job(job.id)
    if job.problem:
        raise Unavailable(f"{job.name}: {job.problem.message}", hint=job.problem.hint)


def _texts(answer: Recalled, most: int | None = None) -> list[str]:
    return [hit.record.content for hit in answer.hits[:most]] + [turn.quote for turn in answer.turns[:most]]


def _returned(client: Client, statements: Sequence[MarkedStatement]) -> list[str]:
    """The statements that a question, the list of records or their id still finds."""
    listed = [record.content for record in records(client)]
    returned: list[str] = []
    for statement in statements:
        texts = listed + _texts(client.recall(f"where do we run {statement.word}", limit=20))
        if any(statement.word in text for text in texts) or is_held(client, statement.id):
            returned.append(statement.text)
    return returned


def _is_first(client: Client, statement: MarkedStatement) -> bool:
    """Whether the best hit or turn for a question with its word holds it."""
    return any(statement.word in text for text in _texts(client.recall(f"where do we run {statement.word}"), 1))


def _is_accepted(client: Client, statement: MarkedStatement) -> bool:
    if not statement.id:
        return client.capture(statement.origin, [statement.said]).forgotten == 0
    try:
        client.remember(statement.remember)
    except Forgotten:
        return False
    return True


def _in_files(folder: Path, statements: Sequence[MarkedStatement]) -> list[str]:
    """Word and file of each statement's word that is in any file, in any case."""
    left: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = plain(path.read_bytes()).lower()
        left += [f"{item.word} in {path.relative_to(folder)}" for item in statements if item.word.encode() in content]
    return left
