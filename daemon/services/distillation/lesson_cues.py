"""What a lesson or a convention of an agent's session teaches by the keywords of the agent's perspectives (O4)."""

from __future__ import annotations

import msgspec

from ....protocol.record import Record
from ....protocol.scope import concern_keywords, concern_name
from ....stages.words import tokens
from ...projections.placement import agent_pool
from ...projections.stores import Stores

TAUGHT = frozenset(("lesson", "convention"))
"""Types of the records that teach."""


def taught(stores: Stores, record: Record) -> Record:
    """Return a new record with its own words as the learning of each perspective of its agent whose keywords it has.

    The agent is that of the record's session. A record that teaches already, or may instruct an agent, stays as it is.
    """
    if record.type not in TAUGHT or record.learnings or "injection" in record.flags:
        return record
    session = stores.sources.session(record.provenance.source)
    pool = stores.sources.pool(agent_pool(session.opened.origin.agent)) if session else None
    if pool is None or not pool.perspectives:
        return record
    words = _stems(record.content)
    names = [concern_name(concern) for concern in pool.perspectives if _is_about(words, concern)]
    return msgspec.structs.replace(record, learnings=dict.fromkeys(names, record.description))


def _is_about(words: frozenset[str], concern: str) -> bool:
    keywords = (concern_name(concern), *concern_keywords(concern))
    return any(stems and stems <= words for stems in map(_stems, keywords))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.kind != "mark")
