"""Histories with planted rules and traps (G3, G4): what the curator proposes of weeks of work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...protocol.event import AnyEvent, Origin, Said, SessionEnded, ToolCalled
from ..python.client import Client
from .measurement import BenchOptions, DataMissing, Figure, PartResult, at_least
from .temporary_daemon import empty_home, measure, running, settle

FOLDER = "histories"


class HistoryTurn(msgspec.Struct):
    who: str
    text: str


class WrittenFile(msgspec.Struct):
    path: str
    text: str


class HistorySession(msgspec.Struct):
    """A session; `turns` begins with those that a fork copied."""

    id: str
    day: str
    time: str
    project: str
    turns: list[HistoryTurn]
    fork_of: str = ""
    subagent_of: str = ""
    writes: list[WrittenFile] = []
    commits: list[str] = []


class PlantedRule(msgspec.Struct):
    """A rule, and the user's turns that state it."""

    statement: str
    turns: list[str]


class PlayedHistory(msgspec.Struct):
    """Weeks of one developer."""

    who: str
    sessions: list[HistorySession]
    planted: list[PlantedRule]


class AllProposed(msgspec.Struct):
    """The reply of `curate-all`."""

    proposals: list[dict[str, Any]]


def rules(options: BenchOptions) -> PartResult:
    """Planted rules that the curator finds, and proposals that are planted rules."""
    files = sorted(options.find(FOLDER).glob("[0-9]*.json"))
    if not files:
        raise DataMissing(f"there is no history in {options.find(FOLDER)}")
    planted = found = right = proposed = 0
    details: list[str] = []
    for file in files[:2] if options.quick else files:
        options.progress(file.stem)
        history = msgspec.json.decode(file.read_bytes(), type=PlayedHistory)
        proposals = _proposals(history)
        of_rule = [_rule_of(proposal, history.planted) for proposal in proposals]
        planted, proposed = planted + len(history.planted), proposed + len(proposals)
        found += len({place for place in of_rule if place is not None})
        right += sum(place is not None for place in of_rule)
        others = (proposal for proposal, place in zip(proposals, of_rule, strict=True) if place is None)
        details += (f"{file.stem}: {proposal['statement']}" for proposal in others)
    return PartResult(
        (
            Figure("planted rules found", found / max(1, planted), target=at_least(0.7), samples=planted),
            Figure("proposals of planted rules", right / max(1, proposed), target=at_least(2 / 3), samples=proposed),
        ),
        shows_not="whether a person would take the other proposals",
        notes=tuple(details),
    )


def _rule_of(proposal: Mapping[str, Any], planted: Sequence[PlantedRule]) -> int | None:
    turns = set(proposal["turns"])
    return next((place for place, rule in enumerate(planted) if not turns.isdisjoint(rule.turns)), None)


def _proposals(history: PlayedHistory) -> list[dict[str, Any]]:
    """Play the sessions of a history in a home of its own, and return what the curator proposes."""
    with empty_home({"MEMD_IDLE_S": "1000000"}) as (home, environment):
        work = home.data.parent / "work"
        folders = {session.project: work / session.project for session in history.sessions}
        for folder in folders.values():
            folder.mkdir(parents=True)
            _git(folder, "init", "-q", "-b", "main")
            _git(folder, "commit", "-q", "--allow-empty", "-m", f"Begin {folder.name}")
        with running(home, environment) as client:
            _play(history, folders, client)
            for folder in folders.values():
                documents = (("markdown", str(file)) for file in sorted(folder.rglob("*.md")))
                for kind, path in (("git", str(folder)), *documents):
                    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "import", kind, path]
                    subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=True)
            settle(client)
        return msgspec.json.decode(measure(environment, "curate-all"), type=AllProposed).proposals


def _play(history: PlayedHistory, folders: Mapping[str, Path], client: Client) -> None:
    sessions = {session.id: session for session in history.sessions}
    events: dict[str, list[AnyEvent]] = {}
    for session in sorted(history.sessions, key=lambda session: (session.day, session.time, session.id)):
        folder = folders[session.project]
        copied = _copied(session, sessions.get(session.fork_of))
        events[session.id] = said = [*events.get(session.fork_of, [])[:copied], *_said(session, copied)]
        end = said[-1].at
        name = f"{session.subagent_of}/{session.id}" if session.subagent_of else session.id
        origin = Origin(host="claude-code", session=name, cwd=str(folder), live=False)
        calls = [
            ToolCalled(
                turn=f"{session.id}-w{number}",
                at=end,
                name="Write",
                arguments=msgspec.json.encode({"file_path": str(folder / written.path)}).decode(),
                outcome="ok",
            )
            for number, written in enumerate(session.writes)
        ]
        client.capture(origin, (*said, *calls, SessionEnded(turn=f"{session.id}-end", at=end)))
        _commit(session, folder, end)


def _copied(session: HistorySession, forked: HistorySession | None) -> int:
    """Return how many turns a fork begins with that the forked session has."""
    pairs = list(zip(session.turns, forked.turns if forked else [], strict=False))
    return next((place for place, (own, other) in enumerate(pairs) if own.text != other.text), len(pairs))


def _said(session: HistorySession, copied: int) -> Iterator[Said]:
    hour, minute = session.time.split(":")
    for number, turn in enumerate(session.turns[copied:], 1):
        at = f"{session.day}T{hour}:{minute}:{(number - 1) % 60:02}Z"
        yield Said(turn=f"{session.id}-{number}", at=at, role=turn.who, text=turn.text)  # type: ignore[arg-type]


def _commit(session: HistorySession, folder: Path, at: str) -> None:
    """Commit what a session wrote in the user's name."""
    for written in session.writes:
        file = folder / written.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written.text, encoding="utf-8")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-q", "--allow-empty", "-m", f"Add {written.path}", at=at)
    for subject in session.commits:
        _git(folder, "commit", "-q", "--allow-empty", "-m", subject, at=at)


def _git(folder: Path, *arguments: str, at: str = "2026-10-01T00:00:00Z") -> None:
    author = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org", "-c", "commit.gpgsign=false")
    environment = {**os.environ, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    subprocess.run(["git", "-C", str(folder), *author, *arguments], check=True, capture_output=True, env=environment)
