"""Typed subscriptions: a publisher names the event, listeners subscribe when they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

E = TypeVar("E")


class Topic(Generic[E]):
    """One kind of event. Listeners are called on the publisher's thread, in the order in which they subscribed."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[E], object]] = []

    def subscribe(self, listener: Callable[[E], object]) -> None:
        self._listeners.append(listener)

    def publish(self, event: E) -> None:
        """Call every listener. Raises what the first failing one raises."""
        for listener in self._listeners:
            listener(event)


class AnswerUsed(NamedTuple):
    """A session used records of an answer that recall gave. Published on the write thread. `answer`: its name."""

    answer: str
    ids: tuple[str, ...]


class CapturesCommitted(NamedTuple):
    """Captures became durable. Published on the write thread.

    `documents`: each document with whether its session is live and continues.
    `urgent`: a session ended, or the user asked to remember something.
    `closed`: the documents whose session has ended in the journal.
    """

    documents: Mapping[str, bool]
    urgent: bool
    closed: frozenset[str] = frozenset()

    @property
    def live(self) -> list[str]:
        """The documents whose live session continues."""
        return [document for document, continues in self.documents.items() if continues]

    @property
    def ended(self) -> list[str]:
        """The other documents."""
        return [document for document, continues in self.documents.items() if not continues]
