"""The guided start of `memd setup`: six steps, each with a default that Enter takes (U11).

Invariant: each step reads the present state first, so that a start that was stopped goes on when it runs again; nothing
that a step did is taken back by stopping.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import typer

from ...protocol.errors import MemdError
from ...protocol.profile import ProfileLine, ProfileText
from ...protocol.record import LIVE
from ..hooks import shell_setup
from ..hooks.hosts import HOSTS, TITLES, Hosts, HostState
from ..importers.agent_files import AGENTS, MARKDOWN
from ..importers.cursors import Cursors
from ..importers.overview import reading_s
from ..python.client import Client, places_here
from ..service import is_ours, service
from .connection import PATIENCE_MS, deliver, reach
from .host_changes import connect
from .imports import AgentFiles, FoundFile, discover, import_source, sent_files
from .options import here
from .output import CommandAnswer, plain, plain_name, say, shortened, styled, width, wrapped
from .progress import duration, wait_until_distilled
from .service import installed_service, started
from .wording import count, pool_argument, pool_name, short

LONGEST_WAIT_S = 60.0
"""Seconds that the start waits until memd has learned from an import; the rest goes on in the background."""

MOST_CHOICES = 12
HEAD_BYTES = 65_536
PERSONAL = "personal"
AGENT_TITLES = {name: title for name, title in TITLES.items() if name != shell_setup.NAME}
"""Without the shells: to report each command is a choice of its own."""

_CWD = re.compile(rb'"cwd": ?("(?:[^"\\]|\\.)*")')
_MARKS = re.compile(r" \[[^\[\]]*\]$")
_QUERY_WORDS = 4


class GuidedSetup(msgspec.Struct, frozen=True, kw_only=True):
    """Of `setup` as a guided start. `failed`: messages by host; `files`: imported by this run; `pending`: captures that
    memd still processes; `dropped`: rejected records; `service`: memd starts at login."""

    connected: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    files: int = 0
    pending: int = 0
    dropped: tuple[str, ...] = ()
    service: bool = False


class ImportChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the user imports or leaves out together. `label`: their agent and the project's folder."""

    agent: str
    title: str
    label: str
    files: tuple[FoundFile, ...]

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def sessions(self) -> int:
        """The number of files, without those of subagents. Most agents write one file for each session."""
        return sum("subagents" not in Path(file.path).parts for file in self.files)


class GuidedStart:
    """One guided start. `asks`: False takes every default."""

    def __init__(self, answer: CommandAnswer, hosts: Hosts, *, asks: bool) -> None:
        self._answer, self._hosts, self._asks = answer, hosts, asks
        self._places = places_here()
        self._result = GuidedSetup()
        self._done: list[str] = []
        self._failed_with = 0

    def run(self) -> None:
        """Go through the steps. Raises Abort if the user stops, and what starting the daemon raises."""
        steps = (
            ("Start memd", self._start),
            ("Connect your agents", self._connect),
            ("Import earlier sessions", self._import),
            ("Look at what memd knows", self._show_profile),
            ("Start memd at login", self._install),
            ("What happens next", self._show_next),
        )
        self._tell("memd gives your coding agents one memory. It stays on this machine.")
        if self._asks:
            self._tell("Enter takes the default of each step. Ctrl-C stops; `memd setup` goes on later.")
        try:
            for number, (title, step) in enumerate(steps, 1):
                self._tell("", styled(f"{number}. {title}", "bold"))
                step()
        except (typer.Abort, KeyboardInterrupt):
            self._tell("", "", f"Stopped. Done so far: {', '.join(self._done) or 'nothing'}.")
            self._tell("To go on, run `memd setup` again. `memd unsetup all` disconnects the agents.")
            raise
        self._answer.give(self._result)
        if self._failed_with and not self._answer.as_json:
            raise typer.Exit(self._failed_with)

    # --- the steps ----------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        result, status = started(self._places, self._answer)
        self._done.append("memd runs")
        runs = "memd was running already" if result.was_running and not result.replaced else "memd runs"
        self._tell(*wrapped(f"{runs}. Its files are in {_from_home(status.data_dir)}."))

    def _connect(self) -> None:
        states = [state for name in AGENT_TITLES if (state := self._hosts.state(name)).is_here or state.is_set_up]
        ready = [state for state in states if state.is_set_up and not state.problem]
        if ready:
            self._tell(*wrapped(f"Connected already: {', '.join(state.title for state in ready)}."))
        offered = [state for state in states if state not in ready]
        if not states:
            self._tell(
                *wrapped(f"None is on this machine. memd knows {', '.join(AGENT_TITLES.values())}."),
                "After you install one, run `memd setup` again.",
            )
        elif offered:
            self._tell(*(f"  {number}  {_offer(state)}" for number, state in enumerate(offered, 1)))
            self._tell("This changes their settings. `memd unsetup` restores every file byte for byte.")
            for index in self._choose("Connect which?", len(offered)):
                self._connect_one(offered[index])
        self._replace(connected=tuple(name for name in AGENT_TITLES if self._hosts.state(name, tried=False).is_set_up))

    def _connect_one(self, state: HostState) -> None:
        try:
            change = connect(self._hosts, state.name)
        except MemdError as error:
            self._failed_with = error.exit_code
            self._replace(failed={**self._result.failed, state.name: error.message})
            self._tell(styled(f"{state.title} is not connected:", "yellow"), *wrapped(plain(error.message), "  "))
            self._tell(*wrapped(f"To connect it later: {plain(error.hint)}; `memd setup {state.name}`", "  "))
            return
        self._done.append(f"{state.title} is connected")
        self._tell(f"Connected {state.title}.", *wrapped(plain(change.state.note), "  ") * bool(change.state.note))
        if change.state.problem:
            self._tell(*wrapped(f"But {plain(change.state.problem)}", "  "))

    def _import(self) -> None:
        cursors = Cursors(self._places.state)
        agents = discover(os.environ, Path.cwd(), cursors)
        choices = import_choices(agents)
        if not choices:
            known = sum(len(agent.files) for agent in agents)
            self._tell(f"All {known:,} files found here are imported." if known else "There are none here.")
        else:
            self._tell(*_choice_lines(choices))
            chosen = [choices[index] for index in self._choose("Import which?", len(choices))]
            if chosen:
                self._send(chosen, cursors)
        with reach(PATIENCE_MS) as client:
            if client.status().pending:
                self._learn(client)

    def _send(self, chosen: Sequence[ImportChoice], cursors: Cursors) -> None:
        files = [(choice.agent, Path(file.path)) for choice in chosen for file in choice.files]
        sources = [import_source(name, path, "", cursors, False) for name, path in files]
        with reach(PATIENCE_MS) as client:
            results = sent_files(client, self._answer, sources, cursors)
            deliver(client, self._answer)
        unread = [result for result in results if not result.is_read]
        self._replace(files=len(results) - len(unread))
        self._done.append(f"{_extent(chosen)} imported")
        self._tell(f"memd has read {_extent(chosen)}.")
        for result in unread:
            self._answer.warn(f"{plain_name(result.path)} is left out: {plain(result.odd)}")

    def _learn(self, client: Client) -> None:
        """Wait until memd has learned from the import, for a limited time."""
        self._tell("Now it picks out preferences, decisions and lessons.")
        pending = wait_until_distilled(client, self._answer, longest_s=LONGEST_WAIT_S)
        self._replace(pending=pending)
        live = _live(client.status().records)
        rest = f" {count(pending, 'passage')} to go: memd continues in the background." if pending else ""
        self._tell(f"{count(live, 'memory', 'memories')} so far.{rest}")

    def _show_profile(self) -> None:
        with reach(PATIENCE_MS) as client:
            profile, title = _profile(client)
            if not profile.lines:
                self._tell(
                    "Nothing yet. memd learns from your next sessions, or from what you tell it:",
                    '  memd remember "I use tabs in Go"',
                )
                return
            project = [pool for pool in profile.scope if pool != PERSONAL]
            place = f" that works in {title}" if project and title else ""
            self._tell(*wrapped(f"An agent{place} gets these lines:"), *_profile_lines(profile))
            self._tell(
                *wrapped(
                    "memd took these from your old sessions, so it marks them as unconfirmed for the agent. "
                    "Lines that you or your agents use lose that mark."
                )
                * any(line.status == "quarantined" for line in profile.lines)
            )
            chosen = self._choose("Drop wrong lines?", len(profile.lines), is_all=False)
            if chosen:
                self._drop(client, [profile.lines[index] for index in chosen])

    def _drop(self, client: Client, lines: Sequence[ProfileLine]) -> None:
        ids = tuple(dict.fromkeys(line.id for line in lines))
        client.confirm(ids, right=False)
        self._replace(dropped=ids)
        self._done.append(f"{count(len(ids), 'line')} dropped")
        undo = f"memd reject --undo {' '.join(map(short, ids))}"
        self._tell(*wrapped(f"Dropped {count(len(ids), 'line')}. To take that back: `{undo}`"))

    def _install(self) -> None:
        manager = service(self._places, os.environ)
        if is_ours(manager, self._places):
            self._tell("It does already.")
            self._replace(service=True)
        elif not manager.reachable():
            self._tell("systemd or launchd does not answer here: after a restart, run `memd up`.")
        elif not self._asks or typer.confirm("Start memd at each login?", default=True):
            try:
                installed_service(self._places)
            except MemdError as error:
                self._tell(*wrapped(f"That failed: {plain(error.message)}; {plain(error.hint)}", "  ", ""))
                started(self._places, self._answer)
                return
            self._done.append("memd starts at login")
            self._tell("memd starts at each login. `memd service uninstall` ends that.")
            self._replace(service=True)

    def _show_next(self) -> None:
        with reach(PATIENCE_MS) as client:
            question = _question(client)
        if self._result.connected:
            self._tell("Your agents have memory from their next session on.")
        self._tell(
            f"Ask it yourself:    {question}",
            "See and correct it: memd panel",
            "In your shell too:  memd setup shell",
            "Stop it:            memd down, memd unsetup all, memd uninstall",
        )

    # --- talking to the user ------------------------------------------------------------------------------------------
    def _tell(self, *lines: str) -> None:
        if not self._answer.as_json:
            say(lines)

    def _replace(self, **changes: object) -> None:
        self._result = msgspec.structs.replace(self._result, **changes)

    def _choose(self, question: str, total: int, *, is_all: bool = True) -> list[int]:
        """Ask for numbers from a list; the chosen indices. Enter takes all of them, or none."""
        default = "all" if is_all else "none"
        if not self._asks:
            return numbers("", total, default)
        ways = "; numbers such as 1 3; none" if is_all else "; numbers such as 1 3"
        return typer.prompt(
            f"{question} [Enter: {default}{ways}]",
            default="",
            show_default=False,
            value_proc=lambda text: numbers(text, total, default),
        )


def numbers(text: str, total: int, default: str) -> list[int]:
    """The indices that a user typed as numbers from 1 to `total`, or as `all` or `none`. Raises BadParameter."""
    text = text.strip().lower() or default
    if text in ("none", "n", "no", "0"):
        return []
    if text in ("all", "a", "y", "yes"):
        return list(range(total))
    chosen = re.split(r"[\s,;]+", text)
    if not all(word.isdecimal() and 1 <= int(word) <= total for word in chosen):
        raise typer.BadParameter(f"type numbers from 1 to {total}, all or none")
    return sorted({int(word) - 1 for word in chosen})


def _offer(state: HostState) -> str:
    """What a host gets, on one line."""
    gets = "gets your memories; memd learns from its sessions"
    if not HOSTS[state.name].hooked:
        gets = "can look memories up, with memd's tools"
    if state.problem:
        gets = f"repair: {plain(state.problem)}"
    return shortened(f"{state.title:<12} {gets}", width() - 5)


def _from_home(path: str) -> str:
    """A path with `~` for the user's home."""
    home = os.environ.get("HOME", "").rstrip("/")
    inside = home and (path == home or path.startswith(f"{home}/"))
    return plain_name(f"~{path[len(home) :]}" if inside else path)


# --- what can be imported --------------------------------------------------------------------------------------------
def import_choices(agents: Sequence[AgentFiles]) -> list[ImportChoice]:
    """The files that are new or have grown, by agent and project, the project with the newest file first. Beyond
    `MOST_CHOICES` projects, the last choice has all the others of its agent."""
    choices: list[ImportChoice] = []
    for agent in agents:
        projects = dict[str, list[FoundFile]]()
        for file in sorted(agent.files, key=lambda file: file.changed_at, reverse=True):
            if file.state != "imported":
                label = "CLAUDE.md, AGENTS.md and the like" if agent.agent == MARKDOWN else _project(Path(file.path))
                projects.setdefault(label, []).append(file)
        listed = list(projects.items())
        if len(listed) > MOST_CHOICES:
            rest = [file for _, files in listed[MOST_CHOICES - 1 :] for file in files]
            listed[MOST_CHOICES - 1 :] = [(f"{len(listed) - MOST_CHOICES + 1} other projects", rest)]
        choices += [
            ImportChoice(agent=agent.agent, title=agent.title, label=label, files=tuple(files))
            for label, files in listed
        ]
    return choices


def _project(path: Path) -> str:
    """The folder that the session in a file worked in, as its start names it, else the file's own folder."""
    try:
        with path.open("rb") as file:
            match = _CWD.search(file.read(HEAD_BYTES))
        return _from_home(msgspec.json.decode(match[1], type=str)) if match else _from_home(str(path.parent))
    except (OSError, msgspec.MsgspecError):
        return _from_home(str(path.parent))


def _choice_lines(choices: Sequence[ImportChoice]) -> Iterator[str]:
    """One line a choice, and one line an agent with its sum: "11 sessions, 3 projects, about 40 s"."""
    for title in dict.fromkeys(choice.title for choice in choices):
        own = [choice for choice in choices if choice.title == title]
        sum_of = _extent(own)
        projects = f", {count(len(own), 'project')}" if len(own) > 1 else ""
        yield f"{title}: {sum_of}{projects}, about {_time(own)}"
        for choice in own:
            number = choices.index(choice) + 1
            yield f"  {number:>2}  {_tail(choice.label, 40):<40}  {_extent([choice])}, about {_time([choice])}"
    if len({choice.title for choice in choices}) > 1:
        yield f"All of it takes about {_time(choices)}."


def _extent(choices: Sequence[ImportChoice]) -> str:
    noun = "session" if all(choice.agent in AGENTS for choice in choices) else "file"
    return count(sum(choice.sessions for choice in choices), noun)


def _time(choices: Sequence[ImportChoice]) -> str:
    return duration(sum(reading_s(choice.agent, choice.size_bytes) for choice in choices))


def _tail(text: str, most: int) -> str:
    """The end of a path in at most `most` characters."""
    return text if len(text) <= most else f"…{text[1 - most :]}"


# --- the profile ------------------------------------------------------------------------------------------------------
def _live(counts: dict[str, int]) -> int:
    return sum(counts.get(status, 0) for status in LIVE)


def _profile(client: Client) -> tuple[ProfileText, str]:
    """The profile of this folder with the project's title; if memd knows nothing of a project here, that of the project
    with the most records."""
    states = {state.pool: state for state in client.pools().pools}
    profile = client.profile(cwd=here(None))
    known = [pool for pool in profile.scope if pool != PERSONAL and pool in states and _live(states[pool].counts)]
    if not known:
        others = [pool for pool in states if pool != PERSONAL and _live(states[pool].counts)]
        if others:
            known = [max(others, key=lambda pool: _live(states[pool].counts))]
            profile = client.profile(pools=(PERSONAL, *known))
    title = states[known[0]].title if known else ""
    return profile, plain_name(title or (pool_name(known[0]) if known else ""))


def _profile_lines(profile: ProfileText) -> Iterator[str]:
    """The lines with their numbers, under their headings, without marks."""
    section = ""
    for number, line in enumerate(profile.lines, 1):
        if line.section != section:
            section = line.section
            yield styled(plain(section.lstrip("# ")), "bold")
        words = _MARKS.sub("", plain(profile.text[line.start : line.end].removeprefix("- ")))
        yield from wrapped(words, " " * 6, f"  {number:>2}  ")


def _question(client: Client) -> str:
    """A `memd recall` command that finds a line of the profile first."""
    profile, _ = _profile(client)
    folder = here(None)
    scope = client.profile(cwd=folder).scope
    for line in profile.lines:
        record = client.get(line.id)
        inside = record.pool in scope
        keywords = [tag for tag in record.tags[1 : _QUERY_WORDS + 1] if tag.isalnum()]
        for words in (" ".join(keywords[:number]) for number in range(2, len(keywords) + 1)):
            recalled = client.recall(words, cwd=folder if inside else "", pools=() if inside else (record.pool,))
            if recalled.hits and recalled.hits[0].record.id == record.id:
                return f'memd recall "{words}"' + ("" if inside else f" --pool {_pool(client, record.pool)}")
    return 'memd recall "what did we decide"'


def _pool(client: Client, name: str) -> str:
    """A pool as a person types it: its title if no other pool has it."""
    titles = {state.pool: state.title for state in client.pools().pools}
    title = titles.get(name, "")
    is_clear = title and list(titles.values()).count(title) == 1 and title not in titles
    return shlex.quote(title if is_clear else pool_argument(name))
