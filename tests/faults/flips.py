"""Damaged bytes: one flipped bit, or a page of zeros, in a store of a memory at rest; then a start, and every read.

`python -m tests.faults.flips --bits 200 --pages 40` prints what came of it; the tests do a few of the same. What may
come of it: `harmless` (every read as before), `reported` (an error), `named` (the process died, and the next start said
what is damaged, or made it anew). What must not: `wrong`, and `died` again without a word.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from random import Random

from memd.daemon.projections.records import digest
from memd.daemon.projections.stores import Stores
from memd.daemon.world import real_world
from memd.models import registry
from memd.protocol.errors import MemdError
from memd.protocol.event import Origin, Said, text
from memd.protocol.request import Remember
from tests.conftest import RunningDaemon
from tests.faults.power import memory_folder

FILES = ("journal/data.mdb", "archive/data.mdb", "projections/tables/data.mdb", "vectors/data.mdb")
PAGE = 4096


def make(home: Path, count: int = 40) -> Path:
    """A memory with captures, records and vectors, cleanly stopped; its data folder."""
    home.mkdir(mode=0o700, parents=True)
    settings = {"MEMD_HOME": str(home), "MEMD_BALLAST_MB": "0", "MEMD_ARCHIVE_KEEP_DAYS": "0"}
    daemon = RunningDaemon({**os.environ, **settings})
    daemon.start()
    try:
        _fill(daemon, count)
    finally:
        daemon.terminate()
    return home / "data"


def _fill(daemon: RunningDaemon, count: int) -> None:
    with daemon.client() as client:
        origin = Origin(host="flip", session="s")
        said = [
            Said(turn=f"t{n}", at="2026-01-01T00:00:00Z", role="user", text=f"I prefer tool{n} for job{n}.")
            for n in range(count)
        ]
        client.capture(origin, said)
        for n in range(count):
            words = f"The lamp{n} stands in room{n}."
            client.remember(Remember(text=words, turn=f"r{n}", at="2026-01-01T00:00:00Z", origin=origin))
    daemon.settle(120)


def reads(stores: Stores) -> Mapping[str, Callable[[], object]]:
    """Everything that is read, by part."""
    records = stores.records
    ids = [record.id for record in records.everything()]
    turns = [(captured.document, captured.event.turn) for _, captured in stores.archive.after(0, 10_000)]
    marks = [digest(record.description) for record in records.everything()]
    return {
        "operations": lambda: list(stores.journal.read()),
        "captures": lambda: stores.archive.after(0, 10_000),
        "turns": lambda: [text(found.event) if (found := stores.archive.turn(*turn)) else None for turn in turns],
        "around": lambda: [stores.archive.around(*turn, 2, 2) for turn in turns[::7]],
        "records": lambda: [records.get(id) for id in ids],
        "recent": lambda: records.recent("personal", None, 1000),
        "tally": records.tally,
        "keys": lambda: [
            (id, stores.records.holding_key("personal", found.key)) for id in ids if (found := records.get(id))
        ],
        "history": lambda: [stores.sources.history(id) for id in ids],
        "sessions": lambda: [stores.sources.session(document) for document in sorted({name for name, _ in turns})],
        "progress": stores.sources.progress,
        "vectors": lambda: _vectors(stores, marks),
    }


def _vectors(stores: Stores, marks: list[bytes]) -> set[bytes]:
    """Every vector with the text it stands for; one that is missing is made again, so it is no harm."""
    places, rows = stores.vector_store.get(marks)
    return {marks[place] + row.tobytes() for place, row in zip(places, rows, strict=True)}


def _digest(value: object) -> str:
    if isinstance(value, set):
        return " ".join(sorted(blake2b(repr(each).encode(), digest_size=8).hexdigest() for each in value))
    return blake2b(repr(value).encode(), digest_size=8).hexdigest()


def _fewer(found: str, truth: str) -> bool:
    return set(found.split()) <= set(truth.split())


def look(folder: Path) -> dict[str, str]:
    """By part, a digest of what is read, or the error that was raised instead."""
    try:
        stores = Stores(folder, real_world(), registry.info())
    except MemdError as error:
        return {"start": f"error: {error.message} | {error.hint}"}
    try:
        parts = reads(stores)
    except MemdError as error:
        return {"all": f"error: {error.message}"}
    found: dict[str, str] = {}
    for part, read in parts.items():
        try:
            found[part] = _digest(read())
        except MemdError as error:
            found[part] = f"error: {error.message}"
    stores.close()
    return found


class Looker:
    """Looks into folders, each in a process of its own, forked from one that has loaded everything."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.flips", "--serve"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def look(self, folder: Path) -> dict[str, str] | int:
        """What is read there; the wait status of the process if it died."""
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(f"{folder}\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())

    def end(self) -> None:
        """No more folders."""
        assert self._server.stdin
        self._server.stdin.close()
        self._server.wait()


def serve() -> None:
    """The process that `Looker` starts."""
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                print(json.dumps(look(Path(line.strip()))), flush=True)
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if status:
            print(status, flush=True)


def judge(truth: dict[str, str], folder: Path, looker: Looker) -> str:
    """What came of a damaged folder."""
    found = looker.look(folder)
    if isinstance(found, int):
        again = looker.look(folder)
        if isinstance(again, int):
            return f"died twice ({found}, {again})"
        if again == truth:
            return "named"  # what was damaged could be made anew
        return "named" if "start" in again else f"wrong after it died: {again}"
    wrong = [
        part
        for part, value in found.items()
        if not value.startswith("error") and not _fewer(value, truth.get(part, ""))
    ]
    if wrong:
        return f"wrong: {wrong}"
    return "reported" if any(value.startswith("error") for value in found.values()) else "harmless"


def damage(
    data: Path, truth: dict[str, str], file: str, places: int, chance: Random, *, pages: bool, killed: bool
) -> Iterator[tuple[int, str]]:
    """Damage copies of a memory, one place each; where, and what came of it. `killed`: it was not stopped cleanly."""
    looker = Looker()
    with tempfile.TemporaryDirectory(prefix="memd-flips-", dir=memory_folder()) as scratch:
        for number in range(places):
            copy = Path(scratch) / str(number)
            shutil.copytree(data, copy)
            if killed:
                boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
                (copy / "running").write_text(f"{boot} serving")
            content = bytearray((copy / file).read_bytes())
            at = chance.randrange(len(content))
            if pages:
                at -= at % PAGE
                content[at : at + PAGE] = bytes(PAGE)
            else:
                content[at] ^= 1 << chance.randrange(8)
            (copy / file).write_bytes(content)
            yield at, judge(truth, copy, looker)
            shutil.rmtree(copy)
    looker.end()


def main() -> int:
    """Look at one folder, or damage many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="used by itself")
    parser.add_argument("--files", nargs="*", default=FILES)
    parser.add_argument("--bits", type=int, default=200)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.serve:
        serve()
        return 0
    bad = 0
    with tempfile.TemporaryDirectory(prefix="memd-flips-", dir=memory_folder()) as scratch:
        data = make(Path(scratch) / "home")
        truth = look(data)
        for file in chosen.files:
            for killed in (False, True):
                for pages, places in ((False, chosen.bits), (True, chosen.pages)):
                    found = Counter[str]()
                    for at, what in damage(data, truth, file, places, Random(chosen.seed), pages=pages, killed=killed):
                        found[what.split(":")[0].split(" ")[0]] += 1
                        if what.startswith(("wrong", "died")):
                            bad += 1
                            print(f"  {file} at {at}: {what}", flush=True)
                    kind, end = "pages" if pages else "bits", "killed" if killed else "clean"
                    print(f"{file} {kind}, {end} stop: {dict(found)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
