"""Memories that an open proposal names because another one contradicts them, and what accepting it would lose (T13)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...protocol.corrections import Waiting
from .screen import Panel

MOST = 1_000
"""Open proposals that one reply has; the reply begins with the newest."""

_WORD = re.compile(r"\w+")


class Dispute(NamedTuple):
    """A memory in an open proposal: the proposal's id, and the text of the other memory."""

    proposal: str
    other: str


async def disputes(panel: Panel) -> dict[str, Dispute]:
    """Return the memories that open proposals call contradictory, by id; none for the holder of a pass."""
    if panel.client.has_pass:
        return {}
    return by_memory((await panel.client.inbox(limit=MOST)).proposals)


def by_memory(proposals: Iterable[Waiting]) -> dict[str, Dispute]:
    """Return both memories of each contradiction with the proposal, the newest one where there are several."""
    named: dict[str, Dispute] = {}
    for proposal in proposals:
        if proposal.what == "conflict":
            named.setdefault(proposal.record, Dispute(proposal.id, proposal.against_line))
            named.setdefault(proposal.against, Dispute(proposal.id, proposal.line))
    return named


def loses_words(old: str, new: str) -> bool:
    """Return whether the old text has a word that the new one lacks, in any case."""
    return not _words(old) <= _words(new)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
