"""`memd status`: recent outcomes, the backlog, and the state of the agents' integrations (U6)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...protocol.errors import NotFound, Unavailable
from ...protocol.reply import StatusText
from ..hooks.notes import SkipCount, skipped
from .connection import is_older, reach
from .output import CommandAnswer, JsonFlag, complete, plain, plain_name, shortened, styled, wrapped
from .wording import age, count, moment, reembedding_text, reflecting, remote_text, size, status_counts

if TYPE_CHECKING:
    from ..hooks.hosts import HostState
    from ..python.client import Client

app = typer.Typer(rich_markup_mode=None, add_completion=False)
FAILURE_LENGTH = 400
LISTED = 5
"""Failures and hosts that the screen names."""


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Show recent activity, the backlog and failures.

    \b
    Examples:
      memd status
      memd status --json | jq .data.pending
    """
    with CommandAnswer("status", as_json) as answer, reach() as client:
        # loading the spool's code costs 7 ms: only if its folder has a file
        waiting = client.spool.waiting() if any(client.places.spool.glob("*.spool")) else 0
        skips = skipped(client.places.hooks, time.time())
        if waiting:
            answer.warn(f"{count(waiting, 'request waits', 'requests wait')} in the spool; `memd up` delivers them")
        try:
            daemon = client.status()
        except Unavailable:
            if skips:
                answer.warn(_skip_text(skips))
            raise
        from ..hooks.hosts import check_hosts  # imported late: it reads the files of every host

        hosts = check_hosts(tried=False)
        data = {**complete(daemon), "spooled": waiting, "skipped": complete(skips), "hosts_set_up": complete(hosts)}
        data["unread_patches"] = unread = _unread_patches(client)
        answer.give(data, _status_lines(daemon, skips, hosts, unread))


def _unread_patches(client: Client) -> int:
    """How many patches the `.pi` folder of this repository has that memd may not read yet (G2)."""
    from ..pi.pi_tree import nearest_pi

    folder = nearest_pi(Path.cwd())
    patches = len(list((folder / ".pi" / "patches").glob("patch_*.json"))) if folder else 0
    if not patches:
        return 0
    try:
        return 0 if client.patches(client.why_scope(str(folder)).pool).trusted else patches
    except NotFound:
        return patches


def _skip_text(skips: SkipCount) -> str:
    reasons = ", ".join(f"{number:,} {plain(reason)}" for reason, number in skips.reasons.items())
    turns = f"{count(skips.total, 'agent turn')} ran without memory in the last 24 hours"
    return f"{turns}, the last {age(int(skips.last.at * 1e6))}: {reasons}"


def host_text(host: HostState) -> str:
    """The state of an agent's integration, with the command that improves it."""
    if host.problem:
        return f"{host.title}: {plain(host.problem)} (to repair it: `{host.hint}`)"
    return (
        f"{host.title}: set up{reflecting(host.reflects)}"
        if host.is_set_up
        else f"{host.title}: not set up (run `{host.hint}`)"
    )


def _amounts(daemon: StatusText) -> Iterator[tuple[str, str]]:
    """Names and texts of the rows about records and captures."""
    total = sum(daemon.records.values())
    pools = f", in {count(daemon.pools, 'pool')}" if total else ""
    yield "records", f"{status_counts(daemon.records) or 'none yet'}{pools}"
    backlog = f"{count(daemon.pending, 'capture')} to process" if daemon.pending else "empty"
    yield "backlog", f"{backlog}; worker {plain(daemon.worker)}"
    if daemon.remote:
        yield "remote", remote_text(daemon.remote)


def _problems(daemon: StatusText) -> Iterator[tuple[str, str]]:
    """Names and texts of the rows about failures and troubles."""
    for number, failure in enumerate(daemon.failures[:LISTED]):
        yield "" if number else "failures", shortened(plain(failure), FAILURE_LENGTH)
    if len(daemon.failures) > LISTED:
        yield "", f"{len(daemon.failures)} in total"
    yield ("", "`memd retry` lists them and processes them again") if daemon.failures else ("failures", "none")
    for number, trouble in enumerate(daemon.troubles):
        yield "" if number else "problems", shortened(plain(trouble), FAILURE_LENGTH)


def _status_lines(
    daemon: StatusText, skips: SkipCount | None, hosts: Sequence[HostState], unread: int
) -> Iterator[str]:
    old = " (an older version: `memd up` replaces it)" if is_older(daemon.version) else ""
    running = styled(f"memd {daemon.version} is running", "bold")
    yield f"{running}{old} (pid {daemon.pid}, started {age(daemon.started_at)})"
    for name, text in _amounts(daemon):
        yield from wrapped(text, " " * 10, _head(name))
    outcomes = sorted(daemon.last.items(), key=lambda item: item[1].at, reverse=True)
    for number, (name, outcome) in enumerate(outcomes):
        head = f"{_head('' if number else 'last')}{plain_name(name):<10} {age(outcome.at):<15} "
        yield from wrapped(shortened(plain(outcome.what), FAILURE_LENGTH), " " * 37, head)
    rows = [] if outcomes else [("last", "no activity yet")]
    if skips:
        rows.append(("skipped", _skip_text(skips)))
    rows += [("" if number else "hosts", host_text(host)) for number, host in enumerate(hosts)]
    heard = ", ".join(f"{plain_name(host)} {age(at)}" for host, at in list(daemon.hosts.items())[:LISTED])
    sessions = f"; {count(daemon.sessions_open, 'open session')}" if daemon.sessions_open else ""
    if heard or sessions:
        rows.append(("received", f"{heard or 'nothing'}{sessions}"))
    for pause in daemon.pauses:
        until = f"until {moment(pause.until)}" if pause.until else "until `memd resume`"
        where = f"in {plain_name(pause.folder)} and below" if pause.folder else "everywhere"
        rows.append(("paused", styled(f"{where}, {until}", "yellow")))
    if daemon.ignored:
        rows.append(("ignored", ", ".join(map(plain, daemon.ignored))))
    if daemon.inbox:
        rows.append(("inbox", f"{count(daemon.inbox, 'proposal waits', 'proposals wait')}: `memd inbox`"))
    if unread:
        patches = count(unread, "patch", "patches")
        rows.append(("playbook", f"a .pi folder with {patches} is not read: `memd pi trust` shows what would come"))
    rows += _problems(daemon)
    rows.append(("model", _model_text(daemon)))
    rows.append(
        ("data", f"{daemon.data_dir} ({size(sum(daemon.size_bytes.values()))}, {daemon.journal_seq:,} journal entries)")
    )
    for name, text in rows:
        yield from wrapped(text, " " * 10, _head(name))


def _head(name: str) -> str:
    return f"{styled(f'{name:<9}', 'dim')} "


def _model_text(daemon: StatusText) -> str:
    """The model that searches, and the progress of a change to another one."""
    progress = f"; {reembedding_text(daemon.reembedding)}" if daemon.reembedding else ""
    return f"{plain(daemon.model)}{progress}"
