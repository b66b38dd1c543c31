"""Entries in other programs' configuration texts: put in and taken out, while every other character stays.

JSON may have comments and trailing commas, as editors write it. Of YAML, the entries are items of a list at the top.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...protocol.errors import StoreError

_TOKEN = re.compile(r'\s+|//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+)', re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*)?")


class JsonPart(msgspec.Struct, kw_only=True):
    """A value in a text. `start`, `end`: its characters; `began`: of a member, where its name begins; `name`: that
    name; `parts`: of an object or a list; `comma`: where a comma after the last of them ends, 0 for none."""

    start: int
    end: int = 0
    began: int = 0
    name: str = ""
    parts: list[JsonPart] = []
    comma: int = 0

    def member(self, name: str) -> JsonPart | None:
        """Return the value of that name, the last one as JSON has it."""
        return next((part for part in reversed(self.parts) if part.name == name), None)


class JsonText:
    """A JSON text of an object. `path`: of the file, for errors. Raises StoreError for another text."""

    def __init__(self, content: bytes | None, path: Path) -> None:
        self._path = path
        try:
            self.text = (content or b"").decode()
            if not self.text.strip():
                self.text = "{\n}\n"
            self._read()
        except (ValueError, IndexError, RecursionError) as error:
            raise StoreError(
                f"{path} is not JSON: {error}", hint="repair the file first: memd did not change it"
            ) from error

    def _read(self) -> None:
        self._tokens = list(_tokens(self.text))
        self._next = 0
        self._root = self._part()
        if self.text[self._root.start] != "{" or self._next != len(self._tokens):
            raise ValueError("no single object")
        self.value: dict[str, Any] = self._value(self._root)

    def _part(self) -> JsonPart:
        start, token = self._take()
        part = JsonPart(start=start, end=start + len(token), began=start, parts=[])
        if token in "{[":
            part.end = self._fill(part, "}" if token == "{" else "]")
        elif token in "}]:,":
            raise ValueError(f"{token!r} at character {start}")
        return part

    def _fill(self, part: JsonPart, closing: str) -> int:
        """Read the parts of an object or a list; return where it ends."""
        while (token := self._tokens[self._next])[1] != closing:
            name, began = "", token[0]
            if closing == "}":
                name = json.loads(self._take()[1], strict=False)
                if self._take()[1] != ":" or not isinstance(name, str):
                    raise ValueError(f"a name without a value at character {began}")
            inner = self._part()
            inner.name, inner.began = name, began
            part.parts.append(inner)
            part.comma = 0
            after = self._tokens[self._next]
            if after[1] == ",":
                part.comma = self._take()[0] + 1
            elif after[1] != closing:
                raise ValueError(f"{after[1]!r} at character {after[0]}")
        return self._take()[0] + 1

    def _take(self) -> tuple[int, str]:
        self._next += 1
        return self._tokens[self._next - 1]

    def _value(self, part: JsonPart) -> Any:
        if self.text[part.start] == "{":
            return {inner.name: self._value(inner) for inner in part.parts}
        if self.text[part.start] == "[":
            return [self._value(inner) for inner in part.parts]
        return json.loads(self.text[part.start : part.end], strict=False)

    def content(self) -> bytes:
        """Return the text as bytes."""
        return self.text.encode()

    def get(self, *names: str) -> Any:
        """Return the value at a path of names, None for none."""
        value: Any = self.value
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    def put(self, names: Sequence[str], value: object) -> None:
        """Put a value at a path of names; it stays as it is if it is there. Raises StoreError."""
        if self.get(*names) == value:
            return
        *parents, name = names
        parent = self._container(parents, "{")
        found = parent.member(name)
        if found:
            self._replace(found.start, found.end, self._written(value, found.began))
        else:
            self._append(parent, f"{json.dumps(name, ensure_ascii=False)}: ", value)

    def add(self, names: Sequence[str], item: object) -> None:
        """Append an item to the list at a path of names, unless it is there. Raises StoreError."""
        if item not in (self.get(*names) or []):
            self._append(self._container(names, "["), "", item)

    def drop(self, names: Sequence[str], chosen: Callable[[Any], bool] = lambda value: True) -> None:
        """Take out the value at a path of names, or those items of a list there that `chosen` says, and the objects and
        lists that become empty by it. Raises StoreError."""
        value = self.get(*names)
        if value is None:
            return
        items = [n for n, item in enumerate(value) if chosen(item)] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        for number in reversed(items):
            self._cut(self._container(names, "["), number)
        if not isinstance(value, list) or not self.get(*names):
            parent = self._container(names[:-1], "{")
            self._cut(parent, max(n for n, part in enumerate(parent.parts) if part.name == names[-1]))
            if len(names) > 1 and not self.get(*names[:-1]):
                self.drop(names[:-1])

    def _container(self, names: Sequence[str], opening: str) -> JsonPart:
        """Return the object or list at a path, made if it is missing."""
        part = self._root
        for depth, name in enumerate(names):
            wanted = opening if depth == len(names) - 1 else "{"
            found = part.member(name)
            if found is None:
                self._append(part, f"{json.dumps(name, ensure_ascii=False)}: ", {} if wanted == "{" else [])
                return self._container(names, opening)
            if self.text[found.start] != wanted:
                kind = "an object" if wanted == "{" else "a list"
                raise StoreError(
                    f"{'.'.join(names[: depth + 1])} in {self._path} is not {kind}",
                    hint="repair the file first: memd did not change it",
                )
            part = found
        return part

    def _append(self, parent: JsonPart, head: str, value: object) -> None:
        if parent.parts:
            last = parent.parts[-1]
            indent = self._indent(last.began)
            place = parent.comma or last.end
            rest = _REST_OF_LINE.match(self.text, place)
            line = rest[0] if rest and "//" in rest[0] else ""
            begun = ("" if parent.comma else ",") + line + "\n" + indent
            entry = f"{head}{self._written(value, 0, indent)}" + ("," if parent.comma else "")
            self._replace(place, place + len(line), begun + entry)
            return
        outer = self._indent(parent.began)
        indent = outer + self._step
        rest = self.text[parent.start + 1 : parent.end - 1]
        entry = f"\n{indent}{head}{self._written(value, 0, indent)}" + ("" if "\n" in rest else f"\n{outer}")
        self._replace(parent.start + 1, parent.start + 1, entry)

    def _cut(self, parent: JsonPart, number: int) -> None:
        """Take out a part with the comma that belongs to it."""
        part = parent.parts[number]
        if number + 1 < len(parent.parts):
            return self._replace(part.began, parent.parts[number + 1].began, "")
        if not number:
            return self._replace(parent.start + 1, parent.comma or part.end, "")
        before = self.text[: part.began].rstrip()
        if not parent.comma:  # the one before it has no comma any more
            comma = next(start for start, _ in self._tokens if start >= parent.parts[number - 1].end)
            before = before[:comma] + before[comma + 1 :]
        end = parent.comma or part.end
        is_last_in_line = self.text[end:].lstrip(" \t").startswith("\n")
        return self._replace(0, end, before if is_last_in_line else before + "\n")

    def _replace(self, start: int, end: int, by: str) -> None:
        self.text = self.text[:start] + by + self.text[end:]
        self._read()

    def _written(self, value: object, began: int, indent: str | None = None) -> str:
        lines = json.dumps(value, indent=self._step, ensure_ascii=False).split("\n")
        return f"\n{self._indent(began) if indent is None else indent}".join(lines)

    def _indent(self, place: int) -> str:
        """Return the indentation of the line with a character; of one that follows others on its line, a step more."""
        line = self.text[self.text.rfind("\n", 0, place) + 1 : place]
        own = line[: len(line) - len(line.lstrip())]
        return own if not line.strip() or place == self._root.start else own + self._step

    @property
    def _step(self) -> str:
        """One step of the file's own indentation."""
        first = self._root.parts[0].began if self._root.parts else 0
        line = self.text[self.text.rfind("\n", 0, first) + 1 : first]
        return line if line and not line.strip() else "  "


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise ValueError(f"{text[place : place + 10]!r} at character {place}")
        if found[1]:
            yield place, found[1]
        place = found.end()


class YamlText:
    """A YAML text with a mapping at its top. Raises StoreError for another one."""

    def __init__(self, content: bytes | None, path: Path) -> None:
        self._path = path
        self.text = self._checked((content or b"").decode(errors="replace"))

    def _checked(self, text: str) -> str:
        from ruamel.yaml import YAML  # imported late: 40 ms
        from ruamel.yaml.error import YAMLError

        try:
            value: Any = YAML(typ="safe", pure=True).load(text)  # pyright: ignore[reportUnknownMemberType]
            if not isinstance(value, dict | None):
                raise ValueError("its top is not a mapping")
        except (YAMLError, ValueError) as error:
            raise StoreError(
                f"{self._path} is not YAML that memd can change: {error}",
                hint="repair the file first: memd did not change it",
            ) from error
        self.value: dict[str, Any] = dict(value or {})  # pyright: ignore[reportUnknownArgumentType]
        return text

    def content(self) -> bytes:
        """Return the text as bytes."""
        return self.text.encode()

    def set(self, name: str, scalar: str) -> None:
        """Append a value that is not there yet; `scalar`: as it stands in the text."""
        self._append(f"{name}: {scalar}\n")

    def add(self, name: str, item: Sequence[str]) -> None:
        """Put an item first into the list of that name; `item`: its lines, unindented. Raises StoreError for a list in
        one line."""
        if name not in self.value:
            self._append(f"{name}:\n" + _item(item, "  "))
            return
        found = re.search(
            rf"^{re.escape(name)}:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*(?=([ \t]*)- )", self.text, re.MULTILINE
        )
        if not found:
            raise StoreError(
                f"{name} in {self._path} is not a list with one item a line",
                hint=f"write it so, then run the command again, or add this item by hand: {' '.join(item)}",
            )
        self.text = self._checked(self.text[: found.end()] + _item(item, found[1]) + self.text[found.end() :])

    def drop(self, name: str, first: str) -> None:
        """Take out the item of a list whose first line is `first`, and the list's name if it becomes empty."""
        found = re.search(rf"^([ \t]*)- {re.escape(first)}[ \t]*\n(?:\1[ \t]+[^\n]*\n)*", self.text, re.MULTILINE)
        if not found:
            return
        text = self.text[: found.start()] + self.text[found.end() :]
        empty = re.compile(rf"^{re.escape(name)}:[ \t]*\n(?![ \t]*[-#])", re.MULTILINE)
        self.text = self._checked(empty.sub("", text, count=1))

    def unset(self, name: str, scalar: str) -> None:
        """Take out a value that `set` appended."""
        self.text = self._checked(self.text.replace(f"{name}: {scalar}\n", "", 1))

    def _append(self, lines: str) -> None:
        gap = "" if not self.text or self.text.endswith("\n") else "\n"
        self.text = self._checked(self.text + gap + lines)


def _item(lines: Sequence[str], indent: str) -> str:
    return "".join(f"{indent}{'  ' if number else '- '}{line}\n" for number, line in enumerate(lines))
