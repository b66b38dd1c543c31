"""Divides a document into chunks that are read at once. No turn is divided, so no clause is cut: clients send no turn
that is longer than a chunk."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol.event import Captured, Wrote, text
from ....protocol.ingestion import CHUNK_TOKENS
from ..token_estimate import tokens


def chunks(captures: Iterable[Captured], most: int = CHUNK_TOKENS) -> list[tuple[Captured, ...]]:
    """Return the captures in their order, in groups of at most `most` tokens. A group that is half full ends where
    another section of the document begins."""
    groups: list[tuple[Captured, ...]] = []
    group: list[Captured] = []
    size, section = 0, ""
    for captured in captures:
        length, begins = tokens(text(captured.event)), _section(captured)
        if group and (size + length > most or (begins != section and size > most / 2)):
            groups.append(tuple(group))
            group, size = [], 0
        group.append(captured)
        size, section = size + length, begins
    return [*groups, tuple(group)] if group else groups


def _section(captured: Captured) -> str:
    """Return the outermost headings above a turn."""
    path = captured.event.path if isinstance(captured.event, Wrote) else ""
    return " > ".join(path.partition("#")[2].split(" > ")[:2])
