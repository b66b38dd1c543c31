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

_BOM = "\ufeff"
_TOKEN = re.compile(r'\s+|//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"/]+)', re.DOTALL)
_DASH = re.compile(r"^[ \t]*-(?=\s)", re.MULTILINE)
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
        self._bom, self.text = _decoded(content, path)
        try:
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
        return (self._bom + self.text).encode()

    def get(self, *names: str | int) -> Any:
        """Return the value at a path of names, and of numbers in lists; None for none."""
        value: Any = self.value
        for name in names:
            value = value[name] if isinstance(name, int) else value.get(name) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]

    def put(self, names: Sequence[str], value: object) -> None:
        """Put a value at a path of names; it stays as it is if it is there. Raises StoreError."""
        if self.get(*names) == value:
            return
        *parents, name = names
        parent = self._container(parents, name)
        found = parent.member(name)
        if found:
            self._replace(found.start, found.end, self._written(value, found.began))
        else:
            self._append(parent, f"{json.dumps(name, ensure_ascii=False)}: ", value)

    def add(self, names: Sequence[str], item: object) -> None:
        """Append an item to the list at a path of names, unless it is there. Raises StoreError."""
        present = self.get(*names)
        if not isinstance(present, list) or item not in present:
            self._append(self._container(names, 0), "", item)

    def drop(self, names: Sequence[str | int], chosen: Callable[[Any], bool] = lambda value: True) -> None:
        """Take out the value at a path of names, or those items of a list there that `chosen` says, and the objects and
        lists that become empty by it; one with a comment in it stays. Raises StoreError."""
        value = self.get(*names)
        if value is None:
            return
        if isinstance(value, list):
            items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            for number in reversed([n for n, item in enumerate(items) if chosen(item)]):
                self._cut(self._container(names, 0), number)
            if not self._is_blank(self._container(names, 0)):
                return
        parent = self._container(names[:-1], names[-1])
        self._cut(parent, max(n for n, part in enumerate(parent.parts) if names[-1] in (n, part.name)))
        if len(names) > 1 and self._is_blank(self._container(names[:-1], names[-1])):
            self.drop(names[:-1])

    def _is_blank(self, part: JsonPart) -> bool:
        """Whether an object or a list has neither parts nor comments."""
        return not self.text[part.start + 1 : part.end - 1].strip()

    def _container(self, names: Sequence[str | int], name: str | int) -> JsonPart:
        """Return the object or list at a path that has, or will have, a part of that name or number; made if it is
        missing."""
        part = self._root
        for depth, (own, inner) in enumerate(zip(names, (*names, name)[1:], strict=True), 1):
            wanted = "[" if isinstance(inner, int) else "{"
            found = part.parts[own] if isinstance(own, int) else part.member(own)
            if found is None:
                self._append(part, f"{json.dumps(own, ensure_ascii=False)}: ", {} if wanted == "{" else [])
                return self._container(names, name)
            if self.text[found.start] != wanted:
                kind = "an object" if wanted == "{" else "a list"
                raise StoreError(
                    f"{'.'.join(map(str, names[:depth]))} in {self._path} is not {kind}",
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
        """Take out a part with the comma that belongs to it, and its lines if nothing else stands on them."""
        part = parent.parts[number]
        comma = self._comma_after(part.end)
        start, end = part.began, comma + 1 if comma >= 0 else part.end
        left = len(self.text[:start].rstrip(" \t"))
        right = len(self.text) - len(self.text[end:].lstrip(" \t\r"))
        is_line_end = self.text.startswith("\n", right)
        if is_line_end and self.text[left - 1] == "\n":
            start, end = left, right + 1
        elif is_line_end or comma < 0:
            start = left
        else:
            end = right
        kept = self.text[:start]
        if number and comma < 0:  # the one before it is the last now
            comma = self._comma_after(parent.parts[number - 1].end)
            kept = kept[:comma] + kept[comma + 1 :]
        self._replace(0, end, kept)

    def _comma_after(self, place: int) -> int:
        """Return the place of the comma that follows a part, -1 for none."""
        start, token = next(each for each in self._tokens if each[0] >= place)
        return start if token == "," else -1

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
        self._bom, text = _decoded(content, path)
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._read(text)

    def _read(self, text: str) -> None:
        from ruamel.yaml import YAML  # imported late: 40 ms
        from ruamel.yaml.error import YAMLError

        reader = YAML(typ="safe", pure=True)
        try:
            value: Any = reader.load(text)  # pyright: ignore[reportUnknownMemberType]
            if not isinstance(value, dict | None):
                raise ValueError("its top is not a mapping")
            root: Any = reader.compose(text)  # pyright: ignore[reportUnknownMemberType]
            if root and root.flow_style:
                raise ValueError("its top is in braces")
        except (YAMLError, ValueError) as error:
            raise StoreError(
                f"{self._path} is not YAML that memd can change: {error}",
                hint="repair the file first: memd did not change it",
            ) from error
        self.text = text
        self.value: dict[str, Any] = dict(value or {})  # pyright: ignore[reportUnknownArgumentType]
        self._pairs: dict[str, tuple[Any, Any]] = {pair[0].value: pair for pair in root.value} if root else {}

    def content(self) -> bytes:
        """Return the text as bytes."""
        return (self._bom + self.text).encode()

    def set(self, name: str, scalar: str) -> None:
        """Append a value that is not there yet; `scalar`: as it stands in the text."""
        self._append([f"{name}: {scalar}"])

    def add(self, name: str, item: Sequence[str]) -> None:
        """Put an item first into the list of that name; `item`: its lines, unindented. Raises StoreError for a value
        that is no list with one item a line."""
        if name not in self._pairs:
            return self._append([f"{name}:", *_item(item, "  ")])
        node, indent = self._pairs[name][1], "  "
        if self.value[name] is None and node.start_mark.index == node.end_mark.index:
            start = self._line_end(node.end_mark.index)
        else:
            start = self._line_start(node.start_mark.index)
            indent = self.text[start : node.start_mark.index]
            if not isinstance(self.value[name], list) or node.flow_style or indent.strip():
                raise StoreError(
                    f"{name} in {self._path} is not a list with one item a line",
                    hint=f"write it so, then run the command again, or add this item by hand: {' '.join(item)}",
                )
        gap = "" if not start or self.text[start - 1] == "\n" else self._newline
        lines = self._newline.join([*_item(item, indent), ""])
        self._read(self.text[:start] + gap + lines + self.text[start:])

    def drop(self, name: str, chosen: Callable[[Any], bool]) -> None:
        """Take those items out of the list of that name that `chosen` says, and the name if the list becomes empty."""
        items: Any = self.value[name] if name in self._pairs else None
        if not isinstance(items, list):
            return
        for number in reversed([n for n, item in enumerate(items) if chosen(item)]):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            key, value = self._pairs[name]
            start, end = (self._between_brackets if value.flow_style else self._on_lines)(value.value, number)
            if len(value.value) == 1 and not self.text[self._line_end(key.end_mark.index) : start].strip():
                return self.unset(name)
            self._read(self.text[:start] + self.text[end:])

    def _on_lines(self, items: Sequence[Any], number: int) -> tuple[int, int]:
        """Return where the lines of an item start and end."""
        dashes = _DASH.finditer(self.text, 0, items[number].start_mark.index)
        return max(dash.start() for dash in dashes), self._line_end(_end(items[number]))

    def _between_brackets(self, items: Sequence[Any], number: int) -> tuple[int, int]:
        """Return where an item of a list in brackets starts and ends, with one of its commas."""
        marks = [(item.start_mark.index, item.end_mark.index) for item in items]
        if number + 1 < len(items):
            return marks[number][0], marks[number + 1][0]
        return marks[number - 1][1] if number else marks[number][0], marks[number][1]

    def unset(self, name: str) -> None:
        """Take out a value, if it is there."""
        if name in self._pairs:
            key, value = self._pairs[name]
            start, end = self._line_start(key.start_mark.index), self._line_end(_end(value))
            self._read(self.text[:start] + self.text[end:])

    def _append(self, lines: Sequence[str]) -> None:
        gap = "" if not self.text or self.text.endswith("\n") else self._newline
        self._read(self.text + gap + self._newline.join([*lines, ""]))

    def _line_start(self, place: int) -> int:
        return self.text.rfind("\n", 0, place) + 1

    def _line_end(self, place: int) -> int:
        """Return where the line with the character before a place ends."""
        end = self.text.find("\n", max(place - 1, 0))
        return len(self.text) if end < 0 else end + 1


def _end(node: Any) -> int:
    """Return where a node's own text ends: a collection has the mark of what follows its comments."""
    if isinstance(node.value, str) or node.flow_style or not node.value:
        return node.end_mark.index
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _item(lines: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}{'  ' if number else '- '}{line}" for number, line in enumerate(lines)]


def _decoded(content: bytes | None, path: Path) -> tuple[str, str]:
    """Return the byte order mark, "" for none, and the text after it. Raises StoreError."""
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError as error:
        raise StoreError(
            f"{path} is not UTF-8: {error.reason}", hint="repair the file first: memd did not change it"
        ) from error
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
