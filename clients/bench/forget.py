"""Forgetting: what the user had forgotten does not come back by any door, and everything else stays (T10, P-10).

Comes in: authored statements, each with a word that stands nowhere else. Goes out: shares with intervals, what came
back. Invariants: a forgotten memory that comes back is an error, and so is a kept one that is missing; bytes are looked
for in every file of the home, logs and backups included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...protocol import request
from ...protocol.block import plain
from ...protocol.errors import Forgotten, MemdError, Unavailable
from ...protocol.event import Origin, Said
from ...protocol.reply import JobState
from ..python.client import Client
from .figure import Figure, at_least, at_most, share
from .home import empty_home, running, settle
from .part import Part, Setting
from .sessions import records

PATIENCE_S = 300.0
NAMED = 10
_SYLLABLES = "ba ke lo mi nu ra se ti vo zu".split()
_THINGS = "ledger parser printer calendar gateway scheduler archive invoice catalogue mirror".split()
_PLACES = "Lisbon Oslo Riga Turin Ghent Porto Malmo Graz Basel Cork".split()


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A statement, the word that stands in it alone, and how it was told."""

    word: str
    text: str
    turn: str
    session: str
    id: str = ""

    @property
    def at(self) -> str:
        """When it was said."""
        return "2026-03-04T10:00:00+01:00"

    @property
    def origin(self) -> Origin:
        """Where it was said."""
        return Origin(host="bench", session=self.session)


def statements(number: int) -> Iterator[Told]:
    """So many, in sessions of ten; the words are none of any language."""
    for n in range(number):
        word = "".join(_SYLLABLES[int(digit)] for digit in f"{n * 7919 % 100_000:05d}")
        thing, place = _THINGS[n % 10], _PLACES[n // 10 % 10]
        text = f"We decided to run the {word} {thing} in {place} because its team sits there."
        yield Told(word=word, text=text, turn=f"t{n}", session=f"s{n // 10}")


def hard(setting: Setting) -> Part:
    """Forgotten by id, by words, by session: gone from every answer and every file; the rest is found as before."""
    number = 40 if setting.quick else 200
    with empty_home() as (where, environment):
        with running(where, environment) as client:
            setting.tell("forget/hard: telling")
            told = [_remembered(client, each) for each in statements(number)]
            settle(client)
            gone, kept = told[: number // 2], told[number // 2 :]
            setting.tell("forget/hard: forgetting")
            seconds = _forget(client, gone)
            back = _come_back(client, gone)
            found = sum(_is_first(client, each) for each in kept)
            again = sum(_is_taken(client, each) for each in gone)
        setting.tell("forget/hard: after a restart")
        with running(where, environment) as client:
            _ended(client, client.rebuild())
            later = _come_back(client, gone)
        left = _in_files(where.data.parent, gone)
    figures = (
        share("forgotten that stay away", len(gone) - len(back), len(gone), at_least(1)),
        share("  after a restart and a rebuild", len(gone) - len(later), len(gone), at_least(1)),
        share("kept that are found first", found, len(kept), at_least(0.95)),
        Figure(name="forgotten turns taken again", value=again, samples=len(gone), target=at_most(0)),
        Figure(name="words left in files", value=len(left), samples=len(gone), target=at_most(0)),
        Figure(name="seconds for each scope", value=seconds / 3, unit="s", samples=3),
    )
    notes = [f"came back: {line}" for line in (*back, *later)[:NAMED]] + [f"in a file: {line}" for line in left[:NAMED]]
    return Part(figures=figures, notes=tuple(notes), shows_not="what other programs and copies elsewhere still hold")


def _remembered(client: Client, each: Told) -> Told:
    """Half of them told outright, half said in a session: `id` is "" for those."""
    if int(each.turn[1:]) % 2:
        client.capture(each.origin, [Said(turn=each.turn, at=each.at, role="user", text=each.text)])
        return each
    wish = request.Remember(text=each.text, turn=each.turn, at=each.at, origin=each.origin)
    return msgspec.structs.replace(each, id=client.remember(wish).record.id)


def _forget(client: Client, gone: Sequence[Told]) -> float:
    """Forgets them, a third by each scope; the seconds that took."""
    begin = time.perf_counter()
    sessions = sorted({each.session for each in gone})
    whole = sessions[: max(1, len(sessions) // 3)]
    rest = [each for each in gone if each.session not in whole]
    for session in whole:
        _ended(client, client.forget(session=f"bench:{session}"))
    if ids := [each.id for each in rest if each.id]:
        _ended(client, client.forget(ids))
    for each in rest:
        if not each.id:
            _ended(client, client.forget(query=each.word))
    return time.perf_counter() - begin


def _ended(client: Client, state: JobState) -> JobState:
    """Waits for a job. Raises what it failed with."""
    end = time.monotonic() + PATIENCE_S
    while state.state == "running":
        if time.monotonic() > end:
            raise Unavailable(f"{state.name} has not ended after {PATIENCE_S:.0f} s")
        time.sleep(0.02)
        state = client.job(state.id)
    if state.problem:
        raise Unavailable(f"{state.name}: {state.problem.message}", hint=state.problem.hint)
    return state


def _come_back(client: Client, gone: Sequence[Told]) -> list[str]:
    """Those that any answer still holds: a question with its word, with all but its word, an id, a list."""
    listed = [record.content for record in records(client)]
    back: list[str] = []
    for each in gone:
        told = client.recall(f"where do we run {each.word}")
        said = [hit.record.content for hit in told.hits] + [turn.quote for turn in told.turns] + listed
        if any(each.word in text for text in said) or _is_there(client, each.id):
            back.append(each.text)
    return back


def _is_there(client: Client, id: str) -> bool:
    if not id:
        return False
    try:
        client.get(id)
    except MemdError:
        return False
    return True


def _is_first(client: Client, each: Told) -> bool:
    """Whether the best answer to a question with its word holds it."""
    told = client.recall(f"where do we run {each.word}")
    best = [hit.record.content for hit in told.hits[:1]] + [turn.quote for turn in told.turns[:1]]
    return any(each.word in text for text in best)


def _is_taken(client: Client, each: Told) -> bool:
    """Whether a forgotten turn is taken when it is sent again."""
    if not each.id:
        taken = client.capture(each.origin, [Said(turn=each.turn, at=each.at, role="user", text=each.text)])
        return taken.forgotten == 0
    try:
        client.remember(request.Remember(text=each.text, turn=each.turn, at=each.at, origin=each.origin))
    except Forgotten:
        return False
    return True


def _in_files(folder: Path, gone: Sequence[Told]) -> list[str]:
    """Word and file of each forgotten word that stands in any file, in any case."""
    left: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = plain(path.read_bytes()).lower()
        left += [f"{each.word} in {path.relative_to(folder)}" for each in gone if each.word.encode() in content]
    return left
