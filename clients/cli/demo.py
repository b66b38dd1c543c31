"""`memd demo` imports a sample session and the commits of this repository, then searches and corrects a record.

Every answer comes from a daemon in a temporary home, which is deleted afterwards unless `--keep` is given.
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
from .connection import PATIENCE_MS
from .imports import difference, report_lines
from .output import CommandAnswer, JsonFlag, plain, say, styled, wrapped
from .progress import wait_until_distilled
from .recall import recalled_lines
from .why import explained_lines
from .wording import count, row, short, status_counts

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


class DemoCorrection(msgspec.Struct, frozen=True, kw_only=True):
    """An old fact, the new one that retired it, and the explanation of the new one."""

    said: str
    old: Record | None
    new: Record
    is_settled: bool
    why: Explained


SAMPLE_IS_OLD = {"MEMD_FORGETTING": "{old_import_days = 0}"}
"""Records of old sessions stay unconfirmed until their first use (T8); the sample's dates are in the past."""


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """Of `demo`."""

    home: str
    files: tuple[Imported, ...]
    led_to: dict[str, int]
    profile: ProfileText
    recalls: dict[str, Recalled]
    correction: DemoCorrection
    seconds: float


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary home and print its path.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Try memd on a sample session, in a temporary home. It takes half a minute.

    The demo imports the session, shows the profile, searches three times and corrects a record.

    \b
    Examples:
      memd demo
      memd demo --keep    # then: MEMD_HOME=<the printed folder> memd up
    """
    signal.signal(signal.SIGTERM, _end)
    started = time.monotonic()
    with (
        CommandAnswer("demo", as_json) as answer,
        empty_home(SAMPLE_IS_OLD, "memd-demo-", keep) as (places, environment),
        running(places, environment),
    ):
        home = places.data.parent
        with Client(places, PATIENCE_MS) as client:
            tell(answer, [f"A separate daemon is running in {home}."])
            files, led_to, pools = _learn(client, answer)
            profile = _profile(client, answer, pools)
            recalls = {question: _ask(client, answer, question, pools) for question in QUESTIONS}
            correction = _correct(client, answer, pools)
        seconds = round(time.monotonic() - started, 1)
        result = Demo(
            home=str(home) if keep else "",
            files=files,
            led_to=led_to,
            profile=profile,
            recalls=recalls,
            correction=correction,
            seconds=seconds,
        )
        answer.give(result, _closing_lines(places, keep, seconds))


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def tell(answer: CommandAnswer, lines: Iterator[str] | list[str], title: str = "") -> None:
    """Print a part of the demo at once, unless the output is JSON."""
    if not answer.as_json:
        say(["", styled(title, "bold", "cyan")] if title else [])
        say(lines)


def _learn(client: Client, answer: CommandAnswer) -> tuple[tuple[Imported, ...], dict[str, int], tuple[str, ...]]:
    """Import the sample and the commits and wait until they are processed; the files, new records, and pools."""
    before = client.status().records
    session = claude_code.read(SAMPLE)
    files = [imported(session, sent=send(client, session))]
    tell(answer, report_lines(files, dry_run=False), "$ memd import claude-code session.jsonl")
    commits = _commits(answer)
    if commits:
        files.append(imported(commits, sent=send(client, commits)))
        tell(answer, report_lines(files[1:], dry_run=False), f"$ memd import git {commits.path}")
    begin = time.monotonic()
    pending = wait_until_distilled(client, answer)
    if pending:
        raise Unavailable(
            f"{count(pending, 'capture')} could not be processed: {client.status().worker}",
            hint="run `memd demo --keep` and read state/memd.log in the folder it prints",
        )
    led_to = difference(before, client.status().records)
    seconds = time.monotonic() - begin
    summary = f"Processed in {seconds:.1f} s by a local model: {status_counts(led_to) or 'no'} records."
    tell(answer, ["", *wrapped(summary)])
    return tuple(files), led_to, ("personal", files[0].sessions[0].pool)


def _commits(answer: CommandAnswer) -> Transcript | None:
    """The newest commits of the repository here, or of memd's own; None without a repository."""
    for folder in (Path.cwd(), Path(__file__).parent):
        try:
            commits = git_log.read(folder, COMMITS)
        except MemdError:
            continue
        if commits.sessions:
            return commits
    answer.warn("no git repository here: no commits were imported")
    return None


def _profile(client: Client, answer: CommandAnswer, pools: tuple[str, ...]) -> ProfileText:
    profile = client.profile(pools=pools)
    lines = [line for part in profile.text.splitlines() for line in wrapped(plain(part), "  ", "")]
    tell(answer, lines, "$ memd profile     # the text that an agent receives about Ada and orchard")
    return profile


def _ask(client: Client, answer: CommandAnswer, question: str, pools: tuple[str, ...]) -> Recalled:
    recalled = client.recall(question, pools=pools, limit=1)
    tell(answer, recalled_lines(recalled), f'$ memd recall "{question}"')
    return recalled


def _correct(client: Client, answer: CommandAnswer, pools: tuple[str, ...]) -> DemoCorrection:
    """State the opposite of a fact in the session, and show both records."""
    old = next(filter(_is_old, client.list(pools=pools, limit=200).records), None)
    remembered = client.remember(CORRECTION, host="demo").record
    wait_until_distilled(client, answer)
    new = client.get(remembered.id)
    old = client.get(old.id) if old else None
    explained = client.why(new.id)
    is_settled = old is not None and old.status == "retired" and new.status == "active"
    tell(answer, _correction_lines(old, new, is_settled), f'$ memd remember "{CORRECTION}"')
    tell(answer, explained_lines(explained), f"$ memd why {short(new.id)}")
    if not is_settled:
        answer.warn("the new fact did not retire the old one")
    return DemoCorrection(said=CORRECTION, old=old, new=new, is_settled=is_settled, why=explained)


def _is_old(record: Record) -> bool:
    return record.provenance.trust == "user" and OLD_WORDS in record.description and record.status != "retired"


def _correction_lines(old: Record | None, new: Record, is_settled: bool) -> Iterator[str]:
    yield row(new)
    if old:
        yield row(old)
    if is_settled:
        yield from wrapped("One is active, the other retired. Nothing is lost: `memd why` shows both.")


def _closing_lines(places: Places, keep: bool, seconds: float) -> Iterator[str]:
    yield ""
    yield f"The demo took {seconds:.1f} s. Its daemon has stopped" + ("." if keep else "; its folder is deleted.")
    if keep:
        yield f"To explore it: export MEMD_HOME={places.data.parent}; memd up; memd list"
    else:
        yield "To start your own: memd up; memd import claude-code ~/.claude/projects"
