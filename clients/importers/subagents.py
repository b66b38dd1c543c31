"""The type of a Claude Code subagent, such as `Explore`: its own file has only a random id, and the file of the session
that called it has both (P5)."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from .json_line import BadLine, ContentBlock, decode


class _Input(msgspec.Struct, frozen=True):
    """What a call of a subagent names."""

    subagent_type: str = ""


class _Message(msgspec.Struct, frozen=True):
    content: str | list[ContentBlock] = ""


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    """What the host notes beside the result of such a call."""

    agent_id: str = ""


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    message: _Message = _Message()
    tool_use_result: msgspec.Raw = msgspec.Raw()


_lines = msgspec.json.Decoder(_Line)
_inputs = msgspec.json.Decoder(_Input)
_results = msgspec.json.Decoder(_Result)
_NAME = re.compile(r"[\w.:-]{1,64}")


def type_of(path: Path, session: str, agent: str) -> str:
    """Return the type of the subagent `agent`, whose file is `path`; "" if no file of its session tells it."""
    for folder in path.parents[:3]:
        caller = folder / f"{session}.jsonl"
        with suppress(OSError):
            state = caller.stat()
            return _types(caller, state.st_mtime_ns, state.st_size).get(agent, "")
    return ""


def file_of(caller: Path, session: str, result: bytes) -> Path | None:
    """Return the file of the subagent that gave a result, None if it is not there. `caller`: the session's file."""
    if b'"agentId"' not in result or result[:1] != b"{":
        return None
    with suppress(BadLine, OSError):
        agent = decode(_results, result).agent_id
        places = (caller.parent / session / "subagents", caller.parent)
        named = (folder / f"agent-{agent}.jsonl" for folder in places if _NAME.fullmatch(agent))
        return next((file for file in named if file.is_file()), None)
    return None


@lru_cache(maxsize=4)
def _types(caller: Path, changed: int, size: int) -> dict[str, str]:
    """Return the types of a session's subagents by their ids. `changed`, `size`: a file that grew is read again."""
    called: dict[str, str] = {}
    types: dict[str, str] = {}
    with caller.open("rb") as file:
        for content in file:
            if b'"subagent_type"' in content or b'"agentId"' in content:
                with suppress(BadLine):
                    _take(decode(_lines, content), called, types)
    return types


def _take(line: _Line, called: dict[str, str], types: dict[str, str]) -> None:
    """Note the calls of a line by their ids, and the subagents that answered earlier ones."""
    blocks = line.message.content if isinstance(line.message.content, list) else []
    for block in blocks:
        if block.type == "tool_use" and block.id and b"subagent_type" in bytes(block.input):
            named = decode(_inputs, bytes(block.input)).subagent_type
            if _NAME.fullmatch(named):
                called[block.id] = named
        elif block.type == "tool_result" and block.tool_use_id in called and bytes(line.tool_use_result)[:1] == b"{":
            types[decode(_results, bytes(line.tool_use_result)).agent_id] = called[block.tool_use_id]
