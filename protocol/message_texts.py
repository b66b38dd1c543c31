"""The texts of a message or an operation, found through its types, so that a new field is never left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_origin

import msgspec

T = TypeVar("T")
Change = Callable[[type, str, str], str]
"""Returns the text that replaces a text; called with the type and the name of the field that holds it."""


def texts_of(value: object) -> Iterator[tuple[str, str]]:
    """Yield each text of a value with the name of its field."""
    texts: list[tuple[str, str]] = []

    def note(owner: type, name: str, words: str) -> str:
        texts.append((name, words))
        return words

    rewritten(value, note)
    yield from texts


def rewritten(value: T, change: Change, owner: type = object, name: str = "") -> T:
    """Return a value with `change(owner, field, text)` for each text of it; the same object if nothing changed."""
    after: Any = value
    if isinstance(value, str):
        after = change(owner, name, value)
    elif isinstance(value, msgspec.Struct):
        after = _rewritten_fields(value, change)
    elif isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        changed = [rewritten(item, change, owner, name) for item in items]
        if any(new is not old for new, old in zip(changed, items, strict=True)):
            after = changed if isinstance(value, list) else tuple(changed)
    elif isinstance(value, dict):
        rows = cast("Mapping[Any, Any]", value)
        table: Mapping[Any, Any] = {
            rewritten(key, change, owner, name): rewritten(row, change, owner, name) for key, row in rows.items()
        }
        if table != rows:
            after = table
    return cast("T", after)


def _rewritten_fields(value: msgspec.Struct, change: Change) -> msgspec.Struct:
    owner, changes = type(value), dict[str, Any]()
    for field in fields_with_text(owner):
        before = getattr(value, field)
        if (after := rewritten(before, change, owner, field)) is not before:
            changes[field] = after
    return msgspec.structs.replace(value, **changes) if changes else value


@cache
def fields_with_text(owner: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a type that may hold text; a number, a truth value and one of a closed list can't."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(owner)
        if field.type not in (int, float, bool) and get_origin(field.type) is not Literal
    )
