"""Runs parts of the benchmark by name, one after the other: one explicit table of groups.

Comes in: names (`store`, `store/replay`), or none for all. Goes out: parts as they are done, or InvalidRequest with the
names there are. Invariant: a part that fails is told as failed, and the others run all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from . import agents, forget, gate, latency, machine, prompt, soak, store, years
from .part import DataMissing, Measure, Part, Setting
from .peers import run as peers
from .read import ablation, abstention, pipeline, relevance, weights
from .read import languages as tongues
from .read import speed as read_speed
from .write import identity, languages, reconcile, secrets, sets, sources, speed

GROUPS: dict[str, dict[str, Measure]] = {
    "latency": {
        "recall": latency.recall,
        "profile": latency.profile,
        "remember": latency.remember,
        "connect": latency.connect,
    },
    "store": {
        "captures": store.captures,
        "journal": store.journal_growth,
        "disk": store.on_disk,
        "replay": store.replay,
        "years": years.ten_years,
    },
    "time": {
        "sleep": years.sleep,
        "forgetting": years.forgetting,
    },
    "write": {
        "speed": speed.imported,
        "hot": speed.hot,
        "idle": speed.idle,
        "again": sets.again,
        "order": sets.any_order,
        "live": sources.live_then_import,
        "quotes": sources.quotes,
        "echoes": sources.echoes,
        "secrets": secrets.secrets,
        "invisible": secrets.invisible,
        "identity": identity.identity,
        "languages": languages.languages,
        "reconcile": reconcile.reconcile,
    },
    "read": {
        "relevance": relevance.relevance,
        "pipeline": pipeline.pipeline,
        "weights": weights.weights,
        "ablation": ablation.ablation,
        "abstention": abstention.abstention,
        "languages": tongues.languages,
        "speed": read_speed.speed,
    },
    "forget": {
        "hard": forget.hard,
    },
    "agents": {
        "hook": agents.hook,
        "reading-on": agents.reading_on,
        "mcp": agents.server,
        "prompt": prompt.prompt,
    },
    "soak": {
        "mixed": soak.mixed,
    },
    "gate": {
        "records": gate.gate,
    },
    "peers": peers.measures(),
}
"""Every part. A new one is a function `(Setting) -> Part` in a module of this room, and a line here. Modules of this
room import at their head only what every command may load; numpy and the like are imported where they are used."""

ALL = "all"


def chosen(names: Sequence[str]) -> list[tuple[str, str]]:
    """Group and part of each name, checked, each once; all of them if none is given. Raises InvalidRequest."""
    every = [(group, part) for group, parts in GROUPS.items() for part in parts]
    found: dict[tuple[str, str], None] = {}
    for name in names or (ALL,):
        group, _, part = name.partition("/")
        matching = [each for each in every if group in (ALL, each[0]) and part in ("", each[1])]
        if not matching:
            known = GROUPS.get(group) or [*GROUPS, ALL]
            raise InvalidRequest(f"no measurement {name!r}", hint=f"there are: {', '.join(known)}")
        found.update(dict.fromkeys(matching))
    return list(found)


def run(wanted: Sequence[tuple[str, str]], setting: Setting) -> Iterator[Part]:
    """Runs what `chosen` gave, one after the other, never at once."""
    for group, name in wanted:
        setting.tell(f"{group}/{name}")
        measure = GROUPS[group][name]
        what = (measure.__doc__ or "").strip().partition("\n")[0]
        begin, at, before = time.perf_counter(), machine.now(), machine.load()
        try:
            part = measure(setting)
        except DataMissing as error:
            part = Part(skipped=f"{error.message} ({error.hint})")
        except MemdError as error:
            part = Part(failed=f"{error.message} ({error.hint})" if error.hint else error.message)
        seconds = time.perf_counter() - begin
        yield msgspec.structs.replace(
            part,
            group=group,
            name=name,
            what=what,
            seconds=round(seconds, 1),
            quick=setting.quick,
            at=at,
            version=machine.version(),
            load=(before, machine.load()),
        )
