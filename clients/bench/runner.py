"""Runs parts of the benchmark by name, one after the other. A part that fails does not end the run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ...protocol.errors import InvalidRequest, MemdError
from . import (
    agent_choice,
    client_costs,
    continuity,
    documents,
    everyday,
    gate,
    hard_forgetting,
    hub_costs,
    languages,
    latency,
    learning,
    load,
    multilingual,
    panel_speed,
    peers,
    perfect_reader,
    planted_rules,
    repeated_work,
    report,
    share_daemons,
    soak,
    storage,
    taught_agents,
    token_cost,
)
from .measurement import BenchOptions, DataMissing, Measure, PartResult
from .read import beliefs, crossover, locomo_pipeline, ranking, recall_speed
from .write import (
    capture_sources,
    injection_detection,
    pool_identity,
    reconciliation,
    remote_reader,
    rule_ablation,
    secret_detection,
    write_speed,
)

GROUPS: dict[str, Mapping[str, Measure]] = {
    "latency": {
        "recall": latency.recall,
        "profile": latency.profile,
        "remember": latency.remember,
        "connect": latency.connect,
    },
    "store": {
        "captures": storage.captures,
        "journal": storage.journal_growth,
        "disk": storage.on_disk,
        "replay": storage.replay,
        "years": storage.ten_years,
    },
    "time": {"sleep": storage.sleep, "forgetting": storage.forgetting},
    "write": {
        "speed": write_speed.imported,
        "hot": write_speed.hot,
        "idle": write_speed.idle,
        "again": reconciliation.again,
        "order": reconciliation.any_order,
        "live": capture_sources.live_then_import,
        "quotes": capture_sources.quotes,
        "echoes": capture_sources.echoes,
        "secrets": secret_detection.secrets,
        "injection": injection_detection.injection,
        "invisible": secret_detection.invisible,
        "identity": pool_identity.identity,
        "languages": multilingual.captured,
        "reconcile": reconciliation.reconcile,
        "ablation": rule_ablation.ablation,
        "remote": remote_reader.remote,
    },
    "read": {
        "relevance": ranking.relevance,
        "pipeline": locomo_pipeline.pipeline,
        "crossover": crossover.crossover,
        "weights": ranking.weights,
        "ablation": ranking.ablation,
        "abstention": ranking.abstention,
        "languages": multilingual.recalled,
        "beliefs": beliefs.beliefs,
        "speed": recall_speed.speed,
    },
    "forget": {"hard": hard_forgetting.hard},
    "agents": {
        "hook": client_costs.hook,
        "tokens": token_cost.tokens,
        "continuity": continuity.continuity,
        "reading-on": client_costs.reading_on,
        "mcp": client_costs.server,
        "prompt": client_costs.prompt,
        "panel": panel_speed.panel,
    },
    "share": {
        "daily": share_daemons.daily,
        "sending": share_daemons.sending,
        "arrival": share_daemons.arrival,
        "meanwhile": share_daemons.meanwhile,
        "first": share_daemons.first,
    },
    "hub": {"search": hub_costs.search, "lines": hub_costs.lines, "gateways": hub_costs.gateways},
    "soak": {"mixed": soak.mixed},
    "faults": {"load": load.load},
    "learn": {
        "sessions": learning.learn,
        "perfect": perfect_reader.perfect,
        "rules": planted_rules.rules,
        "skills": repeated_work.procedures,
        "skill-edits": repeated_work.edits,
        "course": taught_agents.course,
        "agents": agent_choice.agents,
    },
    "everyday": {"lines": everyday.everyday},
    "languages": {"sessions": languages.sessions},
    "documents": {"questions": documents.documents},
    "gate": {"records": gate.gate},
    "peers": peers.measures(),
}
"""All parts. Modules named here import at their head only packages that every command may load; numpy, pyzmq and the
like are imported in the functions that use them."""

ALL = "all"


def chosen(names: Sequence[str]) -> list[tuple[str, str]]:
    """Group and part of each name, each once; all of them if no name is given. Raises InvalidRequest."""
    every = [(group, part) for group, parts in GROUPS.items() for part in parts]
    wanted: dict[tuple[str, str], None] = {}
    for name in names or (ALL,):
        group, _, part = name.partition("/")
        matching = [pair for pair in every if group in (ALL, pair[0]) and part in ("", pair[1])]
        if not matching:
            known = GROUPS.get(group) or [*GROUPS, ALL]
            raise InvalidRequest(f"no measurement {name!r}", hint=f"there are: {', '.join(known)}")
        wanted.update(dict.fromkeys(matching))
    return list(wanted)


def run(wanted: Sequence[tuple[str, str]], options: BenchOptions) -> Iterator[PartResult]:
    """Run the parts that `chosen` gave, one after the other."""
    for group, name in wanted:
        options.progress(f"{group}/{name}")
        measure = GROUPS[group][name]
        begin, at, load = time.perf_counter(), datetime.now(UTC), os.getloadavg()[0]
        try:
            result = measure(options)
        except DataMissing as error:
            result = PartResult(skipped=f"{error.message} ({error.hint})")
        except MemdError as error:
            result = PartResult(failed=f"{error.message} ({error.hint})" if error.hint else error.message)
        yield msgspec.structs.replace(
            result,
            group=group,
            name=name,
            what=(measure.__doc__ or "").strip().partition("\n")[0],
            seconds=round(time.perf_counter() - begin, 1),
            quick=options.quick,
            at=at.strftime("%Y-%m-%dT%H:%MZ"),
            version=report.version(),
            load=(round(load, 1), round(os.getloadavg()[0], 1)),
        )
