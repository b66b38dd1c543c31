"""`memd demo`: all of memd in half a minute, in a home of its own that is gone afterwards.

Comes in: nothing but a session that ships with memd, and the git log of the repository here. Goes out: a walk through
what it learnt: the profile, three recalls with their sources, and one correction. Invariants: everything shown is the
daemon's own answer; the user's own memory is never touched; nothing stays behind unless `--keep`.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
import typer

from ...protocol.errors import MemdError, Unavailable
from ...protocol.places import Places
from ...protocol.recall import Recalled
from ...protocol.record import Record
from ...protocol.reply import Explained, ProfileText
from ..bench.temporary_daemon import empty_home, running
from ..importers import claude_code, git_log
from ..importers.delivery import Imported, imported, send
from ..importers.transcript import Transcript
from ..python.client import Client
from .contact import PATIENCE_MS
from .handover import difference, report
from .output import Answer, JsonFlag, plain, say, styled, wrapped
from .progress import wait_until_distilled
from .recalling import recalled_lines
from .why import explained_lines
from .wording import count, row, short

app = typer.Typer(rich_markup_mode=None, add_completion=False)

SAMPLE = Path(__file__).parent / "sample" / "session.jsonl"
QUESTIONS = (
    "Why do we stay on SQLite?",
    "May I edit a migration that is merged?",
    "What is the lesson about calendar dates?",
)
OLD_WORDS = "tabs"
CORRECTION = "I now prefer spaces for indentation."
COMMITS = 60


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """An old fact and the new one that retired it, with the way of the new one."""

    said: str
    old: Record | None
    new: Record
    is_settled: bool
    why: Explained


SAMPLE_IS_OLD = {"MEMD_FORGETTING": "{old_import_days = 0}"}
"""What was said long ago would wait for its first use (T8), and the sample grows older with each day."""


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """Of `demo`: what was read, what it led to, and what memd answered."""

    home: str
    files: tuple[Imported, ...]
    led_to: dict[str, int]
    profile: ProfileText
    recalls: dict[str, Recalled]
    correction: Correction
    seconds: float


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the demo's home, and print where it is.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show all of memd in half a minute: import, profile, recall, a correction.

    \b
    Examples:
      memd demo
      memd demo --keep    # then: MEMD_HOME=<the folder it prints> memd up
    """
    signal.signal(signal.SIGTERM, _end)
    started = time.monotonic()
    with (
        Answer("demo", as_json) as answer,
        empty_home(SAMPLE_IS_OLD, "memd-demo-", keep) as (places, environment),
        running(places, environment),
    ):
        home = places.data.parent
        with Client(places, PATIENCE_MS) as client:
            tell(answer, [f"A daemon of its own listens, in {home}."])
            files, led_to, pools = _learn(client, answer)
            profile = _profile(client, answer, pools)
            recalls = {question: _ask(client, answer, question, pools) for question in QUESTIONS}
            correction = _correct(client, answer, pools)
        seconds = round(time.monotonic() - started, 1)
        told = Demo(
            home=str(home) if keep else "",
            files=files,
            led_to=led_to,
            profile=profile,
            recalls=recalls,
            correction=correction,
            seconds=seconds,
        )
        answer.give(told, _last_words(places, keep, seconds))


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def tell(answer: Answer, lines: Iterator[str] | list[str], title: str = "") -> None:
    """Prints a piece of the walk at once, where a person reads along."""
    if not answer.as_json:
        say(["", styled(title, "bold", "cyan")] if title else [])
        say(lines)


def _learn(client: Client, answer: Answer) -> tuple[tuple[Imported, ...], dict[str, int], tuple[str, ...]]:
    """Imports the sample and the commits, waits until both are distilled; the sample's pools."""
    before = client.status().records
    session = claude_code.read(SAMPLE)
    files = [imported(session, sent=send(client, session))]
    tell(answer, report(files, dry_run=False), "$ memd import claude-code session.jsonl")
    commits = _commits(answer)
    if commits:
        files.append(imported(commits, sent=send(client, commits)))
        tell(answer, report(files[1:], dry_run=False), f"$ memd import git {commits.path}")
    begin = time.monotonic()
    pending = wait_until_distilled(client, answer)
    if pending:
        raise Unavailable(
            f"{count(pending, 'capture')} could not be distilled: {client.status().worker}",
            hint="see what the worker says: `memd demo --keep`, then state/memd.log in the folder it names",
        )
    led_to = difference(before, client.status().records)
    by_status = ", ".join(f"{number} {name}" for name, number in led_to.items())
    distilled = f"Distilled in {time.monotonic() - begin:.1f} s by a local model: {by_status or 'no record'}."
    tell(answer, ["", *wrapped(distilled)])
    return tuple(files), led_to, ("personal", files[0].sessions[0].pool)


def _commits(answer: Answer) -> Transcript | None:
    """The newest commits of the repository here, or of memd's own; None where there is none."""
    for folder in (Path.cwd(), Path(__file__).parent):
        try:
            found = git_log.read(folder, COMMITS)
        except MemdError:
            continue
        if found.sessions:
            return found
    answer.warn("no git repository here, so no commits were read")
    return None


def _profile(client: Client, answer: Answer, pools: tuple[str, ...]) -> ProfileText:
    told = client.profile(pools=pools)
    lines = [line for part in told.text.splitlines() for line in wrapped(plain(part), "  ", "")]
    tell(answer, lines, "$ memd profile     what an agent is told about Ada, and about orchard")
    return told


def _ask(client: Client, answer: Answer, question: str, pools: tuple[str, ...]) -> Recalled:
    told = client.recall(question, pools=pools, limit=1)
    tell(answer, recalled_lines(told), f'$ memd recall "{question}"')
    return told


def _correct(client: Client, answer: Answer, pools: tuple[str, ...]) -> Correction:
    """Says the opposite of what was said in the session, and shows what became of both."""
    old = next((each for each in client.list(pools=pools, limit=200).records if _is_old(each)), None)
    said = client.remember(CORRECTION, host="demo").record
    wait_until_distilled(client, answer)
    new = client.get(said.id)
    old = client.get(old.id) if old else None
    explained = client.why(new.id)
    is_settled = old is not None and old.status == "retired" and new.status == "active"
    tell(answer, _correction_lines(old, new, is_settled), f'$ memd remember "{CORRECTION}"')
    tell(answer, explained_lines(explained), f"$ memd why {short(new.id)}")
    if not is_settled:
        answer.warn("the old fact was not retired by the new one")
    return Correction(said=CORRECTION, old=old, new=new, is_settled=is_settled, why=explained)


def _is_old(record: Record) -> bool:
    return record.provenance.trust == "user" and OLD_WORDS in record.description and record.status != "retired"


def _correction_lines(old: Record | None, new: Record, is_settled: bool) -> Iterator[str]:
    yield row(new)
    if old:
        yield row(old)
    if is_settled:
        yield from wrapped("One is active, one retired. Nothing is lost: both stay in `memd why`.")


def _last_words(places: Places, keep: bool, seconds: float) -> Iterator[str]:
    yield ""
    yield f"That took {seconds:.1f} s. The daemon is stopped" + ("." if keep else " and its folder removed.")
    if keep:
        yield f"Look around: export MEMD_HOME={places.data.parent}; memd up; memd list"
    else:
        yield "Yours begins with: memd up; memd import claude-code ~/.claude/projects"
