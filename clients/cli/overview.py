"""`memd status` and `memd pools`: what the daemon did, what waits, what it holds.

Comes in: nothing. Goes out: actual outcomes, each with its time (U6).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from ...protocol.errors import Unavailable
from ...protocol.reply import PoolList, StatusText
from ..hooks.notes import SkipCount, skipped
from .contact import reach
from .output import Answer, JsonFlag, complete, plain, styled, wrapped
from .versions import is_older
from .wording import age, count, moment, reembedding_text, state

if TYPE_CHECKING:
    from ..hooks.hosts import HostState

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def status(as_json: JsonFlag = False) -> None:
    """Show what memd last captured, distilled and answered, what waits, and what failed.

    \b
    Examples:
      memd status
      memd status --json | jq .data.pending
    """
    with Answer("status", as_json) as answer, reach() as client:
        waiting = client.spool.waiting()
        skips = skipped(client.places.state, time.time())
        if waiting:
            answer.warn(f"{count(waiting, 'request waits', 'requests wait')} in the spool; `memd up` delivers them")
        try:
            told = client.status()
        except Unavailable:
            if skips:
                answer.warn(_skip_text(skips))
            raise
        from ..hooks.hosts import check_hosts  # once there is something to say: it knows every host's files

        hosts = check_hosts(tried=False)
        data = {**complete(told), "spooled": waiting, "skipped": complete(skips), "hosts_set_up": complete(hosts)}
        answer.give(data, _status_lines(told, skips, hosts))


def _skip_text(skips: SkipCount) -> str:
    reasons = ", ".join(f"{number:,} {plain(reason)}" for reason, number in skips.reasons.items())
    said = f"{count(skips.total, 'turn')} of agents without memory in 24 hours, {age(int(skips.last.at * 1e6))}"
    return f"{said}: {reasons}"


def _host_lines(told: StatusText, hosts: Sequence[HostState]) -> Iterator[str]:
    said = [f"{each.title}: {plain(each.problem)}, `{each.hint}` mends it" for each in hosts if each.problem]
    said += [f"{each.title} is set up" for each in hosts if each.is_set_up and not each.problem]
    said += [f"{each.title} is not, `{each.hint}`" for each in hosts if not each.is_set_up and not each.problem]
    if said:
        yield from wrapped("; ".join(said), " " * 10, _row("hosts", ""))
    heard = [f"{plain(host)} {age(at)}" for host, at in told.hosts.items()]
    going_on = f"; {count(told.sessions_open, 'session goes on', 'sessions go on')}" if told.sessions_open else ""
    if heard or going_on:
        yield from wrapped(f"{', '.join(heard) or 'none'}{going_on}", " " * 10, _row("heard", ""))


def _status_lines(told: StatusText, skips: SkipCount | None = None, hosts: Sequence[HostState] = ()) -> Iterator[str]:
    old = " (an older one: `memd up` replaces it)" if is_older(told.version) else ""
    yield styled(f"memd {told.version} runs", "bold") + f"{old} (pid {told.pid}, started {age(told.started_at)})"
    total = sum(told.records.values())
    by_status = ", ".join(f"{number:,} {name}" for name, number in sorted(told.records.items()) if number)
    yield _row("records", f"{by_status or 'none yet'}" + (f", in {count(told.pools, 'pool')}" if total else ""))
    waits = f"{count(told.pending, 'capture')} to distil" if told.pending else "nothing waits"
    yield _row("backlog", f"{waits}; worker {plain(told.worker)}")
    if not told.last:
        yield _row("last", "nothing has happened yet")
    for n, (name, outcome) in enumerate(sorted(told.last.items(), key=lambda item: item[1].at, reverse=True)):
        yield _row("" if n else "last", f"{plain(name):<10} {age(outcome.at):<15} {plain(outcome.what)}")
    if skips:
        yield from wrapped(_skip_text(skips), " " * 10, _row("skipped", ""))
    yield from _host_lines(told, hosts)
    for pause in told.pauses:
        until = f"until {moment(pause.until)}" if pause.until else "until `memd resume`"
        where = f"in {plain(pause.folder)} and below" if pause.folder else "everywhere"
        yield _row("paused", styled(f"{where}, {until}", "yellow"))
    if told.ignored:
        yield from wrapped(", ".join(map(plain, told.ignored)), " " * 10, _row("ignored", ""))
    if told.inbox:
        yield _row("inbox", f"{count(told.inbox, 'proposal waits', 'proposals wait')}: `memd inbox`")
    for n, failure in enumerate(told.failures[:5]):
        yield from wrapped(plain(failure), " " * 10, _row("" if n else "failures", ""))
    if not told.failures:
        yield _row("failures", "none")
    elif len(told.failures) > 5:
        yield _row("", f"{len(told.failures)} in all")
    if told.failures:
        yield _row("", "`memd retry` lists them and tries them again")
    for n, trouble in enumerate(told.troubles):
        yield from wrapped(plain(trouble), " " * 10, _row("" if n else "trouble", ""))
    yield from wrapped(model_line(told), " " * 10, _row("model", ""))
    yield _row("data", f"{told.data_dir} ({size(sum(told.size_bytes.values()))}, journal at {told.journal_seq:,})")


def model_line(told: StatusText) -> str:
    """The model that searches, and how far the way to another one is."""
    way = f"; {reembedding_text(told.reembedding)}" if told.reembedding else ""
    return f"{plain(told.model)}{way}"


def _row(name: str, text: str) -> str:
    return f"{styled(f'{name:<9}', 'dim')} {text}"


def size(number: int) -> str:
    """Bytes in words."""
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:,.0f} {unit}"
        number = round(number / 1000)
    return f"{number:,.0f} GB"


@app.command()
def pools(as_json: JsonFlag = False) -> None:
    """List the pools: yours, and one for each project.

    \b
    Examples:
      memd pools
      memd recall "database" --pool project/3f2a   # a pool by its beginning
    """
    with Answer("pools", as_json) as answer, reach() as client:
        told = client.pools()
        answer.give(told, _pool_lines(told))


def _pool_lines(told: PoolList) -> Iterator[str]:
    longest = max((len(each.pool) for each in told.pools), default=0)
    for each in told.pools:
        counts = ", ".join(f"{number:,} {state(name)}" for name, number in sorted(each.counts.items()) if number)
        title = f"  {plain(each.title)}" if each.title else ""
        yield f"{styled(f'{plain(each.pool):<{longest}}', 'cyan')}{title}  {styled(counts or 'empty', 'dim')}"
