"""Route: choose kind, pool, key, value and volatility (R1, R8). Statements about the project go to its pool, those of
the user about themselves, and all without a project, to the personal pool (P-17); a pool that was named decides."""

from __future__ import annotations

import msgspec

from ..protocol.record import OPEN_QUESTION, Kind, Volatility
from .batch import PERSONAL, Batch, Candidate, chosen_pool, step
from .keys import edge_key, exact_key

STAGE = "route"

_OWN_TYPES = frozenset({"identity", "preference"})
_STABLE = frozenset({"identity", "preference", "convention", "lesson"})
_SITUATIONAL = frozenset({"event", "commitment"})


def route(batch: Batch) -> Batch:
    """The batch with every candidate's kind, pool, key and volatility."""
    return msgspec.structs.replace(batch, candidates=tuple(map(_routed, batch.candidates)))


def _routed(candidate: Candidate) -> Candidate:
    kind, key, value = _kind(candidate)
    chosen = chosen_pool(candidate)
    pool = chosen or _pool(candidate)
    owner = "personal" if pool == PERSONAL else "agent's own" if pool.startswith("agent/") else "project"
    volatility: Volatility = (
        "stable" if candidate.type in _STABLE else "situational" if candidate.type in _SITUATIONAL else "semi"
    )
    what = f"{kind} in the {owner} pool{', as it was asked for' if chosen else ''}{f', key {key}' if key else ''}"
    return step(candidate, STAGE, what, kind=kind, pool=pool, key=key, value=value, volatility=volatility)


def _kind(candidate: Candidate) -> tuple[Kind, str, str]:
    if candidate.language != "en" or candidate.type in {"event", OPEN_QUESTION}:
        return "note", "", ""
    if candidate.trust == "user" and (exact := exact_key(candidate.quote)):
        return "fact", exact.key, exact.value
    if candidate.trust == "user" and (edge := edge_key(candidate.quote, candidate.subject)):
        return "edge", edge, ""
    return ("procedure" if candidate.type == "procedure" else "note"), "", ""


def _pool(candidate: Candidate) -> str:
    project = candidate.item.project
    if candidate.item.agent and candidate.trust == "assistant":
        return candidate.item.agent  # what an agent says of its own work is its own memory (P5)
    if not project:
        return PERSONAL
    if candidate.trust != "user":
        return project
    if candidate.about_user is not None:
        return PERSONAL if candidate.about_user >= 0.5 else project
    return PERSONAL if candidate.type in _OWN_TYPES and candidate.language == "en" else project
