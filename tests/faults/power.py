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

from tests.faults.disk import Call, Disk, read_trace
from tests.faults.recording import Promise, Recording, save, why_not


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


def cut(
    calls: Sequence[Call], root: Path, promises: list[Promise], cuts: int, seed: int, scratch: Path
) -> Iterator[tuple[int, str]]:
    """Cut a recording `cuts` times; for each, where, and what was found ("ok" if all is well)."""
    chance = Random(seed)
    places = sorted(chance.randrange(1, len(calls) + 1) for _ in range(cuts))
    save(promises, scratch / "promises.json")
    opener, disk, done = Opener(scratch / "promises.json"), Disk(str(root)), 0
    for number, place in enumerate(places):
        for call in calls[done:place]:
            disk.apply(call)
        done = place
        left = scratch / f"cut{number}"
        disk.cut(chance, left)
        found = opener.ask(left, calls[place - 1].end)
        yield place, found
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
    began, found = time.monotonic(), Counter[str]()
    for place, what in cut(calls, recording.data, recording.promises, chosen.cuts, chosen.seed, scratch):
        found["ok" if what == "ok" else "wrong"] += 1
        if what != "ok":
            print(f"  cut at call {place}: {what}", flush=True)
    print(f"{chosen.cuts} cuts in {time.monotonic() - began:.0f} s: {dict(found)}")
    if chosen.keep and found["wrong"]:
        print(f"kept in {scratch}")
    else:
        shutil.rmtree(scratch)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
