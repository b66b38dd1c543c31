"""The plan that an agent keeps by a tool of its host: how it stands is told once, at the session's end.

Invariants: one turn of a document tells what is open, and one the whole plan; a later end of the session replaces both,
the first by an empty text if nothing is open any more; a plan that the agent did not change for `MOST_TURNS` of the
user's turns is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.event import PLAN_ITEMS, AnyEvent, PlanItem, Planned, PlanStatus, Wrote

TURN, PLAN = "todo-list", "plan"
MOST_TURNS = 2
MOST_ITEMS = 50
LONGEST_ITEM = 500  # characters
LONGEST_PLANNED = 160  # characters
_STATUSES: dict[str, PlanStatus] = {
    "in_progress": "begun",
    "completed": "done",
    "cancelled": "dropped",
    "deleted": "dropped",
}
_OPEN = frozenset({"open", "begun"})


class TodoList:
    """The items of a session's plan while its lines are read, by id."""

    def __init__(self) -> None:
        self._items: dict[str, tuple[str, PlanStatus]] = {}
        self._changed_at = ""
        self._turns = 0

    @property
    def is_open(self) -> bool:
        """Whether an item is open in a plan that the agent did not leave behind."""
        return self._turns <= MOST_TURNS and any(status in _OPEN for _, status in self._items.values())

    def replace(self, at: str, items: Iterable[tuple[str, str]]) -> None:
        """Take a whole list: the text and the status of each item."""
        self._items.clear()
        for number, (text, status) in enumerate(items):
            self.add(at, str(number), text, status)
        self._change(at)

    def add(self, at: str, id_: str, text: str, status: str = "pending") -> None:
        """Take a new item."""
        words = " ".join(text.split())[:LONGEST_ITEM]
        if words and len(self._items) < MOST_ITEMS:
            self._items[id_] = words, _STATUSES.get(status, "open")
        self._change(at)

    def set_status(self, at: str, id_: str, status: str) -> None:
        """Take the new status of an item."""
        if id_ in self._items:
            self._items[id_] = self._items[id_][0], _STATUSES.get(status, "open")
        self._change(at)

    def pass_turn(self) -> None:
        """Count a turn of the user."""
        self._turns += 1

    def left(self, first: str) -> tuple[AnyEvent, ...]:
        """Return the events that tell what is open and the plan, none for a session without one. `first`: the session's
        begin."""
        if not self._changed_at:
            return ()
        at = self._changed_at if self.is_open else first  # the same event each time that nothing is open
        text = "\n".join(f"- {item}" for item, status in self._items.values() if status in _OPEN and self.is_open)
        opened = Wrote(turn=TURN, at=at, text=text, path="todo list", form="open")
        items = [PlanItem(text[:LONGEST_PLANNED], status) for text, status in self._items.values()]
        return opened, Planned(turn=PLAN, at=self._changed_at, items=tuple(items[-PLAN_ITEMS:]))

    def _change(self, at: str) -> None:
        self._changed_at, self._turns = at, 0
