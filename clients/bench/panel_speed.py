"""What the panel costs: bytes of a page, time to its first contentful paint, time of a frame of its map, memory of its
server; in a real Chromium.

The memory is made up: records of some pools that name things of a fixed list, so a map has topics and neighbours.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...protocol.operation import PoolOpened
from ...protocol.record import Provenance, Record, Span, record_id
from ...protocol.reply import ExportedRecord
from ...protocol.request import ImportRecords
from ..python.client import Client
from .measurement import BenchOptions, DataMissing, Figure, PartResult, at_most, percentile
from .temporary_daemon import empty_home, running

if TYPE_CHECKING:
    from playwright.sync_api import Page

RECORDS, FEWER = 50_000, 5_000
MARKS = 300
FRAMES = 90
PAINTS = 5
FIRST_LOAD, REQUEST, SERVER_BYTES = 128_000, 64_000, 60_000_000
SCREENS = ("/", "/?view=text", "/memories", "/memories?q=Which+pump+feeds+the+kettle", "/map", "/fading", "/inbox",
           "/triage", "/activity", "/readers", "/settings")  # fmt: skip
_AT = "2026-03-04T09:00:00+00:00"
EMPTY = "data:text/html,<p>empty"
_THINGS = [f"{first}{last}" for first in ("Copper", "Linen", "Walnut", "Basalt", "Amber", "Juniper", "Cobalt", "Maple")
           for last in ("Kettle", "Pump", "Ledger", "Gauge", "Parser", "Router", "Cache", "Index")]  # fmt: skip

_FRAME_TIMES = """async (count) => {
  const target = document.querySelector('#map svg') ?? document.body;
  const times = [];
  let before = await new Promise(requestAnimationFrame);
  for (let n = 0; n < count; n += 1) {
    target.style.opacity = n % 2 ? 1 : 0.99;
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
  }
  return times;
}"""


_PAINTED = """() => new Promise((resolve) => {
  const told = (list) => {
    const entry = list.getEntriesByName('first-contentful-paint')[0];
    if (entry) resolve(entry.startTime);
  };
  new PerformanceObserver(told).observe({ type: 'paint', buffered: true });
})"""


def panel(options: BenchOptions) -> PartResult:
    """Bytes of the first load and of the largest answer; the first paint and a frame of the map beside an empty page's;
    the server."""
    number = FEWER if options.quick else RECORDS
    chromium = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), "")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise DataMissing("playwright is not installed", hint="pip install 'memd[test]'") from error
    if not chromium:
        raise DataMissing("there is no Chromium", hint="apt install chromium")
    with empty_home() as (home, environment), running(home, environment) as client:
        _fill(client, number, options)
        with _served(environment) as (process, link), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            empty = _frames(page, EMPTY)
            first, largest, where = _weighed(page, link)
            painted = _first_paints(page, link.partition("/#")[0] + "/")
            empty_painted = _first_paints(page, EMPTY)
            drawn = _map_frames(page, link)
            memory = _resident(process.pid)
            browser.close()
    marks, frames = drawn
    return PartResult(
        (
            Figure("first load", first / 1000, "kB", target=at_most(FIRST_LOAD / 1000)),
            Figure("largest answer", largest / 1000, "kB", samples=len(SCREENS), target=at_most(REQUEST / 1000)),
            Figure(
                "first contentful paint p50",
                percentile(painted, 50),
                "ms",
                percentile(empty_painted, 50),
                len(painted),
            ),
            Figure(
                "a frame of the map p50",
                percentile(frames, 50),
                "ms",
                percentile(empty, 50),
                len(frames),
                at_most(2, times=True),
            ),
            Figure("memory of the server", memory / 1e6, "MB", target=at_most(SERVER_BYTES / 1e6)),
        ),
        notes=(f"{number:,} records; the largest answer is that of {where}; {marks} marks on the map",),
        shows_not="a browser with a graphics processor",
    )


def _fill(client: Client, number: int, options: BenchOptions) -> None:
    pools = [PoolOpened(pool=f"project/{n:016x}", title=f"bench {n}") for n in range(4)]
    done = 0
    records = _records(number, [pool.pool for pool in pools])
    while some := tuple(islice(records, 500)):
        exported = tuple(ExportedRecord(record=record) for record in some)
        client.import_records(ImportRecords(records=exported, pools=tuple(pools)))
        done += len(some)
        options.progress(f"agents/panel: {done:,} of {number:,} records")


def _records(number: int, pools: Sequence[str]) -> Iterator[Record]:
    for n in range(number):
        one, other = _THINGS[n % len(_THINGS)], _THINGS[(n * 7 + n // 64) % len(_THINGS)]
        text = f"The {one} feeds the {other} number {n}, because the shed has no other line."
        pool = pools[n % len(pools)]
        document = f"bench:{n // 1000}"
        span = Span(document, f"{n}", 0, len(text))
        source = Provenance(author="user", source=document, trust="user", spans=(span,), quote=text, said_at=_AT)
        yield Record(
            id=record_id(pool, document, f"{n}", 0, 0),
            pool=pool,
            kind="note",
            content=text,
            description=text,
            provenance=source,
            tags=("fact",),
            valid_from=_AT,
        )


@contextlib.contextmanager
def _served(environment: Mapping[str, str]) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A panel's process and its link."""
    command = [sys.executable, "-P", "-m", "memd.clients.cli.main", "panel", "--no-browser", "--json"]
    with subprocess.Popen(command, env=dict(environment), cwd="/", stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, json.loads(process.stdout.readline())["data"]["link"]
        finally:
            process.terminate()


def _weighed(page: Page, link: str) -> tuple[int, int, str]:
    """Return the bytes of the first load, of the largest answer with data, and its address."""
    sizes: dict[str, int] = {}
    page.on("response", lambda answer: sizes.update({answer.url: int(answer.headers.get("content-length", 0))}))
    page.goto(link)
    page.wait_for_selector("#view .top")
    first = sum(sizes.values())
    origin = link.partition("/#")[0]
    for path in SCREENS:
        page.goto(origin + path)
        page.wait_for_selector("#view .top, #view [role=alert]", timeout=60_000)
    answers = {url: size for url, size in sizes.items() if "/static/" not in url}
    largest = max(answers, key=answers.__getitem__)
    return first, answers[largest], largest.removeprefix(origin)


def _frames(page: Page, address: str) -> list[float]:
    page.goto(address)
    return page.evaluate(_FRAME_TIMES, FRAMES)


def _first_paints(page: Page, address: str) -> list[float]:
    """Return milliseconds from the start of a navigation to its first contentful paint, of a page opened several times;
    the first content of a page of the panel is its navigation, before any data."""
    times: list[float] = []
    for _ in range(PAINTS):
        page.goto("about:blank")
        page.goto(address)
        times.append(page.evaluate(_PAINTED))
    return times


def _map_frames(page: Page, link: str) -> tuple[int, list[float]]:
    """Return the marks of the map around a thing, and milliseconds of each frame in which all are painted again."""
    origin = link.partition("/#")[0]
    page.goto(f"{origin}/map?around={_THINGS[0]}&hops=2")
    page.wait_for_selector("#map svg", timeout=60_000)
    return page.locator("#map a").count(), page.evaluate(_FRAME_TIMES, FRAMES)


def _resident(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
