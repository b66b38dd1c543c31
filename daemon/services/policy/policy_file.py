"""Reads `pi.config.yaml` and `.pi.project.yaml`: YAML 1.2 without aliases, tags, directives and duplicate keys.

Invariants: a file is taken as a whole or refused as a whole, with the reason; a key that memd does not know is named
and changes nothing; the parser is imported when the first file is read (90 ms), never on a path that an agent waits on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import inspect

from ....protocol.errors import BadConfig
from ....protocol.patch_file import IDENTITY, PLAYBOOK
from ....protocol.policy import POLICY_BYTES, Policy, ProjectLens

VERSION = 1
DEEPEST = 8
"""Levels of mappings and lists in a file; the parser takes seconds for thousands."""

T = TypeVar("T")

for _type in (Policy, ProjectLens):
    msgspec.json.Decoder(_type)  # so that no two threads do so at once: msgspec would end the process


class ReadPolicy(NamedTuple):
    """A policy, and what memd does not know in its file."""

    policy: Policy
    notes: tuple[str, ...] = ()


def read_policy(data: bytes, base: Policy, redact: Callable[[str], str]) -> ReadPolicy:
    """Return the policy of a file; what the file leaves out is as in `base`. `redact`: removes secrets. Raises
    BadConfig."""
    values = yaml_values(data, redact)
    if values.get("version") != VERSION or isinstance(values.get("version"), bool):
        raise BadConfig(
            f"the policy has version {values.get('version', 'none')!r}", hint=f"memd reads `version: {VERSION}`"
        )
    rest = {key: value for key, value in values.items() if key != "version"}
    policy = converted(_over(msgspec.to_builtins(base), rest), Policy)
    return ReadPolicy(policy, (*unknown_keys(rest, Policy, known=("version",)), *_not_loaded(policy)))


def yaml_values(data: bytes, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return the mapping of a YAML file. Raises BadConfig."""
    if len(data) > POLICY_BYTES:
        raise BadConfig(f"the file has {len(data):,} bytes", hint=f"memd reads at most {POLICY_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadConfig(f"the file is not UTF-8: {error.reason}", hint="save it as UTF-8") from error
    if redact(text) != text:
        raise BadConfig("the file contains a secret", hint="remove it: the file is in git, and memd keeps its text")
    opened = (char in "[{" for char in text if char in "[]{}")
    if max(accumulate((1 if is_open else -1 for is_open in opened), initial=0)) > DEEPEST:
        raise _too_deep()
    values = _parsed(text)
    if values is None:
        values = {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in cast("dict[object, object]", values)):
        raise BadConfig("the file is not a mapping of names", hint="docs/POLICY.md has an example")
    return cast("dict[str, Any]", values)


def converted(values: Mapping[str, Any], type: type[T]) -> T:
    """Return values as a type. Raises BadConfig."""
    try:
        return msgspec.convert(values, type)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).replace("`", "").rpartition(" - at $.")
        raise BadConfig(f"{path}: {problem}" if path else str(error), hint="docs/POLICY.md lists the values") from error


def unknown_keys(values: Mapping[str, Any], type: type, path: str = "", known: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield a sentence for each key that a type does not have, with the nearest one that it has."""
    info = inspect.type_info(type)
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: field.type for field in info.fields}
    for key, value in values.items():
        below = fields.get(key)
        if below is None:
            near = get_close_matches(str(key), [*fields, *known], 1)
            there = f"did you mean {path}{near[0]}?" if near else f"there are: {', '.join(fields)}"
            yield f"memd does not know {path}{key!s:.60} and keeps it; {there}"
        elif isinstance(below, inspect.StructType) and isinstance(value, dict):
            yield from unknown_keys(cast("dict[str, Any]", value), below.cls, f"{path}{key}.")


def _parsed(text: str) -> object:
    """Parse twice: first for what is refused, then for the values."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    parser: Any = YAML(typ="safe", pure=True)
    try:
        _check_events(parser.parse(text))
        parser = YAML(typ="safe", pure=True)
        return parser.load(text)
    except YAMLError as error:
        raise BadConfig(f"the file does not parse: {_first_lines(error)}", hint="correct that line") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise BadConfig(f"the file does not parse: {error}", hint="correct the value") from error


def _check_events(events: Iterator[object]) -> None:
    """Raise BadConfig for directives, aliases, tags, and what is nested too deeply."""
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, DocumentStartEvent

    depth = 0
    for event in events:
        if isinstance(event, DocumentStartEvent):
            if getattr(event, "version", None) or getattr(event, "tags", None):
                raise BadConfig("the file has a % directive", hint="remove that line: memd reads YAML 1.2")
        elif isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise BadConfig("the file has an alias or an anchor (& or *)", hint="write the value out")
        elif getattr(event, "tag", None) is not None:
            raise BadConfig("the file has a tag (!)", hint="remove the tag")
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise _too_deep()


def _first_lines(error: Exception) -> str:
    """Return what went wrong and where, without the parser's advice and without the words of the file."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or type(error).__name__).split(" with value", 1)[0]
    return f"line {mark.line + 1}: {problem}" if mark else problem


def _too_deep() -> BadConfig:
    return BadConfig("the file is nested too deeply", hint=f"memd reads at most {DEEPEST} levels")


def _over(base: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the given values in the same places; a mapping of free names is replaced as a whole."""
    merged = dict(base)
    for key, value in values.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and key != "tag_boost":
            merged[key] = _over(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            merged[key] = value
    return merged


def _not_loaded(policy: Policy) -> Iterator[str]:
    for name in policy.retrieval.always_load:
        if name not in (IDENTITY, PLAYBOOK):
            yield f"retrieval.always_load: memd loads only {IDENTITY} and {PLAYBOOK}, not {name:.80}"
