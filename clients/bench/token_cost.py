"""Tokens that memd puts into an agent's context (U5): the sessions of the corpus, by date and repository, are lived
again. At each of the user's turns the installed hook runs; what it prints is counted, and compared with the transcripts
that it stands for and with what the session then used.

Each repository has a home of its own; its models were fitted without it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ...protocol import event
from ...protocol.errors import NotFound
from ...protocol.event import AnyEvent, Origin, Said, SessionEnded
from ..hooks import program
from ..importers.transcript import CapturedSession
from ..python.client import Client
from . import corpus
from .measurement import BenchOptions, Figure, PartResult, percentile
from .session_data import deliver, records
from .temporary_daemon import empty_home, running, settle, token_counts

HOST = "claude-code"


class LivedTurn(msgspec.Struct, frozen=True):
    """A turn of a session, and what the hook printed there."""

    session: str
    printed: str


class LivedSession(msgspec.Struct, frozen=True):
    """A session that was lived again. `before`: the texts of the earlier sessions of its repository; `given`: the
    records that memd gave it; `used`: those that it used."""

    turns: tuple[LivedTurn, ...]
    before: str
    given: int
    used: int


def tokens(options: BenchOptions) -> PartResult:
    """Tokens a turn and a session, against the earlier transcripts and against what was used."""
    folder = corpus.corpus_folder(options)
    by_repository: dict[str, list[str]] = {}
    for name in corpus.session_names(options):
        by_repository.setdefault(corpus.repository(name), []).append(name)
    lived: list[LivedSession] = []
    for repository, names in by_repository.items():
        options.progress(f"{repository}: {len(names)} sessions")
        lived += _live(folder, repository, names)
    return _result(lived)


def _live(folder: Path, repository: str, names: Sequence[str]) -> Iterator[LivedSession]:
    """Live the sessions of a repository again, the oldest first."""
    scorer = corpus.load_scorer(folder)
    with (
        tempfile.TemporaryDirectory(prefix="memd-bench-") as cwd,
        empty_home(corpus.models_without(repository)) as (home, environment),
        running(home, environment) as client,
    ):
        program.install(home, environment)
        command = program.command(home, HOST)
        sessions = [corpus.read_session(folder, scorer, name, cwd)[0] for name in names]
        before: list[str] = []
        for session in sorted(sessions, key=lambda session: session.events[0].at):
            yield _lived(client, session, command, environment, cwd, "\n".join(before))
            before += filter(None, map(event.text, session.events))


def _lived(
    client: Client,
    session: CapturedSession,
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    before: str,
) -> LivedSession:
    origin = Origin(host=HOST, session=session.origin.session, cwd=cwd)
    uses = _uses(client)
    turns = [_turn(command, environment, origin, "SessionStart", {"source": "startup"})]
    waiting: list[AnyEvent] = []
    for each in session.events:
        if isinstance(each, Said) and each.role == "user":
            deliver(client, [CapturedSession(origin=origin, events=tuple(waiting))])
            waiting = []
            turns.append(_turn(command, environment, origin, "UserPromptSubmit", {"prompt": each.text}))
        waiting.append(each)
    at = session.events[-1].at
    end = (*(each for each in waiting if not isinstance(each, SessionEnded)), SessionEnded(turn="end", at=at))
    deliver(client, [CapturedSession(origin=origin, events=end)])
    settle(client)
    given = set[str]()
    with suppress(NotFound):  # it was given nothing
        given |= {id for injection in client.injected(origin.document, 500).injections for id in injection.ids}
    after = _uses(client)
    used = sum(after.get(id, 0) > uses.get(id, 0) for id in given)
    return LivedSession(tuple(turns), before, len(given), used)


def _turn(
    command: Sequence[str], environment: Mapping[str, str], origin: Origin, name: str, content: Mapping[str, str]
) -> LivedTurn:
    """Run the hook as its host does; return what reaches the agent's context."""
    sent = msgspec.json.encode({"session_id": origin.session, "cwd": origin.cwd, "hook_event_name": name, **content})
    done = subprocess.run([*command, name], input=sent, capture_output=True, env=dict(environment), check=True)
    printed = msgspec.json.decode(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""
    return LivedTurn(origin.session, printed)


def _uses(client: Client) -> dict[str, int]:
    return {record.id: record.signal.access_count for record in records(client)}


def _result(lived: Sequence[LivedSession]) -> PartResult:
    counts = token_counts([text for session in lived for text in (session.before, *(t.printed for t in session.turns))])
    per_turn = [float(counts[turn.printed].pieces) for session in lived for turn in session.turns]
    later = [session for session in lived if session.before]
    per_session = [float(sum(counts[turn.printed].pieces for turn in session.turns)) for session in later]
    stands_for = [counts[session.before].pieces for session in later]
    given, used = sum(session.given for session in lived), sum(session.used for session in lived)
    figures = (
        Figure("tokens a turn, mean", sum(per_turn) / len(per_turn), "tokens", samples=len(per_turn)),
        Figure("tokens a turn, p95", percentile(per_turn, 95), "tokens", samples=len(per_turn)),
        Figure("turns with something new", sum(map(bool, per_turn)) / len(per_turn), samples=len(per_turn)),
        Figure(
            "tokens a session with earlier ones, p50", percentile(per_session, 50), "tokens", samples=len(per_session)
        ),
        Figure(
            "  the transcripts before it", sum(stands_for) / max(1, len(stands_for)), "tokens", samples=len(stands_for)
        ),
        Figure("  tokens of each of theirs", sum(per_session) / max(1, sum(stands_for)), samples=len(stands_for)),
        Figure("given records that the session used", used / max(1, given), samples=given),
    )
    return PartResult(figures, shows_not="what an agent would have asked for by a tool; only its host's hook runs")
