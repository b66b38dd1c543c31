"""JSON documents with one value replaced by one that no honest program writes."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

TOO_LARGE = 10**40
INFINITE = "@infinite"
"""Stands for the number 1e999, which Python's JSON can't write."""

VALUES: tuple[Any, ...] = (
    *("", "x" * 600, "é" * 300, "\0", "a\0b", "\ud800", "\u202e\x1b[31m", "../../etc"),
    *("not a time", "20261231", "2026-11-23T17:00:39", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00"),
    *(None, True, -1, 0, 1.5, -0.5, 1e308, -1e308, 2**53 + 1, 2**62, -(2**62), 2**63, TOO_LARGE, INFINITE),
    *([], {}, [""], [None], [[]], {"": ""}, ["x" * 600]),
)


def mutations(document: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the document with each value of it replaced by each of `VALUES`, with the path of that value."""
    for path in _paths(document):
        for value in VALUES if path else ():
            changed = deepcopy(document)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            yield path, changed


def encoded(document: Any) -> str:
    """Return the document as JSON."""
    import json

    return json.dumps(document).replace(f'"{INFINITE}"', "1e999")


def _paths(document: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield above
    for step in document if isinstance(document, dict) else range(len(document) if isinstance(document, list) else 0):
        yield from _paths(document[step], (*above, step))
