"""Power cuts: a recorded run, cut off at random places, opened again.

`python -m tests.faults.power --cuts 1000` prints what was found; the tests run a few of the same. Invariant: the same
seed cuts a recording at the same places in the same way.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.faults.disk import Call, Disk, read_trace
from tests.faults.recording import Recording, save, why_not


class Opener:
    """The child that opens what is left; started again if it dies."""

    def __init__(self, promises: Path) -> None:
        self._promises = promises
        self._start()

    def _start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.opener", str(self._promises)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, folder: Path, at: int) -> str:
        """What the child finds in a folder; its death is a finding."""
        assert self._child.stdin and self._child.stdout
        self._child.stdin.write(f"{folder} {at}\n")
        self._child.stdin.flush()
        if answer := self._child.stdout.readline().strip():
            return answer
        code = self._child.wait()
        self._start()
        return f"the process that opened it ended with {code}"

    def end(self) -> None:
        """No more questions."""
        assert self._child.stdin
        self._child.stdin.close()
        self._child.wait()


class Cut(NamedTuple):
    """One power cut: after how many calls, in which phase, and what was found, "ok" if all is well."""

    place: int
    phase: str
    found: str


def choose(calls: Sequence[Call], recording: Recording, cuts: int, chance: Random) -> list[int]:
    """Places to cut at, in order: any phase as likely as another, then any call of it."""
    phases: dict[str, list[int]] = {}
    for place, call in enumerate(calls, 1):
        if phase := recording.phase(call.end):
            phases.setdefault(phase, []).append(place)
    return sorted(chance.choice(chance.choice(list(phases.values()))) for _ in range(cuts))


def cut(calls: Sequence[Call], recording: Recording, cuts: int, seed: int, scratch: Path) -> Iterator[Cut]:
    """Cut a recording `cuts` times, and open what is left each time."""
    chance = Random(seed)
    places = choose(calls, recording, cuts, chance)
    save(recording.promises, scratch / "promises.json")
    opener, disk, done = Opener(scratch / "promises.json"), Disk(str(recording.data)), 0
    for number, place in enumerate(places):
        for call in calls[done:place]:
            disk.apply(call)
        done = place
        left = scratch / f"cut{number}"
        disk.cut(chance, left)
        found = opener.ask(left, calls[place - 1].end)
        yield Cut(place, recording.phase(calls[place - 1].end), found)
        if found == "ok":
            shutil.rmtree(left)
    opener.end()


def memory_folder() -> str | None:
    """Where files lie in memory, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    """Record, cut, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folders of cuts that went wrong")
    chosen = parser.parse_args()
    if reason := why_not():
        print(reason)
        return 1
    scratch = Path(tempfile.mkdtemp(prefix="memd-power-", dir=memory_folder()))
    recording = Recording(scratch)
    recording.run()
    calls = list(read_trace(recording.trace.read_bytes()))
    kinds = Counter(call.kind for call in calls)
    print(f"recorded {len(calls):,} calls {dict(kinds)}, {len(recording.promises)} promises; seed {chosen.seed}")
    began, found, done = time.monotonic(), Counter[str](), Counter[str]()
    for each in cut(calls, recording, chosen.cuts, chosen.seed, scratch):
        done[each.phase] += 1
        found[each.phase] += each.found == "ok"
        if each.found != "ok":
            print(f"  cut at call {each.place}, {each.phase}: {each.found}", flush=True)
    for phase, count in done.items():
        print(f"{phase}: {found[phase]} of {count} ok")
    wrong = done.total() - found.total()
    print(f"{done.total()} cuts in {time.monotonic() - began:.0f} s, {wrong} wrong")
    if chosen.keep and wrong:
        print(f"kept in {scratch}")
    else:
        shutil.rmtree(scratch)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
