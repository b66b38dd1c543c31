"""Pauses and ignored folders: the times and folders of which memd captures nothing.

Invariants: a pause is on the disk before it is answered and survives restarts; it covers its folder and all below, by
the given and by the real path; a turn said during a pause is not taken later either, from any spool or transcript.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

import msgspec

from ....protocol.errors import BadConfig, InvalidRequest, NotFound, StorageFull, Withheld
from ....protocol.event import Origin
from ....protocol.instant import from_micros, micros
from ....protocol.pauses import Pauses as Held
from ....protocol.pauses import PauseState, Skip
from ...storage.durable_files import replace

FILE = "pauses.json"
KEPT = 1000
"""Newest pauses to keep; turns from an older one may be imported."""


class PauseSpan(msgspec.Struct, frozen=True):
    """A folder ("" is everywhere), beginning and end in microseconds; end 0 is open."""

    folder: str
    since: int
    until: int = 0

    def holds(self, at: int) -> bool:
        """Return whether the pause covers a time."""
        return self.since <= at and (not self.until or at < self.until)


@lru_cache(1024)
def _names(folder: str) -> frozenset[str]:
    """Return a folder and all its parents, by the given and by the real path."""
    given = os.path.normpath(folder) if folder else ""
    names: set[str] = set()
    for name in {given, os.path.realpath(given)} if given.startswith("/") else {given} - {""}:
        names |= {name, *map(str, Path(name).parents)}
    return frozenset(names)


class PauseRegister:
    """The pauses of one home. Any thread reads; the slow lane changes."""

    def __init__(
        self, folder: Path, ignored: Sequence[str], home: str, now: Callable[[], int], disabled: Callable[[], str]
    ) -> None:
        """`ignored`: globs of folders, `~` for `home`; one without a slash matches the last part of a path.
        `disabled`: returns what disables memd, "" while it is on."""
        self._file, self._now, self._disabled = folder / FILE, now, disabled
        self._home = home
        self.follow(ignored)
        self._pauses = self._load()

    def follow(self, ignored: Sequence[str]) -> None:
        """Ignore these folders from now on."""
        self.ignored = tuple(ignored)
        self._globs = re.compile("|".join(_glob(pattern, self._home) for pattern in ignored)) if ignored else None

    def _load(self) -> tuple[PauseSpan, ...]:
        try:
            return tuple(msgspec.json.decode(self._file.read_bytes(), type=list[PauseSpan]))
        except FileNotFoundError:
            return ()
        except (
            OSError,
            msgspec.MsgspecError,
            UnicodeDecodeError,
        ) as error:  # without the list memd would capture paused folders
            raise BadConfig(
                f"{self._file} can't be read: {error}", hint="correct or delete the file; it lists the pauses"
            ) from error

    def _save(self, pauses: Iterable[PauseSpan]) -> None:
        newest = tuple(pauses)[-KEPT:]
        try:
            replace(self._file, msgspec.json.encode(newest))
        except OSError as error:
            raise StorageFull(f"{self._file} can't be written: {error.strerror}", hint="free some space") from error
        self._pauses = newest

    def pause(self, folder: str, for_s: float) -> Held:
        """Begin a pause, replacing one of the same folder. Raises InvalidRequest, StorageFull."""
        folder, now = _absolute(folder), self._now()
        until = now + int(for_s * 1e6) if for_s else 0
        begun = next((span.since for span in self._held() if span.folder == folder), now)
        rest = [span for span in self._pauses if not (span.folder == folder and span.holds(now))]
        self._save((*rest, PauseSpan(folder, begun, until)))
        return self.state()

    def resume(self, folder: str) -> Held:
        """End a pause, if there is one. Raises NotFound where a pause of a parent folder holds."""
        folder, now = _absolute(folder), self._now()
        ending = [span for span in self._held() if span.folder == folder]
        if not ending and folder and (above := [span for span in self._held() if span.folder in _names(folder)]):
            raise NotFound(
                f"this folder is paused through {above[0].folder}", hint="run `memd resume --here` in that folder"
            )
        self._save(PauseSpan(span.folder, span.since, now) if span in ending else span for span in self._pauses)
        return msgspec.structs.replace(self.state(), ended=bool(ending))

    def forget(self, is_forgotten: Callable[[str], bool]) -> None:
        """Drop the ended pauses of such folders; one that holds stays, because memd would capture there again."""
        now = self._now()
        rest = [span for span in self._pauses if span.holds(now) or not is_forgotten(span.folder)]
        if len(rest) < len(self._pauses):
            self._save(rest)

    def _held(self) -> list[PauseSpan]:
        now = self._now()
        return [span for span in self._pauses if span.holds(now)]

    @property
    def everywhere(self) -> bool:
        """Whether a pause of all folders holds now; distillation stops too."""
        return any(not span.folder for span in self._held())

    def state(self) -> Held:
        """Return the pauses that hold now."""
        held = (
            PauseState(
                folder=span.folder,
                since=from_micros(span.since),
                until=from_micros(span.until) if span.until else "",
            )
            for span in self._held()
        )
        return Held(pauses=tuple(held))

    def disabled(self) -> bool:
        """Return whether memd is disabled. Reads a file: call it once for a group of events."""
        return bool(self._disabled())

    def skip(self, origin: Origin, at: str) -> Skip:
        """Return why an event of this origin and time is not taken, "" if it is; ignores `disabled`."""
        if not self._pauses and self._globs is None:
            return ""
        root = origin.repository.root if origin.repository else ""
        folders = _names(origin.cwd) | _names(root)
        if self._globs is not None and any(map(self._globs.fullmatch, folders)):
            return "ignored"
        covering = [span for span in self._pauses if not span.folder or span.folder in folders]
        now, said = self._now(), micros(at) if covering else 0
        return "paused" if any(span.holds(now) or span.holds(said) for span in covering) else ""

    def refusal(self, origin: Origin, why: Skip) -> Withheld:
        """Return the error for a `remember` that memd skipped."""
        if why == "ignored":
            return Withheld(
                f"memd ignores the folder {origin.cwd}",
                hint="the setting `ignored_folders` in memd.toml lists ignored folders",
            )
        if why == "disabled":
            return Withheld("memd is disabled and stored nothing", hint="`memd status` shows how it was disabled")
        held = next((span for span in self._held() if not span.folder or span.folder in _names(origin.cwd)), None)
        if held is None:
            return Withheld("memd was paused at the time of this turn", hint="send it again as a new turn")
        until = f" until {from_micros(held.until)}" if held.until else ""
        option = " --here" if held.folder else ""
        return Withheld(f"memd is paused{until} and stored nothing", hint=f"`memd resume{option}`, then try again")


def _absolute(folder: str) -> str:
    if folder and not folder.startswith("/"):
        raise InvalidRequest(f"{folder!r} is not an absolute path", hint="the daemon does not know your folder")
    return os.path.realpath(folder) if folder else ""


def _glob(pattern: str, home: str) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        pattern = home + pattern[1:]
    return translate(pattern.rstrip("/") if "/" in pattern.rstrip("/") else "*/" + pattern.rstrip("/"))
