"""Progress on a terminal: a bar, a status line, waiting for jobs; `--json` and standard output stay untouched."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from types import TracebackType
from typing import Any

import typer

from ...protocol.errors import by_code
from ...protocol.reply import JobState
from ..python.client import Client
from .output import CommandAnswer, is_watched, plain, shortened, width
from .wording import count

STALLED_S = 60.0
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


def wait_until_distilled(client: Client, answer: CommandAnswer, stalled_s: float = STALLED_S) -> int:
    """Wait until no capture is pending, or none was processed for `stalled_s` seconds; the number still pending."""
    pending = start = client.distil().pending
    moved = time.monotonic()
    failures = len(client.status().failures)
    with Bar(start, "processing", answer.as_json) as bar:
        while pending:
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
