"""The todo list that an agent keeps by a tool of its host: what it leaves open is told once, at the session's end.

Invariants: one turn of a document tells the list, and a later end of the session replaces it, by an empty text if
nothing is open any more; a list that the agent did not change for `MOST_TURNS` of the user's turns is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.event import AnyEvent, Wrote

TURN = "todo-list"
MOST_TURNS = 2
MOST_ITEMS = 50
LONGEST_ITEM = 500  # characters
_ENDED = frozenset({"completed", "cancelled", "deleted"})


class TodoList:
    """The open items of a session's list while its lines are read, by id."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self._changed_at = ""
        self._turns = 0

    def replace(self, at: str, items: Iterable[tuple[str, str]]) -> None:
        """Take a whole list: the text and the status of each item."""
        self.items.clear()
        for number, (text, status) in enumerate(items):
            self.add(at, str(number), text, status)
        self._change(at)

    def add(self, at: str, id_: str, text: str, status: str = "pending") -> None:
        """Take a new item."""
        words = " ".join(text.split())[:LONGEST_ITEM]
        if words and status not in _ENDED and len(self.items) < MOST_ITEMS:
            self.items[id_] = words
        self._change(at)

    def set_status(self, at: str, id_: str, status: str) -> None:
        """Take the new status of an item."""
        if status in _ENDED:
            self.items.pop(id_, None)
        self._change(at)

    def pass_turn(self) -> None:
        """Count a turn of the user."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            self.items.clear()

    def left(self, first: str) -> tuple[AnyEvent, ...]:
        """Return the event that tells what is open, none for a session without a list. `first`: the session's begin."""
        if not self._changed_at:
            return ()
        at = self._changed_at if self.items else first  # the same event each time that nothing is open
        text = "\n".join(f"- {item}" for item in self.items.values())
        return (Wrote(turn=TURN, at=at, text=text, path="todo list", form="open"),)

    def _change(self, at: str) -> None:
        self._changed_at, self._turns = at, 0
