"""Session families: hosts copy the turns of a session into the file of a fork or a resumed session, with their times.
The turns keep their names, or at least the tool calls do."""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.event import AnyEvent, Captured, Said, ToolCalled
from ...projections.sources import own_family
from ...projections.stores import Stores

FIRST_TURNS = 2
"""First turns of the user, and first tool calls, by which a session is recognised as a copy of another."""


class SessionFamilies:
    """Finds the family of a new session. Called on the write thread alone."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._by_host: dict[str, dict[str, str]] | None = None
        """By host the documents that were opened, each with its family; a forgotten one has no turns to find."""

    def of(self, document: str, host: str, captures: Sequence[Captured]) -> str:
        """Return the family of an earlier session of the host with the same first turns, "" for a conversation of its
        own; note the new session."""
        if self._by_host is None:
            self._by_host = {}
            for entry in self._stores.sources.all_sessions():
                self._by_host.setdefault(entry.opened.origin.host, {})[entry.opened.document] = entry.family
        families = self._by_host.setdefault(host, {})
        found = self._found(families, captures)
        families[document] = found or own_family(document)
        return found

    def _found(self, families: dict[str, str], captures: Sequence[Captured]) -> str:
        documents = list(families)
        for event in _first(captures):
            for document in self._stores.archive.holders(documents, event.turn):
                earlier = self._stores.archive.turn(document, event.turn)
                if earlier is not None and earlier.event.at == event.at:
                    return families[document]
        return ""


def _first(captures: Sequence[Captured]) -> list[AnyEvent]:
    """Return the events by which a session is recognised."""
    events = [captured.event for captured in captures]
    said = [event for event in events if isinstance(event, Said) and event.role == "user"]
    return [*said[:FIRST_TURNS], *[event for event in events if isinstance(event, ToolCalled)][:FIRST_TURNS]]
