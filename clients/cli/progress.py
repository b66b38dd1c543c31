"""Progress on a terminal: a bar, a status line, waiting for jobs; `--json` and standard output stay untouched."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from types import TracebackType
from typing import Any

import typer

from ...protocol.errors import by_code
from ...protocol.reply import JobState
from ..python.client import Client
from .output import CommandAnswer, is_watched, plain, plain_name, shortened, width
from .wording import count

STALLED_S = 60.0
LINES = 40
"""Most lines of progress where no terminal shows a bar."""
_POLL_S = 0.1


class Bar:
    """A progress bar on standard error, shown only on a terminal."""

    def __init__(self, length: int, label: str, hidden: bool = False) -> None:
        hidden = hidden or length < 1 or not is_watched()
        self._bar: Any = nullcontext() if hidden else typer.progressbar(length=length, label=label, file=sys.stderr)

    def __enter__(self) -> Bar:
        self._shown = self._bar.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.__exit__(kind, error, at)

    def step(self, steps: int) -> None:
        """Advance by so many steps."""
        if self._shown and steps > 0:
            self._shown.update(steps)


class FileProgress:
    """The progress over files by their sizes, on standard error: on a terminal a bar with the file's name and the time
    left, elsewhere lines, at most `LINES` of them. One file alone gets no line."""

    def __init__(self, sizes: Sequence[int], hidden: bool = False) -> None:
        self._sizes, self._number = [max(1, size_bytes) for size_bytes in sizes], 0
        self._total, self._done, self._shown_bytes = sum(self._sizes), 0, 0
        self._is_plain = not hidden and not is_watched() and len(sizes) > 1
        self._name = ""
        hidden = hidden or not sizes or not is_watched()
        self._bar: Any = nullcontext()
        if not hidden:
            self._bar = typer.progressbar(
                length=self._total, label="importing", item_show_func=lambda _: self._name, file=sys.stderr
            )

    def __enter__(self) -> FileProgress:
        self._shown, self._started = self._bar.__enter__(), time.monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.__exit__(kind, error, at)

    @property
    def finished(self) -> int:
        """How many files are finished."""
        return self._number

    def begin(self, path: str) -> None:
        """Show the file that comes next."""
        number, count_of_files = self._number + 1, len(self._sizes)
        self._name = shortened(f"{number} of {count_of_files}: {plain_name(path)}", max(20, width() - 50))
        self.part(0)
        every = -(-count_of_files // LINES)
        if self._is_plain and (number - 1) % every == 0:
            print(f"memd: importing {number} of {count_of_files}: {plain_name(path)}{self._left()}", file=sys.stderr)

    def part(self, part: float) -> None:
        """Show that this part of the file is done, from 0 to 1."""
        done = self._done + int(self._sizes[self._number] * part)
        if self._shown:
            self._shown.update(max(0, done - self._shown_bytes))
            self._shown_bytes = max(done, self._shown_bytes)

    def finish(self) -> None:
        """Show that the file is done."""
        self.part(1)
        self._done += self._sizes[self._number]
        self._number += 1

    def _left(self) -> str:
        if not self._done:
            return ""
        elapsed = time.monotonic() - self._started
        return f", about {duration(elapsed * (self._total - self._done) / self._done)} left"


def duration(seconds: float) -> str:
    """Return a time for people: `40 s`, `3 min`, `2 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


class Ticker:
    """One line on standard error that shows the current activity, shown only on a terminal."""

    def __init__(self, hidden: bool = False) -> None:
        self._hidden = hidden or not is_watched()

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    def tell(self, words: str) -> None:
        """Show the current activity."""
        self._write(shortened(plain(words), width() - 1) + "…")

    def clear(self) -> None:
        """Remove the line."""
        self._write("")

    def _write(self, words: str) -> None:
        if not self._hidden:
            print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def wait_for_job(client: Client, started: JobState, answer: CommandAnswer) -> JobState:
    """Wait for a job with a progress bar; its last state. Raises the error that it ended with."""
    state = started
    while state.state == "running" and not state.total:
        time.sleep(_POLL_S)
        state = client.job(state.id)
    with Bar(state.total, state.name, answer.as_json) as bar:
        shown = 0
        while state.state == "running":
            bar.step(state.done - shown)
            shown = max(shown, state.done)
            time.sleep(_POLL_S)
            state = client.job(state.id)
        bar.step(state.total - shown)
    if state.problem:
        raise by_code(state.problem.code, state.problem.message, state.problem.hint)
    return state


def wait_until_distilled(
    client: Client, answer: CommandAnswer, stalled_s: float = STALLED_S, longest_s: float = math.inf
) -> int:
    """Wait until no capture is pending, none was processed for `stalled_s` seconds, or `longest_s` seconds have passed;
    the number still pending."""
    pending = start = client.distil().pending
    moved = started = time.monotonic()
    failures = len(client.status().failures)
    with Bar(start, "processing", answer.as_json) as bar:
        while pending and time.monotonic() - started < longest_s:
            time.sleep(_POLL_S)
            status = client.status()
            if status.pending < pending:
                bar.step(pending - status.pending)
                moved = time.monotonic()
            pending = status.pending
            if time.monotonic() - moved > stalled_s:
                answer.warn(f"processing is slow ({status.worker}); it continues in the background")
                break
    failed = len(client.status().failures) - failures
    if failed > 0:
        answer.warn(f"{count(failed, 'capture')} failed: see `memd retry`")
    return pending
