"""The negotiation about an input with many items: memd takes nothing until the user decides (W12)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from ...protocol.errors import InvalidRequest
from ...protocol.ingestion import ITEMS_LIMIT, WeighedBy
from .input_text import InputItem, InputText

OPTIONS = ("choose", "top", "all", "by_category")
SHOWN = 100
"""Items that a negotiation names."""

OTHER = "other"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")

Weigh = Callable[[Sequence[str], WeighedBy], list[str]]
"""Returns the worth or the topic of each of some texts."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What the user decides: numbers of items such as "1,4-9", the `top` ones by worth, all, or categories, one after
    another; `categories` are only some of them. Nothing is set before the user decides."""

    choose: str = ""
    top: int = 0
    all: bool = False
    by_category: bool = False
    categories: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise InvalidRequest if the user made several decisions, or named a negative number of items."""
        given = bool(self.choose), bool(self.top), self.all, self.by_category or bool(self.categories)
        if sum(given) > 1:
            raise InvalidRequest("several decisions at once", hint="give one of: choose, top, all, by category")
        if self.top < 0:
            raise InvalidRequest(f"{self.top} is no number of items", hint="for example --top 10")

    @property
    def is_made(self) -> bool:
        """Whether the user decided."""
        return bool(self.choose or self.top or self.all or self.by_category or self.categories)


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What taking everything costs: parts that memd stores and reads, and about how many tokens they have."""

    parts: int
    tokens: int


class Negotiation(msgspec.Struct, frozen=True, kw_only=True):
    """An input with many items, of which nothing is taken yet. `items`: their number; `of`: what they are; `kinds`: the
    number in each category; `labels`: what the first ones are called."""

    file: str
    items: int
    of: str
    kinds: dict[str, int]
    options: tuple[str, ...]
    cost: Cost
    labels: tuple[str, ...] = ()


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an input that is one document: the places of its passages. `category`: its name, "" for the document of
    the whole input; `is_whole`: it has all passages."""

    passages: tuple[int, ...]
    category: str = ""
    is_whole: bool = False


def has_many(found: InputText) -> bool:
    """Whether memd asks before it takes an input in."""
    return len(found.items.items) > ITEMS_LIMIT


def negotiation(file: str, found: InputText, weigh: Weigh) -> Negotiation:
    """Return what the user may decide."""
    items = found.items.items
    characters = sum(len(passage.text) for passage in found.passages)
    return Negotiation(
        file=file,
        items=len(items),
        of=found.items.of,
        kinds=dict(Counter(categories(found, weigh)).most_common()),
        options=OPTIONS,
        cost=Cost(parts=len(found.passages), tokens=round(characters / 3.3)),
        labels=tuple(item.label for item in items[:SHOWN]),
    )


def categories(found: InputText, weigh: Weigh) -> list[str]:
    """Return the category of each item: its label, or its topic if most items have none."""
    items = found.items.items
    labelled = [item.category for item in items]
    if sum(map(bool, labelled)) * 2 >= len(items):
        return [category or OTHER for category in labelled]
    return [topic or OTHER for topic in weigh([item_text(found, item) for item in items], "topic")]


def item_text(found: InputText, item: InputItem) -> str:
    """Return the words of an item."""
    return "\n".join(found.passages[place].text for place in item.passages)


def shares(found: InputText, decision: Choice, weigh: Weigh) -> list[Share]:
    """Return the documents that a decision takes, in order. Raises InvalidRequest."""
    items = found.items.items
    whole = Share(passages=tuple(range(len(found.passages))), is_whole=True)
    if decision.choose:
        return [_share([items[number] for number in chosen_numbers(decision.choose, len(items))])]
    if decision.top and decision.top < len(items):
        worths = [float(worth) for worth in weigh([item_text(found, item) for item in items], "worth")]
        best = sorted(range(len(items)), key=lambda place: (-worths[place], place))[: decision.top]
        return [_share([items[place] for place in sorted(best)])]
    if decision.by_category or decision.categories:
        return _by_category(found, decision.categories, weigh)
    return [whole]


def _by_category(found: InputText, wanted: Sequence[str], weigh: Weigh) -> list[Share]:
    named = categories(found, weigh)
    known = list(dict(Counter(named).most_common()))
    folded = {name.casefold(): name for name in known}
    missing = [name for name in wanted if name.casefold() not in folded]
    if missing or not known:
        listed = ", ".join(known[:20]) or "it has no items"
        raise InvalidRequest(f"there is no category {', '.join(missing)!r}", hint=f"choose from: {listed}")
    taken = [folded[name.casefold()] for name in dict.fromkeys(wanted)] or known
    pairs = list(zip(named, found.items.items, strict=True))
    return [
        msgspec.structs.replace(_share([item for own, item in pairs if own == name]), category=name) for name in taken
    ]


def _share(items: Sequence[InputItem]) -> Share:
    return Share(passages=tuple(dict.fromkeys(place for item in items for place in item.passages)))


def chosen_numbers(words: str, most: int) -> list[int]:
    """Return the places of items by their numbers, "1,4-9", from 0 on. Raises InvalidRequest."""
    places: dict[int, None] = {}
    for part in words.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= most:
            hint = f"numbers from 1 to {most}, for example 1,4-9" if most else "the input has no items to choose from"
            raise InvalidRequest(f"{part.strip()!r} names no item", hint=hint)
        places.update(dict.fromkeys(range(first - 1, last)))
    return sorted(places)
