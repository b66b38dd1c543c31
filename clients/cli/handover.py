"""What an import came to, in words: where every line of each file went, and what the daemon did with its events.

Comes in: files that were read and sent. Goes out: the lines that say so. Invariant: every line of a file is accounted
for (P-12).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ...protocol.errors import InvalidRequest
from ..importers.delivery import Imported, Sent
from ..importers.transcript import Malformed
from .output import plain, shortened, styled, wrapped
from .wording import count

NAMED_LINES = 5


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """Of `import`: each file, and, if it waited, how many records of each status there are more than before."""

    files: tuple[Imported, ...]
    dry_run: bool
    pending: int = 0
    led_to: dict[str, int] = {}


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """How many records there are more of each status."""
    return {name: more for name in sorted(after) if (more := after[name] - before.get(name, 0)) > 0}


# --- in words ---------------------------------------------------------------------------------------------------------
def report(files: Sequence[Imported], dry_run: bool) -> Iterator[str]:
    """Each file, where every line of it went; files with nothing new in one line together."""
    told = [each for each in files if _has_news(each, dry_run)]
    for each in told:
        yield from _file_lines(each, dry_run)
    if quiet := len(files) - len(told):
        yield f"{count(quiet, 'file')} with nothing new since the last import"
    if len(files) > 1:
        accounts = [each.account for each in files]
        lines, taken = sum(each.lines for each in accounts), sum(each.taken for each in accounts)
        malformed = sum(len(each.malformed) for each in accounts)
        noise = lines - taken - malformed
        yield f"{len(files)} files, {lines:,} lines: {taken:,} taken, {noise:,} noise, {malformed:,} malformed"


def _has_news(each: Imported, dry_run: bool) -> bool:
    """Whether there is more to tell than that it was imported before."""
    if not each.account.before or each.odd or each.account.malformed:
        return True
    return dry_run or any(sent.accepted or sent.changed or sent.refused or sent.vanished for sent in each.sessions)


def _file_lines(each: Imported, dry_run: bool) -> Iterator[str]:
    account = each.account
    noise = sum(account.noise.values())
    yield styled(shortened(plain(each.path), 100), "bold")
    if each.odd:
        yield from wrapped(plain(each.odd), "    ", "  odd: ")
    parts = f"{account.taken:,} taken, {noise:,} noise, {len(account.malformed):,} malformed"
    before = f" after {account.before:,} imported before" if account.before else ""
    yield f"  {count(account.lines, 'line')}{before}: {parts}"
    if account.noise:
        kinds = ", ".join(f"{number:,} {plain(kind)}" for kind, number in account.noise.items())
        yield from (styled(line, "dim") for line in wrapped(f"noise: {kinds}", "    ", "  "))
    yield from _malformed_lines(account.malformed)
    for sent in each.sessions:
        yield from _sent_lines(sent, dry_run)


def _malformed_lines(malformed: Sequence[Malformed]) -> Iterator[str]:
    for bad in malformed[:NAMED_LINES]:
        yield from wrapped(f"line {bad.line}: {plain(bad.reason)[:300]}", "    ", "  malformed: ")
    if len(malformed) > NAMED_LINES:
        others = ", ".join(str(bad.line) for bad in malformed[NAMED_LINES:40])
        yield from wrapped(f"also lines {others}{' …' if len(malformed) > 40 else ''}", "    ", "  malformed: ")


def _sent_lines(sent: Sent, dry_run: bool) -> Iterator[str]:
    gone = f", {sent.vanished:,} vanished" if sent.vanished else ""
    if dry_run:
        yield f"  would send {count(sent.events, 'event')} of {plain(sent.document)}{gone}"
        return
    words = f"{plain(sent.document)}: {sent.accepted:,} accepted, {sent.duplicate:,} known, {sent.changed:,} changed"
    words += gone + (f", {sent.forgotten:,} forgotten" if sent.forgotten else "")
    words += f", {sent.skipped:,} not taken ({plain(sent.why)})" if sent.skipped else ""
    yield from wrapped(f"{words} → {plain(sent.pool)}", "    ", "  ")
    for refusal in sent.refused[:NAMED_LINES]:
        yield from wrapped(f"refused: turn {plain(refusal.turn)}: {plain(refusal.problem.message)}", "    ", "  ")
    if len(sent.refused) > NAMED_LINES:
        yield f"  refused: {len(sent.refused) - NAMED_LINES} more"


def require(files: Iterable[Path], what: str, where: str) -> list[Path]:
    """The files, if there are any. Raises InvalidRequest."""
    found = list(files)
    if not found:
        raise InvalidRequest(f"there is no {what} in these folders", hint=where)
    return found
