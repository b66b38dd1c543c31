"""`memd share`: share a project's memory with those who share its repository, by git (H1, H2, W7).

The daemon makes and checks what leaves and arrives; this process, in the user's own session, carries it by git.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from msgspec.structs import replace

from ...protocol.errors import (
    InvalidRequest,
    MemdError,
    NotFound,
    Refused,
    RemoteRefusal,
    RemoteUnreachable,
    Unavailable,
)
from ...protocol.scope import Scope
from ...protocol.share import (
    OUTBOX_HOURS,
    AuthorState,
    Outbox,
    OutboxItem,
    PartitionTaken,
    ShareCandidate,
    ShareEvent,
    ShareReview,
    ShareState,
    Standing,
)
from ...protocol.shared_lines import chosen_name
from ..hooks.session_pulls import chosen_pull, pull_at_start, stop_pulling
from ..python.client import Client
from .connection import PATIENCE_MS, reach
from .options import DryRun, here
from .output import CommandAnswer, JsonFlag, agree, plain, plain_name, say, styled, wrapped
from .progress import Ticker
from .wording import UNBOUND, age, count, facts, moment, place, pool_name, short

if TYPE_CHECKING:
    from ...protocol.exchange import Exchange
    from ..exchange.carrying import Pulled, Pushed

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Share a project's memory with those who share its repository.",
    epilog="Example: `memd share on` in a project's folder, then `memd share review` and `memd share push`",
)

QUIET_S = 120
"""Seconds after which a command in the background gives up."""

REVIEWED = 100
"""Records that one review goes through, at most."""

_HOOK = ("nohup memd share push --quiet </dev/null >/dev/null 2>&1 &", "exit 0")
_STANDINGS = {"new": "new: unconfirmed until you trust them", "trusted": "trusted", "muted": "muted: hidden"}
_KEYS = {"s": "share", "k": "keep", "n": "next", "q": "quit"}
_CANT_TAKE_BACK = (
    "copies that others fetched stay: a clone that never pulls again, a mirror, a backup, the host's own store"
)
_NEVER = (
    "transcripts and quotes; names of sessions, folders and this machine; your e-mail address; your personal memory, "
    "an agent's, that of other projects; secrets; what others shared"
)

Pool = Annotated[str, typer.Option("--pool", help="The project's pool or title, instead of the folder's.")]
Cwd = Annotated[str | None, typer.Option("--cwd", help="The project's folder, if not the current one.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors alone, never ask, and give up after two minutes.")]
Author = Annotated[
    str, typer.Argument(help="The author's name, or the beginning of a partition (`memd share status`).")
]
Back = Annotated[bool, typer.Option("--back", help="Take it back: what they share is unconfirmed again.")]


# --- begin and end ---------------------------------------------------------------------------------------------------
@app.command()
def on(
    remote: Annotated[str, typer.Option("--remote", help="The git remote's address; else that of `origin`.")] = "",
    name: Annotated[str, typer.Option("--name", help="How others see you; else git's `user.name`.")] = "",
    new_sessions: Annotated[
        bool | None,
        typer.Option(
            "--new-sessions/--no-new-sessions",
            help=f"Also share what memd learns in sessions that begin from now on, after {OUTBOX_HOURS} hours.",
        ),
    ] = None,
    session_start: Annotated[
        bool | None,
        typer.Option(
            "--session-start/--no-session-start",
            help="Pull in the background when an agent's session starts in this folder, at most once an hour.",
        ),
    ] = None,
    no_push: Annotated[
        bool, typer.Option("--no-push", help="Do not try the remote now; the first `memd share push` does.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Begin to share a project's memory, or change how.

    You choose each record that others get (`memd share review`), unless you share whole sessions with --new-sessions.
    Without --yes memd shows who can read it, and asks. Then it pushes your name and key to the remote and reads them
    back: if the remote refuses that or is away, everything stays as it was.

    \b
    Examples:
      memd share on
      memd share on --remote git@example.org:orchard/memory.git --name Ada
      memd share on --new-sessions --session-start
    """
    with CommandAnswer("share on", as_json) as answer, reach(PATIENCE_MS) as client:
        folder = here(cwd)
        if not pool:
            check_commits(folder)
        scope = None if pool else scope_here(client, folder)
        wanted = scope.pool if scope else pool
        address = _without_password(remote, answer) or _known_address(client, wanted)
        address = address or _without_password(git_setting(folder, "remote.origin.url"), answer)
        if not address:
            hint = "name one: `memd share on --remote URL`"
            raise InvalidRequest("the folder's repository has no remote named origin", hint=hint)
        name = name or _known_name(client, wanted) or git_setting(folder, "user.name")
        if not name:
            raise InvalidRequest("git knows no name of yours", hint="`memd share on --name NAME`")
        name = chosen_name(name)
        if scope and not scope.is_open:  # memd never captured anything there, as for somebody who joins a project
            planned = ShareState(pool=wanted, title=scope.title, address=address, name=name)
        else:
            planned = client.open_share(wanted, address, name=name, new_sessions=new_sessions, dry_run=True)
        if session_start and client.why_scope(folder).pool != planned.pool:
            hint = "run it in a checkout, or name one with --cwd"
            raise InvalidRequest("--session-start needs a folder of the project", hint=hint)
        if not yes:
            hint = "run `memd share on` in a terminal to read first who can read it, and what never goes"
            plan = _plan_lines(planned, new_sessions)
            agree("Share it?", plan, as_json=as_json, why="others can read what you share", hint=hint)
        if scope and not scope.is_open:
            wanted = client.bind_scope(folder).pool
        before = known_share(client, wanted)
        state = client.open_share(wanted, address, name=name, new_sessions=new_sessions)
        pushed = None
        if not (no_push or (before and before.is_open and before.address == state.address)):
            pushed = _tried(client, before, state, cwd, as_json)
            state = client.shares([state.pool]).shares[0]
        _set_session_start(client, state, folder, session_start)
        answer.give(state, _begun_lines(client, state, pushed))


def _tried(client: Client, before: ShareState | None, state: ShareState, cwd: str | None, as_json: bool) -> Pushed:
    """Make the first push to a remote. Raises what the push raises; then the share is again as it was `before`."""
    was_open = before is not None and before.is_open
    try:
        with carried(client, state, cwd, as_json=as_json) as carry:
            return carry.push()
    except BaseException as error:
        if before is not None:
            client.open_share(state.pool, before.address, name=before.name, new_sessions=before.new_sessions)
        if not was_open:
            client.close_share(state.pool)
        now = "it stays shared as before" if was_open else "it is not shared"
        if isinstance(error, RemoteUnreachable):
            error.hint = f"{now}: try again later, or begin without a push: memd share on --no-push"
        elif isinstance(error, RemoteRefusal):
            error.hint = f"{now}: {error.hint}"
        raise


def _plan_lines(planned: ShareState, new_sessions: bool | None) -> Iterator[str]:
    yield styled(f"{share_title(planned)} would be shared", "bold")
    whole = planned.new_sessions if new_sessions is None else new_sessions
    goes = f"only what you choose in `memd share review`; {count(planned.undecided, 'record')} may go"
    if whole:
        goes += (
            f". Also what memd learns in sessions that begin from now on: it waits {OUTBOX_HOURS} hours in "
            "`memd share outbox`, where you can keep it"
        )
    yield from _row("who can read it", f"everyone who may fetch from {plain_name(planned.address)}")
    yield from _row("your name there", plain_name(planned.name))
    yield from _row("what goes", goes)
    yield from _row("of a record", "its statement, key, value, type, tags, and the day on which it was said")
    yield from _row("what never goes", _NEVER)
    yield from _row("not taken back", _CANT_TAKE_BACK)


def _row(label: str, text: str) -> list[str]:
    return wrapped(text, " " * 18, f"  {label:<16}")


def _begun_lines(client: Client, state: ShareState, pushed: Pushed | None) -> Iterator[str]:
    yield from wrapped(f"{share_title(state)} is shared through {plain_name(state.address)}")
    if pushed and (pushed.added or pushed.retired or pushed.gone):
        yield from pushed_lines(pushed)
    elif pushed:
        yield from wrapped("the remote took your name and your key, and no line yet")
    if state.new_sessions:
        yield from wrapped(f"sessions that begin from now on are shared as a whole, after {OUTBOX_HOURS} hours")
    if chosen := chosen_pull(client.places, state.pool):
        yield from wrapped(f"an agent's session in {plain_name(chosen.folder)} starts a pull, at most once an hour")
    if state.undecided:
        yield from wrapped(f"choose what goes: `memd share review` ({count(state.undecided, 'record')} may go)")
    yield from wrapped("then `memd share sync` gets what others share and sends what you chose")


def _set_session_start(client: Client, state: ShareState, folder: str, wanted: bool | None) -> None:
    if wanted:
        pull_at_start(client.places, state.pool, _of_git_top(folder) or folder)
    elif wanted is not None:
        stop_pulling(client.places, state.pool)


@app.command()
def off(
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Also take back all lines you shared, with one last push.")
    ] = False,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Stop sharing a project's memory. What others have stays with them.

    With --withdraw the last push replaces each of your lines by a mark without words. Others forget them at their next
    pull; what is out of reach, `memd share on` lists.

    \b
    Examples:
      memd share off
      memd share off --withdraw
    """
    with CommandAnswer("share off", as_json) as answer, reach(PATIENCE_MS) as client:
        share = _shared(client, pool, cwd, closed=withdraw)
        state = client.close_share(share.pool, withdraw=withdraw)
        stop_pulling(client.places, share.pool)
        if not withdraw:
            lines = wrapped(f"{share_title(state)} is no longer shared; others keep what they have")
            lines += wrapped("to take it back from them: `memd share off --withdraw`")
            answer.give(state, lines)
            return
        with carried(client, state, cwd, as_json=as_json) as carry:
            try:
                pushed = carry.push()
            except MemdError as error:
                error.hint = f"nothing is withdrawn yet: try `memd share push` later. {error.hint}".rstrip()
                raise
        lines = [*pushed_lines(pushed), *wrapped(f"out of reach: {_CANT_TAKE_BACK}")]
        answer.give(pushed, [f"{share_title(state)} is withdrawn", *lines])


@app.command()
def status(pool: Pool = "", as_json: JsonFlag = False) -> None:
    """Show the shared projects, their authors, and what waits. It needs no network.

    \b
    Examples:
      memd share status
      memd share status --pool orchard --json
    """
    with CommandAnswer("share status", as_json) as answer, reach(PATIENCE_MS) as client:
        listed = client.shares([pool] if pool else [])
        answer.give(listed, _status_lines(client, listed.shares))


def _status_lines(client: Client, shares: Sequence[ShareState]) -> Iterator[str]:
    if not shares:
        yield from wrapped("no project is shared; `memd share on` in a project's folder begins")
    for share in shares:
        yield from _state_lines(client, share)


def _state_lines(client: Client, share: ShareState) -> Iterator[str]:
    ended = "" if share.is_open else " · withdrawn" if share.withdrawn else " · off"
    yield styled(f"{share_title(share)}{ended}", "bold")
    yield from wrapped(f"through {plain_name(share.address)}, as {plain_name(share.name)}", "  ", "  ")
    left = share.offered - share.delivered
    sent = f"{count(share.delivered, 'line')} at the remote" + (f", {left:,} to push" if left > 0 else "")
    yield from wrapped(f"{sent}; {count(share.waiting, 'record')} in the outbox", "  ", "  ")
    if share.forgotten:
        what = "withdrawn" if share.withdrawn else "forgotten here"
        how = "`memd share push`" if share.is_open or share.withdrawn else "`memd share off --withdraw`"
        words = f"{count(share.forgotten, 'line')} {what} and still at the remote: {how}"
        yield from (styled(line, "yellow") for line in wrapped(words, "  ", "  "))
    for remote in (remote for remote in share.earlier if remote.forgotten):
        words = f"{count(remote.forgotten, 'line')} forgotten here and still at the earlier remote "
        words += f"{plain_name(remote.address)}: `memd share push`"
        yield from (styled(line, "yellow") for line in wrapped(words, "  ", "  "))
    if share.undecided:
        yield from wrapped(f"{count(share.undecided, 'record')} may go: `memd share review`", "  ", "  ")
    if share.new_sessions:
        yield from wrapped("new sessions are shared as a whole", "  ", "  ")
    if share.mark and share.is_open:
        yield from lease_lines(share, "  ")
    if chosen := chosen_pull(client.places, share.pool):
        yield from wrapped(f"sessions in {plain_name(chosen.folder)} start a pull", "  ", "  ")
    for author in share.authors:
        if not author.own:
            yield from _author_lines(author)


def lease_lines(share: ShareState, indent: str) -> Iterator[str]:
    """Until when a hub lets this home read what others share."""
    if share.lease_until and share.lease_until > datetime.now(UTC).isoformat():
        yield f"{indent}readable until {moment(share.lease_until)}"
        return
    words = "what others share can't be read: your right has ended, or the hub did not answer in time; `memd hub sync`"
    yield from (styled(line, "yellow") for line in wrapped(words, indent, indent))


def _author_lines(author: AuthorState) -> Iterator[str]:
    left = " · left the project" if author.closed else ""
    words = f"{plain_name(author.name)} · {_STANDINGS[author.standing]}{left}"
    yield f"  {styled(short(author.partition), 'cyan')}  {words}"
    words = f"{count(author.lines, 'line')}, {count(author.live, 'record')} shown"
    if author.taken_at:
        words += f" · pulled {age(author.taken_at)}"
    if author.refused:
        words += f" · {author.refused:,} refused"
    if author.waiting:
        words += f" · {count(author.waiting, 'retraction')} of lines that have not come"
    yield from wrapped(words, " " * 12, " " * 12)
    if author.untrusted:
        words = f"{count(author.untrusted, 'retraction')} of what others shared: in effect once you trust this author"
        yield from wrapped(words, " " * 12, " " * 12)
    if author.problem:
        yield from wrapped(f"refused at the last pull: {plain(author.problem)}", " " * 12, " " * 12)


# --- what goes --------------------------------------------------------------------------------------------------------
@app.command()
def review(
    accept: Annotated[
        list[str] | None, typer.Option("--accept", metavar="ID", help="Share this record; repeatable.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Share all records that may go.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", metavar="ID", help="Never share this record; repeatable.")
    ] = None,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """Choose the records that others get. In a terminal, one after the other.

    A record that you keep never leaves, until you accept it. A choice holds for a record's later wording too.

    \b
    Examples:
      memd share review
      memd share review --accept 7q3hjwch --accept 2m9c0fxe
      memd share review --keep 7q3hjwch
    """
    with CommandAnswer("share review", as_json) as answer, reach(PATIENCE_MS) as client:
        share = _shared(client, pool, cwd)
        if accept or keep or all:
            outbox = client.offer_records(share.pool, accept or (), all=all, keep=keep or ())
            answer.give(outbox, _chosen_lines(outbox, len(keep or ())))
            return
        listed = client.review_share(share.pool, limit=REVIEWED)
        is_asked = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        if is_asked and any(not candidate.why_not for candidate in listed.candidates):
            answer.give(listed, _decided(client, share.pool, listed))
        else:
            answer.give(listed, _review_lines(listed))


def _review_lines(listed: ShareReview) -> Iterator[str]:
    if not listed.candidates:
        yield "nothing to decide: no record of this project is new since your last review"
        return
    for candidate in listed.candidates:
        yield from _candidate_lines(candidate)
    if listed.left:
        yield f"and {listed.left:,} more"
    if any(not candidate.why_not for candidate in listed.candidates):
        yield from (
            styled(line, "dim") for line in wrapped("`memd share review --accept ID` shares one, --keep ID keeps it")
        )


def _candidate_lines(candidate: ShareCandidate) -> Iterator[str]:
    record = candidate.record
    yield f"{styled(short(record.id), 'cyan')}  {facts(record)}"
    yield from wrapped(plain(record.description), "    ", "    ")
    yield styled(f"    {place(record)}", "dim")
    if candidate.why_not:
        yield from (styled(line, "yellow") for line in wrapped(f"stays: {plain(candidate.why_not)}", "    ", "    "))


def _decided(client: Client, pool: str, listed: ShareReview) -> Iterator[str]:
    """Ask about each record that may go, and store each answer at once."""
    shared = kept = 0
    for candidate in (candidate for candidate in listed.candidates if not candidate.why_not):
        say(_candidate_lines(candidate))
        key = _asked()
        if key == "q":
            break
        if key == "s":
            client.offer_records(pool, [candidate.record.id])
            shared += 1
        elif key == "k":
            client.offer_records(pool, keep=[candidate.record.id])
            kept += 1
    yield f"{shared:,} to share, {kept:,} kept"
    if shared:
        yield from wrapped("`memd share outbox` shows the lines, `memd share push` sends them")


def _asked() -> str:
    words = ", ".join(f"{key} {word}" for key, word in _KEYS.items())
    while True:
        typed = typer.prompt(f"    {words}", default="n", show_default=False, prompt_suffix=" ? ", err=True)
        if (key := str(typed).strip().lower()[:1]) in _KEYS:
            return key


def _chosen_lines(outbox: Outbox, kept: int) -> Iterator[str]:
    going = [item for item in outbox.items if not item.why_not]
    if kept:
        yield f"{count(kept, 'record')} kept: never shared"
    yield f"{count(len({item.id for item in going}), 'record')} in the outbox"
    for item in outbox.items:
        if item.why_not:
            yield from wrapped(f"{short(item.id)} stays: {plain(item.why_not)}", "  ")
    if going:
        yield from wrapped("`memd share outbox` shows the lines, `memd share push` sends them")


@app.command()
def outbox(pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Show the exact lines that go next, and when.

    \b
    Examples:
      memd share outbox
      memd share review --keep 7q3hjwch    # takes a record out
    """
    with CommandAnswer("share outbox", as_json) as answer, reach(PATIENCE_MS) as client:
        shown = client.share_outbox(_shared(client, pool, cwd).pool)
        lines = [line for item in shown.items for line in _outbox_lines(item)]
        answer.give(shown, lines or ["the outbox is empty; `memd share review` chooses records"])


def _outbox_lines(item: OutboxItem) -> Iterator[str]:
    when = f"stays: {plain(item.why_not)}" if item.why_not else "with the next push"
    if item.due and not item.why_not:
        when = f"not before {moment(item.due)}"
    yield from wrapped(f"{short(item.id)}  {when}", "    ", "")
    yield f"    {plain(item.line)}"


# --- carrying ---------------------------------------------------------------------------------------------------------
@app.command()
def push(
    dry_run: DryRun = False, quiet: Quiet = False, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False
) -> None:
    """Send what you chose to the remote, by git. It is done once the remote shows it.

    \b
    Examples:
      memd share push --dry-run
      memd share push
    """
    with CommandAnswer("share push", as_json) as answer, _bounded(quiet), reach(4 * PATIENCE_MS) as client:
        share = _shared(client, pool, cwd, closed=True)
        if not share.is_open and not share.withdrawn:
            raise _is_off(share)
        with carried(client, share, cwd, quiet=quiet, as_json=as_json) as carry:
            pushed = carry.push(dry_run)
        answer.give(pushed, [] if quiet else pushed_lines(pushed, dry_run))


@app.command()
def pull(
    dry_run: DryRun = False, quiet: Quiet = False, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False
) -> None:
    """Get what others shared from the remote, by git. memd checks each line before it takes it.

    What an author shares is unconfirmed until you trust them.

    \b
    Examples:
      memd share pull --dry-run
      memd share pull
    """
    with CommandAnswer("share pull", as_json) as answer, _bounded(quiet), reach(4 * PATIENCE_MS) as client:
        share = _shared(client, pool, cwd)
        with carried(client, share, cwd, quiet=quiet, as_json=as_json) as carry:
            pulled = carry.pull(dry_run)
        answer.give(pulled, [] if quiet else pulled_lines(pulled, dry_run))


@app.command()
def sync(quiet: Quiet = False, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Pull, then push.

    \b
    Example:
      memd share sync
    """
    with CommandAnswer("share sync", as_json) as answer, _bounded(quiet), reach(4 * PATIENCE_MS) as client:
        share = _shared(client, pool, cwd)
        with carried(client, share, cwd, quiet=quiet, as_json=as_json) as carry:
            pulled, pushed = carry.pull(), carry.push()
        lines = [] if quiet else [*pulled_lines(pulled), *pushed_lines(pushed)]
        answer.give({"pulled": pulled, "pushed": pushed}, lines)


class _Carry:
    """What carries the lines of one project between the daemon and its remote."""

    def __init__(
        self, client: Client, pool: str, exchange: Exchange, tell: Callable[[str], None], checkout: Path | None
    ) -> None:
        self._client, self._pool, self._exchange, self._tell = client, pool, exchange, tell
        self._checkout = checkout

    def push(self, dry_run: bool = False) -> Pushed:
        """Send what is due, and take what is forgotten back from the remotes of earlier."""
        from ..exchange import carrying

        pushed = carrying.push(self._client, self._pool, self._exchange, dry_run=dry_run, progress=self._tell)
        (state,) = self._client.shares([self._pool]).shares
        if dry_run or not any(remote.forgotten for remote in state.earlier):
            return pushed
        is_asked = self._exchange.is_interactive
        earlier = carrying.push_earlier(self._client, state, self._checkout, is_asked)
        return replace(pushed, earlier=earlier)

    def pull(self, dry_run: bool = False) -> Pulled:
        """Get what is new."""
        from ..exchange import carrying

        return carrying.pull(self._client, self._pool, self._exchange, dry_run=dry_run, progress=self._tell)


@contextmanager
def carried(
    client: Client, share: ShareState, cwd: str | None, *, quiet: bool = False, as_json: bool = False
) -> Generator[_Carry]:
    from ..exchange.carrying import exchange_for

    is_asked = not quiet and not as_json and sys.stdin.isatty()
    checkout = _checkout(client, share, cwd)
    exchange = exchange_for(client, share, checkout, interactive=is_asked)
    with Ticker(quiet or as_json) as ticker:
        yield _Carry(client, share.pool, exchange, ticker.tell, checkout)


def _checkout(client: Client, share: ShareState, cwd: str | None) -> Path | None:
    """The folder whose git settings reach the remote; None if no checkout of the project is known here."""
    folder = here(cwd)
    if client.why_scope(folder).pool == share.pool:
        return Path(folder)
    chosen = chosen_pull(client.places, share.pool)
    return Path(chosen.folder) if chosen and os.path.isdir(chosen.folder) else None


@contextmanager
def _bounded(quiet: bool) -> Generator[None]:
    """End the block after `QUIET_S` seconds if nobody watches. Raises Unavailable."""
    if not quiet:
        yield
        return
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(QUIET_S)
    try:
        yield
    finally:
        signal.alarm(0)


def _too_long(*_: object) -> NoReturn:
    raise Unavailable(f"the remote took longer than {QUIET_S} seconds", hint="the next time goes on from here")


def pushed_lines(pushed: Pushed, dry_run: bool = False) -> Iterator[str]:
    if pushed.renewed:
        yield from wrapped(
            "another device writes with this home's key, so memd began a new partition; what was not sent goes there"
        )
    parts = [(pushed.added, "new"), (pushed.retired, "retracted"), (pushed.gone, "forgotten")]
    words = ", ".join(f"{number:,} {word}" for number, word in parts if number)
    if not words:
        yield "nothing to push"
    elif dry_run:
        yield from wrapped(f"the next push would send lines: {words}")
    else:
        yield from wrapped(f"pushed lines: {words}; the remote has {pushed.count:,} of yours")
    if pushed.restored:
        yield from wrapped(f"the remote had lost {count(len(pushed.restored), 'author')}; they are there again")
    for remote in pushed.earlier:
        lines = count(remote.gone, "forgotten line")
        if remote.problem:
            words = f"{plain_name(remote.address)} still has {lines}, and the next push tries again: {remote.problem}"
            yield from (styled(line, "yellow") for line in wrapped(plain(words)))
        else:
            yield from wrapped(f"the earlier remote {plain_name(remote.address)} no longer has {lines}")
    for item in pushed.held:
        yield from wrapped(f"{short(item.id)} stays: {plain(item.why_not)}", "    ", "  ")


def pulled_lines(pulled: Pulled, dry_run: bool = False) -> Iterator[str]:
    for taken in pulled.partitions:
        yield from _taken_lines(taken)
    for refused in pulled.refused:
        yield from wrapped(f"{short(refused.partition)}: refused: {plain(refused.why)}", "  ", "")
    if not pulled.partitions:
        yield "nothing new from others"
    elif dry_run:
        yield "nothing was taken: this is what a pull would take"
    elif any(taken.standing == "new" and taken.added for taken in pulled.partitions):
        yield from wrapped("what new authors share is unconfirmed; `memd share trust NAME` confirms all of an author")


def _taken_lines(taken: PartitionTaken) -> Iterator[str]:
    who = f"{plain_name(taken.name)} ({short(taken.partition)})"
    if taken.problem:
        yield from wrapped(f"{who}: refused, and nothing of it was taken: {plain(taken.problem)}", "  ", "")
        return
    parts = [(taken.added, "new"), (taken.retired, "retracted"), (taken.forgotten, "forgotten")]
    parts += [(taken.proposed, "against records of yours: see `memd inbox`")]
    parts += [(len(taken.refused), "refused"), (taken.left, "left for the next pull")]
    words = ", ".join(f"{number:,} {word}" for number, word in parts if number) or "nothing new"
    yield from wrapped(f"{who}: {words}{'; left the project' if taken.closed else ''}", "  ", "")
    for refusal in taken.refused[:5]:
        yield from wrapped(f"line {refusal.n:,} refused: {plain(refusal.why)}", "    ", "  ")


# --- authors ----------------------------------------------------------------------------------------------------------
@app.command()
def log(
    author: Annotated[str, typer.Argument(help="Only this author: a name, or the beginning of a partition.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Lines, at most.")] = 20,
    pool: Pool = "",
    cwd: Cwd = None,
    as_json: JsonFlag = False,
) -> None:
    """List what authors shared, newest first.

    \b
    Examples:
      memd share log
      memd share log Bert --limit 100
    """
    with CommandAnswer("share log", as_json) as answer, reach(PATIENCE_MS) as client:
        shown = client.share_log(_shared(client, pool, cwd).pool, author, limit=limit)
        lines = [line for event in shown.events for line in _event_lines(event)]
        lines += [f"and {shown.left:,} more: --limit"] if shown.left else []
        answer.give(shown, lines or ["nobody shared anything yet"])


def _event_lines(event: ShareEvent) -> Iterator[str]:
    what = {"add": "shared", "inv": "retracted", "gone": "forgot"}[event.what]
    id = f" · {short(event.id)}" if event.id else ""
    yield f"{age(event.at):<15} {plain_name(event.author)} {what} line {event.n:,}{id}"
    if event.text:
        yield from wrapped(plain(event.text), "    ", "    ")
    if event.why:
        yield from wrapped(f"because: {plain(event.why)}", "    ", "    ")


@app.command()
def trust(author: Author, back: Back = False, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Trust an author: what they share is no longer unconfirmed.

    \b
    Examples:
      memd share trust Bert
      memd share trust Bert --back
    """
    _judge("share trust", author, "new" if back else "trusted", pool, cwd, as_json)


@app.command()
def mute(author: Author, back: Back = False, pool: Pool = "", cwd: Cwd = None, as_json: JsonFlag = False) -> None:
    """Mute an author: hide what they share. What they retracted is believed again.

    \b
    Examples:
      memd share mute Bert
      memd share mute Bert --back
    """
    _judge("share mute", author, "new" if back else "muted", pool, cwd, as_json)


def _judge(name: str, author: str, standing: Standing, pool: str, cwd: str | None, as_json: bool) -> None:
    with CommandAnswer(name, as_json) as answer, reach(PATIENCE_MS) as client:
        state = client.judge_author(_shared(client, pool, cwd).pool, author, standing)
        lines = [line for row in state.authors if _is_named(row, author) for line in _author_lines(row)]
        answer.give(state, lines)


def _is_named(author: AuthorState, name: str) -> bool:
    return not author.own and (author.name.casefold() == name.casefold() or author.partition.startswith(name))


@app.command()
def wrong(
    ids: Annotated[list[str], typer.Argument(help="The ids of shared records, or unique prefixes.")],
    why: Annotated[str, typer.Option("--why", help="What is wrong with them; others read it.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Tell everybody that shared records are wrong, with the next push.

    They are retired here at once. `memd reject` retires a record for you alone.

    \b
    Examples:
      memd share wrong 7q3hjwch --why "the port is 8443 since March"
    """
    with CommandAnswer("share wrong", as_json) as answer, reach(PATIENCE_MS) as client:
        outbox = client.dispute_records(ids, why)
        answer.give(outbox, _wrong_lines(outbox))


def _wrong_lines(outbox: Outbox) -> Iterator[str]:
    if retired := sum(not item.why_not for item in outbox.items):
        yield f"{count(retired, 'record is', 'records are')} retired here"
        yield from wrapped("others learn it with your next push: `memd share push`")
    for item in outbox.items:
        if item.why_not:
            yield from wrapped(f"{short(item.id)}: {plain(item.why_not)}", "  ", "")


@app.command()
def hook(as_json: JsonFlag = False) -> None:
    """Print two lines for a pre-push hook of your own. memd installs none.

    With them a `git push` also sends what you chose, in the background; it never waits for memd, and never fails
    because of it.

    \b
    Example:
      memd share hook >> .git/hooks/pre-push    # a script: #!/bin/sh, mode 755
    """
    with CommandAnswer("share hook", as_json) as answer:
        answer.give({"lines": _HOOK}, _HOOK)


# --- the project ------------------------------------------------------------------------------------------------------
def share_title(share: ShareState) -> str:
    return plain_name(share.title) or pool_name(share.pool)


def check_commits(folder: str) -> None:
    """Raise InvalidRequest for a repository without a commit: others could not tell that it is the same project."""
    if _git_says(folder, "rev-parse", "--git-dir") and not _git_says(folder, "rev-parse", "--verify", "-q", "HEAD"):
        raise InvalidRequest(
            f"the repository of {plain_name(folder)} has no commit yet, and its first commit names the project",
            hint="make the first commit, or get the project's by `git pull`, then `memd share on`",
        )


def scope_here(client: Client, folder: str) -> Scope:
    """The scope of the folder's project. Raises InvalidRequest for a folder without one."""
    scope = client.why_scope(folder)
    if scope.pool.startswith((UNBOUND, "personal")):
        hint = "go to a project's folder, or name it with --pool; `memd scope why` tells more"
        raise InvalidRequest(f"{plain_name(folder)} has no project of its own, and only projects are shared", hint=hint)
    return scope


def _shared(client: Client, pool: str, cwd: str | None, *, closed: bool = False) -> ShareState:
    """The shared project of the option or the folder. Raises NotFound if it is not shared now; `closed`: one that was
    shared will do."""
    scope = None if pool else scope_here(client, here(cwd))
    is_open = scope is None or scope.is_open
    shares = client.shares([scope.pool if scope else pool]).shares if is_open else ()
    if not shares:
        hint = "`memd share on` in its folder begins; `memd share status` lists the shared projects"
        raise NotFound(f"{plain_name(pool) or 'this project'} is not shared", hint=hint)
    share = shares[0]
    if not share.is_open and not closed:
        raise _is_off(share)
    return share


def _is_off(share: ShareState) -> NotFound:
    return NotFound(f"{share_title(share)} is no longer shared", hint="`memd share on` begins again")


def known_share(client: Client, pool: str) -> ShareState | None:
    with suppress(NotFound):
        return next(iter(client.shares([pool]).shares), None)
    return None


def _known_address(client: Client, pool: str) -> str:
    known = known_share(client, pool)
    return known.address if known else ""


def _known_name(client: Client, pool: str) -> str:
    known = known_share(client, pool)
    return known.name if known else ""


def git_setting(folder: str, setting: str) -> str:
    return _git_says(folder, "config", "--get", setting)


def _of_git_top(folder: str) -> str:
    return _git_says(folder, "rev-parse", "--show-toplevel")


def _git_says(folder: str, *arguments: str) -> str:
    """What git prints about a folder, "" if it fails. Raises Refused without git."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, check=False, text=True, env=environment
        )
    except OSError as error:
        raise Refused(f"git can't be run: {error.strerror}", hint="install git 2.31 or later") from error
    return done.stdout.strip() if done.returncode == 0 else ""


def _without_password(address: str, answer: CommandAnswer) -> str:
    """The address without a password: memd stores and shows addresses."""
    if "://" not in address:
        return address
    from urllib.parse import urlsplit, urlunsplit  # 3 ms, which most commands do not need

    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    user, colon, _ = parts.netloc.rpartition("@")[0].partition(":")
    if not colon:
        return address
    answer.warn("memd left out the password in the remote's address; git asks its credential helper for it")
    return urlunsplit(parts._replace(netloc=f"{user}@{host}" if user else host))
